//! What the shard tells of itself.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_broker::{SubscriptionKey, TopicView};

use super::{Receiver, Shard};
use crate::api::TopicState;

impl Shard {
    /// Every event type that it has seen.
    pub(super) fn topics(&self) -> Vec<TopicState> {
        let is_pushed = |key: &&SubscriptionKey| matches!(self.broker.receiver(**key), Some(Receiver::Push { .. }));
        let is_graph = |key: &&SubscriptionKey| matches!(self.broker.receiver(**key), Some(Receiver::Graph));
        let state = |topic: TopicView<'_>| {
            let pushed = topic.subscriptions.iter().filter(is_pushed).count();
            let graphs = topic.subscriptions.iter().filter(is_graph).count();
            TopicState {
                event_type: topic.name.to_owned(),
                published: topic.published,
                subscriptions: pushed,
                streams: topic.subscriptions.len() - pushed - graphs,
                durable: self.context.durable.contains(topic.name)
                    || self.real_time_topic(topic.name).is_some_and(|topic| topic.is_durable),
            }
        };
        self.broker.topics().map(state).collect()
    }

    /// Event streams, and topics that ZMTP subscribers hear.
    pub(super) fn stream_count(&self) -> usize {
        self.broker.subscription_count() - self.pushed.len() + self.replaying
    }

    /// Lets those who watch know what the broker has done, and what waits.
    pub(super) fn count_work(&self) {
        let (counts, seen) = (&self.context.counts, self.broker.counters());
        counts.waiting.store(self.broker.waiting(), Relaxed);
        counts.replicated.store(seen.replicated, Relaxed);
        counts.replicated_late.store(seen.replicated_late, Relaxed);
        counts.replicas_saved.store(seen.cancelled, Relaxed);
    }

    /// Lets those who watch know how many subscriptions there are.
    pub(super) fn count_subscriptions(&self) {
        self.context.counts.subscriptions.store((self.broker.subscription_count() + self.replaying) as u64, Relaxed);
    }
}
