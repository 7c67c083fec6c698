//! The ZMTP port, and the path of this machine beside it (`ipc://`): one link for each peer, on the shard's own poll.
//!
//! PUB and PUSH publish and are told nothing, REQ publishes and gets one reply for each event, SUB and XSUB subscribe, DEALER does both and acknowledges. What is published here takes
//! the way of every event (`take_in`), and what is heard here is a subscription of the broker for each topic of a link.

mod accept;
mod dealer;
mod link;
mod publish;
mod secure;
mod send_queue;
mod serve;
mod socket;
mod source;
mod subscribe;
mod unread;
mod view;

use std::{collections::VecDeque, io, num::NonZeroU64, os::unix::net::UnixListener, sync::Arc, time::Instant};

use bodkin_arrowhead::name::SystemName;
use bodkin_broker::{
    Epoch,
    wire::{WATERMARK_BYTES, WATERMARKS_MAX},
};
use bodkin_zmtp::{Limits as ProtocolLimits, ServerSecurity, ServerSettings, SocketType, Subscriptions};
use mio::{Interest, Registry, event::Event as Readiness};
use slab::Slab;

pub(super) use self::secure::server_security;
pub use self::{dealer::Numbered, link::LinkKey};
use self::{
    dealer::{Missed, Required, Runs},
    link::{Link, Role},
    publish::Literals,
    send_queue::SendQueues,
    socket::LinkListener,
    source::Versions,
    unread::Unread,
};
use super::{LINK_LISTENERS, LINKS, Shard, outbox::Spare};
use crate::{
    limits::{LINK_PREFIXES, Limits},
    seldom::Seldom,
};

/// Bytes read from one link in a turn.
const TURN_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a message's frames around the event: the event type, the header, the envelope of a REQ.
const FRAMES_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a command: a subscription with all watermarks that it may state, and two texts.
const COMMAND_BYTES_MAX: usize = WATERMARKS_MAX * WATERMARK_BYTES + 4 * 1024;
/// Event type, payload, header, metadata, and the empty frame of a REQ.
const FRAMES_MAX: usize = 5;

/// Socket types of peers that are served. What the others would mean is told to them in an ERROR.
const TAKES: [SocketType; 6] = [SocketType::Pub, SocketType::Push, SocketType::Req, SocketType::Sub, SocketType::Xsub, SocketType::Dealer];

/// What a shard's ZMTP port is made of.
#[derive(Debug, Default)]
pub struct EndpointConfig {
    /// The bound sockets of the port; none: there is no port.
    pub listeners: Vec<std::net::TcpListener>,
    /// The bound socket of the path of this machine, if there is one.
    pub ipc: Option<UnixListener>,
    /// As whom peers publish that do not say who they are.
    pub system: Option<SystemName>,
}

/// Which links are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Those that wait for no log.
    Subscribers,
    /// All.
    All,
}

/// The port and its links.
pub(super) struct Endpoint {
    listeners: Vec<LinkListener>,
    settings: Arc<ServerSettings>,
    system: Option<SystemName>,
    links: Slab<Link>,
    next_serial: NonZeroU64,
    /// Who wants which topics, by upper-case prefixes.
    wanted: Subscriptions<usize>,
    /// Links that subscribe.
    subscribers: usize,
    /// Who wants the topic that is new.
    found: Vec<usize>,
    /// What one link has sent.
    received: Vec<u8>,
    literals: Literals,
    /// A buffer for the name of an event type as it is stored.
    spelling: String,
    /// Versions of the local cloud that links have looked themselves up in.
    versions: Versions,
    /// Runs of publishers that number their events.
    pub runs: Runs,
    /// Subscriptions that events wait for.
    required: Required,
    missed: Missed,
    /// What is safe when it has left this host.
    pub send_queues: SendQueues,
    /// Until this node leads subscriptions are made for the day on which it does: what it will dispatch is kept elsewhere.
    pub follows: bool,
    /// Subscriptions that cannot be made before that.
    noted: usize,
    /// Since it leads: the slots of links that may have some, in the order in which theirs are made.
    noting: VecDeque<usize>,
    /// What DEALERs were told of who leads.
    leadership: (Epoch, bool),
    /// Buffers of links that have nothing to write.
    spare: Spare,
    /// Where commands are made.
    command: Vec<u8>,
    /// Bytes that a subscriber's link may have to write; an event beyond is lost, counted and told.
    queue_bytes_max: u64,
    /// Events lost to full links since that was last asked.
    lost: u64,
    /// Slots with something to write at the end of the turn.
    dirty: Vec<usize>,
    /// Slots that have more to read than a turn takes.
    unread: Unread,
    is_to_accept: bool,
    refused_links: Seldom,
    refused_events: Seldom,
    slow_links: Seldom,
    not_required: Seldom,
}

