//! Why a consumer, a system or another cloud, may or may not use a service.

use std::sync::Arc;

use super::{Consumer, permitted_service};
use crate::{
    explanation::{Criterion, Explanation, Step, Witness},
    record::{Cloud, EntryView, System, SystemId},
    service_registry::{Query, query},
    snapshot::Snapshot,
};

/// Asks the registry and the rules what `consumer` may use; both systems are given by name or id. Of several systems of a
/// consumer's name none is taken for it.
pub fn explain(snapshot: &Snapshot, consumer: &str, wanted: &Query, provider: Option<&str>) -> Explanation {
    let mut steps = Vec::new();
    let found = registered(snapshot, consumer, &mut steps).map(|system| Consumer::System(system));
    explain_what_is_found(snapshot, (consumer, found), wanted, provider, steps)
}

/// The same for the systems of another cloud, which is given by its operator and name.
pub fn explain_intercloud(snapshot: &Snapshot, (operator, name): (&str, &str), wanted: &Query, provider: Option<&str>) -> Explanation {
    let mut steps = Vec::new();
    let found = known(snapshot, operator, name, &mut steps).map(|cloud| Consumer::Cloud(cloud));
    explain_what_is_found(snapshot, (&format!("{name}.{operator}"), found), wanted, provider, steps)
}

/// Goes on behind the look for the consumer, which was asked for by this text.
fn explain_what_is_found(
    snapshot: &Snapshot,
    (asked, consumer): (&str, Option<Consumer<'_>>),
    wanted: &Query,
    provider: Option<&str>,
    mut steps: Vec<Step>,
) -> Explanation {
    let mut usable = Vec::new();
    if let Some(consumer) = consumer {
        let mut offered = query(snapshot, wanted, &mut steps).service_query_data;
        if let Some(provider) = provider {
            offered.retain(|view| is_asked_provider(view, provider, &mut steps));
        }
        usable = offered.into_iter().filter_map(|view| permitted_service(snapshot, consumer, view, &mut steps)).collect();
    }
    let who = consumer.map_or_else(|| asked.to_owned(), |consumer| consumer.to_string());
    Explanation::new(snapshot, (&who, &wanted.definition), steps, &usable)
}

/// The cloud of a name.
fn known<'s>(snapshot: &'s Snapshot, operator: &str, name: &str, witness: &mut impl Witness) -> Option<&'s Arc<Cloud>> {
    let found = snapshot.cloud_by_name(operator, name);
    witness.see(|| {
        let told = found.map_or_else(
            || format!("no cloud {name} of {operator} is known"),
            |cloud| format!("{}.{}, id {}", cloud.name, cloud.operator, cloud.id),
        );
        Step::new(Criterion::Consumer, found.is_some(), format!("the cloud {name} of {operator}"), told)
    });
    found
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
