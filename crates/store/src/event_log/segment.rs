//! The log's files: `NUMBER.events`, ascending, each with a header and the records of a stretch of positions.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Instant,
};

use super::{
    Position,
    record::{self, POSITION_MAX},
};

/// Bytes at the beginning of a file: magic, version, first position, first time.
pub(super) const HEADER_BYTES: u64 = 32;
const MAGIC: &[u8; 8] = b"BODKINEV";
const VERSION: u64 = 1;
const SUFFIX: &str = ".events";

/// A file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub number: u64,
    pub path: PathBuf,
    /// Position of its first record.
    pub first: Position,
    /// The largest time of an event in front of it, in nanoseconds since 1970; of the first file, when it was made.
    pub prior_ns: u64,
    /// When this run has begun it.
    pub begun: Option<Instant>,
    /// Bytes it has; of the newest one, those it had when it was begun or opened.
    pub bytes: u64,
}

pub(super) fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:010}{SUFFIX}"))
}

/// The header of a file that begins with this position, behind events of this time or before.
pub(super) fn header(first: Position, prior_ns: u64) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&first.0.to_le_bytes());
    header[24..].copy_from_slice(&prior_ns.to_le_bytes());
    header
}

/// A new empty file; what is left of an interrupted run under its name goes. A disk that syncs nothing gives none.
pub(super) fn create(directory: &Path, number: u64) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path_of(directory, number))?;
    file.sync_all()?;
    File::open(directory)?.sync_all()?;
    Ok(file)
}

/// The log's files in ascending order. A file without a header was made ahead and never begun: it is removed. A file that is
/// none of the log's, or of a newer version, is an error: nothing may be overwritten that we cannot read.
pub(super) fn list(directory: &Path) -> io::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)).and_then(|number| number.parse().ok()) else {
            continue;
        };
        let path = entry.path();
        match read_header(&path)? {
            Some((first, prior_ns)) => {
                segments.push(Segment { number, path, first, prior_ns, begun: None, bytes: entry.metadata()?.len() });
            }
            None => fs::remove_file(&path)?,
        }
    }
    segments.sort_unstable_by_key(|segment| segment.number);
    // A header that had to be written anew knows its own file only.
    let mut prior_ns = 0;
    for segment in &mut segments {
        prior_ns = segment.prior_ns.max(prior_ns);
        segment.prior_ns = prior_ns;
    }
    Ok(segments)
}

/// First position and time; `None` of a file that holds nothing.
fn read_header(path: &Path) -> io::Result<Option<(Position, u64)>> {
    let mut header = [0; HEADER_BYTES as usize];
    match File::open(path)?.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    if header == [0; HEADER_BYTES as usize] {
        return restore_header(path);
    }
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let refused = if &header[..8] != MAGIC || number(16) > POSITION_MAX {
        "is not a file of an event log: move the file away".to_owned()
    } else if number(8) != VERSION {
        format!("has version {} of the event log, and this build reads version {VERSION}: start the build that wrote the file", number(8))
    } else {
        return Ok(Some((Position(number(16)), number(24))));
    };
    let told = format!("{} {refused}, or move the events aside (bodkin db discard-events)", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidData, told))
}

/// Writes the header anew that a power failure has taken, as file systems do that put zeros in the place of what they had not
/// written; `None` if there is no record behind it.
fn restore_header(path: &Path) -> io::Result<Option<(Position, u64)>> {
    let content = fs::read(path)?;
    let Some((_, record)) = record::find(&content[HEADER_BYTES as usize..], Position(0)) else { return Ok(None) };
    tracing::warn!(file = %path.display(), "the beginning of a file of the event log was lost and is written anew");
    OpenOptions::new().write(true).open(path)?.write_all_at(&header(record.position, record.time_ns), 0)?;
    Ok(Some((record.position, record.time_ns)))
}

/// Where the log goes on.
#[derive(Debug)]
pub(super) struct End {
    /// The newest file.
    pub file: File,
    /// Bytes of it up to the end of its last whole record.
    pub bytes: u64,
    /// The position of the next record.
    pub next: Position,
    /// The largest time of an event, or when the first file was made.
    pub latest_ns: u64,
    /// Positions that are known elsewhere and that the log has no record of: its files were removed, or its end was lost in a power failure.
    pub missing: u64,
}

/// Opens the newest file to be written on; the first one is made. What follows its last whole record was torn by a kill or a power
/// failure in the middle of a write, was never answered for, and is cut off. A file that is damaged in front of whole
/// records is kept as it is, and another one is begun behind it. The next position is `from` at the least.
pub(super) fn recover(directory: &Path, segments: &mut Vec<Segment>, from: Position, now_ns: u64) -> io::Result<End> {
    let Some(newest) = segments.last() else { return Ok(End { missing: from.0, ..begin(directory, segments, from, now_ns)? }) };
    let mut file = OpenOptions::new().read(true).write(true).open(&newest.path)?;
    let mut content = Vec::with_capacity(usize::try_from(newest.bytes).unwrap_or(0));
    file.seek(SeekFrom::Start(HEADER_BYTES))?;
    file.read_to_end(&mut content)?;
    let found = survey(&content, newest.first);
    let latest_ns = found.latest_ns.max(newest.prior_ns);
    let next = found.next.max(from);
    let missing = next.0 - found.next.0;
    if found.is_damaged {
        tracing::error!(file = %newest.path.display(), "the event log is damaged: what was hit is lost. The file is kept and another one is begun");
        return Ok(End { missing, ..begin(directory, segments, next, latest_ns)? });
    }
    let bytes = HEADER_BYTES + found.bytes as u64;
    if found.bytes < content.len() {
        tracing::warn!(file = %newest.path.display(), bytes = content.len() - found.bytes, "the event log's end was torn and is cut off");
        file.set_len(bytes)?;
    }
    Ok(End { file, bytes, next, latest_ns, missing })
}

/// Makes a file behind the others and begins it.
fn begin(directory: &Path, segments: &mut Vec<Segment>, first: Position, prior_ns: u64) -> io::Result<End> {
    let number = segments.last().map_or(1, |newest| newest.number + 1);
    let file = create(directory, number)?;
    file.write_all_at(&header(first, prior_ns), 0)?;
    segments.push(Segment { number, path: path_of(directory, number), first, prior_ns, begun: None, bytes: HEADER_BYTES });
    Ok(End { file, bytes: HEADER_BYTES, next: first, latest_ns: prior_ns, missing: 0 })
}

/// What the records of a file are.
struct Survey {
    /// Bytes up to the end of the last whole one.
    bytes: usize,
    /// The position behind it.
    next: Position,
    /// The largest time.
    latest_ns: u64,
    /// Whether something that is no record is in front of it.
    is_damaged: bool,
}

fn survey(content: &[u8], first: Position) -> Survey {
    let mut found = Survey { bytes: 0, next: first, latest_ns: 0, is_damaged: false };
    while let Some((range, record)) = record::find(&content[found.bytes..], found.next) {
        found.is_damaged |= range.start > 0;
        found.next = Position(record.position.0 + 1);
        found.latest_ns = found.latest_ns.max(record.time_ns);
        found.bytes += range.end;
    }
    found
}
