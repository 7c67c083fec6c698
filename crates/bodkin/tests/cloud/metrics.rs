//! `/metrics` keeps Prometheus's rules of naming, and what is watched is measured.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::cloud::{Cloud, Launch, System};

const ALERTS: &str = include_str!("../../../../docs/monitoring/alerts.yml");
const RUNBOOK: &str = include_str!("../../../../docs/monitoring/README.md");
const GRAFANA: &str = include_str!("../../../../docs/monitoring/grafana.json");
/// What only a node of a pair has, one that shares its database, or one that forwards.
const OF_SEVERAL: [&str; 14] = [
    "bodkin_node_events_connected",
    "bodkin_nodes_silent",
    "bodkin_nodes_other_release",
    "bodkin_database_clock_difference_seconds",
    "bodkin_fleet_connected",
    "bodkin_fleet_stopped_lanes",
    "bodkin_fleet_lost_total",
    "bodkin_fleet_lost_by_stream_total",
    "bodkin_database_connected",
    "bodkin_pair_leads",
    "bodkin_pair_protected",
    "bodkin_pair_unreached",
    "bodkin_pair_witness_connected",
    "bodkin_pair_epoch",
];
/// Prometheus's base units stand for these.
const NO_UNITS: [&str; 8] = ["nanoseconds", "microseconds", "milliseconds", "ms", "us", "minutes", "kilobytes", "percent"];

/// The metrics of a cloud, and of what kind each is.
fn kinds(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

fn metrics(cloud: &Cloud) -> String {
    cloud.connect(System::Monitor).request("GET", "/metrics", &[], None).expect("an answer").expect_status(200).text().to_owned()
}

#[test]
fn names_are_as_prometheus_asks_for() {
    let cloud = Launch::new().start();
    let topic = json!({"event_type": "press", "period_ms": 100, "deadline_ms": 100});
    cloud.post("/api/v1/topics", &topic).expect_status(201);
    let text = metrics(&cloud);
    let kinds = kinds(&text);
    assert!(kinds.len() > 40, "{kinds:?}");
    for (name, kind) in &kinds {
        assert!(name.starts_with("bodkin_") && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == "counter", "{name} is a {kind}");
        assert!(!name.split('_').any(|word| NO_UNITS.contains(&word)), "{name}: base units are seconds and bytes");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help");
    }
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').expect("a series and its value");
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        assert!(seen.insert(series), "{series} is told twice");
        let name = series.split('{').next().expect("a name");
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(kinds.contains_key(family) || kinds.contains_key(name), "{name} has no type");
    }
    assert!(text.contains("bodkin_topic_accepted_total{event_type=\"PRESS\"} 0\n"), "{text}");
}

/// Words that begin as our metrics do.
fn named(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let names = text.match_indices("bodkin_").map(|(at, _)| text[at..].split(|c| !is_name(c)).next().expect("a name"));
    names.map(|name| name.strip_suffix("_bucket").unwrap_or(name)).collect()
}

#[test]
fn what_is_watched_is_measured() {
    let cloud = Cloud::shared();
    let text = metrics(&cloud);
    let kinds = kinds(&text);
    for (file, text) in [("alerts.yml", ALERTS), ("grafana.json", GRAFANA)] {
        let named = named(text);
        assert!(named.len() > 8, "{file}: {named:?}");
        let missing: Vec<&&str> = named.iter().filter(|name| !kinds.contains_key(**name) && !OF_SEVERAL.contains(name)).collect();
        assert!(missing.is_empty(), "{file} names {missing:?}, which are no metrics");
    }
    // Whoever is woken by an alert is told what it means and what to do.
    let (_, alerts) = ALERTS.split_once("- alert: ").expect("there are alerts");
    for alert in alerts.split("- alert: ") {
        for key in ["expr:", "severity:", "summary:", "description:"] {
            let told = alert.lines().find_map(|line| line.split_once(key)).map(|(_, value)| value.trim());
            assert!(told.is_some_and(|value| value.len() > 3), "no {key} in the alert {alert}");
        }
    }
    // The page has a row of what to look at and do for each, and for none that is not there.
    let rows: BTreeSet<&str> =
        RUNBOOK.lines().filter_map(|line| line.strip_prefix("| `Bodkin")?.split_once('`')).map(|(name, _)| name).collect();
    let names: BTreeSet<&str> = alerts.split("- alert: ").filter_map(|alert| alert.lines().next()?.trim().strip_prefix("Bodkin")).collect();
    assert_eq!(rows, names, "docs/monitoring/README.md says what to do for each alert");
    for row in RUNBOOK.lines().filter(|line| line.starts_with("| `Bodkin")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| cell.len() > 10), "an alert, what it means, what to look at and do: {row}");
    }
    let dashboard: Value = serde_json::from_str(GRAFANA).expect("JSON");
    assert!(dashboard["panels"].as_array().is_some_and(|panels| panels.iter().all(|panel| panel["targets"][0]["expr"].is_string())));
}
