//! `bodkin audit`: who did what, who was given what, and is the log of it whole? Works on the data directory, whether a cloud
//! runs on it or not, and on the copies of all nodes' logs in a database that they share.

mod export;
mod nodes;
mod tail;
mod verify;

use std::path::PathBuf;

use anyhow::Context;
use bodkin_arrowhead::{
    audit::{AuditQuery, Kind},
    utc::UtcTime,
};
use bodkin_store::{audit::AuditReader, shared::DatabasePlace};
use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};

use self::{export::Exporting, tail::Tailing};
use super::printer::Printer;
use crate::settings::data_of_this_machine;

/// Options of `bodkin audit`.
#[derive(Args, Clone, Debug)]
pub struct AuditOptions {
    /// Data directory of the local cloud
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_DATA", value_name = "DIR", default_value_os_t = data_of_this_machine())]
    data: PathBuf,
    /// The logs of all nodes that share a database, as they were copied into it, instead of this one's files
    #[arg(long, global = true, help_heading = "Which cloud")]
    all_nodes: bool,
    /// The database that they share, as postgres://USER@HOST/NAME
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_DATABASE", hide_env_values = true, value_name = "URL")]
    database: Option<String>,
    #[command(subcommand)]
    command: AuditCommand,
}

/// What to do with the audit log.
#[derive(Subcommand, Clone, Debug)]
enum AuditCommand {
    /// Print the newest entries, and with -f those that come, until Ctrl-C
    Tail(Tailing),
    /// Find the first line that was changed, removed, moved or put in. Exit code 1 if there is one
    Verify {
        /// Begin with this entry, and take what it follows as it is
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        from: Option<u64>,
    },
    /// Print every entry: the lines as they are, which can be verified elsewhere, or for a spreadsheet
    Export(Exporting),
}

/// Which entries are printed.
#[derive(Args, Clone, Debug)]
struct Wanted {
    /// Nothing before this time (UTC), for example 2031-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<UtcTime>,
    /// Nothing after this time (UTC)
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<UtcTime>,
    /// Only entries of this kind
    #[arg(long, value_name = "KIND", value_parser = kind())]
    kind: Option<Kind>,
    /// Only of callers in whose names this is
    #[arg(long, value_name = "TEXT")]
    caller: Option<String>,
}

impl From<Wanted> for AuditQuery {
    fn from(wanted: Wanted) -> Self {
        Self { from: 0, since: wanted.since, until: wanted.until, kind: wanted.kind, caller: wanted.caller }
    }
}

fn time(text: &str) -> Result<UtcTime, String> {
    UtcTime::parse(text).map_err(|error| error.to_string())
}

fn kind() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::as_str)).map(|name| Kind::parse(&name).expect("it is one of them"))
}

/// Carries a command out; gives the exit code.
pub async fn run(options: AuditOptions, printer: Printer) -> anyhow::Result<u8> {
    if options.all_nodes {
        let url = options.database.as_deref().filter(|url| !url.is_empty());
        let url = url.context("--all-nodes reads the database that the nodes share: name it with --database or BODKIN_DATABASE")?;
        let place = DatabasePlace::parse(url).context("--database")?;
        return match options.command {
            AuditCommand::Tail(tailing) => nodes::tail(&place, tailing, printer).await,
            AuditCommand::Verify { from: None } => nodes::verify(&place, printer),
            AuditCommand::Verify { from: Some(_) } => {
                anyhow::bail!("--from is a number of one log: with --all-nodes each is verified from its first entry that is there")
            }
            AuditCommand::Export(_) => {
                anyhow::bail!("a log is exported where it is: leave --all-nodes away, or use tail --all-nodes --output json")
            }
        };
    }
    let directory = options.data.join("audit");
    if !directory.is_dir() {
        anyhow::bail!("there is no audit log in {}: name the data directory of a local cloud with --data", directory.display());
    }
    match options.command {
        AuditCommand::Tail(tailing) => tail::run(&AuditReader::new(&directory), tailing, printer).await,
        AuditCommand::Verify { from } => verify::run(&options.data, &directory, from, printer),
        AuditCommand::Export(exporting) => export::run(&AuditReader::new(&directory), exporting),
    }
}
