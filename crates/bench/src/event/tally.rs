//! What came to the subscribers: counted, timed, and looked for in the order of its publisher.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::order::Order;
use super::payload::{Payload, monotonic_ns};
use crate::statistics::{Counts, Latencies};
use crate::time_line::TimeLine;

/// How long nothing may come, once the publishers are done, before what is missing counts as lost.
const QUIET_NS_MAX: u64 = 5_000_000_000;

/// Begins the data of the event by which a server tells a loss.
const TOLD_LOSS: &[u8] = b"{\"lost\":";

/// How many events each publisher sent: what a subscriber side waits for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sent(pub Vec<u64>);

/// What a subscriber side ends with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SubscriberReport {
    /// Different events delivered, over all subscribers.
    pub deliveries: u64,
    /// Events that were sent and not delivered, over all subscribers.
    pub lost: u64,
    /// Deliveries after that of a later event of the same publisher.
    pub out_of_order: u64,
    /// Deliveries that had come before.
    pub duplicates: u64,
    /// Events of the stream that hold no payload of the bench.
    pub foreign: u64,
    /// Losses that the server told, over all subscribers, the slow ones included.
    pub told_lost: u64,
    /// Events that came to subscribers that are not measured.
    pub others: u64,
    /// Time of the last delivery, in ns of CLOCK_MONOTONIC.
    pub last_ns: u64,
    /// Bytes to the measured subscribers, after the heads of their streams.
    pub bytes: u64,
    /// Reads that brought them.
    #[serde(default)]
    pub reads: u64,
    /// From the publisher's send to the delivery.
    pub latency: Counts,
    /// When the deliveries came.
    pub time_line: TimeLine,
    /// Processor time of the side while it read.
    #[serde(default)]
    pub processor_ns: u64,
    /// How often the side slept meanwhile.
    #[serde(default)]
    pub sleeps: u64,
    /// How long the side's threads stood in front of a processor meanwhile, where the kernel counts it.
    #[serde(default)]
    pub queued_ns: Option<u64>,
}

/// The running count. Nothing is allocated between events.
pub struct Tally {
    latency: Latencies,
    time_line: TimeLine,
    /// Time of the first delivery.
    first_ns: Option<u64>,
    /// By subscriber: whether its deliveries are measured.
    measured: Vec<bool>,
    /// By subscriber, then by publisher.
    orders: Vec<Vec<Order>>,
    deliveries: u64,
    foreign: u64,
    told_lost: u64,
    others: u64,
    last_ns: u64,
    /// When it was first seen that the publishers are done.
    told_ns: Option<u64>,
    bytes: u64,
    reads: u64,
}

impl Tally {
    /// Nothing came yet; `measured` says of each subscriber whether it counts.
    pub fn new(measured: Vec<bool>, publishers: usize) -> Self {
        let orders = measured.iter().map(|_| (0..publishers).map(|_| Order::default()).collect()).collect();
        Self {
            latency: Latencies::default(),
            time_line: TimeLine::default(),
            first_ns: None,
            measured,
            orders,
            deliveries: 0,
            foreign: 0,
            told_lost: 0,
            others: 0,
            last_ns: 0,
            told_ns: None,
            bytes: 0,
            reads: 0,
        }
    }

    /// Takes the data of one event that came to this subscriber.
    pub fn take(&mut self, subscriber: usize, data: &[u8], now_ns: u64) {
        let orders = &mut self.orders[subscriber];
        let payload = Payload::read(data).filter(|payload| usize::from(payload.publisher) < orders.len());
        let Some(payload) = payload else {
            match told_loss(data) {
                Some(lost) => self.told_lost += lost,
                None => self.foreign += 1,
            }
            return;
        };
        orders[usize::from(payload.publisher)].take(payload.sequence);
        if !self.measured[subscriber] {
            self.others += 1;
            return;
        }
        let latency_ns = now_ns.saturating_sub(payload.sent_ns);
        self.latency.record_ns(latency_ns);
        self.time_line.record(now_ns - *self.first_ns.get_or_insert(now_ns), latency_ns);
        self.deliveries += 1;
        self.last_ns = now_ns;
    }

    /// Counts the bytes that a read of a stream has brought.
    pub fn bytes(&mut self, subscriber: usize, bytes: usize) {
        if self.measured[subscriber] {
            self.bytes += bytes as u64;
            self.reads += 1;
        }
    }

    /// Whether everything came to the measured subscribers, or nothing more comes.
    pub fn is_done(&mut self, sent: &OnceLock<Sent>) -> bool {
        let Some(sent) = sent.get() else { return false };
        let expected = sent.0.iter().sum::<u64>() * self.measured_orders().count() as u64;
        if self.deliveries >= expected && self.seen() >= expected {
            return true;
        }
        let now_ns = monotonic_ns();
        let quiet_since_ns = self.last_ns.max(*self.told_ns.get_or_insert(now_ns));
        now_ns.saturating_sub(quiet_since_ns) > QUIET_NS_MAX
    }

    fn measured_orders(&self) -> impl Iterator<Item = &Vec<Order>> {
        self.orders.iter().zip(&self.measured).filter(|(_, measured)| **measured).map(|(orders, _)| orders)
    }

    fn seen(&self) -> u64 {
        self.measured_orders().flatten().map(Order::seen).sum()
    }

    /// The counts, once it is known what was sent.
    pub fn report(&self, sent: &[u64]) -> SubscriberReport {
        let orders = || self.measured_orders().flatten();
        let lost = |of_subscriber: &Vec<Order>| of_subscriber.iter().zip(sent).map(|(order, sent)| order.lost(*sent)).sum::<u64>();
        SubscriberReport {
            deliveries: self.seen(),
            lost: self.measured_orders().map(lost).sum(),
            out_of_order: orders().map(Order::out_of_order).sum(),
            duplicates: orders().map(Order::duplicates).sum(),
            foreign: self.foreign,
            told_lost: self.told_lost,
            others: self.others,
            last_ns: self.last_ns,
            bytes: self.bytes,
            reads: self.reads,
            latency: self.latency.counts(),
            time_line: self.time_line.clone(),
            processor_ns: 0,
            sleeps: 0,
            queued_ns: None,
        }
    }
}

/// How many events a server says that it lost; 0 where it does not know.
fn told_loss(data: &[u8]) -> Option<u64> {
    let number = data.strip_prefix(TOLD_LOSS)?.strip_suffix(b"}")?;
    Some(std::str::from_utf8(number).ok()?.trim().parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::payload::PAYLOAD_BYTES;

    fn event(sequence: u64) -> [u8; PAYLOAD_BYTES] {
        let mut bytes = [0; PAYLOAD_BYTES];
        Payload { publisher: 0, sequence, sent_ns: 1 }.write(&mut bytes);
        bytes
    }

    #[test]
    fn only_the_measured_subscribers_count_and_losses_that_are_told_do_too() {
        let mut tally = Tally::new(vec![false, true], 1);
        tally.take(0, &event(0), 10);
        tally.take(0, b"{\"lost\":7}", 10);
        tally.take(0, b"{\"lost\":null}", 10);
        tally.take(1, b"something", 10);
        tally.take(1, &event(1), 20);
        let sent = OnceLock::from(Sent(vec![2]));
        assert!(!tally.is_done(&sent));
        tally.take(1, &event(0), 30);
        assert!(tally.is_done(&sent), "the other subscriber is not waited for");
        let report = tally.report(&[2]);
        assert_eq!((report.deliveries, report.others, report.lost, report.out_of_order), (2, 1, 0, 1));
        assert_eq!((report.told_lost, report.foreign), (7, 1));
    }
}
