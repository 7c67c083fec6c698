//! What events can be published and heard, and how, as AsyncAPI 3.0: made of the topics as they are and of where the node listens.
//!
//! Bodkin is the application: it *receives* what is published and *sends* to who subscribes. Parameters of queries stand in the bindings, as the
//! specification asks for. Topics are channels of the ZMTP port, where a topic is named by a frame; over HTTP it is named in the request.

use serde_json::{Map, Value, json};

use super::form;

/// Version of the specification.
const ASYNC_API: &str = "3.0.0";
/// The Event Handler's server.
pub const HTTP_SERVER: &str = "eventHandler";
/// The ZMTP port's.
pub const ZMTP_SERVER: &str = "zmtp";
/// Version of the HTTP bindings.
const HTTP_BINDING: &str = "0.3.0";

/// Where a node listens for events.
#[derive(Clone, Debug)]
pub struct Place {
    /// [`HTTP_SERVER`] or [`ZMTP_SERVER`].
    pub name: &'static str,
    /// Host and port.
    pub host: String,
    /// Of the URL.
    pub protocol: &'static str,
}

/// A real-time topic. Times are whole microseconds; `None` is infinite.
#[derive(Clone, Debug)]
pub struct Promised {
    /// Its event type, as stored.
    pub event_type: String,
    /// T: the least time between two events of a publisher.
    pub period_us: i64,
    /// D: from creation to arrival.
    pub deadline_us: Option<i64>,
    /// L: events in a row that a subscriber may miss.
    pub loss_tolerance: Option<u32>,
    /// N: newest events that a publisher keeps.
    pub retention: u32,
}

/// The document. Without a place for ZMTP topics have no channels of their own.
pub fn async_api(places: &[Place], is_secure: bool, topics: &[Promised]) -> Value {
    let (mut channels, mut operations) = over_http();
    if places.iter().any(|place| place.name == ZMTP_SERVER) {
        for (number, topic) in topics.iter().enumerate() {
            over_zmtp(number + 1, topic, &mut channels, &mut operations);
        }
    }
    let mut document = json!({
        "asyncapi": ASYNC_API,
        "info": {
            "title": "Bodkin events",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Event types are not case-sensitive. Those that are not declared as topics promise nothing; they are published and heard in the same way.",
        },
        "defaultContentType": "application/json",
        "servers": servers(places, is_secure),
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages(), "schemas": schemas()},
    });
    if is_secure {
        document["components"]["securitySchemes"] = json!({"certificate": {"type": "X509", "description": "TLS with the certificate of a system of this cloud."},
            "curve": {"type": "asymmetricEncryption", "description": "CURVE with a key that is bound to a system (bodkin cert curve)."}});
    }
    document
}

fn servers(places: &[Place], is_secure: bool) -> Map<String, Value> {
    let server = |Place { name, host, protocol }: &Place| {
        let mut server = json!({"host": host, "protocol": protocol});
        if is_secure {
            let scheme = if *name == ZMTP_SERVER { "curve" } else { "certificate" };
            server["security"] = json!([{"$ref": format!("#/components/securitySchemes/{scheme}")}]);
        }
        ((*name).to_owned(), server)
    };
    places.iter().map(server).collect()
}

/// A channel of some servers, whose messages are these of the components.
fn channel(address: Value, title: &str, server: Option<&str>, message: &str) -> Value {
    let mut channel = json!({
        "address": address,
        "title": title,
        "messages": {message: {"$ref": format!("#/components/messages/{message}")}},
    });
    if let Some(server) = server {
        channel["servers"] = json!([{"$ref": format!("#/servers/{server}")}]);
    }
    channel
}

/// An operation on a channel: `receive` or `send`, as Bodkin does it.
fn operation(action: &str, channel: &str, message: &str, summary: &str) -> Value {
    json!({
        "action": action,
        "channel": {"$ref": format!("#/channels/{channel}")},
        "messages": [{"$ref": format!("#/channels/{channel}/messages/{message}")}],
        "summary": summary,
    })
}

fn asked_by(mut operation: Value, method: &str, query: &[(&str, &str)]) -> Value {
    let mut binding = json!({"method": method, "bindingVersion": HTTP_BINDING});
    if !query.is_empty() {
        let properties: Map<String, Value> =
            query.iter().map(|(name, meaning)| ((*name).to_owned(), json!({"type": "string", "description": meaning}))).collect();
        binding["query"] = json!({"type": "object", "required": [query[0].0], "properties": properties});
    }
    operation["bindings"] = json!({"http": binding});
    operation
}

