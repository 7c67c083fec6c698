//! Required subscribers: known by their name and topic, whether they are there or waited for.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_broker::{Attachment, Incarnation, Input, Overflow, SubscriptionKey, TopicId, wire::Watermark};

use super::{
    super::{LinkKey, Shard},
    subscribe::Refused,
};
use crate::{pair::RequiredSubscriber, shard::Receiver, topics::wish::Asker};

/// The topic, and the name of a client, as it says hello.
pub type RequiredName = (TopicId, Arc<str>);

/// The required subscriptions: no more than the broker has.
#[derive(Default)]
pub struct Required {
    rows: BTreeMap<RequiredName, Row>,
    by_key: BTreeMap<SubscriptionKey, RequiredName>,
}

/// A required subscription.
pub(super) struct Row {
    pub key: SubscriptionKey,
    /// How long it is waited for.
    pub wait: Duration,
    /// Which run of the client it is of.
    pub incarnation: Incarnation,
    /// Where it is; `None`: it is away.
    pub link: Option<LinkKey>,
    /// Who has asked for what holds while it is away.
    pub asker: Option<Asker>,
    /// As long as this node follows: whether the leader waits for it.
    pub is_named: bool,
}

impl Required {
    pub(super) fn get_mut(&mut self, name: &RequiredName) -> Option<&mut Row> {
        self.rows.get_mut(name)
    }

    fn insert(&mut self, name: RequiredName, row: Row) {
        self.by_key.insert(row.key, name.clone());
        self.rows.insert(name, row);
    }

    pub(super) fn remove(&mut self, key: SubscriptionKey) -> Option<(RequiredName, Row)> {
        let name = self.by_key.remove(&key)?;
        let row = self.rows.remove(&name).expect("both tables have the same rows");
        Some((name, row))
    }

    /// A subscription that is there or away.
    pub(super) fn of(&mut self, key: SubscriptionKey) -> Option<&mut Row> {
        let name = self.by_key.get(&key)?;
        self.rows.get_mut(name)
    }

    /// A client's name as it is kept already, for it is that of thousands of rows.
    fn shared(&self, name: &str) -> Arc<str> {
        let last = self.rows.last_key_value().map(|((_, last), _)| last).filter(|last| ***last == *name);
        last.cloned().unwrap_or_else(|| name.into())
    }
}

impl Shard {
    /// All required subscriptions.
    pub(in crate::shard) fn required(&self) -> impl Iterator<Item = RequiredSubscriber> {
        let subscriber = |((topic, name), row): (&RequiredName, &Row)| RequiredSubscriber {
            topic: (**self.broker.topic_name(*topic)).into(),
            name: (**name).into(),
            wait: row.wait,
        };
        self.endpoint.required.rows.iter().map(subscriber)
    }

    /// The longest time that anybody is waited for.
    pub(in crate::shard) fn longest_wait(&self) -> Duration {
        self.endpoint.required.rows.values().map(|row| row.wait).max().unwrap_or_default()
    }

    /// The leader waits for a subscriber: so will this node, when it leads, and what is kept then is kept for it.
    pub(in crate::shard) fn await_required(&mut self, RequiredSubscriber { topic, name, wait }: &RequiredSubscriber) {
        let Some((topic_id, _)) = self.broker.terms(topic) else { return };
        let required_name: RequiredName = (topic_id, self.endpoint.required.shared(name));
        if let Some(row) = self.endpoint.required.get_mut(&required_name) {
            row.is_named = true;
            return;
        }
        // It has no link, so that nothing is offered to it.
        let receiver = Receiver::Dealer { slot: usize::MAX, topic: self.broker.topic_name(topic_id).clone() };
        match self.broker.subscribe(topic, receiver, Overflow::Loses) {
            Ok(key) => {
                self.broker.require(self.clock.broker(), key, *wait, Attachment::Awaited);
                let row = Row { key, wait: *wait, incarnation: Incarnation(0), link: None, asker: None, is_named: true };
                self.endpoint.required.insert(required_name, row);
            }
            Err(error) => tracing::error!(%error, topic, name, "a required subscriber is not waited for"),
        }
        self.count_subscriptions();
    }

    /// The leader does not wait for a subscriber any more. One that has a session here is required of this node all the same.
    pub(in crate::shard) fn await_no_more(&mut self, topic: &str, name: &str) {
        let Some(topic) = self.broker.topic_id(topic) else { return };
        let Some(row) = self.endpoint.required.get_mut(&(topic, name.into())) else { return };
        row.is_named = false;
        if row.link.is_none() {
            let key = row.key;
            self.forget_subscription(key);
        }
    }

    /// Whom the leader waits for is not known any more.
    pub(in crate::shard) fn await_nobody(&mut self) {
        let rows = self.endpoint.required.rows.values_mut();
        let away: Vec<SubscriptionKey> =
            rows.filter_map(|row| (std::mem::take(&mut row.is_named) && row.link.is_none()).then_some(row.key)).collect();
        away.into_iter().for_each(|key| self.forget_subscription(key));
    }

    /// A required subscriber has no session here any more: it is waited for. False if it is not, for this node follows and the leader does not wait for it.
    pub(super) fn wait_for(&mut self, subscription: SubscriptionKey, asker: Option<Asker>) -> bool {
        let follows = self.endpoint.follows;
        let Some(row) = self.endpoint.required.of(subscription).filter(|row| row.is_named || !follows) else { return false };
        (row.link, row.asker) = (None, asker);
        self.broker.step(self.clock.broker(), Input::Detached { subscription }, &mut self.outputs);
        true
    }

    /// Makes a required subscription, or gives one that is known its session and what it has missed.
    pub(super) fn require_for(
        &mut self,
        slot: usize,
        required_name: RequiredName,
        receiver: Receiver,
        wait: Duration,
        watermarks: &[Watermark],
    ) -> Result<SubscriptionKey, Refused> {
        let (link, now) = (self.dealer_key(slot), self.clock.broker());
        let topic = self.broker.topic_name(required_name.0).clone();
        let incarnation = self.endpoint.dealer(slot).hello.as_ref().map_or(Incarnation(0), |hello| hello.incarnation);
        let Some(row) = self.endpoint.required.get_mut(&required_name) else {
            let key = self.subscribe_to(&topic, receiver)?;
            self.broker.require(now, key, wait, Attachment::New);
            let row = Row { key, wait, incarnation, link: Some(link), asker: None, is_named: false };
            self.backup_knows_required(&topic, &required_name.1, Some(wait));
            self.endpoint.required.insert(required_name, row);
            return Ok(key);
        };
        let other = row.link.filter(|other| *other != link);
        if other.is_some() && row.incarnation > incarnation {
            let told = format!("{} is subscribed by a later run, incarnation {}: this one is over", required_name.1, row.incarnation.0);
            return Err(Refused::later_run(told));
        }
        (row.link, row.incarnation, row.wait) = (Some(link), incarnation, wait);
        let (key, asker) = (row.key, row.asker.take());
        self.backup_knows_required(&topic, &required_name.1, Some(wait));
        self.broker.require(now, key, wait, Attachment::New);
        self.broker.attach(now, key, receiver, watermarks.iter().copied(), &mut self.outputs);
        self.carry_out_now();
        if let Some(asker) = asker {
            self.context.asking.forget(&topic, asker);
        }
        if let Some(other) = other {
            self.displace(other, required_name.0);
        }
        Ok(key)
    }
}
