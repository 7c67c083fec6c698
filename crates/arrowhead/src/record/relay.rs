//! Relays: where this cloud and others meet.

use std::sync::Arc;

use serde::Serialize;

use super::{RelayId, Timestamps};

/// What a relay is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RelayType {
    /// Dialogues of gatekeepers.
    GatekeeperRelay,
    /// Tunnels of gateways.
    GatewayRelay,
    /// Both.
    GeneralRelay,
}

impl RelayType {
    const ALL: [Self; 3] = [Self::GatekeeperRelay, Self::GatewayRelay, Self::GeneralRelay];

    /// The wire's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GatekeeperRelay => "GATEKEEPER_RELAY",
            Self::GatewayRelay => "GATEWAY_RELAY",
            Self::GeneralRelay => "GENERAL_RELAY",
        }
    }

    /// Reads the wire's spelling, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(text.trim()))
    }
}

/// A relay. Serialised it is `RelayResponse`, nulls kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Relay {
    /// Row id.
    pub id: RelayId,
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
    /// What it is for.
    #[serde(rename = "type")]
    pub relay_type: RelayType,
    /// Times of the row.
    #[serde(flatten)]
    pub timestamps: Timestamps,
}

impl Relay {
    /// Whether gatekeepers may meet at it.
    pub fn is_for_gatekeepers(&self) -> bool {
        self.relay_type != RelayType::GatewayRelay && !self.exclusive
    }

    /// Whether it is for tunnels to the clouds only that it is assigned to.
    pub fn is_dedicated(&self) -> bool {
        self.relay_type == RelayType::GatewayRelay && self.exclusive
    }

    /// Whether it is for tunnels to any cloud.
    pub fn is_public_for_tunnels(&self) -> bool {
        self.relay_type != RelayType::GatekeeperRelay && !self.exclusive
    }
}
