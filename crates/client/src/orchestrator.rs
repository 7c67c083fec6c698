//! Calls to the Orchestrator.

use std::collections::BTreeMap;

use bodkin_arrowhead::form::OrchestrationForm;
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::{
    answer::{FlexibleRule, List, Offer, StoreEntry},
    core_systems::CoreSystems,
    error::CallError,
    page::Page,
    request::{FlexibleRuleRequest, StoreRequest},
};

const STORE: &str = "/orchestrator/mgmt/store";
const FLEXIBLE_STORE: &str = "/orchestrator/mgmt/store/flexible";

#[derive(Deserialize)]
struct Response {
    response: Vec<Offer>,
}

impl CoreSystems {
    /// Asks what the requester should use. Empty: nobody offers it, or no rule lets the requester use it.
    pub async fn orchestrate(&self, form: &OrchestrationForm) -> Result<Vec<Offer>, CallError> {
        let answer: Response = self.orchestrator.ask(Method::POST, "/orchestrator/orchestration", Some(form)).await?;
        Ok(answer.response)
    }

    /// Entries of the orchestration store.
    pub async fn store_entries(&self, page: &Page) -> Result<List<StoreEntry>, CallError> {
        self.orchestrator.get(&page.of(STORE, &[])).await
    }

    /// Entries of the orchestration store with priority 1.
    pub async fn top_store_entries(&self, page: &Page) -> Result<List<StoreEntry>, CallError> {
        self.orchestrator.get(&page.of(&format!("{STORE}/all_top_priority"), &[])).await
    }

    /// An entry of the orchestration store by its row id.
    pub async fn store_entry(&self, id: i64) -> Result<StoreEntry, CallError> {
        self.orchestrator.get(&format!("{STORE}/{id}")).await
    }

    /// Entries of a consumer for a service definition, and an interface if one is named.
    pub async fn store_entries_of(
        &self,
        consumer_id: i64,
        definition: &str,
        interface: Option<&str>,
        page: &Page,
    ) -> Result<List<StoreEntry>, CallError> {
        let form = json!({"consumerSystemId": consumer_id, "serviceDefinitionName": definition, "serviceInterfaceName": interface});
        self.orchestrator.ask(Method::POST, &page.of(&format!("{STORE}/all_by_consumer"), &[]), Some(&form)).await
    }

    /// Makes entries; gives those that were made. One that is there, or names what is not there, is left out without an error.
    pub async fn add_store_entries(&self, entries: &[StoreRequest]) -> Result<List<StoreEntry>, CallError> {
        self.orchestrator.ask(Method::POST, STORE, Some(&entries)).await
    }

    /// Sets the priorities of all entries of one consumer, service definition and interface, by row id.
    pub async fn set_store_priorities(&self, priorities: &BTreeMap<i64, i64>) -> Result<(), CallError> {
        let form = json!({"priorityMap": priorities});
        self.orchestrator.tell(Method::POST, &format!("{STORE}/modify_priorities"), Some(&form)).await
    }

    /// Removes an entry by its row id; those behind it move up.
    pub async fn remove_store_entry(&self, id: i64) -> Result<(), CallError> {
        self.orchestrator.delete(&format!("{STORE}/{id}")).await
    }

    /// Rules of the flexible store.
    pub async fn flexible_rules(&self, page: &Page) -> Result<List<FlexibleRule>, CallError> {
        self.orchestrator.get(&page.of(FLEXIBLE_STORE, &[])).await
    }

    /// Makes rules of the flexible store.
    pub async fn add_flexible_rules(&self, rules: &[FlexibleRuleRequest]) -> Result<List<FlexibleRule>, CallError> {
        self.orchestrator.ask(Method::POST, FLEXIBLE_STORE, Some(&rules)).await
    }

    /// Removes a rule of the flexible store by its row id.
    pub async fn remove_flexible_rule(&self, id: i64) -> Result<(), CallError> {
        self.orchestrator.delete(&format!("{FLEXIBLE_STORE}/{id}")).await
    }

    /// Removes all rules of the flexible store.
    pub async fn clear_flexible_rules(&self) -> Result<(), CallError> {
        self.orchestrator.delete("/orchestrator/store/flexible/all").await
    }
}
