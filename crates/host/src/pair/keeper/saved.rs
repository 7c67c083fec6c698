//! How far the leader's operations are on the disk: changes in the database, records in the event log, each in its own time.

use std::collections::VecDeque;

use bodkin_broker::wire::Position;

/// Bytes of records that may wait for the event log.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// See the module. Positions are those of the replica channel.
#[derive(Debug, Default)]
pub struct Saved {
    /// The last operation that came, and the last change among them.
    ordered: Position,
    last_change: Position,
    /// The last change on the disk.
    changed: Position,
    /// Records that are not on the disk, and their bytes.
    records: VecDeque<(Position, usize)>,
    record_bytes: usize,
}

impl Saved {
    /// Of a session that begins behind this position.
    pub fn behind(position: Position) -> Self {
        Self { ordered: position, last_change: position, changed: position, ..Self::default() }
    }

    /// A change of the database has come.
    pub fn change(&mut self, position: Position) {
        (self.ordered, self.last_change) = (position, position);
    }

    /// Records for the event log have come; an error if more wait for it than may.
    pub fn records(&mut self, position: Position, bytes: usize) -> Result<(), String> {
        self.ordered = position;
        self.records.push_back((position, bytes));
        self.record_bytes += bytes;
        if self.record_bytes > RECORD_BYTES_MAX {
            return Err(format!("more than {RECORD_BYTES_MAX} bytes of the leader's events wait for the event log"));
        }
        Ok(())
    }

    /// The changes up to here are on the disk.
    pub fn changed(&mut self, through: Position) {
        self.changed = through;
    }

    /// The records up to here are.
    pub fn recorded(&mut self, through: Position) {
        while let Some((_, bytes)) = self.records.pop_front_if(|(position, _)| *position <= through) {
            self.record_bytes -= bytes;
        }
    }

    /// Whether changes wait for the database.
    pub fn awaits_changes(&self) -> bool {
        self.changed < self.last_change
    }

    /// All operations up to here are on the disk.
    pub fn through(&self) -> Position {
        let changes = if self.awaits_changes() { self.changed } else { self.ordered };
        let records = self.records.front().map_or(self.ordered, |(first, _)| Position(first.0 - 1));
        changes.min(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_counts_as_saved_when_those_in_front_of_it_are_whichever_file_they_go_to() {
        let mut saved = Saved::behind(Position(3));
        assert_eq!(saved.through(), Position(3));
        saved.change(Position(4));
        saved.records(Position(5), 10).unwrap();
        saved.change(Position(7));
        assert_eq!((saved.through(), saved.awaits_changes()), (Position(3), true));
        saved.changed(Position(4));
        assert_eq!(saved.through(), Position(4), "the record behind it is not on the disk");
        saved.changed(Position(7));
        assert_eq!((saved.through(), saved.awaits_changes()), (Position(4), false));
        saved.recorded(Position(5));
        assert_eq!(saved.through(), Position(7));
        saved.records(Position(8), 10).unwrap();
        saved.records(Position(9), 10).unwrap();
        saved.recorded(Position(8));
        assert_eq!(saved.through(), Position(8));
        assert!(saved.records(Position(10), RECORD_BYTES_MAX).is_err());
    }
}
