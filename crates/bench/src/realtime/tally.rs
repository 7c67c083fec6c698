//! What came to the subscribers: counted, timed, and held against what should have come.

use serde::{Deserialize, Serialize};

use super::payload::{PAYLOAD_BYTES_MIN, Payload};
use super::window::Window;
use super::workload::Workload;
use crate::statistics::{Counts, Latencies};
use crate::time_line::TimeLine;

/// What came of one group, over all subscribers that hear it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Pairs of a topic and a subscriber.
    pub streams: u64,
    /// Those of which no more than L events in a row were missing.
    pub streams_kept: u64,
    /// Longest row of missing events.
    pub longest_run: u64,
    /// Events that should have come.
    pub expected: u64,
    /// Different ones that came.
    pub received: u64,
    /// Of these, those that came within D of their stamp.
    pub in_time: u64,
    /// Events that came again.
    pub duplicates: u64,
    /// Longest latency of what came within two seconds behind the crash, in ns.
    pub peak_after_crash_ns: u64,
    /// From the crash until the last event came that was later than D, or than T where there is no D, in ns; 0: none was.
    pub late_until_ns: u64,
    /// Of all that came first.
    pub latency: Counts,
}

/// What a subscriber side ends with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ListenerReport {
    /// By group.
    pub groups: Vec<GroupReport>,
    /// Of all groups together, from the beginning of the measured time.
    pub time_line: TimeLine,
    /// Payloads that are not of this run.
    pub foreign: u64,
    /// Processor time of the side in the measured window, in s.
    pub cpu_s: f64,
}

/// What came of one stream: a topic as one subscriber hears it.
#[derive(Default, Clone)]
struct Stream {
    /// One bit for each measured event, from the first one.
    bits: Vec<u64>,
}

/// The running count. Nothing is allocated between events.
pub struct Tally {
    window: Window,
    /// By subscriber: where each group's streams begin in `streams`, if it hears the group.
    places: Vec<Vec<Option<usize>>>,
    groups: Vec<Group>,
    streams: Vec<Stream>,
    time_line: TimeLine,
    /// By topic: the first measured sequence, and how many.
    measured: Vec<(u32, u32)>,
    foreign: u64,
    /// Measured events that came for the first time.
    received: u64,
    expected: u64,
}

struct Group {
    first_topic: u32,
    topics: u32,
    deadline_ns: u64,
    /// Later than that is late, whether there is a deadline or not.
    late_ns: u64,
    latency: Latencies,
    in_time: u64,
    received: u64,
    duplicates: u64,
    peak_after_crash_ns: u64,
    late_until_ns: u64,
}

impl Tally {
    /// Nothing came yet.
    pub fn new(workload: &Workload, window: Window) -> Self {
        let mut measured = vec![(0, 0); workload.topics() as usize];
        for proxy in workload.proxies() {
            let due = window.measured(&proxy);
            let topics = proxy.first_topic as usize..(proxy.first_topic + proxy.topics) as usize;
            measured[topics].fill((due.start, due.end - due.start));
        }
        let groups: Vec<Group> =
            workload.groups.iter().zip(workload.first_topics()).map(|(group, first_topic)| Group::new(group, first_topic)).collect();
        let (mut streams, mut expected) = (Vec::new(), 0);
        let places = (0..workload.subscribers()).map(|subscriber| {
            let place = |(of, group): (&super::workload::Group, &Group)| {
                of.heard_by.contains(&(subscriber as u16)).then(|| {
                    let first = streams.len();
                    for (_, count) in &measured[group.range()] {
                        expected += u64::from(*count);
                        streams.push(Stream { bits: vec![0; (*count as usize).div_ceil(64)] });
                    }
                    first
                })
            };
            workload.groups.iter().zip(&groups).map(place).collect()
        });
        let places = places.collect();
        Self { window, places, groups, streams, time_line: TimeLine::default(), measured, foreign: 0, received: 0, expected }
    }

    /// Takes an event that came to a subscriber.
    pub fn take(&mut self, subscriber: usize, payload: &[u8], now_ns: u64) {
        let Some(payload) = payload.get(..PAYLOAD_BYTES_MIN).and_then(Payload::read) else { return self.foreign += 1 };
        let Some(at) = self.groups.iter().position(|group| group.range().contains(&(payload.topic as usize))) else {
            return self.foreign += 1;
        };
        let Some(place) = self.places[subscriber][at] else { return self.foreign += 1 };
        let group = &mut self.groups[at];
        let (first, count) = self.measured[payload.topic as usize];
        let Some(bit) = payload.sequence.checked_sub(first).filter(|bit| *bit < count) else { return };
        let stream = &mut self.streams[place + (payload.topic - group.first_topic) as usize];
        let (word, mask) = (&mut stream.bits[bit as usize / 64], 1u64 << (bit % 64));
        if *word & mask != 0 {
            group.duplicates += 1;
            return;
        }
        *word |= mask;
        let latency_ns = now_ns.saturating_sub(payload.stamp_ns);
        group.received += 1;
        group.in_time += u64::from(latency_ns <= group.deadline_ns);
        group.latency.record_ns(latency_ns);
        self.received += 1;
        self.time_line.record(now_ns.saturating_sub(self.window.measured_from_ns), latency_ns);
        if let Some(crash_ns) = self.window.crash_ns.filter(|crash_ns| now_ns > *crash_ns && latency_ns > group.late_ns) {
            group.late_until_ns = now_ns - crash_ns;
        }
        if self.window.is_after_crash(now_ns) {
            group.peak_after_crash_ns = group.peak_after_crash_ns.max(latency_ns);
        }
    }

    /// Whether everything has come.
    pub fn is_whole(&self) -> bool {
        self.received == self.expected
    }

