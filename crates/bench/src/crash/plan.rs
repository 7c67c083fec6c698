//! Plan of a campaign: rounds, each with one configuration of the pair and the faults that follow.
//!
//! A [`Plan`] comes from the options alone, or from the options and a seed. It performs no I/O, so that the
//! same options and seed name the same configurations and faults on every machine and in every rerun.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use bodkin_broker::timing::Nanos;
use bodkin_broker::topic::LeaseTimes;
use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::jetstream::{self, LANE, STREAM};
use crate::draws::Draws;
use crate::options::CrashOptions;

/// Faults of one round with a drawn configuration.
const ROUND_FAULTS: usize = 5;
/// Publishers by HTTP, and as many by REQ.
const REQUESTING: usize = 2;
/// System that publishes by DEALER.
pub const DEALER_SYSTEM: &str = "crashtest";
/// System that PUSH and PUB publish as in insecure mode.
pub const ONE_WAY_SYSTEM: &str = "crashoneway";
/// Topic of the events that the graph processes.
const GRAPH_INPUT: &str = "CRASH-GRAPH-IN";
/// Topic of the graph's results.
pub const GRAPH_OUTPUT: &str = "CRASH-GRAPH-OUT";

/// A transport of publishers or subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Transport {
    /// Publisher: `POST /eventhandler/publish`.
    Http,
    /// Publisher: ZMTP REQ.
    Req,
    /// Publisher: ZMTP PUSH.
    Push,
    /// Publisher: ZMTP PUB.
    Pub,
    /// Publisher: ZMTP DEALER with header.
    Dealer,
    /// Subscriber: required, ZMTP DEALER.
    Required,
    /// Subscriber: event stream by HTTP (SSE).
    Stream,
    /// Subscriber: HTTP callback.
    Callback,
    /// Subscriber: ZMTP SUB.
    Prefix,
    /// Subscriber: a stateful graph, by its results at a required subscriber.
    Graph,
    /// Subscriber: a stream of NATS JetStream to which the pair forwards durable events.
    JetStream,
}

impl Transport {
    /// Transports of publishers.
    pub const PUBLISHERS: [Self; 5] = [Self::Http, Self::Req, Self::Push, Self::Pub, Self::Dealer];
    /// Transports of subscribers.
    pub const SUBSCRIBERS: [Self; 6] = [Self::Required, Self::Stream, Self::Callback, Self::Prefix, Self::Graph, Self::JetStream];

    /// Returns the transport's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP POST",
            Self::Req => "ZMTP REQ",
            Self::Push => "ZMTP PUSH",
            Self::Pub => "ZMTP PUB",
            Self::Dealer => "ZMTP DEALER",
            Self::Required => "required subscriber",
            Self::Stream => "event stream",
            Self::Callback => "HTTP callback",
            Self::Prefix => "ZMTP SUB",
            Self::Graph => "graph",
            Self::JetStream => "JetStream",
        }
    }

    /// Returns true if a publisher of this transport receives an acknowledgement.
    pub fn acknowledges(self) -> bool {
        matches!(self, Self::Http | Self::Req | Self::Dealer)
    }
}

/// Declaration of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Least time between two events.
    pub period: Duration,
    /// Creation to arrival.
    pub deadline: Duration,
    /// Losses in a row that a subscriber accepts. `None`: any number.
    pub loss_tolerance: Option<u32>,
    /// Newest events that the publisher keeps.
    pub retention: u32,
    /// True if an acknowledged event is on the disk.
    pub is_durable: bool,
}

/// One publisher and its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The publisher's transport.
    pub transport: Transport,
    /// Event type.
    pub topic: String,
    /// Name of the system that publishes.
    pub system: String,
    /// The topic's declaration.
    pub terms: Terms,
}

impl Line {
    /// Returns true if a subscriber of this transport receives the line's events.
    pub fn reaches(&self, subscriber: Transport) -> bool {
        match subscriber {
            Transport::Graph => self.topic == GRAPH_INPUT,
            Transport::JetStream => self.terms.is_durable,
            _ => true,
        }
    }
}

/// Configuration of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Times of the lease, the same on all nodes.
    pub lease: LeaseTimes,
    /// Publishers and topics. The lines of DEALER come first.
    pub lines: Vec<Line>,
    /// True if the standby starts before the Primary.
    pub is_standby_first: bool,
    /// True if a second Primary is started in the round: publishers try to publish at it, too.
    pub has_second_primary: bool,
    /// True if the nodes have disks of their own.
    pub has_disks: bool,
    /// Name as which the pair forwards its durable events to JetStream; `None`: it forwards nothing.
    pub edge: Option<String>,
}