impl Endpoint {
    /// Takes over the bound sockets of the port.
    pub fn new(config: EndpointConfig, limits: &Limits, security: ServerSecurity, registry: &Registry) -> io::Result<Self> {
        let ipc = config.ipc.map(|socket| LinkListener::Ipc(mio::net::UnixListener::from_std(socket)));
        let tcp = config.listeners.into_iter().map(|socket| LinkListener::Tcp(mio::net::TcpListener::from_std(socket)));
        let mut listeners: Vec<LinkListener> = tcp.chain(ipc).collect();
        for listener in &mut listeners {
            registry.register(listener.source(), LINK_LISTENERS, Interest::READABLE)?;
        }
        let queue_bytes_max = limits.subscriber_queue_bytes_max;
        let limits = ProtocolLimits {
            frame_bytes_max: limits.event_bytes_max.max(COMMAND_BYTES_MAX),
            message_bytes_max: limits.event_bytes_max.max(COMMAND_BYTES_MAX) + FRAMES_BYTES_MAX,
            frames_max: FRAMES_MAX,
            ..ProtocolLimits::default()
        };
        let received = if listeners.is_empty() { Vec::new() } else { vec![0; TURN_BYTES_MAX] };
        Ok(Self {
            listeners,
            settings: Arc::new(ServerSettings { limits, takes: TAKES.into(), security }),
            system: config.system,
            links: Slab::new(),
            next_serial: NonZeroU64::MIN,
            wanted: Subscriptions::new(LINK_PREFIXES),
            subscribers: 0,
            found: Vec::new(),
            received,
            literals: Literals::default(),
            spelling: String::new(),
            versions: Versions::default(),
            runs: Runs::default(),
            required: Required::default(),
            missed: Missed::default(),
            send_queues: SendQueues::default(),
            follows: false,
            noted: 0,
            noting: VecDeque::new(),
            leadership: (Epoch::NONE, true),
            spare: Spare::default(),
            command: Vec::new(),
            queue_bytes_max,
            lost: 0,
            dirty: Vec::new(),
            unread: Unread::default(),
            is_to_accept: false,
            refused_links: Seldom::default(),
            refused_events: Seldom::default(),
            slow_links: Seldom::default(),
            not_required: Seldom::default(),
        })
    }

    /// Whether a peer asks for the metadata of events.
    pub fn wants_metadata(&self, slot: usize) -> bool {
        self.links[slot].wants_metadata
    }

    /// Whether no link has more to read, none waits to be accepted, and no subscription to be made.
    pub fn is_idle(&self) -> bool {
        self.unread.is_empty() && !self.is_to_accept && self.noting.is_empty()
    }

    /// Whether no link has something to write in this turn, and none is to be told that it is covered.
    pub fn is_written(&self) -> bool {
        self.dirty.is_empty() && self.runs.is_told()
    }

    /// Whether everything is read and written, and no answer is awaited.
    pub fn is_settled(&self) -> bool {
        self.unread.is_empty() && self.links.iter().all(|(_, link)| link.is_settled())
    }

    /// Events lost to full links since the last call.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Has links accepted at the end of the turn.
    pub fn accept_later(&mut self) {
        self.is_to_accept = !self.listeners.is_empty();
    }

    /// Accepts nothing more.
    pub fn stop_listening(&mut self) {
        self.listeners.clear();
    }

