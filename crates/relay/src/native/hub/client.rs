//! What each client uses of the relay: it is held against the client's quota.

use std::{collections::BTreeSet, sync::Arc};

use super::{EndId, Hub, HubLimits, place::Place};

/// Identifies a client: the SHA-256 digest of its certificate's public key.
///
/// A client with several connections, or with a renewed certificate of the same key, stays one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(pub [u8; 32]);

/// A client that uses anything of the relay.
#[derive(Debug)]
pub(super) struct Client {
    /// Name for logs and metrics.
    pub(super) name: Arc<str>,
    /// Accepted connections.
    pub(super) connections: usize,
    /// Open channels, and those of closed connections until they are released.
    pub(super) ends: usize,
    /// Topics and queues in which the client has a channel or a pending message.
    pub(super) destinations: usize,
    /// Pending messages in queues to which the client sent, and in backlogs of its listeners.
    pub(super) pending_bytes: u64,
    /// Senders that receive no credit while too many bytes are pending.
    pub(super) suspended: BTreeSet<EndId>,
}

impl Client {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self { name, connections: 0, ends: 0, destinations: 0, pending_bytes: 0, suspended: BTreeSet::new() }
    }

    fn is_unused(&self) -> bool {
        self.connections == 0 && self.ends == 0 && self.destinations == 0 && self.pending_bytes == 0
    }

    pub(super) fn is_over_half(&self, limits: &HubLimits) -> bool {
        self.pending_bytes > limits.client_bytes_max / 2
    }

    /// True if the client's senders to this place receive no credit until bytes have been read.
    ///
    /// A queue that is read is exempt: a client's other receivers that do not read must not stop it.
    pub(super) fn is_suspended_at(&self, place: &Place, limits: &HubLimits) -> bool {
        self.is_over_half(limits) && place.bytes > 0
    }
}

impl Hub {
    /// Adds bytes that became pending.
    pub(super) fn charge(&mut self, client_id: ClientId, bytes: u64) {
        self.counts.waiting_bytes += bytes;
        if let Some(client) = self.clients.get_mut(&client_id) {
            client.pending_bytes += bytes;
        }
    }

    /// Subtracts bytes that are no longer pending, and lets suspended senders continue if that made enough capacity.
    pub(super) fn discharge(&mut self, client_id: ClientId, bytes: u64) {
        let was_pressed = self.is_pressed();
        self.counts.waiting_bytes -= bytes;
        if let Some(client) = self.clients.get_mut(&client_id) {
            let was_over_half = client.is_over_half(&self.limits);
            client.pending_bytes -= bytes;
            if was_over_half && !client.is_over_half(&self.limits) && !client.suspended.is_empty() {
                self.resuming.push(client_id);
            }
        }
        if was_pressed && !self.is_pressed() {
            self.suspended_clients.iter().for_each(|client| self.resuming.push(*client));
        }
    }

    /// Removes a client that uses nothing.
    pub(super) fn forget_unused(&mut self, client_id: ClientId) {
        if self.clients.get(&client_id).is_some_and(Client::is_unused) {
            self.clients.remove(&client_id);
        }
    }
}
