//! The local cloud at one instant: immutable, shared, indexed for every question a core system asks.
//!
//! The maps share structure between versions, so a commit costs what it changes and not what there is. All of them are
//! ordered trees: no hasher that hostile names could collide in, and the same order on every machine.

mod clouds;
mod owners;
mod stores;

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

pub use self::owners::OwnerUse;
use self::{clouds::Clouds, owners::Owners, stores::Stores};
use crate::{
    name::{InterfaceName, ServiceDefinition, SystemName},
    record::*,
    system::SystemKey,
    table::Table,
};

/// One committed version of the local cloud.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    systems: Table<SystemId, System>,
    system_by_key: OrdMap<SystemKey, SystemId>,
    system_by_name: OrdSet<(SystemName, SystemId)>,
    definitions: Table<DefinitionId, Definition>,
    definition_by_name: OrdMap<ServiceDefinition, DefinitionId>,
    interfaces: Table<InterfaceId, Interface>,
    interface_by_name: OrdMap<InterfaceName, InterfaceId>,
    entries: Table<EntryId, Entry>,
    entry_by_definition: OrdMap<(DefinitionId, SystemId, Arc<str>), EntryId>,
    entry_by_provider: OrdSet<(SystemId, EntryId)>,
    entry_by_interface: OrdSet<(InterfaceId, EntryId)>,
    rules: Table<RuleId, Rule>,
    rule_by_consumer: OrdMap<(SystemId, SystemId, DefinitionId), RuleId>,
    rule_by_provider: OrdSet<(SystemId, RuleId)>,
    rule_by_definition: OrdSet<(DefinitionId, RuleId)>,
    rule_by_interface: OrdSet<(InterfaceId, RuleId)>,
    event_types: OrdMap<EventTypeId, Arc<EventTypeRow>>,
    subscriptions: OrdMap<SubscriptionId, Arc<Subscription>>,
    subscription_by_subscriber: OrdMap<(SystemId, EventTypeId), SubscriptionId>,
    subscription_by_source: OrdSet<(SystemId, SubscriptionId)>,
    owners: Owners,
    clouds: Clouds,
    stores: Stores,
}

/// One change of the local cloud, as the database made it. A removal takes along what depends on the row.
#[derive(Clone, Debug)]
pub enum Change {
    /// A system was made or changed.
    System(Arc<System>),
    /// A service definition was made or renamed.
    Definition(Arc<Definition>),
    /// An interface was made or renamed.
    Interface(Arc<Interface>),
    /// An entry was made or changed.
    Entry(Arc<Entry>),
    /// A rule was made.
    Rule(Arc<Rule>),
    /// An event type was made.
    EventType(Arc<EventTypeRow>),
    /// A subscription was made or changed.
    Subscription(Arc<Subscription>),
    /// A cloud was made or changed.
    Cloud(Arc<Cloud>),
    /// A relay was made or changed.
    Relay(Arc<Relay>),
    /// An intercloud rule was made.
    InterCloudRule(Arc<InterCloudRule>),
    /// A system of another cloud was made.
    ForeignSystem(Arc<ForeignSystem>),
    /// An entry of the orchestration store was made or given another priority.
    StoreEntry(Arc<StoreEntry>),
    /// A rule of the flexible store was made.
    FlexibleRule(Arc<FlexibleRule>),
    /// A reservation was made or changed.
    Reservation(Arc<Reservation>),
    /// A system is gone, with its entries, rules, subscriptions, and store entries as a consumer.
    SystemRemoved(SystemId),
    /// A definition is gone, with its entries, rules and store entries.
    DefinitionRemoved(DefinitionId),
    /// An interface is gone, from every entry and rule, and with its store entries.
    InterfaceRemoved(InterfaceId),
    /// An entry is gone.
    EntryRemoved(EntryId),
    /// A rule is gone.
    RuleRemoved(RuleId),
    /// A subscription is gone.
    SubscriptionRemoved(SubscriptionId),
    /// A cloud is gone, with its rules and systems.
    CloudRemoved(CloudId),
    /// A relay is gone, from every cloud.
    RelayRemoved(RelayId),
    /// An intercloud rule is gone.
    InterCloudRuleRemoved(InterCloudRuleId),
    /// An entry of the orchestration store is gone.
    StoreEntryRemoved(StoreEntryId),
    /// A rule of the flexible store is gone.
    FlexibleRuleRemoved(FlexibleRuleId),
    /// A reservation is gone.
    ReservationRemoved(ReservationId),
}

