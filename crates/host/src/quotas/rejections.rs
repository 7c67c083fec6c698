//! Counts of what quotas have rejected.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use crate::seldom::Seldom;

/// For how long a rejection is reported as a trouble.
const RECENT: Duration = Duration::from_secs(60);

/// Counts what a quota has rejected.
#[derive(Debug)]
pub struct Rejections {
    total: AtomicU64,
    started: Instant,
    /// Milliseconds from the start to the last one, plus one; 0: there was none.
    last_ms: AtomicU64,
    logged: Seldom,
}

impl Default for Rejections {
    fn default() -> Self {
        Self { total: AtomicU64::new(0), started: Instant::now(), last_ms: AtomicU64::new(0), logged: Seldom::default() }
    }
}

impl Rejections {
    /// Counts one. Returns how many there were since the last log line if another line is due.
    pub fn count(&self) -> Option<u64> {
        self.total.fetch_add(1, Relaxed);
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.last_ms.store(ms + 1, Relaxed);
        self.logged.due()
    }

    /// Rejections since the start.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// True if there was one in the last minute.
    pub fn is_recent(&self) -> bool {
        let last_ms = self.last_ms.load(Relaxed);
        last_ms > 0 && self.started.elapsed() < Duration::from_millis(last_ms) + RECENT
    }
}
