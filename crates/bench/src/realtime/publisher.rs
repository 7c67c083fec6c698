//! The publisher side: every proxy of a workload, on one thread.
//!
//! A timer wakes it when the next burst is due; whatever is due by then is sent, each proxy's burst in one write. What a broker does not take waits behind the
//! socket, within limits; it never holds up the other proxies.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use mio::{Events, Poll, Token};
use serde::{Deserialize, Serialize};

use super::dialect::{End, Speech};
use super::payload::TOPICS_MAX;
use super::plain::PlainProxy;
use super::retaining::RetainingProxy;
use super::timer::Timer;
use super::window::Window;
use super::workload::{Proxy, Workload};
use crate::client::ANSWER_WAIT_MAX;
use crate::event::payload::monotonic_ns;
use crate::processor_time;
use crate::statistics::{Counts, Latencies};

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// Names a proxy's connection: two for each proxy, and behind them the timer.
const LINKS: usize = 2;
/// How long it is waited for acknowledgements behind the last event; where all of them count, longer as long as some are missing.
const DRAIN_NS: u64 = 1_000_000_000;
const DRAIN_OF_ALL_NS: u64 = 10_000_000_000;
/// Longest wait of the poll: then the proxies' own timers are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Proxies whose own timers are looked at in one go: what is due and what has come does not wait for all of them.
const LOOKED_AT_ONCE: usize = 32;

/// What a publisher side is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProxyOrder {
    /// What is spoken.
    pub speech: Speech,
    /// The broker, and of a pair the other one.
    pub brokers: Vec<SocketAddr>,
    /// As which system it publishes.
    pub system: String,
    /// What is published.
    pub workload: Workload,
    /// Whether every acknowledgement counts, however late.
    pub awaits_all: bool,
}

/// What a publisher side ends with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProxyReport {
    /// Connections to the broker that publish.
    pub proxies: u64,
    /// Events sent in the measured window, those that were sent again apart.
    pub sent: u64,
    /// Events that were due and could not be sent.
    pub not_sent: u64,
    /// Events sent again.
    pub resent: u64,
    /// How late the bursts began.
    pub lateness: Counts,
    /// From an event's stamp to the word that it is safe, where there is one.
    pub covered: Counts,
    /// Longest time without an acknowledgement around the crash, in ns: from the last one in front of the gap to the first one behind it.
    pub cover_gap_ns: u64,
    /// From the crash until the first publisher has turned to the broker that leads next, in ns, and until the last one has. 0: none has.
    pub redirected_ns: [u64; 2],
    /// Sessions with a broker that have ended.
    pub sessions_ended: u64,
    /// Events that the broker refused for good.
    pub refused: u64,
    /// The first refusals and ends of sessions, in words.
    pub refusals: Vec<String>,
    /// Processor time of the side in the measured window, in s.
    pub cpu_s: f64,
}

/// What the poll says of a link of a proxy, and where what has come is read to.
pub struct Readiness<'r> {
    /// Which of the proxy's links.
    pub link: usize,
    /// What it is ready for.
    pub event: &'r mio::event::Event,
    /// Room for one read.
    pub piece: &'r mut [u8],
}

/// What all proxies share.
pub struct Shared {
    /// Names of the topics, by number.
    pub names: Vec<String>,
    /// The workload.
    pub workload: Workload,
    /// The times of the run.
    pub window: Window,
}

/// The running counts.
#[derive(Default)]
pub struct Account {
    /// See [`ProxyReport`].
    pub sent: u64,
    /// See [`ProxyReport`].
    pub not_sent: u64,
    /// See [`ProxyReport`].
    pub resent: u64,
    /// See [`ProxyReport`].
    pub covered: Latencies,
    refused: u64,
    refusals: Vec<String>,
    sessions_ended: u64,
    /// Of sessions, those of which it is known why they ended.
    ends_explained: u64,
    lateness: Latencies,
    last_covered_ns: u64,
    cover_gap_ns: u64,
    redirected_ns: [u64; 2],
}

/// Refusals that are told in words, and as many ends of sessions.
const REFUSALS_TOLD: u64 = 3;

impl Account {
    /// Events are safe now; `since_ns` is the stamp of the newest of them.
    pub fn cover(&mut self, window: &Window, now_ns: u64, since_ns: u64) {
        self.covered.record_ns(now_ns.saturating_sub(since_ns));
        let is_around =
            window.crash_ns.is_some_and(|crash_ns| now_ns >= crash_ns && self.last_covered_ns <= crash_ns + super::window::AFTER_CRASH_NS);
        if is_around && self.last_covered_ns > 0 {
            self.cover_gap_ns = self.cover_gap_ns.max(now_ns - self.last_covered_ns);
        }
        self.last_covered_ns = now_ns;
    }

