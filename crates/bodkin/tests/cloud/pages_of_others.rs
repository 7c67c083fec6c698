//! Web pages of other origins (CORS by allow-list), and names that are not ours (DNS rebinding).

use crate::support::arrowhead::{event, subscription, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::{Answer, Connection};

const TOOL: &str = "http://localhost:3000";
const LISTED: &str = "https://panel.example";
const FOREIGN: &str = "http://evil.example";

const EVERY_PORT: [System; 5] =
    [System::ServiceRegistry, System::Authorization, System::Orchestrator, System::EventHandler, System::Monitor];

fn cloud() -> Cloud {
    Launch::new().flags(["--management-tool-origin", TOOL, "--cors-origins", LISTED]).start()
}

fn ask(cloud: &Cloud, system: System, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
    cloud.connect(system).request(method, target, headers, None).expect("an answer")
}

fn echo(system: System) -> String {
    if system == System::Monitor { "/healthz".into() } else { format!("/{}/echo", system.name()) }
}

/// Header values of that name, in order.
fn all<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    answer.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str()).collect()
}

#[track_caller]
fn readable(answer: &Answer, origin: &str) {
    assert_eq!(all(answer, "access-control-allow-origin"), [origin], "{answer:?}");
    assert_eq!(all(answer, "access-control-allow-credentials"), ["true"], "{answer:?}");
    let vary = all(answer, "vary");
    for name in ["Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"] {
        assert!(vary.contains(&name), "{vary:?}");
    }
}

#[track_caller]
fn closed_to_pages(answer: &Answer) {
    let told = answer.headers.iter().find(|(name, _)| name.to_ascii_lowercase().starts_with("access-control-"));
    assert_eq!(told, None, "{answer:?}");
}

#[test]
fn allowed_origins_may_read_every_ports_answers_and_errors() {
    let cloud = cloud();
    let dashboard = format!("http://localhost:{}", cloud.address(System::Monitor).port());
    for port in EVERY_PORT {
        for origin in [TOOL, LISTED, &dashboard] {
            readable(&ask(&cloud, port, "GET", &echo(port), &[("Origin", origin)]).expect_status(200), origin);
            readable(&ask(&cloud, port, "GET", "/nothing-here", &[("Origin", origin)]).expect_status(404), origin);
        }
        let answer = ask(&cloud, port, "GET", &echo(port), &[("Origin", FOREIGN)]).expect_status(200);
        closed_to_pages(&answer);
        closed_to_pages(&ask(&cloud, port, "GET", &echo(port), &[]).expect_status(200));
    }
    readable(&ask(&cloud, System::ServiceRegistry, "GET", "/serviceregistry/register", &[("Origin", TOOL)]).expect_status(405), TOOL);
    readable(&ask(&cloud, System::ServiceRegistry, "GET", "/serviceregistry/mgmt?page=0", &[("Origin", TOOL)]).expect_status(400), TOOL);
}

#[test]
fn without_options_only_the_own_dashboard_may_read() {
    let cloud = Cloud::shared();
    let port = cloud.address(System::Monitor).port();
    let read = |origin: &str| ask(&cloud, System::Orchestrator, "GET", "/orchestrator/echo", &[("Origin", origin)]).expect_status(200);
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        let origin = format!("http://{name}:{port}");
        readable(&read(&origin), &origin);
    }
    let registry = cloud.address(System::ServiceRegistry).port();
    for origin in [TOOL, "null", "*", &format!("http://localhost:{registry}"), &format!("http://evil.example:{port}")] {
        closed_to_pages(&read(origin));
    }
}

