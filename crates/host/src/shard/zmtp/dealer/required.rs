//! Required subscribers: known by their name and topic, whether they are there or waited for.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_broker::{Attachment, Input, Overflow, SubscriptionKey, TopicId, wire::Watermark};

use super::{
    super::{LinkKey, Shard},
    subscribe::Refused,
};
use crate::{pair::RequiredSubscriber, shard::Receiver, topics::wish::Asker};

/// The topic, and the name of a client, as it says hello.
pub type RequiredName = (TopicId, Arc<str>);

/// The required subscriptions, by the broker's number of them: no more than it has.
#[derive(Default)]
pub struct Required {
    rows: Vec<Option<Row>>,
    /// The name that was met last, for it is that of thousands of rows.
    last_name: Option<Arc<str>>,
    /// As long as this node follows: whom the leader waits for on topics that are not known here yet, by topic and name, and how long.
    unplaced: BTreeMap<(Box<str>, Box<str>), Duration>,
}

/// A required subscription, of which there may be a hundred thousand.
pub(super) struct Row {
    key: SubscriptionKey,
    topic: u32,
    /// As long as this node follows: whether the leader waits for it.
    is_named: bool,
    /// Of the client.
    pub name: Arc<str>,
    /// How long it is waited for.
    wait_ns: u64,
    /// Where it is; `None`: it is away.
    pub link: Option<LinkKey>,
    /// Who has asked for what holds while it is away.
    pub asker: Option<Asker>,
}

const _: () = assert!(size_of::<Option<Row>>() <= 64);

impl Row {
    fn new(key: SubscriptionKey, (topic, name): RequiredName, wait: Duration, link: Option<LinkKey>) -> Self {
        let topic = u32::try_from(topic.0).expect("there are fewer topics than 2^32");
        Self { key, topic, is_named: link.is_none(), name, wait_ns: nanos(wait), link, asker: None }
    }

    pub fn topic(&self) -> TopicId {
        TopicId(self.topic.into())
    }

    /// How long it is waited for.
    pub fn wait(&self) -> Duration {
        Duration::from_nanos(self.wait_ns)
    }
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

impl Required {
    /// A subscription that is there or away.
    pub(super) fn of(&mut self, key: SubscriptionKey) -> Option<&mut Row> {
        self.rows.get_mut(key.index())?.as_mut().filter(|row| row.key == key)
    }

    /// The one of these subscriptions that is a client's of this name.
    fn named(&mut self, subscriptions: &[SubscriptionKey], name: &str) -> Option<&mut Row> {
        let is_it = |key: &&SubscriptionKey| self.of(**key).is_some_and(|row| *row.name == *name);
        let key = subscriptions.iter().find(is_it)?;
        self.of(*key)
    }

    fn insert(&mut self, row: Row) {
        let at = row.key.index();
        if at >= self.rows.len() {
            self.rows.resize_with(at + 1, || None);
        }
        self.rows[at] = Some(row);
    }

    pub(super) fn remove(&mut self, key: SubscriptionKey) -> Option<Row> {
        self.rows.get_mut(key.index())?.take_if(|row| row.key == key)
    }

    fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flatten()
    }

    /// A client's name as it is kept already.
    fn shared(&mut self, name: &str) -> Arc<str> {
        let last = self.last_name.take().filter(|last| **last == *name).unwrap_or_else(|| name.into());
        self.last_name.insert(last).clone()
    }
}

impl Shard {
    /// All required subscriptions.
    pub(in crate::shard) fn required(&self) -> impl Iterator<Item = RequiredSubscriber> {
        let subscriber = |row: &Row| RequiredSubscriber {
            topic: (**self.broker.topic_name(row.topic())).into(),
            name: (*row.name).into(),
            wait: row.wait(),
        };
        self.endpoint.required.iter().map(subscriber)
    }

    /// Returns the name of a required subscriber, and how long it is waited for.
    pub(in crate::shard) fn required_subscriber(&mut self, subscription: SubscriptionKey) -> Option<(Arc<str>, Duration)> {
        self.endpoint.required.of(subscription).map(|row| (row.name.clone(), row.wait()))
    }

    /// Shortens the waits for a topic's required subscribers, because the topic's declaration allows no longer ones.
    pub(in crate::shard) fn shorten_waits(&mut self, topic: TopicId, required_for_max: Duration) {
        for subscription in self.broker.subscriptions_of(topic).to_vec() {
            let Some(row) = self.endpoint.required.of(subscription).filter(|row| row.wait() > required_for_max) else { continue };
            let name = row.name.clone();
            self.change_wait(subscription, required_for_max);
            let topic = self.broker.topic_name(topic).clone();
            self.backup_knows_required(&topic, &name, Some(required_for_max));
        }
    }

    fn change_wait(&mut self, subscription: SubscriptionKey, wait: Duration) {
        self.endpoint.required.of(subscription).expect("it is required").wait_ns = nanos(wait);
        self.broker.change_wait(self.clock.broker(), subscription, wait);
    }

    /// The longest time that anybody is waited for.
    pub(in crate::shard) fn longest_wait(&self) -> Duration {
        self.endpoint.required.iter().map(Row::wait).max().unwrap_or_default()
    }

