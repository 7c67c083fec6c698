//! Reading the log, while it is written or not.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
};

use bodkin_arrowhead::audit::{AuditQuery, Entry};

use super::segment::{self, Line, Lines};

/// An entry and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadLine {
    /// What it says.
    pub entry: Entry,
    /// As it stands in the file, without its end.
    pub line: Vec<u8>,
}

/// Reads the log in a directory.
#[derive(Clone, Debug)]
pub struct AuditReader {
    directory: PathBuf,
}

impl AuditReader {
    /// The log in this directory, whether it is there or not.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Reads from an entry on; what is written meanwhile is read as well.
    pub fn cursor(&self, from: u64) -> AuditCursor {
        AuditCursor { directory: self.directory.clone(), from, file: None, unreadable: 0 }
    }

    /// The wanted entries in their order, the first `count` of them.
    pub fn first(&self, query: &AuditQuery, count: usize) -> io::Result<Vec<ReadLine>> {
        let mut cursor = self.cursor(query.from);
        let mut found = Vec::new();
        while found.len() < count
            && let Some(read) = cursor.read()?
        {
            found.extend(query.wants(&read.entry).then_some(read));
        }
        Ok(found)
    }

    /// The wanted entries in their order, the last `count` of them.
    pub fn last(&self, query: &AuditQuery, count: usize) -> io::Result<Vec<ReadLine>> {
        let mut found: VecDeque<ReadLine> = VecDeque::new();
        let mut end = u64::MAX;
        // The newest files mostly have enough.
        for (first, _) in segment::names(&self.directory)?.into_iter().rev() {
            if found.len() >= count {
                break;
            }
            let mut of_file = VecDeque::new();
            let mut cursor = self.cursor(first);
            while let Some(read) = cursor.read()? {
                if read.entry.number >= end {
                    break;
                }
                if query.wants(&read.entry) {
                    of_file.push_back(read);
                    if of_file.len() > count - found.len() {
                        of_file.pop_front();
                    }
                }
            }
            of_file.append(&mut found);
            found = of_file;
            end = first;
        }
        Ok(found.into())
    }
}

/// Goes through the log line by line.
#[derive(Debug)]
pub struct AuditCursor {
    directory: PathBuf,
    from: u64,
    /// The file that is read, by the number of its first entry.
    file: Option<(u64, Lines)>,
    /// Lines that are no entries.
    unreadable: u64,
}

impl AuditCursor {
    /// The next entry; `None` if there is none yet. Lines that are no entries are counted and passed over.
    pub fn read(&mut self) -> io::Result<Option<ReadLine>> {
        loop {
            if self.file.is_none() && !self.open_first()? {
                return Ok(None);
            }
            if let Some(read) = self.next_of_file()? {
                return Ok(Some(read));
            }
            let Some((number, path)) = self.successor()? else { return Ok(None) };
            // What was written into the file before its successor was begun may have come since.
            if let Some(read) = self.next_of_file()? {
                return Ok(Some(read));
            }
            self.file = Some((number, Lines::open(&path)?));
        }
    }

    /// Lines that were passed over because they are no entries.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn next_of_file(&mut self) -> io::Result<Option<ReadLine>> {
        let Some((_, lines)) = &mut self.file else { return Ok(None) };
        while let Some(Line::Whole(line)) = lines.next()? {
            match Entry::parse(line) {
                Ok(entry) if entry.number >= self.from => return Ok(Some(ReadLine { entry, line: line.to_vec() })),
                Ok(_) => {}
                Err(_) => self.unreadable += 1,
            }
        }
        Ok(None)
    }

    /// Opens the file that holds the first wanted entry; false if there is none.
    fn open_first(&mut self) -> io::Result<bool> {
        let names = segment::names(&self.directory)?;
        let at = names.iter().rposition(|(first, _)| *first <= self.from).unwrap_or(0);
        let Some((number, path)) = names.get(at) else { return Ok(false) };
        self.file = Some((*number, Lines::open(path)?));
        Ok(true)
    }

    fn successor(&self) -> io::Result<Option<(u64, PathBuf)>> {
        let Some((current, _)) = &self.file else { return Ok(None) };
        Ok(segment::names(&self.directory)?.into_iter().find(|(number, _)| number > current))
    }
}
