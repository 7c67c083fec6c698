//! Durable event types in a pair: what was answered is on the disk of both, and is replayed by the node that leads next.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use bodkin_client::realtime::{Brokers, PublisherReport, RealtimePublisher, Retention, WhenFull};
use nix::sys::signal::Signal;

use super::nodes::{LEASE, Node, Pair, Relay};
use crate::real_time_client::{Hears, required, until};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::patience::eventually;
use crate::support::sse::EventStream;

const KEYS: &str = "durable_event_types = [\"kept\"]\n";
/// The same as a topic: its events are kept by the Backup until they have gone out, too.
const TOPIC: &str = "[[topic]]\nevent_type = \"kept\"\nperiod_ms = 5\ndeadline_s = 60\nloss_tolerance = 0\nretention = 200\n";

fn register(node: &Node) {
    node.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("recorder", 1))).unwrap().expect_status(201);
}

/// The status of the answer to an event with this number.
fn publish(node: &Node, number: usize) -> Option<u16> {
    let publication = event("kept", system("recorder", 1), &number.to_string());
    node.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&publication)).ok().map(|answer| answer.status)
}

#[track_caller]
fn publish_all(node: &Node, numbers: std::ops::Range<usize>) {
    for number in numbers {
        assert_eq!(publish(node, number), Some(200), "{}", node.said());
        // No faster than the topic's period.
        thread::sleep(Duration::from_millis(6));
    }
}

fn listen(node: &Node, headers: &[(&str, &str)], since: &str) -> EventStream {
    let target = format!("/eventhandler/subscription?eventtype=kept{since}");
    EventStream::open_on(node.connect(System::EventHandler).expect("a connection"), &target, headers)
}

/// What a stream has told until now.
fn told(stream: &EventStream) -> Vec<usize> {
    let events = stream.wait_for(stream.count());
    let told = events.iter().filter(|event| !event.event_type.starts_with("bodkin-"));
    told.map(|event| event.data.parse().expect("a number")).collect()
}

