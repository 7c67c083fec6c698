//! The machine's own clock reading, so that a test can build any time.

use std::time::Duration;

/// Time since the host's start, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// Never: a deadline that nothing misses, a timer that does not ring.
    pub const NEVER: Self = Self(u64::MAX);

    /// Takes the host's reading.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The host's reading.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it was not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Later by `duration`.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Later by so many nanoseconds.
    pub const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// Earlier by so many nanoseconds.
    pub const fn minus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_sub(nanos))
    }
}
