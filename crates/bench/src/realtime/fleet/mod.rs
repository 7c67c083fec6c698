//! `bench fleet`: events of a node into a JetStream stream on three servers, beside a bare client with the same batches; a backlog that is drained beside live traffic.

mod bare;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;

use self::bare::Bare;
use super::dialect::Speech;
use super::listener::Hearing;
use super::peer::PeerServer;
use super::run::{Moment, Plan, Sides, run as run_sides};
use super::stand::Stand;
use super::system::SYSTEM;
use super::workload::{Group, Stamp, Workload};
use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::expectation::Faults;
use crate::link::Link;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::FleetOptions;
use crate::report::{Outcome, Report};
use crate::request;
use crate::statistics::{Figure, Latencies, Unit};
use crate::time_line::TimeLine;

const REPLICAS: u8 = 3;
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Without an event more in the stream for so long it is given up.
const STANDSTILL_MAX: Duration = Duration::from_secs(60);
/// Without an event more, while nothing waits, for so long what is not there is missing.
const SETTLED: Duration = Duration::from_secs(2);
/// The longest that a backlog may take.
const DRAIN_MAX: Duration = Duration::from_secs(600);
/// A backlog is drained when no more waits than comes in so many seconds.
const CAUGHT_UP_S: f64 = 0.1;
const CUT: Duration = Duration::from_secs(1);
const PERCENTS: [f64; 3] = [50.0, 99.0, 99.9];

/// What a node tells of forwarding, as far as it is needed.
#[derive(Deserialize)]
struct Told {
    connected: bool,
    lanes: Vec<Lane>,
}

#[derive(Deserialize)]
struct Lane {
    stored: u64,
    waiting: u64,
    lost: u64,
}

/// What became of the events of each type.
#[derive(Deserialize)]
struct Types {
    data: Vec<Type>,
}

#[derive(Deserialize)]
struct Type {
    published: u64,
}

/// What is not in the stream.
struct Drained {
    /// Told to be lost.
    lost: u64,
    /// Neither there nor told.
    missing: u64,
}

/// One node that forwards over a link.
struct Edge {
    stand: Stand,
    link: Link,
}

impl Edge {
    fn start(options: &FleetOptions, workload: &Workload, name: &str, server: SocketAddr) -> anyhow::Result<Self> {
        let link = Link::to(server)?;
        // Everything that a run publishes has room.
        let keys = format!(
            "event_log_bytes_max = {}\n[fleet]\nservers = [\"nats://{}\"]\nedge = \"{name}\"\nprefix = \"bench\"\nstream = \"BENCH\"\nbatch_bytes_max = {}\nlanes.events = {:?}\n",
            u64::from(options.events + options.seconds * options.rate as u32) * (u64::from(options.payload_bytes) + 400) * 2,
            link.address,
            options.batch_bytes,
            workload.names(),
        );
        Ok(Self { stand: Stand::alone(workload, &keys, options.data.as_deref())?, link })
    }

    fn monitor(&self) -> anyhow::Result<&Endpoint> {
        let Stand::Alone(cloud) = &self.stand else { bail!("it is a node by itself") };
        cloud.monitor.as_ref().context("a node has its own port")
    }

