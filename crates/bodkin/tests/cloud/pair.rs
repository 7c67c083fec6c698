//! A reliable pair of real processes: who leads when one of them dies, stalls or is cut off, and what is there afterwards.

mod c_node;
mod callbacks;
mod certificates;
mod clients;
mod duplicates;
mod durable;
mod edges;
mod graphs;
mod guarantees;
mod hand_over;
mod hostile;
mod identity;
mod messages;
mod moves;
mod no_leader;
pub mod nodes;
mod secure;
mod send_queue;
mod status;
mod unnumbered;
mod versions;
mod wishes;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use self::nodes::{LEASE, Node, Pair, Relay};
use crate::support::arrowhead::{event, service, system};
use crate::support::cloud::System;
use crate::support::conditions::assert_shown;
use crate::support::patience::{PATIENCE, eventually};

/// Clients that write while the Primary is killed.
const WRITERS: usize = 4;
/// For so long before.
const UNDER_LOAD: Duration = Duration::from_millis(300);
/// A number that no writer comes to.
const LATER: usize = 1_000_000;

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

/// The ids, times and providers of all services, by which the two nodes' states are compared.
fn ids(node: &Node) -> Vec<Value> {
    let list = node.call(System::ServiceRegistry, "GET", "/serviceregistry/mgmt?sort_field=id", None).unwrap().expect_status(200).json();
    list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| json!([entry["id"], entry["serviceDefinition"]["id"], entry["createdAt"], entry["provider"]["systemName"]]))
        .collect()
}

/// A closed terminal, or a reload by systemd: without certificates there is nothing to read again.
#[test]
fn hang_up_ends_no_node_without_certificates() {
    let (_pair, witness, backup, primary) = Pair::protected();
    let nodes = [primary, backup, witness];
    nodes.iter().for_each(|node| node.signal(Signal::SIGHUP));
    // A signal that nobody handles ends a process at once.
    thread::sleep(Duration::from_millis(300));
    nodes[0].protected(true);
    for node in nodes {
        assert_eq!(node.stop(), Some(0), "it ended by SIGTERM, in order");
    }
}

#[test]
fn first_leader_that_dies_at_once_leaves_one_pair() {
    let mut pair = Pair::new();
    // It dies long before the next heartbeat.
    pair.configure("[platform]\nlease_ms = 3000\nheartbeat_ms = 1400\ndrift_ppm = 200\ndetect_jitter_ms = 1000\nredirect_ms = 1000\n");
    let _witness = pair.witness();
    let mut backup = pair.backup();
    let mut primary = pair.primary();
    primary.served();
    primary.protected(true);
    primary.signal(Signal::SIGKILL);
    backup.served();
    for _ in 0..3 {
        primary = pair.primary();
        backup.protected(true);
        primary.signal(Signal::SIGKILL);
        backup.protected(false);
    }
}

#[test]
fn a_killed_primary_is_replaced_with_everything_that_was_answered_and_comes_back_as_backup() {
    let (pair, witness, mut backup, primary) = Pair::protected();
    assert_eq!(register(&primary, 0), Some(201));
    let before = ids(&primary);
    let (answered, killed) = thread::scope(|scope| {
        let writer = |first: usize| {
            let primary = &primary;
            scope.spawn(move || (first..).step_by(WRITERS).take_while(|number| register(primary, *number) == Some(201)).collect::<Vec<_>>())
        };
        let writers: Vec<_> = (1..=WRITERS).map(writer).collect();
        thread::sleep(UNDER_LOAD);
        let killed = Instant::now();
        primary.signal(Signal::SIGKILL);
        let answered: Vec<usize> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        (answered, killed)
    });
    drop(primary);
    assert!(answered.len() > WRITERS, "{answered:?}");
    backup.served();
    let gap = killed.elapsed();
    println!("the Backup served {gap:?} after the kill, with a lease of {LEASE:?}");
    assert!(gap < 10 * LEASE, "{gap:?}");
    assert!(answered.iter().all(|number| has(&backup, *number)));
    // What the clients registered has its ids and times; the core systems registered themselves anew.
    let clients = |rows: Vec<Value>| rows.into_iter().filter(|row| row[3] == "provider").collect::<Vec<_>>();
    assert!(clients(ids(&backup)).starts_with(&clients(before)));
    assert_eq!(register(&backup, LATER), Some(201), "without a Backup it goes on alone");

    let mut primary = pair.primary();
    backup.protected(true);
    assert_eq!(register(&backup, LATER + 1), Some(201));
    backup.signal(Signal::SIGKILL);
    assert!(!backup.said().contains("ERROR"), "{}", backup.said());
    drop(backup);
    primary.served();
    assert!(has(&primary, LATER) && has(&primary, LATER + 1));
    for node in [&primary, &witness] {
        assert!(!node.said().contains("ERROR"), "{}", node.said());
    }
    assert_eq!(primary.stop(), Some(0));
}

