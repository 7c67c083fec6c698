//! An operator moves between two clouds in secure mode: each of them is asked by its own operator, and the new edge hears by a key and the rules of the old one.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::edges::key_at;
use super::{allow, register, register_publisher};
use crate::commands::moves::LINE;
use crate::real_time_client::topic;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{BINARY, System};
use crate::support::secure::{Client, SecureCloud};
use crate::support::sse::EventStream;

/// Hears the means of a cloud as its system `display`, which may hear a publisher.
fn means(cloud: &SecureCloud, publisher: (i64, i64)) -> EventStream {
    let display = Client::system("display");
    let id = register(&cloud.cloud, &display, &system("display", 1));
    allow(&cloud.cloud, id, publisher);
    let target = "/eventhandler/subscription?eventtype=line-mean&system_name=display&address=127.0.0.1&port=1";
    EventStream::open_on(display.connect(cloud.cloud.address(System::EventHandler)).expect("a connection"), target, &[])
}

/// Two clouds over which a graph runs, with the mean at the press, and what their displays hear of it.
struct Line {
    press: SecureCloud,
    office: SecureCloud,
    at_press: EventStream,
    at_office: EventStream,
    sysop: Client,
    sensor: Client,
    _place: TempDir,
}

impl Line {
    fn start() -> Self {
        let place = TempDir::new().expect("a directory");
        let config = place.path().join("press.toml");
        fs::write(&config, topic("over-smooth", "")).expect("written");
        let press = SecureCloud::start(["--config", config.to_str().expect("text"), "--edge", "press"]);
        let (sysop, sensor) = (Client::system("sysop"), Client::system("sensor"));
        let source = register_publisher(&press.cloud, &sensor, "sensor");
        let edge = register(&press.cloud, &Client::system("office"), &system("office", 2));
        allow(&press.cloud, edge, source);
        let (at, own) = key_at(&press, place.path());
        let office = SecureCloud::start(["--edge", "office", "--edges", &at, "--edge-curve", &own]);
        let at_office = register_publisher(&office.cloud, &Client::system("press"), "press");
        let streams = (means(&press, source), means(&office, at_office));
        for cloud in [&press, &office] {
            sysop.expect(&cloud.cloud, "POST", "/api/v1/graphs", Some(&json!({ "file": LINE })), 201);
        }
        let (at_press, at_office) = streams;
        Self { press, office, at_press, at_office, sysop, sensor, _place: place }
    }

    fn publish(&self, value: u32) {
        let body = event("speed", system("sensor", 1), &value.to_string());
        self.sensor.expect(&self.press.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
    }
}

#[test]
fn each_step_is_its_own_edges_operators_and_the_state_goes_along() {
    let line = Line::start();
    let Line { press, office, sysop, sensor, .. } = &line;
    (1..=4).for_each(|value| line.publish(value));
    assert_eq!(line.at_press.wait_for(4)[3].data, "2.5");

    let form = |step: &str, more: Value| {
        let mut form = json!({"graph": "line", "operator": "mean", "to": "office", "step": step});
        form.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        form
    };
    let ask = |cloud: &SecureCloud, form: &Value| sysop.expect(&cloud.cloud, "POST", "/api/v1/graphs/move", Some(form), 200).json();
    for step in ["plan", "commit", "prepare", "finish", "abandon"] {
        sensor.expect(&press.cloud, "POST", "/api/v1/graphs/move", Some(&form(step, json!({}))), 403);
    }
    let plan = ask(press, &form("plan", json!({})));
    ask(office, &form("prepare", json!({"file": plan["file"], "release": plan["release"]})));
    let committed = ask(press, &form("commit", json!({})));
    line.publish(5);
    ask(office, &form("finish", json!({"file": plan["file"], "handover": committed["handover"]})));
    ask(press, &form("finish", json!({"file": plan["file"]})));
    line.publish(6);
    let heard: Vec<String> = line.at_office.wait_for(2).into_iter().map(|event| event.data).collect();
    assert_eq!(heard, ["3.5", "4.5"], "the mean of four, of which three were taken at the press");
    assert_eq!(line.at_press.count(), 4);
    let log = sysop.expect(&press.cloud, "GET", "/api/v1/audit?kind=change&count=1000", None, 200).text();
    assert!(log.contains("graphs/move"), "{log}");
}

#[test]
fn the_command_acts_as_each_edges_operator_by_the_certificates_that_are_named_with_it() {
    let line = Line::start();
    (1..=4).for_each(|value| line.publish(value));
    line.at_press.wait_for(4);
    let own = line.press.trust("");
    let moved = |trust: &Path| {
        let at = format!("office={} {}", line.office.cloud.address(System::Monitor), trust.display());
        let mut command = Command::new(BINARY);
        command.args(["graph", "move", "mean", "--to", "office", "--at", &at, "--trust"]).arg(&own);
        let output =
            command.env("BODKIN_MONITOR", line.press.cloud.address(System::Monitor).to_string()).output().expect("the binary starts");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let nowhere = own.join("elsewhere");
    let (code, _, told) = moved(&nowhere);
    assert!(code == Some(1) && told.contains("elsewhere"), "{told}");
    let (code, said, told) = moved(&line.office.trust(""));
    assert!(code == Some(0) && said.contains("moved: mean runs on office"), "{said}{told}");
    (5..=6).for_each(|value| line.publish(value));
    let heard: Vec<String> = line.at_office.wait_for(2).into_iter().map(|event| event.data).collect();
    assert_eq!(heard, ["3.5", "4.5"]);
}
