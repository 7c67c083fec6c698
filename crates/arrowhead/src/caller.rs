//! Who asks: an argument of every operation.

use std::sync::Arc;

use crate::{
    common_name::{CloudCommonName, SystemCommonName},
    name::SystemName,
};

/// The name of the system that manages the cloud.
pub const OPERATOR: &str = "sysop";

/// The identity the transport established for a request. What it may do is decided by [`crate::access`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Insecure mode: the transport established nothing, and upstream checks nothing.
    Anonymous,
    /// Secure mode: the name in the certificate that the caller has shown, if it has shown one.
    Certified(Arc<CertifiedName>),
}

/// The name in a caller's certificate, which leads to the cloud's authority.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CertifiedName {
    /// The common name as it stands there; empty if there is none.
    pub common_name: Box<str>,
    /// The system; `None` if the name is not that of a system of this cloud.
    pub system: Option<SystemName>,
    /// Whether it is that of a device, which leads to an authority for devices: it is no system's, and counts for onboarding only.
    pub is_device: bool,
    /// The certificate's public key as systems are registered with it (reference section 2); `None` where only a name is known.
    pub authentication_info: Option<Box<str>>,
}

impl CertifiedName {
    fn new(common_name: &str, own_cloud: &CloudCommonName) -> Self {
        let name = SystemCommonName::parse(common_name).ok().filter(|name| name.cloud == *own_cloud);
        Self { common_name: common_name.into(), system: name.map(|name| name.system), ..Self::default() }
    }
}

impl Caller {
    /// Whoever has shown a certificate with this common name to a server of `own_cloud`.
    pub fn certified(common_name: &str, own_cloud: &CloudCommonName) -> Self {
        Self::of(CertifiedName::new(common_name, own_cloud))
    }

    /// As [`Self::certified`], of a certificate whose public key is known too, in the form of `authenticationInfo`.
    pub fn certified_with(common_name: &str, authentication_info: String, own_cloud: &CloudCommonName) -> Self {
        Self::of(CertifiedName { authentication_info: Some(authentication_info.into()), ..CertifiedName::new(common_name, own_cloud) })
    }

    /// Whoever has shown no certificate in secure mode.
    pub fn unidentified() -> Self {
        Self::of(CertifiedName::default())
    }

    /// A device that has shown the certificate of an authority for devices.
    pub fn device(common_name: &str) -> Self {
        Self::of(CertifiedName { common_name: common_name.into(), is_device: true, ..CertifiedName::default() })
    }

    fn of(name: CertifiedName) -> Self {
        Self::Certified(Arc::new(name))
    }

    /// The system that the certificate names; `None` in insecure mode, and for a name of no system of this cloud.
    pub fn system(&self) -> Option<&SystemName> {
        match self {
            Self::Anonymous => None,
            Self::Certified(name) => name.system.as_ref(),
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

    /// What may be done.
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
