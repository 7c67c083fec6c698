//! Events of real-time topics in a pair: what was answered outlives its Primary, in order and once.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use bodkin_broker::EventId;
use nix::sys::signal::Signal;

use super::nodes::{Node, Pair};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::http::Connection;
use crate::support::patience::eventually;
use crate::support::sse::EventStream;
use crate::support::stream::Event;

/// Publishers, each with a connection of its own.
const PUBLISHERS: u16 = 4;
/// For so long before the Primary dies.
const UNDER_LOAD: Duration = Duration::from_millis(1000);
/// No event may be missed. What is dispatched counts as received after two seconds only, so what is younger is still kept when the Primary dies.
const TOPIC: &str = "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 5\ndeadline_s = 60\nloss_tolerance = 0\nretention = 132\npublishers = 4\n\
    broker_subscriber_max_s = 2\n";

fn register(node: &Node) {
    for port in 1..=PUBLISHERS {
        let answer = node.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("sensor", port))).unwrap();
        answer.expect_status(201);
    }
}

/// Publishes the next number of a publisher; whether it was answered.
fn publish(connection: &mut Connection, port: u16, number: usize) -> bool {
    let body = event("hot", system("sensor", port), &format!("{port} {number}")).to_string();
    let headers = [("Content-Type", "application/json")];
    connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).is_ok_and(|answer| answer.status == 200)
}

/// Has every publisher publish from `first` on, each number when the one before was answered, until one is not. Gives the last answered numbers.
fn load(node: &Node, first: usize, during: impl FnOnce()) -> Vec<usize> {
    thread::scope(|scope| {
        let publisher = |port: u16| {
            scope.spawn(move || {
                let mut connection = node.connect(System::EventHandler).unwrap();
                // No faster than the topic's period: what is faster is answered, and not kept for anybody.
                let paced = |_: &usize| thread::sleep(Duration::from_millis(6));
                (first..).inspect(paced).take_while(|number| publish(&mut connection, port, *number)).last().unwrap_or(first - 1)
            })
        };
        let publishers: Vec<_> = (1..=PUBLISHERS).map(publisher).collect();
        during();
        publishers.into_iter().map(|publisher| publisher.join().unwrap()).collect()
    })
}

fn heard(node: &Node) -> EventStream {
    EventStream::open_on(node.connect(System::EventHandler).unwrap(), "/eventhandler/subscription?eventtype=hot&since=0", &[])
}

/// The numbers of each publisher in the order in which they were heard; every identity is heard once, and each stream in its order.
fn in_order(events: &[Event]) -> BTreeMap<u16, Vec<usize>> {
    let mut last: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut numbers: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    // What the leader before has logged is not in this node's log, and there is no Backup: both are told.
    for event in events.iter().filter(|event| !event.event_type.starts_with("bodkin-")) {
        let id: EventId = event.id.parse().expect("an identity");
        let before = last.insert((id.publisher.0, id.incarnation.0), id.sequence.0);
        assert!(before < Some(id.sequence.0), "{id:?} behind {before:?}");
        let (port, number) = event.data.split_once(' ').expect("a port and a number");
        numbers.entry(port.parse().unwrap()).or_default().push(number.parse().unwrap());
    }
    numbers
}

#[test]
fn what_was_answered_of_a_topic_without_losses_outlives_its_primary_in_order_and_once() {
    for replication in ["lazy", "eager", "periodic"] {
        let (_pair, _witness, mut backup, primary) = Pair::protected_with(&format!("replication = \"{replication}\"\n"), TOPIC);
        register(&primary);
        let mut killed = None;
        let answered = load(&primary, 1, || {
            thread::sleep(UNDER_LOAD);
            killed = Some(Instant::now());
            primary.signal(Signal::SIGKILL);
        });
        backup.served();
        let gap = killed.unwrap().elapsed();
        println!("{replication}: the Backup served {gap:?} after the kill; answered before: {answered:?}");
        assert!(answered.iter().all(|number| *number > 0), "{answered:?}");
        let stream = heard(&backup);
        let again: Vec<usize> = (1..=PUBLISHERS)
            .zip(&answered)
            .map(|(port, last)| {
                let mut connection = backup.connect(System::EventHandler).unwrap();
                let first = last + 1;
                assert!(eventually(|| publish(&mut connection, port, first)), "{}", backup.said());
                first
            })
            .collect();
        let is_there = |events: &[Event]| {
            let numbers = in_order(events);
            (1..=PUBLISHERS).zip(&again).all(|(port, last)| numbers.get(&port).is_some_and(|numbers| numbers.last() == Some(last)))
        };
        let events = eventually_events(&stream, is_there);
        for (port, numbers) in in_order(&events) {
            let (last, first) = (answered[usize::from(port) - 1], numbers[0]);
            // One that was under way when the Primary died may be there too, and is then the same number once more.
            let mut numbers = numbers;
            numbers.dedup();
            assert_eq!(numbers, (first..=last + 1).collect::<Vec<_>>(), "publisher {port}, answered up to {last}");
        }
    }
}

#[track_caller]
fn eventually_events(stream: &EventStream, fits: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    assert!(eventually(|| fits(&stream.wait_for(stream.count()))), "heard: {:?}", stream.wait_for(stream.count()));
    stream.wait_for(stream.count())
}
