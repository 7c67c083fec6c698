//! The clock of the machines, and that of creation times.

use std::time::{Instant as Reading, SystemTime};

use bodkin_broker::Instant;

/// Both clocks of this host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Reading,
}

impl Clock {
    pub fn start() -> Self {
        Self { start: Reading::now() }
    }

    /// Since the start: what waits and timers are counted in.
    pub fn now(&self) -> Instant {
        Instant::default().plus(self.start.elapsed())
    }
}

/// Nanoseconds since 1970 (UTC); 0 on a host whose clock stands before that.
pub(super) fn utc_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}
