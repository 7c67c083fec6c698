//! `bodkin graph move`: an operator goes from one process to another while events come, and whichever process is killed at whatever step.

use std::{
    collections::BTreeMap,
    fs,
    net::{SocketAddr, TcpListener},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use bodkin_broker::EventId;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{bodkin, done, started, text};
use crate::real_time_client::topic;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Connection;
use crate::support::patience::eventually;
use crate::support::ports::{HeldOffset, held_offset};
use crate::support::sse::EventStream;

/// Speeds are smoothed at the press, and the mean of four of them is made there too, for the time being.
pub const LINE: &str = r#"
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
period_ms = 2

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
window = 4
cost_us = 20

[[link]]
from = "smooth"
topic = "over-smooth"
loss_tolerance = 0

[[output]]
topic = "line-smooth"
from = "smooth"

[[output]]
topic = "line-mean"
from = "mean"
"#;

/// What the yard adds: twice the mean.
const YARD: &str = r#"
[[link]]
from = "mean"
topic = "over-mean"
loss_tolerance = 0

[[edge]]
name = "yard"

[[operator]]
name = "twice"
kind = "map"
inputs = ["mean"]
expression = "2 * x"
edge = "yard"
cost_us = 20

[[output]]
topic = "yard-twice"
from = "twice"
"#;

/// One edge's files, which outlive its process.
struct Edge {
    data: TempDir,
    name: &'static str,
    offset: HeldOffset,
}

impl Edge {
    fn new(name: &'static str) -> Self {
        let data = TempDir::new().expect("a directory");
        let topics = topic("over-smooth", "") + &topic("over-mean", "");
        fs::write(data.path().join("bodkin.toml"), topics).expect("written");
        Self { data, name, offset: held_offset() }
    }

    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port + self.offset.get()))
    }

    fn start(&self, others: &[&Self]) -> Cloud {
        let edges: Vec<String> = others.iter().map(|other| format!("{}={}", other.name, other.at(5570))).collect();
        let (config, edges) = (self.data.path().join("bodkin.toml"), edges.join(","));
        let launch = Launch::new().data(self.data.path()).port_offset(self.offset.get());
        launch.flags(["--config", config.to_str().expect("text"), "--edge", self.name, "--edges", &edges]).start()
    }

    /// As the command is told where this edge answers.
    fn option(&self) -> String {
        format!("--at {}={}", self.name, self.at(8440))
    }
}

/// One request of a step, which may not be answered.
fn request(mut connection: Connection, form: &Value) {
    let _ = connection.request("POST", "/api/v1/graphs/move", &[("Content-Type", "application/json")], Some(form.to_string().as_bytes()));
}

fn deploy(cloud: &Cloud, file: &str) {
    cloud.post("/api/v1/graphs", &json!({ "file": file })).expect_status(201);
}

fn stream(cloud: &Cloud, event_type: &str) -> EventStream {
    EventStream::open(cloud.address(System::EventHandler), &format!("/eventhandler/subscription?eventtype={event_type}&since=0"), &[])
}

fn publish(cloud: &Cloud, value: u32) {
    cloud.post("/eventhandler/publish", &event("speed", system("sensor", 1), &value.to_string())).expect_status(200);
}

/// What has been heard, by the run of its publisher and its number: one number has one result, on whichever edge.
fn heard(streams: &[&EventStream]) -> BTreeMap<(u64, u64), f64> {
    let mut heard = BTreeMap::new();
    for event in streams.iter().flat_map(|stream| stream.wait_for(stream.count())) {
        let (id, value): (EventId, f64) = (event.id.parse().expect("an id"), event.data.parse().expect("a number"));
        let other = heard.insert((id.incarnation.0, id.sequence.0), value);
        assert_eq!(other, None, "{id} is there twice: {value}");
    }
    heard
}

/// The means of four that a filter makes of 1, 2, 3 and so on that never stopped.
fn means(events: u32) -> Vec<f64> {
    (1..=events).map(|last| (last.saturating_sub(3).max(1)..=last).map(f64::from).sum::<f64>() / f64::from(last.min(4))).collect()
}

