//! One process at a time changes a trust directory.

use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{directory::DirectoryError, file::FileError};

/// How long another process is waited for: a change takes milliseconds.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Between two attempts.
const WAIT: Duration = Duration::from_millis(10);

/// A held lock; released when it is dropped, and by the system when the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a directory, or says that it is taken.
    pub fn take(directory: &Path) -> Result<Self, DirectoryError> {
        Self::take_within(directory, WAIT_MAX)
    }

    fn take_within(directory: &Path, wait_max: Duration) -> Result<Self, DirectoryError> {
        let path = directory.join("lock");
        let system = FileError::system(&path);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(&system)?;
        let deadline = Instant::now() + wait_max;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(WAIT),
                Err(TryLockError::WouldBlock) => return Err(DirectoryError::Locked(directory.to_owned())),
                Err(TryLockError::Error(error)) => return Err(system(error).into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn one_has_it_at_a_time() {
        let place = TempDir::new().unwrap();
        let held = Lock::take(place.path()).unwrap();
        let refused = Lock::take_within(place.path(), Duration::ZERO);
        assert!(matches!(refused, Err(DirectoryError::Locked(path)) if path == place.path()));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| Lock::take(place.path()).is_ok());
            drop(held);
            assert!(waiting.join().unwrap(), "who waits gets it");
        });
    }
}
