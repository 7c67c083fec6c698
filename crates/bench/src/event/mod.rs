//! `bench event`: Rocha 2019, chapter 7. Publishers by REST, subscribers by server-sent events or by push, and a bare relay
//! as floor.
//!
//! The processes are the server or the relay in the middle, one for the publisher side and one for the subscriber side.
//! Runs against relay and server alternate, under the same placement, with the same bytes in and out. With slow or dead
//! subscribers the runs beside are those without them: what is told is how much the others noticed.

mod callers;
pub mod dead_letters;
mod manner;
mod order;
mod paced;
pub mod payload;
mod publisher;
mod pushed;
mod relay;
pub mod replay;
mod rig;
pub mod role;
mod run;
mod scenario;
mod secure;
pub mod side;
mod sse;
mod subscriber;
mod subscription;
mod tally;
#[cfg(test)]
mod tests;

use anyhow::{Context, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::cloud::Cloud;
use crate::machine::Conditions;
use crate::options::{EventOptions, Transport};
use crate::published;
use crate::report::{Outcome, Report};
use crate::statistics::Series;

pub use manner::Afflictions;
use payload::PAYLOAD_BYTES;
pub use rig::Rig;
pub use run::Run;
pub use scenario::Shape;

/// Length of the warm-up of relay and server, in s each.
pub const WARM_UP_SECONDS: u32 = 1;

/// One way to run the scenario, where options sweep over several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Variant {
    worker_threads: Option<u32>,
    connections: u32,
}

