//! Global discovery of several services at once (`multi_gsd_poll`): which of them other clouds offer, and this one to another.

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;

use super::discovery::{check_asker, gather, no_gateway};
use crate::{
    authorization::{Consumer, permitted_service},
    error::ArrowheadError,
    explanation::Unwatched,
    form::{GsdMultiPollRequest, GsdMultiPollResponse},
    record::*,
    service_registry::{Query, query},
    snapshot::Snapshot,
};

/// What another cloud asks about several services.
#[derive(Clone, Debug, PartialEq)]
pub struct SeveralQuestion(Vec<Query>);

/// Which of several services one cloud offers. Serialised it is `GSDMultiPollResponse`, nulls kept; without a cloud nothing is offered.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeveralAnswer {
    provider_cloud: Option<Arc<Cloud>>,
    provided_service_definitions: Option<Vec<String>>,
}

impl SeveralQuestion {
    /// Checks what `asker` asks, whose key has signed it.
    pub fn parse(form: &GsdMultiPollRequest, asker: &Cloud, gateway_is_mandatory: bool) -> Result<Self, ArrowheadError> {
        check_asker(form.requester_cloud.as_ref(), asker)?;
        if gateway_is_mandatory && !form.gateway_is_present.unwrap_or_default() {
            return Err(no_gateway());
        }
        let missing = || ArrowheadError::invalid_parameter("A requested service is null, or there is none.");
        let services = form.requested_services.as_ref().filter(|services| !services.is_empty()).ok_or_else(missing)?;
        let query = |service: &Option<_>| Query::parse(service.as_ref().ok_or_else(missing)?, super::negotiation::ORIGIN);
        services.iter().map(query).collect::<Result<_, _>>().map(Self)
    }

    /// The services that `asker` may use, for each of those that were asked about.
    pub fn offered(&self, snapshot: &Snapshot, asker: &Cloud) -> Vec<Vec<EntryView>> {
        let permitted = |view| permitted_service(snapshot, Consumer::Cloud(asker), view, &mut Unwatched);
        let of_one = |one| query(snapshot, one, &mut Unwatched).service_query_data.into_iter().filter_map(permitted).collect();
        self.0.iter().map(of_one).collect()
    }

    /// Those of what is offered whose providers have to accept a TCP connection now; connecting is the host's part.
    pub fn pinged<'o>(&self, offered: &'o mut [Vec<EntryView>]) -> Vec<&'o mut Vec<EntryView>> {
        self.0.iter().zip(offered).filter(|(query, _)| query.ping_providers).map(|(_, offered)| offered).collect()
    }

    /// The answer, of what is offered.
    pub fn answer(self, snapshot: &Snapshot, offered: &[Vec<EntryView>]) -> SeveralAnswer {
        let provided = self.0.into_iter().zip(offered).filter(|(_, offered)| !offered.is_empty()).map(|(query, _)| query.definition);
        let provided: BTreeSet<String> = provided.collect();
        if provided.is_empty() {
            return SeveralAnswer::default();
        }
        SeveralAnswer {
            provider_cloud: snapshot.clouds().find(|cloud| cloud.own_cloud).cloned(),
            provided_service_definitions: Some(provided.into_iter().collect()),
        }
    }
}

/// What was found. Serialised it is `GSDMultiQueryResult`.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeveralResult {
    results: Vec<SeveralAnswer>,
    unsuccessful_requests: usize,
}

/// Puts the answers of the asked clouds together. Where none has answered, the first refusal is the answer.
pub fn collect_several(outcomes: Vec<(Arc<Cloud>, Result<GsdMultiPollResponse, ArrowheadError>)>) -> Result<SeveralResult, ArrowheadError> {
    let (results, unsuccessful_requests) = gather(outcomes, SeveralAnswer::of)?;
    Ok(SeveralResult { results, unsuccessful_requests })
}

impl SeveralAnswer {
    /// What a cloud has answered, with what is known of it here; `None`: it offers nothing.
    fn of(cloud: Arc<Cloud>, answer: GsdMultiPollResponse) -> Option<Self> {
        answer.provider_cloud?;
        let provided = answer.provided_service_definitions.map(|provided| provided.into_iter().flatten().collect());
        Some(Self { provider_cloud: Some(cloud), provided_service_definitions: provided })
    }
}
