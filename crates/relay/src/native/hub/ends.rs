//! Opening and closing of channels, and the removal of queues.
//!
//! Each call costs a constant or logarithmic amount of work. What is in proportion to a connection or a queue is done piece by piece in [`Hub::work`].

use std::{collections::VecDeque, time::Duration};

use super::{
    ClientId, ConnectionId, EndId, Hub, Limit,
    place::{End, Kind, Place, PlaceId, Use},
};
use crate::{
    Destination,
    native::{Channel, Frame, Reason, Role, cost},
};

/// Messages of a removed queue or a closed listener that are dropped in one piece of work.
const REMOVED_MESSAGES: usize = 16;

impl Hub {
    pub(super) fn open(&mut self, id: ConnectionId, channel: Channel, role: Role, destination: Destination) {
        let channels_max = self.limits.channels_max;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.channels.contains_key(&channel) {
            return self.fault(id, Reason::Channel, "the channel's number is in use");
        }
        // Those that were refused and are not closed from there count too.
        if connection.channels.len() >= 2 * channels_max {
            return self.fault(id, Reason::Full, "too many channels, and those that were refused are not closed");
        }
        let client_id = connection.client;
        let known = self.names.get(&destination).copied();
        if let Some(limit) = self.limit_reached(id, role, &destination, known) {
            return self.refuse_full(id, channel, limit);
        }
        let place_id = known.unwrap_or_else(|| {
            self.next += 1;
            self.names.insert(destination.clone(), self.next);
            self.places.insert(self.next, Place::new(destination, self.now));
            self.next
        });
        let end_id = self.number();
        let place = self.places.get_mut(&place_id).expect("it was found or made");
        place.used = self.now;
        let kind = match role {
            Role::Send => {
                place.senders.insert(end_id);
                place.hungry.insert(end_id);
                Kind::Sender { owed: 0, has_window: false }
            }
            Role::Listen => {
                place.listeners.insert(end_id);
                Kind::Listener { backlog: VecDeque::new(), backlog_bytes: 0, turn: None }
            }
        };
        self.ends.insert(end_id, End { connection: id, client: client_id, channel, place: place_id, credit: 0, kind });
        self.clients.get_mut(&client_id).expect("a connection has a client").ends += 1;
        self.change_use(place_id, client_id, |uses| match role {
            Role::Send => uses.senders += 1,
            Role::Listen => uses.listeners += 1,
        });
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.channels.insert(channel, Some(end_id));
        }
        self.note_idle(place_id);
        self.feed(place_id);
    }

    /// Returns the limit that a further channel would exceed.
    fn limit_reached(&self, id: ConnectionId, role: Role, destination: &Destination, known: Option<PlaceId>) -> Option<Limit> {
        let limits = &self.limits;
        let connection = self.connections.get(&id)?;
        let client = self.clients.get(&connection.client)?;
        let here = known.and_then(|place| self.places.get(&place)?.users.get(&connection.client));
        let listeners = here.map_or(0, |uses| uses.listeners);
        let is_topic_listener = role == Role::Listen && matches!(destination, Destination::Topic(_));
        [
            (connection.channels.len() >= limits.channels_max, Limit::Channels),
            (client.ends >= limits.client_channels_max, Limit::ClientChannels),
            (here.is_none() && client.destinations >= limits.client_destinations_max, Limit::ClientDestinations),
            (known.is_none() && self.places.len() >= limits.destinations_max, Limit::Destinations),
            (is_topic_listener && listeners >= limits.client_topic_listeners_max, Limit::ClientTopicListeners),
        ]
        .into_iter()
        .find_map(|(is_reached, limit)| is_reached.then_some(limit))
    }

    /// Ends a channel from here, open or not.
    pub(super) fn refuse(&mut self, id: ConnectionId, channel: Channel, reason: Reason, words: &str) {
        self.write(id, &Frame::Refused { channel, reason, words });
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.channels.insert(channel, None);
        }
    }

    /// Ends a channel because a limit is reached.
    pub(super) fn refuse_full(&mut self, id: ConnectionId, channel: Channel, limit: Limit) {
        if let Some(connection) = self.connections.get(&id) {
            self.record_refusal(&connection.name.clone(), limit);
        }
        self.refuse(id, channel, Reason::Full, &limit.to_string());
    }

    /// The client ends a channel, or confirms that it has ended.
    pub(super) fn close(&mut self, id: ConnectionId, channel: Channel) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.channels.remove(&channel) {
            None => self.fault(id, Reason::Channel, "the channel's number is not in use"),
            Some(None) => {}
            Some(Some(end)) => {
                self.drop_end(end);
                self.write(id, &Frame::Close { channel });
            }
        }
    }

    /// The end of a channel goes; its place too, if nobody would miss that.
    ///
    /// No other listener receives anything by that: what waits in a queue waits because none of them may receive it.
    pub(super) fn drop_end(&mut self, end_id: EndId) {
        let Some(mut end) = self.ends.remove(&end_id) else { return };
        self.steps += 1;
        let place = self.places.get_mut(&end.place).expect("an end has a place");
        place.used = self.now;
        match end.kind {
            Kind::Sender { .. } => {
                end.set_credit(0, place);
                place.senders.remove(&end_id);
                place.hungry.remove(&end_id);
                let has_room_for_others = !place.hungry.is_empty();
                self.unsuspend(end_id, end.place, end.client);
                if has_room_for_others {
                    self.unfed.push(end.place);
                }
            }
            Kind::Listener { ref mut backlog, turn, .. } => {
                place.listeners.remove(&end_id);
                if let Some(turn) = turn {
                    place.ready.remove(&turn);
                }
                if let Some(connection) = self.connections.get_mut(&end.connection) {
                    connection.held.remove(&end_id);
                }
                if !backlog.is_empty() {
                    self.unreceived.push_back((end.client, std::mem::take(backlog)));
                }
                self.note_idle(end.place);
            }
        }
        let is_sender = matches!(end.kind, Kind::Sender { .. });
        self.clients.get_mut(&end.client).expect("an end has a client").ends -= 1;
        self.change_use(end.place, end.client, |uses| if is_sender { uses.senders -= 1 } else { uses.listeners -= 1 });
        self.forget_unused(end.client);
    }

    /// Changes what a client has in a place, and removes a place in which nobody has anything.
    pub(super) fn change_use(&mut self, place_id: PlaceId, client_id: ClientId, change: impl FnOnce(&mut Use)) {
        let place = self.places.get_mut(&place_id).expect("a place in use is there");
        let client = self.clients.get_mut(&client_id).expect("a client that uses a place is there");
        let uses = place.users.entry(client_id).or_insert_with(|| {
            client.destinations += 1;
            Use::default()
        });
        change(uses);
        if *uses == Use::default() {
            place.users.remove(&client_id);
            client.destinations -= 1;
        }
        if !place.users.is_empty() {
            return;
        }
        if let Some(from) = place.idle_from {
            self.idle.remove(&(from, place_id));
        }
        if place.removed.is_none() {
            self.names.remove(&place.destination);
        }
        self.places.remove(&place_id);
    }

    /// Removes a queue: its name is free at once, and [`Hub::work`] releases its messages and notifies its users.
    pub(super) fn remove(&mut self, place_id: PlaceId, words: &'static str) {
        let Some(place) = self.places.get_mut(&place_id).filter(|place| place.removed.is_none()) else { return };
        place.removed = Some(words);
        self.names.remove(&place.destination);
        if let Some(from) = place.idle_from.take() {
            self.idle.remove(&(from, place_id));
        }
        self.removing.push_back(place_id);
    }

    /// Releases a piece of a removed queue; false if none is pending.
    pub(super) fn remove_next(&mut self) -> bool {
        let Some(place_id) = self.removing.pop_front() else { return false };
        self.steps += 1;
        for _ in 0..REMOVED_MESSAGES {
            let Some(place) = self.places.get_mut(&place_id) else { return true };
            let Some(held) = place.messages.pop_front() else { break };
            self.steps += 1;
            self.counts.messages_removed += 1;
            self.release(place_id, held.client, held.cost());
        }
        let Some(place) = self.places.get(&place_id) else { return true };
        let end = place.senders.first().or(place.listeners.first()).copied().filter(|_| place.messages.is_empty());
        let words = place.removed.unwrap_or_default();
        if let Some(end_id) = end {
            let End { connection, channel, .. } = self.ends[&end_id];
            self.drop_end(end_id);
            self.refuse(connection, channel, Reason::Removed, words);
        }
        self.removing.push_back(place_id);
        true
    }

    /// Releases one channel of a closed connection; false if none is pending. Connections that close at the same time take turns.
    pub(super) fn close_next(&mut self) -> bool {
        let Some(mut connection) = self.closing.pop_front() else { return false };
        self.steps += 1;
        if let Some((_, end)) = connection.channels.pop_first() {
            if let Some(end) = end {
                connection.held.remove(&end);
                self.drop_end(end);
            }
            self.closing.push_back(connection);
        }
        true
    }

    /// Drops some messages that a closed listener did not receive; false if there are none.
    pub(super) fn drop_unreceived(&mut self) -> bool {
        let Some((client_id, mut backlog)) = self.unreceived.pop_front() else { return false };
        for _ in 0..REMOVED_MESSAGES {
            let Some(bytes) = backlog.pop_front() else { break };
            self.steps += 1;
            self.discharge(client_id, u64::from(cost(bytes.len())));
        }
        if backlog.is_empty() {
            self.forget_unused(client_id);
        } else {
            self.unreceived.push_back((client_id, backlog));
        }
        true
    }

    /// Puts a queue without listeners among those that expire.
    pub(super) fn note_idle(&mut self, place_id: PlaceId) {
        let Some(place) = self.places.get_mut(&place_id) else { return };
        if !place.is_topic() && place.listeners.is_empty() && place.idle_from.is_none() && place.removed.is_none() {
            place.idle_from = Some(place.used);
            self.idle.insert((place.used, place_id));
        }
    }

    /// When the next queue is to be looked at, whether it has expired.
    pub(super) fn next_expiry(&self) -> Option<Duration> {
        self.idle.first().map(|(from, _)| *from + self.limits.queue_idle)
    }

    /// Looks at one queue that was not used for long; false if none is due.
    pub(super) fn expire_next(&mut self) -> bool {
        if self.next_expiry().is_none_or(|due| due > self.looked) {
            return false;
        }
        self.steps += 1;
        let Some((_, place_id)) = self.idle.pop_first() else { return false };
        let Some(place) = self.places.get_mut(&place_id) else { return true };
        place.idle_from = None;
        if place.used + self.limits.queue_idle > self.looked {
            // It was used after the entry was made.
            self.note_idle(place_id);
        } else if place.listeners.is_empty() {
            self.counts.queues_expired += 1;
            self.remove(place_id, "nobody has listened to the queue, or sent to it, for too long");
        }
        true
    }
}
