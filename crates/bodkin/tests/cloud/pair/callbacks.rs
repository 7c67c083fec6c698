//! HTTP callbacks of durable event types in a pair: what was answered reaches the subscriber, whichever node calls it.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::nodes::{LEASE, Node, Pair};
use crate::support::arrowhead::{event, number, service, subscription, system};
use crate::support::cloud::System;
use crate::support::patience::eventually;
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};
use crate::support::sse::EventStream;

const KEYS: &str = "durable_event_types = [\"kept\"]\npush_backoff_min_ms = 1\npush_backoff_max_ms = 20\npush_attempts_max = 1\n";
/// The same event type as a topic, whose events go another way into the event log.
const TOPIC: &str =
    "[[topic]]\nevent_type = \"kept\"\nperiod_ms = 1\njitter_ms = 100\ndeadline_s = 60\nloss_tolerance = 0\nretention = 1000\n";
const SUBSCRIPTIONS: &str = "/api/v1/subscriptions";
/// Longer than the period at which a leader writes down where deliveries are.
const CHECKPOINT: Duration = Duration::from_millis(2500);
/// Time in which a node closes its event streams when its lease is over.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

fn call(node: &Node, system: System, target: &str, body: &Value, status: u16) -> Value {
    let answer = node.call(system, "POST", target, Some(body)).unwrap_or_else(|error| panic!("{error}: {}", node.said()));
    assert_eq!(answer.status, status, "{target}: {} {}", answer.text(), node.said());
    serde_json::from_str(&answer.text()).unwrap_or_default()
}

/// Subscribes the system on this port to the events of `recorder`.
fn subscribe(node: &Node, port: u16) {
    let registered = call(node, System::ServiceRegistry, "/serviceregistry/register", &service("records", system("recorder", 1)), 201);
    let subscriber = call(node, System::ServiceRegistry, "/serviceregistry/register-system", &system("listener", port), 201);
    let rule = json!({"consumerId": number(&subscriber, "/id"), "providerIds": [number(&registered, "/provider/id")],
        "serviceDefinitionIds": [number(&registered, "/serviceDefinition/id")], "interfaceIds": [2]});
    call(node, System::Authorization, "/authorization/mgmt/intracloud", &rule, 201);
    call(node, System::EventHandler, "/eventhandler/subscribe", &subscription("kept", system("listener", port), "/notify"), 200);
}

/// Publishes these events, with others between them that are not durable: so the same event is at another place in the log of each node.
fn publish(node: &Node, numbers: std::ops::Range<usize>) {
    for number in numbers {
        for event_type in ["kept", "plain", "plain"] {
            call(node, System::EventHandler, "/eventhandler/publish", &event(event_type, system("recorder", 1), &number.to_string()), 200);
        }
    }
}

fn delivery(node: &Node) -> Value {
    let answer = node.call(System::Monitor, "GET", SUBSCRIPTIONS, None).expect("an answer");
    serde_json::from_str::<Value>(&answer.text()).expect("JSON")["data"][0].clone()
}