impl Settings {
    /// Returns the settings with what the faults need.
    fn with_needs_of(self, faults: &[Fault]) -> Self {
        let has_second_primary = faults.iter().any(|fault| matches!(fault, Fault::SecondPrimary | Fault::CopiedPrimary));
        Self { has_second_primary, has_disks: faults.iter().any(|fault| fault.needs_disks()), ..self }
    }
}

impl Settings {
    /// Returns x, the bound on a failover that the lease implies.
    pub fn failover(&self) -> Duration {
        Duration::from_nanos(self.lease.failover().get().unsigned_abs())
    }

    /// Returns the number of DEALER lines.
    pub fn dealer_count(&self) -> usize {
        self.lines.iter().filter(|line| line.transport == Transport::Dealer).count()
    }

    /// Returns the line whose events a graph processes, if the round has a graph.
    pub fn graph_input(&self) -> Option<usize> {
        self.lines.iter().position(|line| line.topic == GRAPH_INPUT)
    }

    /// Returns the file of the graph, if the round has one: each result is the mean of an event and of the one before it.
    pub fn graph_file(&self) -> Option<String> {
        let period_us = self.lines[self.graph_input()?].terms.period.as_micros();
        Some(format!(
            "[graph]\nname = \"means\"\nreplace_queued = false\n[[supplier]]\ntopic = \"{GRAPH_INPUT}\"\nshape = \"f64\"\nperiod_us = {period_us}\n\
            [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"{GRAPH_INPUT}\"]\nwindow = 2\n\
            [[output]]\ntopic = \"{GRAPH_OUTPUT}\"\nfrom = \"mean\"\n"
        ))
    }

    /// Returns the configuration file of a node with this graph file, without the topics whose index is in `left_out`.
    pub fn file(&self, lease: LeaseTimes, graph: Option<&Path>, left_out: &[usize]) -> String {
        let ms = |nanos: Nanos| nanos.get() as f64 / 1e6;
        let graphs = graph.map_or_else(String::new, |file| format!("graphs = [{file:?}]\n"));
        let mut text = format!(
            "zmtp_system = \"{ONE_WAY_SYSTEM}\"\n{graphs}[platform]\nlease_ms = {}\nheartbeat_ms = {}\ndrift_ppm = {}\ndetect_jitter_ms = {}\n\
            redirect_ms = {}\nbroker_backup_ms = 1\nclock_error_ms = 0.1\n",
            ms(lease.lease),
            ms(lease.heartbeat),
            lease.drift_ppm,
            ms(lease.detect_jitter),
            ms(lease.redirect)
        );
        let inputs = self.lines.iter().enumerate().filter(|(index, _)| !left_out.contains(index));
        let outputs = self.graph_input().map(|input| (GRAPH_OUTPUT, self.lines[input].terms));
        for (topic, terms) in inputs.map(|(_, line)| (line.topic.as_str(), line.terms)).chain(outputs) {
            let Terms { period, deadline, loss_tolerance, retention, is_durable } = terms;
            let loss_tolerance = loss_tolerance.map_or("inf".to_owned(), |losses| losses.to_string());
            let (period, deadline) = (period.as_micros(), deadline.as_micros());
            write!(
                text,
                "[[topic]]\nevent_type = \"{topic}\"\nperiod_us = {period}\ndeadline_us = {deadline}\nloss_tolerance = {loss_tolerance}\n\
                retention = {retention}\ndurable = {is_durable}\nbroker_subscriber_max_ms = 1\npublisher_broker_ms = 1\n\
                dispatch_cost_us = 10\nreplica_cost_us = 10\n"
            )
            .expect("text takes text");
        }
        if let Some(edge) = &self.edge {
            let forwarded: Vec<&str> = self.lines.iter().filter(|line| line.terms.is_durable).map(|line| line.topic.as_str()).collect();
            write!(
                text,
                "[fleet]\nservers = [\"nats://{}\"]\nstream = \"{STREAM}\"\nedge = \"{edge}\"\ncreate_replicas = 1\nlanes = {{ {LANE} = {forwarded:?} }}\n",
                jetstream::address()
            )
            .expect("text takes text");
        }
        text
    }
}

/// One configuration and the faults that strike it.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Label of the round's totals in the report.
    pub label: String,
    /// The configuration.
    pub settings: Settings,
    /// The faults, in their order.
    pub faults: Vec<Fault>,
}

impl Round {
    /// Returns the round with a pair that forwards as this edge.
    pub fn forwarding(&self, edge: Option<String>) -> Self {
        Self { settings: Settings { edge, ..self.settings.clone() }, ..self.clone() }
    }
}

/// The rounds of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Seed that repeats the plan.
    pub seed: u64,
    /// The rounds, in their order.
    pub rounds: Vec<Round>,
}

