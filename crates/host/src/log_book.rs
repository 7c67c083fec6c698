//! What the systems log, kept for `GET {base}/mgmt/logs` beside what goes to the console.
//!
//! Whoever logs puts an entry into a bounded list and goes on; a task writes the list into the database once a second, as
//! one operation among the others. So nothing waits for the log, and it survives a restart.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bodkin_arrowhead::{
    log::{LogEntry, LogEntryView, LogLevel, LogQuery},
    page::Page,
};
use bodkin_store::{Store, StoreError};
use tokio::sync::{Notify, Semaphore};

use crate::control;

/// Entries that may wait for the database; further ones are counted and told in their place.
const PENDING_ENTRIES_MAX: usize = 1024;
/// Bytes of an entry's message; the rest is cut off.
const MESSAGE_BYTES_MAX: usize = 4096;
/// What stands behind a message that was cut.
const CUT: &str = " ... (cut)";
/// From the first entry of a batch to its write.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// The longest pause before a database that refuses entries is tried again: each refusal is logged itself.
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(60);
/// Pages of the log that are read at the same time; further readers wait.
const READERS_MAX: usize = 2;

/// Where entries wait, and how many are kept.
#[derive(Debug)]
pub struct LogBook {
    pending: Mutex<Pending>,
    arrived: Notify,
    readers: Semaphore,
}

#[derive(Debug, Default)]
struct Pending {
    entries: Vec<LogEntry>,
    lost: u64,
}

impl Default for LogBook {
    fn default() -> Self {
        Self { pending: Mutex::default(), arrived: Notify::new(), readers: Semaphore::new(READERS_MAX) }
    }
}

impl LogBook {
    /// Takes an entry. Never waits for anything but another entry being put into the list.
    pub fn note(&self, mut entry: LogEntry) {
        cut(&mut entry.message);
        let mut pending = self.lock();
        if pending.entries.len() < PENDING_ENTRIES_MAX {
            pending.entries.push(entry);
        } else {
            pending.lost += 1;
        }
        drop(pending);
        self.arrived.notify_one();
    }

    /// Writes entries as they come, until the task is aborted.
    pub async fn keep(&self, store: &Store, entries_max: u64) {
        let mut pause = BATCH_TIME;
        loop {
            self.arrived.notified().await;
            tokio::time::sleep(pause).await;
            let taken = self.flush(store, entries_max).await;
            pause = if taken { BATCH_TIME } else { (pause * 2).min(REFUSED_PAUSE_MAX) };
        }
    }

    /// Writes what waits, and gives whether the database took it. What it does not take is lost, and that is told by the next
    /// batch it takes.
    pub async fn flush(&self, store: &Store, entries_max: u64) -> bool {
        let (entries, lost) = self.take();
        if entries.is_empty() {
            return true;
        }
        let count = entries.len() as u64;
        let taken = store.write(move |draft| draft.append_log(&entries, entries_max), |_, ()| ()).await.is_ok();
        if !taken {
            self.lock().lost += lost + count;
        }
        taken
    }

    /// What waits to be written.
    pub fn pending(&self) -> Vec<LogEntry> {
        self.lock().entries.clone()
    }

    /// What waits, with a word about what was lost.
    fn take(&self) -> (Vec<LogEntry>, u64) {
        let Pending { mut entries, lost } = std::mem::take(&mut *self.lock());
        if lost > 0 {
            entries.push(LogEntry {
                entry_date: control::now(),
                logger: module_path!().to_owned(),
                level: LogLevel::Warn,
                system: None,
                message: format!("{lost} log entries were lost: they came faster than the database took them"),
            });
        }
        (entries, lost)
    }

    /// Reads a page of what is kept.
    pub async fn read(&self, store: &Store, query: LogQuery) -> Result<Page<LogEntryView>, StoreError> {
        let _place = self.readers.acquire().await.expect("the semaphore is never closed");
        let store = store.clone();
        let read = tokio::task::spawn_blocking(move || store.log(&query)).await;
        read.unwrap_or_else(|_| Err(StoreError::Unavailable("The local cloud is shutting down.".into())))
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // A push or a swap leaves the list whole wherever it is interrupted.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cut(message: &mut String) {
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX - CUT.len()));
        message.push_str(CUT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(message: &str) -> LogEntry {
        LogEntry { entry_date: control::now(), logger: "x".into(), level: LogLevel::Info, system: None, message: message.into() }
    }

    #[test]
    fn too_many_entries_are_counted_and_told() {
        let book = LogBook::default();
        (0..PENDING_ENTRIES_MAX + 7).for_each(|_| book.note(entry("x")));
        let (entries, lost) = book.take();
        assert_eq!((entries.len(), lost), (PENDING_ENTRIES_MAX + 1, 7));
        assert!(entries.last().unwrap().message.starts_with("7 log entries were lost"));
        assert_eq!(book.take(), (Vec::new(), 0));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let book = LogBook::default();
        book.note(entry(&"\u{fc}".repeat(MESSAGE_BYTES_MAX)));
        let message = &book.take().0[0].message;
        assert!(message.len() <= MESSAGE_BYTES_MAX && message.ends_with(CUT), "{}", message.len());
    }
}
