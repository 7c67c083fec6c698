//! The relay itself: who is connected, which topics and queues there are, and what goes where. It takes frames and gives bytes; it looks into no message.
//!
//! ```text
//! sender ── Message ──> queue ── Message ──> listener with credit, in turns
//!        <── Credit ──       (when it has left the queue)
//! sender ── Message ──> topic ── Message ──> each listener; what a slow one does not take waits in a backlog, and is lost to him beyond its limit
//!        <── Credit ──       (at once)
//! ```
//!
//! A queue holds what its senders had credit for, so that a listener who takes nothing holds up those who send to him, and nobody else.

mod client;
mod credit;
mod ends;
mod limits;
mod passage;
mod place;
mod refusals;
mod unique_queue;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
    time::Duration,
};

use self::{
    client::Client,
    place::{End, Place, PlaceId},
    refusals::Refusals,
    unique_queue::UniqueQueue,
};
pub use self::{
    client::ClientId,
    limits::{HubCounts, HubLimits},
    refusals::{Limit, REFUSED_CLIENTS_MAX},
};
use super::{Channel, Frame, Reason, VERSIONS, agree, write};
use crate::{
    Destination,
    session::{OUT_BYTES_MAX, OUT_BYTES_STUCK},
};

/// Steps after which a turn is over, so that the caller releases its lock around the hub. A step is a frame, an end, a message, or 4 KiB that are copied.
pub const TURN_STEPS: u64 = 256;
/// Steps of each kind of pending work in one turn.
const KIND_STEPS: u64 = 64;
/// Refused connections that are open at the same time, each to receive the reason; a further one is closed at once.
const REFUSED_CONNECTIONS_MAX: usize = 64;

/// A client's connection: a number that is used once.
pub type ConnectionId = u64;
type EndId = u64;

/// What clients of a stopping relay are told.
const STOPPING: &str = "the relay is stopping";

/// A connected client.
#[derive(Debug)]
struct Connection {
    client: ClientId,
    /// The client's name.
    name: Arc<str>,
    /// True if it was refused, so that it counts for no limit.
    is_refused: bool,
    is_greeted: bool,
    /// `None`: closed from here, and not yet from there.
    channels: BTreeMap<Channel, Option<EndId>>,
    /// What is to be written.
    out: Vec<u8>,
    /// Listeners for which something waits until `out` has room.
    held: BTreeSet<EndId>,
    /// The one of them that was served last: they take turns.
    served: EndId,
    heard: Duration,
    /// Nothing is read any more, and behind what is to be written it is closed.
    is_ending: bool,
}

/// What is to be done for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It goes on.
    Open,
    /// It is to be closed behind what is to be written.
    Ending,
    /// There is none of this number.
    Gone,
}

/// A relay's state.
#[derive(Debug)]
pub struct Hub {
    limits: HubLimits,
    connections: BTreeMap<ConnectionId, Connection>,
    ends: BTreeMap<EndId, End>,
    places: BTreeMap<PlaceId, Place>,
    names: BTreeMap<Destination, PlaceId>,
    clients: BTreeMap<ClientId, Client>,
    refusals: Refusals,
    /// Connections that were refused and are not closed yet.
    refused_connections: usize,
    next: u64,
    /// The time as of the last call.
    now: Duration,
    /// When [`Self::look`] was last called.
    looked: Duration,
    /// Work that was done since the start, and up to where it is part of the present turn.
    steps: u64,
    turn_end: u64,
    /// Queues without listeners, by when they were used; an entry may be too old.
    idle: BTreeSet<(Duration, PlaceId)>,
    /// Clients with suspended senders.
    suspended_clients: BTreeSet<ClientId>,
    /// Pending work: queues with messages that may be delivered.
    undelivered: UniqueQueue<PlaceId>,
    /// Pending work: places with senders that may receive credit.
    unfed: UniqueQueue<PlaceId>,
    /// Pending work: clients with suspended senders that may continue.
    resuming: UniqueQueue<ClientId>,
    /// Pending work: removed queues.
    removing: VecDeque<PlaceId>,
    /// Pending work: closed connections with channels that are not released yet.
    closing: VecDeque<Connection>,
    /// Pending work: messages that closed listeners of topics did not receive, and whose quota they are counted against.
    unreceived: VecDeque<(ClientId, VecDeque<Arc<[u8]>>)>,
    /// Connections that something was written for since it was last asked.
    woken: BTreeSet<ConnectionId>,
    counts: HubCounts,
    is_stopping: bool,
}

