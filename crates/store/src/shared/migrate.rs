//! A cloud moves from a database of its own into one that nodes share: every row with its id, or nothing.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

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
    database_choice::{Elsewhere, MOVED_FILE, elsewhere},
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

/// Endings of the files that SQLite keeps beside a database.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// What has moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Registered systems.
    pub systems: usize,
    /// Service Registry entries.
    pub services: usize,
    /// Rows of all tables.
    pub rows: usize,
    /// The database from before the move.
    pub kept: PathBuf,
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
    /// Moved before.
    #[error("the cloud of {directory} was moved before, and its database is {file}: to move it again, rename {file} to bodkin.sqlite")]
    Moved {
        /// The data directory.
        directory: PathBuf,
        /// The database from before the move.
        file: PathBuf,
    },
    /// The database from before an earlier move is in the way.
    #[error("{0} is there from an earlier move: move it to another place first")]
    InTheWay(PathBuf),
    /// The database could not be renamed.
    #[error("{directory}: bodkin.sqlite cannot be renamed: {error}; nothing was moved")]
    Rename {
        /// The data directory.
        directory: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is not known whether the shared database has the cloud.
    #[error(
        "{place} did not confirm the move: {error}. bodkin doctor tells whether it has the cloud; if it is empty, rename {file} to bodkin.sqlite and move the cloud again"
    )]
    Unconfirmed {
        /// Where the shared database is.
        place: String,
        /// The database's error.
        error: DatabaseError,
        /// The database from before the move.
        file: PathBuf,
    },
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

/// Moves the database in `directory`, which no Bodkin may use. The directory becomes that of the cloud's first node.
///
/// Renames the database to [`MOVED_FILE`], so that no start without the shared database serves the cloud a second time.
///
/// # Errors
/// Returns an error if there is nothing to move, nothing that may be moved, or nowhere to move it to. Both databases are then as they were, except after
/// [`MigrateError::Unconfirmed`].
pub fn migrate(directory: &Path, place: &DatabasePlace) -> Result<Migrated, MigrateError> {
    match elsewhere(directory) {
        Some(Elsewhere::Moved(file)) => return Err(MigrateError::Moved { directory: directory.to_owned(), file }),
        None if directory.join(DATABASE_FILE).exists() => {}
        None | Some(Elsewhere::Shared) => return Err(MigrateError::NoDatabase(directory.to_owned())),
    }
    // A session waits on a thread that may.
    let moved = std::thread::scope(|scope| scope.spawn(|| migrate_waiting(directory, place)).join());
    moved.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn migrate_waiting(directory: &Path, place: &DatabasePlace) -> Result<Migrated, MigrateError> {
    let _lock = open::take(directory)?;
    let (kept, in_directory) = (directory.join(MOVED_FILE), |error| OpenError::Directory { directory: directory.to_owned(), error });
    if kept.exists() {
        return Err(MigrateError::InTheWay(kept));
    }
    let (own, _) = open::load(&directory.join(DATABASE_FILE))?;
    let unreadable = |error: rusqlite::Error| OpenError::Database { file: directory.join(DATABASE_FILE), error: error.to_string() };
    for (table, what) in STAYING {
        let count: i64 = own.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).map_err(unreadable)?;
        if count > 0 {
            return Err(MigrateError::Staying(what));
        }
    }
    let name = NodeName::of(directory).map_err(in_directory)?;
    let shared = |why: String| MigrateError::Shared { place: place.to_string(), why };
    let session = Session::connect(place, &name.name, "migrates").map_err(|error| shared(error.to_string()))?;
    schema::prepare(&session, &name.name).map_err(|error: SchemaError| shared(error.to_string()))?;
    let (systems, services, rows) = match fill(&own, &session).map_err(|error| shared(error.to_string()))? {
        Filled::Moved { systems, services, rows } => (systems, services, rows),
        Filled::NotEmpty => return Err(MigrateError::NotEmpty(place.to_string())),
        Filled::Different => return Err(MigrateError::Different(place.to_string())),
    };
    name.keep(directory).map_err(in_directory)?;
    open::fold(&own);
    drop(own);
    // Before the commit: a kill between the two may leave no cloud to start, and never two of them.
    let renamed = |error| MigrateError::Rename { directory: directory.to_owned(), error };
    set_aside(directory).map_err(renamed)?;
    match session.batch("COMMIT") {
        Ok(()) => Ok(Migrated { systems, services, rows, kept }),
        Err(error) => Err(MigrateError::Unconfirmed { place: place.to_string(), error, file: kept }),
    }
}

/// Renames the database of a directory to [`MOVED_FILE`]. Blocks until the names are on the disk.
fn set_aside(directory: &Path) -> io::Result<()> {
    // The database last: until then it is where a start looks for it. The other files are empty, because the log was folded into it.
    for beside in BESIDE {
        match fs::rename(directory.join(format!("{DATABASE_FILE}{beside}")), directory.join(format!("{MOVED_FILE}{beside}"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(directory.join(DATABASE_FILE), directory.join(MOVED_FILE))?;
    File::open(directory)?.sync_all()
}

/// What has become of it.
enum Filled {
    /// The transaction is open, with every row.
    Moved {
        systems: usize,
        services: usize,
        rows: usize,
    },
    NotEmpty,
    Different,
}

/// Copies every row in one transaction, which the caller commits, and compares the copy. A connection that ends takes everything back.
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
    session.batch("UPDATE shared SET number = 1")?;
    Ok(Filled::Moved { systems: moved.systems().len(), services: moved.entries().len(), rows })
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
