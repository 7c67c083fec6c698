//! Graphs that the configuration names: events go in by publishing, and results come out by subscribing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use bodkin_broker::EventId;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, Refusal, System};
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;
use crate::support::sse::EventStream;

/// Vibrations are transformed, speeds are filtered, and both are joined.
const PRESS: &str = r#"
[graph]
name = "press"
cores = 2

[[supplier]]
topic = "vibration"
shape = "u8[4]"
form = "base64"
period_ms = 1

[[supplier]]
topic = "speed"
shape = "f64"
period_ms = 1

[[operator]]
name = "spectrum"
kind = "fft"
inputs = ["vibration"]
spectrum = "magnitude"
cost_us = 20

[[operator]]
name = "smooth"
kind = "ekf"
model = "random_walk"
inputs = ["speed"]
process_noise = 1
measurement_noise = 1
cost_us = 20

[[operator]]
name = "both"
kind = "join"
inputs = ["spectrum", "smooth"]
names = ["spectrum", "speed"]
cost_us = 20

[[output]]
topic = "press-state"
from = "both"
deadline_ms = 500

[[output]]
topic = "smooth-speed"
from = "smooth"
level = 1
"#;

fn write(place: &Path, name: &str, text: &str) -> String {
    let path = place.join(name);
    fs::write(&path, text).expect("written");
    path.to_str().expect("text").to_owned()
}

/// Starts a cloud with these graphs, and these tables in its configuration.
fn try_start(place: &Path, graphs: &[&str], tables: &str) -> Result<Cloud, Refusal> {
    let files: Vec<String> = graphs.iter().enumerate().map(|(at, text)| write(place, &format!("graph-{at}.toml"), text)).collect();
    let configuration = write(place, "bodkin.toml", tables);
    Launch::new().data(place).flags(["--graphs", &files.join(","), "--config", &configuration]).try_start()
}

#[track_caller]
fn start(place: &TempDir, graphs: &[&str], tables: &str) -> Cloud {
    let cloud = try_start(place.path(), graphs, tables).expect("the cloud starts");
    cloud.register_system("sensor", 1);
    cloud
}

fn stream(cloud: &Cloud, event_type: &str) -> EventStream {
    EventStream::open(cloud.address(System::EventHandler), &format!("/eventhandler/subscription?eventtype={event_type}"), &[])
}

fn publish(cloud: &Cloud, event_type: &str, payload: &str) {
    cloud.post("/eventhandler/publish", &event(event_type, system("sensor", 1), payload)).expect_status(200);
}

/// A counter of the only graph.
fn count(cloud: &Cloud, name: &str) -> u64 {
    let metrics = cloud.get("/metrics").expect_status(200).text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("bodkin_graph_{name}{{")));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("no {name} in {metrics}"))
}

#[track_caller]
fn wait_for(cloud: &Cloud, name: &str, value: u64) {
    assert!(eventually(|| count(cloud, name) == value), "{name} is {}, and not {value}", count(cloud, name));
}

#[test]
fn two_suppliers_are_transformed_filtered_and_joined_on_their_way() {
    let place = TempDir::new().expect("a directory");
    let cloud = start(&place, &[PRESS], "");
    let (vibrations, results, speeds) = (stream(&cloud, "vibration"), stream(&cloud, "press-state"), stream(&cloud, "smooth-speed"));
    // 1, 0, 0, 0 has the spectrum 1, 1, 1; 1, 2, 3, 4 has 10, |-2 + 2i|, 2.
    for (number, (vibration, speed)) in [("AQAAAA==", "20"), ("AQIDBA==", "20")].into_iter().enumerate() {
        publish(&cloud, "vibration", vibration);
        publish(&cloud, "speed", speed);
        results.wait_for(number + 1);
    }
    let states: Vec<Value> = results.wait_for(2).iter().map(|event| serde_json::from_str(&event.data).expect("JSON")).collect();
    let close = |found: &Value, expected: f64| (found.as_f64().expect("a number") - expected).abs() < 1e-3;
    for (state, spectrum) in states.iter().zip([[1.0, 1.0, 1.0], [10.0, 8f64.sqrt(), 2.0]]) {
        let found = state["spectrum"].as_array().expect("a list");
        assert!(found.len() == 3 && found.iter().zip(spectrum).all(|(found, expected)| close(found, expected)), "{state}");
        assert!(close(&state["speed"], 20.0), "{state}");
    }
    assert_eq!(speeds.wait_for(2).len(), 2);
    wait_for(&cloud, "published_total", 4);
    assert_eq!(["taken_total", "failed_total", "shed_total", "late_total", "lost_total"].map(|name| count(&cloud, name)), [4, 0, 0, 0, 0]);
    // A result is named after the event of its first input.
    let names =
        |stream: &EventStream| stream.wait_for(2).iter().map(|event| event.id.parse().expect("an identity")).collect::<Vec<EventId>>();
    for (state, vibration) in names(&results).into_iter().zip(names(&vibrations)) {
        assert_ne!(state.topic, vibration.topic);
        assert_eq!(EventId { topic: vibration.topic, ..state }, vibration);
    }
}