    /// The counts of each group.
    pub fn report(&self, workload: &Workload) -> ListenerReport {
        let mut groups: Vec<GroupReport> = self.groups.iter().map(Group::report).collect();
        for (at, (report, group)) in groups.iter_mut().zip(&self.groups).enumerate() {
            let tolerance = workload.groups[at].loss_tolerance.map_or(u64::MAX, u64::from);
            for place in self.places.iter().filter_map(|of_subscriber| of_subscriber[at]) {
                for (stream, (_, count)) in self.streams[place..].iter().zip(&self.measured[group.range()]) {
                    let run = stream.longest_run(*count);
                    report.streams += 1;
                    report.streams_kept += u64::from(run <= tolerance);
                    report.longest_run = report.longest_run.max(run);
                    report.expected += u64::from(*count);
                }
            }
        }
        ListenerReport { groups, time_line: self.time_line.clone(), foreign: self.foreign, cpu_s: 0.0 }
    }
}

impl Group {
    fn new(group: &super::workload::Group, first_topic: u32) -> Self {
        Self {
            first_topic,
            topics: group.topics,
            deadline_ns: group.deadline_ns.unwrap_or(u64::MAX),
            late_ns: group.deadline_ns.unwrap_or(group.period_ns),
            latency: Latencies::default(),
            in_time: 0,
            received: 0,
            duplicates: 0,
            peak_after_crash_ns: 0,
            late_until_ns: 0,
        }
    }

    fn range(&self) -> std::ops::Range<usize> {
        self.first_topic as usize..(self.first_topic + self.topics) as usize
    }

    fn report(&self) -> GroupReport {
        GroupReport {
            received: self.received,
            in_time: self.in_time,
            duplicates: self.duplicates,
            peak_after_crash_ns: self.peak_after_crash_ns,
            late_until_ns: self.late_until_ns,
            latency: self.latency.counts(),
            ..GroupReport::default()
        }
    }
}

impl Stream {
    /// Longest row of zeros among the first `count` bits.
    fn longest_run(&self, count: u32) -> u64 {
        let (mut longest, mut run) = (0, 0);
        for bit in 0..count as usize {
            let came = self.bits[bit / 64] & (1 << (bit % 64)) != 0;
            run = if came { 0 } else { run + 1 };
            longest = longest.max(run);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::payload::blank;
    use crate::realtime::workload::tests::small;

    const MS: u64 = 1_000_000;

    fn window() -> Window {
        Window { start_ns: 0, measured_from_ns: 100 * MS, end_ns: 300 * MS, crash_ns: Some(200 * MS) }
    }

    /// Lets everything come `late_ms` behind its time but what `lost` names, and gives the report.
    fn heard(late_ms: u64, lost: impl Fn(u32, u32) -> bool) -> ListenerReport {
        let workload = small();
        let mut tally = Tally::new(&workload, window());
        let mut bytes = blank(16);
        for proxy in workload.proxies() {
            for sequence in window().measured(&proxy) {
                for topic in proxy.first_topic..proxy.first_topic + proxy.topics {
                    let stamp_ns = proxy.due_ns(sequence);
                    Payload { topic, sequence, stamp_ns }.write(&mut bytes);
                    if !lost(topic, sequence - window().measured(&proxy).start) {
                        tally.take(proxy.group, &bytes, stamp_ns + late_ms * MS);
                    }
                }
            }
        }
        tally.take(0, b"something else..", 0);
        tally.report(&workload)
    }

    #[test]
    fn what_came_is_held_against_what_should_have() {
        let whole = heard(1, |_, _| false);
        let of = |at: usize| whole.groups[at].clone();
        assert_eq!((of(0).streams, of(0).streams_kept, of(0).expected, of(0).received, of(0).in_time), (7, 7, 70, 70, 70));
        assert_eq!((of(1).streams, of(1).expected, of(1).in_time, of(1).peak_after_crash_ns), (1, 4, 4, MS));
        let points: Vec<_> = whole.time_line.points().filter(|point| point.max_ns > 0).collect();
        assert!(
            points[0].at_s < 0.02 && points[points.len() - 1].at_s > 0.18 && points.iter().all(|point| point.max_ns == MS),
            "{points:?}"
        );
        assert_eq!((whole.foreign, of(0).longest_run, of(0).duplicates, of(0).late_until_ns), (1, 0, 0, 0));
    }

    #[test]
    fn rows_of_losses_are_held_against_the_tolerance_and_the_late_against_the_deadline() {
        let report = heard(30, |topic, place| topic == 2 && (3..6).contains(&place) || topic == 4 && place == 9);
        let fast = &report.groups[0];
        assert_eq!((fast.longest_run, fast.streams_kept, fast.received, fast.in_time), (3, 5, 66, 0));
        assert!(
            (110 * MS..130 * MS).contains(&fast.late_until_ns),
            "the last one is due within 20 ms in front of the end: {}",
            fast.late_until_ns
        );
        assert_eq!((report.groups[1].in_time, report.groups[1].streams_kept), (4, 1));
    }

    #[test]
    fn what_comes_again_counts_once_and_what_is_not_measured_not_at_all() {
        let workload = small();
        let mut tally = Tally::new(&workload, window());
        let (first, _) = tally.measured[0];
        let mut bytes = blank(16);
        for sequence in [first, first, first - 1] {
            Payload { topic: 0, sequence, stamp_ns: 5 }.write(&mut bytes);
            tally.take(0, &bytes, 10);
        }
        let report = tally.report(&workload);
        assert_eq!((report.groups[0].received, report.groups[0].duplicates, report.foreign), (1, 1, 0));
        assert!(!tally.is_whole());
    }
}
