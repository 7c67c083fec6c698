//! Tunnels between a cloud of ours and one whose gateway is not written in Rust: it says and hears by JMS through ActiveMQ, or Artemis, what jose4j seals, as the gateways
//! of Arrowhead's Java clouds do.

use std::net::{Ipv4Addr, SocketAddr};

use bodkin_trust::{TrustDirectory, base64};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gatekeeper::{ANSWER_MS, JAVA_GATEWAY, Neighbours};
use crate::jms;
use crate::support::heat::{BODY, Heat, LAST};
use crate::support::patience::eventually;
use crate::support::secure::Client;
use crate::support::skip;

/// Requests of a consumer of the Java cloud: gateways give a connection to a provider 50 of them.
const REQUESTS: usize = 60;

#[test]
#[ignore = "peer: ./x test --all"]
fn a_java_gateway_and_ours_carry_each_others_tunnels() {
    carry_each_others_tunnels("a_java_gateway_and_ours_carry_each_others_tunnels", "activemq");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_java_gateway_and_ours_carry_each_others_tunnels_at_artemis() {
    carry_each_others_tunnels("a_java_gateway_and_ours_carry_each_others_tunnels_at_artemis", "artemis");
}

fn carry_each_others_tunnels(test: &str, project: &str) {
    let place = TempDir::new().expect("a temporary directory");
    let class_path = match jms::build(project, place.path()) {
        Ok(class_path) => class_path,
        Err(reason) => return skip::note(test, &reason),
    };
    let mut both = Neighbours::start(&class_path, &place, ["--gateway-is-mandatory", "true"]);
    both.serve();
    assert_eq!(both.java.ask(&format!("gateway {JAVA_GATEWAY}")), "there");
    our_consumer_reaches_their_provider(&mut both);
    their_consumer_reaches_our_provider(&mut both);
}

fn own_gateway(both: &Neighbours) -> String {
    base64::encode(&both.ours.system("gateway").key().public_key_info())
}

/// The broker, as both clouds name it to each other.
pub fn relay(both: &Neighbours) -> Value {
    let (port, key) = &both.broker;
    json!({"address": "127.0.0.1", "port": port, "secure": true, "exclusive": false, "type": "GENERAL_RELAY", "authenticationInfo": key})
}

/// What comes for the Java gateway until it has all of this text.
#[track_caller]
fn heard(both: &Neighbours, awaited: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(awaited) {
        let line = both.java.line();
        let data = line.strip_prefix("data ").unwrap_or_else(|| panic!("{line} behind {text:?}"));
        text += &String::from_utf8(base64::decode(data).expect("Base64")).expect("text");
    }
    text
}

fn say(both: &mut Neighbours, text: &str) {
    both.java.tell(&format!("say {}", base64::encode(text.as_bytes())));
}

/// What our cloud tells of its last session.
fn told(both: &Neighbours) -> Value {
    both.ours.done("cloud sessions")["data"].as_array().and_then(|rows| rows.last()).cloned().unwrap_or_default()
}

#[track_caller]
fn is_over(both: &Neighbours) {
    assert!(eventually(|| told(both)["state"] == "closed"), "{}\n{}", told(both), both.ours.cloud.stderr());
}

fn our_consumer_reaches_their_provider(both: &mut Neighbours) {
    let opened = both.java.ask(&format!("open {JAVA_GATEWAY} {}", own_gateway(both)));
    let id = opened.strip_prefix("opened ").unwrap_or_else(|| panic!("{opened}"));
    let cloud = json!({"operator": "aitia", "name": "testcloud1", "secure": true, "neighbor": false, "authenticationInfo": "key"});
    both.answers(
        "gsd_poll",
        &json!({
            "providerCloud": cloud, "requiredServiceDefinition": "heat", "availableInterfaces": ["HTTP-SECURE-JSON"], "numOfProviders": 1,
            "qosMeasurements": null, "serviceMetadata": null, "gatewayIsMandatory": true, "verifiedRelays": [],
        }),
    );
    let result = json!({
        "provider": {"systemName": "stove", "address": "192.0.2.7", "port": 9000, "authenticationInfo": "key"},
        "service": {"id": 1, "serviceDefinition": "heat"}, "serviceUri": "/heat", "secure": "CERTIFICATE", "metadata": {},
        "interfaces": [{"id": 1, "interfaceName": "HTTP-SECURE-JSON"}], "version": 1, "authorizationTokens": {}, "warnings": [],
    });
    let connection = json!({"queueId": id, "peerName": JAVA_GATEWAY, "providerGWPublicKey": both.java_gateway});
    both.answers("icn_proposal", &json!({"response": [result], "useGateway": true, "relay": relay(both), "connectionInfo": connection}));
    let form = json!({
        "requesterSystem": {"systemName": "sysop", "address": "127.0.0.1", "port": 8000},
        "requestedService": {"serviceDefinitionRequirement": "heat"},
        "orchestrationFlags": {"overrideStore": true, "triggerInterCloud": true},
    });
    let granted = both.call("sysop", "POST", "/orchestrator/orchestration", &form, 200);
    both.asked("gsd_poll");
    let proposed = both.asked("icn_proposal");
    assert_eq!((&proposed["gatewayIsPresent"], &proposed["consumerGatewayPublicKey"]), (&json!(true), &json!(own_gateway(both))));
    assert!(proposed["knownGatewayRelays"].as_array().is_some_and(|relays| relays.len() == 1), "{proposed}");
    let result = &granted["response"][0];
    assert_eq!(result["provider"]["systemName"], "gateway", "{granted}");
    let port = u16::try_from(result["provider"]["port"].as_u64().expect("a port")).expect("a port");

    // A request comes whole, though it goes in two parts, and the answer in two is one to the consumer.
    let anchor = TrustDirectory::new(both.ours.data.join("trust")).anchor().expect("an authority");
    let consumer = Client::believing(&both.ours.system("sysop"), anchor);
    let mut connection = consumer.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).expect("a connection");
    connection.send(b"POST /heat HTTP/1.1\r\nHost: stove\r\nContent-Length: 5\r\n\r\n12").expect("it goes");
    connection.send(b"345").expect("it goes");
    let line = both.java.line();
    let request = line.strip_prefix("data ").and_then(base64::decode).unwrap_or_else(|| panic!("{line}"));
    assert_eq!(String::from_utf8_lossy(&request), "POST /heat HTTP/1.1\r\nHost: stove\r\nContent-Length: 5\r\n\r\n12345");
    say(both, &format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BODY.len()));
    say(both, BODY);
    let answer = connection.read_answer().expect("an answer");
    assert_eq!((answer.status, answer.text().as_str()), (200, BODY));
    let session = told(both);
    assert_eq!(
        (&session["state"], &session["numbered"], &session["side"]),
        (&json!("open"), &json!(false), &json!("consumer")),
        "{session}"
    );
    both.java.tell("close");
    assert!(connection.is_closed_by_server());
    is_over(both);
}

