//! What subscribers have, and what they lack room for.

use bodkin_broker::{Incarnation, Input, PublisherId, Sequence, StreamIdentity, SubscriptionKey};

use super::{
    super::{Role, Shard},
    subscribe::Heard,
};

impl Shard {
    /// A subscriber has everything of a stream up to here.
    pub(super) fn dealer_has(&mut self, slot: usize, topic: &str, publisher: PublisherId, incarnation: Incarnation, through: Sequence) {
        let Some(topic) = self.topic_spelled(topic) else { return };
        // What is not required, or not heard any more, needs no acknowledgement.
        let Some(&Heard { key: Some(subscription), is_required: true, .. }) = self.endpoint.dealer(slot).heard.get(&topic) else { return };
        let Some(stream) = self.broker.stream(&StreamIdentity { topic, publisher, incarnation }) else { return };
        self.broker.step(self.clock.broker(), Input::Delivered { subscription, stream, through }, &mut self.outputs);
        // Slots that are let go have to be free before the next event is taken.
        self.carry_out_now();
    }

    /// Has a DEALER offered again what its link had no room for, once half of its queue is read.
    pub(in crate::shard::zmtp) fn refill_dealer(&mut self, slot: usize) {
        let queue_bytes_max = self.endpoint.queue_bytes_max;
        let link = &mut self.endpoint.links[slot];
        let is_half_read = link.unsent_bytes() as u64 <= queue_bytes_max / 2;
        let Role::Dealer(dealer) = &mut link.role else { return };
        if !(is_half_read && std::mem::take(&mut dealer.is_full)) {
            return;
        }
        let subscriptions: Vec<SubscriptionKey> = dealer.heard.values().filter_map(|heard| heard.key).collect();
        for subscription in subscriptions {
            self.broker.step(self.clock.broker(), Input::Sent { subscription, bytes: 0 }, &mut self.outputs);
        }
        self.carry_out_now();
    }
}
