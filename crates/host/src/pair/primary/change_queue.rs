//! Changes that wait for room in the replica channel. A Backup takes none until its copy of the database is on its disk.

use std::collections::VecDeque;

use super::{Change, TooFar};

/// Most bytes of waiting changes. One more ends the session, and the next one begins with a new copy.
const BYTES_MAX: usize = 64 << 20;

/// See the module. Numbers ascend with gaps, because a Backup that was away is not sent the records of the event log that got a number meanwhile.
#[derive(Debug, Default)]
pub struct ChangeQueue {
    changes: VecDeque<Change>,
    bytes: usize,
    last_queued: u64,
    last_sent: u64,
}

impl ChangeQueue {
    /// An empty queue for a Backup that has everything up to a number.
    pub fn behind(given: u64) -> Self {
        Self { last_queued: given, last_sent: given, ..Self::default() }
    }

    /// Queues a change behind the others.
    pub fn push(&mut self, change: Change) -> Result<(), TooFar> {
        if !change.fits_a_frame() {
            return Err(TooFar("a change or a record of the event log is larger than a frame"));
        }
        self.bytes += change.operation.len();
        self.last_queued = change.number;
        self.changes.push_back(change);
        if self.bytes > BYTES_MAX { Err(TooFar("too many changes wait for the Backup, which takes them too slowly")) } else { Ok(()) }
    }

    /// Returns the number of the first change.
    pub fn next(&self) -> Option<u64> {
        self.changes.front().map(|change| change.number)
    }

    /// Takes the first change.
    pub fn pop(&mut self) -> Option<Change> {
        let change = self.changes.pop_front()?;
        self.bytes -= change.operation.len();
        self.last_sent = change.number;
        Some(change)
    }

    /// The number of the last change that the Backup is given, or was given before this session.
    pub fn last_queued(&self) -> u64 {
        self.last_queued
    }

    /// The same of those that were sent.
    pub fn last_sent(&self) -> u64 {
        self.last_sent
    }

    /// Whether no change waits.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::answers::OPERATION_BYTES_MAX, *};

    fn change(number: u64, bytes: usize) -> Change {
        Change { number, operation: vec![0; bytes].into() }
    }

    #[test]
    fn changes_beyond_limit_are_refused() {
        let mut queue = ChangeQueue::default();
        let bytes = OPERATION_BYTES_MAX;
        let fitting = (BYTES_MAX / bytes) as u64;
        (1..=fitting).for_each(|number| queue.push(change(number, bytes)).unwrap());
        assert_eq!((queue.next(), queue.pop().map(|change| change.number), queue.next()), (Some(1), Some(1), Some(2)));
        queue.push(change(fitting + 1, bytes)).unwrap();
        assert!(queue.push(change(fitting + 2, bytes)).is_err());
        assert!(ChangeQueue::default().push(change(1, bytes + 1)).is_err(), "it fits no frame");
    }
}
