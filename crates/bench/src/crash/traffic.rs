//! Publishers and subscribers beside the faults, and what became of each event.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use bodkin_client::realtime::{
    Brokers, PublishedTopic, PublisherReport, RealtimePublisher, RealtimeSubscriber, Retention, SessionReport, SubscribedTopic,
    SubscriberConfig, SubscriberReport, Subscription, WhenFull,
};

use super::fate::Fates;
use super::nodes::zmtp;
use super::plant::{Plant, Site};
use crate::options::CrashOptions;
use crate::statistics::Latencies;

/// The system that publishes.
pub const SYSTEM: &str = "crashtest";
/// Events that a publisher keeps of a topic that may lose nothing: several seconds of them.
const KEPT_MAX: u32 = 4096;
/// A subscriber that was away longer is not waited for.
const REQUIRED_FOR: Duration = Duration::from_secs(10);
/// Places of a stream that a subscriber remembers.
const WINDOW: u32 = 8192;
/// How long a turn of a subscriber waits at the most, so that it sees the end.
const TURN_MAX: Duration = Duration::from_millis(20);
/// Longest wait until every stream flows.
const FLOW_WAIT_MAX: Duration = Duration::from_secs(20);
/// Longest wait, at the end, for what is under way.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// What comes so long behind the last event is not waited for.
const QUIET: Duration = Duration::from_millis(500);

/// What a topic promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// L = 0, kept until it is covered.
    Nothing,
    /// L = 3, and its publisher keeps no more than admission asks for.
    Three,
    /// L = inf.
    Any,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Three, Self::Any];

    /// Losses in a row that are tolerated.
    pub fn loss_tolerance(self) -> Option<u32> {
        match self {
            Self::Nothing => Some(0),
            Self::Three => Some(3),
            Self::Any => None,
        }
    }

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "l0",
            Self::Three => "l3",
            Self::Any => "linf",
        }
    }
}

/// The topics of the run, each of one publisher.
#[derive(Clone, Debug)]
pub struct Streams {
    /// What each promises.
    pub promises: Vec<Promise>,
    period: Duration,
    deadline: Duration,
    /// N, so many events that they last for a fail-over.
    retention: u32,
}

impl Streams {
    /// As many of each promise as the options say.
    pub fn new(options: &CrashOptions) -> Self {
        let promises = (0..options.streams).flat_map(|_| Promise::ALL).collect();
        let period = Duration::from_micros((options.period_ms * 1e3) as u64);
        let failover = options.failover();
        let retention = (failover.as_secs_f64() / period.as_secs_f64()).ceil() as u32 + 2;
        Self { promises, period, deadline: 10 * failover, retention }
    }

    fn name(&self, stream: usize) -> String {
        format!("CRASH-{}-{stream}", self.promises[stream].name().to_uppercase())
    }

    /// Their declarations, as the configuration has them.
    ///
    /// # Errors
    /// None; text is written into memory.
    pub fn topics(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        for (stream, promise) in self.promises.iter().enumerate() {
            let loss_tolerance = promise.loss_tolerance().map_or("inf".to_owned(), |losses| losses.to_string());
            writeln!(
                text,
                "[[topic]]\nevent_type = \"{}\"\nperiod_us = {}\ndeadline_us = {}\nloss_tolerance = {loss_tolerance}\nretention = {}\n\
                broker_subscriber_max_ms = 1\npublisher_broker_ms = 1\ndispatch_cost_us = 10\nreplica_cost_us = 10\n",
                self.name(stream),
                self.period.as_micros(),
                self.deadline.as_micros(),
                self.retention
            )?;
        }
        Ok(text)
    }

    fn retention(&self, stream: usize) -> Retention {
        match self.promises[stream] {
            Promise::Nothing => Retention::new(self.retention, KEPT_MAX, WhenFull::Block),
            Promise::Three => Retention::new(self.retention, self.retention, WhenFull::DropOldest),
            Promise::Any => Retention::new(0, 1, WhenFull::DropOldest),
        }
    }
}

