//! Subscriptions at a node that follows: noted, and made when it leads. Nobody has to subscribe to thousands of topics in the middle of a fail-over.

use std::{sync::Arc, time::Instant};

use super::{
    super::{Role, Shard},
    subscribe::{Made, Refused, Wanted},
};

impl Shard {
    /// Notes what a DEALER wants. Whether it may have it is decided when it is made.
    pub(super) fn note(&mut self, slot: usize, mut wanted: Wanted) -> Result<Made, Refused> {
        let topic = wanted.topic()?;
        self.check_form(slot, topic.as_str(), wanted.wait)?;
        let subscriptions_max = self.context.limits.subscriptions_max;
        let (noted, dealer) = (self.endpoint.noted, self.endpoint.dealer(slot));
        let is_known = dealer.noted.contains_key(topic.as_str());
        if noted >= subscriptions_max && !is_known {
            return Err(Refused::limit(format!("{subscriptions_max} subscriptions are noted until this node leads, which is the limit")));
        }
        // By then it has more.
        wanted.watermarks = Vec::new();
        dealer.noted.insert(topic.as_str().into(), wanted);
        self.endpoint.noted += usize::from(!is_known);
        Ok(Made::Now)
    }

    /// Forgets one of what is noted of a DEALER, by the topic as stored.
    pub(super) fn forget_noted(&mut self, slot: usize, topic: &str) {
        let is_gone = self.endpoint.dealer(slot).noted.remove(topic).is_some();
        self.endpoint.noted -= usize::from(is_gone);
    }

    /// Makes everything that is noted, for this node leads. What cannot be made is told.
    pub(in crate::shard) fn subscribe_noted(&mut self) {
        if !std::mem::take(&mut self.endpoint.notes) {
            return;
        }
        let (noted, begun) = (std::mem::take(&mut self.endpoint.noted), Instant::now());
        for slot in self.endpoint.links.iter().map(|(slot, _)| slot).collect::<Vec<_>>() {
            match &mut self.endpoint.links[slot].role {
                Role::Subscriber(subscriber) => {
                    let prefixes: Vec<Arc<[u8]>> = subscriber.prefixes.keys().cloned().collect();
                    if let Err(reason) = prefixes.into_iter().try_for_each(|prefix| self.hear_all(slot, prefix)) {
                        self.refuse_link(slot, &reason);
                    }
                }
                Role::Dealer(dealer) => {
                    for wanted in std::mem::take(&mut dealer.noted).into_values() {
                        let spelled = wanted.spelled.clone();
                        if let Err(Refused { reason, text }) = self.try_subscribe(slot, wanted) {
                            self.refuse_subscription(slot, &spelled, reason, &text);
                        }
                    }
                }
                Role::Stranger | Role::Publisher { .. } | Role::Requester { .. } | Role::Closing => {}
            }
        }
        let took_us = begun.elapsed().as_micros();
        tracing::info!(subscriptions = noted, took_us, "the sessions of who has subscribed here go on");
    }
}