fn their_consumer_reaches_our_provider(both: &mut Neighbours) {
    let provider = Heat::start(&both.ours, Ipv4Addr::LOCALHOST.into(), &[]);
    provider.offer(&both.ours, "testcloud1");
    let proposal = json!({
        "requestedService": {"serviceDefinitionRequirement": "heat"},
        "requesterCloud": {"operator": "aitia", "name": "testcloud1", "authenticationInfo": "key"},
        "requesterSystem": {"systemName": "display", "address": "10.0.0.1", "port": 8000},
        "preferredSystems": [], "preferredGatewayRelays": [], "knownGatewayRelays": [relay(both)],
        "negotiationFlags": {"matchmaking": true}, "gatewayIsPresent": true, "consumerGatewayPublicKey": both.java_gateway,
    });
    let granted = both.told(ANSWER_MS, "icn_proposal", &proposal).expect("an answer");
    assert_eq!((&granted["useGateway"], &granted["response"][0]["provider"]["systemName"]), (&json!(true), &json!("sensor")), "{granted}");
    assert_eq!(granted["relay"]["port"], json!(both.broker.0), "{granted}");
    let said = |member: &str| granted["connectionInfo"][member].as_str().unwrap_or_else(|| panic!("no {member} in {granted}")).to_owned();
    let [id, name, key] = ["queueId", "peerName", "providerGWPublicKey"].map(said);
    assert_eq!((name.as_str(), &key), ("gateway.one.test.arrowhead.eu", &own_gateway(both)));
    assert_eq!(both.java.ask(&format!("enter {name} {id} {key}")), "entered");
    // More requests than one connection to a provider is given, one after the other.
    let ask = |both: &mut Neighbours, path: &str| {
        say(both, &format!("GET {path} HTTP/1.1\r\nHost: sensor\r\n\r\n"));
        assert!(heard(both, BODY).starts_with("HTTP/1.1 200 OK\r\n"));
    };
    for _ in 0..REQUESTS {
        ask(both, "/heat");
    }
    assert_eq!((provider.callers(), provider.connections()), (vec!["gateway.one.test.arrowhead.eu".to_owned(); REQUESTS], 2));
    // The provider ends its connection: the session goes on by the next one. (What it tells of connections is the one way that a session without numbers has.)
    ask(both, LAST);
    ask(both, "/heat");
    assert_eq!((provider.callers().len(), provider.connections()), (REQUESTS + 2, 3));
    let session = told(both);
    assert_eq!(
        (&session["state"], &session["numbered"], &session["side"]),
        (&json!("open"), &json!(false), &json!("provider")),
        "{session}"
    );
    both.java.tell("close");
    is_over(both);
}