/// Runs the scenario and reports it.
///
/// # Errors
/// The server does not start, a side fails, or the publishers are refused.
pub fn run(options: &EventOptions) -> anyhow::Result<Report> {
    if options.secure.secure {
        let other = options.transport == Transport::Push || options.dead > 0.0 || options.slow > 0.0 || !options.threads.is_empty();
        ensure!(!other && !options.secure.resume, "--secure goes with prompt event streams on kept connections only");
    }
    let placement = match options.core {
        Some(core) => pin(core, options.target.target.is_some())?,
        None => "placed by the kernel".to_string(),
    };
    let shape = Shape::of(options, 1).description();
    let by = match options.transport {
        Transport::Sse => "event streams",
        Transport::Push => "push",
    };
    let mut report = Report::new(format!("event scenario {:?} by {by}{}", options.scenario, sweep(options)));
    report.note(format!("{shape}, {PAYLOAD_BYTES}-byte payloads, at least {} s a run", options.seconds));
    let warm_up = format!("{WARM_UP_SECONDS} s of each");
    let mut conditions = Conditions::begin(placement, String::new(), warm_up, options.repeat);
    conditions.start_from("the publishers registered, nothing else".into());
    let variants = variants(options);
    for variant in &variants {
        let name = if variants.len() > 1 { variant.name(options) } else { String::new() };
        match options.secure.secure {
            true => secure::compare(options, variant.connections, &name, &mut report, &mut conditions)?,
            false => compare(options, *variant, &name, &mut report, &mut conditions)?,
        }
    }
    if !options.threads.is_empty() {
        report.note(
            "threads are those of the control plane: events go through the one thread of the data plane whatever their number".into(),
        );
    }
    report.published = published::of_scenario(options.scenario);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

/// What the runs differ in, for the title.
fn sweep(options: &EventOptions) -> String {
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let mut sweep = String::new();
    if !options.threads.is_empty() {
        sweep += &format!(", {} threads", list(&options.threads));
    }
    if options.connections != [1] {
        sweep += &format!(", {} connections of each publisher", list(&options.connections));
    }
    if options.dead > 0.0 || options.slow > 0.0 {
        sweep += &format!(", beside {} % dead and {} % slow subscribers", options.dead, options.slow);
    }
    sweep
}

fn variants(options: &EventOptions) -> Vec<Variant> {
    let threads: Vec<Option<u32>> =
        if options.threads.is_empty() { vec![None] } else { options.threads.iter().copied().map(Some).collect() };
    let with = |worker_threads| options.connections.iter().map(move |connections| Variant { worker_threads, connections: *connections });
    threads.into_iter().flat_map(with).collect()
}

impl Variant {
    fn name(self, options: &EventOptions) -> String {
        let threads = self.worker_threads.map(|threads| format!(", {threads} threads"));
        let connections = (options.connections.len() > 1).then(|| format!(", {} connections", self.connections));
        format!("{}{}", threads.unwrap_or_default(), connections.unwrap_or_default())
    }
}

/// Alternates runs against the server with those beside which they are held, and adds both to the report.
fn compare(options: &EventOptions, variant: Variant, name: &str, report: &mut Report, conditions: &mut Conditions) -> anyhow::Result<()> {
    let mut target = options.target.clone();
    target.server.worker_threads = variant.worker_threads;
    let cloud = Cloud::open(&target)?;
    if let Some(directory) = cloud.directory() {
        conditions.data_on(&directory.data());
    }
    conditions.server = cloud.description();
    let mut rig = Rig::new(cloud, Shape::of(options, variant.connections), &target.provider_address)?;
    let afflictions = Afflictions { dead_percent: options.dead, slow_percent: options.slow, pause_ms: options.pause_ms };
    let afflicted = options.dead > 0.0 || options.slow > 0.0;
    let (ours, beside) = match (afflicted, options.transport) {
        (true, _) => (format!("beside {}", afflictions.description()), Some("all prompt")),
        (false, Transport::Sse) => ("broker".to_string(), Some("relay")),
        (false, Transport::Push) => ("broker".to_string(), None),
    };
    let (mut our_runs, mut ratios) = (Outcome::new(format!("{ours}{name}")), Series::default());
    let mut other_runs = beside.map(|beside| Outcome::new(format!("{beside}{name}")));
    let warm = rig.broker_run(options.transport, Afflictions::NONE, WARM_UP_SECONDS)?;
    rig.frame_bytes = warm.bytes_per_delivery().context("the warm-up delivered nothing")?;
    let beside_run = |rig: &mut Rig, seconds| {
        if afflicted { rig.broker_run(options.transport, Afflictions::NONE, seconds) } else { rig.relay_run(seconds) }
    };
    if other_runs.is_some() {
        beside_run(&mut rig, WARM_UP_SECONDS)?;
    }
    for _ in 0..options.repeat {
        let floor: Option<Run> = other_runs.as_ref().map(|_| beside_run(&mut rig, options.seconds)).transpose()?;
        let run = rig.broker_run(options.transport, afflictions, options.seconds)?;
        if let (Some(floor), Some(other_runs)) = (floor, &mut other_runs) {
            ratios.push(run.ratios(&floor));
            other_runs.push(floor.figures(), floor.measured());
        }
        our_runs.push(run.figures(), run.measured());
    }
    if let (false, Some("relay")) = (afflicted, beside) {
        report.note(format!("relay{name}: {} bytes to each subscriber per event, as the server's mean in the warm-up", rig.frame_bytes));
    }
    rig.cloud.close()?;
    report.outcomes.push(our_runs);
    if let Some(other_runs) = other_runs {
        let what = format!("{ours} to {}{name}", beside.unwrap_or_default());
        let mut compared = Outcome::new(format!("{what}, run by run"));
        compared.series = ratios;
        for key in ["p50_ratio", "mean_ratio", "p99_ratio"] {
            report.ratio(format!("{key}, {what}"), compared.series.summary(key).unwrap_or(0.0));
        }
        report.outcomes.extend([other_runs, compared]);
    }
    Ok(())
}

/// Pins this process to one core; every process started from now on inherits that.
pub fn pin(core: usize, foreign_server: bool) -> anyhow::Result<String> {
    let mut cores = CpuSet::new();
    cores.set(core).with_context(|| format!("there is no core {core}"))?;
    sched_setaffinity(Pid::from_raw(0), &cores).with_context(|| format!("cannot run on core {core}"))?;
    let who = if foreign_server { "relay, publishers and subscribers" } else { "server, relay, publishers and subscribers" };
    Ok(format!("{who} on core {core}"))
}
