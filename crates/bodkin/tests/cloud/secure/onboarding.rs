//! A new system comes to its certificate, and the audit log of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use bodkin_trust::{Authority, Certificate, Identity, KeySize, PrivateKey, request::SigningRequest, tls};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::system as form;
use crate::support::cloud::{BINARY, System};
use crate::support::patience::eventually;
use crate::support::secure::{CLOUD, Client, DAY, SecureCloud, authority, issue, other_authority};

/// `bodkin` with the words of a line; as the operator where it calls the cloud.
fn bodkin(secure: &SecureCloud, line: &str) -> Output {
    let mut command = Command::new(BINARY);
    command.args(line.split_whitespace()).env("BODKIN_DATA", secure.trust("cloud.crt").ancestors().nth(2).expect("the data"));
    command.env("BODKIN_MONITOR", secure.cloud.address(System::Monitor).to_string());
    command.output().expect("the binary starts")
}

#[track_caller]
fn done(secure: &SecureCloud, line: &str) -> String {
    let output = bodkin(secure, line);
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{line}: {}{}", told(&output.stdout), told(&output.stderr));
    told(&output.stdout)
}

fn audited(secure: &SecureCloud, kind: &str) -> Vec<Value> {
    let told = done(secure, &format!("audit export --kind {kind}"));
    told.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

#[test]
fn a_secret_is_all_that_a_new_system_needs() {
    let secure = SecureCloud::start([]);
    let place = TempDir::new().expect("a temporary directory");
    let (secret, out) = (place.path().join("secret"), place.path().join("identity"));
    let added = format!("onboard secret add --system newcomer-* --uses 2 --expires-in 10m --san 127.0.0.1 --out {}", secret.display());
    done(&secure, &added);
    assert_eq!(fs::metadata(&secret).expect("it is written").permissions().mode() & 0o777, 0o600);
    assert!(done(&secure, "onboard secret list").contains("newcomer-*"));
    let join = |system: &str| {
        format!(
            "onboard join https://{} --secret-file {} --system {system} --out {}",
            secure.cloud.address(System::Monitor),
            secret.display(),
            out.display()
        )
    };
    assert!(done(&secure, &join("newcomer-1")).contains(&format!("this is newcomer-1.{CLOUD}")));
    let read = |file: &str| fs::read(out.join(file)).expect("it was written");
    let identity = Identity::from_pem(&read("newcomer-1.crt"), &read("newcomer-1.key")).expect("an identity");
    // It is a system of the cloud from now on: it registers itself, and nobody else.
    let newcomer = Client::new(Some(&identity));
    newcomer.expect(&secure.cloud, "POST", "/serviceregistry/register-system", Some(&form("newcomer-1", 9)), 201);
    newcomer.expect(&secure.cloud, "POST", "/serviceregistry/register-system", Some(&form("newcomer-2", 9)), 401);

    let again = bodkin(&secure, &join("newcomer-1"));
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("has a certificate"), "{again:?}");
    let other = bodkin(&secure, &join("sysop"));
    assert_eq!(other.status.code(), Some(3), "{other:?}");
    let removed = done(&secure, "onboard secret remove 1");
    assert!(removed.contains("removed"), "{removed}");
    assert_eq!(bodkin(&secure, &join("newcomer-3")).status.code(), Some(3));

    let issued = audited(&secure, "certificate");
    let onboarded = issued.iter().find(|entry| entry["what"] == "POST /api/v1/onboarding").expect("it is told");
    let serial = identity.certificate().serial_text();
    assert_eq!((&onboarded["detail"]["system"], &onboarded["detail"]["serial"]), (&json!("newcomer-1"), &json!(serial)));
    assert_eq!((&onboarded["caller"], &onboarded["from"]), (&json!("anonymous"), &json!("127.0.0.1")));
    let made = audited(&secure, "change").into_iter().find(|entry| entry["what"] == "POST /api/v1/onboarding/grants").expect("it is told");
    assert_eq!(made["caller"], format!("sysop.{CLOUD}"));
    // The ledger names it as well, whoever has issued it.
    let of_ledger = || audited(&secure, "certificate").iter().any(|entry| entry["what"] == "issued" && entry["detail"]["serial"] == serial);
    assert!(eventually(of_ledger), "{issued:?}");
    assert!(done(&secure, "audit verify").contains("yes"));
}

