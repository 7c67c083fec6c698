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

mod limits;
mod passage;
mod place;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

pub use self::limits::{HubCounts, HubLimits};
use self::place::{End, Held, Kind, Place, PlaceId};
use super::{Channel, Frame, Reason, Role, VERSIONS, agree, cost, write};
use crate::{Destination, session::OUT_BYTES_STUCK};

/// A client's connection: a number that is used once.
pub type ConnectionId = u64;
type EndId = u64;

/// What clients of a stopping relay are told.
const STOPPING: &str = "the relay is stopping";

/// A connected client.
#[derive(Debug)]
struct Connection {
    is_greeted: bool,
    /// `None`: closed from here, and not yet from there.
    channels: BTreeMap<Channel, Option<EndId>>,
    /// What is to be written.
    out: Vec<u8>,
    /// Where something waits for room in `out`: queues, and topics' listeners.
    held: BTreeSet<PlaceId>,
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
    next: u64,
    /// Senders whose credit is held back while there is too much in the relay.
    withheld: BTreeSet<EndId>,
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
            next: 0,
            withheld: BTreeSet::new(),
            woken: BTreeSet::new(),
            counts: HubCounts::default(),
            is_stopping: false,
        }
    }

    /// What is there, and what has happened.
    pub fn counts(&self) -> HubCounts {
        HubCounts { connections: self.connections.len(), channels: self.ends.len(), destinations: self.places.len(), ..self.counts }
    }

    /// A client has connected. One too many is to be told so and closed, like any that is ending.
    pub fn connect(&mut self, now: Duration) -> ConnectionId {
        let (id, is_one_too_many) = (self.number(), self.connections.len() >= self.limits.connections_max);
        let connection = Connection {
            is_greeted: false,
            channels: BTreeMap::new(),
            out: Vec::new(),
            held: BTreeSet::new(),
            heard: now,
            is_ending: false,
        };
        self.connections.insert(id, connection);
        if self.is_stopping {
            self.end(id, Reason::Stopping, STOPPING);
        } else if is_one_too_many {
            self.counts.refused_full += 1;
            self.end(id, Reason::Full, "the relay has as many connections as it may have");
        }
        id
    }

    /// A client is gone: what it was sent and has not read is lost.
    pub fn disconnect(&mut self, id: ConnectionId, now: Duration) {
        if let Some(connection) = self.connections.remove(&id) {
            connection.channels.into_values().flatten().for_each(|end| self.drop_end(end, now));
        }
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
        for place in std::mem::take(&mut connection.held) {
            self.deliver(place);
        }
        Standing::Open
    }

    /// Takes a client's frame.
    pub fn receive(&mut self, id: ConnectionId, frame: Frame<'_>, now: Duration) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| !connection.is_ending) else { return };
        if connection.out.len() > OUT_BYTES_STUCK {
            return self.fault(id, Reason::Full, "you make the relay answer, and do not read");
        }
        if !connection.is_greeted {
            return self.greet(id, &frame);
        }
        match frame {
            Frame::Open { channel, role, destination } => self.open(id, channel, role, destination, now),
            Frame::Close { channel } => self.close(id, channel, now),
            Frame::Message { channel, bytes } => self.message(id, channel, bytes, now),
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

    /// Ends who is silent, and removes queues that nobody uses.
    pub fn look(&mut self, now: Duration) {
        let HubLimits { silence_max, queue_idle, .. } = self.limits;
        let silent = |connection: &Connection| !connection.is_ending && now >= connection.heard + silence_max;
        let silent: Vec<_> = self.connections.iter().filter(|(_, connection)| silent(connection)).map(|(id, _)| *id).collect();
        for id in silent {
            self.fault(id, Reason::Silent, "nothing was heard for too long");
        }
        let is_idle = |place: &Place| !place.is_topic() && place.listeners.is_empty() && now >= place.used + queue_idle;
        let idle: Vec<_> = self.places.iter().filter(|(_, place)| is_idle(place)).map(|(id, _)| *id).collect();
        for place in idle {
            self.counts.queues_expired += 1;
            self.remove(place, "nobody has listened to the queue, or sent to it, for too long");
        }
        self.pay_withheld();
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

    fn open(&mut self, id: ConnectionId, channel: Channel, role: Role, destination: Destination, now: Duration) {
        let (channels_max, destinations_max) = (self.limits.channels_max, self.limits.destinations_max);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.channels.contains_key(&channel) {
            return self.fault(id, Reason::Channel, "the channel's number is in use");
        }
        // Those that were refused and are not closed from there count too.
        if connection.channels.len() >= 2 * channels_max {
            return self.fault(id, Reason::Full, "too many channels, and those that were refused are not closed");
        }
        let known = self.names.get(&destination).copied();
        if connection.channels.len() >= channels_max {
            return self.refuse(id, channel, Reason::Full, "the connection has as many channels as it may have");
        }
        if known.is_none() && self.places.len() >= destinations_max {
            return self.refuse(id, channel, Reason::Full, "the relay has as many topics and queues as it may have");
        }
        let place_id = known.unwrap_or_else(|| {
            self.next += 1;
            self.names.insert(destination.clone(), self.next);
            self.places.insert(self.next, Place::new(destination, now));
            self.next
        });
        let end_id = self.number();
        let place = self.places.get_mut(&place_id).expect("it was found or made");
        place.used = now;
        let kind = match role {
            Role::Send => {
                place.senders.insert(end_id);
                place.hungry.push_back(end_id);
                Kind::Sender { owed: 0 }
            }
            Role::Listen => {
                place.listeners.push_back(end_id);
                Kind::Listener { backlog: VecDeque::new(), backlog_bytes: 0 }
            }
        };
        self.ends.insert(end_id, End { connection: id, channel, place: place_id, credit: 0, kind });
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.channels.insert(channel, Some(end_id));
        }
        self.feed(place_id);
    }

    /// Ends a channel from here, open or not.
    fn refuse(&mut self, id: ConnectionId, channel: Channel, reason: Reason, words: &str) {
        if reason == Reason::Full {
            self.counts.refused_full += 1;
        }
        self.write(id, &Frame::Refused { channel, reason, words });
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.channels.insert(channel, None);
        }
    }

    /// The client ends a channel, or confirms that it has ended.
    fn close(&mut self, id: ConnectionId, channel: Channel, now: Duration) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.channels.remove(&channel) {
            None => self.fault(id, Reason::Channel, "the channel's number is not in use"),
            Some(None) => {}
            Some(Some(end)) => {
                self.drop_end(end, now);
                self.write(id, &Frame::Close { channel });
            }
        }
    }

    /// The end of a channel goes; its place too, if nobody would miss that.
    fn drop_end(&mut self, end_id: EndId, now: Duration) {
        let Some(mut end) = self.ends.remove(&end_id) else { return };
        self.withheld.remove(&end_id);
        let Some(place) = self.places.get_mut(&end.place) else { return };
        place.used = now;
        match &end.kind {
            Kind::Sender { .. } => {
                end.set_credit(0, place);
                place.senders.remove(&end_id);
                place.hungry.retain(|hungry| *hungry != end_id);
            }
            Kind::Listener { backlog_bytes, .. } => {
                self.counts.waiting_bytes -= backlog_bytes;
                place.listeners.retain(|listener| *listener != end_id);
            }
        }
        if place.is_forgotten() {
            self.names.remove(&place.destination);
            self.places.remove(&end.place);
        } else {
            self.deliver(end.place);
            self.feed(end.place);
        }
        self.pay_withheld();
    }

    /// A queue goes with everything in it, and whoever uses it is told.
    fn remove(&mut self, place_id: PlaceId, words: &str) {
        let Some(place) = self.places.remove(&place_id) else { return };
        self.names.remove(&place.destination);
        self.counts.waiting_bytes -= place.bytes;
        self.counts.messages_removed += place.messages.len() as u64;
        for end_id in place.senders.into_iter().chain(place.listeners) {
            self.withheld.remove(&end_id);
            if let Some(end) = self.ends.remove(&end_id) {
                self.refuse(end.connection, end.channel, Reason::Removed, words);
            }
        }
        self.pay_withheld();
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

    fn message(&mut self, id: ConnectionId, channel: Channel, bytes: &[u8], now: Duration) {
        let Some(end_id) = self.end_of(id, channel) else { return };
        let end = self.ends.get_mut(&end_id).expect("an open channel has an end");
        if !matches!(end.kind, Kind::Sender { .. }) {
            return self.fault(id, Reason::Channel, "the channel is one to listen");
        }
        if end.credit <= 0 {
            return self.fault(id, Reason::NoCredit, "more was sent than there was credit for");
        }
        let (place_id, length) = (end.place, bytes.len() as u64);
        let place = self.places.get_mut(&place_id).expect("an end has a place");
        place.used = now;
        end.set_credit(end.credit - i64::from(cost(bytes.len())), place);
        self.counts.messages_in += 1;
        self.counts.bytes_in += length;
        if place.is_topic() {
            self.publish(place_id, bytes);
            return self.repay(end_id, cost(bytes.len()));
        }
        if self.counts.waiting_bytes + length > self.limits.bytes_max {
            self.drop_end(end_id, now);
            return self.refuse(id, channel, Reason::Full, "as many bytes wait in the relay as it may have");
        }
        self.counts.waiting_bytes += length;
        place.bytes += length;
        place.messages.push_back(Held { bytes: bytes.into(), payer: end_id });
        self.deliver(place_id);
    }

    fn credit(&mut self, id: ConnectionId, channel: Channel, bytes: u32) {
        let Some(end_id) = self.end_of(id, channel) else { return };
        let end = self.ends.get_mut(&end_id).expect("an open channel has an end");
        if !matches!(end.kind, Kind::Listener { .. }) {
            return self.fault(id, Reason::Channel, "the channel is one to send");
        }
        end.credit = end.credit.saturating_add(i64::from(bytes));
        let place = end.place;
        self.deliver(place);
    }
}

#[cfg(test)]
mod tests;
