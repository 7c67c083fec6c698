//! Ends of subscriptions: taken back, taken over, or with their link.

use bodkin_broker::{Input, SubscriptionKey, TopicId, wire::RefusalReason};

use super::{
    super::{LinkKey, Role, Shard},
    required::Row,
    subscribe::Heard,
};
use crate::topics::wish::Asker;

impl Shard {
    /// Ends a subscription; one that is not there is no error.
    pub(super) fn unsubscribe_dealer(&mut self, slot: usize, topic: &str) {
        let stored = topic.trim().to_uppercase();
        self.forget_noted(slot, &stored);
        let Some(topic) = self.broker.topic_id(&stored) else { return };
        let Some(heard) = self.endpoint.dealer(slot).heard.remove(&topic) else { return };
        // Who follows waits for it as long as the leader does.
        if !(self.endpoint.follows && self.goes_over_to_waiting(&heard)) {
            self.end_subscription(topic, heard);
        }
    }

    /// Has a subscription waited for that has no session any more; false if it is not to be.
    fn goes_over_to_waiting(&mut self, heard: &Heard) -> bool {
        heard.key.filter(|_| heard.is_required).is_some_and(|key| self.wait_for(key, heard.asker()))
    }

    fn end_subscription(&mut self, topic: TopicId, heard: Heard) {
        if let Some(key) = heard.key {
            self.forget_subscription(key);
        }
        self.forget_asked_of(topic, heard.asker());
        self.count_subscriptions();
    }

    /// A topic need not be as strict for a subscription any more.
    fn forget_asked_of(&self, topic: TopicId, asker: Option<Asker>) {
        if let Some(asker) = asker {
            self.context.asking.forget(self.broker.topic_name(topic), asker);
        }
    }

    /// Takes a subscription from the broker, a required one too.
    pub(super) fn forget_subscription(&mut self, subscription: SubscriptionKey) {
        if let Some(row) = self.endpoint.required.remove(subscription) {
            let topic = self.broker.topic_name(row.topic()).clone();
            self.backup_knows_required(&topic, &row.name, None);
            // Whoever does not want it any more misses nothing.
            self.endpoint.missed.take(&(row.topic(), row.name), 0);
        }
        self.broker.step(self.clock.broker(), Input::Unsubscribe { subscription }, &mut self.outputs);
        self.carry_out_now();
    }

    /// A link's required subscription has gone over to a later session of the same client.
    pub(super) fn displace(&mut self, link: LinkKey, topic: TopicId) {
        let Some(heard) = self.endpoint.dealer_at(link).and_then(|dealer| dealer.heard.remove(&topic)) else { return };
        self.forget_asked_of(topic, heard.asker());
        let topic = self.broker.topic_name(topic).clone();
        let told = "a later session of the same name has subscribed: only one of them is required";
        self.refuse_subscription(link.slot, &topic, RefusalReason::OldIncarnation, told);
    }

    /// A required subscription was away or silent for too long, and has not acknowledged so many events that were kept: with a session it goes on without being waited for.
    pub(in crate::shard) fn no_more_required(&mut self, subscription: SubscriptionKey, owed: u64) {
        let Some(row) = self.endpoint.required.remove(subscription) else { return };
        let (topic_id, wait_ms) = (row.topic(), row.wait().as_millis());
        let Row { name, asker, link, .. } = row;
        let topic = self.broker.topic_name(topic_id).clone();
        self.backup_knows_required(&topic, &name, None);
        if let Some(times) = self.endpoint.not_required.due() {
            tracing::warn!(%name, %topic, wait_ms, times, "a required subscriber was away or silent for too long: it is not waited for any more");
        }
        self.forget_asked_of(topic_id, asker);
        let Some(link) = link else {
            let accepted = self.broker.accepted(topic_id);
            return self.endpoint.missed.give_up((topic_id, name), owed, accepted);
        };
        let Some(dealer) = self.endpoint.dealer_at(link) else { return };
        if let Some(heard) = dealer.heard.get_mut(&topic_id) {
            heard.is_required = false;
        }
        let told =
            format!("nothing was acknowledged for {wait_ms} ms: events do not wait for this subscription any more, and it goes on without");
        self.refuse_subscription(link.slot, &topic, RefusalReason::NotRequired, &told);
    }

    /// A DEALER's link is over: whoever is required is waited for.
    pub(in crate::shard::zmtp) fn forget_dealer(&mut self, slot: usize) {
        let Role::Dealer(dealer) = &mut self.endpoint.links[slot].role else { return };
        self.endpoint.noted -= dealer.noted.len() + dealer.wishes.len();
        for (topic, heard) in std::mem::take(&mut dealer.heard) {
            if !self.goes_over_to_waiting(&heard) {
                self.end_subscription(topic, heard);
            }
        }
        self.endpoint.links[slot].role = Role::Closing;
    }
}
