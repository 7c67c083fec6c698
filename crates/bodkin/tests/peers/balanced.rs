//! Several nodes behind HAProxy, as the page of several nodes configures it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::postgres::server::{Server, eventually};
use crate::support::arrowhead::{list, service, system};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::http::{Answer, Connection};
use crate::support::patience::PATIENCE;
use crate::support::ports::{HeldOffset, held_offset};
use crate::support::skip;

/// What an operator is told.
const PAGE: &str = include_str!("../../../../docs/how-to/several-nodes.md");
const NODES: usize = 3;
/// How long a change may take to another node, which is told to be some milliseconds; a machine that is busy has it take longer.
const SEEN_MAX: Duration = Duration::from_secs(10);

/// HAProxy at the standard ports of an offset; killed when dropped.
struct Balancer(Child);

impl Balancer {
    /// Where HAProxy is installed.
    fn program() -> Option<PathBuf> {
        let program = ["/usr/sbin/haproxy", "/usr/bin/haproxy", "/usr/local/sbin/haproxy"].map(PathBuf::from);
        program.into_iter().find(|path| path.is_file())
    }

    /// With the page's configuration, at free ports, where `changed` says what else is to be there.
    fn start(program: &Path, place: &Path, offset: u16, changed: impl Fn(String) -> String) -> Self {
        let told = PAGE.split("```haproxy\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the page has a configuration");
        let file = place.join("haproxy.cfg");
        std::fs::write(&file, changed(moved(told, offset))).expect("it is written");
        let mut haproxy = Command::new(program);
        haproxy.args(["-db", "-f"]).arg(file).stdin(Stdio::null()).stdout(Stdio::null());
        Self(haproxy.spawn().expect("haproxy starts"))
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A configuration with its ports at an offset, and its machines on the loopback interface: the balancer at 127.0.0.1, nodes behind it.
fn moved(told: &str, offset: u16) -> String {
    let mut moved = told.replace("bind :", "bind 127.0.0.1:");
    (1..=NODES).for_each(|node| moved = moved.replace(&format!("node{node}.plant.example"), &address(node - 1)));
    [8440_u16, 8441, 8443, 8445, 8455].into_iter().fold(moved, |text, port| text.replace(&port.to_string(), &(port + offset).to_string()))
}

fn address(node: usize) -> String {
    format!("127.0.0.{}", node + 2)
}

/// Three nodes, their balancer, and where it is.
struct Plant {
    server: Server,
    places: [TempDir; NODES],
    offset: HeldOffset,
    nodes: [Option<Cloud>; NODES],
    haproxy: PathBuf,
    balancer: Option<Balancer>,
}

impl Plant {
    fn start(test: &str, changed: impl Fn(String) -> String) -> Option<Self> {
        let Some(server) = Server::start() else {
            skip::note(test, "no PostgreSQL server");
            return None;
        };
        let Some(haproxy) = Balancer::program() else {
            skip::note(test, "no haproxy");
            return None;
        };
        let (places, offset) = ([(); NODES].map(|()| TempDir::new().expect("a temporary directory")), held_offset());
        let mut plant = Self { server, places, offset, nodes: [const { None }; NODES], haproxy, balancer: None };
        (0..NODES).for_each(|node| plant.begin(node));
        plant.balance(changed);
        Some(plant)
    }

    /// Puts a balancer in front of the nodes, in place of one that is there, and waits until it answers. Nodes that run are taken in at once: `balance source` sends a client to
    /// another node when one more is taken in.
    fn balance(&mut self, changed: impl Fn(String) -> String) {
        // The one before has the ports.
        self.balancer = None;
        self.balancer = Some(Balancer::start(&self.haproxy, self.places[0].path(), self.offset.get(), changed));
        let registry = self.registry();
        eventually(
            || ask(registry, "/serviceregistry/query", &json!({"serviceDefinitionRequirement": "x"})).is_ok(),
            || "no node is taken in".into(),
        );
    }

    fn begin(&mut self, node: usize) {
        let launch = Launch::new().data(self.places[node].path()).port_offset(self.offset.get());
        let launch = launch.flags(["--listen", &address(node), "--domain-name", "127.0.0.1"]);
        self.nodes[node] = Some(launch.env("BODKIN_DATABASE", &self.server.url()).start());
        let metrics = SocketAddr::from(([127, 0, 0, 2 + node as u8], 8440 + self.offset.get()));
        assert_eq!(self.nodes[node].as_ref().map(|cloud| cloud.address(System::Monitor)), Some(metrics));
    }

    fn node(&self, node: usize) -> &Cloud {
        self.nodes[node].as_ref().expect("it runs")
    }

    /// Where the balancer has the Service Registry.
    fn registry(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 8443 + self.offset.get()))
    }

