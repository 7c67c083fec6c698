//! Rows of the Java systems' tables as rows of ours. Names, addresses and paths pass the same rules as in a request; what breaks one is refused with the reason.

use std::collections::BTreeMap;

use bodkin_arrowhead::{
    address::Address,
    event_handler::parse_notify_uri,
    name::{CloudName, EventType, InterfaceName, NamingRules, ServiceDefinition, SystemName},
    record::{RelayType, Security},
    utc::UtcTime,
};
use rusqlite::types::Value;

use super::dump::Row;

/// Longest text of a path, in characters.
const TEXT_LENGTH_MAX: usize = 255;
/// Longest public key, in characters.
const KEY_LENGTH_MAX: usize = 2047;
/// What MySQL keeps where a time was never set.
const NO_TIME: &str = "0000-00-00";

/// A table that is taken over.
pub struct Taken {
    /// Its name, in the dump and here.
    pub table: &'static str,
    /// Puts a row in.
    pub insert: &'static str,
    /// The values of that for a row of the dump, or why it cannot be taken.
    pub values: fn(&Row<'_>) -> Result<Vec<Value>, String>,
}

/// Every table that is taken row by row, those that others refer to first. Ids stay what they were. The orchestration store is not among them: its priorities
/// are numbered anew.
pub const TAKEN: &[Taken] = &[
    Taken {
        table: "service_interface",
        insert: "INSERT INTO service_interface (id, created_at, updated_at, interface_name) VALUES (?1, ?2, ?3, ?4)",
        values: |row| with(row, &[name(row, "interface_name", |text| InterfaceName::parse(text, &rules()).map(|name| name.to_string()))?]),
    },
    Taken {
        table: "service_definition",
        insert: "INSERT INTO service_definition (id, created_at, updated_at, service_definition) VALUES (?1, ?2, ?3, ?4)",
        values: |row| with(row, &[definition(row, "service_definition")?]),
    },
    Taken {
        table: "system_",
        insert: "INSERT INTO system_ (id, created_at, updated_at, system_name, address, port, authentication_info, metadata) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        values: |row| with(row, &[system(row, "system_name")?, address(row)?, port(row)?, key(row)?, metadata(row, "metadata")?]),
    },
    Taken {
        table: "cloud",
        insert: "INSERT INTO cloud (id, created_at, updated_at, operator, name, secure, neighbor, own_cloud, authentication_info)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        values: |row| {
            let part = |column| name(row, column, |text| CloudName::parse(text).map(|name| name.to_string()));
            with(row, &[part("operator")?, part("name")?, flag(row, "secure")?, flag(row, "neighbor")?, flag(row, "own_cloud")?, key(row)?])
        },
    },
    Taken {
        table: "relay",
        insert: "INSERT INTO relay (id, created_at, updated_at, address, port, authentication_info, secure, exclusive, type)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        values: |row| {
            let text = text(row, "type")?;
            let kind = RelayType::parse(text).ok_or_else(|| format!("type '{text}' is no type of a relay"))?;
            with(row, &[address(row)?, port(row)?, key(row)?, flag(row, "secure")?, flag(row, "exclusive")?, kind.as_str().to_owned().into()])
        },
    },
    Taken {
        table: "foreign_system",
        insert: "INSERT INTO foreign_system (id, created_at, updated_at, provider_cloud_id, system_name, address, port, authentication_info, metadata)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        values: |row| {
            let (cloud, system) = (id(row, "provider_cloud_id")?, system(row, "system_name")?);
            with(row, &[cloud, system, address(row)?, port(row)?, key(row)?, metadata(row, "metadata")?])
        },
    },
    Taken {
        table: "event_type",
        insert: "INSERT INTO event_type (id, created_at, updated_at, event_type_name) VALUES (?1, ?2, ?3, ?4)",
        values: |row| with(row, &[name(row, "event_type_name", |text| EventType::parse(text).map(|name| name.to_string()))?]),
    },
    Taken {
        table: "service_registry",
        insert: "INSERT INTO service_registry (id, created_at, updated_at, service_id, system_id, service_uri, end_of_validity, secure, metadata, version)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        values: |row| {
            let told = row.text("secure").unwrap_or("NOT_SECURE");
            let secure = Security::parse(told).ok_or_else(|| format!("secure '{told}' is none of NOT_SECURE, CERTIFICATE and TOKEN"))?;
            let uri = row.text("service_uri").unwrap_or_default();
            longest("service_uri", uri, TEXT_LENGTH_MAX)?;
            let version = number(row.text("version").unwrap_or("1"), "version")?;
            let version = i32::try_from(version).map_err(|_| format!("version {version} is not of 32 bits"))?;
            let (service, system) = (id(row, "service_id")?, id(row, "system_id")?);
            let (end, metadata) = (time(row, "end_of_validity")?, metadata(row, "metadata")?);
            with(row, &[service, system, uri.to_owned().into(), end, secure.as_str().to_owned().into(), metadata, version.into()])
        },
    },
    Taken {
        table: "authorization_intra_cloud",
        insert: "INSERT INTO authorization_intra_cloud (id, created_at, updated_at, consumer_system_id, provider_system_id, service_id)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        values: |row| with(row, &[id(row, "consumer_system_id")?, id(row, "provider_system_id")?, id(row, "service_id")?]),
    },
    Taken {
        table: "authorization_inter_cloud",
        insert: "INSERT INTO authorization_inter_cloud (id, created_at, updated_at, consumer_cloud_id, provider_system_id, service_id)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        values: |row| with(row, &[id(row, "consumer_cloud_id")?, id(row, "provider_system_id")?, id(row, "service_id")?]),
    },
    Taken {
        table: "orchestrator_store_flexible",
        insert: "INSERT INTO orchestrator_store_flexible (id, created_at, updated_at, consumer_system_name, consumer_system_metadata, provider_system_name,
                provider_system_metadata, service_definition_name, service_interface_name, service_metadata, priority)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        values: |row| {
            let optional = |column, read: fn(&Row<'_>, &str) -> Result<Value, String>| {
                if row.text(column).is_none_or(|text| text.trim().is_empty()) { Ok(Value::Null) } else { read(row, column) }
            };
            let interface = |row: &Row<'_>, column: &str| name(row, column, |text| InterfaceName::parse(text, &rules()).map(|name| name.to_string()));
            let priority = number(text(row, "priority")?, "priority")?;
            let priority = i32::try_from(priority).map_err(|_| format!("priority {priority} is not of 32 bits"))?;
            with(
                row,
                &[
                    optional("consumer_system_name", system)?,
                    metadata(row, "consumer_system_metadata")?,
                    optional("provider_system_name", system)?,
                    metadata(row, "provider_system_metadata")?,
                    definition(row, "service_definition_name")?,
                    optional("service_interface_name", interface)?,
                    metadata(row, "service_metadata")?,
                    priority.into(),
                ],
            )
        },
    },
    Taken {
        table: "subscription",
        insert: "INSERT INTO subscription (id, created_at, updated_at, event_type_id, system_id, notify_uri, filter_meta_data, match_meta_data, start_date, end_date,
                only_predefined_publishers)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        values: |row| {
            let uri = parse_notify_uri(text(row, "notify_uri")?).map_err(|error| format!("notify_uri: {}", error.error_message))?;
            let (event_type, subscriber) = (id(row, "event_type_id")?, id(row, "system_id")?);
            let (filter, is_matched) = (metadata(row, "filter_meta_data")?, flag(row, "match_meta_data")?);
            let (start, end, named) = (time(row, "start_date")?, time(row, "end_date")?, flag(row, "only_predefined_publishers")?);
            with(row, &[event_type, subscriber, uri.to_string().into(), filter, is_matched, start, end, named])
        },
    },
];

