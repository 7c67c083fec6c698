//! What a listener has missed: `Last-Event-ID`, `since`, over restarts and kills; heartbeats; what only some want to hear.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::{INSECURE_JSON_ID, event, system, with};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Connection;
use crate::support::instant::utc;
use crate::support::patience::eventually;
use crate::support::sse::{EventStream, UnreadStream, until_live};
use crate::support::stream::{Event, Told};

const TYPE: &str = "replayed";

fn cloud_in(data: &TempDir) -> Cloud {
    Launch::new().data(data.path()).start()
}

/// Registers the one publisher of these tests.
fn register(cloud: &Cloud) {
    cloud.register_publisher("recorder", 1);
}

fn publish(cloud: &Cloud, numbers: std::ops::Range<usize>) {
    let mut connection = cloud.connect(System::EventHandler);
    numbers.for_each(|number| publish_on(&mut connection, number));
}

fn publish_on(connection: &mut Connection, number: usize) {
    let body = event(TYPE, system("recorder", 1), &number.to_string()).to_string();
    let headers = [("Content-Type", "application/json")];
    connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("an answer").expect_status(200);
}

fn listen(cloud: &Cloud, parameters: &str, headers: &[(&str, &str)]) -> EventStream {
    let target = format!("/eventhandler/subscription?eventtype={TYPE}{parameters}");
    EventStream::open(cloud.address(System::EventHandler), &target, headers)
}

fn numbers(events: &[Event]) -> Vec<usize> {
    events.iter().map(|event| event.data.parse().unwrap_or_else(|_| panic!("{event:?}"))).collect()
}

fn range(range: std::ops::Range<usize>) -> Vec<usize> {
    range.collect()
}

#[test]
fn a_listener_that_comes_back_gets_what_it_missed_and_then_what_is_new() {
    let cloud = Launch::new().start();
    register(&cloud);
    let first = listen(&cloud, "", &[]);
    publish(&cloud, 0..3);
    let last_id = first.wait_for(3)[2].id.clone();
    drop(first);
    // Nobody listens meanwhile.
    publish(&cloud, 3..10);
    let by_header = listen(&cloud, "", &[("Last-Event-ID", &last_id)]);
    let by_parameter = listen(&cloud, &format!("&last_event_id={last_id}"), &[]);
    for stream in [&by_header, &by_parameter] {
        assert_eq!(numbers(&until_live(stream)), range(3..10));
    }
    publish(&cloud, 10..12);
    for stream in [by_header, by_parameter] {
        assert_eq!(numbers(&stream.wait_for(9)), range(3..12));
    }
}

#[test]
fn both_forms_are_replayed_as_they_were_sent() {
    let cloud = Launch::new().start();
    register(&cloud);
    let forms = ["/eventhandler/subscription?eventtype=replayed", "/eventhandler/events?event_type=replayed"];
    let live = forms.map(|target| EventStream::open(cloud.address(System::EventHandler), target, &[]));
    for payload in ["plain", "two\nlines \"quoted\" \\ 😀", "{\"value\": 21.5}"] {
        cloud.publish(&with(event("Replayed", system("recorder", 1), payload), "/metaData", json!({"unit": "°C"})));
    }
    for (live, target) in live.iter().zip(forms) {
        let replayed = EventStream::open(cloud.address(System::EventHandler), &format!("{target}&since=0"), &[]);
        assert_eq!(until_live(&replayed), live.wait_for(3), "{target}");
    }
}

#[test]
fn a_stream_may_begin_at_a_time() {
    let cloud = Launch::new().start();
    register(&cloud);
    publish(&cloud, 0..5);
    // The time is rounded down to a whole second, which must not be one of those events'.
    std::thread::sleep(Duration::from_millis(1100));
    let time = utc(SystemTime::now());
    publish(&cloud, 5..8);
    assert_eq!(numbers(&until_live(&listen(&cloud, &format!("&since={time}"), &[]))), range(5..8));
    assert_eq!(numbers(&until_live(&listen(&cloud, "&since=1970-01-01T00:00:00Z", &[]))), range(0..8));
    assert_eq!(numbers(&until_live(&listen(&cloud, "&since=2999-01-01T00:00:00Z", &[]))), range(0..0));
    let refused = cloud.get("/eventhandler/subscription?eventtype=x&since=yesterday").expect_status(400).json();
    assert_eq!(refused["exceptionType"], "BAD_PAYLOAD");
}

