//! The reading side: any thread may follow the log while the shard writes it. It blocks on the disk, so no shard does.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{Arc, atomic::Ordering::*},
};

use bodkin_broker::{EventId, Incarnation, Numberer};

use super::{
    LogId, Position, RecordName, Shared, Written,
    record::{self, Frame, Record, frame},
    segment::{self, HEADER_BYTES, Segment},
};

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// A handle on the log for everybody but its shard.
#[derive(Clone, Debug)]
pub struct EventLogReader {
    shared: Arc<Shared>,
}

/// The positions whose records a file holds; one that the shard has just begun is part of the one before.
pub(super) struct Stretch {
    /// The file's number.
    pub file: u64,
    /// The first of them.
    pub first: Position,
    /// Behind the last one that is asked for.
    pub until: Position,
    /// The largest time of an event in front of it, in nanoseconds since 1970.
    pub prior_ns: u64,
}

/// What the log holds, for those who watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogState {
    /// Files.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The oldest record's position.
    pub first: Position,
    /// Behind the newest one's.
    pub next: Position,
    /// Behind the newest one that is synced.
    pub synced: Position,
    /// Every event of a later time is kept, in nanoseconds since 1970.
    pub oldest_ns: u64,
    /// Records that are missing because the disk took nothing.
    pub skipped: u64,
    /// Records that are missing because files were removed, or because the log had lost its end when it was opened.
    pub lost: u64,
    /// Why nothing is written at present.
    pub suspended: Option<String>,
}

