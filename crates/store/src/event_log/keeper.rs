//! The log's own thread: syncs, files made ahead, retention.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Arc,
        atomic::Ordering::*,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant, SystemTime},
};

use super::{
    EventLogLimits, FailedSync, OnSync, Position, SEGMENTS_MAX, SYNC_PERIOD, Shared, identity,
    next_file::{self, Begun, NextFile},
    segment,
    segment::Segment,
};

pub(super) struct Keeper {
    limits: EventLogLimits,
    shared: Arc<Shared>,
    /// The file that is written, and its number.
    current: (u64, Arc<File>),
    /// Why a sync of it has failed, or that it was removed.
    failure: Option<String>,
    is_removed: bool,
    watched_at: Instant,
    on_sync: OnSync,
}

impl Keeper {
    pub fn new(limits: EventLogLimits, shared: Arc<Shared>, current: (u64, Arc<File>), on_sync: OnSync) -> Self {
        Self { limits, shared, current, failure: None, is_removed: false, watched_at: Instant::now(), on_sync }
    }

    /// Runs until the log is dropped; then syncs a last time.
    pub fn run(mut self, woken: &Receiver<()>) {
        let mut is_over = false;
        while !is_over {
            self.watch_files();
            self.make_ahead();
            self.retain();
            is_over = woken.recv_timeout(SYNC_PERIOD) == Err(RecvTimeoutError::Disconnected);
            let is_asked = self.shared.is_sync_asked.swap(false, AcqRel);
            // Read behind the question, which is about what was written before, and in front of the file: one that holds a
            // record before this end was begun by now.
            let end = self.shared.written().end;
            if let Some(begun) = next_file::take_begun(&self.shared.next_file) {
                self.go_on_in(begun);
            }
            self.sync(end, is_asked);
        }
        // What was made ahead and never begun; the next start would remove it too.
        if let NextFile::Ahead { number, .. } = &*next_file::lock(&self.shared.next_file) {
            let _ = fs::remove_file(segment::path_of(&self.shared.directory, *number));
        }
    }

    /// Takes note that the shard goes on in the file that was made ahead.
    fn go_on_in(&mut self, begun: Begun) {
        let Begun { number, file, first, prior_ns, former_bytes } = begun;
        self.sync_file();
        if let Some(error) = self.failure.take() {
            (self.on_sync)(first, Err(error));
        }
        self.current = (number, file);
        let mut segments = Vec::clone(&self.shared.segments.load());
        let former = segments.last_mut().expect("there is a file");
        former.bytes = former_bytes;
        if std::mem::take(&mut self.is_removed) {
            self.report_removed(former, first);
            segments.pop();
        }
        let path = segment::path_of(&self.shared.directory, number);
        segments.push(Segment { number, path, first, prior_ns, begun: Some(Instant::now()), bytes: segment::HEADER_BYTES });
        self.shared.segments.store(Arc::new(segments));
    }

    fn sync(&mut self, end: Position, is_asked: bool) {
        if end.0 != self.shared.synced.load(Relaxed) {
            self.sync_file();
        }
        if self.failure.is_none() {
            self.shared.synced.store(end.0, Release);
        }
        if is_asked {
            (self.on_sync)(end, self.failure.clone().map_or(Ok(()), Err));
        }
    }

