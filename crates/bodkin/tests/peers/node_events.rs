//! Events between the nodes of one cloud, by a NATS server; and the script that starts all of it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::postgres::server::{Server, eventually};
use crate::support::arrowhead::{INSECURE_JSON_ID, event, subscription, system};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::ports::{held_offset, held_port};
use crate::support::push::{Manner, PushSubscriber};
use crate::support::skip;
use crate::support::sse::EventStream;
use crate::support::stream::Told;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/try/several-nodes.sh");

/// A NATS server at a port that is known; killed when dropped.
pub struct Nats {
    program: PathBuf,
    port: u16,
    /// Where JetStream keeps its streams, if it is switched on.
    store: Option<TempDir>,
    child: Option<Child>,
}

impl Nats {
    fn start(program: PathBuf) -> Self {
        let mut nats = Self { program, port: held_port(), store: None, child: None };
        nats.begin();
        nats
    }

    /// One with JetStream that does not run yet.
    pub fn with_jetstream(program: PathBuf) -> Self {
        Self { program, port: held_port(), store: Some(TempDir::new().expect("a temporary directory")), child: None }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
    }

    pub fn begin(&mut self) {
        let mut command = Command::new(&self.program);
        command.args(["--addr", "127.0.0.1", "--port", &self.port.to_string()]);
        if let Some(store) = &self.store {
            command.arg("--jetstream").arg("--store_dir").arg(store.path());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("nats-server starts"));
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Both servers; none where one of them is not there, which is noted.
pub fn programs(test: &str) -> Option<(Server, PathBuf)> {
    let Some(program) = std::env::var_os("BODKIN_NATS_SERVER").map(PathBuf::from).filter(|program| program.is_file()) else {
        skip::note(test, "there is no nats-server (BODKIN_NATS_SERVER)");
        return None;
    };
    let Some(server) = Server::start() else {
        skip::note(test, "no PostgreSQL server");
        return None;
    };
    Some((server, program))
}

pub fn counted(cloud: &Cloud, name: &str) -> u64 {
    let metrics = cloud.connect(System::Monitor).request("GET", "/metrics", &[], None).expect("an answer").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name} is not in {metrics}"));
    line.trim().parse().expect("a number")
}

/// The payloads that begin with a letter.
fn of(payloads: &[String], begin: char) -> Vec<String> {
    payloads.iter().filter(|payload| payload.starts_with(begin)).cloned().collect()
}

fn heard(stream: &EventStream, count: usize) -> Vec<String> {
    stream.wait_for(count).into_iter().map(|event| event.data).collect()
}

#[test]
#[ignore = "peer: ./x test --all"]
fn events_cross_nodes_once_and_in_order_and_losses_are_told() {
    let Some((server, program)) = programs("events_cross_nodes_once_and_in_order_and_losses_are_told") else { return };
    let mut nats = Nats::start(program);
    let url = nats.url();
    let launch = || Launch::new().env("BODKIN_DATABASE", &server.url()).env("BODKIN_NODE_EVENTS", &url).start();
    let [one, two, three] = [launch(), launch(), launch()];
    let nodes = [&one, &two, &three];
    let (publisher, definition) = one.register_publisher("sensor", 7001);
    let pushed = PushSubscriber::listen(Manner::Answers);
    let listener = one.register_system("listener", pushed.port());
    one.allow(listener, publisher, definition, &[INSECURE_JSON_ID]);
    one.subscribe(&subscription("heat", system("listener", pushed.port()), "/notify"));
    for node in nodes {
        eventually(|| counted(node, "bodkin_node_events_connected ") == 1, || node.stderr());
        eventually(|| node.get("/eventhandler/mgmt/subscriptions").text().contains("listener"), || node.stderr());
    }
    let listen = |node: &Cloud| EventStream::open(node.address(System::EventHandler), "/eventhandler/subscription?eventtype=heat", &[]);
    let streams = [listen(&two), listen(&three)];
    for number in 1..=20 {
        one.publish(&event("heat", system("sensor", 7001), &format!("a{number}")));
        three.publish(&event("heat", system("sensor", 7001), &format!("c{number}")));
    }
    for stream in &streams {
        let payloads = heard(stream, 40);
        for begin in ['a', 'c'] {
            let expected: Vec<String> = (1..=20).map(|number| format!("{begin}{number}")).collect();
            assert_eq!(of(&payloads, begin), expected, "in order, at whichever node it was published");
        }
    }
    // Who is pushed to gets each once, of the node at which it was published.
    eventually(|| pushed.count() >= 40, || one.stderr());

    // Without NATS publishers are answered, and subscribers of the same node hear them.
    nats.kill();
    eventually(|| nodes.iter().all(|node| counted(node, "bodkin_node_events_connected ") == 0), || one.stderr());
    assert_shown(two.address(System::Monitor), "BodkinNodeEventsAway");
    three.publish(&event("heat", system("sensor", 7001), "alone"));
    assert_eq!(heard(&streams[1], 41)[40], "alone");
    nats.begin();
    let mut published = 0;
    eventually(
        || {
            published += 1;
            three.publish(&event("heat", system("sensor", 7001), &format!("again{published}")));
            streams[0].has(|told| told.iter().any(|told| matches!(told, Told::Event(event) if event.data.starts_with("again"))))
        },
        || two.stderr(),
    );
    // What node two has not heard of node three's events, it knows of.
    let of_three = 20 + 1 + published;
    eventually(
        || counted(&two, "bodkin_node_events_heard_total ") + counted(&two, "bodkin_node_events_missing_total ") == 20 + of_three,
        || two.stderr(),
    );
    let payloads = pushed.payloads();
    assert_eq!(payloads.iter().collect::<BTreeSet<_>>().len(), payloads.len(), "none twice: {payloads:?}");
    assert_eq!([counted(&two, "bodkin_node_events_refused_total "), counted(&three, "bodkin_node_events_unsent_total ")], [0, 0]);
}

/// The script, which is ended with all that it has started.
struct Script(Child);

impl Drop for Script {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn the_script_starts_three_nodes_and_a_kill_of_each_is_seen() {
    let test = "the_script_starts_three_nodes_and_a_kill_of_each_is_seen";
    let Some((server, program)) = programs(test) else { return };
    drop(server);
    let place = tempfile::Builder::new().prefix("nodes").tempdir_in("/tmp").expect("a temporary directory");
    let offsets = [held_offset(), held_offset(), held_offset()];
    let told = place.path().join("told");
    let child = Command::new(SCRIPT)
        .arg(place.path())
        .envs([("BODKIN", BINARY), ("OFFSETS", &*offsets.each_ref().map(|offset| offset.get().to_string()).join(" "))])
        .envs([("BODKIN_NATS_SERVER", program.as_os_str()), ("NATS_PORT", held_port().to_string().as_ref())])
        .stdin(Stdio::null())
        .stdout(File::create(&told).expect("a file"))
        .stderr(Stdio::inherit())
        .spawn();
    let mut script = Script(child.expect("the script starts"));
    let said = || fs::read_to_string(&told).unwrap_or_default();
    eventually(|| said().contains("Ctrl-C here stops everything"), said);
    let process = |name: &str| -> i32 {
        let said = said();
        let line = said.lines().find(|line| line.starts_with(name)).expect("it is said");
        line.split_whitespace()
            .skip_while(|word| *word != "process")
            .nth(1)
            .and_then(|word| word.trim_end_matches(',').parse().ok())
            .expect("a number")
    };
    let status = || {
        let mut command = Command::new(BINARY);
        let output = command.args(["status", "--port-offset", &offsets[2].get().to_string()]).output().expect("the binary starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let end = |name: &str| kill(Pid::from_raw(process(name)), Signal::SIGKILL).expect("it runs");
    eventually(|| status().matches(", serves,").count() == 3, status);
    assert!(status().contains("trouble      none"), "{}", status());
    end("NATS");
    eventually(|| status().contains("NATS is not reached"), status);
    end("node 1");
    eventually(|| status().matches("SILENT since").count() == 1, status);
    end("PostgreSQL");
    eventually(|| status().contains("the shared database is not reached"), status);
    kill(Pid::from_raw(script.0.id().cast_signed()), Signal::SIGTERM).expect("it runs");
    assert!(script.0.wait().expect("it ends").success(), "{}", said());
    eventually(|| status().is_empty(), status);
}
