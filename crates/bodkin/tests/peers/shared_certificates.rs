//! Certificates of one cloud: issued, listed and revoked at whichever node one asks. The same of a cloud by itself, and of nodes on a PostgreSQL server.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bodkin_arrowhead::name::SystemName;
use bodkin_client::realtime::ClientSecurity;
use bodkin_trust::{Certificate, Identity, TrustDirectory, curve, request::SigningRequest, tls};
use bodkin_zmtp::SocketType;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::postgres::server::{Server, eventually};
use crate::support::arrowhead::{list, system as form};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::conditions::{Monitor, assert_shown};
use crate::support::http::{Answer, Connection};
use crate::support::link::{Heard, Link};
use crate::support::secure::{CLOUD, Client, client_key, put_trust};
use crate::support::skip;

fn node(data: &Path, server: Option<&Server>) -> Launch {
    let launch = Launch::new().secure().data(data);
    server.into_iter().fold(launch, |launch, server| launch.env("BODKIN_DATABASE", &server.url()))
}

fn operator(cloud: &Cloud, method: &str, target: &str, body: Option<&Value>) -> Answer {
    let bytes = body.map(|value| value.to_string().into_bytes());
    let mut connection = Client::system("sysop").connect(cloud.address(System::Monitor)).expect("a connection");
    let headers = [("Content-Type", "application/json")];
    connection.request(method, target, if body.is_some() { &headers } else { &[] }, bytes.as_deref()).expect("an answer")
}

fn grant(cloud: &Cloud, systems: &str) -> String {
    let made =
        operator(cloud, "POST", "/api/v1/onboarding/grants", Some(&json!({"systemName": systems, "uses": 9}))).expect_status(201).json();
    made["secret"].as_str().expect("a secret").to_owned()
}

/// Asks for a certificate; all have the key of every client.
fn onboard(cloud: &Cloud, secret: &str, name: &str) -> Answer {
    let csr = SigningRequest::make(&client_key(), name).expect("a request");
    let body = json!({"secret": secret, "systemName": name, "csr": csr}).to_string();
    let mut connection = Client::new(None).connect(cloud.address(System::Monitor)).expect("a connection");
    connection.request("POST", "/api/v1/onboarding", &[("Content-Type", "application/json")], Some(body.as_bytes())).expect("an answer")
}

fn identity(answer: &Answer) -> Identity {
    let chain = answer.json()["certificate"].as_str().expect("a chain").to_owned();
    Identity::new(Certificate::from_pem(chain.as_bytes()).expect("certificates"), client_key()).expect("they belong together")
}

/// What a node says of a certificate.
fn told(cloud: &Cloud, serial: &str) -> Value {
    let all = operator(cloud, "GET", "/api/v1/certificates?item_per_page=10000", None).expect_status(200).json();
    list(&all, "/data").iter().find(|one| one["serial"] == serial).cloned().unwrap_or_default()
}

fn asks(connection: &mut Connection) {
    connection.request("GET", "/serviceregistry/echo", &[], None).expect("an answer").expect_status(200);
}