/// Publishing, event streams and pushes: the topic is named in the request.
fn over_http() -> (Map<String, Value>, Map<String, Value>) {
    let http = Some(HTTP_SERVER);
    // Where a subscriber wants to be told is not known before it subscribes.
    let pushed = "Events posted to the path that a subscriber has named (POST /eventhandler/subscribe)";
    let mut pushes = channel(Value::Null, pushed, None, "event");
    pushes["messages"]["cloudEvent"] = json!({"$ref": "#/components/messages/cloudEvent"});
    let told = "Posts an event, as a CloudEvent where the subscription asks for that; a 2xx takes it, anything else has it come again.";
    let mut push = operation("send", "pushes", "event", told);
    push["messages"].as_array_mut().expect("messages are a list").push(json!({"$ref": "#/channels/pushes/messages/cloudEvent"}));
    let channels = [
        ("publish", channel("/eventhandler/publish".into(), "Events from publishers", http, "publication")),
        ("payloads", channel("/eventhandler/subscription".into(), "A stream of payloads", http, "payload")),
        ("events", channel("/eventhandler/events".into(), "A stream of events", http, "event")),
        ("cloudEvents", channel("/api/v1/events".into(), "CloudEvents 1.0, in and as a stream out", http, "cloudEvent")),
        ("pushes", pushes),
    ];
    const MISSED: (&str, &str) = ("since", "events from this time on that the event log has come first");
    let operations = [
        ("publish", asked_by(operation("receive", "publish", "publication", "Takes an event; answered when it is taken."), "POST", &[])),
        (
            "streamPayloads",
            asked_by(
                operation("send", "payloads", "payload", "Server-sent events: data is the payload, event the event type, id the identity."),
                "GET",
                &[("eventtype", "which event type; the header eventtype does as well"), MISSED],
            ),
        ),
        (
            "streamEvents",
            asked_by(
                operation("send", "events", "event", "Server-sent events: data is the event in JSON, id the identity."),
                "GET",
                &[("event_type", "which event type"), MISSED],
            ),
        ),
        (
            "publishCloudEvent",
            asked_by(operation("receive", "cloudEvents", "cloudEvent", "Takes a CloudEvent, structured or binary."), "POST", &[]),
        ),
        (
            "streamCloudEvents",
            asked_by(
                operation("send", "cloudEvents", "cloudEvent", "Server-sent events: data is a CloudEvent in JSON, id the identity."),
                "GET",
                &[("type", "which event type"), MISSED],
            ),
        ),
        ("push", asked_by(push, "POST", &[])),
    ];
    let owned = |(name, value): (&str, Value)| (name.to_owned(), value);
    (channels.into_iter().map(owned).collect(), operations.into_iter().map(owned).collect())
}

/// A topic's channel on the ZMTP port, with what it promises.
fn over_zmtp(number: usize, topic: &Promised, channels: &mut Map<String, Value>, operations: &mut Map<String, Value>) {
    let Promised { event_type, period_us, deadline_us, loss_tolerance, retention } = topic;
    let name = format!("topic{number}");
    let mut of_topic = channel(event_type.as_str().into(), event_type, Some(ZMTP_SERVER), "frames");
    of_topic["description"] = promise(topic).into();
    of_topic["x-bodkin-topic"] =
        json!({"periodUs": period_us, "deadlineUs": deadline_us, "lossTolerance": loss_tolerance, "retention": retention});
    channels.insert(name.clone(), of_topic);
    let published = format!("Takes an event of {event_type} from PUB, PUSH, REQ or DEALER.");
    operations.insert(format!("receive{number}"), operation("receive", &name, "frames", &published));
    let heard = format!("Sends events of {event_type} to SUB, XSUB and DEALER that subscribe to it.");
    operations.insert(format!("send{number}"), operation("send", &name, "frames", &heard));
}

fn promise(topic: &Promised) -> String {
    let Promised { period_us, deadline_us, loss_tolerance, retention, .. } = topic;
    let deadline = deadline_us.map_or("no deadline".to_owned(), |deadline_us| format!("arrives within {deadline_us} us of its creation"));
    let losses = match loss_tolerance {
        None => "any number of events may be missed".to_owned(),
        Some(0) => "no event may be missed".to_owned(),
        Some(events) => format!("at most {events} events in a row may be missed"),
    };
    format!(
        "A publisher's events are {period_us} us apart at the least; each: {deadline}; {losses}; a publisher keeps its newest {retention}."
    )
}

fn messages() -> Value {
    let of = |title: &str, content_type: &str, payload: Value| json!({"title": title, "contentType": content_type, "payload": payload});
    json!({
        "publication": of("An event to be published", "application/json", form::schema("EventPublishRequest")),
        "event": of("An event", "application/json", form::schema("Event")),
        "cloudEvent": of(
            "A CloudEvent",
            "application/cloudevents+json",
            json!({
                "type": "object",
                "required": ["specversion", "id", "source", "type"],
                "properties": {
                    "specversion": {"type": "string", "enum": ["1.0"]},
                    "id": {"type": "string", "minLength": 1},
                    "source": {"type": "string", "minLength": 1, "description": "in: //HOST:PORT/NAME of the registered system that publishes"},
                    "type": {"type": "string", "minLength": 1, "description": "the event type"},
                    "time": {"type": "string", "format": "date-time"},
                    "datacontenttype": {"type": "string"},
                    "data": {},
                    "data_base64": {"type": "string", "contentEncoding": "base64"},
                },
            }),
        ),
        "payload": of("An event's payload", "text/plain", json!({"type": "string"})),
        "frames": of(
            "Frames of ZMTP: event type, payload, header (docs/formats/event-header.md); two frames do where no header is needed",
            "application/octet-stream",
            json!({"type": "string", "description": "the payload, UTF-8"}),
        ),
    })
}