/// The same, each number once: what the Backup keeps may go out again.
fn numbers(stream: &EventStream) -> Vec<usize> {
    let mut numbers: Vec<usize> = Vec::new();
    for number in told(stream) {
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

#[track_caller]
fn hears(stream: &EventStream, expected: std::ops::Range<usize>) {
    let expected: Vec<usize> = expected.collect();
    assert!(eventually(|| numbers(stream) == expected), "heard {:?}", numbers(stream));
}

#[test]
fn what_was_answered_is_replayed_by_its_identity_at_the_node_that_leads_next() {
    for tables in ["", TOPIC] {
        let (pair, _witness, mut backup, primary) = Pair::protected_with(KEYS, tables);
        register(&primary);
        let stream = listen(&primary, &[], "");
        publish_all(&primary, 0..20);
        let fifth = stream.wait_for(20)[4].id.clone();
        primary.signal(Signal::SIGKILL);
        backup.served();
        drop(primary);
        let behind_fifth = listen(&backup, &[("Last-Event-ID", &fifth)], "");
        hears(&behind_fifth, 5..20);
        let without_id = listen(&backup, &[], "");
        publish_all(&backup, 20..25);
        hears(&behind_fifth, 5..25);
        hears(&without_id, 20..25);

        // The node that comes back has what is answered from now on, and what it had.
        let mut primary = pair.primary();
        backup.protected(true);
        publish_all(&backup, 25..30);
        backup.signal(Signal::SIGKILL);
        primary.served();
        let all = listen(&primary, &[], "&since=0");
        assert!(eventually(|| (25..30).all(|number| numbers(&all).contains(&number))), "heard {:?}", numbers(&all));
    }
}

#[test]
fn next_leader_reports_losses_of_event_types_that_are_not_durable() {
    let (_pair, _witness, mut backup, primary) = Pair::protected();
    register(&primary);
    let stream = listen(&primary, &[], "");
    publish_all(&primary, 0..5);
    let id = stream.wait_for(5)[2].id.clone();
    primary.signal(Signal::SIGKILL);
    backup.served();
    let returned = listen(&backup, &[("Last-Event-ID", &id)], "");
    assert_eq!(returned.wait_for(1)[0].event_type, "bodkin-lost");
    publish_all(&backup, 5..8);
    hears(&returned, 5..8);
}

#[test]
fn what_was_answered_while_there_was_no_backup_is_on_its_disk_when_it_has_joined() {
    for tables in ["", TOPIC] {
        let (mut pair, _witness, backup, primary) = Pair::protected_with(KEYS, tables);
        register(&primary);
        publish_all(&primary, 0..5);
        drop(backup);
        primary.protected(false);
        publish_all(&primary, 5..15);
        let mut backup = pair.backup();
        primary.protected(true);
        publish_all(&primary, 15..20);
        primary.signal(Signal::SIGKILL);
        backup.served();
        hears(&listen(&backup, &[], "&since=0"), 0..20);
    }
}

#[test]
fn events_that_a_forced_leader_lacks_stay_on_the_other_disk() {
    let (pair, _witness, backup, primary) = Pair::protected_with(KEYS, "");
    register(&primary);
    drop(backup);
    primary.protected(false);
    publish_all(&primary, 0..5);
    drop(primary);
    let mut forced = pair.forced_backup();
    forced.served();
    publish_all(&forced, 5..10);
    let mut primary = pair.primary_by(forced.pair_address());
    forced.protected(true);
    hears(&listen(&forced, &[], "&since=0"), 5..10);
    forced.signal(Signal::SIGKILL);
    primary.served();
    let all = listen(&primary, &[], "&since=0");
    assert!(eventually(|| (0..10).all(|number| numbers(&all).contains(&number))), "heard {:?}", numbers(&all));
}

#[test]
fn event_that_is_sent_again_is_in_the_log_once() {
    let (pair, _witness, mut backup, primary) = Pair::known(KEYS, TOPIC);
    register(&primary);
    let (first, second) = pair.zmtp_addresses();
    let mut publisher = RealtimePublisher::connect(Brokers::pair("recorder", first, second)).expect("a publisher");
    let kept = publisher.add_topic("kept", Retention::new(30, 100, WhenFull::Block));
    // It acknowledges each event before the Backup would need it.
    let display = system("display", 2);
    primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&display)).unwrap().expect_status(201);
    let mut required_one = Hears::by(Brokers::pair("display", first, second), "kept", required());
    until("it is subscribed", || {
        required_one.turn();
        required_one.subscribed > 0
    });
    let through_of = |report: &PublisherReport<'_>| if let PublisherReport::Covered { through, .. } = report { through.0 } else { 0 };
    let (mut covered, mut newest) = (0, 0);
    let mut publish_through = |through: u64| {
        for number in covered..through {
            publisher.publish(kept, number.to_string().as_bytes()).expect("there is room");
            let due = Instant::now() + Duration::from_millis(10);
            while Instant::now() < due {
                publisher.turn(Duration::from_millis(1), |report| newest = newest.max(through_of(&report))).expect("a turn");
                required_one.turn();
            }
        }
        until("everything is covered", || {
            required_one.turn();
            publisher.turn(Duration::from_millis(1), |report| newest = newest.max(through_of(&report))).expect("a turn");
            newest >= through
        });
        covered = through;
    };
    publish_through(20);
    primary.signal(Signal::SIGKILL);
    backup.served();
    // The publisher keeps its newest events, and sends them to the next leader.
    publish_through(40);
    let all = listen(&backup, &[], "&since=0");
    hears(&all, 0..40);
    assert_eq!(told(&all), (0..40).collect::<Vec<_>>());
}

