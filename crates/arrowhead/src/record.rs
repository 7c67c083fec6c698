//! The rows of the local cloud. Serialised, a system, definition or interface is its response DTO (reference section 2).

mod cloud;
mod relay;
mod reservation;
mod store;

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::{Deserialize, Serialize, Serializer};

use crate::{
    address::Address,
    event_filter::{EventFilter, Severity},
    metadata::{Metadata, MetadataRequirement},
    name::{EventType, InterfaceName, ServiceDefinition, SystemName},
    shared_event::Share,
    utc::UtcTime,
};

pub use self::{cloud::*, relay::*, reservation::*, store::*};

macro_rules! id_type {
    ($($(#[$documentation:meta])* $name:ident,)*) => {$(
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

id_type! {
    /// A system's id, the same for all core systems.
    SystemId,
    /// A service definition's id.
    DefinitionId,
    /// An interface's id.
    InterfaceId,
    /// A Service Registry entry's id.
    EntryId,
    /// An intracloud authorization rule's id.
    RuleId,
    /// An event type's id.
    EventTypeId,
    /// A subscription's id.
    SubscriptionId,
    /// A cloud's id, the own one's too.
    CloudId,
    /// A relay's id.
    RelayId,
    /// An intercloud authorization rule's id.
    InterCloudRuleId,
    /// A foreign system's id; its numbers are not those of systems.
    ForeignSystemId,
    /// An orchestration store entry's id.
    StoreEntryId,
    /// A flexible store rule's id.
    FlexibleRuleId,
    /// A reservation's id.
    ReservationId,
}

/// When a row was made and last changed; whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timestamps {
    /// Made.
    pub created_at: UtcTime,
    /// Last changed.
    pub updated_at: UtcTime,
}

/// How a service is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Security {
    /// Anybody may call.
    NotSecure,
    /// The caller shows a certificate.
    Certificate,
    /// The caller shows a certificate and a token.
    Token,
}

impl Security {
    /// The wire's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSecure => "NOT_SECURE",
            Self::Certificate => "CERTIFICATE",
            Self::Token => "TOKEN",
        }
    }

    /// Parses the wire's spelling, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::NotSecure, Self::Certificate, Self::Token].into_iter().find(|s| s.as_str().eq_ignore_ascii_case(text.trim()))
    }
}

/// A registered system.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct System {
    /// Row id.
    pub id: SystemId,
    /// Its name.
    pub system_name: SystemName,
    /// Where it is.
    pub address: Address,
    /// Where it listens.
    pub port: u16,
    /// Base64 of its public key, if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_info: Option<Arc<str>>,
    /// Free pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Times of the row.
    #[serde(flatten)]
    pub timestamps: Timestamps,
}

impl System {
    /// Base64 of its public key, as stored; `None` if it gave none, or a blank text.
    pub fn public_key(&self) -> Option<&Arc<str>> {
        self.authentication_info.as_ref().filter(|info| !info.trim().is_empty())
    }
}

/// A service definition.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Row id.
    pub id: DefinitionId,
    /// Its name.
    pub service_definition: ServiceDefinition,
    /// Times of the row.
    #[serde(flatten)]
    pub timestamps: Timestamps,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Row id.
    pub id: InterfaceId,
    /// Its name.
    pub interface_name: InterfaceName,
    /// Times of the row.
    #[serde(flatten)]
    pub timestamps: Timestamps,
}

/// A service that a provider offers: a Service Registry entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Row id.
    pub id: EntryId,
    /// What.
    pub definition: DefinitionId,
    /// By whom.
    pub provider: SystemId,
    /// Where at the provider; may be empty.
    pub service_uri: Arc<str>,
    /// Until when.
    pub end_of_validity: Option<UtcTime>,
    /// How it is secured.
    pub secure: Security,
    /// Free pairs.
    pub metadata: Option<Metadata>,
    /// Its version.
    pub version: i32,
    /// Its interfaces, ascending; empty only when all of them were deleted.
    pub interfaces: Vec<InterfaceId>,
    /// Times of the row.
    pub timestamps: Timestamps,
}

