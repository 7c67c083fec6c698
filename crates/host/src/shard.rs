//! The data plane: one thread that owns the Event Handler's port, its connections and the broker's topics.
//!
//! A turn reads what is there, serves it, and writes at its end: one write for each subscriber however many events the turn
//! brought, subscribers before publishers. Requests that are neither publish nor an event stream go to the control plane
//! as values and come back through the [`Inbox`].

mod accept;
mod awaited;
mod clock;
mod cloud_event;
mod connection;
mod delivering;
mod drain;
mod failover;
mod from_fleet;
mod from_nodes;
mod graph;
mod guarantee;
mod hand_over;
mod kept;
mod lacking;
mod log;
mod logged;
mod messages;
mod not_taken;
mod outbox;

mod publish;
mod publisher_check;
mod publishers;
mod pushed;
mod real_time;
mod receiver;
mod relayed;
mod replay;
mod replica;
mod request;
mod serve;
mod slots;
mod stream;
mod sweep;
mod thread;
mod traced;
mod view;
mod wish;
mod write;
mod zmtp;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    core_service::CoreSystem,
    publication::Scratch,
    record::{Subscription, SubscriptionId},
};
use bodkin_broker::{Incarnation, Output, Sequence, ShardLimits, StreamId};
use bodkin_store::{Store, event_log::EventLog};
use imbl::OrdMap;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;
use tokio::sync::mpsc;

use self::{
    awaited::AwaitedSubscribers,
    clock::Clock,
    connection::Connection,
    delivering::Deliveries,
    drain::Drain,
    from_nodes::OtherNodes,
    graph::Graphs,
    log::{Unsynced, Waiting},
    publisher_check::PublisherSlots,
    publishers::Publishers,
    pushed::Pushed,
    real_time::RealTime,
    receiver::Receiver,
    replica::{REPLICA_CHANNEL, Uncovered},
    zmtp::Endpoint,
};
pub(crate) use self::{clock::boot_and_system_time, kept::Kept};
pub use self::{
    request::{CONTROL_REQUESTS_MAX, ControlRequest},
    thread::ShardThread,
    zmtp::{EndpointConfig, LinkKey},
};
use crate::{
    frames::Frames,
    gate::Gate,
    inbox::{Inbox, Message},
    limits::Limits,
    malformed::MalformedLog,
    monitor::EventCounts,
    node_events::Crossing,
    pair::primary::Primary,
    push::PushContext,
    quotas::Quotas,
    realtime::{Membership, Rank, Realtime},
    replay::ReplayContext,
    security::{Security, Trust},
    seldom::Seldom,
    stage::{Stage, Stages},
    stall::{Guarantee, Stalls},
    topics::asking::Asking,
};

const SYSTEM: CoreSystem = CoreSystem::EventHandler;

/// Readiness events taken in one turn.
const TURN_EVENTS_MAX: usize = 1024;
/// How long links are read in one turn: what has come is worked on then, and answered, before more is read.
const TURN_READ_MAX: Duration = Duration::from_millis(1);
/// How often connections are looked over for deadlines.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// All sockets of the port: whichever has a connection, all are looked at.
const LISTENERS: Token = Token(usize::MAX);
const INBOX: Token = Token(usize::MAX - 1);
/// The sockets of the ZMTP port, likewise.
const LINK_LISTENERS: Token = Token(usize::MAX - 2);
/// Behind it are the links of the ZMTP port.
const LINKS: usize = usize::MAX / 2;

/// What a shard is made of, besides its listener.
pub struct ShardContext {
    /// Durable state.
    pub store: Store,
    /// Where time goes.
    pub stages: Arc<Stages>,
    /// What is counted.
    pub counts: Arc<EventCounts>,
    /// Where turns are noted.
    pub stalls: Arc<Stalls>,
    /// How the thread is scheduled.
    pub realtime: Arc<Realtime>,
    /// The limits.
    pub limits: Limits,
    /// The quotas of clients.
    pub quotas: Quotas,
    /// Event types, as stored, whose publishers are answered when the event is synced to the disk.
    pub durable: BTreeSet<Box<str>>,
    /// What every request passes first.
    pub gate: Arc<Gate>,
    /// Where other requests go.
    pub control: mpsc::Sender<ControlRequest>,
    /// What push tasks need.
    pub push: PushContext,
    /// By what accepted events go to the other nodes of this cloud; `None`: they do not.
    pub crossing: Option<Crossing>,
    /// What replays need; `None` where there is no event log.
    pub replay: Option<ReplayContext>,
    /// The cloud's certificates; `None` in insecure mode.
    pub security: Option<Arc<Security>>,
    /// Asks the admission test what subscribers want.
    pub asking: Asking,
    /// Where push tasks run.
    pub runtime: tokio::runtime::Handle,
}

