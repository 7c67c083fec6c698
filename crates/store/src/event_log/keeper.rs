//! The log's own thread: syncs, files made ahead, retention.

use std::{
    fs::{self, File},
    sync::{
        Arc,
        atomic::Ordering::*,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant, SystemTime},
};

use super::{
    EventLogLimits, FailedSync, OnSync, Position, SEGMENTS_MAX, SYNC_PERIOD, Shared,
    next_file::{self, Begun, NextFile},
    segment,
    segment::Segment,
};

pub(super) struct Keeper {
    limits: EventLogLimits,
    shared: Arc<Shared>,
    /// The file that is written, and its number.
    current: (u64, Arc<File>),
    /// Why a sync of it has failed.
    failure: Option<String>,
    on_sync: OnSync,
}

impl Keeper {
    pub fn new(limits: EventLogLimits, shared: Arc<Shared>, current: (u64, Arc<File>), on_sync: OnSync) -> Self {
        Self { limits, shared, current, failure: None, on_sync }
    }

    /// Runs until the log is dropped; then syncs a last time.
    pub fn run(mut self, woken: &Receiver<()>) {
        let mut is_over = false;
        while !is_over {
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
        segments.last_mut().expect("there is a file").bytes = former_bytes;
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

    /// Syncs the file that is written. The system tells a failure once, and may have dropped what it could not write: so no
    /// further sync of the file is believed, and the shard learns that it needs another.
    fn sync_file(&mut self) {
        let (number, file) = &self.current;
        if self.failure.is_none()
            && let Err(error) = file.sync_data()
        {
            tracing::error!(%error, "the event log cannot be synced: what was answered last may be lost if the machine loses power");
            let error = format!("a sync has failed: {error}");
            self.shared.failed_sync.store(Some(Arc::new(FailedSync { file: *number, error: error.clone() })));
            self.failure = Some(error);
        }
    }

    /// Makes the next file ahead, so that the shard never waits for a directory.
    fn make_ahead(&self) {
        if !matches!(*next_file::lock(&self.shared.next_file), NextFile::Absent) {
            return;
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
