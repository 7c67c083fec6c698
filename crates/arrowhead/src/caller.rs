//! Who asks: an argument of every operation.

/// The identity the transport established for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Insecure mode: the transport established nothing, and upstream checks nothing.
    Anonymous,
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

    /// What is permitted.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> std::ops::Deref for Authorized<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
