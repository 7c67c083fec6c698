//! What became of the events of one stream, from their sequence numbers alone.

use std::collections::BTreeSet;

/// Which events have come.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// By sequence, from 1.
    has_come: Vec<bool>,
    last: u64,
    /// The first one that came: what was published in front of it was not subscribed to.
    first: Option<u64>,
    /// Events that came twice.
    pub duplicates: u64,
    /// Sequences of events that arrived after a later one without being reported as late.
    pub out_of_order: Vec<u64>,
    /// Sequences of events that arrived after a later one, and were reported as late.
    pub late: Vec<u64>,
}

/// What a stream has lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events in all.
    pub events: u64,
    /// The longest row of them.
    pub longest_run: u64,
    /// Of them, those that the publisher was told are safe.
    pub covered: u64,
}

impl Fates {
    /// Notes that an event has come.
    pub fn take(&mut self, sequence: u64, is_late: bool) {
        let index = usize::try_from(sequence).expect("a sequence of this run is small");
        if index >= self.has_come.len() {
            self.has_come.resize(index + 1, false);
        }
        self.duplicates += u64::from(std::mem::replace(&mut self.has_come[index], true));
        self.first = Some(self.first.map_or(sequence, |first| first.min(sequence)));
        match (sequence < self.last, is_late) {
            (true, true) => self.late.push(sequence),
            (true, false) => self.out_of_order.push(sequence),
            (false, _) => {}
        }
        self.last = self.last.max(sequence);
    }

    /// Whether any has come.
    pub fn has_any(&self) -> bool {
        self.first.is_some()
    }

    /// Returns true if the event has come.
    pub fn has(&self, sequence: u64) -> bool {
        self.has_come.get(sequence as usize).copied().unwrap_or_default()
    }

    /// Returns the sequence of the lowest event that has come.
    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// What is missing from the first event that has come to the last one that was published. Events that were told to be in excess of what the topic
    /// allows have no promise: those that are missing are passed over.
    pub fn losses(&self, published: u64, covered: u64, excess: &BTreeSet<u64>) -> Losses {
        let mut losses = Losses::default();
        let mut run = 0;
        for sequence in self.first.unwrap_or(1)..=published {
            if self.has(sequence) {
                run = 0;
                continue;
            }
            if excess.contains(&sequence) {
                continue;
            }
            run += 1;
            losses.events += 1;
            losses.longest_run = losses.longest_run.max(run);
            losses.covered += u64::from(sequence <= covered);
        }
        losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_in_rows_between_the_first_that_came_and_the_last_that_was_published() {
        let mut fates = Fates::default();
        for sequence in [3, 4, 7, 8, 12] {
            fates.take(sequence, false);
        }
        let none = BTreeSet::new();
        assert_eq!(fates.losses(14, 9, &none), Losses { events: 7, longest_run: 3, covered: 3 });
        assert_eq!(fates.losses(14, 9, &BTreeSet::from([10])), Losses { events: 6, longest_run: 2, covered: 3 });
        fates.take(5, true);
        fates.take(6, false);
        fates.take(12, false);
        assert_eq!((fates.late.as_slice(), fates.out_of_order.as_slice(), fates.duplicates), (&[5][..], &[6][..], 1));
        assert_eq!(fates.losses(12, 12, &none), Losses { events: 3, longest_run: 3, covered: 3 });
        assert!(!Fates::default().has_any());
    }
}
