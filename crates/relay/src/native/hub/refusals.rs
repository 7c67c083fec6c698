//! What the relay refused to each client, by the limit that was reached.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// Clients that are counted by their names; the refusals of further ones are counted together under an empty name.
pub const REFUSED_CLIENTS_MAX: usize = 64;

/// A client counts as recently refused for this long after its last refusal.
const RECENT: Duration = Duration::from_secs(60);

/// A limit of [`HubLimits`](super::HubLimits) that can refuse something to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Connections of all clients.
    Connections,
    /// Channels of one connection.
    Channels,
    /// Topics and queues of all clients.
    Destinations,
    /// Pending bytes of all clients.
    Bytes,
    /// Connections of one client.
    ClientConnections,
    /// Open channels of one client.
    ClientChannels,
    /// Topics and queues of one client.
    ClientDestinations,
    /// Listeners of one client at one topic.
    ClientTopicListeners,
    /// Pending bytes of one client.
    ClientBytes,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 9] = [
        Self::Connections,
        Self::Channels,
        Self::Destinations,
        Self::Bytes,
        Self::ClientConnections,
        Self::ClientChannels,
        Self::ClientDestinations,
        Self::ClientTopicListeners,
        Self::ClientBytes,
    ];

    /// Returns the name of the limit's field in [`HubLimits`](super::HubLimits).
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections_max",
            Self::Channels => "channels_max",
            Self::Destinations => "destinations_max",
            Self::Bytes => "bytes_max",
            Self::ClientConnections => "client_connections_max",
            Self::ClientChannels => "client_channels_max",
            Self::ClientDestinations => "client_destinations_max",
            Self::ClientTopicListeners => "client_topic_listeners_max",
            Self::ClientBytes => "client_bytes_max",
        }
    }

    /// What the refused client reads after the limit's name.
    fn words(self) -> &'static str {
        match self {
            Self::Connections => "the relay has as many connections as it may have",
            Self::Channels => "the connection has as many channels as it may have",
            Self::Destinations => "the relay has as many topics and queues as it may have",
            Self::Bytes => "as many bytes wait in the relay as it may have",
            Self::ClientConnections => "the key of your certificate has its quota of connections to the relay",
            Self::ClientChannels => "the key of your certificate has its quota of channels at the relay",
            Self::ClientDestinations => "the key of your certificate has its quota of topics and queues at the relay",
            Self::ClientTopicListeners => "the key of your certificate has its quota of listeners of this topic",
            Self::ClientBytes => "the key of your certificate has its quota of pending bytes at the relay",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.words())
    }
}

/// Counts refusals by client and limit.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    clients: BTreeMap<Arc<str>, Refused>,
    /// Counted since [`Self::take_unreported`] was last called.
    unreported: BTreeMap<(Arc<str>, Limit), u64>,
}

#[derive(Debug, Default)]
struct Refused {
    counts: BTreeMap<Limit, u64>,
    last: Duration,
}

impl Refusals {
    pub(super) fn record(&mut self, client: &Arc<str>, limit: Limit, now: Duration) {
        let is_known = self.clients.contains_key(client);
        let client = if is_known || self.clients.len() < REFUSED_CLIENTS_MAX { client.clone() } else { Arc::from("") };
        *self.unreported.entry((client.clone(), limit)).or_default() += 1;
        let refused = self.clients.entry(client).or_default();
        *refused.counts.entry(limit).or_default() += 1;
        refused.last = now;
    }

    pub(super) fn all(&self) -> Vec<(Arc<str>, Limit, u64)> {
        let of_client = |(name, refused): (&Arc<str>, &Refused)| {
            refused.counts.iter().map(|(limit, count)| (name.clone(), *limit, *count)).collect::<Vec<_>>()
        };
        self.clients.iter().flat_map(of_client).collect()
    }

    /// Clients whose last refusal is recent; those without a name of their own count as one.
    pub(super) fn recent(&self, now: Duration) -> usize {
        self.clients.values().filter(|refused| now < refused.last + RECENT).count()
    }

    pub(super) fn take_unreported(&mut self) -> BTreeMap<(Arc<str>, Limit), u64> {
        std::mem::take(&mut self.unreported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_clients_beyond_the_limit_are_counted_together() {
        let mut refusals = Refusals::default();
        for number in 0..REFUSED_CLIENTS_MAX + 5 {
            refusals.record(&Arc::from(format!("client {number}")), Limit::Bytes, Duration::from_secs(number as u64));
        }
        let all = refusals.all();
        assert_eq!(all.len(), REFUSED_CLIENTS_MAX + 1);
        assert_eq!(all[0], (Arc::from(""), Limit::Bytes, 5));
        assert_eq!(refusals.recent(Duration::from_secs(69)), 55, "the names from 10 on, and the one without");
        assert_eq!(refusals.take_unreported().len(), REFUSED_CLIENTS_MAX + 1);
        assert_eq!(refusals.take_unreported().len(), 0);
    }
}
