//! Graphs of a pair: a filter goes on at the node that leads next, and each event has its result there or here.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use bodkin_broker::EventId;
use bodkin_client::realtime::{Brokers, RealtimePublisher, Retention, WhenFull};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::nodes::{Node, Pair};
use crate::real_time_client::{Hears, required, until};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::patience::{eventually, eventually_some};
use crate::support::sse::EventStream;

/// Means of the last four levels. On a busy machine a level may wait for its worker longer than until the next one, which is not to take its place.
const MEANS: &str = "[graph]\nname = \"means\"\nreplace_queued = false\n[[supplier]]\ntopic = \"level\"\nshape = \"f64\"\nperiod_ms = 1\n\
    [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"level\"]\nwindow = 4\n\
    [[output]]\ntopic = \"mean\"\nfrom = \"mean\"\n";
/// Of neither an event may be missed. What is dispatched counts as received after two seconds only.
const TOPICS: &str = "[[topic]]\nevent_type = \"level\"\nperiod_ms = 5\ndeadline_s = 60\nloss_tolerance = 0\nretention = 132\nbroker_subscriber_max_s = 2\n\
    [[topic]]\nevent_type = \"mean\"\nperiod_ms = 5\ndeadline_s = 60\nloss_tolerance = 0\nretention = 132\nbroker_subscriber_max_s = 2\n";

/// A pair whose nodes have these graphs in their configurations.
fn pair_with(place: &TempDir, graphs: &[&str], tables: &str) -> (Pair, Node, Node, Node) {
    let write = |(at, text): (usize, &&str)| {
        let path = place.path().join(format!("graph-{at}.toml"));
        fs::write(&path, text).expect("written");
        format!("\"{}\"", path.display())
    };
    let files: Vec<String> = graphs.iter().enumerate().map(write).collect();
    let (pair, witness, backup, primary) = Pair::protected_with(&format!("graphs = [{}]\n", files.join(", ")), tables);
    register(&primary, "sensor");
    (pair, witness, backup, primary)
}

fn pair(place: &TempDir, tables: &str) -> (Pair, Node, Node, Node) {
    pair_with(place, &[MEANS], tables)
}

#[track_caller]
fn register(node: &Node, name: &str) {
    let form = system(name, 1);
    node.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&form)).unwrap().expect_status(201);
}

#[track_caller]
fn publish(node: &Node, level: u64) {
    publish_as(node, "sensor", level);
    // Far slower than the topic's period, which a busy machine must not make it exceed: what is faster may be lost.
    thread::sleep(Duration::from_millis(25));
}

#[track_caller]
fn publish_as(node: &Node, name: &str, level: u64) {
    let publication = event("level", system(name, 1), &level.to_string());
    let status = || node.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&publication)).ok().map(|answer| answer.status);
    assert!(eventually(|| status() == Some(200)), "{}", node.said());
}

/// Publishes an event that must not be published twice. False where that cannot be known: a machine that holds a leader up for as long as its lease makes it give up the lead, and it says then that it does not know what became of the event.
fn publish_once(node: &Node, level: u64) -> bool {
    let publication = event("level", system("sensor", 1), &level.to_string());
    let published = || {
        let answer = node.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&publication)).ok();
        let is_to_come_again = answer.as_ref().is_some_and(|answer| answer.status != 200 && answer.text().contains("was not taken"));
        (!is_to_come_again).then(|| answer.is_some_and(|answer| answer.status == 200))
    };
    let is_published = eventually_some(published).unwrap_or(false);
    // As `publish`.
    thread::sleep(Duration::from_millis(25));
    is_published
}

/// Waits until the last checkpoint of a graph has arrived: it comes a tenth of a second behind the last event.
#[track_caller]
fn wait_for_checkpoints(node: &Node, graph: &str) {
    let arrived = || node.gauge(&format!("bodkin_graph_checkpoints_total{{graph=\"{graph}\"}}"));
    let is_last = || {
        let before = arrived();
        thread::sleep(Duration::from_millis(500));
        before > 0 && arrived() == before
    };
    assert!(eventually(is_last), "{}", node.said());
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
        let (id, mean) = (
            event.id.parse::<EventId>().expect("an identity"),
            event.data.parse::<f64>().unwrap_or_else(|error| panic!("{error}: {event:?}")),
        );
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
            wait_for_checkpoints(&primary, "means");
        }
        primary.signal(Signal::SIGKILL);
        backup.served();
        let stream = means(&backup);
        publish(&backup, 8);
        let is_there = || heard(&[&stream]).values().any(|mean| (mean - 4.0).abs() < 1e-9);
        assert!(eventually(is_there), "the mean of 1, 3 and 8 is not among {:?}: {}", heard(&[&stream]), backup.said());
        assert!(!backup.said().contains("ERROR"), "{}", backup.said());
    }
}