/// An intracloud authorization rule: a consumer may use a provider's service over these interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Row id.
    pub id: RuleId,
    /// Who may consume.
    pub consumer: SystemId,
    /// From whom.
    pub provider: SystemId,
    /// What.
    pub definition: DefinitionId,
    /// Over which interfaces, ascending.
    pub interfaces: Vec<InterfaceId>,
    /// Times of the row.
    pub timestamps: Timestamps,
}

/// An event type that was subscribed to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventTypeRow {
    /// Row id.
    pub id: EventTypeId,
    /// Its name.
    pub event_type_name: EventType,
    /// Times of the row.
    #[serde(flatten)]
    pub timestamps: Timestamps,
}

/// A subscription that is served by HTTP push.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    /// Row id.
    pub id: SubscriptionId,
    /// Which events.
    pub event_type: EventTypeId,
    /// Who receives them.
    pub subscriber: SystemId,
    /// Path at the subscriber that events are posted to; starts with `/`, unless they go to another cloud.
    pub notify_uri: Arc<str>,
    /// The cloud that events go to by a relay, as the notify URI says it; `None`: they are posted to the subscriber.
    pub share: Option<Share>,
    /// Pairs that were given as a filter.
    pub filter: Option<Metadata>,
    /// Whether events must match these pairs.
    pub match_metadata: bool,
    /// Only events of at least this severity.
    pub min_severity: Option<Severity>,
    /// Conditions on fields of a JSON payload, by their place.
    pub payload_filter: Option<Metadata>,
    /// All three as they are matched.
    pub matched: EventFilter,
    /// What it asks of a real-time topic.
    pub bounds: SubscriptionBounds,
    /// No events earlier than this.
    pub start_date: Option<UtcTime>,
    /// No events later than this.
    pub end_date: Option<UtcTime>,
    /// Only these publishers; `None` is every authorised one.
    pub sources: Option<BTreeSet<SystemId>>,
    /// Times of the row.
    pub timestamps: Timestamps,
}

/// What a subscription asks of a real-time topic beyond what was declared; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionBounds {
    /// From creation to arrival, in microseconds: 1 to [`Self::DEADLINE_US_MAX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_us: Option<i64>,
    /// Events in a row that the subscriber may miss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_tolerance: Option<u32>,
}

impl SubscriptionBounds {
    /// 366 days.
    pub const DEADLINE_US_MAX: i64 = 366 * 24 * 3600 * 1_000_000;

    /// Whether nothing is asked.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A registry entry with the rows it refers to. Serialised it is `ServiceRegistryResponse`.
#[derive(Clone, Debug)]
pub struct EntryView {
    /// The entry.
    pub entry: Arc<Entry>,
    /// What.
    pub definition: Arc<Definition>,
    /// By whom.
    pub provider: Arc<System>,
    /// Its interfaces (in a query's answer only the asked ones), by name.
    pub interfaces: Vec<Arc<Interface>>,
}

impl EntryView {
    /// Its interfaces in words.
    pub(crate) fn interface_names(&self) -> String {
        self.interfaces.iter().map(|interface| interface.interface_name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Whether the entry's metadata has every required pair.
    pub(crate) fn has_metadata(&self, required: &MetadataRequirement) -> bool {
        required.met_by(self.entry.metadata.as_ref())
    }
}

impl Serialize for EntryView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry = &*self.entry;
        let response = EntryResponse {
            id: entry.id,
            service_definition: &self.definition,
            provider: &self.provider,
            service_uri: &entry.service_uri,
            end_of_validity: entry.end_of_validity,
            secure: entry.secure,
            metadata: entry.metadata.as_ref(),
            version: entry.version,
            interfaces: &self.interfaces,
            timestamps: entry.timestamps,
        };
        response.serialize(serializer)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryResponse<'v> {
    id: EntryId,
    service_definition: &'v Definition,
    provider: &'v System,
    service_uri: &'v str,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_of_validity: Option<UtcTime>,
    secure: Security,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'v Metadata>,
    version: i32,
    interfaces: &'v [Arc<Interface>],
    #[serde(flatten)]
    timestamps: Timestamps,
}