#[test]
fn a_secret_may_be_shown_as_a_bearer_shows_its_token() {
    let secure = SecureCloud::start([]);
    let place = TempDir::new().expect("a temporary directory");
    let secret = place.path().join("secret");
    done(&secure, &format!("onboard secret add --system newcomer --out {}", secret.display()));
    let secret = fs::read_to_string(&secret).expect("it is written");
    let key = PrivateKey::generate(KeySize::Bits2048).expect("a key");
    let body = json!({"csr": SigningRequest::make(&key, "newcomer").expect("a request")}).to_string();
    let show = |authorization: &str| {
        let headers = [("Content-Type", "application/json"), ("Authorization", authorization)];
        let mut connection = Client::new(None).connect(secure.cloud.address(System::Monitor)).expect("a connection");
        connection.request("POST", "/api/v1/onboarding", &headers, Some(body.as_bytes())).expect("an answer")
    };
    for other in ["Bearer bodkin1-1-00-00", &format!("Basic {}", secret.trim())] {
        assert_eq!(show(other).expect_status(401).header("WWW-Authenticate"), Some("Bearer realm=\"onboarding\""), "{other}");
    }
    let answer = show(&format!("Bearer {}", secret.trim())).expect_status(201).json();
    let chain = Certificate::from_pem(answer["certificate"].as_str().expect("a chain").as_bytes()).expect("certificates");
    assert_eq!(chain[0].common_name(), Some(format!("newcomer.{CLOUD}").as_str()));
    assert!(!fs::read_to_string(secure.trust("../audit/0000000001.jsonl")).expect("the audit log").contains(secret.trim()));
}

#[test]
fn who_is_refused_in_the_handshake_or_by_the_rules_is_in_the_audit_log() {
    let secure = SecureCloud::start([]);
    let expired = issue(&authority(), &format!("late.{CLOUD}"), &[], tls::now().minus(3 * DAY), DAY);
    Client::new(Some(&expired)).refused(&secure.cloud, System::Orchestrator);
    let pretender = issue(&other_authority("testcloud2.aitia.arrowhead.eu"), &format!("sysop.{CLOUD}"), &[], tls::now(), DAY);
    Client::new(Some(&pretender)).refused(&secure.cloud, System::Authorization);
    Client::system("nosy").expect(&secure.cloud, "GET", "/serviceregistry/mgmt/systems", None, 401);
    let event = json!({"eventType": "hot", "source": form("other", 1), "payload": "21.5", "timeStamp": "2026-11-21T10:00:00Z"});
    Client::system("nosy").expect(&secure.cloud, "POST", "/eventhandler/publish", Some(&event), 401);
    Client::new(None).expect(&secure.cloud, "GET", "/api/v1/stages", None, 401);
    let (nosy, nobody) = (format!("nosy.{CLOUD}"), "anonymous".to_owned());
    let expected = [
        // Anybody can make a certificate with any name that is refused.
        (&nobody, "connect to orchestrator", "counts from", json!(format!("late.{CLOUD}"))),
        (&nobody, "connect to authorization", "no authority", json!(format!("sysop.{CLOUD}"))),
        (&nosy, "GET /serviceregistry/mgmt/systems", "sysop only", Value::Null),
        (&nosy, "POST /eventhandler/publish", "in the name of other", Value::Null),
        (&nobody, "GET /api/v1/stages", "names no system", Value::Null),
    ];
    for (caller, what, why, shown) in expected {
        let is_told = |entry: &Value| {
            entry["caller"] == *caller
                && entry["what"] == what
                && entry["from"] == "127.0.0.1"
                && entry["detail"]["shown"] == shown
                && entry["detail"]["why"].as_str().is_some_and(|told| told.contains(why))
        };
        assert!(eventually(|| audited(&secure, "denial").iter().any(is_told)), "{caller} {what}: {:?}", audited(&secure, "denial"));
    }
}