/// A certificate's life: `asked` issues it, `others` know of it, and the last of them revokes it.
fn goes_round(granting: &Cloud, asked: &Cloud, others: &[&Cloud]) -> String {
    let secret = grant(granting, "newcomer-*");
    let identity = identity(&onboard(asked, &secret, "newcomer-1").expect_status(201));
    let serial = identity.certificate().serial_text();
    // Whoever is asked next knows that the name is somebody's.
    let again = onboard(others[0], &secret, "newcomer-1").expect_status(409);
    assert!(again.text().contains("has a certificate that counts"), "{}", again.text());
    let newcomer = Client::new(Some(&identity));
    newcomer.expect(others[0], "POST", "/serviceregistry/register-system", Some(&form("newcomer-1", 9)), 201);
    let mut open: Vec<Connection> = Vec::new();
    for node in others.iter().chain([&asked]) {
        eventually(|| told(node, &serial)["state"] == "valid", || node.stderr());
        let mut connection = newcomer.connect(node.address(System::ServiceRegistry)).expect("a connection");
        asks(&mut connection);
        open.push(connection);
    }
    let revoking = others.last().expect("there is one");
    let revoked = operator(revoking, "POST", &format!("/api/v1/certificates/{serial}/revoke"), None).expect_status(200).json();
    assert_eq!(revoked["state"], "revoked");
    let answered = Instant::now();
    for (node, mut connection) in others.iter().chain([&asked]).zip(open) {
        assert!(connection.is_closed_by_server(), "an open connection goes on: {}", node.stderr());
        println!("an open connection is closed {:?} behind the answer to its revocation", answered.elapsed());
        newcomer.refused(node, System::ServiceRegistry);
        eventually(|| told(node, &serial)["state"] == "revoked", || node.stderr());
    }
    // The name is free again.
    onboard(others[0], &secret, "newcomer-1").expect_status(201);
    serial
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_certificate_is_issued_and_revoked_in_a_cloud_by_itself() {
    let place = TempDir::new().expect("a temporary directory");
    put_trust(&place.path().join("trust"));
    let cloud = node(place.path(), None).start();
    let serial = goes_round(&cloud, &cloud, &[&cloud]);
    assert!(told(&cloud, &serial)["node"].is_null());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_certificate_is_issued_and_revoked_at_any_node_of_a_shared_database() {
    let Some(server) = Server::start() else {
        return skip::note("a_certificate_is_issued_and_revoked_at_any_node_of_a_shared_database", "no PostgreSQL server");
    };
    let places = [(); 3].map(|()| TempDir::new().expect("a temporary directory"));
    for place in &places {
        put_trust(&place.path().join("trust"));
    }
    // The third one is not to issue.
    std::fs::remove_file(places[2].path().join("trust/cloud.key")).expect("it is there");
    let [one, two, three] = [0, 1, 2].map(|at: usize| node(places[at].path(), Some(&server)).start());
    let serial = goes_round(&two, &one, &[&two, &three]);
    let own = |cloud: &Cloud| {
        let nodes = operator(cloud, "GET", "/api/v1/nodes", None).expect_status(200).json();
        list(&nodes, "/data").iter().find(|node| node["isThis"] == true).expect("it is one of them")["node"].clone()
    };
    for cloud in [&one, &two, &three] {
        assert_eq!(told(cloud, &serial)["node"], own(&one));
    }
    // Who has no key says who has.
    let secret = grant(&three, "gauge");
    let refused = onboard(&three, &secret, "gauge").expect_status(503);
    let place = one.address(System::Monitor).to_string();
    assert!(refused.text().contains("no key") && refused.text().contains(&place), "{}", refused.text());
    // What was asked for at one node is spent at another, and what was not issued is not spent.
    let gauge = identity(&onboard(&two, &secret, "gauge").expect_status(201));
    let of_gauge = gauge.certificate().serial_text();
    eventually(|| told(&one, &of_gauge)["name"] == format!("gauge.{CLOUD}"), || one.stderr());
    // `bodkin cert` beside a node that runs.
    let revoke = std::process::Command::new(crate::support::cloud::BINARY)
        .args(["cert", "revoke", &of_gauge, "--data"])
        .arg(places[0].path())
        .output()
        .expect("the binary starts");
    assert!(revoke.status.success(), "{}", String::from_utf8_lossy(&revoke.stderr));
    for cloud in [&two, &three] {
        eventually(|| told(cloud, &of_gauge)["state"] == "revoked", || cloud.stderr());
    }
    // A node that was away learns of it at its start, before it serves anybody.
    assert!(three.stop().success());
    let secret = grant(&one, "late");
    let late = onboard(&one, &secret, "late").expect_status(201);
    let identity = identity(&late);
    // At once, where it was not issued.
    operator(&two, "POST", &format!("/api/v1/certificates/{}/revoke", identity.certificate().serial_text()), None).expect_status(200);
    let three = node(places[2].path(), Some(&server)).start();
    Client::new(Some(&identity)).refused(&three, System::ServiceRegistry);
    // What does not get through is told, and comes when it does.
    let age = || {
        let metrics = operator(&two, "GET", "/metrics", None).text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("bodkin_certificate_exchange_age_seconds "));
        line.and_then(|age| age.parse::<f64>().ok()).expect("it is told")
    };
    let secret = grant(&one, "pump-*");
    let of_pump = self::identity(&onboard(&one, &secret, "pump-1").expect_status(201)).certificate().serial_text();
    eventually(|| told(&two, &of_pump)["state"] == "valid" && age() < 5.0, || two.stderr());
    server.sql("cloud", "ALTER TABLE bodkin.certificate_line RENAME TO elsewhere");
    onboard(&one, &secret, "pump-2").expect_status(503);
    operator(&two, "POST", &format!("/api/v1/certificates/{of_pump}/revoke"), None).expect_status(503);
    assert_eq!([&two, &one].map(|node| told(node, &of_pump)["state"].clone()), ["revoked", "valid"]);
    assert_shown(Monitor::secure(two.address(System::Monitor)), "BodkinCertificatesHeldUp");
    server.sql("cloud", "ALTER TABLE bodkin.elsewhere RENAME TO certificate_line");
    eventually(|| told(&one, &of_pump)["state"] == "revoked" && age() < 5.0, || one.stderr());
    // A database that is put back to an earlier state, as a standby that was behind, has what it lacks again.
    let of_valve = self::identity(&onboard(&one, &grant(&one, "valve"), "valve").expect_status(201)).certificate().serial_text();
    operator(&two, "POST", &format!("/api/v1/certificates/{of_valve}/revoke"), None).expect_status(200);
    eventually(|| told(&one, &of_valve)["state"] == "revoked", || one.stderr());
    let put_back = format!(
        "BEGIN; DELETE FROM bodkin.certificate_line WHERE serial = '{of_valve}'; DELETE FROM bodkin.change WHERE number = (SELECT number FROM bodkin.shared);
        UPDATE bodkin.shared SET number = number - 1; COMMIT"
    );
    server.sql("cloud", &put_back);
    let lines = format!("SELECT string_agg(action, ' ' ORDER BY action) FROM bodkin.certificate_line WHERE serial = '{of_valve}'");
    eventually(|| server.sql("cloud", &lines) == "issue revoke", || format!("{}{}", one.stderr(), two.stderr()));
    assert_shown(Monitor::secure(two.address(System::Monitor)), "BodkinDatabaseSetBack");
    assert_eq!(server.sql("cloud", "SELECT count(*) - count(DISTINCT (authority, serial, action)) FROM bodkin.certificate_line"), "0");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_cloud_in_secure_mode_moves_with_its_certificates_grants_and_audit_log() {
    let Some(server) = Server::start() else {
        return skip::note("a_cloud_in_secure_mode_moves_with_its_certificates_grants_and_audit_log", "no PostgreSQL server");
    };
    let places = [(); 2].map(|()| TempDir::new().expect("a temporary directory"));
    put_trust(&places[0].path().join("trust"));
    let own = node(places[0].path(), None).start();
    let secret = grant(&own, "press-*");
    let [kept, gone] = ["press-1", "press-2"].map(|name| identity(&onboard(&own, &secret, name).expect_status(201)));
    let [of_kept, of_gone] = [&kept, &gone].map(|identity| identity.certificate().serial_text());
    operator(&own, "POST", &format!("/api/v1/certificates/{of_gone}/revoke"), None).expect_status(200);
    Client::new(Some(&kept)).expect(&own, "POST", "/serviceregistry/register-system", Some(&form("press-1", 9)), 201);
    let entries = |cloud: &Cloud, node: &str| {
        let told = operator(cloud, "GET", &format!("/api/v1/audit?count=1000{node}"), None).expect_status(200).json();
        list(&told, "/data").len()
    };
    let before = entries(&own, "");
    assert!(own.stop().success());

    let bodkin = |line: &[&str]| {
        let mut command = std::process::Command::new(crate::support::cloud::BINARY);
        command.args(line).env("BODKIN_DATABASE", server.url()).output().expect("the binary starts")
    };
    let data = places[0].path().to_str().expect("a path is text");
    let moved = bodkin(&["db", "migrate", "--from", "sqlite", "--to", "postgres", "--data", data]);
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    // The second node has the first one's trust directory, as the page of several nodes says, and nothing else of it.
    put_trust(&places[1].path().join("trust"));
    let [one, two] = [0, 1].map(|at: usize| node(places[at].path(), Some(&server)).start());
    for cloud in [&one, &two] {
        eventually(|| told(cloud, &of_kept)["state"] == "valid" && told(cloud, &of_gone)["state"] == "revoked", || cloud.stderr());
        eventually(|| entries(cloud, "&node=all") >= before, || cloud.stderr());
        Client::new(Some(&gone)).refused(cloud, System::ServiceRegistry);
        let again = Client::new(Some(&kept)).expect(cloud, "POST", "/serviceregistry/register-system", Some(&form("press-1", 9)), 400);
        assert!(again.text().contains("already exists"), "{}", again.text());
    }
    // The grant goes on being spent, at either node.
    onboard(&two, &secret, "press-3").expect_status(201);
    let verified = bodkin(&["audit", "verify", "--all-nodes"]);
    assert!(verified.status.success(), "{}{}", String::from_utf8_lossy(&verified.stdout), String::from_utf8_lossy(&verified.stderr));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_node_with_another_authority_does_not_start() {
    let Some(server) = Server::start() else {
        return skip::note("a_node_with_another_authority_does_not_start", "no PostgreSQL server");
    };
    let places = [(); 3].map(|()| TempDir::new().expect("a temporary directory"));
    put_trust(&places[0].path().join("trust"));
    let one = node(places[0].path(), Some(&server)).start();
    eventually(|| server.sql("cloud", "SELECT count(*) FROM bodkin.node WHERE authority <> ''") == "1", || one.stderr());
    let refused = node(places[1].path(), Some(&server)).try_start().err().expect("it has no certificates");
    assert!(refused.stderr.contains("Copy the trust directory"), "{}", refused.stderr);
    assert!(!places[1].path().join("trust").exists(), "none are made");
    let authority = bodkin_arrowhead::common_name::CloudCommonName::parse(CLOUD).expect("a name");
    let other = TrustDirectory::new(places[2].path().join("trust"));
    other.init(&authority, tls::now()).expect("an authority");
    let refused = node(places[2].path(), Some(&server)).try_start().err().expect("it has another authority");
    assert!(refused.stderr.contains("a cloud has one authority"), "{}", refused.stderr);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn curve_key_counts_at_all_nodes_until_it_is_removed_at_one() {
    let Some(server) = Server::start() else {
        return skip::note("curve_key_counts_at_all_nodes_until_it_is_removed_at_one", "no PostgreSQL server");
    };
    let places = [(); 2].map(|()| TempDir::new().expect("a temporary directory"));
    for place in &places {
        put_trust(&place.path().join("trust"));
    }
    let nodes = [0, 1].map(|at: usize| node(places[at].path(), Some(&server)).start());
    let directory = |at: usize| TrustDirectory::new(places[at].path().join("trust"));
    let (sensor, own) = (SystemName::from_stored("sensor"), Arc::new(curve::generate().expect("a pair of keys")));
    let connect = |at: usize| {
        let address = nodes[at].ready()["listeners"]["zmtp"].as_str().expect("there is a ZMTP port").to_owned();
        let server = curve::read_pair(&directory(at).server_pair()).expect("a node has a pair").public().clone();
        let security = ClientSecurity::Curve { own: own.clone(), server };
        Link::client(TcpStream::connect(address).expect("a connection"), SocketType::Dealer, security)
    };
    let is_accepted = |at: usize| matches!(connect(at).hear(), Ok(Some(Heard::Ready(_))));
    assert!(!is_accepted(0) && !is_accepted(1), "no system has the key");
    directory(0).bind_curve_key(&sensor, Some(own.public()), tls::now()).expect("it is bound");
    for (at, node) in nodes.iter().enumerate() {
        eventually(|| is_accepted(at), || node.stderr());
    }
    let mut open = [0, 1].map(connect);
    for link in &mut open {
        assert!(matches!(link.hear(), Ok(Some(Heard::Ready(_)))));
    }
    directory(0).bind_curve_key(&sensor, None, tls::now()).expect("it is removed");
    for ((at, node), link) in nodes.iter().enumerate().zip(&mut open) {
        // Panics if the node does not close the open connection.
        while let Ok(Some(_)) = link.hear() {}
        eventually(|| !is_accepted(at), || node.stderr());
    }
}
