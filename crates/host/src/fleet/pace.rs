//! How fast a backlog is read: as fast as it goes, and beside live events at a pace that leaves them the machine.
//!
//! What is forwarded as it comes has no pace: it is as fast as it comes.

use std::{collections::VecDeque, time::Duration};

use bodkin_store::event_log::Position;

/// As many events in the last second are live traffic; below, nobody waits for the machine.
const LIVE_EVENTS_LEAST: u64 = 10;
const SECOND: Duration = Duration::from_secs(1);
/// The last second is known to so much.
const COUNT_EVERY: Duration = Duration::from_millis(100);
/// What was not read within so long is not made good: a backlog is read evenly, not in bursts.
const BURST_MAX: Duration = Duration::from_millis(50);

/// Where a node's events are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Come {
    /// Behind the last record of the event log.
    pub end: Position,
    /// Events that the lanes were offered since the start, those of the log's past among them.
    pub offered: u64,
}

/// The pace of a node's lanes together.
#[derive(Debug)]
pub struct Pace {
    /// By so many events a second a backlog becomes smaller beside live ones.
    drain_per_s: u64,
    /// What had come each [`COUNT_EVERY`] of the last second.
    counts: VecDeque<(Duration, Come)>,
    /// Events that may be read, as of this time.
    left: f64,
    at: Duration,
    /// `None`: as fast as it goes.
    per_s: Option<u64>,
}

impl Pace {
    /// Of a backlog that becomes smaller by so many events a second while live events come: what comes in for the lanes meanwhile waits behind it, and is read besides.
    pub fn new(drain_per_s: u64) -> Self {
        Self { drain_per_s, counts: VecDeque::new(), left: 0.0, at: Duration::ZERO, per_s: None }
    }

    /// Events a second that are read; `None`: as fast as it goes.
    pub fn per_s(&self) -> Option<u64> {
        self.per_s
    }

    /// How many events of the backlog may be read now, when so much has come. Times ascend.
    pub fn allows(&mut self, now: Duration, come: Come) -> usize {
        self.per_s = self.counts(now, come);
        let passed = now.saturating_sub(self.at);
        self.at = now;
        let Some(per_s) = self.per_s else {
            self.left = 0.0;
            return usize::MAX;
        };
        let per_s = per_s as f64;
        self.left = (self.left + per_s * passed.as_secs_f64()).min(per_s * BURST_MAX.as_secs_f64());
        self.left as usize
    }

    /// So many were read, or are gone.
    pub fn read(&mut self, events: usize) {
        if self.per_s.is_some() {
            self.left = (self.left - events as f64).max(0.0);
        }
    }

    /// The pace beside what has come within the last second.
    fn counts(&mut self, now: Duration, come: Come) -> Option<u64> {
        while self.counts.front().is_some_and(|(at, _)| *at + SECOND < now) {
            self.counts.pop_front();
        }
        if self.counts.back().is_none_or(|(at, _)| *at + COUNT_EVERY <= now) {
            self.counts.push_back((now, come));
        }
        let (since, before) = *self.counts.front().expect("one was put there, or is younger than a second");
        let live = come.end.0.saturating_sub(before.end.0);
        if live < LIVE_EVENTS_LEAST {
            return None;
        }
        // What is offered of the log's past was waiting already.
        let of_lanes = come.offered.saturating_sub(before.offered).min(live);
        let within = now.saturating_sub(since).max(COUNT_EVERY);
        Some(self.drain_per_s + (of_lanes as f64 / within.as_secs_f64()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAIN_PER_S: u64 = 30_000;

    /// A node: what comes there, and what waits.
    struct Node {
        pace: Pace,
        ms: u64,
        /// Events in the log, those of them that were offered, and those that wait.
        end: f64,
        offered: f64,
        waiting: f64,
    }

    impl Node {
        fn new(waiting: f64) -> Self {
            Self { pace: Pace::new(DRAIN_PER_S), ms: 0, end: 0.0, offered: 0.0, waiting }
        }

        /// For so long events come, so many of the lanes and of others a second; gives how many were read.
        fn runs(&mut self, for_ms: u64, live_per_s: f64, others_per_s: f64) -> u64 {
            let mut read = 0;
            for _ in (0..for_ms).step_by(5) {
                self.ms += 5;
                self.end += (live_per_s + others_per_s) * 0.005;
                self.offered += live_per_s * 0.005;
                self.waiting += live_per_s * 0.005;
                let come = Come { end: Position(self.end as u64), offered: self.offered as u64 };
                // There is no more than this in a turn.
                let events = self.pace.allows(Duration::from_millis(self.ms), come).min(4_000).min(self.waiting as usize);
                self.pace.read(events);
                self.waiting -= events as f64;
                read += events as u64;
            }
            read
        }
    }

    #[test]
    fn a_backlog_alone_is_read_as_fast_as_it_goes() {
        let mut node = Node::new(1e9);
        // A heartbeat is no traffic.
        assert_eq!(node.runs(5_000, 5.0, 0.0), 1_000 * 4_000);
        assert_eq!(node.pace.per_s(), None);
    }

    #[test]
    fn a_backlog_becomes_smaller_by_its_pace_whatever_comes_beside_it() {
        for (live_per_s, others_per_s) in [(1_000.0, 0.0), (100_000.0, 0.0), (0.0, 200_000.0), (30_000.0, 5_000.0)] {
            let mut node = Node::new(1e9);
            node.runs(1_000, live_per_s, others_per_s);
            let before = node.waiting;
            node.runs(10_000, live_per_s, others_per_s);
            let drained = before - node.waiting;
            assert!((294_000.0..=306_000.0).contains(&drained), "{drained} in 10 s beside {live_per_s} and {others_per_s}/s");
        }
    }

    #[test]
    fn what_came_long_ago_and_is_looked_at_only_now_makes_it_no_faster() {
        let mut node = Node::new(1e9);
        node.runs(1_000, 1_000.0, 0.0);
        let before = node.waiting;
        for _ in 0..200 {
            node.offered += 4_096.0;
            node.runs(5, 1_000.0, 0.0);
        }
        let drained = before - node.waiting;
        assert!((29_000.0..=31_000.0).contains(&drained), "{drained} in a second");
    }

    #[test]
    fn its_pace_is_over_a_second_behind_the_last_live_events() {
        let mut node = Node::new(1e9);
        node.runs(3_000, 1_000.0, 0.0);
        assert_eq!(node.pace.per_s(), Some(DRAIN_PER_S + 1_000));
        node.runs(1_200, 0.0, 0.0);
        assert_eq!(node.pace.per_s(), None);
        assert_eq!(node.runs(1_000, 0.0, 0.0), 200 * 4_000);
    }

    #[test]
    fn what_was_not_read_in_time_makes_no_burst() {
        let mut node = Node::new(1e9);
        node.runs(1_000, 1_000.0, 0.0);
        // The link was away for a while, with live events.
        let come = |ms: u64| Come { end: Position(ms), offered: ms };
        for ms in (1_000..9_000).step_by(100) {
            node.pace.allows(Duration::from_millis(ms), come(ms));
        }
        assert!(node.pace.allows(Duration::from_millis(9_000), come(9_000)) <= 1_550);
    }
}