impl EventLogReader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Behind the last record that was written.
    pub fn end(&self) -> Position {
        self.shared.written().end
    }

    /// Behind the last record that cannot be lost with this host any more: see [`EventLog::confirm`](super::EventLog::confirm).
    pub fn confirmed(&self) -> Position {
        Position(self.shared.confirmed.load(Acquire))
    }

    /// Where the records begin whose events this run has accepted itself, and not copied from the node that leads. It moves only while another node leads.
    pub fn accepted_from(&self) -> Position {
        Position(self.shared.accepted_from.load(Acquire))
    }

    /// Which log it is.
    pub fn identity(&self) -> LogId {
        self.shared.identity
    }

    /// Behind the last record that was written, and the newest record in front of it that this run has appended and another log has, too.
    pub fn end_and_shared(&self) -> (Position, Option<RecordName>) {
        let written = self.shared.written();
        (written.end, written.shared)
    }

    /// Where the newest files begin, so many of them or all that there are.
    pub fn newest_files(&self, files: usize) -> Position {
        let segments = self.shared.segments.load();
        segments[segments.len().saturating_sub(files.max(1))].first
    }

    /// Reads from `from` on, or from the oldest record if that is younger.
    pub fn cursor(&self, from: Position) -> Cursor {
        let first = self.shared.segments.load().first().expect("there is a file").first;
        Cursor { shared: self.shared.clone(), next: from.max(first), open: None, chunk: Vec::new(), at: 0 }
    }

    /// Where what followed an event of a topic begins; `None` if nothing up to it is in the log (any more). Files are searched from
    /// the newest on, for who asks has mostly been away for a short time.
    ///
    /// An event may have been heard and never written: listeners are served first, and then a kill came, or the log was
    /// suspended. Then what followed its predecessor is given; some of that may have been heard, none is left out.
    pub fn behind(&self, topic: &str, id: EventId) -> io::Result<Option<Position>> {
        let stream = |id: EventId| (id.publisher, id.incarnation, id.topic);
        let is_of_node = |incarnation: Incarnation| incarnation.numberer() == Numberer::Node;
        let mut is_run_met = false;
        for Stretch { first, until, .. } in self.stretches(self.end()) {
            let mut cursor = self.cursor(first);
            let (mut first_run, mut predecessor) = (None, None);
            while let Some(record) = cursor.read_before(until)? {
                if record.origin.is_none() && is_of_node(record.id.incarnation) {
                    first_run.get_or_insert(record.id.incarnation);
                    is_run_met |= record.id.incarnation == id.incarnation;
                }
                if record.topic == topic && stream(record.id) == stream(id) && record.id.sequence <= id.sequence {
                    predecessor = Some(Position(record.position.0 + 1));
                    if record.id.sequence == id.sequence {
                        break;
                    }
                }
            }
            // The events of a run of this node lie together, whatever the clock has done between and in the runs; those of publishers and of other nodes lie anywhere.
            let begins_here = is_of_node(id.incarnation) && is_run_met && first_run.is_some_and(|run| run != id.incarnation);
            if predecessor.is_some() || begins_here {
                return Ok(predecessor);
            }
        }
        Ok(None)
    }

    /// What each file holds in front of `until`, from the newest file on.
    pub(super) fn stretches(&self, mut until: Position) -> impl Iterator<Item = Stretch> {
        let segments = self.shared.segments.load_full();
        (0..segments.len()).rev().map(move |index| {
            let Segment { number, first, prior_ns, .. } = segments[index];
            let stretch = Stretch { file: number, first, until, prior_ns };
            until = until.min(first);
            stretch
        })
    }

    /// The last file of which a sync has failed, if there is one.
    pub(super) fn spent_file(&self) -> Option<u64> {
        self.shared.failed_sync.load().as_ref().map(|failed| failed.file)
    }

    /// Where the events of `time_ns` or later begin: behind the last event in front of the first one of them, so that who
    /// reads on from here sees whether any are missing. If the clock was set back, there may be earlier times behind it.
    pub fn since(&self, time_ns: u64) -> io::Result<Position> {
        let segments = self.shared.segments.load_full();
        // One file earlier than the first of them can be, for its last event.
        let newest = segments.iter().rposition(|segment| segment.prior_ns < time_ns).unwrap_or_default();
        let mut cursor = self.cursor(segments[newest.saturating_sub(1)].first);
        loop {
            let begin = cursor.position();
            match cursor.read()? {
                Some(record) if record.time_ns < time_ns => {}
                Some(_) => return Ok(begin),
                None => return Ok(cursor.position()),
            }
        }
    }

    /// What the log holds.
    pub fn state(&self) -> LogState {
        let segments = self.shared.segments.load_full();
        LogState {
            segments: segments.len(),
            bytes: self.shared.bytes(&segments),
            first: segments[0].first,
            next: self.end(),
            synced: Position(self.shared.synced.load(Acquire)),
            oldest_ns: segments[0].prior_ns,
            skipped: self.shared.skipped.load(Relaxed),
            lost: self.shared.lost.load(Relaxed),
            suspended: self.shared.suspended.load().as_ref().map(|reason| reason.to_string()),
        }
    }
}

/// A place in the log that moves on as it is read.
#[derive(Debug)]
pub struct Cursor {
    shared: Arc<Shared>,
    next: Position,
    open: Option<Open>,
    chunk: Vec<u8>,
    /// Where in the chunk the next record begins.
    at: usize,
}

#[derive(Debug)]
struct Open {
    number: u64,
    file: File,
    /// Where in the file the chunk ends.
    offset: u64,
}

impl Cursor {
    /// The position behind the last record that was read.
    pub fn position(&self) -> Position {
        self.next
    }

    /// Gives back the memory of what was read ahead, until it is read again: for a cursor that waits.
    pub fn rest(&mut self) {
        if let Some(open) = &mut self.open {
            open.offset -= (self.chunk.len() - self.at) as u64;
        }
        self.chunk = Vec::new();
        self.at = 0;
    }

