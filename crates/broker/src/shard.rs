//! One shard: the topics one thread owns, with their subscriptions and streams.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    event::{EventId, Incarnation, PublisherId, Sequence, TopicId},
    subscription::{Offered, Overflow, Subscription, SubscriptionKey},
    time::Instant,
};

/// What can happen to a subscription. That an event is published is a call of its own ([`Shard::publish`]), for it can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Bytes of a subscription's queue were handed over for good.
    Sent {
        /// Whose queue.
        subscription: SubscriptionKey,
        /// How many, in the sizes [`Offer`] gave.
        bytes: u64,
    },
    /// A subscription reads the event log from now on.
    FallBehind {
        /// Which one; one that is behind already, or gone, is no error.
        subscription: SubscriptionKey,
    },
    /// A subscription that was behind is back in the present.
    CatchUp {
        /// Which one; one that is gone is no error.
        subscription: SubscriptionKey,
        /// What the host has put into its queue meanwhile.
        bytes: u64,
    },
    /// A subscription has ended.
    Unsubscribe {
        /// Which one; one that is gone already is no error.
        subscription: SubscriptionKey,
    },
}

/// Gives the bytes an event takes in a receiver's queue, or `None` if the event is not for this receiver.
pub type Offer<'o, R> = dyn FnMut(&R, EventId) -> Option<u64> + 'o;

/// Everything a shard wants done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Append the event of this step to the subscription's queue.
    Deliver {
        /// Whose queue.
        subscription: SubscriptionKey,
        /// Which event.
        event: EventId,
    },
    /// Tell the subscriber, behind what is queued, that it has to read the event log, from the event of this step on if that
    /// has filled its queue, else from the next one.
    FellBehind {
        /// Who.
        subscription: SubscriptionKey,
    },
    /// Tell the subscriber, behind what is queued, that events were lost because its queue was full.
    TellLoss {
        /// Who lost.
        subscription: SubscriptionKey,
        /// How many events in a row.
        events: u64,
        /// From the first lost event until now.
        during: Duration,
    },
}

/// How much a shard takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLimits {
    /// Subscriptions; one more is refused.
    pub subscriptions_max: usize,
    /// Topics, and streams (a publisher on a topic) per topic on average; one more is refused. A topic lasts as long as the
    /// shard, for its events are numbered whether anybody listens or not: who comes back asks for what it has missed.
    pub topics_max: usize,
    /// Bytes a subscription may have queued; events beyond are lost, counted and told.
    pub queue_bytes_max: u64,
}

/// Streams for each topic that [`ShardLimits::topics_max`] allows.
const STREAMS_PER_TOPIC: usize = 16;

/// Why a subscription was not made, or an event not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// [`ShardLimits::subscriptions_max`] are there.
    #[error("there are {0} subscriptions, which is the limit")]
    Subscriptions(usize),
    /// [`ShardLimits::topics_max`] are there.
    #[error("there are {0} event types, which is the limit")]
    Topics(usize),
    /// So many pairs of publisher and topic are there.
    #[error("there are {0} pairs of publisher and event type, which is the limit")]
    Streams(usize),
}

#[derive(Debug, Default)]
struct Topic {
    subscriptions: Vec<SubscriptionKey>,
    streams: BTreeMap<PublisherId, Sequence>,
}

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

/// The machine. `R` is whatever the host needs to reach a receiver.
#[derive(Debug)]
pub struct Shard<R> {
    incarnation: Incarnation,
    limits: ShardLimits,
    /// Indexed by [`TopicId`].
    topics: Vec<Topic>,
    topic_by_name: BTreeMap<Box<str>, TopicId>,
    stream_count: usize,
    subscriptions: Vec<(u32, Option<Subscription<R>>)>,
    free: Vec<u32>,
    lost_events: u64,
}

impl<R> Shard<R> {
    /// A shard without topics. `incarnation` must differ from that of every earlier run.
    pub fn new(incarnation: Incarnation, limits: ShardLimits) -> Self {
        Self {
            incarnation,
            limits,
            topics: Vec::new(),
            topic_by_name: BTreeMap::new(),
            stream_count: 0,
            subscriptions: Vec::new(),
            free: Vec::new(),
            lost_events: 0,
        }
    }