/// The thread's state.
pub struct Shard {
    context: ShardContext,
    poll: Poll,
    /// The sockets of the port; none in secure mode, where connections come by the inbox.
    listeners: Vec<mio::net::TcpListener>,
    inbox: Arc<Inbox>,
    messages: Vec<Message>,
    connections: Slab<Connection>,
    next_serial: u64,
    broker: bodkin_broker::Shard<Receiver>,
    outputs: Vec<Output>,
    real_time: RealTime,
    graphs: Graphs,
    publishers: Publishers,
    /// Which systems publish each real-time topic.
    publisher_slots: PublisherSlots,
    /// Topics that reject events until a required subscriber has acknowledged.
    awaited: AwaitedSubscribers,
    /// The leader's end of a pair; `None` of a cloud by itself.
    primary: Option<Primary>,
    /// Whether losses are bounded: as long as the Backup of a pair may lead.
    losses: Guarantee,
    /// Publishers that wait until their events are covered.
    uncovered: BTreeMap<(StreamId, Sequence), Uncovered>,
    /// The fleet's end of events that come from there.
    fleet: from_fleet::FleetEnd,
    /// Keeps every accepted event, unless it is switched off.
    log: Option<EventLog>,
    /// Of events that go to the other nodes of this cloud, and come from them.
    nodes: OtherNodes,
    /// Who waits until that is on the disk.
    unsynced: Unsynced,
    /// The ZMTP port.
    endpoint: Endpoint,
    /// The pushed subscriptions as of the last look, and their keys.
    known: OrdMap<SubscriptionId, Arc<Subscription>>,
    pushed: BTreeMap<SubscriptionId, Pushed>,
    /// Bytes of events that push tasks have not reported as sent.
    pushing_bytes: u64,
    /// Streams that are being sent what they have missed.
    replaying: usize,
    /// Slots with something to write at the end of the turn.
    dirty: Vec<usize>,
    /// Slots that have more to read or to serve than a turn takes.
    unread: Vec<usize>,
    /// Slots that were read and are not yet served.
    unserved: VecDeque<usize>,
    /// Whether more connections wait to be accepted than a turn takes.
    unaccepted: bool,
    frames: Frames,
    /// What is on its way and told of.
    deliveries: Deliveries,
    scratch: Scratch,
    /// A payload whose escapes a filter had to resolve.
    filter_text: String,
    clock: Clock,
    next_sweep: Instant,
    drain: Option<Drain>,
    is_ending: bool,
    /// Whether the registered subscriptions are served: what is known of their deliveries has been read.
    is_serving: bool,
    /// Errors of the system when connections are accepted.
    not_accepted: Seldom,
    /// Requests that are answered without a body.
    malformed: MalformedLog,
    /// Of a node that was promoted, until a publisher is back.
    failover: Option<failover::Failover>,
    /// Of a leader that is about to hand over.
    hand_over: Option<hand_over::Draining>,
    /// What the connections' certificates were checked by.
    trust: Option<Arc<Trust>>,
    /// Since there are real-time topics, or graphs with real-time threads, the thread is scheduled as one of the data plane.
    membership: Option<Membership>,
}

