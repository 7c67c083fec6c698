//! A graph over several edges: each process runs its part, and fetches over links what the others make.

use std::{collections::BTreeMap, fs, net::SocketAddr};

use bodkin_broker::EventId;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{done, ended, json as printed_json};
use crate::real_time_client::topic;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;
use crate::support::ports::held_offset;
use crate::support::sse::EventStream;

/// Speeds are smoothed at the press; the office makes the mean of four of them.
pub const TWO: &str = r#"
[graph]
name = "line"
replace_queued = false

[[edge]]
name = "press"
way_ms = 2

[[edge]]
name = "office"
way_ms = 2

[[supplier]]
topic = "speed"
shape = "f64"
period_ms = 10

[[operator]]
name = "smooth"
kind = "moving_average"
inputs = ["speed"]
window = 1
cost_us = 20

[[operator]]
name = "mean"
kind = "moving_average"
inputs = ["smooth"]
edge = "office"
window = 2
cost_us = 20

[[link]]
from = "smooth"
topic = "over-smooth"
deadline_ms = 20
loss_tolerance = 0

[[output]]
topic = "line-mean"
from = "mean"
deadline_ms = 2000
"#;

/// What the yard adds: the mean beside the smoothed speed, from two edges.
const YARD: &str = r#"
[[edge]]
name = "yard"

[[operator]]
name = "beside"
kind = "join"
inputs = ["mean", "smooth"]
names = ["mean", "smooth"]
edge = "yard"
cost_us = 20

[[link]]
from = "mean"
topic = "over-mean"
loss_tolerance = 0

[[output]]
topic = "yard-both"
from = "beside"
level = 1
"#;

/// One edge's files, which outlive its process.
struct Place {
    data: TempDir,
    name: &'static str,
    offset: crate::support::ports::HeldOffset,
}

impl Place {
    fn new(name: &'static str, file: &str, topics: &str) -> Self {
        let data = TempDir::new().expect("a directory");
        fs::write(data.path().join("line.toml"), file).expect("written");
        fs::write(data.path().join("bodkin.toml"), topics).expect("written");
        Self { data, name, offset: held_offset() }
    }

    fn zmtp(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 5570 + self.offset.get()))
    }

    /// Starts the edge, which reaches these others.
    fn start(&self, others: &[&Self]) -> Cloud {
        let edges: Vec<String> = others.iter().map(|other| format!("{}={}", other.name, other.zmtp())).collect();
        let path = |name: &str| self.data.path().join(name).to_str().expect("text").to_owned();
        let (config, graphs, edges) = (path("bodkin.toml"), path("line.toml"), edges.join(","));
        let launch = Launch::new().data(self.data.path()).port_offset(self.offset.get());
        launch.flags(["--config", &config, "--graphs", &graphs, "--edge", self.name, "--edges", &edges]).start()
    }
}

fn stream(cloud: &Cloud, event_type: &str) -> EventStream {
    EventStream::open(cloud.address(System::EventHandler), &format!("/eventhandler/subscription?eventtype={event_type}"), &[])
}

fn publish(cloud: &Cloud, value: u32) {
    cloud.post("/eventhandler/publish", &event("speed", system("sensor", 1), &value.to_string())).expect_status(200);
}

/// The links of the only graph.
fn links(cloud: &Cloud) -> Value {
    cloud.get("/api/v1/graphs").expect_status(200).json()["data"][0]["links"].clone()
}

fn is_up(cloud: &Cloud) -> bool {
    links(cloud).as_array().is_some_and(|links| links.iter().all(|link| link["down"].is_null()))
}

#[track_caller]
fn wait_until_up(cloud: &Cloud) {
    assert!(eventually(|| is_up(cloud)), "{}\n{}", links(cloud), cloud.stderr());
}

fn numbers(stream: &EventStream, count: usize) -> Vec<f64> {
    stream.wait_for(count).iter().map(|event| event.data.parse().expect("a number")).collect()
}

fn graph(cloud: &Cloud) -> Value {
    cloud.get("/api/v1/graphs").expect_status(200).json()["data"][0].clone()
}

