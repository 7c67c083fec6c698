//! An operator moves between a single edge and a pair, whose leader is killed or hands over in the middle of it.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use bodkin_broker::EventId;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    edges::MEANS,
    nodes::{Node, Pair, Relay},
};
use crate::commands::moves::LINE;
use crate::real_time_client::topic;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::patience::{PATIENCE, eventually};
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
    /// From the office to the press.
    way: Relay,
    _place: TempDir,
    _offset: HeldOffset,
    pair: Pair,
    _witness: Node,
}

impl Line {
    fn start() -> Self {
        Self::with(LINE, "")
    }

    /// Of this file, with these topics at the press besides.
    fn with(file: &str, topics: &str) -> Self {
        let (place, offset) = (TempDir::new().expect("a directory"), held_offset());
        let way = Relay::to(SocketAddr::from(([127, 0, 0, 1], 5570 + offset.get())));
        let keys = format!("edge = \"office\"\nedges = [\"press={}\"]\n", way.address);
        let (pair, witness, backup, primary) = Pair::known(&keys, MEANS);
        let (one, two) = pair.zmtp_addresses();
        let config = place.path().join("press.toml");
        fs::write(&config, topic("over-smooth", "") + topics).expect("written");
        let launch = Launch::new().data(place.path()).port_offset(offset.get());
        let office = format!("office={one}+{two}");
        let press = launch.flags(["--config", config.to_str().expect("text"), "--edge", "press", "--edges", &office]).start();
        press.register_system("sensor", 1);
        press.post("/api/v1/graphs", &json!({ "file": file })).expect_status(201);
        let line = Self { press, backup, primary, published: 0, way, _place: place, _offset: offset, pair, _witness: witness };
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

    /// Brings the mean to the office where it has not come there yet: a command may have come to its end, and not have been told so.
    #[track_caller]
    fn has_come(&self) {
        if self.graph_move("office").output().expect("the binary starts").status.code() == Some(0) {
            return;
        }
        let listed = self.press.get("/api/v1/graphs").expect_status(200).json();
        let placement = listed["data"][0]["placement"].as_array().expect("a list");
        let place = placement.iter().find(|place| place["operator"] == "mean").expect("it is placed");
        if place["edge"] == "press" || !listed["data"][0]["moving"].is_null() {
            self.moved("office");
        }
    }

    /// A step of the mean's move to the office, as the command asks for it, with the new version where that is known.
    fn step(step: &str, file: Option<&Value>) -> Value {
        json!({"graph": "line", "operator": "mean", "to": "office", "step": step, "file": file})
    }

    /// The new version, for which the office is prepared.
    fn prepared(&self) -> Value {
        let plan = self.press.post("/api/v1/graphs/move", &Self::step("plan", None)).expect_status(200).json();
        self.call("POST", "/api/v1/graphs/move", &Self::step("prepare", Some(&plan["file"])), 200);
        plan["file"].clone()
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
        line.has_come();
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
    let mut line = Line::with(&(LINE.to_owned() + LOADS), "");
    let registered = line.primary.call(System::ServiceRegistry, "POST", "/serviceregistry/register-system", Some(&system("scale", 1)));
    assert_eq!(registered.expect("an answer").status, 201);
    line.publish(5);
    let loaded = || assert!((load(&line.primary, 8) - 8.0).abs() < 1e-9);
    (0..4).for_each(|_| loaded());
    // The second checkpoint that arrives from now on was made behind these, and so is every other one.
    let arrived = || line.primary.gauge("bodkin_graph_checkpoints_total{graph=\"line\"}");
    let before = arrived();
    let is_there = eventually(|| {
        loaded();
        arrived() >= before + 2
    });
    assert!(is_there, "{}", line.primary.said());
    let database = rusqlite::Connection::open(line.pair.database("backup")).expect("it is there");
    let mut command = line.graph_move("office").spawn().expect("the binary starts");
    let has_come = || database.query_row("SELECT count(*) FROM graph WHERE taken IS NOT NULL", (), |row| row.get::<_, u32>(0));
    while has_come().is_ok_and(|count| count == 0) && command.try_wait().expect("it can be waited for").is_none() {}
    line.primary.signal(Signal::SIGKILL);
    let _ = command.wait();
    line.publish(3);
    line.backup.served();
    line.has_come();
    assert!((load(&line.backup, 4) - 7.0).abs() < 1e-9, "of 8, 8, 8 and 4: {}", line.backup.said());
    line.publish(5);
    line.all_are_there(&[&line.backup]);
}

#[test]
fn what_was_taken_where_an_operator_was_the_next_leader_of_a_pair_does_not_take_again() {
    // What comes over the link is there before anybody needs it there: a topic of the press.
    let direct = LINE.replace(r#"inputs = ["smooth"]"#, r#"inputs = ["speed"]"#);
    let direct = direct.replace("from = \"smooth\"\ntopic = \"over-smooth\"", "from = \"speed\"");
    let mut line = Line::with(&direct, &topic("speed", ""));
    line.publish(5);
    let file = line.prepared();
    // The mean takes them at the press, and they are kept for the office besides.
    line.publish(3);
    let committed = line.press.post("/api/v1/graphs/move", &Line::step("commit", None)).expect_status(200).json();
    // So what the office acknowledges does not get to the press.
    line.way.cut(true);
    let mut finish = Line::step("finish", Some(&file));
    finish["handover"] = committed["handover"].clone();
    line.call("POST", "/api/v1/graphs/move", &finish, 200);
    line.primary.signal(Signal::SIGKILL);
    line.way.cut(false);
    line.publish(2);
    line.backup.served();
    line.press.post("/api/v1/graphs/move", &Line::step("finish", Some(&file))).expect_status(200);
    line.publish(5);
    line.all_are_there(&[&line.backup]);
}

#[test]
fn a_node_that_begins_to_lead_knows_its_graphs_when_it_answers_for_the_first_time() {
    let line = Line::start();
    line.primary.signal(Signal::SIGKILL);
    let listed = || line.backup.call(System::Monitor, "GET", "/api/v1/graphs", None).ok().filter(|answer| answer.status == 200);
    let mut first = None;
    // Without a pause: what it says wrongly it says for a moment.
    let until = Instant::now() + PATIENCE;
    while first.is_none() && Instant::now() < until {
        first = listed();
    }
    let first = first.unwrap_or_else(|| panic!("it does not answer: {}", line.backup.said())).json();
    assert_eq!(first["data"][0]["name"], "line", "{first}");
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
    line.prepared();
    line.press.post("/api/v1/graphs/move", &Line::step("commit", None)).expect_status(200);
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
