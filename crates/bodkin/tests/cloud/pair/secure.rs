//! A reliable pair in secure mode: its nodes know each other by their certificates, and clients go on with theirs at the node that leads next.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{common_name::SystemCommonName, name::SystemName};
use bodkin_client::realtime::{Brokers, ClientSecurity};
use bodkin_trust::{
    Identity, TokenVerifier, TrustDirectory, curve,
    revocation::Revoked,
    tls::{self, LinkTls, PeerCheck},
};
use nix::sys::signal::Signal;
use rustls::{
    ClientConfig, ClientConnection, SignatureScheme, StreamOwned, client::ResolvesClientCert, pki_types::ServerName, sign::CertifiedKey,
};
use serde_json::{Value, json};

use super::clients::{Clients, TOPIC};
use super::duplicates::{hostile_frames, logs, outlives_hostile_bytes, second_primary_is_refused};
use super::nodes::{Node, Pair};
use crate::support::arrowhead::{number, service, system};
use crate::support::cloud::{System, system_of};
use crate::support::patience::eventually;
use crate::support::secure::{CLOUD, Client, DAY, anchor, authority, client_key, issue, other_authority, public_key, replace};

const INTERFACE: &str = "HTTP-SECURE-JSON";

/// A request that has to succeed.
#[track_caller]
fn done(node: &Node, client: &Client, target: &str, body: Option<&Value>, status: u16) -> Value {
    let method = if body.is_some() { "POST" } else { "GET" };
    let answer = node.call_by(client, system_of(target), method, target, body);
    answer.unwrap_or_else(|error| panic!("{target}: {error}; it said: {}", node.said())).expect_status(status).json()
}

/// Binds the systems of both brokers' clients to keys, in the directories of both nodes before these start.
pub fn bind(pair: &Pair, name: &str) -> ClientSecurity {
    let own = Arc::new(curve::generate().expect("a pair"));
    let directories = ["primary", "backup"].map(|node| TrustDirectory::new(pair.trust(node)));
    for directory in &directories {
        directory.bind_curve_key(&SystemName::from_stored(name), Some(own.public()), tls::now()).expect("it is bound");
    }
    // The port's own pair is that of the cloud: both nodes have it.
    let server = directories[0].ensure_server_pair().expect("the cloud's pair").public().clone();
    std::fs::copy(directories[0].server_pair(), directories[1].server_pair()).expect("a file is copied");
    ClientSecurity::Curve { own, server }
}

/// Registers a provider whose service is secured by tokens, and lets the display use it and hear it.
pub fn let_display_use_sensor(node: &Node) {
    let keyed = |name: &str, port| {
        let mut system = system(name, port);
        system["authenticationInfo"] = json!(public_key());
        system
    };
    let mut form = service("temperature", keyed("sensor", 1));
    form["secure"] = json!("TOKEN");
    form["interfaces"] = json!([INTERFACE]);
    let entry = done(node, &Client::system("sensor"), "/serviceregistry/register", Some(&form), 201);
    let display = done(node, &Client::system("display"), "/serviceregistry/register-system", Some(&keyed("display", 2)), 201);
    let rule = json!({"consumerId": number(&display, "/id"), "providerIds": [number(&entry, "/provider/id")],
        "serviceDefinitionIds": [number(&entry, "/serviceDefinition/id")], "interfaceIds": [number(&entry, "/interfaces/0/id")]});
    done(node, &Client::system("sysop"), "/authorization/mgmt/intracloud", Some(&rule), 201);
}

/// A token that a node gives the display for the sensor's service.
fn token(node: &Node) -> String {
    let form = json!({"requesterSystem": system("display", 2), "requestedService": {"serviceDefinitionRequirement": "temperature"},
        "orchestrationFlags": {"overrideStore": true}});
    let found = done(node, &Client::system("display"), "/orchestrator/orchestration", Some(&form), 200);
    found["response"][0]["authorizationTokens"][INTERFACE].as_str().unwrap_or_else(|| panic!("no token in {found}")).to_owned()
}

