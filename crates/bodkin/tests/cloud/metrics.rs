//! `/metrics` keeps Prometheus's rules of naming, and what is watched is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::cloud::{Cloud, Launch, System};

const ALERTS: &str = include_str!("../../../../docs/monitoring/alerts.yml");
const RUNBOOK: &str = include_str!("../../../../docs/monitoring/README.md");
const GRAFANA: &str = include_str!("../../../../docs/monitoring/grafana.json");
/// What only some have is in it too: nodes of a pair, those that share a database, or forward. A test makes it of the binary.
const REFERENCE: &str = include_str!("../../../../docs/reference/metrics.md");
/// Where metrics get their names.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/src");
/// Prometheus's base units stand for these.
const NO_UNITS: [&str; 8] = ["nanoseconds", "microseconds", "milliseconds", "ms", "us", "minutes", "kilobytes", "percent"];

/// The metrics of a cloud, and of what kind each is.
fn kinds(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

fn metrics(cloud: &Cloud) -> String {
    cloud.connect(System::Monitor).request("GET", "/metrics", &[], None).expect("an answer").expect_status(200).text().to_owned()
}

/// The rows of the reference: name, kind, labels and meaning.
fn rows() -> Vec<[&'static str; 4]> {
    let rows = REFERENCE.lines().filter(|line| line.starts_with("| `bodkin_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, kind, labels, help] = cells[..] else { panic!("{row}") };
        [name.trim_end_matches(" \\*").trim_matches('`'), kind, labels, help]
    })
    .collect()
}

#[test]
fn names_are_as_prometheus_asks_for() {
    let rows = rows();
    assert!(rows.len() > 140, "{}", rows.len());
    for [name, kind, _, help] in rows {
        assert!(name.starts_with("bodkin_") && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        assert!(!name.split('_').any(|word| NO_UNITS.contains(&word)), "{name}: base units are seconds and bytes");
        assert!(help.len() > 8, "{name} has no help");
    }
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The reference is made of running nodes: a metric that none of those had would be in no list.
#[test]
fn every_name_in_the_sources_is_in_the_reference() {
    let known: BTreeSet<&str> = rows().into_iter().map(|[name, ..]| name).collect();
    let mut count = 0;
    for path in files(Path::new(SOURCES)).iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        let source = fs::read_to_string(path).expect("a source");
        for name in source.split('"').filter(|text| text.starts_with("bodkin_") && named(text).contains(text)) {
            assert!(known.contains(name), "{name} of {} is not in docs/reference/metrics.md", path.display());
            count += 1;
        }
    }
    assert!(count > 120, "{count}");
}

#[test]
fn every_series_is_told_once_and_has_its_kind() {
    let cloud = Launch::new().start();
    let topic = json!({"event_type": "press", "period_ms": 100, "deadline_ms": 100});
    cloud.post("/api/v1/topics", &topic).expect_status(201);
    let text = metrics(&cloud);
    let kinds = kinds(&text);
    assert!(kinds.len() > 40, "{kinds:?}");
    for name in kinds.keys() {
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
    let known: BTreeSet<&str> = rows().into_iter().map(|[name, ..]| name).collect();
    for (file, text) in [("alerts.yml", ALERTS), ("grafana.json", GRAFANA)] {
        let named = named(text);
        assert!(named.len() > 8, "{file}: {named:?}");
        let missing: Vec<&&str> = named.iter().filter(|name| !known.contains(**name)).collect();
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
