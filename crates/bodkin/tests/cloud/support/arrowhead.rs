//! The calls an Arrowhead client makes, in the interface's own words; each panics when it is not answered as it should.

use serde_json::{Value, json};

use super::cloud::Cloud;

/// `HTTP-INSECURE-JSON`, there from the start with this id.
pub const INSECURE_JSON_ID: i64 = 2;

/// A SystemRequest on 127.0.0.1.
pub fn system(name: &str, port: u16) -> Value {
    json!({"systemName": name, "address": "127.0.0.1", "port": port})
}

/// The smallest ServiceRegistryRequest.
pub fn service(definition: &str, provider: Value) -> Value {
    json!({"serviceDefinition": definition, "providerSystem": provider, "interfaces": ["HTTP-INSECURE-JSON"]})
}

/// `value` with the member at the JSON pointer replaced or added.
pub fn with(mut value: Value, pointer: &str, member: impl Into<Value>) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer has a slash");
    value.pointer_mut(parent).expect("the parent is there")[name] = member.into();
    value
}

/// `value` without the member at the JSON pointer.
pub fn without(mut value: Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer has a slash");
    let parent = value.pointer_mut(parent).and_then(Value::as_object_mut).expect("the parent is an object");
    parent.remove(name).expect("the member is there");
    value
}

/// The number at the JSON pointer.
#[track_caller]
pub fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or_else(|| panic!("no number at {pointer} of {value}"))
}

/// The elements of the list at the JSON pointer.
#[track_caller]
pub fn list<'a>(value: &'a Value, pointer: &str) -> &'a Vec<Value> {
    value.pointer(pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("no list at {pointer} of {value}"))
}

/// The texts at `pointer` of each element.
pub fn texts(elements: &[Value], pointer: &str) -> Vec<String> {
    let text = |element: &Value| element.pointer(pointer).and_then(Value::as_str).map(String::from);
    elements.iter().map(|element| text(element).unwrap_or_else(|| panic!("no text at {pointer} of {element}"))).collect()
}

impl Cloud {
    /// Registers a system on 127.0.0.1 and gives its id.
    #[track_caller]
    pub fn register_system(&self, name: &str, port: u16) -> i64 {
        let answer = self.post("/serviceregistry/register-system", &system(name, port)).expect_status(201);
        number(&answer.json(), "/id")
    }

    /// Registers a service and gives the ServiceRegistryResponse.
    #[track_caller]
    pub fn register(&self, request: &Value) -> Value {
        self.post("/serviceregistry/register", request).expect_status(201).json()
    }

    /// The answer of a query.
    #[track_caller]
    pub fn query(&self, form: &Value) -> Value {
        self.post("/serviceregistry/query", form).expect_status(200).json()
    }

    /// Adds one intra-cloud rule and gives its id.
    #[track_caller]
    pub fn allow(&self, consumer_id: i64, provider_id: i64, definition_id: i64, interface_ids: &[i64]) -> i64 {
        let rule = json!({"consumerId": consumer_id, "providerIds": [provider_id],
            "serviceDefinitionIds": [definition_id], "interfaceIds": interface_ids});
        let answer = self.post("/authorization/mgmt/intracloud", &rule).expect_status(201).json();
        assert_eq!(answer["count"], 1, "{answer}");
        number(&answer, "/data/0/id")
    }

    /// Registers a publisher and a service of it, so that rules can name it; gives system and definition id.
    #[track_caller]
    pub fn register_publisher(&self, name: &str, port: u16) -> (i64, i64) {
        let entry = self.register(&service(&format!("{name}-service"), system(name, port)));
        (number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"))
    }

    /// Subscribes by push.
    #[track_caller]
    pub fn subscribe(&self, subscription: &Value) {
        self.post("/eventhandler/subscribe", subscription).expect_status(200);
    }

    /// Publishes.
    #[track_caller]
    pub fn publish(&self, event: &Value) {
        self.post("/eventhandler/publish", event).expect_status(200);
    }
}

/// A SubscriptionRequest without filters.
pub fn subscription(event_type: &str, subscriber: Value, notify_uri: &str) -> Value {
    json!({"eventType": event_type, "subscriberSystem": subscriber, "notifyUri": notify_uri})
}

/// An EventPublishRequest without metadata, stamped on arrival.
pub fn event(event_type: &str, source: Value, payload: &str) -> Value {
    json!({"eventType": event_type, "source": source, "payload": payload})
}
