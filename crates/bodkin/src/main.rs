//! The command `bodkin`: a local cloud in one binary.

mod carrier;
mod cli;
mod demo;
mod doctor;
#[cfg(test)]
mod documents;
mod environment;
mod forecast;
mod graph_file;
mod log;
mod modelling;
mod nearest;
mod owner;
mod passphrase;
mod relay;
mod service_manager;
mod settings;
mod shell;
mod topic_file;
mod up;
mod witness;
mod wrap;

use std::{process::ExitCode, sync::Arc, time::Instant};

use bodkin_host::{graph::contain::is_contained, log_book::LogBook, realtime::map_code_by_page};
use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
    error::{ContextKind, ContextValue},
};
use tracing_subscriber::filter::LevelFilter;

/// The command did what it was asked.
const DONE: u8 = 0;
/// The command did not do what it was asked.
const FAILED: u8 = 1;
/// The command was not understood.
const USAGE: u8 = 2;

/// A local cloud for the industrial Internet of Things in one small binary.
#[derive(Parser)]
#[command(
    name = "bodkin",
    version,
    about = "A local cloud for the industrial Internet of Things in one small binary",
    arg_required_else_help = true,
    after_help = "To begin: bodkin demo shows a cloud at work. bodkin up serves one from an empty folder, with certificates; bodkin status looks at it, and bodkin doctor at the machine. \
    bodkin help COMMAND says more of each."
)]
struct Command {
    /// How results are printed
    #[arg(long, global = true, help_heading = "Output", env = "BODKIN_OUTPUT", value_name = "FORM", default_value = "table")]
    output: Output,
    /// What is logged to stderr
    #[arg(long, global = true, help_heading = "Output", env = "BODKIN_LOG", value_name = "LEVEL", default_value = "warn")]
    log: LevelFilter,
    /// How that is written
    #[arg(long, global = true, help_heading = "Output", env = "BODKIN_LOG_FORMAT", value_name = "FORM", default_value = "text")]
    log_format: log::LogFormat,
    #[command(subcommand)]
    task: Task,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// For programs: one JSON document, or one a line.
    Json,
    /// For spreadsheets: the curves of `model`; nothing else has a form of it.
    Csv,
}

#[derive(Subcommand)]
enum Task {
    /// Serve the local cloud: Service Registry, Authorization, Orchestrator, Event Handler, Gatekeeper, Gateway
    Up(up::UpOptions),
    /// The Backup of a reliable pair: `up --role backup`. It repeats the Primary, and serves when that one is gone
    Backup(up::UpOptions),
    /// The witness of a reliable pair: votes who of the two may serve; holds nothing else
    Witness(witness::WitnessOptions),
    /// Relays, where clouds meet: be one, or make them known to a cloud
    Relay(cli::RelayOptions),
    /// Show a local cloud at work: real sensors, denied and allowed, events by stream and by push
    Demo(demo::DemoOptions),
    #[command(flatten)]
    Client(cli::ClientCommand),
    /// The cloud's authority and the certificates of its systems; the cloud need not run
    Cert(cli::CertOptions),
    /// The database of a local cloud: copy it into a file while the cloud runs, put such a copy back, take over that of the Java systems (import-arrowhead)
    Db(cli::DbOptions),
    /// Real-time topics: will they meet their deadlines and bounds on losses? Nothing need run
    Topic(cli::TopicOptions),
    /// Event-processing graphs: what becomes of which events, and is it in time? And those of a running cloud
    Graph(cli::GraphOptions),
    /// Stochastic Petri nets: what a deployment will do. Nothing need run
    Model(cli::ModelOptions),
    /// Is this machine fit for a local cloud? Clocks, rights, stalls, ports, disk, database; changes nothing
    Doctor(doctor::DoctorOptions),
    /// Measure a local cloud, Bodkin or a peer
    Bench(bodkin_bench::BenchCommand),
    /// The broker's machines on a virtual clock and a faulty network: crashes by the thousand, every promise checked
    Simulate(cli::SimulateOptions),
    /// Print what lets a shell complete commands and options
    Completions(shell::CompletionOptions),
    /// Print a manual page, of bodkin or one of its commands
    Man(shell::ManualOptions),
}

impl From<Output> for cli::ModelForm {
    fn from(output: Output) -> Self {
        match output {
            Output::Table => Self::Table,
            Output::Json => Self::Json,
            Output::Csv => Self::Csv,
        }
    }
}

