//! `bench start`: how long the local cloud takes to be ready, and what it keeps in memory when nobody asks it anything.

use std::thread;
use std::time::{Duration, Instant};

use crate::cloud::{Cloud, Directory};
use crate::load::Measured;
use crate::machine::Conditions;
use crate::operation::Needs;
use crate::options::{ServerOptions, StartOptions};
use crate::published;
use crate::report::{Outcome, Report};
use crate::resident::Resident;
use crate::scene::Filled;
use crate::state::State;
use crate::statistics::Figure;

/// Address of the services in the filled data directory.
const PROVIDER_ADDRESS: &str = "127.0.0.1";
/// Time between two readings of the memory.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Readings in a row that are equal when the memory has settled.
const SETTLED_READINGS: u32 = 6;
/// Longest wait for that.
const SETTLE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Starts the server again and again, on an empty and on a filled data directory.
///
/// # Errors
/// A server does not start or stop, or cannot be filled.
pub fn run(options: &StartOptions) -> anyhow::Result<Report> {
    let mut report = Report::new("start to ready, and idle".into());
    let server = &options.server;
    let warm_up = "one start of each kind".to_string();
    let mut conditions = Conditions::begin("placed by the kernel".into(), server.description(), warm_up, options.repeat);
    let parent = server.data.as_deref();
    let mut empty = Outcome::new("empty data directory".into());
    for repeat in 0..=options.repeat {
        let directory = Directory::new(parent)?;
        conditions.data_on(&directory.data());
        count(&directory, server, repeat, &mut empty)?;
    }
    let state = State { seed: State::SEED, services: options.services };
    let directory = filled(Directory::new(parent)?, server, state)?;
    conditions.start_from(format!("empty, and {state}"));
    let mut full = Outcome::new(format!("{} services", options.services));
    for repeat in 0..=options.repeat {
        count(&directory, server, repeat, &mut full)?;
    }
    report.outcomes = vec![empty, full];
    report.published = published::of_start();
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn filled(directory: Directory, server: &ServerOptions, state: State) -> anyhow::Result<Directory> {
    let cloud = Cloud::start(directory, server)?;
    Filled::fill(&cloud, state, Needs::Services, PROVIDER_ADDRESS)?;
    Ok(cloud.close()?.expect("an own server has a directory"))
}

fn count(directory: &Directory, server: &ServerOptions, repeat: u32, outcome: &mut Outcome) -> anyhow::Result<()> {
    let server = directory.serve(server)?;
    let idle_mb = settled_mb(Resident::of(server.pid()))?;
    let (start, ready_ms) = (server.start_to_ready, server.ready.ready_ms);
    server.stop()?;
    // The first start is the warm-up: it brings the program and the data into the page cache.
    if repeat > 0 {
        let mut measured = Measured::default();
        measured.latencies.record(start);
        let figures = vec![
            Figure::median("start_ms", start.as_secs_f64() * 1e3),
            Figure::median("ready_ms", ready_ms),
            Figure::median("idle_rss_mb", idle_mb),
        ];
        outcome.push(figures, measured);
    }
    Ok(())
}

/// Resident memory once it no longer changes, or after the longest wait.
fn settled_mb(resident: Resident) -> anyhow::Result<f64> {
    let deadline = Instant::now() + SETTLE_WAIT_MAX;
    let mut last_mb = resident.now_mb()?;
    let mut equal = 1;
    while equal < SETTLED_READINGS && Instant::now() < deadline {
        thread::sleep(LOOK_EVERY);
        let now_mb = resident.now_mb()?;
        equal = if now_mb == last_mb { equal + 1 } else { 1 };
        last_mb = now_mb;
    }
    Ok(last_mb)
}
