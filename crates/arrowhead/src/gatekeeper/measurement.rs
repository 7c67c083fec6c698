//! What the QoS Monitors of two clouds ask each other through the gatekeepers.

use std::collections::BTreeSet;

use serde::Serialize;

use super::discovery::check_asker;
use crate::{
    error::ArrowheadError,
    form::{AccessType, CloudRequest, SystemAddresses},
    orchestrator::Measured,
    record::{Cloud, EntryView},
    snapshot::Snapshot,
    utc::UtcTime,
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

/// What was measured of a provider, as another cloud is told in `qosMeasurements`. Upstream's figures are whole milliseconds: they are rounded up, so that nobody seems better than he is.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QualityMeasurement {
    service_registry_entry: EntryJson,
    provider_available: bool,
    last_access_at: Option<UtcTime>,
    min_response_time: Option<i32>,
    max_response_time: Option<i32>,
    mean_response_time_with_timeout: Option<i32>,
    mean_response_time_without_timeout: Option<i32>,
    jitter_with_timeout: Option<i32>,
    jitter_without_timeout: Option<i32>,
    sent: u64,
    received: u64,
    sent_all: u64,
    received_all: u64,
    lost_per_measurement_percent: Option<i32>,
}

/// An entry as the registry answers it.
type EntryJson = serde_json::Value;

impl QualityMeasurement {
    /// Of an entry whose service, or provider, was measured. Of one that has not answered there are no times.
    pub fn of(view: &EntryView, measured: &Measured) -> Self {
        let is_there = measured.received > 0;
        let answered = |ms: f64| is_there.then(|| whole(ms));
        Self {
            service_registry_entry: serde_json::to_value(view).expect("an entry has text keys and finite numbers"),
            provider_available: is_there,
            last_access_at: measured.last_answer,
            min_response_time: answered(measured.response_min_ms),
            max_response_time: answered(measured.response_max_ms),
            mean_response_time_with_timeout: Some(whole(measured.mean_with_lost_ms)),
            mean_response_time_without_timeout: answered(measured.response_mean_ms),
            jitter_with_timeout: Some(whole(measured.jitter_with_lost_ms)),
            jitter_without_timeout: answered(measured.jitter_ms),
            sent: measured.sent,
            received: measured.received,
            sent_all: measured.sent_all,
            received_all: measured.received_all,
            lost_per_measurement_percent: Some(whole(measured.recent_loss_percent)),
        }
    }
}

/// The next whole number; what is beyond the type is its end.
fn whole(number: f64) -> i32 {
    number.ceil() as i32
}
