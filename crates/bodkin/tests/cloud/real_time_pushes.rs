//! Pushed subscriptions that ask a deadline or a bound on losses of their topic.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::arrowhead::{INSECURE_JSON_ID, event, subscription, system};
use crate::support::cloud::{Cloud, Launch};
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};

const DECLARED_US: u64 = 60_000_000;

fn start(data: &Path) -> Cloud {
    let file = data.join("bodkin.toml");
    let topic = |name| format!("[[topic]]\nevent_type = \"{name}\"\nperiod_ms = 1\nbroker_subscriber_max_ms = 2\ndeadline_s = 60\n");
    fs::write(&file, [topic("hot"), topic("cold")].concat()).expect("written");
    Launch::new().data(data).flags(["--config", file.to_str().expect("text")]).start()
}

/// What a topic promises now.
fn deadline_us(cloud: &Cloud, event_type: &str) -> Option<u64> {
    let topics = cloud.get("/api/v1/topics").expect_status(200).json();
    topics["data"].as_array().expect("a list").iter().find(|row| row["eventType"] == event_type)?["deadlineUs"].as_u64()
}

fn asking(event_type: &str, port: u16, more: Value) -> Value {
    let mut form = subscription(event_type, system("listener", port), "/notify");
    form.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    form
}

#[test]
fn a_topic_is_as_strict_as_its_pushed_subscriptions_ask_and_what_does_not_fit_is_refused_to_that_subscriber_alone() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path());
    let subscriber = PushSubscriber::listen(Manner::Answers);
    let port = subscriber.port();
    let (sensor, definition) = cloud.register_publisher("sensor", 1);
    let listener = cloud.register_system("listener", port);
    cloud.allow(listener, sensor, definition, &[INSECURE_JSON_ID]);

    cloud.subscribe(&asking("hot", port, json!({"deadlineUs": 50_500})));
    assert_eq!(deadline_us(&cloud, "HOT"), Some(50_500));
    cloud.subscribe(&asking("hot", port, json!({"deadlineUs": 40_000})));
    assert_eq!(deadline_us(&cloud, "HOT"), Some(40_000), "it replaces what the same subscriber asked before");
    let unregistered = json!([system("nobody", 9)]);
    for (event_type, asked, words) in [
        ("hot", json!({"deadlineUs": 1_000}), "It would be admitted with deadline_ms = 2"),
        ("hot", json!({"lossTolerance": 0}), "It would be admitted with"),
        ("hot", json!({"lossTolerance": -1}), "lossTolerance is -1"),
        ("hot", json!({"deadlineUs": 0}), "deadlineUs is 0"),
        ("hot", json!({"required": true}), "Events cannot wait for a pushed subscription"),
        ("any", json!({"deadlineUs": 5_000}), "declare its period"),
        ("hot", json!({"deadlineUs": 30_000, "sources": unregistered}), "is not registered"),
        ("cold", json!({"deadlineUs": 30_000, "sources": unregistered}), "is not registered"),
    ] {
        let refused = cloud.post("/eventhandler/subscribe", &asking(event_type, port, asked.clone())).expect_status(400);
        assert!(refused.text().contains(words), "{asked}: {}", refused.text());
        assert_eq!((deadline_us(&cloud, "HOT"), deadline_us(&cloud, "COLD")), (Some(40_000), Some(DECLARED_US)), "{asked}");
    }
    cloud.publish(&event("hot", system("sensor", 1), "x"));
    subscriber.wait_until(|pushed| pushed.len() == 1, "it is served all the while");
    let listed = cloud.get("/eventhandler/mgmt/subscriptions").expect_status(200).json();
    assert_eq!((&listed["count"], &listed["data"][0]["deadlineUs"]), (&json!(1), &json!(40_000)), "{listed}");

    assert!(cloud.stop().success());
    let cloud = start(data.path());
    assert!(eventually(|| deadline_us(&cloud, "HOT") == Some(40_000)), "it asks anew at every start");
    let id = listed["data"][0]["id"].as_i64().expect("a number");
    let target = format!("/eventhandler/mgmt/subscriptions/{id}");
    cloud.call("PUT", &target, Some(&asking("cold", port, json!({"deadlineUs": 20_000})))).expect_status(200);
    assert_eq!(deadline_us(&cloud, "COLD"), Some(20_000));
    assert!(eventually(|| deadline_us(&cloud, "HOT") == Some(DECLARED_US)), "{:?}", deadline_us(&cloud, "HOT"));
    cloud.subscribe(&asking("cold", port, json!({})));
    assert!(eventually(|| deadline_us(&cloud, "COLD") == Some(DECLARED_US)), "who asks for nothing any more is forgotten");
    cloud.subscribe(&asking("cold", port, json!({"deadlineUs": 10_000})));
    assert_eq!(deadline_us(&cloud, "COLD"), Some(10_000));
    let gone = format!("/eventhandler/unsubscribe?event_type=cold&system_name=listener&address=127.0.0.1&port={port}");
    cloud.delete(&gone).expect_status(200);
    assert!(eventually(|| deadline_us(&cloud, "COLD") == Some(DECLARED_US)), "{:?}", deadline_us(&cloud, "COLD"));
}
