//! Tunnels between two clouds with roots of their own: consumer and provider meet through both gateways, each with a certificate of its own cloud.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use bodkin_arrowhead::common_name::SystemCommonName;
use bodkin_trust::{TokenVerifier, TrustDirectory, base64, tls};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::cloud::Cloud;
use crate::support::heat::{BODY, Heat, LAST};
use crate::support::patience::eventually;
use crate::support::secure::Client;
use crate::support::side::Side;

/// Two clouds, of which the first is reached by tunnels only, and a provider there that the second one may use.
fn stage(place: &TempDir, idle_ms: &str) -> (Side, Side, Heat) {
    // A call that is lost is made again soon.
    let (place, waits) = (place.path(), ["--gateway-idle-timeout-ms", idle_ms, "--neighbor-timeout-ms", "5000"]);
    let own = [&["--relay-listen", "127.0.0.1:0", "--gateway-is-mandatory", "true"][..], &waits].concat();
    let (one, two) = (Side::start(place, "one", &own), Side::start(place, "two", &waits));
    let relay = one.cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is").to_owned();
    one.done(&format!("relay add {relay} --own"));
    one.introduce_to(&two);
    two.introduce_to(&one);
    // A call is lost that is made before the other one listens.
    let is_there = |from: &Side, to: &str| eventually(|| from.run(&format!("cloud ping {to}")).status.success());
    assert!(is_there(&two, "one") && is_there(&one, "two"), "{}", said(&one, &two));
    let provider = Heat::start(&one, Ipv4Addr::LOCALHOST.into(), &[]);
    provider.offer(&one, "two");
    (one, two, provider)
}

fn client(side: &Side, system: &str) -> Client {
    let anchor = TrustDirectory::new(side.data.join("trust")).anchor().expect("an authority");
    Client::believing(&side.system(system), anchor)
}

/// What an orchestration of the second cloud's operator for the service comes to.
fn orchestrated(two: &Side) -> Value {
    let form = json!({
        "requesterSystem": {"systemName": "sysop", "address": "127.0.0.1", "port": 8000},
        "requestedService": {"serviceDefinitionRequirement": "heat"},
        "orchestrationFlags": {"overrideStore": true, "enableInterCloud": true, "matchmaking": true},
    });
    client(two, "sysop").expect(&two.cloud, "POST", "/orchestrator/orchestration", Some(&form), 200).json()["response"][0].clone()
}

fn tunnel_of(result: &Value) -> SocketAddr {
    let port = result["provider"]["port"].as_u64().unwrap_or_else(|| panic!("a port in {result}"));
    SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).expect("a port")))
}

/// What both clouds tell of their last session.
fn told(side: &Side) -> Value {
    let sessions = side.done("cloud sessions");
    sessions["data"].as_array().and_then(|rows| rows.last()).cloned().unwrap_or_default()
}

fn said(one: &Side, two: &Side) -> String {
    let said = |cloud: &Cloud| cloud.stderr();
    format!("one said: {}\ntwo said: {}", said(&one.cloud), said(&two.cloud))
}

