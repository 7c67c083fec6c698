//! An operator moves between a single edge and a pair, whose leader is killed or hands over in the middle of it.

use std::{collections::BTreeMap, fs, process::Command, thread, time::Duration};

use bodkin_broker::EventId;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    edges::MEANS,
    nodes::{Node, Pair},
};
use crate::commands::moves::LINE;
use crate::real_time_client::topic;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::ports::{HeldOffset, held_offset};
use crate::support::sse::EventStream;

const PAUSE: Duration = Duration::from_millis(10);

/// What the office has besides: the mean of four loads, which are measured there.
const LOADS: &str = r#"
[[supplier]]
topic = "load"
shape = "f64"
period_ms = 2
edge = "office"

[[operator]]
name = "calm"
kind = "moving_average"
inputs = ["load"]
window = 4
cost_us = 20

[[output]]
topic = "line-calm"
from = "calm"
"#;

/// A press by itself and an office that is a pair, with the mean at the press for the time being.
struct Line {
    press: Cloud,
    backup: Node,
    primary: Node,
    published: u32,
    _place: TempDir,
    _offset: HeldOffset,
    pair: Pair,
    _witness: Node,
}

impl Line {
    fn start() -> Self {
        Self::with(LINE)
    }

    fn with(file: &str) -> Self {
        let (place, offset) = (TempDir::new().expect("a directory"), held_offset());
        let keys = format!("edge = \"office\"\nedges = [\"press=127.0.0.1:{}\"]\n", 5570 + offset.get());
        let (pair, witness, backup, primary) = Pair::known(&keys, MEANS);
        let (one, two) = pair.zmtp_addresses();
        let config = place.path().join("press.toml");
        fs::write(&config, topic("over-smooth", "")).expect("written");
        let launch = Launch::new().data(place.path()).port_offset(offset.get());
        let office = format!("office={one}+{two}");
        let press = launch.flags(["--config", config.to_str().expect("text"), "--edge", "press", "--edges", &office]).start();
        press.register_system("sensor", 1);
        press.post("/api/v1/graphs", &json!({ "file": file })).expect_status(201);
        let line = Self { press, backup, primary, published: 0, _place: place, _offset: offset, pair, _witness: witness };
        line.call("POST", "/api/v1/graphs", &json!({ "file": file }), 201);
        line
    }

    /// A request to the pair's first leader.
    fn call(&self, method: &str, target: &str, body: &Value, status: u16) -> Value {
        let answer = self.primary.call(System::Monitor, method, target, Some(body)).expect("an answer");
        assert_eq!(answer.status, status, "{}", answer.text());
        answer.json()
    }

    fn publish(&mut self, count: u32) {
        for _ in 0..count {
            self.published += 1;
            self.press.post("/eventhandler/publish", &event("speed", system("sensor", 1), &self.published.to_string())).expect_status(200);
            thread::sleep(PAUSE);
        }
    }

    /// The command, told where both ends of a move answer.
    fn graph_move(&self, to: &str) -> Command {
        let press = self.press.address(System::Monitor).to_string();
        let office = [&self.primary, &self.backup].map(|node| node.address(System::Monitor).to_string()).join(",");
        let (own, at) = if to == "office" { (press, format!("office={office}")) } else { (office, format!("press={press}")) };
        let mut command = Command::new(BINARY);
        command.args(["graph", "move", "mean", "--to", to, "--at", &at]).env("BODKIN_MONITOR", own);
        command
    }

    /// Moves the mean, by the same command as often as it takes.
    #[track_caller]
    fn moved(&self, to: &str) {
        let mut told = String::new();
        let is_moved = eventually(|| {
            let output = self.graph_move(to).output().expect("the binary starts");
            told = String::from_utf8_lossy(&output.stderr).into_owned();
            output.status.code() == Some(0)
        });
        assert!(is_moved, "{told}\n{}", self.backup.said());
    }

    /// Each mean is that of a filter that never stopped, wherever it was made.
    #[track_caller]
    fn all_are_there(&self, nodes: &[&Node]) {
        const PATH: &str = "/eventhandler/subscription?eventtype=line-mean&since=0";
        let mut streams = vec![EventStream::open(self.press.address(System::EventHandler), PATH, &[])];
        streams.extend(nodes.iter().map(|node| EventStream::open_on(node.connect(System::EventHandler).expect("a connection"), PATH, &[])));
        let heard = || {
            let mut heard = BTreeMap::new();
            for event in streams.iter().flat_map(|stream| stream.wait_for(stream.count())) {
                let (Ok(id), Ok(mean)) = (event.id.parse::<EventId>(), event.data.parse::<f64>()) else { continue };
                let other = heard.insert(id.sequence.0, mean).unwrap_or(mean);
                assert!((other - mean).abs() < 1e-9, "{id} is {other} and {mean}");
            }
            heard
        };
        let expected = |last: u64| {
            let window = last.saturating_sub(3).max(1)..=last;
            let count = window.clone().count();
            window.sum::<u64>() as f64 / count as f64
        };
        let all: BTreeMap<u64, f64> = (1..=u64::from(self.published)).map(|last| (last, expected(last))).collect();
        eventually(|| heard().len() >= all.len());
        assert_eq!(heard(), all, "{}", nodes.iter().map(|node| node.said()).collect::<String>());
    }
}

