//! Connections of clients that are let in: versions, resumption, headers, closing, streams.

use std::io::Read;

use rustls::{HandshakeKind, ProtocolVersion};
use serde_json::json;

use super::register_publisher;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::http::Connection;
use crate::support::patience::eventually;
use crate::support::secure::{Client, SecureCloud, system as identity};
use crate::support::sse::EventStream;

/// Clients without a certificate of one address that the operator's port serves at the same time.
const STRANGERS_OF_ONE_MAX: usize = 192;

const ALL: [System; 5] = [System::ServiceRegistry, System::Authorization, System::Orchestrator, System::EventHandler, System::Monitor];

fn living(system: System) -> String {
    if system == System::Monitor { "/healthz".to_owned() } else { format!("/{}/echo", system.name()) }
}

#[test]
fn both_versions_are_spoken_on_every_port_and_sessions_are_resumed() {
    let secure = SecureCloud::shared();
    let identity = identity("versions");
    let client = Client::new(Some(&identity));
    for (version, number) in [(&rustls::version::TLS12, ProtocolVersion::TLSv1_2), (&rustls::version::TLS13, ProtocolVersion::TLSv1_3)] {
        let client = client.only(version, &identity);
        for of in ALL {
            // Each port has sessions of its own, although all have the same host name.
            for kind in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
                let mut connection = client.connect(secure.cloud.address(of)).expect("a connection");
                // Many requests on it, some larger than a record.
                for _ in 0..3 {
                    connection.request("GET", &living(of), &[], None).expect("an answer").expect_status(200);
                }
                let session = connection.session();
                assert_eq!((session.protocol_version(), session.alpn_protocol()), (Some(number), Some(&b"http/1.1"[..])));
                assert_eq!(session.handshake_kind(), Some(kind), "{} {number:?}", of.name());
            }
        }
    }
}

#[test]
fn answers_tell_browsers_to_stay_and_errors_name_the_url() {
    let secure = SecureCloud::shared();
    let client = Client::system("headers");
    for of in ALL {
        let answer = client.expect(&secure.cloud, "GET", &living(of), None, 200);
        assert!(answer.header("Strict-Transport-Security").is_some_and(|value| value.starts_with("max-age=")), "{}", of.name());
    }
    for of in System::CORE {
        let body = json!({});
        let answer = client.expect(&secure.cloud, "GET", &living(of), Some(&body), 400).json();
        let expected = format!("https://{}{}", secure.cloud.address(of), living(of));
        assert_eq!(answer["origin"], expected, "{}", of.name());
    }
}

#[test]
fn the_monitor_serves_its_health_to_who_shows_nothing() {
    let secure = SecureCloud::shared();
    let nobody = Client::new(None);
    for path in ["/healthz", "/readyz"] {
        nobody.expect(&secure.cloud, "GET", path, None, 200);
    }
    for of in System::CORE {
        nobody.refused(&secure.cloud, of);
    }
}

#[test]
fn who_shows_nothing_takes_no_place_of_those_who_do() {
    let secure = SecureCloud::start([]);
    let (nobody, operator) = (Client::new(None), Client::system("sysop"));
    let alive = |connection: &mut Connection| connection.request("GET", "/healthz", &[], None).expect("an answer").status;
    let connect = |client: &Client| client.connect(secure.cloud.address(System::Monitor)).expect("a connection");
    // As many as one address can have, all idle.
    let mut idle: Vec<Connection> = Vec::new();
    for _ in 0..STRANGERS_OF_ONE_MAX {
        let mut connection = connect(&nobody);
        assert_eq!(alive(&mut connection), 200);
        idle.push(connection);
    }
    assert_eq!(alive(&mut connect(&nobody)), 503);
    operator.expect(&secure.cloud, "GET", "/metrics", None, 200);
    assert_eq!(alive(&mut idle[0]), 200);
    // A connection that is closed leaves room for another one.
    drop(idle.pop());
    assert!(eventually(|| alive(&mut connect(&nobody)) == 200));
}

#[test]
fn a_session_that_began_without_a_certificate_is_resumed_on_no_other_port() {
    let secure = SecureCloud::shared();
    let nobody = Client::new(None);
    nobody.expect(&secure.cloud, "GET", "/healthz", None, 200);
    for of in System::CORE {
        nobody.refused(&secure.cloud, of);
        nobody.expect(&secure.cloud, "GET", "/healthz", None, 200);
    }
}

#[test]
fn a_connection_ends_by_close_notify() {
    let secure = SecureCloud::shared();
    let client = Client::system("closing");
    for of in ALL {
        let mut connection = client.connect(secure.cloud.address(of)).expect("a connection");
        connection.request("GET", &living(of), &[("Connection", "close")], None).expect("an answer").expect_status(200);
        let mut rest = [0; 1];
        assert_eq!(connection.transport().read(&mut rest).expect("an end that was said"), 0, "{}", of.name());
    }
}

