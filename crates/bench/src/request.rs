//! Whole requests as bytes, and the JSON forms in them and in the answers, as far as the bench needs them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::endpoint::Endpoint;

/// A request with a JSON body.
pub fn post(endpoint: &Endpoint, path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let authority = &endpoint.authority;
    format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A question without a body.
pub fn get(endpoint: &Endpoint, path_and_query: &str, accept: &str) -> Vec<u8> {
    without_body("GET", endpoint, path_and_query, accept)
}

/// A removal; names and paths in the query need no escape.
pub fn delete(endpoint: &Endpoint, path_and_query: &str) -> Vec<u8> {
    without_body("DELETE", endpoint, path_and_query, "application/json")
}

/// A command that says all in its path.
pub fn post_empty(endpoint: &Endpoint, path_and_query: &str) -> Vec<u8> {
    let authority = &endpoint.authority;
    format!("POST {path_and_query} HTTP/1.1\r\nHost: {authority}\r\nAccept: application/json\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

fn without_body(method: &str, endpoint: &Endpoint, path_and_query: &str, accept: &str) -> Vec<u8> {
    format!("{method} {path_and_query} HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\n\r\n", endpoint.authority).into_bytes()
}

/// Tells the names of one run of the bench from those of every other: the start time in base 36.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTag(String);

impl RunTag {
    /// The tag of a time in ms; names made under tags of different times never meet.
    pub fn of_ms(mut time_ms: u128) -> Self {
        let mut digits = Vec::new();
        while time_ms > 0 || digits.is_empty() {
            digits.push(char::from_digit((time_ms % 36) as u32, 36).expect("below the radix"));
            time_ms /= 36;
        }
        Self(digits.iter().rev().collect())
    }

    /// The tag of this moment.
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self::of_ms(since.map_or(0, |since| since.as_millis()))
    }

    /// Name of the service that every publisher offers, so that rules can name them.
    pub fn event_service(&self) -> String {
        format!("bench-events-{}", self.0)
    }

    /// Name of the `n`th subscriber.
    pub fn subscriber(&self, n: usize) -> String {
        format!("bench-subscriber-{}-{n}", self.0)
    }

    /// Name of the `n`th publisher, as long as that of any other below 10,000.
    pub fn publisher(&self, n: u16) -> String {
        format!("bench-publisher-{}-{n:04}", self.0)
    }

    /// Name of the `n`th event type, as long as that of any other below 10,000.
    pub fn event_type(&self, n: u16) -> String {
        format!("BENCH-{}-{n:04}", self.0.to_ascii_uppercase())
    }
}

/// A system as requests give it.
pub fn system(name: &str, address: &str, port: u16) -> Value {
    json!({ "systemName": name, "address": address, "port": port })
}

/// Query for one service.
pub fn query(service_definition: &str) -> Value {
    json!({ "serviceDefinitionRequirement": service_definition })
}

/// Rule that lets the consumer use one service.
pub fn rule(consumer_id: i64, service: &Registered) -> Value {
    json!({
        "consumerId": consumer_id,
        "providerIds": [service.provider_id],
        "serviceDefinitionIds": [service.definition_id],
        "interfaceIds": [service.interface_id],
    })
}

/// Entry of the orchestration store: the consumer's first choice for this service.
pub fn store_entry(consumer_id: i64, service_definition: &str, interface: &str, provider: &Value) -> Value {
    json!({
        "serviceDefinitionName": service_definition,
        "consumerSystemId": consumer_id,
        "providerSystem": provider,
        "serviceInterfaceName": interface,
        "priority": 1,
    })
}

/// Orchestration of one service from the store, which wants exactly one interface named.
pub fn store_orchestration(requester: &Value, service_definition: &str, interface: &str) -> Value {
    json!({
        "requesterSystem": requester,
        "requestedService": { "serviceDefinitionRequirement": service_definition, "interfaceRequirements": [interface] },
        "orchestrationFlags": { "overrideStore": false },
    })
}

/// Token for the consumer at one provider.
pub fn token(consumer: &Value, service_definition: &str, interface: &str, provider: &Value) -> Value {
    json!({
        "consumer": consumer,
        "consumerCloud": null,
        "providers": [{ "provider": provider, "serviceInterfaces": [interface], "tokenDuration": 600 }],
        "service": service_definition,
    })
}

/// Subscription of a system to all events of a type.
pub fn subscription(event_type: &str, subscriber: &Value) -> Value {
    json!({ "eventType": event_type, "subscriberSystem": subscriber, "notifyUri": "/bench", "matchMetaData": false })
}

/// Dynamic orchestration of one service.
pub fn orchestration(requester: &Value, service_definition: &str) -> Value {
    json!({
        "requesterSystem": requester,
        "requestedService": query(service_definition),
        "orchestrationFlags": { "overrideStore": true },
    })
}

/// Ids that the Service Registry gave to a registered service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Entry")]
pub struct Registered {
    /// Id of the provider's system.
    pub provider_id: i64,
    /// Id of the service definition.
    pub definition_id: i64,
    /// Id of the first interface.
    pub interface_id: i64,
}

impl Registered {
    /// The ids in the answer to a registration; `None` when it is no such answer.
    pub fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// The ids of the first service in the answer to a query; `None` when there is none.
    pub fn read_query(body: &[u8]) -> Option<Self> {
        let answer: QueryAnswer = serde_json::from_slice(body).ok()?;
        answer.service_query_data.first().copied()
    }
}

impl TryFrom<Entry> for Registered {
    type Error = &'static str;

    fn try_from(entry: Entry) -> Result<Self, Self::Error> {
        Ok(Self {
            provider_id: entry.provider.id,
            definition_id: entry.service_definition.id,
            interface_id: entry.interfaces.first().ok_or("a service without interfaces")?.id,
        })
    }
}

/// The id of any row in an answer.
#[derive(Debug, Deserialize)]
pub struct Identified {
    /// The id.
    pub id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueryAnswer {
    service_query_data: Vec<Registered>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    service_definition: Identified,
    provider: Identified,
    interfaces: Vec<Identified>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Caller;

    #[test]
    fn a_request_says_the_length_of_its_body() {
        let endpoint = Endpoint { authority: "h:1".into(), address: ([127, 0, 0, 1], 1).into(), caller: Caller::Nobody };
        let bytes = post(&endpoint, "/serviceregistry/query", &query("a"));
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /serviceregistry/query HTTP/1.1\r\nHost: h:1\r\n"));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    }

    #[test]
    fn names_of_a_run_obey_the_name_rule() {
        let tag = RunTag::of_ms(u128::from(u64::MAX));
        for name in [tag.event_service(), tag.subscriber(7), tag.publisher(3), tag.event_type(3)] {
            assert!(name.len() <= 63 && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'), "{name}");
        }
        assert_ne!(RunTag::of_ms(1), RunTag::of_ms(2));
        assert_eq!(RunTag::of_ms(0).subscriber(1), "bench-subscriber-0-1");
    }

    #[test]
    fn the_ids_are_found_in_an_answer() {
        let body = br#"{"id":9,"serviceDefinition":{"id":2,"x":1},"provider":{"id":3},"interfaces":[{"id":4},{"id":5}]}"#;
        assert_eq!(Registered::read(body), Some(Registered { provider_id: 3, definition_id: 2, interface_id: 4 }));
        assert_eq!(Registered::read(br#"{"errorMessage":"no"}"#), None);
        let found = format!(r#"{{"serviceQueryData":[{}]}}"#, std::str::from_utf8(body).unwrap());
        assert_eq!(Registered::read_query(found.as_bytes()), Registered::read(body));
        assert_eq!(Registered::read_query(br#"{"serviceQueryData":[]}"#), None);
    }
}
