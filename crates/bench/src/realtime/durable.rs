//! `bench durable`: what it takes until a publisher may forget an event, on one node: it is in memory, it is in the event log's file, it is on the disk.
//!
//! What is in the file outlives the process, what is synced the machine. The log syncs for all who wait together, so that one flush of the disk, measured beside,
//! is what a synced event may cost more than an appended one.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use super::dialect::Speech;
use super::figures;
use super::listener::Hearing;
use super::run::{Plan, run as run_sides};
use super::stand::Stand;
use super::system::SYSTEM;
use super::workload::{Group, Stamp, Workload};
use crate::disk_flush;
use crate::expectation::Faults;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::DurableOptions;
use crate::report::{Outcome, Report};
use crate::statistics::{Figure, Latencies, Series, Unit};
use crate::time_line::TimeLine;

/// Time in front of each measured one.
const WARM_UP: Duration = Duration::from_secs(1);
const PAYLOAD_BYTES: usize = 16;
const PERCENTS: [f64; 3] = [50.0, 90.0, 99.0];

/// Where an event is when its publisher is told that it is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// In the queues of its subscribers: there is no event log.
    Memory,
    /// In the log's file.
    Appended,
    /// On the disk.
    Synced,
}

impl Kept {
    const ALL: [Self; 3] = [Self::Memory, Self::Appended, Self::Synced];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "in memory",
            Self::Appended => "appended",
            Self::Synced => "synced",
        }
    }

    fn topic(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY",
            Self::Appended => "APPENDED",
            Self::Synced => "SYNCED",
        }
    }

    /// So many publishers of an event type each.
    fn workload(self, publishers: u32, rate_per_s: f64) -> Workload {
        let group = Group {
            name: self.topic().into(),
            topics: publishers,
            topics_per_proxy: 1,
            period_ns: (1e9 / rate_per_s) as u64,
            deadline_ns: None,
            loss_tolerance: None,
            retention: 0,
            heard_by: Vec::new(),
        };
        Workload { groups: vec![group], payload_bytes: PAYLOAD_BYTES, stamp: Stamp::Sent, seed: 1 }
    }
}

/// One node with an event log and one without.
struct Nodes {
    logging: Stand,
    forgetting: Stand,
}

impl Nodes {
    fn start(publishers: u32, rate_per_s: f64, parent: Option<&Path>) -> anyhow::Result<Self> {
        let synced = Kept::Synced.workload(publishers, rate_per_s);
        let logging = Stand::alone(&synced, &format!("event_log = true\ndurable_event_types = {:?}\n", synced.names()), parent)?;
        let forgetting = Stand::alone(&Kept::Memory.workload(publishers, rate_per_s), "event_log = false\n", parent)?;
        Ok(Self { logging, forgetting })
    }

    fn that_keeps(&self, kept: Kept) -> &Stand {
        if kept == Kept::Memory { &self.forgetting } else { &self.logging }
    }

    /// Appends and flushes where the log is: one behind the other, and with pauses as long as those between two events.
    fn flush(&self, pause: Duration) -> anyhow::Result<[Latencies; 2]> {
        let Stand::Alone(cloud) = &self.logging else { bail!("the node with the log is one by itself") };
        let data = cloud.directory().context("an own node has a directory")?.data();
        Ok([disk_flush::measure(&data)?, disk_flush::measure_paced(&data, pause)?])
    }
}

