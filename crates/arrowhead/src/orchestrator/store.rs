//! The orchestration store: entries by consumer, service and interface with priorities (reference 5.3 and 5.4).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Serialize;

use super::elsewhere::StoredProvider;
use crate::{
    address::AddressKind,
    error::ArrowheadError,
    explanation::{Criterion, Step, Witness},
    form::{PriorityRequest, StoreRequest, StoreSearchRequest},
    metadata::Metadata,
    name::{CloudName, InterfaceName, NamingRules, ServiceDefinition},
    record::*,
    service_registry::Query,
    snapshot::Snapshot,
    system::{AUTHENTICATION_INFO_LENGTH_MAX, SystemKey, SystemReference},
};

/// An entry to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreInsertion {
    /// Who is to consume.
    pub consumer: SystemId,
    /// What.
    pub definition: ServiceDefinition,
    /// Over what.
    pub interface: InterfaceName,
    /// From whom.
    pub provider: SystemKey,
    /// Operator and name of the provider's cloud; `None` is the own one.
    pub cloud: Option<(CloudName, CloudName)>,
    /// Base64 of the public key of a provider in another cloud.
    pub authentication_info: Option<Arc<str>>,
    /// Free pairs of a provider in another cloud.
    pub metadata: Option<Metadata>,
    /// Wanted place in the group; one behind the end is the end. At least 1.
    pub priority: u32,
    /// Free pairs.
    pub attribute: Option<Metadata>,
}

impl StoreInsertion {
    /// Checks a list. A missing member refuses all of it; an element with a wrong value is left out, as upstream does.
    pub fn parse_list(forms: Vec<Option<StoreRequest>>, rules: &NamingRules, origin: &str) -> Result<Vec<Self>, ArrowheadError> {
        if forms.is_empty() {
            return Err(ArrowheadError::bad_payload("Request is empty.", origin));
        }
        let mut insertions = Vec::with_capacity(forms.len());
        for form in forms {
            let form = form.ok_or_else(|| ArrowheadError::bad_payload("The request has an element that is null.", origin))?;
            let missing = |member: &str| ArrowheadError::bad_payload(format!("{member} is null or blank."), origin);
            let provider = SystemReference::parse(form.provider_system.as_ref(), "Provider system", origin)?;
            let consumer = form.consumer_system_id.ok_or_else(|| missing("Consumer system id"))?;
            let definition = form.service_definition_name.as_deref().ok_or_else(|| missing("Service definition name"))?;
            let interface = form.service_interface_name.as_deref().filter(|name| !name.trim().is_empty());
            let interface = interface.ok_or_else(|| missing("Service interface name"))?;
            let priority = form.priority.ok_or_else(|| missing("Priority"))?;
            let names = (ServiceDefinition::parse(definition, &rules.lenient_definition()), InterfaceName::parse(interface, rules));
            let ((Ok(definition), Ok(interface)), true) = (names, priority >= 1 && provider.is_storable()) else { continue };
            insertions.extend(Self::parse(form, SystemId(consumer), definition, interface, provider.key, priority));
        }
        Ok(insertions)
    }

    /// The rest of an element; `None` if a value is wrong.
    fn parse(
        form: StoreRequest,
        consumer: SystemId,
        definition: ServiceDefinition,
        interface: InterfaceName,
        provider: SystemKey,
        priority: i64,
    ) -> Option<Self> {
        let stored = |text: Option<String>| {
            let text = text.unwrap_or_default().trim().to_lowercase();
            (!text.is_empty()).then(|| CloudName::from_stored(&text))
        };
        let cloud = match form.cloud {
            None => None,
            Some(cloud) => Some((stored(cloud.operator)?, stored(cloud.name)?)),
        };
        let system = form.provider_system.unwrap_or_default();
        if system.authentication_info.as_ref().is_some_and(|info| info.chars().count() > AUTHENTICATION_INFO_LENGTH_MAX) {
            return None;
        }
        Some(Self {
            consumer,
            definition,
            interface,
            provider,
            cloud,
            authentication_info: system.authentication_info.map(Arc::from),
            metadata: Metadata::parse_optional(system.metadata, "").ok()?,
            priority: u32::try_from(priority).unwrap_or(u32::MAX),
            attribute: Metadata::parse_optional(form.attribute, "").ok()?,
        })
    }
}

