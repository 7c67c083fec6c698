//! Calls to the Event Handler.

use bodkin_arrowhead::form::{EventPublishRequest, SubscriptionRequest, SystemRequest};
use http::Method;

use crate::{
    answer::{List, Subscription},
    core_systems::CoreSystems,
    error::CallError,
    event_stream::Events,
    page::Page,
    query_string::path_with,
    service_registry::parts,
    stream_request::{EventForm, Start, StreamRequest},
};

const SUBSCRIPTIONS: &str = "/eventhandler/mgmt/subscriptions";

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

    /// Subscriptions.
    pub async fn subscriptions(&self, page: &Page) -> Result<List<Subscription>, CallError> {
        self.event_handler.get(&page.of(SUBSCRIPTIONS, &[])).await
    }

    /// A subscription by its row id.
    pub async fn subscription(&self, id: i64) -> Result<Subscription, CallError> {
        self.event_handler.get(&format!("{SUBSCRIPTIONS}/{id}")).await
    }

    /// Makes a subscription what the form says.
    pub async fn change_subscription(&self, id: i64, form: &SubscriptionRequest) -> Result<Subscription, CallError> {
        self.event_handler.ask(Method::PUT, &format!("{SUBSCRIPTIONS}/{id}"), Some(form)).await
    }

    /// Removes a subscription by its row id; none to remove is no error.
    pub async fn remove_subscription(&self, id: i64) -> Result<(), CallError> {
        self.event_handler.delete(&format!("{SUBSCRIPTIONS}/{id}")).await
    }

    /// Opens a stream of the events of a type from now on. With a `consumer`, a registered system, it hears the publishers
    /// that the authorization rules let that system hear; without, every publisher (insecure mode only).
    pub async fn events(&self, event_type: &str, form: EventForm, consumer: Option<&SystemRequest>) -> Result<Events, CallError> {
        self.stream(&StreamRequest { form, consumer: consumer.cloned(), ..StreamRequest::of(event_type) }).await
    }

    /// Opens a stream of what the request says, which may begin in the past.
    pub async fn stream(&self, request: &StreamRequest) -> Result<Events, CallError> {
        let after = if let Start::After(id) = &request.start { id } else { "" };
        Events::open(&self.event_handler, &request.path(), after).await
    }
}
