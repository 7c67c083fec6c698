//! A cloud on a real PostgreSQL; `./x test --all` runs these tests.

mod core_systems;
mod fail_over;
mod faults;
mod moving;
mod network;
#[path = "../snapshot/operations.rs"]
mod operations;
mod server;

use std::{collections::BTreeSet, fs::OpenOptions, io::Write, path::Path, sync::Arc, thread, time::Duration};

use bodkin_arrowhead::{
    form::SystemRequest,
    name::NamingRules,
    snapshot::Snapshot,
    system::{CoreSystemNames, SystemRegistration},
};
use bodkin_store::{Opened, Store, StoreError, shared::DatabasePlace};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use self::{
    operations::{Operation, carry_out, operation},
    server::{Server, eventually},
};

/// Notes that a test did not run, where `./x test` counts it.
fn skip(test: &str) {
    let line = format!("SKIP {test}: no PostgreSQL server");
    println!("{line}");
    if let Some(path) = std::env::var_os("BODKIN_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the file of skips opens");
        writeln!(file, "{line}").expect("the file of skips is written");
    }
}

/// A node of the cloud, with its data directory.
struct Node {
    opened: Opened,
    runtime: Runtime,
    _place: TempDir,
}

impl Node {
    fn start(server: &Server) -> Self {
        Self::at(&server.url())
    }

    fn at(url: &str) -> Self {
        let place = TempDir::new().unwrap();
        let opened = Store::share(place.path(), &DatabasePlace::parse(url).unwrap()).unwrap();
        Self { opened, runtime: Builder::new_current_thread().enable_time().build().unwrap(), _place: place }
    }

    fn store(&self) -> &Store {
        &self.opened.store
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::clone(&self.store().snapshot())
    }

    fn carry_out(&self, operation: Operation) -> Result<(), StoreError> {
        self.runtime.block_on(carry_out(self.store(), operation))
    }

    /// Waits until this node shows what another one has committed.
    fn follows(&self, other: &Self) {
        let reached = other.store().standing().unwrap().number;
        eventually(|| self.snapshot() == other.snapshot(), || format!("{:?} does not reach {reached}", self.store().standing()));
    }
}

fn share(directory: &Path, server: &Server) -> Result<Opened, String> {
    Store::share(directory, &DatabasePlace::parse(&server.url()).unwrap()).map_err(|error| error.to_string())
}

fn system(number: usize) -> SystemRegistration {
    let form = SystemRequest {
        system_name: Some(format!("racer-{number}")),
        address: Some("127.0.0.1".into()),
        port: Some(1 + i64::try_from(number % 60_000).unwrap()),
        ..SystemRequest::default()
    };
    SystemRegistration::parse(form, CoreSystemNames::Refused, &NamingRules::default(), "/test").unwrap()
}

/// Operations at random, the same ones each time; those whose outcome depends on the second in which they come last longer.
fn operations(count: usize) -> Vec<Operation> {
    let mut runner = TestRunner::deterministic();
    let lasting = |seconds: u64| seconds * 1000;
    let some = operation().prop_map(move |operation| match operation {
        Operation::Lock { consumer, offers, seconds } => Operation::Lock { consumer, offers, seconds: lasting(seconds) },
        Operation::Confirm { consumer, offers, seconds } => Operation::Confirm { consumer, offers, seconds: lasting(seconds) },
        other => other,
    });
    (0..count).map(|_| some.new_tree(&mut runner).unwrap().current()).collect()
}

/// A snapshot without its times, which two databases cannot have in common.
fn without_times(snapshot: &Snapshot) -> String {
    let told = format!("{snapshot:?}");
    let mut parts = told.split("UtcTime(");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once(')').map_or(part, |(_, behind)| behind));
    }
    kept
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_cloud_answers_the_same_on_either_database() {
    let Some(server) = Server::start() else { return skip("a_cloud_answers_the_same_on_either_database") };
    let place = TempDir::new().unwrap();
    let own = Store::open(place.path()).unwrap();
    let (node, other) = (Node::start(&server), Node::start(&server));
    for operation in operations(600) {
        let told = format!("{operation:?}");
        let of_file = node.runtime.block_on(carry_out(&own.store, operation.clone())).map_err(|error| error.to_string());
        let of_server = node.carry_out(operation).map_err(|error| error.to_string());
        assert_eq!(of_file, of_server, "{told}");
        assert_eq!(without_times(&own.store.snapshot()), without_times(&node.snapshot()), "{told}");
    }
    other.follows(&node);
    // Who begins reads the tables, and finds what was published.
    assert_eq!(Node::start(&server).snapshot(), node.snapshot());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn nodes_that_take_turns_see_each_others_changes() {
    let Some(server) = Server::start() else { return skip("nodes_that_take_turns_see_each_others_changes") };
    let nodes = [Node::start(&server), Node::start(&server)];
    // Of core systems each node shows its own place.
    let is_of_both = |operation: &Operation| !matches!(operation, Operation::CoreServices { .. });
    for (index, operation) in operations(400).into_iter().filter(is_of_both).enumerate() {
        let told = format!("{operation:?}");
        if let Err(error @ StoreError::Unavailable(_)) = nodes[index % 2].carry_out(operation) {
            panic!("{told}: {error}");
        }
    }
    nodes[0].follows(&nodes[1]);
    assert_eq!(Node::start(&server).snapshot(), nodes[0].snapshot());
    let keepers = || nodes.iter().filter(|node| node.store().is_keeper()).count();
    eventually(|| keepers() == 1, || "one node does what is to be done once".into());
    let [first, second] = nodes;
    let (left, stays) = if first.store().is_keeper() { (first, second) } else { (second, first) };
    left.opened.close();
    eventually(|| stays.store().is_keeper(), || "another node takes over what is to be done once".into());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn racing_registrations_are_neither_lost_nor_doubled() {
    const NODES: usize = 4;
    const SYSTEMS: usize = 500;
    let Some(server) = Server::start() else { return skip("racing_registrations_are_neither_lost_nor_doubled") };
    let nodes: Arc<Vec<Node>> = Arc::new((0..NODES).map(|_| Node::start(&server)).collect());
    // Every node registers every system: one of them may.
    let racers: Vec<_> = (0..NODES).map(|own| race(&nodes, own, SYSTEMS)).collect();
    let mut ids = Vec::new();
    racers.into_iter().for_each(|racer| ids.extend(racer.join().unwrap()));
    assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (SYSTEMS, SYSTEMS));
    for node in nodes.iter() {
        node.follows(&nodes[0]);
        assert_eq!(node.snapshot().systems().len(), SYSTEMS);
        println!("{:?}", node.store().standing());
    }
}

/// Registers all systems at a node, several at a time; gives the ids of those that were not there.
fn race(nodes: &Arc<Vec<Node>>, own: usize, systems: usize) -> thread::JoinHandle<Vec<i64>> {
    let store = nodes[own].store().clone();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let write = |number: usize| {
            let (store, system) = (store.clone(), system(number));
            async move { store.write(move |draft| draft.register_system(&system), |_, id| id.0).await }
        };
        let mut made = Vec::new();
        for batch in (0..systems).collect::<Vec<_>>().chunks(25) {
            let waiting: Vec<_> = batch.iter().map(|number| runtime.spawn(write(*number))).collect();
            for answer in waiting {
                let answered = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), answer).await });
                match answered.expect("an answer in time").unwrap() {
                    Ok(id) => made.push(id),
                    Err(StoreError::Refused(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
        made
    })
}
