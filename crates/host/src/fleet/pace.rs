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
/// A pace that is below what comes in would never reach the present: it is so many times that at the least.
const TIMES_LIVE: u64 = 2;
/// What was not read within so long is not made good: a backlog is read evenly, not in bursts.
const BURST_MAX: Duration = Duration::from_millis(50);

/// The pace of a node's lanes together.
#[derive(Debug)]
pub struct Pace {
    /// Events a second beside live ones, at the least.
    least_per_s: u64,
    /// Where the log's end was, each [`COUNT_EVERY`] of the last second.
    ends: VecDeque<(Duration, Position)>,
    /// Events that may be read, as of this time.
    left: f64,
    at: Duration,
    /// `None`: as fast as it goes.
    per_s: Option<u64>,
}

impl Pace {
    /// Of a backlog that is read by so many events a second at the least while live events come.
    pub fn new(least_per_s: u64) -> Self {
        Self { least_per_s, ends: VecDeque::new(), left: 0.0, at: Duration::ZERO, per_s: None }
    }

    /// Events a second; `None`: as fast as it goes.
    pub fn per_s(&self) -> Option<u64> {
        self.per_s
    }

    /// How many events of the backlog may be read now, while the log ends here. Times ascend.
    pub fn allows(&mut self, now: Duration, end: Position) -> usize {
        self.per_s = self.counts(now, end);
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
    fn counts(&mut self, now: Duration, end: Position) -> Option<u64> {
        while self.ends.front().is_some_and(|(at, _)| *at + SECOND < now) {
            self.ends.pop_front();
        }
        if self.ends.back().is_none_or(|(at, _)| *at + COUNT_EVERY <= now) {
            self.ends.push_back((now, end));
        }
        let (since, from) = *self.ends.front().expect("one was put there, or is younger than a second");
        let events = end.0.saturating_sub(from.0);
        if events < LIVE_EVENTS_LEAST {
            return None;
        }
        let within = now.saturating_sub(since).max(COUNT_EVERY);
        let live_per_s = events as f64 / within.as_secs_f64();
        Some(self.least_per_s.max((live_per_s * TIMES_LIVE as f64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST_PER_S: u64 = 60_000;

    /// Reads what it may each 5 ms for so long, while so many live events come a second; gives how many were read.
    fn reads(pace: &mut Pace, from_ms: u64, for_ms: u64, live_per_s: u64, end: &mut f64) -> u64 {
        let mut read = 0;
        for ms in (from_ms..from_ms + for_ms).step_by(5) {
            *end += live_per_s as f64 * 0.005;
            // There is no more than this in a turn.
            let events = pace.allows(Duration::from_millis(ms), Position(*end as u64)).min(4_000);
            pace.read(events);
            read += events as u64;
        }
        read
    }

    #[test]
    fn a_backlog_alone_is_read_as_fast_as_it_goes() {
        let (mut pace, mut end) = (Pace::new(LEAST_PER_S), 1_000_000.0);
        // A heartbeat is no traffic.
        assert_eq!(reads(&mut pace, 0, 5_000, 5, &mut end), 1_000 * 4_000);
        assert_eq!(pace.per_s(), None);
    }

    #[test]
    fn beside_live_events_it_has_its_pace_which_is_over_a_second_behind_them() {
        let (mut pace, mut end) = (Pace::new(LEAST_PER_S), 0.0);
        reads(&mut pace, 0, 1_000, 1_000, &mut end);
        let read = reads(&mut pace, 1_000, 10_000, 1_000, &mut end);
        assert!((595_000..=605_000).contains(&read), "{read} in 10 s");
        assert_eq!(pace.per_s(), Some(LEAST_PER_S));
        reads(&mut pace, 11_000, 1_200, 0, &mut end);
        assert_eq!(pace.per_s(), None);
        assert_eq!(reads(&mut pace, 12_200, 1_000, 0, &mut end), 200 * 4_000);
    }

    #[test]
    fn what_comes_faster_than_the_pace_makes_it_faster_so_that_the_present_is_reached() {
        let (mut pace, mut end) = (Pace::new(LEAST_PER_S), 0.0);
        reads(&mut pace, 0, 2_000, 100_000, &mut end);
        let read = reads(&mut pace, 2_000, 10_000, 100_000, &mut end);
        assert!((1_900_000..=2_200_000).contains(&read), "{read} in 10 s beside 1,000,000 that came");
    }

    #[test]
    fn what_was_not_read_in_time_makes_no_burst() {
        let (mut pace, mut end) = (Pace::new(LEAST_PER_S), 0.0);
        reads(&mut pace, 0, 1_000, 1_000, &mut end);
        // The link was away for a while, with live events.
        for ms in (1_000..9_000).step_by(100) {
            end += 100.0;
            pace.allows(Duration::from_millis(ms), Position(end as u64));
        }
        assert!(pace.allows(Duration::from_millis(9_000), Position(end as u64)) <= 3_000);
    }
}
