//! `bodkin pair`: what an operator asks of a reliable pair.

use clap::{Args, Subcommand};

use super::{printer::Printer, registry::RegistryOptions};
use crate::DONE;

/// Options of `bodkin pair`.
#[derive(Args, Clone, Debug)]
pub struct PairOptions {
    #[command(subcommand)]
    command: PairCommand,
}

/// What to ask.
#[derive(Subcommand, Clone, Debug)]
enum PairCommand {
    /// Have the other node lead, so that this one can be upgraded or switched off: what waits is answered, the Backup has everything, then the lead goes over
    #[command(after_help = "Nothing that was answered is lost. Requests are refused (503, Retry-After) until the other node leads.\n\
        Exit codes: 0 the other node leads, 1 it does not and why, 3 not for this caller.")]
    HandOver {
        #[command(flatten)]
        registry: RegistryOptions,
    },
}

/// Carries a command out; gives the exit code.
pub async fn run(options: PairOptions, printer: Printer) -> anyhow::Result<u8> {
    let PairCommand::HandOver { registry } = options.command;
    let done = registry.monitor()?.hand_over().await?;
    let told = format!(
        "the {} node leads in epoch {}; everything was answered within {} ms, then nobody led for {} ms",
        done.leader, done.epoch, done.drained_ms, done.gap_ms
    );
    printer.done(&done, &told)?;
    Ok(DONE)
}