#[test]
fn a_backup_that_comes_back_is_sent_what_it_lacks_and_no_copy() {
    let (mut pair, _witness, backup, primary) = Pair::protected();
    (0..20).for_each(|number| assert_eq!(register(&primary, number), Some(201)));
    backup.signal(Signal::SIGKILL);
    drop(backup);
    primary.protected(false);
    (20..40).for_each(|number| assert_eq!(register(&primary, number), Some(201)));
    let mut backup = pair.backup();
    primary.protected(true);
    assert!(backup.said().contains("it is sent those behind them"), "{}", backup.said());
    assert!(!backup.said().contains("cannot be followed"), "{}", backup.said());
    assert_eq!(register(&primary, 40), Some(201));
    let before = ids(&primary);
    primary.signal(Signal::SIGKILL);
    drop(primary);
    backup.served();
    assert!((0..=40).all(|number| has(&backup, number)));
    let clients = |rows: Vec<Value>| rows.into_iter().filter(|row| row[3] == "provider").collect::<Vec<_>>();
    assert_eq!(clients(ids(&backup)), clients(before));
    // The one that led before has led itself: it needs a copy.
    let primary = pair.primary();
    backup.protected(true);
    assert!(!primary.said().contains("it is sent those behind them"), "{}", primary.said());
}

#[test]
fn a_node_that_follows_has_its_ports_open_and_answers_none_but_those_who_watch_it() {
    let (_pair, _witness, mut backup, primary) = Pair::protected();
    assert_eq!(register(&primary, 0), Some(201));
    let cases = [
        (System::Monitor, "GET", "/healthz", 200),
        (System::Monitor, "GET", "/metrics", 200),
        (System::Monitor, "GET", "/readyz", 503),
        (System::Monitor, "GET", "/api/v1/topics", 503),
        (System::ServiceRegistry, "GET", "/serviceregistry/mgmt", 503),
        (System::ServiceRegistry, "POST", "/serviceregistry/register", 503),
        (System::Authorization, "GET", "/authorization/echo", 503),
        (System::Orchestrator, "GET", "/orchestrator/echo", 503),
        (System::EventHandler, "POST", "/eventhandler/publish", 503),
        (System::EventHandler, "GET", "/eventhandler/subscription?eventtype=hot", 503),
    ];
    for (system, method, target, status) in cases {
        let answer = backup.call(system, method, target, None).unwrap();
        let asks_again = target != "/readyz" && status == 503;
        assert_eq!((answer.status, answer.header("retry-after").is_some()), (status, asks_again), "{target}: {}", answer.text());
    }
    let page = |node: &Node| node.call(System::Monitor, "GET", "/", None).unwrap();
    let leads_there = || {
        let page = page(&backup);
        page.status == 503 && page.text().contains(&format!("href=\"http://{}/\"", primary.address(System::Monitor)))
    };
    assert!(eventually(leads_there), "{}", page(&backup).text());
    assert_eq!(backup.call(System::Monitor, "GET", "/dashboard.css", None).unwrap().status, 200);
    assert_eq!(backup.call(System::ServiceRegistry, "GET", "/", None).unwrap().status, 503);
    let killed = Instant::now();
    primary.signal(Signal::SIGKILL);
    backup.served();
    assert_eq!(page(&backup).status, 200, "it is the dashboard");
    let since_the_kill_ms = killed.elapsed().as_secs_f64() * 1e3;
    let ready_ms = backup.ready()["ready_ms"].as_f64().expect("a number");
    assert!(ready_ms <= since_the_kill_ms, "it counts from the promotion: {ready_ms} of {since_the_kill_ms} ms");
    assert!(has(&backup, 0));
    assert_eq!(backup.ready()["listeners"], backup.first["listeners"], "it serves where it was");
}

