//! `bodkin graph`: event-processing graphs, before anything runs and in a running cloud.

mod deployed;
mod draw;
mod layout;
mod moving;
mod placed;
mod report;
mod sheet;

use std::path::{Path, PathBuf};

use bodkin_broker::graph::response::{Analysis, ways};
use bodkin_operators::file::GraphFile;
use clap::{Args, Subcommand};

use super::{printer::Printer, registry::RegistryOptions, write_out};
use crate::{DONE, FAILED, USAGE, graph_file, settings};

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
    #[command(
        after_help = "Exit codes: 0 every output is in time, 1 one is not or has no bound, or a node would not run the graphs together, 2 a file has a mistake."
    )]
    Check {
        /// Graph files (TOML)
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// The configuration of a node: whether that would run all of these, beside the graphs that it names
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
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
    /// Have a graph run in a cloud, in the place of the one of its name, if it fits beside the others and its results are in time
    Deploy {
        #[command(flatten)]
        registry: RegistryOptions,
        /// Graph file (TOML)
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Even if an operator of the graph that runs is between two edges, and is lost by that
        #[arg(long)]
        force: bool,
    },
    /// Have an operator run on another edge from now on, with its state; asked where it runs
    #[command(
        after_help = "Until the edge where the operator runs has committed, a failure changes nothing. Behind that, the same command once more brings the move to its end."
    )]
    Move {
        #[command(flatten)]
        registry: RegistryOptions,
        /// The operator
        #[arg(value_name = "OPERATOR")]
        operator: String,
        /// The edge that it is to run on
        #[arg(long, value_name = "EDGE")]
        to: String,
        /// Its graph, where several have an operator of this name
        #[arg(long, value_name = "GRAPH")]
        graph: Option<String>,
        /// Bodkin's own port of another edge of the graph, once for each; in secure mode behind a space the directory of that edge's certificates
        #[arg(long, value_name = "EDGE=HOST:PORT")]
        at: Vec<String>,
        /// Even if results may be late there
        #[arg(long)]
        force: bool,
    },
    /// List the graphs of a cloud, and what became of their events
    List {
        #[command(flatten)]
        registry: RegistryOptions,
    },
    /// Have a graph run no more
    Remove {
        #[command(flatten)]
        registry: RegistryOptions,
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// Even if an operator of it is between two edges, and is lost by that
        #[arg(long)]
        force: bool,
    },
}

/// Carries a command out; gives the exit code.
pub async fn run(options: GraphOptions, printer: Printer) -> anyhow::Result<u8> {
    match options.command {
        GraphCommand::Check { files, config } => check_all(&files, config.as_deref(), printer),
        GraphCommand::Draw { file, out } => with_file(&file, |file| draw(file, out.as_deref())),
        GraphCommand::Deploy { registry, file, force } => deployed::deploy(&registry.monitor()?, &file, force, printer).await,
        GraphCommand::Move { registry, operator, to, graph, at, force } => {
            let moving = moving::Moving { operator: &operator, to: &to, graph: graph.as_deref(), at: &at, force };
            moving::run(&registry, &moving, printer).await
        }
        GraphCommand::List { registry } => deployed::list(&registry.monitor()?, printer).await,
        GraphCommand::Remove { registry, name, force } => deployed::remove(&registry.monitor()?, &name, force, printer).await,
    }
}

fn with_file(path: &Path, work: impl FnOnce(&GraphFile) -> anyhow::Result<u8>) -> anyhow::Result<u8> {
    match graph_file::read(path) {
        Ok(file) => work(&file),
        Err(mistakes) => {
            eprintln!("bodkin: {mistakes}");
            Ok(USAGE)
        }
    }
}

/// Looks at each file, and then whether a node would run them together; the worst of it is the exit code.
fn check_all(files: &[PathBuf], config: Option<&Path>, printer: Printer) -> anyhow::Result<u8> {
    let mut code = DONE;
    for path in files {
        code = code.max(with_file(path, |file| check(file, printer))?);
    }
    if let Some(config) = config.filter(|_| code != USAGE)
        && let Err(refusal) = settings::check_together(config, files)
    {
        eprintln!("bodkin: {refusal:#}");
        code = code.max(FAILED);
    }
    Ok(code)
}

fn check(file: &GraphFile, printer: Printer) -> anyhow::Result<u8> {
    if let Some(placed) = placed::Placed::of(file) {
        match printer.is_json() {
            true => printer.document(&report::Report::of_placed(&placed))?,
            false => sheet::print_placed(&placed, printer)?,
        }
        return Ok(if placed.analysis.is_feasible() { DONE } else { FAILED });
    }
    let analysis = Analysis::of(&file.graph, &file.workers);
    let ways = ways(&file.graph, &file.workers);
    if printer.is_json() {
        printer.document(&report::Report::of(file, &analysis, &ways))?;
    } else {
        sheet::print(file, &analysis, &ways, printer)?;
    }
    Ok(if analysis.is_feasible() { DONE } else { FAILED })
}

fn draw(file: &GraphFile, out: Option<&Path>) -> anyhow::Result<u8> {
    let picture = draw::svg(file);
    match out {
        Some(path) => std::fs::write(path, picture).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?,
        None => write_out(&picture)?,
    }
    Ok(DONE)
}