    /// Has all links read in the next turn, whether or not the system has said that something has come.
    pub fn read_all_next_turn(&mut self) {
        let slots: Vec<usize> = self.links.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.read_next_turn(slot));
    }

    /// Takes a link in; gives its slot.
    fn insert(&mut self, link: Link) -> usize {
        let slot = self.links.insert(link);
        self.unread.reserve(slot);
        slot
    }

    fn is_dirty(&mut self, slot: usize) {
        if let Some(link) = self.links.get_mut(slot)
            && !std::mem::replace(&mut link.is_dirty, true)
        {
            self.dirty.push(slot);
        }
    }

    fn read_next_turn(&mut self, slot: usize) {
        if let Some(link) = self.links.get_mut(slot)
            && !std::mem::replace(&mut link.is_to_be_read, true)
        {
            self.unread.push(link.urgency(), slot);
        }
    }
}

impl Shard {
    /// Serves what the system says about a link.
    pub(super) fn link_is_ready(&mut self, slot: usize, readiness: &Readiness, read_until: Instant) {
        let Some(link) = self.endpoint.links.get_mut(slot) else { return };
        link.end_is_announced |= readiness.is_read_closed();
        let has_unsent = !link.is_written();
        if readiness.is_writable() && has_unsent {
            self.endpoint.is_dirty(slot);
        }
        if readiness.is_readable() || readiness.is_error() || readiness.is_read_closed() {
            if Instant::now() < read_until {
                self.read_link(slot);
            } else {
                self.endpoint.read_next_turn(slot);
            }
        }
    }

    /// Writes links of which something waits.
    pub(super) fn write_links(&mut self, turn: Turn) {
        let mut dirty = std::mem::take(&mut self.endpoint.dirty);
        dirty.retain(|&slot| {
            let Some(link) = self.endpoint.links.get_mut(slot) else { return false };
            let is_its_turn = turn == Turn::All || link.hears();
            if is_its_turn {
                link.is_dirty = false;
                self.write_link(slot);
            }
            !is_its_turn
        });
        dirty.append(&mut self.endpoint.dirty);
        self.endpoint.dirty = dirty;
    }

    pub(super) fn write_link(&mut self, slot: usize) {
        let Some(link) = self.endpoint.links.get_mut(slot) else { return };
        let result = link.write_out(self.clock.now);
        link.outbox.give_back(&mut self.endpoint.spare);
        let is_over = link.is_over() && link.is_written() && !link.shut_down(self.clock.now);
        if result.is_err() || is_over {
            return self.close_link(slot);
        }
        if let Some(lost) = link.catch_up(self.endpoint.queue_bytes_max)
            && let Some(times) = self.endpoint.slow_links.due()
        {
            tracing::warn!(lost, times, "a ZMTP subscriber was too slow and has lost events, as the numbers in their headers tell it");
        }
        if self.endpoint.links[slot].resumes(self.endpoint.queue_bytes_max) {
            self.endpoint.read_next_turn(slot);
        }
        self.refill_dealer(slot);
    }

    /// Ends a link and tells it why.
    fn refuse_link(&mut self, slot: usize, reason: &str) {
        let link = &mut self.endpoint.links[slot];
        link.seal();
        if let Some(mut protocol) = link.protocol.take() {
            protocol.refuse(reason, link.outbox.bytes());
        }
        tracing::debug!(reason, "a ZMTP link is refused");
        self.end_link(slot);
    }

    /// Takes nothing more from a link, and closes it when everything is written.
    fn end_link(&mut self, slot: usize) {
        self.forget_subscriptions(slot);
        let link = &mut self.endpoint.links[slot];
        link.role = Role::Closing;
        link.drop_unsealed();
        self.endpoint.is_dirty(slot);
    }

    fn close_link(&mut self, slot: usize) {
        self.forget_subscriptions(slot);
        let mut link = self.endpoint.links.remove(slot);
        self.count_links();
        // A socket that is gone already needs no deregistration.
        let _ = self.poll.registry().deregister(link.socket.source());
    }

    /// Closes links that are past a deadline.
    pub(super) fn sweep_links(&mut self) {
        self.close_disbelieved_links();
        self.ask_clocks();
        let (now, limits) = (self.clock.now, self.context.limits);
        let overdue = |(slot, link): (usize, &Link)| link.is_overdue(now, &limits).then_some(slot);
        for slot in self.endpoint.links.iter().filter_map(overdue).collect::<Vec<_>>() {
            self.close_link(slot);
        }
    }
}
