//! The log's own thread: numbers, chains and writes what waits, syncs it, begins new files, removes the oldest.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant, SystemTime},
};

use bodkin_arrowhead::{
    audit::{Event, Kind},
    utc::UtcTime,
};
use serde_json::Map;

use super::{
    Batch, Head, NotWritten, Queued, Shared,
    recovery::Recovered,
    retention::{AuditLimits, FileState},
    segment::{self, Segment},
};

/// How often what was written is synced when no answer waits for it.
const SYNC_PERIOD: Duration = Duration::from_secs(1);
/// How long a disk that took nothing is left alone before it is tried again.
const RETRY_PERIOD: Duration = Duration::from_secs(1);
/// How often the age of files is looked at.
const RETENTION_PERIOD: Duration = Duration::from_secs(60);
/// Changes whose entries wait for a disk that takes nothing. As no further ones are begun meanwhile, only those that were under way can be so many.
const KEPT_ENTRIES_MAX: usize = 4096;
/// Bytes of lines that are kept in memory until they are synced; a batch that makes as many is synced at once.
const UNSYNCED_BYTES_MAX: usize = 4 << 20;

pub(super) struct Writer {
    shared: Arc<Shared>,
    limits: AuditLimits,
    segments: Vec<Segment>,
    /// The newest file; `None` before the first entry, and behind damage.
    file: Option<File>,
    /// Bytes of it that are synced lines.
    synced_bytes: u64,
    /// The lines that follow in the file. After a sync that has failed they are written again: the system may have dropped them.
    unsynced: Vec<u8>,
    /// The last entry that is in the file.
    head: Head,
    synced_at: Instant,
    retry_at: Option<Instant>,
    /// Entries of changes that were made and could not be written.
    kept: Vec<(UtcTime, Event)>,
    /// How many others could not be written, by kind.
    lost: BTreeMap<&'static str, u64>,
    next_retention: Instant,
}

impl Writer {
    pub fn new(shared: Arc<Shared>, limits: AuditLimits, recovered: Recovered) -> Self {
        let Recovered { segments, file, head, told: _ } = recovered;
        let (file, synced_bytes) = file.map_or((None, 0), |(file, bytes)| (Some(file), bytes));
        Self {
            shared,
            limits,
            segments,
            file,
            synced_bytes,
            unsynced: Vec::new(),
            head,
            synced_at: Instant::now(),
            retry_at: None,
            kept: Vec::new(),
            lost: BTreeMap::new(),
            next_retention: Instant::now(),
        }
    }

    /// Runs until the log is closed and everything that waits is written, or cannot be.
    pub fn run(mut self) {
        while self.turn() {}
        if self.retry_at.is_some() {
            tracing::error!(unsynced_bytes = self.unsynced.len(), kept = self.kept.len(), lost = ?self.lost, "the audit log could not be written to the end");
        }
    }

    /// Writes what waits; gives whether more may come.
    fn turn(&mut self) -> bool {
        let patience = if self.unsynced.is_empty() && self.retry_at.is_none() { RETENTION_PERIOD } else { SYNC_PERIOD };
        let Batch { entries, is_closed } = self.shared.take(patience);
        let is_awaited = entries.iter().any(|entry| entry.written.is_some());
        let is_sync_due = is_awaited || is_closed || self.synced_at.elapsed() >= SYNC_PERIOD;
        self.write(entries, is_sync_due);
        if is_sync_due {
            self.synced_at = Instant::now();
        }
        if Instant::now() >= self.next_retention {
            self.next_retention = Instant::now() + RETENTION_PERIOD;
            self.retain();
        }
        !is_closed
    }

    /// Writes a batch as a whole, or tells those who wait for it why not.
    fn write(&mut self, batch: Vec<Queued>, sync: bool) {
        let is_silent = self.retry_at.is_some_and(|at| Instant::now() < at);
        let is_retry = self.retry_at.is_some();
        if is_silent || (batch.is_empty() && !is_retry && (self.unsynced.is_empty() || !sync)) {
            if is_silent {
                self.set_aside(batch);
            }
            return;
        }
        let (mut head, mut lines) = (self.head, Vec::new());
        for (at, event) in &self.kept {
            head.extend(*at, event, &mut lines);
        }
        if !self.lost.is_empty() {
            head.extend(now(), &gap(&self.lost), &mut lines);
        }
        for entry in &batch {
            head.extend(entry.at, &entry.event, &mut lines);
        }
        match self.append(&lines, sync || is_retry) {
            Ok(()) => {
                self.head = head;
                self.resume();
                batch.into_iter().for_each(|entry| entry.tell(Ok(())));
            }
            Err(error) => {
                self.suspend(&error);
                self.set_aside(batch);
            }
        }
    }

