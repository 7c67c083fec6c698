//! The last changes that a leader has committed, for a Backup that was away shortly.

use std::collections::VecDeque;

use super::{Change, answers::OPERATION_BYTES_MAX};

/// Bytes of changes that are kept, and how many: what is sent at once to a Backup that has them to repeat.
const BYTES_MAX: usize = 4 << 20;
const CHANGES_MAX: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub struct Tail {
    changes: VecDeque<Change>,
    bytes: usize,
    /// The last change that was let go.
    gone: u64,
}

impl Tail {
    /// Keeps a change, and lets the oldest go for it. One that fits no frame is let go with all before it: who lacks it is given a copy.
    pub fn push(&mut self, change: &Change) {
        if change.operation.len() > OPERATION_BYTES_MAX {
            (self.bytes, self.gone) = (0, change.number);
            self.changes.clear();
            return;
        }
        self.bytes += change.operation.len();
        self.changes.push_back(change.clone());
        while self.bytes > BYTES_MAX || self.changes.len() > CHANGES_MAX {
            let oldest = self.changes.pop_front().expect("there are some");
            self.bytes -= oldest.operation.len();
            self.gone = oldest.number;
        }
    }

    /// The changes behind a number, of `committed` operations in all; `None` if not all of them are kept, or it is none of them.
    pub fn behind(&self, number: u64, committed: u64) -> Option<Vec<Change>> {
        let is_kept = (self.gone..=committed).contains(&number);
        is_kept.then(|| self.changes.iter().filter(|change| change.number > number).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: u64, bytes: usize) -> Change {
        Change { number, operation: vec![0; bytes].into() }
    }

    #[test]
    fn what_is_behind_a_number_is_given_as_long_as_all_of_it_is_kept() {
        let mut tail = Tail::default();
        let numbers = |tail: &Tail, number, committed| {
            tail.behind(number, committed).map(|changes| changes.iter().map(|change| change.number).collect::<Vec<_>>())
        };
        assert_eq!(numbers(&tail, 0, 0), Some(vec![]));
        // The third is one that is not kept: of another form.
        [1, 2, 4].iter().for_each(|number| tail.push(&change(*number, 10)));
        assert_eq!(numbers(&tail, 0, 4), Some(vec![1, 2, 4]));
        assert_eq!((numbers(&tail, 2, 4), numbers(&tail, 4, 4), numbers(&tail, 5, 4)), (Some(vec![4]), Some(vec![]), None));
        let quarter = BYTES_MAX / 4 - 100;
        (5..9).for_each(|number| tail.push(&change(number, quarter)));
        assert_eq!(numbers(&tail, 1, 8), Some(vec![2, 4, 5, 6, 7, 8]));
        tail.push(&change(9, 1000));
        assert_eq!((numbers(&tail, 4, 9), numbers(&tail, 5, 9)), (None, Some(vec![6, 7, 8, 9])));
        (10..10 + CHANGES_MAX as u64).for_each(|number| tail.push(&change(number, 0)));
        assert_eq!((numbers(&tail, 8, 6000), numbers(&tail, 9, 6000).map(|numbers| numbers.len())), (None, Some(CHANGES_MAX)));
        tail.push(&change(9000, OPERATION_BYTES_MAX + 1));
        assert_eq!(
            (numbers(&tail, 8999, 9000), numbers(&tail, 9000, 9000)),
            (None, Some(vec![])),
            "one that fits no frame is in a copy only"
        );
    }
}
