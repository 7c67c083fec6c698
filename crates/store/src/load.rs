//! The snapshot of what the database holds, read once at the start; and the tables of systems, services, rules and subscriptions.

use std::{collections::BTreeMap, sync::Arc};

use bodkin_arrowhead::{
    address::Address,
    event_filter::Severity,
    metadata::Metadata,
    name::{EventType, InterfaceName, ServiceDefinition, SystemName},
    record::*,
    shared_event::Share,
    snapshot::{Change, Snapshot},
};

use crate::{
    database::{Database, DatabaseError, DatabaseResult, Row},
    draft::{time, timestamps},
    table::{Kind, Members, Table},
};

/// Reads every table.
pub(crate) fn load(database: Database<'_>) -> DatabaseResult<Snapshot> {
    let mut snapshot = Snapshot::default();
    for kind in Kind::ALL {
        kind.read_all(database, &mut snapshot)?;
    }
    Ok(snapshot)
}

pub(crate) const SYSTEMS: Table = Table {
    name: "system_",
    columns: "id, system_name, address, port, authentication_info, metadata, created_at, updated_at",
    members: None,
    read: system,
};

pub(crate) const DEFINITIONS: Table =
    Table { name: "service_definition", columns: "id, service_definition, created_at, updated_at", members: None, read: definition };

pub(crate) const INTERFACES: Table =
    Table { name: "service_interface", columns: "id, interface_name, created_at, updated_at", members: None, read: interface };

pub(crate) const ENTRIES: Table = Table {
    name: "service_registry",
    columns: "id, service_id, system_id, service_uri, end_of_validity, secure, metadata, version, created_at, updated_at",
    members: Some(Members { table: "service_registry_interface_connection", row: "service_registry_id", member: "interface_id" }),
    read: entry,
};

pub(crate) const RULES: Table = Table {
    name: "authorization_intra_cloud",
    columns: "id, consumer_system_id, provider_system_id, service_id, created_at, updated_at",
    members: Some(Members {
        table: "authorization_intra_cloud_interface_connection",
        row: "authorization_intra_cloud_id",
        member: "interface_id",
    }),
    read: rule,
};

pub(crate) const EVENT_TYPES: Table =
    Table { name: "event_type", columns: "id, event_type_name, created_at, updated_at", members: None, read: event_type };

pub(crate) const SUBSCRIPTIONS: Table = Table {
    name: "subscription",
    columns: "id, event_type_id, system_id, notify_uri, filter_meta_data, match_meta_data, start_date, end_date,
        only_predefined_publishers, created_at, updated_at, min_severity, payload_filter,
        deadline_us, loss_tolerance",
    members: Some(Members { table: "subscription_publisher_connection", row: "subscription_id", member: "system_id" }),
    read: subscription,
};

pub(crate) fn text(row: &Row<'_>, column: usize) -> DatabaseResult<String> {
    row.get(column)
}

/// A metadata column: a JSON object of texts, or null.
pub(crate) fn metadata(row: &Row<'_>, column: usize) -> DatabaseResult<Option<Metadata>> {
    let Some(json) = row.get::<Option<String>>(column)? else { return Ok(None) };
    let pairs: BTreeMap<String, String> = serde_json::from_str(&json).map_err(|error| DatabaseError::column(column, error))?;
    Ok(Some(pairs.into()))
}

/// A security column: the wire's spelling.
pub(crate) fn security(row: &Row<'_>, column: usize) -> DatabaseResult<Security> {
    let text = text(row, column)?;
    Security::parse(&text).ok_or_else(|| row.unexpected(column, &text))
}

fn system(row: &Row<'_>, _: Vec<i64>) -> DatabaseResult<Change> {
    Ok(Change::System(Arc::new(System {
        id: SystemId(row.get(0)?),
        system_name: SystemName::from_stored(&text(row, 1)?),
        address: Address::from_stored(&text(row, 2)?),
        port: row.get(3)?,
        authentication_info: row.get::<Option<String>>(4)?.map(Arc::from),
        metadata: metadata(row, 5)?,
        timestamps: timestamps(row, 6)?,
    })))
}

