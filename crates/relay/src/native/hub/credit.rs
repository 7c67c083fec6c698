//! Credit of senders: what they receive at first, what is given back, and when it is withheld.

use super::{
    ClientId, EndId, Hub,
    place::{End, Kind, PlaceId},
};
use crate::native::{Frame, WINDOW_BYTES};

/// Senders of one place that receive credit in one piece of work.
const FED_MAX: usize = 32;
/// Suspended senders that continue in one piece of work.
const RESUMED_MAX: usize = 16;

impl Hub {
    /// Whether nobody gets credit.
    pub(super) fn is_pressed(&self) -> bool {
        self.counts.waiting_bytes > self.limits.bytes_max / 2
    }

    /// A message has left the relay: its sender may send as much again, as soon as that is worth a frame.
    pub(super) fn repay(&mut self, sender: EndId, cost: u32) {
        let Some(End { kind: Kind::Sender { owed, .. }, credit, .. }) = self.ends.get_mut(&sender) else { return };
        *owed = owed.saturating_add(cost);
        // Whoever got less than a window in the beginning has used it up before that.
        if *owed < WINDOW_BYTES / 2 && *credit > 0 {
            return;
        }
        self.settle(sender);
    }

    /// Gives a sender the credit that it is owed, or suspends it.
    fn settle(&mut self, sender: EndId) {
        let Some(&End { client: client_id, place: place_id, kind: Kind::Sender { has_window, .. }, .. }) = self.ends.get(&sender) else {
            return;
        };
        if self.is_suspended(client_id, place_id) {
            return self.suspend(sender, place_id, client_id);
        }
        self.unsuspend(sender, place_id, client_id);
        if has_window {
            self.pay(sender);
        } else if let Some(place) = self.places.get_mut(&place_id) {
            place.hungry.insert(sender);
            self.unfed.push(place_id);
        }
    }

    fn is_suspended(&self, client_id: ClientId, place_id: PlaceId) -> bool {
        let (Some(client), Some(place)) = (self.clients.get(&client_id), self.places.get(&place_id)) else { return false };
        self.is_pressed() || client.is_suspended_at(place, &self.limits)
    }

    fn suspend(&mut self, sender: EndId, place_id: PlaceId, client_id: ClientId) {
        let (Some(place), Some(client)) = (self.places.get_mut(&place_id), self.clients.get_mut(&client_id)) else { return };
        place.hungry.remove(&sender);
        place.suspended.insert(sender);
        client.suspended.insert(sender);
        self.suspended_clients.insert(client_id);
    }

    pub(super) fn unsuspend(&mut self, sender: EndId, place_id: PlaceId, client_id: ClientId) {
        let (Some(place), Some(client)) = (self.places.get_mut(&place_id), self.clients.get_mut(&client_id)) else { return };
        place.suspended.remove(&sender);
        client.suspended.remove(&sender);
        if client.suspended.is_empty() {
            self.suspended_clients.remove(&client_id);
        }
    }

    fn pay(&mut self, sender: EndId) {
        let Some(end) = self.ends.get_mut(&sender) else { return };
        let (Some(place), Kind::Sender { owed, .. }) = (self.places.get_mut(&end.place), &mut end.kind) else { return };
        let bytes = std::mem::take(owed);
        if bytes > 0 {
            end.set_credit(end.credit + i64::from(bytes), place);
            let (connection, channel) = (end.connection, end.channel);
            self.write(connection, &Frame::Credit { channel, bytes });
        }
    }

    /// Gives credit to senders that have none yet, as far as there is room. Continues in [`Hub::work`] where many wait.
    pub(super) fn feed(&mut self, place_id: PlaceId) {
        self.resume_at(place_id);
        for _ in 0..FED_MAX {
            let Some(place) = self.places.get(&place_id).filter(|place| place.removed.is_none()) else { return };
            let Some(sender) = place.hungry.first().copied() else { return };
            let client_id = self.ends[&sender].client;
            self.steps += 1;
            if self.is_suspended(client_id, place_id) {
                self.suspend(sender, place_id, client_id);
                continue;
            }
            let (Some(place), Some(end)) = (self.places.get_mut(&place_id), self.ends.get_mut(&sender)) else { return };
            let grant = place.grant(self.limits.queue_bytes_max);
            let Kind::Sender { has_window, .. } = &mut end.kind else { return };
            if grant == 0 {
                return;
            }
            *has_window = true;
            place.hungry.remove(&sender);
            end.set_credit(end.credit + i64::from(grant), place);
            let (connection, channel) = (end.connection, end.channel);
            self.write(connection, &Frame::Credit { channel, bytes: grant });
        }
        self.unfed.push(place_id);
    }

    /// Lets suspended senders continue at a place in which nothing is pending any more.
    fn resume_at(&mut self, place_id: PlaceId) {
        for _ in 0..RESUMED_MAX {
            let Some(place) = self.places.get(&place_id).filter(|place| place.bytes == 0 && !self.is_pressed()) else { return };
            let Some(sender) = place.suspended.first().copied() else { return };
            self.steps += 1;
            self.settle(sender);
        }
        self.unfed.push(place_id);
    }

    /// Feeds one place; false if none is pending.
    pub(super) fn feed_next(&mut self) -> bool {
        let Some(place_id) = self.unfed.pop() else { return false };
        self.steps += 1;
        self.feed(place_id);
        true
    }

    /// Lets some suspended senders of one client continue; false if none may.
    pub(super) fn resume_next(&mut self) -> bool {
        let Some(client_id) = self.resuming.pop() else { return false };
        self.steps += 1;
        for _ in 0..RESUMED_MAX {
            let Some(client) = self.clients.get(&client_id).filter(|client| !client.is_over_half(&self.limits)) else { return true };
            // At the next crossing of the limit the client is queued again.
            let Some(sender) = client.suspended.first().copied().filter(|_| !self.is_pressed()) else { return true };
            self.steps += 1;
            self.settle(sender);
        }
        self.resuming.push(client_id);
        true
    }
}
