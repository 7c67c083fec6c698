//! The dashboard's files, and what its pages ask of port 8440.

use serde_json::json;

use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Answer;

fn get(cloud: &Cloud, target: &str, headers: &[(&str, &str)]) -> Answer {
    cloud.connect(System::Monitor).request("GET", target, headers, None).expect("an answer")
}

#[test]
fn files_are_sent_once() {
    let cloud = Cloud::shared();
    for (target, content_type) in [
        ("/", "text/html;charset=UTF-8"),
        ("/dashboard.js", "text/javascript;charset=UTF-8"),
        ("/dashboard.css", "text/css;charset=UTF-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/licences.txt", "text/plain;charset=UTF-8"),
    ] {
        let whole = get(&cloud, target, &[]).expect_status(200);
        assert_eq!(whole.header("content-type"), Some(content_type));
        assert_eq!(whole.header("cache-control"), Some("no-cache"), "it may be kept, and is asked for each time");
        let tag = whole.header("etag").expect("an entity tag").to_owned();
        let mut connection = cloud.connect(System::Monitor);
        let again = connection.request("GET", target, &[("If-None-Match", &tag)], None).expect("an answer").expect_status(304);
        assert_eq!((again.header("etag"), again.header("content-length"), again.body.len()), (Some(tag.as_str()), None, 0), "{target}");
        // Nothing stands between this answer and the next.
        connection.request("GET", target, &[("If-None-Match", "\"another\"")], None).expect("an answer").expect_status(200);
    }
    let policy = get(&cloud, "/", &[]).header("content-security-policy").expect("a policy").to_owned();
    let event_handler = cloud.address(System::EventHandler).port();
    assert!(policy.contains(&format!("connect-src 'self' *:{event_handler};")), "{policy}");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
}

#[test]
fn management_is_the_same_on_both_ports() {
    let cloud = Launch::new().start();
    cloud.register_system("dashboard", 1);
    for (own, target) in [
        (System::ServiceRegistry, "/serviceregistry/mgmt/systems?sort_field=systemName&direction=DESC"),
        (System::ServiceRegistry, "/serviceregistry/mgmt"),
        (System::ServiceRegistry, "/serviceregistry/mgmt/nothing/here"),
        (System::Authorization, "/authorization/mgmt/intracloud"),
        (System::Orchestrator, "/orchestrator/mgmt/store/0"),
        (System::EventHandler, "/eventhandler/mgmt/subscriptions"),
    ] {
        let there = cloud.connect(own).request("GET", target, &[], None).expect("an answer");
        let here = get(&cloud, target, &[]);
        let body = |answer: &Answer| {
            (answer.status, answer.json().as_object().map(|body| (body.get("data").cloned(), body.get("errorMessage").cloned())))
        };
        assert_eq!(body(&here), body(&there), "{target}");
    }
    let made = json!({"serviceDefinition": "made-here"}).to_string();
    let headers = [("Content-Type", "application/json")];
    let mut monitor = cloud.connect(System::Monitor);
    monitor.request("POST", "/serviceregistry/mgmt/services", &headers, Some(made.as_bytes())).expect("an answer").expect_status(201);
    let audit = get(&cloud, "/api/v1/audit?kind=change", &[]).expect_status(200).json();
    assert_eq!(audit["data"][0]["what"], "POST /serviceregistry/mgmt/services");
    // What is not management is not there.
    for target in ["/serviceregistry/echo", "/serviceregistry/mgmtx", "/eventhandler/publish", "/mgmt"] {
        get(&cloud, target, &[]).expect_status(404);
    }
}

#[test]
fn the_overview_has_the_numbers_of_the_metrics() {
    let cloud = Launch::new().start();
    cloud.register_system("overview", 1);
    cloud.publish(&event("OVERVIEW", system("overview", 1), "x"));
    let overview = get(&cloud, "/api/v1/overview", &[]).expect_status(200).json();
    let numbers = overview["numbers"].as_object().expect("numbers");
    assert_eq!(numbers["bodkin_events_published_total"], 1);
    assert_eq!(numbers["bodkin_systems"], 5, "the core systems and one more");
    assert_eq!(numbers["bodkin_topic_late_total"], 0);
    let metrics = get(&cloud, "/metrics", &[]).expect_status(200).text().to_owned();
    for name in numbers.keys().filter(|name| !name.starts_with("bodkin_topic_")) {
        assert!(metrics.lines().any(|line| line.split(' ').next() == Some(name)), "{name} is no metric");
    }
    for line in metrics.lines().filter(|line| !line.starts_with('#') && !line.contains('{')) {
        let name = line.split(' ').next().expect("a name");
        assert!(numbers.contains_key(name) || name.starts_with("bodkin_stage"), "{name} is not in the overview");
    }
    for (name, system) in
        [("serviceregistry", System::ServiceRegistry), ("eventhandler", System::EventHandler), ("monitor", System::Monitor)]
    {
        assert_eq!(overview["ports"][name], cloud.address(system).port(), "{name}");
    }
    assert_eq!((&overview["secure"], &overview["version"]), (&json!(false), &json!(env!("CARGO_PKG_VERSION"))));
}
