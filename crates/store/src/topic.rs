//! Real-time topics that were declared while the cloud ran.

use bodkin_arrowhead::name::EventType;

use crate::{
    database::{Database, DatabaseResult, params},
    draft::{Draft, OperationError},
};

/// The table: a declaration is kept as it came, in JSON, and read anew at each start.
pub(crate) const MIGRATION: &str = "
CREATE TABLE real_time_topic (
    event_type TEXT PRIMARY KEY,
    declaration TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

const PUT: &str = "INSERT INTO real_time_topic (event_type, declaration) VALUES (?1, ?2)
    ON CONFLICT (event_type) DO UPDATE SET declaration = excluded.declaration";

const ALL: &str = "SELECT declaration FROM real_time_topic ORDER BY event_type";

impl Draft<'_> {
    /// All declarations, by event type.
    pub fn declared_topics(&mut self) -> Result<Vec<String>, OperationError> {
        self.rows(ALL, (), |row| row.get(0))
    }

    /// Keeps a declaration, in the place of one that was kept before.
    pub fn declare_topic(&mut self, event_type: &EventType, declaration: &str) -> Result<(), OperationError> {
        self.run(PUT, params![event_type.as_str(), declaration])?;
        self.topic_changed(event_type);
        Ok(())
    }

    /// Forgets a declaration; false if none was kept.
    pub fn forget_topic(&mut self, event_type: &EventType) -> Result<bool, OperationError> {
        let is_forgotten = self.run("DELETE FROM real_time_topic WHERE event_type = ?1", [event_type.as_str()])? > 0;
        self.topic_changed(event_type);
        Ok(is_forgotten)
    }
}

/// All declarations, by event type.
pub(crate) fn declarations(database: Database<'_>) -> DatabaseResult<Vec<String>> {
    database.rows(ALL, (), None, |row| row.get(0))
}

/// The declaration of an event type's topic; `None` where none is kept.
pub(crate) fn declaration(database: Database<'_>, event_type: &str) -> DatabaseResult<Option<String>> {
    database.row("SELECT declaration FROM real_time_topic WHERE event_type = ?1", [event_type], None, |row| row.get(0))
}
