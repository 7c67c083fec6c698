//! Publisher and required subscriber by ZMTP DEALER: `client::realtime`, as an application links it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use bodkin_client::realtime::{
    Brokers, PublishError, PublishedTopic, PublisherReport, RealtimePublisher, RealtimeSubscriber, Retention, SessionReport,
    SubscriberConfig, SubscriberReport, Subscription, WhenFull,
};

use super::super::access::REQUIRED_SYSTEM;
use super::super::nodes::zmtp;
use super::super::plan::{DEALER_SYSTEM, GRAPH_OUTPUT, Terms, Transport};
use super::super::plant::Site;
use super::{DRAIN_MAX, Scene};

/// Events that a publisher keeps of a topic that may lose nothing: several seconds of them.
const KEPT_MAX: u32 = 4096;
/// A subscriber that was away longer is not waited for.
const REQUIRED_FOR: Duration = Duration::from_secs(60);
/// Places of a stream that a subscriber remembers.
const WINDOW: u32 = 8192;
/// Streams of each topic that a subscriber remembers: a node that leads numbers the events of HTTP and REQ in a run of its own.
const RUNS: usize = 16;
/// Longest wait of a subscriber for the next message, after which it checks whether the round has ended.
const TURN_MAX: Duration = Duration::from_millis(20);

fn brokers(scene: &Scene, from: Site, name: &str) -> anyhow::Result<Brokers> {
    let security = scene.access.curve(name)?;
    Ok(Brokers { security, ..Brokers::pair(name, zmtp(Site::First, from), zmtp(Site::Second, from)) })
}

fn retention(terms: &Terms) -> Retention {
    match terms.loss_tolerance {
        Some(0) => Retention::new(terms.retention, KEPT_MAX, WhenFull::Block),
        Some(_) => Retention::new(terms.retention, terms.retention, WhenFull::DropOldest),
        None => Retention::new(0, 1, WhenFull::DropOldest),
    }
}

/// Publishes an event of each line of DEALER in each of its periods.
///
/// # Errors
/// Returns an error if the system gives no poll or no key.
pub fn publish(scene: &Arc<Scene>) -> anyhow::Result<()> {
    let lines: Vec<_> = scene.settings.lines[..scene.settings.dealer_count()].to_vec();
    let mut publisher = RealtimePublisher::connect(brokers(scene, Site::Machine, DEALER_SYSTEM)?)?;
    let topics: Vec<PublishedTopic> = lines.iter().map(|line| publisher.add_topic(&line.topic, retention(&line.terms))).collect();
    // The lines begin evenly over their periods, so that a gap is measured to a part of a period. A line that is late does not make up
    // for it, because two events may not be closer than a period.
    let begin = Instant::now();
    let count = u32::try_from(lines.len()).context("too many lines")?;
    let mut due: Vec<Instant> = (0u32..).zip(&lines).map(|(index, line)| begin + line.terms.period * index / count).collect();
    while scene.publishers_run() {
        let index = (0..due.len()).min_by_key(|index| due[*index]).expect("there are lines of DEALER");
        loop {
            let wait = due[index].saturating_duration_since(Instant::now());
            publisher.turn(wait.min(TURN_MAX), |report| note(report, scene))?;
            if wait.is_zero() {
                break;
            }
        }
        // The event may arrive before `publish` returns, so the ledger is locked until it has the event.
        let mut ledger = scene.ledger();
        let sequence = ledger.published()[index] + 1;
        match publisher.publish(topics[index], Scene::payload(index, sequence).as_bytes()) {
            Ok(_) => drop(ledger.publish(index)),
            Err(PublishError::Full(_)) => drop(scene.no_room.fetch_add(1, Relaxed)),
            Err(error) => return Err(error.into()),
        }
        drop(ledger);
        due[index] = Instant::now() + lines[index].terms.period + Duration::from_nanos(1);
    }
    drain(scene, &mut publisher)
}

/// Waits until each event that may not be lost is covered.
fn drain(scene: &Scene, publisher: &mut RealtimePublisher) -> anyhow::Result<()> {
    let deadline = Instant::now() + DRAIN_MAX;
    while scene.ledger().owes_cover() && Instant::now() < deadline {
        publisher.turn(TURN_MAX, |report| note(report, scene))?;
    }
    Ok(())
}

