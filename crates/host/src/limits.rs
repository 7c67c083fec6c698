//! The limits of connections, requests and queues, with their defaults.

use std::time::Duration;

use bodkin_broker::DeliveryPolicy;
use bodkin_zmtp::SubscriptionLimits;

/// What one ZMTP subscriber may ask for; beyond, its link is closed with the reason.
pub const LINK_PREFIXES: SubscriptionLimits = SubscriptionLimits { prefix_bytes_max: 255, prefixes_max: 1000 };

/// What a client may take of the server. Reaching a limit is always told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections of each of three groups: the ports of the control plane, the Event Handler's port, the ZMTP port. One more is
    /// answered 503, or closed. [`FittedLimits`](crate::quotas::FittedLimits) lowers it where the process can open too few files.
    pub connections_max: usize,
    /// Open connections of one client in each of these groups: of a certificate, or of an address without one. 0: half of them.
    pub client_connections_max: usize,
    /// Systems, services and subscriptions that a system registers itself; one more is answered 503.
    pub owner_rows_max: u64,
    /// Bytes of these rows.
    pub owner_bytes_max: u64,
    /// For a client's part of a TLS handshake; then the connection is closed.
    pub handshake_timeout: Duration,
    /// From a request's first byte to the end of its headers; then 408.
    pub header_timeout: Duration,
    /// From the end of the headers' time to the end of the body; then 408.
    pub body_timeout: Duration,
    /// Without a request on an open connection; then it is closed.
    pub idle_timeout: Duration,
    /// For an answer to be taken by the client; then the connection is closed.
    pub send_timeout: Duration,
    /// For a stream's client to take something of what is queued; then the stream is closed.
    pub stream_stall_timeout: Duration,
    /// Without anything sent on an event stream; then a heartbeat is.
    pub heartbeat: Duration,
    /// Body of a request; then 413.
    pub body_bytes_max: usize,
    /// Body of a request to the Event Handler; then 413.
    pub event_bytes_max: usize,
    /// Event streams and topics that ZMTP subscribers hear, and as many subscriptions by push; one more is answered 503.
    pub subscriptions_max: usize,
    /// Event types in use. A new one replaces one without subscriptions, and is answered 503 if there is none.
    pub event_types_max: usize,
    /// Bytes queued for a subscriber. Beyond, a stream loses events, counted and told; a pushed subscriber falls behind, and
    /// loses as a stream does where there is no event log.
    pub subscriber_queue_bytes_max: u64,
    /// For a subscriber to take a pushed event.
    pub push_timeout: Duration,
    /// For each step of a dialogue with another cloud's gatekeeper; then whoever has asked is answered 504.
    pub neighbor_timeout: Duration,
    /// Without a connection in a tunnel; then its session is closed. With one, what the other gateway may be silent for is half of it.
    pub tunnel_idle_timeout: Duration,
    /// How often and how long a subscriber that does not take pushed events is tried.
    pub delivery: DeliveryPolicy,
    /// Rows of dead letters; one more, and the oldest goes, told. A backlog that is given up is one row.
    pub dead_letters_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 16_000,
            client_connections_max: 0,
            owner_rows_max: 20_000,
            owner_bytes_max: 8 * 1024 * 1024,
            handshake_timeout: Duration::from_secs(5),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(60),
            send_timeout: Duration::from_secs(10),
            stream_stall_timeout: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
            body_bytes_max: 1024 * 1024,
            event_bytes_max: 64 * 1024,
            subscriptions_max: 100_000,
            event_types_max: 100_000,
            subscriber_queue_bytes_max: 1024 * 1024,
            push_timeout: Duration::from_secs(10),
            neighbor_timeout: Duration::from_secs(30),
            tunnel_idle_timeout: Duration::from_secs(60),
            delivery: DeliveryPolicy::default(),
            dead_letters_max: 100_000,
        }
    }
}

impl Limits {
    /// Time a request may take from its first byte on.
    pub fn request_timeout(&self, head_is_whole: bool) -> Duration {
        if head_is_whole { self.header_timeout + self.body_timeout } else { self.header_timeout }
    }
}