#[test]
fn large_bodies_pass_both_ways_and_streams_hear_events() {
    let secure = SecureCloud::shared();
    let (publisher, listener) = (Client::system("secure-publisher"), Client::system("secure-listener"));
    let source = register_publisher(&secure.cloud, &publisher, "secure-publisher");
    let listening = super::register(&secure.cloud, &listener, &system("secure-listener", 1));
    super::allow(&secure.cloud, listening, source);
    let target = "/eventhandler/events?event_type=secure&system_name=secure-listener&address=127.0.0.1&port=1";
    let connection = listener.connect(secure.cloud.address(System::EventHandler)).expect("a connection");
    let stream = EventStream::open_on(connection, target, &[]);
    assert!(crate::support::http::header(&stream.head.headers, "Strict-Transport-Security").is_some());
    let mut connection = publisher.connect(secure.cloud.address(System::EventHandler)).expect("a connection");
    let payloads: Vec<String> = (0..20).map(|number: usize| "x".repeat(number * 3_000)).collect();
    for payload in &payloads {
        let body = event("secure", system("secure-publisher", 1), &format!("{payload}.")).to_string();
        let headers = [("Content-Type", "application/json")];
        connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("an answer").expect_status(200);
    }
    let heard = stream.wait_for(payloads.len());
    for (heard, payload) in heard.iter().zip(&payloads) {
        let event: serde_json::Value = serde_json::from_str(&heard.data).expect("an event");
        assert_eq!(event["payload"].as_str().map(str::len), Some(payload.len() + 1));
    }
    let page = connection.request("GET", "/openapi.json", &[], None).expect("an answer").expect_status(200);
    assert!(page.body.len() > 16_384, "{} bytes", page.body.len());
}

#[test]
fn a_slow_request_and_an_idle_connection_end_in_tls_too() {
    let secure = SecureCloud::start(["--header-timeout-ms", "300", "--idle-timeout-ms", "600"]);
    let client = Client::system("slow");
    let mut waiting = ALL.map(|of| {
        let connect = || client.connect(secure.cloud.address(of)).expect("a connection");
        let mut slow = connect();
        slow.send(b"GET /healthz HTTP/1.1\r\nHost:").expect("sent");
        (of, slow, connect())
    });
    for (of, slow, idle) in &mut waiting {
        assert_eq!(slow.read_answer().expect("an answer").status, 408, "{}", of.name());
        assert!(idle.is_closed_by_server(), "{} keeps an idle one", of.name());
    }
}

#[test]
fn the_dashboard_is_a_page_of_https_and_no_other_is_ours() {
    let secure = SecureCloud::shared();
    let (sysop, port) = (Client::system("sysop"), secure.cloud.address(System::Monitor).port());
    let pages = [
        (format!("https://127.0.0.1:{port}"), true),
        (format!("https://localhost:{port}"), true),
        (format!("http://127.0.0.1:{port}"), false),
        ("https://evil.example".to_owned(), false),
    ];
    for (origin, is_ours) in &pages {
        for of in ALL {
            let mut connection = sysop.connect(secure.cloud.address(of)).expect("a connection");
            let answer = connection.request("GET", &living(of), &[("Origin", origin)], None).expect("an answer").expect_status(200);
            assert_eq!(answer.header("Access-Control-Allow-Origin"), is_ours.then_some(origin.as_str()), "{} {origin}", of.name());
        }
        // The browser shows the operator's certificate for whatever page sends it.
        let mut connection = sysop.connect(secure.cloud.address(System::Monitor)).expect("a connection");
        let headers = [("Origin", origin.as_str())];
        let answer = connection.request("POST", "/api/v1/dead-letters/replay", &headers, None).expect("an answer");
        answer.expect_status(if *is_ours { 200 } else { 403 });
    }
}

#[test]
fn one_certificate_leaves_connections_to_others() {
    let secure = SecureCloud::start(["--connections-max", "20"]);
    let (greedy, modest) = (Client::system("greedy"), Client::system("modest"));
    for of in [System::ServiceRegistry, System::EventHandler] {
        let status = |connection: &mut Connection| connection.request("GET", &living(of), &[], None).expect("an answer").status;
        let mut held: Vec<Connection> = Vec::new();
        let rejected = (0..20).find_map(|_| {
            let mut connection = greedy.connect(secure.cloud.address(of)).expect("a connection");
            let status = status(&mut connection);
            held.push(connection);
            Some(status).filter(|status| *status != 200)
        });
        assert_eq!((rejected, held.len()), (Some(503), 11), "{}: half of 20, and one more", of.name());
        modest.expect(&secure.cloud, "GET", &living(of), None, 200);
    }
}