#[track_caller]
fn wait_for_means(streams: &[&EventStream], events: u32) {
    let count = || streams.iter().map(|stream| stream.count()).sum::<usize>();
    eventually(|| count() >= events as usize);
    let heard: Vec<f64> = heard(streams).into_values().collect();
    assert_eq!(heard, means(events));
}

fn graph(cloud: &Cloud) -> Value {
    cloud.get("/api/v1/graphs").expect_status(200).json()["data"][0].clone()
}

/// Where the mean is made, as an edge sees it.
fn place(cloud: &Cloud) -> Value {
    let graph = graph(cloud);
    let places = graph["placement"].as_array().expect("a list");
    places.iter().find(|place| place["operator"] == "mean").expect("it is placed")["edge"].clone()
}

#[test]
fn an_operator_goes_there_and_back_with_its_state_while_events_come() {
    const EVENTS: u32 = 600;
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = (press.start(&[&office]), office.start(&[&press]));
    at_press.register_system("sensor", 1);
    deploy(&at_press, LINE);
    let streams = [stream(&at_press, "line-mean"), stream(&at_office, "line-mean")];
    thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            for value in 1..=EVENTS {
                publish(&at_press, value);
                thread::sleep(Duration::from_millis(4));
            }
        });
        let mut moves = 0;
        while !publisher.is_finished() {
            assert!(done(&at_press, &format!("graph move mean --to office {}", office.option())).contains("moved: mean runs on office"));
            assert_eq!((place(&at_press), place(&at_office)), (json!("office"), json!("office")));
            assert!(done(&at_office, &format!("graph move mean --to press {}", press.option())).contains("moved: mean runs on press"));
            moves += 2;
        }
        assert!(moves >= 2);
    });
    let smooth = stream(&at_press, "line-smooth");
    assert!(eventually(|| smooth.count() >= EVENTS as usize), "{} of {EVENTS} were smoothed at the press", smooth.count());
    wait_for_means(&[&streams[0], &streams[1]], EVENTS);
    assert!(streams[1].count() > 0, "some were made at the office");
}

/// A step of the mean's move to the office, as the command asks for it.
fn step(cloud: &Cloud, step: &str, more: Value) -> Value {
    let mut form = json!({"graph": "line", "operator": "mean", "to": "office", "step": step});
    form.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    cloud.post("/api/v1/graphs/move", &form).expect_status(200).json()
}

/// Both edges with the mean at the press, which has taken 1 to 5.
fn begun(press: &Edge, office: &Edge) -> (Cloud, Cloud) {
    let (at_press, at_office) = (press.start(&[office]), office.start(&[press]));
    at_press.register_system("sensor", 1);
    deploy(&at_press, LINE);
    deploy(&at_office, LINE);
    (1..=5).for_each(|value| publish(&at_press, value));
    stream(&at_press, "line-mean").wait_for(5);
    (at_press, at_office)
}

#[test]
fn an_edge_that_is_killed_behind_the_commit_still_has_what_goes_with_the_operator() {
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = begun(&press, &office);
    let plan = step(&at_press, "plan", json!({}));
    assert_eq!((&plan["from"], &plan["edges"], &plan["committed"]), (&json!("press"), &json!(["office"]), &json!(false)));
    step(&at_office, "prepare", json!({"file": plan["file"], "release": plan["release"]}));
    assert!(graph(&at_office)["moving"].as_str().is_some_and(|told| told.contains("prepared for mean")));
    step(&at_press, "commit", json!({}));
    at_press.kill();
    let at_press = press.start(&[&office]);
    assert_eq!((place(&at_press), place(&at_office)), (json!("office"), json!("press")));
    let listed = done(&at_press, "graph list");
    assert!(listed.contains("mean has gone to office"), "{listed}");
    assert!(done(&at_press, &format!("graph move mean --to office {}", office.option())).contains("moved"));
    assert_eq!(graph(&at_press)["moving"], Value::Null);
    let streams = [stream(&at_press, "line-mean"), stream(&at_office, "line-mean")];
    (6..=12).for_each(|value| publish(&at_press, value));
    wait_for_means(&[&streams[0], &streams[1]], 12);
}

