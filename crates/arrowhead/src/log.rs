//! Log entries as `GET {base}/mgmt/logs` answers them (reference 1.6).

use serde::Serialize;

use crate::{
    core_service::CoreSystem,
    error::ArrowheadError,
    page::{Direction, PageRequest},
    utc::UtcTime,
};

/// How grave an entry is; the order is the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogLevel {
    /// Every step.
    Trace,
    /// What developers look for.
    Debug,
    /// What operators may want to know.
    Info,
    /// What may become an error.
    Warn,
    /// What was not done.
    Error,
    /// What ended the process.
    Fatal,
    /// Graver than any entry: asks for none.
    Off,
}

impl LogLevel {
    /// All of them, ascending.
    pub const ALL: [Self; 7] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error, Self::Fatal, Self::Off];

    /// The wire's spelling.
    pub fn as_str(self) -> &'static str {
        ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"][self as usize]
    }

    /// Parses the wire's spelling, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(text.trim()))
    }
}

/// Something that was logged.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// When; milliseconds are kept.
    pub entry_date: UtcTime,
    /// The part of the program that says it.
    pub logger: String,
    /// How grave it is.
    pub level: LogLevel,
    /// Whose it is; `None` is every system's.
    pub system: Option<CoreSystem>,
    /// What happened.
    pub message: String,
}

/// An entry as it is answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntryView {
    /// A UUID; later entries have greater ones.
    pub log_id: String,
    /// When.
    pub entry_date: UtcTime,
    /// The part of the program that said it.
    pub logger: String,
    /// How grave it is.
    pub log_level: LogLevel,
    /// The system that was asked, in upper case.
    pub system_name: String,
    /// What happened.
    pub message: String,
    /// Upstream's place for a stack trace; there is none.
    pub exception: &'static str,
}

/// A member that entries can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogField {
    /// `logId`, which is the order of time as well.
    LogId,
    /// `entryDate`.
    EntryDate,
    /// `logger`.
    Logger,
    /// `system`.
    System,
    /// `logLevel`, by gravity.
    LogLevel,
}

/// Which entries are wanted, in which order.
#[derive(Clone, Debug, PartialEq)]
pub struct LogQuery {
    /// Whose entries, beside every system's.
    pub system: CoreSystem,
    /// At least this grave.
    pub level: LogLevel,
    /// Not earlier.
    pub from: Option<UtcTime>,
    /// Not later.
    pub to: Option<UtcTime>,
    /// A part of the logger's name, in any case.
    pub logger: Option<String>,
    /// Page number from 0 and entries of a page; `None` is everything.
    pub window: Option<(usize, usize)>,
    /// Sort order.
    pub direction: Direction,
    /// Member to sort by.
    pub field: LogField,
}

/// The query parameters beside those of every list, as they came.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogParameters<'p> {
    /// `level`.
    pub level: Option<&'p str>,
    /// `from`.
    pub from: Option<&'p str>,
    /// `to`.
    pub to: Option<&'p str>,
    /// `logger`.
    pub logger: Option<&'p str>,
}

impl LogQuery {
    /// Checks the parameters; blank ones are absent. `page` comes with the default field `id`, which is `logId` here.
    pub fn parse(system: CoreSystem, page: PageRequest, given: LogParameters<'_>, origin: &str) -> Result<Self, ArrowheadError> {
        let refused = |message: String| ArrowheadError::bad_payload(message, origin);
        let present = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let time = |text: Option<&str>, name: &str| {
            let parse = |text: String| UtcTime::parse(&text).map_err(|error| refused(format!("Parameter {name}: '{text}' {error}")));
            present(text).map(parse).transpose()
        };
        let field = match page.sort_field.as_str() {
            "id" | "logId" => LogField::LogId,
            "entryDate" => LogField::EntryDate,
            "logger" => LogField::Logger,
            "system" => LogField::System,
            "logLevel" => LogField::LogLevel,
            other => return Err(ArrowheadError::invalid_parameter(format!("Sortable field with reference '{other}' is not available"))),
        };
        let level = match present(given.level) {
            None => LogLevel::Trace,
            Some(text) => LogLevel::parse(&text).ok_or_else(|| refused(format!("Parameter level: '{text}' is no log level.")))?,
        };
        let (from, to) = (time(given.from, "from")?, time(given.to, "to")?);
        if let (Some(from), Some(to)) = (from, to)
            && to < from
        {
            return Err(refused("Parameter to must not be earlier than from.".to_owned()));
        }
        Ok(Self { system, level, from, to, logger: present(given.logger), window: page.window, direction: page.direction, field })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: LogParameters<'_>) -> Result<LogQuery, String> {
        let page = PageRequest::parse(None, None, None, None, "/x").unwrap();
        LogQuery::parse(CoreSystem::Orchestrator, page, given, "/x").map_err(|error| error.error_message)
    }

    #[test]
    fn parameters_are_checked() {
        let query =
            parse(LogParameters { level: Some("warn"), from: Some("2031-01-01T00:00:00Z"), to: Some(" "), logger: Some("x") }).unwrap();
        assert_eq!((query.level, query.field, query.to), (LogLevel::Warn, LogField::LogId, None));
        let refused = |given, part: &str| {
            let told = parse(given).unwrap_err();
            assert!(told.contains(part), "{told}");
        };
        refused(LogParameters { level: Some("LOUD"), ..LogParameters::default() }, "LOUD");
        refused(LogParameters { from: Some("yesterday"), ..LogParameters::default() }, "yesterday");
        let (from, to) = (Some("2031-01-02T00:00:00Z"), Some("2031-01-01T00:00:00Z"));
        refused(LogParameters { from, to, ..LogParameters::default() }, "earlier");
    }

    #[test]
    fn levels_ascend_and_are_spelt_as_on_the_wire() {
        assert!(LogLevel::ALL.is_sorted());
        LogLevel::ALL.iter().for_each(|level| assert_eq!(LogLevel::parse(&level.as_str().to_lowercase()), Some(*level)));
        assert_eq!(serde_json::to_string(&LogLevel::Warn).unwrap(), "\"WARN\"");
    }
}