fn main() -> ExitCode {
    let started = Instant::now();
    // In front of the command line, whose code is long and runs once.
    let mapped = is_to_stay().then(map_code_by_page);
    let variables = std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    let told = definition();
    if let Err(mistake) = environment::check(&told, variables) {
        eprintln!("bodkin: {mistake}");
        return USAGE.into();
    }
    let matches = told.try_get_matches().unwrap_or_else(|error| refuse(&error));
    let command = Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    stop_on_panic();
    let log_book = Arc::new(LogBook::default());
    log::begin(command.log, command.log_format, matches!(command.task, Task::Up(_) | Task::Backup(_)).then(|| log_book.clone()));
    match mapped {
        Some(Ok(bytes)) => tracing::debug!(bytes, "the program is mapped page by page"),
        Some(Err(error)) => tracing::debug!(%error, "the program is mapped as the kernel likes: more of it is in memory than runs"),
        None => {}
    }
    let json_output = command.output == Output::Json;
    if command.output == Output::Csv && !matches!(command.task, Task::Model(_)) {
        eprintln!("bodkin: --output csv (or BODKIN_OUTPUT) is for the curves of model only; expected table or json");
        return USAGE.into();
    }
    let done = match command.task {
        Task::Up(options) => up::run(options, log_book, started, json_output),
        Task::Backup(options) => up::run(options.into_backup(), log_book, started, json_output),
        Task::Witness(options) => witness::run(options, json_output),
        Task::Relay(cli::RelayOptions { command: cli::RelayCommand::Serve(options) }) => relay::run(&options, json_output),
        Task::Demo(_) if json_output => {
            eprintln!("bodkin: the demo speaks to people only; leave out --output json (or BODKIN_OUTPUT), and see its exit code");
            return USAGE.into();
        }
        Task::Demo(options) => on_one_thread(demo::run(options)),
        Task::Client(command) => on_one_thread(cli::run(command, json_output)),
        Task::Cert(options) => cli::run_cert(options, cli::Printer::new(json_output)),
        Task::Db(options) => cli::run_db(options, cli::Printer::new(json_output)),
        Task::Topic(options) => on_one_thread(cli::run_topic(options, cli::Printer::new(json_output))),
        Task::Relay(options) => on_one_thread(cli::run_relay(options, cli::Printer::new(json_output))),
        Task::Graph(options) => on_one_thread(cli::run_graph(options, cli::Printer::new(json_output))),
        Task::Model(options) => cli::run_model(options, command.output.into()),
        Task::Doctor(options) => on_one_thread(doctor::run(options, cli::Printer::new(json_output))),
        Task::Bench(bench) => bodkin_bench::run(bench, json_output),
        Task::Simulate(options) => cli::run_simulate(options, cli::Printer::new(json_output)),
        Task::Completions(options) => shell::completions(definition(), &options).map(|()| DONE),
        Task::Man(options) => shell::manual(definition(), &options).map(|()| DONE),
    };
    match done {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("bodkin: {error:#}");
            FAILED.into()
        }
    }
}

/// The command line as it is told.
fn definition() -> clap::Command {
    settings::help::with_defaults(Command::command())
}

/// Whether this looks like a process that is to stay, before the command line is read: for others more steps of mapping are not worth it. Who has an argument that is called so pays them for nothing.
fn is_to_stay() -> bool {
    std::env::args_os().any(|argument| ["up", "backup", "witness"].iter().any(|command| argument == *command))
}

/// Ends the process over what it was not called right with; of an option that has moved it says where.
fn refuse(error: &clap::Error) -> ! {
    if let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && let Some(told) = settings::moved::told(argument)
    {
        eprintln!("bodkin: {told}");
        std::process::exit(USAGE.into());
    }
    error.exit()
}

/// Runs a command that waits more than it works.
fn on_one_thread(work: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A thread that reads standard input cannot be woken.
    runtime.shutdown_background();
    done
}

/// A broken invariant stops the process whichever thread finds it, in every build. Only a panic of a graph's operator ends no more than its step.
fn stop_on_panic() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_contained() {
            // Without the stack, which takes seconds to print where it is asked for.
            return eprintln!("{panic}");
        }
        told(panic);
        std::process::abort();
    }));
}
