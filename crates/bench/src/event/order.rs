//! Whether every event of a publisher came to a subscriber, once and in order.

use std::collections::BTreeMap;

/// Gaps of one publisher that are kept apart; what is missing beyond them counts as lost for good.
const GAPS_MAX: usize = 4096;

/// What one subscriber has seen of one publisher. Allocates only where something is wrong.
#[derive(Debug, Default)]
pub struct Order {
    next: u64,
    seen: u64,
    out_of_order: u64,
    duplicates: u64,
    /// First missing sequence and the one after the last, of each gap.
    gaps: BTreeMap<u64, u64>,
}

impl Order {
    /// Takes the sequence of a delivery.
    pub fn take(&mut self, sequence: u64) {
        if sequence == self.next {
            self.next += 1;
            self.seen += 1;
        } else if sequence > self.next {
            if self.gaps.len() < GAPS_MAX {
                self.gaps.insert(self.next, sequence);
            }
            self.next = sequence + 1;
            self.seen += 1;
        } else {
            self.take_late(sequence);
        }
    }

    fn take_late(&mut self, sequence: u64) {
        let gap = self.gaps.range(..=sequence).next_back().map(|(first, end)| (*first, *end));
        let Some((first, end)) = gap.filter(|(_, end)| sequence < *end) else {
            self.duplicates += 1;
            return;
        };
        self.gaps.remove(&first);
        if first < sequence {
            self.gaps.insert(first, sequence);
        }
        if sequence + 1 < end {
            self.gaps.insert(sequence + 1, end);
        }
        self.out_of_order += 1;
        self.seen += 1;
    }

    /// Different events seen.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Events that came after a later one.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Events that came again.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Events missing of the `sent` that were sent.
    pub fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(sequences: &[u64]) -> (u64, u64, u64, u64) {
        let mut order = Order::default();
        sequences.iter().for_each(|sequence| order.take(*sequence));
        (order.seen(), order.lost(6), order.out_of_order(), order.duplicates())
    }

    #[test]
    fn every_fault_is_told_apart() {
        for (sequences, seen_lost_late_twice) in [
            (&[0, 1, 2, 3, 4, 5][..], (6, 0, 0, 0)),
            (&[0, 1, 2, 3, 4], (5, 1, 0, 0)),
            (&[], (0, 6, 0, 0)),
            (&[0, 2, 3, 4, 5], (5, 1, 0, 0)),
            (&[0, 2, 1, 3, 4, 5], (6, 0, 1, 0)),
            (&[0, 5, 3, 1, 2, 4], (6, 0, 4, 0)),
            (&[0, 1, 1, 2, 3, 4, 5, 0], (6, 0, 0, 2)),
            (&[0, 4, 2, 2, 5], (4, 2, 1, 1)),
        ] {
            assert_eq!(order(sequences), seen_lost_late_twice, "{sequences:?}");
        }
    }
}
