//! A version of a graph takes the place of another one while events come: none is lost, none is taken twice, and what an operator has goes on with it.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::sse::EventStream;

/// The mean of two levels, and what is known of a level and a pressure together. Versions differ in `more`.
fn file(window: u32, more: &str) -> String {
    format!(
        r#"
[graph]
name = "tank"
cores = 1
replace_queued = false

[[supplier]]
topic = "level"
shape = "f64"
period_ms = 1

[[supplier]]
topic = "pressure"
shape = "f64"
period_ms = 1

[[operator]]
name = "smooth"
kind = "moving_average"
inputs = ["level"]
window = {window}

[[operator]]
name = "both"
kind = "join"
inputs = ["smooth", "pressure"]
names = ["level", "pressure"]

[[output]]
topic = "level-smooth"
from = "smooth"

[[output]]
topic = "tank-both"
from = "both"
{more}"#
    )
}

fn start() -> Cloud {
    let cloud = Launch::new().start();
    cloud.register_system("sensor", 1);
    cloud
}

fn deploy(cloud: &Cloud, file: &str) -> Value {
    cloud.post("/api/v1/graphs", &json!({ "file": file })).expect_status(201).json()
}

fn publish(cloud: &Cloud, event_type: &str, value: u32) {
    cloud.post("/eventhandler/publish", &event(event_type, system("sensor", 1), &value.to_string())).expect_status(200);
}

fn stream(cloud: &Cloud, event_type: &str) -> EventStream {
    EventStream::open(cloud.address(System::EventHandler), &format!("/eventhandler/subscription?eventtype={event_type}"), &[])
}

#[test]
fn what_waits_at_an_operator_goes_on_with_it_and_the_answer_says_whose_state_does() {
    let cloud = start();
    deploy(&cloud, &file(2, ""));
    let (smooth, both) = (stream(&cloud, "level-smooth"), stream(&cloud, "tank-both"));
    publish(&cloud, "level", 4);
    smooth.wait_for(1);
    let answer = deploy(&cloud, &file(2, "# the same once more"));
    assert_eq!((&answer["statesKept"], &answer["statesAnew"]), (&json!(["smooth", "both"]), &json!([])));
    publish(&cloud, "pressure", 7);
    let seen: Value = serde_json::from_str(&both.wait_for(1)[0].data).expect("JSON");
    assert_eq!(seen, json!({"level": 4.0, "pressure": 7.0}), "the level waited for a pressure");
    publish(&cloud, "level", 6);
    assert_eq!(smooth.wait_for(2)[1].data, "5.0", "with the state of before");
    let answer = deploy(&cloud, &file(3, ""));
    assert_eq!((&answer["statesKept"], &answer["statesAnew"]), (&json!(["both"]), &json!(["smooth"])));
    publish(&cloud, "pressure", 8);
    let seen: Value = serde_json::from_str(&both.wait_for(2)[1].data).expect("JSON");
    assert_eq!(seen, json!({"level": 5.0, "pressure": 8.0}), "what waits is not the operator's state");
    publish(&cloud, "level", 9);
    assert_eq!(smooth.wait_for(3)[2].data, "9.0", "anew");
}

#[test]
fn every_event_is_processed_once_and_in_order_however_often_the_graph_is_replaced() {
    const EVENTS: u32 = 400;
    let cloud = start();
    deploy(&cloud, &file(2, ""));
    let smooth = stream(&cloud, "level-smooth");
    thread::scope(|scope| {
        scope.spawn(|| {
            for value in 1..=EVENTS {
                publish(&cloud, "level", value);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let mut version = 0;
        while smooth.count() < EVENTS as usize / 2 || version < 4 {
            deploy(&cloud, &file(2, &format!("# version {version}")));
            version += 1;
        }
    });
    let is_whole = || smooth.count() >= EVENTS as usize;
    assert!(eventually(is_whole), "{} of {EVENTS}: {}", smooth.count(), cloud.get("/api/v1/graphs").text());
    let means: Vec<f64> = smooth.wait_for(EVENTS as usize).iter().map(|event| event.data.parse().expect("a number")).collect();
    let expected: Vec<f64> = (1..=EVENTS).map(|value| if value == 1 { 1.0 } else { f64::from(value) - 0.5 }).collect();
    assert_eq!(means, expected);
}
