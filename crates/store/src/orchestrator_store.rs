//! Operations of the orchestration store. Priorities in a group are 1 to the number of its entries, whatever is done.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use bodkin_arrowhead::{
    orchestrator::store::{Reordering, StoreInsertion},
    record::*,
    snapshot::Change,
};

use crate::{
    cloud::FoundCloud,
    database::{DatabaseResult, Row, params},
    draft::{Draft, OperationError, timestamps},
    load::metadata,
    service_registry::metadata_text,
    table::Table,
};

/// The table. A provider is a bare id: its entries outlive it.
pub(crate) const MIGRATION: &str = "
CREATE TABLE orchestrator_store (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer_system_id INTEGER NOT NULL REFERENCES system_ (id) ON DELETE CASCADE,
    service_id INTEGER NOT NULL REFERENCES service_definition (id) ON DELETE CASCADE,
    service_interface_id INTEGER NOT NULL REFERENCES service_interface (id) ON DELETE CASCADE,
    foreign_ INTEGER NOT NULL,
    provider_system_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attribute TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (consumer_system_id, service_id, service_interface_id, priority),
    UNIQUE (consumer_system_id, service_id, service_interface_id, provider_system_id, foreign_)
) STRICT;
CREATE INDEX orchestrator_store_service ON orchestrator_store (service_id);
CREATE INDEX orchestrator_store_interface ON orchestrator_store (service_interface_id);
";

/// The entries of a group in their order, with the priority each has had before; new ones have had none.
type Order = Vec<(StoreEntryId, Option<u32>)>;