impl Hub {
    /// Nobody is connected.
    pub fn new(limits: HubLimits) -> Self {
        Self {
            limits,
            connections: BTreeMap::new(),
            ends: BTreeMap::new(),
            places: BTreeMap::new(),
            names: BTreeMap::new(),
            clients: BTreeMap::new(),
            refusals: Refusals::default(),
            refused_connections: 0,
            next: 0,
            now: Duration::ZERO,
            looked: Duration::ZERO,
            steps: 0,
            turn_end: TURN_STEPS,
            idle: BTreeSet::new(),
            suspended_clients: BTreeSet::new(),
            undelivered: UniqueQueue::default(),
            unfed: UniqueQueue::default(),
            resuming: UniqueQueue::default(),
            removing: VecDeque::new(),
            closing: VecDeque::new(),
            unreceived: VecDeque::new(),
            woken: BTreeSet::new(),
            counts: HubCounts::default(),
            is_stopping: false,
        }
    }

    /// What is there, and what has happened.
    pub fn counts(&self) -> HubCounts {
        HubCounts {
            connections: self.connections.len() - self.refused_connections,
            clients: self.clients.len(),
            clients_at_limit: self.refusals.recent(self.now),
            clients_suspended: self.suspended_clients.len(),
            channels: self.ends.len(),
            destinations: self.places.len(),
            ..self.counts
        }
    }

    /// Returns how often each limit refused something to each client; see [`REFUSED_CLIENTS_MAX`].
    pub fn refusals(&self) -> Vec<(Arc<str>, Limit, u64)> {
        self.refusals.all()
    }

    /// Returns the refusals since the last call, for the log.
    pub fn take_refusals(&mut self) -> BTreeMap<(Arc<str>, Limit), u64> {
        self.refusals.take_unreported()
    }

    /// Begins a turn. Everything that is done until [`Self::is_turn_over`] is part of it.
    pub fn begin_turn(&mut self) {
        self.turn_end = self.steps + TURN_STEPS;
    }

    /// True if this turn has done [`TURN_STEPS`] steps, and the next task is to have its turn.
    pub fn is_turn_over(&self) -> bool {
        self.steps >= self.turn_end
    }

    /// Does pending work for about one turn. Returns true if some is left.
    pub fn work(&mut self, now: Duration) -> bool {
        self.now = now;
        let kinds = [
            Self::deliver_next,
            Self::feed_next,
            Self::resume_next,
            Self::remove_next,
            Self::close_next,
            Self::drop_unreceived,
            Self::expire_next,
        ];
        for do_next in kinds {
            let end = self.steps + KIND_STEPS;
            while self.steps < end && do_next(self) {}
        }
        self.has_work()
    }

    /// True if [`Self::work`] is to be called.
    pub fn has_work(&self) -> bool {
        let is_idle = self.undelivered.is_empty()
            && self.unfed.is_empty()
            && self.resuming.is_empty()
            && self.removing.is_empty()
            && self.closing.is_empty()
            && self.unreceived.is_empty();
        !is_idle || self.next_expiry().is_some_and(|due| due <= self.looked)
    }

