//! Which candidates there are, and which of them are answered.

use super::{
    Kind, Orchestration, OrchestrationResponse, OrchestrationResult,
    flexible_store::flexible_candidates,
    reservation::is_free_for,
    store::{stored_service_candidates, stored_top_candidates},
};
use crate::{
    authorization::{permitted_interfaces, registered_consumer},
    error::ArrowheadError,
    record::{EntryView, System},
    service_registry,
    snapshot::Snapshot,
    system::SystemKey,
    utc::UtcTime,
};

/// What the registry or a store offers, in the order it is to be tried.
pub fn candidates(snapshot: &Snapshot, orchestration: &Orchestration) -> Result<Vec<EntryView>, ArrowheadError> {
    let requester = &orchestration.requester;
    match &orchestration.kind {
        Kind::Dynamic(query) => Ok(service_registry::query(snapshot, query).service_query_data),
        Kind::StoredService { query, interface } => stored_service_candidates(snapshot, requester, query, interface),
        Kind::StoredTops(kinds) => stored_top_candidates(snapshot, requester, kinds),
        Kind::Flexible { form, requester_metadata } => flexible_candidates(snapshot, requester, form, requester_metadata),
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
) -> Result<OrchestrationResponse, ArrowheadError> {
    if candidates.is_empty() {
        return Ok(OrchestrationResponse::default());
    }
    let mut usable = candidates;
    if orchestration.asks_rules {
        let consumer = registered_consumer(snapshot, &orchestration.requester)?;
        usable = usable.into_iter().filter_map(|view| permitted(snapshot, consumer, view)).collect();
    }
    usable.retain(|view| is_free_for(snapshot, &orchestration.requester.key, view, now));
    let is_preferred = |view: &EntryView| orchestration.preferred.contains(&SystemKey::of(&view.provider));
    match &orchestration.kind {
        Kind::Dynamic(_) | Kind::Flexible { .. } => {
            if orchestration.only_preferred {
                usable.retain(is_preferred);
            }
            if orchestration.matchmaking && !usable.is_empty() {
                let chosen = usable.iter().position(is_preferred).unwrap_or_else(|| choose(usable.len()));
                usable = vec![usable.swap_remove(chosen)];
            }
        }
        Kind::StoredService { .. } => usable.truncate(1),
        Kind::StoredTops(_) => {}
    }
    Ok(OrchestrationResponse { response: usable.into_iter().map(|view| OrchestrationResult::new(view, now)).collect() })
}

/// Narrows a candidate to the interfaces the consumer may use; `None` if there is none.
fn permitted(snapshot: &Snapshot, consumer: &System, mut view: EntryView) -> Option<EntryView> {
    let granted = permitted_interfaces(snapshot, consumer.id, view.entry.provider, view.entry.definition);
    view.interfaces.retain(|interface| granted.contains(&interface.id));
    (!view.interfaces.is_empty()).then_some(view)
}
