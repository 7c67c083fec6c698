//! Event streams (Server-Sent Events): opening one, and telling a slow one what it lost.

use std::{io::Write, time::Duration};

use bodkin_arrowhead::{error::ArrowheadError, name::EventType, record::SystemId, service_registry::parse_system_parameters};
use bodkin_broker::SubscriptionKey;

use super::{Receiver, Shard};
use crate::{
    answer::{self, Refusal},
    http::RawRequest,
    request::Request,
};

/// What a frame of a stream looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamForm {
    /// The improved Event Handler's: `event:` is the event type, `data:` the payload.
    Payload,
    /// `data:` is the event as JSON.
    Event,
}

impl Shard {
    /// Opens an event stream on the connection, or answers why not.
    pub(super) fn stream(&mut self, slot: usize, request: &Request, raw: &RawRequest<'_>) {
        if let Err(refusal) = self.try_stream(slot, request, raw.event_type) {
            self.write(slot, &refusal.into(), raw.keep_alive, false);
        }
    }

    fn try_stream(&mut self, slot: usize, request: &Request, header: Option<&str>) -> Result<(), Refusal> {
        let (form, name) = match request.path.as_str() {
            "/eventhandler/events" => (StreamForm::Event, request.parameter("event_type")),
            _ => (StreamForm::Payload, header.or_else(|| request.parameter("eventtype"))),
        };
        let event_type = EventType::parse(name.ok_or(Refusal::Malformed)?);
        let event_type = event_type.map_err(|error| ArrowheadError::bad_payload(format!("Event type {error}"), &request.path))?;
        let consumer = self.consumer(request)?;
        if self.stream_count() >= self.context.limits.subscriptions_max {
            let told = format!("There are {} event streams, which is the limit.", self.context.limits.subscriptions_max);
            return Err(ArrowheadError::unavailable(told).into());
        }
        let receiver = Receiver::Stream { slot, form, consumer };
        let subscription = self
            .broker
            .subscribe(event_type.as_str(), receiver)
            .map_err(|error| ArrowheadError::unavailable(format!("The stream was not opened: {error}.")))?;
        let connection = &mut self.connections[slot];
        if let Err(error) = connection.begin_stream(subscription) {
            tracing::debug!(%error, "a vanished listener will not be noticed by probes");
        }
        answer::push_stream_head(connection.out(), self.clock.date());
        self.dirty.push(slot);
        self.count_subscriptions();
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
