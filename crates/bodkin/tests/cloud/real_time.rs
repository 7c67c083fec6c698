//! Event types that the configuration makes real-time topics: what goes first, what is refused, what is counted.

use std::{fs, path::Path, time::Duration};

use bodkin_broker::EventId;
use bodkin_store::event_log::{EventLog, EventLogLimits, Position};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::arrowhead::{event, subscription, system};
use crate::support::cloud::{Cloud, Launch, Refusal, System};
use crate::support::conditions::assert_shown;
use crate::support::http::Connection;
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};
use crate::support::sse::{EventStream, UnreadStream};
use crate::support::stream::Told;

/// Starts a cloud with these tables in its configuration.
fn try_start(data: &Path, topics: &str) -> Result<Cloud, Refusal> {
    let file = data.join("bodkin.toml");
    fs::write(&file, topics).expect("written");
    Launch::new().data(data).flags(["--config", file.to_str().expect("text")]).try_start()
}

#[track_caller]
fn start(data: &Path, topics: &str) -> Cloud {
    let cloud = try_start(data, topics).expect("the cloud starts");
    cloud.register_system("sensor", 1);
    cloud
}

fn send(connection: &mut Connection, event_type: &str, payload: &str) {
    let body = event(event_type, system("sensor", 1), payload).to_string();
    let headers = [("Content-Type", "application/json")];
    connection.send_request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("sent");
}

/// What `/api/v1/topics` says of a topic.
fn told(cloud: &Cloud, event_type: &str) -> Value {
    let topics = cloud.get("/api/v1/topics").expect_status(200).json();
    let mut rows = topics["data"].as_array().expect("a list").iter();
    rows.find(|row| row["eventType"] == event_type).unwrap_or_else(|| panic!("{event_type} in {topics}")).clone()
}

#[test]
fn a_real_time_event_reaches_streams_and_pushed_subscribers_in_order_and_is_counted() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), "[[topic]]\nevent_type = \"hot\"\nperiod_us = 1\ndeadline_ms = 60_000\nlevel = 3\n");
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hot", &[]);
    let subscriber = PushSubscriber::listen(Manner::Answers);
    let (sensor, definition) = cloud.register_publisher("sensor", 1);
    let listener = cloud.register_system("listener", subscriber.port());
    cloud.allow(listener, sensor, definition, &[crate::support::arrowhead::INSECURE_JSON_ID]);
    cloud.subscribe(&subscription("hot", system("listener", subscriber.port()), "/notify"));
    // Those that are sent without waiting for answers are answered in their order.
    let mut publisher = cloud.connect(System::EventHandler);
    let payloads: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    payloads.iter().for_each(|payload| send(&mut publisher, "Hot", payload));
    payloads.iter().for_each(|_| drop(publisher.read_answer().expect("an answer").expect_status(200)));
    let events = stream.wait_for(50);
    assert_eq!(events.iter().map(|event| event.data.as_str()).collect::<Vec<_>>(), payloads);
    let sequences: Vec<u64> = events.iter().map(|event| event.id.parse::<EventId>().expect("an identity").sequence.0).collect();
    assert_eq!(sequences, (1..=50).collect::<Vec<_>>());
    subscriber.wait_until(|pushed| pushed.len() >= 50, "50 events");
    assert_eq!(subscriber.payloads(), payloads);
    let mut row = told(&cloud, "HOT");
    let latency = row.as_object_mut().and_then(|row| row.remove("latency")).expect("events have gone out");
    let us = |name: &str| latency[name].as_u64().expect("a number");
    assert!(us("p50Us") <= us("p99Us") && us("p99Us") <= us("worstUs") && us("worstUs") < 60_000_000, "{latency}");
    let counted = |bucket: &Value| bucket[1].as_u64().expect("a count");
    assert_eq!(latency["bucketsUs"].as_array().expect("buckets").iter().map(counted).sum::<u64>(), 50, "each event once");
    let slots = row.as_object_mut().and_then(|row| row.remove("publisherSlots")).expect("its publishers");
    assert_eq!((&slots["held"], &slots["systems"][0]["system"]), (&json!(1), &json!("sensor")), "{slots}");
    let expected = json!({
        "eventType": "HOT", "periodUs": 1, "deadlineUs": 60_000_000, "lossTolerance": null, "retention": 0, "level": 3, "publishers": 1,
        "publisher": [], "publisherRejected": 0, "rejectedPublisher": null, "requiredForMaxUs": 86_400_000_000_u64, "waitsFor": null, "durable": false, "fleet": false, "declaredBy": "configuration", "guarantee": "unstated", "accepted": 50, "excess": 0, "refused": 0, "dispatched": 50, "late": 0, "shed": 0,
        "lost": 0, "longestLossRun": 0, "lossRuns": [],
    });
    assert_eq!(row, expected);
    let metrics = cloud.get("/metrics").expect_status(200).text();
    assert!(metrics.contains("\nbodkin_topic_dispatched_total{event_type=\"HOT\"} 50\n"), "{metrics}");
    assert!(metrics.contains("\nbodkin_topic_late_total{event_type=\"HOT\"} 0\n"), "{metrics}");
}

