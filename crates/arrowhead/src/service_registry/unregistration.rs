//! Removing a service by what it is, as its provider does.

use crate::{error::ArrowheadError, system::SystemKey};

/// A service to be removed from the registry; system and definition stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unregistration {
    /// What was offered; looked up in any case.
    pub definition: String,
    /// Who offered it.
    pub provider: SystemKey,
    /// Where; exact after trimming. `None`, as Arrowhead 4.1.3's clients leave it: the empty URI, else the only one there is.
    pub service_uri: Option<String>,
}

impl Unregistration {
    /// Checks the query parameters.
    pub fn parse(definition: &str, provider: SystemKey, service_uri: Option<&str>, origin: &str) -> Result<Self, ArrowheadError> {
        let definition = definition.trim().to_lowercase();
        if definition.is_empty() {
            return Err(ArrowheadError::bad_payload("Service definition is blank.", origin));
        }
        Ok(Self { definition, provider, service_uri: service_uri.map(|uri| uri.trim().to_owned()) })
    }
}

/// Checks the query parameters that name a system (`system_name`, `address`, `port`).
pub fn parse_system_parameters(name: &str, address: &str, port: i64, origin: &str) -> Result<SystemKey, ArrowheadError> {
    let refused = |message: &str| Err(ArrowheadError::bad_payload(message, origin));
    if name.trim().is_empty() {
        return refused("Name of the system is blank.");
    }
    if address.trim().is_empty() {
        return refused("Address of the system is blank.");
    }
    match u16::try_from(port) {
        Ok(port) => Ok(SystemKey::new(name, address, port)),
        Err(_) => refused("Port must be between 0 and 65535."),
    }
}
