//! A cloud moves from a database of its own into one that nodes share: every row with its id, or nothing.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, types::ValueRef};

use super::{
    NodeName,
    place::DatabasePlace,
    schema::{self, SchemaError},
    session::Session,
};
use crate::{
    DatabaseError, OpenError,
    database::{Database, DatabaseResult, Value},
    identity, load,
    open::{self, DATABASE_FILE},
};

/// What moves, in an order in which rows find those that they refer to.
const TABLES: [&str; 27] = [
    "system_",
    "service_definition",
    "service_interface",
    "service_registry",
    "service_registry_interface_connection",
    "authorization_intra_cloud",
    "authorization_intra_cloud_interface_connection",
    "event_type",
    "subscription",
    "subscription_publisher_connection",
    "cloud",
    "relay",
    "cloud_relay",
    "foreign_system",
    "authorization_inter_cloud",
    "authorization_inter_cloud_interface_connection",
    "orchestrator_store",
    "orchestrator_store_flexible",
    "qos_reservation",
    "onboarding_grant",
    "certificate_line",
    "logs",
    "delivery",
    "delivery_present",
    "dead_letter",
    "audit_checkpoint",
    "audited_ledger",
];
/// What one node serves, and a cloud of several does not.
const STAYING: [(&str, &str); 2] = [("real_time_topic", "real-time topics"), ("graph", "graphs")];

/// What has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Registered systems.
    pub systems: usize,
    /// Service Registry entries.
    pub services: usize,
    /// Rows of all tables.
    pub rows: usize,
}

/// Why nothing has moved.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The data directory or its database.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Nothing to move.
    #[error("there is no database in {0}: name the data directory of the local cloud (--data)")]
    NoDatabase(PathBuf),
    /// The other database.
    #[error("{place}: {why}")]
    Shared {
        /// Where it is.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// Nothing is overwritten.
    #[error("{0} has a cloud already: name an empty database")]
    NotEmpty(String),
    /// What is not served there.
    #[error(
        "the cloud has {0}, which are served by one node, a cloud by itself or a reliable pair: remove them first, or leave it where it is"
    )]
    Staying(&'static str),
    /// The copy is not what was copied.
    #[error("what {0} holds is not what was written into it: it was taken back")]
    Different(String),
}

/// Moves the database in `directory`, which no Bodkin may use, and which stays as it is. The directory becomes that of the cloud's first node.
///
/// # Errors
/// There is nothing to move, or nothing that may be moved, or nowhere to move it to; then both are as they were.
pub fn migrate(directory: &Path, place: &DatabasePlace) -> Result<Migrated, MigrateError> {
    if !directory.join(DATABASE_FILE).exists() {
        return Err(MigrateError::NoDatabase(directory.to_owned()));
    }
    // A session waits on a thread that may.
    let moved = std::thread::scope(|scope| scope.spawn(|| migrate_waiting(directory, place)).join());
    moved.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn migrate_waiting(directory: &Path, place: &DatabasePlace) -> Result<Migrated, MigrateError> {
    let _lock = open::take(directory)?;
    let (own, _) = open::load(&directory.join(DATABASE_FILE))?;
    let unreadable = |error: rusqlite::Error| OpenError::Database { file: directory.join(DATABASE_FILE), error: error.to_string() };
    for (table, what) in STAYING {
        let count: i64 = own.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).map_err(unreadable)?;
        if count > 0 {
            return Err(MigrateError::Staying(what));
        }
    }
    let in_directory = |error| OpenError::Directory { directory: directory.to_owned(), error };
    let name = NodeName::of(directory).map_err(in_directory)?;
    let shared = |why: String| MigrateError::Shared { place: place.to_string(), why };
    let session = Session::connect(place, &name.name, "migrates").map_err(|error| shared(error.to_string()))?;
    schema::prepare(&session, &name.name).map_err(|error: SchemaError| shared(error.to_string()))?;
    match fill(&own, &session).map_err(|error| shared(error.to_string()))? {
        Filled::Moved(migrated) => {
            name.keep(directory).map_err(in_directory)?;
            Ok(migrated)
        }
        Filled::NotEmpty => Err(MigrateError::NotEmpty(place.to_string())),
        Filled::Different => Err(MigrateError::Different(place.to_string())),
    }
}

/// What has become of it.
enum Filled {
    Moved(Migrated),
    NotEmpty,
    Different,
}

/// Copies every row in one transaction, and looks at what came of it before it counts. A connection that ends takes everything back.
fn fill(own: &Connection, session: &Session) -> DatabaseResult<Filled> {
    let [number] = session.batch_numbers("BEGIN; SELECT number FROM shared FOR UPDATE")?;
    if number != 0 || session.one::<i64>("SELECT count(*) FROM system_", ())? != Some(0) {
        return Ok(Filled::NotEmpty);
    }
    // Those that every new database has come with the others.
    session.batch("DELETE FROM service_interface")?;
    let mut rows = 0;
    for table in TABLES {
        rows += copy(own, session, table)?;
    }
    let mut counters = own.prepare("SELECT name, seq FROM sqlite_sequence")?;
    let mut counted = counters.query([])?;
    while let Some(counter) = counted.next()? {
        let (name, last): (String, i64) = (counter.get(0)?, counter.get(1)?);
        session.run("UPDATE id_counter SET last = ?2 WHERE name = ?1", [Value::from(name), last.into()])?;
    }
    session
        .batch("SELECT setval(pg_get_serial_sequence('dead_letter', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM dead_letter), false)")?;
    let (moved, there) = (load::load(Database::Sqlite(own))?, load::load(Database::Postgres(session))?);
    if moved != there {
        session.batch("ROLLBACK")?;
        return Ok(Filled::Different);
    }
    // It stays the same database to the event log and the audit log.
    if let Some(database) = identity::of_database(own)? {
        session.run("UPDATE shared SET cloud = ?1", [Value::from(database.to_string())])?;
    }
    // The first commit is told to nobody: who has begun before reads everything.
    session.batch("UPDATE shared SET number = 1; COMMIT")?;
    Ok(Filled::Moved(Migrated { systems: moved.systems().len(), services: moved.entries().len(), rows }))
}

/// Copies a table; gives how many rows it has.
fn copy(own: &Connection, session: &Session, table: &str) -> DatabaseResult<usize> {
    let mut read = own.prepare(&format!("SELECT * FROM {table}"))?;
    let columns: Vec<String> = read.column_names().into_iter().map(str::to_owned).collect();
    let places = (1..=columns.len()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
    let insert = format!("INSERT INTO {table} ({}) VALUES ({places})", columns.join(", "));
    let mut rows = read.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let values = (0..columns.len()).map(|column| Ok(value(row.get_ref(column)?))).collect::<rusqlite::Result<Vec<_>>>()?;
        let values = values
            .into_iter()
            .enumerate()
            .map(|(column, value)| value.ok_or_else(|| DatabaseError::column(column, "a number that is not whole")));
        session.run(&insert, values.collect::<DatabaseResult<Vec<_>>>()?)?;
        count += 1;
    }
    Ok(count)
}

/// A value as operations give it; `None` of a kind that none of them writes.
fn value(value: ValueRef<'_>) -> Option<Value<'static>> {
    Some(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return None,
    })
}
