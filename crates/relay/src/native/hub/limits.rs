//! What clients may take of a relay, and what is counted of them.

use std::time::Duration;

/// Limits of a relay. What happens at each is told to the client that meets it, but for a topic's listener who is too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubLimits {
    /// Connections; one more is refused and closed.
    pub connections_max: usize,
    /// Connections of one client; one more is refused and closed.
    pub client_connections_max: usize,
    /// Channels of a connection; one more is refused.
    pub channels_max: usize,
    /// Channels of all connections of one client; one more is refused.
    pub client_channels_max: usize,
    /// Topics and queues that somebody uses, or that hold something; one more is refused.
    pub destinations_max: usize,
    /// Topics and queues in which one client has a channel or a pending message; one more is refused.
    pub client_destinations_max: usize,
    /// Listeners of one client at one topic; one more is refused. Each published message costs work for each of them.
    pub client_topic_listeners_max: usize,
    /// Bytes that wait in a queue; its senders get no credit beyond, and wait. Each may be one message above.
    pub queue_bytes_max: u64,
    /// Bytes that wait for a topic's listener who is too slow; messages beyond are lost to him, and counted.
    pub backlog_bytes_max: u64,
    /// Bytes that wait in all queues and backlogs. From half of it on nobody gets new credit; a message beyond it is refused with its channel.
    pub bytes_max: u64,
    /// Pending bytes of one client:
    /// * of what it sent to queues;
    /// * of what it sent to topics of 64 listeners or more, until each was given it;
    /// * of what its listeners of topics did not accept.
    ///
    /// From half of it on its senders receive no credit for places that hold something; a message beyond it is refused with its channel, or lost to
    /// the listener.
    pub client_bytes_max: u64,
    /// A queue to which nobody has listened or sent for so long is removed with what waits in it.
    pub queue_idle: Duration,
    /// A client that has said nothing for so long is closed.
    pub silence_max: Duration,
}

impl Default for HubLimits {
    fn default() -> Self {
        Self {
            connections_max: 64,
            client_connections_max: Self::quota(64),
            channels_max: 16_384,
            client_channels_max: 32_768,
            destinations_max: 65_536,
            client_destinations_max: Self::quota(65_536),
            client_topic_listeners_max: 64,
            queue_bytes_max: 8 * 1024 * 1024,
            backlog_bytes_max: 1024 * 1024,
            bytes_max: 256 * 1024 * 1024,
            client_bytes_max: 64 * 1024 * 1024,
            queue_idle: Duration::from_secs(60),
            silence_max: Duration::from_secs(60),
        }
    }
}

impl HubLimits {
    /// Returns one client's quota where none is given: a quarter of what all clients may use, at least 1.
    pub const fn quota(of_all: usize) -> usize {
        if of_all < 4 { 1 } else { of_all / 4 }
    }
}

/// What is there now, and what has happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubCounts {
    /// Connections that have greeted, or are about to.
    pub connections: usize,
    /// Clients that use anything of the relay.
    pub clients: usize,
    /// Clients to which something was refused in the last minute because a limit was reached.
    pub clients_at_limit: usize,
    /// Clients with senders that receive no credit because too many bytes are pending.
    pub clients_suspended: usize,
    /// Channels that are open.
    pub channels: usize,
    /// Topics and queues.
    pub destinations: usize,
    /// Bytes that wait for a listener, with 64 more for each message.
    pub waiting_bytes: u64,
    /// Messages that have come.
    pub messages_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Messages that have gone, to each listener of a topic one.
    pub messages_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Messages of topics that a listener has lost, because he was too slow.
    pub backlog_lost: u64,
    /// Queues that were removed because nobody used them.
    pub queues_expired: u64,
    /// Messages that were in removed queues, whyever.
    pub messages_removed: u64,
    /// Channels that were refused or closed because something was full.
    pub refused_full: u64,
    /// Connections that were ended because of what the client did.
    pub ended: u64,
}