    /// Waits until nothing waits any more that was published so far.
    fn drained(&self) -> anyhow::Result<Drained> {
        let monitor = self.monitor()?;
        let mut client = Client::connect(monitor)?;
        let types: Types = client.ask(&request::get(monitor, "/api/v1/event-types", "application/json"), 200)?;
        let published: u64 = types.data.iter().map(|event_type| event_type.published).sum();
        let call = request::get(monitor, "/api/v1/fleet", "application/json");
        let (mut moved, mut before) = (Instant::now(), 0);
        loop {
            let Told { connected, lanes } = client.ask(&call, 200)?;
            let sum = |of: fn(&Lane) -> u64| lanes.iter().map(of).sum::<u64>();
            let (stored, waiting, lost) = (sum(|lane| lane.stored), sum(|lane| lane.waiting), sum(|lane| lane.lost));
            if stored > before {
                (moved, before) = (Instant::now(), stored);
            }
            if waiting == 0 && connected && (stored + lost >= published || moved.elapsed() > SETTLED) {
                return Ok(Drained { lost, missing: published.saturating_sub(stored + lost) });
            }
            if moved.elapsed() > STANDSTILL_MAX {
                bail!("{stored} of {published} events are in the stream, {waiting} wait, connected: {connected}");
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Publishes live for so long; `at` is told when that begins.
    fn live(&self, workload: Workload, seconds: f64, mut at: impl FnMut()) -> anyhow::Result<Sides> {
        let plan = Plan {
            speech: Speech::ZmtpDealer,
            brokers: self.stand.addresses()?,
            system: SYSTEM.into(),
            hearing: Hearing::default(),
            in_cloud: None,
            workload,
            warm_up: Duration::ZERO,
            measured: Duration::from_secs_f64(seconds),
            crash_after: None,
            awaits_all: true,
        };
        run_sides(plan, &mut |moment| {
            if moment == Moment::Measured {
                at();
            }
            Ok(())
        })
    }
}

/// When a node reaches the stream, and when no more than so many events wait.
fn caught_up(monitor: &Endpoint, at_most: u64) -> anyhow::Result<[Instant; 2]> {
    let mut client = Client::connect(monitor)?;
    let call = request::get(monitor, "/api/v1/fleet", "application/json");
    let (begun, mut reached) = (Instant::now(), None);
    while begun.elapsed() < DRAIN_MAX {
        let Told { connected, lanes } = client.ask(&call, 200)?;
        if connected {
            let reached = *reached.get_or_insert_with(Instant::now);
            if lanes.iter().map(|lane| lane.waiting).sum::<u64>() <= at_most {
                return Ok([reached, Instant::now()]);
            }
        }
        thread::sleep(LOOK_EVERY);
    }
    bail!("the backlog is not drained after {} s", DRAIN_MAX.as_secs())
}

/// So many publishers of an event type each.
fn workload(options: &FleetOptions, rate_per_s: f64) -> Workload {
    let group = Group {
        name: "FLEET".into(),
        topics: options.publishers,
        topics_per_proxy: 1,
        period_ns: (1e9 * f64::from(options.publishers) / rate_per_s) as u64,
        deadline_ns: None,
        loss_tolerance: None,
        retention: 0,
        heard_by: Vec::new(),
    };
    Workload { groups: vec![group], payload_bytes: options.payload_bytes as usize, stamp: Stamp::Sent, seed: 1 }
}

/// From a publisher's send to the word that its event is taken.
fn push(outcome: &mut Outcome, sides: Sides, further: impl IntoIterator<Item = Figure>) {
    let latencies = Latencies::from_counts(&sides.published.covered);
    let mut figures = latencies.figures("", Unit::Us, &PERCENTS);
    figures.push(Figure::sum("events", sides.published.sent));
    figures.push(Figure::sum("not_sent", sides.published.not_sent));
    figures.extend(further);
    let faults = Faults { count: sides.published.refused, first: sides.published.refusals };
    outcome.push(figures, Measured { latencies, faults, time_line: TimeLine::default() });
}

/// Alternates them and reports.
///
/// # Errors
/// There is no nats-server on PATH, a node does not start, or events do not come into the stream.
pub fn run(options: &FleetOptions) -> anyhow::Result<Report> {
    let servers = PeerServer::nats_synced(usize::from(REPLICAS))?;
    let mut report = Report::new("events of a node into a JetStream stream".into());
    report.note(format!(
        "three nats-servers of this machine with sync_interval: always, a stream on all of them; batches of {} bytes or 10 ms, one under way; payloads of {} bytes",
        options.batch_bytes, options.payload_bytes
    ));
    report.note("bare: one connection that publishes the same batches by their names and does nothing else; backlog: what was published while the link was cut, from the first connection behind the mending, reached_s later, until what waits is no more than comes in 0.1 s".into());
    let mut conditions = Conditions::begin(
        "placed by the kernel".into(),
        "an own node, started by the bench, insecure".into(),
        "none".into(),
        options.repeat,
    );
    let mut bare = Bare::connect(servers.address)?;
    bare.create("BENCH", "bench.*.*", REPLICAS)?;
    bare.create("BARE", "bare.*", REPLICAS)?;
    let labels = ["bare client", "live", "live while nothing is forwarded", "live beside the backlog", "backlog"];
    let mut outcomes = labels.map(|label| Outcome::new(label.to_owned()));
    for round in 0..options.repeat {
        let begun = Instant::now();
        let (payload, batch) = (options.payload_bytes as usize, options.batch_bytes as usize);
        let batches = bare.publish(&format!("bare.{round}"), options.events.into(), payload, batch)?;
        let figures = [rate(u64::from(options.events), begun.elapsed()), Figure::sum("batches", batches.count())].into_iter();
        let figures = figures.chain(batches.figures("batch_", Unit::Ms, &PERCENTS)).collect();
        outcomes[0].push(figures, Measured { latencies: batches, ..Measured::default() });
        one_edge(options, round, servers.address, &mut outcomes)?;
    }
    let of = |at: usize, key: &str| outcomes[at].series.summary(key).unwrap_or_default();
    report.ratio("events a second, backlog to bare client".into(), of(4, "events_per_s") / of(0, "events_per_s").max(1.0));
    report.ratio("p99 of live events, beside the backlog to while nothing is forwarded".into(), of(3, "p99_us") / of(2, "p99_us").max(1.0));
    report.outcomes.extend(outcomes);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn rate(events: u64, took: Duration) -> Figure {
    Figure::median("events_per_s", events as f64 / took.as_secs_f64().max(1e-9))
}

/// One node's runs.
fn one_edge(options: &FleetOptions, round: u32, server: SocketAddr, outcomes: &mut [Outcome; 5]) -> anyhow::Result<()> {
    let (fast, slow) = (workload(options, options.rate), workload(options, options.beside));
    let edge = Edge::start(options, &fast, &format!("edge-{round}"), server)?;
    let seconds = f64::from(options.seconds);
    let live = thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..options.cuts {
                edge.link.cut();
                thread::sleep(CUT);
                edge.link.mend();
                thread::sleep(CUT);
            }
        });
        edge.live(fast.clone(), seconds, || ())
    })?;
    let Drained { lost, missing } = edge.drained()?;
    push(&mut outcomes[1], live, [Figure::sum("lost", lost), Figure::sum("missing", missing)]);

