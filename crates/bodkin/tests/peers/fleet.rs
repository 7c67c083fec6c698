//! A running cloud that forwards its events to a JetStream cluster of three: each is in the stream once, in its order, whatever is killed, cut or full.

mod copies;
mod leaf;
mod restored;
mod rights;
mod room;
pub mod servers;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bodkin_bench::link::Link;
use bodkin_nats::forwarder::lane_subject;
use bodkin_nats::lane::Record;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::servers::{Cluster, PASSWORD};
use crate::jetstream::read_lane;
use crate::nodes::{Node, Pair};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::http::Connection;
use crate::support::patience::{PATIENCE, eventually};
use crate::support::skip;
use crate::support::sse::EventStream;

const STREAM: &str = "FLEET";

/// The server's program; nothing if there is none, which is noted.
pub fn program(test: &str) -> Option<PathBuf> {
    let program = std::env::var_os("BODKIN_NATS_SERVER").map(PathBuf::from).filter(|program| program.is_file());
    if program.is_none() {
        skip::note(test, "there is no nats-server (BODKIN_NATS_SERVER)");
    }
    program
}

/// The table that forwards `heat`, and `alarm` in a lane of its own.
pub fn table_with(place: &Path, user: &str, ports: &[u16], more: &str) -> String {
    let password = place.join("password");
    bodkin_trust::file::write_private(&password, PASSWORD.as_bytes()).expect("written");
    let servers: Vec<String> = ports.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
    format!(
        "[fleet]\nservers = [{}]\nedge = \"edge-7\"\nuser = \"{user}\"\npassword_file = {password:?}\ncreate_replicas = 3\nanswer_wait_ms = 2000\n{more}\n\
         lanes = {{ events = [\"heat\"], alarms = [\"alarm\"] }}\n",
        servers.join(", "),
    )
}

/// A file with this table.
pub fn configure_with(place: &Path, user: &str, ports: &[u16], more: &str) -> PathBuf {
    let config = place.join("bodkin.toml");
    fs::write(&config, table_with(place, user, ports, more)).expect("written");
    config
}

fn up(place: &Path, config: &Path) -> Cloud {
    let config = config.to_str().expect("a path is text");
    Launch::new().data(&place.join("data")).flags(["--config", config, "--event-log-bytes-max", "1048576"]).start()
}

/// What is told of forwarding.
fn told(cloud: &Cloud) -> Value {
    cloud.get("/api/v1/fleet").expect_status(200).json()
}

fn lane(cloud: &Cloud, name: &str) -> Value {
    let told = told(cloud);
    told["lanes"].as_array().expect("lanes").iter().find(|lane| lane["name"] == name).cloned().expect("the lane")
}

fn is_idle(cloud: &Cloud) -> bool {
    let told = told(cloud);
    told["connected"] == true && told["lanes"].as_array().expect("lanes").iter().all(|lane| lane["waiting"] == 0)
}

/// Publishes numbers one behind the other on a kept connection.
struct Publisher {
    connection: Connection,
    next: u64,
}

impl Publisher {
    fn new(cloud: &Cloud, next: u64) -> Self {
        Self { connection: cloud.connect(System::EventHandler), next }
    }

    fn publish(&mut self, event_type: &str, padding: usize) -> u64 {
        let source = json!({"systemName": "sensor", "address": "127.0.0.1", "port": 9000});
        let payload = format!("{} {}", self.next, "x".repeat(padding));
        let event = json!({"eventType": event_type, "source": source, "payload": payload}).to_string();
        let headers = [("Content-Type", "application/json")];
        let answer = self.connection.request("POST", "/eventhandler/publish", &headers, Some(event.as_bytes()));
        answer.expect("the cloud answers").expect_status(200);
        self.next += 1;
        self.next - 1
    }

    fn publish_all(&mut self, events: u64, padding: usize) {
        for _ in 0..events {
            self.publish("heat", padding);
        }
    }
}