impl Shard {
    /// Takes over the bound sockets of the port; without any, connections come by the inbox, behind their handshake. `inbox` must
    /// belong to `poll` ([`Self::inbox`] makes it). `primary` is the leader's end of a pair.
    pub fn new(
        context: ShardContext,
        poll: Poll,
        inbox: Arc<Inbox>,
        listeners: Vec<std::net::TcpListener>,
        endpoint: EndpointConfig,
        log: Option<EventLog>,
        primary: Option<Primary>,
    ) -> io::Result<Self> {
        let mut listeners: Vec<_> = listeners.into_iter().map(mio::net::TcpListener::from_std).collect();
        for listener in &mut listeners {
            poll.registry().register(listener, LISTENERS, Interest::READABLE)?;
        }
        let trust = context.security.as_ref().map(|security| security.trust());
        let security = zmtp::server_security(trust.as_deref());
        let endpoint = Endpoint::new(endpoint, &context.limits, security, poll.registry())?;
        let clock = Clock::new();
        let limits = ShardLimits {
            // Streams are limited here, subscriptions by push where they are made.
            subscriptions_max: context.limits.subscriptions_max.saturating_mul(2),
            topics_max: context.limits.event_types_max,
            queue_bytes_max: context.limits.subscriber_queue_bytes_max,
        };
        let broker = match &primary {
            Some(_) => bodkin_broker::Shard::follower(limits),
            None => bodkin_broker::Shard::new(Incarnation::of_start(clock.utc.unix_nanos()), limits),
        };
        let next_sweep = clock.now + SWEEP_PERIOD;
        let nodes = OtherNodes::begin(context.crossing.as_ref());
        let mut shard = Self {
            context,
            poll,
            listeners,
            inbox,
            messages: Vec::new(),
            connections: Slab::new(),
            next_serial: 0,
            broker,
            outputs: Vec::new(),
            real_time: RealTime::new(),
            graphs: Graphs::default(),
            publishers: Publishers::default(),
            publisher_slots: PublisherSlots::default(),
            awaited: AwaitedSubscribers::default(),
            primary,
            losses: Guarantee::Unstated,
            uncovered: BTreeMap::new(),
            fleet: from_fleet::FleetEnd::default(),
            log,
            nodes,
            unsynced: Unsynced::default(),
            endpoint,
            known: OrdMap::new(),
            pushed: BTreeMap::new(),
            pushing_bytes: 0,
            replaying: 0,
            dirty: Vec::new(),
            unread: Vec::new(),
            unserved: VecDeque::new(),
            unaccepted: false,
            frames: Frames::default(),
            deliveries: Deliveries::default(),
            scratch: Scratch::default(),
            filter_text: String::new(),
            clock,
            next_sweep,
            drain: None,
            is_ending: false,
            is_serving: false,
            not_accepted: Seldom::default(),
            malformed: MalformedLog::default(),
            failover: None,
            hand_over: None,
            trust,
            membership: None,
        };
        shard.begin_with_pair();
        Ok(shard)
    }

