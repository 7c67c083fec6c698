//! The server is restarted while every node is written to: nothing that was answered may be lost, and who writes waits for the restart and little longer.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::{ADDRESS, seen::shows};
use crate::client::Client;
use crate::cloud::Cloud;
use crate::data::Data;
use crate::load::Measured;
use crate::report::Outcome;
use crate::request;
use crate::statistics::{Figure, Unit};

/// How long every node is written to in front of a restart, and behind it.
const STEADY: Duration = Duration::from_secs(2);
/// Between a refusal and the next try.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest wait for a registration to be taken.
const TAKEN_WITHIN_MAX: Duration = Duration::from_secs(120);
/// Names that one writer has in one round.
const NAMES_MAX: u32 = 100_000;

/// What one writer was told.
#[derive(Default)]
struct Written {
    answered: Vec<u32>,
    /// Tries that were refused for want of the database.
    refused: u64,
    /// Registrations whose first answer left it open, and that were there.
    in_doubt_there: u64,
    /// Longest from a registration's first try to its being there.
    blocked_max: Duration,
    measured: Measured,
}

/// Restarts the server by `command` so many times, with a writer at each node; services are those behind the first `next` of the data.
///
/// # Errors
/// The command fails, or a node does not take a registration within [`TAKEN_WITHIN_MAX`].
pub fn run(nodes: &[Cloud], data: Data, next: u32, command: &str, restarts: u32) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new(format!("{} nodes, a restart of the database under load", nodes.len()));
    for turn in 0..restarts {
        let from = next + turn * NAMES_MAX * nodes.len() as u32;
        let (figures, measured) = once(nodes, data, from, command)?;
        outcome.push(figures, measured);
    }
    Ok(outcome)
}

fn once(nodes: &[Cloud], data: Data, from: u32, command: &str) -> anyhow::Result<(Vec<Figure>, Measured)> {
    let is_over = AtomicBool::new(false);
    let counts: Vec<AtomicU64> = nodes.iter().map(|_| AtomicU64::new(0)).collect();
    let (restarted, written) = thread::scope(|scope| {
        let write = |place: usize| {
            let (node, is_over, count) = (&nodes[place], &is_over, &counts[place]);
            scope.spawn(move || write(node, data, from + place as u32 * NAMES_MAX, is_over, count))
        };
        let writers: Vec<_> = (0..nodes.len()).map(write).collect();
        let restarted = (|| {
            thread::sleep(STEADY);
            let took = restart(command)?;
            // Each node has to have written again before it is over.
            let before: Vec<u64> = counts.iter().map(|count| count.load(Relaxed)).collect();
            let begun = Instant::now();
            while counts.iter().zip(&before).any(|(count, before)| count.load(Relaxed) < before + 2) {
                ensure!(begun.elapsed() < TAKEN_WITHIN_MAX, "a node does not write {} s behind the restart", TAKEN_WITHIN_MAX.as_secs());
                thread::sleep(PAUSE);
            }
            thread::sleep(STEADY);
            Ok(took)
        })();
        is_over.store(true, Relaxed);
        let written = writers.into_iter().map(|writer| writer.join().expect("a writer does not panic")).collect::<anyhow::Result<Vec<_>>>();
        (restarted, written)
    });
    let (took, written) = (restarted?, written?);
    let lost = lost(nodes, data, &written)?;
    let mut measured = Measured::default();
    let (mut answered, mut refused, mut in_doubt_there, mut blocked) = (0, 0, 0, Duration::ZERO);
    for one in written {
        answered += one.answered.len() as u64;
        refused += one.refused;
        in_doubt_there += one.in_doubt_there;
        blocked = blocked.max(one.blocked_max);
        measured.latencies.add(&one.measured.latencies);
        measured.faults.append(one.measured.faults);
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let mut figures = vec![
        Figure::median("restart_ms", ms(took)),
        Figure::median("blocked_max_ms", ms(blocked)),
        Figure::median("blocked_beyond_ms", ms(blocked.saturating_sub(took))),
        Figure::sum("answered", answered),
        Figure::sum("refused", refused),
        Figure::sum("in_doubt_there", in_doubt_there),
        Figure::sum("lost_over_restart", lost),
        Figure::sum("strange", measured.faults.count),
    ];
    figures.extend(measured.latencies.figures("write_", Unit::Ms, &[50.0, 99.0]));
    Ok((figures, measured))
}

/// Runs the command that restarts the server, and gives how long it took until that served again.
fn restart(command: &str) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let output = Command::new("sh").args(["-c", command]).output().context("sh")?;
    ensure!(output.status.success(), "{command}: {} {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    Ok(begun.elapsed())
}

/// Registers one service behind the other, each until it is there.
fn write(node: &Cloud, data: Data, from: u32, is_over: &AtomicBool, count: &AtomicU64) -> anyhow::Result<Written> {
    let registry = &node.service_registry;
    let mut client = Client::connect(registry)?;
    let mut written = Written::default();
    for number in from..from + NAMES_MAX {
        if is_over.load(Relaxed) {
            break;
        }
        let request = request::post(registry, "/serviceregistry/register", &data.service(number).registration(ADDRESS, None));
        let (begun, mut is_in_doubt) = (Instant::now(), false);
        let is_there = loop {
            let answer = client.exchange(&request)?;
            let told = || String::from_utf8_lossy(answer.body()).into_owned();
            match answer.status() {
                201 => break true,
                400 if is_in_doubt && told().contains("already exists") => {
                    written.in_doubt_there += 1;
                    break true;
                }
                503 => {
                    written.refused += 1;
                    is_in_doubt |= told().contains("not known whether");
                }
                status => {
                    written.measured.faults.add(format!("{status}: {}", told()));
                    break false;
                }
            }
            ensure!(begun.elapsed() < TAKEN_WITHIN_MAX, "a registration is refused for {} s", TAKEN_WITHIN_MAX.as_secs());
            thread::sleep(PAUSE);
        };
        if !is_there {
            continue;
        }
        written.measured.latencies.record(begun.elapsed());
        written.blocked_max = written.blocked_max.max(begun.elapsed());
        written.answered.push(number);
        count.fetch_add(1, Relaxed);
    }
    Ok(written)
}

/// How many registrations that were answered some node does not come to show.
fn lost(nodes: &[Cloud], data: Data, written: &[Written]) -> anyhow::Result<u64> {
    let mut lost = 0;
    for node in nodes {
        let mut client = Client::connect(&node.service_registry)?;
        for number in written.iter().flat_map(|one| &one.answered) {
            // What the last of them have changed travels for a moment.
            let deadline = Instant::now() + Duration::from_secs(5);
            while !shows(&mut client, node, &data.service(*number).definition)? {
                if Instant::now() > deadline {
                    lost += 1;
                    break;
                }
            }
        }
    }
    Ok(lost)
}