#[test]
fn an_edge_that_is_killed_when_it_has_prepared_takes_the_operator_when_it_is_back() {
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = begun(&press, &office);
    let plan = step(&at_press, "plan", json!({}));
    step(&at_office, "prepare", json!({"file": plan["file"], "release": plan["release"]}));
    step(&at_press, "commit", json!({}));
    at_office.kill();
    (6..=9).for_each(|value| publish(&at_press, value));
    let at_office = office.start(&[&press]);
    assert!(done(&at_press, &format!("graph move mean --to office {}", office.option())).contains("moved"));
    (10..=12).for_each(|value| publish(&at_press, value));
    let streams = [stream(&at_press, "line-mean"), stream(&at_office, "line-mean")];
    wait_for_means(&[&streams[0], &streams[1]], 12);
}

#[test]
fn an_edge_that_is_killed_when_it_has_taken_the_operator_starts_with_it() {
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = begun(&press, &office);
    let plan = step(&at_press, "plan", json!({}));
    step(&at_office, "prepare", json!({"file": plan["file"], "release": plan["release"]}));
    let committed = step(&at_press, "commit", json!({}));
    // As if it were killed before it could note that the operator is at work.
    let database = rusqlite::Connection::open(office.data.path().join("bodkin.sqlite")).expect("it is there");
    let keeps = "CREATE TRIGGER keeps AFTER UPDATE OF taken ON graph WHEN NEW.taken IS NULL BEGIN UPDATE graph SET taken = OLD.taken WHERE name = OLD.name; END";
    database.execute_batch(keeps).expect("it is made");
    step(&at_office, "finish", json!({"file": plan["file"], "handover": committed["handover"]}));
    at_office.kill();
    database.execute_batch("DROP TRIGGER keeps").expect("it is gone");
    let taken = || database.query_row("SELECT taken FROM graph", (), |row| row.get::<_, Option<String>>(0)).expect("a row");
    assert!(taken().is_some());
    let at_office = office.start(&[&press]);
    assert!(eventually(|| taken().is_none()), "it is at work");
    (6..=12).for_each(|value| publish(&at_press, value));
    let streams = [stream(&at_press, "line-mean"), stream(&at_office, "line-mean")];
    wait_for_means(&[&streams[0], &streams[1]], 12);
}

#[test]
fn what_is_not_committed_changes_nothing_whoever_is_killed() {
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = begun(&press, &office);
    let plan = step(&at_press, "plan", json!({}));
    step(&at_office, "prepare", json!({"file": plan["file"], "release": plan["release"]}));
    (6..=8).for_each(|value| publish(&at_press, value));
    step(&at_office, "abandon", json!({}));
    assert_eq!((place(&at_press), place(&at_office), &graph(&at_office)["moving"]), (json!("press"), json!("press"), &Value::Null));
    step(&at_office, "prepare", json!({"file": plan["file"], "release": plan["release"]}));
    at_office.kill();
    (9..=12).for_each(|value| publish(&at_press, value));
    wait_for_means(&[&stream(&at_press, "line-mean")], 12);
    let refused = bodkin(&at_press, &format!("graph move mean --to office {}", office.option()));
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!((place(&at_press), &graph(&at_press)["moving"]), (json!("press"), &Value::Null));
    publish(&at_press, 13);
    wait_for_means(&[&stream(&at_press, "line-mean")], 13);
}

/// Locks the database of an edge, so that its next transaction waits.
fn locked(edge: &Edge) -> rusqlite::Connection {
    let database = rusqlite::Connection::open(edge.data.path().join("bodkin.sqlite")).expect("it is there");
    database.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    database
}

/// What has gone with the mean by the database of an edge.
fn given(edge: &Edge) -> Option<String> {
    let database = rusqlite::Connection::open(edge.data.path().join("bodkin.sqlite")).expect("it is there");
    database.query_row("SELECT given FROM graph", (), |row| row.get(0)).expect("a row")
}

