//! The log's files: `NUMBER.events`, ascending, each with a header and the records of a stretch of positions.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::{
    Position,
    record::{Frame, POSITION_MAX, Record, frame},
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
    /// When it was begun, in nanoseconds since 1970.
    pub begun_ns: u64,
    /// Bytes it has; of the newest one, those it had when it was begun or opened.
    pub bytes: u64,
}

pub(super) fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:010}{SUFFIX}"))
}

/// The header of a file that begins with this position.
pub(super) fn header(first: Position, begun_ns: u64) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&first.0.to_le_bytes());
    header[24..].copy_from_slice(&begun_ns.to_le_bytes());
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
            Some((first, begun_ns)) => segments.push(Segment { number, first, begun_ns, bytes: entry.metadata()?.len(), path }),
            None => fs::remove_file(&path)?,
        }
    }
    segments.sort_unstable_by_key(|segment| segment.number);
    Ok(segments)
}

fn read_header(path: &Path) -> io::Result<Option<(Position, u64)>> {
    let mut header = [0; HEADER_BYTES as usize];
    match File::open(path)?.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    if &header[..8] != MAGIC || number(8) != VERSION || number(16) > POSITION_MAX {
        let told = format!("{} is no event log of version {VERSION}; move it away to start with an empty one", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, told));
    }
    Ok(Some((Position(number(16)), number(24))))
}

/// What a file that is written on ends with.
#[derive(Debug)]
pub(super) struct End {
    pub file: File,
    /// The position behind its last whole record.
    pub next: Position,
    /// Bytes up to there.
    pub bytes: u64,
}

/// Opens the newest file to be written on. What follows its last whole record in ascending order was torn by a kill or a power failure in the
/// middle of a write, was never answered for, and is cut off.
pub(super) fn recover(segment: &Segment) -> io::Result<End> {
    let mut file = OpenOptions::new().read(true).write(true).open(&segment.path)?;
    let mut content = Vec::with_capacity(usize::try_from(segment.bytes).unwrap_or(0));
    file.seek(SeekFrom::Start(HEADER_BYTES))?;
    file.read_to_end(&mut content)?;
    let (mut at, mut next) = (0, segment.first);
    while let Frame::Whole { bytes, .. } = frame(&content[at..]) {
        let whole = Record::parse(&content[at..at + bytes]);
        let Some(record) = whole.filter(|record| record.position >= next) else { break };
        next = Position(record.position.0 + 1);
        at += bytes;
    }
    let bytes = HEADER_BYTES + at as u64;
    if at < content.len() {
        tracing::warn!(file = %segment.path.display(), bytes = content.len() - at, "the event log's end was torn and is cut off");
        file.set_len(bytes)?;
    }
    Ok(End { file, next, bytes })
}
