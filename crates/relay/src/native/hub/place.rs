//! A topic or a queue, and the ends of channels that use it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::{ClientId, ConnectionId, EndId};
use crate::{
    Destination,
    native::{Channel, WINDOW_BYTES, cost},
};

/// Messages that wait in a queue for a listener, or a topic.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) destination: Destination,
    pub(super) senders: BTreeSet<EndId>,
    pub(super) listeners: BTreeSet<EndId>,
    /// Listeners of a queue that may receive its next message, in the order of their turns.
    pub(super) ready: BTreeMap<Turn, EndId>,
    pub(super) messages: VecDeque<Held>,
    /// Of a topic: the last listener that was given the first message.
    pub(super) published: EndId,
    /// Cost of these.
    pub(super) bytes: u64,
    /// What its senders may still send: the sum of their credits that are above zero.
    pub(super) promised: u64,
    /// Senders that have got no credit yet.
    pub(super) hungry: BTreeSet<EndId>,
    /// Senders that receive no credit while too many bytes are pending, here or elsewhere.
    pub(super) suspended: BTreeSet<EndId>,
    /// What each client has here; a client without anything has no entry.
    pub(super) users: BTreeMap<ClientId, Use>,
    /// When somebody has last sent or listened.
    pub(super) used: Duration,
    /// Key of the place's entry in [`Hub::idle`](super::Hub), if it has one.
    pub(super) idle_from: Option<Duration>,
    /// Why the queue was removed. A new queue may have its name; this one remains until its messages and ends are released.
    pub(super) removed: Option<&'static str>,
}

/// Ends and messages of one client in a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) senders: usize,
    pub(super) listeners: usize,
    pub(super) messages: usize,
}

/// A message that waits in a queue, or in a topic until each listener was given it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) bytes: Arc<[u8]>,
    /// The newest end when the message was sent. A topic's later listeners are not given it.
    pub(super) newest_end: EndId,
    /// Who gets its cost back as credit.
    pub(super) payer: EndId,
    /// Whose quota it is counted against.
    pub(super) client: ClientId,
}

/// An end of a channel.
#[derive(Debug)]
pub(super) struct End {
    pub(super) connection: ConnectionId,
    pub(super) client: ClientId,
    pub(super) channel: Channel,
    pub(super) place: PlaceId,
    /// What a sender may still send, or a listener takes.
    pub(super) credit: i64,
    pub(super) kind: Kind,
}

pub(super) type PlaceId = u64;
/// Position of a listener in the order of turns; each is used once.
pub(super) type Turn = u64;

#[derive(Debug)]
pub(super) enum Kind {
    Sender {
        /// What has left the relay and was not given back yet.
        owed: u32,
        /// True once it has received its first credit.
        has_window: bool,
    },
    Listener {
        /// Of a topic: what could not be written yet.
        backlog: VecDeque<Arc<[u8]>>,
        backlog_bytes: u64,
        /// Of a queue: its key in [`Place::ready`], if it is there.
        turn: Option<Turn>,
    },
}

impl Place {
    pub(super) fn new(destination: Destination, now: Duration) -> Self {
        Self {
            destination,
            senders: BTreeSet::new(),
            listeners: BTreeSet::new(),
            ready: BTreeMap::new(),
            messages: VecDeque::new(),
            published: 0,
            bytes: 0,
            promised: 0,
            hungry: BTreeSet::new(),
            suspended: BTreeSet::new(),
            users: BTreeMap::new(),
            used: now,
            idle_from: None,
            removed: None,
        }
    }

    pub(super) fn is_topic(&self) -> bool {
        matches!(self.destination, Destination::Topic(_))
    }

    /// True if a message may be given to a listener.
    pub(super) fn has_deliverable(&self) -> bool {
        !self.messages.is_empty() && self.removed.is_none() && (self.is_topic() || !self.ready.is_empty())
    }

    /// Credit for one more sender; 0: none as long as there is no room.
    pub(super) fn grant(&self, queue_bytes_max: u64) -> u32 {
        let room = if self.is_topic() { u64::MAX } else { queue_bytes_max.saturating_sub(self.bytes + self.promised) };
        u32::try_from(room).unwrap_or(u32::MAX).min(WINDOW_BYTES)
    }
}

impl Held {
    /// What it counts as of a queue's and a client's bytes, so that empty messages are bounded too.
    pub(super) fn cost(&self) -> u64 {
        u64::from(cost(self.bytes.len()))
    }
}

impl End {
    /// Sets a sender's credit, and what its place has promised with it.
    pub(super) fn set_credit(&mut self, credit: i64, place: &mut Place) {
        let above_zero = |credit: i64| u64::try_from(credit).unwrap_or(0);
        place.promised = place.promised - above_zero(self.credit) + above_zero(credit);
        self.credit = credit;
    }
}
