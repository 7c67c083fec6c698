//! `GET {base}/mgmt/logs` of every system (reference section 1.6).

use serde_json::Value;
use tempfile::TempDir;

use super::table::{BAD_PAYLOAD, INVALID_PARAMETER, Row, check};
use crate::support::arrowhead::{list, number, texts};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Connection;
use crate::support::patience::eventually_some;

fn path(system: System) -> String {
    format!("/{}/mgmt/logs", system.name())
}

/// The answer, once it has an entry that says `part`.
#[track_caller]
fn logs_with(cloud: &Cloud, target: &str, part: &str) -> Value {
    let says = |entry: &Value| entry["message"].as_str().is_some_and(|message| message.contains(part));
    let found = eventually_some(|| {
        let answer = cloud.get(target).expect_status(200).json();
        list(&answer, "/data").iter().any(says).then_some(answer)
    });
    found.unwrap_or_else(|| panic!("{target} has no '{part}': {}", cloud.get(target).text()))
}

/// Makes a warning: a request under a foreign name.
fn warn(cloud: &Cloud) {
    let mut connection = Connection::open(cloud.address(System::Orchestrator)).expect("a connection");
    connection.send(b"GET /orchestrator/echo HTTP/1.1\r\nHost: evil.example\r\n\r\n").expect("sent");
    connection.read_answer().expect("an answer").expect_status(421);
}

#[test]
fn every_system_tells_its_own_entries_and_those_of_the_process() {
    let cloud = Launch::new().start();
    warn(&cloud);
    for system in System::CORE {
        let answer = logs_with(&cloud, &path(system), "evil.example");
        let entries = list(&answer, "/data");
        assert_eq!(number(&answer, "/count"), entries.len() as i64);
        let serving: Vec<&Value> = entries.iter().filter(|entry| entry["message"].as_str().unwrap().starts_with("serving")).collect();
        // Bodkin's own port, and port and path of ZMTP, belong to no system and so to every one.
        assert_eq!(serving.len(), 4, "{answer}");
        assert!(serving[0]["message"].as_str().unwrap().contains(&cloud.address(system).to_string()));
        for entry in entries {
            assert_eq!(entry["systemName"], system.name().to_uppercase());
            let mut members: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
            members.sort_unstable();
            assert_eq!(members, ["entryDate", "exception", "logId", "logLevel", "logger", "message", "systemName"]);
            assert!(is_uuid(entry["logId"].as_str().unwrap()), "{entry}");
            assert!(entry["entryDate"].as_str().unwrap().ends_with('Z'));
        }
    }
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

#[test]
fn entries_are_filtered_by_level_logger_and_time() {
    let cloud = Launch::new().start();
    warn(&cloud);
    let logs = path(System::Orchestrator);
    let all = logs_with(&cloud, &logs, "evil.example");
    let levels = |target: &str| texts(list(&cloud.get(target).expect_status(200).json(), "/data"), "/logLevel");
    assert!(levels(&logs).contains(&"INFO".to_owned()));
    assert_eq!(levels(&format!("{logs}?level=warn")), ["WARN"], "that level and more severe");
    assert_eq!(levels(&format!("{logs}?level=INFO")), levels(&logs));
    assert!(levels(&format!("{logs}?level=ERROR")).is_empty() && levels(&format!("{logs}?level=OFF")).is_empty());
    assert_eq!(levels(&format!("{logs}?logger=host::GATE")), ["WARN"], "a part of the logger's name");
    let warned = list(&all, "/data").iter().find(|entry| entry["logLevel"] == "WARN").unwrap()["entryDate"].as_str().unwrap().to_owned();
    assert!(levels(&format!("{logs}?from={warned}")).contains(&"WARN".to_owned()));
    assert!(levels(&format!("{logs}?from=2099-01-01T00:00:00Z")).is_empty());
    assert!(levels(&format!("{logs}?to=2001-01-01T00:00:00Z")).is_empty());
}

#[test]
fn entries_page_and_sort() {
    let cloud = Launch::new().start();
    warn(&cloud);
    let logs = path(System::EventHandler);
    let all = logs_with(&cloud, &logs, "evil.example");
    let ids = |target: &str| texts(list(&cloud.get(target).expect_status(200).json(), "/data"), "/logId");
    let in_order = ids(&logs);
    assert!(in_order.is_sorted() && in_order.len() >= 3, "the default is logId: {in_order:?}");
    assert_eq!(texts(list(&all, "/data"), "/logId"), in_order);
    assert_eq!(ids(&format!("{logs}?page=1&item_per_page=2")), in_order[2..in_order.len().min(4)]);
    let backwards: Vec<String> = in_order.iter().rev().cloned().collect();
    assert_eq!(ids(&format!("{logs}?direction=DESC")), backwards);
    assert_eq!(ids(&format!("{logs}?sort_field=entryDate&direction=desc")), backwards);
    for (field, pointer) in [("logger", "/logger"), ("system", "/systemName")] {
        let answer = cloud.get(&format!("{logs}?sort_field={field}")).expect_status(200).json();
        assert!(texts(list(&answer, "/data"), pointer).is_sorted(), "{field}");
    }
    let gravest = cloud.get(&format!("{logs}?sort_field=logLevel&direction=DESC&page=0&item_per_page=1")).json();
    assert_eq!(gravest["data"][0]["logLevel"], "WARN");
    assert_eq!(number(&gravest, "/count"), in_order.len() as i64, "all that match, not those of the page");
}

#[test]
fn wrong_parameters_are_refused() {
    let cloud = Cloud::shared();
    for system in System::CORE {
        let path = path(system);
        let get = |parameters: &str| Row::get(parameters.to_owned(), format!("{path}?{parameters}"));
        check(
            &cloud,
            &[
                get("level=LOUD").bad_payload(path.clone()),
                get("from=yesterday").bad_payload(path.clone()),
                get("to=2031-01-01T00:00:00%2B25:00").bad_payload(path.clone()),
                // A `+` that is not escaped is a blank.
                get("to=2031-01-01T00:00:00+01:00").bad_payload(path.clone()),
                get("from=2031-01-02T00:00:00Z&to=2031-01-01T00:00:00Z").bad_payload(path.clone()),
                get("page=0").refused(400, BAD_PAYLOAD),
                get("direction=UP").refused(400, BAD_PAYLOAD),
                get("sort_field=message").refused(400, INVALID_PARAMETER),
                get("page=first&item_per_page=1").empty(400),
            ],
        );
    }
}

#[test]
fn entries_survive_a_restart_and_are_limited() {
    let place = TempDir::new().expect("a temporary directory");
    let start = || Launch::new().data(place.path()).flags(["--log-entries-max", "8"]).start();
    let cloud = start();
    warn(&cloud);
    assert!(cloud.stop().success());
    let cloud = start();
    let logs = format!("{}?direction=DESC", path(System::Authorization));
    let answer = logs_with(&cloud, &logs, "stopping");
    assert!(list(&answer, "/data").iter().any(|entry| entry["message"].as_str().unwrap().contains("evil.example")), "{answer}");
    // Five entries at a start and one at a stop: this one's oldest are gone when the second start's are there.
    let kept = eventually_some(|| {
        let answers = System::CORE.map(|system| cloud.get(&path(system)).expect_status(200).json());
        let mut ids: Vec<String> = answers.iter().flat_map(|answer| texts(list(answer, "/data"), "/logId")).collect();
        ids.sort_unstable();
        ids.dedup();
        (ids.len() == 8).then_some(ids)
    });
    assert!(kept.is_some(), "the second start's entries did not displace the first's");
}
