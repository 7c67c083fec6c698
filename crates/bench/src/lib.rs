//! Load and experiments: how long a running Bodkin, or any other Arrowhead 4.x, takes and what it needs for that.
//!
//! The bench speaks plain HTTP/1.1 over sockets of its own, on one thread, because it shares the machine with the server
//! it measures. `simultaneous`, `lanes` and `client` are the three ways in which [`load`] lets requests go;
//! [`event`] has publishers and subscribers in processes of their own and a bare relay as the floor; [`start`] starts
//! servers. Each ends in a [`report`].

mod answer;
mod client;
mod cloud;
mod disk_flush;
mod endpoint;
mod event;
mod expectation;
mod lanes;
mod listen_drops;
mod load;
mod machine;
mod options;
#[cfg(test)]
mod peer;
mod published;
mod report;
mod request;
mod resident;
mod scene;
mod server;
mod simultaneous;
mod stages;
mod start;
mod statistics;

pub use options::BenchCommand;

use std::io::Write;

use options::Experiment;
use scene::Operation;

/// Exit code of a bench that ran: failed requests are figures of its report, not failures of the bench.
const DONE: u8 = 0;

/// Runs the experiment and writes its report to stdout, as one JSON document or as tables. Gives the exit code.
///
/// # Errors
/// The server does not start or answer, or the machine does not allow the load.
pub fn run(command: BenchCommand, json: bool) -> anyhow::Result<u8> {
    let report = match command.experiment {
        Experiment::Register(options) => load::run(Operation::Register, &options)?,
        Experiment::Query(options) => load::run(Operation::Query, &options)?,
        Experiment::Authorize(options) => load::run(Operation::Authorize, &options)?,
        Experiment::Orchestrate(options) => load::run(Operation::Orchestrate, &options)?,
        Experiment::Start(options) => start::run(&options)?,
        Experiment::Event(options) => event::run(&options)?,
        Experiment::Role => return event::role::run().map(|()| DONE),
    };
    let mut stdout = std::io::stdout().lock();
    if json {
        writeln!(stdout, "{}", report.json())?;
    } else {
        write!(stdout, "{}", report.table())?;
    }
    Ok(DONE)
}
