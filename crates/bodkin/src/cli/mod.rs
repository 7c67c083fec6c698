//! The client commands: `status`, `service`, `system`, `auth`, `rule`, `orchestrate`, `event`, `cloud`, `relay`, `pair`, `fleet` and `log`, the management of one thing each by
//! its name; and those that need no cloud: `cert`, `db`, `audit`, `topic`, `graph` and `model`, which work on files, and `simulate`.
//!
//! A command is a few calls to the core systems, found through the Service Registry, or to Bodkin's own port. Results go to
//! stdout, errors and remarks to stderr.

mod audit;
mod auth;
mod cert;
mod cloud;
mod credentials;
mod dashboard;
mod db;
mod details;
mod event;
mod explanation;
mod fleet;
mod graph;
mod import;
mod log;
mod lookup;
mod model;
mod name_row;
mod onboard;
mod orchestrate;
mod page;
mod pair;
mod printer;
mod probe;
mod public_key;
mod registry;
mod relay;
mod reliable_pair;
mod rule;
mod service;
mod simulate;
pub mod status;
mod system;
mod table;
mod topic;

use bodkin_client::CallError;
use clap::Subcommand;

pub use self::{
    cert::{CertOptions, run as run_cert},
    db::{DbOptions, run as run_db},
    graph::{GraphOptions, run as run_graph},
    model::{Form as ModelForm, ModelOptions, run as run_model},
    printer::{Printer, write_out},
    relay::{RelayCommand, RelayOptions, run as run_relay},
    simulate::{SimulateOptions, run as run_simulate},
    topic::{TopicOptions, run as run_topic},
};

/// The caller may not do what was asked.
const DENIED: u8 = 3;

/// A command to a local cloud that runs.
#[derive(Subcommand, Clone, Debug)]
pub enum ClientCommand {
    /// A node at a glance: who leads, what is guaranteed, what it holds, and what is wrong
    Status(status::StatusOptions),
    /// The dashboard: print a link that signs the operator's browser in, once
    Dashboard(dashboard::DashboardOptions),
    /// Services: who offers what
    Service(service::ServiceOptions),
    /// Systems: who takes part
    System(system::SystemOptions),
    /// Authorization rules: who may use what
    Auth(auth::AuthOptions),
    /// Rules of the orchestration store: whom a consumer is sent to first
    Rule(rule::RuleOptions),
    /// Ask the Orchestrator what a consumer should use, and why it is nothing
    Orchestrate(orchestrate::OrchestrateOptions),
    /// Events: publish, subscribe, tail, replay, dead letters
    Event(event::EventOptions),
    /// Other clouds: make them known, ask whether they are there, share events with them, look at the tunnels (sessions)
    Cloud(cloud::CloudOptions),
    /// What a core system logged
    Log(log::LogOptions),
    /// The audit log: who did what, who was given what; is it whole?
    Audit(audit::AuditOptions),
    /// A reliable pair: have the other node lead
    Pair(reliable_pair::PairOptions),
    /// A fleet's stream: have a stopped lane continue
    Fleet(fleet::FleetOptions),
    /// New systems: who may come to a certificate, and coming to one
    Onboard(onboard::OnboardOptions),
}

/// Carries a command out; gives the exit code. A failed call is an error, but for a denied one, which is told here.
pub async fn run(command: ClientCommand, json_output: bool) -> anyhow::Result<u8> {
    let printer = Printer::new(json_output);
    let done = match command {
        ClientCommand::Status(options) => status::run(options, printer).await,
        ClientCommand::Dashboard(options) => dashboard::run(options, printer).await,
        ClientCommand::Service(options) => service::run(options, printer).await,
        ClientCommand::System(options) => system::run(options, printer).await,
        ClientCommand::Auth(options) => auth::run(options, printer).await,
        ClientCommand::Rule(options) => rule::run(options, printer).await,
        ClientCommand::Orchestrate(options) => orchestrate::run(options, printer).await,
        ClientCommand::Log(options) => log::run(options, printer).await,
        ClientCommand::Audit(options) => audit::run(options, printer).await,
        ClientCommand::Pair(options) => reliable_pair::run(options, printer).await,
        ClientCommand::Fleet(options) => fleet::run(options, printer).await,
        ClientCommand::Onboard(options) => onboard::run(options, printer).await,
        ClientCommand::Event(options) => event::run(options, printer).await,
        ClientCommand::Cloud(options) => cloud::run(options, printer).await,
    };
    told(done)
}

/// A denied call is told, and has an exit code of its own.
fn told(done: anyhow::Result<u8>) -> anyhow::Result<u8> {
    match done {
        Err(error) if error.downcast_ref::<CallError>().is_some_and(CallError::is_denied) => {
            eprintln!("bodkin: {error:#}");
            Ok(DENIED)
        }
        done => done,
    }
}
