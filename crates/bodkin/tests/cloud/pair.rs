//! A reliable pair of real processes: who leads when one of them dies, stalls or is cut off, and what is there afterwards.

mod nodes;

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use self::nodes::{LEASE, Node, Pair, Relay};
use crate::support::arrowhead::{service, system};
use crate::support::cloud::System;
use crate::support::patience::eventually;

/// Registers a service of this number; the status.
fn register(node: &Node, number: usize) -> Option<u16> {
    let body = service(&format!("service-{number}"), system("provider", 4000));
    node.call(System::ServiceRegistry, "POST", "/serviceregistry/register", Some(&body)).ok().map(|answer| answer.status)
}

/// Whether a node has it.
fn has(node: &Node, number: usize) -> bool {
    let form = json!({"serviceDefinitionRequirement": format!("service-{number}")});
    let found = node.call(System::ServiceRegistry, "POST", "/serviceregistry/query", Some(&form)).unwrap().expect_status(200).json();
    found["serviceQueryData"].as_array().is_some_and(|found| found.len() == 1)
}

/// The ids of all services, by which the two nodes' states are compared.
fn ids(node: &Node) -> Vec<Value> {
    let list = node.call(System::ServiceRegistry, "GET", "/serviceregistry/mgmt?sort_field=id", None).unwrap().expect_status(200).json();
    list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| json!([entry["id"], entry["serviceDefinition"]["id"], entry["createdAt"]]))
        .collect()
}

#[test]
fn a_killed_primary_is_replaced_with_everything_that_was_answered_and_comes_back_as_backup() {
    let (pair, _witness, mut backup, primary) = Pair::protected();
    let answered: Vec<usize> = (0..40).filter(|number| register(&primary, *number) == Some(201)).collect();
    assert_eq!(answered.len(), 40);
    let before = ids(&primary);
    let killed = Instant::now();
    primary.signal(Signal::SIGKILL);
    drop(primary);
    backup.served();
    let gap = killed.elapsed();
    println!("the Backup served {gap:?} after the kill, with a lease of {LEASE:?}");
    assert!(gap < 10 * LEASE, "{gap:?}");
    assert!(answered.iter().all(|number| has(&backup, *number)));
    // What the clients registered has its ids and times; the core systems registered themselves anew.
    assert!(before.iter().filter(|row| ids(&backup).contains(row)).count() >= answered.len());
    assert_eq!(register(&backup, 100), Some(201), "without a Backup it goes on alone");

    let mut primary = pair.primary();
    backup.protected(true);
    assert_eq!(register(&backup, 101), Some(201));
    backup.signal(Signal::SIGKILL);
    drop(backup);
    primary.served();
    assert!(has(&primary, 100) && has(&primary, 101));
    assert_eq!(primary.stop(), Some(0));
}

#[test]
fn a_primary_that_was_stopped_for_long_refuses_and_follows() {
    let (_pair, _witness, mut backup, primary) = Pair::protected();
    assert_eq!(register(&primary, 0), Some(201));
    let mut kept = primary.connect(System::ServiceRegistry);
    primary.signal(Signal::SIGSTOP);
    backup.served();
    let body = service("service-1", system("provider", 4000)).to_string();
    kept.send_request("POST", "/serviceregistry/register", &[("Content-Type", "application/json")], Some(body.as_bytes())).unwrap();
    primary.signal(Signal::SIGCONT);
    let status = kept.read_answer().map(|answer| answer.status);
    assert!(!matches!(status, Ok(200..=299)), "a zombie has answered {status:?}");
    backup.protected(true);
    assert!(has(&backup, 0) && !has(&backup, 1), "what the zombie refused is not there");
}

#[test]
fn short_stops_change_nothing() {
    let (_pair, _witness, _backup, primary) = Pair::protected();
    let epoch = primary.gauge("bodkin_pair_epoch");
    for pause_ms in [1, 20, 200] {
        primary.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(pause_ms));
        primary.signal(Signal::SIGCONT);
        assert!(eventually(|| register(&primary, pause_ms as usize) == Some(201)), "after {pause_ms} ms");
    }
    assert_eq!(primary.gauge("bodkin_pair_epoch"), epoch);
}

#[test]
fn a_dead_witness_or_backup_stops_nobody() {
    let (mut pair, witness, backup, primary) = Pair::protected();
    let epoch = primary.gauge("bodkin_pair_epoch");
    drop(witness);
    for number in 0..20 {
        assert_eq!(register(&primary, number), Some(201), "without a witness");
    }
    std::thread::sleep(2 * LEASE);
    assert_eq!(register(&primary, 20), Some(201), "the Backup grants the lease");
    let _witness = pair.witness();
    assert!(eventually(|| pair_is_connected(&primary, 2)), "the witness is back: {}", primary.said());
    // It is silent for the longest lease behind its start.
    std::thread::sleep(3 * LEASE);
    drop(backup);
    primary.protected(false);
    assert_eq!(register(&primary, 21), Some(201), "without a Backup");
    let _backup = pair.backup();
    primary.protected(true);
    assert_eq!((register(&primary, 22), primary.gauge("bodkin_pair_epoch")), (Some(201), epoch), "one leader all the time");
}

/// Whether the witness has connected so many times.
fn pair_is_connected(node: &Node, times: usize) -> bool {
    node.said().matches("a node of the pair is connected node=Witness").count() >= times
}

#[test]
fn a_cut_between_primary_and_backup_leaves_one_leader() {
    let mut pair = Pair::new();
    let (_witness, backup) = (pair.witness(), pair.backup());
    let relay = Relay::to(backup.pair_address());
    let mut primary = pair.primary_by(relay.address);
    primary.served();
    primary.protected(true);
    let epoch = primary.gauge("bodkin_pair_epoch");
    relay.cut(true);
    assert_eq!(register(&primary, 0), Some(201), "answered when the witness knows that the Backup is out");
    primary.protected(false);
    std::thread::sleep(4 * LEASE);
    assert_eq!(register(&primary, 1), Some(201));
    relay.cut(false);
    primary.protected(true);
    assert_eq!((primary.gauge("bodkin_pair_epoch"), primary.gauge("bodkin_pair_leads")), (epoch, 1));
    assert!(!backup.said().contains("this node of the pair leads"), "{}", backup.said());
}