/// A table of pairs: its name in the dump, how a pair is put in, and the columns of the pair.
pub struct Pairs {
    /// Its name in the dump.
    pub table: &'static str,
    /// Puts a pair in; one that is there stays.
    pub insert: &'static str,
    /// Its columns in the dump.
    pub columns: [&'static str; 2],
}

/// Every table that joins rows of those above.
pub const PAIRS: &[Pairs] = &[
    Pairs {
        table: "service_registry_interface_connection",
        insert: "INSERT INTO service_registry_interface_connection (service_registry_id, interface_id) VALUES (?1, ?2)",
        columns: ["service_registry_id", "interface_id"],
    },
    Pairs {
        table: "authorization_intra_cloud_interface_connection",
        insert: "INSERT INTO authorization_intra_cloud_interface_connection (authorization_intra_cloud_id, interface_id) VALUES (?1, ?2)",
        columns: ["authorization_intra_cloud_id", "interface_id"],
    },
    Pairs {
        table: "authorization_inter_cloud_interface_connection",
        insert: "INSERT INTO authorization_inter_cloud_interface_connection (authorization_inter_cloud_id, interface_id) VALUES (?1, ?2)",
        columns: ["authorization_inter_cloud_id", "interface_id"],
    },
    // What a relay is assigned for is said by its type: both tables are one here, where a pair may be in both of theirs.
    Pairs {
        table: "cloud_gatekeeper_relay",
        insert: "INSERT INTO cloud_relay (cloud_id, relay_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        columns: ["cloud_id", "relay_id"],
    },
    Pairs {
        table: "cloud_gateway_relay",
        insert: "INSERT INTO cloud_relay (cloud_id, relay_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        columns: ["cloud_id", "relay_id"],
    },
    // Of other subscriptions their table has whom rules let publish, which are asked for each event here.
    Pairs {
        table: "subscription_publisher_connection",
        insert: "INSERT INTO subscription_publisher_connection (subscription_id, system_id)
            SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM subscription WHERE id = ?1 AND NOT only_predefined_publishers)",
        columns: ["subscription_id", "system_id"],
    },
];