    edge.link.cut();
    let quiet = edge.live(slow.clone(), seconds, || ())?;
    let filled = edge.live(fast, f64::from(options.events) / options.rate, || ())?;
    let waits = quiet.published.sent + filled.published.sent;
    push(&mut outcomes[2], quiet, []);
    let (monitor, mut mended) = (edge.monitor()?, Instant::now());
    let (beside, [reached, caught_up]) = thread::scope(|scope| {
        let watching = scope.spawn(|| caught_up(monitor, (options.beside * CAUGHT_UP_S) as u64));
        let beside = edge.live(slow, seconds, || {
            edge.link.mend();
            mended = Instant::now();
        })?;
        let caught_up = watching.join().map_err(|_| anyhow!("the thread that watches has ended"))??;
        anyhow::Ok((beside, caught_up))
    })?;
    push(&mut outcomes[3], beside, []);
    let Drained { lost, missing } = edge.drained()?;
    let figures = vec![
        rate(waits, caught_up - reached),
        Figure::sum("events", waits),
        Figure::median("reached_s", (reached - mended).as_secs_f64()),
        Figure::median("drained_s", (caught_up - reached).as_secs_f64()),
        Figure::sum("lost", lost),
        Figure::sum("missing", missing),
    ];
    outcomes[4].push(figures, Measured::default());
    Ok(())
}