/// What a subscriber has received, each event once.
fn received(listener: &PushSubscriber) -> Vec<usize> {
    let mut numbers: Vec<usize> = Vec::new();
    for payload in listener.payloads() {
        let number = payload.parse().expect("a number");
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

#[track_caller]
fn receives(listener: &PushSubscriber, expected: std::ops::Range<usize>, node: &Node) {
    let expected: Vec<usize> = expected.collect();
    assert!(eventually(|| received(listener) == expected), "received {:?}: {} {}", received(listener), delivery(node), node.said());
}

/// Kills the leader, lets the other one take over, and starts the killed one again as its standby.
fn fail_over(leader: Node, mut standby: Node, start: impl FnOnce() -> Node) -> (Node, Node) {
    leader.signal(Signal::SIGKILL);
    standby.served();
    drop(leader);
    let joining = start();
    standby.protected(true);
    (standby, joining)
}

#[test]
fn callback_that_was_away_receives_the_answered_events_of_every_leader() {
    let (mut pair, _witness, backup, primary) = Pair::protected_with(KEYS, "");
    let port = held_port();
    subscribe(&primary, port);
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    publish(&primary, 0..5);
    receives(&listener, 0..5, &primary);
    drop(listener);
    publish(&primary, 5..8);
    thread::sleep(CHECKPOINT);
    let (backup, primary) = fail_over(primary, backup, || pair.primary());
    publish(&backup, 8..15);
    let (primary, backup) = fail_over(backup, primary, || pair.backup());
    publish(&primary, 15..20);
    let (backup, _primary) = fail_over(primary, backup, || pair.primary());
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    publish(&backup, 20..22);
    receives(&listener, 5..22, &backup);
}

#[test]
fn callback_receives_each_answered_event_while_leaders_are_killed() {
    for tables in ["", TOPIC] {
        callback_receives_each_answered_event(tables);
    }
}

fn callback_receives_each_answered_event(tables: &str) {
    let (mut pair, _witness, mut standby, mut leader) = Pair::protected_with(KEYS, tables);
    let listener = PushSubscriber::listen(Manner::Answers);
    subscribe(&leader, listener.port());
    for round in 0..4 {
        publish(&leader, round * 10..round * 10 + 10);
        let starts_primary = round % 2 == 0;
        (leader, standby) = fail_over(leader, standby, || if starts_primary { pair.primary() } else { pair.backup() });
        receives(&listener, 0..round * 10 + 10, &leader);
        thread::sleep(CHECKPOINT);
    }
    let calls = listener.count();
    assert!(calls <= 80, "{calls} calls for 40 events: what was delivered before the last checkpoint does not come again");
}

#[test]
fn leader_whose_lease_is_over_calls_nobody_and_closes_its_event_streams() {
    let (_pair, witness, backup, primary) = Pair::protected_with(KEYS, "");
    let port = held_port();
    subscribe(&primary, port);
    let target = "/eventhandler/subscription?eventtype=kept";
    let stream = EventStream::open_on(primary.connect(System::EventHandler).expect("a connection"), target, &[]);
    publish(&primary, 0..3);
    stream.wait_for(3);
    let others = |signal| [&witness, &backup].iter().for_each(|node| node.signal(signal));
    others(Signal::SIGSTOP);
    let ready = || primary.call(System::Monitor, "GET", "/readyz", None).map(|answer| answer.status);
    assert!(eventually(|| ready().is_ok_and(|status| status == 503)), "{}", primary.said());
    let is_over = Instant::now();
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    stream.until_end();
    // A busy machine may be a lease late.
    assert!(is_over.elapsed() < CLOSED_WITHIN + LEASE, "{:?}", is_over.elapsed());
    thread::sleep(Duration::from_secs(1));
    assert_eq!(listener.count(), 0, "another node may have taken over, and calls it");
    others(Signal::SIGCONT);
    assert!(eventually(|| received(&listener) == [0, 1, 2]), "{:?}: {} {}", received(&listener), primary.said(), backup.said());
}

#[test]
fn paused_callback_goes_on_where_it_was_at_each_leader() {
    let (mut pair, _witness, mut standby, mut leader) = Pair::protected_with(KEYS, "");
    let listener = PushSubscriber::listen(Manner::Answers);
    subscribe(&leader, listener.port());
    publish(&leader, 0..5);
    receives(&listener, 0..5, &leader);
    let id = number(&delivery(&leader), "/id");
    let act = |node: &Node, action: &str| call(node, System::Monitor, &format!("{SUBSCRIPTIONS}/{id}/{action}"), &json!({}), 200);
    act(&leader, "pause");
    publish(&leader, 5..10);
    thread::sleep(CHECKPOINT);
    (leader, standby) = fail_over(leader, standby, || pair.primary());
    publish(&leader, 10..15);
    assert_eq!(delivery(&leader)["state"], "paused", "{}", delivery(&leader));
    act(&leader, "resume");
    receives(&listener, 0..15, &leader);
    act(&leader, "pause");
    publish(&leader, 15..20);
    (leader, standby) = fail_over(leader, standby, || pair.backup());
    (leader, _) = fail_over(leader, standby, || pair.primary());
    act(&leader, "resume");
    receives(&listener, 0..20, &leader);
}

#[test]
fn dead_letters_are_delivered_again_by_the_node_that_has_their_events() {
    let (mut pair, _witness, backup, primary) = Pair::protected_with(KEYS, "");
    let listener = PushSubscriber::listen(Manner::Answers);
    listener.answer_with(400, "");
    subscribe(&primary, listener.port());
    publish(&primary, 0..3);
    assert!(eventually(|| delivery(&primary)["deadLetters"] == 3), "{}", delivery(&primary));
    thread::sleep(CHECKPOINT);
    let (backup, primary) = fail_over(primary, backup, || pair.primary());
    listener.answer_with(200, "");
    publish(&backup, 3..8);
    assert!(eventually(|| received(&listener).contains(&7)), "{:?}", received(&listener));
    let before = listener.count();
    let replay = "/api/v1/dead-letters/replay";
    let told = call(&backup, System::Monitor, replay, &json!({}), 200);
    assert_eq!(told, json!({"replayed": 0, "failed": 0, "remaining": 3, "elsewhere": 3}));
    assert_eq!(listener.count(), before, "other events are at their places in this log");
    let (primary, _backup) = fail_over(backup, primary, || pair.backup());
    let before = listener.count();
    let told = call(&primary, System::Monitor, replay, &json!({}), 200);
    assert_eq!(told, json!({"replayed": 3, "failed": 0, "remaining": 0, "elsewhere": 0}));
    let again: Vec<String> = listener.payloads().split_off(before);
    assert_eq!(again, ["0", "1", "2"]);
}