#[test]
fn what_is_due_first_goes_first_and_best_effort_last() {
    let data = tempfile::tempdir().expect("a directory");
    let topic = |name: &str, deadline_s: u32, level: u8| {
        format!("[[topic]]\nevent_type = \"{name}\"\nperiod_us = 1\ndeadline_s = {deadline_s}\nlevel = {level}\n")
    };
    let topics = [topic("later", 60, 1), topic("soon", 30, 1), topic("urgent", 120, 0)].concat();
    let cloud = start(data.path(), &topics);
    let order = ["ordinary", "later", "soon", "urgent"];
    let mut publishers: Vec<_> = order.iter().map(|name| (cloud.connect(System::EventHandler), *name)).collect();
    for payload in ["first", "second"] {
        let is_stopped = payload == "second";
        if is_stopped {
            cloud.signal(Signal::SIGSTOP);
            assert!(eventually(|| has_stopped(cloud.pid())), "a thread goes on");
        }
        for (publisher, name) in &mut publishers {
            send(publisher, name, payload);
            if !is_stopped {
                publisher.read_answer().expect("an answer").expect_status(200);
            }
        }
    }
    cloud.signal(Signal::SIGCONT);
    publishers.iter_mut().for_each(|(publisher, _)| drop(publisher.read_answer().expect("an answer").expect_status(200)));
    assert!(cloud.stop().success());
    assert_eq!(logged(data.path())[4..], ["URGENT", "SOON", "LATER", "ORDINARY"]);
}

/// Whether no thread of a process runs any more, which takes a moment.
fn has_stopped(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there");
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).unwrap_or_default();
    tasks.map(|task| status(task.expect("it can be read"))).all(|status| status.contains("\nState:\tT"))
}

/// The event types of the events in the log, in their order.
fn logged(data: &Path) -> Vec<String> {
    let limits = EventLogLimits { bytes_max: 1 << 30, age_max: Duration::from_secs(3600) };
    let opened = EventLog::open(&data.join("events/shard-0"), limits, Position(0), 0, Box::new(|_, _| ()));
    let (_log, reader) = opened.expect("the log is whole");
    let mut cursor = reader.cursor(Position(0));
    let mut next = || cursor.read().expect("it can be read").map(|record| record.topic.to_owned());
    std::iter::from_fn(&mut next).collect()
}