    /// The next record if it is in front of `until`.
    pub fn read_before(&mut self, until: Position) -> io::Result<Option<Record<'_>>> {
        Ok(self.read()?.filter(|record| record.position < until))
    }

    /// The next record, or `None` when everything that is written was read; more may come later. What is damaged is passed
    /// over. Who expects the position behind the last record sees what is missing.
    pub fn read(&mut self) -> io::Result<Option<Record<'_>>> {
        let range = loop {
            match frame(&self.chunk[self.at..]) {
                Frame::Whole { bytes, position } => {
                    let range = self.at..self.at + bytes;
                    if Record::parse(&self.chunk[range.clone()]).is_none() {
                        self.skip_damage(self.shared.written())?;
                        continue;
                    }
                    self.at = range.end;
                    if position >= self.next {
                        self.next = Position(position.0 + 1);
                        break range;
                    }
                }
                Frame::Partial { wanted } => {
                    if !self.fill(wanted)? {
                        return Ok(None);
                    }
                }
                Frame::Damaged => self.skip_damage(self.shared.written())?,
            }
        };
        Ok(Record::parts(&self.chunk[range]))
    }

    /// Reads on, in the next file where this one is at its end; false at the end of what is written.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        // Known in front of the file: then one that is not written any more is read to its end, and what is not in the one
        // that is written, although it is before this end, was skipped.
        let written = self.shared.written();
        if self.open.is_none() && !self.open_first(written)? {
            return Err(io::Error::other("the event log's files are gone"));
        }
        if self.read_on(wanted, written)? {
            return Ok(true);
        }
        let number = self.open.as_ref().expect("a file is open").number;
        if !self.chunk.is_empty() {
            // It claims to be longer than what is there.
            self.skip_damage(written)?;
            return Ok(true);
        }
        if number < written.file {
            return self.open_from(number + 1, written);
        }
        self.next = self.next.max(written.end);
        Ok(false)
    }

    /// Reads more of the open file, until `wanted` bytes are at hand if it has so many; false at its end. Of the file that is
    /// written only what counts as written is read: the rest may be taken back.
    fn read_on(&mut self, wanted: usize, written: Written) -> io::Result<bool> {
        self.chunk.drain(..self.at);
        self.at = 0;
        let open = self.open.as_mut().expect("a file is open");
        let bytes = if open.number == written.file { written.bytes } else { open.file.metadata()?.len() };
        let left = usize::try_from(bytes.saturating_sub(open.offset)).unwrap_or(usize::MAX);
        let had = self.chunk.len();
        self.chunk.resize(had + left.min(wanted.saturating_sub(had).max(CHUNK_BYTES)), 0);
        let read = open.file.read_at(&mut self.chunk[had..], open.offset);
        self.chunk.truncate(had + *read.as_ref().unwrap_or(&0));
        let read = read?;
        open.offset += read as u64;
        Ok(read > 0)
    }

    /// Opens the newest file that may hold the next position, or the oldest one.
    fn open_first(&mut self, written: Written) -> io::Result<bool> {
        let segments = self.shared.segments.load();
        let begun = || segments.iter().filter(|segment| segment.number <= written.file);
        let found = begun().rev().find(|segment| segment.first <= self.next).or(begun().next());
        self.open_from(found.map_or(written.file, |segment| segment.number), written)
    }

    /// Opens the file of this number, or the first one behind it that is still there; false if there is none. A file that the
    /// shard has begun may not be listed yet, and one that is listed may be gone since.
    fn open_from(&mut self, mut number: u64, written: Written) -> io::Result<bool> {
        while number <= written.file {
            let segments = self.shared.segments.load();
            let listed = segments.iter().find(|segment| segment.number >= number && segment.number <= written.file);
            let unlisted = || segment::path_of(&self.shared.directory, number);
            let opened = File::open(listed.map_or_else(unlisted, |segment| segment.path.clone()));
            number = listed.map_or(number, |segment| segment.number);
            match opened {
                Ok(file) => {
                    self.open = Some(Open { number, file, offset: HEADER_BYTES });
                    self.chunk.clear();
                    self.at = 0;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => number += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Passes over what is no record, to the next whole one of the file.
    fn skip_damage(&mut self, written: Written) -> io::Result<()> {
        while self.read_on(self.chunk.len() - self.at + 1, written)? {}
        let bytes = record::find(&self.chunk, self.next).map_or(self.chunk.len(), |(range, _)| range.start);
        let file = self.open.as_ref().expect("what is damaged was read").number;
        tracing::error!(file, position = self.next.0, bytes, "the event log is damaged; what was here is lost");
        self.at = bytes;
        Ok(())
    }
}
