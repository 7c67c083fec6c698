//! The orchestration stores: what operators want consumers to use.

use serde::Serialize;

use super::{DefinitionId, FlexibleRuleId, ForeignSystemId, InterfaceId, StoreEntryId, SystemId, Timestamps};
use crate::{
    metadata::Metadata,
    name::{InterfaceName, ServiceDefinition, SystemName},
};

/// Entries whose priorities are counted together: 1 to their number, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreGroup {
    /// Who is to consume.
    pub consumer: SystemId,
    /// What.
    pub definition: DefinitionId,
    /// Over what.
    pub interface: InterfaceId,
}

/// Whom a store entry names. A bare id: the system may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreProvider {
    /// A system of this cloud.
    Local(SystemId),
    /// A system of another cloud.
    Foreign(ForeignSystemId),
}

/// An entry of the orchestration store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreEntry {
    /// Row id.
    pub id: StoreEntryId,
    /// Consumer, definition and interface.
    pub group: StoreGroup,
    /// From whom.
    pub provider: StoreProvider,
    /// Place in the group; 1 is tried first.
    pub priority: u32,
    /// Free pairs.
    pub attribute: Option<Metadata>,
    /// Times of the row.
    pub timestamps: Timestamps,
}

/// Systems by name, by metadata, or by both. Nulls are kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemDescriber {
    /// All systems of this name; `None` is any.
    pub system_name: Option<SystemName>,
    /// All systems that have these pairs; `None` is any.
    pub metadata: Option<Metadata>,
}

/// A rule of the flexible store. Serialised it is its response, nulls kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlexibleRule {
    /// Row id.
    pub id: FlexibleRuleId,
    /// Which consumers.
    pub consumer_system: SystemDescriber,
    /// May use which providers.
    pub provider_system: SystemDescriber,
    /// For what.
    pub service_definition: ServiceDefinition,
    /// Over what; `None` is anything.
    pub service_interface: Option<InterfaceName>,
    /// Pairs the service must have.
    pub service_metadata: Option<Metadata>,
    /// Rules of smaller numbers come first; at least 1.
    pub priority: i32,
    /// Times of the row.
    #[serde(flatten)]
    pub timestamps: Timestamps,
}
