//! Clouds to be made known.

use std::sync::Arc;

use crate::name::CloudName;

/// A cloud other than this one, to be made or changed. The Gatekeeper's management makes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudPut {
    /// Who runs it.
    pub operator: CloudName,
    /// Its name.
    pub name: CloudName,
    /// Whether it works with certificates.
    pub secure: bool,
    /// Whether it is asked when this cloud has no provider.
    pub neighbor: bool,
    /// Base64 of its gatekeeper's public key.
    pub authentication_info: Option<Arc<str>>,
}

/// Operator and name of this cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCloud {
    /// Who runs it.
    pub operator: CloudName,
    /// Its name.
    pub name: CloudName,
    /// Whether it works with certificates.
    pub secure: bool,
}

impl OwnCloud {
    /// What a cloud without certificates is called (reference section 10).
    pub fn insecure() -> Self {
        Self { operator: CloudName::from_stored("default-operator"), name: CloudName::from_stored("default-insecure-cloud"), secure: false }
    }
}