    /// Makes a subscription to a topic, which is named as stored (upper-case). It hears what is published from now on.
    pub fn subscribe(&mut self, topic: &str, receiver: R, overflow: Overflow) -> Result<SubscriptionKey, ShardError> {
        if self.subscription_count() >= self.limits.subscriptions_max {
            return Err(ShardError::Subscriptions(self.limits.subscriptions_max));
        }
        let topic_id = self.topic(topic)?;
        let heard = &mut self.topics[topic_id.index()].subscriptions;
        let subscription = Subscription::new(topic_id, heard.len(), receiver, overflow, self.limits.queue_bytes_max);
        let key = match self.free.pop() {
            Some(index) => {
                let (generation, slot) = &mut self.subscriptions[index as usize];
                *slot = Some(subscription);
                SubscriptionKey { index, generation: *generation }
            }
            None => {
                let index = u32::try_from(self.subscriptions.len()).expect("there are fewer subscriptions than 2^32");
                self.subscriptions.push((0, Some(subscription)));
                SubscriptionKey { index, generation: 0 }
            }
        };
        heard.push(key);
        Ok(key)
    }

    fn topic(&mut self, name: &str) -> Result<TopicId, ShardError> {
        if let Some(id) = self.topic_by_name.get(name) {
            return Ok(*id);
        }
        if self.topics.len() >= self.limits.topics_max {
            return Err(ShardError::Topics(self.limits.topics_max));
        }
        let id = TopicId(self.topics.len() as u64);
        self.topics.push(Topic::default());
        self.topic_by_name.insert(name.into(), id);
        Ok(id)
    }

    /// Takes what happened to a subscription. `outputs` is appended to.
    pub fn step(&mut self, now: Instant, input: Input, outputs: &mut Vec<Output>) {
        match input {
            Input::Sent { subscription: key, bytes } => {
                let Some(subscription) = self.get_mut(key) else { return };
                if let Some((events, during)) = subscription.sent(now, bytes) {
                    outputs.push(Output::TellLoss { subscription: key, events, during });
                }
            }
            Input::FallBehind { subscription: key } => {
                if self.get_mut(key).is_some_and(Subscription::fall_behind) {
                    outputs.push(Output::FellBehind { subscription: key });
                }
            }
            Input::CatchUp { subscription, bytes } => {
                if let Some(subscription) = self.get_mut(subscription) {
                    subscription.catch_up(bytes);
                }
            }
            Input::Unsubscribe { subscription } => self.unsubscribe(subscription),
        }
    }

    /// Accepts an event of a topic, which is named as stored (upper-case), and gives its identity. What the publisher may
    /// publish was decided before; `offer` is asked once for every subscription of the topic that is not behind.
    pub fn publish(
        &mut self,
        now: Instant,
        topic: &str,
        publisher: PublisherId,
        offer: &mut Offer<'_, R>,
        outputs: &mut Vec<Output>,
    ) -> Result<EventId, ShardError> {
        let id = self.topic(topic)?;
        let topic = &mut self.topics[id.index()];
        let sequence = match topic.streams.get_mut(&publisher) {
            Some(sequence) => sequence,
            None => {
                let streams_max = self.limits.topics_max.saturating_mul(STREAMS_PER_TOPIC);
                if self.stream_count >= streams_max {
                    return Err(ShardError::Streams(streams_max));
                }
                self.stream_count += 1;
                topic.streams.entry(publisher).or_insert(Sequence(0))
            }
        };
        sequence.0 += 1;
        let event = EventId { publisher, incarnation: self.incarnation, topic: id, sequence: *sequence };
        for &key in &topic.subscriptions {
            let subscription = self.subscriptions[key.index as usize].1.as_mut().expect("a topic's subscriptions are there");
            if subscription.is_behind() {
                continue;
            }
            let Some(bytes) = offer(&subscription.receiver, event) else { continue };
            match subscription.offer(now, bytes) {
                Offered::Queued => outputs.push(Output::Deliver { subscription: key, event }),
                Offered::Lost => self.lost_events += 1,
                Offered::FellBehind => outputs.push(Output::FellBehind { subscription: key }),
            }
        }
        Ok(event)
    }

    fn unsubscribe(&mut self, key: SubscriptionKey) {
        if self.get_mut(key).is_none() {
            return;
        }
        let (generation, slot) = &mut self.subscriptions[key.index as usize];
        *generation = generation.wrapping_add(1);
        let subscription = slot.take().expect("the key was valid");
        self.free.push(key.index);
        let heard = &mut self.topics[subscription.topic.index()].subscriptions;
        heard.swap_remove(subscription.place);
        if let Some(moved) = heard.get(subscription.place).copied() {
            self.get_mut(moved).expect("a topic's subscriptions are there").place = subscription.place;
        }
    }

    fn get_mut(&mut self, key: SubscriptionKey) -> Option<&mut Subscription<R>> {
        let (generation, slot) = self.subscriptions.get_mut(key.index as usize)?;
        slot.as_mut().filter(|_| *generation == key.generation)
    }

