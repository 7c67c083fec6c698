//! The orchestration stores and the reservations in a snapshot.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::Snapshot;
use crate::{name::ServiceDefinition, record::*, utc::UtcTime};

/// The maps of the Orchestrator.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stores {
    entries: OrdMap<StoreEntryId, Arc<StoreEntry>>,
    entry_by_priority: OrdSet<(StoreGroup, u32, StoreEntryId)>,
    flexible_rules: OrdMap<FlexibleRuleId, Arc<FlexibleRule>>,
    flexible_rule_by_definition: OrdSet<(ServiceDefinition, FlexibleRuleId)>,
    reservations: OrdMap<ReservationId, Arc<Reservation>>,
    reservation_by_provider: OrdMap<(SystemId, DefinitionId), ReservationId>,
}

impl Stores {
    /// Takes an entry in, in place of its former state.
    pub(super) fn put_entry(&mut self, entry: Arc<StoreEntry>) {
        self.remove_entry(entry.id);
        self.entry_by_priority.insert((entry.group, entry.priority, entry.id));
        self.entries.insert(entry.id, entry);
    }

    pub(super) fn remove_entry(&mut self, id: StoreEntryId) {
        if let Some(entry) = self.entries.remove(&id) {
            self.entry_by_priority.remove(&(entry.group, entry.priority, id));
        }
    }

    /// Removes what named a row that is gone: whole groups, so that the priorities of others stay as they are.
    pub(super) fn remove_groups(&mut self, names_it: impl Fn(&StoreGroup) -> bool) {
        let entries: Vec<StoreEntryId> = self.entries.values().filter(|entry| names_it(&entry.group)).map(|entry| entry.id).collect();
        entries.into_iter().for_each(|entry| self.remove_entry(entry));
    }

    pub(super) fn put_flexible_rule(&mut self, rule: Arc<FlexibleRule>) {
        self.flexible_rule_by_definition.insert((rule.service_definition.clone(), rule.id));
        self.flexible_rules.insert(rule.id, rule);
    }

    pub(super) fn remove_flexible_rule(&mut self, id: FlexibleRuleId) {
        if let Some(rule) = self.flexible_rules.remove(&id) {
            self.flexible_rule_by_definition.remove(&(rule.service_definition.clone(), id));
        }
    }

    pub(super) fn put_reservation(&mut self, reservation: Arc<Reservation>) {
        self.reservation_by_provider.insert((reservation.provider, reservation.definition), reservation.id);
        self.reservations.insert(reservation.id, reservation);
    }

    pub(super) fn remove_reservation(&mut self, id: ReservationId) {
        if let Some(reservation) = self.reservations.remove(&id) {
            self.reservation_by_provider.remove(&(reservation.provider, reservation.definition));
        }
    }
}

/// Questions of the Orchestrator.
impl Snapshot {
    /// All entries of the orchestration store.
    pub fn store_entries(&self) -> impl ExactSizeIterator<Item = &Arc<StoreEntry>> {
        self.stores.entries.values()
    }

    /// An entry of the orchestration store by id.
    pub fn store_entry(&self, id: StoreEntryId) -> Option<&Arc<StoreEntry>> {
        self.stores.entries.get(&id)
    }

    /// The entries of a group, by priority.
    pub fn store_entries_of(&self, group: StoreGroup) -> impl Iterator<Item = &Arc<StoreEntry>> {
        self.store_entries_from(group).take_while(move |entry| entry.group == group)
    }

    /// The entries of a consumer, by definition id, interface id, priority.
    pub fn store_entries_of_consumer(&self, consumer: SystemId) -> impl Iterator<Item = &Arc<StoreEntry>> {
        let first = StoreGroup { consumer, definition: DefinitionId(i64::MIN), interface: InterfaceId(i64::MIN) };
        self.store_entries_from(first).take_while(move |entry| entry.group.consumer == consumer)
    }

    fn store_entries_from(&self, group: StoreGroup) -> impl Iterator<Item = &Arc<StoreEntry>> {
        let first = (group, 0, StoreEntryId(i64::MIN));
        self.stores.entry_by_priority.range(first..).map(|key| self.stores.entries.get(&key.2).expect("an indexed entry is there"))
    }

    /// All rules of the flexible store.
    pub fn flexible_rules(&self) -> impl ExactSizeIterator<Item = &Arc<FlexibleRule>> {
        self.stores.flexible_rules.values()
    }

    /// A rule of the flexible store by id.
    pub fn flexible_rule(&self, id: FlexibleRuleId) -> Option<&Arc<FlexibleRule>> {
        self.stores.flexible_rules.get(&id)
    }

    /// The rules of the flexible store for a service definition.
    pub fn flexible_rules_for(&self, definition: &ServiceDefinition) -> impl Iterator<Item = &Arc<FlexibleRule>> {
        let first = (definition.clone(), FlexibleRuleId(i64::MIN));
        let last = (definition.clone(), FlexibleRuleId(i64::MAX));
        self.stores.flexible_rule_by_definition.range(first..=last).map(|key| self.flexible_rule(key.1).expect("an indexed rule is there"))
    }

    /// The reservations that count at this time.
    pub fn reservations(&self, now: UtcTime) -> impl Iterator<Item = &Arc<Reservation>> {
        self.stores.reservations.values().filter(move |reservation| reservation.reserved_to > now)
    }

    /// Whether any reservation counts for nothing any more.
    pub fn has_expired_reservations(&self, now: UtcTime) -> bool {
        self.stores.reservations.values().any(|reservation| reservation.reserved_to <= now)
    }

    /// The reservation of a provider's service, if it counts at this time.
    pub fn reservation_of(&self, provider: SystemId, definition: DefinitionId, now: UtcTime) -> Option<&Arc<Reservation>> {
        let id = self.stores.reservation_by_provider.get(&(provider, definition))?;
        self.stores.reservations.get(id).filter(|reservation| reservation.reserved_to > now)
    }
}
