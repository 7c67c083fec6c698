//! Every metric of `/metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::json;

use super::{cell, page};
use crate::pair::nodes::Pair;
use crate::support::cloud::System;
use crate::support::secure::{Client, SecureCloud};

/// A graph that is there, so that metrics of graphs have their labels.
const GRAPH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo/processor.toml");

#[derive(Default)]
struct Metric {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
    /// Whether every cloud has it.
    is_everywhere: bool,
}

/// Adds the metrics of a node's text.
fn collect(text: &str, is_everywhere: bool, metrics: &mut BTreeMap<String, Metric>) {
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|line| line.split_once(' ')) {
            let metric = metrics.entry(name.to_owned()).or_default();
            metric.help = help.to_owned();
            metric.is_everywhere |= is_everywhere;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            metrics.get_mut(name).expect("its help is in front").kind = kind.to_owned();
        } else if let Some((name, rest)) = line.split_once('{') {
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end).filter(|name| metrics.contains_key(*name)));
            let labels =
                rest.split("=\"").filter_map(|part| part.rsplit(['"', ',', '{']).next()).filter(|label| !label.contains(['}', ' ']));
            metrics.get_mut(family.unwrap_or(name)).expect("its help is in front").labels.extend(labels.map(str::to_owned));
        }
    }
}

#[test]
fn every_metric_is_in_the_reference() {
    let operator = Client::system("sysop");
    let of_secure = |cloud: &SecureCloud| operator.expect(&cloud.cloud, "GET", "/metrics", None, 200).text();
    // Nobody listens there.
    let place = tempfile::TempDir::new().expect("a temporary directory");
    let fleet = place.path().join("bodkin.toml");
    std::fs::write(&fleet, "[fleet]\nservers = [\"nats://127.0.0.1:9\"]\nedge = \"edge\"\n").expect("written");
    let fleet = fleet.to_str().expect("a path is text");
    let secure =
        SecureCloud::start(["--relay-listen", "127.0.0.1:0", "--graphs", GRAPH, "--otlp-url", "http://127.0.0.1:9", "--config", fleet]);
    let topic = json!({"event_type": "HOT", "period_ms": 1000, "deadline_ms": 1000});
    operator.expect(&secure.cloud, "POST", "/api/v1/topics", Some(&topic), 201);
    // It leads by itself, for it knows of no witness.
    let pair = Pair::new();
    let mut primary = pair.primary_by("127.0.0.1:9".parse().expect("an address"));
    primary.served();
    let of_primary = primary.call(System::Monitor, "GET", "/metrics", None).expect("an answer").expect_status(200).text();

    let mut metrics = BTreeMap::new();
    collect(&of_secure(&SecureCloud::shared()), true, &mut metrics);
    collect(&of_secure(&secure), false, &mut metrics);
    collect(&of_primary, false, &mut metrics);
    assert!(Path::new(GRAPH).exists() && metrics.len() > 60, "{:?}", metrics.keys());
    let mut text = "`GET /metrics` of Bodkin's own port, in Prometheus's text form; in secure mode any system of the cloud may read it. Times are in seconds and sizes in \
        bytes. Metrics with a star are there only where there is what they tell of: a pair, a relay inside the cloud, a fleet, a collector of traces. Those of a database that nodes share (`bodkin_database_*`) are \
        in [the monitor's page](../formats/monitor.md). What to watch, with alert rules and a Grafana \
        dashboard: [monitoring](../monitoring/README.md).\n\n| metric | kind | labels | |\n|---|---|---|---|\n"
        .to_owned();
    for (name, metric) in &metrics {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let star = if metric.is_everywhere { "" } else { " \\*" };
        text.push_str(&format!("| `{name}`{star} | {} | {} | {} |\n", metric.kind, labels.join(", "), cell(&metric.help)));
    }
    page("metrics.md", "Metrics", &text);
}
