//! The worst of the last minute, of what is measured again and again.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// What is noted counts for so long, in steps of [`STEP`].
const REMEMBERED: usize = 60;
const STEP: Duration = Duration::from_secs(1);

/// The longest of each of the last seconds.
#[derive(Debug, Default)]
pub struct Memory {
    /// The newest last, in nanoseconds.
    steps: VecDeque<u64>,
    begun: Duration,
}

impl Memory {
    /// Takes a length at a time since the start; gives the longest one that is remembered.
    pub fn take(&mut self, at: Duration, length_ns: u64) -> u64 {
        let passed = at.saturating_sub(self.begun).as_secs() / STEP.as_secs();
        for _ in 0..passed.min(REMEMBERED as u64) {
            self.steps.push_back(0);
        }
        self.begun += STEP * u32::try_from(passed).unwrap_or(u32::MAX);
        if self.steps.is_empty() {
            self.steps.push_back(0);
        }
        self.steps.drain(..self.steps.len().saturating_sub(REMEMBERED));
        let newest = self.steps.back_mut().expect("there is a step");
        *newest = length_ns.max(*newest);
        self.steps.iter().copied().max().unwrap_or_default()
    }
}

/// What a shard notes and the watch remembers.
#[derive(Debug, Default)]
pub struct Noted {
    /// The longest since the watch looked last.
    latest_ns: AtomicU64,
    /// The longest of the last minute.
    worst_ns: AtomicU64,
}

impl Noted {
    /// One more.
    pub fn note(&self, length_ns: u64) {
        self.latest_ns.fetch_max(length_ns, Relaxed);
    }

    /// The watch looks.
    pub fn look(&self, memory: &mut Memory, at: Duration) {
        self.worst_ns.store(memory.take(at, self.latest_ns.swap(0, Relaxed)), Relaxed);
    }

    /// The longest of the last minute, in nanoseconds.
    pub fn worst_ns(&self) -> u64 {
        self.worst_ns.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_counts_for_a_minute() {
        let mut memory = Memory::default();
        let script: [(u64, u64, u64); 8] =
            [(0, 5, 5), (500, 9, 9), (999, 1, 9), (1_000, 3, 9), (59_999, 2, 9), (60_000, 2, 3), (61_000, 0, 2), (10_000_000, 1, 1)];
        for (at_ms, length_ns, worst_ns) in script {
            assert_eq!(memory.take(Duration::from_millis(at_ms), length_ns), worst_ns, "{at_ms}");
            assert!(memory.steps.len() <= REMEMBERED);
        }
    }

    #[test]
    fn the_longest_that_was_noted_between_two_looks_is_remembered() {
        let (noted, mut memory) = (Noted::default(), Memory::default());
        [3, 7, 5].iter().for_each(|length_ns| noted.note(*length_ns));
        assert_eq!(noted.worst_ns(), 0, "nobody has looked");
        noted.look(&mut memory, Duration::ZERO);
        noted.look(&mut memory, Duration::from_millis(1));
        assert_eq!(noted.worst_ns(), 7);
        noted.look(&mut memory, Duration::from_secs(60));
        assert_eq!(noted.worst_ns(), 0);
    }
}
