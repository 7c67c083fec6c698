//! Events of a run that were refused for good. A refusal may be lost with its link: then the publisher sends the event again, and is refused again.

use std::collections::VecDeque;

use bodkin_broker::{Sequence, wire::RefusalReason};

/// Ranges that are kept of a run. Beyond them the oldest one is forgotten, whose refusal the publisher has most likely received: what a broken link loses is sent last.
const RANGES_MAX: usize = 64;

/// The refused events of one run.
#[derive(Default)]
pub struct Refusals {
    ranges: VecDeque<Range>,
}

/// Events that were refused one after the other.
#[derive(Clone, Copy)]
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
        match self.ranges.back_mut() {
            Some(last) if last.reason == reason && last.to.0.checked_add(1) == Some(sequence.0) => last.to = sequence,
            _ => {
                if self.ranges.len() >= RANGES_MAX {
                    self.ranges.pop_front();
                }
                self.ranges.push_back(Range { from: sequence, to: sequence, reason });
            }
        }
    }

    /// Why an event was refused, if it was.
    pub fn reason(&self, sequence: Sequence) -> Option<RefusalReason> {
        let range = self.ranges.iter().find(|range| (range.from..=range.to).contains(&sequence))?;
        Some(range.reason)
    }

    /// Forgets the refusal of an event that was taken after all.
    pub fn forget(&mut self, sequence: Sequence) {
        let Some(at) = self.ranges.iter().position(|range| (range.from..=range.to).contains(&sequence)) else { return };
        let Range { from, to, reason } = self.ranges[at];
        self.ranges.remove(at);
        if sequence < to {
            self.ranges.insert(at, Range { from: Sequence(sequence.0 + 1), to, reason });
        }
        if from < sequence {
            self.ranges.insert(at, Range { from, to: Sequence(sequence.0 - 1), reason });
        }
        if self.ranges.len() > RANGES_MAX {
            self.ranges.pop_front();
        }
    }

    /// Forgets the refusals of events that the publisher does not keep.
    pub fn forget_before(&mut self, kept: Sequence) {
        self.ranges.retain(|range| range.to >= kept);
        self.ranges.iter_mut().for_each(|range| range.from = range.from.max(kept));
    }

    /// Returns true if no refusal is known.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
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
        refusals.forget_before(Sequence(10));
        assert!(refusals.is_empty());
    }

    #[test]
    fn event_amid_refused_ones_is_forgotten_alone() {
        let mut refusals = Refusals::default();
        (3..9).for_each(|sequence| refusals.note(Sequence(sequence), NotKept));
        refusals.forget(Sequence(5));
        refusals.forget_before(Sequence(4));
        let known: Vec<_> = (1..11).filter(|sequence| refusals.reason(Sequence(*sequence)).is_some()).collect();
        assert_eq!((known, refusals.ranges.len()), (vec![4, 6, 7, 8], 2));
    }

    #[test]
    fn newest_refusals_are_kept_up_to_the_limit() {
        let mut refusals = Refusals::default();
        let refused: Vec<_> = (0..2 * RANGES_MAX as u64).map(|at| Sequence(1 + 2 * at)).collect();
        refused.iter().for_each(|sequence| refusals.note(*sequence, NotKept));
        let known = |sequences: &[Sequence]| sequences.iter().filter(|sequence| refusals.reason(**sequence).is_some()).count();
        assert_eq!((known(&refused[..RANGES_MAX]), known(&refused[RANGES_MAX..])), (0, RANGES_MAX));
        assert_eq!(refusals.reason(Sequence(2 * RANGES_MAX as u64)), None, "an event between two refused ones was taken");
    }
}
