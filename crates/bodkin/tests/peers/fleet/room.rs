//! Servers that have no room, and a stream that is deleted under its edges: what waits, what is told, and what is in the stream afterwards.

use serde_json::json;
use tempfile::TempDir;

use super::servers::Cluster;
use super::{Publisher, STREAM, configure_with, has, is_idle, lane, program, register, told, up};
use crate::support::cloud::System;
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;

/// Bytes that JetStream has on each server.
const STORE_BYTES: u64 = 2_000_000;
/// A message of somebody else's stream, and how many of them are more than there is room for.
const FILLER_BYTES: usize = 100_000;
const FILLERS_MAX: u64 = 40;

#[test]
#[ignore = "peer: ./x test --all"]
fn while_servers_have_no_room_events_wait_and_go_on_once_there_is_some() {
    let Some(program) = program("while_servers_have_no_room_events_wait_and_go_on_once_there_is_some") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, STORE_BYTES);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let cloud = up(place.path(), &configure_with(place.path(), "edge", &ports, "batch_bytes_max = 4096"));
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    publisher.publish_all(20, 0);
    has(&cluster, &cloud, "events", ((0..20).collect(), 0));
    // Somebody else's stream takes all that there is.
    let other = json!({"name": "OTHER", "subjects": ["other"], "storage": "file", "discard": "new", "num_replicas": 3});
    cluster.ask("STREAM.CREATE.OTHER", &other.to_string());
    let fillers =
        (0..FILLERS_MAX).take_while(|number| cluster.is_taken("other", &format!("{number} {}", "x".repeat(FILLER_BYTES)))).count();
    assert!((1..FILLERS_MAX as usize).contains(&fillers), "{fillers} messages of {FILLER_BYTES} bytes had room in {STORE_BYTES}");
    publisher.publish_all(200, 2_000);
    // A server whose storage is full says so once, and may be out of JetStream's work from then on.
    let words = ["insufficient resources", "temporarily unavailable"];
    let is_told = || lane(&cloud, "events")["trouble"].as_str().is_some_and(|trouble| words.iter().any(|words| trouble.contains(words)));
    assert!(eventually(is_told), "{}", told(&cloud));
    let waits = lane(&cloud, "events");
    assert!(waits["waiting"].as_u64().expect("a number") > 0 && waits["stopped"] == false && waits["lost"] == 0, "{waits}");
    cluster.ask("STREAM.DELETE.OTHER", "");
    has(&cluster, &cloud, "events", ((0..220).collect(), 0));
    assert!(eventually(|| is_idle(&cloud) && lane(&cloud, "events")["trouble"].is_null()), "{}", told(&cloud));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_stream_that_is_deleted_is_told_and_behind_its_making_anew_nothing_is_twice() {
    let Some(program) = program("a_stream_that_is_deleted_is_told_and_behind_its_making_anew_nothing_is_twice") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    // Somebody else makes the stream.
    let config = configure_with(place.path(), "edge", &ports, "");
    let text = std::fs::read_to_string(&config).expect("it was written").replace("create_replicas = 3", "create_replicas = 0");
    std::fs::write(&config, text).expect("written");
    let stream = json!({"name": STREAM, "subjects": ["fleet.*.*"], "storage": "file", "discard": "new", "num_replicas": 3}).to_string();
    cluster.ask("STREAM.CREATE.FLEET", &stream);
    let cloud = up(place.path(), &config);
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    publisher.publish_all(100, 0);
    has(&cluster, &cloud, "events", ((0..100).collect(), 0));
    assert!(lane(&cloud, "events")["emptiedThrough"].is_null(), "{}", told(&cloud));
    cluster.ask("STREAM.DELETE.FLEET", "");
    publisher.publish_all(100, 0);
    let is_told = || told(&cloud)["connected"] == false && told(&cloud)["trouble"].to_string().contains("stream not found");
    assert!(eventually(is_told), "{}", told(&cloud));
    assert!(eventually(|| lane(&cloud, "events")["waiting"] == 100), "{}", told(&cloud));
    assert_shown(cloud.address(System::Monitor), "BodkinFleetAway");
    cluster.ask("STREAM.CREATE.FLEET", &stream);
    // What was acknowledged is gone with the stream, which is told, and is not sent again; what waited is there once.
    has(&cluster, &cloud, "events", ((100..200).collect(), 0));
    // The stream has it before its acknowledgement has come.
    eventually(|| lane(&cloud, "events")["waiting"] == 0);
    let behind = lane(&cloud, "events");
    assert_eq!((&behind["emptiedThrough"], &behind["position"], &behind["lost"]), (&json!(100), &json!(200), &json!(0)), "{behind}");
    // None of its limits has done that, and there is an alert.
    assert!(behind["emptied"] == 1 && behind["emptiedMs"].as_u64().expect("a time") > 1_700_000_000_000, "{behind}");
    let metrics = cloud.get("/metrics").expect_status(200).text();
    assert!(metrics.contains("\nbodkin_fleet_emptied_total 1\n"), "{metrics}");
    assert_shown(cloud.address(System::Monitor), "BodkinFleetEmptied");
    publisher.publish_all(10, 0);
    has(&cluster, &cloud, "events", ((100..210).collect(), 0));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn what_a_stream_lets_go_of_by_its_age_is_told_and_raises_no_alert() {
    let Some(program) = program("what_a_stream_lets_go_of_by_its_age_is_told_and_raises_no_alert") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let mut stream = json!({"name": STREAM, "subjects": ["fleet.*.*"], "storage": "file", "discard": "new", "num_replicas": 3});
    let second_ns = 1_000_000_000;
    (stream["max_age"], stream["duplicate_window"]) = (json!(second_ns), json!(second_ns));
    cluster.ask("STREAM.CREATE.FLEET", &stream.to_string());
    let cloud = up(place.path(), &configure_with(place.path(), "edge", &ports, ""));
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    publisher.publish_all(100, 0);
    assert!(eventually(|| lane(&cloud, "events")["position"] == 100), "{}", told(&cloud));
    assert!(eventually(|| cluster.ask("STREAM.INFO.FLEET", "")["state"]["messages"] == 0), "{}", told(&cloud));
    publisher.publish_all(1, 0);
    assert!(eventually(|| lane(&cloud, "events")["position"] == 101), "{}", told(&cloud));
    let behind = lane(&cloud, "events");
    assert_eq!((&behind["emptiedThrough"], &behind["emptied"], &behind["lostByStream"]), (&json!(100), &json!(0), &json!(0)), "{behind}");
    assert!(behind["emptiedMs"].is_u64(), "{behind}");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn full_stream_is_a_trouble_until_it_accepts_events() {
    const NAME: &str = "full_stream_is_a_trouble_until_it_accepts_events";
    let Some(program) = program(NAME) else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let mut stream =
        json!({"name": STREAM, "subjects": ["fleet.*.*"], "storage": "file", "discard": "new", "num_replicas": 3, "max_msgs": 2});
    cluster.ask("STREAM.CREATE.FLEET", &stream.to_string());
    let cloud = up(place.path(), &configure_with(place.path(), "edge", &ports, "batch_wait_ms = 1"));
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    let overview = || cloud.get("/api/v1/overview").expect_status(200).json();
    for _ in 0..20 {
        publisher.publish_all(1, 0);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // The lane retries all the time: each attempt is refused, and in between the stream answers what it has.
    assert!(eventually(|| overview()["numbers"]["bodkin_fleet_refused_lanes"] == 1), "{}", told(&cloud));
    for _ in 0..50 {
        let now = overview();
        assert_eq!(now["numbers"]["bodkin_fleet_refused_lanes"], 1, "{}", told(&cloud));
        assert!(now["fleetTroubles"][0].as_str().is_some_and(|words| words.contains("maximum messages exceeded")), "{now}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(eventually(|| overview()["numbers"]["bodkin_fleet_lag_seconds"].as_f64().is_some_and(|lag| lag > 1.0)), "{}", overview());
    assert_shown(cloud.address(System::Monitor), "BodkinFleetRefused");
    stream["max_msgs"] = json!(1_000);
    cluster.ask("STREAM.UPDATE.FLEET", &stream.to_string());
    has(&cluster, &cloud, "events", ((0..20).collect(), 0));
    assert!(eventually(|| overview()["numbers"]["bodkin_fleet_refused_lanes"] == 0), "{}", told(&cloud));
    assert!(overview()["fleetTroubles"].is_null(), "{}", overview());
}
