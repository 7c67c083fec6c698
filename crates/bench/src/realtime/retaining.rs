//! A publisher that keeps what is not covered: the machine of `broker::publisher` behind a DEALER, with a session to each broker.
//!
//! The machine holds places, not bytes. A payload follows from its topic, its sequence and its time, so it is made anew whenever it is sent.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use bodkin_broker::publisher::{Input, Output, Publisher, Retention, Send, Session, TopicKey, WhenFull};
use bodkin_broker::wire::{ClientFrame, EventHeader, Flags};
use bodkin_broker::{Incarnation, Instant, PublisherId, Sequence};
use mio::{Registry, Token};

use super::payload::{Payload, blank};
use super::publisher::{Account, Readiness, Shared};
use super::session::{News, Sessions, clock_reply, utc_at_zero_ns};
use super::workload::{Proxy, Stamp};
use crate::event::payload::monotonic_ns;

/// Uncovered events of a topic are kept for so long, within limits of their number; beyond them the oldest is lost, and counted as such where it does not come.
const KEPT_NS: u64 = 2_000_000_000;
const KEPT: std::ops::RangeInclusive<u64> = 32..=4096;
/// Silence of a topic after which its last uncovered event is named.
const LAST_AFTER: Duration = Duration::from_millis(100);

/// One proxy with its sessions.
pub struct RetainingProxy {
    proxy: Proxy,
    machine: Publisher,
    keys: Vec<TopicKey>,
    /// Of each topic. Every event counts as created when it was due, whatever its stamp says.
    stamps: Vec<Stamps>,
    sessions: Sessions,
    /// UTC at the zero of the monotonic clock.
    utc_at_zero_ns: u64,
    payload: Vec<u8>,
    header: Vec<u8>,
    outputs: Vec<Output>,
}

impl RetainingProxy {
    /// Begins its sessions; [`Self::is_led`] says when it can publish.
    ///
    /// # Errors
    /// The system gives no socket, or the name is no identity.
    pub fn connect(
        brokers: &[SocketAddr],
        system: &str,
        proxy: Proxy,
        retention: u32,
        registry: &Registry,
        tokens: [Token; 2],
    ) -> anyhow::Result<Self> {
        let utc_at_zero_ns = utc_at_zero_ns();
        let mut machine = Publisher::new(Incarnation(utc_at_zero_ns + monotonic_ns()), LAST_AFTER);
        let kept = (KEPT_NS / proxy.period_ns.max(1)).clamp(*KEPT.start(), *KEPT.end()) as u32;
        let retention = Retention::new(retention, kept, WhenFull::DropOldest);
        let keys: Vec<TopicKey> = (0..proxy.topics).map(|_| machine.add_topic(retention)).collect();
        Ok(Self {
            stamps: vec![Stamps::default(); keys.len()],
            proxy,
            machine,
            keys,
            sessions: Sessions::begin(brokers, system, registry, tokens)?,
            utc_at_zero_ns,
            payload: Vec::new(),
            header: Vec::new(),
            outputs: Vec::new(),
        })
    }

    /// Whether a broker has said that it leads.
    pub fn is_led(&self) -> bool {
        self.machine.leader().is_some()
    }

    /// Whether events wait to be covered.
    pub fn waits(&self) -> bool {
        self.stamps.iter().any(Stamps::waits)
    }

    /// Publishes one event of each topic.
    ///
    /// # Errors
    /// The numbering is not that of the workload.
    pub fn burst(&mut self, sequence: u32, due_ns: u64, shared: &Shared, account: &mut Account) -> anyhow::Result<()> {
        let is_measured = due_ns >= shared.window.measured_from_ns;
        for at in 0..self.keys.len() {
            let stamp_ns = if shared.workload.stamp == Stamp::Due { due_ns } else { monotonic_ns() };
            let published = self.machine.publish(self.keys[at], self.utc_at_zero_ns + due_ns)?;
            if published.sequence.0 != u64::from(sequence) + 1 {
                bail!("event {sequence} became number {} of its topic", published.sequence.0);
            }
            self.stamps[at].push(stamp_ns);
            self.stamps[at].forget_before(self.machine.oldest_kept(self.keys[at]));
            account.not_sent += u64::from(is_measured && published.dropped.is_some());
        }
        self.send(shared, account);
        Ok(())
    }

    /// Takes what a broker says.
    ///
    /// # Errors
    /// It does not keep to the protocol.
    pub fn serve(&mut self, ready: Readiness<'_>, shared: &Shared, account: &mut Account) -> anyhow::Result<()> {
        self.read(ready, Some(shared), account)?;
        self.send(shared, account);
        Ok(())
    }

    /// Takes what brokers say before the start.
    ///
    /// # Errors
    /// They do not keep to the protocol.
    pub fn greet(&mut self, ready: Readiness<'_>) -> anyhow::Result<()> {
        self.read(ready, None, &mut Account::default())?;
        self.sessions.flush();
        Ok(())
    }

