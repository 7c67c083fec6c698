//! Is the log as it was written? Every line, from the first to the last, against the line before it, against what retention has
//! told, and against the checkpoint.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use bodkin_arrowhead::audit::{Entry, Event, Kind};

use super::{
    chain::{Fault, Head},
    segment::{self, LINE_BYTES_MAX, Line, Lines},
};

/// Where a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// From 1.
    pub line: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Entries that were looked at.
    pub entries: u64,
    /// Files that were.
    pub files: u64,
    /// The first of the entries.
    pub first: Option<u64>,
    /// The last of them.
    pub head: Head,
    /// Entries that could not be written when they happened, as the log itself tells.
    pub lost: u64,
    /// Bytes behind the last whole line: it is being written, or was torn, which the next start will tell.
    pub torn_bytes: usize,
    /// The first line that is wrong, and how. Nothing behind it was looked at.
    pub wrong: Option<(Place, Fault)>,
}

/// Verifies the log in `directory`, from entry `from` on where it is given: what that one follows is then taken as it is.
pub fn verify(directory: &Path, from: Option<u64>, checkpoint: Option<Head>) -> io::Result<Verification> {
    let names = segment::names(directory)?;
    let begin = from.and_then(|from| names.iter().rposition(|(first, _)| *first <= from)).unwrap_or(0);
    let mut walk = Walk { from: from.unwrap_or(0), checkpoint, removed: BTreeMap::new(), begun: None, found: Verification::default() };
    let mut last = Place { file: directory.to_owned(), line: 1 };
    for (first, path) in names.into_iter().skip(begin) {
        walk.found.files += 1;
        last = Place { file: path.clone(), line: 1 };
        let mut lines = Lines::open(&path)?;
        for number in 1.. {
            let place = Place { file: path.clone(), line: number };
            let followed = match lines.next()? {
                None => break,
                Some(Line::Torn(torn)) => {
                    walk.found.torn_bytes += torn.len();
                    break;
                }
                Some(Line::TooLong) => Err(Fault::NoEntry(format!("it is longer than {LINE_BYTES_MAX} bytes"))),
                Some(Line::Whole(line)) => walk.line(line, (number == 1).then_some(first)),
            };
            last = place.clone();
            if let Err(fault) = followed {
                return Ok(Verification { wrong: Some((place, fault)), ..walk.found });
            }
        }
    }
    let wrong = walk.at_the_end().map(|fault| (last, fault));
    Ok(Verification { wrong, ..walk.found })
}

struct Walk {
    from: u64,
    checkpoint: Option<Head>,
    /// The last entries that retention says it has removed, and the hashes of their lines.
    removed: BTreeMap<u64, String>,
    /// What the first entry that was looked at follows.
    begun: Option<Head>,
    found: Verification,
}

impl Walk {
    /// Takes a line; `named` is what the file's name says of its first.
    fn line(&mut self, line: &[u8], named: Option<u64>) -> Result<(), Fault> {
        if self.begun.is_none() {
            let entry = Entry::parse(line).map_err(|error| Fault::NoEntry(error.to_string()))?;
            if entry.number < self.from {
                return Ok(());
            }
            let before = Head { number: entry.number.saturating_sub(1), hash: entry.previous };
            self.begun = Some(before);
            self.found.head = before;
            self.found.first = Some(entry.number);
        }
        let entry = self.found.head.follow(line)?;
        self.found.entries += 1;
        if let Some(expected) = named.filter(|expected| *expected != entry.number) {
            return Err(Fault::FileName { expected, found: entry.number });
        }
        if self.checkpoint.is_some_and(|checkpoint| checkpoint.number == entry.number && checkpoint.hash != self.found.head.hash) {
            return Err(Fault::Checkpoint { number: entry.number });
        }
        self.hear(&entry.event)
    }

    /// What entries tell of the log itself.
    fn hear(&mut self, event: &Event) -> Result<(), Fault> {
        let member = |name: &str| event.detail.get(name);
        match event.kind {
            Kind::Damaged | Kind::Truncated => return Err(Fault::Told(event.what.clone())),
            Kind::Gap => {
                let counts = member("lost").and_then(|lost| lost.as_object()).into_iter().flatten();
                self.found.lost += counts.filter_map(|(_, count)| count.as_u64()).sum::<u64>();
            }
            Kind::Removed => {
                let (through, hash) = (member("through").and_then(|number| number.as_u64()), member("hash").and_then(|hash| hash.as_str()));
                self.removed.extend(through.zip(hash.map(str::to_owned)));
            }
            _ => {}
        }
        Ok(())
    }

    /// What only the whole shows.
    fn at_the_end(&self) -> Option<Fault> {
        let expected = self.checkpoint.map_or(0, |checkpoint| checkpoint.number);
        if expected > self.found.head.number {
            return Some(Fault::End { expected, found: self.found.head.number });
        }
        let begun = self.begun.filter(|_| self.from == 0)?;
        let is_first = begun == Head::default();
        let is_told = self.removed.get(&begun.number).is_some_and(|hash| *hash == begun.hash.to_string());
        (!is_first && !is_told).then_some(Fault::Beginning { first: begun.number.saturating_add(1) })
    }
}
