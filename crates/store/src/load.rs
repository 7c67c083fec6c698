//! The snapshot of what the database holds, read once at the start.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bodkin_arrowhead::{
    address::Address,
    event_filter::Severity,
    metadata::Metadata,
    name::{EventType, InterfaceName, ServiceDefinition, SystemName},
    record::*,
    snapshot::{Change, Snapshot},
};
use rusqlite::{Connection, Row, types::Type};

use crate::{
    cloud,
    draft::{time, timestamps},
    flexible_store, orchestrator_store, reservation,
};

/// Reads every table.
pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Snapshot> {
    let mut snapshot = Snapshot::default();
    let mut read = |sql: &str, change: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<Change>| -> rusqlite::Result<()> {
        read_rows(connection, &mut snapshot, sql, change)
    };
    read(SYSTEMS, &mut |row| system(row).map(|system| Change::System(Arc::new(system))))?;
    read("SELECT id, service_definition, created_at, updated_at FROM service_definition ORDER BY id", &mut definition)?;
    read("SELECT id, interface_name, created_at, updated_at FROM service_interface ORDER BY id", &mut interface)?;
    let mut interfaces = groups(connection, "SELECT service_registry_id, interface_id FROM service_registry_interface_connection")?;
    read(ENTRIES, &mut |row| entry(row, &mut interfaces))?;
    let mut interfaces =
        groups(connection, "SELECT authorization_intra_cloud_id, interface_id FROM authorization_intra_cloud_interface_connection")?;
    read(RULES, &mut |row| rule(row, &mut interfaces))?;
    read("SELECT id, event_type_name, created_at, updated_at FROM event_type ORDER BY id", &mut event_type)?;
    let mut sources = groups(connection, "SELECT subscription_id, system_id FROM subscription_publisher_connection")?;
    read(SUBSCRIPTIONS, &mut |row| subscription(row, &mut sources))?;
    cloud::load(connection, &mut snapshot)?;
    orchestrator_store::load(connection, &mut snapshot)?;
    flexible_store::load(connection, &mut snapshot)?;
    reservation::load(connection, &mut snapshot)?;
    Ok(snapshot)
}

/// Takes every row of a query into the snapshot.
pub(crate) fn read_rows(
    connection: &Connection,
    snapshot: &mut Snapshot,
    sql: &str,
    mut change: impl FnMut(&Row<'_>) -> rusqlite::Result<Change>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        snapshot.apply(change(row)?);
    }
    Ok(())
}

const SYSTEMS: &str =
    "SELECT id, system_name, address, port, authentication_info, metadata, created_at, updated_at FROM system_ ORDER BY id";
const ENTRIES: &str = "SELECT id, service_id, system_id, service_uri, end_of_validity, secure, metadata, version, created_at, updated_at
    FROM service_registry ORDER BY id";
const RULES: &str =
    "SELECT id, consumer_system_id, provider_system_id, service_id, created_at, updated_at FROM authorization_intra_cloud ORDER BY id";
const SUBSCRIPTIONS: &str = "SELECT id, event_type_id, system_id, notify_uri, filter_meta_data, match_meta_data, start_date, end_date,
    only_predefined_publishers, created_at, updated_at, min_severity, payload_filter FROM subscription ORDER BY id";

/// Pairs of a table, grouped by the first column.
pub(crate) fn groups(connection: &Connection, sql: &str) -> rusqlite::Result<BTreeMap<i64, Vec<i64>>> {
    let mut groups: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        groups.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(groups)
}

pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    row.get(column)
}

/// A metadata column: a JSON object of texts, or null.
pub(crate) fn metadata(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Metadata>> {
    let Some(json) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    let pairs: BTreeMap<String, String> =
        serde_json::from_str(&json).map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))?;
    Ok(Some(pairs.into()))
}

/// A security column: the wire's spelling.
pub(crate) fn security(row: &Row<'_>, column: usize) -> rusqlite::Result<Security> {
    let text = text(row, column)?;
    Security::parse(&text).ok_or_else(|| rusqlite::Error::InvalidColumnType(column, text, Type::Text))
}

