//! How messages pass: from senders into queues and backlogs, from there to listeners.
//!
//! One call hands over a bounded number of messages and bytes. What is left continues in [`Hub::work`], or when the connection has room again.

use std::{
    ops::Bound::{Excluded, Included},
    sync::Arc,
};

use super::{
    ClientId, ConnectionId, EndId, Hub, Limit,
    place::{End, Held, Kind, Place, PlaceId},
};
use crate::{
    native::{Channel, Frame, Reason, cost, write},
    session::OUT_BYTES_MAX,
};

/// Steps after which the deliveries of one place pause.
const DELIVERY_STEPS: u64 = 64;
/// Listeners that are given a topic's message in one piece of work.
const PUBLISHED_LISTENERS_MAX: usize = 64;
/// Bytes that are copied to listeners in one piece of work. For further listeners the message is copied when their connections take their bytes.
const PUBLISHED_BYTES_MAX: usize = OUT_BYTES_MAX;
/// Bytes whose copying counts as a step.
const STEP_BYTES: usize = 4096;

/// Steps that copying a message counts as.
fn copy_steps(length: usize) -> u64 {
    1 + (length / STEP_BYTES) as u64
}

impl Hub {
    pub(super) fn message(&mut self, id: ConnectionId, channel: Channel, bytes: &[u8]) {
        let Some(end_id) = self.end_of(id, channel) else { return };
        let end = self.ends.get_mut(&end_id).expect("an open channel has an end");
        if !matches!(end.kind, Kind::Sender { .. }) {
            return self.fault(id, Reason::Channel, "the channel is one to listen");
        }
        if end.credit <= 0 {
            return self.fault(id, Reason::NoCredit, "more was sent than there was credit for");
        }
        let (place_id, client_id, cost) = (end.place, end.client, cost(bytes.len()));
        let place = self.places.get_mut(&place_id).expect("an end has a place");
        if place.removed.is_some() {
            return;
        }
        self.steps += copy_steps(bytes.len());
        place.used = self.now;
        end.set_credit(end.credit - i64::from(cost), place);
        self.counts.messages_in += 1;
        self.counts.bytes_in += bytes.len() as u64;
        // A message that each listener of a topic is given at once does not wait.
        let is_given_at_once = place.is_topic() && place.messages.is_empty() && place.listeners.len() < PUBLISHED_LISTENERS_MAX;
        let limit = self.bytes_limit_reached(client_id, u64::from(cost)).filter(|_| !is_given_at_once);
        if let Some(limit) = limit {
            self.drop_end(end_id);
            return self.refuse_full(id, channel, limit);
        }
        self.charge(client_id, u64::from(cost));
        self.change_use(place_id, client_id, |uses| uses.messages += 1);
        let place = self.places.get_mut(&place_id).expect("it is in use");
        place.bytes += u64::from(cost);
        place.messages.push_back(Held { bytes: bytes.into(), newest_end: self.next, payer: end_id, client: client_id });
        self.deliver(place_id);
    }

    /// Returns the limit that so many more pending bytes of a client would exceed.
    fn bytes_limit_reached(&self, client_id: ClientId, cost: u64) -> Option<Limit> {
        let pending = self.clients.get(&client_id).map_or(0, |client| client.pending_bytes);
        if pending + cost > self.limits.client_bytes_max {
            return Some(Limit::ClientBytes);
        }
        (self.counts.waiting_bytes + cost > self.limits.bytes_max).then_some(Limit::Bytes)
    }

    pub(super) fn credit(&mut self, id: ConnectionId, channel: Channel, bytes: u32) {
        let Some(end_id) = self.end_of(id, channel) else { return };
        let end = self.ends.get_mut(&end_id).expect("an open channel has an end");
        if !matches!(end.kind, Kind::Listener { .. }) {
            return self.fault(id, Reason::Channel, "the channel is one to send");
        }
        end.credit = end.credit.saturating_add(i64::from(bytes));
        self.serve(end_id);
    }