    /// Registers a client's connection; the name is for logs and metrics.
    ///
    /// A connection beyond a limit receives the reason, and is [`Standing::Ending`]. Returns `None` if too many such connections are still open: the
    /// caller closes this one at once.
    pub fn connect(&mut self, client_id: ClientId, name: &str, now: Duration) -> Option<ConnectionId> {
        self.now = now;
        let (id, name) = (self.number(), Arc::from(name));
        let of_client = self.clients.get(&client_id).map_or(0, |client| client.connections);
        let limit = if of_client >= self.limits.client_connections_max {
            Some(Limit::ClientConnections)
        } else {
            (self.connections.len() - self.refused_connections >= self.limits.connections_max).then_some(Limit::Connections)
        };
        let is_refused = self.is_stopping || limit.is_some();
        limit.filter(|_| !self.is_stopping).into_iter().for_each(|limit| self.record_refusal(&name, limit));
        if is_refused && self.refused_connections >= REFUSED_CONNECTIONS_MAX {
            return None;
        }
        let connection = Connection {
            client: client_id,
            name: name.clone(),
            is_refused,
            is_greeted: false,
            channels: BTreeMap::new(),
            out: Vec::new(),
            held: BTreeSet::new(),
            served: 0,
            heard: now,
            is_ending: false,
        };
        self.connections.insert(id, connection);
        if is_refused {
            self.refused_connections += 1;
        } else {
            self.clients.entry(client_id).or_insert_with(|| Client::new(name)).connections += 1;
        }
        if self.is_stopping {
            self.end(id, Reason::Stopping, STOPPING);
        } else if let Some(limit) = limit {
            self.end(id, Reason::Full, &limit.to_string());
        }
        Some(id)
    }

    /// A client is gone: what it was sent and has not read is lost. [`Self::work`] releases its channels, which count for the client until then.
    pub fn disconnect(&mut self, id: ConnectionId, now: Duration) {
        self.now = now;
        let Some(connection) = self.connections.remove(&id) else { return };
        if connection.is_refused {
            self.refused_connections -= 1;
            return;
        }
        let client_id = connection.client;
        if let Some(client) = self.clients.get_mut(&client_id) {
            client.connections -= 1;
        }
        if !connection.channels.is_empty() {
            self.closing.push_back(Connection { out: Vec::new(), ..connection });
        }
        self.forget_unused(client_id);
    }

    /// Connections for which something is to be written, or which are to be closed; each is named once.
    pub fn take_woken(&mut self) -> BTreeSet<ConnectionId> {
        std::mem::take(&mut self.woken)
    }