/// What the publishers saw.
#[derive(Debug, Default)]
pub struct Sent {
    /// Events published, by stream.
    pub published: Vec<u64>,
    /// The last covered one, by stream.
    pub covered: Vec<u64>,
    /// When something that may lose nothing was covered: the gaps between these are what publishers notice of a fault.
    pub covers: Vec<Instant>,
    /// Events that the publisher had no room for and did not publish.
    pub no_room: u64,
    /// Events that the broker would not take, with its words.
    pub not_taken: BTreeMap<String, u64>,
    /// Events that were said to come too fast, by stream.
    pub excess: Vec<BTreeSet<u64>>,
    /// When the publisher turned to a broker that leads.
    pub led: Vec<Instant>,
    /// Why sessions have ended.
    pub ended: BTreeMap<String, u64>,
}

/// What the subscribers saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// By stream.
    pub fates: Vec<Fates>,
    /// Creation to arrival of events that were not late by a fail-over.
    pub latencies: Latencies,
    /// Of all.
    pub all_latencies: Latencies,
    /// Two brokers said that they lead in one epoch.
    pub two_leaders: u64,
    /// Refused subscriptions, with the reason.
    pub refused: BTreeMap<String, u64>,
    /// Why sessions have ended.
    pub ended: BTreeMap<String, u64>,
}

/// The running threads.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    flows: Arc<AtomicBool>,
    quiet: Arc<AtomicBool>,
    publisher: JoinHandle<anyhow::Result<Sent>>,
    subscriber: JoinHandle<anyhow::Result<Seen>>,
}

impl Traffic {
    /// Starts both, and waits until each stream flows.
    ///
    /// # Errors
    /// They do not reach the brokers, or a subscription is refused.
    pub fn start(plant: &Arc<Plant>, streams: &Arc<Streams>) -> anyhow::Result<Self> {
        let [stop, flows, quiet] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        let subscriber = {
            let (plant, streams, flows, quiet) = (plant.clone(), streams.clone(), flows.clone(), quiet.clone());
            thread::Builder::new().name("subscriber".into()).spawn(move || {
                plant.enter(Site::Viewer)?;
                subscribe(&streams, &flows, &quiet)
            })?
        };
        let publisher = {
            let (plant, streams, stop) = (plant.clone(), streams.clone(), stop.clone());
            thread::Builder::new().name("publisher".into()).spawn(move || {
                plant.enter(Site::Machine)?;
                publish(&streams, &stop)
            })?
        };
        let traffic = Self { stop, flows, quiet, publisher, subscriber };
        let deadline = Instant::now() + FLOW_WAIT_MAX;
        while !traffic.flows.load(Relaxed) {
            if Instant::now() > deadline || traffic.publisher.is_finished() || traffic.subscriber.is_finished() {
                let (sent, seen) = traffic.end()?;
                bail!(
                    "the events do not flow: {} published, refused {:?}, subscriptions refused {:?}, sessions of the publisher ended {:?}, \
                    of the subscriber {:?}",
                    sent.published.iter().sum::<u64>(),
                    sent.not_taken,
                    seen.refused,
                    sent.ended,
                    seen.ended
                );
            }
            thread::sleep(TURN_MAX);
        }
        Ok(traffic)
    }

    /// Ends publishing, waits for what is under way, and gives what both saw.
    ///
    /// # Errors
    /// One of them has failed.
    pub fn end(self) -> anyhow::Result<(Sent, Seen)> {
        self.stop.store(true, Relaxed);
        let sent = self.publisher.join().expect("the publisher does not panic").context("the publisher")?;
        self.quiet.store(true, Relaxed);
        let seen = self.subscriber.join().expect("the subscriber does not panic").context("the subscriber")?;
        Ok((sent, seen))
    }
}

fn brokers(from: Site, name: &str) -> Brokers {
    Brokers::pair(name, zmtp(Site::First, from), zmtp(Site::Second, from))
}

