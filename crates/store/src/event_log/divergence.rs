//! Where the logs of two nodes part: records are copied with their times and identities, so a node that names the newest ones of its log has told the other
//! one.
//!
//! A log is copied in its order, so whoever has a record of another log has all that were to be copied before it. What is behind the newest record in
//! common is in one log only: at the node that leads what it has accepted alone, at the other one what it had not answered when it stopped leading.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
};

use bodkin_broker::{EventId, Incarnation, PublisherId, Sequence, TopicId};

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
    /// Bytes of a name.
    pub const BYTES: usize = 5 * 8;

    /// That of a record.
    pub fn of(record: &Record<'_>) -> Self {
        Self { time_ns: record.time_ns, id: record.id }
    }

    /// Returns a name that no record has, for the place in a log where events of this time begin.
    pub fn of_none_at(time_ns: u64) -> Self {
        let id = EventId { publisher: PublisherId(0), incarnation: Incarnation(0), topic: TopicId(0), sequence: Sequence(0) };
        Self { time_ns, id }
    }

    /// Returns the name as bytes: five numbers, the lowest byte first.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let EventId { publisher, incarnation, topic, sequence } = self.id;
        let mut bytes = [0; Self::BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip([self.time_ns, publisher.0, incarnation.0, topic.0, sequence.0]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] gives.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let number = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"));
        let id = EventId {
            publisher: PublisherId(number(1)),
            incarnation: Incarnation(number(2)),
            topic: TopicId(number(3)),
            sequence: Sequence(number(4)),
        };
        Self { time_ns: number(0), id }
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

    /// Returns where what follows these records begins in this log. Of a record that is not here (any more), it is where events of its
    /// time or later begin. Files are searched from the newest one back to the oldest time that is asked for. Blocks on the disk.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn places_after(&self, names: &BTreeSet<RecordName>) -> io::Result<BTreeMap<RecordName, Position>> {
        let mut missing = names.clone();
        let mut places = BTreeMap::new();
        for stretch in self.stretches(self.end()) {
            // They are in the order of their times.
            let Some(oldest) = missing.first() else { break };
            let is_last = stretch.prior_ns < oldest.time_ns;
            let mut cursor = self.cursor(stretch.first);
            while let Some(record) = cursor.read_before(stretch.until)? {
                let name = RecordName::of(&record);
                if missing.remove(&name) {
                    places.insert(name, Position(record.position.0 + 1));
                }
            }
            if is_last {
                break;
            }
        }
        for name in missing {
            places.insert(name, self.since(name.time_ns)?);
        }
        Ok(places)
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