#[test]
fn what_one_edge_makes_is_processed_at_the_other_in_time_and_named_after_what_started_it() {
    let (press, office) = (Place::new("press", TWO, &topic("over-smooth", "")), Place::new("office", TWO, ""));
    let (at_press, at_office) = (press.start(&[]), office.start(&[&press]));
    at_press.register_system("sensor", 1);
    wait_until_up(&at_office);
    let (speeds, means) = (stream(&at_press, "speed"), stream(&at_office, "line-mean"));
    for value in [1, 3, 5, 7] {
        publish(&at_press, value);
    }
    assert_eq!(numbers(&means, 4), [1.0, 2.0, 4.0, 6.0]);
    let link = links(&at_office)[0].clone();
    let counts = ["edge", "topic", "received", "lost", "exceeded", "refused"].map(|name| link[name].clone());
    assert_eq!(counts, [json!("press"), json!("OVER-SMOOTH"), json!(4), json!(0), json!(0), json!(0)]);
    assert_eq!(graph(&at_office)["late"], json!(0), "from the speed's publication to the mean no more than its deadline");
    let names = |stream: &EventStream| stream.wait_for(4).iter().map(|event| event.id.parse().expect("an id")).collect::<Vec<EventId>>();
    for (mean, speed) in names(&means).into_iter().zip(names(&speeds)) {
        assert_eq!((mean.incarnation, mean.sequence), (speed.incarnation, speed.sequence));
        assert_ne!(mean.publisher, speed.publisher, "a publisher of the press is none of the office's");
    }
    let metrics = at_office.get("/metrics").expect_status(200).text();
    assert!(metrics.contains("bodkin_graph_link_up{graph=\"line\",edge=\"press\",topic=\"OVER-SMOOTH\"} 1\n"), "{metrics}");
}

#[test]
fn a_file_whose_other_edge_cannot_be_reached_is_refused_with_what_to_say() {
    let place = TempDir::new().expect("a directory");
    fs::write(place.path().join("line.toml"), TWO).expect("written");
    let cloud = Launch::new().env("BODKIN_EDGE", "office").start();
    let answer = cloud.post("/api/v1/graphs", &json!({ "file": TWO }));
    let told = answer.expect_status(409).text();
    assert!(told.contains("OVER-SMOOTH comes from the edge press") && told.contains("--edges press=ADDRESS:PORT"), "{told}");
}

#[test]
fn what_is_made_while_an_edge_is_away_is_kept_for_it_and_processed_once() {
    // The mean of one: what was processed is seen, whatever state a killed process had.
    let file = TWO.replace("window = 2", "window = 1");
    let (press, office) = (Place::new("press", &file, &topic("over-smooth", "")), Place::new("office", &file, ""));
    let at_press = press.start(&[]);
    at_press.register_system("sensor", 1);
    let at_office = office.start(&[&press]);
    wait_until_up(&at_office);
    let means = stream(&at_office, "line-mean");
    (1..=5).for_each(|value| publish(&at_press, value));
    assert_eq!(numbers(&means, 5), [1.0, 2.0, 3.0, 4.0, 5.0]);
    at_office.kill();
    (6..=20).for_each(|value| publish(&at_press, value));
    let at_office = office.start(&[&press]);
    wait_until_up(&at_office);
    (21..=25).for_each(|value| publish(&at_press, value));
    // A result that is made again, of an event whose acknowledgement was not sent before the kill, has the name that it had.
    let all = stream(&at_office, "line-mean&since=0");
    let by_name = || {
        let events = all.wait_for(25);
        let named = events.iter().map(|event| (event.id.parse::<EventId>().expect("an id").sequence, event.data.clone()));
        named.collect::<BTreeMap<_, _>>()
    };
    assert!(eventually(|| by_name().len() == 25), "{:?} {}", by_name(), links(&at_office));
    let values: Vec<f64> = by_name().values().map(|value| value.parse().expect("a number")).collect();
    assert_eq!(values, (1..=25).map(f64::from).collect::<Vec<_>>());
    let link = links(&at_office)[0].clone();
    assert_eq!((&link["lost"], &link["exceeded"]), (&json!(0), &json!(0)), "{link}");
}

