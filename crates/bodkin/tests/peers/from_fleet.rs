//! A running cloud that takes events of its fleet from a JetStream cluster of three: each is published here once, in its order, whatever is killed or cut; what cannot be is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;

use bodkin_bench::link::Link;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fleet::{configure_with, program, servers::Cluster, table_with};
use crate::nodes::{Node, Pair, Relay};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;

const STREAM: &str = "COMMANDS";

/// The stream that commands come by.
pub(crate) fn make_stream(cluster: &Cluster) {
    let stream = json!({"name": STREAM, "subjects": ["commands.*.*"], "storage": "file", "discard": "old", "num_replicas": 3});
    cluster.ask(&format!("STREAM.CREATE.{STREAM}"), &stream.to_string());
}

fn command(event_type: &str, data: &str, more: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"{data}","source":"/planner","type":"{event_type}","data":{data}{more}}}"#)
}

/// Sends setpoints for the edge, each stored by the cluster.
pub(crate) fn send(cluster: &Cluster, numbers: std::ops::Range<u64>) {
    for number in numbers {
        cluster.publish("commands.edge-7.setpoint", &command("setpoint", &number.to_string(), ""));
    }
}

pub(crate) fn up(place: &Path, config: &Path) -> Cloud {
    let config = config.to_str().expect("a path is text");
    Launch::new().data(&place.join("data")).flags(["--config", config]).start()
}

pub(crate) fn told(cloud: &Cloud) -> Value {
    cloud.get("/api/v1/fleet").expect_status(200).json()["fromFleet"].clone()
}

/// What was published of an event type, in order, by the event log: whoever listens from the begin hears it.
fn published(node: &impl Fn(&str) -> String) -> Vec<u64> {
    let text = node("/eventhandler/subscription?eventtype=setpoint&since=0");
    text.lines().filter_map(|line| line.strip_prefix("data: ")?.parse().ok()).collect()
}

