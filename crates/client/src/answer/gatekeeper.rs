//! Other clouds, and the relays by which they are reached.

use std::{collections::BTreeMap, time::Duration};

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

answer! {
    /// What a test of a relay by two clouds has shown, of the messages of the cloud that was asked for it.
    TestedRelay {
        /// With which cloud, `NAME.OPERATOR`.
        cloud: String,
        /// The relay's place.
        relay: String,
        /// Messages that were sent.
        sent: u32,
        /// Of these, those that have not come back.
        lost: u32,
        /// Quickest there and back, in ms; `None`: none came back.
        #[serde(default)]
        min_ms: Option<f64>,
        /// Mean of those that came back, in ms.
        #[serde(default)]
        mean_ms: Option<f64>,
        /// Slowest, in ms.
        #[serde(default)]
        max_ms: Option<f64>,
    }
}

answer! {
    /// How it is with a session of the Gateway.
    GatewaySession {
        /// The first letters of what its queues are known by.
        queue_id: String,
        /// `consumer` or `provider`: which end of the tunnel is here.
        side: String,
        /// `opening`, `open`, `half closed`, `closing` or `closed`.
        state: String,
        /// Why it is over.
        #[serde(default)]
        reason: Option<String>,
        /// What went wrong with a connection last.
        #[serde(default)]
        trouble: Option<String>,
        /// How often the connection to the relay was made again while it lasted.
        #[serde(default)]
        interruptions: u64,
        /// The other gateway.
        peer: String,
        /// Who consumes.
        consumer: String,
        /// `NAME.OPERATOR`.
        consumer_cloud: String,
        /// Who is reached.
        provider: String,
        /// `NAME.OPERATOR`.
        provider_cloud: String,
        /// What is consumed.
        service: String,
        /// Where the gateways meet.
        relay: String,
        /// The consumer's port.
        #[serde(default)]
        port: Option<u16>,
        /// Connections that there are.
        connections: usize,
        /// Bytes that were sent to the other gateway.
        bytes_to_peer: u64,
        /// Bytes that came from it.
        bytes_from_peer: u64,
        /// Whether lost messages are found out; `None`: the other gateway has not been heard.
        #[serde(default)]
        numbered: Option<bool>,
        /// When it was begun.
        started_at: String,
    }
}

answer! {
    /// An event type that is shared with another cloud.
    SharedEvents {
        /// The subscription's row id.
        id: i64,
        /// Which events, as stored.
        event_type: String,
        /// `NAME.OPERATOR`.
        cloud: String,
        /// From being accepted here to being taken there, in milliseconds.
        deadline_ms: u32,
    }
}

answer! {
    /// An event type that is accepted of another cloud.
    AcceptedEvents {
        /// Which events, as stored.
        event_type: String,
        /// `NAME.OPERATOR`.
        cloud: String,
    }
}

answer! {
    /// What has come of events that another cloud shares with this one, since the start.
    HeardEvents {
        /// `NAME.OPERATOR`; `None`: it is not known any more.
        #[serde(default)]
        cloud: Option<String>,
        /// Which events.
        event_type: String,
        /// Whether they are taken.
        #[serde(default)]
        accepted: bool,
        /// Events that were taken.
        taken: u64,
        /// Events that are missing between those.
        lost: u64,
        /// Events that came once more, and were passed over.
        repeated: u64,
        /// Attempts to share an event that were refused, because its type is not accepted.
        #[serde(default)]
        refused: u64,
    }
}

answer! {
    /// How long the parts of dialogues with other clouds have taken since the start.
    DialogueTimes {
        /// By what they are about, and by part.
        #[serde(default)]
        dialogues: BTreeMap<String, BTreeMap<String, PartTimes>>,
    }
}

answer! {
    /// How long a part of dialogues has taken.
    PartTimes {
        /// How often.
        count: u64,
        /// All together, in nanoseconds.
        #[serde(rename = "sum_ns")]
        sum_ns: u64,
    }
}

impl DialogueTimes {
    /// The mean of a part of the dialogues about something; `None`: there were none.
    pub fn mean(&self, about: &str, part: &str) -> Option<Duration> {
        let times = self.dialogues.get(about)?.get(part)?;
        Some(Duration::from_nanos(times.sum_ns.checked_div(times.count)?))
    }
}
