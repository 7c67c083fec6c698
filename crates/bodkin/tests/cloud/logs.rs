//! The log for programs, as the program writes it (`docs/formats/logs.md`).

use std::net::TcpStream;
use std::path::Path;

use bodkin_arrowhead::utc::UtcTime;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::arrowhead::{service, system};
use crate::support::cloud::{Launch, System};
use crate::support::patience::eventually;

const MEMBERS: [&str; 5] = ["fields", "level", "message", "target", "time"];
const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

/// The object of a line.
#[track_caller]
fn entry(line: &str) -> Value {
    let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let members = entry.as_object().unwrap_or_else(|| panic!("no object: {line}"));
    assert!(members.keys().eq(MEMBERS), "{line}");
    assert!(LEVELS.iter().any(|level| entry["level"] == *level), "{line}");
    let time = entry["time"].as_str().expect("a text");
    assert!(UtcTime::parse(time).is_ok() && time.ends_with('Z'), "{line}");
    assert!(entry["target"].as_str().is_some_and(|target| target.starts_with("bodkin")), "{line}");
    assert!(entry["message"].as_str().is_some_and(|message| !message.is_empty()), "{line}");
    let fields = entry["fields"].as_object().expect("an object");
    assert!(fields.values().all(|value| !value.is_array() && !value.is_object()), "{line}");
    entry
}

#[test]
fn malformed_request_has_its_reason_in_a_header_and_the_log() {
    let cloud = Launch::new().start();
    let send = |system: System, method: &str, target: &str, content_type: &str, body: Option<&[u8]>| {
        let headers: &[(&str, &str)] = if body.is_some() { &[("Content-Type", content_type)] } else { &[] };
        cloud.connect(system).request(method, target, headers, body).expect("an answer")
    };
    let json = "application/json";
    type Case<'c> = (System, &'c str, &'c str, &'c str, Option<&'c [u8]>, u16, &'c str);
    let cases: [Case<'_>; 7] = [
        (System::ServiceRegistry, "POST", "/serviceregistry/register", json, Some(b"{\"a\": }"), 400, "expected value at line 1 column 7"),
        (System::ServiceRegistry, "POST", "/serviceregistry/query", "text/plain", Some(b"{}"), 415, "Content-Type is 'text/plain'"),
        (System::ServiceRegistry, "GET", "/serviceregistry/mgmt/systems/x", json, None, 400, "the id in the path is not a number"),
        (System::Authorization, "POST", "/authorization/mgmt/intracloud", json, Some(b"[]"), 400, "expected an object"),
        (System::Orchestrator, "GET", "/orchestrator/mgmt/store?page=x&item_per_page=1", json, None, 400, "'page' is not a number"),
        (System::EventHandler, "POST", "/eventhandler/publish", json, Some(b"{\"eventType\""), 400, "EOF while parsing"),
        (System::EventHandler, "DELETE", "/eventhandler/unsubscribe?system_name=a", json, None, 400, "'event_type' is missing"),
    ];
    for (system, method, target, content_type, body, status, reason) in cases {
        let answer = send(system, method, target, content_type, body).expect_status(status);
        assert_eq!(answer.text(), "", "{target}");
        assert!(answer.header("bodkin-reason").is_some_and(|told| told.contains(reason)), "{target}: {:?}", answer.headers);
    }
    // One line a minute for each system, whatever is sent.
    (0..20).for_each(|_| drop(send(System::ServiceRegistry, "POST", "/serviceregistry/register", json, Some(b"{"))));
    (0..20).for_each(|_| drop(send(System::EventHandler, "POST", "/eventhandler/publish", json, Some(b"{"))));
    let lines = || cloud.stderr().lines().filter(|line| line.contains("malformed request rejected")).map(str::to_owned).collect::<Vec<_>>();
    assert!(eventually(|| lines().len() >= 5), "{}", cloud.stderr());
    // The Event Handler's port has two: what the shard answers and what the control plane answers.
    assert_eq!(lines().len(), 5, "{}", cloud.stderr());
    let said = cloud.stderr();
    assert!(said.contains("expected value at line 1 column 7") && said.contains("/serviceregistry/register"), "{said}");
}

#[test]
fn every_line_of_a_cloud_is_one_object_from_its_start_to_its_end() {
    // Nobody listens there.
    let launch = Launch::new().flags(["--log", "debug", "--otlp-url", "http://127.0.0.1:9"]).env("BODKIN_LOG_FORMAT", "json");
    let cloud = launch.start();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let cloud = &cloud;
            scope.spawn(move || cloud.register(&service(&format!("logged-{number}"), system("logged", 4000 + number))));
        }
    });
    let says = |message: &str| cloud.stderr().lines().any(|line| line.contains(message));
    assert!(eventually(|| says("traces are told")), "{}", cloud.stderr());
    cloud.signal(Signal::SIGTERM);
    assert!(eventually(|| TcpStream::connect(cloud.address(System::Monitor)).is_err()));
    let said = cloud.stderr();
    let entries: Vec<Value> = said.lines().map(entry).collect();
    let traces = entries.iter().find(|entry| entry["message"] == "traces are told").expect("it was said");
    assert_eq!((&traces["level"], &traces["fields"]["collector"]), (&"INFO".into(), &"http://127.0.0.1:9/v1/traces".into()));
    let serving: Vec<&Value> =
        entries.iter().filter(|entry| entry["message"] == "serving").map(|entry| &entry["fields"]["system"]).collect();
    for system in ["serviceregistry", "eventhandler", "monitor"] {
        assert!(serving.contains(&&system.into()), "{system}: {said}");
    }
}

/// What ends a command is for whoever has started it.
#[test]
fn why_a_cloud_does_not_start_is_one_line_of_text_behind_the_log() {
    let refusal = Launch::new().data(Path::new("/proc/nothing")).flags(["--log-format", "json", "--log", "info"]).try_start();
    let Err(refusal) = refusal else { panic!("no folder can be made there") };
    let (log, last) = refusal.stderr.trim_end().rsplit_once('\n').expect("it says what it has done, and why it ends");
    assert!(last.starts_with("bodkin: cannot use the data directory /proc/nothing"), "{last}");
    log.lines().for_each(|line| _ = entry(line));
}
