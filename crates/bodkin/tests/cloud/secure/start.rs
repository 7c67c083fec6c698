//! What `bodkin up` makes and takes in secure mode.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use bodkin_trust::{Certificate, TrustDirectory, tls};
use serde_json::json;
use tempfile::TempDir;

use super::{key_stores, with_key_stores};
use crate::support::arrowhead::list;
use crate::support::cloud::{BINARY, Cloud, Launch, Refusal, System};
use crate::support::conditions::{Monitor, assert_shown};
use crate::support::secure::{CLOUD, Client, DAY, SecureCloud, anchor, authority, issue, put_trust, replace};

#[track_caller]
fn refused(launch: Launch) -> Refusal {
    match launch.try_start() {
        Ok(_) => panic!("it starts"),
        Err(refusal) => refusal,
    }
}

fn certificate(trust: &Path, file: &str) -> Certificate {
    Certificate::from_pem(&fs::read(trust.join(file)).expect("a file")).expect("certificates").swap_remove(0)
}

#[test]
fn an_empty_data_directory_gets_a_cloud_of_its_own() {
    let data = TempDir::new().expect("a temporary directory");
    let launch = || Launch::new().secure().data(data.path()).flags(["--domain-name", "cloud.example"]);
    let cloud = launch().flags(["--cloud", "Plant-7", "--operator", "acme"]).start();
    let trust = data.path().join("trust");
    assert_eq!(cloud.ready()["mode"], "secure");
    assert_eq!(cloud.ready()["cloud"], "plant-7.acme.arrowhead.eu");
    assert_eq!(cloud.ready()["trust"], trust.to_str().expect("text"));
    for system in ["serviceregistry", "authorization", "orchestrator", "eventhandler"] {
        let own = certificate(&trust, &format!("systems/{system}.crt"));
        assert_eq!(own.common_name(), Some(format!("{system}.plant-7.acme.arrowhead.eu").as_str()));
        for name in ["localhost", "127.0.0.1", "::1", "cloud.example"] {
            assert!(own.alternative_names().iter().any(|own| own == name), "{system}: {name} in {:?}", own.alternative_names());
        }
        let rights = fs::metadata(trust.join(format!("systems/{system}.key"))).expect("a key").permissions().mode();
        assert_eq!(rights & 0o777, 0o600);
    }
    assert!(cloud.stop().success());
    let before = certificate(&trust, "systems/orchestrator.crt");
    // Everything is there, and stays; the names are those of the certificates.
    let again = launch().start();
    assert_eq!(again.ready()["cloud"], "plant-7.acme.arrowhead.eu");
    assert_eq!(certificate(&trust, "systems/orchestrator.crt"), before);
    assert!(again.stop().success());
    let other = refused(launch().flags(["--operator", "other"]));
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("plant-7.acme.arrowhead.eu") && other.stderr.contains("--operator"), "{}", other.stderr);
    // Another name to be called by: the certificates are made out for it.
    let moved = Launch::new().secure().data(data.path()).flags(["--domain-name", "moved.example"]).start();
    assert!(moved.stop().success());
    let after = certificate(&trust, "systems/orchestrator.crt");
    assert!(after.alternative_names().iter().any(|name| name == "moved.example"), "{:?}", after.alternative_names());
}

#[test]
fn a_certificate_whose_time_is_mostly_over_is_made_anew() {
    let secure = SecureCloud::start([]);
    let name = format!("orchestrator.{CLOUD}");
    let names = ["localhost", "127.0.0.1", "::1"];
    let old = issue(&authority(), &name, &names, tls::now().minus(70 * DAY), 90 * DAY);
    replace(&secure.trust("systems/orchestrator.key"), old.key().to_pem().as_bytes());
    replace(&secure.trust("systems/orchestrator.crt"), old.chain_to_pem().as_bytes());
    let renewed = || certificate(&secure.trust(""), "systems/orchestrator.crt").not_after() > old.certificate().not_after();
    assert!(crate::support::patience::eventually(renewed), "{}", secure.cloud.stderr());
    Client::system("anybody").expect(&secure.cloud, "GET", "/orchestrator/echo", None, 200);
}

#[test]
fn certificate_that_cannot_be_renewed_is_reported() {
    let place = TempDir::new().expect("a temporary directory");
    let trust = place.path().join("trust");
    put_trust(&trust);
    // Without the authority's key the node issues no certificates.
    fs::remove_file(trust.join("cloud.key")).expect("it is there");
    let names = ["localhost", "127.0.0.1", "::1"];
    let old = issue(&authority(), &format!("orchestrator.{CLOUD}"), &names, tls::now().minus(80 * DAY), 90 * DAY);
    replace(&trust.join("systems/orchestrator.key"), old.key().to_pem().as_bytes());
    replace(&trust.join("systems/orchestrator.crt"), old.chain_to_pem().as_bytes());
    let cloud = Launch::new().secure().data(place.path()).start();
    assert_shown(Monitor::secure(cloud.address(System::Monitor)), "BodkinCertificateEnds");
}