/// A row of [`SYSTEMS`].
fn system(row: &Row<'_>) -> rusqlite::Result<System> {
    Ok(System {
        id: SystemId(row.get(0)?),
        system_name: SystemName::from_stored(&text(row, 1)?),
        address: Address::from_stored(&text(row, 2)?),
        port: row.get(3)?,
        authentication_info: row.get::<_, Option<String>>(4)?.map(Arc::from),
        metadata: metadata(row, 5)?,
        timestamps: timestamps(row, 6)?,
    })
}

fn definition(row: &Row<'_>) -> rusqlite::Result<Change> {
    let service_definition = ServiceDefinition::from_stored(&text(row, 1)?);
    Ok(Change::Definition(Arc::new(Definition { id: DefinitionId(row.get(0)?), service_definition, timestamps: timestamps(row, 2)? })))
}

fn interface(row: &Row<'_>) -> rusqlite::Result<Change> {
    let interface_name = InterfaceName::from_stored(&text(row, 1)?);
    Ok(Change::Interface(Arc::new(Interface { id: InterfaceId(row.get(0)?), interface_name, timestamps: timestamps(row, 2)? })))
}

fn entry(row: &Row<'_>, interfaces: &mut BTreeMap<i64, Vec<i64>>) -> rusqlite::Result<Change> {
    let id = row.get(0)?;
    let secure = security(row, 5)?;
    Ok(Change::Entry(Arc::new(Entry {
        id: EntryId(id),
        definition: DefinitionId(row.get(1)?),
        provider: SystemId(row.get(2)?),
        service_uri: text(row, 3)?.into(),
        end_of_validity: row.get::<_, Option<i64>>(4)?.map(time),
        secure,
        metadata: metadata(row, 6)?,
        version: row.get(7)?,
        interfaces: interfaces.remove(&id).unwrap_or_default().into_iter().map(InterfaceId).collect(),
        timestamps: timestamps(row, 8)?,
    })))
}

fn rule(row: &Row<'_>, interfaces: &mut BTreeMap<i64, Vec<i64>>) -> rusqlite::Result<Change> {
    let id = row.get(0)?;
    Ok(Change::Rule(Arc::new(Rule {
        id: RuleId(id),
        consumer: SystemId(row.get(1)?),
        provider: SystemId(row.get(2)?),
        definition: DefinitionId(row.get(3)?),
        interfaces: interfaces.remove(&id).unwrap_or_default().into_iter().map(InterfaceId).collect(),
        timestamps: timestamps(row, 4)?,
    })))
}

fn event_type(row: &Row<'_>) -> rusqlite::Result<Change> {
    let event_type_name = EventType::from_stored(&text(row, 1)?);
    Ok(Change::EventType(Arc::new(EventTypeRow { id: EventTypeId(row.get(0)?), event_type_name, timestamps: timestamps(row, 2)? })))
}

fn subscription(row: &Row<'_>, sources: &mut BTreeMap<i64, Vec<i64>>) -> rusqlite::Result<Change> {
    let id = row.get(0)?;
    let filter = metadata(row, 4)?;
    let match_metadata = row.get(5)?;
    let min_severity = row.get::<_, Option<String>>(11)?;
    let unknown = |text: String| rusqlite::Error::InvalidColumnType(11, text, Type::Text);
    let min_severity = min_severity.map(|text| Severity::parse(&text).ok_or_else(|| unknown(text))).transpose()?;
    let payload_filter = metadata(row, 12)?;
    let matched = Subscription::matched(filter.as_ref(), match_metadata, min_severity, payload_filter.as_ref());
    let matched = matched.map_err(|error| rusqlite::Error::FromSqlConversionFailure(12, Type::Text, Box::new(error)))?;
    let named: bool = row.get(8)?;
    let sources: BTreeSet<SystemId> = sources.remove(&id).unwrap_or_default().into_iter().map(SystemId).collect();
    Ok(Change::Subscription(Arc::new(Subscription {
        id: SubscriptionId(id),
        event_type: EventTypeId(row.get(1)?),
        subscriber: SystemId(row.get(2)?),
        notify_uri: text(row, 3)?.into(),
        filter,
        match_metadata,
        min_severity,
        payload_filter,
        matched,
        start_date: row.get::<_, Option<i64>>(6)?.map(time),
        end_date: row.get::<_, Option<i64>>(7)?.map(time),
        sources: named.then_some(sources),
        timestamps: timestamps(row, 9)?,
    })))
}
