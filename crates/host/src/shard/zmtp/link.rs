//! One link of the ZMTP port: its socket, the protocol's state, what it does, and what waits to be written.

use std::{
    collections::BTreeMap,
    io,
    num::NonZeroU64,
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{caller::Caller, name::SystemName};
use bodkin_broker::SubscriptionKey;
use bodkin_zmtp::{Connection, PublicKey};

use super::{dealer::Dealer, socket::LinkSocket, source::Source, unread::Urgency};
use crate::{
    limits::Limits,
    quotas::{BufferQuota, ConnectionPermit},
    shard::outbox::{Outbox, Spare},
};

/// Bytes of replies that may wait to be taken by the peer; behind them it is not read.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Memory of messages to be sealed beyond this is given back.
const UNSEALED_BYTES_KEPT: usize = 64 * 1024;

/// Names a link; a closed one's name is not valid for its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkKey {
    /// Where it is kept.
    pub slot: usize,
    /// Which one it is of all there were.
    pub serial: NonZeroU64,
}

/// What a peer does here.
pub enum Role {
    /// Nothing yet: its handshake is under way.
    Stranger,
    /// PUB and PUSH: publishes, and is told nothing.
    Publisher {
        /// As whom.
        system: SystemName,
    },
    /// REQ: publishes, and gets a reply for each event.
    Requester {
        /// As whom.
        system: SystemName,
        /// Whether the reply to its last event waits until that is synced.
        awaits: bool,
    },
    /// SUB and XSUB.
    Subscriber(Subscriber),
    /// DEALER.
    Dealer(Box<Dealer>),
    /// Nothing more: it is closed when everything is written.
    Closing,
}

/// What a subscriber wants and hears.
#[derive(Default)]
pub struct Subscriber {
    /// The prefixes as it spells them, and how many times it has asked for each.
    pub prefixes: BTreeMap<Arc<[u8]>, u64>,
    /// The topics that it hears, by the prefix for which it does.
    pub heard: BTreeMap<Box<str>, (SubscriptionKey, Arc<[u8]>)>,
    /// Events lost since its queue was full; it hears nothing until half of that is read.
    lost: Option<u64>,
}

impl Role {
    /// A subscriber that has asked for nothing yet.
    pub fn subscriber() -> Self {
        Self::Subscriber(Subscriber::default())
    }
}

/// What became of a read.
pub enum Read {
    /// The socket has nothing.
    Nothing,
    /// The peer has ended.
    End,
    /// Something came.
    Bytes {
        /// How many.
        count: usize,
        /// Whether the socket had no more.
        is_all: bool,
    },
}

/// A link.
pub struct Link {
    pub socket: LinkSocket,
    /// Counts the link for its peer's quota.
    _permit: ConnectionPermit,
    /// Memory of messages that are not whole.
    pub buffer: BufferQuota,
    /// `None` while its events are served, and when nothing more is taken.
    pub protocol: Option<Box<Connection>>,
    pub role: Role,
    pub outbox: Outbox,
    /// Bytes that the socket has taken.
    taken_bytes: u64,
    /// Events that its full queue has cost it.
    pub lost: u64,
    /// Who is there: in secure mode the system that its key is bound to.
    pub caller: Caller,
    /// As which registered system it publishes.
    pub source: Source,
    /// Whether it asks for the metadata of events.
    pub wants_metadata: bool,
    /// The key that it has shown.
    pub key: Option<PublicKey>,
    /// Whether what goes out is put in boxes.
    is_sealed: bool,
    /// Messages that are still to be put in boxes: not while its events are served.
    unsealed: Vec<u8>,
    /// The most urgent topic of those that are published on it.
    publishes: Urgency,
    /// Tells it from its slot's former and later ones.
    pub serial: NonZeroU64,
    /// Whether the system says that the peer has ended; its last bytes may still be unread.
    pub end_is_announced: bool,
    pub is_dirty: bool,
    pub is_to_be_read: bool,
    postponed: bool,
    accepted: Instant,
    /// Since when the peer has taken nothing of what waits to be written.
    stalled_since: Option<Instant>,
    shut_down: Option<Instant>,
}

