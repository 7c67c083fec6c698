//! Real-time topics that were declared while the cloud ran.

use bodkin_arrowhead::name::EventType;
use rusqlite::params;

use crate::draft::{Draft, OperationError};

/// The table: a declaration is kept as it came, in JSON, and read anew at each start.
pub(crate) const MIGRATION: &str = "
CREATE TABLE real_time_topic (
    event_type TEXT PRIMARY KEY,
    declaration TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

impl Draft<'_> {
    /// All declarations, by event type.
    pub fn declared_topics(&mut self) -> Result<Vec<String>, OperationError> {
        self.rows("SELECT declaration FROM real_time_topic ORDER BY event_type", [], |row| row.get(0))
    }

    /// Keeps a declaration, in the place of one that was kept before.
    pub fn declare_topic(&mut self, event_type: &EventType, declaration: &str) -> Result<(), OperationError> {
        self.run("REPLACE INTO real_time_topic (event_type, declaration) VALUES (?, ?)", params![event_type.as_str(), declaration])?;
        Ok(())
    }

    /// Forgets a declaration; false if none was kept.
    pub fn forget_topic(&mut self, event_type: &EventType) -> Result<bool, OperationError> {
        Ok(self.run("DELETE FROM real_time_topic WHERE event_type = ?", [event_type.as_str()])? > 0)
    }
}