impl Plan {
    /// Returns the plan that the options and the seed name.
    pub fn new(options: &CrashOptions, seed: u64) -> Self {
        let kinds: Vec<Fault> = if options.fault.is_empty() { Fault::ALL.to_vec() } else { options.fault.clone() };
        let Some(count) = options.faults else {
            let round = |fault: &Fault| Round {
                label: fault.name(),
                settings: stated(options).with_needs_of(&[*fault]),
                faults: vec![*fault; usize::try_from(options.times).expect("32 bits fit")],
            };
            return Self { seed, rounds: kinds.iter().map(round).collect() };
        };
        let count = usize::try_from(count).expect("32 bits fit");
        // Each round has a seed of its own, so that a longer campaign begins with the rounds of a shorter one.
        let mut seeds = Draws::new(seed);
        let round = |number: usize| {
            let faults = ROUND_FAULTS.min(count - number * ROUND_FAULTS);
            let mut draws = Draws::new(seeds.next());
            let settings = drawn(&mut draws, options);
            // A shorter campaign has the beginning of a longer one's round, with the same settings.
            let all: Vec<Fault> = (0..ROUND_FAULTS).map(|_| kinds[draws.below(kinds.len() as u64) as usize]).collect();
            let settings = settings.with_needs_of(&all);
            Round { label: "drawn faults".to_owned(), settings, faults: all[..faults].to_vec() }
        };
        Self { seed, rounds: (0..count.div_ceil(ROUND_FAULTS)).map(round).collect() }
    }

    /// Returns the number of faults of all rounds.
    pub fn fault_count(&self) -> usize {
        self.rounds.iter().map(|round| round.faults.len()).sum()
    }
}

/// Returns the settings that the options state.
fn stated(options: &CrashOptions) -> Settings {
    let lease = options.lease();
    let period = Duration::from_micros((options.period_ms * 1e3) as u64);
    let terms = |loss_tolerance, is_durable| terms(lease, period, 10, loss_tolerance, is_durable);
    let mut lines = Vec::new();
    for _ in 0..options.streams {
        for loss_tolerance in [Some(0), Some(3), None] {
            lines.push(dealer(lines.len(), terms(loss_tolerance, false)));
        }
    }
    if !options.dealer_only {
        // One topic of each transport is durable where the transport acknowledges.
        add_others(&mut lines, |transport, index| terms(Some(0), index == 1 && transport.acknowledges()));
    }
    Settings { lease, lines, is_standby_first: !options.primary_first, has_second_primary: false, has_disks: false, edge: None }
}

/// Returns settings at random.
fn drawn(draws: &mut Draws, options: &CrashOptions) -> Settings {
    let mut between = |least: u64, most: u64| least + draws.below(most - least + 1);
    let ms = |milliseconds: u64| Nanos::new(i64::try_from(milliseconds * 1_000_000).expect("some hundred milliseconds"));
    let lease_ms = 100 * between(3, 7);
    let lease = LeaseTimes {
        lease: ms(lease_ms),
        heartbeat: ms(lease_ms / between(5, 10)),
        detect_jitter: ms(50 * between(2, 6)),
        redirect: ms(100 * between(1, 4)),
        drift_ppm: LeaseTimes::SHIPPED.drift_ppm,
    };
    let is_standby_first = draws.chance(0.5);
    let mut some_terms = |losses: &[Option<u32>]| {
        let period = Duration::from_millis([10, 20, 50, 100][draws.below(4) as usize]);
        let loss_tolerance = losses[draws.below(losses.len() as u64) as usize];
        let deadlines = [10, 20, 40][draws.below(3) as usize];
        let is_durable = draws.chance(0.25);
        let mut terms = terms(lease, period, deadlines, loss_tolerance, is_durable);
        terms.retention += draws.below(64) as u32;
        terms
    };
    let mut lines: Vec<Line> = Vec::new();
    for loss_tolerance in [Some(0), Some(3), None] {
        lines.push(dealer(lines.len(), some_terms(&[loss_tolerance])));
    }
    if !options.dealer_only {
        lines.push(Line { topic: GRAPH_INPUT.to_owned(), ..dealer(lines.len(), some_terms(&[Some(0)])) });
        // The first topic of each transport may lose nothing, so that each campaign checks the strict promise.
        // The second one of HTTP is durable, so that there is something to forward.
        add_others(&mut lines, |transport, index| {
            let terms = some_terms(if index == 0 { &[Some(0)] } else { &[Some(0), Some(3), None] });
            Terms { is_durable: terms.is_durable || transport == Transport::Http && index == 1, ..terms }
        });
    }
    Settings { lease, lines, is_standby_first, has_second_primary: false, has_disks: false, edge: None }
}

