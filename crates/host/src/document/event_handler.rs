//! Operations of the Event Handler (reference 6, and the event streams of `docs/formats/events.md`).

use super::description::{Content, Description, Tag::*, delete, get, paging, post, put};

/// Declares an event stream's query parameters behind the one that names the event type.
macro_rules! stream {
    ($event_type:literal) => {
        &[
            $event_type,
            "system_name? text - with address and port: who listens, and then hears only whom it may",
            "address? text",
            "port? port",
            "last_event_id? text - replays what followed this event",
            "since? time - replays from this time on",
            "deadline_ms? text - a number: from an event's creation to its arrival, asked of a real-time topic; also deadline_us, deadline_s",
            "loss_tolerance? int - events in a row that may be missed, asked of a real-time topic",
            "severity? Debugging|Informational|Notification|Warning|Error|Critical - at least this severe",
        ]
    };
}

/// Beginnings of further names of a stream's query parameters: filters, and terms of real-time topics with their units.
pub const FAMILIES: [&str; 4] = ["metadata.", "payload.", "deadline", "required"];

/// CloudEvents at `/api/v1/events` of this port: a row each, with the whole path.
pub const CLOUD_EVENTS: &[Description] = &[
    post(
        Bodkin,
        "api/v1/events",
        "any",
        "",
        "Publishes a CloudEvent: structured, or binary (its attributes are headers ce-..., its data is the body, of any type).",
    )
    .of_type("application/cloudevents+json")
    .saying(Content::Nothing),
    get(Bodkin, "api/v1/events", "", "An event stream of CloudEvents.")
        .asking(stream!("type text - the event type"))
        .saying(Content::Events),
];

/// A row each.
pub const OPERATIONS: &[Description] = &[
    post(Client, "publish", "EventPublishRequest", "", "Publishes an event.").saying(Content::Nothing),
    post(Client, "subscribe", "SubscriptionRequest", "", "Has events posted to the subscriber.").saying(Content::Nothing),
    delete(Client, "unsubscribe", "Ends a subscription.").asking(&["event_type text", "system_name word", "address address", "port port"]),
    get(Client, "subscription", "", "An event stream of payloads.")
        .asking(stream!("eventtype text - or the header of this name"))
        .saying(Content::Events),
    get(Client, "events", "", "An event stream of whole events.").asking(stream!("event_type text")).saying(Content::Events),
    post(Private, "publish/authupdate", "EventPublishRequest", "", "Says that a subscriber's rules have changed.").saying(Content::Nothing),
    get(Management, "mgmt/subscriptions", "Page[SubscriptionResponse]", "All subscriptions.").asking(paging!("id|createdAt|updatedAt")),
    get(Management, "mgmt/subscriptions/{id}", "SubscriptionResponse", "A subscription."),
    put("mgmt/subscriptions/{id}", "SubscriptionRequest", "SubscriptionResponse", "Replaces a subscription."),
    delete(Management, "mgmt/subscriptions/{id}", "Removes a subscription."),
];
