//! What the program says of itself: to the console as `--log` and `--log-format` ask, and at INFO and above into the log book that
//! `/mgmt/logs` reads.

mod json;

use std::{
    fmt::{Debug, Write},
    io::IsTerminal,
    sync::Arc,
    time::SystemTime,
};

use bodkin_arrowhead::{
    core_service::CoreSystem,
    log::{LogEntry, LogLevel},
    utc::UtcTime,
};
use bodkin_host::log_book::LogBook;
use clap::ValueEnum;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    filter::LevelFilter,
    layer::{Context, SubscriberExt},
    util::SubscriberInitExt,
};

use self::json::JsonLayer;

/// Which system an entry is of that does not say so itself, by a part of its target; any other is every system's.
const SYSTEM_BY_TARGET: [(&str, CoreSystem); 11] = [
    ("::control::service_registry", CoreSystem::ServiceRegistry),
    ("::control::ping", CoreSystem::ServiceRegistry),
    ("::control::authorization", CoreSystem::Authorization),
    ("::control::orchestrator", CoreSystem::Orchestrator),
    ("::control::event_handler", CoreSystem::EventHandler),
    ("::shard", CoreSystem::EventHandler),
    ("::push", CoreSystem::EventHandler),
    ("::event_log", CoreSystem::EventHandler),
    ("::gatekeeper", CoreSystem::Gatekeeper),
    ("::gateway", CoreSystem::Gateway),
    ("::relay", CoreSystem::Gatekeeper),
];

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: one JSON object a line.
    Json,
}

/// Begins logging: to the console from `console` on, and into `book` where one is kept.
pub fn begin(console: LevelFilter, format: LogFormat, book: Option<Arc<LogBook>>) {
    let to_people = || tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let as_text = (format == LogFormat::Text).then(|| to_people().with_filter(console));
    let as_json = (format == LogFormat::Json).then(|| JsonLayer::to_stderr().with_filter(console));
    let to_book = book.map(|book| BookLayer(book).with_filter(LevelFilter::INFO));
    tracing_subscriber::registry().with(as_text).with(as_json).with(to_book).init();
}

struct BookLayer(Arc<LogBook>);

impl<S: Subscriber> Layer<S> for BookLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        let mut said = Said::default();
        event.record(&mut said);
        let by_target = || SYSTEM_BY_TARGET.iter().find(|(part, _)| target.contains(part)).map(|(_, system)| *system);
        self.0.note(LogEntry {
            // A clock that shows no year from 1970 to 9999 stops the server elsewhere.
            entry_date: UtcTime::from_system_time(SystemTime::now()).unwrap_or(UtcTime::from_unix_seconds(0)),
            logger: target.to_owned(),
            level: level(*event.metadata().level()),
            system: said.system.or_else(by_target),
            message: said.message + &said.fields,
        });
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        _ => LogLevel::Trace,
    }
}

/// An event's message, with its fields behind it as the console shows them.
#[derive(Default)]
struct Said {
    message: String,
    fields: String,
    system: Option<CoreSystem>,
}

impl Said {
    fn push(&mut self, field: &Field, value: impl std::fmt::Display) {
        let pushed = match field.name() {
            "message" => write!(self.message, "{value}"),
            name => write!(self.fields, " {name}={value}"),
        };
        pushed.expect("a string takes everything");
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        match CoreSystem::ALL.into_iter().find(|system| field.name() == "system" && system.name() == value) {
            Some(system) => self.system = Some(system),
            None => self.push(field, value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.push(field, format_args!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries that are noted while `say` runs, written by the book itself.
    fn noted(say: impl FnOnce()) -> Vec<(LogLevel, Option<CoreSystem>, String)> {
        let book = Arc::new(LogBook::default());
        let layer = BookLayer(book.clone()).with_filter(LevelFilter::INFO);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
        let entries = book.pending().into_iter();
        entries.map(|entry| (entry.level, entry.system, entry.message)).collect()
    }

    #[test]
    fn entries_have_their_level_system_and_fields() {
        let entries = noted(|| {
            tracing::info!(system = "orchestrator", count = 3, "began");
            tracing::warn!(target: "bodkin_host::shard::accept", error = "no room", "refused");
            tracing::error!("failed");
            tracing::debug!("not this");
        });
        let expected = [
            (LogLevel::Info, Some(CoreSystem::Orchestrator), "began count=3".to_owned()),
            (LogLevel::Warn, Some(CoreSystem::EventHandler), "refused error=no room".to_owned()),
            (LogLevel::Error, None, "failed".to_owned()),
        ];
        assert_eq!(entries, expected);
    }
}