#[test]
fn clients_with_certificates_tokens_and_curve_keys_go_on_at_the_backup() {
    let pair = Pair::secure(TOPIC);
    let (sensor, display) = (bind(&pair, "sensor"), bind(&pair, "display"));
    let (pair, _witness, mut backup, primary) = pair.begin();
    let_display_use_sensor(&primary);
    let key = done(&primary, &Client::system("sensor"), "/authorization/publickey", None, 200);
    // As the provider has it from the Primary.
    let verifier = TokenVerifier::new(&client_key(), key.as_str().expect("a key")).expect("a key");
    let verifier = verifier.for_service("temperature").over_interface(INTERFACE);
    let consumer = SystemCommonName::parse(&format!("display.{CLOUD}")).expect("a name");
    let (first, second) = pair.zmtp_addresses();
    let brokers = |name, security| Brokers { security, ..Brokers::pair(name, first, second) };
    let mut clients = Clients::by(brokers("sensor", sensor), brokers("display", display));
    clients.come_through(100);
    primary.signal(Signal::SIGKILL);
    clients.come_through(200);
    backup.served();
    drop(primary);
    for token in [token(&backup), token(&backup)] {
        verifier.verify(&token, &consumer, tls::now()).expect("it is the same Authorization's");
    }
    // The node that comes back follows in secure mode, and leads in its turn.
    let mut primary = pair.primary();
    backup.protected(true);
    backup.signal(Signal::SIGKILL);
    clients.come_through(100);
    primary.served();
    verifier.verify(&token(&primary), &consumer, tls::now()).expect("it is the same Authorization's");
}

/// Speaks TLS to a node's port for the others as somebody.
fn say(node: &Node, identity: &Identity, bytes: &[u8]) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    say_by(node, LinkTls::new(identity, &[anchor()], PeerCheck::default()).expect("a configuration").client, bytes)
}

fn say_by(node: &Node, config: Arc<ClientConfig>, bytes: &[u8]) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let stream = TcpStream::connect(node.pair_address())?;
    let session = ClientConnection::new(config, ServerName::from(node.pair_address().ip())).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, stream);
    stream.write_all(bytes)?;
    Ok(stream)
}

/// The same; gives how that ends.
fn knock(node: &Node, identity: &Identity, greeting: &[u8]) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    say(node, identity, greeting)?.read_to_end(&mut read)?;
    Ok(read)
}

#[test]
fn hostile_bytes_with_the_certificate_of_a_node_end_no_node() {
    let (_pair, witness, backup, primary) = Pair::secure("").patient().begin();
    let identity = issue(&authority(), &format!("bodkin-primary.{CLOUD}"), &[], tls::now(), DAY);
    for node in [&witness, &backup] {
        for frames in hostile_frames() {
            // It may close in the middle.
            let _ = say(node, &identity, &frames);
        }
    }
    outlives_hostile_bytes(witness, &backup, &primary);
}

#[test]
fn whoever_is_not_the_node_that_it_says_is_refused_and_told() {
    let (_pair, witness, backup, primary) = Pair::secure("").patient().begin();
    let greeting = |node: u8| {
        let mut frame = vec![1, 16, 0, 0, 0, 0, 0, 0, 0, 99, 0, 4, 0, 4, node, 2];
        frame.extend([0; 8]);
        [&(frame.len() as u32).to_be_bytes()[..], &frame].concat()
    };
    let own = |name: &str| issue(&authority(), &format!("{name}.{CLOUD}"), &[], tls::now(), DAY);
    let foreign = other_authority("elsewhere.aitia.arrowhead.eu");
    let cases = [
        // Any system of the cloud has a certificate of its authority.
        (own("sysop"), "another system than those that are expected"),
        (own("bodkin-second"), "another system than those that are expected"),
        (issue(&foreign, "bodkin-primary.elsewhere.aitia.arrowhead.eu", &[], tls::now(), DAY), "leads to no authority"),
        (issue(&authority(), &format!("bodkin-primary.{CLOUD}"), &[], tls::now().minus(2 * DAY), DAY), "counts from"),
        // A node, and not the one that it says it is.
        (own("bodkin-witness"), "bodkin-primary.testcloud1.aitia.arrowhead.eu was expected"),
    ];
    for (identity, told) in cases {
        // The witness knows of no other witness.
        let nodes: &[&Node] = if told.ends_with("was expected") { &[&backup] } else { &[&backup, &witness] };
        for node in nodes {
            let ended = knock(node, &identity, &greeting(1));
            assert!(eventually(|| node.said().contains(told)), "{told}: {ended:?}; {}", node.said());
        }
    }
    // Without TLS nobody is heard.
    let mut plain = TcpStream::connect(backup.pair_address()).expect("a connection");
    plain.write_all(&greeting(1)).expect("it is sent");
    assert!(eventually(|| backup.said().contains("it does not speak TLS")), "{}", backup.said());
    assert_eq!((primary.gauge("bodkin_pair_epoch"), primary.gauge("bodkin_pair_protected")), (1, 1));
}

