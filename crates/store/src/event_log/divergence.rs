//! Where the logs of two nodes part: records are copied with their times and identities, so a node that names the newest ones of its log has told the other
//! one.
//!
//! A log is copied in its order, so whoever has a record of another log has all that were to be copied before it. What is behind the newest record in
//! common is in one log only: at the node that leads what it has accepted alone, at the other one what it had not answered when it stopped leading.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
};

use bodkin_broker::EventId;

use super::{Position, reader::EventLogReader, record::Record};

/// How many records a node names. If none of them is in the other log, that one is given whole: for a node that has accepted more than these without an
/// acknowledgement, before another one led, records come twice.
pub const NAMES_MAX: usize = 4096;

/// A record, in whichever log it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordName {
    /// When the event was accepted, in nanoseconds since 1970 (UTC).
    pub time_ns: u64,
    /// Its identity.
    pub id: EventId,
}

impl RecordName {
    /// That of a record.
    pub fn of(record: &Record<'_>) -> Self {
        Self { time_ns: record.time_ns, id: record.id }
    }
}

impl EventLogReader {
    /// The newest records of these topics, the newest first, and [`NAMES_MAX`] at the most. A file whose sync has failed is passed over: what can be read of it may
    /// not be on the disk.
    pub fn newest(&self, topics: &BTreeSet<Box<str>>) -> io::Result<Vec<RecordName>> {
        let mut newest = Vec::new();
        if topics.is_empty() {
            return Ok(newest);
        }
        let spent = self.spent_file();
        for stretch in self.stretches(self.end()).filter(|stretch| Some(stretch.file) != spent) {
            let (mut names, mut cursor) = (VecDeque::new(), self.cursor(stretch.first));
            while let Some(record) = cursor.read_before(stretch.until)? {
                if topics.contains(record.topic) {
                    names.push_front(RecordName::of(&record));
                    names.truncate(NAMES_MAX);
                }
            }
            newest.extend(names);
            if newest.len() >= NAMES_MAX {
                newest.truncate(NAMES_MAX);
                break;
            }
        }
        Ok(newest)
    }

    /// Behind the record of this name, which was at `guess` in the log that it was read from; `None`: it is not in this log (any more). The log of the other node of a pair has the same
    /// record elsewhere: then files are searched, the newest first.
    pub fn behind_record(&self, guess: Position, name: RecordName) -> io::Result<Option<Position>> {
        if guess < self.end() {
            let mut cursor = self.cursor(guess);
            let record = cursor.read()?;
            if record.is_some_and(|record| record.position == guess && RecordName::of(&record) == name) {
                return Ok(Some(Position(guess.0 + 1)));
            }
        }
        for stretch in self.stretches(self.end()) {
            let mut cursor = self.cursor(stretch.first);
            while let Some(record) = cursor.read_before(stretch.until)? {
                if RecordName::of(&record) == name {
                    return Ok(Some(Position(record.position.0 + 1)));
                }
            }
        }
        Ok(None)
    }

    /// The first record of these topics, in front of `until`, that a log lacks whose newest records have these names; `None`: it has all of them. One that has nothing in
    /// common with this one lacks everything.
    pub fn first_lacking(
        &self,
        names: &BTreeSet<RecordName>,
        topics: &BTreeSet<Box<str>>,
        until: Position,
    ) -> io::Result<Option<Position>> {
        let mut lacking = None;
        if topics.is_empty() {
            return Ok(lacking);
        }
        for stretch in self.stretches(until) {
            let (mut first, mut is_common, mut cursor) = (None, false, self.cursor(stretch.first));
            while let Some(record) = cursor.read_before(stretch.until)? {
                if names.contains(&RecordName::of(&record)) {
                    (first, is_common) = (None, true);
                } else if topics.contains(record.topic) {
                    first = first.or(Some(record.position));
                }
            }
            lacking = first.or(lacking);
            if is_common {
                break;
            }
        }
        Ok(lacking)
    }
}
