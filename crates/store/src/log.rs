//! The log (reference 1.6): entries are appended by the writer in batches, and read past it.
//!
//! A page of the log is read by a connection of its own, which is opened for it: that takes well below a millisecond, the
//! writer is not held up, and nothing stays in memory.

use bodkin_arrowhead::{
    core_service::CoreSystem,
    log::{LogEntry, LogEntryView, LogField, LogLevel, LogQuery},
    page::{Direction, Page},
    utc::UtcTime,
};

use crate::{
    database::{Database, DatabaseResult, Row, Value, params},
    draft::{Draft, OperationError},
};

/// The table. `id` gives the order, `log_id` is what is told. Levels are kept as their place in `LogLevel::ALL`.
pub(crate) const MIGRATION: &str = "
CREATE TABLE logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    log_id TEXT NOT NULL,
    entry_date_ms INTEGER NOT NULL,
    logger TEXT NOT NULL,
    log_level INTEGER NOT NULL,
    system_name TEXT,
    message TEXT NOT NULL
) STRICT;
";

const INSERT: &str = "INSERT INTO logs (log_id, entry_date_ms, logger, log_level, system_name, message) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Which rows a query wants, by [`wanted`].
const WHERE: &str = "
WHERE (system_name IS NULL OR system_name = ?1) AND log_level >= ?2
  AND (CAST(?3 AS BIGINT) IS NULL OR entry_date_ms >= ?3) AND (CAST(?4 AS BIGINT) IS NULL OR entry_date_ms <= ?4)
  AND (CAST(?5 AS TEXT) IS NULL OR instr(lower(logger), lower(?5)) > 0)";

impl Draft<'_> {
    /// Appends entries, and removes the oldest beyond `entries_max`.
    pub fn append_log(&mut self, entries: &[LogEntry], entries_max: u64) -> Result<(), OperationError> {
        let last = self.id("SELECT coalesce(max(id), 0) FROM logs", ())?.unwrap_or_default();
        for (entry, count) in entries.iter().zip(last + 1..) {
            let system = entry.system.map(CoreSystem::name);
            let ms = milliseconds(entry.entry_date);
            let id = log_id(ms, count, drawn());
            self.run_later(INSERT, params![id, ms, &entry.logger, entry.level as u8, system, &entry.message])?;
        }
        let kept = i64::try_from(entries_max).unwrap_or(i64::MAX);
        self.run_later("DELETE FROM logs WHERE id <= (SELECT max(id) FROM logs) - ?1", [kept])?;
        Ok(())
    }

    /// A page of the log.
    pub(crate) fn log_page(&self, query: &LogQuery) -> Result<Page<LogEntryView>, OperationError> {
        Ok(page(self.database(), query)?)
    }
}

/// A UUID of version 7: it begins with the time and a count, so that the order of ids is that of the entries. `drawn` is random.
fn log_id(ms: i64, count: i64, drawn: u64) -> String {
    let (variant, node) = (0x8000 | (drawn >> 48) & 0x3fff, drawn & 0xffff_ffff_ffff);
    format!("{:08x}-{:04x}-7{:03x}-{variant:04x}-{node:012x}", ms >> 16, ms & 0xffff, count & 0xfff)
}

/// Drawn in front of the statement, which has to do the same wherever it is repeated.
fn drawn() -> u64 {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system gives random bytes");
    u64::from_be_bytes(bytes)
}

/// Reads a page.
fn page(database: Database<'_>, query: &LogQuery) -> DatabaseResult<Page<LogEntryView>> {
    let (number, size) = query.window.unwrap_or((0, usize::MAX));
    let limit = i64::try_from(size).unwrap_or(i64::MAX);
    let offset = i64::try_from(number.saturating_mul(size)).unwrap_or(i64::MAX);
    let count = database.row(&format!("SELECT count(*) FROM logs {WHERE}"), wanted(query), None, |row| row.get::<i64>(0))?;
    let direction = if query.direction == Direction::Ascending { "ASC" } else { "DESC" };
    let column = column(query.field);
    let sql = format!(
        "SELECT log_id, entry_date_ms, logger, log_level, message FROM logs {WHERE}
         ORDER BY {column} {direction}, id {direction} LIMIT {limit} OFFSET {offset}"
    );
    let data = database.rows(&sql, wanted(query), None, |row| view(row, query.system))?;
    Ok(Page { data, count: usize::try_from(count.unwrap_or_default()).unwrap_or_default() })
}

/// The parameters of [`WHERE`].
fn wanted(query: &LogQuery) -> [Value<'_>; 5] {
    params![query.system.name(), query.level as u8, query.from.map(milliseconds), query.to.map(milliseconds), query.logger.as_deref()]
}

fn column(field: LogField) -> &'static str {
    match field {
        LogField::LogId => "log_id",
        LogField::EntryDate => "entry_date_ms",
        LogField::Logger => "logger",
        LogField::System => "system_name",
        LogField::LogLevel => "log_level",
    }
}

fn view(row: &Row<'_>, system: CoreSystem) -> DatabaseResult<LogEntryView> {
    let level: usize = row.get::<u8>(3)?.into();
    let ms: u64 = row.get::<i64>(1)?.unsigned_abs();
    Ok(LogEntryView {
        log_id: row.get(0)?,
        entry_date: UtcTime::from_unix_nanos(ms.saturating_mul(1_000_000)),
        logger: row.get(2)?,
        log_level: LogLevel::ALL.get(level).copied().unwrap_or(LogLevel::Fatal),
        system_name: system.name().to_ascii_uppercase(),
        message: row.get(4)?,
        exception: "",
    })
}

fn milliseconds(time: UtcTime) -> i64 {
    i64::try_from(time.unix_nanos() / 1_000_000).expect("the year is at most 9999")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_of_version_7_in_the_order_of_time_and_count() {
        assert_eq!(log_id(0x0123_4567_89ab, 0x1fff, u64::MAX), "01234567-89ab-7fff-bfff-ffffffffffff");
        assert_eq!(log_id(0x0123_4567_89ab, 1, 0), "01234567-89ab-7001-8000-000000000000");
        assert!(log_id(7, 1, u64::MAX) < log_id(7, 2, 0) && log_id(7, 2, 0) < log_id(8, 0, 0));
    }
}
