//! What the core systems answer (reference section 2), as far as an application looks at it. Unknown members are ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::query_string::path_with;

/// How a service is secured that is not.
const NOT_SECURE: &str = "NOT_SECURE";

macro_rules! answer {
    ($(#[$documentation:meta])* $name:ident { $($(#[$member:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$documentation])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$member])* pub $field: $type,)*
        }
    };
}

/// An [`answer`] that is a row of a table: it has an id and the times of the row.
macro_rules! row {
    ($(#[$documentation:meta])* $name:ident { $($body:tt)* }) => {
        answer! {
            $(#[$documentation])*
            $name {
                /// Row id.
                id: i64,
                $($body)*
                /// When the row was made (UTC).
                #[serde(default, skip_serializing_if = "Option::is_none")]
                created_at: Option<String>,
                /// When it was changed last (UTC).
                #[serde(default, skip_serializing_if = "Option::is_none")]
                updated_at: Option<String>,
            }
        }
    };
}

mod delivery;
mod explanation;
mod gatekeeper;
mod onboarding;
mod rule;

pub use self::{delivery::*, explanation::*, gatekeeper::*, onboarding::*, rule::*};

answer! {
    /// A registered system. Its id is the same for all core systems.
    System {
        /// Row id; 0 of one that is in no table: a Gateway that stands for a provider of another cloud.
        #[serde(default)]
        id: i64,
        /// Its name.
        system_name: String,
        /// Host name or IP address.
        address: String,
        /// Where it listens.
        port: u16,
        /// Base64 of its public key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        authentication_info: Option<String>,
        /// Free pairs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<BTreeMap<String, String>>,
        /// When the row was made (UTC).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<String>,
        /// When it was changed last (UTC).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_at: Option<String>,
    }
}

impl System {
    /// `host:port`, as URLs write it.
    pub fn host_and_port(&self) -> String {
        if self.address.contains(':') { format!("[{}]:{}", self.address, self.port) } else { format!("{}:{}", self.address, self.port) }
    }
}

row! {
    /// A service definition.
    ServiceDefinition {
        /// Its name.
        service_definition: String,
    }
}

row! {
    /// An interface.
    Interface {
        /// Its name.
        interface_name: String,
    }
}

row! {
    /// A service that a provider offers.
    Service {
        /// What.
        service_definition: ServiceDefinition,
        /// By whom.
        provider: System,
        /// Where at the provider.
        #[serde(default)]
        service_uri: String,
        /// Until when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end_of_validity: Option<String>,
        /// How it is secured.
        secure: String,
        /// Free pairs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<BTreeMap<String, String>>,
        /// Its version.
        version: i64,
        /// Its interfaces, in an answer to a query only the asked ones.
        interfaces: Vec<Interface>,
    }
}

answer! {
    /// What a query found.
    ServiceQueryResult {
        /// What matches.
        service_query_data: Vec<Service>,
        /// How many there were before any filter.
        unfiltered_hits: u64,
    }
}

answer! {
    /// A provider that the Orchestrator names.
    Offer {
        /// Who offers.
        provider: System,
        /// What.
        service: ServiceDefinition,
        /// Where at the provider.
        service_uri: String,
        /// How it is secured.
        secure: String,
        /// The service's free pairs.
        metadata: Option<BTreeMap<String, String>>,
        /// The interfaces the consumer may use.
        interfaces: Vec<Interface>,
        /// The service's version.
        version: i64,
        /// By interface, what the consumer shows to the provider of a service that is secured by token.
        #[serde(default)]
        authorization_tokens: Option<BTreeMap<String, String>>,
        /// What to know about it, such as `TTL_EXPIRING`.
        warnings: Vec<String>,
    }
}

impl Offer {
    /// Whether it is offered to who has a certificate: over TLS.
    pub fn is_secure(&self) -> bool {
        self.secure != NOT_SECURE
    }

    /// Where it is, as URLs write it.
    pub fn url(&self) -> String {
        let scheme = if self.is_secure() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.provider.host_and_port(), self.service_uri)
    }

    /// The path to ask for over one of the interfaces, with the token for it where there is one.
    pub fn path(&self, interface: &str) -> String {
        match self.authorization_tokens.as_ref().and_then(|tokens| tokens.get(interface)) {
            Some(token) => path_with(&self.service_uri, &[("token", token)]),
            None => self.service_uri.clone(),
        }
    }
}

row! {
    /// An event type.
    EventType {
        /// Its name.
        event_type_name: String,
    }
}

row! {
    /// A subscription served by HTTP push.
    Subscription {
        /// Which events.
        event_type: EventType,
        /// Who receives them.
        subscriber_system: System,
        /// Pairs an event's metadata must have, if `match_meta_data`.
        #[serde(default)]
        filter_meta_data: Option<BTreeMap<String, String>>,
        /// Path at the subscriber.
        notify_uri: String,
        /// Whether the filter is used.
        #[serde(default)]
        match_meta_data: bool,
        /// Least severity an event must have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min_severity: Option<String>,
        /// Conditions on the event's JSON payload by JSON pointer without its first slash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload_filter: Option<BTreeMap<String, String>>,
        /// Creation to arrival that it asks of a real-time topic.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline_us: Option<i64>,
        /// Events in a row that it may miss, likewise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loss_tolerance: Option<u32>,
        /// No events earlier than this (UTC).
        #[serde(default)]
        start_date: Option<String>,
        /// No events later than this (UTC).
        #[serde(default)]
        end_date: Option<String>,
        /// The publishers it hears.
        sources: Vec<System>,
    }
}

answer! {
    /// An event: the body of an HTTP push, and the data of [`crate::EventForm::Event`].
    PushedEvent {
        /// Event type as published.
        event_type: String,
        /// Free pairs.
        #[serde(default)]
        meta_data: Option<BTreeMap<String, String>>,
        /// What happened.
        payload: String,
        /// When (UTC).
        time_stamp: String,
    }
}

answer! {
    /// A link that signs the operator's browser in once.
    DashboardLink {
        /// Path at Bodkin's own port, with the secret of the link.
        path: String,
        /// Seconds for which the link is valid.
        expires_in_seconds: u64,
    }
}

answer! {
    /// Sessions of the dashboard that were ended.
    EndedSessions {
        /// Their number.
        ended: usize,
    }
}

answer! {
    /// A lane that continues behind another process's batch.
    AdoptedLane {
        /// Its name.
        lane: String,
    }
}

answer! {
    /// What came of a planned hand-over of a reliable pair.
    HandedOver {
        /// Who leads: `first` or `second`.
        leader: String,
        /// In which epoch.
        epoch: u64,
        /// For how long requests were refused until everything was answered, in milliseconds.
        drained_ms: u64,
        /// For how long nobody led after that, in milliseconds.
        gap_ms: u64,
    }
}

answer! {
    /// An entry of a core system's log.
    LogEntry {
        /// A UUID.
        log_id: String,
        /// When (UTC).
        entry_date: String,
        /// The part of the program that said it.
        logger: String,
        /// `TRACE` to `FATAL`.
        log_level: String,
        /// The system, in upper case.
        #[serde(default)]
        system_name: String,
        /// What happened.
        message: String,
        /// A stack trace, where there is one.
        #[serde(default)]
        exception: Option<String>,
    }
}

/// What an answer names by its name alone, or by the whole row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NameOrRow<R> {
    /// The name.
    Name(String),
    /// The row.
    Row(R),
}