#[test]
fn a_preflight_tells_what_an_allowed_page_may_send() {
    let cloud = cloud();
    let preflight = |port, origin, method| {
        let headers = [("Origin", origin), ("Access-Control-Request-Method", method), ("Access-Control-Request-Headers", "content-type")];
        ask(&cloud, port, "OPTIONS", &echo(port), &headers)
    };
    for port in EVERY_PORT {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = preflight(port, TOOL, method).expect_status(200);
            readable(&answer, TOOL);
            assert_eq!(all(&answer, "access-control-allow-methods"), [method]);
            assert_eq!(all(&answer, "access-control-max-age"), ["600"]);
            let headers = all(&answer, "access-control-allow-headers").join(",");
            for name in ["Origin", "Content-Type", "Accept", "Authorization"] {
                assert!(headers.split(',').any(|header| header.trim() == name), "{headers}");
            }
        }
        closed_to_pages(&preflight(port, FOREIGN, "DELETE").expect_status(403));
        preflight(port, TOOL, "TRACE").expect_status(403);
    }
}

#[test]
fn pages_may_publish_and_listen() {
    let cloud = cloud();
    cloud.register_system("page", 1);
    let headers = [("Origin", TOOL), ("Content-Type", "application/json")];
    let body = event("PAGE", system("page", 1), "x").to_string();
    let mut connection = cloud.connect(System::EventHandler);
    let published = connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("an answer");
    readable(&published.expect_status(200), TOOL);
    // The same connection's next request says no origin, so its answer names none.
    closed_to_pages(&connection.request("GET", "/eventhandler/echo", &[], None).expect("an answer").expect_status(200));
    let body = subscription("PAGE", system("page", 1), "/notify").to_string();
    let subscribed = connection.request("POST", "/eventhandler/subscribe", &headers, Some(body.as_bytes())).expect("an answer");
    readable(&subscribed.expect_status(200), TOOL);

    let mut stream = cloud.connect(System::EventHandler);
    stream.send_request("GET", "/eventhandler/subscription?eventtype=PAGE", &[("Origin", TOOL)], None).expect("sent");
    let head = stream.read_head().expect("a head");
    let answer = Answer { status: head.status, headers: head.headers, body: Vec::new() };
    readable(&answer.expect_status(200), TOOL);
}

#[test]
fn a_page_may_read_that_its_body_is_too_long_or_late() {
    let flags = ["--management-tool-origin", TOOL, "--body-bytes-max", "100", "--event-bytes-max", "100"];
    let cloud = Launch::new().flags(flags).flags(["--header-timeout-ms", "100", "--body-timeout-ms", "100"]).start();
    for (system, path) in [(System::ServiceRegistry, "/serviceregistry/query"), (System::EventHandler, "/eventhandler/publish")] {
        for (status, length, expectation) in [(413, 101, ""), (413, 101, "Expect: 100-continue\r\n"), (408, 100, "")] {
            for (origin, may_read) in [(TOOL, true), (FOREIGN, false)] {
                let mut connection = cloud.connect(system);
                let head =
                    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n{expectation}Content-Length: {length}\r\n\r\n");
                connection.send(head.as_bytes()).expect("sent");
                let answer = connection.read_answer().expect("an answer");
                if may_read {
                    readable(&answer.expect_status(status), origin)
                } else {
                    // The head is enough to refuse it.
                    closed_to_pages(&answer.expect_status(403))
                }
                assert!(connection.is_closed_by_server());
            }
        }
    }
}