#[test]
fn an_operator_that_has_come_to_a_pair_is_there_when_its_leader_is_killed() {
    let mut line = Line::start();
    line.publish(5);
    line.moved("office");
    line.primary.signal(Signal::SIGKILL);
    line.publish(5);
    line.backup.served();
    line.publish(5);
    line.all_are_there(&[&line.backup]);
}

#[test]
fn a_leader_that_is_killed_while_an_operator_comes_does_not_lose_it() {
    for delay_ms in [30, 60, 120] {
        let mut line = Line::start();
        line.publish(5);
        let mut command = line.graph_move("office").spawn().expect("the binary starts");
        thread::sleep(Duration::from_millis(delay_ms));
        line.primary.signal(Signal::SIGKILL);
        line.publish(3);
        line.backup.served();
        let _ = command.wait();
        // One that has come to its end has done so at either of them.
        if line.graph_move("office").output().expect("the binary starts").status.code() != Some(0) {
            let listed = line.press.get("/api/v1/graphs").expect_status(200).json();
            let place =
                listed["data"][0]["placement"].as_array().expect("a list").iter().find(|place| place["operator"] == "mean").cloned();
            if place.expect("it is placed")["edge"] == "press" || !listed["data"][0]["moving"].is_null() {
                line.moved("office");
            }
        }
        line.publish(5);
        line.all_are_there(&[&line.backup]);
    }
}

/// Publishes a load at a node of the office, and gives the newest mean of four of them.
fn load(node: &Node, load: u32) -> f64 {
    let target = "/eventhandler/subscription?eventtype=line-calm";
    let calm = EventStream::open_on(node.connect(System::EventHandler).expect("a connection"), target, &[]);
    let body = event("load", system("scale", 1), &load.to_string());
    let answer = node.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&body)).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    calm.wait_for(1)[0].data.parse().expect("a number")
}

#[test]
fn operators_of_a_pair_keep_their_states_when_its_leader_is_killed_before_the_backup_knows_the_new_version() {
    // The time between the transaction and the checkpoint is short: most of three kills are in it.
    (0..3).for_each(|_| kill_when_the_operator_has_come());
}

/// Kills the leader as soon as the Backup has the transaction by which the mean comes.
fn kill_when_the_operator_has_come() {
    let mut line = Line::with(&(LINE.to_owned() + LOADS));
    let registered = line.primary.call(System::ServiceRegistry, "POST", "/serviceregistry/register-system", Some(&system("scale", 1)));
    assert_eq!(registered.expect("an answer").status, 201);
    line.publish(5);
    for _ in 0..4 {
        assert!((load(&line.primary, 8) - 8.0).abs() < 1e-9);
    }
    // A checkpoint of the old version is due by then, and at the Backup.
    thread::sleep(Duration::from_millis(300));
    let database = rusqlite::Connection::open(line.pair.database("backup")).expect("it is there");
    let mut command = line.graph_move("office").spawn().expect("the binary starts");
    let has_come = || database.query_row("SELECT count(*) FROM graph WHERE taken IS NOT NULL", (), |row| row.get::<_, u32>(0));
    while has_come().is_ok_and(|count| count == 0) && command.try_wait().expect("it can be waited for").is_none() {}
    line.primary.signal(Signal::SIGKILL);
    let _ = command.wait();
    line.publish(3);
    line.backup.served();
    // It is there already, or comes by this.
    let _ = line.graph_move("office").output().expect("the binary starts");
    assert!((load(&line.backup, 4) - 7.0).abs() < 1e-9, "of 8, 8, 8 and 4: {}", line.backup.said());
    line.publish(5);
    line.all_are_there(&[&line.backup]);
}

#[test]
fn an_operator_goes_from_a_pair_whose_leader_was_killed_with_all_that_it_had() {
    let mut line = Line::start();
    line.publish(5);
    line.moved("office");
    line.publish(5);
    line.primary.signal(Signal::SIGKILL);
    line.publish(3);
    line.backup.served();
    line.moved("press");
    line.publish(5);
    line.all_are_there(&[&line.backup]);
}

#[test]
fn a_pair_hands_over_between_the_steps_of_a_move() {
    let mut line = Line::start();
    line.publish(5);
    let form = |step: &str| json!({"graph": "line", "operator": "mean", "to": "office", "step": step});
    let plan = line.press.post("/api/v1/graphs/move", &form("plan")).expect_status(200).json();
    let mut prepare = form("prepare");
    prepare.as_object_mut().expect("an object").extend([("file".to_owned(), plan["file"].clone())]);
    line.call("POST", "/api/v1/graphs/move", &prepare, 200);
    line.press.post("/api/v1/graphs/move", &form("commit")).expect_status(200);
    line.publish(3);
    let monitors = [&line.primary, &line.backup].map(|node| node.address(System::Monitor).to_string()).join(",");
    let handed = Command::new(BINARY).args(["pair", "hand-over", "--monitor", &monitors]).output().expect("the binary starts");
    assert_eq!(handed.status.code(), Some(0), "{}", String::from_utf8_lossy(&handed.stderr));
    line.backup.served();
    line.publish(3);
    line.moved("office");
    line.publish(3);
    line.all_are_there(&[&line.backup]);
}