#[test]
fn a_primary_that_was_stopped_for_long_refuses_and_follows() {
    let (_pair, _witness, mut backup, primary) = Pair::protected();
    assert_eq!(register(&primary, 0), Some(201));
    let publication = event("HOT", system("provider", 4000), "1");
    assert_eq!(primary.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&publication)).unwrap().status, 200);
    let requests = [
        (System::ServiceRegistry, "/serviceregistry/register", service("service-1", system("provider", 4000))),
        (System::EventHandler, "/eventhandler/publish", publication),
    ];
    let mut kept: Vec<_> = requests.iter().map(|(system, ..)| primary.connect(*system).unwrap()).collect();
    primary.signal(Signal::SIGSTOP);
    backup.served();
    for (connection, (_, target, body)) in kept.iter_mut().zip(&requests) {
        let body = body.to_string();
        connection.send_request("POST", target, &[("Content-Type", "application/json")], Some(body.as_bytes())).unwrap();
    }
    primary.signal(Signal::SIGCONT);
    for (connection, (_, target, _)) in kept.iter_mut().zip(&requests) {
        assert_eq!(connection.read_answer().map(|answer| answer.status).ok(), Some(503), "a zombie at {target}");
    }
    backup.protected(true);
    assert!(has(&backup, 0) && !has(&backup, 1), "what the zombie refused is not there");
}

#[test]
fn short_stops_change_nothing() {
    let (_pair, _witness, _backup, primary) = Pair::protected();
    let epoch = primary.gauge("bodkin_pair_epoch");
    for pause_ms in [1, 20, 200] {
        primary.signal(Signal::SIGSTOP);
        thread::sleep(Duration::from_millis(pause_ms));
        primary.signal(Signal::SIGCONT);
        assert!(eventually(|| register(&primary, pause_ms as usize) == Some(201)), "after {pause_ms} ms");
    }
    assert_eq!(primary.gauge("bodkin_pair_epoch"), epoch);
}

#[test]
fn a_dead_witness_or_backup_stops_nobody() {
    let (mut pair, witness, backup, primary) = Pair::protected();
    let epoch = primary.gauge("bodkin_pair_epoch");
    let unreached = |node: &Node| node.gauge("bodkin_pair_unreached");
    assert!(eventually(|| unreached(&primary) + unreached(&backup) == 0), "all reach each other");
    let reached = |node: &Node| node.gauge("bodkin_pair_witness_connected");
    assert_eq!((reached(&primary), reached(&backup)), (1, 1));
    drop(witness);
    assert!(eventually(|| (reached(&primary), reached(&backup)) == (0, 0)), "both tell that the witness is away");
    assert!(eventually(|| (unreached(&primary), unreached(&backup)) == (1, 1)), "nobody reaches the witness");
    assert_shown(primary.address(System::Monitor), "BodkinPairNotWhole");
    for number in 0..20 {
        assert_eq!(register(&primary, number), Some(201), "without a witness");
    }
    thread::sleep(2 * LEASE);
    assert_eq!(register(&primary, 20), Some(201), "the Backup grants the lease");
    let _witness = pair.witness();
    assert!(eventually(|| pair_is_connected(&primary, 2)), "the witness is back: {}", primary.said());
    // It is silent for the longest lease behind its start.
    thread::sleep(3 * LEASE);
    drop(backup);
    primary.protected(false);
    assert_shown(primary.address(System::Monitor), "BodkinNotProtected");
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
    thread::sleep(4 * LEASE);
    assert_eq!(register(&primary, 1), Some(201));
    relay.cut(false);
    primary.protected(true);
    assert_eq!((primary.gauge("bodkin_pair_epoch"), primary.gauge("bodkin_pair_leads")), (epoch, 1));
    assert!(!backup.said().contains("this node of the pair leads"), "{}", backup.said());
}

