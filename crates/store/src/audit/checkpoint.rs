//! The log's last entry, noted in the database, which is not where the log is: so a missing end shows.

use std::path::Path;

use bodkin_arrowhead::audit::LineHash;

use super::Head;
use crate::{
    database::{Database, DatabaseResult, Row, params},
    draft::{Draft, OperationError},
    inspection::{self, InspectionError},
};

/// How far the ledger of certificates is told in the log: one row or none.
pub(crate) const LEDGER_MIGRATION: &str = "
CREATE TABLE audited_ledger (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    bytes INTEGER NOT NULL
) STRICT;
";

/// The log's last entry: one row or none.
pub(crate) const MIGRATION: &str = "
CREATE TABLE audit_checkpoint (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;
";

/// What these tables say is about files of this node: nobody repeats it, and a copy of another node's database does not replace it.
pub(crate) const OWN_TABLES: [&str; 2] = ["audit_checkpoint", "audited_ledger"];

const SELECT: &str = "SELECT number, hash FROM audit_checkpoint";

impl Draft<'_> {
    /// Notes the last entry that is on disk.
    pub fn note_audit_checkpoint(&mut self, head: Head) -> Result<(), OperationError> {
        let number = i64::try_from(head.number).unwrap_or(i64::MAX);
        self.run_own(
            "INSERT INTO audit_checkpoint (id, number, hash) VALUES (1, ?1, ?2)
             ON CONFLICT (id) DO UPDATE SET number = excluded.number, hash = excluded.hash",
            params![number, head.hash.to_string()],
        )?;
        Ok(())
    }

    /// Notes how many bytes of the ledger of certificates are told in the log.
    pub fn note_audited_ledger(&mut self, bytes: u64) -> Result<(), OperationError> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let note = "INSERT INTO audited_ledger (id, bytes) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes";
        self.run_own(note, [bytes])?;
        Ok(())
    }

    /// How many bytes of the ledger of certificates are told in the log.
    pub fn audited_ledger(&self) -> Result<u64, OperationError> {
        Ok(self.id("SELECT bytes FROM audited_ledger", ())?.map_or(0, i64::unsigned_abs))
    }

    /// The entry that was noted last.
    pub fn audit_checkpoint(&self) -> Result<Option<Head>, OperationError> {
        Ok(self.row(SELECT, (), read)?)
    }
}

/// The entry that was noted last in the database of a data directory, whether a cloud runs on it or not; `None` where there is none.
pub fn checkpoint_of(data: &Path) -> Result<Option<Head>, InspectionError> {
    let Some(connection) = inspection::open_in(data)? else { return Ok(None) };
    // A database of an earlier version has no such table.
    let is_there = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'audit_checkpoint'")?.exists([])?;
    if is_there { Ok(Database::Sqlite(&connection).row(SELECT, (), None, read)?) } else { Ok(None) }
}

/// A hash that is none is a database that somebody has changed: no line has that of zeros.
fn read(row: &Row<'_>) -> DatabaseResult<Head> {
    let hash: String = row.get(1)?;
    Ok(Head { number: row.get::<i64>(0)?.unsigned_abs(), hash: LineHash::parse(&hash).unwrap_or_default() })
}
