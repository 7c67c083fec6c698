//! Subscriptions at a node that follows: made at once, so that the promotion has nothing to make. Nobody has to subscribe to thousands of topics in the middle of a
//! fail-over. A wish is noted, and the admission test is asked when this node leads. A required subscription with a wish, or to a topic that is not declared here, is
//! noted as a whole: events are kept for it where the leader has named it.

use bodkin_broker::timing::Wish;

use super::{
    super::{Role, Shard},
    subscribe::{Made, Refused, Wanted},
};
use crate::pair::Preparation;

/// Noted subscriptions that are made in one turn when this node leads: what is due goes out in between.
const TURN_NOTED_MAX: usize = 64;

impl Shard {
    /// Takes what the keeper says of the leader's topics and subscribers.
    pub(in crate::shard) fn prepare_for(&mut self, preparations: Vec<Preparation>) {
        // Who leads knows better what holds by now.
        if !self.endpoint.follows {
            return;
        }
        for preparation in preparations {
            match preparation {
                Preparation::Topic { topic, terms, in_backup } => {
                    let event_type = topic.event_type.clone();
                    self.prepare_topic(topic, terms, in_backup);
                    self.await_unplaced(&event_type);
                    self.make_noted_of(&event_type);
                }
                Preparation::Required(subscriber) => self.await_required(subscriber),
                Preparation::NotRequired { topic, name } => self.await_no_more(&topic, &name),
                Preparation::NobodyRequired => self.await_nobody(),
            }
        }
    }

    /// Makes what a DEALER wants, or notes it where somebody has to be asked. Whether it may have what is noted is decided when this node leads.
    pub(super) fn prepare(&mut self, slot: usize, mut wanted: Wanted) -> Result<Made, Refused> {
        // By the time at which it counts it has more.
        wanted.watermarks = Vec::new();
        let topic = wanted.topic()?;
        let topic = topic.as_str();
        self.check_form(slot, topic, wanted.wait)?;
        self.forget_noted(slot, topic);
        if self.can_be_made(topic, &wanted) {
            return self.hear_wanted(slot, topic, wanted).map(|()| Made::Now);
        }
        let subscriptions_max = self.context.limits.subscriptions_max;
        if self.endpoint.noted >= subscriptions_max {
            return Err(Refused::limit(format!("{subscriptions_max} subscriptions are noted until this node leads, which is the limit")));
        }
        let is_required = wanted.wait.is_some();
        if !is_required {
            self.hear_before_admission(slot, topic, wanted.spelled.clone())?;
        }
        let dealer = self.endpoint.dealer(slot);
        let noted = if is_required { &mut dealer.noted } else { &mut dealer.wishes };
        noted.insert(topic.into(), wanted);
        self.endpoint.noted += 1;
        Ok(Made::Now)
    }

    fn can_be_made(&self, topic: &str, wanted: &Wanted) -> bool {
        wanted.wish == Wish::default() && (wanted.wait.is_none() || self.broker.terms(topic).is_some())
    }

    /// Makes what is noted of a topic that is declared now.
    fn make_noted_of(&mut self, topic: &str) {
        if self.endpoint.noted == 0 {
            return;
        }
        let noted = |role: &Role| {
            if let Role::Dealer(dealer) = role {
                dealer.noted.get(topic).is_some_and(|wanted| self.can_be_made(topic, wanted))
            } else {
                false
            }
        };
        let slots: Vec<usize> = self.endpoint.links.iter().filter(|(_, link)| noted(&link.role)).map(|(slot, _)| slot).collect();
        for slot in slots {
            let wanted = self.endpoint.take_noted(slot, topic).expect("it was just found");
            let spelled = wanted.spelled.clone();
            if let Err(Refused { reason, text }) = self.hear_wanted(slot, topic, wanted) {
                self.refuse_subscription(slot, &spelled, reason, &text);
            }
        }
    }

    /// Forgets one of what is noted of a DEALER, by the topic as stored.
    pub(super) fn forget_noted(&mut self, slot: usize, topic: &str) {
        if self.endpoint.noted > 0 {
            drop(self.endpoint.take_noted(slot, topic));
        }
    }

    /// This node leads: what is noted can be made.
    pub(in crate::shard) fn end_following(&mut self) {
        if std::mem::take(&mut self.endpoint.follows) && self.endpoint.noted > 0 {
            tracing::info!(subscriptions = self.endpoint.noted, "what subscribers ask beyond what was declared is asked now");
            self.endpoint.noting = self.endpoint.links.iter().map(|(slot, _)| slot).collect();
        }
    }

    /// Makes some of what is noted. What cannot be made is told.
    pub(in crate::shard) fn make_noted(&mut self) {
        for _ in 0..TURN_NOTED_MAX {
            let Some((slot, wanted)) = self.endpoint.next_noted() else { break };
            let spelled = wanted.spelled.clone();
            if let Err(refused) = self.try_subscribe(slot, wanted) {
                self.refuse_wanted(slot, &spelled, refused);
            }
        }
    }
}

impl super::super::Endpoint {
    fn take_noted(&mut self, slot: usize, topic: &str) -> Option<Wanted> {
        let dealer = self.dealer(slot);
        let wanted = dealer.noted.remove(topic).or_else(|| dealer.wishes.remove(topic));
        self.noted -= usize::from(wanted.is_some());
        wanted
    }

    /// The next subscription that is to be made.
    fn next_noted(&mut self) -> Option<(usize, Wanted)> {
        while let Some(&slot) = self.noting.front() {
            if let Some(Role::Dealer(dealer)) = self.links.get_mut(slot).map(|link| &mut link.role)
                && let Some((_, wanted)) = dealer.noted.pop_first().or_else(|| dealer.wishes.pop_first())
            {
                self.noted -= 1;
                return Some((slot, wanted));
            }
            self.noting.pop_front();
        }
        None
    }
}