#[test]
fn a_publisher_that_is_too_fast_is_told() {
    let data = tempfile::tempdir().expect("a directory");
    let topics = "[[topic]]\nevent_type = \"rare\"\nperiod_s = 60\ndeadline_s = 240\nbroker_subscriber_max_s = 60\n";
    let cloud = start(data.path(), topics);
    let mut publisher = cloud.connect(System::EventHandler);
    let mut publish = || {
        send(&mut publisher, "rare", "x");
        publisher.read_answer().expect("an answer")
    };
    let answers: Vec<_> = (0..20).map(|_| publish()).collect();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    let taken = statuses.iter().take_while(|status| **status == 200).count();
    assert!((2..20).contains(&taken), "events are kept as long as their delivery may take: {statuses:?}");
    assert!(statuses[taken..].iter().all(|status| *status == 429), "{statuses:?}");
    let refused = &answers[taken];
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(refused.text().contains(&format!("keeps {taken} events")), "{}", refused.text());
    let row = told(&cloud, "RARE");
    let counts = ["accepted", "excess", "refused", "dispatched", "late"].map(|count| row[count].as_u64().expect("a count"));
    let taken = taken as u64;
    assert_eq!(counts, [taken, taken - 1, 20 - taken, taken, 0], "{row}");
    let metrics = cloud.call("GET", "/metrics", None).expect_status(200).text();
    let excess = format!("bodkin_topic_excess_total{{event_type=\"RARE\"}} {}\n", taken - 1);
    assert!(metrics.contains(&excess), "{excess} {metrics}");
}

#[test]
fn publishers_beyond_the_declared_ones_are_refused() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), "[[topic]]\nevent_type = \"own\"\nperiod_ms = 1\n");
    let publish = |name| cloud.post("/eventhandler/publish", &event("own", system(name, 1), "x"));
    for name in ["second", "third"] {
        cloud.register_system(name, 1);
    }
    // Twice as many as were declared.
    assert_eq!(["sensor", "second", "third", "sensor"].map(|name| publish(name).status), [200, 200, 503, 200]);
    assert!(publish("third").text().contains("declare it with more publishers"));
}

#[test]
fn a_topic_that_does_not_fit_is_refused_with_what_would() {
    let data = tempfile::tempdir().expect("a directory");
    let too_short = "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 100\ndeadline_ms = 1\nbroker_subscriber_max_ms = 2\n";
    let refused = try_start(data.path(), too_short).err().expect("it is refused");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("topic HOT is refused: a dispatch has"), "{refused:?}");
    assert!(refused.stderr.contains("It would be admitted with deadline_ms = 2"), "{refused:?}");
    let two_cores = try_start(data.path(), "[platform]\ncores = 2\n").err().expect("there is one shard");
    assert!(two_cores.code == Some(1) && two_cores.stderr.contains("platform: cores = 2"), "{two_cores:?}");
    let mistake = try_start(data.path(), "[[topic]]\nevent_type = \"hot\"\nperiod = 100\n").err().expect("it has a mistake");
    assert!(mistake.code == Some(2) && mistake.stderr.contains("bodkin.toml:3:1: period needs its unit"), "{mistake:?}");
}

/// What a stream was told of the guarantee.
pub fn notices(told: &[Told]) -> Vec<Value> {
    let notice = |told: &Told| match told {
        Told::Event(event) if event.event_type == "bodkin-guarantee" => Some(serde_json::from_str(event.data.trim()).expect("JSON")),
        _ => None,
    };
    told.iter().filter_map(notice).collect()
}

fn is_suspended(notice: &Value) -> bool {
    notice["guarantee"] == "suspended"
}

