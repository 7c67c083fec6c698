//! What the shard tells of itself.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_broker::{SubscriptionKey, TopicView};

use super::{Receiver, Shard, connection::Phase};
use crate::{
    api::{
        TopicState,
        streams::{StreamForm, StreamPhase, StreamState, Streams},
    },
    listening,
};

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

    /// Who hears events on a connection of its own.
    pub(super) fn streams(&self) -> Streams {
        let snapshot = self.context.store.snapshot();
        let room_bytes = self.context.limits.subscriber_queue_bytes_max;
        let mut streams = Streams::default();
        for (_, connection) in &self.connections {
            let (listening, untold) = match connection.phase {
                Phase::Replay => match &connection.replay {
                    Some(replay) => (&replay.listening, 0),
                    None => continue,
                },
                Phase::Stream { subscription } => match self.broker.receiver(subscription) {
                    Some(Receiver::Stream { listening, .. }) => (listening, self.broker.untold_loss(subscription)),
                    _ => continue,
                },
                Phase::Requests | Phase::Waiting { .. } | Phase::Closing => continue,
            };
            streams.push(|| StreamState {
                id: format!("http-{}", connection.serial),
                form: match listening.form {
                    listening::StreamForm::Payload => StreamForm::Payload,
                    listening::StreamForm::Event => StreamForm::Event,
                    listening::StreamForm::CloudEvent => StreamForm::CloudEvent,
                },
                event_types: 1,
                event_type: Some(listening.event_type.as_str().to_owned()),
                consumer: listening.consumer.and_then(|id| snapshot.system(id)).map(|system| system.system_name.to_string()),
                address: connection.client.address,
                state: match (connection.phase, untold) {
                    (Phase::Replay, _) => StreamPhase::CatchingUp,
                    (_, 0) => StreamPhase::Live,
                    _ => StreamPhase::Losing,
                },
                waiting_bytes: connection.unsent_bytes() as u64,
                room_bytes,
                lost: connection.lost + untold,
            });
        }
        self.endpoint.tell_streams(&self.broker, room_bytes, &mut streams);
        streams
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