    /// All topics, in order of their names.
    pub fn topics(&self) -> impl Iterator<Item = TopicView<'_>> {
        self.topic_by_name.iter().map(|(name, id)| {
            let topic = &self.topics[id.index()];
            TopicView { name, published: topic.streams.values().map(|sequence| sequence.0).sum(), subscriptions: &topic.subscriptions }
        })
    }

    /// The receiver of a subscription that is there.
    pub fn receiver(&self, key: SubscriptionKey) -> Option<&R> {
        let (generation, slot) = self.subscriptions.get(key.index as usize)?;
        slot.as_ref().filter(|_| *generation == key.generation).map(|subscription| &subscription.receiver)
    }

    /// Events that a full queue has cost a subscriber, told or not yet told.
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }

    /// Subscriptions that are there.
    pub fn subscription_count(&self) -> usize {
        self.subscriptions.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: ShardLimits = ShardLimits { subscriptions_max: 3, topics_max: 3, queue_bytes_max: 4 };

    fn shard() -> Shard<u8> {
        Shard::new(Incarnation(7), LIMITS)
    }

    fn publish(shard: &mut Shard<u8>, topic: &str, publisher: u64, size: u64) -> Vec<Output> {
        let mut outputs = Vec::new();
        shard.publish(Instant::default(), topic, PublisherId(publisher), &mut |_, _| Some(size), &mut outputs).unwrap();
        outputs
    }

    fn sent(shard: &mut Shard<u8>, subscription: SubscriptionKey, bytes: u64) -> Vec<Output> {
        let mut outputs = Vec::new();
        shard.step(Instant::from_nanos(9), Input::Sent { subscription, bytes }, &mut outputs);
        outputs
    }

    #[test]
    fn every_subscription_of_the_topic_hears_the_event_once() {
        let mut shard = shard();
        let keys = [
            shard.subscribe("A", 1, Overflow::Loses).unwrap(),
            shard.subscribe("B", 2, Overflow::Loses).unwrap(),
            shard.subscribe("A", 3, Overflow::Loses).unwrap(),
        ];
        let heard: Vec<_> = publish(&mut shard, "A", 5, 1)
            .into_iter()
            .map(|output| matches!(output, Output::Deliver { subscription, .. } if subscription == keys[0] || subscription == keys[2]))
            .collect();
        assert_eq!(heard, [true, true]);
        assert!(publish(&mut shard, "C", 5, 1).is_empty());
        assert_eq!(shard.subscribe("A", 4, Overflow::Loses), Err(ShardError::Subscriptions(3)));
    }

    #[test]
    fn an_event_that_is_not_for_a_receiver_is_no_loss() {
        let mut shard = shard();
        shard.subscribe("A", 1, Overflow::Loses).unwrap();
        let mut outputs = Vec::new();
        shard.publish(Instant::default(), "A", PublisherId(1), &mut |_, _| None, &mut outputs).unwrap();
        assert_eq!(outputs, []);
    }

    #[test]
    fn an_overflowing_subscriber_is_told_its_loss_behind_what_was_queued() {
        let mut shard = shard();
        let key = shard.subscribe("A", 1, Overflow::Loses).unwrap();
        assert_eq!(publish(&mut shard, "A", 1, 3).len(), 1);
        assert_eq!(publish(&mut shard, "A", 1, 2).len(), 0);
        assert_eq!(publish(&mut shard, "A", 1, 1).len(), 0, "the loss keeps its place in the order");
        assert_eq!(sent(&mut shard, key, 0), []);
        assert_eq!(sent(&mut shard, key, 1), [Output::TellLoss { subscription: key, events: 2, during: Duration::from_nanos(9) }]);
        assert_eq!(publish(&mut shard, "A", 1, 2).len(), 1);
    }

    #[test]
    fn who_falls_behind_is_offered_nothing_and_loses_nothing_until_it_has_caught_up() {
        let mut shard = shard();
        let key = shard.subscribe("A", 1, Overflow::FallsBehind).unwrap();
        assert_eq!(publish(&mut shard, "A", 1, 3).len(), 1);
        assert_eq!(publish(&mut shard, "A", 1, 2), [Output::FellBehind { subscription: key }]);
        let unasked = &mut |_: &u8, _| panic!("who is behind is not asked");
        shard.publish(Instant::default(), "A", PublisherId(1), unasked, &mut Vec::new()).unwrap();
        let mut step = |input| {
            let mut outputs = Vec::new();
            shard.step(Instant::default(), input, &mut outputs);
            outputs
        };
        assert_eq!(step(Input::Sent { subscription: key, bytes: 3 }), []);
        assert_eq!(step(Input::FallBehind { subscription: key }), [], "it is told once");
        assert_eq!(step(Input::CatchUp { subscription: key, bytes: 2 }), []);
        assert_eq!(step(Input::FallBehind { subscription: key }), [Output::FellBehind { subscription: key }]);
        assert_eq!(step(Input::CatchUp { subscription: key, bytes: 0 }), []);
        assert_eq!(publish(&mut shard, "A", 1, 2).len(), 1);
        assert_eq!(publish(&mut shard, "A", 1, 1), [Output::FellBehind { subscription: key }]);
        assert_eq!(shard.lost_events(), 0);
    }

    #[test]
    fn an_event_larger_than_the_queue_passes_an_empty_one() {
        let mut shard = shard();
        let key = shard.subscribe("A", 1, Overflow::Loses).unwrap();
        assert_eq!(publish(&mut shard, "A", 1, 100).len(), 1);
        assert_eq!(sent(&mut shard, key, 100), []);
    }

    #[test]
    fn a_removed_subscription_leaves_nothing_behind() {
        let mut shard = shard();
        let old = shard.subscribe("A", 1, Overflow::Loses).unwrap();
        shard.step(Instant::default(), Input::Unsubscribe { subscription: old }, &mut Vec::new());
        let new = shard.subscribe("A", 2, Overflow::Loses).unwrap();
        assert_eq!((shard.receiver(old), shard.receiver(new)), (None, Some(&2)));
        assert_eq!(sent(&mut shard, old, 1), []);
        shard.step(Instant::default(), Input::Unsubscribe { subscription: old }, &mut Vec::new());
        assert_eq!(shard.subscription_count(), 1);
    }

    #[test]
    fn events_are_numbered_whether_anybody_listens_or_not() {
        let mut shard = shard();
        let mut numbers = |topic: &str, publisher| {
            shard
                .publish(Instant::default(), topic, PublisherId(publisher), &mut |_, _| None, &mut Vec::new())
                .map(|id| (id.topic.0, id.sequence.0))
        };
        assert_eq!([numbers("A", 1), numbers("A", 1), numbers("A", 2), numbers("B", 1)], [Ok((0, 1)), Ok((0, 2)), Ok((0, 1)), Ok((1, 1))]);
        assert_eq!([numbers("C", 1), numbers("D", 1)], [Ok((2, 1)), Err(ShardError::Topics(3))]);
        for publisher in 3..47 {
            assert!(numbers("A", publisher).is_ok(), "{publisher}");
        }
        assert_eq!(numbers("A", 47), Err(ShardError::Streams(48)));
        assert_eq!(shard.topics().map(|topic| (topic.name, topic.published)).collect::<Vec<_>>(), [("A", 47), ("B", 1), ("C", 1)]);
    }

    #[test]
    fn the_others_hear_on_when_subscriptions_end_in_any_order() {
        let mut shard = Shard::new(Incarnation(7), ShardLimits { subscriptions_max: 100, ..LIMITS });
        let mut keys: Vec<_> = (0..20).map(|receiver| shard.subscribe("A", receiver, Overflow::Loses).unwrap()).collect();
        while !keys.is_empty() {
            let ended = keys.swap_remove(keys.len() * 7 % 11 % keys.len());
            shard.step(Instant::default(), Input::Unsubscribe { subscription: ended }, &mut Vec::new());
            assert_eq!(publish(&mut shard, "A", 1, 0).len(), keys.len());
        }
    }

    proptest! {
        /// What a subscriber hears of one publisher is ascending, and every gap is told with its exact size.
        #[test]
        fn gaps_are_told_exactly(script in prop::collection::vec((0u64..3, 0u64..3), 1..200)) {
            let mut shard = shard();
            let key = shard.subscribe("A", 1, Overflow::Loses).unwrap();
            let (mut queued, mut last, mut told, mut published) = (0u64, 0u64, 0u64, 0u64);
            for (size, drained) in script {
                let mut outputs = publish(&mut shard, "A", 1, size);
                published += 1;
                queued += outputs.len() as u64 * size;
                let bytes = drained.min(queued);
                queued -= bytes;
                outputs.extend(sent(&mut shard, key, bytes));
                for output in outputs {
                    match output {
                        Output::Deliver { event, .. } => {
                            prop_assert_eq!(event.sequence.0, last + told + 1);
                            (last, told) = (event.sequence.0, 0);
                        }
                        Output::TellLoss { events, .. } => told += events,
                        Output::FellBehind { .. } => prop_assert!(false, "this one loses"),
                    }
                }
            }
            let rest = sent(&mut shard, key, queued);
            let untold: u64 = rest.iter().map(|output| if let Output::TellLoss { events, .. } = output { *events } else { 0 }).sum();
            prop_assert_eq!(published, last + told + untold);
            prop_assert!(shard.lost_events() >= told + untold && shard.lost_events() <= published);
        }
    }
}