/// Returns terms that the admission test accepts: N covers a failover.
fn terms(lease: LeaseTimes, period: Duration, deadlines: u32, loss_tolerance: Option<u32>, is_durable: bool) -> Terms {
    let failover = Duration::from_nanos(lease.failover().get().unsigned_abs());
    let retention = (failover.as_secs_f64() / period.as_secs_f64()).ceil() as u32 + 2;
    Terms { period, deadline: deadlines * failover, loss_tolerance, retention, is_durable }
}

fn dealer(index: usize, terms: Terms) -> Line {
    let losses = terms.loss_tolerance.map_or("INF".to_owned(), |losses| losses.to_string());
    Line { transport: Transport::Dealer, topic: format!("CRASH-L{losses}-{index}"), system: DEALER_SYSTEM.to_owned(), terms }
}

/// Adds the publishers of every transport but DEALER.
fn add_others(lines: &mut Vec<Line>, mut terms: impl FnMut(Transport, usize) -> Terms) {
    for (transport, word, count) in [
        (Transport::Http, "http", REQUESTING),
        (Transport::Req, "req", REQUESTING),
        (Transport::Push, "push", 1),
        (Transport::Pub, "pub", 1),
    ] {
        for index in 0..count {
            let topic = format!("CRASH-{}-{index}", word.to_uppercase());
            lines.push(Line { transport, topic, system: format!("crash{word}{index}"), terms: terms(transport, index) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: CrashOptions,
    }

    fn options(line: &str) -> CrashOptions {
        Command::parse_from(std::iter::once("crash").chain(line.split_whitespace())).options
    }

    #[test]
    fn seed_repeats_configurations_and_faults() {
        let options = options("--faults 23");
        assert_eq!(Plan::new(&options, 7), Plan::new(&options, 7));
        assert_ne!(Plan::new(&options, 7), Plan::new(&options, 8));
        assert_eq!(Plan::new(&options, 7).fault_count(), 23);
    }

    #[test]
    fn longer_plan_begins_with_shorter_one() {
        let [short, long] = ["--faults 5", "--faults 40"].map(|line| Plan::new(&options(line), 99));
        assert_eq!(short.rounds[..], long.rounds[..1]);
        assert_eq!(long.rounds.len(), 8);
    }

    #[test]
    fn drawn_plans_reach_every_value() {
        let rounds: Vec<Round> = (0..40).flat_map(|seed| Plan::new(&options("--faults 10"), seed).rounds).collect();
        let any = |holds: &dyn Fn(&Round) -> bool| rounds.iter().any(holds);
        for fault in Fault::ALL {
            assert!(any(&|round| round.faults.contains(&fault)), "{}", fault.name());
        }
        for is_standby_first in [false, true] {
            assert!(any(&|round| round.settings.is_standby_first == is_standby_first));
        }
        for transport in Transport::PUBLISHERS {
            for is_durable in [false, true] {
                let has = |line: &Line| line.transport == transport && line.terms.is_durable == is_durable;
                assert!(any(&|round| round.settings.lines.iter().any(has)), "{} {is_durable}", transport.name());
            }
        }
        let leases: std::collections::BTreeSet<i64> = rounds.iter().map(|round| round.settings.lease.lease.get()).collect();
        assert_eq!(leases.len(), 5);
    }

    #[test]
    fn drawn_retention_covers_a_failover() {
        for round in (0..40).flat_map(|seed| Plan::new(&options("--faults 10"), seed).rounds) {
            for line in &round.settings.lines {
                assert!(line.terms.period * line.terms.retention > round.settings.failover(), "{line:?}");
                assert!(line.terms.deadline > round.settings.failover(), "{line:?}");
            }
        }
    }

    #[test]
    fn stated_plan_has_one_round_per_fault() {
        let plan = Plan::new(&options("--fault kill,cut-pair --times 3 --streams 2 --dealer-only"), 1);
        let rounds: Vec<(&str, usize)> = plan.rounds.iter().map(|round| (round.label.as_str(), round.faults.len())).collect();
        assert_eq!(rounds, [("kill", 3), ("cut-pair", 3)]);
        assert_eq!(plan.rounds[0].settings.lines.len(), 6);
    }

    #[test]
    fn file_leaves_topics_out() {
        let settings = Plan::new(&options("--fault kill --streams 1"), 1).rounds.remove(0).settings;
        let [whole, part] = [&[][..], &[0]].map(|left_out| settings.file(settings.lease, None, left_out));
        let count = |text: &str| text.matches("[[topic]]").count();
        assert_eq!((count(&whole), count(&part)), (9, 8));
        assert!(whole.contains("CRASH-L0-0") && !part.contains("CRASH-L0-0"));
    }
}
