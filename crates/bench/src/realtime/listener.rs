//! The subscriber side: every subscriber of a workload, on one thread.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use mio::{Events, Poll, Token};
use serde::{Deserialize, Serialize};

use super::acknowledging::AcknowledgingListener;
use super::connection::Connection;
use super::dialect::{Dialect, End, Speech};
use super::tally::{ListenerReport, Tally};
use super::window::Window;
use super::workload::Workload;
use super::zmtp::payload;
use crate::client::ANSWER_WAIT_MAX;
use crate::event::payload::monotonic_ns;
use crate::processor_time;

/// Bytes of one read.
const READ_BYTES: usize = 256 * 1024;
/// Names a subscriber's connections.
const LINKS: usize = 2;
/// Longest wait of the poll: then the subscribers' own timers are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long what is missing is waited for behind the end.
const DRAIN_NS: u64 = 3_000_000_000;

/// How subscribers take events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hearing {
    /// Whether events are covered only when they have acknowledged them.
    pub is_required: bool,
    /// What each event costs before it is acknowledged, in ns of the processor: a step of fixed cost in the place of a graph's.
    pub processing_ns: u64,
    /// Whether they tell another leader nothing of what they have, so that all it keeps comes again, and costs as much as before.
    pub begins_anew: bool,
}

/// A subscriber that is far away.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Far {
    /// Which one.
    pub subscriber: usize,
    /// Where it reaches the brokers.
    pub brokers: Vec<SocketAddr>,
}

/// What a subscriber side is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListenerOrder {
    /// What is spoken.
    pub speech: Speech,
    /// The broker, and of a pair the other one.
    pub brokers: Vec<SocketAddr>,
    /// As which system it subscribes, where that matters.
    pub system: String,
    /// A subscriber that reaches the brokers elsewhere, and where.
    pub far: Option<Far>,
    /// How it takes events.
    pub hearing: Hearing,
    /// What is heard.
    pub workload: Workload,
}

/// An event that came.
struct Taken<'b> {
    subscriber: usize,
    payload: &'b [u8],
    /// Whether it came for the first time, as far as the subscriber knows.
    is_new: bool,
}

/// A subscriber with its connections.
enum Ear {
    Plain(Connection<Box<dyn Dialect>>),
    Acknowledging(Box<AcknowledgingListener>),
}

/// All subscribers, subscribed.
pub struct Listeners {
    order: ListenerOrder,
    ears: Vec<Ear>,
    poll: Poll,
    events: Events,
    piece: Vec<u8>,
    next_look_ns: u64,
}