/// All entries of a group in their new order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reordering(pub Vec<StoreEntryId>);

impl Reordering {
    /// Checks a form. Priorities are at least 1, each once; gaps between them say nothing.
    pub fn parse(form: PriorityRequest, origin: &str) -> Result<Self, ArrowheadError> {
        let refused = |message: &str| ArrowheadError::bad_payload(message, origin);
        let map = form.priority_map.filter(|map| !map.is_empty()).ok_or_else(|| refused("PriorityMap is null or empty."))?;
        let count = map.len();
        let mut by_priority = BTreeMap::new();
        for (id, priority) in map {
            let priority = priority.filter(|priority| *priority >= 1);
            by_priority.insert(priority.ok_or_else(|| refused("A priority is null or less than 1."))?, StoreEntryId(id));
        }
        if by_priority.len() < count {
            return Err(refused("PriorityMap has duplicated priority value."));
        }
        Ok(Self(by_priority.into_values().collect()))
    }
}

/// Which entries of a consumer are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSearch {
    consumer: SystemId,
    definition: String,
    interface: Option<String>,
}

impl StoreSearch {
    /// Checks a form.
    pub fn parse(form: StoreSearchRequest, origin: &str) -> Result<Self, ArrowheadError> {
        let refused = |message: &str| ArrowheadError::bad_payload(message, origin);
        let consumer = form.consumer_system_id.filter(|id| *id > 0);
        let consumer = consumer.ok_or_else(|| refused("Consumer system id must be given and greater than 0."))?;
        let definition = form.service_definition_name.filter(|name| !name.trim().is_empty());
        let definition = definition.ok_or_else(|| refused("Service definition name is null or blank."))?;
        Ok(Self { consumer: SystemId(consumer), definition, interface: form.service_interface_name })
    }

    /// The entries, by id. Consumer, definition and interface must exist.
    pub fn find<'s>(&self, snapshot: &'s Snapshot) -> Result<Vec<&'s Arc<StoreEntry>>, ArrowheadError> {
        if snapshot.system(self.consumer).is_none() {
            return Err(ArrowheadError::invalid_parameter(format!("Consumer system with id '{}' does not exist.", self.consumer)));
        }
        let definition = known_definition(snapshot, &self.definition)?.id;
        let interface = self.interface.as_deref().map(|name| known_interface(snapshot, name)).transpose()?.map(|interface| interface.id);
        let entries = snapshot.store_entries_of_consumer(self.consumer);
        let entries = entries.filter(|entry| entry.group.definition == definition);
        let mut entries: Vec<_> = entries.filter(|entry| interface.is_none_or(|id| entry.group.interface == id)).collect();
        entries.sort_unstable_by_key(|entry| entry.id);
        Ok(entries)
    }
}

fn known_definition<'s>(snapshot: &'s Snapshot, name: &str) -> Result<&'s Arc<Definition>, ArrowheadError> {
    let missing = || ArrowheadError::invalid_parameter(format!("Service definition '{}' not available.", name.trim()));
    snapshot.definition_by_name(name).ok_or_else(missing)
}

fn known_interface<'s>(snapshot: &'s Snapshot, name: &str) -> Result<&'s Arc<Interface>, ArrowheadError> {
    let missing = || ArrowheadError::invalid_parameter(format!("Service interface '{}' not available.", name.trim()));
    snapshot.interface_by_name(name).ok_or_else(missing)
}

/// The requester of an orchestration from a store; it must be registered.
pub(super) fn known_requester<'s>(snapshot: &'s Snapshot, requester: &SystemReference) -> Result<&'s Arc<System>, ArrowheadError> {
    let missing = || ArrowheadError::invalid_parameter(format!("Consumer system with {requester} not available."));
    snapshot.system_by_key(requester.key.as_str()).ok_or_else(missing)
}

