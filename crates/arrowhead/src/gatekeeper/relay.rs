//! Relays to be made or changed.

use std::sync::Arc;

use crate::{
    error::ArrowheadError,
    form::RelayRequest,
    name::TEXT_LENGTH_MAX,
    record::{Relay, RelayType},
    system::AUTHENTICATION_INFO_LENGTH_MAX,
};

/// A relay as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayPut {
    /// Where it is, lower-case.
    pub address: Arc<str>,
    /// Where it listens.
    pub port: u16,
    /// Base64 of its public key.
    pub authentication_info: Option<Arc<str>>,
    /// Whether it is reached by TLS.
    pub secure: bool,
    /// Whether it is for tunnels to the clouds only that it is assigned to.
    pub exclusive: bool,
    /// What it is for; `None`: what it was for, and of a new one both.
    pub relay_type: Option<RelayType>,
}

impl RelayPut {
    /// Checks a form.
    pub fn parse(form: RelayRequest, origin: &str) -> Result<Self, ArrowheadError> {
        let refused = |message: String| ArrowheadError::bad_payload(message, origin);
        let address = form.address.as_deref().map(str::trim).filter(|address| !address.is_empty());
        let address = address.ok_or_else(|| refused("Relay address is null or blank.".into()))?.to_lowercase();
        let port = form.port.ok_or_else(|| refused("Relay port is null.".into()))?;
        let port = u16::try_from(port).map_err(|_| refused(format!("Relay port must be between 0 and 65535, not {port}.")))?;
        let authentication_info = form.authentication_info.map(|info| info.trim().to_owned()).filter(|info| !info.is_empty());
        let length_of_info = authentication_info.as_ref().map_or(0, |info| info.chars().count());
        if address.chars().count() > TEXT_LENGTH_MAX || length_of_info > AUTHENTICATION_INFO_LENGTH_MAX {
            return Err(ArrowheadError::database());
        }
        let relay_type = form.relay_type.filter(|text| !text.trim().is_empty());
        let relay_type = relay_type.map(|text| {
            let unknown =
                || refused(format!("Relay type must be GATEKEEPER_RELAY, GATEWAY_RELAY or GENERAL_RELAY, not '{}'.", text.trim()));
            RelayType::parse(&text).ok_or_else(unknown)
        });
        Ok(Self {
            address: address.into(),
            port,
            authentication_info: authentication_info.map(Arc::from),
            secure: form.secure.unwrap_or_default(),
            exclusive: form.exclusive.unwrap_or_default(),
            relay_type: relay_type.transpose()?,
        })
    }

    /// What it is to be for, given what it was for (`None`: it is new). That cannot change, and only a relay of tunnels can be exclusive.
    pub fn type_for(&self, former: Option<RelayType>) -> Result<RelayType, ArrowheadError> {
        let relay_type = self.relay_type.or(former).unwrap_or(RelayType::GeneralRelay);
        if let Some(former) = former.filter(|former| *former != relay_type) {
            let message = format!("The type of a relay cannot be changed: this one is a {}.", former.as_str());
            return Err(ArrowheadError::invalid_parameter(message));
        }
        if self.exclusive && relay_type != RelayType::GatewayRelay {
            let message = format!("Only a GATEWAY_RELAY can be exclusive, and not a {}.", relay_type.as_str());
            return Err(ArrowheadError::invalid_parameter(message));
        }
        Ok(relay_type)
    }

    /// Whether two clouds mean the same relay: by its key, if both know it, and otherwise by its address and port.
    pub fn is(&self, relay: &Relay) -> bool {
        match (&self.authentication_info, &relay.authentication_info) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => self.address == relay.address && self.port == relay.port,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> RelayRequest {
        RelayRequest { address: Some(" Relay.Local ".into()), port: Some(5671), ..RelayRequest::default() }
    }

    fn check(form: RelayRequest, expected: &str) {
        let error = RelayPut::parse(form, "/x").unwrap_err();
        assert!(error.error_message.contains(expected), "{error}");
    }

    #[test]
    fn a_relay_has_an_address_and_a_port() {
        let put = RelayPut::parse(form(), "/x").unwrap();
        assert_eq!((&*put.address, put.port, put.secure, put.exclusive, put.relay_type), ("relay.local", 5671, false, false, None));
        check(RelayRequest { address: Some(" ".into()), ..form() }, "address is null or blank");
        check(RelayRequest { port: None, ..form() }, "port is null");
        check(RelayRequest { port: Some(65_536), ..form() }, "65536");
        check(RelayRequest { relay_type: Some("RELAY".into()), ..form() }, "not 'RELAY'");
        check(RelayRequest { address: Some("a".repeat(256)), ..form() }, "Database operation exception");
    }

    #[test]
    fn a_type_stays_and_decides_what_may_be_exclusive() {
        use RelayType::{GatekeeperRelay, GatewayRelay, GeneralRelay};
        for (said, former, exclusive, expected) in [
            (None, None, false, Some(GeneralRelay)),
            (Some(" "), None, false, Some(GeneralRelay)),
            (Some("gateway_relay"), None, true, Some(GatewayRelay)),
            (None, Some(GatewayRelay), true, Some(GatewayRelay)),
            (None, None, true, None),
            (Some("GATEKEEPER_RELAY"), None, true, None),
            (Some("GATEWAY_RELAY"), Some(GatekeeperRelay), false, None),
            (Some("GATEKEEPER_RELAY"), Some(GatekeeperRelay), false, Some(GatekeeperRelay)),
        ] {
            let form = RelayRequest { relay_type: said.map(str::to_owned), exclusive: Some(exclusive), ..form() };
            let put = RelayPut::parse(form, "/x").unwrap();
            assert_eq!(put.type_for(former).ok(), expected, "{said:?} {former:?} {exclusive}");
        }
    }
}