#[test]
fn a_machine_that_stalls_for_longer_than_stated_suspends_the_guarantee() {
    let data = tempfile::tempdir().expect("a directory");
    let topics = "[platform]\nblocking_ms = 300\n[[topic]]\nevent_type = \"hot\"\nperiod_s = 1\ndeadline_s = 1\n\
        [[topic]]\nevent_type = \"any\"\nperiod_s = 1\n";
    let cloud = start(data.path(), topics);
    assert_eq!(told(&cloud, "HOT")["guarantee"], "pending");
    assert_eq!(told(&cloud, "ANY")["guarantee"], Value::Null);
    let hot = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hot", &[]);
    let any = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=any", &[]);
    assert!(eventually(|| told(&cloud, "HOT")["guarantee"] == "held"), "{}", told(&cloud, "HOT"));
    cloud.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(600));
    cloud.signal(Signal::SIGCONT);
    assert!(eventually(|| told(&cloud, "HOT")["guarantee"] == "suspended"), "{}", told(&cloud, "HOT"));
    let metrics = cloud.get("/metrics").expect_status(200).text();
    assert!(metrics.contains("\nbodkin_guarantee_suspended 1\n"), "{metrics}");
    assert_shown(cloud.address(System::Monitor), "BodkinGuaranteeSuspended");
    assert!(eventually(|| cloud.stderr().contains("guarantee suspended")), "{}", cloud.stderr());
    let told = hot.wait_until(|told| notices(told).last().is_some_and(is_suspended), "the guarantee is suspended");
    let (first, last) = (notices(&told)[0].clone(), notices(&told).pop().expect("it was told"));
    // Pending, unless the machine was so slow that stalls had been measured before anybody listened.
    assert!(["pending", "held"].contains(&first["guarantee"].as_str().unwrap_or_default()), "{told:?}");
    assert_eq!((&last["guarantee"], &last["blockingUs"]), (&json!("suspended"), &json!(300_000)), "{last}");
    assert!(last["worstUs"].as_u64() >= Some(500_000), "{last}");
    for since in ["", "&since=0"] {
        let later =
            EventStream::open(cloud.address(System::EventHandler), &format!("/eventhandler/subscription?eventtype=hot{since}"), &[]);
        let told = later.wait_until(|told| !notices(told).is_empty(), "who comes later is told as well");
        assert!(is_suspended(&notices(&told)[0]), "{told:?}");
    }
    assert!(!any.has(|told| !notices(told).is_empty()), "a topic without a deadline has nothing to suspend");
    let platform = cloud.get("/api/v1/platform").expect_status(200).json();
    assert_eq!((&platform["guarantee"], &platform["failoverUs"]), (&json!("suspended"), &json!(95_010)), "{platform}");
    let names: Vec<&str> =
        platform["scheduling"]["threads"].as_array().unwrap().iter().filter_map(|thread| thread["name"].as_str()).collect();
    assert_eq!((names.contains(&"shard-0"), names.contains(&"stall-watch")), (true, true), "{platform}");
}

#[test]
fn late_events_are_dropped_as_far_as_their_topic_allows_and_their_publisher_is_told() {
    let data = tempfile::tempdir().expect("a directory");
    // Created, as far as is known, when it came less the longest way: due at once.
    let topic = "[[topic]]\nevent_type = \"hot\"\nperiod_us = 1\npublisher_broker_ms = 1\ndeadline_ms = 1\nshed_max = 2\n";
    let cloud = start(data.path(), topic);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hot", &[]);
    let answers: Vec<_> =
        (0..5).map(|number| cloud.post("/eventhandler/publish", &event("hot", system("sensor", 1), &number.to_string()))).collect();
    assert_eq!(
        answers.iter().map(|answer| answer.status).collect::<Vec<_>>(),
        [200, 503, 503, 200, 503],
        "the first one behind a start goes out"
    );
    assert!(answers[1].text().contains("lets late events be dropped (shed_max)"), "{}", answers[1].text());
    assert_eq!(data_of(&stream.wait_for(2)), ["0", "3"]);
    let row = told(&cloud, "HOT");
    assert_eq!((&row["shed"], &row["late"], &row["dispatched"], &row["accepted"]), (&json!(3), &json!(2), &json!(2), &json!(5)));
    assert_shown(cloud.address(System::Monitor), "BodkinDeadlinesMissed");
}

