//! `bodkin topic`: real-time topics, before anything runs and in a running cloud.

mod declared;
mod report;
mod sheet;

use std::path::{Path, PathBuf};

use bodkin_broker::{timing::Plan, topic::TopicSpec};
use clap::{Args, Subcommand};

use self::declared::NewTopic;
use super::{printer::Printer, registry::RegistryOptions};
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
    /// List the real-time topics of a cloud, and what became of their events since it started
    List {
        #[command(flatten)]
        registry: RegistryOptions,
    },
    /// Make an event type a real-time topic, if it fits beside those there are
    #[command(after_help = "The keys are those of a file of topics: docs/formats/topics.md.\n\
        Example: bodkin topic add temperature period_ms=100 deadline_ms=100 dispatch_cost_us=20")]
    Add {
        #[command(flatten)]
        registry: RegistryOptions,
        #[command(flatten)]
        new: NewTopic,
    },
    /// Take the promises of an event type back: its events are best effort again
    Remove {
        #[command(flatten)]
        registry: RegistryOptions,
        /// The event type
        #[arg(value_name = "EVENT_TYPE")]
        event_type: String,
    },
}

/// Carries a command out; gives the exit code.
pub async fn run(options: TopicOptions, printer: Printer) -> anyhow::Result<u8> {
    match options.command {
        TopicCommand::Check { file } => check(&file, printer),
        TopicCommand::List { registry } => declared::list(&registry.monitor()?, printer).await,
        TopicCommand::Add { registry, new } => declared::add(&registry.monitor()?, new, printer).await,
        TopicCommand::Remove { registry, event_type } => declared::remove(&registry.monitor()?, &event_type, printer).await,
    }
}

fn check(path: &Path, printer: Printer) -> anyhow::Result<u8> {
    let file = match topic_file::read(path) {
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
        sheet::print(path, &file, &plan, printer)?;
    }
    let is_admitted = plan.is_admitted() && file.platform.failover_shortfall().is_none();
    Ok(if is_admitted { DONE } else { FAILED })
}
