//! A planned hand-over: nothing that was answered is lost, requests in front of it are answered, and the gap is told.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::clients::{self, Clients, TOPIC};
use super::nodes::{LEASE, Node, Pair};
use super::{LATER, has, register};
use crate::support::arrowhead::{event, service, system};
use crate::support::cloud::{BINARY, Cloud, System};
use crate::support::patience::eventually;

/// Clients that write meanwhile.
const WRITERS: usize = 3;
/// For so long in front of the hand-over, and behind it.
const UNDER_LOAD: Duration = Duration::from_millis(300);

const HAND_OVER: &str = "/api/v1/pair/hand-over";

/// What `bodkin pair hand-over` prints, called with these nodes' own ports.
fn hand_over(nodes: &[&Node]) -> (Option<i32>, Value, String) {
    let addresses: Vec<String> = nodes.iter().map(|node| node.address(System::Monitor).to_string()).collect();
    let output = Command::new(BINARY).args(["pair", "hand-over", "--output", "json", "--monitor", &addresses.join(",")]).output();
    let output = output.expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), said)
}

#[track_caller]
fn handed_over(nodes: &[&Node], to: &str) {
    let (code, done, said) = hand_over(nodes);
    assert_eq!((code, &done["leader"]), (Some(0), &Value::from(to)), "{done} {said}");
    let gap = Duration::from_millis(done["gapMs"].as_u64().expect("the gap is told"));
    println!("handed over to the {to}: {done}");
    assert!(gap < 10 * LEASE, "{done}");
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Done,
    /// Nothing was done.
    Refused,
    NotKnown,
}

/// Registers a service of this number at a node.
fn ask(node: &Node, number: usize) -> Told {
    let body = service(&format!("service-{number}"), system("provider", 4000));
    match node.call(System::ServiceRegistry, "POST", "/serviceregistry/register", Some(&body)) {
        Ok(answer) if answer.status == 201 => Told::Done,
        Ok(answer) if answer.status == 503 && answer.header("retry-after").is_some() => Told::Refused,
        Ok(answer) if answer.status == 503 => Told::NotKnown,
        Ok(answer) => panic!("{}: {}", answer.status, answer.text()),
        Err(_) => Told::NotKnown,
    }
}

/// Writes numbers from `first` on until it is over, at whichever node takes them; gives those that were answered.
fn write(nodes: [&Node; 2], first: usize, is_over: &AtomicBool) -> Vec<usize> {
    let (mut at, mut answered) = (0, Vec::new());
    for number in (first..).step_by(WRITERS) {
        loop {
            match ask(nodes[at], number) {
                Told::Done => answered.push(number),
                Told::NotKnown => println!("it is not known what became of {number}"),
                Told::Refused if is_over.load(SeqCst) => return answered,
                Told::Refused => {
                    at = 1 - at;
                    thread::sleep(Duration::from_millis(2));
                    continue;
                }
            }
            break;
        }
        if is_over.load(SeqCst) {
            break;
        }
    }
    answered
}

