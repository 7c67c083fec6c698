//! When a run begins, when it is measured, when the crash comes, when it ends. All times are of CLOCK_MONOTONIC, which the processes share.

use serde::{Deserialize, Serialize};

/// How long a latency counts as one of the fail-over, behind the crash.
pub const AFTER_CRASH_NS: u64 = 2_000_000_000;

/// The times of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Phases count from here.
    pub start_ns: u64,
    /// Events that are due from here on count.
    pub measured_from_ns: u64,
    /// Events that are due from here on are not sent any more.
    pub end_ns: u64,
    /// When the Primary is killed.
    pub crash_ns: Option<u64>,
}

impl Window {
    /// The sequences of a proxy's events that count.
    pub fn measured(&self, proxy: &super::workload::Proxy) -> std::ops::Range<u32> {
        proxy.due(self.measured_from_ns - self.start_ns, self.end_ns - self.start_ns)
    }

    /// Whether what arrives now arrives behind the crash, and soon behind it.
    pub fn is_after_crash(&self, now_ns: u64) -> bool {
        self.crash_ns.is_some_and(|crash_ns| (crash_ns..crash_ns + AFTER_CRASH_NS).contains(&now_ns))
    }
}