    /// Makes the poll and the inbox that wakes it.
    pub fn inbox() -> io::Result<(Poll, Arc<Inbox>)> {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), INBOX)?;
        Ok((poll, Arc::new(Inbox::new(waker))))
    }

    /// Runs until it is told to end. When it is to stop, everything is answered and written, as far as there is time; from then on it does
    /// for the pair what is left to be done.
    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(TURN_EVENTS_MAX);
        // Deliveries of the last run go on at once.
        let snapshot = Arc::clone(&self.context.store.snapshot());
        self.sync(&snapshot);
        self.enlist();
        while !self.is_ending {
            let patience = self.patience();
            match self.poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            self.turn(&events);
            self.context.stalls.turn_ends(Instant::now());
            self.tell_drained();
        }
        self.primary.iter_mut().for_each(Primary::end);
        Ok(())
    }

    /// Best-effort events need no more than an ordinary thread. Workers of a graph that stop each other would stop one, and wait for it.
    fn enlist(&mut self) {
        if !(self.real_time.is_empty() && self.graphs.are_ordinary()) && self.membership.is_none() {
            self.membership = Some(self.context.realtime.enlist(Rank::Shard));
        }
    }

    /// How long the shard may sleep if nothing happens.
    fn patience(&mut self) -> Duration {
        if !(self.unread.is_empty() && self.unserved.is_empty() && !self.unaccepted && self.endpoint.is_idle()) {
            return Duration::ZERO;
        }
        if self.primary.as_ref().is_some_and(Primary::is_pumping) {
            return Duration::ZERO;
        }
        let sweep = self.next_sweep.saturating_duration_since(Instant::now());
        let sweep = self.hand_over.as_ref().map_or(sweep, |_| sweep.min(hand_over::LOOK_AGAIN));
        let sweep = self.endpoint.send_queues.patience().map_or(sweep, |soon| sweep.min(soon));
        let sweep = self.graphs.wait_until().map_or(sweep, |until| sweep.min(until.saturating_duration_since(Instant::now())));
        // Who does not lead does no work, whatever there is.
        let work = if self.leads() { self.broker.next_timer() } else { None };
        let backup = self.primary.as_ref().and_then(Primary::gives_up_at);
        let checkpoint = if self.has_checkpoints() && self.leads() { self.graphs.next_checkpoint() } else { None };
        work.into_iter().chain(backup).chain(checkpoint).min().map_or(sweep, |timer| sweep.min(self.clock.until(timer)))
    }

    fn lap(&mut self, stage: Stage) {
        self.clock.lap(stage, &self.context.stages);
    }

    fn record_laps(&mut self) {
        self.clock.record_laps(&self.context.stages);
    }

    fn turn(&mut self, events: &Events) {
        self.clock.read();
        self.context.stalls.turn_begins(self.clock.now);
        self.tell_leadership();
        let mut is_to_accept = std::mem::take(&mut self.unaccepted);
        for slot in std::mem::take(&mut self.unread) {
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.is_to_be_read = false;
            }
            self.read(slot);
        }
        let read_until = self.clock.now + TURN_READ_MAX;
        self.read_links_again(read_until);
        for event in events {
            match event.token() {
                LISTENERS => is_to_accept = true,
                LINK_LISTENERS => self.endpoint.accept_later(),
                INBOX => self.take_messages(),
                REPLICA_CHANNEL => self.channel_is_ready(event),
                Token(token) if token >= LINKS => self.link_is_ready(token - LINKS, event, read_until),
                Token(slot) => {
                    if event.is_writable() && self.connections.get(slot).is_some_and(|connection| !connection.is_written()) {
                        self.dirty.push(slot);
                    }
                    if event.is_read_closed()
                        && let Some(connection) = self.connections.get_mut(slot)
                    {
                        connection.expect_end();
                    }
                    if event.is_readable() || event.is_error() {
                        self.read(slot);
                    }
                }
            }
        }
        self.take_rounds();
        self.ask_send_queues();
        self.make_noted();
        self.serve_all();
        self.tell_leadership();
        self.end_turn();
        self.serve_backup();
        self.flush();
        self.tell_backup_the_rest();
        self.settle_send_queues();
        self.look_whether_drained();
        if self.clock.now >= self.next_sweep {
            self.next_sweep = self.clock.now + SWEEP_PERIOD;
            // A message whose wake-up failed is found here, and a connection that the system refused to accept before.
            self.take_messages();
            is_to_accept = true;
            self.endpoint.accept_later();
            let snapshot = self.context.store.snapshot();
            self.sync(&snapshot);
            self.sweep(&snapshot);
            self.sweep_links();
            self.end_turn();
            self.flush();
        }
        // Events do not wait for those who come.
        if is_to_accept {
            self.accept();
        }
        self.accept_links();
        self.record_laps();
    }

    /// Reads what is there, to be served when the turn has read everything.
    fn read(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if connection.postpones() {
            return;
        }
        // What is there goes first: a client that sends faster than it takes its answers must not fill our memory.
        if connection.holds_unserved {
            self.read_next_turn(slot);
            return self.unserved.push_back(slot);
        }
        match connection.read(self.clock.now) {
            Ok(connection::Read::Drained) => {}
            Ok(connection::Read::MoreToCome) => self.read_next_turn(slot),
            Err(_) => return self.close(slot),
        }
        self.unserved.push_back(slot);
    }

    /// Lets what was postponed go on in the next turn, if it can.
    fn resume(&mut self, slot: usize) {
        if self.connections.get_mut(slot).is_some_and(Connection::resumes) {
            self.read_next_turn(slot);
        }
    }

    /// Has a connection read in the next turn, once: twice would be two shares of a turn.
    fn read_next_turn(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.connections[slot].is_to_be_read, true) {
            self.unread.push(slot);
        }
    }
}