#[test]
fn operator_whose_step_does_not_end_is_reported() {
    const ENDLESS: &str = r#"
[graph]
name = "wave"

[[supplier]]
topic = "angle"
shape = "f64"
period_ms = 1

[[operator]]
name = "sine"
kind = "map"
inputs = ["angle"]
expression = "sin(x)"
cost_us = 20

[[output]]
topic = "wave-height"
from = "sine"
deadline_ms = 500
"#;
    let place = TempDir::new().expect("a directory");
    let file = write(place.path(), "wave.toml", ENDLESS);
    let cloud = Launch::new().data(place.path()).flags(["--graphs", &file]).preloaded().start();
    cloud.register_system("sensor", 1);
    publish(&cloud, "angle", "1");
    assert_shown(cloud.address(System::Monitor), "BodkinGraphStandsStill");
}

/// Means of two sensors that must have been made within a time of each other; otherwise they are marked.
fn pair_of(on_invalid: &str) -> String {
    format!(
        r#"
[graph]
name = "pair"
on_invalid = "{on_invalid}"

[[supplier]]
topic = "left"
shape = "f64"
period_ms = 1

[[supplier]]
topic = "right"
shape = "f64"
period_ms = 1

[[operator]]
name = "both"
kind = "concatenate"
inputs = ["left", "right"]
relative_validity_ms = 500

[[output]]
topic = "pairs"
from = "both"
"#
    )
}

#[test]
fn what_does_not_fit_is_marked_or_shed_and_told() {
    for (on_invalid, expected) in [("mark", [4, 2, 1, 0]), ("shed", [3, 1, 0, 1])] {
        let place = TempDir::new().expect("a directory");
        let cloud = start(&place, &[&pair_of(on_invalid)], "");
        let target = "/eventhandler/events?event_type=pairs";
        let pairs = EventStream::open(cloud.address(System::EventHandler), target, &[]);
        publish(&cloud, "left", "1");
        wait_for(&cloud, "taken_total", 1);
        thread::sleep(std::time::Duration::from_millis(700));
        publish(&cloud, "right", "2");
        // Only where the first one was shed does the second one wait for another.
        publish(&cloud, "left", "3");
        if on_invalid == "mark" {
            publish(&cloud, "right", "4");
        }
        let counts = |cloud: &Cloud| ["taken_total", "published_total", "marked_total", "shed_total"].map(|name| count(cloud, name));
        let is_marked = |event: &crate::support::stream::Event| {
            let event: Value = serde_json::from_str(&event.data).expect("JSON");
            (event["payload"].as_str().expect("a text").to_owned(), event["metaData"]["marked"] == "true")
        };
        let heard: Vec<_> = if on_invalid == "mark" {
            pairs.wait_for(2).iter().map(is_marked).collect()
        } else {
            let told = pairs.wait_for(2);
            assert_eq!((told[0].event_type.as_str(), told[0].data.as_str()), ("bodkin-lost", "{\"lost\":1}"));
            told[1..].iter().map(is_marked).collect()
        };
        let expected_heard: &[(&str, bool)] =
            if on_invalid == "mark" { &[("[1.0,2.0]", true), ("[3.0,4.0]", false)] } else { &[("[3.0,2.0]", false)] };
        assert!(heard.iter().map(|(text, is_marked)| (text.as_str(), *is_marked)).eq(expected_heard.iter().copied()), "{heard:?}");
        assert!(eventually(|| counts(&cloud) == expected), "{:?}", counts(&cloud));
    }
}