/// Alternates the three with the floor and reports them.
///
/// # Errors
/// A node does not start, or the publishers fail.
pub fn run(options: &DurableOptions) -> anyhow::Result<Report> {
    let mut report = Report::new("from a publisher's send to an event that is kept".into());
    report.note(format!(
        "DEALERs with {} events/s each of an event type of their own, {PAYLOAD_BYTES}-byte payloads, {} s a run, no subscriber; from the send to *covered*",
        options.rate, options.seconds
    ));
    report.note("in memory: without an event log; appended: in its file; synced: a durable event type; flush: one write of 4096 bytes and its fdatasync, one behind the other and with a pause in front of each".into());
    let warm_up = format!("{} s of each run", WARM_UP.as_secs());
    let mut conditions =
        Conditions::begin("placed by the kernel".into(), "two own nodes, started by the bench, insecure".into(), warm_up, options.repeat);
    for publishers in &options.publishers {
        let nodes = Nodes::start(*publishers, options.rate, options.data.as_deref())?;
        if let Stand::Alone(cloud) = &nodes.logging {
            cloud.directory().iter().for_each(|directory| conditions.data_on(&directory.data()));
        }
        with_publishers(options, *publishers, &nodes, &mut report)?;
    }
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn with_publishers(options: &DurableOptions, publishers: u32, nodes: &Nodes, report: &mut Report) -> anyhow::Result<()> {
    let of = format!("{publishers} publishers");
    let mut outcomes = Kept::ALL.map(|kept| Outcome::new(format!("{}, {of}", kept.name())));
    let mut floors =
        ["one flush of the disk", "one flush of the disk, at the pace of the events"].map(|what| Outcome::new(format!("{what}, {of}")));
    let mut ratios = Series::default();
    let pause = Duration::from_secs_f64(1.0 / (options.rate * f64::from(publishers)));
    for _ in 0..options.repeat {
        let flushes = nodes.flush(pause)?;
        let mut p50_us = Vec::new();
        for (kept, outcome) in Kept::ALL.into_iter().zip(&mut outcomes) {
            let (figures, measured) = once(options, kept.workload(publishers, options.rate), nodes.that_keeps(kept))?;
            p50_us.push(measured.latencies.percentile(50.0, Unit::Us));
            outcome.push(figures, measured);
        }
        ratios.push(ratios_of(&p50_us, flushes.each_ref().map(|flush| flush.percentile(50.0, Unit::Us))));
        for (floor, flush) in floors.iter_mut().zip(flushes) {
            floor.push(flush.figures("", Unit::Us, &PERCENTS), Measured { latencies: flush, ..Measured::default() });
        }
    }
    let mut compared = Outcome::new(format!("run by run, {of}"));
    compared.series = ratios;
    for key in ["appended_p50_ratio", "synced_p50_ratio", "synced_paced_p50_ratio"] {
        report.ratio(format!("{key}, {of}"), compared.series.summary(key).unwrap_or(0.0));
    }
    report.outcomes.extend(outcomes);
    report.outcomes.extend(floors);
    report.outcomes.push(compared);
    Ok(())
}

/// Appended to in memory, and synced to appended and one flush of the disk, which sleeps between two of them or not.
fn ratios_of(p50_us: &[f64], [flush_us, paced_flush_us]: [f64; 2]) -> Vec<Figure> {
    let [memory_us, appended_us, synced_us] = *p50_us else { unreachable!("three kinds are measured") };
    let ratio = |key: &str, ours: f64, floor: f64| Figure::median(key, if floor > 0.0 { ours / floor } else { 0.0 });
    vec![
        ratio("appended_p50_ratio", appended_us, memory_us),
        ratio("synced_p50_ratio", synced_us, appended_us + flush_us),
        ratio("synced_paced_p50_ratio", synced_us, appended_us + paced_flush_us),
    ]
}

fn once(options: &DurableOptions, workload: Workload, stand: &Stand) -> anyhow::Result<(Vec<Figure>, Measured)> {
    let plan = Plan {
        speech: Speech::ZmtpDealer,
        brokers: stand.addresses()?,
        system: SYSTEM.into(),
        hearing: Hearing::default(),
        in_cloud: None,
        workload,
        warm_up: WARM_UP,
        measured: Duration::from_secs(u64::from(options.seconds)),
        crash_after: None,
        awaits_all: true,
    };
    let sides = run_sides(plan, &mut |_| Ok(()))?;
    let latencies = Latencies::from_counts(&sides.published.covered);
    let mut figures = latencies.figures("", Unit::Us, &PERCENTS);
    figures.push(Figure::sum("events", sides.published.sent));
    figures.push(Figure::median("kept_percent", figures::percent(latencies.count(), sides.published.sent)));
    figures.push(Figure::sum("not_sent", sides.published.not_sent));
    figures.push(Figure::sum("refused", sides.published.refused));
    let faults = Faults { count: sides.published.refused, first: sides.published.refusals };
    Ok((figures, Measured { latencies, faults, time_line: TimeLine::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_synced_event_may_cost_a_flush_more_than_an_appended_one() {
        let figures = ratios_of(&[50.0, 60.0, 330.0], [240.0, 270.0]);
        let of = |key: &str| figures.iter().find(|figure| figure.key == key).unwrap().value;
        assert_eq!((of("appended_p50_ratio"), of("synced_p50_ratio"), of("synced_paced_p50_ratio")), (1.2, 1.1, 1.0));
        assert!(ratios_of(&[0.0, 60.0, 330.0], [240.0, 270.0])[0].value == 0.0, "nothing was kept in memory");
    }

    #[test]
    fn every_publisher_has_an_event_type_of_its_own() {
        let workload = Kept::Synced.workload(3, 200.0);
        assert_eq!((workload.proxies().len(), workload.names()), (3, ["SYNCED-1", "SYNCED-2", "SYNCED-3"].map(String::from).to_vec()));
        assert_eq!((workload.subscribers(), workload.events_per_s()), (0, 600.0));
    }
}
