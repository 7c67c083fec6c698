//! What the QoS Monitors of two clouds ask each other through the gatekeepers.

use std::collections::BTreeSet;

use serde::Serialize;

use super::discovery::check_asker;
use crate::{
    error::ArrowheadError,
    form::{AccessType, CloudRequest, SystemAddresses},
    record::Cloud,
    snapshot::Snapshot,
};

/// Checks who asks, where the question says it: upstream's questions about access have no members.
pub fn check_questioner(said: Option<&CloudRequest>, asker: &Cloud) -> Result<(), ArrowheadError> {
    said.map_or(Ok(()), |said| check_asker(Some(said), asker))
}

/// Where the systems are whose services a rule grants `asker`; of others it learns nothing.
pub fn system_addresses(snapshot: &Snapshot, asker: &Cloud) -> SystemAddresses {
    let granted = snapshot.inter_cloud_rules().filter(|rule| rule.cloud == asker.id && !rule.interfaces.is_empty());
    let systems = granted.filter_map(|rule| snapshot.system(rule.provider));
    let addresses: BTreeSet<String> = systems.map(|system| system.address.as_str().to_owned()).collect();
    SystemAddresses { addresses: Some(addresses.into_iter().map(Some).collect()) }
}

/// Whether a cloud is reached without a gateway. Serialised it is an element of what `collect_access_types` answers.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudAccess {
    cloud_name: String,
    cloud_operator: String,
    direct_access: bool,
}

impl CloudAccess {
    /// What a cloud has answered; one that does not is not reached directly.
    pub fn new(cloud: &Cloud, answer: Result<AccessType, ArrowheadError>) -> Self {
        Self {
            cloud_name: cloud.name.as_str().to_owned(),
            cloud_operator: cloud.operator.as_str().to_owned(),
            direct_access: answer.ok().and_then(|answer| answer.direct_access).unwrap_or_default(),
        }
    }
}