impl Snapshot {
    /// Applies one committed change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::System(system) => self.put_system(system),
            Change::Definition(definition) => self.put_definition(definition),
            Change::Interface(interface) => self.put_interface(interface),
            Change::Entry(entry) => self.put_entry(entry),
            Change::Rule(rule) => self.put_rule(rule),
            Change::EventType(event_type) => drop(self.event_types.insert(event_type.id, event_type)),
            Change::Subscription(subscription) => self.put_subscription(subscription),
            Change::Cloud(cloud) => self.clouds.put_cloud(cloud),
            Change::Relay(relay) => self.clouds.put_relay(relay),
            Change::InterCloudRule(rule) => self.clouds.put_rule(rule),
            Change::ForeignSystem(system) => self.clouds.put_foreign_system(system),
            Change::StoreEntry(entry) => self.stores.put_entry(entry),
            Change::FlexibleRule(rule) => self.stores.put_flexible_rule(rule),
            Change::Reservation(reservation) => self.stores.put_reservation(reservation),
            Change::SystemRemoved(id) => self.remove_system(id),
            Change::DefinitionRemoved(id) => self.remove_definition(id),
            Change::InterfaceRemoved(id) => self.remove_interface(id),
            Change::EntryRemoved(id) => self.remove_entry(id),
            Change::RuleRemoved(id) => self.remove_rule(id),
            Change::SubscriptionRemoved(id) => self.remove_subscription(id),
            Change::CloudRemoved(id) => self.clouds.remove_cloud(id),
            Change::RelayRemoved(id) => self.clouds.remove_relay(id),
            Change::InterCloudRuleRemoved(id) => self.clouds.remove_rule(id),
            Change::StoreEntryRemoved(id) => self.stores.remove_entry(id),
            Change::FlexibleRuleRemoved(id) => self.stores.remove_flexible_rule(id),
            Change::ReservationRemoved(id) => self.stores.remove_reservation(id),
        }
    }

    fn put_system(&mut self, system: Arc<System>) {
        let former = self.systems.insert(system.id, system.clone());
        self.owners.put_system(&system, former.as_deref());
        if let Some(former) = former {
            self.forget_system(&former);
        }
        self.system_by_key.insert(SystemKey::of(&system), system.id);
        self.system_by_name.insert((system.system_name.clone(), system.id));
    }

    /// Takes a system out of the indexes.
    fn forget_system(&mut self, system: &System) {
        self.system_by_key.remove(&SystemKey::of(system));
        self.system_by_name.remove(&(system.system_name.clone(), system.id));
    }

    fn put_definition(&mut self, definition: Arc<Definition>) {
        if let Some(former) = self.definitions.insert(definition.id, definition.clone()) {
            self.definition_by_name.remove(&former.service_definition);
        }
        self.definition_by_name.insert(definition.service_definition.clone(), definition.id);
    }

    fn put_interface(&mut self, interface: Arc<Interface>) {
        if let Some(former) = self.interfaces.insert(interface.id, interface.clone()) {
            self.interface_by_name.remove(&former.interface_name);
        }
        self.interface_by_name.insert(interface.interface_name.clone(), interface.id);
    }

    fn put_entry(&mut self, entry: Arc<Entry>) {
        if let Some(former) = self.entries.insert(entry.id, entry.clone()) {
            self.forget_entry(&former);
        }
        self.count_entry(&entry, true);
        self.entry_by_definition.insert((entry.definition, entry.provider, entry.service_uri.clone()), entry.id);
        self.entry_by_provider.insert((entry.provider, entry.id));
        for interface in &entry.interfaces {
            self.entry_by_interface.insert((*interface, entry.id));
        }
    }

    /// Takes an entry out of the indexes.
    fn forget_entry(&mut self, entry: &Entry) {
        self.count_entry(entry, false);
        self.entry_by_definition.remove(&(entry.definition, entry.provider, entry.service_uri.clone()));
        self.entry_by_provider.remove(&(entry.provider, entry.id));
        for interface in &entry.interfaces {
            self.entry_by_interface.remove(&(*interface, entry.id));
        }
    }

    fn put_rule(&mut self, rule: Arc<Rule>) {
        self.rule_by_consumer.insert((rule.consumer, rule.provider, rule.definition), rule.id);
        self.rule_by_provider.insert((rule.provider, rule.id));
        self.rule_by_definition.insert((rule.definition, rule.id));
        for interface in &rule.interfaces {
            self.rule_by_interface.insert((*interface, rule.id));
        }
        self.rules.insert(rule.id, rule);
    }

    fn put_subscription(&mut self, subscription: Arc<Subscription>) {
        if let Some(former) = self.subscriptions.insert(subscription.id, subscription.clone()) {
            self.forget_subscription(&former);
        }
        self.count_subscription(&subscription, true);
        self.subscription_by_subscriber.insert((subscription.subscriber, subscription.event_type), subscription.id);
        for source in subscription.sources.iter().flatten() {
            self.subscription_by_source.insert((*source, subscription.id));
        }
    }

    /// Takes a subscription out of the indexes.
    fn forget_subscription(&mut self, subscription: &Subscription) {
        self.count_subscription(subscription, false);
        self.subscription_by_subscriber.remove(&(subscription.subscriber, subscription.event_type));
        for source in subscription.sources.iter().flatten() {
            self.subscription_by_source.remove(&(*source, subscription.id));
        }
    }

    fn remove_entry(&mut self, id: EntryId) {
        if let Some(entry) = self.entries.remove(id) {
            self.forget_entry(&entry);
        }
    }

    fn remove_rule(&mut self, id: RuleId) {
        if let Some(rule) = self.rules.remove(id) {
            self.rule_by_consumer.remove(&(rule.consumer, rule.provider, rule.definition));
            self.rule_by_provider.remove(&(rule.provider, id));
            self.rule_by_definition.remove(&(rule.definition, id));
            for interface in &rule.interfaces {
                self.rule_by_interface.remove(&(*interface, id));
            }
        }
    }

    fn remove_subscription(&mut self, id: SubscriptionId) {
        if let Some(subscription) = self.subscriptions.remove(&id) {
            self.forget_subscription(&subscription);
        }
    }

    fn remove_system(&mut self, id: SystemId) {
        let Some(system) = self.systems.remove(id) else { return };
        self.owners.remove_system(&system);
        self.forget_system(&system);
        let entries: Vec<EntryId> = self.entries_of_provider(id).map(|entry| entry.id).collect();
        entries.into_iter().for_each(|entry| self.remove_entry(entry));
        let provided: Vec<RuleId> = self.rule_by_provider.range((id, RuleId(i64::MIN))..=(id, RuleId(i64::MAX))).map(|key| key.1).collect();
        let consumed: Vec<RuleId> = self.rules_of_consumer(id).map(|rule| rule.id).collect();
        provided.into_iter().chain(consumed).for_each(|rule| self.remove_rule(rule));
        let own: Vec<SubscriptionId> = self
            .subscription_by_subscriber
            .range((id, EventTypeId(i64::MIN))..=(id, EventTypeId(i64::MAX)))
            .map(|(_, subscription)| *subscription)
            .collect();
        own.into_iter().for_each(|subscription| self.remove_subscription(subscription));
        self.remove_source(id);
        self.clouds.remove_rules(|rule| rule.provider == id);
        let stored: Vec<StoreEntryId> = self.store_entries_of_consumer(id).map(|entry| entry.id).collect();
        stored.into_iter().for_each(|entry| self.stores.remove_entry(entry));
    }

    fn remove_source(&mut self, id: SystemId) {
        let naming = self.subscription_by_source.range((id, SubscriptionId(i64::MIN))..=(id, SubscriptionId(i64::MAX)));
        let naming: Vec<Arc<Subscription>> = naming.map(|(_, subscription)| self.subscriptions[subscription].clone()).collect();
        for mut subscription in naming {
            if let Some(sources) = &mut Arc::make_mut(&mut subscription).sources {
                sources.remove(&id);
            }
            self.put_subscription(subscription);
        }
    }

    fn remove_definition(&mut self, id: DefinitionId) {
        let Some(definition) = self.definitions.remove(id) else { return };
        self.definition_by_name.remove(&definition.service_definition);
        let entries: Vec<EntryId> = self.entries_of(id).map(|entry| entry.id).collect();
        entries.into_iter().for_each(|entry| self.remove_entry(entry));
        let rules = self.rule_by_definition.range((id, RuleId(i64::MIN))..=(id, RuleId(i64::MAX)));
        let rules: Vec<RuleId> = rules.map(|(_, rule)| *rule).collect();
        rules.into_iter().for_each(|rule| self.remove_rule(rule));
        self.clouds.remove_rules(|rule| rule.definition == id);
        self.stores.remove_groups(|group| group.definition == id);
    }

    fn remove_interface(&mut self, id: InterfaceId) {
        let Some(interface) = self.interfaces.remove(id) else { return };
        self.interface_by_name.remove(&interface.interface_name);
        let entries = self.entry_by_interface.range((id, EntryId(i64::MIN))..=(id, EntryId(i64::MAX)));
        for entry in entries.map(|(_, entry)| *entry).collect::<Vec<_>>() {
            let mut entry = self.entries.get(entry).expect("an indexed entry is there").clone();
            Arc::make_mut(&mut entry).interfaces.retain(|interface| *interface != id);
            self.put_entry(entry);
        }
        let rules = self.rule_by_interface.range((id, RuleId(i64::MIN))..=(id, RuleId(i64::MAX)));
        for rule in rules.map(|(_, rule)| *rule).collect::<Vec<_>>() {
            let mut rule = self.rules.get(rule).expect("an indexed rule is there").clone();
            self.remove_rule(rule.id);
            Arc::make_mut(&mut rule).interfaces.retain(|interface| *interface != id);
            self.put_rule(rule);
        }
        self.clouds.remove_interface(id);
        self.stores.remove_groups(|group| group.interface == id);
    }
}