    /// Publishes by a command, which finds the Event Handler by the balancer.
    fn publish(&self) {
        let mut command = Command::new(BINARY);
        command.args(["event", "publish", "--port-offset", &self.offset.get().to_string(), "--system", "sensor", "heat", "21"]);
        let output = command.output().expect("the binary starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// How many requests the Service Registry of a node has answered.
    fn answered(&self, node: usize) -> u64 {
        let metrics = self.node(node).connect(System::Monitor).request("GET", "/metrics", &[], None).expect("an answer").text();
        let of_registry = metrics.lines().filter(|line| line.starts_with("bodkin_stage_seconds_count") && line.contains("serviceregistry"));
        of_registry.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }
}

fn ask(registry: SocketAddr, target: &str, body: &serde_json::Value) -> std::io::Result<Answer> {
    let body = body.to_string();
    Connection::open(registry)?.request("POST", target, &[("Content-Type", "application/json")], Some(body.as_bytes()))
}

/// What clients have seen that make a new connection for each request, and repeat what has no answer.
#[derive(Default)]
struct Seen {
    rounds: AtomicUsize,
    unanswered: AtomicUsize,
    is_over: AtomicBool,
}

/// Registers one service behind the other until it is over; gives their names.
fn register(name: &str, registry: SocketAddr, seen: &Seen) -> Vec<String> {
    let mut registered = Vec::new();
    while !seen.is_over.load(SeqCst) {
        let name = format!("{name}-{}", registered.len());
        let begun = Instant::now();
        let mut is_repeated = false;
        let answer = loop {
            match ask(registry, "/serviceregistry/register", &service(&name, system("press", 7001))) {
                Ok(answer) => break answer,
                Err(error) => {
                    assert!(begun.elapsed() < PATIENCE, "{name}: {error}");
                    seen.unanswered.fetch_add(1, SeqCst);
                    is_repeated = true;
                }
            }
        };
        // A try that had no answer may have counted.
        assert!(
            answer.status == 201 || (is_repeated && answer.text().contains("already exists")),
            "{name}: {} {}",
            answer.status,
            answer.text()
        );
        registered.push(name);
        seen.rounds.fetch_add(1, SeqCst);
    }
    registered
}

#[test]
#[ignore = "peer: ./x test --all"]
fn behind_a_balancer_a_killed_node_costs_what_was_under_way_there_and_nothing_else() {
    const CLIENTS: usize = 4;
    let test = "behind_a_balancer_a_killed_node_costs_what_was_under_way_there_and_nothing_else";
    // All clients of this test have one address.
    let Some(mut plant) = Plant::start(test, |told| told.replace("balance source", "balance roundrobin")) else { return };
    let (registry, seen) = (plant.registry(), Arc::new(Seen::default()));
    plant.node(0).register_publisher("sensor", 7002);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let seen = seen.clone();
            thread::spawn(move || register(&format!("c{client}"), registry, &seen))
        })
        .collect();
    let goes_on = || {
        let before = seen.rounds.load(SeqCst);
        eventually(|| seen.rounds.load(SeqCst) > before + 30, || "clients stand still".to_owned());
    };
    // Each is at work.
    for node in 0..NODES {
        let before = plant.answered(node);
        eventually(|| plant.answered(node) > before, || plant.node(node).stderr());
    }
    for node in 0..NODES {
        plant.nodes[node].take().expect("it runs").kill();
        plant.publish();
        goes_on();
        plant.begin(node);
        // It is taken in again.
        let before = plant.answered(node);
        eventually(|| plant.answered(node) > before, || plant.node(node).stderr());
    }
    let by_kills = seen.unanswered.load(SeqCst);
    // A frozen node takes the requests in flight there along, once the balancer has looked at it twice.
    plant.node(1).signal(Signal::SIGSTOP);
    goes_on();
    let by_freezing = seen.unanswered.load(SeqCst) - by_kills;
    assert!(by_freezing <= CLIENTS, "{by_freezing} tries had no answer");
    plant.node(1).signal(Signal::SIGCONT);
    let before = plant.answered(1);
    eventually(|| plant.answered(1) > before, || plant.node(1).stderr());
    let before_end = seen.unanswered.load(SeqCst);
    // One that ends in order.
    assert!(plant.nodes[0].take().expect("it runs").stop().success());
    plant.publish();
    goes_on();
    seen.is_over.store(true, SeqCst);
    let registered: Vec<String> = clients.into_iter().flat_map(|client| client.join().expect("it sees no error")).collect();
    println!(
        "{} registered; {by_kills} tries without an answer at {NODES} kills, {by_freezing} at a frozen node, {} at an end in order",
        registered.len(),
        seen.unanswered.load(SeqCst) - before_end
    );
    // A client has one request under way.
    assert!(by_kills <= NODES * CLIENTS, "{by_kills} tries had no answer");
    let there = |node: &Cloud| -> BTreeSet<String> {
        let page = node.get("/serviceregistry/mgmt").expect_status(200).json();
        list(&page, "/data").iter().filter_map(|entry| Some(entry["serviceDefinition"]["serviceDefinition"].as_str()?.to_owned())).collect()
    };
    eventually(|| there(plant.node(1)).len() == there(plant.node(2)).len(), || plant.node(2).stderr());
    let there = there(plant.node(2));
    assert!(registered.iter().all(|name| there.contains(name)), "what was answered is there");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn behind_a_balancer_a_client_reads_what_it_has_written() {
    const CHANGES: usize = 200;
    let test = "behind_a_balancer_a_client_reads_what_it_has_written";
    let shows = |registry: SocketAddr, name: &str| {
        let found = ask(registry, "/serviceregistry/query", &json!({"serviceDefinitionRequirement": name})).expect("an answer");
        list(&found.expect_status(200).json(), "/serviceQueryData").len() == 1
    };
    // As the page has it, each request on a connection of its own.
    let Some(mut plant) = Plant::start(test, |told| told) else { return };
    let registry = plant.registry();
    let write = |name: &str| {
        ask(registry, "/serviceregistry/register", &service(name, system("press", 7001))).expect("an answer").expect_status(201)
    };
    for change in 0..CHANGES {
        let name = format!("source-{change}");
        write(&name);
        assert!(shows(registry, &name), "{name} is not read back");
    }
    // Without that it comes later, and comes.
    plant.balance(|told| told.replace("balance source", "balance roundrobin"));
    let (mut later, mut longest) = (0, Duration::ZERO);
    for change in 0..CHANGES {
        let name = format!("robin-{change}");
        write(&name);
        let answered = Instant::now();
        if !shows(registry, &name) {
            later += 1;
            while !shows(registry, &name) {
                assert!(answered.elapsed() < SEEN_MAX, "{name} does not come");
            }
            longest = longest.max(answered.elapsed());
        }
    }
    println!("round robin: {later} of {CHANGES} changes were not in the next answer; the longest took {longest:?}");
}
