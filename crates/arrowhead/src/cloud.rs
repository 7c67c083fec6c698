//! This cloud.

use crate::name::CloudName;

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
