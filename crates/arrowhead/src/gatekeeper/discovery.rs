//! Global service discovery (GSD): which other clouds offer a service, and what this one offers to another.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::Value;

use super::QualityMeasurement;
use crate::{
    authorization::{Consumer, permitted_service},
    error::ArrowheadError,
    explanation::Unwatched,
    form::{CloudRequest, GsdPollRequest, GsdPollResponse},
    metadata::MetadataForm,
    orchestrator::{Found, Tried},
    record::*,
    service_registry::{Query, query},
    snapshot::Snapshot,
};

/// The clouds that are asked: the preferred ones that are known here, or, if none of them is, all neighbours. The own cloud is never asked.
pub fn asked_clouds(snapshot: &Snapshot, preferred: &[Option<CloudRequest>]) -> Result<Vec<Arc<Cloud>>, ArrowheadError> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let known = preferred.iter().flatten().filter_map(|cloud| snapshot.cloud_by_name(&text(&cloud.operator), &text(&cloud.name)));
    let ids: BTreeSet<CloudId> = known.filter(|cloud| !cloud.own_cloud).map(|cloud| cloud.id).collect();
    let is_asked = |cloud: &&Arc<Cloud>| if ids.is_empty() { cloud.neighbor && !cloud.own_cloud } else { ids.contains(&cloud.id) };
    let asked: Vec<Arc<Cloud>> = snapshot.clouds().filter(is_asked).cloned().collect();
    if asked.is_empty() {
        return Err(ArrowheadError::invalid_parameter(
            "Neither a preferred cloud that is known here nor a neighbor cloud is there to be asked.",
        ));
    }
    Ok(asked)
}

/// What one cloud offers of a service. Serialised it is `GSDPollResponse`, nulls kept; without a cloud nothing is offered.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveryAnswer {
    provider_cloud: Option<Arc<Cloud>>,
    required_service_definition: Option<String>,
    available_interfaces: Option<Vec<String>>,
    num_of_providers: Option<i64>,
    qos_measurements: Option<Vec<Value>>,
    service_metadata: Option<MetadataForm>,
    gateway_is_mandatory: bool,
    /// Filled where relays were measured.
    verified_relays: Vec<Arc<Relay>>,
}

/// What another cloud asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    query: Query,
    metadata: Option<MetadataForm>,
    gateway_is_mandatory: bool,
    needs_quality: bool,
}

impl Question {
    /// Checks what `asker` asks, whose key has signed it.
    pub fn parse(form: GsdPollRequest, asker: &Cloud, gateway_is_mandatory: bool) -> Result<Self, ArrowheadError> {
        check_asker(form.requester_cloud.as_ref(), asker)?;
        if gateway_is_mandatory && !form.gateway_is_present.unwrap_or_default() {
            return Err(no_gateway());
        }
        let needs_quality = form.need_qos_measurements.unwrap_or_default();
        let service = form.requested_service.ok_or_else(|| ArrowheadError::invalid_parameter("Requested service is null."))?;
        let query = Query::parse(&service, super::negotiation::ORIGIN)?;
        Ok(Self { query, metadata: service.metadata_requirements, gateway_is_mandatory, needs_quality })
    }

    /// Whether only providers are wanted that accept a TCP connection now; connecting is the host's part.
    pub fn pings_providers(&self) -> bool {
        self.query.ping_providers
    }

    /// Whether measurements of what is offered are wanted too.
    pub fn needs_quality(&self) -> bool {
        self.needs_quality
    }

    /// The services that `asker` may use.
    pub fn offered(&self, snapshot: &Snapshot, asker: &Cloud) -> Vec<EntryView> {
        let found = query(snapshot, &self.query, &mut Unwatched).service_query_data;
        found.into_iter().filter_map(|view| permitted_service(snapshot, Consumer::Cloud(asker), view, &mut Unwatched)).collect()
    }

    /// The answer with what was measured of it: what was not counts for nothing, and nothing is offered where nothing is measured at all (`found` is none), as
    /// upstream has both.
    pub fn measured_answer(
        self,
        snapshot: &Snapshot,
        offered: &[EntryView],
        found: Option<impl Fn(&EntryView) -> Found>,
    ) -> DiscoveryAnswer {
        let Some(found) = found else { return DiscoveryAnswer::default() };
        let measured = |view: &EntryView| Some((view.clone(), QualityMeasurement::of(view, found(view).decisive()?.1)));
        let (known, measurements): (Vec<_>, Vec<_>) = offered.iter().filter_map(measured).unzip();
        if offered.is_empty() {
            return DiscoveryAnswer::default();
        }
        let measurements =
            measurements.iter().map(|measurement| serde_json::to_value(measurement).expect("it has text keys and finite numbers"));
        DiscoveryAnswer { qos_measurements: Some(measurements.collect()), ..self.answer_of(snapshot, &known) }
    }

    /// The answer, of what is offered.
    pub fn answer(self, snapshot: &Snapshot, offered: &[EntryView]) -> DiscoveryAnswer {
        if offered.is_empty() { DiscoveryAnswer::default() } else { self.answer_of(snapshot, offered) }
    }

