//! An edge that only takes: it names what comes from the fleet, and forwards nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fleet::{
    program,
    servers::{Cluster, PASSWORD},
};
use crate::from_fleet::{has, heard, make_stream, send, told, up};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, subscription, system};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};
use crate::support::secure::{Client, allow, put_trust, register};
use crate::support::sse::EventStream;

/// A configuration without lanes, and with these tables.
fn configure(place: &Path, user: &str, cluster: &Cluster, tables: &str) -> PathBuf {
    let password = place.join("password");
    bodkin_trust::file::write_private(&password, PASSWORD.as_bytes()).expect("written");
    let servers: Vec<String> = (0..3).map(|at| format!("\"nats://{}\"", cluster.address(at))).collect();
    let table = format!(
        "[fleet]\nservers = [{}]\nedge = \"edge-7\"\nuser = \"{user}\"\npassword_file = {password:?}\nanswer_wait_ms = 2000\nfrom_fleet = [\"setpoint\"]\n{tables}",
        servers.join(", ")
    );
    let config = place.join(format!("{user}.toml"));
    fs::write(&config, table).expect("written");
    config
}

/// What `doctor` finds of the fleet, but for the servers.
fn doctor(place: &Path, config: &Path) -> Vec<(String, String)> {
    let mut command = Command::new(BINARY);
    command
        .args(["doctor", "--insecure", "--stall-s", "1", "--output", "json", "--config"])
        .arg(config)
        .arg("--data")
        .arg(place.join("looked-at"));
    let output = command.output().expect("the binary starts");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    let findings = found.as_array().or(found["findings"].as_array()).unwrap_or_else(|| panic!("{found}"));
    let of_fleet = findings.iter().filter(|finding| finding["check"] == "fleet");
    let told = of_fleet.map(|finding| (text(finding, "verdict"), text(finding, "found")));
    told.filter(|(_, found)| !found.contains("takes this edge")).collect()
}

/// What is found of the way back.
#[track_caller]
fn finds(place: &Path, config: &Path, verdict: &str, words: &str) {
    let found = doctor(place, config);
    let is_found = found.iter().any(|(told, found)| told == verdict && found.contains(words));
    assert!(is_found, "{verdict}: {words} is not in {found:?}");
}

fn consumer(more: Value) -> String {
    let mut config = json!({
        "durable_name": "edge-7", "deliver_policy": "new", "ack_policy": "explicit", "ack_wait": 5_000_000_000_u64, "max_deliver": -1,
        "max_ack_pending": 1024, "filter_subjects": ["commands.edge-7.*", "commands.all.*"],
    });
    config.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({"stream_name": "COMMANDS", "config": config}).to_string()
}

