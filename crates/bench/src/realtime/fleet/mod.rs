//! `bench fleet`: events of a node into a JetStream stream on three servers, beside a bare client with the same batches; a backlog that is drained beside live traffic; links and servers that go.

pub mod bare;
mod edge;
mod faults;
pub mod stored;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use self::bare::{Bare, BareLoad};
use self::edge::{Edge, caught_up, since};
use self::faults::Kills;
use self::stored::Stored;
use super::peer::PeerServer;
use super::run::Sides;
use super::workload::{Group, Stamp, Workload};
use crate::expectation::Faults;
use crate::link::Link;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::FleetOptions;
use crate::report::{Outcome, Report};
use crate::statistics::{Figure, Latencies, Unit};
use crate::time_line::TimeLine;

const REPLICAS: u8 = 3;
/// The stream of nodes, and that of the bare client.
const STREAM: &str = "BENCH";
const BARE_STREAM: &str = "BARE";
/// A backlog is drained when no more waits than comes in so many seconds.
const CAUGHT_UP_S: f64 = 0.1;
/// An event waits no longer for its batch to become full; a node has the same as it comes.
const BATCH_WAIT_MAX: Duration = Duration::from_millis(10);
/// A backlog is filled so much faster than the live load is.
const FILL_TIMES: f64 = 2.0;
/// Without live events for so long a node has no pace.
const SILENCE: Duration = Duration::from_millis(1_500);
/// As good as no pace.
const NO_PACE_PER_S: u64 = 100_000_000;
/// Beside a backlog live events go on until it is drained, by its pace or, where it has none, with so many events a second, and for so much longer.
const UNPACED_PER_S: f64 = 250_000.0;
const BESIDE_MORE: Duration = Duration::from_millis(1_500);
/// Seconds that a server is gone in, comes back, and has what it has missed.
const KILL_S: u32 = 12;
const CUT_S: u32 = 2;
const PERCENTS: [f64; 3] = [50.0, 99.0, 99.9];

/// What is run, in the order of the report.
#[derive(Clone, Copy)]
enum Case {
    Bare,
    BareEvenly,
    Live,
    Quiet,
    BesideBare,
    BesideBacklog,
    Backlog,
    BesideUnpaced,
    Unpaced,
    Alone,
    Stream,
}

impl Case {
    const ALL: [(Self, &str); 11] = [
        (Self::Bare, "bare client"),
        (Self::BareEvenly, "bare client, evenly"),
        (Self::Live, "live"),
        (Self::Quiet, "live while nothing is forwarded"),
        (Self::BesideBare, "live beside the bare client at the pace"),
        (Self::BesideBacklog, "live beside the backlog"),
        (Self::Backlog, "backlog beside live events"),
        (Self::BesideUnpaced, "live beside the backlog without a pace"),
        (Self::Unpaced, "backlog beside live events without a pace"),
        (Self::Alone, "backlog"),
        (Self::Stream, "what is in the stream"),
    ];
}

/// What all rounds have.
struct Bench<'o> {
    options: &'o FleetOptions,
    servers: PeerServer,
    outcomes: [Outcome; Case::ALL.len()],
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

fn rate(events: u64, took: Duration) -> Figure {
    Figure::median("events_per_s", events as f64 / took.as_secs_f64().max(1e-9))
}