impl Draft<'_> {
    /// Makes entries and gives their ids, in the order they came. One that refers to nothing or is there already is left out, as upstream does.
    pub fn insert_store_entries(&mut self, insertions: &[StoreInsertion]) -> Result<Vec<StoreEntryId>, OperationError> {
        let mut made = Vec::with_capacity(insertions.len());
        let mut orders: BTreeMap<StoreGroup, Order> = BTreeMap::new();
        for insertion in insertions {
            let Some((group, provider)) = self.resolve(insertion)? else { continue };
            let order = match orders.entry(group) {
                Entry::Occupied(order) => order.into_mut(),
                Entry::Vacant(place) => place.insert(self.read_order(group)?),
            };
            let Some(id) = self.append(group, provider, order.len() + 1, insertion)? else { continue };
            let place = usize::try_from(insertion.priority).unwrap_or(usize::MAX) - 1;
            order.insert(place.min(order.len()), (id, None));
            made.push(id);
        }
        // Once a group, so that a list of entries that all want to be first costs one pass.
        for (group, order) in orders {
            self.write_order(group, &order)?;
        }
        Ok(made)
    }

    /// Removes an entry; those behind it move up.
    pub fn remove_store_entry(&mut self, id: StoreEntryId) -> Result<(), OperationError> {
        let sql = "DELETE FROM orchestrator_store WHERE id = ?1 RETURNING consumer_system_id, service_id, service_interface_id";
        let group = self.row(sql, [id.0], |row| group(row, 0))?.ok_or_else(|| missing(id))?;
        self.changed(Change::StoreEntryRemoved(id));
        let order = self.read_order(group)?;
        self.write_order(group, &order)
    }

    /// Gives all entries of a group a new order.
    pub fn reorder_store_entries(&mut self, Reordering(ids): &Reordering) -> Result<(), OperationError> {
        let mut groups = Vec::with_capacity(ids.len());
        for id in ids {
            let sql = "SELECT consumer_system_id, service_id, service_interface_id FROM orchestrator_store WHERE id = ?1";
            groups.push(self.row(sql, [id.0], |row| group(row, 0))?.ok_or_else(|| missing(*id))?);
        }
        groups.dedup();
        let [group] = groups[..] else {
            return Err(OperationError::invalid("The entries have not all the same consumer, service definition and interface."));
        };
        let former: BTreeMap<StoreEntryId, Option<u32>> = self.read_order(group)?.into_iter().collect();
        if former.len() != ids.len() {
            let told =
                format!("All {} entries of the consumer, service definition and interface must be named, not {}.", former.len(), ids.len());
            return Err(OperationError::invalid(told));
        }
        let order: Order = ids.iter().map(|id| (*id, former[id])).collect();
        self.write_order(group, &order)
    }

    /// The rows an insertion names; `None` if one of them is missing. Those of another cloud are made.
    fn resolve(&mut self, insertion: &StoreInsertion) -> Result<Option<(StoreGroup, StoreProvider)>, OperationError> {
        let Some(consumer) = self.id("SELECT id FROM system_ WHERE id = ?1", [insertion.consumer.0])?.map(SystemId) else {
            return Ok(None);
        };
        let cloud = match &insertion.cloud {
            None => Some(FoundCloud::Own),
            Some((operator, name)) => self.find_cloud(operator, name)?,
        };
        let (definition, interface, provider) = match cloud {
            None => return Ok(None),
            Some(FoundCloud::Own) => {
                let definition = "SELECT id FROM service_definition WHERE service_definition = ?1";
                let definition = self.id(definition, [insertion.definition.as_str()])?.map(DefinitionId);
                let interface = self.id("SELECT id FROM service_interface WHERE interface_name = ?1", [insertion.interface.as_str()])?;
                let provider = self.find_system(&insertion.provider)?;
                let (Some(definition), Some(interface), Some(provider)) = (definition, interface, provider) else { return Ok(None) };
                (definition, InterfaceId(interface), StoreProvider::Local(provider))
            }
            Some(FoundCloud::Foreign(cloud)) => {
                let (info, metadata) = (insertion.authentication_info.as_ref(), insertion.metadata.as_ref());
                let provider = self.find_or_make_foreign_system(cloud, &insertion.provider, info, metadata)?;
                let definition = self.find_or_make_definition(&insertion.definition)?;
                (definition, self.find_or_make_interface(&insertion.interface)?, StoreProvider::Foreign(provider))
            }
        };
        Ok(Some((StoreGroup { consumer, definition, interface }, provider)))
    }

    /// Makes an entry at the end of its group; `None` if the group has one of this provider.
    fn append(
        &mut self,
        group: StoreGroup,
        provider: StoreProvider,
        priority: usize,
        insertion: &StoreInsertion,
    ) -> Result<Option<StoreEntryId>, OperationError> {
        let (foreign, provider) = match provider {
            StoreProvider::Local(id) => (false, id.0),
            StoreProvider::Foreign(id) => (true, id.0),
        };
        let id = self.id(
            "INSERT INTO orchestrator_store (consumer_system_id, service_id, service_interface_id, foreign_, provider_system_id, priority,
                 attribute, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) ON CONFLICT DO NOTHING RETURNING id",
            params![
                group.consumer.0,
                group.definition.0,
                group.interface.0,
                foreign,
                provider,
                priority as i64,
                metadata_text(insertion.attribute.as_ref()),
                self.now_seconds()
            ],
        )?;
        Ok(id.map(StoreEntryId))
    }

    fn read_order(&self, group: StoreGroup) -> Result<Order, OperationError> {
        self.rows(
            "SELECT id, priority FROM orchestrator_store
             WHERE consumer_system_id = ?1 AND service_id = ?2 AND service_interface_id = ?3 ORDER BY priority",
            [group.consumer.0, group.definition.0, group.interface.0],
            |row| Ok((StoreEntryId(row.get(0)?), Some(row.get(1)?))),
        )
    }

    /// Numbers a group's entries in their order, and notes those whose number is another than before.
    ///
    /// Two priorities of a group are never equal, not even in between: what moves goes to the negative numbers first.
    fn write_order(&mut self, group: StoreGroup, order: &Order) -> Result<(), OperationError> {
        for (priority, (id, former)) in (1u32..).zip(order) {
            if *former != Some(priority) {
                let sql = "UPDATE orchestrator_store SET priority = ?2, updated_at = ?3 WHERE id = ?1";
                self.run(sql, [id.0, -i64::from(priority), self.now_seconds()])?;
            }
        }
        let moved = self.rows(
            "UPDATE orchestrator_store SET priority = -priority
             WHERE consumer_system_id = ?1 AND service_id = ?2 AND service_interface_id = ?3 AND priority < 0
             RETURNING id, consumer_system_id, service_id, service_interface_id, foreign_, provider_system_id, priority, attribute,
                 created_at, updated_at",
            [group.consumer.0, group.definition.0, group.interface.0],
            entry,
        )?;
        moved.into_iter().for_each(|change| self.changed(change));
        Ok(())
    }
}

fn missing(id: StoreEntryId) -> OperationError {
    OperationError::invalid(format!("Orchestration store entry with id '{id}' does not exist."))
}

pub(crate) const ENTRIES: Table = Table {
    name: "orchestrator_store",
    columns: "id, consumer_system_id, service_id, service_interface_id, foreign_, provider_system_id, priority, attribute,
        created_at, updated_at",
    members: None,
    read: |row, _| entry(row),
};

fn group(row: &Row<'_>, column: usize) -> DatabaseResult<StoreGroup> {
    Ok(StoreGroup {
        consumer: SystemId(row.get(column)?),
        definition: DefinitionId(row.get(column + 1)?),
        interface: InterfaceId(row.get(column + 2)?),
    })
}

fn entry(row: &Row<'_>) -> DatabaseResult<Change> {
    let provider = row.get(5)?;
    Ok(Change::StoreEntry(Arc::new(StoreEntry {
        id: StoreEntryId(row.get(0)?),
        group: group(row, 1)?,
        provider: if row.get(4)? { StoreProvider::Foreign(ForeignSystemId(provider)) } else { StoreProvider::Local(SystemId(provider)) },
        priority: row.get(6)?,
        attribute: metadata(row, 7)?,
        timestamps: timestamps(row, 8)?,
    })))
}
