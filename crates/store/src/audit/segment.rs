//! The log's files: `NUMBER.jsonl`, named by the number of their first entry.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use bodkin_arrowhead::audit::{Entry, LineHash};

use super::retention::FileState;

const SUFFIX: &str = ".jsonl";
/// Longest line that is read.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

/// A file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The number of its first entry.
    pub first: u64,
    pub path: PathBuf,
    /// Bytes it has; of the newest one, those it had when it was begun or listed.
    pub bytes: u64,
    /// When its first entry happened, in nanoseconds since 1970; now where that cannot be read.
    pub begun_ns: u64,
    /// What its first entry follows; `None` where that cannot be read.
    pub previous: Option<LineHash>,
}

impl Segment {
    pub fn state(&self) -> FileState {
        FileState { bytes: self.bytes, begun_ns: self.begun_ns }
    }
}

/// Makes the directory, which only its owner may look into.
pub(super) fn make_directory(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// A new file for entries from `first` on.
pub(super) fn create(directory: &Path, first: u64) -> io::Result<(PathBuf, File)> {
    let path = directory.join(format!("{first:010}{SUFFIX}"));
    let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?;
    File::open(directory)?.sync_all()?;
    Ok((path, file))
}

/// The files by their numbers, as they are named; nothing where there is no directory.
pub(super) fn names(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)).and_then(|number| number.parse().ok());
        found.extend(number.map(|number| (number, entry.path())));
    }
    found.sort_unstable();
    Ok(found)
}

/// The files with what their first lines say.
pub(super) fn list(directory: &Path, now_ns: u64) -> io::Result<Vec<Segment>> {
    let segment = |(first, path): (u64, PathBuf)| {
        let bytes = fs::metadata(&path)?.len();
        let entry = match Lines::open(&path)?.next()? {
            Some(Line::Whole(line)) => Entry::parse(line).ok(),
            _ => None,
        };
        let begun_ns = entry.as_ref().map_or(now_ns, |entry| entry.at.unix_nanos());
        Ok(Segment { first, path, bytes, begun_ns, previous: entry.map(|entry| entry.previous) })
    };
    names(directory)?.into_iter().map(segment).collect()
}

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'l> {
    /// With its end, which is not given.
    Whole(&'l [u8]),
    /// The last one, without an end: it is being written, or was torn.
    Torn(&'l [u8]),
    /// Longer than [`LINE_BYTES_MAX`]; nothing behind it is read.
    TooLong,
}

/// Reads a file line by line.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
}

impl Lines {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { reader: BufReader::with_capacity(64 * 1024, File::open(path)?), line: Vec::new() })
    }

    /// The next line; `None` at the end. What is appended later is read by a later call.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        // A line that was not whole the last time goes on.
        if self.line.last() == Some(&b'\n') {
            self.line.clear();
        }
        let left = (LINE_BYTES_MAX + 1).saturating_sub(self.line.len()) as u64;
        (&mut self.reader).take(left).read_until(b'\n', &mut self.line)?;
        Ok(match self.line.split_last() {
            None => None,
            Some((b'\n', line)) => Some(Line::Whole(line)),
            Some(_) if self.line.len() > LINE_BYTES_MAX => Some(Line::TooLong),
            Some(_) => Some(Line::Torn(&self.line)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_are_read_as_they_are_appended() {
        let place = tempfile::tempdir().unwrap();
        let (path, mut file) = create(place.path(), 1).unwrap();
        let mut lines = Lines::open(&path).unwrap();
        assert_eq!(lines.next().unwrap(), None);
        file.write_all(b"a\nb").unwrap();
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"a")));
        assert_eq!(lines.next().unwrap(), Some(Line::Torn(b"b")));
        file.write_all(b"c\n\n").unwrap();
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"bc")));
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"")));
        assert_eq!(lines.next().unwrap(), None);
        file.write_all(&vec![b'x'; LINE_BYTES_MAX + 1]).unwrap();
        assert_eq!(lines.next().unwrap(), Some(Line::TooLong));
        assert_eq!(lines.next().unwrap(), Some(Line::TooLong));
    }

    #[test]
    fn files_are_listed_by_their_numbers_and_never_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        assert_eq!(names(&directory).unwrap(), []);
        make_directory(&directory).unwrap();
        for first in [900, 17, 12_345_678_901] {
            create(&directory, first).unwrap();
        }
        fs::write(directory.join("notes.txt"), "").unwrap();
        let numbers: Vec<u64> = names(&directory).unwrap().into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [17, 900, 12_345_678_901]);
        assert!(create(&directory, 17).is_err());
    }
}
