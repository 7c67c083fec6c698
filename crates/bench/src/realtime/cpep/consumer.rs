//! The consuming side: every consumer, on one thread.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::{Context, ensure};
use bodkin_broker::wire::EventHeader;
use bodkin_zmtp::Message;
use mio::{Events, Poll, Token};
use serde::{Deserialize, Serialize};

use super::speech::{Frame, Tongue};
use super::streams::Streams;
use crate::event::payload::monotonic_ns;
use crate::processor_time;
use crate::realtime::connection::Connection;
use crate::realtime::dialect::{End, Heard};
use crate::realtime::window::Window;
use crate::realtime::zmtp::Zmtp;
use crate::statistics::{Counts, Latencies};

/// Bytes of one read.
const READ_BYTES: usize = 256 * 1024;
/// Longest wait of the poll.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long what is on its way is waited for behind the end.
const DRAIN_NS: u64 = 1_000_000_000;

/// What a consuming side is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConsumeOrder {
    /// Where results are; none: whoever has them connects.
    pub broker: Option<SocketAddr>,
    /// What is consumed.
    pub streams: Streams,
    /// UTC at the zero of CLOCK_MONOTONIC, in ns.
    pub utc_at_zero_ns: u64,
}

/// What came of one level, of results whose newest input was pushed in the measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelReport {
    /// From the push of the newest input to here.
    pub latency: Counts,
    /// Results.
    pub received: u64,
    /// Of these, those that were not late, and not marked.
    pub timely: u64,
    /// Those that are marked: something that they are made of was not valid.
    pub marked: u64,
    /// Bytes of timely results, as they came.
    pub timely_bytes: u64,
}

/// What a consuming side ends with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ConsumeReport {
    /// By level.
    pub levels: Vec<LevelReport>,
    /// What came and is no result.
    pub foreign: u64,
    /// Processor time of the side in the measured time, in s.
    pub cpu_s: f64,
}

/// A result, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrived {
    consumer: usize,
    created_ns: u64,
    bytes: usize,
    is_marked: bool,
}

/// All consumers, connected.
pub struct Consumers {
    order: ConsumeOrder,
    lines: Vec<Connection<Tongue>>,
    poll: Poll,
}

impl Consumers {
    /// Subscribes to all results.
    ///
    /// # Errors
    /// The broker does not answer.
    pub fn subscribe(order: ConsumeOrder, broker: SocketAddr) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let mut lines = Vec::new();
        for topics in order.streams.subscriptions() {
            let mut connection =
                Connection::open(broker, Tongue::Zmtp(Box::new(Zmtp::of(End::Subscriber))), topics.iter().map(String::as_str))?;
            connection.watch(poll.registry(), Token(lines.len()))?;
            lines.push(connection);
        }
        Ok(Self { order, lines, poll })
    }

    /// Waits until somebody has come with the results of each consumer.
    ///
    /// # Errors
    /// Nobody comes, or with something else.
    pub fn accept(order: ConsumeOrder, listener: &TcpListener) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let mut lines: Vec<Option<Connection<Tongue>>> = order.streams.consumers.iter().map(|_| None).collect();
        for _ in 0..lines.len() {
            let (mut connection, number) = super::accept::accept(listener)?;
            let place = lines.get_mut(number as usize).with_context(|| format!("there is no consumer {number}"))?;
            ensure!(place.is_none(), "consumer {number} has its results already");
            connection.watch(poll.registry(), Token(number as usize))?;
            *place = Some(connection);
        }
        Ok(Self { order, lines: lines.into_iter().flatten().collect(), poll })
    }

    /// Hears what comes until the window is over.
    ///
    /// # Errors
    /// What comes is not the protocol.
    pub fn hear(mut self, window: Window) -> anyhow::Result<ConsumeReport> {
        let ConsumeOrder { streams, utc_at_zero_ns, .. } = &self.order;
        let mut tally = Tally::new(streams, window);
        let topics: BTreeMap<&str, usize> =
            streams.consumers.iter().enumerate().map(|(at, consumer)| (consumer.topic.as_str(), at)).collect();
        let (mut events, mut piece, mut cpu_before) = (Events::with_capacity(64), vec![0; READ_BYTES], None);
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= window.measured_from_ns && cpu_before.is_none() {
                cpu_before = Some(processor_time::own());
            }
            if now_ns >= window.end_ns + DRAIN_NS {
                break;
            }
            match self.poll.poll(&mut events, Some(LOOK_EVERY)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                self.lines[event.token().0].read(&mut piece, &mut |heard| {
                    let arrived = match heard {
                        Heard::Message(message) => of_message(&message, &topics, *utc_at_zero_ns),
                        Heard::Event(bytes) => Frame::read(bytes).map(of_frame),
                        _ => return,
                    };
                    tally.take(arrived, monotonic_ns());
                })?;
            }
        }
        let cpu = processor_time::own().saturating_sub(cpu_before.unwrap_or_default());
        Ok(ConsumeReport { cpu_s: cpu.as_secs_f64(), ..tally.report() })
    }
}