#[test]
fn events_that_are_none_of_the_suppliers_are_counted_and_told() {
    let place = TempDir::new().expect("a directory");
    let cloud = start(&place, &[PRESS], "");
    for (event_type, payload) in [("vibration", "AQAA"), ("vibration", "[1,2,3,4]"), ("speed", "fast"), ("speed", "[1,2]")] {
        publish(&cloud, event_type, payload);
    }
    wait_for(&cloud, "refused_total", 4);
    assert!(cloud.stderr().contains("a graph has not taken an event"), "{}", cloud.stderr());
    // The graph goes on.
    let speeds = stream(&cloud, "smooth-speed");
    publish(&cloud, "speed", "3");
    speeds.wait_for(1);
}

#[test]
fn results_of_real_time_topics_have_their_deadlines() {
    let place = TempDir::new().expect("a directory");
    let topics = "[[topic]]\nevent_type = \"speed\"\nperiod_us = 1\ndeadline_s = 60\n\
        [[topic]]\nevent_type = \"smooth-speed\"\nperiod_us = 1\ndeadline_s = 60\nlevel = 2\n";
    let cloud = start(&place, &[PRESS], topics);
    let speeds = stream(&cloud, "smooth-speed");
    for number in 1..=3 {
        publish(&cloud, "speed", &number.to_string());
        speeds.wait_for(number);
    }
    let sequences: Vec<u64> = speeds.wait_for(3).iter().map(|event| event.id.parse::<EventId>().expect("an identity").sequence.0).collect();
    assert_eq!(sequences, [1, 2, 3]);
    let topics = cloud.get("/api/v1/topics").expect_status(200).json();
    let row = topics["data"].as_array().expect("a list").iter().find(|row| row["eventType"] == "SMOOTH-SPEED").expect("it is there");
    assert_eq!([&row["accepted"], &row["dispatched"], &row["refused"], &row["late"]], [&json!(3), &json!(3), &json!(0), &json!(0)]);
}

#[test]
fn graphs_that_cannot_run_are_refused_with_the_reason() {
    let place = TempDir::new().expect("a directory");
    let other = PRESS.replace("name = \"press\"", "name = \"other\"");
    let behind = other.replace("\"speed\"\nshape", "\"smooth-speed\"\nshape").replace("[\"speed\"]", "[\"smooth-speed\"]");
    let behind = behind.replace("topic = \"smooth-speed\"\nfrom", "topic = \"elsewhere\"\nfrom").replace("press-state", "other-state");
    let sealed = PRESS.replace(
        "kind = \"join\"\ninputs = [\"spectrum\", \"smooth\"]\nnames = [\"spectrum\", \"speed\"]",
        "kind = \"encrypt\"\ninputs = [\"spectrum\"]\nkey = \"plant\"",
    );
    let rows: &[(&[&str], &str)] = &[
        (&[&PRESS.replace("kind = \"fft\"", "kind = \"ftt\"")], "kind must be one of"),
        (&[PRESS, PRESS], "there is a graph of the name press already"),
        (&[PRESS, &other], "topic PRESS-STATE is written by graph press"),
        (&[PRESS, &behind], "topic SMOOTH-SPEED is written by graph press"),
        (&[&PRESS.replace("deadline_ms = 500", "deadline_us = 10")], "its deadline is 10 us"),
        (&[&PRESS.replace("u8[4]", "u8[32768]")], "event_bytes_max is 65536"),
        (&[&sealed], "names no key that this node has: plant"),
    ];
    for (graphs, told) in rows {
        let Err(refusal) = try_start(place.path(), graphs, "") else { panic!("it started: {told}") };
        assert!(refusal.code == Some(2) && refusal.stderr.contains(told), "{told}: {refusal:?}");
    }
}

