//! What is asked of a shard by who only looks.

use std::sync::Arc;

use super::Shard;
use crate::{
    event::{Sequence, TopicId},
    slot::SlotId,
    stream::{StreamId, StreamIdentity},
    subscription::{Subscription, SubscriptionKey},
    terms::Terms,
};

/// What a topic has seen, for those who watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicView<'t> {
    /// Its name.
    pub name: &'t str,
    /// Events accepted in this incarnation.
    pub published: u64,
    /// Who hears it.
    pub subscriptions: &'t [SubscriptionKey],
}

/// What real-time streams have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Events that were taken.
    pub accepted: u64,
    /// Of these, those that came faster than their topic may.
    pub excess: u64,
    /// Events that were there or done with already.
    pub known: u64,
    /// Events handed to their subscribers.
    pub dispatched: u64,
    /// Of these, those that were due before.
    pub late: u64,
    /// Events dropped in front of their dispatch.
    pub shed: u64,
    /// Replicas that were sent.
    pub replicated: u64,
    /// Of these, those that were due before.
    pub replicated_late: u64,
    /// Replicas that were not needed, because the event was covered before.
    pub cancelled: u64,
    /// Required subscriptions that were away or silent for too long.
    pub not_required: u64,
}

impl<R> Shard<R> {
    /// All topics, in order of their names.
    pub fn topics(&self) -> impl Iterator<Item = TopicView<'_>> {
        self.topics.iter().map(|(name, topic)| TopicView {
            name,
            published: topic.accepted + topic.numbered.values().map(|sequence| sequence.0).sum::<u64>(),
            subscriptions: &topic.subscriptions,
        })
    }

    /// Events that were taken on a topic's real-time streams.
    pub fn accepted(&self, topic: TopicId) -> u64 {
        self.topics.at(topic).accepted
    }

    /// Whether there is a topic of this name.
    pub fn has_topic(&self, name: &str) -> bool {
        self.topics.find(name).is_some()
    }

    /// The names of all topics that begin so, in order.
    pub fn topics_with<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = &'s str> {
        self.topics.with_prefix(prefix)
    }

    /// The terms of a real-time topic; of any other there are none.
    pub fn terms(&self, topic: &str) -> Option<(TopicId, &Terms)> {
        let id = self.topics.find(topic)?;
        self.topics.at(id).terms.as_deref().map(|terms| (id, terms))
    }

    /// The terms of a topic, if it is a real-time one.
    pub fn terms_of(&self, topic: TopicId) -> Option<&Terms> {
        self.topics.at(topic).terms.as_deref()
    }

    /// The topic of this name, if it was made.
    pub fn topic_id(&self, name: &str) -> Option<TopicId> {
        self.topics.find(name)
    }

    /// The name of a topic.
    pub fn topic_name(&self, topic: TopicId) -> &Arc<str> {
        &self.topics.at(topic).name
    }

    /// The stream of this identity, if it is open.
    pub fn stream(&self, identity: &StreamIdentity) -> Option<StreamId> {
        self.streams.find(identity)
    }

    /// The stream's identity, if it is open.
    pub fn identity(&self, stream: StreamId) -> Option<StreamIdentity> {
        self.streams.index(stream).map(|index| self.streams.at(index).identity)
    }

    /// Returns the open streams of a topic.
    pub fn streams_on(&self, topic: TopicId) -> impl Iterator<Item = (StreamId, StreamIdentity)> {
        self.streams.of(topic).iter().map(|index| (self.streams.id(*index), self.streams.at(*index).identity))
    }

    /// The last event of a stream that came; a publisher without numbers of its own goes on behind it.
    pub fn last(&self, stream: StreamId) -> Option<Sequence> {
        self.streams.index(stream).map(|index| self.streams.at(index).last)
    }

    /// Whether an event that is kept has to be covered: an unmarked one may be lost, and what came too fast was told so.
    pub fn needs_cover(&self, slot: SlotId) -> bool {
        let message = self.streams.slots.at(slot.index);
        let topic = self.streams.at(message.stream).identity.topic;
        message.is_mark && self.topics.at(topic).terms().replicate_within_ns.is_some()
    }

    /// How far the publisher of a stream was told that it is covered.
    pub fn covered_through(&self, stream: StreamId) -> Option<Sequence> {
        self.streams.index(stream).map(|index| self.streams.at(index).covered)
    }

    /// The receiver of a subscription that is there.
    pub fn receiver(&self, key: SubscriptionKey) -> Option<&R> {
        self.subscriptions.get(key).map(|subscription| &subscription.receiver)
    }

    /// A topic's subscriptions.
    pub fn subscriptions_of(&self, topic: TopicId) -> &[SubscriptionKey] {
        &self.topics.at(topic).subscriptions
    }

    /// The receivers of a topic's subscriptions.
    pub fn receivers(&self, topic: TopicId) -> impl Iterator<Item = &R> {
        self.topics.at(topic).subscriptions.iter().filter_map(|key| self.receiver(*key))
    }

    /// Events that a full queue has cost a subscriber, told or not yet told.
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }

    /// Events that a subscriber is losing just now: its queue was full, and it will be told how many when it has read half of it.
    pub fn untold_loss(&self, key: SubscriptionKey) -> u64 {
        self.subscriptions.get(key).map_or(0, Subscription::untold_loss)
    }

    /// Subscriptions that are there.
    pub fn subscription_count(&self) -> usize {
        self.subscriptions.count()
    }

    /// Slots that all open streams may use: the size of the host's table of bytes.
    pub fn slots_max(&self) -> usize {
        self.streams.slots.count_max()
    }

    /// Events that are kept.
    pub fn kept(&self) -> usize {
        self.streams.slots.kept()
    }

    /// Events that wait for their turn: the depth of the queue that goes by deadlines.
    pub fn waiting(&self) -> u64 {
        self.streams.waiting()
    }

    /// What real-time streams have seen.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
