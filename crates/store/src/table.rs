//! The tables that the snapshot holds: how their rows are read, all of them at the start, and one when it has changed.

use std::collections::{BTreeMap, BTreeSet};

use bodkin_arrowhead::{
    record::*,
    snapshot::{Change, Snapshot},
};

use crate::{
    database::{Database, DatabaseResult, Row},
    {cloud, flexible_store, load, orchestrator_store, relay, reservation},
};

/// Rows that one query reads by their ids.
const ROWS_READ_MAX: usize = 1000;

/// A table, and how a row of it becomes a change of the snapshot.
pub(crate) struct Table {
    pub name: &'static str,
    /// Its columns as `read` takes them; the first one is the id.
    pub columns: &'static str,
    /// Rows of another table that are part of a row.
    pub members: Option<Members>,
    /// Makes a row, with its members in ascending order, the change that puts it into a snapshot.
    pub read: fn(&Row<'_>, Vec<i64>) -> DatabaseResult<Change>,
}

/// A table that joins ids to a row.
pub(crate) struct Members {
    /// The joining table.
    pub table: &'static str,
    /// Its column with the row's id.
    pub row: &'static str,
    /// Its column with the joined id.
    pub member: &'static str,
}

/// Which table; its number is the one on the replica link (`docs/formats/replica-link.md`), where 14 is a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Kind {
    System = 1,
    Definition = 2,
    Interface = 3,
    Entry = 4,
    Rule = 5,
    EventType = 6,
    Subscription = 7,
    Cloud = 8,
    InterCloudRule = 9,
    ForeignSystem = 10,
    StoreEntry = 11,
    FlexibleRule = 12,
    Reservation = 13,
    Relay = 15,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::System,
        Self::Definition,
        Self::Interface,
        Self::Entry,
        Self::Rule,
        Self::EventType,
        Self::Subscription,
        Self::Cloud,
        Self::InterCloudRule,
        Self::ForeignSystem,
        Self::StoreEntry,
        Self::FlexibleRule,
        Self::Reservation,
        Self::Relay,
    ];

    /// The kind of a number; `None` for one of a newer Bodkin.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Which row a change is about.
    pub fn of(change: &Change) -> (Self, i64) {
        match change {
            Change::System(row) => (Self::System, row.id.0),
            Change::SystemRemoved(id) => (Self::System, id.0),
            Change::Definition(row) => (Self::Definition, row.id.0),
            Change::DefinitionRemoved(id) => (Self::Definition, id.0),
            Change::Interface(row) => (Self::Interface, row.id.0),
            Change::InterfaceRemoved(id) => (Self::Interface, id.0),
            Change::Entry(row) => (Self::Entry, row.id.0),
            Change::EntryRemoved(id) => (Self::Entry, id.0),
            Change::Rule(row) => (Self::Rule, row.id.0),
            Change::RuleRemoved(id) => (Self::Rule, id.0),
            Change::EventType(row) => (Self::EventType, row.id.0),
            Change::Subscription(row) => (Self::Subscription, row.id.0),
            Change::SubscriptionRemoved(id) => (Self::Subscription, id.0),
            Change::Cloud(row) => (Self::Cloud, row.id.0),
            Change::CloudRemoved(id) => (Self::Cloud, id.0),
            Change::Relay(row) => (Self::Relay, row.id.0),
            Change::RelayRemoved(id) => (Self::Relay, id.0),
            Change::InterCloudRule(row) => (Self::InterCloudRule, row.id.0),
            Change::InterCloudRuleRemoved(id) => (Self::InterCloudRule, id.0),
            Change::ForeignSystem(row) => (Self::ForeignSystem, row.id.0),
            Change::StoreEntry(row) => (Self::StoreEntry, row.id.0),
            Change::StoreEntryRemoved(id) => (Self::StoreEntry, id.0),
            Change::FlexibleRule(row) => (Self::FlexibleRule, row.id.0),
            Change::FlexibleRuleRemoved(id) => (Self::FlexibleRule, id.0),
            Change::Reservation(row) => (Self::Reservation, row.id.0),
            Change::ReservationRemoved(id) => (Self::Reservation, id.0),
        }
    }

    /// That a row is gone; `None` of a kind whose rows only go with the one that they belong to, or never.
    fn removed(self, id: i64) -> Option<Change> {
        match self {
            Self::System => Some(Change::SystemRemoved(SystemId(id))),
            Self::Definition => Some(Change::DefinitionRemoved(DefinitionId(id))),
            Self::Interface => Some(Change::InterfaceRemoved(InterfaceId(id))),
            Self::Entry => Some(Change::EntryRemoved(EntryId(id))),
            Self::Rule => Some(Change::RuleRemoved(RuleId(id))),
            Self::Subscription => Some(Change::SubscriptionRemoved(SubscriptionId(id))),
            Self::Cloud => Some(Change::CloudRemoved(CloudId(id))),
            Self::Relay => Some(Change::RelayRemoved(RelayId(id))),
            Self::InterCloudRule => Some(Change::InterCloudRuleRemoved(InterCloudRuleId(id))),
            Self::StoreEntry => Some(Change::StoreEntryRemoved(StoreEntryId(id))),
            Self::FlexibleRule => Some(Change::FlexibleRuleRemoved(FlexibleRuleId(id))),
            Self::Reservation => Some(Change::ReservationRemoved(ReservationId(id))),
            Self::EventType | Self::ForeignSystem => None,
        }
    }

    pub(crate) fn table(self) -> &'static Table {
        match self {
            Self::System => &load::SYSTEMS,
            Self::Definition => &load::DEFINITIONS,
            Self::Interface => &load::INTERFACES,
            Self::Entry => &load::ENTRIES,
            Self::Rule => &load::RULES,
            Self::EventType => &load::EVENT_TYPES,
            Self::Subscription => &load::SUBSCRIPTIONS,
            Self::Cloud => &cloud::CLOUDS,
            Self::Relay => &relay::RELAYS,
            Self::InterCloudRule => &cloud::RULES,
            Self::ForeignSystem => &cloud::FOREIGN_SYSTEMS,
            Self::StoreEntry => &orchestrator_store::ENTRIES,
            Self::FlexibleRule => &flexible_store::RULES,
            Self::Reservation => &reservation::RESERVATIONS,
        }
    }

    /// Takes every row into a snapshot.
    pub fn read_all(self, database: Database<'_>, snapshot: &mut Snapshot) -> DatabaseResult<()> {
        let Table { name, columns, members, read } = self.table();
        let mut joined = members.as_ref().map(|members| members.all(database)).transpose()?.unwrap_or_default();
        database.each_once(&format!("SELECT {columns} FROM {name} ORDER BY id"), |row| {
            snapshot.apply(read(row, joined.remove(&row.get(0)?).unwrap_or_default())?);
            Ok(())
        })
    }

    /// What rows are now: those that are gone, and those that are there.
    pub fn read_some(
        self,
        database: Database<'_>,
        ids: &BTreeSet<i64>,
        gone: &mut Vec<Change>,
        there: &mut Vec<Change>,
    ) -> DatabaseResult<()> {
        let Table { name, columns, members, read } = self.table();
        let ids: Vec<i64> = ids.iter().copied().collect();
        for some in ids.chunks(ROWS_READ_MAX) {
            let list = some.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            let mut joined = members.as_ref().map(|members| members.of_some(database, &list)).transpose()?.unwrap_or_default();
            let mut missing: BTreeSet<i64> = some.iter().copied().collect();
            database.each_once(&format!("SELECT {columns} FROM {name} WHERE id IN ({list})"), |row| {
                let id = row.get(0)?;
                missing.remove(&id);
                there.push(read(row, joined.remove(&id).unwrap_or_default())?);
                Ok(())
            })?;
            gone.extend(missing.into_iter().filter_map(|id| self.removed(id)));
        }
        Ok(())
    }

    /// What a row is now: in a snapshot, or gone. `None` where nothing is to be done: what it belonged to has taken it along.
    pub fn read_one(self, database: Database<'_>, id: i64) -> DatabaseResult<Option<Change>> {
        let Table { name, columns, members, read } = self.table();
        let joined = members.as_ref().map(|members| members.of(database, id)).transpose()?.unwrap_or_default();
        let change = database.row(&format!("SELECT {columns} FROM {name} WHERE id = ?1"), [id], None, |row| read(row, joined))?;
        Ok(change.or_else(|| self.removed(id)))
    }
}

