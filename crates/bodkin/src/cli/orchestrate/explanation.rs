//! Why an orchestration is empty: nobody offers it, nothing fits, no rule allows it, or the store does not name it.

use std::io;

use bodkin_arrowhead::form::ServiceQueryForm;
use bodkin_client::{
    CoreSystems, Page,
    answer::{Service, StoreEntry, System},
};
use serde::Serialize;

use crate::{
    DONE, FAILED,
    cli::{
        DENIED,
        printer::Printer,
        table::Table,
        verdict::{self, Verdict},
    },
};

/// Why there is nothing, and what was looked at.
#[derive(Serialize)]
pub struct Explanation {
    why: String,
    verdicts: Vec<Verdict>,
    entries: Vec<EntryState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// An entry of the orchestration store, and whether its provider can be used now.
#[derive(Serialize)]
pub struct EntryState {
    entry: StoreEntry,
    usable: bool,
    denied: bool,
    why: String,
}

impl Explanation {
    fn new(why: String) -> Self {
        Self { why, verdicts: Vec::new(), entries: Vec::new(), remedy: None }
    }

    /// Of a dynamic orchestration: the registry's and Authorization's part of it are done again, step by step.
    pub async fn of_dynamic(cloud: &CoreSystems, consumer: &System, wanted: &ServiceQueryForm) -> anyhow::Result<Self> {
        let definition = wanted.service_definition_requirement.clone().unwrap_or_default();
        let found = cloud.query(wanted).await?;
        if found.unfiltered_hits == 0 {
            return Ok(Self::new(format!("nothing: nobody offers {definition}; see bodkin service list")));
        }
        if found.service_query_data.is_empty() {
            let hits = found.unfiltered_hits;
            return Ok(Self::new(format!("nothing: none of the {hits} registered {definition} services fits the requirements")));
        }
        let verdicts = verdict::verdicts(cloud, consumer, found.service_query_data).await?;
        let why = if verdicts.iter().any(|verdict| verdict.allowed) {
            format!("nothing: what {} may use is left out by the flags or by --prefer", consumer.system_name)
        } else {
            format!("DENIED: {definition} is offered, but no rule lets {} use it", consumer.system_name)
        };
        let remedy = verdict::remedy(consumer, &verdicts);
        Ok(Self { why, verdicts, entries: Vec::new(), remedy })
    }

    /// Of an orchestration from the store: its entries by priority, and what keeps each from being used.
    pub async fn of_store(
        cloud: &CoreSystems,
        consumer: &System,
        definition: Option<&str>,
        interface: Option<&str>,
    ) -> anyhow::Result<Self> {
        let entries = match definition {
            Some(definition) => cloud.store_entries_of(consumer.id, definition, interface, &Page::default()).await?.data,
            None => {
                let mut top = cloud.top_store_entries(&Page::default()).await?.data;
                top.retain(|entry| entry.consumer_system.id == consumer.id);
                top
            }
        };
        let mut states = Vec::with_capacity(entries.len());
        for entry in entries {
            states.push(state(cloud, consumer, entry).await?);
        }
        states.sort_by_key(|state| state.entry.priority);
        let name = &consumer.system_name;
        let why = if states.is_empty() {
            format!("nothing: the orchestration store has no such entry for {name}; see bodkin rule list")
        } else if states.iter().any(|state| state.usable) {
            format!("the orchestration store names a provider that {name} can use")
        } else {
            format!("nothing: no provider that the orchestration store names for {name} can be used")
        };
        Ok(Self { why, verdicts: Vec::new(), entries: states, remedy: None })
    }

    /// Prints it for people; programs get `document`.
    pub fn print(&self, document: &impl Serialize, printer: Printer) -> io::Result<()> {
        printer.done(document, &self.why)?;
        if !self.verdicts.is_empty() {
            printer.table(&verdict::table(&self.verdicts), "")?;
        }
        if !self.entries.is_empty() {
            printer.table(&entry_table(&self.entries), "")?;
        }
        if let Some(remedy) = &self.remedy {
            printer.remark(remedy)?;
        }
        Ok(())
    }

    /// 0 where something can be used, 3 where only rules stand against it, 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        if self.entries.iter().any(|state| state.usable) {
            return DONE;
        }
        let all_denied = !self.verdicts.is_empty() && self.verdicts.iter().all(|verdict| !verdict.allowed);
        let any_denied = self.entries.iter().any(|state| state.denied);
        if all_denied || any_denied { DENIED } else { FAILED }
    }
}

/// Whether the entry's provider offers its service now, and lets the consumer use it.
async fn state(cloud: &CoreSystems, consumer: &System, entry: StoreEntry) -> anyhow::Result<EntryState> {
    let state = |entry, usable, denied, why| Ok(EntryState { entry, usable, denied, why });
    if entry.foreign {
        return state(entry, false, false, "it is of another cloud, which only the Gatekeeper can ask".to_owned());
    }
    let wanted = ServiceQueryForm {
        service_definition_requirement: Some(entry.service_definition.service_definition.clone()),
        interface_requirements: Some(vec![Some(entry.service_interface.interface_name.clone())]),
        ..ServiceQueryForm::default()
    };
    let is_provider = |service: &Service| {
        let (provider, named) = (&service.provider, &entry.provider_system);
        provider.system_name == named.system_name && provider.address == named.address && Some(i64::from(provider.port)) == named.port
    };
    let mut offered = cloud.query(&wanted).await?.service_query_data;
    offered.retain(is_provider);
    if offered.is_empty() {
        return state(entry, false, false, "the provider does not offer it; see bodkin service list".to_owned());
    }
    let verdicts = verdict::verdicts(cloud, consumer, offered).await?;
    let allowed = verdicts.iter().find(|verdict| verdict.allowed);
    let why = allowed.or(verdicts.first()).map(|verdict| verdict.why.clone()).unwrap_or_default();
    state(entry, allowed.is_some(), allowed.is_none(), why)
}

fn entry_table(states: &[EntryState]) -> Table {
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