/// Alternates them and reports.
///
/// # Errors
/// There is no nats-server on PATH, a node does not start, or events do not come into the stream.
pub fn run(options: &FleetOptions) -> anyhow::Result<Report> {
    let mut report = Report::new("events of a node into a JetStream stream".into());
    report.note(format!(
        "three nats-servers of this machine with sync_interval: always, a stream on all of them; batches of {} bytes or 10 ms, one under way; payloads of {} bytes; every way to a server over a link of the bench's, and to the one that leads the stream",
        options.batch_bytes, options.payload_bytes
    ));
    report.note(format!(
        "bare: one connection that publishes the same batches by their names and does nothing else; evenly: with --rate. backlog: what was published while the link was cut, from the first connection behind the mending, reached_s later, until what waits is no more than comes in 0.1 s; beside live events at {} events/s (--pace), or without one. age: from the node's taking of an event, of the bare client from its being due, to the acknowledgement",
        options.pace
    ));
    let mut conditions = Conditions::begin(
        "placed by the kernel".into(),
        "an own node, started by the bench, insecure".into(),
        "none".into(),
        options.repeat,
    );
    let servers = PeerServer::nats_synced(usize::from(REPLICAS), "")?;
    let outcomes = Case::ALL.map(|(_, label)| Outcome::new(label.to_owned()));
    let mut bench = Bench { options, servers, outcomes };
    let mut direct = Bare::connect(bench.servers.address)?;
    direct.create(STREAM, "bench.*.*", REPLICAS)?;
    direct.create(BARE_STREAM, "bare.*", REPLICAS)?;
    for round in 0..options.repeat {
        bench.bare(round)?;
        bench.edge(round)?;
        bench.unpaced(round)?;
    }
    bench.ratios(&mut report);
    report.outcomes.extend(bench.outcomes);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

impl Bench<'_> {
    /// Says on stderr what is begun: a run takes minutes.
    fn begin(&self, case: Case, round: u32) {
        eprintln!("{}, run {} of {}", Case::ALL[case as usize].1, round + 1, self.options.repeat);
    }

    /// A way to the server that leads a stream, which a node goes to by itself.
    fn link_to_leader(&self, stream: &str) -> anyhow::Result<Link> {
        let leader = faults::leader_of(&self.servers, stream).context("nobody says which server leads the stream")?;
        Link::to(self.servers.addresses()[leader])
    }

    fn push(&mut self, case: Case, figures: Vec<Figure>, measured: Measured) {
        self.outcomes[case as usize].push(figures, measured);
    }

    /// From a publisher's send to the word that its event is taken.
    fn push_live(&mut self, case: Case, sides: Sides, further: Vec<Figure>) {
        let latencies = Latencies::from_counts(&sides.published.covered);
        let mut figures = latencies.figures("", Unit::Us, &PERCENTS);
        figures.push(Figure::sum("events", sides.published.sent));
        figures.push(Figure::sum("not_sent", sides.published.not_sent));
        figures.extend(further);
        let faults = Faults { count: sides.published.refused, first: sides.published.refusals };
        self.push(case, figures, Measured { latencies, faults, time_line: TimeLine::default() });
    }

    /// The bare client over a link as the node has one, with the node's event types.
    fn bare_over(&self, link: &Link, subject: &str, events: u64, evenly_per_s: Option<f64>) -> anyhow::Result<Latencies> {
        let topic = workload(self.options, self.options.rate).names().swap_remove(0);
        let (payload_bytes, batch_bytes) = (self.options.payload_bytes as usize, self.options.batch_bytes as usize);
        let load = BareLoad { subject, topic: &topic, events, payload_bytes, batch_bytes };
        let mut bare = Bare::connect(link.address)?;
        match evenly_per_s {
            None => bare.publish(&load),
            Some(per_s) => bare.publish_evenly(&load, per_s, BATCH_WAIT_MAX),
        }
    }

    fn bare(&mut self, round: u32) -> anyhow::Result<()> {
        self.begin(Case::Bare, round);
        let (link, events) = (self.link_to_leader(BARE_STREAM)?, u64::from(self.options.events));
        let begun = Instant::now();
        let batches = self.bare_over(&link, &format!("bare.{round}"), events, None)?;
        let mut figures = vec![rate(events, begun.elapsed()), Figure::sum("batches", batches.count())];
        figures.extend(batches.figures("batch_", Unit::Ms, &PERCENTS));
        self.push(Case::Bare, figures, Measured { latencies: batches, ..Measured::default() });
        self.begin(Case::BareEvenly, round);
        let events = (self.options.rate * f64::from(self.options.seconds)) as u64;
        let begun = Instant::now();
        let ages = self.bare_over(&link, &format!("bare.{round}-evenly"), events, Some(self.options.rate))?;
        let mut figures = vec![rate(events, begun.elapsed())];
        figures.extend(ages.figures("age_", Unit::Ms, &PERCENTS));
        self.push(Case::BareEvenly, figures, Measured { latencies: ages, ..Measured::default() });
        Ok(())
    }

    /// A node with the pace, from live events and faults to backlogs.
    fn edge(&mut self, round: u32) -> anyhow::Result<()> {
        let options = self.options;
        let (fast, slow) = (workload(options, options.rate), workload(options, options.beside));
        let seconds = options.seconds.max(options.cuts * CUT_S).max(options.kills * KILL_S);
        let beside_s = f64::from(options.events) / f64::from(options.pace) + BESIDE_MORE.as_secs_f64();
        let live = (f64::from(seconds + 4 * options.seconds) * (options.rate + options.beside) + beside_s * options.beside) as u64;
        let room = u64::from(options.events) * 2 + live;
        let edge = Edge::start(options, &fast, &format!("edge-{round}"), &self.servers.addresses(), [room, options.pace.into()])?;
        self.begin(Case::Live, round);
        self.live(&edge, fast, f64::from(seconds))?;

        edge.cut();
        let seconds = f64::from(options.seconds);
        self.begin(Case::Quiet, round);
        let quiet = edge.live(slow.clone(), seconds, || ())?;
        self.push_live(Case::Quiet, quiet, Vec::new());
        self.begin(Case::BesideBare, round);
        let beside = self.beside_bare(&edge, slow.clone(), &format!("bare.{round}-beside"))?;
        self.push_live(Case::BesideBare, beside, Vec::new());
        self.begin(Case::BesideBacklog, round);
        self.fill(&edge)?;
        self.drain_beside(&edge, slow, f64::from(options.pace), [Case::BesideBacklog, Case::Backlog])?;

        self.begin(Case::Alone, round);
        edge.cut();
        let waits = self.fill(&edge)?;
        thread::sleep(SILENCE);
        let mended = Instant::now();
        edge.mend();
        let drained = caught_up(edge.monitor()?, 0)?;
        let figures = drain_figures(waits, mended, drained);
        self.push(Case::Alone, figures, Measured::default());
        self.look_into(&edge)
    }

    /// A node whose backlog has no pace.
    fn unpaced(&mut self, round: u32) -> anyhow::Result<()> {
        let options = self.options;
        let (fast, slow) = (workload(options, options.rate), workload(options, options.beside));
        let beside_s = f64::from(options.events) / UNPACED_PER_S + BESIDE_MORE.as_secs_f64();
        let room = u64::from(options.events) + (beside_s * options.beside) as u64;
        let edge = Edge::start(options, &fast, &format!("unpaced-{round}"), &self.servers.addresses(), [room, NO_PACE_PER_S])?;
        edge.cut();
        self.begin(Case::BesideUnpaced, round);
        self.fill(&edge)?;
        self.drain_beside(&edge, slow, UNPACED_PER_S, [Case::BesideUnpaced, Case::Unpaced])?;
        self.look_into(&edge)
    }

    /// Live events while they are forwarded, with what happens to links and servers.
    fn live(&mut self, edge: &Edge, workload: Workload, seconds: f64) -> anyhow::Result<()> {
        let (before, options, servers, links) = (edge.ages()?, self.options, &mut self.servers, &edge.links);
        let (live, kills) = thread::scope(|scope| {
            scope.spawn(|| faults::cut(links, options.cuts));
            let (load, lasts) = std::sync::mpsc::channel();
            let killing = scope.spawn(move || faults::kill(servers, STREAM, options.kills, &lasts));
            let live = edge.live(workload, seconds, || ());
            drop(load);
            let live = live?;
            let kills = killing.join().map_err(|_| anyhow!("the thread that kills has ended"))??;
            anyhow::Ok((live, kills))
        })?;
        edge.drained()?;
        let Kills { kills, leaders } = kills;
        let mut further = since(&edge.ages()?, &before).figures("age_", Unit::Ms, &PERCENTS);
        if options.cuts + options.kills > 0 {
            further.extend([
                Figure::sum("cuts", options.cuts.into()),
                Figure::sum("kills", kills),
                Figure::sum("kills_of_leaders", leaders),
            ]);
        }
        self.push_live(Case::Live, live, further);
        Ok(())
    }

    /// Live events of a node that forwards nothing, while the bare client publishes at the pace.
    fn beside_bare(&self, edge: &Edge, workload: Workload, subject: &str) -> anyhow::Result<Sides> {
        let (seconds, pace) = (f64::from(self.options.seconds), f64::from(self.options.pace));
        let link = self.link_to_leader(BARE_STREAM)?;
        thread::scope(|scope| {
            let (begin, begins) = std::sync::mpsc::channel();
            let publishing = scope.spawn(move || {
                // It is over without a word when the live load does not begin.
                begins.recv().map_err(|_| anyhow!("the live load does not begin"))?;
                self.bare_over(&link, subject, (pace * seconds) as u64, Some(pace))
            });
            let live = edge.live(workload, seconds, || {
                // If its thread has ended, its error says so.
                let _ = begin.send(());
            });
            drop(begin);
            publishing.join().map_err(|_| anyhow!("the bare client's thread has ended"))??;
            live
        })
    }

    /// Fills a node's backlog, whose link is cut; gives how many events wait.
    fn fill(&self, edge: &Edge) -> anyhow::Result<u64> {
        let rate = self.options.rate * FILL_TIMES;
        edge.live(workload(self.options, rate), f64::from(self.options.events) / rate, || ())?;
        edge.waiting()
    }

    /// Mends the link beside live events, which go on until what waits is drained, if that goes with so many events a second.
    fn drain_beside(&mut self, edge: &Edge, live: Workload, per_s: f64, [beside, backlog]: [Case; 2]) -> anyhow::Result<()> {
        // Behind a long cut a node tries seldom; behind a connection that was of use it comes back at once.
        edge.mend();
        edge.reached()?;
        edge.cut();
        let (waits, monitor, mut mended) = (edge.waiting()?, edge.monitor()?, Instant::now());
        let at_most = (self.options.beside * CAUGHT_UP_S) as u64;
        let seconds = waits as f64 / per_s + BESIDE_MORE.as_secs_f64();
        let (live, drained) = thread::scope(|scope| {
            let watching = scope.spawn(|| caught_up(monitor, at_most));
            let live = edge.live(live, seconds, || {
                edge.mend();
                mended = Instant::now();
            })?;
            anyhow::Ok((live, watching.join().map_err(|_| anyhow!("the thread that watches has ended"))??))
        })?;
        self.push_live(beside, live, Vec::new());
        self.push(backlog, drain_figures(waits, mended, drained), Measured::default());
        edge.drained().map(drop)
    }

    /// Reads back what of a node is in the stream.
    fn look_into(&mut self, edge: &Edge) -> anyhow::Result<()> {
        let (told_lost, published) = (edge.drained()?, edge.published()?);
        let stored = Stored::read(&mut Bare::connect(self.servers.address)?, STREAM, &edge.subject)?;
        let Stored { events, doubled, lost, .. } = stored;
        let figures = vec![
            Figure::sum("events", events),
            Figure::sum("missing", published.saturating_sub(events + lost)),
            Figure::sum("doubled", doubled),
            Figure::sum("lost", lost.max(told_lost)),
        ];
        self.push(Case::Stream, figures, Measured::default());
        Ok(())
    }

    fn ratios(&self, report: &mut Report) {
        let of = |case: Case, key: &str| self.outcomes[case as usize].series.summary(key).unwrap_or_default();
        let ratio = |key: &str, one: Case, other: Case| of(one, key) / of(other, key).max(f64::MIN_POSITIVE);
        for (what, ratio) in [
            ("events a second, backlog to bare client", ratio("events_per_s", Case::Alone, Case::Bare)),
            ("median age at --rate, node to bare client", ratio("age_p50_ms", Case::Live, Case::BareEvenly)),
            ("p99 of ages at --rate, node to bare client", ratio("age_p99_ms", Case::Live, Case::BareEvenly)),
            ("p99 of live events, beside the backlog to while nothing is forwarded", ratio("p99_us", Case::BesideBacklog, Case::Quiet)),
            (
                "p99 of live events, beside the bare client at the pace to while nothing is forwarded",
                ratio("p99_us", Case::BesideBare, Case::Quiet),
            ),
            (
                "p99 of live events, beside the backlog to beside the bare client at the pace",
                ratio("p99_us", Case::BesideBacklog, Case::BesideBare),
            ),
        ] {
            report.ratio(what.into(), ratio);
        }
    }
}

fn drain_figures(waits: u64, mended: Instant, [reached, caught_up]: [Instant; 2]) -> Vec<Figure> {
    vec![
        rate(waits, caught_up - reached),
        Figure::sum("events", waits),
        Figure::median("reached_s", (reached - mended).as_secs_f64()),
        Figure::median("drained_s", (caught_up - reached).as_secs_f64()),
    ]
}
