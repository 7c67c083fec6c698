//! `bodkin fleet`: what an operator decides about lanes to a fleet's stream.

use clap::{Args, Subcommand};

use super::{printer::Printer, registry::RegistryOptions};
use crate::DONE;

/// Options of `bodkin fleet`.
#[derive(Args, Clone, Debug)]
pub struct FleetOptions {
    #[command(subcommand)]
    command: FleetCommand,
}

/// What to do.
#[derive(Subcommand, Clone, Debug)]
enum FleetCommand {
    /// Have a stopped lane continue behind another process's batch: this edge owns the lane from now on
    #[command(
        after_help = "A lane stops when the stream's last batch of it is of another process: another edge has this one's name, a copy of this data\n\
        directory runs, or this one was restored from a backup or replaces another host. End the other process first.\n\
        Events that wait are sent in a new epoch. A batch that had no answer when the lane stopped may be in the stream twice."
    )]
    Adopt {
        /// The lane
        #[arg(long, value_name = "NAME")]
        lane: String,
        #[command(flatten)]
        registry: RegistryOptions,
    },
}

/// Carries a command out; returns the exit code.
pub async fn run(options: FleetOptions, printer: Printer) -> anyhow::Result<u8> {
    let FleetCommand::Adopt { lane, registry } = options.command;
    let adopted = registry.monitor()?.adopt_lane(&lane).await?;
    printer.done(&adopted, &format!("lane {lane} is adopted: it continues behind the other process's batch when it next reads the stream, and bodkin status reports it"))?;
    Ok(DONE)
}