fn note(report: PublisherReport<'_>, scene: &Scene) {
    match report {
        PublisherReport::Covered { topic, through } => scene.ledger().cover(topic.index(), through.0, Instant::now()),
        PublisherReport::NotTaken { topic, sequence, reason, text } => {
            *scene.observed().refused.entry(format!("{reason:?}: {text}")).or_default() += 1;
            scene.ledger().refuse(topic.index(), sequence.0, text, false);
        }
        PublisherReport::Excess { topic, sequence } => scene.ledger().exceed(topic.index(), sequence.0),
        PublisherReport::Session(SessionReport::Leads(..)) => {
            let is_first = {
                let mut observed = scene.observed();
                observed.led.push(Instant::now());
                observed.led.len() == 1
            };
            if !is_first {
                scene.ledger().fail_over();
            }
        }
        PublisherReport::Session(SessionReport::Ended(_, why)) => *scene.observed().ended.entry(why.to_string()).or_default() += 1,
        PublisherReport::Session(_) | PublisherReport::Lost { .. } | PublisherReport::CoveredUnpublished { .. } => {}
    }
}

/// Receives the events of all lines until the subscribers end.
///
/// # Errors
/// Returns an error if the system gives no poll or no key.
pub fn subscribe(scene: &Arc<Scene>) -> anyhow::Result<()> {
    let lines = &scene.settings.lines;
    let config =
        SubscriberConfig { acknowledge_every: 1, acknowledge_after: TURN_MAX, window: WINDOW, streams_max: RUNS * (lines.len() + 1) };
    let mut subscriber = RealtimeSubscriber::connect(brokers(scene, Site::Viewer, REQUIRED_SYSTEM)?, config)?;
    for line in lines {
        let loss_tolerance = line.terms.loss_tolerance;
        let required_for = loss_tolerance.map(|_| REQUIRED_FOR);
        subscriber.subscribe(&line.topic, Subscription { loss_tolerance, required_for, ..Subscription::default() });
    }
    if scene.settings.graph_input().is_some() {
        let results = Subscription { loss_tolerance: Some(0), required_for: Some(REQUIRED_FOR), ..Subscription::default() };
        subscriber.subscribe(GRAPH_OUTPUT, results);
    }
    while scene.subscribers_run() {
        subscriber.turn(TURN_MAX, |report| take(report, scene))?;
    }
    Ok(())
}

fn take(report: SubscriberReport<'_>, scene: &Scene) {
    match report {
        // The graph's topic comes after those of the lines.
        SubscriberReport::Event(event) if event.topic.index() == scene.settings.lines.len() => {
            scene.receive_result(event.payload, event.is_late);
        }
        SubscriberReport::Event(event) => {
            scene.receive(Transport::Required, event.payload, event.is_late);
            let header = event.header;
            let latency_ns = now_utc_ns().saturating_sub(header.created_utc_ns);
            let mut observed = scene.observed();
            observed.all_latencies.record_ns(latency_ns);
            // A node creates the time of the other transports' events, at their arrival.
            let is_dealer = event.topic.index() < scene.settings.dealer_count();
            if is_dealer && !header.flags.resend && !header.flags.recovered && !event.is_late {
                observed.latencies.record_ns(latency_ns);
            }
        }
        SubscriberReport::Lost { topic, .. } => {
            let (subscriber, line) = match topic.index() {
                line if line < scene.settings.lines.len() => (Transport::Required, line),
                _ => (Transport::Graph, scene.settings.graph_input().expect("only a graph has results")),
            };
            scene.ledger().report_loss(subscriber, line);
        }
        SubscriberReport::Refused { text, .. } => *scene.observed().refused.entry(format!("subscription: {text}")).or_default() += 1,
        SubscriberReport::Session(SessionReport::TwoLeaders(_)) => drop(scene.two_leaders.fetch_add(1, Relaxed)),
        SubscriberReport::Session(SessionReport::Ended(_, why)) => *scene.observed().ended.entry(why.to_string()).or_default() += 1,
        _ => {}
    }
}

fn now_utc_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
