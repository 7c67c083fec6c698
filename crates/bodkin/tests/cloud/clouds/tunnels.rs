//! Tunnels between two clouds with roots of their own: consumer and provider meet through both gateways, each with a certificate of its own cloud.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use bodkin_arrowhead::{common_name::SystemCommonName, name::SystemName};
use bodkin_trust::{
    Certificate, Identity, TokenVerifier, TrustDirectory, base64,
    tls::{self, ClientCertificate, PeerCheck},
};
use rustls::{ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::cloud::Cloud;
use crate::support::http::find;
use crate::support::patience::eventually;
use crate::support::secure::{Client, DAY};
use crate::support::side::Side;

const BODY: &str = "23.5 degrees";

/// A provider of the first cloud, which serves whoever shows a certificate of that cloud, and notes who that was.
struct Provider {
    address: SocketAddr,
    identity: Identity,
    callers: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    fn start(side: &Side) -> Self {
        let directory = TrustDirectory::new(side.data.join("trust"));
        let name = SystemName::parse("sensor").expect("a name");
        let identity = directory.ensure_identity(&name, &["127.0.0.1".to_owned()], tls::now(), DAY).expect("an identity");
        let anchors = [directory.anchor().expect("an authority")];
        let config = tls::server(&identity, &anchors, ClientCertificate::Required, PeerCheck::default()).expect("a configuration");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, callers) = (listener.local_addr().expect("an address"), Arc::<Mutex<Vec<String>>>::default());
        let noted = callers.clone();
        // Ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, noted) = (config.clone(), noted.clone());
                thread::spawn(move || serve(stream, ServerConnection::new(config).expect("a session"), &noted));
            }
        });
        Self { address, identity, callers }
    }
}

/// Answers every request of a connection.
fn serve(stream: TcpStream, session: ServerConnection, callers: &Mutex<Vec<String>>) {
    let mut stream = StreamOwned::new(session, stream);
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        heard.extend_from_slice(&piece[..count]);
        while let Some(end) = find(&heard, b"\r\n\r\n") {
            heard.drain(..end + 4);
            let shown = stream.conn.peer_certificates().and_then(|chain| chain.first()).expect("it was asked for");
            let caller = Certificate::from_der(shown).expect("a certificate").told_name().to_owned();
            callers.lock().expect("no test panics here").push(caller);
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{BODY}", BODY.len());
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Two clouds, of which the first is reached by tunnels only, and a provider there that the second one may use.
fn stage(place: &TempDir, idle_ms: &str) -> (Side, Side, Provider) {
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
    let provider = Provider::start(&one);
    let key = base64::encode(&provider.identity.key().public_key_info());
    let port = provider.address.port();
    one.done(&format!(
        "service add heat --system sensor --address 127.0.0.1 --port {port} --uri /heat --secure TOKEN --authentication-info {key}"
    ));
    let clouds = one.done("cloud list");
    let id = clouds["data"].as_array().expect("rows").iter().find(|row| row["name"] == "two").expect("it is known")["id"].clone();
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
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
    assert_eq!(*provider.callers.lock().expect("no test panics here"), vec!["gateway.one.test.arrowhead.eu"; 4]);
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