/// Questions. Lookups are O(log n); lists come in ascending order of id unless said otherwise.
impl Snapshot {
    /// All systems.
    pub fn systems(&self) -> impl ExactSizeIterator<Item = &Arc<System>> {
        self.systems.rows()
    }

    /// A system by id.
    pub fn system(&self, id: SystemId) -> Option<&Arc<System>> {
        self.systems.get(id)
    }

    /// A system by name, address and port, as [`SystemKey`] spells them.
    pub fn system_by_key(&self, key: &str) -> Option<&Arc<System>> {
        self.systems.get(*self.system_by_key.get(key)?)
    }

    /// The systems of a name in any case.
    pub fn systems_named(&self, name: &str) -> impl Iterator<Item = &Arc<System>> {
        self.systems_with(&SystemName::from_stored(&name.trim().to_ascii_lowercase()))
    }

    /// The systems of a name. Allocates nothing.
    pub fn systems_with(&self, name: &SystemName) -> impl Iterator<Item = &Arc<System>> + use<'_> {
        let all = (name.clone(), SystemId(i64::MIN))..=(name.clone(), SystemId(i64::MAX));
        self.system_by_name.range(all).map(|(_, id)| self.systems.get(*id).expect("an indexed system is there"))
    }

    /// All service definitions.
    pub fn definitions(&self) -> impl ExactSizeIterator<Item = &Arc<Definition>> {
        self.definitions.rows()
    }

    /// A service definition by id.
    pub fn definition(&self, id: DefinitionId) -> Option<&Arc<Definition>> {
        self.definitions.get(id)
    }

    /// A service definition by its name in any case.
    pub fn definition_by_name(&self, name: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(*self.definition_by_name.get(name.trim().to_lowercase().as_str())?)
    }

    /// All interfaces.
    pub fn interfaces(&self) -> impl ExactSizeIterator<Item = &Arc<Interface>> {
        self.interfaces.rows()
    }

    /// An interface by id.
    pub fn interface(&self, id: InterfaceId) -> Option<&Arc<Interface>> {
        self.interfaces.get(id)
    }

    /// An interface by its name in any case.
    pub fn interface_by_name(&self, name: &str) -> Option<&Arc<Interface>> {
        self.interfaces.get(*self.interface_by_name.get(name.trim().to_uppercase().as_str())?)
    }

    /// All registry entries.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Arc<Entry>> {
        self.entries.rows()
    }

    /// A registry entry by id.
    pub fn entry(&self, id: EntryId) -> Option<&Arc<Entry>> {
        self.entries.get(id)
    }

    /// The entries of a definition, by provider id, then service URI.
    pub fn entries_of(&self, definition: DefinitionId) -> impl Iterator<Item = &Arc<Entry>> {
        let first = (definition, SystemId(i64::MIN), Arc::<str>::from(""));
        self.entry_by_definition
            .range(first..)
            .take_while(move |(key, _)| key.0 == definition)
            .map(|(_, id)| self.entries.get(*id).expect("an indexed entry is there"))
    }

    /// The entries of a definition, by id.
    pub fn entries_of_by_id(&self, definition: DefinitionId) -> Vec<&Arc<Entry>> {
        let mut entries: Vec<_> = self.entries_of(definition).collect();
        entries.sort_unstable_by_key(|entry| entry.id);
        entries
    }

    /// The entries of a provider.
    pub fn entries_of_provider(&self, provider: SystemId) -> impl Iterator<Item = &Arc<Entry>> {
        let all = (provider, EntryId(i64::MIN))..=(provider, EntryId(i64::MAX));
        self.entry_by_provider.range(all).map(|(_, id)| self.entries.get(*id).expect("an indexed entry is there"))
    }

    /// The entries of a definition at one provider, by service URI.
    pub fn entries_at(&self, definition: DefinitionId, provider: SystemId) -> impl Iterator<Item = &Arc<Entry>> {
        let first = (definition, provider, Arc::<str>::from(""));
        self.entry_by_definition
            .range(first..)
            .take_while(move |(key, _)| (key.0, key.1) == (definition, provider))
            .map(|(_, id)| self.entries.get(*id).expect("an indexed entry is there"))
    }

    /// An entry with the rows it refers to. Panics on an entry of another snapshot whose rows are gone here.
    pub fn view(&self, entry: &Arc<Entry>) -> EntryView {
        let interfaces = self.named_interfaces(&entry.interfaces);
        EntryView {
            entry: entry.clone(),
            definition: self.definitions.get(entry.definition).expect("an entry's definition is there").clone(),
            provider: self.systems.get(entry.provider).expect("an entry's provider is there").clone(),
            interfaces,
        }
    }

    /// Interfaces by id, in order of their names.
    pub fn named_interfaces(&self, ids: &[InterfaceId]) -> Vec<Arc<Interface>> {
        let mut interfaces: Vec<_> = ids.iter().filter_map(|id| self.interfaces.get(*id)).cloned().collect();
        interfaces.sort_unstable_by(|a, b| a.interface_name.cmp(&b.interface_name));
        interfaces
    }

    /// All authorization rules.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &Arc<Rule>> {
        self.rules.rows()
    }

    /// An authorization rule by id.
    pub fn rule(&self, id: RuleId) -> Option<&Arc<Rule>> {
        self.rules.get(id)
    }

    /// The rule for this consumer, provider and definition.
    pub fn rule_for(&self, consumer: SystemId, provider: SystemId, definition: DefinitionId) -> Option<&Arc<Rule>> {
        self.rules.get(*self.rule_by_consumer.get(&(consumer, provider, definition))?)
    }

    /// The rules of a consumer, by provider id, then definition id.
    pub fn rules_of_consumer(&self, consumer: SystemId) -> impl Iterator<Item = &Arc<Rule>> {
        let first = (consumer, SystemId(i64::MIN), DefinitionId(i64::MIN));
        self.rule_by_consumer
            .range(first..)
            .take_while(move |(key, _)| key.0 == consumer)
            .map(|(_, id)| self.rules.get(*id).expect("an indexed rule is there"))
    }

    /// Whether any rule lets `consumer` use any service of `provider`: what decides about events (reference 4, subscription check).
    pub fn may_hear(&self, consumer: SystemId, provider: SystemId) -> bool {
        let first = (consumer, provider, DefinitionId(i64::MIN));
        self.rule_by_consumer.range(first..).next().is_some_and(|(key, _)| key.0 == consumer && key.1 == provider)
    }

    /// Whether any rule is for `consumer`.
    pub fn may_hear_anybody(&self, consumer: SystemId) -> bool {
        let first = (consumer, SystemId(i64::MIN), DefinitionId(i64::MIN));
        self.rule_by_consumer.range(first..).next().is_some_and(|(key, _)| key.0 == consumer)
    }

    /// An event type by id.
    pub fn event_type(&self, id: EventTypeId) -> Option<&Arc<EventTypeRow>> {
        self.event_types.get(&id)
    }

    /// The subscription of a subscriber to an event type.
    pub fn subscription_of(&self, subscriber: SystemId, event_type: EventTypeId) -> Option<&Arc<Subscription>> {
        self.subscriptions.get(self.subscription_by_subscriber.get(&(subscriber, event_type))?)
    }

    /// The subscriptions of a subscriber, in the order of their event types' ids.
    pub fn subscriptions_of(&self, subscriber: SystemId) -> impl Iterator<Item = &Arc<Subscription>> {
        let own = (subscriber, EventTypeId(i64::MIN))..=(subscriber, EventTypeId(i64::MAX));
        self.subscription_by_subscriber.range(own).map(|(_, id)| &self.subscriptions[id])
    }

    /// All subscriptions.
    pub fn subscriptions(&self) -> &OrdMap<SubscriptionId, Arc<Subscription>> {
        &self.subscriptions
    }
}
