//! Conditions under which something is refused, delayed or lost show in `status`, a metric, an alert, and `/readyz`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::conditions::{all, assert_shown};
use crate::support::patience::eventually;
use crate::support::ports::{held_offset, held_port};
use crate::support::sse::{EventStream, until_live};

const ALERTS: &str = include_str!("../../../../docs/monitoring/alerts.yml");
const REFERENCE: &str = include_str!("../../../../docs/reference/metrics.md");
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// The sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The body of a test; `None` if there is none of this name.
fn body(target: &str, name: &str) -> Option<String> {
    let head = format!("fn {name}() {{");
    sources(&Path::new(TESTS).join(target)).into_iter().find_map(|path| {
        let source = fs::read_to_string(path).ok()?;
        let (_, behind) = source.split_once(&head)?;
        Some(behind.split("\n}\n").next().unwrap_or_default().to_owned())
    })
}

#[test]
fn every_condition_is_shown_in_four_places() {
    let conditions = all();
    let (_, alerts) = ALERTS.split_once("- alert: ").expect("there are alerts");
    let alerts: Vec<(&str, &str)> = alerts.split("- alert: ").filter_map(|alert| alert.split_once('\n')).collect();
    let names: BTreeSet<&str> = alerts.iter().map(|(name, _)| name.trim()).collect();
    let rows: BTreeSet<&str> = conditions.iter().map(|condition| condition.alert).collect();
    assert_eq!(rows, names, "docs/monitoring/conditions.md has a row for each alert");
    for condition in &conditions {
        let (name, rule) = alerts.iter().find(|(name, _)| name.trim() == condition.alert).expect("it has a row");
        let metric = condition.metric_name();
        // An alert may have a label where `status` has a sum: bodkin_graph_suspended and bodkin_graphs_suspended.
        let is_of_rule = rule.contains(metric) || rule.replace("_link_up", "_links_down").contains(metric) || {
            let words: Vec<&str> = metric.split('_').collect();
            words.iter().filter(|word| rule.contains(word.trim_end_matches('s'))).count() == words.len()
        };
        assert!(is_of_rule, "{name}: its rule says nothing of {metric}: {rule}");
        assert!(metric == "up" || REFERENCE.contains(&format!("`{metric}`")), "{name}: {metric} is no metric");
        let (target, test) = condition.made_by;
        let body = body(target, test).unwrap_or_else(|| panic!("{name}: there is no test {test} in {target}"));
        assert!(body.contains("assert_shown(") && body.contains(&format!("\"{}\"", condition.alert)), "{name}: {test} does not hold it");
    }
}

#[test]
fn ended_process_is_reported_down() {
    // Held, so that no other test's process listens there.
    let offset = held_offset();
    let cloud = Launch::new().port_offset(offset.get()).start();
    let monitor = cloud.address(System::Monitor);
    cloud.kill();
    assert_shown(monitor, "BodkinDown");
}

#[test]
fn events_that_wait_long_for_the_fleet_are_reported() {
    let place = tempfile::tempdir().expect("a directory");
    let (data, config) = (place.path().join("data"), place.path().join("bodkin.toml"));
    let servers = format!("nats://127.0.0.1:{}", held_port());
    fs::write(&config, format!("[fleet]\nservers = [\"{servers}\"]\nedge = \"edge-7\"\nlanes = {{ events = [\"heat\"] }}\n"))
        .expect("written");
    let launch = || Launch::new().data(&data).flags(["--config", config.to_str().expect("text")]);
    let cloud = launch().start();
    cloud.register_publisher("sensor", 1);
    cloud.publish(&event("heat", system("sensor", 1), "1"));
    assert!(cloud.stop().success());
    let cloud = launch().clock_ahead(400).start();
    assert_shown(cloud.address(System::Monitor), "BodkinFleetBehind");
}

#[test]
fn removed_event_log_is_reported() {
    let data = tempfile::tempdir().expect("a directory");
    let start = || Launch::new().data(data.path()).start();
    let cloud = start();
    cloud.register_publisher("recorder", 1);
    let lost = |cloud: &Cloud| cloud.get("/api/v1/overview").json()["numbers"]["bodkin_event_log_lost_total"].clone();
    (0..5).for_each(|number| cloud.publish(&event("measured", system("recorder", 1), &number.to_string())));
    // The database notes once a second where the log ends.
    let database = data.path().join("bodkin.sqlite");
    assert!(database.exists() && lost(&cloud) == 0);
    assert!(cloud.stop().success());
    let log = data.path().join("events").join("shard-0");
    fs::remove_dir_all(&log).expect("the log is there");
    let cloud = start();
    assert_eq!(lost(&cloud), 5, "{}", cloud.stderr());
    assert!(cloud.stderr().contains("the event log lacks events that the database knows of"), "{}", cloud.stderr());
    assert_shown(cloud.address(System::Monitor), "BodkinEventLogLost");
    let replayed = || -> Vec<String> {
        let target = "/eventhandler/subscription?eventtype=measured&since=0";
        let events = until_live(&EventStream::open(cloud.address(System::EventHandler), target, &[]));
        events
            .into_iter()
            .map(|event| if event.event_type == "bodkin-lost" { event.event_type } else { event.data.trim().to_owned() })
            .collect()
    };
    assert_eq!(replayed(), ["bodkin-lost"]);
    // A file that is removed while it is written.
    cloud.publish(&event("measured", system("recorder", 1), "5"));
    for entry in fs::read_dir(&log).expect("a directory") {
        fs::remove_file(entry.expect("an entry").path()).expect("removed");
    }
    let is_noticed = || {
        cloud.publish(&event("measured", system("recorder", 1), "6"));
        lost(&cloud).as_u64() > Some(5)
    };
    assert!(eventually(is_noticed), "{}", cloud.stderr());
    // It is counted a moment before it is logged.
    assert!(eventually(|| cloud.stderr().contains("a file of the event log was removed")), "{}", cloud.stderr());
    cloud.publish(&event("measured", system("recorder", 1), "7"));
    let told = replayed();
    assert_eq!((told.first().map(String::as_str), told.last().map(String::as_str)), (Some("bodkin-lost"), Some("7")), "{told:?}");
}