#[test]
fn a_stream_that_asks_for_more_than_fits_is_refused_alone_and_the_topic_is_as_strict_as_its_streams() {
    let data = tempfile::tempdir().expect("a directory");
    let topic = "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 1\nbroker_subscriber_max_ms = 2\ndeadline_s = 60\n";
    let cloud = start(data.path(), topic);
    let address = cloud.address(System::EventHandler);
    let target = |asked: &str| format!("/eventhandler/subscription?eventtype=hot{asked}");
    let deadline_us = || told(&cloud, "HOT")["deadlineUs"].as_u64();
    let plain = EventStream::open(address, &target(""), &[]);
    let strict = EventStream::open(address, &target("&deadline_ms=50.5"), &[]);
    assert_eq!(deadline_us(), Some(50_500));
    let stricter = EventStream::open(address, &target("&deadline_us=40000&since=0"), &[]);
    assert_eq!(deadline_us(), Some(40_000));
    for (asked, words) in [
        ("&deadline_ms=1", "It would be admitted with deadline_ms = 2"),
        ("&loss_tolerance=0", "It would be admitted with"),
        ("&deadline=5", "deadline needs its unit"),
        ("&loss_tolerance=-1", "loss_tolerance"),
        ("&required=true", "does not acknowledge"),
    ] {
        let mut connection = cloud.connect(System::EventHandler);
        let refused = connection.request("GET", &target(asked), &[], None).expect("an answer").expect_status(400);
        assert!(refused.text().contains(words), "{asked}: {}", refused.text());
        // The connection goes on.
        assert_eq!(connection.request("GET", "/eventhandler/echo", &[], None).expect("an answer").status, 200);
    }
    let undeclared =
        cloud.connect(System::EventHandler).request("GET", "/eventhandler/subscription?eventtype=any&deadline_ms=5", &[], None);
    assert!(undeclared.expect("an answer").expect_status(400).text().contains("declare its period"));
    assert_eq!(deadline_us(), Some(40_000), "a refusal changes nothing");
    cloud.publish(&event("hot", system("sensor", 1), "x"));
    for stream in [&plain, &strict, &stricter] {
        assert_eq!(data_of(&stream.wait_for(1)), ["x"]);
    }
    drop(stricter);
    assert!(eventually(|| deadline_us() == Some(50_500)), "{:?}", deadline_us());
    drop(strict);
    assert!(eventually(|| deadline_us() == Some(60_000_000)), "{:?}", deadline_us());
}

#[test]
fn what_a_full_queue_costs_a_subscriber_is_counted_for_the_topic() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), "subscriber_queue_bytes_max = 4096\n[[topic]]\nevent_type = \"hot\"\nperiod_us = 1\n");
    let unread = UnreadStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hot", &[]);
    let body = event("hot", system("sensor", 1), &"x".repeat(60_000));
    let lost = (0..1_000).any(|_| {
        cloud.publish(&body);
        told(&cloud, "HOT")["lost"].as_u64() > Some(0)
    });
    assert!(lost, "{}", told(&cloud, "HOT"));
    let metrics = cloud.get("/metrics").expect_status(200).text();
    assert!(!metrics.contains("\nbodkin_topic_lost_total{event_type=\"HOT\"} 0\n"), "{metrics}");
    assert_eq!(told(&cloud, "HOT")["longestLossRun"], 0, "a run is counted when it is over");
    let _read = unread.read();
    let run = || told(&cloud, "HOT")["longestLossRun"].as_u64().expect("a number");
    assert!(eventually(|| run() > 0), "{}", told(&cloud, "HOT"));
    let runs = || {
        told(&cloud, "HOT")["lossRuns"].as_array().expect("buckets").iter().map(|bucket| bucket[1].as_u64().expect("a count")).sum::<u64>()
    };
    assert!(eventually(|| runs() > 0), "{}", told(&cloud, "HOT"));
}

#[test]
fn of_very_many_topics_the_metrics_have_the_first_ones_and_the_sum_of_the_others() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 1\ncount = 1002\ndurable = true\n");
    for event_type in ["hot-1", "hot-999", "hot-999"] {
        cloud.publish(&event(event_type, system("sensor", 1), "x"));
    }
    let metrics = cloud.get("/metrics").expect_status(200).text();
    let lines: Vec<&str> = metrics.lines().filter(|line| line.starts_with("bodkin_topic_accepted_total")).collect();
    let value = |event_type: &str| {
        let begin = format!("bodkin_topic_accepted_total{{event_type=\"{event_type}\"}} ");
        lines.iter().find_map(|line| line.strip_prefix(&begin))
    };
    // By event type HOT-998 and HOT-999 are the last ones.
    assert_eq!((lines.len(), value("HOT-1"), value("HOT-999"), value("")), (1_001, Some("1"), None, Some("2")));
    assert!(metrics.contains("\nbodkin_topics 1002\n"));
    let event_types = cloud.get("/api/v1/event-types").expect_status(200).json();
    assert_eq!((&event_types["count"], &event_types["data"][0]["durable"]), (&json!(1_002), &json!(true)));
}

