//! Who is not let in: each is refused, told in the log with the reason and the certificate's name, and others are served meanwhile.

use std::time::Duration;

use bodkin_trust::{Authority, Identity, tls};

use super::wait_for_log;
use crate::support::cloud::System;
use crate::support::http::Connection;
use crate::support::secure::{CLOUD, Client, DAY, SecureCloud, authority, issue, other_authority, system};

#[track_caller]
fn refused(secure: &SecureCloud, of: System, shown: &Identity, reason: &str) {
    let error = Client::new(Some(shown)).refused(&secure.cloud, of).to_string();
    assert!(error.contains("alert") || error.contains("eset") || error.contains("EOF"), "{error}");
    let name = shown.certificate().common_name().expect("a name");
    wait_for_log(&secure.cloud, &[of.name(), &format!("certificate=\"{name}\""), reason]);
    Client::system("others").expect(&secure.cloud, "GET", &format!("/{}/echo", of.name()), None, 200);
}

#[test]
fn certificates_that_do_not_count_are_refused_and_told() {
    let secure = SecureCloud::start(["--log", "info"]);
    let own = authority();
    let lost = issue(&own, &format!("lost.{CLOUD}"), &[], tls::now(), DAY);
    secure.revoke(&[&lost]);
    wait_for_log(&secure.cloud, &["read again", "revoked=1"]);
    for of in [System::ServiceRegistry, System::EventHandler] {
        let (other_cloud, other_operator) = ("testcloud2.aitia.arrowhead.eu", "testcloud1.other.arrowhead.eu");
        let (now, days_ago) = (tls::now(), tls::now().minus(3 * DAY));
        let cases = [
            (other_authority(other_cloud), format!("cloud-{}.{other_cloud}", of.name()), now, other_cloud),
            (other_authority(other_operator), format!("operator-{}.{other_operator}", of.name()), now, "no authority"),
            (authority(), format!("expired-{}.{CLOUD}", of.name()), days_ago, "counts from"),
            (authority(), format!("early-{}.{CLOUD}", of.name()), now.plus(DAY), "counts from"),
        ];
        for (issuer, name, from, reason) in cases {
            refused(&secure, of, &issue(&issuer, &name, &[], from, DAY), reason);
        }
        refused(&secure, of, own.identity(), "authority's, not a system's");
        refused(&secure, of, &lost, "revoked");
        let self_signed = Authority::root(tls::now(), DAY).expect("a root");
        refused(&secure, of, self_signed.identity(), "authority's, not a system's");
    }
}

#[test]
fn who_shows_nothing_is_refused_and_told() {
    let secure = SecureCloud::start([]);
    for of in System::CORE {
        let error = Client::new(None).refused(&secure.cloud, of).to_string();
        assert!(error.contains("CertificateRequired"), "{error}");
        wait_for_log(&secure.cloud, &[of.name(), "certificate=\"none\"", "no certificate"]);
    }
    Client::system("others").expect(&secure.cloud, "GET", "/orchestrator/echo", None, 200);
}

#[test]
fn a_name_of_four_or_six_parts_is_told_and_its_requests_are_refused() {
    let secure = SecureCloud::start([]);
    for name in [CLOUD.to_owned(), format!("a.b.{CLOUD}"), "sensor.testcloud9.aitia.arrowhead.eu".to_owned()] {
        let identity = issue(&authority(), &name, &["localhost"], tls::now(), DAY);
        for of in System::CORE {
            let answer = Client::new(Some(&identity)).call(&secure.cloud, "GET", &format!("/{}/echo", of.name()), None).expect("an answer");
            assert_eq!((answer.status, &answer.json()["exceptionType"]), (401, &"AUTH".into()), "{name}");
            wait_for_log(&secure.cloud, &[of.name(), &format!("certificate=\"{name}\""), "no system of this cloud"]);
        }
    }
}