/// The values of a row's own columns behind its id and its times.
fn with(row: &Row<'_>, values: &[Value]) -> Result<Vec<Value>, String> {
    let created = time(row, "created_at")?;
    let updated = time(row, "updated_at")?;
    let now = || Value::Integer(super::now_seconds());
    let or_now = |value: Value| if value == Value::Null { now() } else { value };
    let mut all = vec![id(row, "id")?, or_now(created), or_now(updated)];
    all.extend_from_slice(values);
    Ok(all)
}

/// As strict as the schema and the rules of a running cloud with its defaults, but for names of service definitions, which upstream may leave unchecked.
fn rules() -> NamingRules {
    NamingRules { strict_service_definition: false, secure_services: true, ..NamingRules::default() }
}

/// A value that must be there.
pub fn text<'r>(row: &'r Row<'_>, column: &str) -> Result<&'r str, String> {
    row.text(column).ok_or_else(|| format!("{column} is missing"))
}

/// A whole number.
pub fn number(text: &str, what: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| format!("{what} '{text}' is no whole number"))
}

/// The id of a row, from 1 on.
pub fn id(row: &Row<'_>, column: &str) -> Result<Value, String> {
    match number(text(row, column)?, column)? {
        id @ 1.. => Ok(id.into()),
        other => Err(format!("{column} {other} is no id: these begin with 1")),
    }
}

/// A switch: 0 or 1, as number or bit.
pub fn flag(row: &Row<'_>, column: &str) -> Result<Value, String> {
    match row.text(column).unwrap_or("0") {
        "0" | "\0" => Ok(0_i64.into()),
        "1" | "\u{1}" => Ok(1_i64.into()),
        other => Err(format!("{column} '{other}' is neither 0 nor 1")),
    }
}

/// Seconds since 1970 of a time in UTC, as dumps have it (`--tz-utc`, the default); NULL where there is none.
pub fn time(row: &Row<'_>, column: &str) -> Result<Value, String> {
    let Some(told) = row.text(column).filter(|text| !text.starts_with(NO_TIME)) else { return Ok(Value::Null) };
    let time = UtcTime::parse(told).map_err(|_| format!("{column} '{told}' is no time such as 2031-01-01 00:00:00"))?;
    Ok(i64::try_from(time.unix_seconds()).expect("times end with the year 9999").into())
}

/// Metadata as JSON: upstream keeps `key=value, key=value`, each encoded as in a form (`application/x-www-form-urlencoded`).
pub fn metadata(row: &Row<'_>, column: &str) -> Result<Value, String> {
    let Some(told) = row.text(column) else { return Ok(Value::Null) };
    let mut pairs = BTreeMap::new();
    for part in told.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let decode = |text: &str| decoded(text.trim()).ok_or_else(|| format!("{column}: '{text}' is not encoded as in a form"));
        pairs.insert(decode(key)?, decode(value)?);
    }
    Ok(serde_json::to_string(&pairs).expect("a map of texts is JSON").into())
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn name<E: std::fmt::Display>(row: &Row<'_>, column: &str, parse: impl Fn(&str) -> Result<String, E>) -> Result<Value, String> {
    let told = text(row, column)?;
    parse(told).map(Value::from).map_err(|error| format!("{column} '{told}' {error}"))
}

fn system(row: &Row<'_>, column: &str) -> Result<Value, String> {
    name(row, column, |text| SystemName::parse(text).map(|name| name.to_string()))
}

fn definition(row: &Row<'_>, column: &str) -> Result<Value, String> {
    name(row, column, |text| ServiceDefinition::parse(text, &rules()).map(|name| name.to_string()))
}

fn address(row: &Row<'_>) -> Result<Value, String> {
    let told = text(row, "address")?;
    Address::parse(told, &rules()).map(|address| address.as_str().to_owned().into()).map_err(|error| format!("address '{told}': {error}"))
}

fn port(row: &Row<'_>) -> Result<Value, String> {
    let port = number(text(row, "port")?, "port")?;
    u16::try_from(port).map(|port| i64::from(port).into()).map_err(|_| format!("port {port} is not in 0 to {}", u16::MAX))
}

fn key(row: &Row<'_>) -> Result<Value, String> {
    let Some(key) = row.text("authentication_info").filter(|key| !key.trim().is_empty()) else { return Ok(Value::Null) };
    longest("authentication_info", key, KEY_LENGTH_MAX)?;
    Ok(key.to_owned().into())
}

fn longest(what: &str, text: &str, characters_max: usize) -> Result<(), String> {
    match text.chars().count() {
        length if length > characters_max => Err(format!("{what} has {length} characters, {characters_max} are allowed")),
        _ => Ok(()),
    }
}
