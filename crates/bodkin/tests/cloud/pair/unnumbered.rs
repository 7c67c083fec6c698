//! Publishers whose events the node numbers (HTTP, REQ, PUSH, PUB, DEALER without a header), and that try either node every millisecond: what was answered reaches a required subscriber
//! once and in its publisher's order, whichever node was started first and however the leader changes.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use bodkin_client::realtime::*;
use bodkin_zmtp::{Metadata, SocketType};
use nix::sys::signal::Signal;
use serde_json::json;

use super::clients::EACH;
use super::nodes::{LEASE, Node, Pair};
use crate::support::arrowhead::system;
use crate::support::cloud::{BINARY, System};
use crate::support::http::Connection;
use crate::support::link::{Heard, Link};
use crate::support::patience::eventually;

/// PUSH and PUB name no system.
const KEYS: &str = "zmtp_system = \"pusher\"\n";
const TOPIC: &str = "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 1\njitter_ms = 50\ndeadline_ms = 500\nloss_tolerance = 0\nretention = 800\npublishers = 4\n";
/// Pause after an answer: above the period, so that no event is excess.
const PACE: Duration = Duration::from_millis(3);
/// Pause after a refusal.
const RETRY: Duration = Duration::from_millis(1);
/// Answers of each publisher before the leader changes, and after.
const ANSWERS: u64 = 40;
/// Sockets that receive no answer to an event of two frames.
const ONE_WAY: [SocketType; 3] = [SocketType::Push, SocketType::Pub, SocketType::Dealer];

/// How the leader changes.
#[derive(Clone, Copy, Debug)]
enum Change {
    Kill,
    Switchover,
    /// The leader stands still for three leases, and then continues.
    Stop,
}

/// What became of an event.
enum Outcome {
    Accepted,
    Refused,
    Unknown,
}

/// Publishes by one transport until it is over, at whichever node accepts.
struct Publisher<'t> {
    nodes: [SocketAddr; 2],
    at: usize,
    is_over: &'t AtomicBool,
    answers: &'t AtomicU64,
    answered: Vec<String>,
}

impl<'t> Publisher<'t> {
    fn new(nodes: [SocketAddr; 2], is_over: &'t AtomicBool, answers: &'t AtomicU64) -> Self {
        Self { nodes, at: 0, is_over, answers, answered: Vec::new() }
    }

    /// Sends events, named by `prefix` and a number, one at a time. A refused event is sent again, to the other node.
    fn run(mut self, prefix: &str, mut send: impl FnMut(SocketAddr, &str) -> Outcome) -> Vec<String> {
        let mut number = 0_u64;
        while !self.is_over.load(SeqCst) {
            let event = format!("{prefix}{number}");
            match send(self.nodes[self.at], &event) {
                Outcome::Accepted => {
                    self.answered.push(event);
                    self.answers.fetch_add(1, SeqCst);
                    number += 1;
                    thread::sleep(PACE);
                }
                Outcome::Unknown => {
                    number += 1;
                    self.at = 1 - self.at;
                }
                Outcome::Refused => {
                    self.at = 1 - self.at;
                    thread::sleep(RETRY);
                }
            }
        }
        self.answered
    }
}

/// Publishes an event by HTTP, on a connection of its own.
fn by_http(node: SocketAddr, event: &str) -> Outcome {
    let body = json!({"eventType": "hot", "payload": event, "source": system("sensor", 1)}).to_string();
    let Ok(mut connection) = Connection::open(node) else { return Outcome::Refused };
    match connection.request("POST", "/eventhandler/publish", &[("Content-Type", "application/json")], Some(body.as_bytes())) {
        Ok(answer) if answer.status == 200 => Outcome::Accepted,
        Ok(answer) if answer.status == 503 && answer.header("retry-after").is_some() => Outcome::Refused,
        Ok(answer) if answer.status == 503 => Outcome::Unknown,
        Ok(answer) => panic!("{}: {}", answer.status, answer.text()),
        Err(_) => Outcome::Unknown,
    }
}

fn connected(node: SocketAddr, socket_type: SocketType, name: &str) -> Option<Link> {
    let stream = TcpStream::connect(node).ok()?;
    let metadata = Metadata::of(socket_type).with("Identity", name.as_bytes()).expect("an identity");
    let mut link = Link::client_with(stream, metadata, ClientSecurity::Null);
    matches!(link.hear(), Ok(Some(Heard::Ready(_)))).then_some(link)
}