fn definition(row: &Row<'_>, _: Vec<i64>) -> DatabaseResult<Change> {
    let service_definition = ServiceDefinition::from_stored(&text(row, 1)?);
    Ok(Change::Definition(Arc::new(Definition { id: DefinitionId(row.get(0)?), service_definition, timestamps: timestamps(row, 2)? })))
}

fn interface(row: &Row<'_>, _: Vec<i64>) -> DatabaseResult<Change> {
    let interface_name = InterfaceName::from_stored(&text(row, 1)?);
    Ok(Change::Interface(Arc::new(Interface { id: InterfaceId(row.get(0)?), interface_name, timestamps: timestamps(row, 2)? })))
}

fn entry(row: &Row<'_>, interfaces: Vec<i64>) -> DatabaseResult<Change> {
    let secure = security(row, 5)?;
    Ok(Change::Entry(Arc::new(Entry {
        id: EntryId(row.get(0)?),
        definition: DefinitionId(row.get(1)?),
        provider: SystemId(row.get(2)?),
        service_uri: text(row, 3)?.into(),
        end_of_validity: row.get::<Option<i64>>(4)?.map(time),
        secure,
        metadata: metadata(row, 6)?,
        version: row.get(7)?,
        interfaces: interfaces.into_iter().map(InterfaceId).collect(),
        timestamps: timestamps(row, 8)?,
    })))
}

fn rule(row: &Row<'_>, interfaces: Vec<i64>) -> DatabaseResult<Change> {
    Ok(Change::Rule(Arc::new(Rule {
        id: RuleId(row.get(0)?),
        consumer: SystemId(row.get(1)?),
        provider: SystemId(row.get(2)?),
        definition: DefinitionId(row.get(3)?),
        interfaces: interfaces.into_iter().map(InterfaceId).collect(),
        timestamps: timestamps(row, 4)?,
    })))
}

fn event_type(row: &Row<'_>, _: Vec<i64>) -> DatabaseResult<Change> {
    let event_type_name = EventType::from_stored(&text(row, 1)?);
    Ok(Change::EventType(Arc::new(EventTypeRow { id: EventTypeId(row.get(0)?), event_type_name, timestamps: timestamps(row, 2)? })))
}

fn subscription(row: &Row<'_>, sources: Vec<i64>) -> DatabaseResult<Change> {
    let filter = metadata(row, 4)?;
    let match_metadata = row.get(5)?;
    let min_severity = row.get::<Option<String>>(11)?;
    let min_severity = min_severity.map(|text| Severity::parse(&text).ok_or_else(|| row.unexpected(11, &text))).transpose()?;
    let payload_filter = metadata(row, 12)?;
    let matched = Subscription::matched(filter.as_ref(), match_metadata, min_severity, payload_filter.as_ref());
    let matched = matched.map_err(|error| DatabaseError::column(12, error))?;
    let (named, notify_uri): (bool, String) = (row.get(8)?, text(row, 3)?);
    Ok(Change::Subscription(Arc::new(Subscription {
        id: SubscriptionId(row.get(0)?),
        event_type: EventTypeId(row.get(1)?),
        subscriber: SystemId(row.get(2)?),
        share: Share::of_notify_uri(&notify_uri),
        notify_uri: notify_uri.into(),
        filter,
        match_metadata,
        min_severity,
        payload_filter,
        matched,
        bounds: SubscriptionBounds { deadline_us: row.get(13)?, loss_tolerance: row.get(14)? },
        start_date: row.get::<Option<i64>>(6)?.map(time),
        end_date: row.get::<Option<i64>>(7)?.map(time),
        sources: named.then(|| sources.into_iter().map(SystemId).collect()),
        timestamps: timestamps(row, 9)?,
    })))
}
