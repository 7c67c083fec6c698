//! The supplying side: every supplier, on one thread, which a timer wakes.
//!
//! What is due in one moment is pushed in one go; an event's creation is the moment in which it is given to its socket. What a socket does not take waits behind it, within limits, and never holds up
//! others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, ensure};
use mio::{Events, Poll, Token};
use serde::{Deserialize, Serialize};

use super::speech::{Pushed, Tongue};
use super::streams::Streams;
use crate::draws::Draws;
use crate::event::payload::monotonic_ns;
use crate::processor_time;
use crate::realtime::connection::Connection;
use crate::realtime::dialect::End;
use crate::realtime::timer::Timer as Alarm;
use crate::realtime::window::Window;
use crate::realtime::zmtp::Zmtp;
use crate::statistics::{Counts, Latencies};

/// Different events of a length: one after the other is pushed.
const VARIANTS: usize = 16;
/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;

/// What a supplying side is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SupplyOrder {
    /// Where events go; none: whoever takes them connects.
    pub broker: Option<SocketAddr>,
    /// What is supplied.
    pub streams: Streams,
    /// UTC at the zero of CLOCK_MONOTONIC, in ns.
    pub utc_at_zero_ns: u64,
}

/// What a supplying side ends with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SupplyReport {
    /// Events pushed in the measured time.
    pub sent: u64,
    /// Events that were due and for which a socket had no room.
    pub not_sent: u64,
    /// How late they were pushed.
    pub lateness: Counts,
    /// Processor time of the side in the measured time, in s.
    pub cpu_s: f64,
}

/// All suppliers, connected.
pub struct Suppliers {
    order: SupplyOrder,
    /// By supplier: its line, its points, in the form in which they travel.
    places: Vec<usize>,
    lines: Vec<Connection<Tongue>>,
    points: BTreeMap<u32, Vec<Vec<u8>>>,
    poll: Poll,
}

