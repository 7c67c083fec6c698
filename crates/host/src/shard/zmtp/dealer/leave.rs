//! Ends of subscriptions: taken back, taken over, or with their link.

use bodkin_broker::{Input, SubscriptionKey, wire::RefusalReason};

use super::{
    super::{LinkKey, Role, Shard},
    subscribe::Heard,
};

impl Shard {
    /// Ends a subscription; one that is not there is no error.
    pub(super) fn unsubscribe_dealer(&mut self, slot: usize, topic: &str) {
        let stored = topic.trim().to_uppercase();
        self.forget_noted(slot, &stored);
        let Some(heard) = self.endpoint.dealer(slot).heard.remove(&*stored) else { return };
        self.end_subscription(&stored, heard);
    }

    fn end_subscription(&mut self, topic: &str, heard: Heard) {
        if let Some(key) = heard.key {
            self.forget_subscription(key);
        }
        if let Some(asker) = heard.asker {
            self.context.asking.forget(topic, asker);
        }
        self.count_subscriptions();
    }

    /// Takes a subscription from the broker, a required one too.
    pub(super) fn forget_subscription(&mut self, subscription: SubscriptionKey) {
        if let Some(((name, topic), _)) = self.endpoint.required.remove(subscription) {
            self.backup_knows_required(&topic, &name, None);
        }
        self.broker.step(self.clock.broker(), Input::Unsubscribe { subscription }, &mut self.outputs);
        self.carry_out_now();
    }

    /// A link's required subscription has gone over to a later session of the same client.
    pub(super) fn displace(&mut self, link: LinkKey, topic: &str) {
        let Some(heard) = self.endpoint.dealer_at(link).and_then(|dealer| dealer.heard.remove(topic)) else { return };
        if let Some(asker) = heard.asker {
            self.context.asking.forget(topic, asker);
        }
        let told = "a later session of the same name has subscribed: only one of them is required";
        self.refuse_subscription(link.slot, topic, RefusalReason::OldIncarnation, told);
    }

    /// A required subscription was away or silent for too long: with a session it goes on without being waited for.
    pub(in crate::shard) fn no_more_required(&mut self, subscription: SubscriptionKey) {
        let Some(((name, topic), row)) = self.endpoint.required.remove(subscription) else { return };
        self.backup_knows_required(&topic, &name, None);
        let wait_ms = row.wait.as_millis();
        if let Some(times) = self.endpoint.not_required.due() {
            tracing::warn!(%name, %topic, wait_ms, times, "a required subscriber was away or silent for too long: it is not waited for any more");
        }
        if let Some(asker) = row.asker {
            self.context.asking.forget(&topic, asker);
        }
        let Some(link) = row.link else { return };
        let Some(dealer) = self.endpoint.dealer_at(link) else { return };
        if let Some(heard) = dealer.heard.get_mut(&topic) {
            heard.wait = None;
        }
        let told =
            format!("nothing was acknowledged for {wait_ms} ms: events do not wait for this subscription any more, and it goes on without");
        self.refuse_subscription(link.slot, &topic, RefusalReason::NotRequired, &told);
    }

    /// A DEALER's link is over: whoever is required is waited for.
    pub(in crate::shard::zmtp) fn forget_dealer(&mut self, slot: usize) {
        let Role::Dealer(dealer) = &mut self.endpoint.links[slot].role else { return };
        self.endpoint.noted -= dealer.noted.len();
        for (topic, heard) in std::mem::take(&mut dealer.heard) {
            let row = heard.key.filter(|_| heard.wait.is_some()).and_then(|key| self.endpoint.required.of(key));
            match row {
                Some(row) => {
                    (row.link, row.asker) = (None, heard.asker);
                    let subscription = row.key;
                    self.broker.step(self.clock.broker(), Input::Detached { subscription }, &mut self.outputs);
                }
                None => self.end_subscription(&topic, heard),
            }
        }
        self.endpoint.links[slot].role = Role::Closing;
    }
}