    /// A publisher has turned to another broker.
    pub fn redirect(&mut self, window: &Window, now_ns: u64) {
        let Some(behind_ns) = window.crash_ns.and_then(|crash_ns| now_ns.checked_sub(crash_ns)) else { return };
        let [first_ns, last_ns] = &mut self.redirected_ns;
        if *first_ns == 0 {
            *first_ns = behind_ns;
        }
        *last_ns = behind_ns;
    }

    /// An event was refused for good.
    pub fn refuse(&mut self, words: impl FnOnce() -> String) {
        self.refused += 1;
        if self.refused <= REFUSALS_TOLD {
            self.refusals.push(words());
        }
    }

    /// A session is over, or did not come about, for this reason if it is known.
    pub fn end_session(&mut self, why: Option<String>, was_there: bool) {
        self.sessions_ended += u64::from(was_there);
        if let Some(why) = why {
            self.ends_explained += 1;
            if self.ends_explained <= REFUSALS_TOLD {
                self.refusals.push(why);
            }
        }
    }
}

/// A publisher with its connections.
enum Speaker {
    Plain(PlainProxy),
    Retaining(Box<RetainingProxy>),
}

/// All publishers, connected.
pub struct Proxies {
    order: ProxyOrder,
    plan: Vec<Proxy>,
    speakers: Vec<Speaker>,
    poll: Poll,
}

impl Proxies {
    /// Connects every publisher.
    ///
    /// # Errors
    /// A broker does not answer.
    pub fn connect(order: ProxyOrder) -> anyhow::Result<Self> {
        let topics = order.workload.topics();
        ensure!(topics <= TOPICS_MAX, "{topics} topics: a payload tells {TOPICS_MAX} apart");
        let plan = order.workload.proxies();
        crate::open_files::allow(plan.len() * order.brokers.len())?;
        let poll = Poll::new()?;
        let mut speakers = Vec::with_capacity(plan.len());
        for (index, proxy) in plan.iter().enumerate() {
            let tokens = [Token(index * LINKS), Token(index * LINKS + 1)];
            speakers.push(match order.speech {
                Speech::ZmtpDealer => {
                    let retention = order.workload.groups[proxy.group].retention;
                    let proxy = RetainingProxy::connect(&order.brokers, &order.system, proxy.clone(), retention, poll.registry(), tokens);
                    Speaker::Retaining(Box::new(proxy.context("a publisher gets no session")?))
                }
                speech => {
                    let dialect = speech.dialect(End::Publisher, &format!("{}-{index}", order.system));
                    let acknowledges = speech.acknowledges();
                    Speaker::Plain(PlainProxy::connect(order.brokers[0], dialect, acknowledges, proxy.clone(), poll.registry(), tokens[0])?)
                }
            });
        }
        let mut proxies = Self { order, plan, speakers, poll };
        proxies.await_leader()?;
        Ok(proxies)
    }

    /// Waits until every publisher that asks for a leader knows one.
    fn await_leader(&mut self) -> anyhow::Result<()> {
        let deadline_ns = monotonic_ns() + ANSWER_WAIT_MAX.as_nanos() as u64;
        let mut events = Events::with_capacity(1024);
        let mut piece = vec![0; READ_BYTES];
        while self.speakers.iter().any(|speaker| matches!(speaker, Speaker::Retaining(proxy) if !proxy.is_led())) {
            ensure!(monotonic_ns() < deadline_ns, "no broker has said for {} s that it leads", ANSWER_WAIT_MAX.as_secs());
            match self.poll.poll(&mut events, Some(LOOK_EVERY)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                let (index, ready) = readiness(event, &mut piece);
                if let Speaker::Retaining(proxy) = &mut self.speakers[index] {
                    proxy.greet(ready)?;
                }
            }
        }
        Ok(())
    }

