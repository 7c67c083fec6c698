//! Orchestrator: what a consumer should use (reference section 5).
//!
//! A dynamic orchestration is a registry query, the authorization check, the preferences and the choice. The query's
//! providers may have to be pinged, which is the host's part, so the decision comes in two calls: [`candidates`], then
//! [`orchestrate`].

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use crate::{
    address::AddressKind,
    authorization::{permitted_interfaces, registered_consumer},
    caller::Caller,
    error::ArrowheadError,
    form::{OrchestrationForm, PreferredProvider},
    metadata::Metadata,
    record::{Definition, EntryView, Interface, Security, System},
    service_registry::{self, Query},
    snapshot::Snapshot,
    system::{SystemKey, SystemReference},
    utc::UtcTime,
};

/// Path of the operation, as errors name it.
pub const ORIGIN: &str = "/orchestrator/orchestration";

/// Below this remaining validity a result is warned about as expiring, in seconds.
const EXPIRING_SECONDS: u64 = 120;

/// What a consumer asks for, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Orchestration {
    requester: SystemReference,
    /// Dynamic or from the store.
    pub kind: Kind,
    matchmaking: bool,
    preferred: Vec<SystemKey>,
    only_preferred: bool,
}

/// Where the answer comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The registry is asked (flag `overrideStore`).
    Dynamic(Query),
    /// The orchestration store is asked for one service, or for everything.
    Store(Option<StoreRequest>),
}

/// What is asked of the store: a definition over exactly one interface.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreRequest {
    definition: String,
    interface: String,
}

struct Flags<'f>(&'f BTreeMap<String, Option<bool>>);

impl Flags<'_> {
    fn set(&self, name: &str) -> bool {
        self.0.get(name).copied().flatten().unwrap_or(false)
    }
}

impl Orchestration {
    /// Checks a form in upstream's order (reference 5.1). There is no Gatekeeper and no QoS Monitor in this cloud.
    pub fn parse(mut form: OrchestrationForm, caller: Caller) -> Result<Self, ArrowheadError> {
        let refused = |message: &str| ArrowheadError::bad_payload(message, ORIGIN);
        let flags = form.orchestration_flags.take().unwrap_or_default();
        let flags = Flags(&flags);
        let requester = SystemReference::parse(form.requester_system.as_ref(), "Requester system", ORIGIN)?;
        caller.may_act_as(&requester.name)?;
        if form.requested_service.is_none() && (flags.set("overrideStore") || flags.set("triggerInterCloud")) {
            return Err(refused("Requested service can not be null when flag overrideStore or triggerInterCloud is set."));
        }
        let preferred = parse_preferred(form.preferred_providers.as_deref().unwrap_or_default())?;
        let (local, other_clouds): (Vec<_>, Vec<_>) = preferred.into_iter().partition(|(_, is_local)| *is_local);
        let preferred_elsewhere = flags.set("enableInterCloud") && !other_clouds.is_empty();
        if flags.set("onlyPreferred") && local.is_empty() && !preferred_elsewhere {
            return Err(refused("There is no valid preferred provider, but flag onlyPreferred is set."));
        }
        if flags.set("enableQoS")
            && !flags.set("matchmaking")
            && form.commands.as_ref().is_some_and(|commands| commands.contains_key("qosExclusivity"))
        {
            return Err(refused("Command qosExclusivity needs flag matchmaking."));
        }
        if flags.set("externalServiceRequest") || flags.set("triggerInterCloud") {
            return Err(refused("Inter-cloud orchestration is not available: Orchestrator runs in NO GATEKEEPER mode."));
        }
        let kind =
            if flags.set("overrideStore") { Kind::Dynamic(parse_query(form, &flags)?) } else { Kind::Store(parse_store_request(form)?) };
        Ok(Self {
            requester,
            kind,
            matchmaking: flags.set("matchmaking"),
            preferred: local.into_iter().map(|(key, _)| key).collect(),
            only_preferred: flags.set("onlyPreferred"),
        })
    }
}

fn parse_query(form: OrchestrationForm, flags: &Flags<'_>) -> Result<Query, ArrowheadError> {
    let mut service = form.requested_service.unwrap_or_default();
    if !flags.set("metadataSearch") {
        service.metadata_requirements = None;
    }
    service.ping_providers = Some(flags.set("pingProviders"));
    let asked = [
        ("onlyIPAddressResponse", &[AddressKind::Ipv4, AddressKind::Ipv6][..]),
        ("onlyIPv4AddressResponse", &[AddressKind::Ipv4]),
        ("onlyIPv6AddressResponse", &[AddressKind::Ipv6]),
    ];
    let kinds: Vec<_> =
        asked.into_iter().filter(|(flag, _)| flags.set(flag)).flat_map(|(_, kinds)| kinds).map(|kind| Some(*kind)).collect();
    if !kinds.is_empty() {
        service.provider_address_type_requirements = Some(kinds);
    }
    Query::parse(&service, ORIGIN)
}

fn parse_store_request(form: OrchestrationForm) -> Result<Option<StoreRequest>, ArrowheadError> {
    let Some(service) = form.requested_service else { return Ok(None) };
    let definition = service.service_definition_requirement.unwrap_or_default();
    if definition.trim().is_empty() {
        return Err(ArrowheadError::bad_payload("Service definition requirement is null or blank.", ORIGIN));
    }
    let mut interfaces = service.interface_requirements.unwrap_or_default();
    if interfaces.len() > 1 {
        return Err(ArrowheadError::invalid_parameter("Exactly one interface requirement is allowed in a store orchestration."));
    }
    let interface = interfaces.pop().flatten().filter(|text| !text.trim().is_empty());
    let interface = interface.ok_or_else(|| ArrowheadError::invalid_parameter("InterfaceRequirement  is null or blank."))?;
    Ok(Some(StoreRequest { definition, interface }))
}