#[test]
fn a_key_of_the_directory_encrypts_and_is_told_nowhere() {
    let place = TempDir::new().expect("a directory");
    let graph = r#"
[graph]
name = "sealed"

[[supplier]]
topic = "secret"
shape = "json[<=64]"
period_ms = 1

[[operator]]
name = "seal"
kind = "encrypt"
inputs = ["secret"]
key = "plant"

[[operator]]
name = "open"
kind = "decrypt"
inputs = ["seal"]
key = "plant"
shape = "json[<=64]"

[[output]]
topic = "sealed"
from = "seal"

[[output]]
topic = "opened"
from = "open"
"#;
    let key = b"0123456789abcdef-KEY-of-the-tests".map(|octet| octet);
    let path = place.path().join("plant.key");
    fs::write(&path, &key[..32]).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
    let file = write(place.path(), "sealed.toml", graph);
    let keys = place.path().to_str().expect("text");
    let cloud = Launch::new().flags(["--graphs", &file, "--graph-keys", keys, "--log", "debug"]).start();
    cloud.register_system("sensor", 1);
    let (sealed, opened) = (stream(&cloud, "sealed"), stream(&cloud, "opened"));
    publish(&cloud, "secret", "{\"pressure\":7}");
    assert_eq!(opened.wait_for(1)[0].data, "{\"pressure\":7}");
    assert!(!sealed.wait_for(1)[0].data.contains("pressure"));
    assert!(!cloud.stderr().contains("-KEY-"), "{}", cloud.stderr());
}

/// Means of the last four points of `level`, under the name of `output`.
fn means(output: &str) -> String {
    format!(
        "[graph]\nname = \"means\"\n[[supplier]]\ntopic = \"level\"\nshape = \"f64\"\nperiod_ms = 1\n\
        [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"level\"]\nwindow = 4\n\
        [[output]]\ntopic = \"{output}\"\nfrom = \"mean\"\n"
    )
}