    /// Appends whole lines, all or none of them, to a new file where the newest one is full.
    fn append(&mut self, lines: &[u8], sync: bool) -> io::Result<()> {
        if self.file.is_none() || self.file_bytes() >= self.limits.segment_bytes() {
            self.extend_file(&[], true)?;
            self.begin_segment()?;
        }
        self.extend_file(lines, sync || self.unsynced.len() + lines.len() >= UNSYNCED_BYTES_MAX)
    }

    /// Bytes of the newest file that are whole lines.
    fn file_bytes(&self) -> u64 {
        self.synced_bytes + self.unsynced.len() as u64
    }

    /// Appends to the newest file. After a failure the lines that are not synced are written again, so that a sync speaks for them too.
    fn extend_file(&mut self, lines: &[u8], sync: bool) -> io::Result<()> {
        let (file_bytes, before) = (self.file_bytes(), self.unsynced.len());
        let Some(file) = &self.file else { return Ok(()) };
        let from = match self.retry_at {
            // Cuts off what a failed write has left, so that it does not follow the next lines.
            Some(_) => file.set_len(file_bytes).map(|()| 0)?,
            None => before,
        };
        self.unsynced.extend_from_slice(lines);
        let written = file.write_all_at(&self.unsynced[from..], self.synced_bytes + from as u64);
        if let Err(error) = written.and_then(|()| if sync { file.sync_data() } else { Ok(()) }) {
            self.unsynced.truncate(before);
            // What was written of them is no entry. If even that cannot be undone, the next try or the next start takes it out.
            if let Err(error) = file.set_len(file_bytes) {
                tracing::error!(%error, "the audit log's last line is torn");
            }
            return Err(error);
        }
        if sync {
            self.synced_bytes = self.file_bytes();
            self.unsynced.clear();
            self.shared.syncs.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        let first = self.head.number.saturating_add(1);
        let (path, file) = segment::create(&self.shared.directory, first)?;
        if let Some(former) = self.segments.last_mut() {
            former.bytes = self.synced_bytes;
        }
        self.segments.push(Segment { first, path, bytes: 0, begun_ns: now().unix_nanos(), previous: Some(self.head.hash) });
        (self.file, self.synced_bytes) = (Some(file), 0);
        // A new file is when there may be one too many.
        self.next_retention = Instant::now();
        Ok(())
    }

    /// Keeps the entries of changes until the disk takes them, and counts the others.
    fn set_aside(&mut self, batch: Vec<Queued>) {
        let why = self.shared.suspended.load().as_deref().cloned().unwrap_or_default();
        for Queued { at, event, written } in batch {
            match written {
                Some(written) if self.kept.len() < KEPT_ENTRIES_MAX => {
                    self.kept.push((at, event));
                    // Whoever has asked and gone needs no answer.
                    drop(written.send(Err(NotWritten(why.clone()))));
                }
                written => {
                    *self.lost.entry(event.kind.as_str()).or_default() += 1;
                    self.shared.lost.fetch_add(1, Relaxed);
                    written.into_iter().for_each(|written| drop(written.send(Err(NotWritten(why.clone())))));
                }
            }
        }
    }

    fn suspend(&mut self, error: &io::Error) {
        if self.retry_at.is_none() {
            tracing::error!(%error, "the audit log cannot be written: changes by management are refused until it can. Make room on the disk");
        }
        self.retry_at = Some(Instant::now() + RETRY_PERIOD);
        self.shared.suspended.store(Some(Arc::new(error.to_string())));
    }

    fn resume(&mut self) {
        self.kept.clear();
        self.lost.clear();
        if self.unsynced.is_empty() {
            *self.shared.head.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = self.head;
        }
        if self.retry_at.take().is_some() {
            self.shared.suspended.store(None);
            tracing::warn!(lost = self.shared.lost.load(Relaxed), "the audit log is written again; so many entries in all are not in it");
        }
    }

    /// Removes the oldest files while there are too many bytes or all of a file is too old. Each removal is told by an entry,
    /// which names the last line that goes, before it is done.
    fn retain(&mut self) {
        while self.retry_at.is_none() {
            let newest_bytes = self.file_bytes();
            if let Some(newest) = self.segments.last_mut() {
                newest.bytes = newest_bytes;
            }
            let states: Vec<FileState> = self.segments.iter().map(Segment::state).collect();
            if self.limits.superfluous(&states, now().unix_nanos()) == 0 {
                return;
            }
            let next = &self.segments[1];
            let event = Event::own(Kind::Removed, &format!("entries up to {}", next.first - 1)).with("through", next.first - 1);
            let event = event.with("hash", next.previous.unwrap_or_default().to_string());
            self.write(vec![Queued { at: now(), event, written: None }], true);
            if self.retry_at.is_some() {
                return;
            }
            let oldest = self.segments.remove(0);
            if let Err(error) = fs::remove_file(&oldest.path) {
                tracing::warn!(file = %oldest.path.display(), %error, "a file of the audit log that is too old could not be removed");
            }
        }
    }
}

/// Tells what could not be written.
fn gap(lost: &BTreeMap<&'static str, u64>) -> Event {
    let counts: Map<_, _> = lost.iter().map(|(kind, count)| ((*kind).to_owned(), (*count).into())).collect();
    Event::own(Kind::Gap, "entries that could not be written").with("lost", counts)
}

fn now() -> UtcTime {
    UtcTime::from_system_time(SystemTime::now()).expect("the clock shows a year from 1970 to 9999")
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, path::Path, sync::mpsc, thread};