#[test]
fn a_leader_that_restarts_alone_gives_its_backup_what_it_has_answered_before() {
    for tables in ["", TOPIC] {
        let (mut pair, _witness, backup, mut primary) = Pair::protected_with(KEYS, tables);
        register(&primary);
        publish_all(&primary, 0..5);
        drop(backup);
        primary.protected(false);
        publish_all(&primary, 5..15);
        primary.signal(Signal::SIGKILL);
        drop(primary);
        // It leads again with nothing but its disk, and answers on.
        primary = pair.primary();
        primary.served();
        publish_all(&primary, 15..18);
        let mut backup = pair.backup();
        primary.protected(true);
        publish_all(&primary, 18..20);
        primary.signal(Signal::SIGKILL);
        backup.served();
        let all = listen(&backup, &[], "&since=0");
        hears(&all, 0..20);
        assert!(!tables.is_empty() || told(&all).len() == 20, "some were given twice: {:?}", told(&all));
    }
}

#[test]
fn a_backup_with_an_empty_disk_is_given_all_durable_events_that_the_leader_has() {
    let (mut pair, _witness, backup, primary) = Pair::protected_with(KEYS, "");
    register(&primary);
    publish_all(&primary, 0..20);
    drop(backup);
    primary.protected(false);
    pair.lose_disk("backup");
    let mut backup = pair.backup();
    primary.protected(true);
    primary.signal(Signal::SIGKILL);
    backup.served();
    hears(&listen(&backup, &[], "&since=0"), 0..20);
}

#[test]
fn durable_event_behind_another_one_of_its_connection_waits_for_the_backup_too() {
    const WAY_BACK: Duration = Duration::from_millis(100);
    let mut pair = Pair::with(KEYS, "");
    let (_witness, backup) = (pair.witness(), pair.backup());
    let relay = Relay::to(backup.pair_address());
    let mut primary = pair.primary_by(relay.address);
    primary.served();
    primary.protected(true);
    register(&primary);
    relay.delay_ms.store(WAY_BACK.as_millis() as u64, SeqCst);
    let mut connection = primary.connect(System::EventHandler).expect("a connection");
    // The second request is there when the first one is answered.
    for number in ["1", "2"] {
        let publication = event("kept", system("recorder", 1), number).to_string();
        let headers = [("Content-Type", "application/json")];
        connection.send_request("POST", "/eventhandler/publish", &headers, Some(publication.as_bytes())).expect("it is sent");
    }
    assert_eq!(connection.read_answer().expect("an answer").status, 200);
    let first = Instant::now();
    assert_eq!(connection.read_answer().expect("an answer").status, 200);
    assert!(first.elapsed() >= WAY_BACK * 9 / 10, "answered {:?} behind the first one", first.elapsed());
}

#[test]
fn a_durable_event_is_not_answered_before_the_backup_has_it_on_its_disk_or_is_known_to_be_out() {
    let mut pair = Pair::with(KEYS, "");
    let (_witness, mut backup) = (pair.witness(), pair.backup());
    let relay = Relay::to(backup.pair_address());
    let mut primary = pair.primary_by(relay.address);
    primary.served();
    primary.protected(true);
    register(&primary);
    assert_eq!(publish(&primary, 0), Some(200));
    relay.cut(true);
    assert_eq!(publish(&primary, 1), Some(200), "answered when the witness knows that the Backup is out");
    primary.protected(false);
    relay.cut(false);
    primary.protected(true);
    relay.cut(true);
    // Killed long before the Backup is given up.
    let answered = thread::scope(|scope| {
        let answered = scope.spawn(|| publish(&primary, 2));
        thread::sleep(LEASE / 2);
        primary.signal(Signal::SIGKILL);
        answered.join().unwrap()
    });
    assert_eq!(answered, None);
    backup.served();
    let all = listen(&backup, &[], "&since=0");
    // What was answered without it was given to it when it joined again.
    assert!(eventually(|| numbers(&all) == [0, 1]), "heard {:?}", numbers(&all));
}
