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