#[test]
fn a_restart_and_a_kill_lose_nothing_that_was_answered() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud_in(&data);
    register(&cloud);
    let stream = listen(&cloud, "", &[]);
    publish(&cloud, 0..100);
    let id = stream.wait_for(100)[49].id.clone();
    cloud.stop();

    let cloud = cloud_in(&data);
    assert_eq!(numbers(&until_live(&listen(&cloud, "", &[("Last-Event-ID", &id)]))), range(50..100));
    publish(&cloud, 100..150);
    cloud.kill();

    let cloud = cloud_in(&data);
    publish(&cloud, 150..160);
    let replayed = until_live(&listen(&cloud, "", &[("Last-Event-ID", &id)]));
    assert_eq!(numbers(&replayed), range(50..160));
    let mut ids: Vec<&str> = replayed.iter().map(|event| event.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 110, "an identity is never given twice");
}

#[test]
fn a_restart_in_the_middle_of_a_replay_is_gone_on_behind() {
    const EVENTS: usize = 20_000;
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud_in(&data);
    register(&cloud);
    publish(&cloud, 0..EVENTS);
    let stream = listen(&cloud, "&since=0", &[]);
    let heard = stream.wait_for(EVENTS / 10);
    cloud.kill();
    let mut heard = heard;
    let id = heard.last().expect("events were heard").id.clone();
    let cloud = cloud_in(&data);
    heard.extend(until_live(&listen(&cloud, "", &[("Last-Event-ID", &id)])));
    assert_eq!(numbers(&heard), range(0..EVENTS));
}

#[test]
fn a_replay_goes_live_without_a_gap_while_events_are_published() {
    const BEFORE: usize = 3_000;
    const LISTENERS: usize = 8;
    let cloud = Launch::new().start();
    register(&cloud);
    publish(&cloud, 0..BEFORE);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let (streams, published) = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            let mut connection = cloud.connect(System::EventHandler);
            let mut number = BEFORE;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                publish_on(&mut connection, number);
                number += 1;
            }
            number
        });
        let streams: Vec<EventStream> = (0..LISTENERS)
            .map(|_| {
                let stream = listen(&cloud, "&since=0", &[]);
                until_live(&stream);
                stream
            })
            .collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        (streams, publisher.join().expect("the publisher ends"))
    });
    for stream in streams {
        assert_eq!(numbers(&stream.wait_for(published)), range(0..published));
    }
}

