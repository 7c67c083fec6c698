//! Rows and bytes that each system has registered itself.
//!
//! An owner is the name of a system. Its rows are its systems, their entries, and their subscriptions.

use std::ops::{Add, Sub};

use imbl::OrdMap;

use super::{Change, Snapshot};
use crate::{
    metadata::Metadata,
    name::SystemName,
    record::{Entry, Subscription, System, SystemId},
};

/// Bytes of a row besides its texts.
const ROW_BYTES: u64 = 128;

/// Rows and bytes of an owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerUse {
    /// Rows of systems, entries, and subscriptions.
    pub rows: u64,
    /// Bytes of the texts of these rows, and 128 for each row.
    pub bytes: u64,
}

impl OwnerUse {
    fn of_row(text_bytes: usize) -> Self {
        Self { rows: 1, bytes: ROW_BYTES + text_bytes as u64 }
    }

    fn of_system(system: &System) -> Self {
        let info = system.authentication_info.as_ref().map_or(0, |info| info.len());
        Self::of_row(system.system_name.as_str().len() + system.address.as_str().len() + info + metadata_bytes(system.metadata.as_ref()))
    }

    fn of_entry(entry: &Entry) -> Self {
        Self::of_row(entry.service_uri.len() + metadata_bytes(entry.metadata.as_ref()))
    }

    fn of_subscription(subscription: &Subscription) -> Self {
        let filters = [&subscription.filter, &subscription.payload_filter].map(|filter| metadata_bytes(filter.as_ref()));
        let sources = subscription.sources.as_ref().map_or(0, |sources| sources.len() * size_of::<SystemId>());
        Self::of_row(subscription.notify_uri.len() + filters.iter().sum::<usize>() + sources)
    }
}

impl Add for OwnerUse {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, bytes: self.bytes + other.bytes }
    }
}

impl Sub for OwnerUse {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { rows: self.rows - other.rows, bytes: self.bytes - other.bytes }
    }
}

fn metadata_bytes(metadata: Option<&Metadata>) -> usize {
    metadata.map_or(0, |metadata| metadata.pairs().iter().map(|(key, value)| key.len() + value.len()).sum())
}

/// Rows and bytes of all owners.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Owners {
    /// By system. Rows of a system may come before the system itself.
    systems: OrdMap<SystemId, OwnerUse>,
    /// By name; the sum of its systems.
    owners: OrdMap<SystemName, OwnerUse>,
}

impl Owners {
    /// Counts a system, in the place of the former one with its id.
    pub fn put_system(&mut self, system: &System, former: Option<&System>) {
        if let Some(former) = former {
            self.remove_system(former);
        }
        change(&mut self.systems, &system.id, |used| used + OwnerUse::of_system(system));
        let used = self.systems[&system.id];
        change(&mut self.owners, &system.system_name, |all| all + used);
    }

    /// Takes a system away. Rows of it that are taken away later count for no owner.
    pub fn remove_system(&mut self, system: &System) {
        let used = self.systems[&system.id];
        change(&mut self.owners, &system.system_name, |all| all - used);
        change(&mut self.systems, &system.id, |used| used - OwnerUse::of_system(system));
    }

    fn put(&mut self, id: SystemId, owner: Option<&SystemName>, row: OwnerUse) {
        change(&mut self.systems, &id, |used| used + row);
        owner.into_iter().for_each(|owner| change(&mut self.owners, owner, |all| all + row));
    }

    fn remove(&mut self, id: SystemId, owner: Option<&SystemName>, row: OwnerUse) {
        change(&mut self.systems, &id, |used| used - row);
        owner.into_iter().for_each(|owner| change(&mut self.owners, owner, |all| all - row));
    }
}

/// Changes a value; zero is no row of the map.
fn change<K: Clone + Ord>(map: &mut OrdMap<K, OwnerUse>, key: &K, change: impl FnOnce(OwnerUse) -> OwnerUse) {
    match change(map.get(key).copied().unwrap_or_default()) {
        OwnerUse { rows: 0, .. } => drop(map.remove(key)),
        used => drop(map.insert(key.clone(), used)),
    }
}

impl Snapshot {
    /// Returns the rows and bytes of the systems of a name.
    pub fn owner_use(&self, owner: &SystemName) -> OwnerUse {
        self.owners.owners.get(owner).copied().unwrap_or_default()
    }

    pub(super) fn count_entry(&mut self, entry: &Entry, is_there: bool) {
        self.count(entry.provider, OwnerUse::of_entry(entry), is_there);
    }

    pub(super) fn count_subscription(&mut self, subscription: &Subscription, is_there: bool) {
        self.count(subscription.subscriber, OwnerUse::of_subscription(subscription), is_there);
    }

