//! Load and experiments: how long a running Bodkin, or any other Arrowhead 4.x, takes and what it needs for that.
//!
//! The bench speaks HTTP/1.1, plain or over TLS, over sockets of its own, on one thread, because it shares the machine with the
//! server it measures. A run starts from a named [`state`] of the [`data`], which [`baseline`] restores. `simultaneous`, `lanes`
//! and `client` are the three ways in which [`load`] lets requests go, and [`limit`] looks for the most that are answered
//! in time; [`event`] has publishers and subscribers in processes of their own and a bare relay as the floor; [`start`]
//! starts servers; [`crash`] lets the processes of a pair die; [`intercloud`] has two clouds and a relay between them; [`nodes`] has several nodes of one cloud; [`outage`] lets such nodes and the edges of a fleet fail; [`taskfarm`] runs the C library's use cases on an emulated radio; [`secure`] lets the same load go in insecure and in secure mode, and [`handshake`] is what that cannot go below. Each
//! ends in a [`report`]; [`lab`] runs them all into one.

mod answer;
mod baseline;
mod certificates;
mod cgroup;
mod client;
mod cloud;
mod crash;
mod data;
mod disk_flush;
mod draws;
mod endpoint;
mod event;
mod expectation;
mod handshake;
mod http;
mod intercloud;
mod isolation;
mod lab;
mod lanes;
mod limit;
pub mod link;
mod listen_drops;
mod load;
mod machine;
mod nodes;
mod open_files;
mod operation;
mod options;
mod outage;
mod page;
#[cfg(test)]
mod peer;
pub mod ports;
mod processor_time;
mod published;
mod realtime;
pub mod recording;
mod report;
mod request;
mod resident;
mod scene;
mod search;
mod secure;
mod server;
mod simultaneous;
mod stages;
mod start;
mod state;
mod statistics;
mod taskfarm;
mod threshold;
mod time_line;
mod trio;
mod wire;

pub use load::StageTimes;
pub use options::{BenchCommand, EventLoad, GraphLoad, RecordOptions};
pub use realtime::cpep::recorded::{GraphPlan, PlannedSupplier};
pub use stages::Stage;
pub use statistics::Counts;

use std::io::Write;
use std::path::Path;

use anyhow::Context;

use operation::Operation;
use options::{Experiment, OutputOptions};
use report::{Document, Report};

/// Exit code of a bench that ran: failed requests are figures of its report, not failures of the bench.
const DONE: u8 = 0;
/// Exit code of a series of which a part could not be run.
const FAILED: u8 = 1;
/// Exit code of a bench that ran and missed a threshold.
const THRESHOLD_MISSED: u8 = 4;

/// Runs the experiment and writes its report to stdout, as one JSON document or as tables, and to the files that were
/// asked for. Gives the exit code.
///
/// # Errors
/// The server does not start or answer, the machine does not allow the load, or a file cannot be written.
pub fn run(command: BenchCommand, json: bool) -> anyhow::Result<u8> {
    if command.experiment.mounts_disks()
        && let Some(code) = isolation::rerun()?
    {
        return Ok(code);
    }
    let document = match command.experiment {
        Experiment::Role => return event::role::run().map(|()| DONE),
        Experiment::Lab(options) if options.list => {
            lab::commands(&options).iter().for_each(|line| println!("bodkin bench {line}"));
            return Ok(DONE);
        }
        Experiment::Lab(options) => lab::run(&options, &command.output.threshold)?,
        experiment => Document::single(one(experiment, &command.output.threshold)?),
    };
    write(&document, &command.output)?;
    let mut stdout = std::io::stdout().lock();
    if json {
        writeln!(stdout, "{}", document.json())?;
    } else {
        write!(stdout, "{}", document.table())?;
    }
    Ok(match (document.failures.is_empty(), document.missed()) {
        (false, _) => FAILED,
        (true, true) => THRESHOLD_MISSED,
        (true, false) => DONE,
    })
}

/// Runs one experiment and holds it against the thresholds.
fn one(experiment: Experiment, thresholds: &[threshold::Threshold]) -> anyhow::Result<Report> {
    let mut report = match experiment {
        Experiment::Register(options) => load::run(Operation::Register, &options),
        Experiment::Unregister(options) => load::run(Operation::Unregister, &options),
        Experiment::Query(options) => load::run(Operation::Query, &options),
        Experiment::Authorize(options) => load::run(Operation::Authorize, &options),
        Experiment::Orchestrate(options) => load::run(Operation::Orchestrate, &options),
        Experiment::OrchestrateStore(options) => load::run(Operation::OrchestrateStore, &options),
        Experiment::List(options) => load::run(Operation::List, &options),
        Experiment::Token(options) => load::run(Operation::Token, &options),
        Experiment::Subscribe(options) => load::run(Operation::Subscribe, &options),
        Experiment::Unsubscribe(options) => load::run(Operation::Unsubscribe, &options),
        Experiment::Page(options) => page::run(&options),
        Experiment::Data(options) => data::load::run(&options),
        Experiment::Start(options) => start::run(&options),
        Experiment::Handshake(options) => handshake::run(&options),
        Experiment::Event(options) => event::run(&options),
        Experiment::Replay(options) => event::replay::run(&options),
        Experiment::DeadLetters(options) => event::dead_letters::run(&options),
        Experiment::Arrec(options) => realtime::arrec::run(&options),
        Experiment::Cover(options) => realtime::cover::run(&options),
        Experiment::Durable(options) => realtime::durable::run(&options),
        Experiment::Frame(options) => realtime::frame::run(&options),
        Experiment::Zmtp(options) => realtime::scenario::run(&options),
        Experiment::Cpep(options) => realtime::cpep::run(&options),
        Experiment::Crash(options) => crash::run(&options),
        Experiment::Intercloud(options) => intercloud::run(&options),
        Experiment::Nodes(options) => nodes::run(&options),
        Experiment::Outage(options) => outage::run(&options),
        Experiment::Fleet(options) => realtime::fleet::run(&options),
        Experiment::Taskfarm(options) => taskfarm::run(&options),
        Experiment::Lab(_) | Experiment::Role => anyhow::bail!("`lab` and `role` are no experiments"),
    }?;
    report.judge(thresholds);
    Ok(report)
}

fn write(document: &Document, output: &OutputOptions) -> anyhow::Result<()> {
    let put = |path: &Path, text: String| std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
    if let Some(path) = &output.report {
        put(path, document.html())?;
    }
    if let Some(path) = &output.json {
        put(path, format!("{}\n", document.json()))?;
    }
    Ok(())
}
