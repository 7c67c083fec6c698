//! Where the log goes on after a start, and what the last run has left.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

use bodkin_arrowhead::audit::{Entry, Event, Kind, LineHash};

use super::{
    chain::{self, Head},
    segment::{self, Line, Lines, Segment},
};

/// Bytes of a torn line that are kept in the entry that tells of it.
const TORN_BYTES_KEPT: usize = 2048;

/// The log as it was found.
#[derive(Debug)]
pub(super) struct Recovered {
    pub segments: Vec<Segment>,
    /// The newest file, to be written on, and its bytes; `None` where a new one is to be begun.
    pub file: Option<(File, u64)>,
    pub head: Head,
    /// What is to be told of it in entries.
    pub told: Vec<Event>,
}

/// What the newest file holds.
struct End {
    /// What its first line follows.
    before: Head,
    head: Head,
    /// Bytes up to the end of the last whole line.
    bytes: u64,
    /// What follows it.
    torn: Vec<u8>,
    /// What is wrong with a line.
    damage: Option<String>,
}

/// Reads the newest file. A line that was torn by a kill or a power failure in the middle of a write is taken out and told; behind
/// lines that are not as they were written a new file is begun. `checkpoint` is the last entry that was known to be there.
pub(super) fn recover(directory: &Path, checkpoint: Option<Head>, now_ns: u64) -> io::Result<Recovered> {
    segment::make_directory(directory)?;
    let segments = segment::list(directory, now_ns)?;
    let mut recovered = Recovered { segments, file: None, head: Head::default(), told: Vec::new() };
    if !recovered.segments.is_empty() {
        let end = read_end(&recovered.segments)?;
        let newest = recovered.segments.last_mut().expect("there is a file");
        newest.previous.get_or_insert(end.before.hash);
        recovered.head = end.head;
        match &end.damage {
            Some(why) => recovered.told.push(Event::own(Kind::Damaged, &format!("{}: {why}", newest.path.display()))),
            None => {
                let file = OpenOptions::new().write(true).open(&newest.path)?;
                if !end.torn.is_empty() {
                    file.set_len(end.bytes)?;
                }
                newest.bytes = end.bytes;
                recovered.file = Some((file, end.bytes));
            }
        }
        if !end.torn.is_empty() {
            let kept = String::from_utf8_lossy(&end.torn[..end.torn.len().min(TORN_BYTES_KEPT)]).into_owned();
            recovered.told.push(Event::own(Kind::Torn, "a line that was not whole").with("bytes", end.torn.len()).with("text", kept));
        }
    }
    recovered.told.extend(missing(&recovered, checkpoint)?);
    Ok(recovered)
}

/// Reads the last of the files.
fn read_end(segments: &[Segment]) -> io::Result<End> {
    let (newest, former) = segments.split_last().expect("there is a file");
    // Where a file has no whole line yet, the one before tells what comes next.
    let before = match newest.previous {
        Some(hash) => Head { number: newest.first.saturating_sub(1), hash },
        None if former.is_empty() => Head::default(),
        None => read_end(former)?.head,
    };
    let mut end = End { before, head: before, bytes: 0, torn: Vec::new(), damage: None };
    let mut lines = Lines::open(&newest.path)?;
    while let Some(line) = lines.next()? {
        match line {
            Line::Whole(line) => {
                end.bytes += line.len() as u64 + 1;
                if let Err(fault) = end.head.follow(line) {
                    end.damage.get_or_insert(fault.to_string());
                    // The chain goes on behind what stands there, whatever it is.
                    let number = Entry::parse(line).map_or(end.head.number.saturating_add(1), |entry| entry.number);
                    end.head = Head { number, hash: chain::hash(line) };
                }
            }
            Line::Torn(torn) => {
                end.torn = torn.to_vec();
                break;
            }
            Line::TooLong => {
                end.damage.get_or_insert("a line is too long".to_owned());
                end.head.number = end.head.number.saturating_add(1);
                break;
            }
        }
    }
    Ok(end)
}

/// What to tell where the checkpoint's entry is not there any more, or is another one.
fn missing(recovered: &Recovered, checkpoint: Option<Head>) -> io::Result<Option<Event>> {
    let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.number > 0) else { return Ok(None) };
    let what = if checkpoint.number > recovered.head.number {
        format!("the database knows of entry {}, and the files end with {}", checkpoint.number, recovered.head.number)
    } else if hash_of(&recovered.segments, checkpoint.number)?.is_some_and(|hash| hash != checkpoint.hash) {
        format!("entry {} is another one than the database knows", checkpoint.number)
    } else {
        return Ok(None);
    };
    let event = Event::own(Kind::Truncated, &what);
    Ok(Some(event.with("number", checkpoint.number).with("hash", checkpoint.hash.to_string())))
}

/// The hash of an entry's line; `None` where it is not kept any more.
fn hash_of(segments: &[Segment], number: u64) -> io::Result<Option<LineHash>> {
    let Some(segment) = segments.iter().rev().find(|segment| segment.first <= number) else { return Ok(None) };
    let mut lines = Lines::open(&segment.path)?;
    let mut at = segment.first;
    while let Some(Line::Whole(line)) = lines.next()? {
        if at == number {
            return Ok(Some(chain::hash(line)));
        }
        at += 1;
    }
    Ok(None)
}