impl Members {
    /// The members of every row.
    fn all(&self, database: Database<'_>) -> DatabaseResult<BTreeMap<i64, Vec<i64>>> {
        self.each(database, "")
    }

    /// The members of some rows.
    fn of_some(&self, database: Database<'_>, rows: &str) -> DatabaseResult<BTreeMap<i64, Vec<i64>>> {
        self.each(database, &format!("WHERE {} IN ({rows})", self.row))
    }

    fn each(&self, database: Database<'_>, which: &str) -> DatabaseResult<BTreeMap<i64, Vec<i64>>> {
        let Self { table, row, member } = self;
        let mut all: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        database.each_once(&format!("SELECT {row}, {member} FROM {table} {which} ORDER BY 1, 2"), |row| {
            all.entry(row.get(0)?).or_default().push(row.get(1)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// The members of a row.
    fn of(&self, database: Database<'_>, id: i64) -> DatabaseResult<Vec<i64>> {
        let Self { table, row, member } = self;
        database.rows(&format!("SELECT {member} FROM {table} WHERE {row} = ?1 ORDER BY 1"), [id], None, |row| row.get(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kinds_number_finds_it() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_number(kind as u8), Some(kind));
        }
        assert_eq!([0, 14, 16].map(Kind::of_number), [None; 3]);
    }
}
