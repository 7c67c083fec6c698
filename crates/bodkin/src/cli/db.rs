//! `bodkin db`: the database of a local cloud as a file of its own.

use std::path::PathBuf;

use bodkin_store::{
    safety_copy::{self, Before, Events, PutBack, SafetyCopy},
    shared::{DatabasePlace, Migrated, migrate},
};
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
    /// Move the cloud from the database in its data directory into one that several nodes share; the cloud must not run
    #[command(
        after_help = "Every row keeps its id. The database in the data directory is renamed to bodkin.sqlite.moved; the directory becomes that of the cloud's first node, and \
        starts only with --database. Real-time topics and graphs do not move: one node serves them."
    )]
    Migrate {
        /// What it is moved from
        #[arg(long, value_name = "KIND", value_parser = ["sqlite"])]
        from: String,
        /// What it is moved to
        #[arg(long, value_name = "KIND", value_parser = ["postgres"])]
        to: String,
        /// The shared database, which must be empty: postgres://USER:PASSWORD@HOST:PORT/DATABASE
        #[arg(long, env = "BODKIN_DATABASE", value_name = "URL", hide_env_values = true)]
        database: String,
    },
    /// Put a copy in the place of the database, which is kept beside it; the cloud must not run
    #[command(
        after_help = "A copy of an older Bodkin is brought up to date, one of a newer Bodkin is refused. Of a reliable pair stop both nodes, and restore at both."
    )]
    Restore {
        /// The copy, as `bodkin db backup` has made it
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Take the copy of another database, and move the events in the directory aside: they name systems of the database that was there
        #[arg(long)]
        discard_events: bool,
    },
    /// Move the events in the directory aside, because they belong to another database; the cloud must not run
    DiscardEvents,
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
        DbCommand::Migrate { database, .. } => {
            let place = DatabasePlace::parse(&database)?;
            let Migrated { systems, services, rows, kept } = migrate(&options.data, &place)?;
            let told = format!("{place} has the cloud of {}: {systems} systems, {services} services, {rows} rows", options.data.display());
            let next = format!("Start it with --database at every node; the database from before is kept as {}.", kept.display());
            printer.done(
                &json!({"database": place.to_string(), "systems": systems, "services": services, "rows": rows, "kept": kept}),
                &format!("{told}. {next}"),
            )?;
        }
        DbCommand::DiscardEvents => {
            let discarded = safety_copy::discard_events(&options.data)?;
            let shown = options.data.display();
            let told = match &discarded {
                Some(aside) => format!("the events of {shown} are in {} now; the next start begins without events", aside.display()),
                None => format!("{shown} has no events"),
            };
            printer.done(&json!({"data": options.data, "discarded": discarded}), &told)?;
        }
        DbCommand::Restore { file, discard_events } => {
            let events = if discard_events { Events::Discard } else { Events::Keep };
            let PutBack { schema, systems, services, before, discarded } = safety_copy::put_back(&options.data, &file, events)?;
            let shown = options.data.display();
            let was = match &before {
                Before::Nothing => String::new(),
                Before::Damaged => "; what was there is damaged, and lies beside it as bodkin.sqlite.damaged".to_owned(),
                Before::Replaced { systems, services, kept } => {
                    format!("; the one that was there had {systems} systems, {services} services, and is kept as {}", kept.display())
                }
            };
            let kept = if let Before::Replaced { kept, .. } = &before { Some(kept) } else { None };
            let aside = discarded.as_ref().map_or_else(String::new, |aside| format!("; its events are in {} now", aside.display()));
            let told = format!("the database of {shown} is that of {}: {systems} systems, {services} services{was}{aside}", file.display());
            printer.done(
                &json!({"data": options.data, "schema": schema, "systems": systems, "services": services,
                    "moved_away": before == Before::Damaged, "kept": kept, "discarded": discarded}),
                &told,
            )?;
        }
    }
    Ok(DONE)
}
