//! Who asks: an argument of every operation.

use crate::error::ArrowheadError;

/// The identity the transport established for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Insecure mode: the transport established nothing, and upstream checks nothing.
    Anonymous,
}

impl Caller {
    /// May the caller act as the system of this name, as its own requests do (register, orchestrate, subscribe, publish)?
    pub fn may_act_as(self, _system_name: &str) -> Result<(), ArrowheadError> {
        match self {
            Self::Anonymous => Ok(()),
        }
    }

    /// May the caller use the management endpoints?
    pub fn may_manage(self) -> Result<(), ArrowheadError> {
        match self {
            Self::Anonymous => Ok(()),
        }
    }

    /// May the caller ask what core systems ask each other, and what any system of the cloud may ask?
    pub fn may_ask(self) -> Result<(), ArrowheadError> {
        match self {
            Self::Anonymous => Ok(()),
        }
    }
}

/// Proof that a caller may do what `T` describes.
///
/// Only the rules of this crate make one, and what carries out `T` asks for it, so that no path around the rules can be
/// written by accident.
#[derive(Debug)]
pub struct Authorized<T>(T);

impl<T> Authorized<T> {
    pub(crate) fn new(permitted: T) -> Self {
        Self(permitted)
    }
}

impl<T> std::ops::Deref for Authorized<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
