//! The commands that talk to a running cloud, and the demo, as a person would use them.

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::arrowhead::{service, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::eventually;

/// Runs `bodkin` with the words of `line` against the cloud.
fn bodkin(cloud: &Cloud, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bodkin"));
    command.args(line.split_whitespace()).env("BODKIN_SERVICE_REGISTRY", cloud.address(System::ServiceRegistry).to_string());
    command.output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

#[track_caller]
fn done(cloud: &Cloud, line: &str) -> String {
    let output = bodkin(cloud, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn json(cloud: &Cloud, line: &str) -> Value {
    serde_json::from_str(&done(cloud, &format!("--output json {line}"))).expect("one JSON document")
}

#[test]
fn a_service_is_offered_denied_allowed_and_removed_from_the_command_line() {
    let cloud = Launch::new().start();
    let added = json(&cloud, "service add heat --system sensor --address 127.0.0.1 --port 9000 --uri /heat --metadata unit=celsius");
    assert_eq!(added["serviceUri"], "/heat");
    done(&cloud, "system add display --address 127.0.0.1 --port 9001");
    assert!(done(&cloud, "service list").lines().any(|line| line.contains("heat") && line.contains("127.0.0.1:9000")));
    assert_eq!(json(&cloud, "service query heat --metadata unit=kelvin")["serviceQueryData"], serde_json::json!([]));
    assert!(done(&cloud, "auth list").contains("nobody may use any service"));
    done(&cloud, "auth add --consumer display --provider sensor --service heat");
    let rules = json(&cloud, "auth list");
    assert_eq!((&rules["data"][0]["consumerSystem"]["systemName"], &rules["count"]), (&Value::from("display"), &Value::from(1)));
    done(&cloud, &format!("auth remove {}", rules["data"][0]["id"]));
    done(&cloud, &format!("service remove {}", added["id"]));
    done(&cloud, "system remove sensor");
    assert_eq!(json(&cloud, "auth list")["count"], 0);
    assert!(json(&cloud, "system list")["data"].as_array().expect("a list").iter().all(|row| row["systemName"] != "sensor"));
}

#[test]
fn what_is_published_from_the_command_line_is_heard_there() {
    let cloud = Launch::new().start();
    cloud.register(&service("heat", system("sensor", 9000)));
    cloud.register_system("display", 9001);
    let address = cloud.address(System::ServiceRegistry).to_string();
    let mut listener = Command::new(env!("CARGO_BIN_EXE_bodkin"));
    listener.args(["--output", "json", "event", "listen", "HOT", "--count", "2"]).env("BODKIN_SERVICE_REGISTRY", address);
    let listener = listener.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().expect("the binary starts");
    let listens = || text(&cloud.get("/metrics").body).contains("bodkin_event_subscriptions 1\n");
    assert!(eventually(listens), "the listener did not subscribe");
    done(&cloud, "event publish hot 21.5 --system sensor --metadata unit=celsius");
    done(&cloud, "event publish hot 22.5 --system sensor");
    let heard = listener.wait_with_output().expect("the listener ends");
    let payloads: Vec<Value> =
        text(&heard.stdout).lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["data"].clone()).collect();
    assert_eq!(payloads, ["21.5", "22.5"]);

    done(&cloud, "event subscribe hot --system display --notify-uri /hot --source sensor");
    let subscriptions = json(&cloud, "event subscriptions");
    assert_eq!(subscriptions["data"][0]["notifyUri"], "/hot");
    done(&cloud, "event unsubscribe hot --system display");
    assert_eq!(json(&cloud, "event subscriptions")["count"], 0);
}

#[test]
fn a_command_that_fails_says_what_to_do() {
    let cloud = Launch::new().start();
    for (line, code, says) in [
        ("system remove nobody", 1, "bodkin system list"),
        ("event publish hot 1 --system nobody", 1, "nobody"),
        ("auth add --consumer serviceregistry --provider authorization --service nothing", 1, "bodkin service list"),
        ("service add bad_name --system sensor --address 127.0.0.1 --port 9000", 1, "BAD_PAYLOAD"),
        ("service add", 2, "Usage"),
        ("nonsense", 2, "unrecognized"),
        ("service list --service-registry 127.0.0.1:1", 1, "cannot be reached"),
    ] {
        let output = bodkin(&cloud, line);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {told}");
        assert!(told.contains(says), "{line}: {told}");
    }
}

#[test]
fn the_demo_passes_its_checks_and_leaves_nothing_behind() {
    let place = tempfile::TempDir::new().expect("a temporary directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bodkin"));
    let output = command.args(["demo", "--once", "--any-port"]).env("TMPDIR", place.path()).output().expect("the binary starts");
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));
    for step in ["ready", "DENIED", "added authorization rule", "ALLOWED", "read the service", "SSE", "HTTP push", "All checks hold"] {
        assert!(told.contains(step), "{step} is missing:\n{told}");
    }
    assert_eq!(std::fs::read_dir(place.path()).expect("readable").count(), 0, "the demo left something behind");
}
