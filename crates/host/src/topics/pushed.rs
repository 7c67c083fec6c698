//! What subscriptions by push ask of their topics: put to the admission test before a subscription is made, so that its subscriber is told, and taken over by the shard with
//! the subscription itself, at every start anew.

use std::sync::Arc;

use bodkin_arrowhead::{
    name::EventType,
    record::{SubscriptionBounds, SystemId},
};

use super::{
    RealTimeTopics, TopicError,
    asking::Answered,
    wish::{Asker, wish_of},
};
use crate::inbox::{Inbox, Message};

/// Asks on behalf of pushed subscriptions.
#[derive(Clone)]
pub struct PushedWishes {
    topics: Arc<RealTimeTopics>,
    inbox: Arc<Inbox>,
}

impl PushedWishes {
    /// The shard of `inbox` is told what holds.
    pub fn new(topics: Arc<RealTimeTopics>, inbox: Arc<Inbox>) -> Self {
        Self { topics, inbox }
    }

    /// Whether anything can be asked of an event type.
    pub fn is_topic(&self, event_type: &EventType) -> bool {
        self.topics.get(event_type.as_str()).is_some()
    }

    /// Asks for a subscriber, in place of what it asked of the event type before; what does not fit changes nothing. Among many topics this takes its time.
    pub fn ask(&self, event_type: &EventType, subscriber: SystemId, bounds: SubscriptionBounds) -> Result<(), TopicError> {
        let (event_type, asker) = (event_type.as_str(), Asker::pushed(subscriber));
        let tell =
            |topic| self.inbox.post(Message::Asked(Box::new(Answered { event_type: event_type.into(), waiter: None, result: Ok(topic) })));
        if bounds.is_none() {
            self.topics.forget(event_type, asker, tell);
            return Ok(());
        }
        let mut asked = Ok(());
        self.topics.ask(event_type, asker, wish_of(bounds), |result| match result {
            Ok(topic) => tell(topic),
            Err(error) => asked = Err(error),
        });
        asked
    }
}
