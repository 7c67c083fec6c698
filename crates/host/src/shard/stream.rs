//! Event streams (Server-Sent Events): opening one, and telling a slow one what it lost.

use std::{io::Write, sync::Arc, time::Duration};

use bodkin_arrowhead::{error::ArrowheadError, record::SystemId, service_registry::parse_system_parameters};
use bodkin_broker::{Overflow, ShardError, SubscriptionKey};

use super::{Receiver, Shard};
use crate::{
    answer::{self, Refusal},
    http::RawRequest,
    listening::{self, Listening},
    replay,
    request::Request,
};

impl Shard {
    /// Opens an event stream on the connection, or answers why not.
    pub(super) fn stream(&mut self, slot: usize, request: &Request, raw: &RawRequest<'_>) {
        if let Err(refusal) = self.try_stream(slot, request, raw) {
            self.write(slot, &refusal.into(), raw.keep_alive, false);
        }
    }

    fn try_stream(&mut self, slot: usize, request: &Request, raw: &RawRequest<'_>) -> Result<(), Refusal> {
        let listening = Listening::parse(request, raw.event_type, self.consumer(request)?)?;
        let since = listening::parse_since(request, raw.last_event_id)?;
        if self.stream_count() >= self.context.limits.subscriptions_max {
            let told = format!("There are {} event streams, which is the limit.", self.context.limits.subscriptions_max);
            return Err(ArrowheadError::unavailable(told).into());
        }
        match (since, self.context.replay.clone()) {
            (Some(since), Some(context)) => {
                self.write_stream_head(slot);
                self.begin_replay(slot, listening, since, context);
            }
            (since, _) => {
                self.listen(slot, Arc::new(listening))
                    .map_err(|error| ArrowheadError::unavailable(format!("The stream was not opened: {error}.")))?;
                self.write_stream_head(slot);
                if since.is_some() {
                    self.connections[slot].out().extend_from_slice(replay::LOST);
                }
            }
        }
        self.dirty.push(slot);
        self.count_subscriptions();
        Ok(())
    }

    fn write_stream_head(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        let page = connection.page.take();
        answer::push_stream_head(connection.out(), self.clock.date(), page.as_deref());
    }

    /// Lets a connection hear what is published from now on.
    pub(super) fn listen(&mut self, slot: usize, listening: Arc<Listening>) -> Result<(), ShardError> {
        let topic = listening.clone();
        let subscription = self.broker.subscribe(topic.event_type.as_str(), Receiver::Stream { slot, listening }, Overflow::Loses)?;
        self.connections[slot].begin_stream(subscription);
        Ok(())
    }

    /// The system that listens, where the parameters `system_name`, `address` and `port` name it: then it hears the
    /// publishers that the authorization rules let it hear, as a pushed subscription does.
    fn consumer(&self, request: &Request) -> Result<Option<SystemId>, Refusal> {
        let Some(name) = request.parameter("system_name") else {
            request.caller.may_ask()?;
            return Ok(None);
        };
        request.caller.may_act_as(name)?;
        let address = request.parameter("address").ok_or(Refusal::Malformed)?;
        let port = request.parameter("port").and_then(|text| text.trim().parse().ok()).ok_or(Refusal::Malformed)?;
        let key = parse_system_parameters(name, address, port, &request.path)?;
        let found = self.context.store.snapshot().system_by_key(key.as_str()).map(|system| system.id);
        let missing =
            || ArrowheadError::invalid_parameter(format!("System with name: {name}, address: {address}, port: {port} is not registered."));
        found.map(Some).ok_or_else(|| missing().into())
    }

    /// Tells a subscriber, behind what it was sent before, how many events its full queue has cost it.
    pub(super) fn tell_loss(&mut self, subscription: SubscriptionKey, events: u64, during: Duration) {
        match self.broker.receiver(subscription) {
            Some(Receiver::Stream { slot, .. }) => {
                let out = self.connections[*slot].out();
                write!(out, ": lost {events} events in {} ms\nevent: bodkin-lost\ndata: {{\"lost\":{events}}}\n\n", during.as_millis())
                    .expect("a vector takes everything");
                self.dirty.push(*slot);
            }
            Some(Receiver::Push { subscription, .. }) => {
                tracing::warn!(subscription = %subscription.id, events, ?during, "a pushed subscriber was too slow and lost events");
            }
            None => {}
        }
    }
}
