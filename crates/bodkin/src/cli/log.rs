//! `bodkin log`: what a core system logged.

use bodkin_arrowhead::{core_service::CoreSystem, log::LogLevel};
use bodkin_client::{LogQuery, answer::LogEntry};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};

use super::{page::PageOptions, printer::Printer, registry::RegistryOptions, table::Table};
use crate::DONE;

/// Options of `bodkin log`.
#[derive(Args, Clone, Debug)]
pub struct LogOptions {
    #[command(flatten)]
    registry: RegistryOptions,
    /// The core system
    #[arg(value_name = "SYSTEM", value_parser = system())]
    system: CoreSystem,
    /// Only what is as grave as this, or graver
    #[arg(long, value_name = "LEVEL", value_parser = level(), ignore_case = true)]
    level: Option<LogLevel>,
    /// Nothing before this time (UTC), for example 2031-01-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Nothing after this time (UTC)
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Only of parts of the program whose names contain this
    #[arg(long, value_name = "TEXT")]
    logger: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

fn system() -> impl TypedValueParser<Value = CoreSystem> {
    let named = |name: String| CoreSystem::ALL.into_iter().find(|system| system.name() == name).expect("it is one of them");
    PossibleValuesParser::new(CoreSystem::ALL.map(CoreSystem::name)).map(named)
}

fn level() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str)).map(|name| LogLevel::parse(&name).expect("it is one of them"))
}

/// Prints the log; gives the exit code.
pub async fn run(options: LogOptions, printer: Printer) -> anyhow::Result<u8> {
    let query = LogQuery { level: options.level, from: options.from, to: options.to, logger: options.logger };
    let entries = match options.system {
        system @ (CoreSystem::Gatekeeper | CoreSystem::Gateway) => {
            options.registry.monitor()?.system_logs(system, &query, &options.page.into()).await?
        }
        system => options.registry.discover().await?.logs(system, &query, &options.page.into()).await?,
    };
    printer.rows(&entries, &table(&entries.data), "nothing of that kind was logged")?;
    Ok(DONE)
}

fn table(entries: &[LogEntry]) -> Table {
    let mut table = Table::new(&["TIME", "LEVEL", "LOGGER", "MESSAGE"]);
    for entry in entries {
        table.push([entry.entry_date.clone(), entry.log_level.clone(), entry.logger.clone(), entry.message.clone()]);
    }
    table
}