    /// Does what is due by timers of its own.
    ///
    /// # Errors
    /// The system gives no socket.
    pub fn look(&mut self, registry: &Registry, shared: &Shared, account: &mut Account) -> anyhow::Result<()> {
        self.sessions.begin_again(registry, self.is_led())?;
        self.machine.step(now(), Input::Tick, &mut self.outputs);
        self.send(shared, account);
        Ok(())
    }

    fn read(&mut self, ready: Readiness<'_>, shared: Option<&Shared>, account: &mut Account) -> anyhow::Result<()> {
        let Self { proxy, machine, sessions, outputs, keys, stamps, utc_at_zero_ns, .. } = self;
        let (mut hellos, mut replies) = (Vec::new(), Vec::new());
        sessions.read(ready.link, ready.event, ready.piece, &mut |session, news| {
            let input = match news {
                News::Ready => {
                    hellos.push(session);
                    return Ok(());
                }
                News::Ended { why, was_there } => {
                    account.end_session(why, was_there);
                    Input::Closed(session)
                }
                News::Event { .. } => bail!("a publisher gets no events"),
                News::Command(command) => {
                    if let Some(reply) = clock_reply(&command, machine.epoch(), *utc_at_zero_ns + monotonic_ns()) {
                        replies.push((session, reply));
                        return Ok(());
                    }
                    match input(session, &command, proxy, keys, account)? {
                        Some(input) => input,
                        None => return Ok(()),
                    }
                }
            };
            machine.step(now(), input, outputs);
            let now_ns = monotonic_ns();
            for output in outputs.drain(..) {
                match (output, shared) {
                    (Output::Covered { topic, through }, Some(shared)) => {
                        let stamps = &mut stamps[topic.index()];
                        let measured = stamps.cover(through).filter(|stamp_ns| *stamp_ns >= shared.window.measured_from_ns);
                        measured.for_each(|stamp_ns| account.cover(&shared.window, now_ns, stamp_ns));
                        stamps.forget_before(machine.oldest_kept(topic));
                    }
                    (Output::Redirected { .. }, Some(shared)) => account.redirect(&shared.window, now_ns),
                    (Output::NotTaken { topic, sequence, reason }, _) => {
                        stamps[topic.index()].refuse(sequence);
                        account.refuse(|| format!("event {}: {reason:?}", sequence.0));
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        for session in hellos {
            self.sessions.hello(session, self.machine.epoch(), self.machine.incarnation());
        }
        for (session, reply) in replies {
            self.sessions.command(session, &reply);
        }
        Ok(())
    }

    /// Gives the leader what is to be sent.
    fn send(&mut self, shared: &Shared, account: &mut Account) {
        let (epoch, incarnation) = (self.machine.epoch(), self.machine.incarnation());
        let name = |topic: TopicKey| &*shared.names[self.proxy.first_topic as usize + topic.index()];
        let now = now();
        while let Some(leader) = self.machine.leader() {
            if !self.sessions.has_room(leader) {
                break;
            }
            let Some(send) = self.machine.next_send(now) else { break };
            match send {
                Send::Event { topic, sequence, created_utc_ns, is_resent, .. } => {
                    if self.payload.is_empty() {
                        self.payload = blank(shared.workload.payload_bytes);
                    }
                    let stamp_ns = match shared.workload.stamp {
                        Stamp::Due => created_utc_ns.saturating_sub(self.utc_at_zero_ns),
                        Stamp::Sent => self.stamps[topic.index()].of(sequence),
                    };
                    let number = self.proxy.first_topic + topic.index() as u32;
                    Payload { topic: number, sequence: (sequence.0 - 1) as u32, stamp_ns }.write(&mut self.payload);
                    let flags = Flags { resend: is_resent, ..Flags::default() };
                    self.header.clear();
                    EventHeader { flags, publisher: PublisherId(0), incarnation, sequence, created_utc_ns, epoch }.encode(&mut self.header);
                    self.sessions.message(leader, &[name(topic).as_bytes(), &self.payload, &self.header]);
                    account.resent += u64::from(is_resent);
                    account.sent += u64::from(!is_resent && stamp_ns >= shared.window.measured_from_ns);
                }
                Send::Resume { topic, from, to } => {
                    self.sessions.command(leader, &ClientFrame::Resume { epoch, incarnation, from, to, topic: name(topic) });
                }
                Send::Last { topic, sequence } => {
                    let last = ClientFrame::Last { epoch, publisher: PublisherId(0), incarnation, sequence, topic: name(topic) };
                    self.sessions.command(leader, &last);
                }
            }
        }
        self.sessions.flush();
    }
}

/// When the events of a topic were stamped, as far as they may be sent again or be covered.
#[derive(Clone, Default)]
struct Stamps {
    /// Events in front of the oldest one here.
    forgotten: u64,
    /// Events that are covered, from the first on.
    covered: u64,
    stamps_ns: VecDeque<u64>,
}

impl Stamps {
    /// Of an event that nobody will cover.
    const REFUSED: u64 = 0;

    fn push(&mut self, stamp_ns: u64) {
        self.stamps_ns.push_back(stamp_ns);
    }

    /// Of an event that is kept.
    fn of(&self, sequence: Sequence) -> u64 {
        self.stamps_ns[self.place(sequence.0)]
    }

    fn refuse(&mut self, sequence: Sequence) {
        let place = self.place(sequence.0);
        self.stamps_ns[place] = Self::REFUSED;
    }

    /// Notes that all up to this event are covered, and gives the stamps of those that were not.
    fn cover(&mut self, through: Sequence) -> impl Iterator<Item = u64> {
        let from = self.covered.max(self.forgotten) + 1;
        self.covered = self.covered.max(through.0);
        self.stamps_ns.range(self.place(from)..self.place(from.max(through.0 + 1))).copied().filter(|stamp_ns| *stamp_ns != Self::REFUSED)
    }

    fn forget_before(&mut self, oldest_kept: Sequence) {
        let count = self.place(oldest_kept.0);
        self.stamps_ns.drain(..count);
        self.forgotten += count as u64;
    }

    fn place(&self, sequence: u64) -> usize {
        (sequence - 1 - self.forgotten) as usize
    }

    /// Whether events wait that may still be covered.
    fn waits(&self) -> bool {
        let uncovered = self.place(self.covered.max(self.forgotten) + 1);
        self.stamps_ns.range(uncovered..).any(|stamp_ns| *stamp_ns != Self::REFUSED)
    }
}

/// What a broker's command is to the machine; what only concerns whoever counts is counted.
fn input(
    session: Session,
    command: &ClientFrame<'_>,
    proxy: &Proxy,
    keys: &[TopicKey],
    account: &mut Account,
) -> anyhow::Result<Option<Input>> {
    let key = |name: &str| {
        let at = topic_number(name)?.checked_sub(proxy.first_in_group).and_then(|at| keys.get(at as usize));
        at.copied().with_context(|| format!("{name} is no topic of this publisher"))
    };
    Ok(Some(match *command {
        ClientFrame::Leader { epoch, is_leader } => Input::Leader { session, epoch, is_leader },
        ClientFrame::Covered { epoch, incarnation, through, topic } => {
            Input::Covered { session, epoch, topic: key(topic)?, incarnation, through }
        }
        ClientFrame::Refused { sequence, reason, retry_after_ns, topic, text, .. } => {
            if !reason.is_passing() {
                account.refuse(|| format!("{topic}: {text}"));
            }
            Input::Refused { session, topic: key(topic)?, sequence, reason, retry_after: Duration::from_nanos(retry_after_ns) }
        }
        ClientFrame::Excess { .. } | ClientFrame::Lost { .. } => {
            account.refuse(|| format!("{command:?}"));
            return Ok(None);
        }
        _ => bail!("a broker told a publisher {command:?}"),
    }))
}

/// The number behind a topic's name, from 0.
pub fn topic_number(name: &str) -> anyhow::Result<u32> {
    match name.rsplit_once('-') {
        None => Ok(0),
        Some((_, digits)) => Ok(digits.parse::<u32>()?.saturating_sub(1)),
    }
}

fn now() -> Instant {
    Instant::from_nanos(monotonic_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_covered_once_with_its_own_stamp() {
        let mut stamps = Stamps::default();
        [10, 20, 30, 40, 50].into_iter().for_each(|stamp_ns| stamps.push(stamp_ns));
        assert_eq!(stamps.cover(Sequence(2)).collect::<Vec<_>>(), [10, 20]);
        assert_eq!(stamps.cover(Sequence(2)).count(), 0);
        stamps.forget_before(Sequence(2));
        assert_eq!((stamps.of(Sequence(2)), stamps.of(Sequence(5))), (20, 50), "what is covered may be sent again");
        stamps.refuse(Sequence(4));
        assert_eq!(stamps.cover(Sequence(4)).collect::<Vec<_>>(), [30]);
        stamps.forget_before(Sequence(5));
        assert!(stamps.waits());
        stamps.refuse(Sequence(5));
        assert!(!stamps.waits(), "nobody will cover it");
    }

    #[test]
    fn what_was_lost_is_not_covered() {
        let mut stamps = Stamps::default();
        [10, 20, 30].into_iter().for_each(|stamp_ns| stamps.push(stamp_ns));
        stamps.forget_before(Sequence(3));
        assert_eq!(stamps.cover(Sequence(3)).collect::<Vec<_>>(), [30]);
        assert!(!stamps.waits());
    }
}
