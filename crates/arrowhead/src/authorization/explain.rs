//! Why a consumer may or may not use a service.

use std::sync::Arc;

use super::permitted_service;
use crate::{
    explanation::{Criterion, Explanation, Step, Witness},
    record::{EntryView, System, SystemId},
    service_registry::{Query, query},
    snapshot::Snapshot,
};

/// Asks the registry and the rules what `consumer` may use; both systems are given by name or id. Of several systems of a
/// consumer's name none is taken for it.
pub fn explain(snapshot: &Snapshot, consumer: &str, wanted: &Query, provider: Option<&str>) -> Explanation {
    let mut steps: Vec<Step> = Vec::new();
    let mut usable = Vec::new();
    let mut who = consumer;
    if let Some(consumer) = registered(snapshot, consumer, &mut steps) {
        who = consumer.system_name.as_str();
        let mut offered = query(snapshot, wanted, &mut steps).service_query_data;
        if let Some(provider) = provider {
            offered.retain(|view| is_asked_provider(view, provider, &mut steps));
        }
        usable = offered.into_iter().filter_map(|view| permitted_service(snapshot, consumer, view, &mut steps)).collect();
    }
    Explanation::new(snapshot, (who, &wanted.definition), steps, &usable)
}

/// The one system of a name or id.
fn registered<'s>(snapshot: &'s Snapshot, text: &str, witness: &mut impl Witness) -> Option<&'s Arc<System>> {
    let found: Vec<&Arc<System>> = match text.trim().parse() {
        Ok(id) => snapshot.system(SystemId(id)).into_iter().collect(),
        Err(_) => snapshot.systems_named(text).collect(),
    };
    witness.see(|| {
        let told = match found.as_slice() {
            [] => format!("no system {text} is registered"),
            [system] => format!("{} at {}:{}, id {}", system.system_name, system.address.as_str(), system.port, system.id),
            several => {
                let ids: Vec<String> = several.iter().map(|system| system.id.to_string()).collect();
                format!("several systems are named {text}: name one by its id, {}", ids.join(", "))
            }
        };
        Step::new(Criterion::Consumer, found.len() == 1, format!("the system {text}"), told)
    });
    match found.as_slice() {
        [system] => Some(system),
        _ => None,
    }
}

fn is_asked_provider(view: &EntryView, text: &str, witness: &mut impl Witness) -> bool {
    let provider = &view.provider;
    let is_asked = match text.trim().parse() {
        Ok(id) => provider.id == SystemId(id),
        Err(_) => provider.system_name.as_str().eq_ignore_ascii_case(text.trim()),
    };
    witness.see(|| {
        let found = format!("{}, id {}", provider.system_name, provider.id);
        Step::new(Criterion::Provider, is_asked, format!("the provider {text}"), found).of(view.entry.id)
    });
    is_asked
}
