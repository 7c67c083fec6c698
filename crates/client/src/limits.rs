//! How long a call may wait and how much it may receive.

use std::time::Duration;

/// Limits of every call. [`Limits::default`] suits a local network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time for name resolution, the TCP connection and the TLS handshake; 5 s by default.
    pub connect_timeout: Duration,
    /// Longest time from the first byte sent to the last one received; 30 s by default, as long as core systems wait for
    /// each other. An event stream's answer is its head only.
    pub answer_timeout: Duration,
    /// Longest time in which further attempts of a call begin to find the node of a reliable pair that leads; 10 s by default.
    pub failover_timeout: Duration,
    /// Longest body of an answer, in bytes; 256 MiB by default, which lists some 400,000 services.
    pub answer_bytes_max: usize,
    /// Longest line of an event stream, and most data of one of its events, in bytes; 1 MiB by default.
    pub event_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(30),
            failover_timeout: Duration::from_secs(10),
            answer_bytes_max: 256 << 20,
            event_bytes_max: 1 << 20,
        }
    }
}
