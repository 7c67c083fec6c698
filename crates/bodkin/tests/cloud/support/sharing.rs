//! A sensor whose events one cloud shares with another, and a display that hears them there.

use bodkin_trust::{TrustDirectory, base64};
use serde_json::{Value, json};

use super::cloud::System;
use super::secure::Client;
use super::side::Side;
use super::sse::EventStream;

/// Where the sensor and the display are said to be: nobody connects to them.
const PORT: u16 = 9000;

/// A system of a cloud, as a client.
pub fn client(side: &Side, name: &str) -> Client {
    Client::believing(&side.system(name), TrustDirectory::new(side.data.join("trust")).anchor().expect("an authority"))
}

/// A sensor whose service, and with it whose events, the other cloud may have; gives its id of the other cloud.
pub fn share(from: &Side, to: &str, deadline_ms: u32) -> Value {
    let key = base64::encode(&from.system("sensor").key().public_key_info());
    from.done(&format!(
        "service add heat --system sensor --address 127.0.0.1 --port {PORT} --uri /heat --secure CERTIFICATE --authentication-info {key}"
    ));
    let clouds = from.done("cloud list");
    let id = clouds["data"].as_array().expect("rows").iter().find(|row| row["name"] == to).expect("it is known")["id"].clone();
    from.done(&format!("cloud share-event heat {to} --deadline-ms {deadline_ms}"));
    id
}

/// Publishes an event of the sensor's.
pub fn publish(side: &Side, payload: &str) {
    let source = json!({"systemName": "sensor", "address": "127.0.0.1", "port": PORT});
    let event = json!({"eventType": "heat", "source": source, "payload": payload, "metaData": {"room": "7"}});
    client(side, "sensor").expect(&side.cloud, "POST", "/eventhandler/publish", Some(&event), 200);
}

/// A display that may hear what comes from other clouds.
pub fn listen(side: &Side) -> EventStream {
    side.done("system add display --address 127.0.0.1 --port 9001");
    side.done("auth add --consumer display --provider gatekeeper --service inter-cloud-events");
    hear(side)
}

/// The display's stream.
pub fn hear(side: &Side) -> EventStream {
    hear_as(side, "display", "")
}

/// The stream of a system, with this filter behind the event type.
pub fn hear_as(side: &Side, name: &str, filter: &str) -> EventStream {
    let connection = client(side, name).connect(side.cloud.address(System::EventHandler)).expect("a connection");
    EventStream::open_on(connection, &format!("/eventhandler/events?event_type=heat{filter}"), &[])
}

/// The first events of a stream, which have to come.
pub fn payloads(stream: &EventStream, count: usize) -> Vec<Value> {
    stream.wait_for(count).iter().map(|event| serde_json::from_str(&event.data).expect("Event JSON")).collect()
}

/// The row of what has come.
pub fn account_of(side: &Side) -> Value {
    side.done("cloud heard-events")["data"][0].clone()
}

/// The row of what is shared.
pub fn shared(side: &Side) -> Value {
    side.done("cloud shared-events")["data"][0].clone()
}