/// The providers of a group's entries, by priority, with what those of this cloud offer.
pub(super) fn stored_service_providers(
    snapshot: &Snapshot,
    requester: &SystemReference,
    query: &Query,
    interface: &str,
    witness: &mut impl Witness,
) -> Result<Vec<StoredProvider>, ArrowheadError> {
    let consumer = known_requester(snapshot, requester)?.id;
    let definition = known_definition(snapshot, &query.definition)?.id;
    let interface = known_interface(snapshot, interface)?.id;
    let group = StoreGroup { consumer, definition, interface };
    let mut providers = Vec::new();
    let mut named = 0;
    for entry in snapshot.store_entries_of(group) {
        named += 1;
        let offered = offered_by(snapshot, entry, witness).into_iter().filter_map(|offered| query.select(snapshot, offered, witness));
        match foreign(snapshot, entry) {
            Some((cloud, system)) => providers.push(StoredProvider::Elsewhere(cloud, system)),
            None => providers.push(StoredProvider::Here(offered.collect())),
        }
    }
    tell_named(named, witness);
    Ok(providers)
}

/// The provider of an entry that is of another cloud, which is still known.
fn foreign(snapshot: &Snapshot, entry: &StoreEntry) -> Option<(Arc<Cloud>, Arc<ForeignSystem>)> {
    let StoreProvider::Foreign(id) = entry.provider else { return None };
    let system = snapshot.foreign_system(id)?;
    Some((snapshot.cloud(system.cloud)?.clone(), system.clone()))
}

/// What the provider of an entry offers of the entry's service now.
fn offered_by<'s>(snapshot: &'s Snapshot, entry: &StoreEntry, witness: &mut impl Witness) -> Vec<&'s Arc<Entry>> {
    let provider = local(entry.provider);
    let offered: Vec<_> = provider.into_iter().flat_map(|provider| snapshot.entries_at(entry.group.definition, provider)).collect();
    let mut tell = |found: &str, offered: Option<EntryId>| {
        witness.see(|| {
            let asked = format!("entry {} of the orchestration store, priority {}", entry.id, entry.priority);
            Step { entry: offered, ..Step::new(Criterion::StoreEntry, offered.is_some(), asked, found) }.by(Some(entry.id.0))
        });
    };
    match provider {
        None => tell("its provider is of another cloud, which only the Gatekeeper can ask", None),
        Some(_) if offered.is_empty() => tell("its provider does not offer the service", None),
        Some(_) => offered.iter().for_each(|offered| tell("its provider offers the service", Some(offered.id))),
    }
    offered
}

/// Whether the store names any provider.
fn tell_named(entries: usize, witness: &mut impl Witness) {
    if entries == 0 {
        let found = "the orchestration store has no such entry for the consumer";
        witness.see(|| Step::new(Criterion::StoreEntry, false, "entries of the orchestration store", found));
    }
}

/// What the providers of a consumer's entries of priority 1 offer over the entries' interfaces, by definition id, then provider id.
pub(super) fn stored_top_candidates(
    snapshot: &Snapshot,
    requester: &SystemReference,
    kinds: &[AddressKind],
    witness: &mut impl Witness,
) -> Result<Vec<EntryView>, ArrowheadError> {
    let consumer = known_requester(snapshot, requester)?.id;
    let mut interfaces: BTreeMap<(DefinitionId, SystemId), BTreeSet<InterfaceId>> = BTreeMap::new();
    let mut named = 0;
    for entry in snapshot.store_entries_of_consumer(consumer).filter(|entry| entry.priority == 1) {
        named += 1;
        offered_by(snapshot, entry, witness);
        if let Some(provider) = local(entry.provider) {
            interfaces.entry((entry.group.definition, provider)).or_default().insert(entry.group.interface);
        }
    }
    tell_named(named, witness);
    let mut candidates = Vec::new();
    for ((definition, provider), wanted) in interfaces {
        let offered = snapshot.entries_at(definition, provider);
        candidates.extend(offered.filter_map(|entry| top_candidate(snapshot.view(entry), &wanted, kinds, witness)));
    }
    Ok(candidates)
}