fn declaration(event_type: &str, deadline_ms: u32) -> Value {
    json!({"event_type": event_type, "period_ms": 100, "deadline_ms": deadline_ms, "broker_subscriber_max_ms": 2, "level": 1})
}

#[test]
fn a_topic_is_declared_and_removed_while_the_cloud_runs_and_outlives_it() {
    let data = tempfile::tempdir().expect("a directory");
    let configured = "[[topic]]\nevent_type = \"fixed\"\nperiod_ms = 100\n";
    let cloud = start(data.path(), configured);
    let publish = |cloud: &Cloud, payload: &str| cloud.publish(&event("hot", system("sensor", 1), payload));
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hot", &[]);
    publish(&cloud, "0");
    let made = cloud.post("/api/v1/topics", &declaration("hot", 50)).expect_status(201).json();
    assert_eq!((&made["eventType"], &made["deadlineUs"], &made["declaredBy"]), (&json!("HOT"), &json!(50_000), &json!("operator")));
    publish(&cloud, "1");
    assert_eq!(told(&cloud, "HOT")["dispatched"], 1);
    for (body, status, words) in [
        (declaration("hot", 50), 409, "the topic is declared already"),
        (declaration("cold", 1), 409, "It would be admitted with deadline_ms = 2"),
        (json!({"event_type": "cold", "period": 1}), 400, "period needs its unit"),
        (declaration("co\0ld", 50), 400, "a text has the character U+0000"),
    ] {
        let refused = cloud.post("/api/v1/topics", &body).expect_status(status);
        assert!(refused.text().contains(words), "{}", refused.text());
    }
    cloud.kill();

    let cloud = try_start(data.path(), configured).expect("it starts again");
    assert_eq!(told(&cloud, "HOT")["declaredBy"], "operator");
    publish(&cloud, "2");
    assert_eq!(told(&cloud, "HOT")["accepted"], 1);
    drop(cloud.delete("/api/v1/topics?event_type=fixed").expect_status(409));
    let refused = cloud.post("/api/v1/topics", &declaration("cold", 1)).expect_status(409).json();
    assert_eq!(refused["changes"][0], json!(["deadline_ms = 2"]), "{refused}");
    assert!(refused["reasons"][0].as_str().is_some_and(|reason| reason.starts_with("a dispatch has")), "{refused}");
    cloud.delete("/api/v1/topics?event_type=hot").expect_status(200);
    cloud.delete("/api/v1/topics?event_type=hot").expect_status(404);
    cloud.delete("/api/v1/topics?event_type=h%00t").expect_status(400);
    let audited = cloud.get("/api/v1/audit?kind=change").expect_status(200).text();
    assert!(audited.contains("DELETE") && audited.contains("/api/v1/topics"), "{audited}");
    assert_eq!(cloud.get("/api/v1/topics").expect_status(200).json()["count"], 1);
    // Nobody polices it any more, and its room is free.
    (3..20).for_each(|number| publish(&cloud, &number.to_string()));
    cloud.post("/api/v1/topics", &declaration("hot", 60)).expect_status(201);
    publish(&cloud, "20");
    assert_eq!(told(&cloud, "HOT")["accepted"], 1);
    assert_eq!(data_of(&stream.wait_for(2)), ["0", "1"]);
    assert!(cloud.stop().success());
    let file = data.path().join("bodkin.toml");
    fs::write(&file, "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 7\n").expect("written");
    let cloud = Launch::new().data(data.path()).flags(["--config", file.to_str().expect("text")]).start();
    assert_eq!(told(&cloud, "HOT")["periodUs"], 7_000, "the configuration goes first, and it is told that the other one does not count");
    assert!(eventually(|| cloud.stderr().contains("not in force")), "{}", cloud.stderr());
}

fn data_of(events: &[crate::support::stream::Event]) -> Vec<&str> {
    events.iter().map(|event| event.data.as_str()).collect()
}