#[test]
fn an_edge_that_is_killed_inside_of_its_commit_has_the_operator_or_what_goes_with_it() {
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = begun(&press, &office);
    let prepare = |at_press: &Cloud| {
        let plan = step(at_press, "plan", json!({}));
        step(&at_office, "prepare", json!({"file": plan["file"], "release": plan["release"]}));
    };
    let commit = |address: SocketAddr| {
        thread::spawn(move || {
            let form = json!({"graph": "line", "operator": "mean", "to": "office", "step": "commit"});
            let _ = Connection::open(address).map(|connection| request(connection, &form));
        })
    };
    // In front of the transaction.
    prepare(&at_press);
    let lock = locked(&press);
    let asked = commit(press.at(8440));
    assert!(eventually(|| graph(&at_press)["moving"].is_string()), "{}", graph(&at_press));
    at_press.kill();
    asked.join().expect("it has ended");
    lock.execute_batch("ROLLBACK").expect("it is let go");
    assert_eq!(given(&press), None);
    let at_press = press.start(&[&office]);
    assert_eq!((place(&at_press), place(&at_office), &graph(&at_press)["moving"]), (json!("press"), json!("press"), &Value::Null));
    // The press has no pair, so that its filter begins anew.
    let streams = [stream(&at_press, "line-mean"), stream(&at_office, "line-mean")];
    let before = streams[0].wait_for(5).len();
    (6..=8).for_each(|value| publish(&at_press, value));
    streams[0].wait_for(before + 3);
    // Behind it.
    prepare(&at_press);
    let asked = commit(press.at(8440));
    assert!(eventually(|| given(&press).is_some()), "{}", graph(&at_press));
    at_press.kill();
    asked.join().expect("it has ended");
    let at_press = press.start(&[&office]);
    assert_eq!((place(&at_press), place(&at_office)), (json!("office"), json!("press")));
    assert!(done(&at_press, &format!("graph move mean --to office {}", office.option())).contains("moved"));
    (9..=10).for_each(|value| publish(&at_press, value));
    let means: Vec<f64> = streams[1].wait_for(2).iter().map(|event| event.data.parse().expect("a number")).collect();
    assert_eq!(means, [7.5, 8.5], "of 6 to 9 and 7 to 10: what the press had is at the office");
}

#[test]
fn an_edge_that_is_killed_before_it_hears_of_the_move_takes_what_was_made_meanwhile_when_it_is_back() {
    let (press, office, yard) = (Edge::new("press"), Edge::new("office"), Edge::new("yard"));
    let (at_press, at_office) = (press.start(&[&office, &yard]), office.start(&[&press, &yard]));
    let at_yard = yard.start(&[&press, &office]);
    at_press.register_system("sensor", 1);
    let file = LINE.to_owned() + YARD;
    [&at_press, &at_office, &at_yard].into_iter().for_each(|cloud| deploy(cloud, &file));
    assert!(eventually(|| graph(&at_yard)["links"][0]["down"].is_null()), "{}", graph(&at_yard));
    (1..=5).for_each(|value| publish(&at_press, value));
    stream(&at_yard, "yard-twice").wait_for(5);
    let plan = step(&at_press, "plan", json!({}));
    let version = json!({"file": plan["file"], "release": plan["release"]});
    step(&at_yard, "prepare", version.clone());
    step(&at_office, "prepare", version.clone());
    let committed = step(&at_press, "commit", json!({}));
    step(&at_office, "finish", json!({"file": plan["file"], "handover": committed["handover"]}));
    at_yard.kill();
    (6..=9).for_each(|value| publish(&at_press, value));
    assert!(done(&at_press, "graph list").contains("mean has gone to office, which has not taken it yet"));
    let at_yard = yard.start(&[&press, &office]);
    assert_eq!(place(&at_yard), json!("press"), "it has not heard of it");
    let line = format!("graph move mean --to office {} {}", office.option(), yard.option());
    assert!(done(&at_press, &line).contains("moved"));
    assert_eq!([place(&at_press), place(&at_office), place(&at_yard)], ["office"; 3].map(Value::from));
    (10..=12).for_each(|value| publish(&at_press, value));
    let twice = stream(&at_yard, "yard-twice");
    eventually(|| twice.count() >= 12);
    let heard: Vec<f64> = heard(&[&twice]).into_values().collect();
    assert_eq!(heard, means(12).into_iter().map(|mean| 2.0 * mean).collect::<Vec<_>>(), "{}", graph(&at_yard));
}