/// Narrows a service to the interfaces that the store names; `None` if there is none, or the address is of no wanted kind.
fn top_candidate(
    mut view: EntryView,
    wanted: &BTreeSet<InterfaceId>,
    kinds: &[AddressKind],
    witness: &mut impl Witness,
) -> Option<EntryView> {
    let kind = view.provider.address.kind();
    let is_of_kind = kinds.is_empty() || kinds.contains(&kind);
    view.interfaces.retain(|interface| wanted.contains(&interface.id));
    let fits = is_of_kind && !view.interfaces.is_empty();
    witness.see(|| {
        let step = match is_of_kind {
            true => Step::new(Criterion::Interface, fits, "the interfaces that the store names", view.interface_names()),
            false => Step::new(Criterion::AddressType, fits, "an address of a wanted kind", kind.as_str()),
        };
        step.of(view.entry.id)
    });
    fits.then_some(view)
}

fn local(provider: StoreProvider) -> Option<SystemId> {
    match provider {
        StoreProvider::Local(id) => Some(id),
        StoreProvider::Foreign(_) => None,
    }
}

/// An entry with the rows it refers to. Serialised it is upstream's response, nulls kept.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreEntryView {
    id: StoreEntryId,
    service_definition: Arc<Definition>,
    consumer_system: Arc<System>,
    foreign: bool,
    provider_system: ProviderView,
    provider_cloud: Option<Arc<Cloud>>,
    service_interface: Arc<Interface>,
    priority: u32,
    attribute: Option<Metadata>,
    #[serde(flatten)]
    timestamps: Timestamps,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ProviderView {
    Local(Arc<System>),
    Foreign(Arc<ForeignSystem>),
    /// A system that is gone.
    #[serde(rename_all = "camelCase")]
    Unknown {
        id: i64,
        system_name: String,
        address: &'static str,
        port: u16,
    },
}

impl ProviderView {
    fn unknown(id: i64) -> Self {
        Self::Unknown { id, system_name: format!("unknown-{id}"), address: "unknown", port: 0 }
    }
}

impl StoreEntryView {
    /// The entry's view in the snapshot it is of.
    pub fn new(snapshot: &Snapshot, entry: &StoreEntry) -> Self {
        let (provider_system, provider_cloud) = match entry.provider {
            StoreProvider::Local(id) => {
                (snapshot.system(id).map_or_else(|| ProviderView::unknown(id.0), |system| ProviderView::Local(system.clone())), None)
            }
            StoreProvider::Foreign(id) => match snapshot.foreign_system(id) {
                None => (ProviderView::unknown(id.0), None),
                Some(system) => (ProviderView::Foreign(system.clone()), snapshot.cloud(system.cloud).cloned()),
            },
        };
        Self {
            id: entry.id,
            service_definition: snapshot.definition(entry.group.definition).expect("an entry's definition is there").clone(),
            consumer_system: snapshot.system(entry.group.consumer).expect("an entry's consumer is there").clone(),
            foreign: matches!(entry.provider, StoreProvider::Foreign(_)),
            provider_system,
            provider_cloud,
            service_interface: snapshot.interface(entry.group.interface).expect("an entry's interface is there").clone(),
            priority: entry.priority,
            attribute: entry.attribute.clone(),
            timestamps: entry.timestamps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(map: &[(i64, Option<i64>)], expected: Result<&[i64], &str>) {
        let form = PriorityRequest { priority_map: Some(map.iter().copied().collect()) };
        match (Reordering::parse(form, "/x"), expected) {
            (Ok(Reordering(ids)), Ok(expected)) => assert_eq!(ids.iter().map(|id| id.0).collect::<Vec<_>>(), expected),
            (Err(error), Err(part)) => assert!(error.error_message.contains(part), "{error}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn priorities_are_an_order_whatever_their_gaps() {
        check(&[(7, Some(2)), (8, Some(1))], Ok(&[8, 7]));
        check(&[(7, Some(20)), (8, Some(100)), (9, Some(3))], Ok(&[9, 7, 8]));
        check(&[(7, Some(1)), (8, Some(1))], Err("duplicated"));
        check(&[(7, Some(0))], Err("less than 1"));
        check(&[(7, None)], Err("null"));
        check(&[], Err("empty"));
    }
}
