//! The registry of a cloud of the Java systems, taken over from a dump of its MySQL or MariaDB database.
//!
//! The tables are nearly ours (reference 13), so rows keep their ids, and what refers to an id outside of the database goes on to be right. What cannot be taken is told, row by
//! row; what refers to such a row cannot be taken either. Nothing is changed unless everything that can be taken is in.

pub mod dump;
mod rows;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use rusqlite::{Connection, Transaction, TransactionBehavior, params, params_from_iter, types::Value};

use self::{
    dump::{DumpError, Row},
    rows::{PAIRS, TAKEN, flag, id, metadata, number, text, time},
};
use crate::{
    database::{Database, DatabaseError},
    load,
    open::{self, DATABASE_FILE, OpenError},
};

/// Refusals that are told one by one; further ones are counted.
pub const REFUSED_TOLD_MAX: usize = 1000;

const STORE: &str = "orchestrator_store";
/// Upstream's tables of a running system's own affairs: nobody misses them.
const OF_NO_INTEREST: [&str; 1] = ["logs"];
/// Tables here that have something in them where a cloud has worked.
const WORKED_WITH: [&str; 5] = ["system_", "service_registry", "authorization_intra_cloud", "subscription", "cloud"];

/// Why nothing was taken. The database is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The text is no dump.
    #[error("the dump cannot be read: {0}")]
    Dump(#[from] DumpError),
    /// None of its tables is one of Arrowhead's.
    #[error("the dump has no rows of Arrowhead's tables (system_, service_registry, ...): is it of another database, or without data?")]
    NothingKnown,
    /// A cloud has worked with the database.
    #[error(
        "the database in {directory} has {rows} rows in {table} already. Ids are kept, so the dump goes into an empty one: give a new directory with --data"
    )]
    NotEmpty {
        /// The data directory.
        directory: PathBuf,
        /// The table.
        table: &'static str,
        /// How many.
        rows: i64,
    },
    /// The database has failed.
    #[error("the database failed: {0}")]
    Database(#[from] DatabaseError),
}

impl From<rusqlite::Error> for ImportError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}

/// A row that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its table.
    pub table: String,
    /// Its line in the dump.
    pub line: usize,
    /// Its id there, if it has one.
    pub id: Option<String>,
    /// Why.
    pub why: String,
}

/// What was taken, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Rows that were taken, by their tables.
    pub taken: BTreeMap<&'static str, usize>,
    /// Rows that were not, the first [`REFUSED_TOLD_MAX`].
    pub refused: Vec<Refused>,
    /// All rows that were not.
    pub refused_count: usize,
    /// Rows of tables that have no counterpart here, by their names.
    pub left: BTreeMap<String, usize>,
}

impl Imported {
    fn refuse(&mut self, row: &Row<'_>, why: String) {
        self.refused_count += 1;
        if self.refused.len() < REFUSED_TOLD_MAX {
            self.refused.push(Refused { table: row.table.to_owned(), line: row.line, id: row.text("id").map(str::to_owned), why });
        }
    }
}

/// Takes a dump over into the database of `directory`, which must be empty; the directory is made if it is not there, and locked meanwhile. Without `keep`
/// everything is done and then taken back: what would be taken is told.
pub fn import(directory: &Path, dump: &str, keep: bool) -> Result<Imported, ImportError> {
    let mut tables: BTreeMap<&str, Vec<Row<'_>>> = BTreeMap::new();
    dump::read(dump, |row| tables.entry(row.table).or_default().push(row))?;
    let mut imported = Imported::default();
    let is_known =
        |table: &str| table == STORE || TAKEN.iter().any(|taken| taken.table == table) || PAIRS.iter().any(|pairs| pairs.table == table);
    tables.retain(|table, rows| {
        if !is_known(table) && !OF_NO_INTEREST.contains(table) {
            imported.left.insert((*table).to_owned(), rows.len());
        }
        is_known(table)
    });
    if tables.is_empty() {
        return Err(ImportError::NothingKnown);
    }
    // Held until the end: no cloud may start on what is half done.
    let _lock = open::take(directory)?;
    let (mut connection, _) = open::load(&directory.join(DATABASE_FILE))?;
    check_empty(&connection, directory)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    fill(&transaction, &tables, &mut imported)?;
    // What cannot be loaded must not be there.
    load::load(Database::Sqlite(&transaction))?;
    if keep {
        transaction.commit()?;
        open::fold(&connection);
    }
    Ok(imported)
}

fn check_empty(connection: &Connection, directory: &Path) -> Result<(), ImportError> {
    for table in WORKED_WITH {
        let rows: i64 = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        if rows > 0 {
            return Err(ImportError::NotEmpty { directory: directory.to_owned(), table, rows });
        }
    }
    Ok(())
}