#[test]
fn a_command_that_dies_is_given_again() {
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = begun(&press, &office);
    let line = format!("graph move mean --to office {}", office.option());
    // In front of the commit: the office has prepared, and the press does not know.
    let plan = step(&at_press, "plan", json!({}));
    step(&at_office, "prepare", json!({"file": plan["file"], "release": plan["release"]}));
    assert!(done(&at_office, "graph list").contains("prepared for mean on office"));
    assert!(done(&at_press, "graph list").contains("runs"));
    (6..=7).for_each(|value| publish(&at_press, value));
    // Inside of it.
    let lock = locked(&press);
    let mut command = started(&at_press, &line).stdout(Stdio::null()).spawn().expect("the binary starts");
    assert!(eventually(|| graph(&at_press)["moving"].is_string()), "{}", graph(&at_press));
    command.kill().expect("it runs");
    command.wait().expect("it has ended");
    publish(&at_press, 8);
    lock.execute_batch("ROLLBACK").expect("it is let go");
    assert!(eventually(|| given(&press).is_some()), "the press goes on by itself: {}", graph(&at_press));
    let listed = || done(&at_press, "graph list");
    assert!(eventually(|| listed().contains("mean has gone to office, which has not taken it yet")), "{}", listed());
    assert_eq!((place(&at_press), place(&at_office)), (json!("office"), json!("press")));
    publish(&at_press, 9);
    assert!(done(&at_press, &line).contains("moved: mean runs on office"));
    assert_eq!((place(&at_press), place(&at_office), &graph(&at_press)["moving"]), (json!("office"), json!("office"), &Value::Null));
    (10..=12).for_each(|value| publish(&at_press, value));
    wait_for_means(&[&stream(&at_press, "line-mean"), &stream(&at_office, "line-mean")], 12);
}

fn signal(command: &Child, signal: Signal) {
    kill(Pid::from_raw(command.id().cast_signed()), signal).expect("it runs");
}

#[test]
fn a_command_that_is_interrupted_behind_the_commit_says_how_the_move_comes_to_its_end() {
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = begun(&press, &office);
    let line = format!("graph move mean --to office {}", office.option());
    // The office prepares, and cannot note that it has the mean.
    let lock = locked(&office);
    let command = started(&at_press, &line).stderr(Stdio::piped()).spawn().expect("the binary starts");
    assert!(eventually(|| place(&at_press) == "office"), "{}", graph(&at_press));
    signal(&command, Signal::SIGINT);
    let output = command.wait_with_output().expect("it has ended");
    let said = text(&output.stderr);
    let told = ["interrupted", "the same command once more"];
    assert!(output.status.code() == Some(1) && told.iter().all(|told| said.contains(told)), "{:?}: {said}", output.status);
    lock.execute_batch("ROLLBACK").expect("it is let go");
    assert!(done(&at_press, &line).contains("moved: mean runs on office"));
    (6..=12).for_each(|value| publish(&at_press, value));
    wait_for_means(&[&stream(&at_press, "line-mean"), &stream(&at_office, "line-mean")], 12);
}