#[test]
fn plain_http_is_told_where_tls_is_spoken_and_closed() {
    let secure = SecureCloud::start([]);
    for of in [System::ServiceRegistry, System::EventHandler, System::Monitor] {
        let mut connection = Connection::open(secure.cloud.address(of)).expect("a connection");
        let answer = connection.request("GET", "/serviceregistry/echo", &[], None).expect("an answer");
        assert_eq!((answer.status, answer.header("upgrade")), (426, Some("TLS/1.2, HTTP/1.1")), "{}", of.name());
        assert!(answer.text().contains("https:// instead of http://") && connection.is_closed_by_server(), "{}", answer.text());
        wait_for_log(&secure.cloud, &[of.name(), "http:// instead of https://"]);
    }
    Client::system("others").expect(&secure.cloud, "GET", "/eventhandler/echo", None, 200);
}

#[test]
fn a_slow_handshake_is_ended_and_told() {
    let secure = SecureCloud::start(["--handshake-timeout-ms", "300"]);
    for of in [System::ServiceRegistry, System::EventHandler, System::Monitor] {
        // Nothing at all, and the begin of a record.
        for bytes in [&b""[..], &[22, 3, 1, 2, 0, 1]] {
            let mut connection = Connection::open(secure.cloud.address(of)).expect("a connection");
            connection.send(bytes).expect("sent");
            assert!(connection.is_closed_by_server(), "{} waits for ever", of.name());
        }
        wait_for_log(&secure.cloud, &[of.name(), "not done within 300ms"]);
    }
    // The limit is that of the handshake only.
    let mut connection = Client::new(Some(&system("slow"))).connect(secure.cloud.address(System::EventHandler)).expect("a connection");
    std::thread::sleep(Duration::from_millis(700));
    connection.request("GET", "/eventhandler/echo", &[], None).expect("an answer").expect_status(200);
}

/// What nobody needs a credential for: whether it lives, and whether it serves. Who asks for a first certificate shows a secret instead of one.
const FOR_ANYONE: [&str; 2] = ["/healthz", "/readyz"];
/// Where that is.
const ONBOARDING: &str = "/api/v1/onboarding";
/// What the own port has beside what its description lists.
const UNDESCRIBED: [&str; 10] = [
    "/",
    "/dashboard.js",
    "/dashboard.css",
    "/swagger-ui.html",
    "/v2/api-docs",
    "/openapi.json",
    "/nothing",
    "/api/v1/nothing",
    "/serviceregistry/mgmt",
    "/eventhandler/mgmt/subscriptions",
];

#[test]
fn without_a_credential_no_route_of_any_port_answers_but_health() {
    let secure = SecureCloud::shared();
    let nobody = Client::new(None);
    // The core systems' ports take nobody in who shows nothing, whatever the route.
    for of in System::CORE.into_iter().chain([System::Gatekeeper, System::Gateway]) {
        nobody.refused(&secure.cloud, of);
    }
    let described = Client::system("sysop").expect(&secure.cloud, "GET", "/openapi.json", None, 200).json();
    let described = described["paths"].as_object().expect("paths");
    assert!(described.len() > 40, "{}", described.len());
    let methods =
        |operations: &serde_json::Value| operations.as_object().expect("operations").keys().map(|key| key.to_uppercase()).collect();
    let routes = described.iter().map(|(path, operations)| (path.as_str(), methods(operations)));
    let others = UNDESCRIBED.into_iter().map(|path| (path, vec!["GET".to_owned(), "POST".to_owned()]));
    let mut seen = 0;
    for (path, methods) in routes.chain(others) {
        let target = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect::<Vec<_>>().join("/");
        for method in &methods {
            let mut connection = nobody.connect(secure.cloud.address(System::Monitor)).expect("a connection");
            let answer = connection.request(method, &target, &[], None).expect("an answer");
            if FOR_ANYONE.contains(&path) {
                assert_eq!(answer.status, 200, "{method} {target}");
                assert!(answer.body.len() < 32, "{method} {target} tells more than its state");
                continue;
            }
            // Where a secret is asked for, what is no request at all may be told so first.
            let is_refused = answer.status == 401 || (path == ONBOARDING && answer.status == 400);
            assert!(is_refused, "{method} {target}: {}", answer.status);
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} routes were tried");
}