/// Keys of the preferred providers, with whether each is of this cloud.
fn parse_preferred(forms: &[Option<PreferredProvider>]) -> Result<Vec<(SystemKey, bool)>, ArrowheadError> {
    let parse = |form: &PreferredProvider| {
        let reference = SystemReference::parse(form.provider_system.as_ref(), "Preferred provider system", ORIGIN)?;
        Ok((reference.key, form.provider_cloud.is_none()))
    };
    forms.iter().flatten().map(parse).collect()
}

/// What the registry offers for a dynamic orchestration.
pub fn candidates(snapshot: &Snapshot, query: &Query) -> Vec<EntryView> {
    service_registry::query(snapshot, query).service_query_data
}

/// One provider the consumer may use. Serialised it is `OrchestrationResult`, nulls kept.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationResult {
    provider: Arc<System>,
    service: Arc<Definition>,
    service_uri: Arc<str>,
    secure: Security,
    metadata: Metadata,
    interfaces: Vec<Arc<Interface>>,
    version: i32,
    /// Always null while no service can be secured by token.
    authorization_tokens: Option<BTreeMap<String, String>>,
    warnings: Vec<Warning>,
}

/// What a consumer should know about a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Warning {
    /// No end of validity was registered.
    TtlUnknown,
    /// The end of validity is past.
    TtlExpired,
    /// Less than two minutes of validity are left.
    TtlExpiring,
}

/// The answer to an orchestration.
#[derive(Debug, Default, Serialize)]
pub struct OrchestrationResponse {
    /// What the consumer may use.
    pub response: Vec<OrchestrationResult>,
}

/// Decides a dynamic orchestration among the candidates (reference 5.2).
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
    let consumer = registered_consumer(snapshot, &orchestration.requester)?;
    let mut usable: Vec<EntryView> = candidates.into_iter().filter_map(|view| permitted(snapshot, consumer, view)).collect();
    let is_preferred = |view: &EntryView| orchestration.preferred.contains(&SystemKey::of(&view.provider));
    if orchestration.only_preferred {
        usable.retain(is_preferred);
    }
    if orchestration.matchmaking && !usable.is_empty() {
        let chosen = usable.iter().position(is_preferred).unwrap_or_else(|| choose(usable.len()));
        usable = vec![usable.swap_remove(chosen)];
    }
    Ok(OrchestrationResponse { response: usable.into_iter().map(|view| result(view, now)).collect() })
}

/// Narrows a candidate to the interfaces the consumer may use; `None` if there is none.
fn permitted(snapshot: &Snapshot, consumer: &System, mut view: EntryView) -> Option<EntryView> {
    let granted = permitted_interfaces(snapshot, consumer.id, view.entry.provider, view.entry.definition);
    view.interfaces.retain(|interface| granted.contains(&interface.id));
    (!view.interfaces.is_empty()).then_some(view)
}

fn result(view: EntryView, now: UtcTime) -> OrchestrationResult {
    OrchestrationResult {
        warnings: warning(view.entry.end_of_validity, now).into_iter().collect(),
        provider: view.provider,
        service: view.definition,
        service_uri: view.entry.service_uri.clone(),
        secure: view.entry.secure,
        metadata: view.entry.metadata.clone().unwrap_or_default(),
        interfaces: view.interfaces,
        version: view.entry.version,
        authorization_tokens: None,
    }
}

fn warning(end_of_validity: Option<UtcTime>, now: UtcTime) -> Option<Warning> {
    match end_of_validity {
        None => Some(Warning::TtlUnknown),
        Some(end) if end < now => Some(Warning::TtlExpired),
        Some(end) if end.unix_seconds() - now.unix_seconds() < EXPIRING_SECONDS => Some(Warning::TtlExpiring),
        Some(_) => None,
    }
}

/// Decides an orchestration from the store (reference 5.3). Nothing can be put into the store yet, so what passes the
/// checks finds no entry.
pub fn orchestrate_from_store(
    snapshot: &Snapshot,
    orchestration: &Orchestration,
    request: Option<&StoreRequest>,
) -> Result<OrchestrationResponse, ArrowheadError> {
    let requester = &orchestration.requester;
    if snapshot.system_by_key(requester.key.as_str()).is_none() {
        return Err(ArrowheadError::invalid_parameter(format!("Consumer system with {requester} not available.")));
    }
    if let Some(request) = request {
        if snapshot.definition_by_name(&request.definition).is_none() {
            return Err(ArrowheadError::invalid_parameter(format!("Service definition '{}' not available.", request.definition.trim())));
        }
        if snapshot.interface_by_name(&request.interface).is_none() {
            return Err(ArrowheadError::invalid_parameter(format!("Service interface '{}' not available.", request.interface.trim())));
        }
    }
    Ok(OrchestrationResponse::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_is_warned_about() {
        let now = UtcTime::from_unix_seconds(1_000_000);
        for (end, expected) in [
            (None, Some(Warning::TtlUnknown)),
            (Some(999_999), Some(Warning::TtlExpired)),
            (Some(1_000_000), Some(Warning::TtlExpiring)),
            (Some(1_000_119), Some(Warning::TtlExpiring)),
            (Some(1_000_120), None),
        ] {
            assert_eq!(warning(end.map(UtcTime::from_unix_seconds), now), expected, "{end:?}");
        }
    }
}