#[test]
fn a_page_of_another_origin_changes_nothing() {
    let cloud = cloud();
    cloud.register_system("paused", 1);
    let form = subscription("PAUSED", system("paused", 1), "/notify");
    cloud.post("/eventhandler/subscribe", &form).expect_status(200);
    let deliveries = cloud.get("/api/v1/subscriptions").expect_status(200).json();
    let id = deliveries["data"][0]["id"].as_i64().expect("an id");
    let port = cloud.address(System::Monitor).port();
    let (pause, replay) = (format!("/api/v1/subscriptions/{id}/pause"), "/api/v1/dead-letters/replay".to_owned());
    // What browsers send without asking first: no body, and a body that says to be text.
    let text = [("Content-Type", "text/plain")];
    for origin in [FOREIGN, "null", &format!("http://evil.example:{port}")] {
        for target in [&pause, &replay] {
            closed_to_pages(&ask(&cloud, System::Monitor, "POST", target, &[("Origin", origin)]).expect_status(403));
        }
        let headers = [("Origin", origin), text[0]];
        let mut connection = cloud.connect(System::Monitor);
        let body = br#"{"systemName":"x"}"#;
        connection.request("POST", "/api/v1/onboarding/grants", &headers, Some(body)).expect("an answer").expect_status(403);
    }
    let state = || cloud.get(&format!("/api/v1/subscriptions/{id}")).expect_status(200).json()["state"].clone();
    assert_ne!(state(), "paused");
    // A page of that very port, one that is listed, and who is no page.
    let own = format!("http://127.0.0.1:{port}");
    for headers in [&[("Origin", own.as_str())][..], &[("Origin", TOOL)], &[]] {
        ask(&cloud, System::Monitor, "POST", &pause, headers).expect_status(200);
        assert_eq!(state(), "paused");
        ask(&cloud, System::Monitor, "POST", &format!("/api/v1/subscriptions/{id}/resume"), headers).expect_status(200);
    }
}

/// One request under a name.
fn call_as(cloud: &Cloud, system: System, host: &str, target: &str) -> Answer {
    let mut connection = Connection::open(cloud.address(system)).expect("a connection");
    connection.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).expect("sent");
    connection.read_answer().expect("an answer")
}

#[test]
fn a_foreign_name_is_refused_on_every_port() {
    let cloud = Cloud::shared();
    for port in EVERY_PORT {
        for host in ["evil.example", "evil.example:8443", "127.0.0.1.evil.example"] {
            let refused = call_as(&cloud, port, host, &echo(port)).expect_status(421);
            assert!(refused.text().contains(host) && refused.text().contains("--host-names"), "{}", refused.text());
        }
        for host in ["", "localhost", "LOCALHOST:1", "127.0.0.1:8443", "192.168.7.9", "[::1]:8443", "bodkin", "bodkin:8443"] {
            call_as(&cloud, port, host, &echo(port)).expect_status(200);
        }
    }
}

#[test]
fn a_foreign_name_publishes_nothing() {
    let cloud = Cloud::shared();
    let body = event("REBOUND", system("rebound", 1), "x").to_string();
    let head = format!(
        "POST /eventhandler/publish HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut connection = cloud.connect(System::EventHandler);
    connection.send(format!("{head}{body}").as_bytes()).expect("sent");
    connection.read_answer().expect("an answer").expect_status(421);
    connection.request("GET", "/eventhandler/echo", &[], None).expect("the connection is still there").expect_status(200);
}

#[test]
fn named_hosts_are_taken() {
    let cloud = Launch::new().flags(["--host-names", "cloud.factory.example,other.example", "--domain-name", "main.example"]).start();
    for host in ["cloud.factory.example", "OTHER.example:8443", "main.example"] {
        call_as(&cloud, System::ServiceRegistry, host, "/serviceregistry/echo").expect_status(200);
    }
    call_as(&cloud, System::ServiceRegistry, "evil.example", "/serviceregistry/echo").expect_status(421);
    let open = Launch::new().flags(["--host-names", "*"]).start();
    call_as(&open, System::ServiceRegistry, "evil.example", "/serviceregistry/echo").expect_status(200);
}

#[test]
fn an_origin_that_is_none_is_a_usage_error() {
    for origin in ["*", "null", "localhost:3000", "http://localhost:3000/path"] {
        let refusal = Launch::new().flags(["--cors-origins", origin]).try_start().err().expect("it does not start");
        assert_eq!(refusal.code, Some(2), "{origin}: {refusal:?}");
        assert!(refusal.stderr.contains(origin), "{refusal:?}");
    }
}