#[test]
fn a_command_that_is_interrupted_in_front_of_the_commit_lets_go_what_is_prepared() {
    let (press, office, yard) = (Edge::new("press"), Edge::new("office"), Edge::new("yard"));
    let (at_press, at_office) = (press.start(&[&office, &yard]), office.start(&[&press, &yard]));
    let at_yard = yard.start(&[&press, &office]);
    let file = LINE.to_owned() + YARD;
    [&at_press, &at_office, &at_yard].into_iter().for_each(|cloud| deploy(cloud, &file));
    assert!(eventually(|| graph(&at_yard)["links"][0]["down"].is_null()), "{}", graph(&at_yard));
    // Where the office is said to answer is somebody who hears what is asked for, and does not answer.
    let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let at = silent.local_addr().expect("it is bound");
    let line = format!("graph move mean --to office --at office={at} {}", yard.option());
    for end in [Signal::SIGINT, Signal::SIGTERM] {
        let command = started(&at_press, &line).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let asked = silent.accept().expect("it is asked to prepare");
        assert!(graph(&at_yard)["moving"].as_str().is_some_and(|told| told.contains("prepared for mean")), "{}", graph(&at_yard));
        let begun = Instant::now();
        signal(&command, end);
        // It would be let go by itself behind 30 s.
        assert!(eventually(|| graph(&at_yard)["moving"].is_null()), "{}", graph(&at_yard));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        // The office does not answer to that either: once more, and nobody is waited for.
        let _asked_again = silent.accept().expect("it is asked to let go");
        signal(&command, end);
        drop(asked);
        let output = command.wait_with_output().expect("it has ended");
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("interrupted, and nothing has changed"), "{:?}: {said}", output.status);
        assert_eq!((place(&at_press), &graph(&at_press)["moving"]), (json!("press"), &Value::Null));
    }
}

#[test]
fn a_graph_of_which_an_operator_is_between_edges_is_replaced_or_removed_by_force_only() {
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = begun(&press, &office);
    let plan = step(&at_press, "plan", json!({}));
    step(&at_office, "prepare", json!({"file": plan["file"], "release": plan["release"]}));
    step(&at_press, "commit", json!({}));
    let file = press.data.path().join("line.toml");
    fs::write(&file, LINE).expect("written");
    let deploy = format!("graph deploy {}", file.display());
    for (cloud, told) in [(&at_press, "mean has gone to office, which has not taken it yet"), (&at_office, "prepared for mean on office")] {
        for line in [deploy.as_str(), "graph remove line"] {
            let output = bodkin(cloud, line);
            let said = text(&output.stderr);
            assert!(output.status.code() == Some(1) && said.contains(told) && said.contains("--force"), "{line}: {said}");
        }
    }
    assert!(given(&press).is_some());
    assert!(done(&at_press, &format!("graph move mean --to office {}", office.option())).contains("moved"));
    (6..=8).for_each(|value| publish(&at_press, value));
    wait_for_means(&[&stream(&at_press, "line-mean"), &stream(&at_office, "line-mean")], 8);
    // By force the mean that is on its way is given up.
    let plan = at_office.post("/api/v1/graphs/move", &json!({"graph": "line", "operator": "mean", "to": "press", "step": "plan"}));
    let plan = plan.expect_status(200).json();
    let back = |step: &str| json!({"graph": "line", "operator": "mean", "to": "press", "step": step, "file": plan["file"]});
    at_press.post("/api/v1/graphs/move", &back("prepare")).expect_status(200);
    at_office
        .post("/api/v1/graphs/move", &json!({"graph": "line", "operator": "mean", "to": "press", "step": "commit"}))
        .expect_status(200);
    assert!(given(&office).is_some());
    done(&at_office, &format!("{deploy} --force"));
    assert_eq!((given(&office), &graph(&at_office)["moving"]), (None, &Value::Null));
    done(&at_press, "graph remove line --force");
    assert!(done(&at_press, "graph list").contains("no graphs"));
}

