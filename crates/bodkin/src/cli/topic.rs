//! `bodkin topic`: real-time topics, before anything runs.

mod report;
mod sheet;

use std::path::PathBuf;

use bodkin_broker::{timing::Plan, topic::TopicSpec};
use clap::{Args, Subcommand};

use super::printer::Printer;
use crate::{DONE, FAILED, USAGE, topic_file};

/// Options of `bodkin topic`.
#[derive(Args, Clone, Debug)]
pub struct TopicOptions {
    #[command(subcommand)]
    command: TopicCommand,
}

/// What to do with topics.
#[derive(Subcommand, Clone, Debug)]
enum TopicCommand {
    /// Print the deadlines that follow from a file of topics, whether they can be met, and what would have to change
    #[command(after_help = "Exit codes: 0 every topic would be admitted, 1 something is refused, 2 the file has a mistake.")]
    Check {
        /// File of topics (TOML)
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Carries a command out; gives the exit code.
pub fn run(options: TopicOptions, printer: Printer) -> anyhow::Result<u8> {
    let TopicCommand::Check { file: path } = options.command;
    let file = match topic_file::read(&path) {
        Ok(file) => file,
        Err(mistakes) => {
            eprintln!("bodkin: {mistakes}");
            return Ok(USAGE);
        }
    };
    let entries: Vec<(TopicSpec, u32)> = file.topics.iter().map(|topic| (topic.form.spec, topic.form.count)).collect();
    let plan = Plan::of(&file.platform, &entries);
    if printer.is_json() {
        printer.document(&report::Report::of(&file, &plan))?;
    } else {
        sheet::print(&path, &file, &plan, printer)?;
    }
    let is_admitted = plan.is_admitted() && file.platform.failover_shortfall().is_none();
    Ok(if is_admitted { DONE } else { FAILED })
}
