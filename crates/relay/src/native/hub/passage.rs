//! How messages pass: from senders into queues and backlogs, from there to listeners, and the credit back.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Connection, ConnectionId, EndId, Hub,
    place::{End, Kind, Place, PlaceId},
};
use crate::{
    native::{Frame, WINDOW_BYTES, cost, write},
    session::OUT_BYTES_MAX,
};

impl Hub {
    /// Writes what can be written of a queue's messages, or of the backlogs of a topic's listeners.
    pub(super) fn deliver(&mut self, place_id: PlaceId) {
        let Some(place) = self.places.get_mut(&place_id) else { return };
        if place.is_topic() {
            let listeners: Vec<EndId> = place.listeners.iter().copied().collect();
            return listeners.into_iter().for_each(|listener| self.catch_up(listener));
        }
        let mut repaid: Vec<(EndId, u32)> = Vec::new();
        while !place.messages.is_empty() {
            let Some(listener) = able_listener(place, place_id, &self.ends, &mut self.connections) else { break };
            let (Some(held), Some(end)) = (place.messages.pop_front(), self.ends.get_mut(&listener)) else { break };
            let (length, cost) = (held.bytes.len() as u64, cost(held.bytes.len()));
            end.credit -= i64::from(cost);
            if let Some(connection) = self.connections.get_mut(&end.connection) {
                write(&Frame::Message { channel: end.channel, bytes: &held.bytes }, &mut connection.out);
                self.woken.insert(end.connection);
            }
            place.bytes -= length;
            self.counts.waiting_bytes -= length;
            self.counts.messages_out += 1;
            self.counts.bytes_out += length;
            repaid.push((held.payer, cost));
        }
        let is_forgotten = place.is_forgotten();
        if is_forgotten {
            self.names.remove(&place.destination);
            self.places.remove(&place_id);
        }
        if !repaid.is_empty() {
            repaid.into_iter().for_each(|(payer, cost)| self.repay(payer, cost));
            self.feed(place_id);
            self.pay_withheld();
        }
    }

    /// Gives a message to everybody who listens to a topic.
    pub(super) fn publish(&mut self, place_id: PlaceId, bytes: &[u8]) {
        let Some(place) = self.places.get(&place_id) else { return };
        let listeners: Vec<EndId> = place.listeners.iter().copied().collect();
        let (length, mut shared) = (bytes.len() as u64, None);
        for listener in listeners {
            let Some(End { kind: Kind::Listener { backlog, backlog_bytes }, .. }) = self.ends.get_mut(&listener) else { continue };
            // An empty backlog takes a message of any length: it may be written at once.
            let has_room = backlog.is_empty() || *backlog_bytes + length <= self.limits.backlog_bytes_max;
            if !has_room || self.counts.waiting_bytes + length > self.limits.bytes_max {
                self.counts.backlog_lost += 1;
                continue;
            }
            let shared = shared.get_or_insert_with(|| Arc::<[u8]>::from(bytes));
            backlog.push_back(shared.clone());
            *backlog_bytes += length;
            self.counts.waiting_bytes += length;
            self.catch_up(listener);
        }
    }

    /// Writes what can be written of a backlog.
    fn catch_up(&mut self, listener: EndId) {
        let Some(end) = self.ends.get_mut(&listener) else { return };
        let (Some(connection), Kind::Listener { backlog, backlog_bytes }) = (self.connections.get_mut(&end.connection), &mut end.kind)
        else {
            return;
        };
        while end.credit > 0 && !backlog.is_empty() {
            if connection.out.len() >= OUT_BYTES_MAX || connection.is_ending {
                connection.held.insert(end.place);
                break;
            }
            let Some(bytes) = backlog.pop_front() else { break };
            end.credit -= i64::from(cost(bytes.len()));
            write(&Frame::Message { channel: end.channel, bytes: &bytes }, &mut connection.out);
            self.woken.insert(end.connection);
            *backlog_bytes -= bytes.len() as u64;
            self.counts.waiting_bytes -= bytes.len() as u64;
            self.counts.messages_out += 1;
            self.counts.bytes_out += bytes.len() as u64;
        }
    }

    /// Whether nobody gets credit.
    fn is_pressed(&self) -> bool {
        self.counts.waiting_bytes > self.limits.bytes_max / 2
    }

    /// A message has left the relay: its sender may send as much again, as soon as that is worth a frame.
    pub(super) fn repay(&mut self, sender: EndId, cost: u32) {
        let is_pressed = self.is_pressed();
        let Some(End { kind: Kind::Sender { owed }, credit, .. }) = self.ends.get_mut(&sender) else { return };
        *owed = owed.saturating_add(cost);
        // Whoever got less than a window in the beginning has used it up before that.
        if *owed < WINDOW_BYTES / 2 && *credit > 0 {
            return;
        }
        if is_pressed {
            self.withheld.insert(sender);
        } else {
            self.pay(sender);
        }
    }

    fn pay(&mut self, sender: EndId) {
        let Some(end) = self.ends.get_mut(&sender) else { return };
        let (Some(place), Kind::Sender { owed }) = (self.places.get_mut(&end.place), &mut end.kind) else { return };
        let bytes = std::mem::take(owed);
        if bytes > 0 {
            end.set_credit(end.credit + i64::from(bytes), place);
            let (connection, channel) = (end.connection, end.channel);
            self.write(connection, &Frame::Credit { channel, bytes });
        }
    }

    /// Gives what was held back, once there is room again.
    pub(super) fn pay_withheld(&mut self) {
        if self.withheld.is_empty() || self.is_pressed() {
            return;
        }
        let waiting: Vec<PlaceId> = self.places.iter().filter(|(_, place)| !place.hungry.is_empty()).map(|(id, _)| *id).collect();
        for sender in std::mem::take(&mut self.withheld) {
            self.pay(sender);
        }
        waiting.into_iter().for_each(|place| self.feed(place));
    }

    /// Gives credit to senders that have none yet, as far as there is room.
    pub(super) fn feed(&mut self, place_id: PlaceId) {
        if self.is_pressed() {
            if let Some(place) = self.places.get(&place_id) {
                // Any of them: it says that somebody waits.
                self.withheld.extend(place.hungry.front());
            }
            return;
        }
        let Some(place) = self.places.get_mut(&place_id) else { return };
        let mut fed = Vec::new();
        while let Some(sender) = place.hungry.front().copied() {
            let grant = place.grant(self.limits.queue_bytes_max);
            let Some(end) = self.ends.get_mut(&sender).filter(|_| grant > 0) else { break };
            place.hungry.pop_front();
            end.set_credit(end.credit + i64::from(grant), place);
            fed.push((end.connection, Frame::Credit { channel: end.channel, bytes: grant }));
        }
        fed.into_iter().for_each(|(connection, frame)| self.write(connection, &frame));
    }
}

/// The next listener whose turn it is, who has credit, and whose connection has room. Connections without room remember the queue.
fn able_listener(
    place: &mut Place,
    place_id: PlaceId,
    ends: &BTreeMap<EndId, End>,
    connections: &mut BTreeMap<ConnectionId, Connection>,
) -> Option<EndId> {
    for _ in 0..place.listeners.len() {
        place.listeners.rotate_left(1);
        let (id, end) = place.listeners.back().and_then(|id| Some((*id, ends.get(id)?)))?;
        let Some(connection) = connections.get_mut(&end.connection).filter(|_| end.credit > 0) else { continue };
        if connection.out.len() < OUT_BYTES_MAX && !connection.is_ending {
            return Some(id);
        }
        connection.held.insert(place_id);
    }
    None
}
