//! An operator moves between two clouds in secure mode: each of them is asked by its own operator, and the new edge hears by a key and the rules of the old one.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::edges::key_at;
use super::{allow, register, register_publisher};
use crate::commands::moves::LINE;
use crate::real_time_client::topic;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
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

#[test]
fn each_step_is_its_own_edges_operators_and_the_state_goes_along() {
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
    let publish = |value: u32| {
        let body = event("speed", system("sensor", 1), &value.to_string());
        sensor.expect(&press.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
    };
    (1..=4).for_each(publish);
    assert_eq!(streams.0.wait_for(4)[3].data, "2.5");

    let form = |step: &str, more: Value| {
        let mut form = json!({"graph": "line", "operator": "mean", "to": "office", "step": step});
        form.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        form
    };
    let ask = |cloud: &SecureCloud, form: &Value| sysop.expect(&cloud.cloud, "POST", "/api/v1/graphs/move", Some(form), 200).json();
    for step in ["plan", "commit", "prepare", "finish", "abandon"] {
        sensor.expect(&press.cloud, "POST", "/api/v1/graphs/move", Some(&form(step, json!({}))), 403);
    }
    let plan = ask(&press, &form("plan", json!({})));
    ask(&office, &form("prepare", json!({"file": plan["file"], "release": plan["release"]})));
    let committed = ask(&press, &form("commit", json!({})));
    publish(5);
    ask(&office, &form("finish", json!({"file": plan["file"], "handover": committed["handover"]})));
    ask(&press, &form("finish", json!({"file": plan["file"]})));
    publish(6);
    let heard: Vec<String> = streams.1.wait_for(2).into_iter().map(|event| event.data).collect();
    assert_eq!(heard, ["3.5", "4.5"], "the mean of four, of which three were taken at the press");
    assert_eq!(streams.0.count(), 4);
    let log = sysop.expect(&press.cloud, "GET", "/api/v1/audit?kind=change&count=1000", None, 200).text();
    assert!(log.contains("graphs/move"), "{log}");
}