#[test]
fn graphs_are_deployed_replaced_and_removed_while_the_cloud_runs() {
    let place = TempDir::new().expect("a directory");
    let cloud = start(&place, &[&pair_of("mark")], "");
    let deploy = |cloud: &Cloud, file: &str| cloud.post("/api/v1/graphs", &json!({ "file": file }));
    let row = deploy(&cloud, &means("first")).expect_status(201).json();
    assert_eq!((&row["name"], &row["declaredBy"], &row["outputs"]), (&json!("means"), &json!("operator"), &json!(["FIRST"])));
    let first = stream(&cloud, "first");
    publish(&cloud, "level", "1");
    publish(&cloud, "level", "3");
    assert_eq!(first.wait_for(2)[1].data, "2.0");
    // What fits is replaced, and its filter goes on.
    deploy(&cloud, &means("second")).expect_status(201);
    let second = stream(&cloud, "second");
    publish(&cloud, "level", "8");
    assert_eq!(second.wait_for(1)[0].data, "4.0", "the mean of 1, 3 and 8");
    assert_eq!(first.count(), 2);
    // The other one has lost nothing, and is the configuration's.
    let pairs = stream(&cloud, "pairs");
    publish(&cloud, "left", "1");
    publish(&cloud, "right", "2");
    pairs.wait_for(1);
    for (answer, status, told) in [
        (deploy(&cloud, &pair_of("shed")), 409, "named in the configuration"),
        (cloud.delete("/api/v1/graphs?name=pair"), 409, "named in the configuration"),
        (deploy(&cloud, &means("pairs")), 409, "topic PAIRS is written by graph pair"),
        (deploy(&cloud, &means("third").replace("moving", "standing")), 400, "kind must be one of"),
        (cloud.delete("/api/v1/graphs?name=none"), 404, "no graph of the name none"),
        (cloud.post("/api/v1/graphs", &json!({"text": ""})), 400, "unknown field"),
    ] {
        let answer = answer.expect_status(status).text();
        assert!(answer.contains(told), "{told}: {answer}");
    }
    let names = |cloud: &Cloud| {
        let graphs = cloud.get("/api/v1/graphs").expect_status(200).json();
        graphs["data"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|graph| graph["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&cloud), ["means", "pair"]);
    // It is there after a start, and gone behind its removal.
    assert!(cloud.stop().success());
    let cloud = try_start(place.path(), &[&pair_of("mark")], "").expect("the cloud starts");
    assert_eq!(names(&cloud), ["means", "pair"]);
    let second = stream(&cloud, "second");
    publish(&cloud, "level", "5");
    assert_eq!(second.wait_for(1)[0].data, "5.0");
    cloud.delete("/api/v1/graphs?name=means").expect_status(200);
    assert_eq!(names(&cloud), ["pair"]);
    publish(&cloud, "level", "6");
    publish(&cloud, "second", "marker");
    assert_eq!(second.wait_for(2)[1].data, "marker", "nothing came of the level");
}

/// Threads that publish at the same time, and events of each.
const FLOOD: (usize, usize) = (4, 40);

#[test]
fn flooded_graph_accounts_for_each_taken_event() {
    // A round takes longer than an event takes to arrive.
    let graph = format!(
        "[graph]\nname = \"flooded\"\n[[supplier]]\ntopic = \"wave\"\nshape = \"u8[4096]\"\nform = \"base64\"\nperiod_s = 1000\n\
        [[operator]]\nname = \"sum\"\nkind = \"map\"\ninputs = [\"wave\"]\nexpression = \"x{}\"\n\
        [[output]]\ntopic = \"sums\"\nfrom = \"sum\"\nform = \"base64\"\n",
        " + x".repeat(127)
    );
    let place = TempDir::new().expect("a directory");
    let cloud = start(&place, &[&graph], "");
    let payload = "AQID".repeat(4096 / 3) + "AQ==";
    thread::scope(|scope| {
        for _ in 0..FLOOD.0 {
            scope.spawn(|| (0..FLOOD.1).for_each(|_| publish(&cloud, "wave", &payload)));
        }
    });
    let all = (FLOOD.0 * FLOOD.1) as u64;
    let sum = || ["published_total", "shed_total", "replaced_total", "failed_total"].map(|name| count(&cloud, name)).iter().sum::<u64>();
    wait_for(&cloud, "taken_total", all);
    assert!(eventually(|| sum() == all), "{} of {all}: {}", sum(), cloud.get("/metrics").text());
    assert!(count(&cloud, "replaced_total") > 0, "nothing was replaced: {}", cloud.get("/metrics").text());
    assert_eq!(count(&cloud, "excess_total"), all - 2, "one event is due, and one may be early");
    let told = cloud.get("/api/v1/graphs").expect_status(200).json()["data"][0].clone();
    let counts = ["replaced", "excess"].map(|name| told[name].as_u64().expect("a count"));
    assert_eq!(counts, ["replaced_total", "excess_total"].map(|name| count(&cloud, name)), "{told}");
    assert!(cloud.stderr().contains("events replaced by newer ones"), "{}", cloud.stderr());
}

#[test]
fn filter_after_overflow_restarts_counted_and_logged() {
    let graph = "[graph]\nname = \"track\"\nreplace_queued = false\n[[supplier]]\ntopic = \"place\"\nshape = \"f64\"\nperiod_ms = 1\n\
        [[operator]]\nname = \"filter\"\nkind = \"ekf\"\ninputs = [\"place\"]\nmodel = \"constant_velocity\"\nprocess_noise = 0.01\n\
        measurement_noise = 1\n[[output]]\ntopic = \"track\"\nfrom = \"filter\"\n";
    let place = TempDir::new().expect("a directory");
    let cloud = start(&place, &[graph], "");
    let results = stream(&cloud, "track");
    for (number, payload) in ["1.7e308", "20", "20"].into_iter().enumerate() {
        publish(&cloud, "place", payload);
        results.wait_for(number + 1);
    }
    let last: f64 = results.wait_for(3)[2].data.parse().expect("a number");
    assert!((last - 20.0).abs() < 0.1, "{last}");
    let told = cloud.get("/api/v1/graphs").expect_status(200).json()["data"][0].clone();
    assert_eq!((&told["restarts"], &told["nodes"][0]["restarts"]), (&json!(1), &json!(1)), "{told}");
    let metrics = cloud.get("/metrics").expect_status(200).text().to_owned();
    assert!(metrics.contains("bodkin_operator_restarts_total{graph=\"track\",operator=\"filter\"} 1\n"), "{metrics}");
    assert!(cloud.stderr().contains("operator restarted: its state was no longer finite"), "{}", cloud.stderr());
}

#[test]
fn graph_with_more_cores_than_processors_is_refused() {
    let (place, cloud) = (TempDir::new().expect("a directory"), Launch::new().start());
    let cores = thread::available_parallelism().expect("it is known").get() + 1;
    let answer = cloud.post("/api/v1/graphs", &json!({ "file": means("first").replace("[graph]", &format!("[graph]\ncores = {cores}")) }));
    let told = answer.expect_status(409).text().to_owned();
    assert!(told.contains(&format!("cores = {cores}, and this machine has {} processors", cores - 1)), "{told}");
    let refused = try_start(place.path(), &[&PRESS.replace("cores = 2", "cores = 256")], "").err().expect("it does not start");
    assert!(refused.stderr.contains("cores = 256, and this machine has"), "{}", refused.stderr);
}
