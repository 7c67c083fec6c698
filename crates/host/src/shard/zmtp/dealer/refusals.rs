//! Events of a run that were refused for good. A refusal may be lost with its link: then the publisher sends the event again, and is refused again.

use bodkin_broker::{Sequence, wire::RefusalReason};

/// Ranges that are kept of a run. Beyond them the last one grows over events that were taken: if one of those comes again, it is refused, and its publisher may publish it twice.
const RANGES_MAX: usize = 64;

/// Of one run.
#[derive(Default)]
pub struct Refusals {
    ranges: Vec<Range>,
}

/// Events that were refused one after the other.
struct Range {
    from: Sequence,
    to: Sequence,
    reason: RefusalReason,
}

impl Refusals {
    /// Notes a refusal.
    pub fn note(&mut self, sequence: Sequence, reason: RefusalReason) {
        if self.reason(sequence).is_some() {
            return;
        }
        let is_full = self.ranges.len() >= RANGES_MAX;
        match self.ranges.last_mut() {
            Some(last) if is_full || last.reason == reason && last.to.0 + 1 == sequence.0 => {
                (last.from, last.to) = (last.from.min(sequence), last.to.max(sequence));
            }
            _ => self.ranges.push(Range { from: sequence, to: sequence, reason }),
        }
    }

    /// Why an event was refused, if it was.
    pub fn reason(&self, sequence: Sequence) -> Option<RefusalReason> {
        let range = self.ranges.iter().find(|range| (range.from..=range.to).contains(&sequence))?;
        Some(range.reason)
    }

    /// Forgets the refusal of an event that was taken after all. Events come in order, so that it is at an end of its range.
    pub fn forget(&mut self, sequence: Sequence) {
        for range in &mut self.ranges {
            if range.from == sequence {
                range.from.0 += 1;
            } else if range.to == sequence {
                range.to.0 -= 1;
            }
        }
        self.ranges.retain(|range| range.from <= range.to);
    }

    /// Forgets the refusals of events that the publisher does not keep.
    pub fn forget_before(&mut self, kept: Sequence) {
        self.ranges.retain(|range| range.to >= kept);
    }
}

#[cfg(test)]
mod tests {
    use RefusalReason::{NotKept, TooLarge};

    use super::*;

    #[test]
    fn refused_events_are_known_until_they_are_not_kept() {
        let mut refusals = Refusals::default();
        for (sequence, reason) in [(3, NotKept), (4, NotKept), (5, TooLarge), (9, TooLarge)] {
            refusals.note(Sequence(sequence), reason);
        }
        let known = |refusals: &Refusals| [3, 4, 5, 6, 9].map(|sequence| refusals.reason(Sequence(sequence)));
        assert_eq!((known(&refusals), refusals.ranges.len()), ([Some(NotKept), Some(NotKept), Some(TooLarge), None, Some(TooLarge)], 3));
        refusals.forget(Sequence(3));
        assert_eq!(known(&refusals), [None, Some(NotKept), Some(TooLarge), None, Some(TooLarge)], "it was taken after all");
        refusals.forget_before(Sequence(5));
        assert_eq!(known(&refusals), [None, None, Some(TooLarge), None, Some(TooLarge)]);
    }

    #[test]
    fn refusals_beyond_the_limit_are_kept_in_the_last_range() {
        let mut refusals = Refusals::default();
        let mut sequences = (0..2 * RANGES_MAX as u64).map(|at| Sequence(1 + 2 * at));
        sequences.clone().for_each(|sequence| refusals.note(sequence, NotKept));
        assert_eq!(refusals.ranges.len(), RANGES_MAX);
        assert!(sequences.all(|sequence| refusals.reason(sequence).is_some()));
    }
}
