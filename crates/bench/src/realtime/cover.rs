//! `bench cover`: from a publisher's send to the word that its event is safe, with every event replicated at once, beside a bare chain of four hops.
//!
//! The way is publisher, Primary, Backup, Primary, publisher. The chain has the same hops between the same number of processes, and decides nothing.

use std::time::Duration;

use anyhow::bail;

use super::dialect::Speech;
use super::figures;
use super::listener::Hearing;
use super::run::{Moment, Plan, Sides, run as run_sides};
use super::system::{self, SYSTEM};
use super::topic_file::{Replication, Terms, topic_file};
use super::workload::{Group, Stamp, Workload};
use crate::event::role::{RoleOrder, Told};
use crate::event::side::Side;
use crate::expectation::Faults;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::CoverOptions;
use crate::report::{Outcome, Report};
use crate::statistics::{Figure, Latencies, Series, Unit};
use crate::time_line::TimeLine;
use crate::trio::Trio;

/// Time in front of each measured one.
const WARM_UP: Duration = Duration::from_secs(1);
/// Length of a message in the chain: that of an event of [`PAYLOAD_BYTES`] with its event type, its header and the heads of its frames.
const MESSAGE_BYTES: usize = 5 + PAYLOAD_BYTES + 42 + 6;
const PAYLOAD_BYTES: usize = 16;
/// Longest wait for a hop to listen.
const LISTEN_WAIT_MAX: Duration = Duration::from_secs(10);
/// N for x of 50 ms, at any period of a millisecond or more.
const RETENTION: u32 = 60;
const PERCENTS: [f64; 3] = [50.0, 90.0, 99.0];

/// Alternates both and reports them.
///
/// # Errors
/// The pair does not start, or a side fails.
pub fn run(options: &CoverOptions) -> anyhow::Result<Report> {
    let workload = workload(options.rate);
    let mut report = Report::new("from a publisher's send to its covered".into());
    report.note(format!(
        "one publisher, {} events/s, {PAYLOAD_BYTES}-byte payloads, {} s a run; no subscriber; every event is replicated when it comes",
        options.rate, options.seconds
    ));
    report.note(format!(
        "the chain: publisher, hop, far hop, hop, publisher, {MESSAGE_BYTES} bytes each way, each hop a process with one poll"
    ));
    let warm_up = format!("{} s of each run", WARM_UP.as_secs());
    let mut conditions =
        Conditions::begin("placed by the kernel".into(), "own pair and witness, started by the bench".into(), warm_up, options.repeat);
    let keys = topic_file(&workload, Terms { replication: Replication::Eager, ..Terms::PAIR });
    let trio = Trio::start(&keys, options.data.as_deref())?;
    system::register(&trio.service_registry()?)?;
    let plan = |speech, brokers| Plan {
        speech,
        brokers,
        system: SYSTEM.into(),
        hearing: Hearing::default(),
        in_cloud: None,
        workload: workload.clone(),
        warm_up: WARM_UP,
        measured: Duration::from_secs(u64::from(options.seconds)),
        crash_after: None,
        awaits_all: false,
    };
    let (mut ours, mut chain, mut ratios) = (Outcome::new("pair".into()), Outcome::new("chain".into()), Series::default());
    for _ in 0..options.repeat {
        let far = hop(None)?;
        let near = hop(Some(far.1))?;
        let bare = run_sides(plan(Speech::Echo { message_bytes: MESSAGE_BYTES }, vec![near.1]), &mut ignore)?;
        let through = run_sides(plan(Speech::ZmtpDealer, trio.zmtp()?), &mut ignore)?;
        ratios.push(ratios_of(&through, &bare));
        for (outcome, sides) in [(&mut ours, &through), (&mut chain, &bare)] {
            let faults = Faults { count: sides.published.refused, first: sides.published.refusals.clone() };
            let latencies = Latencies::from_counts(&sides.published.covered);
            outcome.push(of_run(sides, options.seconds), Measured { latencies, faults, time_line: TimeLine::default() });
        }
    }
    let mut compared = Outcome::new("pair to chain, run by run".into());
    compared.series = ratios;
    for key in ["p50_ratio", "mean_ratio", "p99_ratio"] {
        report.ratio(key.into(), compared.series.summary(key).unwrap_or(0.0));
    }
    report.outcomes = vec![ours, chain, compared];
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn ignore(_: Moment) -> anyhow::Result<()> {
    Ok(())
}

/// A hop in a process of its own, and where it listens.
fn hop(next: Option<std::net::SocketAddr>) -> anyhow::Result<(Side, std::net::SocketAddr)> {
    let mut side = Side::start("hop", &RoleOrder::Chain { next })?;
    let Told::At { address } = side.hear(LISTEN_WAIT_MAX)? else { bail!("a hop told something else than where it listens") };
    Ok((side, address))
}

fn of_run(sides: &Sides, seconds: u32) -> Vec<Figure> {
    let published = &sides.published;
    let covered = Latencies::from_counts(&published.covered);
    let mut figures = covered.figures("", Unit::Us, &PERCENTS);
    figures.push(Figure::median("covered_per_s", covered.count() as f64 / f64::from(seconds)));
    figures.push(Figure::sum("events", published.sent));
    figures.push(Figure::sum("not_sent", published.not_sent));
    figures.push(Figure::sum("refused", published.refused));
    figures
}

fn ratios_of(ours: &Sides, chain: &Sides) -> Vec<Figure> {
    figures::ratios(&Latencies::from_counts(&ours.published.covered), &Latencies::from_counts(&chain.published.covered))
}

fn workload(rate_per_s: f64) -> Workload {
    let group = Group {
        name: "COVER".into(),
        topics: 1,
        topics_per_proxy: 1,
        period_ns: (1e9 / rate_per_s) as u64,
        deadline_ns: None,
        loss_tolerance: Some(0),
        retention: RETENTION,
        heard_by: Vec::new(),
    };
    Workload { groups: vec![group], payload_bytes: PAYLOAD_BYTES, stamp: Stamp::Sent, seed: 1 }
}