/// Hears an event stream until it is live.
pub(crate) fn heard(address: std::net::SocketAddr, path: &str) -> String {
    use std::io::{Read, Write};
    let Ok(mut stream) = std::net::TcpStream::connect(address) else { return String::new() };
    stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a timeout");
    let asked = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    let _ = stream.write_all(asked.as_bytes());
    let (mut all, mut space) = (Vec::new(), vec![0; 65_536]);
    while !all.windows(7).any(|seven| seven == b": live\n") {
        match stream.read(&mut space) {
            Ok(bytes) if bytes > 0 => all.extend_from_slice(&space[..bytes]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn of_cloud(cloud: &Cloud) -> Vec<u64> {
    let address = cloud.address(System::EventHandler);
    published(&|path| heard(address, path))
}

/// Waits until a cloud has published these, each once and in order.
#[track_caller]
pub(crate) fn has(cluster: &Cluster, cloud: &Cloud, expected: &[u64]) {
    if !eventually(|| of_cloud(cloud) == expected) {
        let doubles = doubles(cluster, cloud);
        assert_eq!(of_cloud(cloud), expected, "{doubles}\n{} {}", told(cloud), cloud.stderr());
    }
}

/// What is there more than once: in the event log with its name, its time and the message that it was, and in the stream.
fn doubles(cluster: &Cluster, cloud: &Cloud) -> String {
    let text = heard(cloud.address(System::EventHandler), "/eventhandler/events?event_type=setpoint&since=0");
    let mut published = BTreeMap::<String, Vec<String>>::new();
    for event in text.split("\n\n") {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        // What is no event is the answer's head, or a word of the stream's.
        let Ok(data) = serde_json::from_str::<Value>(field("data: ")) else { continue };
        published.entry(data["payload"].to_string()).or_default().push(format!("id {} {data}", field("id: ")));
    }
    let info = cluster.ask(&format!("STREAM.INFO.{STREAM}"), "");
    let number = |name: &str| info["state"][name].as_u64().unwrap_or_default();
    let mut stored = BTreeMap::<String, Vec<u64>>::new();
    for sequence in number("first_seq")..=number("last_seq") {
        let found = cluster.ask(&format!("STREAM.MSG.GET.{STREAM}"), &json!({"seq": sequence}).to_string());
        stored.entry(found["message"]["data"].to_string()).or_default().push(sequence);
    }
    published.retain(|_, events| events.len() > 1);
    stored.retain(|_, sequences| sequences.len() > 1);
    format!("twice in the event log: {published:#?}\ntwice in the stream, made {}: {stored:?}", info["created"])
}

fn config(place: &Path, ports: &[u16], user: &str) -> PathBuf {
    configure_with(place, user, ports, "from_fleet = [\"setpoint\", \"weather\"]")
}

#[test]
#[ignore = "peer: ./x test --all"]
fn commands_are_published_once_through_kills_and_cuts() {
    let Some(program) = program("commands_are_published_once_through_kills_and_cuts") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let mut cluster = Cluster::start(&program, 1 << 30);
    make_stream(&cluster);
    let links: Vec<Link> = (0..3).map(|at| Link::to(cluster.address(at)).expect("a port is free")).collect();
    let ports: Vec<u16> = links.iter().map(|link| link.address.port()).collect();
    let config = config(place.path(), &ports, "edge");
    // What was sent before the edge was ever there is not for it.
    send(&cluster, 900..903);
    // The edge begins 2 s before its start, because clocks may differ.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    let mut cloud = up(place.path(), &config);
    assert!(eventually(|| told(&cloud)["connected"] == true), "{} {}", told(&cloud), cloud.stderr());
    let (mut sent, mut said) = (0, Vec::new());
    for round in 0..40_u64 {
        send(&cluster, sent..sent + 10);
        sent += 10;
        match round % 4 {
            0 => links.iter().for_each(Link::cut),
            1 => links.iter().for_each(Link::mend),
            2 => cluster.kill((round / 4 % 3) as usize),
            _ => cluster.revive((round / 4 % 3) as usize),
        }
        if round == 17 {
            // The edge makes the consumer again. It begins after the last command that the edge published.
            cluster.ask(&format!("CONSUMER.DELETE.{STREAM}.edge-7"), "");
        }
        if [5, 14, 23, 36].contains(&round) {
            said.push(format!("until it was killed in round {round}: {} {}", told(&cloud), cloud.stderr()));
            cloud.kill();
            cloud = up(place.path(), &config);
            // Once more as soon as it has found its place, in front of what has to come again.
            if [14, 23].contains(&round) {
                // Beside other clusters, one that has just lost a server was "temporarily unavailable" (10008) for over 20 s.
                let is_connected = (0..3).any(|_| eventually(|| told(&cloud)["connected"] == true));
                assert!(is_connected, "{} {}", told(&cloud), cloud.stderr());
                cloud.kill();
                cloud = up(place.path(), &config);
            }
        }
    }
    said.iter().for_each(|said| eprintln!("{said}"));
    has(&cluster, &cloud, &(0..sent).collect::<Vec<_>>());
    assert!(eventually(|| told(&cloud)["underWay"] == 0), "{}", told(&cloud));
    assert_eq!((&told(&cloud)["lost"], &told(&cloud)["refused"]), (&json!(0), &json!(0)));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn what_cannot_be_taken_or_is_gone_is_told_and_nothing_comes_back() {
    let Some(program) = program("what_cannot_be_taken_or_is_gone_is_told_and_nothing_comes_back") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    make_stream(&cluster);
    let links: Vec<Link> = (0..3).map(|at| Link::to(cluster.address(at)).expect("a port is free")).collect();
    let ports: Vec<u16> = links.iter().map(|link| link.address.port()).collect();
    // Without the right to make a consumer.
    let cloud = up(place.path(), &config(place.path(), &ports, "blind"));
    assert!(eventually(|| told(&cloud).to_string().contains("Permissions Violation")), "{}", told(&cloud));
    drop(cloud);
    let config = config(place.path(), &ports, "edge");
    let cloud = up(place.path(), &config);
    assert!(eventually(|| told(&cloud)["connected"] == true), "{} {}", told(&cloud), cloud.stderr());
    // What is no event, of another type than its subject says, or of none that is taken, is refused; what is others' is passed over.
    cluster.publish("commands.edge-7.setpoint", "21.5");
    cluster.publish("commands.edge-7.weather", &command("setpoint", "1", ""));
    cluster.publish("commands.edge-7.other", &command("other", "1", ""));
    cluster.publish("commands.all.setpoint", &command("setpoint", "1", r#","edge":"edge-7""#));
    cluster.publish("commands.all.other", &command("other", "1", ""));
    cluster.publish("commands.edge-8.setpoint", &command("setpoint", "8", ""));
    send(&cluster, 2..3);
    cluster.publish("commands.all.SETPOINT", &command("Setpoint", "3", r#","edge":"edge-8""#));
    has(&cluster, &cloud, &[2, 3]);
    assert!(eventually(|| told(&cloud)["taken"] == 2), "{}", told(&cloud));
    assert_eq!((&told(&cloud)["refused"], &told(&cloud)["passedOver"]), (&json!(3), &json!(2)), "{}", told(&cloud));
    assert!(told(&cloud)["lastRefused"].as_str().is_some_and(|why| why.contains("none of the event types")), "{}", told(&cloud));
    // It is the Event Handler's event, and says which message it was.
    let text = heard(cloud.address(System::EventHandler), "/eventhandler/events?event_type=setpoint&since=0");
    assert!(text.contains(r#""metaData":{"fleet":""#) && text.contains(r#""ce-source":"/planner""#), "{text}");
    // What the edge forwards has not what it has taken.
    let stored = || cloud.get("/api/v1/fleet").expect_status(200).json()["lanes"][0]["stored"].clone();
    assert_eq!(stored(), json!(0), "what comes from the fleet does not go back");
    // The stream lets go of what the edge has not had.
    links.iter().for_each(Link::cut);
    send(&cluster, 4..14);
    cluster.ask(&format!("STREAM.PURGE.{STREAM}"), "");
    send(&cluster, 14..16);
    links.iter().for_each(Link::mend);
    has(&cluster, &cloud, &[2, 3, 14, 15]);
    // One of another edge was in front of them, of which nobody knows whose it was.
    let lost = || told(&cloud)["lost"].as_u64().expect("a number");
    assert!(eventually(|| (10..=11).contains(&lost())), "{}", told(&cloud));
    assert_shown(cloud.address(System::Monitor), "BodkinFromFleetLost");
    // It is told with what came next, and not forgotten by a restart.
    let counted = lost();
    let text = heard(cloud.address(System::EventHandler), "/eventhandler/events?event_type=setpoint&since=0");
    assert_eq!(text.matches(&format!(r#""fleetLost":"{counted}""#)).count(), 2, "{text}");
    cloud.kill();
    let cloud = up(place.path(), &config);
    assert!(eventually(|| told(&cloud)["connected"] == true), "{} {}", told(&cloud), cloud.stderr());
    assert_eq!(told(&cloud)["lost"], counted, "{}", told(&cloud));
    // A stream that is made anew counts anew.
    cluster.ask(&format!("STREAM.DELETE.{STREAM}"), "");
    make_stream(&cluster);
    send(&cluster, 20..22);
    has(&cluster, &cloud, &[2, 3, 14, 15, 20, 21]);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn the_node_of_a_pair_that_leads_next_takes_each_once() {
    let Some(program) = program("the_node_of_a_pair_that_leads_next_takes_each_once") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    make_stream(&cluster);
    let links: Vec<Link> = (0..3).map(|at| Link::to(cluster.address(at)).expect("a port is free")).collect();
    let ports: Vec<u16> = links.iter().map(|link| link.address.port()).collect();
    let tables = table_with(place.path(), "edge", &ports, "from_fleet = [\"setpoint\"]");
    let (_pair, _witness, mut backup, primary) = Pair::protected_with("", &tables);
    let told = |node: &Node| node.call(System::Monitor, "GET", "/api/v1/fleet", None).expect("an answer").json()["fromFleet"].clone();
    assert!(eventually(|| told(&primary)["connected"] == true), "{} {}", told(&primary), primary.said());
    send(&cluster, 0..50);
    let of_node = |node: &Node| published(&|path| heard(node.address(System::EventHandler), path));
    let comes = |node: &Node, through: u64| {
        let expected: Vec<u64> = (0..through).collect();
        assert!(eventually(|| of_node(node) == expected), "{:?} {} {}", of_node(node), told(node), node.said());
    };
    comes(&primary, 50);
    assert!(eventually(|| told(&primary)["underWay"] == 0), "{}", told(&primary));
    // What the stream lets go of is counted on by whoever leads.
    links.iter().for_each(Link::cut);
    send(&cluster, 900..905);
    cluster.ask(&format!("STREAM.PURGE.{STREAM}"), "");
    send(&cluster, 50..60);
    links.iter().for_each(Link::mend);
    comes(&primary, 60);
    assert_eq!(told(&primary)["lost"], 5, "{}", told(&primary));
    // The acknowledgements of some do not get through.
    links.iter().for_each(Link::cut);
    send(&cluster, 60..70);
    links.iter().for_each(Link::mend);
    primary.signal(Signal::SIGKILL);
    backup.served();
    send(&cluster, 70..100);
    comes(&backup, 100);
    assert_eq!((&told(&backup)["lost"], &told(&backup)["refused"]), (&json!(5), &json!(0)));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn what_was_taken_while_the_backup_was_out_is_not_taken_again_when_that_leads() {
    let Some(program) = program("what_was_taken_while_the_backup_was_out_is_not_taken_again_when_that_leads") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    make_stream(&cluster);
    let ways: Vec<Relay> = (0..3).map(|at| Relay::to(cluster.address(at))).collect();
    let ports: Vec<u16> = ways.iter().map(|way| way.address.port()).collect();
    let tables = table_with(place.path(), "edge", &ports, "from_fleet = [\"setpoint\"]");
    let (mut pair, _witness, backup, primary) = Pair::protected_with("", &tables);
    let told = |node: &Node| node.call(System::Monitor, "GET", "/api/v1/fleet", None).expect("an answer").json()["fromFleet"].clone();
    let of_node = |node: &Node| published(&|path| heard(node.address(System::EventHandler), path));
    let comes = |node: &Node, through: u64| {
        let expected: Vec<u64> = (0..through).collect();
        assert!(eventually(|| of_node(node) == expected), "{:?} {} {}", of_node(node), told(node), node.said());
    };
    assert!(eventually(|| told(&primary)["connected"] == true), "{} {}", told(&primary), primary.said());
    send(&cluster, 0..5);
    comes(&primary, 5);
    assert!(eventually(|| told(&primary)["underWay"] == 0), "{}", told(&primary));
    drop(backup);
    assert!(eventually(|| primary.said().contains("protection=Alone")), "{}", primary.said());
    // Events come, and what is acknowledged gets nowhere.
    ways.iter().for_each(|way| way.is_mute.store(true, SeqCst));
    send(&cluster, 5..25);
    comes(&primary, 25);
    let mut backup = pair.backup();
    primary.protected(true);
    primary.signal(Signal::SIGKILL);
    ways.iter().for_each(|way| way.is_mute.store(false, SeqCst));
    backup.served();
    send(&cluster, 25..30);
    comes(&backup, 30);
    // All of these have come again to the node that leads now, which knows them.
    let is_known = || told(&backup)["repeated"].as_u64() >= Some(20) && told(&backup)["underWay"] == 0;
    assert!(eventually(is_known), "{} {}", told(&backup), backup.said());
    comes(&backup, 30);
}

/// A server of its own that asks for something, with this in its configuration; killed when dropped.
pub struct Server(std::process::Child);

impl Server {
    pub fn start(program: &Path, place: &Path, more: &str) -> (Self, u16) {
        let port = crate::support::ports::held_port();
        let config = place.join("nats.conf");
        let text = format!("listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}/js\" }}\n{more}\n", place.display());
        std::fs::write(&config, text).expect("written");
        let mut command = std::process::Command::new(program);
        let output = std::process::Stdio::null;
        command.arg("-c").arg(config).stdin(output()).stdout(output()).stderr(output());
        (Self(command.spawn().expect("nats-server starts")), port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_server_in_tls_that_knows_the_edge_by_its_key_is_believed_by_its_authority_only() {
    let Some(program) = program("a_server_in_tls_that_knows_the_edge_by_its_key_is_believed_by_its_authority_only") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let at = |name: &str| place.path().join(name);
    let issue = |authority: &str, server: Option<&str>| {
        let openssl = |arguments: &[&str]| {
            let done = std::process::Command::new("openssl").args(arguments).current_dir(place.path()).output().expect("openssl is there");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        let [key, certificate] = ["key", "pem"].map(|end| format!("{authority}.{end}"));
        let ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        openssl(&[&["req", "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", &key, "-out", &certificate][..], &ec].concat());
        let Some(server) = server else { return };
        let [server_key, request, issued] = ["key", "csr", "pem"].map(|end| format!("{server}.{end}"));
        let asks = ["req", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", &server_key, "-out", &request];
        openssl(&[&asks[..], &ec].concat());
        let signs = [
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            &request,
            "-CA",
            &certificate,
            "-CAkey",
            &key,
            "-copy_extensions",
            "copy",
            "-out",
            &issued,
        ];
        openssl(&signs);
    };
    issue("own", Some("server"));
    issue("other", None);
    let (seed, public_key) = key();
    let file = at("seed");
    bodkin_trust::file::write_private(&file, seed.as_bytes()).expect("written");
    let tls = format!("tls {{ cert_file: {:?}, key_file: {:?} }}", at("server.pem"), at("server.key"));
    let (_server, port) = Server::start(&program, place.path(), &format!("{tls}\nauthorization {{ users: [ {{ nkey: {public_key} }} ] }}"));
    let edge = |trust: &str, key_file: &Path| {
        let config = at("bodkin.toml");
        let table = format!(
            "[fleet]\nservers = [\"tls://127.0.0.1:{port}\"]\nedge = \"edge-7\"\ntrust_file = {:?}\nkey_file = {key_file:?}\ncreate_replicas = 1\nanswer_wait_ms = 2000\n",
            at(trust)
        );
        std::fs::write(&config, table).expect("written");
        up(place.path(), &config)
    };
    let whole = |cloud: &Cloud| cloud.get("/api/v1/fleet").expect_status(200).json();
    let cloud = edge("own.pem", &file);
    assert!(eventually(|| whole(&cloud)["connected"] == true), "{} {}", whole(&cloud), cloud.stderr());
    drop(cloud);
    let cloud = edge("other.pem", &file);
    assert!(eventually(|| whole(&cloud).to_string().contains("certificate")), "{}", whole(&cloud));
    assert_eq!(whole(&cloud)["connected"], false);
    drop(cloud);
    // Another key than the server knows.
    let (seed, _) = key();
    let wrong = at("wrong");
    bodkin_trust::file::write_private(&wrong, seed.as_bytes()).expect("written");
    let cloud = edge("own.pem", &wrong);
    assert!(eventually(|| whole(&cloud).to_string().contains("Authorization Violation")), "{}", whole(&cloud));
}

/// A key that was just drawn: its seed, and the public one.
pub fn key() -> (String, String) {
    let key = bodkin_trust::nkey::Nkey::draw();
    (key.seed().to_string(), key.public_key())
}

#[test]
#[ignore = "peer: ./x test --all"]
fn second_edge_of_one_name_takes_over_and_first_one_reports_it() {
    let Some(program) = program("second_edge_of_one_name_takes_over_and_first_one_reports_it") else { return };
    let cluster = Cluster::start(&program, 1 << 30);
    make_stream(&cluster);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let places = [TempDir::new().expect("a directory"), TempDir::new().expect("a directory")];
    let start = |at: usize| up(places[at].path(), &config(places[at].path(), &ports, "edge"));
    let first = start(0);
    assert!(eventually(|| told(&first)["connected"] == true), "{} {}", told(&first), first.stderr());
    send(&cluster, 0..20);
    has(&cluster, &first, &(0..20).collect::<Vec<_>>());
    let second = start(1);
    assert!(eventually(|| told(&second)["connected"] == true), "{} {}", told(&second), second.stderr());
    // The first one notices it at its next look, or at the first message that it lacks.
    assert!(eventually(|| told(&first)["connected"] == false), "{} {}", told(&first), first.stderr());
    assert!(eventually(|| told(&first).to_string().contains("takes them under the same name")), "{}", told(&first));
    assert_shown(first.address(System::Monitor), "BodkinFromFleetAway");
    send(&cluster, 20..60);
    assert!(eventually(|| of_cloud(&second).ends_with(&(20..60).collect::<Vec<_>>())), "{:?}", of_cloud(&second));
    assert_eq!(of_cloud(&first), (0..20).collect::<Vec<_>>());
    // The operator ends the wrong one, and starts the other one again.
    second.kill();
    first.kill();
    let first = start(0);
    assert!(eventually(|| told(&first)["connected"] == true), "{} {}", told(&first), first.stderr());
    send(&cluster, 60..70);
    assert!(eventually(|| of_cloud(&first).ends_with(&(60..70).collect::<Vec<_>>())), "{:?}", of_cloud(&first));
}
