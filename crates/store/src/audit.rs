//! The audit log: who did what, and who was given what, in files that are only appended to.
//!
//! Every line is an entry and names the hash of the line before it, so that none can be changed, removed or put in unnoticed
//! ([`mod@verify`]). Whoever has something to tell puts it into a bounded queue; the thread `audit` numbers, chains and writes
//! what waits, and syncs it once a second and whenever an answer waits for it. A disk that takes nothing more suspends the log, which is told:
//! entries of changes wait for it, others are counted, and whoever is about to make a change asks [`AuditLog::check`] first.
//! The last entry is noted in the database too, so that a missing end shows.

mod chain;
mod checkpoint;
mod reader;
mod recovery;
mod retention;
mod segment;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use bodkin_arrowhead::{
    audit::{Event, Kind},
    utc::UtcTime,
};
use tokio::sync::{Semaphore, oneshot};

pub(crate) use self::checkpoint::{LEDGER_MIGRATION, MIGRATION, OWN_TABLES};
use self::writer::Writer;
pub use self::{
    chain::{Fault, Head},
    checkpoint::checkpoint_of,
    reader::{AuditCursor, AuditReader, ReadLine},
    retention::AuditLimits,
    verify::{Place, Verification, verify},
};

/// Entries that may wait to be written; whoever brings one more waits for a place.
pub const QUEUE_ENTRIES_MAX: usize = 4096;
/// How long entries that nobody waits for are gathered before they are written.
const GATHER_TIME: Duration = Duration::from_millis(50);

/// Why an entry is not in the log (yet).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit log cannot be written: {0}")]
pub struct NotWritten(String);

/// The handle everybody holds.
#[derive(Clone, Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
}

/// The thread that writes. It ends when this is closed, or dropped: then without an entry that tells of it.
#[derive(Debug)]
pub struct AuditThread {
    log: AuditLog,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    pending: Mutex<Pending>,
    arrived: Condvar,
    /// As many permits as entries have room.
    places: Semaphore,
    /// The last entry that is synced.
    head: Mutex<Head>,
    /// Why nothing is written, while it is so.
    suspended: ArcSwapOption<String>,
    /// Entries that could not be written.
    lost: AtomicU64,
    /// Times that entries were synced.
    syncs: AtomicU64,
    /// [`GATHER_TIME`]
    gather_time: Duration,
}

#[derive(Debug, Default)]
struct Pending {
    entries: Vec<Queued>,
    /// Whether somebody waits for one of them.
    is_awaited: bool,
    is_closed: bool,
}

/// An entry on its way into the log.
#[derive(Debug)]
struct Queued {
    at: UtcTime,
    event: Event,
    /// Told when it is synced, or why it is not.
    written: Option<oneshot::Sender<Result<(), NotWritten>>>,
}

impl Queued {
    fn tell(self, result: Result<(), NotWritten>) {
        // Whoever has asked and gone needs no answer.
        self.written.into_iter().for_each(|written| drop(written.send(result.clone())));
    }
}

/// What is to be written next.
struct Batch {
    entries: Vec<Queued>,
    is_closed: bool,
}

impl AuditLog {
    /// Opens (or makes) the log in `directory`, which the caller has locked, and tells of the start.
    ///
    /// `checkpoint` is the last entry that was noted elsewhere; if it is not there any more, an entry says so.
    pub fn open(
        directory: &Path,
        limits: AuditLimits,
        checkpoint: Option<Head>,
        now: UtcTime,
        start: Event,
    ) -> io::Result<(Self, AuditThread)> {
        let mut recovered = recovery::recover(directory, checkpoint, now.unix_nanos())?;
        let told = std::mem::take(&mut recovered.told);
        for event in &told {
            let is_grave = matches!(event.kind, Kind::Damaged | Kind::Truncated);
            match is_grave {
                true => tracing::error!(what = event.what, "the audit log is not as it was left; `bodkin audit verify` tells more"),
                false => tracing::warn!("the audit log's last line was torn; the log goes on behind the one before"),
            }
        }
        let entries = told.into_iter().chain([start]).map(|event| Queued { at: now, event, written: None }).collect::<Vec<_>>();
        let shared = Arc::new(Shared::new(directory, entries, recovered.head));
        let writer = Writer::new(shared.clone(), limits, recovered);
        let thread = std::thread::Builder::new().name("audit".into()).spawn(move || writer.run())?;
        let log = Self { shared };
        Ok((log.clone(), AuditThread { log, thread: Some(thread) }))
    }

    /// Puts an entry into the queue; waits for nothing but a place in it.
    pub async fn note(&self, at: UtcTime, event: Event) {
        self.put(Queued { at, event, written: None }).await;
    }