fn publish(streams: &Streams, stop: &AtomicBool) -> anyhow::Result<Sent> {
    let mut publisher = RealtimePublisher::connect(brokers(Site::Machine, SYSTEM))?;
    let count = streams.promises.len();
    let topics: Vec<PublishedTopic> =
        (0..count).map(|stream| publisher.add_topic(&streams.name(stream), streams.retention(stream))).collect();
    let mut sent = Sent { published: vec![0; count], covered: vec![0; count], excess: vec![BTreeSet::new(); count], ..Sent::default() };
    // One stream after the other, evenly over the period: so a gap is seen to a part of it. Who is late does not make up for it, for no two events
    // of a stream may be closer than a period.
    let step = streams.period / u32::try_from(count).context("too many streams")? + Duration::from_nanos(1);
    let mut next = Instant::now();
    for stream in (0..count).cycle() {
        if stop.load(Relaxed) {
            break;
        }
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            publisher.turn(wait, |report| note(report, streams, &mut sent))?;
            if wait.is_zero() {
                break;
            }
        }
        match publisher.publish(topics[stream], format!("{stream}").as_bytes()) {
            Ok(_) => sent.published[stream] += 1,
            Err(_) => sent.no_room += 1,
        }
        next = Instant::now() + step;
    }
    let deadline = Instant::now() + DRAIN_MAX;
    let is_owed = |sent: &Sent| {
        (0..count).any(|stream| streams.promises[stream] == Promise::Nothing && sent.covered[stream] < sent.published[stream])
    };
    while is_owed(&sent) && Instant::now() < deadline {
        publisher.turn(TURN_MAX, |report| note(report, streams, &mut sent))?;
    }
    Ok(sent)
}

fn note(report: PublisherReport<'_>, streams: &Streams, sent: &mut Sent) {
    match report {
        PublisherReport::Covered { topic, through } => {
            let stream = topic.index();
            sent.covered[stream] = through.0;
            if streams.promises[stream] == Promise::Nothing {
                sent.covers.push(Instant::now());
            }
        }
        PublisherReport::NotTaken { reason, text, .. } => *sent.not_taken.entry(format!("{reason:?}: {text}")).or_default() += 1,
        PublisherReport::Excess { topic, sequence } => drop(sent.excess[topic.index()].insert(sequence.0)),
        PublisherReport::Session(SessionReport::Leads(..)) => sent.led.push(Instant::now()),
        PublisherReport::Session(SessionReport::Ended(_, why)) => *sent.ended.entry(why.to_string()).or_default() += 1,
        PublisherReport::Session(_) | PublisherReport::Lost { .. } | PublisherReport::CoveredUnpublished { .. } => {}
    }
}

fn subscribe(streams: &Streams, flows: &AtomicBool, quiet: &AtomicBool) -> anyhow::Result<Seen> {
    let config =
        SubscriberConfig { acknowledge_every: 1, acknowledge_after: TURN_MAX, window: WINDOW, streams_max: 2 * streams.promises.len() };
    let mut subscriber = RealtimeSubscriber::connect(brokers(Site::Viewer, "crashviewer"), config)?;
    let count = streams.promises.len();
    for (stream, promise) in streams.promises.iter().enumerate() {
        let required_for = promise.loss_tolerance().map(|_| REQUIRED_FOR);
        let subscription = Subscription { loss_tolerance: promise.loss_tolerance(), required_for, ..Subscription::default() };
        subscriber.subscribe(&streams.name(stream), subscription);
    }
    let mut seen = Seen { fates: vec![Fates::default(); count], ..Seen::default() };
    let mut last = Instant::now();
    while !quiet.load(Relaxed) || last.elapsed() < QUIET {
        subscriber.turn(TURN_MAX, |report| {
            if take(report, &mut seen) {
                last = Instant::now();
            }
        })?;
        if !flows.load(Relaxed) && seen.fates.iter().all(Fates::has_any) {
            flows.store(true, Relaxed);
        }
    }
    Ok(seen)
}

/// Notes what a subscriber is told; true of an event.
fn take(report: SubscriberReport<'_>, seen: &mut Seen) -> bool {
    match report {
        SubscriberReport::Event(event) => {
            let topic: SubscribedTopic = event.topic;
            let header = event.header;
            seen.fates[topic.index()].take(header.sequence.0, event.is_late);
            let latency_ns = now_utc_ns().saturating_sub(header.created_utc_ns);
            seen.all_latencies.record_ns(latency_ns);
            if !header.flags.resend && !header.flags.recovered && !event.is_late {
                seen.latencies.record_ns(latency_ns);
            }
            return true;
        }
        SubscriberReport::Refused { text, .. } => *seen.refused.entry(text.to_owned()).or_default() += 1,
        SubscriberReport::Session(SessionReport::TwoLeaders(_)) => seen.two_leaders += 1,
        SubscriberReport::Session(SessionReport::Ended(_, why)) => *seen.ended.entry(why.to_string()).or_default() += 1,
        _ => {}
    }
    false
}

fn now_utc_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
