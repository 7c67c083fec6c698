//! Which candidates there are, and which of them are answered.

use super::{
    Kind, Orchestration,
    elsewhere::StoredProvider,
    flexible_store::flexible_candidates,
    reservation::is_free_for,
    store::{stored_service_providers, stored_top_candidates},
};
use crate::{
    authorization::{Consumer, permitted_service, registered_consumer},
    error::ArrowheadError,
    explanation::{Criterion, Explanation, Step, Witness},
    record::{EntryId, EntryView},
    service_registry,
    snapshot::Snapshot,
    system::SystemKey,
    utc::UtcTime,
};

/// What the registry or a store offers, in the order it is to be tried.
pub fn candidates(
    snapshot: &Snapshot,
    orchestration: &Orchestration,
    witness: &mut impl Witness,
) -> Result<Vec<EntryView>, ArrowheadError> {
    let requester = &orchestration.requester;
    match &orchestration.kind {
        Kind::Dynamic(query) => Ok(service_registry::query(snapshot, query, witness).service_query_data),
        Kind::OtherClouds(_) => {
            let found = "the request is for other clouds only";
            witness.see(|| Step::new(Criterion::ServiceDefinition, true, "who offers it in this cloud?", found));
            Ok(Vec::new())
        }
        Kind::StoredService { query, interface } => {
            let providers = stored_service_providers(snapshot, requester, query, interface, witness)?.into_iter();
            Ok(providers.flat_map(StoredProvider::here).collect())
        }
        Kind::StoredTops(kinds) => stored_top_candidates(snapshot, requester, kinds, witness),
        Kind::Flexible { form, requester_metadata } => flexible_candidates(snapshot, requester, form, requester_metadata, witness),
    }
}

/// The providers that the orchestration store names for one service, by priority, where those of other clouds can be asked; `None` of any other orchestration.
pub fn stored_providers(
    snapshot: &Snapshot,
    orchestration: &Orchestration,
    witness: &mut impl Witness,
) -> Result<Option<Vec<StoredProvider>>, ArrowheadError> {
    match (&orchestration.kind, &orchestration.elsewhere) {
        (Kind::StoredService { query, interface }, Some(_)) => {
            stored_service_providers(snapshot, &orchestration.requester, query, interface, witness).map(Some)
        }
        _ => Ok(None),
    }
}

/// Tells which of the candidates accepted a connection.
pub fn tell_pings(pinged: &[EntryId], reachable: &[EntryView], witness: &mut impl Witness) {
    for entry in pinged {
        witness.see(|| {
            let accepts = reachable.iter().any(|view| view.entry.id == *entry);
            let found = if accepts { "it accepts" } else { "it does not" };
            Step::new(Criterion::Ping, accepts, "does the provider accept a connection?", found).of(*entry)
        });
    }
}

/// Decides an orchestration among its candidates (reference 5.2 to 5.4).
///
/// `choose` picks an index below its argument (which is at least 1): matchmaking without a preferred provider is random.
pub fn orchestrate(
    snapshot: &Snapshot,
    orchestration: &Orchestration,
    candidates: Vec<EntryView>,
    now: UtcTime,
    choose: impl FnOnce(usize) -> usize,
    witness: &mut impl Witness,
) -> Result<Vec<EntryView>, ArrowheadError> {
    let mut usable = candidates;
    if orchestration.asks_rules && !usable.is_empty() {
        let consumer = orchestration.rules_consumer(snapshot)?;
        usable = usable.into_iter().filter_map(|view| permitted_service(snapshot, consumer, view, witness)).collect();
    }
    usable.retain(|view| is_free_for(snapshot, &orchestration.requester.key, view, now, witness));
    match &orchestration.kind {
        Kind::Dynamic(_) | Kind::Flexible { .. } | Kind::OtherClouds(_) => {
            if orchestration.only_preferred {
                usable.retain(|view| is_preferred(orchestration, view, witness));
            }
            if orchestration.matchmaking && !usable.is_empty() {
                let preferred = usable.iter().position(|view| orchestration.prefers(view));
                let chosen = preferred.unwrap_or_else(|| choose(usable.len()));
                keep_one(&mut usable, chosen, witness);
            }
        }
        Kind::StoredService { .. } if !usable.is_empty() => keep_one(&mut usable, 0, witness),
        Kind::StoredService { .. } | Kind::StoredTops(_) => {}
    }
    Ok(usable)
}

fn is_preferred(orchestration: &Orchestration, view: &EntryView, witness: &mut impl Witness) -> bool {
    let prefers = orchestration.prefers(view);
    witness.see(|| {
        let found = if prefers { "it is preferred" } else { "it is not among them" };
        Step::new(Criterion::PreferredProvider, prefers, "only preferred providers are wanted", found).of(view.entry.id)
    });
    prefers
}

/// Keeps the candidate at an index.
fn keep_one(usable: &mut Vec<EntryView>, chosen: usize, witness: &mut impl Witness) {
    let chosen = usable.swap_remove(chosen);
    for other in usable.iter() {
        let found = || format!("{} is the one", chosen.provider.system_name);
        witness.see(|| Step::new(Criterion::Matchmaking, false, "one provider is answered", found()).of(other.entry.id));
    }
    *usable = vec![chosen];
}

impl Orchestration {
    /// Whom the rules are asked about: the requester, or the other cloud on behalf of which its Gatekeeper asks.
    fn rules_consumer<'s>(&self, snapshot: &'s Snapshot) -> Result<Consumer<'s>, ArrowheadError> {
        let Some(cloud) = &self.requester_cloud else {
            return registered_consumer(snapshot, &self.requester).map(|consumer| Consumer::System(consumer));
        };
        let (operator, name) = (cloud.operator.as_str(), cloud.cloud.as_str());
        let unknown =
            || ArrowheadError::invalid_parameter(format!("No cloud exists with the following operator and name: {operator}, {name}"));
        snapshot.cloud_by_name(operator, name).map(|cloud| Consumer::Cloud(cloud)).ok_or_else(unknown)
    }

    fn prefers(&self, view: &EntryView) -> bool {
        self.preferred.contains(&SystemKey::of(&view.provider))
    }

    /// Why this orchestration gives `usable`, by what was seen of it.
    pub fn explain(&self, snapshot: &Snapshot, steps: Vec<Step>, usable: &[EntryView]) -> Explanation {
        let definition = match &self.kind {
            Kind::Dynamic(query) | Kind::StoredService { query, .. } => query.definition.as_str(),
            Kind::OtherClouds(definition) => definition,
            Kind::StoredTops(_) => "what the orchestration store names",
            Kind::Flexible { form, .. } => form.service_definition_requirement.as_deref().unwrap_or_default().trim(),
        };
        Explanation::new(snapshot, (&self.requester.name, definition), steps, usable)
    }
}

#[cfg(test)]
mod tests;
