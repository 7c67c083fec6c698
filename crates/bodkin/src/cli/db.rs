//! `bodkin db`: the database of a local cloud as a file of its own.

use std::path::PathBuf;

use bodkin_store::safety_copy::{self, PutBack, SafetyCopy};
use clap::{Args, Subcommand};
use serde_json::json;

use super::{import::ImportOptions, printer::Printer};
use crate::{DONE, settings::data_of_this_machine};

/// Options of `bodkin db`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The database has everything that management rules over: systems, services, rules, subscriptions, topics, graphs, relays. Not in it are the trust \
    directory (certificates and keys), the audit log and the event log: they are files in the data directory, to be kept with it."
)]
pub struct DbOptions {
    /// Directory of the cloud's database and other state
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_DATA", value_name = "DIR", default_value_os_t = data_of_this_machine())]
    data: PathBuf,
    #[command(subcommand)]
    command: DbCommand,
}

/// What to do with the database.
#[derive(Subcommand, Clone, Debug)]
enum DbCommand {
    /// Copy the database into a file, which must not be there; a cloud that runs goes on
    Backup {
        /// Where the copy goes
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Take over the registry of a cloud of the Java systems, from a dump of its MySQL or MariaDB database
    ImportArrowhead(ImportOptions),
    /// Put a copy in the place of the database; the cloud must not run
    #[command(
        after_help = "A copy of an older Bodkin is brought up to date, one of a newer Bodkin is refused. Of a reliable pair stop both nodes, and restore at both."
    )]
    Restore {
        /// The copy, as `bodkin db backup` has made it
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Carries a command out; gives the exit code.
pub fn run(options: DbOptions, printer: Printer) -> anyhow::Result<u8> {
    match options.command {
        DbCommand::Backup { file } => {
            let SafetyCopy { bytes, schema } = safety_copy::make(&options.data, &file)?;
            let shown = file.display();
            let told = format!("{shown} has the database: {bytes} bytes, tables of version {schema}");
            printer.done(&json!({"file": file, "bytes": bytes, "schema": schema}), &told)?;
        }
        DbCommand::ImportArrowhead(import) => return super::import::run(&import, &options.data, printer),
        DbCommand::Restore { file } => {
            let PutBack { schema, systems, services, moved_away } = safety_copy::put_back(&options.data, &file)?;
            let shown = options.data.display();
            let beside = if moved_away { "; what was there is damaged, and lies beside it as bodkin.sqlite.damaged" } else { "" };
            let told = format!("the database of {shown} is that of {}: {systems} systems, {services} services{beside}", file.display());
            printer.done(
                &json!({"data": options.data, "schema": schema, "systems": systems, "services": services, "moved_away": moved_away}),
                &told,
            )?;
        }
    }
    Ok(DONE)
}