#[test]
fn burst_of_events_has_each_result() {
    const EVENTS: u64 = 400;
    let place = TempDir::new().expect("a directory");
    let promises = "period_ms = 1\njitter_ms = 500\ndeadline_s = 60\nloss_tolerance = 0\nretention = 2000";
    let topic = |name: &str| format!("[[topic]]\nevent_type = \"{name}\"\n{promises}\n");
    let file = place.path().join("graph.toml");
    fs::write(&file, MEANS).expect("written");
    let (pair, _witness, _backup, primary) = Pair::known(&format!("graphs = [{file:?}]\n"), &(topic("level") + &topic("mean")));
    for name in ["sensor", "display"] {
        register(&primary, name);
    }
    let (first, second) = pair.zmtp_addresses();
    let mut hears = Hears::by(Brokers::pair("display", first, second), "mean", required());
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    let mut publisher = RealtimePublisher::connect(Brokers::pair("sensor", first, second)).expect("a publisher");
    let level = publisher.add_topic("level", Retention::new(1, 1024, WhenFull::Block));
    // More than the graph has room for, all at once: none may take another one's place.
    for number in 1..=EVENTS {
        publisher.publish(level, number.to_string().as_bytes()).expect("there is room");
    }
    until("each result is there", || {
        publisher.turn(Duration::from_millis(1), |_| ()).expect("a turn");
        hears.turn();
        hears.events.len() as u64 >= EVENTS
    });
    let means: Vec<f64> = hears.events.iter().map(|mean| mean.parse().expect("a number")).collect();
    let mean = |number: u64| (number.saturating_sub(3).max(1)..=number).sum::<u64>() as f64 / number.min(4) as f64;
    assert_eq!(means, (1..=EVENTS).map(mean).collect::<Vec<_>>());
}

#[test]
fn each_answered_event_has_its_result_here_or_there_whenever_its_leader_dies() {
    const BEFORE: u64 = 30;
    /// Of runs in which the machine has held a leader up for longer than its lease.
    const RUNS_MAX: u32 = 4;
    for killed_behind in [1, 7, BEFORE] {
        let is_seen = (0..RUNS_MAX).any(|_| all_have_their_results(killed_behind));
        assert!(is_seen, "killed behind {killed_behind}: in none of {RUNS_MAX} runs was every event answered");
    }
}

/// Publishes so many events, kills the leader, publishes five to the other node, and looks at the means of all. False where an event was not answered.
fn all_have_their_results(killed_behind: u64) -> bool {
    let place = TempDir::new().expect("a directory");
    let (_pair, _witness, mut backup, primary) = pair(&place, TOPICS);
    let here = means(&primary);
    if !(1..=killed_behind).all(|number| publish_once(&primary, number * number)) {
        return false;
    }
    primary.signal(Signal::SIGKILL);
    backup.served();
    let there = means(&backup);
    if !(killed_behind + 1..=killed_behind + 5).all(|number| publish_once(&backup, number * number)) {
        return false;
    }
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
    true
}

#[test]
fn results_are_whole_where_checkpoints_arrive_between_events() {
    const PUBLISHERS: u64 = 8;
    const EVENTS: u64 = 60;
    let tables = TOPICS.replace("retention = 132", &format!("retention = 132\npublishers = {PUBLISHERS}"));
    let place = TempDir::new().expect("a directory");
    let (_pair, _witness, _backup, primary) = pair(&place, &tables);
    let stream = means(&primary);
    thread::scope(|scope| {
        let publishers: Vec<_> = (1..=PUBLISHERS)
            .map(|publisher| {
                let primary = &primary;
                scope.spawn(move || {
                    let name = format!("sensor-{publisher}");
                    register(primary, &name);
                    for _ in 0..EVENTS {
                        publish_as(primary, &name, publisher);
                        thread::sleep(Duration::from_millis(6));
                    }
                })
            })
            .collect();
        // What has come for a node that stood still comes in one turn: what the Backup says, events, and rounds that are over.
        while publishers.iter().any(|publisher| !publisher.is_finished()) {
            primary.signal(Signal::SIGSTOP);
            thread::sleep(Duration::from_millis(15));
            primary.signal(Signal::SIGCONT);
            thread::sleep(Duration::from_millis(15));
        }
    });
    // A number each, whatever the order in which they came.
    assert!(eventually(|| heard(&[&stream]).len() as u64 == PUBLISHERS * EVENTS), "{} results", heard(&[&stream]).len());
}

#[test]
fn events_of_more_publishers_than_two_graphs_keep_track_of_are_acknowledged_for_both() {
    const PUBLISHERS: u64 = bodkin_broker::graph::RUNS_MAX as u64 + 24;
    let other = MEANS.replace("\"means\"", "\"others\"").replace("\"mean\"\nfrom", "\"other-mean\"\nfrom");
    let topic = format!(
        "[[topic]]\nevent_type = \"level\"\nperiod_ms = 5\ndeadline_s = 60\nloss_tolerance = 0\nretention = 132\npublishers = {PUBLISHERS}\n"
    );
    let place = TempDir::new().expect("a directory");
    let (_pair, _witness, mut backup, primary) = pair_with(&place, &[MEANS, &other], &topic);
    for number in 1..=PUBLISHERS {
        let name = format!("sensor-{number}");
        register(&primary, &name);
        publish_as(&primary, &name, number);
    }
    for graph in ["means", "others"] {
        assert_eq!(primary.gauge(&format!("bodkin_graph_taken_total{{graph=\"{graph}\"}}")), PUBLISHERS);
        wait_for_checkpoints(&primary, graph);
    }
    primary.signal(Signal::SIGKILL);
    backup.served();
    // What a graph has not acknowledged is with the Backup, and kept there until it does.
    let said = backup.said();
    let line = said.lines().find(|line| line.contains("this node goes on with what it has kept")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("events=0 "), "{line}");
}
