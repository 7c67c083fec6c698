//! Changes that a database does not take: why the last one was refused, how many commits were, and a log message whose rate is limited.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;

/// Between two log messages about refused commits.
const LOG_PERIOD: Duration = Duration::from_secs(10);
/// How long a refusal is reported at least. On a full disk a small commit may be taken between refused ones.
const REPORT_TIME_MIN: Duration = Duration::from_secs(2);

/// Refused commits of one database, as its writer notes them and everyone reads them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Why and when the last commit was refused; nothing since one was taken.
    last: ArcSwapOption<Refusal>,
    /// Refused commits since the start.
    count: AtomicU64,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Refusal {
    why: Arc<String>,
    at: Instant,
}

/// The last log message, and the commits that were refused after it.
#[derive(Debug, Default)]
struct Log {
    at: Option<Instant>,
    unlogged: u64,
}

impl Refusals {
    /// Notes that a commit with this number of operations was refused.
    pub fn note(&self, why: &str, operations: usize) {
        self.0.count.fetch_add(1, Relaxed);
        let now = Instant::now();
        self.0.last.store(Some(Arc::new(Refusal { why: Arc::new(why.to_owned()), at: now })));
        if let Some(commits) = self.log().record(now) {
            tracing::error!(error = why, operations, commits, "the database did not take a commit, and its changes are answered 503");
        }
    }

    /// Notes that a commit was taken: a refusal is over, unless it was just now.
    pub fn end(&self) {
        self.end_at(Instant::now());
    }

    fn end_at(&self, now: Instant) {
        let is_over = |refusal: &Refusal| now.saturating_duration_since(refusal.at) >= REPORT_TIME_MIN;
        if self.0.last.load().as_deref().is_some_and(is_over) {
            self.0.last.store(None);
            *self.log() = Log::default();
            tracing::info!("the database takes changes again");
        }
    }

    /// Returns why the last commit was refused, or `None` since one was taken.
    pub fn reason(&self) -> Option<Arc<String>> {
        self.0.last.load().as_deref().map(|refusal| refusal.why.clone())
    }

    /// Returns the number of refused commits since the start.
    pub fn count(&self) -> u64 {
        self.0.count.load(Relaxed)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// Records a refused commit. Returns the number of commits that a message stands for, if one is due.
    fn record(&mut self, now: Instant) -> Option<u64> {
        self.unlogged += 1;
        if self.at.is_some_and(|at| now.saturating_duration_since(at) < LOG_PERIOD) {
            return None;
        }
        self.at = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_ends_when_a_commit_is_taken() {
        let refusals = Refusals::default();
        refusals.note("no space left", 3);
        refusals.note("disk full", 1);
        assert_eq!((refusals.reason().as_deref().map(String::as_str), refusals.count()), (Some("disk full"), 2));
        refusals.end();
        assert!(refusals.reason().is_some(), "a commit between refused ones does not end the report");
        refusals.end_at(Instant::now() + REPORT_TIME_MIN);
        assert_eq!((refusals.reason(), refusals.count()), (None, 2));
    }

    #[test]
    fn log_of_refusals_is_limited_and_counts_all() {
        let (mut log, begin) = (Log::default(), Instant::now());
        assert_eq!(log.record(begin), Some(1));
        for _ in 0..99 {
            assert_eq!(log.record(begin + LOG_PERIOD / 2), None);
        }
        assert_eq!(log.record(begin + LOG_PERIOD), Some(100));
    }
}
