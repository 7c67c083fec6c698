//! Bodies of requests that their sender may not make: the head is enough to refuse them.

use crate::support::cloud::System;
use crate::support::http::Connection;
use crate::support::patience::eventually;
use crate::support::secure::{Client, SecureCloud};

/// Longest body of a client at the operator's port that is no operator, in bytes.
const ENROLLMENT_BODY_BYTES_MAX: usize = 16 * 1024;

/// Sends a head that announces a body, and returns the status of the answer that comes without the body.
fn status_of_head(client: &Client, secure: &SecureCloud, of: System, path: &str, length: usize, headers: &str) -> u16 {
    let mut connection = client.connect(secure.cloud.address(of)).expect("a connection");
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n");
    connection.send(head.as_bytes()).expect("sent");
    let answer = connection.read_answer().expect("an answer before the body");
    let mut is_closed = || Connection::is_closed_by_server(&mut connection);
    assert!(is_closed(), "{path}: the body is not read");
    answer.status
}

#[test]
fn head_is_enough_to_refuse_a_body() {
    let secure = SecureCloud::shared();
    let (nobody, system) = (Client::new(None), Client::system("stranger-to-this"));
    let refused = [
        (&nobody, System::Monitor, "/api/v1/topics", 401),
        (&nobody, System::Monitor, "/serviceregistry/mgmt/systems", 401),
        (&system, System::Monitor, "/api/v1/topics", 403),
        (&system, System::ServiceRegistry, "/serviceregistry/mgmt/systems", 401),
        (&system, System::EventHandler, "/eventhandler/mgmt/subscriptions", 401),
    ];
    for (client, of, path, status) in refused {
        for headers in ["", "Expect: 100-continue\r\n"] {
            assert_eq!(status_of_head(client, &secure, of, path, 60_000, headers), status, "{path} {headers}");
        }
    }
    // The refusals are in the audit log as those of whole requests are.
    let operator = Client::system("sysop");
    let entries = || operator.expect(&secure.cloud, "GET", "/api/v1/audit?kind=denial", None, 200).text();
    assert!(eventually(|| entries().contains("stranger-to-this")), "{}", entries());
}

#[test]
fn bodies_at_the_operators_port_are_short_but_for_operators() {
    let secure = SecureCloud::shared();
    let (nobody, system) = (Client::new(None), Client::system("enrolled"));
    assert_eq!(status_of_head(&system, &secure, System::Monitor, "/api/v1/onboarding", ENROLLMENT_BODY_BYTES_MAX + 1, ""), 413);
    let status = |length| status_of_head(&nobody, &secure, System::Monitor, "/api/v1/onboarding", length, "");
    assert_eq!(status(ENROLLMENT_BODY_BYTES_MAX + 1), 413);
    // A body within the limit is read, and judged by what it says.
    let mut connection = nobody.connect(secure.cloud.address(System::Monitor)).expect("a connection");
    let body = vec![b' '; ENROLLMENT_BODY_BYTES_MAX];
    let headers = [("Content-Type", "application/json")];
    let answer = connection.request("POST", "/api/v1/onboarding", &headers, Some(&body)).expect("an answer");
    assert_eq!(answer.status, 400, "{}", answer.text());
}
