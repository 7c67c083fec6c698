//! Who asks: an argument of every operation.

use std::sync::Arc;

use crate::{
    common_name::{CloudCommonName, SystemCommonName},
    error::ArrowheadError,
    name::SystemName,
};

/// The name of the system that manages the cloud.
pub const OPERATOR: &str = "sysop";

/// The identity the transport established for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Insecure mode: the transport established nothing, and upstream checks nothing.
    Anonymous,
    /// Secure mode: the caller has shown a certificate that leads to the cloud's authority.
    Certified(Arc<CertifiedName>),
}

/// The name in a caller's certificate.
#[derive(Debug, PartialEq, Eq)]
pub struct CertifiedName {
    /// The common name as it stands there; empty if there is none.
    pub common_name: Box<str>,
    /// The system; `None` if the name is not that of a system of this cloud.
    pub system: Option<SystemName>,
}

impl Caller {
    /// Whoever has shown a certificate with this common name to a server of `own_cloud`.
    pub fn certified(common_name: &str, own_cloud: &CloudCommonName) -> Self {
        let name = SystemCommonName::parse(common_name).ok().filter(|name| name.cloud == *own_cloud);
        Self::Certified(Arc::new(CertifiedName { common_name: common_name.into(), system: name.map(|name| name.system) }))
    }

    /// May the caller act as the system of this name, as its own requests do (register, orchestrate, subscribe, publish)?
    pub fn may_act_as(&self, system_name: &str) -> Result<(), ArrowheadError> {
        self.may(|own| own.as_str().eq_ignore_ascii_case(system_name))
    }

    /// May the caller use the management endpoints?
    pub fn may_manage(&self) -> Result<(), ArrowheadError> {
        self.may(|own| own.as_str() == OPERATOR)
    }

    /// May the caller ask what core systems ask each other, and what any system of the cloud may ask?
    pub fn may_ask(&self) -> Result<(), ArrowheadError> {
        self.may(|_| true)
    }

    fn may(&self, holds: impl FnOnce(&SystemName) -> bool) -> Result<(), ArrowheadError> {
        match self {
            Self::Anonymous => Ok(()),
            Self::Certified(name) if name.system.as_ref().is_some_and(holds) => Ok(()),
            Self::Certified(name) => Err(ArrowheadError::auth(format!("{} is unauthorized to do this", name.common_name))),
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