#[test]
fn a_change_is_not_answered_before_the_backup_has_it() {
    let mut pair = Pair::new();
    let (_witness, mut backup) = (pair.witness(), pair.backup());
    let relay = Relay::to(backup.pair_address());
    let mut primary = pair.primary_by(relay.address);
    primary.served();
    primary.protected(true);
    assert_eq!(register(&primary, 0), Some(201));
    relay.cut(true);
    // Killed long before the Backup is given up.
    let answered = thread::scope(|scope| {
        let answered = scope.spawn(|| register(&primary, 1));
        thread::sleep(LEASE / 2);
        primary.signal(Signal::SIGKILL);
        answered.join().unwrap()
    });
    assert_eq!(answered, None);
    backup.served();
    assert!(has(&backup, 0) && !has(&backup, 1));
}

#[test]
fn without_a_witness_the_primary_alone_leads() {
    let mut pair = Pair::new();
    let backup = pair.backup();
    let mut primary = pair.primary();
    primary.served();
    primary.protected(true);
    assert!(primary.said().contains("THERE IS NO WITNESS"), "{}", primary.said());
    assert_eq!(register(&primary, 0), Some(201));
    drop(primary);
    thread::sleep(4 * LEASE);
    assert!(!backup.said().contains("this node of the pair leads"), "{}", backup.said());
    assert_eq!(backup.stop(), Some(0));
    let mut primary = pair.primary();
    primary.served();
    assert!(has(&primary, 0));
    assert_eq!(register(&primary, 1), Some(201), "it does not wait for who is not there");
    drop(primary);
    let mut forced = pair.forced_backup();
    forced.served();
    assert!(forced.said().contains("because an operator wanted it"), "{}", forced.said());
    assert!(has(&forced, 0) && !has(&forced, 1), "it has what it had");
    assert_eq!(register(&forced, 2), Some(201));
}

#[test]
fn strangers_at_the_link_are_told_and_change_nothing() {
    let (_pair, witness, backup, primary) = Pair::new().patient().begin();
    let greeting = |node: u8, epoch: u8| {
        let mut frame = vec![1, 16, 0, 0, 0, 0, 0, 0, 0, epoch, 0, 4, 0, 4, node, 2];
        frame.extend([0; 8]);
        [&(frame.len() as u32).to_be_bytes()[..], &frame].concat()
    };
    let cases = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "has the length", true),
        (greeting(3, 99), "which is not expected there", true),
        // A frame that cannot be read, once more within a minute.
        (vec![0, 0, 0, 2, 1, 25], "the frame ends within", false),
        (vec![0, 0, 0, 1, 7], "version 1 expected, 7 found", false),
    ];
    for (bytes, told, is_logged) in cases {
        for node in [&witness, &backup] {
            let mut stream = TcpStream::connect(node.pair_address()).unwrap();
            stream.write_all(&bytes).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // Our greeting, and the end.
            let end = stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
            assert!(matches!(end, Ok(_) | Err(ErrorKind::ConnectionReset)), "{told}: {end:?}");
            match is_logged {
                true => assert!(eventually(|| node.said().contains(told)), "{told}: {}", node.said()),
                false => assert!(!node.said().contains(told), "{told}: {}", node.said()),
            }
        }
    }
    assert!(witness.said().contains("who is no member of the pair has shown a higher epoch"), "{}", witness.said());
    assert_eq!((register(&primary, 0), primary.gauge("bodkin_pair_epoch"), primary.gauge("bodkin_pair_protected")), (Some(201), 1, 1));
}
