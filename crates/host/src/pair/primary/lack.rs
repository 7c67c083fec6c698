//! What the Backup may lack of the event log: events of durable types that were answered without it. It is given them when it joins, in front of those that come
//! meanwhile, so that its log has them in their order.

use std::collections::VecDeque;

use bodkin_store::event_log::Position;

use super::TooFar;

/// Bytes of batches that wait until the Backup has what came before; beyond, it is to begin anew.
const HELD_BYTES_MAX: usize = 64 << 20;

/// A batch of records, and the place of its first.
pub type Batch = (Position, Vec<u8>);

/// A piece of the own log that the Backup lacks.
#[derive(Debug)]
pub struct Piece {
    /// Its records of durable types, if it has any.
    pub batch: Option<Batch>,
    /// Where the next piece begins.
    pub next: Position,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Lack {
    /// The first record that it may lack; `None`: it has all.
    from: Option<Position>,
    /// In front of the first record that this session sends as it comes.
    until: Position,
    /// Batches that have come since.
    held: VecDeque<Batch>,
    held_bytes: usize,
    /// Whether a piece is being read.
    is_reading: bool,
    /// The operation behind whose acknowledgement it lacks nothing.
    last: Option<u64>,
}

impl Lack {
    /// A record was not sent, or not acknowledged.
    pub fn note(&mut self, first: Position) {
        self.from = Some(self.from.map_or(first, |from| from.min(first)));
    }

    /// A session begins, in which records from here on are sent as they come.
    pub fn begin_session(&mut self, until: Position) {
        (self.until, self.held_bytes, self.is_reading, self.last) = (until, 0, false, None);
        self.from = self.from.filter(|from| *from < until);
        self.held.clear();
    }

    /// Whether what comes has to wait.
    pub fn holds(&self) -> bool {
        self.from.is_some()
    }

    /// Keeps a batch until the Backup has been given what comes before it.
    pub fn hold(&mut self, batch: Batch) -> Result<(), TooFar> {
        self.held_bytes += batch.1.len();
        self.held.push_back(batch);
        if self.held_bytes > HELD_BYTES_MAX { Err(TooFar("too many durable events wait for those that the Backup lacks")) } else { Ok(()) }
    }

    /// Where the next piece is to be read, and where the last one ends; nothing while one is being read, or if there is none.
    pub fn next(&mut self) -> Option<(Position, Position)> {
        let from = self.from.filter(|from| !self.is_reading && *from < self.until)?;
        self.is_reading = true;
        Some((from, self.until))
    }

    /// A piece was read and sent. When it was the last one: the batches that have waited, which go out now.
    pub fn given(&mut self, next: Position) -> Option<VecDeque<Batch>> {
        (self.from, self.is_reading) = (Some(next), false);
        (next >= self.until).then(|| {
            self.held_bytes = 0;
            std::mem::take(&mut self.held)
        })
    }

    /// Everything was sent; the last operation of it has this number.
    pub fn end(&mut self, last: u64) {
        (self.from, self.last) = (None, Some(last));
    }

    /// Whether everything that was sent is acknowledged, of operations up to this number; true once.
    pub fn is_over(&mut self, acknowledged: u64) -> bool {
        self.last.take_if(|last| *last <= acknowledged).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_given_piece_by_piece_and_then_what_has_waited() {
        let mut lack = Lack::default();
        lack.begin_session(Position(10));
        assert!(!lack.holds());
        assert_eq!(lack.next(), None);
        lack.note(Position(7));
        lack.note(Position(4));
        lack.note(Position(9));
        assert!(lack.holds());
        lack.hold((Position(12), vec![2])).unwrap();
        assert_eq!((lack.next(), lack.next()), (Some((Position(4), Position(10))), None), "one at a time");
        assert_eq!(lack.given(Position(8)), None);
        assert_eq!(lack.next(), Some((Position(8), Position(10))));
        assert_eq!(lack.given(Position(10)), Some([(Position(12), vec![2])].into()));
        lack.end(6);
        assert_eq!((lack.holds(), lack.is_over(5), lack.is_over(6), lack.is_over(6)), (false, false, true, false));
    }

    #[test]
    fn another_session_begins_with_what_the_last_one_did_not_get_to() {
        let mut lack = Lack::default();
        lack.note(Position(4));
        lack.begin_session(Position(10));
        lack.next();
        lack.given(Position(8));
        lack.hold((Position(12), vec![2])).unwrap();
        // What was sent and not acknowledged is noted by whoever knows it.
        lack.note(Position(6));
        lack.begin_session(Position(20));
        assert_eq!(lack.next(), Some((Position(6), Position(20))));
        assert_eq!(lack.given(Position(20)), Some(VecDeque::new()), "what had waited is in the log");
        assert!(lack.hold((Position(21), vec![0; HELD_BYTES_MAX + 1])).is_err());
    }
}