/// Registers who publishes.
fn register(cloud: &Cloud) {
    let sensor = json!({"systemName": "sensor", "address": "127.0.0.1", "port": 9000});
    cloud.post("/serviceregistry/mgmt/systems", &sensor).expect_status(201);
}

/// The numbers of a lane in the stream, and how many are told to be lost; nothing while the stream has no leader.
fn in_stream(cluster: &Cluster, lane: &str) -> Option<(Vec<u64>, u64)> {
    let (mut numbers, mut lost) = (Vec::new(), 0);
    let subject = lane_subject("fleet", "edge-7", lane).expect("a subject");
    let credentials = format!("\"user\":\"edge\",\"pass\":\"{PASSWORD}\"");
    let connection = cluster.connect(0);
    connection.set_read_timeout(Some(PATIENCE / 10)).expect("a connection");
    read_lane(connection, &credentials, STREAM, &subject, |record| match record {
        Record::Event { payload, .. } => {
            let text = std::str::from_utf8(payload).expect("text");
            numbers.push(text.split(' ').next().expect("a word").parse().expect("a number"));
        }
        Record::Lost { count, .. } => lost += count,
    })?;
    Some((numbers, lost))
}

/// Waits until a lane has these numbers, each once and in order, and so many losses.
#[track_caller]
fn has(cluster: &Cluster, cloud: &Cloud, lane: &str, expected: (Vec<u64>, u64)) {
    if !eventually(|| in_stream(cluster, lane).as_ref() == Some(&expected)) {
        assert_eq!(in_stream(cluster, lane), Some(expected), "{}", told(cloud));
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn events_of_a_cloud_are_in_the_stream_once_while_servers_links_and_the_cloud_are_killed() {
    let name = "events_of_a_cloud_are_in_the_stream_once_while_servers_links_and_the_cloud_are_killed";
    let Some(program) = program(name) else { return };
    let place = TempDir::new().expect("a temporary directory");
    let mut cluster = Cluster::start(&program, 1 << 30);
    let links: Vec<Link> = (0..3).map(|at| Link::to(cluster.address(at)).expect("a port is free")).collect();
    let config = configure_with(place.path(), "edge", &links.iter().map(|link| link.address.port()).collect::<Vec<_>>(), "");
    let mut cloud = up(place.path(), &config);
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    let mut alarms = Vec::new();
    let listener = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=heat", &[]);
    for round in 0..40 {
        for _ in 0..100 {
            publisher.publish("heat", 20);
        }
        if round == 1 {
            // All links are cut since the round before: subscribers receive events at once, and the fleet's stream does not.
            assert_eq!(listener.wait_for(200).len(), 200);
            let waits = lane(&cloud, "events");
            assert!(waits["waiting"].as_u64() >= Some(100), "{waits}");
        }
        alarms.push(publisher.publish("ALARM", 0));
        match round % 4 {
            0 => links.iter().for_each(Link::cut),
            1 => links.iter().for_each(Link::mend),
            2 => cluster.kill(round / 4 % 3),
            _ => cluster.revive(round / 4 % 3),
        }
        if round % 4 == 1 {
            assert!(eventually(|| told(&cloud)["connected"] == true), "{}", told(&cloud));
        }
        if [2, 8, 21, 35].contains(&round) {
            let next = publisher.next;
            cloud.kill();
            cloud = up(place.path(), &config);
            publisher = Publisher::new(&cloud, next);
        }
    }
    let heat: Vec<u64> = (0..publisher.next).filter(|number| !alarms.contains(number)).collect();
    has(&cluster, &cloud, "events", (heat, 0));
    has(&cluster, &cloud, "alarms", (alarms, 0));
    assert_eq!(told(&cloud)["told"]["replicas"], 3);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn what_the_event_log_does_not_keep_is_counted_in_its_place() {
    let name = "what_the_event_log_does_not_keep_is_counted_in_its_place";
    let Some(program) = program(name) else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    let link = Link::to(cluster.address(0)).expect("a port is free");
    let config = configure_with(place.path(), "edge", &[link.address.port()], "");
    let cloud = up(place.path(), &config);
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    publisher.publish("heat", 0);
    has(&cluster, &cloud, "events", (vec![0], 0));
    link.cut();
    // Until the event log has let more of them go than a lane has at hand; others' events are in it too.
    let first = || cloud.get("/api/v1/event-log").json()["firstPosition"].as_u64().expect("a number");
    let (mut heat, mut last) = (1, 0);
    while first() < 4_000 {
        assert!(publisher.next < 100_000, "the log has let {} events go", first());
        for _ in 0..20 {
            publisher.publish("other", 1_000);
            last = publisher.publish("heat", 1_000);
            heat += 1;
        }
    }
    link.mend();
    let counted = || in_stream(&cluster, "events").map(|(numbers, lost)| numbers.len() as u64 + lost);
    assert!(eventually(|| counted() == Some(heat) && is_idle(&cloud)), "{:?} of {heat}: {}", counted(), told(&cloud));
    let (numbers, lost) = in_stream(&cluster, "events").expect("the stream has a leader");
    assert!(lost > 100, "{lost}");
    assert!(numbers.is_sorted() && numbers[0] == 0 && numbers.last() == Some(&last), "in order");
    assert_eq!(lane(&cloud, "events")["lost"], lost);
    let metrics = cloud.get("/metrics").expect_status(200).text();
    assert!(metrics.contains(&format!("\nbodkin_fleet_lost_total {lost}\n")), "{lost}: {metrics}");
    // Each line of the log counts losses since the line before.
    let stderr = cloud.stderr();
    let lines = stderr.lines().filter(|line| line.contains("the event log did not keep events until they were forwarded"));
    let counts = lines.map(|line| line.split("lost=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok()));
    assert_eq!(counts.sum::<Option<u64>>(), Some(lost), "{stderr}");
    assert_shown(cloud.address(System::Monitor), "BodkinFleetLost");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_full_or_deleted_stream_and_wrong_rights_are_told_and_cost_nothing() {
    let name = "a_full_or_deleted_stream_and_wrong_rights_are_told_and_cost_nothing";
    let Some(program) = program(name) else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let says = |cloud: &Cloud, words: &str| {
        assert!(eventually(|| told(cloud).to_string().contains(words)), "{words} is not in {}", told(cloud));
    };
    // A wrong password.
    let config = configure_with(place.path(), "nobody", &ports, "");
    let cloud = up(place.path(), &config);
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    publisher.publish_all(50, 0);
    says(&cloud, "Authorization Violation");
    assert!(eventually(|| lane(&cloud, "events")["waiting"] == 50), "{}", told(&cloud));
    drop(cloud);
    // A user that may not publish there: the stream is made, and nothing gets in.
    let config = configure_with(place.path(), "mute", &ports, "");
    let cloud = up(place.path(), &config);
    says(&cloud, "Permissions Violation");
    assert_eq!(lane(&cloud, "events")["stored"], 0);
    drop(cloud);
    // A stream that has room for little.
    let config = configure_with(place.path(), "edge", &ports, "batch_bytes_max = 4096");
    cluster.ask("STREAM.DELETE.FLEET", "");
    let full =
        json!({"name": STREAM, "subjects": ["fleet.*.*"], "storage": "file", "discard": "new", "num_replicas": 3, "max_bytes": 20_000});
    cluster.ask("STREAM.CREATE.FLEET", &full.to_string());
    let cloud = up(place.path(), &config);
    let mut publisher = Publisher::new(&cloud, 50);
    publisher.publish_all(150, 200);
    says(&cloud, "maximum bytes exceeded");
    let mut roomy = full;
    roomy["max_bytes"] = json!(-1);
    cluster.ask("STREAM.UPDATE.FLEET", &roomy.to_string());
    has(&cluster, &cloud, "events", ((0..200).collect(), 0));
    // The stream is deleted under us, and made anew.
    cluster.ask("STREAM.DELETE.FLEET", "");
    publisher.publish_all(50, 0);
    // What was in it is gone, and not sent again.
    has(&cluster, &cloud, "events", ((200..250).collect(), 0));
    // A restart finds its place in it.
    let next = publisher.next;
    drop(cloud);
    let cloud = up(place.path(), &config);
    let mut publisher = Publisher::new(&cloud, next);
    publisher.publish("heat", 0);
    has(&cluster, &cloud, "events", ((200..251).collect(), 0));
    // A topic that is marked while the cloud runs is in the first lane.
    let topic = json!({"event_type": "press", "period_ms": 1, "fleet": true});
    let admitted = cloud.post("/api/v1/topics", &topic).expect_status(201).json();
    assert_eq!(admitted["fleet"], true);
    publisher.publish("press", 0);
    has(&cluster, &cloud, "events", ((200..252).collect(), 0));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn servers_without_room_are_told_and_what_waits_goes_on_when_they_have_some() {
    let Some(program) = program("servers_without_room_are_told_and_what_waits_goes_on_when_they_have_some") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let mut cluster = Cluster::start(&program, 200_000);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let config = configure_with(place.path(), "edge", &ports, "batch_bytes_max = 4096");
    let cloud = up(place.path(), &config);
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    publisher.publish_all(300, 1_000);
    // A server without room says so first, and then that its JetStream does not work.
    let is_told = |told: String| told.contains("insufficient resources") || told.contains("temporarily unavailable");
    assert!(eventually(|| is_told(told(&cloud).to_string())), "{}", told(&cloud));
    let stored = lane(&cloud, "events")["stored"].as_u64().expect("a number");
    assert!(stored < 300 && lane(&cloud, "events")["lost"] == 0, "{}", told(&cloud));
    cluster.make_room(200_000, 1 << 30);
    publisher.publish("heat", 0);
    has(&cluster, &cloud, "events", ((0..301).collect(), 0));
}

/// A pair beside three servers of a stream.
struct Edge {
    cluster: Cluster,
    links: Vec<Link>,
    witness: Node,
    backup: Node,
    primary: Node,
    _pair: Pair,
    _place: TempDir,
}

impl Edge {
    /// With the primary in the lead, 50 of whose events are in the stream.
    fn start(program: &Path) -> Self {
        let place = TempDir::new().expect("a temporary directory");
        let cluster = Cluster::start(program, 1 << 30);
        let links: Vec<Link> = (0..3).map(|at| Link::to(cluster.address(at)).expect("a port is free")).collect();
        let ports: Vec<u16> = links.iter().map(|link| link.address.port()).collect();
        let tables = table_with(place.path(), "edge", &ports, "");
        let (pair, witness, backup, primary) = Pair::protected_with("durable_event_types = [\"heat\"]\n", &tables);
        let register = system("recorder", 1);
        primary
            .call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&register))
            .expect("an answer")
            .expect_status(201);
        // Others' events are in the leader's log alone, so that the same event is elsewhere in the other one.
        publish_at(&primary, "other", 0..7);
        publish_at(&primary, "heat", 0..50);
        let edge = Self { cluster, links, witness, backup, primary, _pair: pair, _place: place };
        edge.has(&edge.primary, 50);
        edge
    }

    /// Waits until the stream has so many events.
    #[track_caller]
    fn has(&self, leader: &Node, events: u64) {
        let expected = Some(((0..events).collect(), 0));
        assert!(
            eventually(|| in_stream(&self.cluster, "events") == expected),
            "{:?}: {}",
            in_stream(&self.cluster, "events"),
            leader.said()
        );
    }
}

fn publish_at(node: &Node, event_type: &str, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let event = event(event_type, system("recorder", 1), &number.to_string());
        node.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&event)).expect("an answer").expect_status(200);
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn the_node_of_a_pair_that_leads_next_goes_on_behind_what_the_stream_has() {
    let Some(program) = program("the_node_of_a_pair_that_leads_next_goes_on_behind_what_the_stream_has") else { return };
    let mut edge = Edge::start(&program);
    edge.links.iter().for_each(Link::cut);
    publish_at(&edge.primary, "heat", 50..100);
    edge.primary.signal(Signal::SIGKILL);
    edge.links.iter().for_each(Link::mend);
    edge.backup.served();
    publish_at(&edge.backup, "heat", 100..150);
    edge.has(&edge.backup, 150);
    // The acknowledgement of what is in the stream may be on its way.
    let told = || edge.backup.call(System::Monitor, "GET", "/api/v1/fleet", None).expect("an answer").json();
    assert!(eventually(|| told()["lanes"][0]["position"] == 150), "{}", told());
    assert_eq!(told()["lanes"][0]["epoch"], 1, "{}", told());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn the_leader_of_a_pair_forwards_nothing_once_its_lease_is_over() {
    let Some(program) = program("the_leader_of_a_pair_forwards_nothing_once_its_lease_is_over") else { return };
    let edge = Edge::start(&program);
    let others = |signal| [&edge.witness, &edge.backup].iter().for_each(|node| node.signal(signal));
    edge.links.iter().for_each(Link::cut);
    publish_at(&edge.primary, "heat", 50..60);
    others(Signal::SIGSTOP);
    let ready = || edge.primary.call(System::Monitor, "GET", "/readyz", None).map(|answer| answer.status);
    assert!(eventually(|| ready().is_ok_and(|status| status == 503)), "{}", edge.primary.said());
    edge.links.iter().for_each(Link::mend);
    std::thread::sleep(Duration::from_secs(3));
    edge.has(&edge.primary, 50);
    others(Signal::SIGCONT);
    edge.has(&edge.primary, 60);
}

/// Both edges name themselves alike, and begin with the same positions.
#[test]
#[ignore = "peer: ./x test --all"]
fn second_edge_of_one_name_stops_until_adopted() {
    let Some(program) = program("second_edge_of_one_name_stops_until_adopted") else { return };
    let cluster = Cluster::start(&program, 1 << 30);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let places = [TempDir::new().expect("a directory"), TempDir::new().expect("a directory")];
    let edges = places.each_ref().map(|place| up(place.path(), &configure_with(place.path(), "edge", &ports, "")));
    edges.iter().for_each(register);
    let mut publishers = [Publisher::new(&edges[0], 0), Publisher::new(&edges[1], 1_000)];
    publishers[0].publish("heat", 0);
    assert!(eventually(|| is_idle(&edges[0])), "{} {}", told(&edges[0]), edges[0].stderr());
    for _ in 0..50 {
        for publisher in &mut publishers {
            publisher.publish("heat", 0);
        }
    }
    // The first one goes on whatever the other one publishes; the other one stands, and says both identities.
    assert!(eventually(|| lane(&edges[1], "events")["stopped"] == true), "{}", lane(&edges[1], "events"));
    publishers[0].publish_all(50, 0);
    has(&cluster, &edges[0], "events", ((0..101).collect(), 0));
    let stopped = lane(&edges[1], "events");
    assert!(stopped["waiting"] == 50 && stopped["trouble"].as_str().is_some_and(|why| why.contains("bodkin fleet adopt")), "{stopped}");
    // Also after a restart, and once the first one is gone.
    let [first, second] = edges;
    first.kill();
    second.kill();
    let second = up(places[1].path(), &places[1].path().join("bodkin.toml"));
    assert!(eventually(|| lane(&second, "events")["stopped"] == true), "{}", lane(&second, "events"));
    assert_shown(second.address(System::Monitor), "BodkinFleetStopped");
    second.post("/api/v1/fleet/adopt?lane=events", &json!({})).expect_status(200);
    has(&cluster, &second, "events", ((0..101).chain(1_000..1_050).collect(), 0));
    second.post("/api/v1/fleet/adopt?lane=events", &json!({})).expect_status(409);
    second.post("/api/v1/fleet/adopt?lane=none", &json!({})).expect_status(404);
}
