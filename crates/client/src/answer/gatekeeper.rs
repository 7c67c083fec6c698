//! Other clouds, and the relays by which they are reached.

use serde::{Deserialize, Serialize};

row! {
    /// A cloud that is known, with the relays by which it is reached.
    KnownCloud {
        /// Who runs it.
        operator: String,
        /// Its name.
        name: String,
        /// Whether it works with certificates.
        secure: bool,
        /// Whether it is asked when this cloud has no provider.
        neighbor: bool,
        /// Whether it is this cloud.
        own_cloud: bool,
        /// Base64 of its gatekeeper's public key.
        #[serde(default)]
        authentication_info: Option<String>,
        /// By these its gatekeeper is reached.
        #[serde(default)]
        gatekeeper_relays: Vec<KnownRelay>,
        /// These are for tunnels to it only.
        #[serde(default)]
        gateway_relays: Vec<KnownRelay>,
    }
}

row! {
    /// A relay that is known.
    KnownRelay {
        /// Host name or IP address.
        address: String,
        /// Where it listens.
        port: u16,
        /// Base64 of its public key.
        #[serde(default)]
        authentication_info: Option<String>,
        /// Whether it is reached by TLS.
        secure: bool,
        /// Whether it is for tunnels to the clouds only that it is assigned to.
        exclusive: bool,
        /// What it is for.
        #[serde(rename = "type")]
        relay_type: String,
        /// How it is with the connection to it; `None`: there is none, or nobody has asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
    }
}

impl KnownRelay {
    /// `host:port`, as URLs write it.
    pub fn host_and_port(&self) -> String {
        if self.address.contains(':') { format!("[{}]:{}", self.address, self.port) } else { format!("{}:{}", self.address, self.port) }
    }
}

answer! {
    /// How it is with the connection to a relay.
    RelayState {
        /// `host:port`.
        relay: String,
        /// In words.
        state: String,
    }
}

answer! {
    /// What another cloud's operator needs to know of a cloud.
    Introduction {
        /// Who runs it.
        operator: String,
        /// Its name.
        name: String,
        /// Base64 of its gatekeeper's public key.
        gatekeeper_key: String,
    }
}

answer! {
    /// What became of asking another cloud's gatekeeper whether it is there.
    PingedCloud {
        /// `NAME.OPERATOR`.
        cloud: String,
        /// Whether it has answered.
        answered: bool,
        /// How long the whole dialogue has taken, in microseconds.
        elapsed_us: u64,
        /// Whether its providers are reached without a gateway; `None`: it has not answered.
        #[serde(default)]
        direct_access: Option<bool>,
        /// Why it has not answered.
        #[serde(default)]
        why: Option<String>,
    }
}