/// Shows no certificate.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[test]
fn strangers_are_refused_and_logged_once_a_minute() {
    let (_pair, witness, backup, primary) = Pair::secure("").patient().begin();
    let begun = Instant::now();
    let foreign = other_authority("elsewhere.aitia.arrowhead.eu");
    let identity = |name: usize| issue(&foreign, &format!("bodkin-{name}.elsewhere.aitia.arrowhead.eu"), &[], tls::now(), DAY);
    let own = issue(&authority(), &format!("bodkin-primary.{CLOUD}"), &[], tls::now(), DAY);
    let mut config = ClientConfig::clone(&LinkTls::new(&own, &[anchor()], PeerCheck::default()).expect("a configuration").client);
    config.client_auth_cert_resolver = Arc::new(NoCertificate);
    let config = Arc::new(config);
    // How each connection ends is the other side's to say.
    let end =
        |ended: io::Result<StreamOwned<ClientConnection, TcpStream>>| _ = ended.and_then(|mut stream| stream.read_to_end(&mut Vec::new()));
    for node in [&witness, &backup] {
        for attempt in 0..10 {
            end(say_by(node, config.clone(), b"without a certificate"));
            end(say(node, &identity(attempt), b"with another cloud's"));
            let mut plain = TcpStream::connect(node.pair_address()).expect("it listens");
            let _ =
                plain.write_all(format!("GET /{attempt} HTTP/1.1\r\n\r\n").as_bytes()).and_then(|()| plain.read_to_end(&mut Vec::new()));
        }
        for reason in ["it has shown no certificate", "leads to no authority", "it does not speak TLS"] {
            logs(node, begun, reason, 1);
        }
        logs(node, begun, "a connection of the pair was refused in TLS", 3);
    }
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!([&primary, &backup].map(|node| node.gauge("bodkin_pair_unreached")), [0, 0], "{}", primary.said());
    assert_eq!((primary.gauge("bodkin_pair_epoch"), primary.gauge("bodkin_pair_protected")), (1, 1));
    assert_eq!(witness.stop(), Some(0), "it runs until it is stopped");
}

#[test]
fn cloned_data_directory_is_refused_in_secure_mode() {
    second_primary_is_refused(Pair::secure(""), |pair| pair.clone_data("primary", "second"));
}

/// Writes the list of what is revoked where a node reads it.
fn revoke(trust: &Path, identity: &Identity) {
    let revoked = [Revoked { serial: identity.certificate().serial().to_vec(), since: tls::now() }];
    let list = authority().revocation_list(&revoked, tls::now(), tls::now().plus(DAY)).expect("a list");
    replace(&trust.join("revoked.crl"), list.as_bytes());
}

#[test]
fn a_node_whose_certificate_is_revoked_is_cut_off_while_its_connections_are_open() {
    let (pair, witness, backup, primary) = Pair::secure("").begin();
    let lost = TrustDirectory::new(pair.trust("backup")).identity(&SystemName::from_stored("bodkin-backup")).expect("the Backup's");
    ["primary", "witness"].iter().for_each(|node| revoke(&pair.trust(node), &lost));
    witness.signal(Signal::SIGHUP);
    primary.protected(false);
    for node in [&primary, &witness] {
        assert!(eventually(|| node.said().contains("the certificate is revoked")), "{}", node.said());
    }
    assert_eq!(primary.gauge("bodkin_pair_leads"), 1);
    let echo = primary.call(System::ServiceRegistry, "GET", "/serviceregistry/echo", None).expect("an answer");
    assert_eq!(echo.status, 200);
    assert!(!backup.said().contains("this node of the pair leads"), "{}", backup.said());
}

#[test]
fn a_backup_without_the_clouds_certificates_says_what_it_needs() {
    let place = tempfile::tempdir().expect("a directory");
    for (role, name) in [("backup", "bodkin-backup"), ("witness", "bodkin-witness")] {
        let output = std::process::Command::new(crate::support::cloud::BINARY).args([role, "--data"]).arg(place.path().join(role)).output();
        let said = String::from_utf8(output.expect("it starts").stderr).expect("text");
        assert!(said.contains("no certificates of the Primary's cloud") && said.contains(name), "{said}");
    }
}