#[test]
fn a_service_of_a_cloud_behind_a_gateway_is_used_by_certificates_at_both_ends() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two, provider) = stage(&place, "120000");
    let result = orchestrated(&two);
    assert_eq!((&result["provider"]["systemName"], &result["serviceUri"]), (&json!("gateway"), &json!("/heat")), "{result}");
    let warnings = result["warnings"].as_array().expect("warnings");
    assert!(["FROM_OTHER_CLOUD", "VIA_GATEWAY"].iter().all(|warning| warnings.contains(&json!(warning))), "{result}");
    // What the provider sees is its own cloud's Gateway, and so the token names that.
    let token = result["authorizationTokens"].as_object().and_then(|tokens| tokens.values().next()?.as_str()).expect("a token");
    let authorization = base64::encode(&one.system("authorization").key().public_key_info());
    let verifier = TokenVerifier::new(provider.identity.key(), &authorization).expect("keys");
    let caller = |name: &str| SystemCommonName::parse(&format!("{name}.test.arrowhead.eu")).expect("a name");
    assert!(verifier.verify(token, &caller("gateway.one"), tls::now()).is_ok());
    assert!(verifier.verify(token, &caller("sysop.two"), tls::now()).is_err());

    let tunnel = tunnel_of(&result);
    let consumer = client(&two, "sysop");
    // Requests one after the other on one connection, and on another one.
    for _ in 0..2 {
        let mut connection = consumer.connect(tunnel).unwrap_or_else(|error| panic!("{error}: {}", said(&one, &two)));
        for _ in 0..2 {
            let answer = connection.request("GET", &format!("/heat?token={token}"), &[], None);
            let answer = answer.unwrap_or_else(|error| panic!("{error}: {}", said(&one, &two)));
            assert_eq!((answer.status, answer.text().as_str()), (200, BODY));
        }
    }
    assert_eq!(provider.callers(), vec!["gateway.one.test.arrowhead.eu"; 4]);
    // What the provider ends is a connection, and not the session.
    for path in [LAST, "/heat"] {
        let mut connection = consumer.connect(tunnel).unwrap_or_else(|error| panic!("{error}: {}", said(&one, &two)));
        let answer = connection.request("GET", path, &[], None).unwrap_or_else(|error| panic!("{error}: {}", said(&one, &two)));
        assert_eq!((answer.status, answer.text().as_str()), (200, BODY));
        assert!(path != LAST || connection.is_closed_by_server(), "{}", said(&one, &two));
    }
    assert_eq!(provider.connections(), 4, "one for each of the consumer's");
    // Nobody else of the consumer's cloud, and nobody of the provider's.
    for stranger in [client(&two, "other"), client(&one, "sysop")] {
        let asked = stranger.connect(tunnel).and_then(|mut connection| connection.request("GET", "/heat", &[], None));
        assert!(asked.is_err(), "{asked:?}");
    }
    let (at_consumer, at_provider) = (told(&two), told(&one));
    assert_eq!((&at_consumer["side"], &at_provider["side"]), (&json!("consumer"), &json!("provider")));
    for session in [&at_consumer, &at_provider] {
        assert_eq!(
            (&session["state"], &session["service"], &session["numbered"]),
            (&json!("open"), &json!("heat"), &json!(true)),
            "{session}"
        );
    }
    assert_eq!(at_consumer["port"], json!(tunnel.port()));
    // The operator of one of them closes it, and the other side is told.
    let id = at_consumer["queueId"].as_str().expect("an id").trim_end_matches('.').to_owned();
    two.done(&format!("cloud sessions --close {id}"));
    let is_told = || told(&one)["state"] == "closed" && told(&one)["reason"].as_str().is_some_and(|reason| reason.contains("the operator"));
    assert!(eventually(is_told), "{}", told(&one));
    assert!(eventually(|| TcpStream::connect(tunnel).is_err()), "its port is closed");
}

#[test]
fn a_gateway_that_is_killed_in_the_middle_is_told_to_whoever_is_connected() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two, _provider) = stage(&place, "12000");
    let tunnel = tunnel_of(&orchestrated(&two));
    let mut connection = client(&two, "sysop").connect(tunnel).unwrap_or_else(|error| panic!("{error}: {}", said(&one, &two)));
    let answer = connection.request("GET", "/heat", &[], None).unwrap_or_else(|error| panic!("{error}: {}", said(&one, &two)));
    assert_eq!(answer.status, 200);
    // With it goes the relay.
    one.cloud.kill();
    assert!(connection.is_closed_by_server(), "two said: {}", two.cloud.stderr());
    let is_over = || told(&two)["state"] == "closed";
    assert!(eventually(is_over), "{}", told(&two));
    assert!(told(&two)["reason"].as_str().is_some_and(|reason| reason.contains("nothing was heard")), "{}", told(&two));
}
