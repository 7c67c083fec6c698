//! The event log: every accepted event, in the order it was accepted, in files that are only appended to.
//!
//! The shard appends to memory and writes once a turn, in front of its answers: what was answered survives the end of the
//! process, however it comes. A thread of the log's own, its keeper, syncs once a second and whenever an answer waits for it
//! (`durable` event types), makes the next file ahead, and removes what is too old or too much. A disk that takes nothing
//! more suspends the log, which is told, and never blocks the shard.

pub mod batch;
mod divergence;
mod identity;
mod keeper;
mod next_file;
mod reader;
mod record;
mod segment;
mod tail;

use std::{
    fmt::Display,
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use bodkin_broker::EventId;

pub use self::{
    divergence::{NAMES_MAX, RecordName},
    identity::{LogId, identity},
    reader::{Cursor, EventLogReader, LogState},
    record::{Origin, Record},
};
use self::{
    keeper::Keeper,
    next_file::{Begun, NextFile},
    segment::Segment,
    tail::Tail,
};

/// Place of an event in the log, from 0 in steps of 1. It goes on after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// What the log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLogLimits {
    /// Bytes of all files together; beyond, the oldest file goes.
    pub bytes_max: u64,
    /// Age of an event; a file whose events are all older goes.
    pub age_max: Duration,
}

impl EventLogLimits {
    /// Bytes after which a new file is begun: small enough that retention is even, large enough that files are few.
    fn segment_bytes(&self) -> u64 {
        (self.bytes_max / 16).clamp(64 * 1024, 16 * 1024 * 1024)
    }
}

/// How often what was written is synced when no answer waits for it.
const SYNC_PERIOD: Duration = Duration::from_secs(1);
/// How long a disk that took nothing is left alone before it is tried again.
const RETRY_PERIOD: Duration = Duration::from_secs(1);
/// Bytes that a disk must take again before the log goes on.
const PROBE_BYTES: usize = 64 * 1024;
/// Files that are kept, however small; a disk that fails again and again begins one a second.
const SEGMENTS_MAX: usize = 4096;
/// What the shard, the keeper and the readers share.
#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    identity: LogId,
    /// How far the log is written. The lock is held for a copy.
    written: Mutex<Written>,
    /// Behind the last record that is synced.
    synced: AtomicU64,
    /// Behind the last record that has to outlive this host: see [`EventLog::confirm`].
    confirmed: AtomicU64,
    /// Behind the last record that was opened with the log, or copied into it.
    accepted_from: AtomicU64,
    /// The files, ascending; at least one.
    segments: ArcSwap<Vec<Segment>>,
    /// The next file.
    next_file: Mutex<NextFile>,
    /// Whether somebody waits for a sync.
    is_sync_asked: AtomicBool,
    /// The last sync that has failed.
    failed_sync: ArcSwapOption<FailedSync>,
    /// Why nothing is written, while it is so.
    suspended: ArcSwapOption<String>,
    /// Records that were not written.
    skipped: AtomicU64,
    /// Records whose files were removed by somebody else, or that the log had lost when it was opened.
    lost: AtomicU64,
}

/// How far the log is written. Whatever lies in front of the end and is neither in this part of the file nor in an older one was
/// skipped.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// Behind the last record that was written, or skipped while the log was suspended.
    end: Position,
    /// The number of the file that is written; it may be listed a little later.
    file: u64,
    /// The bytes of this file that are the log's. Those beyond them are of a write that is under way or has failed.
    bytes: u64,
    /// Newest written record of this run that the log of the other node has or is to have.
    shared: Option<RecordName>,
}

/// A sync that has failed.
#[derive(Debug)]
struct FailedSync {
    /// The number of its file.
    file: u64,
    error: String,
    /// The file was removed: the disk takes another one at once.
    is_removed: bool,
}

/// Called on the keeper's thread: everything in front of the position that nothing was told of yet is on disk, or why it is not.
pub type OnSync = Box<dyn Fn(Position, Result<(), String>) + Send>;

