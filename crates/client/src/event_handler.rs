//! Calls to the Event Handler.

use bodkin_arrowhead::form::{EventPublishRequest, SubscriptionRequest, SystemRequest};
use http::Method;

use crate::{
    answer::{List, Subscription},
    core_systems::CoreSystems,
    error::CallError,
    event_stream::Events,
    query_string::path_with,
    service_registry::parts,
};

/// What the `data` of a stream's events is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventForm {
    /// The payload; the event type is the `event` field.
    Payload,
    /// The event as JSON, with its metadata and time stamp.
    Event,
}

impl CoreSystems {
    /// Publishes an event. Returns when it is in the queue of everybody who may hear it.
    pub async fn publish(&self, event: &EventPublishRequest) -> Result<(), CallError> {
        self.event_handler.tell(Method::POST, "/eventhandler/publish", Some(event)).await
    }

    /// Subscribes a registered system: events are posted to its `notifyUri`. Replaces its former subscription to the event type.
    pub async fn subscribe(&self, form: &SubscriptionRequest) -> Result<(), CallError> {
        self.event_handler.tell(Method::POST, "/eventhandler/subscribe", Some(form)).await
    }

    /// Ends a subscription; none to end is no error.
    pub async fn unsubscribe(&self, event_type: &str, subscriber: &SystemRequest) -> Result<(), CallError> {
        let (name, address, port) = parts(subscriber);
        let parameters = [("event_type", event_type), ("system_name", name), ("address", address), ("port", port.as_str())];
        self.event_handler.delete(&path_with("/eventhandler/unsubscribe", &parameters)).await
    }

    /// All subscriptions.
    pub async fn subscriptions(&self) -> Result<List<Subscription>, CallError> {
        self.event_handler.get("/eventhandler/mgmt/subscriptions").await
    }

    /// Removes a subscription by its row id; none to remove is no error.
    pub async fn remove_subscription(&self, id: i64) -> Result<(), CallError> {
        self.event_handler.delete(&format!("/eventhandler/mgmt/subscriptions/{id}")).await
    }

    /// Opens a stream of the events of a type from now on. With a `consumer`, a registered system, it hears the publishers
    /// that the authorization rules let that system hear; without, every publisher (insecure mode only).
    pub async fn events(&self, event_type: &str, form: EventForm, consumer: Option<&SystemRequest>) -> Result<Events, CallError> {
        let (path, key) = match form {
            EventForm::Payload => ("/eventhandler/subscription", "eventtype"),
            EventForm::Event => ("/eventhandler/events", "event_type"),
        };
        let port;
        let mut parameters = vec![(key, event_type)];
        if let Some(consumer) = consumer {
            let (name, address, number) = parts(consumer);
            port = number;
            parameters.extend([("system_name", name), ("address", address), ("port", port.as_str())]);
        }
        Events::open(&self.event_handler, &path_with(path, &parameters)).await
    }
}