    /// Looks whether somebody has removed files: records in those are lost, which is reported, and another file is begun.
    fn watch_files(&mut self) {
        if self.watched_at.elapsed() < SYNC_PERIOD {
            return;
        }
        self.watched_at = Instant::now();
        let segments = self.shared.segments.load();
        let is_there = |segment: &Segment| segment.path.exists();
        if segments.iter().all(is_there) {
            return;
        }
        if let Err(error) = self.restore_directory() {
            tracing::warn!(%error, directory = %self.shared.directory.display(), "the directory of the event log cannot be made");
        }
        // The file that is written goes when another one is begun.
        if !is_there(segments.last().expect("there is a file")) {
            self.note_removed();
        }
        let mut kept = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            match segments.get(at + 1) {
                Some(next) if !is_there(segment) => self.report_removed(segment, next.first),
                _ => kept.push(segment.clone()),
            }
        }
        self.shared.segments.store(Arc::new(kept));
    }

    /// Makes the directory and its identity again: the log remains the same one.
    fn restore_directory(&self) -> io::Result<()> {
        let Shared { directory, identity, .. } = &*self.shared;
        if identity::is_written(directory) { Ok(()) } else { identity::write(directory, *identity) }
    }

    fn report_removed(&self, segment: &Segment, until: Position) {
        let lost = until.0.saturating_sub(segment.first.0);
        self.shared.lost.fetch_add(lost, Relaxed);
        let file = segment.path.display();
        tracing::error!(%file, lost, "a file of the event log was removed: its events are lost, and subscribers that replay are told at their place");
    }

    /// Has the shard go on in another file: the one that is written has no name any more.
    fn note_removed(&mut self) {
        if self.failure.is_some() {
            return;
        }
        // That one may have been removed with the others.
        self.make_ahead();
        let error = "the file was removed while it was written".to_owned();
        let failed = FailedSync { file: self.current.0, error: error.clone(), is_removed: true };
        self.shared.failed_sync.store(Some(Arc::new(failed)));
        (self.failure, self.is_removed) = (Some(error), true);
    }

    /// Syncs the file that is written. The system tells a failure once, and may have dropped what it could not write: so no
    /// further sync of the file is believed, and the shard learns that it needs another.
    fn sync_file(&mut self) {
        let (number, file) = &self.current;
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = file.sync_data() {
            tracing::error!(%error, "the event log cannot be synced: what was answered last may be lost if the machine loses power");
            let error = format!("a sync has failed: {error}");
            self.shared.failed_sync.store(Some(Arc::new(FailedSync { file: *number, error: error.clone(), is_removed: false })));
            self.failure = Some(error);
        } else if is_removed(file, &segment::path_of(&self.shared.directory, *number)) {
            self.note_removed();
        }
    }

    /// Makes the next file ahead, so that the shard never waits for a directory.
    fn make_ahead(&self) {
        {
            let mut next_file = next_file::lock(&self.shared.next_file);
            if let NextFile::Ahead { number, file } = &*next_file
                && is_removed(file, &segment::path_of(&self.shared.directory, *number))
            {
                *next_file = NextFile::Absent;
            }
            if !matches!(*next_file, NextFile::Absent) {
                return;
            }
        }
        let number = self.shared.segments.load().last().expect("there is a file").number + 1;
        match segment::create(&self.shared.directory, number) {
            Ok(file) => *next_file::lock(&self.shared.next_file) = NextFile::Ahead { number, file: Arc::new(file) },
            Err(error) => tracing::warn!(%error, "the event log's next file could not be made; the present one grows on"),
        }
    }

    /// Whether everything in front of a file is too old. Where this run has begun the file, time is measured without the
    /// clock of the day, which may be set: events that are young then stay, whatever time they carry. Of a former run there is no other measure.
    fn is_too_old_before(&self, segment: &Segment) -> bool {
        let age_max = self.limits.age_max.max(Duration::from_secs(1));
        match segment.begun {
            Some(begun) => begun.elapsed() > age_max,
            None => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                now.saturating_sub(Duration::from_nanos(segment.prior_ns)) > age_max
            }
        }
    }

    /// Removes the oldest files while there are too many bytes or files, or all of a file's events are too old. The newest one
    /// stays.
    fn retain(&self) {
        let segments = self.shared.segments.load();
        let mut bytes = self.shared.bytes(&segments);
        let mut gone = 0;
        while gone + 1 < segments.len() {
            let is_old = self.is_too_old_before(&segments[gone + 1]);
            if bytes <= self.limits.bytes_max && segments.len() - gone <= SEGMENTS_MAX && !is_old {
                break;
            }
            bytes -= segments[gone].bytes;
            gone += 1;
        }
        if gone == 0 {
            return;
        }
        self.shared.segments.store(Arc::new(segments[gone..].to_vec()));
        for segment in &segments[..gone] {
            if let Err(error) = fs::remove_file(&segment.path) {
                tracing::warn!(file = %segment.path.display(), %error, "a file of the event log that is too old could not be removed");
            }
        }
    }
}

/// Returns true if somebody has removed an open file, so that nobody else can open it any more.
fn is_removed(file: &File, path: &Path) -> bool {
    let Ok(open) = file.metadata() else { return false };
    // Of a file that has a name this is all: it is asked with each sync.
    open.nlink() == 0 && fs::metadata(path).map_or(true, |named| (named.dev(), named.ino()) != (open.dev(), open.ino()))
}