    use bodkin_arrowhead::audit::AuditQuery;
    use tokio::sync::oneshot::{self, Receiver};

    use super::*;
    use crate::audit::{AuditLog, AuditReader, recovery, verify};

    /// Longest wait for what must happen at once.
    const PATIENCE: Duration = Duration::from_secs(20);
    const LIMITS: AuditLimits = AuditLimits { bytes_max: 1 << 30, age_max: Duration::from_secs(3600) };

    fn writer(directory: &Path) -> (Writer, AuditLog) {
        // No test waits for entries to gather.
        let gather_time = Duration::from_secs(3600);
        let shared = Arc::new(Shared { gather_time, ..Shared::new(directory, Vec::new(), Head::default()) });
        let recovered = recovery::recover(directory, None, now().unix_nanos()).unwrap();
        (Writer::new(shared.clone(), LIMITS, recovered), AuditLog { shared })
    }

    fn queued(kind: Kind, what: &str) -> (Queued, Receiver<Result<(), NotWritten>>) {
        let (written, told) = oneshot::channel();
        (Queued { at: now(), event: Event::own(kind, what), written: (kind == Kind::Change).then_some(written) }, told)
    }

    fn full_disk() -> File {
        OpenOptions::new().append(true).open("/dev/full").unwrap()
    }

    #[test]
    fn who_waits_alone_pays_a_sync_and_no_time() {
        const CHANGES: u64 = 5;
        let place = tempfile::tempdir().unwrap();
        let (mut writer, log) = writer(place.path());
        let (done, turns) = mpsc::channel();
        thread::spawn(move || {
            for _ in 0..CHANGES {
                let (change, mut told) = queued(Kind::Change, "alone");
                log.shared.put(change);
                writer.turn();
                done.send((log.syncs(), told.try_recv())).unwrap();
            }
        });
        for syncs in 1..=CHANGES {
            let turn = turns.recv_timeout(PATIENCE).expect("nothing else is waited for");
            assert_eq!(turn, (syncs, Ok(Ok(()))));
        }
    }

    #[test]
    fn all_who_wait_share_a_sync() {
        let place = tempfile::tempdir().unwrap();
        let (mut writer, log) = writer(place.path());
        let (noted, _) = queued(Kind::Orchestration, "noted");
        log.shared.put(noted);
        let wait = |_| {
            let (change, told) = queued(Kind::Change, "together");
            log.shared.put(change);
            told
        };
        let waiting: Vec<_> = (0..100).map(wait).collect();
        writer.turn();
        assert_eq!((log.syncs(), log.head().number), (1, 101));
        assert!(waiting.into_iter().all(|mut told| told.try_recv() == Ok(Ok(()))));
    }

    #[test]
    fn a_full_disk_refuses_changes_counts_the_rest_and_loses_no_change() {
        let place = tempfile::tempdir().unwrap();
        let (mut writer, log) = writer(place.path());
        let (before, mut told) = queued(Kind::Change, "before");
        writer.write(vec![before], true);
        assert_eq!((told.try_recv(), log.check()), (Ok(Ok(())), Ok(())));

        let good = writer.file.replace(full_disk());
        let (made, mut told) = queued(Kind::Change, "made");
        let (answered, _) = queued(Kind::Orchestration, "answered");
        writer.write(vec![made, answered], true);
        assert!(told.try_recv().unwrap().unwrap_err().to_string().contains("No space"), "whoever waits is told why");
        assert!(log.check().is_err());
        let (silent, _) = queued(Kind::Orchestration, "silent");
        writer.write(vec![silent], false);
        assert_eq!(log.lost(), 2);

        writer.file = good;
        writer.retry_at = Some(Instant::now());
        writer.write(Vec::new(), true);
        assert_eq!(log.check(), Ok(()));
        let read = AuditReader::new(place.path()).first(&AuditQuery::default(), 10).unwrap();
        let entries: Vec<_> = read.iter().map(|read| (read.entry.event.kind, read.entry.event.what.as_str())).collect();
        assert_eq!(entries, [(Kind::Change, "before"), (Kind::Change, "made"), (Kind::Gap, "entries that could not be written")]);
        assert_eq!(read[2].entry.event.detail["lost"]["orchestration"], 2);
        let found = verify(place.path(), None, Some(log.head())).unwrap();
        assert_eq!((found.wrong, found.lost, found.entries), (None, 2, 3));
    }