#[test]
fn core_services_are_registered_as_secure() {
    let secure = SecureCloud::shared();
    for (system, definition) in [("orchestrator", "orchestration-service"), ("eventhandler", "event-publish")] {
        let form = json!({"serviceDefinitionRequirement": definition});
        let answer = Client::system("orchestrator").expect(&secure.cloud, "POST", "/serviceregistry/query", Some(&form), 200).json();
        let entry = &list(&answer, "/serviceQueryData")[0];
        assert_eq!((&entry["secure"], &entry["interfaces"][0]["interfaceName"]), (&json!("CERTIFICATE"), &json!("HTTP-SECURE-JSON")));
        let own = certificate(&secure.trust(""), &format!("systems/{system}.crt"));
        let key = bodkin_trust::base64::encode(own.public_key_info());
        assert_eq!(entry["provider"]["authenticationInfo"], key, "{definition}");
    }
    let clouds = TrustDirectory::new(secure.trust(""));
    assert_eq!(clouds.cloud().expect("a name").to_string(), CLOUD);
}

#[test]
fn the_key_stores_of_an_arrowhead_cloud_are_used_as_they_are() {
    let (data, stores) = (TempDir::new().expect("a temporary directory"), key_stores(&[anchor()]));
    let launch = |password: &str| with_key_stores(data.path(), stores.path(), password);
    let cloud = launch("password").start();
    assert_eq!(cloud.ready()["cloud"], CLOUD);
    Client::system("existing").expect(&cloud, "GET", "/authorization/echo", None, 200);
    assert!(!data.path().join("trust").exists(), "nothing is made beside them");
    assert!(cloud.stop().success());
    replace(&stores.path().join("wrong"), b"654321\n");
    let refusal = refused(launch("wrong"));
    assert!(refusal.code == Some(1) && refusal.stderr.contains("serviceregistry.p12"), "{}", refusal.stderr);
    // What others may read is no secret.
    for secret in ["orchestrator.p12", "password"] {
        let path = stores.path().join(secret);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("rights are set");
        let refusal = refused(launch("password"));
        assert!(refusal.code == Some(1) && refusal.stderr.contains(secret), "{}", refusal.stderr);
        assert!(refusal.stderr.contains("chmod 600"), "{}", refusal.stderr);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("rights are set");
    }
}

#[test]
fn a_key_that_others_may_read_is_not_used() {
    let data = TempDir::new().expect("a temporary directory");
    let cloud = Launch::new().secure().data(data.path()).start();
    assert!(cloud.stop().success());
    let key = data.path().join("trust/systems/authorization.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).expect("rights are set");
    let refusal = refused(Launch::new().secure().data(data.path()));
    assert_eq!(refusal.code, Some(1));
    assert!(refusal.stderr.contains("authorization.key") && refusal.stderr.contains("chmod 600"), "{}", refusal.stderr);
}

#[test]
fn data_of_the_other_mode_is_taken_over_only_if_that_is_said() {
    let data = TempDir::new().expect("a temporary directory");
    let insecure = || Launch::new().data(data.path());
    let secure = || insecure().secure();
    let kept = |cloud: Cloud| assert!(cloud.stop().success());
    let told = |launch: Launch, mode: &str| {
        let refusal = refused(launch);
        assert_eq!(refusal.code, Some(1));
        let says = [format!("in {mode} mode"), "--adopt-data".to_owned()];
        assert!(says.iter().all(|part| refusal.stderr.contains(part)), "{}", refusal.stderr);
    };
    let first = insecure().start();
    first.register_system("kept", 1);
    kept(first);
    told(secure(), "insecure");
    assert!(!data.path().join("trust").exists(), "client commands would take the cloud for a secure one");
    let adopted = secure().flags(["--adopt-data"]).start();
    assert!(adopted.stop().success());
    kept(secure().start());
    told(insecure(), "secure");
    let back = insecure().flags(["--adopt-data"]).start();
    assert_eq!(back.get("/serviceregistry/mgmt/systems").expect_status(200).text().matches("\"kept\"").count(), 1);
}

#[test]
fn people_are_told_where_things_are_and_what_is_next() {
    let data = TempDir::new().expect("a temporary directory");
    let mut command = Command::new(BINARY);
    command.args(["up", "--any-port", "--data"]).arg(data.path());
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().expect("the binary starts");
    let mut lines = Vec::new();
    for line in std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("it is piped"))).map_while(Result::ok) {
        lines.push(line);
        if lines.last().is_some_and(|line| line.contains("root.key")) {
            break;
        }
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let said = lines.join("\n");
    for part in [
        "secure mode: local.bodkin.arrowhead.eu",
        "https://127.0.0.1:",
        "systems/sysop.crt",
        "bodkin cert issue",
        "ready in",
        " in a browser",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let listeners = said.lines().filter(|line| line.contains("https://") && !line.contains(" in a browser")).count();
    assert_eq!(listeners, System::CORE.len() + 3, "the Gatekeeper's, the Gateway's and Bodkin's own are the others");
}
