//! Client certificates for real NATS servers that know nobody otherwise (`verify_and_map`): to the fleet, and between nodes with and without a stream.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bodkin_bench::link::Link;
use bodkin_nats::protocol::{Decoder, Limits, Operation};
use bodkin_trust::{Identity, PrivateKey, file::write_private, key::KeySize, tls};
use rustls::{ClientConnection, StreamOwned, pki_types::ServerName};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fleet::program;
use crate::from_fleet;
use crate::node_events::counted;
use crate::node_log::{listen, payloads, publish};
use crate::postgres::server::Server as Database;
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::patience::{PATIENCE, eventually, eventually_some};
use crate::support::ports::held_port;
use crate::support::secure::{DAY, authority, issue, other_authority};
use crate::support::skip;

/// The user of the certificates, as `verify_and_map` reads it from their subject.
const NAME: &str = "edge-7";

/// A NATS server with JetStream that requires client certificates, a link to it, and the files of one client.
struct Ground {
    _server: from_fleet::Server,
    /// The server itself.
    address: SocketAddr,
    /// What Bodkin connects to.
    link: Link,
    place: TempDir,
}

/// What configures a server that requires client certificates; its files go to a directory.
fn requiring_certificates(place: &Path) -> String {
    let put = |name: &str, text: &str| {
        let path = place.join(name);
        write_private(&path, text.as_bytes()).expect("written");
        path
    };
    let own = issue(&authority(), "nats.example", &["127.0.0.1"], tls::now(), DAY);
    let (certificate, key) = (put("server.pem", &own.chain_to_pem()), put("server.key", &own.key().to_pem()));
    let ca = put("ca.pem", &authority().certificate().to_pem());
    format!(
        "tls {{ cert_file: {certificate:?}, key_file: {key:?}, ca_file: {ca:?}, verify_and_map: true }}\nauthorization {{ users: [ {{ user: \"CN={NAME}\" }}, {{ user: \"CN=admin\" }} ] }}"
    )
}

impl Ground {
    fn start(program: &Path) -> Self {
        let place = TempDir::new().expect("a temporary directory");
        let (server, port) = from_fleet::Server::start(program, place.path(), &requiring_certificates(place.path()));
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        eventually_some(|| TcpStream::connect(address).ok()).expect("nats-server listens");
        let ground = Self { _server: server, address, link: Link::to(address).expect("a port is free"), place };
        ground.put_identity(&valid());
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        write_private(&self.path(name), text.as_bytes()).expect("written");
    }

    /// Puts the client's certificate and key.
    fn put_identity(&self, identity: &Identity) {
        self.put("client.key", &identity.key().to_pem());
        self.put("client.pem", &identity.chain_to_pem());
    }

    /// Ends the connections; the next ones are made at once.
    fn reconnect(&self) {
        self.link.cut();
        self.link.mend();
    }

    /// What the server answers to the user `admin`, tried until it is no error.
    fn ask(&self, subject: &str, body: &str) -> Value {
        let answer = eventually_some(|| self.answer(subject, body).filter(|answer| answer.get("error").is_none()));
        answer.unwrap_or_else(|| panic!("JetStream does not answer {subject}"))
    }

    fn answer(&self, subject: &str, body: &str) -> Option<Value> {
        let mut socket = TcpStream::connect(self.address).ok()?;
        socket.set_read_timeout(Some(PATIENCE / 4)).ok()?;
        let mut byte = [0];
        while byte != [b'\n'] {
            socket.read_exact(&mut byte).ok()?;
        }
        let own = issue(&authority(), "admin", &[], tls::now(), DAY);
        let config = tls::client(Some(&own), &[authority().certificate().clone()], tls::ServerCheck::HostName).ok()?;
        let session = ClientConnection::new(config, ServerName::from(self.address.ip())).ok()?;
        let mut stream = StreamOwned::new(session, socket);
        let head = "CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB answers 1\r\n";
        stream.write_all(format!("{head}PUB {subject} answers {}\r\n{body}\r\n", body.len()).as_bytes()).ok()?;
        let (mut decoder, mut bytes) = (Decoder::new(Limits::default()), vec![0; 65_536]);
        loop {
            let length = stream.read(&mut bytes).ok().filter(|length| *length > 0)?;
            let mut rest = &bytes[..length];
            while let Some(operation) = decoder.receive(&mut rest).ok()? {
                if let Operation::Message(message) = operation {
                    return serde_json::from_slice(&message.payload).ok();
                }
            }
        }
    }

    /// A configuration that forwards `heat`, and receives `setpoint`.
    fn fleet_configuration(&self) -> PathBuf {
        configure(self.place.path(), &[self.link.address], "create_replicas = 1\nfrom_fleet = [\"setpoint\"]")
    }

