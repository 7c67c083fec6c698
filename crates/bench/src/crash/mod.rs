//! `bench crash`: a real pair in network namespaces, publishers and subscribers of every transport beside it, and what they notice when
//! something goes wrong.
//!
//! A [`Plan`] names the rounds, each with one configuration and its faults. After each fault, [`check`](round) compares
//! the [`ledger`] of all events with the promises, so that a breach has the seed and the number of its fault. Finished faults are in a
//! state file; a rerun continues after them.
//!
//! A gap is the time from a fault until the publishers turn to the broker that leads next: that is what x bounds. A gap of cover is the longest time in which they
//! are told of nothing that is safe, the time between two events and the way to the subscriber included. Losses, order and duplicates are counted at the
//! subscribers, from sequence numbers.

mod access;
pub mod clients;
pub mod disk;
pub mod fate;
mod fault;
mod jetstream;
pub mod ledger;
mod nodes;
mod plan;
mod plant;
mod rights;
mod round;
pub mod state;
mod strike;
pub mod table;
mod watch;

pub use fault::Fault;

use std::sync::Arc;

use self::access::Access;
use self::jetstream::JetStream;
use self::plan::Plan;
use self::plant::{Plant, Site};
use self::state::Saved;
use crate::machine::Conditions;
use crate::options::CrashOptions;
use crate::report::Report;
use crate::state::State;

/// Runs the faults that the options name or draw, and returns the report.
///
/// # Errors
/// The system makes no namespaces, or the state file is of another campaign.
pub fn run(options: &CrashOptions) -> anyhow::Result<Report> {
    let plant = Arc::new(Plant::lay()?);
    let mut saved = Saved::open(options.state.as_deref(), options.seed, State::fresh_seed(), &options.plan_text())?;
    let plan = Plan::new(options, saved.seed);
    eprintln!("seed {}: {} faults, {} of them done", saved.seed, plan.fault_count(), saved.results.len());
    let mode = if options.secure { "secure" } else { "insecure" };
    let server = format!("own pair and witness in network namespaces, started by the bench, {mode}");
    let mut conditions = Conditions::begin("placed by the kernel".into(), server, "until every stream flows".into(), options.times);
    // This thread asks the brokers from where the subscribers are.
    plant.enter(Site::Viewer)?;
    let server = if options.faults.is_some() && !options.dealer_only { JetStream::start(&plant)? } else { None };
    if options.faults.is_some() && server.is_none() {
        eprintln!("there is no nats-server (BODKIN_NATS_SERVER, or on PATH): nothing is forwarded to JetStream");
    }
    let access = if options.secure { Access::secure(&options.program()?, &plan)? } else { Access::default() };
    let mut first = 0;
    for round in &plan.rounds {
        // A breach ends the pair of a round, and the rest of the faults strike a new one.
        while saved.results.len() < first + round.faults.len() {
            let done = saved.results.len() - first;
            // Each pair has its own edge name: its new log cannot continue the lane of another pair.
            let edge = server.as_ref().map(|_| format!("crash{}", saved.results.len()));
            round::run(&plant, &access, options, &round.forwarding(edge), done, &mut saved)?;
        }
        first += round.faults.len();
    }
    let mut report = table::report(options, &plan, &saved);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}