/// What a message of the broker's says: event type, payload, header.
fn of_message(message: &Message<'_>, topics: &BTreeMap<&str, usize>, utc_at_zero_ns: u64) -> Option<Arrived> {
    let [topic, payload, header] = message.split()?;
    let header = EventHeader::decode(header).ok()?;
    Some(Arrived {
        consumer: *topics.get(std::str::from_utf8(topic).ok()?)?,
        created_ns: header.created_utc_ns.saturating_sub(utc_at_zero_ns),
        bytes: payload.len(),
        is_marked: header.flags.marked,
    })
}

fn of_frame(frame: Frame) -> Arrived {
    let Frame { number, created_ns, bytes } = frame;
    Arrived { consumer: number as usize, created_ns, bytes, is_marked: false }
}

/// The running count. Nothing is allocated between results.
struct Tally {
    window: Window,
    /// By consumer: its level, and when it is late.
    consumers: Vec<(usize, u64)>,
    levels: Vec<(Latencies, LevelReport)>,
    foreign: u64,
}

impl Tally {
    fn new(streams: &Streams, window: Window) -> Self {
        let consumers = streams.consumers.iter().map(|consumer| (consumer.level, streams.late_ns(consumer))).collect();
        Self { window, consumers, levels: (0..streams.levels()).map(|_| Default::default()).collect(), foreign: 0 }
    }

    fn take(&mut self, arrived: Option<Arrived>, now_ns: u64) {
        let of_consumer = arrived.and_then(|arrived| Some((arrived, *self.consumers.get(arrived.consumer)?)));
        let Some((Arrived { created_ns, bytes, is_marked, .. }, (level, late_ns))) = of_consumer else { return self.foreign += 1 };
        if !(self.window.measured_from_ns..self.window.end_ns).contains(&created_ns) {
            return;
        }
        let latency_ns = now_ns.saturating_sub(created_ns);
        let (latency, report) = &mut self.levels[level];
        latency.record_ns(latency_ns);
        report.received += 1;
        report.marked += u64::from(is_marked);
        if latency_ns <= late_ns && !is_marked {
            report.timely += 1;
            report.timely_bytes += bytes as u64;
        }
    }

    fn report(self) -> ConsumeReport {
        let levels = self.levels.into_iter().map(|(latency, report)| LevelReport { latency: latency.counts(), ..report }).collect();
        ConsumeReport { levels, foreign: self.foreign, cpu_s: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::streams::Arrivals;
    use super::*;

    #[test]
    fn results_are_counted_by_level_and_by_what_is_late() {
        const MS: u64 = 1_000_000;
        let mut streams = Streams::new(Arrivals::TOGETHER, None);
        streams.consume(0, 1, 5 * MS);
        streams.consume(2, 1, 20 * MS);
        let window = Window { start_ns: 0, measured_from_ns: 100 * MS, end_ns: 200 * MS, crash_ns: None };
        let mut tally = Tally::new(&streams, window);
        let arrived = |consumer, created_ms: u64, is_marked| Some(Arrived { consumer, created_ns: created_ms * MS, bytes: 10, is_marked });
        for (what, now_ms) in [
            (arrived(0, 99, false), 100),
            (arrived(0, 100, false), 105),
            (arrived(0, 110, false), 116),
            (arrived(1, 110, true), 111),
            (arrived(1, 110, false), 129),
            (arrived(1, 200, false), 201),
            (arrived(2, 110, false), 111),
            (None, 111),
        ] {
            tally.take(what, now_ms * MS);
        }
        let report = tally.report();
        let of = |level: usize| {
            let LevelReport { received, timely, marked, timely_bytes, .. } = report.levels[level];
            [received, timely, marked, timely_bytes]
        };
        assert_eq!(([of(0), of(1), of(2)], report.foreign), ([[2, 1, 0, 10], [0; 4], [2, 1, 1, 10]], 2));
    }
}