/// Publishes an event by REQ, on a link that is kept while the same node answers.
fn by_req(links: &mut Option<(SocketAddr, Link)>, node: SocketAddr, event: &str) -> Outcome {
    if links.as_ref().is_none_or(|(to, _)| *to != node) {
        *links = connected(node, SocketType::Req, "meter").map(|link| (node, link));
    }
    let Some((_, link)) = links else { return Outcome::Refused };
    link.say(&[b"", b"hot", event.as_bytes()]);
    match link.hear() {
        Ok(Some(Heard::Message(frames))) => {
            let reason = String::from_utf8_lossy(&frames[2]);
            match (frames[1].as_slice(), reason.contains("does not lead"), reason.contains("not known whether the change counts")) {
                (b"200", false, false) => Outcome::Accepted,
                (b"503", true, false) => Outcome::Refused,
                (b"503", false, true) => Outcome::Unknown,
                (status, ..) => panic!("{}: {reason}", String::from_utf8_lossy(status)),
            }
        }
        _ => {
            *links = None;
            Outcome::Unknown
        }
    }
}

/// Sends each event to both nodes, which answer nothing, by one of the sockets after the other until it is over.
fn push(nodes: [SocketAddr; 2], is_over: &AtomicBool) {
    let mut links: [[Option<Link>; 2]; ONE_WAY.len()] = Default::default();
    for number in 0.. {
        if is_over.load(SeqCst) {
            break;
        }
        let at = number % ONE_WAY.len();
        for (link, node) in links[at].iter_mut().zip(nodes) {
            if link.is_none() {
                *link = connected(node, ONE_WAY[at], "pusher");
            }
            if let Some(open) = link {
                open.say(&[b"hot", format!("{}{number}", ONE_WAY[at].name()).as_bytes()]);
            }
        }
        if number % 50 == 49 {
            // A write to a node that is gone fails without a word.
            links = Default::default();
        }
        thread::sleep(PACE);
    }
}

/// Receives as a required subscriber at both nodes until it is over.
fn receive(nodes: [SocketAddr; 2], is_there: &AtomicBool, is_over: &AtomicBool, received: &Mutex<Vec<String>>) {
    let brokers = Brokers::pair("display", nodes[0], nodes[1]);
    let mut subscriber = RealtimeSubscriber::connect(brokers, SubscriberConfig { streams_max: 16, ..EACH }).expect("a subscriber");
    subscriber.subscribe(
        "hot",
        Subscription { required_for: Some(Duration::from_secs(60)), beginning: Beginning::First, ..Subscription::default() },
    );
    let mut subscribed = 0;
    while !is_over.load(SeqCst) {
        let told = subscriber.turn(Duration::from_millis(1), |report| match report {
            SubscriberReport::Event(event) => received.lock().unwrap().push(String::from_utf8_lossy(event.payload).into_owned()),
            SubscriberReport::Subscribed(..) => {
                subscribed += 1;
                is_there.store(subscribed >= 2, SeqCst);
            }
            _ => {}
        });
        told.expect("a turn");
    }
}

fn change(how: Change, primary: &Node, backup: &Node) -> io::Result<()> {
    match how {
        Change::Kill => primary.signal(Signal::SIGKILL),
        Change::Stop => {
            primary.signal(Signal::SIGSTOP);
            thread::sleep(3 * LEASE);
            primary.signal(Signal::SIGCONT);
        }
        Change::Switchover => {
            let addresses = [primary, backup].map(|node| node.address(System::Monitor).to_string()).join(",");
            let output = Command::new(BINARY).args(["pair", "hand-over", "--monitor", &addresses]).output()?;
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    Ok(())
}

#[track_caller]
fn answered_events_arrive_once(how: Change, (pair, _witness, mut backup, primary): (Pair, Node, Node, Node)) {
    for (name, port) in [("sensor", 1), ("display", 2), ("meter", 3), ("pusher", 4)] {
        let answer = primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system(name, port))).unwrap();
        answer.expect_status(201);
    }
    let event_handlers = [primary.address(System::EventHandler), backup.address(System::EventHandler)];
    let (first, second) = pair.zmtp_addresses();
    let (is_there, is_over, is_received) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    let (http, req, received) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
    let missing_of = |answered: &[String]| {
        let received: BTreeSet<String> = received.lock().unwrap().iter().cloned().collect();
        answered.iter().filter(|event| !received.contains(*event)).cloned().collect::<Vec<_>>()
    };
    let answered = thread::scope(|scope| {
        let receiving = scope.spawn(|| receive([first, second], &is_there, &is_received, &received));
        assert!(eventually(|| is_there.load(SeqCst)), "both nodes have the subscription");
        let by_http = scope.spawn(|| Publisher::new(event_handlers, &is_over, &http).run("http", by_http));
        let by_req = scope.spawn(|| {
            let mut link = None;
            Publisher::new([first, second], &is_over, &req).run("req", |node, event| by_req(&mut link, node, event))
        });
        let pushing = scope.spawn(|| push([first, second], &is_over));
        let both_have = |count: u64| http.load(SeqCst) >= count && req.load(SeqCst) >= count;
        assert!(eventually(|| both_have(ANSWERS)), "{how:?}: the first leader answers");
        change(how, &primary, &backup).expect("the command runs");
        let before = http.load(SeqCst).max(req.load(SeqCst));
        let is_back = eventually(|| both_have(before + ANSWERS));
        is_over.store(true, SeqCst);
        let answered = [by_http.join().unwrap(), by_req.join().unwrap()];
        pushing.join().unwrap();
        assert!(is_back, "{how:?}: after the change {} by HTTP and {} by REQ were answered", http.load(SeqCst), req.load(SeqCst));
        // Answered events that have not arrived yet may be on their way.
        eventually(|| answered.iter().all(|answered| missing_of(answered).is_empty()));
        is_received.store(true, SeqCst);
        receiving.join().unwrap();
        answered
    });
    if !matches!(how, Change::Stop) {
        backup.served();
    }
    for sign in ["ERROR", "panicked"] {
        assert!(!backup.said().contains(sign), "{}", backup.said());
    }
    for answered in &answered {
        let missing = missing_of(answered);
        assert!(missing.is_empty(), "{how:?}: {} of {} answered events are missing: {missing:?}", missing.len(), answered.len());
    }
    let received = received.into_inner().unwrap();
    for socket_type in ONE_WAY {
        assert!(received.iter().any(|event| event.starts_with(socket_type.name())), "{how:?}: events of {socket_type:?} arrive");
    }
    let distinct: BTreeSet<&String> = received.iter().collect();
    assert_eq!(received.len(), distinct.len(), "{how:?}: every event arrives once");
    for answered in &answered {
        let of_publisher: BTreeSet<&String> = answered.iter().collect();
        let arrived = received.iter().filter(|event| of_publisher.contains(event));
        assert!(arrived.eq(answered), "{how:?}: answered events arrive in the order of their answers: {answered:?} {received:?}");
    }
}