impl<R> Default for NameOrRow<R> {
    fn default() -> Self {
        Self::Name(String::new())
    }
}

impl NameOrRow<ServiceDefinition> {
    /// The name of the service definition.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Row(row) => &row.service_definition,
        }
    }
}

impl NameOrRow<Interface> {
    /// The name of the interface.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Row(row) => &row.interface_name,
        }
    }
}

/// A list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct List<T> {
    /// The rows that were asked for.
    pub data: Vec<T>,
    /// How many the table has.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_reference_are_read() {
        let entry = r#"{"id":8,"serviceDefinition":{"id":3,"serviceDefinition":"temperature","createdAt":"2026-01-01T00:00:00Z"},
            "provider":{"id":5,"systemName":"sensor","address":"10.0.0.5","port":8080},"serviceUri":"/t","secure":"NOT_SECURE","version":1,
            "interfaces":[{"id":2,"interfaceName":"HTTP-INSECURE-JSON"}],"createdAt":"2026-01-01T00:00:00Z"}"#;
        let service: Service = serde_json::from_str(entry).unwrap();
        assert_eq!((service.provider.host_and_port().as_str(), service.metadata), ("10.0.0.5:8080", None));

        let offer = r#"{"provider":{"id":5,"systemName":"sensor","address":"10.0.0.5","port":8080},
            "service":{"id":3,"serviceDefinition":"temperature"},"serviceUri":"/t","secure":"NOT_SECURE","metadata":{},
            "interfaces":[],"version":1,"authorizationTokens":null,"warnings":["TTL_UNKNOWN"]}"#;
        let without_token: Offer = serde_json::from_str(offer).unwrap();
        assert_eq!((without_token.authorization_tokens, without_token.warnings), (None, vec!["TTL_UNKNOWN".to_owned()]));
        let with_token = offer.replace("null", r#"{"HTTP-SECURE-JSON":"a.b.c.d.e"}"#);
        let tokens = serde_json::from_str::<Offer>(&with_token).unwrap().authorization_tokens.unwrap();
        assert_eq!(tokens["HTTP-SECURE-JSON"], "a.b.c.d.e");

        let offer = with_token.replace("NOT_SECURE", "TOKEN").replace("a.b.c.d.e", "a.b");
        let offer: Offer = serde_json::from_str(&offer).unwrap();
        assert_eq!((offer.url().as_str(), offer.path("HTTP-SECURE-JSON").as_str()), ("https://10.0.0.5:8080/t", "/t?token=a.b"));
        assert_eq!(offer.path("HTTP-SECURE-XML"), "/t");

        // A Gateway that stands for a provider of another cloud is in no table.
        let by_tunnel = with_token.replace(r#""id":5,"systemName":"sensor""#, r#""systemName":"gateway""#);
        let by_tunnel: Offer = serde_json::from_str(&by_tunnel).unwrap();
        assert_eq!((by_tunnel.provider.id, by_tunnel.provider.system_name.as_str()), (0, "gateway"));

        let event = r#"{"eventType":"a","metaData":null,"payload":"7","timeStamp":"2026-01-01T00:00:00Z"}"#;
        let event: PushedEvent = serde_json::from_str(event).unwrap();
        assert_eq!((event.meta_data, event.payload.as_str()), (None, "7"));
    }

    #[test]
    fn an_ipv6_provider_can_be_connected_to() {
        let system = r#"{"id":1,"systemName":"a","address":"0000:0000:0000:0000:0000:0000:0000:0001","port":80}"#;
        let system: System = serde_json::from_str(system).unwrap();
        let address: std::net::SocketAddr = system.host_and_port().parse().unwrap();
        assert_eq!((address.ip(), address.port()), (std::net::Ipv6Addr::LOCALHOST.into(), 80));
    }
}