fn fill(transaction: &Transaction<'_>, tables: &BTreeMap<&str, Vec<Row<'_>>>, imported: &mut Imported) -> Result<(), ImportError> {
    // The two that are there from the start have other ids in the dump.
    transaction.execute("DELETE FROM service_interface", [])?;
    for taken in TAKEN {
        for row in rows_of(tables, taken.table) {
            let values = (taken.values)(row);
            put(transaction, taken.insert, values, taken.table, row, imported)?;
        }
        if taken.table == "service_interface" {
            transaction.execute_batch(
                "INSERT INTO service_interface (interface_name, created_at, updated_at)
                 SELECT name, unixepoch(), unixepoch() FROM (SELECT 'HTTP-SECURE-JSON' AS name UNION ALL SELECT 'HTTP-INSECURE-JSON')
                 WHERE name NOT IN (SELECT interface_name FROM service_interface)",
            )?;
        }
    }
    for pairs in PAIRS {
        for row in rows_of(tables, pairs.table) {
            let values = pairs.columns.iter().map(|column| id(row, column)).collect();
            put(transaction, pairs.insert, values, pairs.table, row, imported)?;
        }
    }
    put_store(transaction, rows_of(tables, STORE), imported)
}

fn rows_of<'t, 'd>(tables: &'t BTreeMap<&str, Vec<Row<'d>>>, table: &str) -> &'t [Row<'d>] {
    tables.get(table).map(Vec::as_slice).unwrap_or_default()
}

/// Puts a row in, or tells why not.
fn put(
    transaction: &Transaction<'_>,
    insert: &str,
    values: Result<Vec<Value>, String>,
    table: &'static str,
    row: &Row<'_>,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let values = match values {
        Ok(values) => values,
        Err(why) => {
            imported.refuse(row, why);
            return Ok(());
        }
    };
    match transaction.prepare_cached(insert)?.execute(params_from_iter(values)) {
        // None where a pair was there before, or is nothing that is kept here.
        Ok(0) => {}
        Ok(_) => *imported.taken.entry(table).or_default() += 1,
        Err(error) => imported.refuse(row, conflict(error)?),
    }
    Ok(())
}

/// What a constraint says of a row; other failures are the database's.
fn conflict(error: rusqlite::Error) -> Result<String, ImportError> {
    let rusqlite::Error::SqliteFailure(failure, message) = &error else { return Err(error.into()) };
    match failure.extended_code {
        rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Ok("it refers to a row that is not there or cannot be taken".into()),
        rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
            let columns = message.as_deref().and_then(|message| message.split_once(": ")).map_or("", |(_, columns)| columns);
            Ok(format!("another row has the same {columns}"))
        }
        _ => Err(error.into()),
    }
}

/// An entry of the orchestration store.
struct StoreRow<'r, 'd> {
    row: &'r Row<'d>,
    id: Value,
    provider: Value,
    is_foreign: Value,
    priority: i64,
    attribute: Value,
    times: [Value; 2],
}

/// Entries of the orchestration store. In a group of consumer, service and interface priorities are 1 to the number of entries; upstream's may have gaps.
fn put_store(transaction: &Transaction<'_>, rows: &[Row<'_>], imported: &mut Imported) -> Result<(), ImportError> {
    let mut groups: BTreeMap<[i64; 3], Vec<StoreRow<'_, '_>>> = BTreeMap::new();
    for row in rows {
        match store_row(row) {
            Ok((group, entry)) => groups.entry(group).or_default().push(entry),
            Err(why) => imported.refuse(row, why),
        }
    }
    let known = |table: &str| -> Result<BTreeSet<i64>, ImportError> {
        let mut statement = transaction.prepare(&format!("SELECT id FROM {table}"))?;
        let ids = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(ids)
    };
    let (own, foreign) = (known("system_")?, known("foreign_system")?);
    for ([consumer, service, interface], mut entries) in groups {
        entries.sort_by_key(|entry| entry.priority);
        let mut priority = 0;
        for entry in entries {
            let providers = if entry.is_foreign == Value::Integer(1) { &foreign } else { &own };
            if !matches!(entry.provider, Value::Integer(id) if providers.contains(&id)) {
                imported.refuse(entry.row, "its provider is not there or cannot be taken".into());
                continue;
            }
            let [created, updated] = entry.times;
            let put = transaction
                .prepare_cached(
                    "INSERT INTO orchestrator_store (id, consumer_system_id, service_id, service_interface_id, foreign_, provider_system_id, priority, attribute,
                         created_at, updated_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, coalesce(?9, unixepoch()), coalesce(?10, unixepoch()))",
                )?
                .execute(params![
                    entry.id,
                    consumer,
                    service,
                    interface,
                    entry.is_foreign,
                    entry.provider,
                    priority + 1,
                    entry.attribute,
                    created,
                    updated
                ]);
            match put {
                Ok(_) => {
                    priority += 1;
                    *imported.taken.entry(STORE).or_default() += 1;
                }
                Err(error) => imported.refuse(entry.row, conflict(error)?),
            }
        }
    }
    Ok(())
}

/// The group of an entry, and the rest of it.
fn store_row<'r, 'd>(row: &'r Row<'d>) -> Result<([i64; 3], StoreRow<'r, 'd>), String> {
    let part = |column| number(text(row, column)?, column);
    let group = [part("consumer_system_id")?, part("service_id")?, part("service_interface_id")?];
    let entry = StoreRow {
        row,
        id: id(row, "id")?,
        provider: id(row, "provider_system_id")?,
        is_foreign: flag(row, "foreign_")?,
        priority: part("priority")?,
        attribute: metadata(row, "attribute")?,
        times: [time(row, "created_at")?, time(row, "updated_at")?],
    };
    Ok((group, entry))
}

fn now_seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
