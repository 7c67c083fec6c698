//! What following costs: microseconds for an operation, by the size of the database; and what a promotion costs, beside a start that loads.
//!
//! `cargo run --release -p bodkin-store --example follow_cost`

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
    time::Instant,
};

use bodkin_arrowhead::{
    authorization::RuleInsertion,
    form::{ServiceRegistryRequest, SystemRequest},
    name::NamingRules,
    record::{DefinitionId, InterfaceId, SystemId},
    service_registry::Registration,
    system::CoreSystemNames,
};
use bodkin_broker::wire::Position;
use bodkin_store::{
    Draft, Opened, OperationError, Store,
    following::{Following, Report},
    replication::{Committed, Outlet},
};
use tokio::runtime::Runtime;

/// Systems, each of which offers a service of each definition.
const PROVIDERS: i64 = 100;
const DEFINITIONS: i64 = 100;
/// Definitions of all providers that a consumer has rules for.
const DEFINITIONS_USED: usize = 10;
/// Operations that are timed alone, and as many that are timed together.
const OPERATIONS: usize = 200;

fn main() {
    for consumers in [1, 100] {
        measure(consumers);
    }
}

fn measure(consumers: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let [leader, follower] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let (outlet, operations) = kept();
    let leading = Store::open_replicated(leader.path(), outlet).expect("the leader opens");
    fill(&runtime, &leading.store, consumers);
    let copy = leader.path().join("copy");
    leading.store.copy_to(copy.clone()).expect("a copy is ordered");
    // Behind the copy.
    write(&runtime, &leading.store, |_| Ok(()));
    operations.lock().expect("no panic").clear();
    for number in 0..2 * OPERATIONS {
        write(&runtime, &leading.store, move |draft| draft.register(registration(1, &format!("one-more-{number}"))).map(drop));
    }
    leading.close();

    let (opened, mut following, reports) = follow(follower.path());
    let begun = Instant::now();
    send_copy(&mut following, &copy, &reports);
    let snapshot = opened.store.snapshot().clone();
    println!(
        "{} services, {} rules: a copy of {} bytes in {:?}",
        snapshot.entries().len(),
        snapshot.rules().len(),
        bytes(&copy),
        begun.elapsed()
    );
    let operations = operations.lock().expect("no panic").clone();
    let (alone, together) = operations.split_at(OPERATIONS);
    let begun = Instant::now();
    for operation in alone {
        send(&mut following, operation);
        reported(&reports);
    }
    println!("  an operation with its sync: {:?}", begun.elapsed() / OPERATIONS as u32);
    let begun = Instant::now();
    together.iter().for_each(|operation| send(&mut following, operation));
    while opened.store.snapshot().entries().len() < snapshot.entries().len() + operations.len() {
        reported(&reports);
    }
    println!("  an operation of many in a commit: {:?}", begun.elapsed() / OPERATIONS as u32);

    let begun = Instant::now();
    following.promote(kept().0);
    let promoted = begun.elapsed();
    write(&runtime, &opened.store, |draft| draft.register(registration(1, "the-first-of-its-own")).map(drop));
    println!("  promoted in {promoted:?}, the first change answered after {:?}", begun.elapsed());
    opened.close();
    let begun = Instant::now();
    let opened = Store::open_replicated(follower.path(), kept().0).expect("it opens");
    println!("  a start that loads: {:?}", begun.elapsed());
    opened.close();
}

/// An outlet that answers at once, and what went through it.
fn kept() -> (Outlet, Arc<Mutex<Vec<Vec<u8>>>>) {
    let operations = Arc::new(Mutex::new(Vec::new()));
    let to = operations.clone();
    let outlet = move |committed| {
        if let Committed::Group(group) = committed {
            to.lock().expect("no panic").extend(group.operations.iter().cloned());
            group.release();
        }
    };
    (Box::new(outlet), operations)
}

/// Registers the services, and makes the rules of so many consumers.
fn fill(runtime: &Runtime, store: &Store, consumers: usize) {
    for provider in 0..PROVIDERS {
        write(runtime, store, move |draft| {
            (0..DEFINITIONS).try_for_each(|definition| draft.register(registration(provider, &format!("service-{definition}"))).map(drop))
        });
    }
    let systems: Vec<SystemId> = store.snapshot().systems().map(|system| system.id).collect();
    let definitions: Vec<DefinitionId> = store.snapshot().definitions().take(DEFINITIONS_USED).map(|definition| definition.id).collect();
    for consumer in &systems[..consumers] {
        let rules = RuleInsertion {
            consumer: *consumer,
            providers: systems.iter().copied().collect(),
            definitions: definitions.iter().copied().collect(),
            interfaces: [InterfaceId(2)].into(),
        };
        write(runtime, store, move |draft| draft.insert_rules(&rules).map(drop));
    }
}

fn write(runtime: &Runtime, store: &Store, write: impl FnOnce(&mut Draft<'_>) -> Result<(), OperationError> + Send + 'static) {
    runtime.block_on(store.write(write, |_, ()| ())).expect("the change is made");
}

fn registration(provider: i64, definition: &str) -> Registration {
    let form = ServiceRegistryRequest {
        service_definition: Some(definition.into()),
        provider_system: Some(SystemRequest {
            system_name: Some(format!("provider-{provider}")),
            address: Some("127.0.0.1".into()),
            port: Some(9000),
            ..Default::default()
        }),
        interfaces: Some(vec![Some("HTTP-INSECURE-JSON".into())]),
        ..Default::default()
    };
    Registration::parse(form, CoreSystemNames::Refused, &NamingRules::default(), "/cost").expect("the form is whole")
}

fn follow(data: &Path) -> (Opened, Following, Receiver<Report>) {
    let (sender, reports) = channel();
    let (opened, following) = Store::follow(data, Box::new(move |report| drop(sender.send(report)))).expect("the follower opens");
    (opened, following, reports)
}

fn send_copy(following: &mut Following, copy: &Path, reports: &Receiver<Report>) {
    following.begin(1);
    for part in fs::read(copy).expect("the copy is there").chunks(256 * 1024) {
        following.part(part.to_vec()).expect("there is room");
    }
    following.end(Position(1), None).expect("there is room");
    reported(reports);
}

fn send(following: &mut Following, operation: &[u8]) {
    following.operation(Position(2), None, operation.to_vec()).expect("there is room");
}

fn reported(reports: &Receiver<Report>) {
    if let Report::Failed { why, .. } = reports.recv().expect("the follower runs") {
        panic!("{why}");
    }
}

fn bytes(file: &Path) -> u64 {
    fs::metadata(file).expect("the file is there").len()
}
