//! `bodkin graph`: event-processing graphs, before anything runs.

mod draw;
mod layout;
mod report;
mod sheet;

use std::path::PathBuf;

use bodkin_broker::graph::response::{Analysis, ways};
use clap::{Args, Subcommand};

use super::{printer::Printer, write_out};
use crate::{DONE, FAILED, USAGE, graph_file};

/// Options of `bodkin graph`.
#[derive(Args, Clone, Debug)]
pub struct GraphOptions {
    #[command(subcommand)]
    command: GraphCommand,
}

/// What to do with a graph.
#[derive(Subcommand, Clone, Debug)]
enum GraphCommand {
    /// Print what a file of operators makes of which events, how long each output takes at the worst, and what would have to change
    #[command(after_help = "Exit codes: 0 every output is in time, 1 one is not or has no bound, 2 the file has a mistake.")]
    Check {
        /// Graph file (TOML)
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Draw a graph as SVG
    Draw {
        /// Graph file (TOML)
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Where the picture goes; without it, to the standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// Carries a command out; gives the exit code.
pub fn run(options: GraphOptions, printer: Printer) -> anyhow::Result<u8> {
    let (GraphCommand::Check { file: path } | GraphCommand::Draw { file: path, .. }) = &options.command;
    let file = match graph_file::read(path) {
        Ok(file) => file,
        Err(mistakes) => {
            eprintln!("bodkin: {mistakes}");
            return Ok(USAGE);
        }
    };
    match options.command {
        GraphCommand::Check { .. } => {
            let analysis = Analysis::of(&file.graph, &file.workers);
            let ways = ways(&file.graph, &file.workers);
            if printer.is_json() {
                printer.document(&report::Report::of(&file, &analysis, &ways))?;
            } else {
                sheet::print(&file, &analysis, &ways, printer)?;
            }
            Ok(if analysis.is_feasible() { DONE } else { FAILED })
        }
        GraphCommand::Draw { out, .. } => {
            let picture = draw::svg(&file);
            match out {
                Some(path) => std::fs::write(&path, picture).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?,
                None => write_out(&picture)?,
            }
            Ok(DONE)
        }
    }
}
