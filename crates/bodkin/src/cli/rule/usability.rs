//! `bodkin rule test`: whether the provider of each rule of a consumer can be used now, and what keeps it from that.

use std::{collections::BTreeSet, io};

use bodkin_arrowhead::form::{OrchestrationForm, ServiceQueryForm};
use bodkin_client::{
    CoreSystems, Monitor, Page,
    answer::{Explanation, StoreEntry, System},
};
use serde::Serialize;

use crate::{
    DONE, FAILED,
    cli::{DENIED, explanation, lookup, printer::Printer, table::Table},
};

/// The criterion of entries of the orchestration store.
const STORE_ENTRY: &str = "store-entry";
/// The criterion by which a provider is left out because one before it is answered.
const MATCHMAKING: &str = "matchmaking";

/// An entry of the orchestration store, and whether its provider can be used now.
#[derive(Serialize)]
pub struct EntryState {
    entry: StoreEntry,
    usable: bool,
    denied: bool,
    why: String,
}

/// The consumer's entries by priority. The cloud explains what it would answer to the consumer over each interface.
pub async fn states(
    cloud: &CoreSystems,
    monitor: &Monitor,
    consumer: &System,
    definition: Option<&str>,
    interface: Option<&str>,
) -> anyhow::Result<Vec<EntryState>> {
    let mut entries = match definition {
        Some(definition) => cloud.store_entries_of(consumer.id, definition, interface, &Page::default()).await?.data,
        None => cloud.top_store_entries(&Page::default()).await?.data,
    };
    entries.retain(|entry| entry.consumer_system.id == consumer.id);
    entries.sort_by_key(|entry| entry.priority);
    let interfaces: BTreeSet<&str> = entries.iter().map(|entry| entry.service_interface.interface_name.as_str()).collect();
    let wanted: Vec<Option<ServiceQueryForm>> = match definition {
        Some(definition) => interfaces.into_iter().map(|interface| Some(form(definition, interface))).collect(),
        None => vec![None],
    };
    let mut explanations = Vec::with_capacity(wanted.len());
    for requested_service in wanted {
        let form = OrchestrationForm { requester_system: Some(lookup::form(consumer)), requested_service, ..OrchestrationForm::default() };
        explanations.push(monitor.explain_orchestration(&form).await?.explanation);
    }
    Ok(entries.into_iter().map(|entry| state(entry, &explanations)).collect())
}

fn form(definition: &str, interface: &str) -> ServiceQueryForm {
    ServiceQueryForm {
        service_definition_requirement: Some(definition.to_owned()),
        interface_requirements: Some(vec![Some(interface.to_owned())]),
        ..ServiceQueryForm::default()
    }
}

fn state(entry: StoreEntry, explanations: &[Explanation]) -> EntryState {
    let is_entry = |row: Option<i64>| row == Some(entry.id);
    let mut services = explanations.iter().flat_map(|explanation| &explanation.services);
    let service = services.find(|service| service.steps.iter().any(|step| step.criterion == STORE_ENTRY && is_entry(step.row)));
    if let Some(service) = service {
        let usable = service.refusal().is_none_or(|step| step.criterion == MATCHMAKING);
        return EntryState { usable, denied: explanation::is_denied(service), why: explanation::why(service).to_owned(), entry };
    }
    let mut steps = explanations.iter().flat_map(|explanation| &explanation.steps);
    let why = steps.find(|step| is_entry(step.row)).or(steps.next_back()).map(|step| step.found.clone()).unwrap_or_default();
    EntryState { usable: false, denied: false, why, entry }
}

/// Prints them; gives the exit code: 0 where a provider can be used, 3 where rules stand against one, 1 otherwise.
pub fn print(states: &[EntryState], consumer: &str, printer: Printer) -> io::Result<u8> {
    let any_usable = states.iter().any(|state| state.usable);
    let why = match (states.is_empty(), any_usable) {
        (true, _) => format!("nothing: the orchestration store has no such entry for {consumer}; see bodkin rule list"),
        (false, true) => format!("the orchestration store names a provider that {consumer} can use"),
        (false, false) => format!("nothing: no provider that the orchestration store names for {consumer} can be used"),
    };
    printer.done(&serde_json::json!({"why": why, "entries": states}), &why)?;
    if !states.is_empty() {
        printer.table(&table(states), "")?;
    }
    Ok(match states.iter().any(|state| state.denied) {
        _ if any_usable => DONE,
        true => DENIED,
        false => FAILED,
    })
}

fn table(states: &[EntryState]) -> Table {
    let mut table = Table::new(&["RULE", "PRIORITY", "SERVICE", "PROVIDER", "INTERFACE", "USABLE", "WHY"]);
    for EntryState { entry, usable, why, .. } in states {
        table.push([
            entry.id.to_string(),
            entry.priority.to_string(),
            entry.service_definition.service_definition.clone(),
            entry.provider_system.system_name.clone(),
            entry.service_interface.interface_name.clone(),
            if *usable { "yes" } else { "NO" }.to_owned(),
            why.clone(),
        ]);
    }
    table
}
