//! Graphs of a pair: a filter goes on at the node that leads next, and each event has its result there or here.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use bodkin_broker::EventId;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::nodes::{Node, Pair};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::patience::eventually;
use crate::support::sse::EventStream;

/// Means of the last four levels.
const MEANS: &str = "[graph]\nname = \"means\"\n[[supplier]]\ntopic = \"level\"\nshape = \"f64\"\nperiod_ms = 1\n\
    [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"level\"]\nwindow = 4\n\
    [[output]]\ntopic = \"mean\"\nfrom = \"mean\"\n";
/// Of neither an event may be missed. What is dispatched counts as received after two seconds only.
const TOPICS: &str = "[[topic]]\nevent_type = \"level\"\nperiod_ms = 5\ndeadline_s = 60\nloss_tolerance = 0\nretention = 132\nbroker_subscriber_max_s = 2\n\
    [[topic]]\nevent_type = \"mean\"\nperiod_ms = 5\ndeadline_s = 60\nloss_tolerance = 0\nretention = 132\nbroker_subscriber_max_s = 2\n";

/// A pair whose nodes have the graph in their configurations.
fn pair(place: &TempDir, tables: &str) -> (Pair, Node, Node, Node) {
    let path = place.path().join("means.toml");
    fs::write(&path, MEANS).expect("written");
    let (pair, witness, backup, primary) = Pair::protected_with(&format!("graphs = [\"{}\"]\n", path.display()), tables);
    let sensor = system("sensor", 1);
    primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&sensor)).unwrap().expect_status(201);
    (pair, witness, backup, primary)
}

#[track_caller]
fn publish(node: &Node, level: u64) {
    let publication = event("level", system("sensor", 1), &level.to_string());
    let status = || node.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&publication)).ok().map(|answer| answer.status);
    assert!(eventually(|| status() == Some(200)), "{}", node.said());
    // Far slower than the topic's period, which a busy machine must not make it exceed: what is faster may be lost.
    thread::sleep(Duration::from_millis(25));
}

fn means(node: &Node) -> EventStream {
    EventStream::open_on(node.connect(System::EventHandler).unwrap(), "/eventhandler/subscription?eventtype=mean&since=0", &[])
}

/// What has been heard, by name; the same name means the same result.
fn heard(streams: &[&EventStream]) -> BTreeMap<EventId, f64> {
    let mut heard = BTreeMap::new();
    for event in streams.iter().flat_map(|stream| stream.wait_for(stream.count())) {
        if event.event_type.starts_with("bodkin-") {
            continue;
        }
        let (id, mean) = (event.id.parse::<EventId>().expect("an identity"), event.data.parse::<f64>().expect("a number"));
        let other = heard.insert((id.publisher, id.incarnation, id.sequence), mean).unwrap_or(mean);
        assert!((other - mean).abs() < 1e-9, "{id} is {other} and {mean}");
    }
    let name =
        |((publisher, incarnation, sequence), mean)| (EventId { publisher, incarnation, topic: bodkin_broker::TopicId(0), sequence }, mean);
    heard.into_iter().map(name).collect()
}

#[test]
fn a_filter_goes_on_at_the_node_that_leads_next() {
    // Of a best-effort topic the state is there when its checkpoint has arrived; of one without losses when the events were answered.
    for tables in ["", TOPICS] {
        let place = TempDir::new().expect("a directory");
        let (_pair, _witness, mut backup, primary) = pair(&place, tables);
        let stream = means(&primary);
        publish(&primary, 1);
        publish(&primary, 3);
        assert_eq!(stream.wait_for(2)[1].data, "2.0");
        if tables.is_empty() {
            let arrived = || primary.gauge("bodkin_graph_checkpoints_total{graph=\"means\"}");
            // The last one comes a tenth of a second behind the last event.
            let is_last = || {
                let before = arrived();
                thread::sleep(Duration::from_millis(500));
                before > 0 && arrived() == before
            };
            assert!(eventually(is_last), "{}", primary.said());
        }
        primary.signal(Signal::SIGKILL);
        backup.served();
        let stream = means(&backup);
        publish(&backup, 8);
        let is_there = || heard(&[&stream]).values().any(|mean| (mean - 4.0).abs() < 1e-9);
        assert!(eventually(is_there), "the mean of 1, 3 and 8 is not among {:?}: {}", heard(&[&stream]), backup.said());
    }
}

#[test]
fn each_answered_event_has_its_result_here_or_there_whenever_its_leader_dies() {
    const BEFORE: u64 = 30;
    for killed_behind in [1, 7, BEFORE] {
        let place = TempDir::new().expect("a directory");
        let (_pair, _witness, mut backup, primary) = pair(&place, TOPICS);
        let here = means(&primary);
        (1..=killed_behind).for_each(|number| publish(&primary, number * number));
        primary.signal(Signal::SIGKILL);
        backup.served();
        let there = means(&backup);
        (killed_behind + 1..=killed_behind + 5).for_each(|number| publish(&backup, number * number));
        let mean = |number: u64| {
            let window = number.saturating_sub(3).max(1)..=number;
            window.clone().map(|number| (number * number) as f64).sum::<f64>() / window.count() as f64
        };
        let expected: Vec<f64> = (1..=killed_behind + 5).map(mean).collect();
        let all = || heard(&[&here, &there]).into_values().collect::<Vec<f64>>();
        let is_all = |mut all: Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all.len() == expected.len() && all.iter().zip(&expected).all(|(heard, expected)| (heard - expected).abs() < 1e-9)
        };
        assert!(eventually(|| is_all(all())), "killed behind {killed_behind}: {:?} where {expected:?} belong: {}", all(), backup.said());
    }
}
