//! What an orchestration answers.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;

use super::{measured::MeasuredBy, reservation::SERVICE_TIME};
use crate::{
    metadata::Metadata,
    name::InterfaceName,
    record::{Definition, EntryView, Interface, Security, System},
    utc::UtcTime,
};

/// Below this remaining validity a result is warned about as expiring, in seconds.
const EXPIRING_SECONDS: u64 = 120;

/// Member of a result's metadata that says what its limits of quality were held against.
const MEASURED_BY: &str = "qosMeasuredBy";

/// One provider the consumer may use. Serialised it is `OrchestrationResult`, nulls kept.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationResult {
    pub(super) provider: Arc<System>,
    pub(super) service: Arc<Definition>,
    service_uri: Arc<str>,
    pub(super) secure: Security,
    metadata: Metadata,
    pub(super) interfaces: Vec<Arc<Interface>>,
    version: i32,
    /// By interface, of a service that is secured by token.
    pub(super) authorization_tokens: Option<BTreeMap<InterfaceName, Arc<str>>>,
    warnings: Vec<Warning>,
}

/// What a consumer should know about a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Warning {
    /// No end of validity was registered.
    TtlUnknown,
    /// The end of validity is past.
    TtlExpired,
    /// Less than two minutes of validity are left.
    TtlExpiring,
    /// All that was required of its quality of service is kept. Other clouds' gatekeepers are told this, and no consumer.
    QosKept,
}

/// The answer to an orchestration.
#[derive(Debug, Default, Serialize)]
pub struct OrchestrationResponse {
    /// What the consumer may use.
    pub response: Vec<OrchestrationResult>,
}

impl OrchestrationResponse {
    /// Of what the consumer may use, with warnings as of `now`.
    pub fn new(usable: Vec<EntryView>, now: UtcTime) -> Self {
        Self { response: usable.into_iter().map(|view| OrchestrationResult::new(view, now)).collect() }
    }

    /// Says in the results' metadata, in their order, what the limits of quality were held against.
    pub fn measured_by(mut self, measured: &[Option<MeasuredBy>]) -> Self {
        for (result, by) in self.response.iter_mut().zip(measured) {
            let Some(by) = by else { continue };
            let told = BTreeMap::from([(MEASURED_BY.to_owned(), by.as_str().to_owned())]);
            result.metadata = Metadata::from(told).over(Some(&result.metadata));
        }
        self
    }

    /// Says of every result, to another cloud, that it keeps what was required of its quality of service.
    pub fn tell_kept(&mut self) {
        self.response.iter_mut().for_each(|result| result.warnings.push(Warning::QosKept));
    }

    /// Says in the results' metadata that they are kept for the consumer for so long.
    pub fn kept_for(mut self, duration: Duration) -> Self {
        for result in &mut self.response {
            let time = BTreeMap::from([(SERVICE_TIME.to_owned(), duration.as_secs().to_string())]);
            result.metadata = Metadata::from(time).over(Some(&result.metadata));
        }
        self
    }
}

impl OrchestrationResult {
    /// Who offers it.
    pub fn provider(&self) -> &Arc<System> {
        &self.provider
    }

    /// What it is.
    pub fn service_definition(&self) -> &str {
        self.service.service_definition.as_str()
    }

    pub(super) fn new(view: EntryView, now: UtcTime) -> Self {
        Self {
            warnings: warning(view.entry.end_of_validity, now).into_iter().collect(),
            provider: view.provider,
            service: view.definition,
            service_uri: view.entry.service_uri.clone(),
            secure: view.entry.secure,
            metadata: view.entry.metadata.clone().unwrap_or_default(),
            interfaces: view.interfaces,
            version: view.entry.version,
            authorization_tokens: None,
        }
    }
}

fn warning(end_of_validity: Option<UtcTime>, now: UtcTime) -> Option<Warning> {
    match end_of_validity {
        None => Some(Warning::TtlUnknown),
        Some(end) if end < now => Some(Warning::TtlExpired),
        Some(end) if end.unix_seconds() - now.unix_seconds() < EXPIRING_SECONDS => Some(Warning::TtlExpiring),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_is_warned_about() {
        let now = UtcTime::from_unix_seconds(1_000_000);
        for (end, expected) in [
            (None, Some(Warning::TtlUnknown)),
            (Some(999_999), Some(Warning::TtlExpired)),
            (Some(1_000_000), Some(Warning::TtlExpiring)),
            (Some(1_000_119), Some(Warning::TtlExpiring)),
            (Some(1_000_120), None),
        ] {
            assert_eq!(warning(end.map(UtcTime::from_unix_seconds), now), expected, "{end:?}");
        }
    }
}
