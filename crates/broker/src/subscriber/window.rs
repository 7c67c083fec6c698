//! The places of a stream that a subscriber remembers: one bit each.

use crate::event::Incarnation;

/// What a place was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In front of all others.
    New,
    /// Passed over.
    Late,
    /// Taken.
    Known,
    /// Behind the window, or in front of the stream's beginning.
    Old,
}

/// The newest places of one incarnation of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Window {
    incarnation: Incarnation,
    /// Everything up to here was before the subscriber's time.
    begins_behind: u64,
    newest: u64,
    is_unacknowledged: bool,
    /// The place of sequence s is bit s modulo the window's size; set if it was taken.
    bits: Box<[u64]>,
}

impl Window {
    pub fn new(incarnation: Incarnation, begins_behind: u64, size: u32) -> Self {
        let words = size.div_ceil(u64::BITS).max(1) as usize;
        Self { incarnation, begins_behind, newest: begins_behind, is_unacknowledged: false, bits: vec![0; words].into() }
    }

    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Whether anything has come since the last time that this was asked.
    pub fn take_unacknowledged(&mut self) -> bool {
        std::mem::take(&mut self.is_unacknowledged)
    }

    fn size(&self) -> u64 {
        self.bits.len() as u64 * u64::from(u64::BITS)
    }

    fn bit(&mut self, sequence: u64) -> (&mut u64, u64) {
        let place = sequence % self.size();
        (&mut self.bits[(place / 64) as usize], 1 << (place % 64))
    }

    /// Takes a place: what it was, and what it passes over (the first place, and how many).
    pub fn take(&mut self, sequence: u64) -> (Place, Option<(u64, u64)>) {
        self.is_unacknowledged = true;
        if sequence > self.newest {
            let lost = self.pass(sequence - 1);
            self.newest = sequence;
            let (word, bit) = self.bit(sequence);
            *word |= bit;
            return (Place::New, lost);
        }
        if sequence <= self.begins_behind || self.newest - sequence >= self.size() {
            return (Place::Old, None);
        }
        let (word, bit) = self.bit(sequence);
        let is_known = *word & bit != 0;
        *word |= bit;
        (if is_known { Place::Known } else { Place::Late }, None)
    }

    /// Nothing up to here comes any more: what is passed over (the first place, and how many).
    pub fn pass(&mut self, through: u64) -> Option<(u64, u64)> {
        let run = through.checked_sub(self.newest).filter(|run| *run > 0)?;
        self.is_unacknowledged = true;
        let from = self.newest + 1;
        if run >= self.size() {
            self.bits.fill(0);
        } else {
            for sequence in from..=through {
                self.clear(sequence);
            }
        }
        self.newest = through;
        Some((from, run))
    }

    fn clear(&mut self, sequence: u64) {
        let (word, bit) = self.bit(sequence);
        *word &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The window against a set of everything that came.
        #[test]
        fn a_window_knows_what_it_has_taken(
            begins_behind in 0u64..3, size in 1u32..200, steps in prop::collection::vec((any::<bool>(), 0u64..300), 1..100),
        ) {
            let mut window = Window::new(Incarnation(1), begins_behind, size);
            let size = u64::from(size.div_ceil(64) * 64);
            let (mut taken, mut newest) = (BTreeSet::new(), begins_behind);
            for (forward, distance) in steps {
                let sequence = if forward { newest + distance % 70 } else { newest.saturating_sub(distance) }.max(1);
                let expected = if sequence > newest {
                    Place::New
                } else if sequence <= begins_behind || newest - sequence >= size {
                    Place::Old
                } else if taken.contains(&sequence) {
                    Place::Known
                } else {
                    Place::Late
                };
                let lost = (sequence > newest + 1).then_some((newest + 1, sequence.saturating_sub(newest + 1)));
                prop_assert_eq!(window.take(sequence), (expected, lost));
                taken.insert(sequence);
                newest = newest.max(sequence);
                prop_assert_eq!(window.newest(), newest);
            }
        }
    }
}
