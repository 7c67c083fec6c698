//! Questions: the clients' query, and what other core systems ask.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use bodkin_arrowhead::{
    access::Admitted,
    caller::Authorized,
    error::ArrowheadError,
    form::{ServiceQueryForm, ServiceQueryFormList, SystemRequest},
    json,
    page::Page,
    record::{Entry, SystemId},
    service_registry::{self, Query, QueryResult, QueryResults},
    snapshot::Snapshot,
    system::SystemReference,
};
use serde_json::json;

use super::SYSTEM;
use crate::{
    answer::Answer,
    control::{Control, Result, check_id, found},
    request::Request,
    stage::Stage,
};

const PROVIDER: &str = "/serviceregistry/query/provider/{id}";

impl Control {
    pub(in crate::control) async fn query(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let form: Authorized<ServiceQueryForm> = self.permitted_form(SYSTEM, request, admitted)?;
        Ok(Answer::json(200, &self.find_services(&form, "/serviceregistry/query").await?))
    }

    /// The services that fit, whoever may ask for them; errors name `origin`.
    pub async fn find_services(
        &self,
        form: &Authorized<ServiceQueryForm>,
        origin: &str,
    ) -> std::result::Result<QueryResult, ArrowheadError> {
        let mut results = self.answer_queries(&[Query::parse(form, origin)?]).await;
        Ok(results.pop().expect("a query has a result"))
    }

    pub(in crate::control) async fn query_multi(&self, request: &Request) -> Result<Answer> {
        let list: ServiceQueryFormList = self.form(SYSTEM, request)?;
        let queries = service_registry::parse_queries(&list, "/serviceregistry/query/multi")?;
        Ok(Answer::json(200, &QueryResults { results: self.answer_queries(&queries).await }))
    }

    /// The results of queries, with all their providers pinged at the same time.
    async fn answer_queries(&self, queries: &[Query]) -> Vec<QueryResult> {
        let started = Instant::now();
        let mut results = service_registry::query_each(&self.store.snapshot(), queries);
        self.record(SYSTEM, Stage::Execute, started);
        let pinging = || queries.iter().map(|query| query.ping_providers);
        if pinging().any(|pings| pings) {
            let asked = results.iter_mut().zip(pinging()).filter(|(_, pings)| *pings).map(|(result, _)| &mut result.service_query_data);
            self.pings.retain_reachable(asked.collect()).await;
        }
        results
    }

    pub(in crate::control) fn query_system(&self, request: &Request) -> Result<Answer> {
        let form: SystemRequest = self.form(SYSTEM, request)?;
        let system = SystemReference::parse(Some(&form), "System", "/serviceregistry/query/system")?;
        let snapshot = self.store.snapshot();
        let unknown = || ArrowheadError::invalid_parameter(format!("System with {system} does not exist."));
        Ok(Answer::json(200, snapshot.system_by_key(system.key.as_str()).ok_or_else(unknown)?))
    }

    pub(in crate::control) fn query_all(&self) -> Result<Answer> {
        let snapshot = self.store.snapshot();
        Ok(list(&snapshot, snapshot.entries()))
    }

    pub(in crate::control) fn query_provider(&self, id: i64) -> Result<Answer> {
        check_id(id, PROVIDER)?;
        let snapshot = self.store.snapshot();
        let provider = found(snapshot.system(SystemId(id)), "System", id)?;
        Ok(list(&snapshot, snapshot.entries_of_provider(provider.id)))
    }

    /// The services of each definition once, however often it is named; unknown definitions have none.
    pub(in crate::control) fn query_definitions(&self, request: &Request) -> Result<Answer> {
        let names = self.parsed(SYSTEM, request, json::parse_texts)?;
        let snapshot = self.store.snapshot();
        let known = names.iter().flatten().filter_map(|name| snapshot.definition_by_name(name));
        let entries = known.flat_map(|definition| snapshot.entries_of(definition.id)).map(|entry| (entry.id, entry));
        Ok(list(&snapshot, entries.collect::<BTreeMap<_, _>>().into_values()))
    }

    pub(in crate::control) fn pull_config(&self) -> Result<Answer> {
        let naming = &self.naming;
        let map = json!({
            "use_strict_service_definition_verifier": naming.strict_service_definition.to_string(),
            "allow_self_addressing": naming.allow_self_addressing.to_string(),
            "allow_non_routable_addressing": naming.allow_non_routable_addressing.to_string(),
        });
        Ok(Answer::json(200, &json!({"map": map})))
    }
}

/// A list without pages.
fn list<'e>(snapshot: &Snapshot, entries: impl Iterator<Item = &'e Arc<Entry>>) -> Answer {
    let data: Vec<_> = entries.map(|entry| snapshot.view(entry)).collect();
    Answer::list(&Page { count: data.len(), data })
}