    /// Gives a listener what it may receive.
    pub(super) fn serve(&mut self, listener: EndId) {
        let Some(place_id) = self.ends.get(&listener).map(|end| end.place) else { return };
        if self.places.get(&place_id).is_some_and(|place| place.is_topic()) {
            return self.catch_up(listener);
        }
        self.line_up(listener);
        self.deliver(place_id);
    }

    /// Puts a queue's listener that has credit behind those whose turn comes before.
    fn line_up(&mut self, listener: EndId) {
        let number = self.number();
        let Some(end) = self.ends.get_mut(&listener).filter(|end| end.credit > 0) else { return };
        let (Some(place), Kind::Listener { turn: turn @ None, .. }) = (self.places.get_mut(&end.place), &mut end.kind) else { return };
        *turn = Some(number);
        place.ready.insert(number, listener);
    }

    /// Gives a place's messages to its listeners. Continues in [`Hub::work`] where there is much to give.
    pub(super) fn deliver(&mut self, place_id: PlaceId) {
        let Some(place) = self.places.get(&place_id) else { return };
        let delivered = if place.is_topic() { self.publish(place_id).into_iter().collect() } else { self.hand_over_all(place_id) };
        if self.places.get(&place_id).is_some_and(Place::has_deliverable) {
            self.undelivered.push(place_id);
        }
        if delivered.is_empty() {
            return;
        }
        for held in delivered {
            let cost = held.cost();
            self.discharge(held.client, cost);
            self.repay(held.payer, u32::try_from(cost).unwrap_or(u32::MAX));
            self.change_use(place_id, held.client, |uses| uses.messages -= 1);
            self.forget_unused(held.client);
        }
        self.feed(place_id);
    }

    /// Writes what can be written of a queue's messages, and returns them.
    fn hand_over_all(&mut self, place_id: PlaceId) -> Vec<Held> {
        let stop = self.steps + DELIVERY_STEPS;
        let mut handed = Vec::new();
        while self.steps < stop {
            let Some(place) = self.places.get_mut(&place_id).filter(|place| place.has_deliverable()) else { break };
            let Some((_, listener)) = place.ready.pop_first() else { break };
            self.steps += 1;
            if !self.is_able(listener) {
                continue;
            }
            handed.extend(self.hand_over(place_id, listener));
            self.line_up(listener);
        }
        handed
    }

    /// Whether a listener whose turn it is may receive a message now. It has left the line; where its connection has no room it is held there.
    fn is_able(&mut self, listener: EndId) -> bool {
        let Some(end) = self.ends.get_mut(&listener) else { return false };
        let Kind::Listener { turn, .. } = &mut end.kind else { return false };
        *turn = None;
        // The end of a closed connection remains until it is released.
        let Some(connection) = self.connections.get_mut(&end.connection).filter(|_| end.credit > 0) else { return false };
        let has_room = connection.out.len() < OUT_BYTES_MAX && !connection.is_ending;
        if !has_room {
            connection.held.insert(listener);
        }
        has_room
    }

    /// Writes a queue's first message to a listener, and returns it.
    fn hand_over(&mut self, place_id: PlaceId, listener: EndId) -> Option<Held> {
        let (place, end) = (self.places.get_mut(&place_id)?, self.ends.get_mut(&listener)?);
        let connection = self.connections.get_mut(&end.connection)?;
        let held = place.messages.pop_front()?;
        end.credit -= i64::from(cost(held.bytes.len()));
        write(&Frame::Message { channel: end.channel, bytes: &held.bytes }, &mut connection.out);
        self.woken.insert(end.connection);
        place.bytes -= held.cost();
        self.steps += copy_steps(held.bytes.len());
        self.counts.messages_out += 1;
        self.counts.bytes_out += held.bytes.len() as u64;
        Some(held)
    }

    /// Delivers at one place; false if none is pending.
    pub(super) fn deliver_next(&mut self) -> bool {
        let Some(place_id) = self.undelivered.pop() else { return false };
        self.steps += 1;
        self.deliver(place_id);
        true
    }

    /// A message of a queue leaves the relay without having been received.
    pub(super) fn release(&mut self, place_id: PlaceId, client_id: ClientId, cost: u64) {
        if let Some(place) = self.places.get_mut(&place_id) {
            place.bytes -= cost;
        }
        self.discharge(client_id, cost);
        self.change_use(place_id, client_id, |uses| uses.messages -= 1);
        self.forget_unused(client_id);
    }

