//! How many events in a row a topic's subscribers have missed, each time they missed some.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Upper bounds of the buckets but the last, which has all longer runs. Tolerances are small numbers, so that the first buckets are single ones.
const BOUNDS: [u64; 7] = [1, 2, 3, 5, 10, 100, 1_000];

/// Counts of runs of losses by their length, since the start. 64 bytes, for a node may have very many topics.
#[derive(Debug, Default)]
pub struct LossRuns([AtomicU64; BOUNDS.len() + 1]);

impl LossRuns {
    /// Counts a run of so many events; of none, nothing.
    pub fn note(&self, events: u64) {
        if events > 0 {
            self.0[BOUNDS.partition_point(|bound| *bound < events)].fetch_add(1, Relaxed);
        }
    }

    /// Upper bound (`None`: any length) and count of each bucket that is not empty, ascending.
    pub fn buckets(&self) -> Vec<(Option<u64>, u64)> {
        let bounds = BOUNDS.iter().copied().map(Some).chain([None]);
        bounds.zip(&self.0).map(|(bound, count)| (bound, count.load(Relaxed))).filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_counted_where_its_length_belongs() {
        let runs = LossRuns::default();
        assert_eq!(runs.buckets(), []);
        for events in [0, 1, 1, 3, 4, 5, 6, 10, 1_000, 1_001, u64::MAX] {
            runs.note(events);
        }
        assert_eq!(runs.buckets(), [(Some(1), 2), (Some(3), 1), (Some(5), 2), (Some(10), 2), (Some(1_000), 1), (None, 2)]);
    }
}
