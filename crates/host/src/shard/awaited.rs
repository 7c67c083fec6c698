//! Topics that reject events because a required subscriber has not acknowledged earlier ones.
//!
//! The first rejection is reported in the topic's `Parties` and in the log; the sweep reports when the topic accepts events again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_broker::{PublisherId, SubscriptionKey, TopicId};

use super::Shard;
use crate::{seldom::SeldomOf, topics::parties::Awaited};

/// Topics that wait for a required subscriber.
#[derive(Default)]
pub(super) struct AwaitedSubscribers {
    by_topic: BTreeMap<TopicId, Wait>,
    logged: SeldomOf,
}

/// A topic's wait.
struct Wait {
    /// Whose events are rejected.
    publisher: PublisherId,
    subscription: SubscriptionKey,
    since: UtcTime,
    /// The log has the begin of the wait, so it gets the end too.
    is_logged: bool,
}

impl Shard {
    /// Records that a publisher's event was rejected because its stream is full, if a required subscriber is the cause.
    pub(super) fn note_full(&mut self, topic: TopicId, publisher: PublisherId) {
        let Some(subscription) = self.broker.awaited_by(topic, publisher) else { return };
        if self.awaited.by_topic.get(&topic).is_some_and(|wait| wait.subscription == subscription) {
            return self.real_time.topic(topic).counts.parties.count_awaiting();
        }
        self.end_wait(topic);
        let (since, (subscriber, required_for)) = (self.clock.utc, self.awaited_subscriber(subscription));
        let declared = self.real_time.topic(topic);
        let times = self.awaited.logged.due(&declared.event_type);
        if let Some(times) = times {
            let required_for_s = required_for.as_secs();
            tracing::warn!(topic = &*declared.event_type, %subscriber, required_for_s, times, "publishers rejected: topic waits for a required subscriber");
        }
        let awaited = Awaited { subscriber, since, rejected: 1, required_for_s: required_for.as_secs() };
        declared.counts.parties.set_awaited(Some(awaited));
        self.awaited.by_topic.insert(topic, Wait { publisher, subscription, since, is_logged: times.is_some() });
    }

    /// Reports the topics that do not wait any more; once a second.
    pub(super) fn look_after_waits(&mut self) {
        let leads = self.leads();
        let still = |topic: TopicId, wait: &Wait| leads && self.broker.awaited_by(topic, wait.publisher) == Some(wait.subscription);
        let over: Vec<TopicId> =
            self.awaited.by_topic.iter().filter(|(topic, wait)| !still(**topic, wait)).map(|(topic, _)| *topic).collect();
        over.into_iter().for_each(|topic| self.end_wait(topic));
    }

    fn end_wait(&mut self, topic: TopicId) {
        let Some(wait) = self.awaited.by_topic.remove(&topic) else { return };
        let declared = self.real_time.topic(topic);
        let ended = declared.counts.parties.set_awaited(None);
        if let (true, Some(Awaited { subscriber, rejected, .. })) = (wait.is_logged, ended) {
            let waited_s = self.clock.utc.unix_seconds().saturating_sub(wait.since.unix_seconds());
            // At the level of the first line: a log without the end would leave the alarm standing.
            tracing::warn!(topic = &*declared.event_type, %subscriber, waited_s, rejected, "publishers accepted: topic no longer waits for the required subscriber");
        }
    }

    /// The name of a required subscriber, and how long it is waited for.
    fn awaited_subscriber(&mut self, subscription: SubscriptionKey) -> (Arc<str>, Duration) {
        self.required_subscriber(subscription).unwrap_or_else(|| self.graph_subscriber(subscription))
    }
}