/// The writing side, owned by a shard.
#[derive(Debug)]
pub struct EventLog {
    tail: Tail,
    next: Position,
    /// Bytes of the tail's newer half that are in the file.
    written: usize,
    /// The newest record that another log has, too.
    shared_record: Option<RecordName>,
    file: Arc<File>,
    number: u64,
    /// Bytes of the file that are the log's, its header included.
    file_bytes: u64,
    segment_bytes: u64,
    /// The largest time of an event that was appended, and of those of them that were written: times may fall.
    appended_ns: u64,
    written_ns: u64,
    retry_at: Option<Instant>,
    /// Whether a sync of the file has failed. Nothing more is written to it.
    is_spent: bool,
    shared: Arc<Shared>,
    /// Wakes the keeper. One wake-up may wait: it stands for all, as what the keeper is to do is in what is shared.
    wake: Option<SyncSender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl EventLog {
    /// Opens (or makes) the log in `directory`, which the caller has locked. It goes on behind its last record, and not in front
    /// of `from`: other places may know positions of events that the log has lost, and no other event may get those.
    pub fn open(
        directory: &Path,
        limits: EventLogLimits,
        from: Position,
        now_ns: u64,
        on_sync: OnSync,
    ) -> io::Result<(Self, EventLogReader)> {
        fs::create_dir_all(directory)?;
        let identity = identity(directory)?;
        let mut segments = segment::list(directory)?;
        let end = segment::recover(directory, &mut segments, from, now_ns)?;
        if end.missing > 0 {
            let directory = directory.display();
            tracing::error!(lost = end.missing, %directory, "the event log lacks events that the database knows of: its files were removed, or lost in a power failure");
        }
        let number = segments.last().expect("there is a file").number;
        let shared = Arc::new(Shared {
            directory: directory.to_owned(),
            identity,
            written: Mutex::new(Written { end: end.next, file: number, bytes: end.bytes, shared: None }),
            synced: AtomicU64::new(0),
            confirmed: AtomicU64::new(end.next.0),
            accepted_from: AtomicU64::new(end.next.0),
            next_file: Mutex::default(),
            is_sync_asked: AtomicBool::new(false),
            failed_sync: ArcSwapOption::empty(),
            suspended: ArcSwapOption::empty(),
            skipped: AtomicU64::new(0),
            lost: AtomicU64::new(end.missing),
            segments: ArcSwap::from_pointee(segments),
        });
        let (wake, woken) = sync_channel(1);
        let file = Arc::new(end.file);
        let keeper = Keeper::new(limits, shared.clone(), (number, file.clone()), on_sync);
        let keeper = std::thread::Builder::new().name("event-log".into()).spawn(move || keeper.run(&woken))?;
        let log = Self {
            tail: Tail::new(end.next),
            next: end.next,
            written: 0,
            shared_record: None,
            file,
            number,
            file_bytes: end.bytes,
            segment_bytes: limits.segment_bytes(),
            appended_ns: end.latest_ns,
            written_ns: end.latest_ns,
            retry_at: None,
            is_spent: false,
            shared: shared.clone(),
            wake: Some(wake),
            keeper: Some(keeper),
        };
        Ok((log, EventLogReader::new(shared)))
    }

    /// Takes an accepted event in; it is in the file after the next [`Self::write`].
    pub fn append(&mut self, time_ns: u64, id: EventId, topic: &str, event: &str, now: Instant) -> Position {
        self.append_from(None, time_ns, id, topic, event, now)
    }

    /// The same of an event that another node has accepted, or of a loss in front of its events.
    pub fn append_from(&mut self, origin: Option<Origin>, time_ns: u64, id: EventId, topic: &str, event: &str, now: Instant) -> Position {
        if self.tail.is_full() {
            self.write(now);
            self.tail.turn();
            self.written = 0;
        }
        self.appended_ns = self.appended_ns.max(time_ns);
        let position = self.next;
        self.tail.push(&Record { position, time_ns, id, topic, event, origin });
        self.next = Position(position.0 + 1);
        position
    }

    /// Takes in a record of the log of the node that leads, which has accepted its event.
    pub fn append_copy(&mut self, record: &Record<'_>, now: Instant) -> Position {
        let position = self.append(record.time_ns, record.id, record.topic, record.event, now);
        self.is_shared(RecordName::of(record));
        self.shared.accepted_from.store(self.next.0, Release);
        position
    }

    /// Notes that another log has, or is to have, the record of this name, which was appended last.
    pub fn is_shared(&mut self, name: RecordName) {
        self.shared_record = Some(name);
    }

    /// Everything in front of a position is wherever it has to be: on this disk, and of a pair on the Backup's. Before that a record may be lost, and its event
    /// come again as another one. What the log had when it was opened counts as confirmed. A smaller position than before changes nothing.
    pub fn confirm(&self, end: Position) {
        self.shared.confirmed.fetch_max(end.0, Release);
    }

    /// Writes what was appended. A disk that takes nothing suspends the log: the records are skipped, counted and told, and
    /// a second later the next ones are tried. To be called once a second at least, also if nothing was appended: who waits until the log
    /// is not suspended may append nothing before.
    pub fn write(&mut self, now: Instant) {
        self.heed_failed_sync(now);
        let is_retry = self.retry_at.is_some_and(|at| now >= at);
        if self.written == self.tail.newer().len() && !is_retry {
            return;
        }
        if self.retry_at.is_none() || is_retry {
            match self.try_write() {
                Ok(()) => self.resume(),
                Err(error) => self.suspend(&error, now),
            }
        }
        if self.retry_at.is_some() {
            self.shared.skipped.fetch_add(self.next.0 - self.shared.written().end.0, Relaxed);
        }
        self.written = self.tail.newer().len();
        self.written_ns = self.appended_ns;
        self.note_written();
    }

    fn try_write(&mut self) -> io::Result<()> {
        if self.is_spent {
            let begun = self.begin_segment();
            begun.map_err(|error| io::Error::other(format!("a sync has failed, and no other file can be begun: {error}")))?;
        } else if self.retry_at.is_some() {
            // What a failed write has left is no record, and must not stand behind the next ones.
            self.file.set_len(self.file_bytes)?;
            self.probe()?;
        }
        self.begin_segment_if_due();
        let bytes = &self.tail.newer()[self.written..];
        self.file.write_all_at(bytes, self.file_bytes)?;
        self.file_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Whether the disk takes anything: it takes as much as a large event, and is given it back.
    fn probe(&self) -> io::Result<()> {
        self.file.write_all_at(&[0; PROBE_BYTES], self.file_bytes)?;
        self.file.set_len(self.file_bytes)
    }

    /// Lets readers and keeper know how far the log is written.
    fn note_written(&self) {
        *self.shared.lock_written() = Written { end: self.next, file: self.number, bytes: self.file_bytes, shared: self.shared_record };
    }

    fn begin_segment_if_due(&mut self) {
        if self.file_bytes < self.segment_bytes {
            return;
        }
        if let Err(error) = self.begin_segment() {
            tracing::debug!(%error, "the event log's present file grows a little longer");
        }
    }

    /// Goes on in the file that was made ahead. If there is none yet, or it takes no header, nothing has changed.
    fn begin_segment(&mut self) -> io::Result<()> {
        let (Written { end: first, shared, .. }, prior_ns) = (self.shared.written(), self.written_ns);
        let mut next_file = self.shared.next_file.try_lock().map_err(|_| io::Error::other("the next file is being made"))?;
        let NextFile::Ahead { number, file } = &*next_file else { return Err(io::Error::other("there is no next file yet")) };
        let (number, file) = (*number, file.clone());
        file.write_all_at(&segment::header(first, prior_ns), 0)?;
        // The keeper finds it there in front of its first record, so that no sync of a record is promised on another file.
        *next_file = NextFile::Begun(Begun { number, file: file.clone(), first, prior_ns, former_bytes: self.file_bytes });
        drop(next_file);
        (self.file, self.number, self.file_bytes, self.is_spent) = (file, number, segment::HEADER_BYTES, false);
        *self.shared.lock_written() = Written { end: first, file: number, bytes: segment::HEADER_BYTES, shared };
        self.wake_keeper();
        Ok(())
    }

    /// Suspends the log if a sync of its file has failed, until another file can be begun: the system may have dropped what it could not
    /// write, and no later sync of the same file would say so.
    fn heed_failed_sync(&mut self, now: Instant) {
        let failed = self.shared.failed_sync.load_full().filter(|failed| failed.file == self.number && !self.is_spent);
        if let Some(failed) = failed {
            self.is_spent = true;
            if failed.is_removed && self.begin_segment().is_ok() {
                return;
            }
            self.suspend(&failed.error, now);
        }
    }

    fn suspend(&mut self, error: &impl Display, now: Instant) {
        if self.retry_at.is_none() {
            tracing::error!(%error, "the event log is suspended: events go on being delivered, but are not kept. Make room on the disk");
        }
        self.retry_at = Some(now + RETRY_PERIOD);
        self.shared.suspended.store(Some(Arc::new(error.to_string())));
    }

    fn resume(&mut self) {
        if self.retry_at.take().is_some() {
            self.shared.suspended.store(None);
            let skipped = self.shared.skipped.load(Relaxed);
            tracing::warn!(skipped, "the event log is written again; so many events in all are not in it");
        }
    }

    /// Asks for everything written so far to be synced; [`OnSync`] tells when it is.
    pub fn sync(&self) {
        self.shared.is_sync_asked.store(true, Release);
        self.wake_keeper();
    }

    fn wake_keeper(&self) {
        // If a wake-up waits already, the keeper will look behind it.
        let _ = self.wake.as_ref().expect("the keeper lives as long as the log").try_send(());
    }

    /// Behind the last record that was appended.
    pub fn next_position(&self) -> Position {
        self.next
    }

    /// Whether records are being skipped.
    pub fn is_suspended(&self) -> bool {
        self.retry_at.is_some()
    }

    /// The appended records from `from` on, if all of them are still in memory.
    pub fn recent(&self, from: Position) -> Option<impl Iterator<Item = Record<'_>>> {
        self.tail.records(from)
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.write(Instant::now());
        drop(self.wake.take());
        if self.keeper.take().is_some_and(|keeper| keeper.join().is_err()) {
            tracing::error!("the event log's keeper had stopped before");
        }
    }
}

impl Shared {
    /// Bytes of the files, which are those that are listed.
    fn bytes(&self, segments: &[Segment]) -> u64 {
        let written = self.written();
        segments.iter().filter(|segment| segment.number != written.file).map(|segment| segment.bytes).sum::<u64>() + written.bytes
    }

    fn written(&self) -> Written {
        *self.lock_written()
    }

    fn lock_written(&self) -> MutexGuard<'_, Written> {
        // An assignment leaves it whole wherever it is interrupted.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