impl Suppliers {
    /// Connects a line for each timer to the broker.
    ///
    /// # Errors
    /// It does not answer.
    pub fn connect(order: SupplyOrder, broker: SocketAddr) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let mut places = vec![0; order.streams.suppliers.len()];
        let mut lines = Vec::new();
        for timer in &order.streams.timers {
            let mut connection = Connection::open(broker, Tongue::Zmtp(Box::new(Zmtp::of(End::Publisher))), std::iter::empty())?;
            connection.watch(poll.registry(), Token(lines.len()))?;
            timer.suppliers.iter().for_each(|supplier| places[*supplier] = lines.len());
            lines.push(connection);
        }
        let points = points(&order.streams, base64);
        Ok(Self { order, places, lines, points, poll })
    }

    /// Waits until each supplier has somebody who takes its events.
    ///
    /// # Errors
    /// Nobody comes, or for something else.
    pub fn accept(order: SupplyOrder, listener: &TcpListener) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let mut lines: Vec<Option<Connection<Tongue>>> = order.streams.suppliers.iter().map(|_| None).collect();
        for _ in 0..lines.len() {
            let (mut connection, number) = super::accept::accept(listener)?;
            let place = lines.get_mut(number as usize).with_context(|| format!("there is no supplier {number}"))?;
            ensure!(place.is_none(), "supplier {number} has somebody already");
            connection.watch(poll.registry(), Token(number as usize))?;
            *place = Some(connection);
        }
        let points = points(&order.streams, bytes);
        Ok(Self { order, places: (0..lines.len()).collect(), lines: lines.into_iter().flatten().collect(), points, poll })
    }

    /// Pushes for as long as the window says.
    ///
    /// # Errors
    /// A broker does not keep to the protocol.
    pub fn push(mut self, window: Window) -> anyhow::Result<SupplyReport> {
        let streams = self.order.streams.clone();
        let mut draws = Draws::new(streams.seed ^ 0x5eed);
        let mut due: BinaryHeap<Reverse<(u64, usize, u64)>> = BinaryHeap::with_capacity(streams.timers.len());
        due.extend(streams.timers.iter().enumerate().map(|(at, timer)| Reverse((window.start_ns + timer.phase_ns, at, 1))));
        let mut alarm = Alarm::new(self.poll.registry(), Token(self.lines.len()))?;
        let (mut events, mut piece) = (Events::with_capacity(256), vec![0; READ_BYTES]);
        let (mut report, mut lateness, mut cpu_before) = (SupplyReport::default(), Latencies::default(), None);
        while let Some(Reverse((due_ns, at, sequence))) = due.peek().copied() {
            let now_ns = monotonic_ns();
            if now_ns >= window.measured_from_ns && cpu_before.is_none() {
                cpu_before = Some(processor_time::own());
            }
            if due_ns > now_ns {
                alarm.ring_at(due_ns)?;
                self.wait(&mut events, &mut piece)?;
                continue;
            }
            due.pop();
            let timer = &streams.timers[at];
            let (sent, not_sent) = self.push_together(&timer.suppliers, sequence);
            if due_ns >= window.measured_from_ns {
                lateness.record_ns(now_ns - due_ns);
                report.sent += sent;
                report.not_sent += not_sent;
            }
            let jitter_ns = if streams.jitter_ns == 0 { 0 } else { draws.below(2 * streams.jitter_ns + 1) };
            let next_ns = due_ns + timer.period_ns - streams.jitter_ns + jitter_ns;
            if next_ns < window.end_ns {
                due.push(Reverse((next_ns, at, sequence + 1)));
            }
        }
        let cpu = processor_time::own().saturating_sub(cpu_before.unwrap_or_default());
        Ok(SupplyReport { lateness: lateness.counts(), cpu_s: cpu.as_secs_f64(), ..report })
    }

    /// Pushes an event of each; gives how many, and how many found no room.
    fn push_together(&mut self, suppliers: &[usize], sequence: u64) -> (u64, u64) {
        let mut sent = 0;
        for supplier in suppliers.iter().copied() {
            let described = &self.order.streams.suppliers[supplier];
            let points = match described.texts.as_slice() {
                [] => &self.points[&described.points][sequence as usize % VARIANTS][..],
                texts => texts[sequence as usize % texts.len()].as_bytes(),
            };
            let (topic, utc_at_zero_ns) = (described.topic.as_str(), self.order.utc_at_zero_ns);
            let line = &mut self.lines[self.places[supplier]];
            if line.has_room() {
                let pushed = Pushed { supplier, topic, points, sequence, created_ns: monotonic_ns(), utc_at_zero_ns };
                line.say(|tongue, out| tongue.push(pushed, out));
                sent += 1;
            }
        }
        suppliers.iter().for_each(|supplier| self.lines[self.places[*supplier]].flush());
        (sent, suppliers.len() as u64 - sent)
    }

    /// Waits for the alarm, or until a socket has something.
    fn wait(&mut self, events: &mut Events, piece: &mut [u8]) -> anyhow::Result<()> {
        match self.poll.poll(events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &*events {
            if let Some(line) = self.lines.get_mut(event.token().0) {
                if event.is_writable() {
                    line.may_write();
                }
                // What a broker says means nothing to a supplier.
                line.read(piece, &mut |_| {})?;
                line.flush();
            }
        }
        Ok(())
    }
}

/// Of every number of points some events that are different, in the form in which they travel.
fn points(streams: &Streams, form: fn(usize, &mut Draws) -> Vec<u8>) -> BTreeMap<u32, Vec<Vec<u8>>> {
    let mut draws = Draws::new(streams.seed);
    let lengths: BTreeSet<u32> = streams.suppliers.iter().map(|supplier| supplier.points).collect();
    lengths.into_iter().map(|length| (length, (0..VARIANTS).map(|_| form(length as usize, &mut draws)).collect())).collect()
}

/// So many bytes of any value.
fn bytes(bytes: usize, draws: &mut Draws) -> Vec<u8> {
    (0..bytes).map(|_| draws.next() as u8).collect()
}

/// The Base64 text (RFC 4648) of so many bytes of any value.
fn base64(bytes: usize, draws: &mut Draws) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let whole = bytes / 3 * 4;
    let mut text: Vec<u8> = (0..whole).map(|_| ALPHABET[draws.below(64) as usize]).collect();
    // The characters of a last group that is not full end in bits that are 0.
    text.extend_from_slice(match bytes % 3 {
        0 => b"",
        1 => b"QA==",
        _ => b"QUA=",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_length_of_its_bytes() {
        for (bytes, characters) in [(512, 684), (1024, 1368), (2048, 2732), (3, 4)] {
            let text = base64(bytes, &mut Draws::new(1));
            assert_eq!((text.len(), text.iter().filter(|byte| **byte == b'=').count()), (characters, (3 - bytes % 3) % 3));
        }
    }
}