    fn answer_of(self, snapshot: &Snapshot, offered: &[EntryView]) -> DiscoveryAnswer {
        let interfaces = offered.iter().flat_map(|view| &view.interfaces).map(|interface| interface.interface_name.to_string());
        DiscoveryAnswer {
            provider_cloud: snapshot.clouds().find(|cloud| cloud.own_cloud).cloned(),
            required_service_definition: Some(self.query.definition),
            available_interfaces: Some(interfaces.collect::<BTreeSet<_>>().into_iter().collect()),
            num_of_providers: Some(offered.iter().map(|view| view.entry.provider).collect::<BTreeSet<_>>().len() as i64),
            qos_measurements: None,
            service_metadata: self.metadata,
            gateway_is_mandatory: self.gateway_is_mandatory,
            verified_relays: Vec::new(),
        }
    }
}

/// Refuses a question whose words name another cloud than the one whose key has signed it.
pub(crate) fn check_asker(said: Option<&CloudRequest>, asker: &Cloud) -> Result<(), ArrowheadError> {
    let same = |text: &Option<String>, own: &str| text.as_deref().is_some_and(|text| text.trim().eq_ignore_ascii_case(own));
    let is_asker = said.is_some_and(|said| same(&said.operator, asker.operator.as_str()) && same(&said.name, asker.name.as_str()));
    let told =
        || ArrowheadError::auth(format!("The question is from {}.{}, and its requesterCloud is another one.", asker.name, asker.operator));
    if is_asker { Ok(()) } else { Err(told()) }
}

pub(super) fn no_gateway() -> ArrowheadError {
    ArrowheadError::invalid_parameter("This cloud is reached through gateways only, and the asking cloud has none.")
}

/// What became of asking one cloud.
type Outcome = Result<GsdPollResponse, ArrowheadError>;

impl DiscoveryResult {
    /// The clouds that offer the service, in the order in which they were asked.
    pub fn clouds(&self) -> impl Iterator<Item = &Arc<Cloud>> {
        self.results.iter().filter_map(|answer| answer.provider_cloud.as_ref())
    }

    /// Whether a cloud has measured a provider of what it offers.
    pub fn is_measured(&self, cloud: CloudId) -> bool {
        let is_it = |answer: &&DiscoveryAnswer| answer.provider_cloud.as_ref().is_some_and(|provider| provider.id == cloud);
        let measurements = self.results.iter().find(is_it).and_then(|answer| answer.qos_measurements.as_ref());
        measurements.is_some_and(|measurements| !measurements.is_empty())
    }

    /// Says of every cloud which relays tests have shown to carry everything to it.
    pub fn verified_by(mut self, relays: impl Fn(&Cloud) -> Vec<Arc<Relay>>) -> Self {
        for answer in &mut self.results {
            answer.verified_relays = answer.provider_cloud.as_deref().map(&relays).unwrap_or_default();
        }
        self
    }

    /// Whether a cloud that offers it lets consumers of others in by tunnels only.
    pub fn is_behind_gateway(&self, cloud: CloudId) -> bool {
        let is_it = |answer: &&DiscoveryAnswer| answer.provider_cloud.as_ref().is_some_and(|provider| provider.id == cloud);
        self.results.iter().find(is_it).is_some_and(|answer| answer.gateway_is_mandatory)
    }
}

/// What was found. Serialised it is `GSDQueryResult`.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveryResult {
    results: Vec<DiscoveryAnswer>,
    unsuccessful_requests: usize,
}

/// Puts the answers of the asked clouds together. Where none has answered, the first refusal is the answer, and of silence it names all.
pub fn collect(outcomes: Vec<(Arc<Cloud>, Outcome)>) -> Result<DiscoveryResult, ArrowheadError> {
    let (results, unsuccessful_requests) = gather(outcomes, DiscoveryAnswer::of)?;
    Ok(DiscoveryResult { results, unsuccessful_requests })
}

/// The answers that offer something, and how many clouds have given none.
pub(super) fn gather<A, R>(
    outcomes: Vec<(Arc<Cloud>, Result<A, ArrowheadError>)>,
    offer: impl Fn(Arc<Cloud>, A) -> Option<R>,
) -> Result<(Vec<R>, usize), ArrowheadError> {
    let asked = outcomes.len();
    let (mut offers, mut unsuccessful, mut tried) = (Vec::new(), 0, Tried::default());
    for (cloud, outcome) in outcomes {
        match outcome {
            Ok(answer) => offers.extend(offer(cloud, answer)),
            Err(refusal) => {
                unsuccessful += 1;
                tried.refused(&cloud, refusal);
            }
        }
    }
    match tried.refusal(Duration::ZERO) {
        Some(refusal) if unsuccessful == asked => Err(refusal),
        _ => Ok((offers, unsuccessful)),
    }
}

impl DiscoveryAnswer {
    /// What a cloud has answered, with what is known of it here; `None`: it offers nothing.
    fn of(cloud: Arc<Cloud>, answer: GsdPollResponse) -> Option<Self> {
        answer.provider_cloud?;
        Some(Self {
            provider_cloud: Some(cloud),
            required_service_definition: answer.required_service_definition,
            available_interfaces: answer.available_interfaces.map(|interfaces| interfaces.into_iter().flatten().collect()),
            num_of_providers: answer.num_of_providers,
            qos_measurements: answer.qos_measurements,
            service_metadata: answer.service_metadata,
            gateway_is_mandatory: answer.gateway_is_mandatory.unwrap_or_default(),
            verified_relays: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests;