    /// A file that accepts every write, keeps nothing, and fails every sync: a system drops pages like this after a disk error.
    fn forgetful_disk() -> File {
        OpenOptions::new().write(true).open("/dev/null").unwrap()
    }

    #[test]
    fn entries_before_a_failed_sync_are_written_again() {
        let place = tempfile::tempdir().unwrap();
        let (mut writer, log) = writer(place.path());
        writer.write(vec![queued(Kind::Change, "before").0], true);

        let good = writer.file.replace(forgetful_disk());
        writer.write(vec![queued(Kind::Orchestration, "noted").0], false);
        writer.write(Vec::new(), true);
        assert!(log.check().is_err());
        assert_eq!(log.head().number, 1);

        good.as_ref().unwrap().write_all_at(&[b'x'; 4096], writer.file_bytes()).unwrap();
        writer.file = good;
        writer.retry_at = Some(Instant::now());
        writer.write(vec![queued(Kind::Change, "after").0], true);
        assert_eq!((log.check(), log.lost()), (Ok(()), 0));
        let found = verify(place.path(), None, Some(log.head())).unwrap();
        assert_eq!((found.wrong, found.entries), (None, 3));
    }

    #[test]
    fn new_file_waits_for_entries_before_a_failed_sync() {
        let place = tempfile::tempdir().unwrap();
        let (mut writer, log) = writer(place.path());
        writer.limits.bytes_max = 0;
        let (mut noted, _) = queued(Kind::Orchestration, "noted");
        noted.event = noted.event.with("long", "x".repeat(usize::try_from(writer.limits.segment_bytes()).unwrap()));
        writer.write(vec![queued(Kind::Change, "before").0], true);

        let good = writer.file.replace(forgetful_disk());
        writer.write(vec![noted], false);
        writer.write(vec![queued(Kind::Change, "after").0], true);
        assert!(log.check().is_err());

        writer.file = good;
        writer.retry_at = Some(Instant::now());
        writer.write(Vec::new(), true);
        let found = verify(place.path(), None, Some(log.head())).unwrap();
        assert_eq!((found.wrong, found.entries, found.files), (None, 3, 2));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_made_later() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        let (mut writer, log) = writer(&directory);
        fs::remove_dir(&directory).unwrap();
        let (made, mut told) = queued(Kind::Change, "made");
        writer.write(vec![made], true);
        assert!(told.try_recv().unwrap().is_err() && log.check().is_err());
        fs::create_dir(&directory).unwrap();
        writer.retry_at = Some(Instant::now());
        writer.write(Vec::new(), true);
        assert_eq!(verify(&directory, None, Some(log.head())).unwrap().entries, 1);
    }

    #[test]
    fn the_head_is_what_is_synced() {
        let place = tempfile::tempdir().unwrap();
        let (mut writer, log) = writer(place.path());
        let (noted, _) = queued(Kind::Orchestration, "noted");
        writer.write(vec![noted], false);
        assert_eq!(log.head(), Head::default());
        writer.write(Vec::new(), true);
        assert_eq!(log.head().number, 1);
    }

    #[test]
    fn a_file_goes_when_all_in_it_is_too_old() {
        let place = tempfile::tempdir().unwrap();
        let (mut writer, log) = writer(place.path());
        let old = UtcTime::from_unix_seconds(1_000_000);
        writer.write(vec![Queued { at: old, event: Event::own(Kind::Stop, "old"), written: None }], true);
        writer.synced_bytes = LIMITS.segment_bytes();
        let (next, _) = queued(Kind::Orchestration, "next");
        writer.write(vec![next], true);
        writer.segments[0].begun_ns = old.unix_nanos();
        writer.retain();
        assert_eq!(writer.segments.len(), 2, "the second file is young");
        writer.segments[1].begun_ns = old.unix_nanos();
        writer.retain();
        assert_eq!((writer.segments.len(), writer.segments[0].first), (1, 2));
        assert_eq!(verify(place.path(), None, Some(log.head())).unwrap().wrong, None);
    }
}
