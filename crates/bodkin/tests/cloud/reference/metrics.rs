//! Every metric of `/metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bodkin_host::node_events::CrossingCounts;
use bodkin_host::shared;
use bodkin_store::shared::{Nodes, Standing};
use serde_json::json;

use super::{cell, page};
use crate::pair::nodes::Pair;
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::ports::held_offset;
use crate::support::secure::{Client, SecureCloud, put_trust};

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

/// Adds the metrics of nodes that share a database, and send each other events: not every machine has the servers for that.
fn collect_of_several(metrics: &mut BTreeMap<String, Metric>) {
    let nodes = Nodes { rows: Vec::new(), read_at: Instant::now(), own: String::new(), clock_ahead_us: 0 };
    let (certificates_exchanged, audit_copied) = (Some(Duration::ZERO), Some(Duration::ZERO));
    let (nodes, staleness, round_trip) = (Some(Arc::new(nodes)), None, Some(Duration::ZERO));
    let (number, losses, setbacks) = (0, 0, 0);
    let standing = Standing {
        number,
        away: None,
        losses,
        setbacks,
        staleness,
        round_trip,
        is_keeper: false,
        nodes,
        certificates_exchanged,
        audit_copied,
    };
    let counts = CrossingCounts::default();
    let gauges = shared::gauges(&standing).into_iter().chain(counts.gauges()).map(|number| ("gauge", number));
    let counters = shared::counters(&standing).into_iter().chain(counts.counters()).map(|number| ("counter", number));
    for (kind, (name, help, _)) in gauges.chain(counters) {
        metrics.insert(name.to_owned(), Metric { kind: kind.to_owned(), help: help.to_owned(), ..Metric::default() });
    }
}

#[test]
fn every_metric_is_in_the_reference() {
    let operator = Client::system("sysop");
    let of_secure = |cloud: &Cloud| operator.expect(cloud, "GET", "/metrics", None, 200).text();
    // Nobody listens there.
    let place = tempfile::TempDir::new().expect("a temporary directory");
    let fleet = place.path().join("bodkin.toml");
    std::fs::write(
        &fleet,
        "[fleet]\nservers = [\"nats://127.0.0.1:9\"]\nedge = \"edge\"\nfrom_fleet = [\"setpoint\"]\nlanes = { events = [\"heat\"] }\n",
    )
    .expect("written");
    let fleet = fleet.to_str().expect("a path is text");
    put_trust(&place.path().join("trust"));
    // Ports that are known, as those of tunnels are then.
    let offset = held_offset();
    let launch = Launch::new().secure().data(place.path()).port_offset(offset.get());
    let secure =
        launch.flags(["--relay-listen", "127.0.0.1:0", "--graphs", GRAPH, "--otlp-url", "http://127.0.0.1:9", "--config", fleet]).start();
    let topic = json!({"event_type": "HOT", "period_ms": 1000, "deadline_ms": 1000});
    operator.expect(&secure, "POST", "/api/v1/topics", Some(&topic), 201);
    let (_pair, _witness, _backup, primary) = Pair::protected();
    let of_primary = primary.call(System::Monitor, "GET", "/metrics", None).expect("an answer").expect_status(200).text();

    let mut metrics = BTreeMap::new();
    collect(&of_secure(&SecureCloud::shared().cloud), true, &mut metrics);
    collect(&of_secure(&secure), false, &mut metrics);
    collect(&of_primary, false, &mut metrics);
    collect_of_several(&mut metrics);
    assert!(Path::new(GRAPH).exists() && metrics.len() > 60, "{:?}", metrics.keys());
    let mut text = "`GET /metrics` of Bodkin's own port, in Prometheus's text form; in secure mode any system of the cloud may read it. Times are in seconds and sizes in \
        bytes. Metrics with a star are there only where there is what they tell of: a pair, a relay inside the cloud, ports for tunnels, a fleet, a collector of traces, nodes that share a database and send each other events. How they belong together is on \
        [the monitor's page](../formats/monitor.md). What to watch, with alert rules and a Grafana \
        dashboard: [monitoring](../monitoring/README.md).\n\n| metric | kind | labels | |\n|---|---|---|---|\n"
        .to_owned();
    for (name, metric) in &metrics {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let star = if metric.is_everywhere { "" } else { " \\*" };
        text.push_str(&format!("| `{name}`{star} | {} | {} | {} |\n", metric.kind, labels.join(", "), cell(&metric.help)));
    }
    page("metrics.md", "Metrics", &text);
}