impl Listeners {
    /// Connects every subscriber and waits until it hears its topics.
    ///
    /// # Errors
    /// A broker does not answer, or refuses a subscription.
    pub fn subscribe(order: ListenerOrder) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let mut ears = Vec::new();
        for subscriber in 0..order.workload.subscribers() {
            let tokens = [Token(subscriber * LINKS), Token(subscriber * LINKS + 1)];
            let brokers = order.far.as_ref().filter(|far| far.subscriber == subscriber).map_or(&order.brokers, |far| &far.brokers);
            ears.push(match order.speech {
                Speech::ZmtpDealer => Ear::Acknowledging(Box::new(AcknowledgingListener::connect(
                    brokers,
                    &order.system,
                    subscriber,
                    order.hearing,
                    &order.workload,
                    poll.registry(),
                    tokens,
                )?)),
                speech => {
                    let dialect = speech.dialect(End::Subscriber, &format!("hears-{subscriber}"));
                    let topics = topics(&order.workload, subscriber, speech);
                    let mut connection = Connection::open(brokers[0], dialect, topics.iter().map(String::as_str))?;
                    connection.watch(poll.registry(), tokens[0])?;
                    Ear::Plain(connection)
                }
            });
        }
        let mut listeners = Self { order, ears, poll, events: Events::with_capacity(256), piece: vec![0; READ_BYTES], next_look_ns: 0 };
        let deadline_ns = monotonic_ns() + ANSWER_WAIT_MAX.as_nanos() as u64;
        while !listeners.are_subscribed()? {
            ensure!(monotonic_ns() < deadline_ns, "a subscriber has waited {} s for its subscriptions", ANSWER_WAIT_MAX.as_secs());
            listeners.turn(&mut |_| {})?;
        }
        Ok(listeners)
    }

    /// Hears what comes until the window is over.
    ///
    /// # Errors
    /// A broker does not keep to the protocol.
    pub fn hear(mut self, window: Window) -> anyhow::Result<ListenerReport> {
        let mut tally = Tally::new(&self.order.workload, window);
        let mut cpu_before = None;
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= window.measured_from_ns && cpu_before.is_none() {
                cpu_before = Some(processor_time::own());
            }
            if now_ns >= window.end_ns && (tally.is_whole() || now_ns >= window.end_ns + DRAIN_NS) {
                break;
            }
            let Hearing { processing_ns, begins_anew, .. } = self.order.hearing;
            self.turn(&mut |taken| {
                if taken.is_new || begins_anew {
                    work(processing_ns);
                }
                tally.take(taken.subscriber, taken.payload, monotonic_ns());
            })?;
        }
        let cpu = processor_time::own().saturating_sub(cpu_before.unwrap_or_default());
        Ok(ListenerReport { cpu_s: cpu.as_secs_f64(), ..tally.report(&self.order.workload) })
    }

    fn are_subscribed(&self) -> anyhow::Result<bool> {
        for ear in &self.ears {
            if let Ear::Acknowledging(listener) = ear
                && !listener.is_subscribed()?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits, and takes what has come.
    fn turn(&mut self, take: &mut dyn FnMut(Taken<'_>)) -> anyhow::Result<()> {
        match self.poll.poll(&mut self.events, Some(LOOK_EVERY)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &self.events {
            let (subscriber, link) = (event.token().0 / LINKS, event.token().0 % LINKS);
            match &mut self.ears[subscriber] {
                Ear::Plain(connection) => {
                    if event.is_writable() {
                        connection.may_write();
                    }
                    connection.read(&mut self.piece, &mut |heard| {
                        if let Some(payload) = payload(&heard) {
                            take(Taken { subscriber, payload, is_new: true });
                        }
                    })?;
                    connection.flush();
                }
                Ear::Acknowledging(listener) => {
                    let take = &mut |payload: &[u8], is_new| take(Taken { subscriber, payload, is_new });
                    listener.serve(link, event, &mut self.piece, take).context("a subscriber")?;
                }
            }
        }
        let now_ns = monotonic_ns();
        if now_ns >= self.next_look_ns {
            self.next_look_ns = now_ns + LOOK_EVERY.as_nanos() as u64;
            for ear in &mut self.ears {
                if let Ear::Acknowledging(listener) = ear {
                    listener.look(self.poll.registry())?;
                }
            }
        }
        Ok(())
    }
}

/// Keeps the processor busy for so long.
fn work(processing_ns: u64) {
    if processing_ns > 0 {
        let end_ns = monotonic_ns() + processing_ns;
        while monotonic_ns() < end_ns {
            std::hint::spin_loop();
        }
    }
}

/// What a plain subscriber asks for: every topic by its name, but of ZMTP and JetStream, where a group is one prefix or one consumer.
fn topics(workload: &Workload, subscriber: usize, speech: Speech) -> Vec<String> {
    let heard = workload.groups.iter().filter(|group| group.heard_by.contains(&(subscriber as u16)));
    match speech {
        Speech::ZmtpPubSub | Speech::JetStream { .. } => heard.map(|group| group.name.clone()).collect(),
        _ => heard.flat_map(|group| (0..group.topics).map(|n| group.topic_name(n))).collect(),
    }
}