#[test]
fn answered_events_survive_a_kill() {
    answered_events_arrive_once(Change::Kill, Pair::known(KEYS, TOPIC));
    answered_events_arrive_once(Change::Kill, Pair::known_primary_first(KEYS, TOPIC));
}

#[test]
fn answered_events_survive_a_switchover() {
    answered_events_arrive_once(Change::Switchover, Pair::known(KEYS, TOPIC));
    answered_events_arrive_once(Change::Switchover, Pair::known_primary_first(KEYS, TOPIC));
}

#[test]
fn answered_events_survive_a_stopped_leader() {
    answered_events_arrive_once(Change::Stop, Pair::known(KEYS, TOPIC));
    answered_events_arrive_once(Change::Stop, Pair::known_primary_first(KEYS, TOPIC));
}

#[test]
fn only_publisher_of_a_topic_is_accepted_by_every_leader() {
    const SWITCHOVERS: usize = 5;
    let (_pair, _witness, backup, primary) = Pair::known("", &TOPIC.replace("publishers = 4", "publishers = 1"));
    let answer = primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("sensor", 1))).unwrap();
    answer.expect_status(201);
    let nodes = [&primary, &backup];
    let (is_over, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let publisher = Publisher::new(nodes.map(|node| node.address(System::EventHandler)), &is_over, &answers);
        let publishing = scope.spawn(|| publisher.run("http", by_http));
        let switching = scope.spawn(|| {
            for switchovers in 0..SWITCHOVERS {
                let before = answers.load(SeqCst);
                assert!(
                    eventually(|| answers.load(SeqCst) >= before + ANSWERS),
                    "after {switchovers} switchovers {before} answers and no more"
                );
                nodes[switchovers % 2].protected(true);
                change(Change::Switchover, &primary, &backup).expect("the command runs");
            }
        });
        let switched = switching.join();
        is_over.store(true, SeqCst);
        publishing.join().expect("no leader rejects the publisher");
        switched.expect("every leader accepts its events");
    });
}

#[test]
fn follower_counts_events_it_cannot_answer() {
    const EVENTS: usize = 5;
    let (pair, _witness, backup, primary) = Pair::known(KEYS, TOPIC);
    let answer = primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("pusher", 1))).unwrap();
    answer.expect_status(201);
    let (_, second) = pair.zmtp_addresses();
    for (before, socket_type) in ONE_WAY.into_iter().enumerate() {
        let mut link = connected(second, socket_type, "pusher").expect("a follower accepts links");
        (0..EVENTS).for_each(|_| link.say(&[b"hot", b"1"]));
        let expected = ((before + 1) * EVENTS) as u64;
        let counted = || backup.gauge("bodkin_zmtp_events_refused_total");
        assert!(eventually(|| counted() == expected), "{socket_type:?}: {} where {expected} are expected", counted());
    }
}
