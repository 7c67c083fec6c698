//! Which systems may publish a real-time topic: by the list in its declaration, and by its publisher slots.

use std::fs;
use std::path::Path;

use bodkin_broker::wire::RefusalReason;
use bodkin_zmtp::SocketType;
use serde_json::{Value, json};

use crate::commands::ended;
use crate::dealer::{dealer, header, publish, refused};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::cloud::{Cloud, Launch};
use crate::support::http::Answer;
use crate::support::patience::eventually;
use crate::support::sse::EventStream;
use crate::zmtp::{asked, named, peer};

/// A cloud in which `alice` publishes by sockets that say no name.
fn start(data: &Path, topics: &str) -> Cloud {
    let file = data.join("bodkin.toml");
    fs::write(&file, topics).expect("written");
    Launch::new().data(data).flags(["--config", file.to_str().expect("text"), "--zmtp-system", "alice"]).start()
}

fn send(cloud: &Cloud, event_type: &str, name: &str, port: u16) -> Answer {
    cloud.post("/eventhandler/publish", &event(event_type, system(name, port), "1"))
}

/// The topic as the API lists it.
fn row(cloud: &Cloud, event_type: &str) -> Value {
    let topics = cloud.get("/api/v1/topics").expect_status(200).json();
    let rows = topics["data"].as_array().expect("a list");
    rows.iter().find(|row| row["eventType"] == event_type).unwrap_or_else(|| panic!("{event_type} in {topics}")).clone()
}

fn holders(row: &Value) -> Vec<&str> {
    row["publisherSlots"]["systems"].as_array().expect("a list").iter().map(|holder| holder["system"].as_str().expect("a name")).collect()
}

#[test]
fn second_registration_leaves_slot_to_other_system() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), "[[topic]]\nevent_type = \"hot\"\nperiod_us = 1\n");
    for (name, port) in [("alice", 1001), ("alice", 1002), ("sensor", 9000), ("bob", 1)] {
        cloud.register_system(name, port);
    }
    for (name, port) in [("alice", 1001), ("alice", 1002), ("sensor", 9000), ("alice", 1001), ("alice", 1002), ("sensor", 9000)] {
        send(&cloud, "hot", name, port).expect_status(200);
    }
    assert_eq!(holders(&row(&cloud, "HOT")), ["alice", "sensor"]);
    let refusal = send(&cloud, "hot", "bob", 1).expect_status(503).text();
    assert!(refusal.contains("no free publisher slot for bob: all are held by alice, sensor"), "{refusal}");
    let told = row(&cloud, "HOT");
    assert_eq!((&told["publisherRejected"], &told["rejectedPublisher"]["system"]), (&json!(1), &json!("bob")), "{told}");
    let shown = ended(&cloud, "status", 1);
    assert!(shown.contains("topic HOT has no free publisher slot, and rejected bob at ") && shown.contains("alice since "), "{shown}");
    let listed = ended(&cloud, "topic list", 0);
    assert!(listed.contains("sensor since ") && listed.contains("bob at "), "{listed}");
    assert!(eventually(|| cloud.stderr().contains("publisher rejected")), "{}", cloud.stderr());
    let metrics = cloud.get("/metrics").expect_status(200).text();
    assert!(metrics.contains("\nbodkin_topic_publisher_rejected_total{event_type=\"HOT\"} 1\n"), "{metrics}");
}