impl Link {
    /// A link that was just accepted, with our greeting to be written.
    pub fn new(
        socket: LinkSocket,
        permit: ConnectionPermit,
        protocol: Connection,
        greeting: &[u8],
        serial: NonZeroU64,
        now: Instant,
    ) -> Self {
        let mut outbox = Outbox::default();
        outbox.bytes().extend_from_slice(greeting);
        let buffer = permit.buffer_quota();
        Self {
            socket,
            _permit: permit,
            buffer,
            protocol: Some(Box::new(protocol)),
            role: Role::Stranger,
            outbox,
            taken_bytes: 0,
            lost: 0,
            caller: Caller::Anonymous,
            source: Source::default(),
            wants_metadata: false,
            key: None,
            is_sealed: false,
            unsealed: Vec::new(),
            publishes: Urgency::UNKNOWN,
            serial,
            end_is_announced: false,
            is_dirty: false,
            is_to_be_read: false,
            postponed: false,
            accepted: now,
            stalled_since: None,
            shut_down: None,
        }
    }

    /// Bytes that are to be written.
    pub fn unsent_bytes(&self) -> usize {
        self.outbox.unsent_bytes() + self.unsealed.len()
    }

    /// Bytes that its socket has taken, from its begin on.
    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Where its bytes end, from its begin on; what is still to be put in boxes is not counted.
    pub fn end(&self) -> u64 {
        self.taken_bytes + self.outbox.unsent_bytes() as u64
    }

    /// Bytes that its peer's host has, from its begin on; all of them, if the socket is gone.
    pub fn sent_bytes(&self) -> u64 {
        self.socket.queued_bytes().map_or(u64::MAX, |queued| self.taken_bytes.saturating_sub(queued))
    }

    /// Has everything behind the handshake put in boxes.
    pub fn begin_sealing(&mut self) {
        self.is_sealed = true;
    }

    /// Where messages are appended as they stand for a peer without boxes.
    pub fn frames(&mut self, spare: &mut Spare) -> &mut Vec<u8> {
        if self.is_sealed {
            return &mut self.unsealed;
        }
        self.outbox.borrow(spare);
        self.outbox.bytes()
    }

    /// Puts what waits for it in boxes, unless its events are being served.
    pub fn seal(&mut self) {
        let Some(protocol) = self.protocol.as_mut().filter(|_| !self.unsealed.is_empty()) else { return };
        let mut sender = protocol.sender().expect("messages are sent behind the handshake");
        sender.relay(&self.unsealed, self.outbox.bytes());
        self.unsealed.clear();
        self.unsealed.shrink_to(UNSEALED_BYTES_KEPT);
    }

    /// Drops what can be put in boxes no more.
    pub fn drop_unsealed(&mut self) {
        self.unsealed.clear();
    }

    /// Whether nothing is left to write.
    pub fn is_written(&self) -> bool {
        self.unsent_bytes() == 0
    }

    /// Whether nothing is left to write and no reply is awaited.
    pub fn is_settled(&self) -> bool {
        self.is_written() && !matches!(self.role, Role::Requester { awaits: true, .. })
    }

    /// Whether it is closed when everything is written.
    pub fn is_over(&self) -> bool {
        matches!(self.role, Role::Closing)
    }

    /// Whether reading has to wait: for the reply that is owed, or for a peer that sends on without taking what it gets.
    pub fn postpones(&mut self, queue_bytes_max: u64) -> bool {
        let waits = match &self.role {
            Role::Requester { awaits: true, .. } => true,
            // Its events are bounded by its queue, and what it sends are subscriptions.
            Role::Subscriber(_) | Role::Closing => false,
            // What it hears is bounded by its queue, and what it is told beside that by what it sends.
            Role::Dealer(dealer) => dealer.waits() || self.unsent_bytes() as u64 > queue_bytes_max + UNSENT_BYTES_MAX as u64,
            _ => self.unsent_bytes() > UNSENT_BYTES_MAX,
        };
        self.postponed |= waits;
        waits
    }

    /// Whether something was postponed that can go on now. True once.
    pub fn resumes(&mut self, queue_bytes_max: u64) -> bool {
        self.postponed && !self.postpones(queue_bytes_max) && std::mem::take(&mut self.postponed)
    }