    /// The leader waits for a subscriber: so will this node, when it leads, and what is kept then is kept for it. Its topic may come later.
    pub(in crate::shard) fn await_required(&mut self, required: RequiredSubscriber) {
        let Some((topic, _)) = self.broker.terms(&required.topic) else { return self.await_topic_of(required) };
        if let Some(row) = self.endpoint.required.named(self.broker.subscriptions_of(topic), &required.name) {
            row.is_named = true;
            let key = row.key;
            // The leader has taken what the subscriber wants now, or what the topic's declaration allows now.
            return self.change_wait(key, required.wait);
        }
        let (name, wait) = (self.endpoint.required.shared(&required.name), required.wait);
        // It has no link, so that nothing is offered to it.
        let receiver = Receiver::Dealer { slot: usize::MAX, topic: self.broker.topic_name(topic).clone() };
        match self.broker.subscribe(&required.topic, receiver, Overflow::Loses) {
            Ok(key) => {
                self.broker.require(self.clock.broker(), key, wait, Attachment::Awaited);
                self.endpoint.required.insert(Row::new(key, (topic, name), wait, None));
            }
            Err(error) => tracing::error!(%error, topic = &*required.topic, %name, "a required subscriber is not waited for"),
        }
        self.count_subscriptions();
    }

    fn await_topic_of(&mut self, RequiredSubscriber { topic, name, wait }: RequiredSubscriber) {
        let unplaced = &mut self.endpoint.required.unplaced;
        let (has_room, subscriber) = (unplaced.len() < self.context.limits.subscriptions_max, (topic, name));
        if has_room || unplaced.contains_key(&subscriber) {
            unplaced.insert(subscriber, wait);
        } else {
            let (topic, name) = subscriber;
            tracing::error!(%topic, %name, "the leader names too many required subscribers of topics that are not known here: this one is not waited for");
        }
    }

    /// A topic of the leader's is known here: whoever was named before it is waited for.
    pub(super) fn await_unplaced(&mut self, topic: &str) {
        let unplaced = &mut self.endpoint.required.unplaced;
        if unplaced.is_empty() {
            return;
        }
        let first = (Box::from(topic), Box::default());
        let of_topic = unplaced.range::<(Box<str>, Box<str>), _>(&first..).take_while(|((of, _), _)| **of == *topic);
        for (topic, name) in of_topic.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            let key = (topic, name);
            let wait = self.endpoint.required.unplaced.remove(&key).expect("it was just found");
            self.await_required(RequiredSubscriber { topic: key.0, name: key.1, wait });
        }
    }

    /// The leader does not wait for a subscriber any more. One that has a session here is required of this node all the same.
    pub(in crate::shard) fn await_no_more(&mut self, topic: &str, name: &str) {
        let Some(topic_id) = self.broker.topic_id(topic) else {
            self.endpoint.required.unplaced.remove(&(topic.into(), name.into()));
            return;
        };
        let Some(row) = self.endpoint.required.named(self.broker.subscriptions_of(topic_id), name) else { return };
        row.is_named = false;
        if row.link.is_none() {
            let key = row.key;
            self.forget_subscription(key);
        }
    }

    /// Whom the leader waits for is not known any more.
    pub(in crate::shard) fn await_nobody(&mut self) {
        self.endpoint.required.unplaced.clear();
        let rows = self.endpoint.required.rows.iter_mut().flatten();
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
        (topic_id, name): RequiredName,
        receiver: Receiver,
        wait: Duration,
        watermarks: &[Watermark],
    ) -> Result<SubscriptionKey, Refused> {
        let (link, now) = (self.dealer_key(slot), self.clock.broker());
        let topic = self.broker.topic_name(topic_id).clone();
        let spelled = if let Receiver::Dealer { topic, .. } = &receiver { topic.clone() } else { topic.clone() };
        let Some(row) = self.endpoint.required.named(self.broker.subscriptions_of(topic_id), &name) else {
            let key = self.subscribe_to(&topic, receiver)?;
            self.tell_missed(slot, &(topic_id, name.clone()), &spelled);
            self.broker.require(now, key, wait, Attachment::New);
            self.backup_knows_required(&topic, &name, Some(wait));
            self.endpoint.required.insert(Row::new(key, (topic_id, name), wait, Some(link)));
            return Ok(key);
        };
        let (key, other) = (row.key, row.link.filter(|other| *other != link));
        if let Some(later) = other.map(|other| self.endpoint.run_on(other)).filter(|run| *run > self.endpoint.run_on(link)) {
            return Err(Refused::later_run(format!("{name} is subscribed by a later run, incarnation {}: this one is over", later.0)));
        }
        let row = self.endpoint.required.of(key).expect("it was just found");
        (row.link, row.wait_ns) = (Some(link), nanos(wait));
        let asker = row.asker.take();
        self.tell_missed(slot, &(topic_id, name.clone()), &spelled);
        self.backup_knows_required(&topic, &name, Some(wait));
        self.broker.require(now, key, wait, Attachment::New);
        self.broker.attach(now, key, receiver, watermarks.iter().copied(), &mut self.outputs);
        self.carry_out_now();
        if let Some(asker) = asker {
            self.context.asking.forget(&topic, asker);
        }
        if let Some(other) = other {
            self.displace(other, topic_id);
        }
        Ok(key)
    }
}
