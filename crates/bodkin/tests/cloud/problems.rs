//! Refusals: below `/api/v1` each is a problem (RFC 9457), on whichever port, and each is described.

use serde_json::Value;

use crate::support::cloud::{Cloud, System};
use crate::support::http::Answer;
use crate::support::secure::{Client, SecureCloud};

const PORTS: [System; 7] = [
    System::ServiceRegistry,
    System::Authorization,
    System::Orchestrator,
    System::EventHandler,
    System::Gatekeeper,
    System::Gateway,
    System::Monitor,
];

#[track_caller]
fn assert_problem(answer: &Answer, status: u16, asked: &str) {
    assert_eq!((answer.status, answer.header("content-type")), (status, Some("application/problem+json")), "{asked}: {}", answer.text());
    let problem = answer.json();
    assert_eq!((&problem["type"], &problem["status"]), (&"about:blank".into(), &status.into()), "{asked}: {problem}");
    let phrase = http::StatusCode::from_u16(status).expect("a status").canonical_reason();
    assert_eq!(problem["title"].as_str(), phrase, "about:blank is no more than its status: {asked}: {problem}");
    assert!(problem["detail"].as_str().is_some_and(|text| text.len() > 3), "{asked}: {problem}");
}

#[test]
fn every_error_of_the_own_interface_is_a_problem() {
    let cloud = Cloud::shared();
    let cases = [
        (System::EventHandler, "GET", "/api/v1/events", 400),
        (System::EventHandler, "GET", "/api/v1/events?type=problem&since=yesterday", 400),
        (System::EventHandler, "GET", "/api/v1/events?type=problem&deadline_ms=soon", 400),
        (System::EventHandler, "PUT", "/api/v1/events", 405),
        (System::EventHandler, "GET", "/api/v1/nothing", 404),
        (System::EventHandler, "POST", "/api/v1/events", 415),
        (System::ServiceRegistry, "GET", "/api/v1/topics", 404),
        (System::Monitor, "GET", "/api/v1/nothing", 404),
        (System::Monitor, "PUT", "/api/v1/topics", 405),
        (System::Monitor, "GET", "/api/v1/subscriptions/no-number", 400),
        (System::Monitor, "GET", "/api/v1/live", 400),
        (System::Monitor, "POST", "/api/v1/topics", 400),
    ];
    for (system, method, target, status) in cases {
        let answer = cloud.connect(system).request(method, target, &[], None).expect("an answer");
        assert_problem(&answer, status, &format!("{method} {target} of {}", system.name()));
    }
    let answer = cloud.connect(System::EventHandler).request("GET", "/api/v1/events", &[], None).expect("an answer");
    let missing = "The parameter type names the event type to hear and is missing: /api/v1/events?type=NAME.";
    assert_eq!(answer.json()["detail"], missing);
    // Elsewhere upstream's forms stay.
    let answer =
        cloud.connect(System::EventHandler).request("GET", "/eventhandler/nothing", &[], None).expect("an answer").expect_status(404);
    assert_eq!(answer.json()["message"], "No message available");
}

#[test]
fn what_is_refused_before_it_is_whole_is_a_problem_too() {
    let cloud = Cloud::shared();
    for (system, target) in [(System::EventHandler, "/api/v1/events"), (System::Monitor, "/api/v1/topics")] {
        let head = |target: &str, host: &str, length: u64| {
            format!("POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n")
        };
        for (bytes, status) in [(head(target, "localhost", 1 << 40), 413), (head(target, "elsewhere.example", 0), 421)] {
            let mut connection = cloud.connect(system);
            connection.send(bytes.as_bytes()).expect("sent");
            assert_problem(&connection.read_answer().expect("an answer"), status, &format!("{status} of {target}"));
        }
    }
    let mut connection = cloud.connect(System::EventHandler);
    let head =
        "POST /eventhandler/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n";
    connection.send(head.as_bytes()).expect("sent");
    let answer = connection.read_answer().expect("an answer").expect_status(413);
    assert_ne!(answer.header("content-type"), Some("application/problem+json"), "upstream's paths have no problems");
}

/// Method, path with numbers for what differs, and what is described of it.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let parts: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
        for (method, operation) in item.as_object().expect("a path") {
            found.push((method.to_uppercase(), parts.join("/"), operation.clone()));
        }
    }
    found
}

/// Where a browser redeems a sign-in link.
const SIGN_IN: &str = "/dashboard/enter";

#[test]
fn whoever_is_denied_was_told_so() {
    let cloud = SecureCloud::shared();
    let (operator, passer_by) = (Client::system("sysop"), Client::system("passer-by"));
    let mut denials = 0;
    for port in PORTS {
        let ask = |client: &Client, method: &str, target: &str| {
            let answer = client.connect(cloud.cloud.address(port)).and_then(|mut connection| connection.request(method, target, &[], None));
            answer.unwrap_or_else(|error| panic!("{method} {target} of {}: {error}", port.name()))
        };
        let document = ask(&operator, "GET", "/openapi.json").expect_status(200).json();
        for (method, path, operation) in operations(&document) {
            let answer = ask(&passer_by, &method, &path);
            if ![401, 403].contains(&answer.status) {
                continue;
            }
            denials += 1;
            let response = &operation["responses"][answer.status.to_string()];
            assert!(response.is_object(), "{method} {path} is denied with {}, which is not described", answer.status);
            // The credential of a sign-in link is in its query, which is no scheme of OpenAPI.
            assert!(
                path == SIGN_IN || operation["security"].as_array().is_some_and(|schemes| !schemes.is_empty()),
                "{method} {path} says that it asks for nothing"
            );
            if path.starts_with("/api/v1/") {
                assert_problem(&answer, answer.status, &path);
            }
        }
    }
    assert!(denials > 60, "{denials} operations have denied a system that may use none of them");
}
