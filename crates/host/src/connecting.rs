//! The first seconds of a connection, in which not being connected is no trouble.
//!
//! `bodkin status` says "connecting" meanwhile. The metrics say 0 from the start; the alerts wait for at least as long.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Maximum time of the first connection: as the shortest `for` of the alerts on connections.
const CONNECTING_MAX: Duration = Duration::from_secs(10);

/// Whether the first connection of a part is still being made.
#[derive(Debug)]
pub struct Connecting {
    /// When the first attempt began; `None` after the first connection.
    begun: Mutex<Option<Instant>>,
}

impl Default for Connecting {
    fn default() -> Self {
        Self { begun: Mutex::new(Some(Instant::now())) }
    }
}

impl Connecting {
    /// Begins to connect, for the first time or after a pause in which no connection was wanted.
    pub fn begin(&self) {
        self.set(Some(Instant::now()));
    }

    /// Records that a connection is open. Its end is a trouble at once.
    pub fn connected(&self) {
        self.set(None);
    }

    /// Returns true if no connection was open yet and the first attempt is recent.
    pub fn is_recent(&self) -> bool {
        self.is_recent_at(Instant::now())
    }

    fn is_recent_at(&self, now: Instant) -> bool {
        let begun = *self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.is_some_and(|begun| now.saturating_duration_since(begun) < CONNECTING_MAX)
    }

    fn set(&self, begun: Option<Instant>) {
        // An assignment leaves the value whole.
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = begun;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connecting_ends_with_connection_or_after_limit() {
        let connecting = Connecting::default();
        let later = Instant::now() + CONNECTING_MAX;
        assert!(connecting.is_recent() && !connecting.is_recent_at(later));
        connecting.connected();
        assert!(!connecting.is_recent(), "a connection that ends is a trouble at once");
        connecting.begin();
        assert!(connecting.is_recent());
    }
}