#[test]
fn unlisted_publisher_is_refused_on_every_transport() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), "[[topic]]\nevent_type = \"hot\"\nperiod_us = 1\npublisher = \"sensor\"\n");
    cloud.register_system("sensor", 1);
    cloud.register_system("alice", 2);
    let rule = "alice may not publish HOT: the topic's declaration states publisher = sensor";
    let refusal = send(&cloud, "hot", "alice", 2).expect_status(401).text();
    assert!(refusal.contains(rule), "{refusal}");
    let (status, text) = asked(&mut named(&cloud, SocketType::Req, Some("alice")), &[b"hot", b"1"]);
    assert!(status == "401" && text.contains(rule), "{status} {text}");
    let mut link = dealer(&cloud, "alice");
    publish(&mut link, "hot", b"1", &header(1));
    let (reason, text) = refused(&mut link);
    assert!(reason == RefusalReason::NotAuthorized && text.contains(rule), "{reason:?} {text}");
    for (count, socket_type) in [SocketType::Push, SocketType::Pub].into_iter().enumerate() {
        let mut untold = peer(&cloud, socket_type);
        untold.say(&[b"hot", b"1"]);
        let is_counted = || row(&cloud, "HOT")["publisherRejected"] == 4 + count;
        assert!(eventually(is_counted), "{socket_type:?}: {}", row(&cloud, "HOT"));
    }
    let (status, _) = asked(&mut named(&cloud, SocketType::Req, Some("sensor")), &[b"hot", b"1"]);
    assert_eq!(status, "200");
    let told = row(&cloud, "HOT");
    assert_eq!((&told["publisher"], &told["accepted"], holders(&told)), (&json!(["sensor"]), &json!(1), vec!["sensor"]));
    let shown = ended(&cloud, "status", 0);
    assert!(shown.contains("notice") && shown.contains("topic HOT rejected alice at "), "{shown}");
}

#[test]
fn declared_publishers_survive_restart_and_end_with_topic() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), "");
    cloud.register_system("sensor", 1);
    cloud.register_system("alice", 2);
    ended(&cloud, "topic add hot period_us=1 publishers=2 publisher=sensor,Spare", 0);
    ended(&cloud, "topic add cold period_us=1 publisher=sensor,spare", 1);
    assert!(cloud.stop().success());
    let cloud = start(data.path(), "");
    assert_eq!(row(&cloud, "HOT")["publisher"], json!(["sensor", "spare"]));
    send(&cloud, "hot", "alice", 2).expect_status(401);
    send(&cloud, "hot", "sensor", 1).expect_status(200);
    let listed = ended(&cloud, "topic list", 0);
    assert!(listed.contains("spare (reserved)"), "{listed}");
    ended(&cloud, "topic remove hot", 0);
    send(&cloud, "hot", "alice", 2).expect_status(200);
}

#[test]
fn declared_publisher_has_its_slot_whoever_published_before() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), "");
    for (name, port) in [("alice", 1), ("bob", 2), ("sensor", 3)] {
        cloud.register_system(name, port);
    }
    ended(&cloud, "topic add row period_us=1", 0);
    for (name, port, status) in [("alice", 1, 200), ("bob", 2, 200), ("sensor", 3, 503)] {
        send(&cloud, "row", name, port).expect_status(status);
    }
    ended(&cloud, "topic remove row", 0);
    ended(&cloud, "topic add row period_us=1 publisher=sensor", 0);
    send(&cloud, "row", "sensor", 3).expect_status(200);
    assert_eq!(holders(&row(&cloud, "ROW")), ["sensor"]);
}

#[test]
fn graph_output_follows_list_of_its_topic() {
    let data = tempfile::tempdir().expect("a directory");
    let topic = |name: &str, publisher: &str| format!("[[topic]]\nevent_type = \"{name}\"\nperiod_us = 1\npublisher = \"{publisher}\"\n");
    let cloud = start(data.path(), &[topic("own", "sensor"), topic("other", "alice")].concat());
    cloud.register_system("sensor", 1);
    let graph = "[graph]\nname = \"means\"\n[[supplier]]\ntopic = \"level\"\nshape = \"f64\"\nperiod_ms = 1\n\
        [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"level\"]\nwindow = 4\n\
        [[output]]\ntopic = \"other\"\nfrom = \"mean\"\n[[output]]\ntopic = \"own\"\nfrom = \"mean\"\n";
    cloud.post("/api/v1/graphs", &json!({ "file": graph })).expect_status(201);
    let own = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=own", &[]);
    send(&cloud, "level", "sensor", 1).expect_status(200);
    own.wait_for(1);
    assert!(eventually(|| row(&cloud, "OTHER")["publisherRejected"] == 1), "{}", row(&cloud, "OTHER"));
    assert_eq!(row(&cloud, "OTHER")["rejectedPublisher"]["system"], "sensor");
}