#[test]
fn an_operator_hands_the_lead_over_and_nothing_is_lost() {
    let (_pair, _witness, mut backup, mut primary) = Pair::known("", "");
    let is_over = AtomicBool::new(false);
    let answered: Vec<usize> = thread::scope(|scope| {
        let writers: Vec<_> = (1..=WRITERS)
            .map(|first| {
                let (nodes, is_over) = ([&primary, &backup], &is_over);
                scope.spawn(move || write(nodes, first, is_over))
            })
            .collect();
        thread::sleep(UNDER_LOAD);
        // The one that follows has done nothing, and so the other one is asked.
        handed_over(&[&backup, &primary], "second");
        thread::sleep(UNDER_LOAD);
        is_over.store(true, SeqCst);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    backup.served();
    assert!(answered.len() > 2 * WRITERS, "{answered:?}");
    let missing: Vec<_> = answered.iter().filter(|number| !has(&backup, **number)).collect();
    assert!(missing.is_empty(), "{missing:?} of {answered:?}");

    // The one that has led follows, and leads again when it is asked to.
    backup.protected(true);
    assert_eq!(primary.gauge("bodkin_pair_leads"), 0);
    handed_over(&[&primary, &backup], "first");
    primary.served();
    for node in [&primary, &backup] {
        let said = node.said();
        assert!(!said.contains("ERROR") && !said.contains("could not be noted"), "{said}");
    }
    assert!(answered.iter().all(|number| has(&primary, *number)));
    assert_eq!(register(&primary, LATER), Some(201));
    let audited = primary.call(System::Monitor, "GET", "/api/v1/audit?kind=change", None).unwrap().expect_status(200).text();
    assert!(audited.contains("POST /api/v1/pair/hand-over"), "{audited}");
}

#[test]
fn a_publisher_and_its_required_subscriber_do_not_notice_a_hand_over() {
    let (pair, _witness, mut backup, primary) = Pair::known("", TOPIC);
    clients::register(&primary);
    let mut clients = Clients::of(&pair);
    clients.publish_for(Duration::from_millis(400));
    thread::scope(|scope| {
        let handing = scope.spawn(|| handed_over(&[&primary], "second"));
        clients.come_through(300);
        handing.join().unwrap();
    });
    backup.served();
    clients.come_through(200);
    for node in [&primary, &backup] {
        assert!(!node.said().contains("ERROR"), "{}", node.said());
    }
}

#[test]
fn next_leader_reports_who_holds_publisher_slots() {
    let topic = "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 5\ndeadline_s = 60\nloss_tolerance = 0\nretention = 200\n";
    let (_pair, _witness, mut backup, primary) = Pair::known("", topic);
    let publish = |node: &Node, name: &str, port: u16| {
        let publication = event("hot", system(name, port), "1");
        node.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&publication)).unwrap().status
    };
    for (name, port) in [("alice", 1), ("bob", 2), ("sensor", 3)] {
        primary
            .call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system(name, port)))
            .unwrap()
            .expect_status(201);
    }
    assert_eq!((publish(&primary, "alice", 1), publish(&primary, "bob", 2)), (200, 200));
    handed_over(&[&primary, &backup], "second");
    backup.served();
    assert_eq!((publish(&backup, "alice", 1), publish(&backup, "bob", 2), publish(&backup, "sensor", 3)), (200, 200, 503));
    let topics = backup.call(System::Monitor, "GET", "/api/v1/topics", None).unwrap().expect_status(200).json();
    let slots = &topics["data"][0]["publisherSlots"];
    let names: Vec<&str> = slots["systems"].as_array().expect("a list").iter().filter_map(|holder| holder["system"].as_str()).collect();
    assert_eq!((slots["held"].as_u64(), names), (Some(2), vec!["alice", "bob"]), "{topics}");
}

#[test]
fn write_at_standby_names_standby_and_leader() {
    let (_pair, _witness, backup, primary) = Pair::protected();
    let write = |node: &Node| {
        let (registry, monitor) = (node.address(System::ServiceRegistry).to_string(), node.address(System::Monitor).to_string());
        let place = ["--service-registry", registry.as_str(), "--monitor", monitor.as_str()];
        let add = ["system", "add", "pump", "--address", "127.0.0.1", "--port", "9000"];
        let output = Command::new(BINARY).args(add).args(place).output().expect("the binary starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let leader = format!("The leader was last at http://127.0.0.1:{}/", primary.address(System::Monitor).port());
    assert!(eventually(|| write(&backup).1.contains(&leader)), "{leader}: {}", write(&backup).1);
    let (code, said) = write(&backup);
    let expected = format!("{} is a standby and takes no requests; nothing was done.", backup.address(System::ServiceRegistry));
    assert!(code == Some(1) && said.contains(&expected) && !said.contains("core system listens"), "{code:?} {said}");
    assert_eq!(write(&primary).0, Some(0));
}

#[test]
fn nothing_is_handed_over_to_who_is_not_there_or_lacks_something() {
    let refused = |node: &Node, status: u16, why: &str| {
        let answer = node.call(System::Monitor, "POST", HAND_OVER, None).unwrap();
        assert_eq!((answer.status, answer.text().contains(why)), (status, true), "{}", answer.text());
    };
    let (_pair, _witness, backup, primary) = Pair::protected();
    refused(&backup, 503, "Another node of the pair leads");
    drop(backup);
    primary.protected(false);
    refused(&primary, 409, "the Backup is not in sync");
    assert_eq!(register(&primary, 1), Some(201), "it goes on");
    let answer = Cloud::shared().call("POST", HAND_OVER, None);
    assert_eq!((answer.status, answer.text().contains("a cloud by itself")), (409, true), "{}", answer.text());
}
