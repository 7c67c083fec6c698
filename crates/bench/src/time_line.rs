//! How throughput and latency went over the time of one run.

use serde::{Deserialize, Serialize};

/// Intervals of a time line; when a run is longer, neighbours are put together.
const INTERVALS_MAX: usize = 120;
/// Shortest interval, in ns.
const INTERVAL_NS_MIN: u64 = 1_000_000;

/// Answers or deliveries by the time at which they came. Recording allocates nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLine {
    interval_ns: u64,
    intervals: Vec<Interval>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Interval {
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

/// One interval as it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Its middle, in s from the start.
    pub at_s: f64,
    /// Answers a second in it.
    pub per_s: f64,
    /// Mean latency of them in ns; 0 without any.
    pub mean_ns: f64,
    /// Longest latency of them in ns.
    pub max_ns: u64,
}

impl Default for TimeLine {
    fn default() -> Self {
        Self { interval_ns: INTERVAL_NS_MIN, intervals: Vec::with_capacity(INTERVALS_MAX) }
    }
}

impl TimeLine {
    /// Adds an answer that came so long after the start.
    pub fn record(&mut self, at_ns: u64, latency_ns: u64) {
        while at_ns / self.interval_ns >= INTERVALS_MAX as u64 {
            self.fold();
        }
        let at = usize::try_from(at_ns / self.interval_ns).expect("below the number of intervals");
        if self.intervals.len() <= at {
            self.intervals.resize(at + 1, Interval::default());
        }
        self.intervals[at].add(Interval { count: 1, sum_ns: latency_ns, max_ns: latency_ns });
    }

    /// Puts neighbours together.
    fn fold(&mut self) {
        let folded = self.intervals.len().div_ceil(2);
        for at in 0..folded {
            let mut both = self.intervals[2 * at];
            if let Some(second) = self.intervals.get(2 * at + 1) {
                both.add(*second);
            }
            self.intervals[at] = both;
        }
        self.intervals.truncate(folded);
        self.interval_ns *= 2;
    }

    /// The intervals in their order; the empty ones too, since a stall is what a time line is for.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        let seconds = self.interval_ns as f64 / 1e9;
        self.intervals.iter().enumerate().map(move |(at, interval)| Point {
            at_s: (at as f64 + 0.5) * seconds,
            per_s: interval.count as f64 / seconds,
            mean_ns: if interval.count == 0 { 0.0 } else { interval.sum_ns as f64 / interval.count as f64 },
            max_ns: interval.max_ns,
        })
    }
}

impl Interval {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_answer_counts_in_its_interval() {
        let mut line = TimeLine::default();
        for (at_ns, latency_ns) in [(0, 4), (MS - 1, 8), (2 * MS, 5)] {
            line.record(at_ns, latency_ns);
        }
        let points: Vec<_> = line.points().collect();
        assert_eq!(points.len(), 3);
        assert_eq!(points[0], Point { at_s: 0.0005, per_s: 2000.0, mean_ns: 6.0, max_ns: 8 });
        assert_eq!((points[1].per_s, points[1].mean_ns, points[2].max_ns), (0.0, 0.0, 5));
    }

    #[test]
    fn a_long_run_keeps_every_answer_in_few_intervals() {
        let mut line = TimeLine::default();
        for step in 0..5000 {
            line.record(step * 3 * MS, step);
        }
        let points: Vec<_> = line.points().collect();
        assert!(points.len() <= INTERVALS_MAX && points.len() > INTERVALS_MAX / 2, "{}", points.len());
        let seconds = line.interval_ns as f64 / 1e9;
        let answers: f64 = points.iter().map(|point| point.per_s * seconds).sum();
        assert!((answers - 5000.0).abs() < 1e-6);
        assert_eq!(points.last().unwrap().max_ns, 4999);
    }
}
