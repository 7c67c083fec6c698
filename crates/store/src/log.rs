//! The log (reference 1.6): entries are appended by the writer in batches, and read past it.
//!
//! A page of the log is read by a connection of its own, which is opened for it: that takes well below a millisecond, the
//! writer is not held up, and nothing stays in memory.

use std::path::Path;

use bodkin_arrowhead::{
    core_service::CoreSystem,
    log::{LogEntry, LogEntryView, LogField, LogLevel, LogQuery},
    page::{Direction, Page},
    utc::UtcTime,
};
use rusqlite::{Connection, Row, named_params};

use crate::{
    StoreError,
    database::params,
    draft::{Draft, OperationError},
    open,
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

/// A UUID of version 7: it begins with the time and a count, so that the order of ids is that of the entries.
const INSERT: &str = "
INSERT INTO logs (log_id, entry_date_ms, logger, log_level, system_name, message)
VALUES (format('%08x-%04x-7%03x-%04x-%012x', ?1 >> 16, ?1 & 0xffff, (ifnull((SELECT max(id) FROM logs), 0) + 1) & 0xfff,
    0x8000 | (?6 & 0x3fff), ?7 & 0xffffffffffff),
    ?1, ?2, ?3, ?4, ?5)";

/// Which rows a query wants.
const WHERE: &str = "
WHERE (system_name IS NULL OR system_name = :system) AND log_level >= :level
  AND (:from IS NULL OR entry_date_ms >= :from) AND (:to IS NULL OR entry_date_ms <= :to)
  AND (:logger IS NULL OR instr(lower(logger), lower(:logger)) > 0)";

impl Draft<'_> {
    /// Appends entries, and removes the oldest beyond `entries_max`.
    pub fn append_log(&mut self, entries: &[LogEntry], entries_max: u64) -> Result<(), OperationError> {
        for entry in entries {
            let system = entry.system.map(CoreSystem::name);
            let ms = milliseconds(entry.entry_date);
            // Drawn in front of the statement, which has to do the same wherever it is repeated.
            let (high, low) = self.row("SELECT random(), random()", (), |row| Ok((row.get(0)?, row.get(1)?)))?.unwrap_or((0_i64, 0_i64));
            self.run(INSERT, params![ms, &entry.logger, entry.level as u8, system, &entry.message, high, low])?;
        }
        let kept = i64::try_from(entries_max).unwrap_or(i64::MAX);
        self.run("DELETE FROM logs WHERE id <= (SELECT max(id) FROM logs) - ?1", [kept])?;
        Ok(())
    }
}

/// Reads a page of the log in `file`.
pub(crate) fn read(file: &Path, query: &LogQuery) -> Result<Page<LogEntryView>, StoreError> {
    let page = open::reader(file).and_then(|connection| page(&connection, query));
    page.map_err(|error| StoreError::Unavailable(format!("The log cannot be read: {error}.")))
}

fn page(connection: &Connection, query: &LogQuery) -> rusqlite::Result<Page<LogEntryView>> {
    let (number, size) = query.window.unwrap_or((0, usize::MAX));
    let limit = i64::try_from(size).unwrap_or(i64::MAX);
    let offset = i64::try_from(number.saturating_mul(size)).unwrap_or(i64::MAX);
    let (system, level) = (query.system.name(), query.level as u8);
    let (from, to) = (query.from.map(milliseconds), query.to.map(milliseconds));
    let wanted = named_params! {":system": system, ":level": level, ":from": from, ":to": to, ":logger": query.logger};
    let count: i64 = connection.query_row(&format!("SELECT count(*) FROM logs {WHERE}"), wanted, |row| row.get(0))?;
    let direction = if query.direction == Direction::Ascending { "ASC" } else { "DESC" };
    let column = column(query.field);
    let sql = format!(
        "SELECT log_id, entry_date_ms, logger, log_level, message FROM logs {WHERE}
         ORDER BY {column} {direction}, id {direction} LIMIT {limit} OFFSET {offset}"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(wanted, |row| view(row, query.system))?;
    Ok(Page { data: rows.collect::<Result<_, _>>()?, count: usize::try_from(count).unwrap_or_default() })
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

fn view(row: &Row<'_>, system: CoreSystem) -> rusqlite::Result<LogEntryView> {
    let level: usize = row.get::<_, u8>(3)?.into();
    let ms: u64 = row.get::<_, i64>(1)?.unsigned_abs();
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