    /// Gives a topic's first message to some of its listeners. Returns the message when all of them were given it.
    fn publish(&mut self, place_id: PlaceId) -> Option<Held> {
        let place = self.places.get_mut(&place_id)?;
        let Held { ref bytes, newest_end, .. } = *place.messages.front()?;
        let bytes = bytes.clone();
        let remaining = place.listeners.range((Excluded(place.published), Included(newest_end)));
        let listeners: Vec<EndId> = remaining.take(PUBLISHED_LISTENERS_MAX).copied().collect();
        let is_last = listeners.len() < PUBLISHED_LISTENERS_MAX;
        place.published = listeners.last().copied().filter(|_| !is_last).unwrap_or_default();
        let held = if is_last { place.messages.pop_front() } else { None };
        place.bytes -= held.as_ref().map_or(0, Held::cost);
        let mut copied = 0;
        for listener in listeners {
            self.steps += 1;
            self.append_to_backlog(listener, &bytes, &mut copied);
        }
        held
    }

    /// Gives a topic's message to a listener: at once, or when its connection has room. `copied` counts what was given at once.
    fn append_to_backlog(&mut self, listener: EndId, bytes: &Arc<[u8]>, copied: &mut usize) {
        let cost = u64::from(cost(bytes.len()));
        let Some(&End { connection: id, client: client_id, ref kind, .. }) = self.ends.get(&listener) else { return };
        let Kind::Listener { backlog, backlog_bytes, .. } = kind else { return };
        if self.connections.get(&id).is_none_or(|connection| connection.is_ending) {
            return;
        }
        let was_empty = backlog.is_empty();
        // An empty backlog takes a message of any length: it may be written at once.
        let has_room = was_empty || *backlog_bytes + cost <= self.limits.backlog_bytes_max;
        let limit = self.bytes_limit_reached(client_id, cost);
        if !has_room || limit.is_some() {
            self.counts.backlog_lost += 1;
            if let (Some(limit), true) = (limit, has_room) {
                self.record_refusal(&self.clients[&client_id].name.clone(), limit);
            }
            return;
        }
        self.charge(client_id, cost);
        if let Some(End { kind: Kind::Listener { backlog, backlog_bytes, .. }, .. }) = self.ends.get_mut(&listener) {
            backlog.push_back(bytes.clone());
            *backlog_bytes += cost;
        }
        // Where messages wait already the listener has no credit, or its connection holds it until there is room.
        if !was_empty {
            return;
        }
        if *copied < PUBLISHED_BYTES_MAX {
            self.catch_up(listener);
            *copied += bytes.len();
        } else if let Some(connection) = self.connections.get_mut(&id) {
            connection.held.insert(listener);
            self.woken.insert(id);
        }
    }

    /// Writes what can be written of a backlog.
    fn catch_up(&mut self, listener: EndId) {
        let stop = self.steps + DELIVERY_STEPS;
        loop {
            let Some(end) = self.ends.get_mut(&listener) else { return };
            let Some(connection) = self.connections.get_mut(&end.connection) else { return };
            let Kind::Listener { backlog, backlog_bytes, .. } = &mut end.kind else { return };
            if end.credit <= 0 || backlog.is_empty() {
                return;
            }
            if connection.out.len() >= OUT_BYTES_MAX || connection.is_ending || self.steps >= stop {
                connection.held.insert(listener);
                return;
            }
            let Some(bytes) = backlog.pop_front() else { return };
            let cost = cost(bytes.len());
            end.credit -= i64::from(cost);
            *backlog_bytes -= u64::from(cost);
            write(&Frame::Message { channel: end.channel, bytes: &bytes }, &mut connection.out);
            self.woken.insert(end.connection);
            self.steps += copy_steps(bytes.len());
            self.counts.messages_out += 1;
            self.counts.bytes_out += bytes.len() as u64;
            let client_id = end.client;
            self.discharge(client_id, u64::from(cost));
        }
    }
}