#[test]
fn what_found_no_room_while_an_edge_was_away_is_counted_and_told_by_the_edge_that_was_started_again() {
    // There is room for some seven hundred.
    const FEW: &str =
        "[[topic]]\nevent_type = \"over-smooth\"\nperiod_us = 500\njitter_ms = 20\ndeadline_ms = 50\nloss_tolerance = 0\nretention = 300\n";
    let (press, office) = (Place::new("press", TWO, FEW), Place::new("office", TWO, ""));
    let (at_press, at_office) = (press.start(&[]), office.start(&[&press]));
    at_press.register_system("sensor", 1);
    wait_until_up(&at_office);
    let means = stream(&at_office, "line-mean");
    publish(&at_press, 1);
    assert_eq!(numbers(&means, 1), [1.0]);
    at_office.kill();
    let lost = || graph(&at_press)["lost"].as_u64().expect("a number");
    let mut value = 1;
    while lost() < 10 {
        value += 1;
        publish(&at_press, value);
        assert!(value < 5_000, "there is room for all of them: {}", graph(&at_press));
    }
    let at_office = office.start(&[&press]);
    wait_until_up(&at_office);
    let told = || links(&at_office)[0].clone();
    assert!(eventually(|| told()["lost"].as_u64() == Some(lost())), "{} of {}", told(), lost());
    assert_eq!(told()["exceeded"], json!(1));
    assert_shown(at_office.address(System::Monitor), "BodkinGraphLinkLosses");
    let listed = done(&at_office, "graph list");
    let line = format!("line: {} events of OVER-SMOOTH from press are lost, 1 time more in a row than the link tolerates", lost());
    assert!(listed.contains(&line), "{line}: {listed}");
    let counted = format!("bodkin_graph_link_lost_total{{graph=\"line\",edge=\"press\",topic=\"OVER-SMOOTH\"}} {}\n", lost());
    assert!(at_office.get("/metrics").expect_status(200).text().contains(&counted), "{counted}");
    assert!(at_office.stderr().contains("more events of a link are lost in a row than it tolerates"), "{}", at_office.stderr());
}

#[test]
fn an_edge_that_is_gone_is_told_and_goes_on_when_it_is_back() {
    let (press, office) = (Place::new("press", TWO, &topic("over-smooth", "")), Place::new("office", TWO, ""));
    let (at_press, at_office) = (press.start(&[]), office.start(&[&press]));
    at_press.register_system("sensor", 1);
    wait_until_up(&at_office);
    let means = stream(&at_office, "line-mean");
    publish(&at_press, 1);
    assert_eq!(numbers(&means, 1), [1.0]);
    at_press.kill();
    assert!(eventually(|| !is_up(&at_office)), "{}", links(&at_office));
    assert!(done(&at_office, "graph list").contains("inputs late"), "{}", done(&at_office, "graph list"));
    assert_shown(at_office.address(System::Monitor), "BodkinGraphLinkDown");
    let status = ended(&at_office, "status", 1);
    assert!(status.contains("links of graphs to other edges that are not heard: 1"), "{status}");
    let at_press = press.start(&[]);
    wait_until_up(&at_office);
    publish(&at_press, 3);
    assert_eq!(numbers(&means, 2), [1.0, 2.0], "the office has its state still");
    assert_eq!(printed_json(&at_office, "graph list")["data"][0]["links"][0]["down"], Value::Null);
}

#[test]
fn three_edges_feed_each_other() {
    let file = TWO.to_owned() + YARD;
    let press = Place::new("press", &file, &topic("over-smooth", ""));
    let office = Place::new("office", &file, &topic("over-mean", ""));
    let yard = Place::new("yard", &file, "");
    let (at_press, at_office, at_yard) = (press.start(&[]), office.start(&[&press]), yard.start(&[&press, &office]));
    at_press.register_system("sensor", 1);
    wait_until_up(&at_office);
    wait_until_up(&at_yard);
    let both = stream(&at_yard, "yard-both");
    for (at, value) in [1, 3, 5].into_iter().enumerate() {
        publish(&at_press, value);
        both.wait_for(at + 1);
    }
    let both: Vec<Value> = both.wait_for(3).iter().map(|event| serde_json::from_str(&event.data).expect("JSON")).collect();
    let expected = [(1.0, 1.0), (2.0, 3.0), (4.0, 5.0)].map(|(mean, smooth)| json!({"mean": mean, "smooth": smooth}));
    assert_eq!(both, expected);
}