    fn count(&mut self, id: SystemId, row: OwnerUse, is_there: bool) {
        let owner = self.systems.get(id).map(|system| &system.system_name);
        if is_there { self.owners.put(id, owner, row) } else { self.owners.remove(id, owner, row) }
    }

    /// Returns the owners that `changes` would give more rows or bytes, with what they would use then.
    pub fn growth(&self, changes: &[Change]) -> Vec<(SystemName, OwnerUse)> {
        let mut after = self.clone();
        let owners = changes.iter().filter_map(|change| {
            after.apply(change.clone());
            match change {
                Change::System(system) => Some(system.system_name.clone()),
                Change::Entry(entry) => Some(after.system(entry.provider)?.system_name.clone()),
                Change::Subscription(subscription) => Some(after.system(subscription.subscriber)?.system_name.clone()),
                _ => None,
            }
        });
        let mut owners: Vec<SystemName> = owners.collect();
        owners.sort();
        owners.dedup();
        let used = owners.into_iter().map(|owner| (after.owner_use(&owner), owner));
        let grown = used.filter(|(used, owner)| {
            let before = self.owner_use(owner);
            used.rows > before.rows || used.bytes > before.bytes
        });
        grown.map(|(used, owner)| (owner, used)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        address::Address,
        name::{NamingRules, SystemName},
        record::{DefinitionId, EntryId, Security, Timestamps},
        utc::UtcTime,
    };

    const NAMES: [&str; 2] = ["pump", "valve"];

    fn timestamps() -> Timestamps {
        let now = UtcTime::from_unix_seconds(0);
        Timestamps { created_at: now, updated_at: now }
    }

    fn system(id: i64, name: usize, info: usize) -> Change {
        Change::System(Arc::new(System {
            id: SystemId(id),
            system_name: SystemName::from_stored(NAMES[name]),
            address: Address::parse("10.0.0.1", &NamingRules::default()).unwrap(),
            port: u16::try_from(id).unwrap(),
            authentication_info: Some("x".repeat(info).into()),
            metadata: None,
            timestamps: timestamps(),
        }))
    }

    fn entry(id: i64, provider: i64, uri: usize) -> Change {
        Change::Entry(Arc::new(Entry {
            id: EntryId(id),
            definition: DefinitionId(1),
            provider: SystemId(provider),
            service_uri: format!("{id}{}", "x".repeat(uri)).into(),
            end_of_validity: None,
            secure: Security::NotSecure,
            metadata: None,
            version: 1,
            interfaces: Vec::new(),
            timestamps: timestamps(),
        }))
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (1..4i64, 0..2usize, 0..9usize).prop_map(|(id, name, info)| system(id, name, info)),
            (1..9i64, 1..4i64, 0..9usize).prop_map(|(id, provider, uri)| entry(id, provider, uri)),
            (1..4i64).prop_map(|id| Change::SystemRemoved(SystemId(id))),
            (1..9i64).prop_map(|id| Change::EntryRemoved(EntryId(id))),
        ]
    }

    /// Counts the rows of an owner one by one.
    fn counted(snapshot: &Snapshot, owner: &SystemName) -> OwnerUse {
        let systems = snapshot.systems_with(owner).map(|system| OwnerUse::of_system(system));
        let entries =
            snapshot.systems_with(owner).flat_map(|system| snapshot.entries_of_provider(system.id)).map(|entry| OwnerUse::of_entry(entry));
        systems.chain(entries).fold(OwnerUse::default(), Add::add)
    }

    proptest! {
        /// Entries whose system is not there are refused by the database; here they are left out.
        #[test]
        fn use_of_an_owner_is_the_sum_of_its_rows(changes in prop::collection::vec(change(), 0..60)) {
            let mut snapshot = Snapshot::default();
            let owners = NAMES.map(SystemName::from_stored);
            for change in changes {
                if let Change::Entry(entry) = &change && snapshot.system(entry.provider).is_none() {
                    continue;
                }
                let before = owners.clone().map(|owner| snapshot.owner_use(&owner));
                let growth = snapshot.growth(std::slice::from_ref(&change));
                snapshot.apply(change);
                for (owner, before) in owners.iter().zip(before) {
                    let used = snapshot.owner_use(owner);
                    prop_assert_eq!(used, counted(&snapshot, owner));
                    let has_grown = growth.iter().find(|(grown, _)| grown == owner);
                    prop_assert!(has_grown.is_none_or(|(_, after)| *after == used), "{growth:?}");
                    prop_assert!(has_grown.is_some() || used.rows <= before.rows, "{growth:?}");
                }
            }
        }
    }
}
