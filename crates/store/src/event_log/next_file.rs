//! The file behind the one that is written, on its way from the keeper, which makes it, to the shard, which begins it, and back.
//!
//! It is in one place all the time, so that neither a full queue nor a failed write can lose it.

use std::{
    fs::File,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::Position;

/// How far the next file is.
#[derive(Debug, Default)]
pub(super) enum NextFile {
    /// The keeper is to make it.
    #[default]
    Absent,
    /// It is empty, and the shard may begin it.
    Ahead { number: u64, file: Arc<File> },
    /// The shard writes it, and the keeper is to take note.
    Begun(Begun),
}

/// A file that the shard has begun.
#[derive(Debug)]
pub(super) struct Begun {
    pub number: u64,
    pub file: Arc<File>,
    /// Position of its first record.
    pub first: Position,
    /// The largest time of an event in front of it, in nanoseconds since 1970.
    pub prior_ns: u64,
    /// Bytes of the file that was written before.
    pub former_bytes: u64,
}

/// For the keeper, which may wait; the shard tries only.
pub(super) fn lock(next_file: &Mutex<NextFile>) -> MutexGuard<'_, NextFile> {
    // An assignment leaves it whole wherever it is interrupted.
    next_file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the begun file out, if there is one.
pub(super) fn take_begun(next_file: &Mutex<NextFile>) -> Option<Begun> {
    let mut next_file = lock(next_file);
    match std::mem::take(&mut *next_file) {
        NextFile::Begun(begun) => Some(begun),
        other => {
            *next_file = other;
            None
        }
    }
}
