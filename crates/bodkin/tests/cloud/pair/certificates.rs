//! Certificates of a pair: each node knows and refuses those that the other node has issued or revoked, and a node whose own one is revoked stays out.

use std::{fs, process::Command};

use bodkin_arrowhead::{name::SystemName, pinned::PAIR_NODES};
use bodkin_trust::{
    Certificate, Identity, TrustDirectory,
    curve::{self, KeyPair, PublicKey},
    request::SigningRequest,
    tls,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::nodes::{Node, Pair};
use crate::support::arrowhead::list;
use crate::support::cloud::{BINARY, System};
use crate::support::conditions::{Monitor, assert_shown};
use crate::support::http::Answer;
use crate::support::patience::eventually;
use crate::support::secure::{CLOUD, Client, client_key};

/// What an audit log says of a grant that was made.
const GRANTED: &str = "POST /api/v1/onboarding/grants";

#[track_caller]
fn operator(node: &Node, method: &str, target: &str, body: Option<&Value>) -> Answer {
    node.call(System::Monitor, method, target, body).unwrap_or_else(|error| panic!("{target}: {error}; it said: {}", node.said()))
}

fn grant(node: &Node, systems: &str) -> String {
    let made =
        operator(node, "POST", "/api/v1/onboarding/grants", Some(&json!({"systemName": systems, "uses": 9}))).expect_status(201).json();
    made["secret"].as_str().expect("a secret").to_owned()
}

/// Has a node issue a certificate; all have the key of every client.
fn onboard(node: &Node, secret: &str, name: &str) -> Answer {
    let csr = SigningRequest::make(&client_key(), name).expect("a request");
    let body = json!({"secret": secret, "systemName": name, "csr": csr});
    node.call_by(&Client::new(None), System::Monitor, "POST", "/api/v1/onboarding", Some(&body)).expect("an answer")
}

fn issue(node: &Node, name: &str) -> Identity {
    let answer = onboard(node, &grant(node, name), name).expect_status(201);
    let chain = answer.json()["certificate"].as_str().expect("a chain").to_owned();
    Identity::new(Certificate::from_pem(chain.as_bytes()).expect("certificates"), client_key()).expect("they belong together")
}

/// The row of a certificate at a node; null if the node does not know it.
fn row(node: &Node, serial: &str) -> Value {
    let all = operator(node, "GET", "/api/v1/certificates?item_per_page=10000", None).expect_status(200).json();
    list(&all, "/data").iter().find(|one| one["serial"] == serial).cloned().unwrap_or_default()
}

fn revoke(node: &Node, serial: &str) -> Value {
    operator(node, "POST", &format!("/api/v1/certificates/{serial}/revoke"), None).expect_status(200).json()
}

/// The state of a certificate in the ledger of a node's directory.
fn state(pair: &Pair, node: &str, serial: &str) -> Option<&'static str> {
    let ledger = TrustDirectory::new(pair.trust(node)).ledger().expect("a ledger");
    ledger.find(serial).map(|issued| issued.state(tls::now()))
}

/// Whether a node answers a system.
fn answers(node: &Node, client: &Client) -> bool {
    node.call_by(client, System::ServiceRegistry, "GET", "/serviceregistry/echo", None).is_ok_and(|answer| answer.status == 200)
}

/// Whether a node refuses a certificate.
fn refuses(node: &Node, client: &Client) -> bool {
    node.call_by(client, System::ServiceRegistry, "GET", "/serviceregistry/echo", None).is_err()
}

