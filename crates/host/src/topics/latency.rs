//! How old events of a topic are when they go out: coarse histograms, small enough for every topic to have one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Latencies below are in the first bucket.
const LEAST_NS: u64 = 1 << LEAST_OCTAVE;
const LEAST_OCTAVE: u32 = 10;
/// Doublings behind it, each in two buckets; whatever is longer than 17.2 s is in the last.
const OCTAVES: usize = 24;
const BUCKETS: usize = 1 + 2 * OCTAVES;

/// From the creation of a topic's events to their dispatch, a third of a value exact at the least: 400 bytes, where a stage's histogram has 4,600.
#[derive(Debug)]
pub struct Latency {
    counts: [AtomicU64; BUCKETS],
    worst_ns: AtomicU64,
}

impl Default for Latency {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; BUCKETS], worst_ns: AtomicU64::new(0) }
    }
}

impl Latency {
    /// Counts one.
    pub fn record(&self, ns: u64) {
        // The shard alone writes: nothing has to be locked.
        let count = &self.counts[bucket(ns)];
        count.store(count.load(Relaxed) + 1, Relaxed);
        if ns > self.worst_ns.load(Relaxed) {
            self.worst_ns.store(ns, Relaxed);
        }
    }

    /// The longest there was, in nanoseconds; `None`: there was none.
    pub fn worst_ns(&self) -> Option<u64> {
        self.buckets().last().map(|_| self.worst_ns.load(Relaxed))
    }

    /// Upper bound in nanoseconds and count of every bucket that is not empty, ascending. The last bound is no less than the longest latency.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let worst_ns = self.worst_ns.load(Relaxed);
        let upper = |index| if index + 1 == BUCKETS { upper_ns(index).max(worst_ns) } else { upper_ns(index) };
        let counted = self.counts.iter().enumerate().map(|(index, count)| (upper(index), count.load(Relaxed)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// The bound that `share` (0 to 1) of all latencies are not above, in nanoseconds; `None`: there was none.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let buckets = self.buckets();
        let all: u64 = buckets.iter().map(|(_, count)| count).sum();
        let wanted = ((all as f64 * share).ceil() as u64).clamp(1, all.max(1));
        let mut below = 0;
        let found = buckets.iter().find(|(_, count)| {
            below += count;
            below >= wanted
        });
        // Nothing is longer than the longest.
        found.map(|(upper, _)| (*upper).min(self.worst_ns.load(Relaxed)))
    }
}

fn bucket(ns: u64) -> usize {
    if ns < LEAST_NS {
        return 0;
    }
    let octave = ns.ilog2();
    let half = (ns >> (octave - 1)) as usize & 1;
    (1 + 2 * (octave - LEAST_OCTAVE) as usize + half).min(BUCKETS - 1)
}

/// Largest latency of a bucket.
fn upper_ns(bucket: usize) -> u64 {
    match bucket.checked_sub(1) {
        None => LEAST_NS - 1,
        Some(above) => ((3 + above as u64 % 2) << (LEAST_OCTAVE as usize - 1 + above / 2)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_in_a_bucket_that_bounds_it_within_half() {
        for ns in (0..5_000).chain((10..34).flat_map(|octave| [(1 << octave) - 1, 1 << octave, 3 << (octave - 1)])) {
            let (at, upper) = (bucket(ns), upper_ns(bucket(ns)));
            assert!(upper >= ns && (at == 0 || upper < ns + ns / 2 + 1), "{ns} is in the bucket up to {upper}");
            assert!(at == 0 || upper_ns(at - 1) < ns, "{ns} would be in the bucket before");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_bounds_and_none_is_beyond_the_longest() {
        let latency = Latency::default();
        assert_eq!((latency.quantile_ns(0.5), latency.worst_ns()), (None, None));
        (1..=1_000).for_each(|us| latency.record(us * 1_000));
        let within = |share: f64, exact: u64| {
            let bound = latency.quantile_ns(share).unwrap();
            assert!((exact..=exact + exact / 2).contains(&bound), "{share}: {bound}");
        };
        within(0.5, 500_000);
        within(0.99, 990_000);
        assert_eq!((latency.quantile_ns(1.0), latency.worst_ns()), (Some(1_000_000), Some(1_000_000)));
        latency.record(u64::MAX);
        assert_eq!(latency.buckets().last(), Some(&(u64::MAX, 1)));
        assert_eq!(latency.buckets().iter().map(|(_, count)| count).sum::<u64>(), 1_001);
    }
}