    /// Variables of a node whose events go by the server.
    fn node_variables(&self, stream: &str) -> Vec<(&'static str, String)> {
        let file = |name: &str| self.path(name).display().to_string();
        vec![
            ("BODKIN_NODE_EVENTS", format!("tls://{}", self.link.address)),
            ("BODKIN_NODE_EVENTS_TRUST_FILE", file("ca.pem")),
            ("BODKIN_NODE_EVENTS_CERTIFICATE_FILE", file("client.pem")),
            ("BODKIN_NODE_EVENTS_CERTIFICATE_KEY_FILE", file("client.key")),
            ("BODKIN_NODE_EVENTS_STREAM", stream.to_owned()),
            ("BODKIN_NODE_EVENTS_REPLICAS", "1".to_owned()),
        ]
    }

    fn node(&self, database: &Database, stream: &str) -> Cloud {
        let launch = Launch::new().env("BODKIN_DATABASE", &database.url());
        self.node_variables(stream).iter().fold(launch, |launch, (name, value)| launch.env(name, value)).start()
    }

    /// What `bodkin doctor` finds with these arguments and variables.
    fn doctor(&self, arguments: &[&str], variables: &[(&'static str, String)]) -> String {
        let mut command = Command::new(BINARY);
        command.args(["doctor", "--insecure", "--any-port", "--stall-s", "1", "--output", "json"]).args(arguments);
        let output = command.envs(variables.iter().cloned()).current_dir(self.place.path()).output().expect("the binary starts");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let problems = found["findings"].as_array().expect("a list").iter().filter(|finding| finding["verdict"] == "problem");
        problems.map(|finding| format!("{}\n", finding["found"].as_str().expect("text"))).collect()
    }
}

/// Writes a configuration that forwards `heat` to these servers, with the client's files of `place`.
fn configure(place: &Path, servers: &[SocketAddr], more: &str) -> PathBuf {
    let servers: Vec<String> = servers.iter().map(|address| format!("\"tls://{address}\"")).collect();
    let [trust, certificate, key] = ["ca.pem", "client.pem", "client.key"].map(|name| place.join(name));
    let text = format!(
        "[fleet]\nservers = [{}]\nedge = \"{NAME}\"\ntrust_file = {trust:?}\ncertificate_file = {certificate:?}\ncertificate_key_file = {key:?}\nanswer_wait_ms = 2000\n{more}\nlanes = {{ events = [\"heat\"] }}\n",
        servers.join(", ")
    );
    let config = place.join("bodkin.toml");
    fs::write(&config, text).expect("written");
    config
}

fn valid() -> Identity {
    issue(&authority(), NAME, &[], tls::now(), DAY)
}

fn fleet(cloud: &Cloud) -> Value {
    cloud.get("/api/v1/fleet").expect_status(200).json()
}

fn status(cloud: &Cloud) -> String {
    let monitor = cloud.address(System::Monitor).to_string();
    let output = Command::new(BINARY).args(["status", "--monitor", &monitor]).output().expect("the binary starts");
    // A trouble is wrapped.
    String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A case: what is done to the files, and part of what is reported.
type Case<'a> = (&'a dyn Fn(), &'static str);

/// Puts wrong files in turn, and holds that each is reported by the log, by `bodkin status`, as the alert, by `api`, and by `doctor`. In
/// between, valid files count for the next connection.
#[track_caller]
fn each_wrong_file_is_reported(
    ground: &Ground,
    node: &Cloud,
    (alert, metric): (&str, &str),
    api: &dyn Fn() -> String,
    doctor: &dyn Fn() -> String,
) {
    let is_connected = || counted(node, metric) == 1;
    let other_key = PrivateKey::generate(KeySize::Bits2048).expect("a key");
    let from = |begin| issue(&authority(), NAME, &[], begin, DAY);
    let foreign = other_authority("elsewhere.aitia.arrowhead.eu");
    let key = ground.path("client.key");
    let cases: [Case; 8] = [
        (&|| fs::remove_file(ground.path("client.pem")).expect("removed"), "client.pem: No such file"),
        (&|| fs::remove_file(&key).expect("removed"), "client.key: No such file"),
        (&|| fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("set"), "chmod 600"),
        (&|| ground.put("client.key", &other_key.to_pem()), "does not belong to the certificate of edge-7"),
        (&|| ground.put_identity(&from(tls::now().minus(9 * DAY))), "it has expired at"),
        (&|| ground.put_identity(&from(tls::now().plus(9 * DAY))), "it is not valid before"),
        (&|| ground.put_identity(&issue(&foreign, NAME, &[], tls::now(), DAY / 2)), "is not in the server's ca_file"),
        (&|| ground.put_identity(&issue(&authority(), "stranger", &[], tls::now(), DAY)), "user: \"CN=stranger\""),
    ];
    for (damage, words) in cases {
        assert!(eventually(is_connected), "before {words:?}: {}\n{}", status(node), node.stderr());
        damage();
        ground.reconnect();
        assert!(eventually(|| status(node).contains(words)), "{words:?} is not in {}\n{}", status(node), node.stderr());
        assert!(eventually(|| api().contains(&words.replace('"', "\\\""))), "{words:?} is not in {}", api());
        let is_logged = || node.stderr().replace("\\\"", "\"").contains(words);
        assert!(eventually(is_logged), "{words:?} is not in {}", node.stderr());
        assert_shown(node.address(System::Monitor), alert);
        let found = doctor();
        assert!(found.contains(words), "{words:?} is not in {found}");
        ground.put_identity(&valid());
    }
    assert!(eventually(is_connected), "{}\n{}", status(node), node.stderr());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn fleet_forwards_and_receives_with_certificate_only() {
    let Some(program) = program("fleet_forwards_and_receives_with_certificate_only") else { return };
    let ground = Ground::start(&program);
    let commands = json!({"name": "COMMANDS", "subjects": ["commands.*.*"], "storage": "file", "discard": "old", "num_replicas": 1});
    ground.ask("$JS.API.STREAM.CREATE.COMMANDS", &commands.to_string());
    let cloud = from_fleet::up(ground.place.path(), &ground.fleet_configuration());
    cloud.register_publisher("sensor", 7001);
    publish(&cloud, 'a', 1..=5);
    assert!(eventually(|| fleet(&cloud)["lanes"][0]["stored"] == 5), "{}\n{}", fleet(&cloud), cloud.stderr());
    assert!(eventually(|| fleet(&cloud)["fromFleet"]["connected"] == true), "{}", fleet(&cloud));
    let command = r#"{"specversion":"1.0","id":"1","source":"/planner","type":"setpoint","data":1}"#;
    ground.ask(&format!("commands.{NAME}.setpoint"), command);
    assert!(eventually(|| fleet(&cloud)["fromFleet"]["taken"] == 1), "{}", fleet(&cloud));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn wrong_certificate_for_the_fleet_is_reported_everywhere() {
    let Some(program) = program("wrong_certificate_for_the_fleet_is_reported_everywhere") else { return };
    let ground = Ground::start(&program);
    ground.ask("$JS.API.STREAM.CREATE.COMMANDS", &json!({"name": "COMMANDS", "subjects": ["commands.*.*"]}).to_string());
    let config = ground.fleet_configuration();
    let config = config.to_str().expect("a path is text");
    let cloud = from_fleet::up(ground.place.path(), Path::new(config));
    let doctor = || ground.doctor(&["--config", config], &[]);
    each_wrong_file_is_reported(&ground, &cloud, ("BodkinFleetAway", "bodkin_fleet_connected "), &|| fleet(&cloud).to_string(), &doctor);
    drop(cloud);
    // At start a file that cannot be used is refused.
    for (name, setting) in [("client.pem", "certificate_file: "), ("client.key", "certificate_key_file: ")] {
        ground.put(name, "nothing");
        let flags = ["up", "--insecure", "--any-port", "--config", config];
        let output = Command::new(BINARY).args(flags).current_dir(ground.place.path()).output().expect("the binary starts");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(setting) && told.contains(name), "{told}");
        ground.put_identity(&valid());
    }
}

/// A database, and a server of NATS; `None` if one of them is missing, which is noted.
fn with_database(test: &str) -> Option<(Database, Ground)> {
    let program = program(test)?;
    let Some(database) = Database::start() else {
        skip::note(test, "no PostgreSQL server");
        return None;
    };
    Some((database, Ground::start(&program)))
}

#[test]
#[ignore = "peer: ./x test --all"]
fn node_events_cross_with_certificates_only() {
    let Some((database, ground)) = with_database("node_events_cross_with_certificates_only") else { return };
    for (begin, stream) in [('a', ""), ('b', "NODES")] {
        let (one, two) = (ground.node(&database, stream), ground.node(&database, stream));
        let is_connected = |node: &Cloud| counted(node, "bodkin_node_events_connected ") == 1;
        assert!(eventually(|| is_connected(&one) && is_connected(&two)), "{}", one.stderr());
        if begin == 'a' {
            one.register_publisher("sensor", 7001);
        }
        let heard = listen(&two, "", &[]);
        publish(&one, begin, 1..=3);
        let own = || payloads(&heard).iter().filter(|payload| payload.starts_with(begin)).count();
        assert!(eventually(|| own() == 3), "{:?}\n{}", payloads(&heard), two.stderr());
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn wrong_certificate_between_nodes_is_reported_everywhere() {
    let Some((database, ground)) = with_database("wrong_certificate_between_nodes_is_reported_everywhere") else { return };
    for stream in ["NODES", ""] {
        let node = ground.node(&database, stream);
        let variables = [ground.node_variables(stream), vec![("BODKIN_DATABASE", database.url())]].concat();
        let path = if stream.is_empty() { "/api/v1/overview" } else { "/api/v1/nodes/events" };
        let api = || node.get(path).expect_status(200).text();
        let condition = ("BodkinNodeEventsAway", "bodkin_node_events_connected ");
        each_wrong_file_is_reported(&ground, &node, condition, &api, &|| ground.doctor(&[], &variables));
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn node_without_stream_logs_each_new_reason_once() {
    let Some((database, ground)) = with_database("node_without_stream_logs_each_new_reason_once") else { return };
    let node = ground.node(&database, "");
    assert!(eventually(|| counted(&node, "bodkin_node_events_connected ") == 1), "{}", node.stderr());
    fs::remove_file(ground.path("client.pem")).expect("removed");
    ground.reconnect();
    let lines = |words: &str| node.stderr().lines().filter(|line| line.contains(words)).count();
    assert!(eventually(|| lines("client.pem: No such file") == 1), "{}", node.stderr());
    ground.put_identity(&issue(&authority(), NAME, &[], tls::now().minus(9 * DAY), DAY));
    assert!(eventually(|| lines("it has expired at") == 1), "{}", node.stderr());
    let losses = || counted(&node, "bodkin_node_events_losses_total ");
    let before = losses();
    assert!(eventually(|| losses() >= before + 3), "{}", node.stderr());
    assert_eq!((lines("client.pem: No such file"), lines("it has expired at")), (1, 1), "{}", node.stderr());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn replaced_certificate_is_used_by_the_next_connection() {
    let Some(program) = program("replaced_certificate_is_used_by_the_next_connection") else { return };
    let ground = Ground::start(&program);
    let cloud = from_fleet::up(ground.place.path(), &ground.fleet_configuration());
    let is_connected = || fleet(&cloud)["connected"] == true;
    assert!(eventually(is_connected), "{}\n{}", fleet(&cloud), cloud.stderr());
    let connections = fleet(&cloud)["connections"].clone();
    // The connection keeps the certificate that it began with.
    ground.put_identity(&issue(&authority(), "stranger", &[], tls::now(), DAY));
    assert!(is_connected() && fleet(&cloud)["connections"] == connections, "{}", fleet(&cloud));
    ground.reconnect();
    assert!(eventually(|| fleet(&cloud)["trouble"].to_string().contains("CN=stranger")), "{}", fleet(&cloud));
    ground.put_identity(&valid());
    assert!(eventually(is_connected), "{}\n{}", fleet(&cloud), cloud.stderr());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn fleet_continues_with_certificate_when_its_server_is_killed() {
    let Some(program) = program("fleet_continues_with_certificate_when_its_server_is_killed") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let routes = [held_port(), held_port(), held_port()];
    let urls = routes.map(|port| format!("\"nats://127.0.0.1:{port}\"")).join(", ");
    let mut servers: Vec<_> = (0..routes.len())
        .map(|at| {
            let own = place.path().join(format!("n{at}"));
            fs::create_dir(&own).expect("a directory");
            let cluster = format!("cluster {{ name: fleet, listen: \"127.0.0.1:{}\", routes: [{urls}] }}", routes[at]);
            let more = format!("server_name: n{at}\n{cluster}\n{}", requiring_certificates(&own));
            Some(from_fleet::Server::start(&program, &own, &more))
        })
        .collect();
    let addresses: Vec<_> = servers.iter().flatten().map(|(_, port)| SocketAddr::from(([127, 0, 0, 1], *port))).collect();
    requiring_certificates(place.path());
    for (name, text) in [("client.pem", valid().chain_to_pem()), ("client.key", valid().key().to_pem().to_string())] {
        write_private(&place.path().join(name), text.as_bytes()).expect("written");
    }
    let cloud = from_fleet::up(place.path(), &configure(place.path(), &addresses, "create_replicas = 3"));
    cloud.register_publisher("sensor", 7001);
    let is_stored = |events: u32| eventually(|| fleet(&cloud)["lanes"][0]["stored"] == events);
    publish(&cloud, 'a', 1..=5);
    assert!(is_stored(5), "{}\n{}", fleet(&cloud), cloud.stderr());
    let server = fleet(&cloud)["server"].as_str().and_then(|name| name.strip_prefix('n')?.parse::<usize>().ok()).expect("a server's name");
    servers[server] = None;
    publish(&cloud, 'a', 6..=10);
    assert!(is_stored(10), "{}\n{}", fleet(&cloud), cloud.stderr());
    assert_ne!(fleet(&cloud)["server"], format!("n{server}"), "{}", fleet(&cloud));
}