    /// Puts an entry into the queue and waits until it is on disk. If it cannot be written now, it is kept to be written later.
    pub async fn record(&self, at: UtcTime, event: Event) -> Result<(), NotWritten> {
        let (written, told) = oneshot::channel();
        self.put(Queued { at, event, written: Some(written) }).await;
        told.await.unwrap_or_else(|_| Err(NotWritten("the local cloud is shutting down".into())))
    }

    /// Whether entries can be written, as far as is known.
    pub fn check(&self) -> Result<(), NotWritten> {
        self.shared.suspended.load().as_deref().map_or(Ok(()), |why| Err(NotWritten(why.clone())))
    }

    /// The last entry that is on disk.
    pub fn head(&self) -> Head {
        *self.shared.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entries that could not be written since the start.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Relaxed)
    }

    /// How often entries were synced since the start: once for all that waited when it began.
    pub fn syncs(&self) -> u64 {
        self.shared.syncs.load(Relaxed)
    }

    /// Reads what is in the files.
    pub fn reader(&self) -> AuditReader {
        AuditReader::new(&self.shared.directory)
    }

    async fn put(&self, entry: Queued) {
        let place = self.shared.places.acquire().await.expect("the semaphore is never closed");
        // The writer gives it back when it takes the entry.
        place.forget();
        self.shared.put(entry);
    }
}

impl AuditThread {
    /// Writes what waits and a last entry, and ends. What is put into the queue afterwards is not written.
    pub fn close(mut self, now: UtcTime, stop: Event) -> Head {
        self.end(Some(Queued { at: now, event: stop, written: None }));
        self.log.head()
    }

    fn end(&mut self, last: Option<Queued>) {
        let Some(thread) = self.thread.take() else { return };
        self.log.shared.close(last);
        if thread.join().is_err() {
            tracing::error!("the audit log's thread had stopped before");
        }
    }
}

impl Drop for AuditThread {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Shared {
    fn new(directory: &Path, entries: Vec<Queued>, head: Head) -> Self {
        Self {
            directory: directory.to_owned(),
            places: Semaphore::new(QUEUE_ENTRIES_MAX - entries.len()),
            pending: Mutex::new(Pending { entries, ..Pending::default() }),
            arrived: Condvar::new(),
            head: Mutex::new(head),
            suspended: ArcSwapOption::empty(),
            lost: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            gather_time: GATHER_TIME,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // A push or a swap leaves the list whole wherever it is interrupted.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, entry: Queued) {
        let mut pending = self.lock();
        if pending.is_closed {
            // Whoever waits for it is told so.
            return;
        }
        let is_first = pending.entries.is_empty();
        let becomes_awaited = !pending.is_awaited && entry.written.is_some();
        pending.is_awaited |= becomes_awaited;
        pending.entries.push(entry);
        let is_half_full = pending.entries.len() == QUEUE_ENTRIES_MAX / 2;
        drop(pending);
        // In between nobody needs the writer: it is awake, or will be.
        if is_first || becomes_awaited || is_half_full {
            self.arrived.notify_one();
        }
    }

    fn close(&self, last: Option<Queued>) {
        let mut pending = self.lock();
        pending.entries.extend(last);
        pending.is_closed = true;
        drop(pending);
        self.arrived.notify_one();
    }

    /// Waits until it is enough, or until the time is over.
    fn wait<'p>(&self, pending: MutexGuard<'p, Pending>, until: Instant, is_enough: &dyn Fn(&Pending) -> bool) -> MutexGuard<'p, Pending> {
        let left = until.saturating_duration_since(Instant::now());
        let waited = self.arrived.wait_timeout_while(pending, left, |pending| !is_enough(pending));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// What waits: at once if an answer waits for it, else when it has gathered; nothing if nothing comes in `patience`.
    fn take(&self, patience: Duration) -> Batch {
        let something = |pending: &Pending| pending.is_closed || !pending.entries.is_empty();
        let enough = |pending: &Pending| pending.is_closed || pending.is_awaited || pending.entries.len() >= QUEUE_ENTRIES_MAX / 2;
        let mut pending = self.wait(self.lock(), Instant::now() + patience, &something);
        if something(&pending) {
            pending = self.wait(pending, Instant::now() + self.gather_time, &enough);
        }
        let is_closed = pending.is_closed;
        pending.is_awaited = false;
        let entries = std::mem::take(&mut pending.entries);
        drop(pending);
        self.places.add_permits(entries.len());
        Batch { entries, is_closed }
    }
}
