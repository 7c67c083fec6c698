//! `bench zmtp`: Rocha's scenarios A and C (2019, chapter 7) over ZMTP at fixed rates, alternated with the bare relay.

use std::time::Duration;

use anyhow::Context;
use nix::unistd::Pid;

use super::cpu;
use super::dialect::Speech;
use super::figures;
use super::listener::Hearing;
use super::relay::RelayOrder;
use super::run::{Moment, Plan, Sides, run as run_sides};
use super::system::{self, SYSTEM};
use super::workload::{Group, Stamp, Workload};
use crate::cloud::{Cloud, Directory};
use crate::event::payload::PAYLOAD_BYTES;
use crate::event::role::{RoleOrder, Told};
use crate::event::side::Side;
use crate::expectation::Faults;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::{Sockets, ZmtpOptions, ZmtpScenario};
use crate::report::{Outcome, Report};
use crate::statistics::{Figure, Series};
use crate::time_line::TimeLine;

/// Time in front of each measured one.
const WARM_UP: Duration = Duration::from_secs(1);
/// What the topics are called.
const TOPIC: &str = "BENCH";
/// Longest wait for the relay to listen.
const LISTEN_WAIT_MAX: Duration = Duration::from_secs(10);

impl ZmtpScenario {
    /// Publishers, subscribers.
    fn size(self) -> (u32, u16) {
        match self {
            Self::A => (1, 1),
            Self::C => (10, 10),
        }
    }

    fn rates(self) -> &'static [f64] {
        match self {
            Self::A => &[1000.0],
            Self::C => &[1000.0, 2000.0, 4000.0],
        }
    }

    /// A is about the way alone; a rate that cannot be kept shows only against the time when an event was due.
    fn stamp(self) -> Stamp {
        match self {
            Self::A => Stamp::Sent,
            Self::C => Stamp::Due,
        }
    }
}

/// Runs the scenario and reports it.
///
/// # Errors
/// The server does not start, or a side fails.
pub fn run(options: &ZmtpOptions) -> anyhow::Result<Report> {
    let (publishers, subscribers) = options.scenario.size();
    let speech = match options.sockets {
        Sockets::PubSub => Speech::ZmtpPubSub,
        Sockets::Dealer => Speech::ZmtpDealer,
    };
    let mut report = Report::new(format!("event scenario {:?}, {}", options.scenario, speech.description()));
    let stamp = match options.scenario.stamp() {
        Stamp::Sent => "when it is given to the socket",
        Stamp::Due => "when it is due",
    };
    report.note(format!(
        "{publishers} publishers x {subscribers} subscribers, {PAYLOAD_BYTES}-byte payloads, {} s a run, open loop; the latency of an event counts from {stamp}",
        options.seconds
    ));
    report.note("the relay shakes hands by ZMTP and then passes bytes on unread; events over PUB and SUB have two frames in, three out of the broker".into());
    let mut server = options.server.clone();
    server.arguments.extend(["--zmtp-system".into(), SYSTEM.into()]);
    let mut conditions =
        Conditions::begin("placed by the kernel".into(), String::new(), format!("{} s of each run", WARM_UP.as_secs()), options.repeat);
    let cloud = Cloud::start(Directory::new(server.data.as_deref())?, &server)?;
    conditions.server = cloud.description();
    conditions.start_from("one registered system, nothing else".into());
    if let Some(directory) = cloud.directory() {
        conditions.data_on(&directory.data());
    }
    system::register(&cloud.service_registry)?;
    let rates: &[f64] = if options.rate.is_empty() { options.scenario.rates() } else { &options.rate };
    for rate in rates {
        at_rate(options, speech, *rate, &cloud, &mut report)?;
    }
    cloud.close()?;
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn at_rate(options: &ZmtpOptions, speech: Speech, rate_per_s: f64, cloud: &Cloud, report: &mut Report) -> anyhow::Result<()> {
    let (publishers, subscribers) = options.scenario.size();
    let measured = Duration::from_secs(u64::from(options.seconds));
    let workload = workload(options.scenario, rate_per_s);
    let at = format!("{} events/s", rate_per_s * f64::from(publishers));
    let plan = |speech, address| Plan {
        speech,
        brokers: vec![address],
        system: SYSTEM.into(),
        hearing: Hearing::default(),
        in_cloud: None,
        workload: workload.clone(),
        warm_up: WARM_UP,
        measured,
        crash_after: None,
        awaits_all: false,
    };
    let (mut ours, mut floor, mut ratios) =
        (Outcome::new(format!("broker, {at}")), Outcome::new(format!("relay, {at}")), Series::default());
    for _ in 0..options.repeat {
        let order = RelayOrder { subscribers: usize::from(subscribers), publishers: publishers as usize };
        let mut relay = Side::start("relay", &RoleOrder::ZmtpRelay(order))?;
        let Told::At { address } = relay.hear(LISTEN_WAIT_MAX)? else {
            anyhow::bail!("the relay told something else than where it listens")
        };
        let bare = once(plan(Speech::ZmtpPubSub, address), None)?;
        let address = cloud.zmtp.context("the server has no ZMTP port")?;
        let through = once(plan(speech, address), cloud.pid())?;
        ratios.push(figures::ratios(&through.measured.latencies, &bare.measured.latencies));
        ours.push(through.figures, through.measured);
        floor.push(bare.figures, bare.measured);
    }
    let mut compared = Outcome::new(format!("broker to relay, {at}, run by run"));
    compared.series = ratios;
    for key in ["p50_ratio", "mean_ratio", "p99_ratio"] {
        report.ratio(format!("{key}, {at}"), compared.series.summary(key).unwrap_or(0.0));
    }
    report.outcomes.extend([ours, floor, compared]);
    Ok(())
}

/// One run's figures, and what stands behind them.
struct Once {
    figures: Vec<Figure>,
    measured: Measured,
}

fn once(plan: Plan, server: Option<Pid>) -> anyhow::Result<Once> {
    let seconds = plan.measured.as_secs_f64();
    let mut readings = Vec::new();
    let sides: Sides = run_sides(plan, &mut |moment| {
        if let (Some(pid), Moment::Measured | Moment::Over) = (server, moment) {
            readings.push(cpu::by_thread(pid)?);
        }
        Ok(())
    })?;
    let mut figures = figures::of_sides(&sides, seconds);
    figures.extend(figures::covered(&sides));
    if let [before, after] = &readings[..] {
        figures.extend(figures::of_process("server", &cpu::percent(before, after, seconds)));
    }
    let faults = Faults { count: sides.published.refused, first: sides.published.refusals.clone() };
    let measured = Measured { latencies: figures::latencies(&sides), faults, time_line: TimeLine::default() };
    Ok(Once { figures, measured })
}

fn workload(scenario: ZmtpScenario, rate_per_s: f64) -> Workload {
    let (publishers, subscribers) = scenario.size();
    let group = Group {
        name: TOPIC.into(),
        topics: publishers,
        topics_per_proxy: 1,
        period_ns: (1e9 / rate_per_s) as u64,
        deadline_ns: None,
        loss_tolerance: None,
        retention: 0,
        heard_by: (0..subscribers).collect(),
    };
    Workload { groups: vec![group], payload_bytes: PAYLOAD_BYTES, stamp: scenario.stamp(), seed: 1 }
}