fn is_connected(cloud: &Cloud) {
    assert!(eventually(|| told(cloud)["connected"] == true), "{} {}", told(cloud), cloud.stderr());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn by_a_consumer_that_was_made_for_it_events_come_and_nothing_is_forwarded() {
    let Some(program) = program("by_a_consumer_that_was_made_for_it_events_come_and_nothing_is_forwarded") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    make_stream(&cluster);
    let config = configure(place.path(), "taker", &cluster, "");
    finds(place.path(), &config, "ok", "this edge only takes");
    finds(place.path(), &config, "warning", "has no consumer edge-7 yet");
    let cloud = up(place.path(), &config);
    assert!(eventually(|| told(&cloud).to_string().contains("Permissions Violation")), "it may not make one: {}", told(&cloud));
    let screen = PushSubscriber::listen(Manner::Answers);
    let listener = cloud.register_system("screen", screen.port());
    cloud.subscribe(&subscription("setpoint", system("screen", screen.port()), "/notify"));
    // One that would lose messages is not used.
    cluster.ask("CONSUMER.CREATE.COMMANDS.edge-7", &consumer(json!({"max_deliver": 3})));
    assert!(eventually(|| told(&cloud)["trouble"].as_str().is_some_and(|why| why.contains("max_deliver = 3"))), "{}", told(&cloud));
    finds(place.path(), &config, "problem", "max_deliver = 3");
    cluster.ask("CONSUMER.DELETE.COMMANDS.edge-7", "");
    cluster.ask("CONSUMER.CREATE.COMMANDS.edge-7", &consumer(json!({})));
    is_connected(&cloud);
    send(&cluster, 0..20);
    has(&cluster, &cloud, &(0..20).collect::<Vec<_>>());
    // A subscriber by push needs a rule for the publisher `eventhandler`; an event stream in insecure mode does not.
    assert_eq!(screen.count(), 0, "{:?}", screen.payloads());
    let services = cloud.get("/serviceregistry/mgmt/servicedef/event-subscribe").expect_status(200).json();
    let offer = &list(&services, "/data")[0];
    cloud.allow(listener, number(offer, "/provider/id"), number(offer, "/serviceDefinition/id"), &[INSECURE_JSON_ID]);
    send(&cluster, 20..25);
    screen.wait_until(|notifications| notifications.len() >= 5, "five commands");
    assert_eq!(screen.payloads(), ["20", "21", "22", "23", "24"]);
    finds(place.path(), &config, "ok", "consumer edge-7, which may be pulled from and acknowledged to");
    // Who may not acknowledge is told so.
    finds(place.path(), &configure(place.path(), "deaf", &cluster, ""), "problem", "cannot be acknowledged");
    // Nothing is forwarded, and nobody is troubled by that.
    let fleet = cloud.get("/api/v1/fleet").expect_status(200).json();
    assert_eq!((&fleet["forwards"], &fleet["trouble"]), (&json!(false), &Value::Null), "{fleet}");
    assert_eq!(fleet["fromFleet"]["oldestMs"], Value::Null, "nothing is on its way: {fleet}");
    assert!(fleet["fromFleet"]["heardMs"].as_u64().expect("a time") > 1_700_000_000_000 && fleet["fromFleet"]["waiting"] == 0, "{fleet}");
    let metrics = cloud.get("/metrics").expect_status(200).text();
    assert!(metrics.contains("bodkin_from_fleet_connected 1") && !metrics.contains("bodkin_fleet_connected"), "{metrics}");
    drop(cloud);
    in_secure_mode_a_listener_needs_a_rule(&cluster, place.path(), &config);
}

/// The same consumer, taken from by a cloud in secure mode.
fn in_secure_mode_a_listener_needs_a_rule(cluster: &Cluster, place: &Path, config: &Path) {
    let data = place.join("secure");
    put_trust(&data.join("trust"));
    let cloud = Launch::new().secure().data(&data).flags(["--config", config.to_str().expect("a path is text")]).start();
    let (operator, screen) = (Client::system("sysop"), Client::system("screen"));
    let consumer = register(&cloud, &screen, &json!({"systemName": "screen", "address": "127.0.0.1", "port": 9000}));
    let connection = screen.connect(cloud.address(System::EventHandler)).expect("a connection");
    let stream = EventStream::open_on(connection, "/eventhandler/subscription?eventtype=setpoint", &[]);
    let taken = || operator.expect(&cloud, "GET", "/api/v1/fleet", None, 200).json()["fromFleet"]["taken"].as_u64();
    send(cluster, 25..27);
    assert!(eventually(|| taken() == Some(2)), "{:?} {}", taken(), cloud.stderr());
    let services = operator.expect(&cloud, "GET", "/serviceregistry/mgmt/servicedef/event-subscribe", None, 200).json();
    let offer = &list(&services, "/data")[0];
    allow(&cloud, consumer, (number(offer, "/provider/id"), number(offer, "/serviceDefinition/id")));
    send(cluster, 27..29);
    let heard: Vec<String> = stream.wait_for(2).into_iter().map(|event| event.data).collect();
    assert_eq!(heard, ["27", "28"]);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn of_a_real_time_topic_events_come_no_faster_than_its_period_and_all_of_them() {
    let Some(program) = program("of_a_real_time_topic_events_come_no_faster_than_its_period_and_all_of_them") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    make_stream(&cluster);
    let topic = "\n[[topic]]\nevent_type = \"setpoint\"\nperiod_ms = 100\ndeadline_ms = 5000\n";
    let config = configure(place.path(), "edge", &cluster, topic);
    let mut cloud = up(place.path(), &config);
    is_connected(&cloud);
    send(&cluster, 0..30);
    let taken = || told(&cloud)["taken"].as_u64().expect("a number");
    assert!(eventually(|| taken() >= 10), "{} {}", told(&cloud), cloud.stderr());
    // What waits is known again behind a kill.
    cloud.kill();
    cloud = up(place.path(), &config);
    has(&cluster, &cloud, &(0..30).collect::<Vec<_>>());
    let text = heard(cloud.address(System::EventHandler), "/eventhandler/events?event_type=setpoint&since=0");
    assert_eq!(text.matches(r#""metaData":{"fleet":""#).count(), 30, "{text}");
    let told = cloud.get("/api/v1/topics").expect_status(200).json();
    let counts = &told["data"][0];
    assert_eq!((&counts["excess"], &counts["shed"]), (&json!(0), &json!(0)), "{counts}");
}