#[test]
fn a_device_comes_to_a_certificate_and_to_nothing_else() {
    let maker = Authority::root(tls::now(), DAY).expect("an authority");
    let place = TempDir::new().expect("a temporary directory");
    let authorities = place.path().join("makers.pem");
    fs::write(&authorities, maker.certificate().to_pem()).expect("it is written");
    let secure = SecureCloud::start(["--device-authorities", authorities.to_str().expect("a text")]);
    let device = issue(&maker, "serial-4711.maker.example", &[], tls::now(), DAY);
    // The name of the operator, and a certificate by somebody who may name devices only.
    let pretender = issue(&maker, &format!("sysop.{CLOUD}"), &[], tls::now(), DAY);
    done(&secure, "onboard device add --device serial-4711.maker.example --system sensor-7");
    let body = json!({"csr": SigningRequest::make(device.key(), "whatever").expect("a request")});
    let ask = |identity: &Identity, status: u16| {
        Client::new(Some(identity)).expect(&secure.cloud, "POST", "/api/v1/onboarding", Some(&body), status)
    };
    for identity in [&device, &pretender] {
        let client = Client::new(Some(identity));
        client.expect(&secure.cloud, "GET", "/api/v1/stages", None, 401);
        client.expect(&secure.cloud, "GET", "/api/v1/onboarding/grants", None, 401);
        client.expect(&secure.cloud, "GET", "/metrics", None, 401);
        client.refused(&secure.cloud, System::ServiceRegistry);
    }
    ask(&pretender, 401);
    let answer = ask(&device, 201).json();
    let chain = Certificate::from_pem(answer["certificate"].as_str().expect("a chain").as_bytes()).expect("certificates");
    assert_eq!(chain[0].common_name(), Some(format!("sensor-7.{CLOUD}").as_str()));
    ask(&device, 401);
    let issued = audited(&secure, "certificate");
    assert!(issued.iter().any(|entry| entry["caller"] == "device serial-4711.maker.example"), "{issued:?}");
    let denied = audited(&secure, "denial");
    assert!(denied.iter().any(|entry| entry["caller"] == format!("device sysop.{CLOUD}")), "{denied:?}");
    assert!(!denied.iter().any(|entry| entry["caller"] == format!("sysop.{CLOUD}")), "{denied:?}");
}

#[test]
fn a_system_that_does_not_give_up_is_told_with_the_number_of_its_denials() {
    let secure = SecureCloud::start([]);
    let page = Client::system("page");
    for _ in 0..5 {
        page.expect(&secure.cloud, "GET", "/api/v1/overview", None, 403);
    }
    page.expect(&secure.cloud, "GET", "/api/v1/stages", None, 403);
    let told = |secure: &SecureCloud| -> Vec<(String, Option<u64>)> {
        let of_page = audited(secure, "denial").into_iter().filter(|entry| entry["caller"] == format!("page.{CLOUD}"));
        of_page.map(|entry| (entry["what"].as_str().expect("a text").to_owned(), entry["detail"]["times"].as_u64())).collect()
    };
    let first = |path: &str| (format!("GET {path}"), None);
    assert!(eventually(|| told(&secure) == [first("/api/v1/overview"), first("/api/v1/stages")]), "{:?}", told(&secure));
    secure.cloud.signal(Signal::SIGTERM);
    assert!(eventually(|| told(&secure).len() == 3), "what is counted is told at a stop: {:?}", told(&secure));
    assert_eq!(told(&secure)[2], ("GET /api/v1/overview".to_owned(), Some(4)));
    assert!(done(&secure, "audit verify").contains("whole"));
}