#[test]
fn what_cannot_be_found_is_told_and_everything_kept_is_sent() {
    let cloud = Launch::new().start();
    register(&cloud);
    publish(&cloud, 0..3);
    for id in ["7f-1-0-5", "not an id of ours", "1-2-3"] {
        let replayed = until_live(&listen(&cloud, "", &[("Last-Event-ID", id)]));
        assert_eq!((replayed[0].event_type.as_str(), replayed[0].data.as_str()), ("bodkin-lost", r#"{"lost":null}"#), "{id}");
        assert_eq!(numbers(&replayed[1..]), range(0..3), "{id}");
    }
}

#[test]
fn without_a_log_the_gap_is_told_and_the_stream_is_live() {
    let cloud = Launch::new().flags(["--event-log", "false"]).start();
    register(&cloud);
    publish(&cloud, 0..3);
    let stream = listen(&cloud, "", &[("Last-Event-ID", "1-1-1-1")]);
    publish(&cloud, 3..4);
    let events = stream.wait_for(2);
    assert_eq!((events[0].event_type.as_str(), events[1].data.as_str()), ("bodkin-lost", "3"));
    let refused = Launch::new().flags(["--event-log", "false", "--durable-event-types", TYPE]).start();
    register(&refused);
    let answer = refused.post("/eventhandler/publish", &event(TYPE, system("recorder", 1), "x")).expect_status(503).json();
    assert!(answer["errorMessage"].as_str().is_some_and(|told| told.contains("durable")), "{answer}");
}

#[test]
fn a_named_listener_is_replayed_only_what_it_may_hear() {
    let cloud = Launch::new().start();
    let (recorder, definition) = cloud.register_publisher("recorder", 1);
    cloud.register_publisher("other", 1);
    let listener = cloud.register_system("listener", 1);
    cloud.allow(listener, recorder, definition, &[INSECURE_JSON_ID]);
    cloud.publish(&event(TYPE, system("other", 1), "7"));
    publish(&cloud, 0..2);
    let named = "&system_name=listener&address=127.0.0.1&port=1&since=0";
    assert_eq!(numbers(&until_live(&listen(&cloud, named, &[]))), range(0..2));
    assert_eq!(numbers(&until_live(&listen(&cloud, "&since=0", &[]))), [7, 0, 1]);
}

#[test]
fn durable_events_are_answered_when_they_are_synced() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = Launch::new().data(data.path()).flags(["--durable-event-types", "other,Replayed"]).start();
    register(&cloud);
    let stream = listen(&cloud, "", &[]);
    publish(&cloud, 0..20);
    // Publishers that send on without waiting are answered one by one, in their order.
    let mut connection = cloud.connect(System::EventHandler);
    for number in 20..30 {
        let body = event(TYPE, system("recorder", 1), &number.to_string()).to_string();
        connection
            .send_request("POST", "/eventhandler/publish", &[("Content-Type", "application/json")], Some(body.as_bytes()))
            .expect("sent");
    }
    for _ in 20..30 {
        connection.read_answer().expect("an answer").expect_status(200);
    }
    assert_eq!(numbers(&stream.wait_for(30)), range(0..30));
    cloud.kill();
    let cloud = cloud_in(&data);
    assert_eq!(numbers(&until_live(&listen(&cloud, "&since=0", &[]))), range(0..30));
}

#[test]
fn a_silent_stream_is_kept_alive_and_says_when_to_come_back() {
    let cloud = Launch::new().flags(["--heartbeat-ms", "300"]).start();
    let stream = listen(&cloud, "", &[]);
    let heartbeats = |told: &[Told]| told.iter().filter(|item| **item == Told::Comment(" heartbeat".into())).count();
    let told = stream.wait_until(|told| heartbeats(told) >= 2, "second heartbeat");
    assert_eq!(told[..2], [Told::Retry(1000), Told::Comment(" subscribed".into())]);
}

#[test]
fn a_slow_replay_holds_nobody_up_and_is_complete() {
    const EVENTS: usize = 4_000;
    let cloud = Launch::new().start();
    register(&cloud);
    let mut publisher = cloud.connect(System::EventHandler);
    let filling = "x".repeat(4_000);
    for number in 0..EVENTS {
        let body = event(TYPE, system("recorder", 1), &format!("{number} {filling}")).to_string();
        let headers = [("Content-Type", "application/json")];
        publisher.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("an answer").expect_status(200);
    }
    let target = format!("/eventhandler/subscription?eventtype={TYPE}&since=0");
    let slow = UnreadStream::open(cloud.address(System::EventHandler), &target, &[]);
    let live = listen(&cloud, "", &[]);
    publish(&cloud, EVENTS..EVENTS + 10);
    assert_eq!(numbers(&live.wait_for(10)), range(EVENTS..EVENTS + 10));
    let heard = slow.read().wait_for(EVENTS + 10);
    let first_words: Vec<usize> =
        heard.iter().map(|event| event.data.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")).collect();
    assert_eq!(first_words, range(0..EVENTS + 10));
}

#[test]
fn the_oldest_events_go_when_the_log_is_full() {
    let cloud = Launch::new().flags(["--event-log-bytes-max", "1048576"]).start();
    register(&cloud);
    let mut publisher = cloud.connect(System::EventHandler);
    let filling = "x".repeat(10_000);
    for number in 0..400 {
        let body = event(TYPE, system("recorder", 1), &format!("{number} {filling}")).to_string();
        publisher
            .request("POST", "/eventhandler/publish", &[("Content-Type", "application/json")], Some(body.as_bytes()))
            .expect("an answer")
            .expect_status(200);
        std::thread::sleep(Duration::from_millis(1));
    }
    let kept = || until_live(&listen(&cloud, "&since=0", &[]));
    assert!(eventually(|| kept().len() < 150), "{} events of 10 kB are kept of 1 MiB", kept().len());
    // All that ever was is requested, and the log does not begin with the first event any more.
    let mut kept = kept();
    assert_eq!(kept.remove(0).event_type, "bodkin-lost");
    // How many are left depends on when files were changed; that the newest are does not.
    let numbers: Vec<usize> = kept.iter().map(|event| event.data.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, (400 - numbers.len()..400).collect::<Vec<_>>());
    assert!(!numbers.is_empty());
}

#[test]
fn listeners_hear_what_their_filters_let_pass() {
    let cloud = Launch::new().start();
    register(&cloud);
    let all = listen(&cloud, "", &[]);
    let grave = listen(&cloud, "&severity=warning", &[]);
    let hot = listen(&cloud, "&payload.temperature/value=%3E21.5", &[]);
    let in_hall = listen(&cloud, "&metadata.place=Hall&metadata.line=2", &[]);
    let events = [
        (r#"{"temperature":{"value":21.5}}"#, json!({"severity": "Critical", "place": "hall", "line": "2"})),
        (r#"{"temperature":{"value":22}}"#, json!({"severity": "Debugging", "place": "HALL"})),
        ("not JSON", json!({"severity": "WARNING"})),
        (r#"{"temperature":{"value":100}}"#, Value::Null),
    ];
    for (payload, metadata) in &events {
        cloud.publish(&with(event(TYPE, system("recorder", 1), payload), "/metaData", metadata.clone()));
    }
    let payloads = |stream: &EventStream, count: usize| -> Vec<usize> {
        let place = |event: &Event| events.iter().position(|(payload, _)| *payload == event.data).expect("what was published");
        stream.wait_for(count).iter().map(place).collect()
    };
    assert_eq!(payloads(&all, 4), [0, 1, 2, 3]);
    assert_eq!(payloads(&grave, 2), [0, 2]);
    assert_eq!(payloads(&hot, 2), [1, 3]);
    assert_eq!(payloads(&in_hall, 1), [0]);
    let replayed = until_live(&listen(&cloud, "&severity=warning&payload.temperature/value=%3E21&since=0", &[]));
    assert_eq!(replayed.len(), 1, "filters hold for a replay too");
    for parameters in ["&severity=loud", "&payload.a=%3Ehot"] {
        let refused = cloud.get(&format!("/eventhandler/subscription?eventtype=x{parameters}")).expect_status(400).json();
        assert_eq!(refused["exceptionType"], "BAD_PAYLOAD", "{parameters}");
    }
}

#[test]
fn positions_are_not_given_again_when_the_log_was_moved_away() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud_in(&data);
    register(&cloud);
    publish(&cloud, 0..5);
    assert!(cloud.stop().success());
    std::fs::remove_dir_all(data.path().join("events")).expect("removed");
    let cloud = cloud_in(&data);
    let log = cloud.get("/api/v1/event-log").expect_status(200).json();
    assert_eq!((&log["firstPosition"], &log["nextPosition"]), (&json!(5), &json!(5)), "{log}");
}

#[test]
fn event_types_and_the_log_can_be_looked_at() {
    let cloud = Launch::new().flags(["--durable-event-types", "alarm"]).start();
    register(&cloud);
    let empty = cloud.get("/api/v1/event-log").expect_status(200).json();
    assert_eq!((&empty["nextPosition"], &empty["oldest"], &empty["suspended"]), (&json!(0), &Value::Null, &Value::Null));
    cloud.register_system("subscriber", 1);
    cloud.subscribe(&crate::support::arrowhead::subscription("Replayed", system("subscriber", 1), "/notify"));
    let _stream = listen(&cloud, "", &[]);
    publish(&cloud, 0..3);
    let types = cloud.get("/api/v1/event-types").expect_status(200).json();
    let expected = json!([
        {"eventType": "ALARM", "published": 0, "subscriptions": 0, "streams": 0, "durable": true},
        {"eventType": "REPLAYED", "published": 3, "subscriptions": 1, "streams": 1, "durable": false},
    ]);
    assert_eq!((&types["data"], &types["count"]), (&expected, &json!(2)));
    let log = cloud.get("/api/v1/event-log").expect_status(200).json();
    assert_eq!((&log["firstPosition"], &log["nextPosition"], &log["segments"]), (&json!(0), &json!(3), &json!(1)), "{log}");
    assert!(log["oldest"].is_string() && log["bytes"].as_u64().is_some_and(|bytes| bytes > 300), "{log}");
    let metrics = cloud.get("/metrics").expect_status(200).text();
    assert!(metrics.contains("\nbodkin_event_log_events 3\n") && metrics.contains("\nbodkin_event_log_suspended 0\n"), "{metrics}");
    let refused = cloud.post("/api/v1/event-types", &json!({})).expect_status(405);
    assert_eq!((refused.header("allow"), refused.header("content-type")), (Some("GET"), Some("application/problem+json")));
    let missing = cloud.get("/api/v1/nothing").expect_status(404).json();
    assert_eq!((&missing["status"], &missing["title"]), (&json!(404), &json!("Not Found")));
}