    /// Reads once.
    pub fn read(&mut self, space: &mut [u8]) -> io::Result<Read> {
        loop {
            return match self.socket.read(space) {
                Ok(0) => Ok(Read::End),
                Ok(count) => Ok(Read::Bytes { count, is_all: count < space.len() }),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Writes as much as the socket takes.
    pub fn write_out(&mut self, now: Instant) -> io::Result<()> {
        self.seal();
        let taken = self.outbox.write_to(|bytes| self.socket.write(bytes))?;
        self.taken_bytes += taken as u64;
        self.stalled_since = match self.stalled_since {
            _ if self.is_written() => None,
            Some(since) if taken == 0 => Some(since),
            _ => Some(now),
        };
        Ok(())
    }

    /// Says once that nothing more comes, and waits for the peer to close: a reset would take the reason back. False if it is gone.
    pub fn shut_down(&mut self, now: Instant) -> bool {
        self.shut_down.is_some() || {
            self.shut_down = Some(now);
            self.socket.shut_down().is_ok()
        }
    }

    /// Whether events go out on it, which go in front of the log.
    pub fn hears(&self) -> bool {
        match &self.role {
            Role::Subscriber(_) => true,
            Role::Dealer(dealer) => dealer.hears(),
            _ => false,
        }
    }

    /// How soon it has to be read.
    pub fn urgency(&self) -> Urgency {
        if self.hears() { Urgency::SUBSCRIBER } else { self.publishes }
    }

    /// Something so urgent is published on it.
    pub fn publishes(&mut self, urgency: Urgency) {
        self.publishes = if self.publishes == Urgency::UNKNOWN { urgency } else { self.publishes.min(urgency) };
    }

    /// Has a host that vanishes noticed.
    pub fn probe(&self) {
        self.socket.probe();
    }

    /// Whether so many bytes have room behind those that wait; an empty link takes any.
    pub fn takes(&self, bytes: usize, queue_bytes_max: u64) -> bool {
        let unsent = self.unsent_bytes();
        unsent == 0 || (unsent + bytes) as u64 <= queue_bytes_max
    }

    /// Whether an event of this size has room in a subscriber's queue; one that has none is counted.
    pub fn has_room(&mut self, bytes: usize, queue_bytes_max: u64) -> bool {
        let takes = self.takes(bytes, queue_bytes_max);
        let Role::Subscriber(subscriber) = &mut self.role else { return false };
        if takes && subscriber.lost.is_none() {
            return true;
        }
        *subscriber.lost.get_or_insert(0) += 1;
        self.lost += 1;
        false
    }

    /// Whether it is a subscriber whose queue was full, and that hears nothing until half of it is read.
    pub fn is_losing(&self) -> bool {
        matches!(&self.role, Role::Subscriber(subscriber) if subscriber.lost.is_some())
    }

    /// Whether a word of this size that is no event has room in a subscriber's queue. Who has lost events hears none before it has read half of what has filled it.
    pub fn hears_word(&self, bytes: usize, queue_bytes_max: u64) -> bool {
        matches!(&self.role, Role::Subscriber(subscriber) if subscriber.lost.is_none()) && self.takes(bytes, queue_bytes_max)
    }

    /// Lets a subscriber hear again when half of its queue is read; gives how many events it has lost.
    pub fn catch_up(&mut self, queue_bytes_max: u64) -> Option<u64> {
        let unsent = self.unsent_bytes() as u64;
        match &mut self.role {
            Role::Subscriber(subscriber) if unsent <= queue_bytes_max / 2 => subscriber.lost.take(),
            _ => None,
        }
    }

    /// Whether a deadline is past.
    pub fn is_overdue(&self, now: Instant, limits: &Limits) -> bool {
        let over = |since: Option<Instant>, limit: Duration| since.is_some_and(|since| now.saturating_duration_since(since) > limit);
        match &self.role {
            Role::Stranger => over(Some(self.accepted), limits.handshake_timeout),
            Role::Subscriber(_) => over(self.stalled_since, limits.stream_stall_timeout),
            Role::Dealer(dealer) if dealer.hears() => over(self.stalled_since, limits.stream_stall_timeout),
            Role::Publisher { .. } | Role::Requester { .. } | Role::Dealer(_) => over(self.stalled_since, limits.send_timeout),
            Role::Closing => over(self.shut_down, limits.send_timeout) || over(self.stalled_since, limits.send_timeout),
        }
    }
}