#[test]
fn who_hears_the_operator_hears_it_where_it_is_then() {
    const EVENTS: u32 = 300;
    let (press, office, yard) = (Edge::new("press"), Edge::new("office"), Edge::new("yard"));
    let at_press = press.start(&[&office, &yard]);
    let at_office = office.start(&[&press, &yard]);
    let at_yard = yard.start(&[&press, &office]);
    at_press.register_system("sensor", 1);
    let file = LINE.to_owned() + YARD;
    [&at_press, &at_office, &at_yard].into_iter().for_each(|cloud| deploy(cloud, &file));
    let is_up = || graph(&at_yard)["links"].as_array().expect("a list").iter().all(|link| link["down"].is_null());
    assert!(eventually(is_up), "{}", graph(&at_yard));
    let twice = stream(&at_yard, "yard-twice");
    thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            for value in 1..=EVENTS {
                publish(&at_press, value);
                thread::sleep(Duration::from_millis(4));
            }
        });
        let mut moves = 0;
        while !publisher.is_finished() {
            done(&at_press, &format!("graph move mean --to office {} {}", office.option(), yard.option()));
            done(&at_office, &format!("graph move mean --to press {} {}", press.option(), yard.option()));
            moves += 2;
        }
        assert!(moves >= 2);
    });
    eventually(|| twice.count() >= EVENTS as usize);
    let heard: Vec<f64> = twice.wait_for(twice.count()).iter().map(|event| event.data.parse().expect("a number")).collect();
    let expected: Vec<f64> = means(EVENTS).into_iter().map(|mean| 2.0 * mean).collect();
    let states = || [&at_press, &at_office, &at_yard].map(|cloud| format!("{}\n{}", graph(cloud), cloud.stderr())).join("\n");
    assert!(heard == expected, "{heard:?}\n{}", states());
}

#[test]
fn a_move_that_cannot_be_is_refused_with_the_reason_and_changes_nothing() {
    let (press, office) = (Edge::new("press"), Edge::new("office"));
    let (at_press, at_office) = (press.start(&[&office]), office.start(&[&press]));
    let file = LINE.replace("from = \"mean\"\n\n", "from = \"mean\"\n").trim_end().to_owned() + "\ndeadline_us = 1500\n";
    deploy(&at_press, &file);
    deploy(&at_office, &file);
    let told = |cloud: &Cloud, line: &str| {
        let output = bodkin(cloud, line);
        assert_ne!(output.status.code(), Some(0), "{line}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    let at = office.option();
    for (line, reason) in [
        (format!("graph move mean --to yard {at}"), "there is no edge yard: there are press, office"),
        (format!("graph move mean --to press {at}"), "mean is on the edge press already"),
        (format!("graph move rough --to office {at}"), "no graph over several edges runs here that has an operator rough"),
        ("graph move mean --to office --force".to_owned(), "--at office=HOST:PORT"),
        (format!("graph move mean --to office {at}"), "LINE-MEAN takes"),
        // Where the press itself answers, the office would never hear of it, and the operator would be nowhere.
        (format!("graph move mean --to office --force --at office={}", press.at(8440)), "The edge office is meant, and this is press"),
    ] {
        let told = told(&at_press, &line);
        assert!(told.contains(reason), "{reason}: {told}");
    }
    let plan =
        at_press.post("/api/v1/graphs/move", &json!({"graph": "line", "operator": "mean", "to": "office", "step": "plan", "force": true}));
    let plan = plan.expect_status(200).json();
    let of_another_release = json!({"graph": "line", "operator": "mean", "to": "office", "step": "prepare", "file": plan["file"], "release": "0.0.1", "force": true});
    let refusal = at_office.post("/api/v1/graphs/move", &of_another_release).expect_status(409).text();
    let release = plan["release"].as_str().expect("a text");
    assert!(refusal.contains(&format!("office is of release {release}, and the edge where the operator runs of 0.0.1")), "{refusal}");
    assert_eq!(graph(&at_office)["moving"], Value::Null);
    deploy(&at_office, &(file.clone() + "# of another day\n"));
    let told = told(&at_press, &format!("graph move mean --to office --force {at}"));
    assert!(told.contains("office has another file of the graph line"), "{told}");
    deploy(&at_office, &file);
    assert_eq!((place(&at_press), place(&at_office)), (json!("press"), json!("press")));
    assert!(done(&at_press, &format!("graph move mean --to office --force {at}")).contains("moved"));
    assert_eq!((place(&at_press), place(&at_office)), (json!("office"), json!("office")));
}