    /// Exchanges what is to be written for `out`, which is empty, and fills up what there is room for again.
    pub fn take_out(&mut self, id: ConnectionId, out: &mut Vec<u8>) -> Standing {
        debug_assert!(out.is_empty(), "what was taken before is written");
        let Some(connection) = self.connections.get_mut(&id) else { return Standing::Gone };
        std::mem::swap(&mut connection.out, out);
        let is_ending = connection.is_ending;
        if is_ending {
            return Standing::Ending;
        }
        let stop = self.steps + TURN_STEPS;
        while self.steps < stop {
            let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.out.len() < OUT_BYTES_MAX) else { break };
            let next = connection.held.range((Excluded(connection.served), Unbounded)).next().or(connection.held.first());
            let Some(listener) = next.copied() else { break };
            connection.held.remove(&listener);
            connection.served = listener;
            self.steps += 1;
            self.serve(listener);
        }
        if self.connections.get(&id).is_some_and(|connection| !connection.held.is_empty() && connection.out.len() < OUT_BYTES_MAX) {
            self.woken.insert(id);
        }
        Standing::Open
    }

    /// Takes a client's frame.
    pub fn receive(&mut self, id: ConnectionId, frame: Frame<'_>, now: Duration) {
        self.now = now;
        self.steps += 1;
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| !connection.is_ending) else { return };
        if connection.out.len() > OUT_BYTES_STUCK {
            return self.fault(id, Reason::Full, "you make the relay answer, and do not read");
        }
        if !connection.is_greeted {
            return self.greet(id, &frame);
        }
        match frame {
            Frame::Open { channel, role, destination } => self.open(id, channel, role, destination),
            Frame::Close { channel } => self.close(id, channel),
            Frame::Message { channel, bytes } => self.message(id, channel, bytes),
            Frame::Credit { channel, bytes } => self.credit(id, channel, bytes),
            Frame::Remove { destination: destination @ Destination::Queue(_) } => {
                if let Some(place) = self.names.get(&destination).copied() {
                    self.remove(place, "the queue was removed");
                }
            }
            Frame::Remove { .. } => self.fault(id, Reason::NotAllowed, "a topic is not removed"),
            Frame::Ping { token } => self.write(id, &Frame::Pong { token }),
            Frame::Pong { .. } => {}
            Frame::Greeting { .. } | Frame::Refused { .. } => self.fault(id, Reason::NotAllowed, "a client does not say that here"),
        }
    }

    /// A client's bytes are no frame, or too much for the one that carries them: it is told and ended.
    pub fn fault(&mut self, id: ConnectionId, reason: Reason, words: &str) {
        if self.end(id, reason, words) {
            self.counts.ended += 1;
        }
    }

    /// Bytes of a client have come, if not a whole frame.
    pub fn heard(&mut self, id: ConnectionId, now: Duration) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.heard = now;
        }
    }

    /// Ends who is silent. Queues that nobody uses are removed by [`Self::work`].
    pub fn look(&mut self, now: Duration) {
        (self.now, self.looked) = (now, now);
        let silence_max = self.limits.silence_max;
        let silent = |connection: &Connection| !connection.is_ending && now >= connection.heard + silence_max;
        let silent: Vec<_> = self.connections.iter().filter(|(_, connection)| silent(connection)).map(|(id, _)| *id).collect();
        for id in silent {
            self.fault(id, Reason::Silent, "nothing was heard for too long");
        }
    }

    /// Tells every client that the relay stops, those that come from now on too.
    pub fn stop(&mut self) {
        self.is_stopping = true;
        let all: Vec<_> = self.connections.keys().copied().collect();
        for id in all {
            self.end(id, Reason::Stopping, STOPPING);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn record_refusal(&mut self, client: &Arc<str>, limit: Limit) {
        self.counts.refused_full += 1;
        self.refusals.record(client, limit, self.now);
    }

    fn write(&mut self, id: ConnectionId, frame: &Frame<'_>) {
        if let Some(connection) = self.connections.get_mut(&id) {
            write(frame, &mut connection.out);
            self.woken.insert(id);
        }
    }

    /// Tells a client why it is ended, once; false if it was. Its channels go when it is disconnected.
    fn end(&mut self, id: ConnectionId, reason: Reason, words: &str) -> bool {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| !connection.is_ending) else { return false };
        connection.is_ending = true;
        self.write(id, &Frame::Refused { channel: Channel::CONNECTION, reason, words });
        true
    }

    fn greet(&mut self, id: ConnectionId, frame: &Frame<'_>) {
        let Frame::Greeting { newest, oldest } = *frame else {
            return self.fault(id, Reason::Version, "a greeting comes first");
        };
        if oldest > newest || agree(VERSIONS, oldest..=newest).is_none() {
            return self.fault(id, Reason::Version, &format!("the relay speaks version {}", VERSIONS.end()));
        }
        self.write(id, &Frame::Greeting { newest: *VERSIONS.end(), oldest: *VERSIONS.start() });
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.is_greeted = true;
        }
    }

    /// The end of a client's channel; a number that is not in use is a fault. `None` too of one that was closed from here: the frame was on its way.
    fn end_of(&mut self, id: ConnectionId, channel: Channel) -> Option<EndId> {
        match self.connections.get(&id)?.channels.get(&channel) {
            Some(end) => *end,
            None => {
                self.fault(id, Reason::Channel, "the channel's number is not in use");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
