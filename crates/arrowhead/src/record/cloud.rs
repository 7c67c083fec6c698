//! Other clouds: what they are, what they may use here, and their systems.

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;

use super::{CloudId, DefinitionId, ForeignSystemId, InterCloudRuleId, InterfaceId, RelayId, SystemId, Timestamps};
use crate::{
    metadata::Metadata,
    name::{CloudName, EventType},
};

/// A cloud, this one or another. Serialised it is `CloudResponse`, nulls kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cloud {
    /// Row id.
    pub id: CloudId,
    /// Who runs it.
    pub operator: CloudName,
    /// Its name, unique for the operator.
    pub name: CloudName,
    /// Whether it works with certificates.
    pub secure: bool,
    /// Whether it is asked when this cloud has no provider.
    pub neighbor: bool,
    /// Whether it is this cloud.
    pub own_cloud: bool,
    /// Base64 of its gatekeeper's public key.
    pub authentication_info: Option<Arc<str>>,
    /// The relays that are assigned to it, ascending. Which of them are for what their types say.
    #[serde(skip)]
    pub relays: Vec<RelayId>,
    /// Event types of it that this cloud takes; of all others what it shares is refused.
    #[serde(skip)]
    pub accepted_events: BTreeSet<EventType>,
    /// Times of the row.
    #[serde(flatten)]
    pub timestamps: Timestamps,
}

#[cfg(test)]
impl Cloud {
    /// A secure neighbor, without relays and a key.
    pub(crate) fn neighbor(id: i64, operator: &str, name: &str) -> Self {
        let now = crate::utc::UtcTime::from_unix_seconds(0);
        Self {
            id: CloudId(id),
            operator: CloudName::from_stored(operator),
            name: CloudName::from_stored(name),
            secure: true,
            neighbor: true,
            own_cloud: false,
            authentication_info: None,
            relays: Vec::new(),
            accepted_events: BTreeSet::new(),
            timestamps: Timestamps { created_at: now, updated_at: now },
        }
    }
}

/// An intercloud authorization rule: a cloud may use a provider's service over these interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct InterCloudRule {
    /// Row id.
    pub id: InterCloudRuleId,
    /// Who may consume.
    pub cloud: CloudId,
    /// From whom.
    pub provider: SystemId,
    /// What.
    pub definition: DefinitionId,
    /// Over which interfaces, ascending.
    pub interfaces: Vec<InterfaceId>,
    /// Times of the row.
    pub timestamps: Timestamps,
}

/// A system of another cloud, named by an orchestration store entry. Serialised it is `SystemResponse`.
///
/// Its cloud has checked name and address; here they are only trimmed and lower-cased.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignSystem {
    /// Row id.
    pub id: ForeignSystemId,
    /// Its cloud.
    #[serde(skip)]
    pub cloud: CloudId,
    /// Its name.
    pub system_name: Arc<str>,
    /// Where it is in its cloud.
    pub address: Arc<str>,
    /// Where it listens.
    pub port: u16,
    /// Base64 of its public key, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_info: Option<Arc<str>>,
    /// Free pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Times of the row.
    #[serde(flatten)]
    pub timestamps: Timestamps,
}