/// `bodkin cert` in the directory of a node; gives what it prints.
#[track_caller]
fn cert(pair: &Pair, node: &str, arguments: &[&str]) -> String {
    let output = Command::new(BINARY).arg("cert").args(arguments).arg("--trust").arg(pair.trust(node)).output().expect("it starts");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text")).concat();
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

#[test]
fn revocation_at_the_leader_holds_after_a_failover() {
    let (pair, _witness, mut backup, primary) = Pair::secure("").begin();
    let (alice, bob) = (issue(&primary, "alice"), issue(&primary, "bob"));
    let serials = [&alice, &bob].map(|identity| identity.certificate().serial_text());
    for serial in &serials {
        assert!(eventually(|| state(&pair, "backup", serial) == Some("valid")), "{}", backup.said());
    }
    let [alice, bob] = [&alice, &bob].map(|identity| Client::new(Some(identity)));
    assert!(answers(&primary, &alice));
    // An open connection to the standby is closed, too.
    let mut open = alice.connect(backup.address(System::ServiceRegistry)).expect("a connection");
    assert_eq!(open.request("GET", "/serviceregistry/echo", &[], None).expect("an answer").status, 503);
    assert_eq!(revoke(&primary, &serials[0])["state"], "revoked");
    primary.signal(Signal::SIGKILL);
    assert!(open.is_closed_by_server(), "{}", backup.said());
    backup.served();
    assert!(refuses(&backup, &alice), "{}", backup.said());
    assert!(answers(&backup, &bob), "{}", backup.said());
    let [of_alice, of_bob] = serials.each_ref().map(|serial| row(&backup, serial));
    assert_eq!((&of_alice["state"], &of_bob["state"]), (&json!("revoked"), &json!("valid")));
    assert_eq!((&of_alice["node"], &of_bob["node"]), (&json!(PAIR_NODES[0]), &json!(PAIR_NODES[0])));
    // The name of a certificate that the other node has issued is taken here.
    onboard(&backup, &grant(&backup, "bo*"), "bob").expect_status(409);
}

#[test]
fn standby_refuses_what_was_revoked_while_it_was_away() {
    let (mut pair, _witness, backup, primary) = Pair::secure("").begin();
    let alice = issue(&primary, "alice");
    drop(backup);
    primary.protected(false);
    assert_eq!(revoke(&primary, &alice.certificate().serial_text())["state"], "revoked");
    let mut backup = pair.backup();
    primary.protected(true);
    primary.signal(Signal::SIGKILL);
    backup.served();
    assert!(refuses(&backup, &Client::new(Some(&alice))), "{}", backup.said());
}

#[test]
fn changes_in_either_directory_reach_the_other_node() {
    let (pair, _witness, mut backup, primary) = Pair::secure("").begin();
    let mut identities = Vec::new();
    for (here, there) in [("primary", "backup"), ("backup", "primary")] {
        let name = format!("valve-{here}");
        cert(&pair, here, &["issue", "--system", &name, "--san", "127.0.0.1"]);
        let identity = TrustDirectory::new(pair.trust(here)).identity(&SystemName::from_stored(&name)).expect("it was issued");
        let serial = identity.certificate().serial_text();
        assert!(eventually(|| state(&pair, there, &serial) == Some("valid")), "{}{}", primary.said(), backup.said());
        cert(&pair, here, &["revoke", &name]);
        assert!(eventually(|| state(&pair, there, &serial) == Some("revoked")), "{}{}", primary.said(), backup.said());
        let client = Client::new(Some(&identity));
        assert!(eventually(|| refuses(&primary, &client) && refuses(&backup, &client)), "{}{}", primary.said(), backup.said());
        identities.push((client, serial));
    }
    assert_eq!(primary.gauge("bodkin_pair_certificates_unshared"), 0);
    primary.signal(Signal::SIGKILL);
    backup.served();
    for (client, serial) in &identities {
        assert!(refuses(&backup, client));
        assert_eq!(row(&backup, serial)["state"], "revoked");
    }
}

#[test]
fn standby_reports_certificate_that_no_leader_knows() {
    let mut pair = Pair::secure("");
    // Without a leader the standby keeps the certificate to itself.
    let backup = pair.backup();
    cert(&pair, "backup", &["issue", "--system", "valve", "--san", "127.0.0.1"]);
    assert_shown(Monitor::secure(backup.address(System::Monitor)), "BodkinPairCertificatesUnshared");
}

#[test]
fn standby_with_revoked_certificate_stays_out_until_reissued() {
    let (mut pair, _witness, backup, primary) = Pair::secure("").begin();
    let name = SystemName::from_stored(PAIR_NODES[1]);
    let serial = |pair: &Pair| TrustDirectory::new(pair.trust("backup")).identity(&name).expect("it has one").certificate().serial_text();
    let lost = serial(&pair);
    // The standby has issued it in its own directory, so the leader knows it by the standby's line.
    assert!(eventually(|| state(&pair, "primary", &lost) == Some("valid")), "{}", primary.said());
    let text = cert(&pair, "primary", &["revoke", &lost]);
    assert!(text.contains("cloud.key"), "it warns: {text}");
    let reason = "is revoked: the node neither leads, follows, nor votes";
    assert!(eventually(|| backup.said().contains(reason)), "{}", backup.said());
    primary.protected(false);
    let overview = || operator(&primary, "GET", "/api/v1/overview", None).text();
    assert!(eventually(|| overview().contains("bodkin-backup is refused, because its certificate is revoked")), "{}", overview());
    let ready = |node: &Node| operator(node, "GET", "/readyz", None).text();
    assert!(ready(&backup).contains("certificate is revoked"), "{}", ready(&backup));
    assert_shown(Monitor::secure(backup.address(System::Monitor)), "BodkinPairCertificateRevoked");
    // Neither a restart nor a lost file gives it another certificate.
    drop(backup);
    let files = ["crt", "key"].map(|end| pair.trust("backup").join(format!("systems/{name}.{end}")));
    let backup = pair.backup();
    assert!(eventually(|| backup.said().contains(reason)), "{}", backup.said());
    assert_eq!(serial(&pair), lost);
    drop(backup);
    files.iter().for_each(|file| fs::remove_file(file).expect("it is there"));
    let backup = pair.backup();
    assert!(eventually(|| backup.said().contains(reason)), "{}", backup.said());
    assert!(!files[0].exists());
    assert!(ready(&backup).contains("certificate is revoked"), "{}", ready(&backup));
    assert_eq!(primary.gauge("bodkin_pair_protected"), 0);
    cert(&pair, "backup", &["issue", "--system", PAIR_NODES[1]]);
    primary.protected(true);
    assert!(eventually(|| backup.said().contains("takes part in the pair again")), "{}", backup.said());
    assert_eq!(backup.gauge("bodkin_pair_certificate_revoked"), 0);
    assert!(!overview().contains("certificate is revoked"), "{}", overview());
}

#[test]
fn standby_that_was_stopped_at_its_revocation_reports_it() {
    let (mut pair, _witness, backup, primary) = Pair::secure("").begin();
    let name = SystemName::from_stored(PAIR_NODES[1]);
    let own = TrustDirectory::new(pair.trust("backup")).identity(&name).expect("it has one").certificate().serial_text();
    assert!(eventually(|| state(&pair, "primary", &own) == Some("valid")), "{}", primary.said());
    assert_eq!(backup.stop(), Some(0));
    primary.protected(false);
    cert(&pair, "primary", &["revoke", &own]);
    assert!(eventually(|| primary.said().contains("certificates of the pair's nodes were read again")), "{}", primary.said());
    let backup = pair.backup();
    // Its own ledger lacks the revocation: the leader refuses the connection that would bring it.
    let ready = || operator(&backup, "GET", "/readyz", None).expect_status(503).text();
    assert!(eventually(|| ready().contains("this node's certificate is revoked at another node")), "{}: {}", ready(), backup.said());
    assert_eq!(state(&pair, "backup", &own), Some("valid"));
    assert_shown(Monitor::secure(backup.address(System::Monitor)), "BodkinPairCertificateRevoked");
    // The reason stays for as long as the node is refused.
    for _ in 0..60 {
        assert!(ready().contains("revoked"), "{}", ready());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    cert(&pair, "backup", &["issue", "--system", PAIR_NODES[1], "--new-key"]);
    primary.protected(true);
    assert!(eventually(|| !ready().contains("revoked")), "{}", ready());
}

#[test]
fn leader_with_revoked_certificate_gives_up_the_lead() {
    let (pair, _witness, mut backup, primary) = Pair::secure("").begin();
    let own = TrustDirectory::new(pair.trust("primary")).identity(&SystemName::from_stored(PAIR_NODES[0])).expect("it has one");
    let answer = revoke(&primary, &own.certificate().serial_text());
    assert!(answer["warning"].as_str().is_some_and(|warning| warning.contains("cloud.key")), "{answer}");
    backup.served();
    assert!(eventually(|| primary.said().contains("neither leads, follows, nor votes")), "{}", primary.said());
    let ready = || operator(&primary, "GET", "/readyz", None).text();
    assert!(eventually(|| ready().contains("certificate is revoked")), "{}", ready());
    assert_eq!(backup.gauge("bodkin_pair_leads"), 1);
}

/// What a node keeps beside the replicated database, one row of the table in docs/design/pair.md each: changed at the leader, and looked at after a failover.
#[test]
fn state_beside_the_database_is_as_the_table_states() {
    let (pair, _witness, mut backup, primary) = Pair::secure("").begin();
    // Replicated: ledger, revocations, grants, CURVE bindings.
    let (kept, lost) = (issue(&primary, "kept"), issue(&primary, "lost"));
    let secret = grant(&primary, "late-*");
    revoke(&primary, &lost.certificate().serial_text());
    // Local: audit log, reports and nets, keys of systems, the record of votes.
    for folder in ["reports", "models"] {
        fs::create_dir_all(pair.data("primary").join(folder)).expect("a folder");
    }
    fs::write(pair.data("primary").join("reports/shift.json"), "{}").expect("a report");
    let [bound, taken_away, of_standby] = [(); 3].map(|()| curve::generate().expect("a pair of keys"));
    let of = |node: &str| TrustDirectory::new(pair.trust(node));
    let bind = |node: &str, system: &str, key: Option<&PublicKey>| {
        of(node).bind_curve_key(&SystemName::from_stored(system), key, tls::now()).expect("it is bound");
    };
    let bound_at = |node: &str, key: &KeyPair| of(node).curve_keys().expect("keys").get(key.public()).map(ToString::to_string);
    bind("primary", "sensor", Some(bound.public()));
    bind("primary", "valve", Some(taken_away.public()));
    bind("backup", "meter", Some(of_standby.public()));
    assert!(eventually(|| bound_at("backup", &taken_away).is_some()), "{}", backup.said());
    assert!(eventually(|| bound_at("primary", &of_standby).is_some()), "{}", primary.said());
    bind("primary", "valve", None);
    cert(&pair, "primary", &["issue", "--system", "pump"]);
    let reports = |node: &Node| operator(node, "GET", "/api/v1/reports", None).expect_status(200).text();
    assert!(reports(&primary).contains("shift.json"));
    let audited = |node: &Node| operator(node, "GET", "/api/v1/audit?count=1000", None).expect_status(200).text();
    assert!(audited(&primary).contains(GRANTED));
    let pump = SystemName::from_stored("pump");
    let serial = of("primary").identity(&pump).expect("it was issued").certificate().serial_text();
    assert!(eventually(|| state(&pair, "backup", &serial) == Some("valid")), "{}", backup.said());
    assert!(eventually(|| bound_at("backup", &taken_away).is_none()), "{}", backup.said());
    primary.signal(Signal::SIGKILL);
    backup.served();
    assert!(answers(&backup, &Client::new(Some(&kept))), "{}", backup.said());
    assert!(refuses(&backup, &Client::new(Some(&lost))), "{}", backup.said());
    assert_eq!((bound_at("backup", &bound), bound_at("backup", &taken_away)), (Some("sensor".to_owned()), None));
    let late = onboard(&backup, &secret, "late-1").expect_status(201);
    assert!(late.json()["certificate"].is_string());
    let grants = operator(&backup, "GET", "/api/v1/onboarding/grants", None).expect_status(200).text();
    assert!(grants.contains("late-*"), "{grants}");
    assert_eq!(row(&backup, &serial)["state"], "valid");
    assert!(!reports(&backup).contains("shift.json"), "reports are each node's own");
    // The new leader's audit log lists what this node has done, and what its ledger has.
    assert!(eventually(|| audited(&backup).contains(&format!("late-1.{CLOUD}"))), "{}", audited(&backup));
    assert!(!audited(&backup).contains(GRANTED), "{}", audited(&backup));
    assert!(of("backup").identity(&pump).is_err(), "keys of systems do not leave their directory");
}
