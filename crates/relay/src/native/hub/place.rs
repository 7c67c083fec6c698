//! A topic or a queue, and the ends of channels that use it.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::{ConnectionId, EndId};
use crate::{
    Destination,
    native::{Channel, WINDOW_BYTES},
};

/// Messages that wait in a queue for a listener, or a topic.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) destination: Destination,
    pub(super) senders: BTreeSet<EndId>,
    /// They take turns.
    pub(super) listeners: VecDeque<EndId>,
    pub(super) messages: VecDeque<Held>,
    /// Bytes of these.
    pub(super) bytes: u64,
    /// What its senders may still send: the sum of their credits that are above zero.
    pub(super) promised: u64,
    /// Senders that have got no credit yet.
    pub(super) hungry: VecDeque<EndId>,
    /// When somebody has last sent or listened.
    pub(super) used: Duration,
}

/// A message that waits in a queue.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) bytes: Box<[u8]>,
    /// Who gets its cost back as credit.
    pub(super) payer: EndId,
}

/// An end of a channel.
#[derive(Debug)]
pub(super) struct End {
    pub(super) connection: ConnectionId,
    pub(super) channel: Channel,
    pub(super) place: PlaceId,
    /// What a sender may still send, or a listener takes.
    pub(super) credit: i64,
    pub(super) kind: Kind,
}

pub(super) type PlaceId = u64;

#[derive(Debug)]
pub(super) enum Kind {
    Sender {
        /// What has left the relay and was not given back yet.
        owed: u32,
    },
    Listener {
        /// Of a topic: what could not be written yet.
        backlog: VecDeque<Arc<[u8]>>,
        backlog_bytes: u64,
    },
}

impl Place {
    pub(super) fn new(destination: Destination, now: Duration) -> Self {
        Self {
            destination,
            senders: BTreeSet::new(),
            listeners: VecDeque::new(),
            messages: VecDeque::new(),
            bytes: 0,
            promised: 0,
            hungry: VecDeque::new(),
            used: now,
        }
    }

    pub(super) fn is_topic(&self) -> bool {
        matches!(self.destination, Destination::Topic(_))
    }

    /// Whether nobody would miss it.
    pub(super) fn is_forgotten(&self) -> bool {
        self.senders.is_empty() && self.listeners.is_empty() && self.messages.is_empty()
    }

    /// Credit for one more sender; 0: none as long as there is no room.
    pub(super) fn grant(&self, queue_bytes_max: u64) -> u32 {
        let room = if self.is_topic() { u64::MAX } else { queue_bytes_max.saturating_sub(self.bytes + self.promised) };
        u32::try_from(room).unwrap_or(u32::MAX).min(WINDOW_BYTES)
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