/// The forms of the messages, and those that they are made of.
fn schemas() -> Map<String, Value> {
    let mut all = form::schemas();
    let mut used = Map::new();
    let mut open: Vec<String> = ["EventPublishRequest", "Event"].map(str::to_owned).into();
    while let Some(name) = open.pop() {
        if let Some(schema) = all.remove(&name) {
            let text = schema.to_string();
            open.extend(text.split(form::PLACE).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
            used.insert(name, schema);
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(is_secure: bool) -> Value {
        document_of(2, is_secure)
    }

    /// Of a node that listens at the first of these places.
    fn document_of(places: usize, is_secure: bool) -> Value {
        let place = |name, host: &str, protocol| Place { name, host: host.to_owned(), protocol };
        let both = [place(HTTP_SERVER, "h:8455", "http"), place(ZMTP_SERVER, "h:5570", "zmtp")];
        let promised = |name: &str, deadline_us, loss_tolerance| Promised {
            event_type: name.to_owned(),
            period_us: 10_000,
            deadline_us,
            loss_tolerance,
            retention: 4,
        };
        async_api(&both[..places], is_secure, &[promised("HOT", Some(50_000), Some(0)), promised("A/B {C}", None, None)])
    }

    /// What AsyncAPI 3.0.0 asks for: the fields that must be there, the words that they may have, and that references lead where they have to.
    #[track_caller]
    fn check(document: &Value) {
        assert_eq!(document["asyncapi"], "3.0.0");
        assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
        let known = ["asyncapi", "id", "info", "servers", "defaultContentType", "channels", "operations", "components"];
        assert!(document.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())));
        let refers = |reference: &Value, place: &str| {
            let text = reference["$ref"].as_str().unwrap_or_else(|| panic!("{reference} is no reference"));
            assert!(text.starts_with(place), "{text} does not lead into {place}");
            document.pointer(&text[1..]).unwrap_or_else(|| panic!("{text} leads nowhere")).clone()
        };
        for server in document["servers"].as_object().unwrap().values() {
            assert!(server["host"].is_string() && server["protocol"].is_string());
            let security = server["security"].as_array().cloned().unwrap_or_default();
            assert!(security.iter().all(|scheme| refers(scheme, "#/components/securitySchemes/")["type"].is_string()));
        }
        for (name, channel) in document["channels"].as_object().unwrap() {
            let address = &channel["address"];
            assert!(
                address.is_null() || address.as_str().is_some_and(|address| !address.contains('?')),
                "{name}: queries stand in bindings"
            );
            let messages = channel["messages"].as_object().unwrap();
            assert!(messages.values().all(|message| refers(message, "#/components/messages/")["payload"].is_object()));
            let servers = channel["servers"].as_array().cloned().unwrap_or_default();
            assert!(servers.iter().all(|server| refers(server, "#/servers/").is_object()));
        }
        for (name, operation) in document["operations"].as_object().unwrap() {
            assert!(["send", "receive"].contains(&operation["action"].as_str().unwrap()), "{name}");
            refers(&operation["channel"], "#/channels/");
            let of_channel = format!("{}/messages/", operation["channel"]["$ref"].as_str().unwrap());
            let messages = operation["messages"].as_array().unwrap();
            assert!(!messages.is_empty() && messages.iter().all(|message| refers(message, &of_channel).is_object()), "{name}");
        }
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference} leads nowhere");
        }
    }

    #[test]
    fn it_is_as_the_specification_asks_for() {
        check(&document(false));
        check(&document(true));
    }

    #[test]
    fn a_push_is_an_event_or_a_cloud_event() {
        let document = document(false);
        let messages: Vec<&str> =
            document["operations"]["push"]["messages"].as_array().unwrap().iter().filter_map(|message| message["$ref"].as_str()).collect();
        assert_eq!(messages, ["#/channels/pushes/messages/event", "#/channels/pushes/messages/cloudEvent"]);
    }

    #[test]
    fn a_topic_is_a_channel_with_its_promise() {
        let document = document(false);
        let topic = &document["channels"]["topic1"];
        assert_eq!((&topic["address"], &topic["x-bodkin-topic"]["deadlineUs"]), (&"HOT".into(), &50_000.into()));
        assert!(topic["description"].as_str().unwrap().contains("no event may be missed"));
        assert_eq!(document["channels"]["topic2"]["address"], "A/B {C}");
        assert_eq!(document["operations"]["send2"]["channel"]["$ref"], "#/channels/topic2");
        let without = document_of(1, false);
        check(&without);
        assert_eq!(without["channels"].as_object().unwrap().len(), 5);
    }
}