    /// Publishes for as long as the window says.
    ///
    /// # Errors
    /// A broker does not keep to the protocol.
    pub fn publish(self, window: Window) -> anyhow::Result<ProxyReport> {
        let Self { order, plan, mut speakers, mut poll } = self;
        let ProxyOrder { workload, awaits_all, .. } = order;
        let shared = Arc::new(Shared { names: workload.names(), workload, window });
        let mut account = Account::default();
        let mut due: BinaryHeap<Reverse<(u64, usize, u32)>> = BinaryHeap::with_capacity(plan.len());
        due.extend(plan.iter().enumerate().map(|(index, proxy)| Reverse((window.start_ns + proxy.phase_ns, index, 0))));
        let mut timer = Timer::new(poll.registry(), Token(plan.len() * LINKS))?;
        let mut events = Events::with_capacity(1024);
        let mut piece = vec![0; READ_BYTES];
        let (mut cpu_before, mut next_look_ns, mut looked_at) = (None, 0, speakers.len());
        loop {
            let mut now_ns = monotonic_ns();
            if now_ns >= window.measured_from_ns && cpu_before.is_none() {
                cpu_before = Some(processor_time::own());
            }
            while let Some(Reverse((due_ns, index, sequence))) = due.peek().copied().filter(|Reverse((due_ns, ..))| *due_ns <= now_ns) {
                due.pop();
                if due_ns >= window.measured_from_ns {
                    account.lateness.record_ns(now_ns - due_ns);
                }
                speakers[index].burst(sequence, due_ns, &shared, &mut account)?;
                let next_ns = window.start_ns + plan[index].due_ns(sequence + 1);
                if next_ns < window.end_ns {
                    due.push(Reverse((next_ns, index, sequence + 1)));
                }
                now_ns = monotonic_ns();
            }
            let next_ns = match due.peek() {
                Some(Reverse((due_ns, ..))) => *due_ns,
                None if now_ns < window.end_ns + DRAIN_NS => window.end_ns + DRAIN_NS,
                None if awaits_all && now_ns < window.end_ns + DRAIN_OF_ALL_NS && speakers.iter().any(Speaker::waits) => {
                    window.end_ns + DRAIN_OF_ALL_NS
                }
                None => break,
            };
            timer.ring_at(next_ns)?;
            let patience = if looked_at < speakers.len() { Duration::ZERO } else { LOOK_EVERY };
            match poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                let (index, ready) = readiness(event, &mut piece);
                if let Some(speaker) = speakers.get_mut(index) {
                    speaker.serve(ready, &shared, &mut account)?;
                }
            }
            let now_ns = monotonic_ns();
            if looked_at == speakers.len() && now_ns >= next_look_ns {
                (looked_at, next_look_ns) = (0, now_ns + LOOK_EVERY.as_nanos() as u64);
            }
            for speaker in speakers.iter_mut().skip(looked_at).take(LOOKED_AT_ONCE) {
                speaker.look(poll.registry(), &shared, &mut account)?;
            }
            looked_at = speakers.len().min(looked_at + LOOKED_AT_ONCE);
        }
        let cpu = processor_time::own().saturating_sub(cpu_before.unwrap_or_default());
        Ok(account.report(speakers.len(), cpu))
    }
}

/// Of which proxy the poll speaks, and what it says.
fn readiness<'r>(event: &'r mio::event::Event, piece: &'r mut [u8]) -> (usize, Readiness<'r>) {
    let Token(token) = event.token();
    (token / LINKS, Readiness { link: token % LINKS, event, piece })
}

impl Account {
    fn report(self, proxies: usize, cpu: Duration) -> ProxyReport {
        ProxyReport {
            proxies: proxies as u64,
            sent: self.sent,
            not_sent: self.not_sent,
            resent: self.resent,
            lateness: self.lateness.counts(),
            covered: self.covered.counts(),
            cover_gap_ns: self.cover_gap_ns,
            redirected_ns: self.redirected_ns,
            sessions_ended: self.sessions_ended,
            refused: self.refused,
            refusals: self.refusals,
            cpu_s: cpu.as_secs_f64(),
        }
    }
}

impl Speaker {
    /// Whether it waits to hear that events are safe.
    fn waits(&self) -> bool {
        matches!(self, Self::Retaining(proxy) if proxy.waits())
    }

    fn burst(&mut self, sequence: u32, due_ns: u64, shared: &Shared, account: &mut Account) -> anyhow::Result<()> {
        match self {
            Self::Plain(proxy) => proxy.burst(sequence, due_ns, shared, account),
            Self::Retaining(proxy) => proxy.burst(sequence, due_ns, shared, account)?,
        }
        Ok(())
    }

    fn serve(&mut self, ready: Readiness<'_>, shared: &Shared, account: &mut Account) -> anyhow::Result<()> {
        match self {
            Self::Plain(proxy) => proxy.serve(ready, shared, account),
            Self::Retaining(proxy) => proxy.serve(ready, shared, account),
        }
    }

    /// Does what is due by timers of its own.
    fn look(&mut self, registry: &mio::Registry, shared: &Shared, account: &mut Account) -> anyhow::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Retaining(proxy) => proxy.look(registry, shared, account),
        }
    }
}
