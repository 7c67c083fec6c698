//! The chain: each line names the hash of the one before it.

use aws_lc_rs::digest::{SHA256, digest};
use bodkin_arrowhead::{
    audit::{Entry, Event, LineHash},
    utc::UtcTime,
};
use serde_json::Map;

use super::segment::LINE_BYTES_MAX;

/// SHA-256 of a line without its end.
pub(super) fn hash(line: &[u8]) -> LineHash {
    LineHash(digest(&SHA256, line).as_ref().try_into().expect("SHA-256 has 32 bytes"))
}

/// Longest line that is written; an entry whose details are longer is written without them, which it tells.
const ENTRY_BYTES_MAX: usize = LINE_BYTES_MAX / 4;

/// The last entry of a stretch of the log: its number, and the hash of its line. In front of the first both are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The entry's number.
    pub number: u64,
    /// The hash of its line.
    pub hash: LineHash,
}

impl Head {
    /// The hash of a line without its end.
    pub fn hash_of(line: &[u8]) -> LineHash {
        hash(line)
    }

    /// Appends the line of what has happened, and goes on to it.
    pub(crate) fn extend(&mut self, at: UtcTime, event: &Event, lines: &mut Vec<u8>) {
        let mut entry = Entry { number: self.number.saturating_add(1), previous: self.hash, at, event: event.clone() };
        let mut line = entry.to_line();
        if line.len() > ENTRY_BYTES_MAX {
            entry.event.detail = Map::new();
            entry.event = entry.event.with("detailBytes", line.len());
            line = entry.to_line();
        }
        *self = Self { number: entry.number, hash: hash(&line) };
        lines.extend_from_slice(&line);
        lines.push(b'\n');
    }

    /// Goes on to a line that was read, if it follows.
    pub(crate) fn follow(&mut self, line: &[u8]) -> Result<Entry, Fault> {
        let entry = Entry::parse(line).map_err(|error| Fault::NoEntry(error.to_string()))?;
        let expected = self.number.saturating_add(1);
        if entry.number != expected {
            return Err(Fault::Number { expected, found: entry.number });
        }
        if entry.previous != self.hash {
            return Err(Fault::Previous { expected: self.hash, found: entry.previous });
        }
        *self = Self { number: entry.number, hash: hash(line) };
        Ok(entry)
    }
}

/// What is wrong with the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A line that is no entry.
    #[error("{0}")]
    NoEntry(String),
    /// Entries are missing or were put in.
    #[error("it is entry {found}, and entry {expected} was expected: entries were removed, put in or moved")]
    Number {
        /// The number after the line before.
        expected: u64,
        /// The line's number.
        found: u64,
    },
    /// The line before is not the one that was written.
    #[error("it follows a line with the hash {found}, and the line before it has {expected}: that line or this one was changed")]
    Previous {
        /// The hash of the line before.
        expected: LineHash,
        /// What the line says.
        found: LineHash,
    },
    /// A file's name is not the number of its first entry.
    #[error("the file's name says that its first entry is {expected}, and it is {found}: the file was renamed or its beginning cut off")]
    FileName {
        /// What the name says.
        expected: u64,
        /// What the line says.
        found: u64,
    },
    /// The log begins later than it should.
    #[error("the entries in front of {first} are missing, and no entry tells of their removal")]
    Beginning {
        /// The first entry that is there.
        first: u64,
    },
    /// The checkpoint names an entry behind the last.
    #[error("the end is missing: the database knows of entry {expected}, and the files end with {found}")]
    End {
        /// The checkpoint's entry.
        expected: u64,
        /// The last one in the files.
        found: u64,
    },
    /// The checkpoint names another entry.
    #[error("entry {number} is another one than the database knows: everything from some line on was written anew")]
    Checkpoint {
        /// Which.
        number: u64,
    },
    /// An entry that says that something was wrong at a start.
    #[error("the entry says that the log was not whole: {0}")]
    Told(String),
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::audit::Kind;

    use super::*;

    fn lines(count: usize) -> Vec<Vec<u8>> {
        let (mut head, mut bytes) = (Head::default(), Vec::new());
        for number in 0..count {
            let event = Event::own(Kind::Change, &format!("change {number}"));
            head.extend(UtcTime::from_unix_seconds(number as u64), &event, &mut bytes);
        }
        bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
    }

    fn walk(lines: &[Vec<u8>]) -> Result<Head, (usize, Fault)> {
        let mut head = Head::default();
        for (index, line) in lines.iter().enumerate() {
            head.follow(line).map_err(|fault| (index, fault))?;
        }
        Ok(head)
    }

    #[test]
    fn the_hash_is_that_of_the_standard() {
        // FIPS 180-2, B.1.
        assert_eq!(hash(b"abc").to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn an_entry_that_is_too_long_is_kept_without_its_details() {
        let mut bytes = Vec::new();
        let event = Event::own(Kind::Orchestration, "x").with("given", "y".repeat(ENTRY_BYTES_MAX));
        Head::default().extend(UtcTime::from_unix_seconds(0), &event, &mut bytes);
        let entry = Entry::parse(bytes.strip_suffix(b"\n").unwrap()).unwrap();
        assert!(entry.event.detail["detailBytes"].as_u64().unwrap() > ENTRY_BYTES_MAX as u64 && bytes.len() < 1000);
    }

    #[test]
    fn every_change_to_a_line_shows_in_the_next() {
        let whole = lines(5);
        assert_eq!(walk(&whole).unwrap().number, 5);
        for at in 0..4 {
            let mut changed = whole.clone();
            let text = String::from_utf8(changed[at].clone()).unwrap().replace("change ", "chance ");
            changed[at] = text.into_bytes();
            assert!(matches!(walk(&changed), Err((place, Fault::Previous { .. })) if place == at + 1));
        }
    }

    #[test]
    fn lines_that_are_missing_put_in_or_moved_are_found() {
        let whole = lines(5);
        let mut missing = whole.clone();
        missing.remove(2);
        assert_eq!(walk(&missing), Err((2, Fault::Number { expected: 3, found: 4 })));
        let mut doubled = whole.clone();
        doubled.insert(2, whole[1].clone());
        assert_eq!(walk(&doubled), Err((2, Fault::Number { expected: 3, found: 2 })));
        let mut moved = whole.clone();
        moved.swap(1, 2);
        assert_eq!(walk(&moved), Err((1, Fault::Number { expected: 2, found: 3 })));
        let mut garbled = whole;
        garbled[3].truncate(20);
        assert!(matches!(walk(&garbled), Err((3, Fault::NoEntry(_)))));
    }
}
