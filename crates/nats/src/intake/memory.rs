//! What a taker remembers of a stream: which messages it is done with.

use std::collections::BTreeSet;

/// Everything up to a sequence, and some behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Without a floor: the taker begins with messages of this time, in RFC 3339.
    since: Option<String>,
    floor: Option<u64>,
    behind: BTreeSet<u64>,
}

impl Memory {
    /// Done with everything up to `floor`, if it is known, and with these.
    pub fn new(floor: Option<u64>, done: impl IntoIterator<Item = u64>) -> Self {
        let behind = done.into_iter().filter(|sequence| floor.is_none_or(|floor| *sequence > floor)).collect();
        Self { since: None, floor, behind }
    }

    /// Done with nothing, and not to take what was published before this time, in RFC 3339.
    pub fn since(time: String) -> Self {
        Self { since: Some(time), ..Self::default() }
    }

    /// The time with which a taker without a floor begins.
    pub(super) fn begin(&self) -> Option<&str> {
        self.since.as_deref()
    }

    /// Everything up to here is done with; `None`: nobody knows.
    pub fn floor(&self) -> Option<u64> {
        self.floor
    }

    /// Whether nothing behind the floor was done with.
    pub fn is_whole(&self) -> bool {
        self.behind.is_empty()
    }

    /// Whether a message was done with.
    pub fn knows(&self, sequence: u64) -> bool {
        self.floor.is_some_and(|floor| sequence <= floor) || self.behind.contains(&sequence)
    }

    /// One is done with.
    pub(super) fn note(&mut self, sequence: u64) {
        if !self.knows(sequence) {
            self.behind.insert(sequence);
        }
    }

    /// Everything up to here is done with, or not for this taker.
    pub(super) fn reach(&mut self, sequence: u64) {
        if self.floor.is_none_or(|floor| floor < sequence) {
            self.floor = Some(sequence);
            self.behind = self.behind.split_off(&(sequence + 1));
        }
    }

    /// The last one that is known to be done with; `None`: nothing is known.
    pub(super) fn last(&self) -> Option<u64> {
        self.behind.last().copied().max(self.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_with_is_known_and_forgotten_below_the_floor() {
        let mut memory = Memory::new(Some(10), [9, 12, 15]);
        assert_eq!([9, 10, 11, 12, 13, 15].map(|sequence| memory.knows(sequence)), [true, true, false, true, false, true]);
        memory.note(11);
        memory.reach(13);
        assert_eq!((memory.floor(), memory.behind.len(), memory.is_whole()), (Some(13), 1, false));
        memory.reach(12);
        assert_eq!(memory.floor(), Some(13), "it does not go back");
        assert!(memory.knows(15) && !memory.knows(14));
    }

    #[test]
    fn the_last_one_that_is_known_is_behind_the_floor_or_there() {
        assert_eq!(
            [Memory::new(None, []), Memory::new(Some(3), []), Memory::new(Some(3), [7])].map(|memory| memory.last()),
            [None, Some(3), Some(7)]
        );
    }
}
