//! The roles against the bare relay, end to end, as threads of one process.

use std::sync::{Arc, OnceLock};
use std::thread;

use serde_json::json;

use super::callers::Callers;
use super::manner::Manner;
use super::publisher::{PublishRequest, PublisherOrder, PublisherReport, publish};
use super::relay::{Relay, RelayOrder};
use super::rig::publish_request;
use super::run::Run;
use super::scenario::Shape;
use super::subscriber::{SubscriberOrder, subscribe};
use super::tally::Sent;
use crate::endpoint::Endpoint;
use crate::statistics::Unit;
use crate::wire::Caller;

const EVENTS_PER_ROUND: u64 = 200;

fn requests(publishers: u16) -> Vec<PublishRequest> {
    let handler = Endpoint { authority: "localhost:1".into(), address: ([127, 0, 0, 1], 1).into(), caller: Caller::Nobody };
    (0..publishers).map(|n| publish_request(&handler, "T", &json!({ "systemName": format!("p{n:04}") })).unwrap()).collect()
}

fn shape(publishers: u16, subscribers: usize, connections: u32) -> Shape {
    Shape { publishers, subscribers, events_per_round: EVENTS_PER_ROUND, rate_per_s: None, pause_ms: None, connections }
}

/// Runs both sides against a relay; `claim` says what the subscribers are told was sent.
fn relayed(shape: Shape, manners: Vec<Manner>, claim: impl FnOnce(&PublisherReport) -> Sent) -> Run {
    let Shape { publishers, subscribers, events_per_round, rate_per_s, connections, .. } = shape;
    let requests = requests(publishers);
    let order = RelayOrder {
        message_bytes: requests[0].text.len(),
        payload_at: requests[0].payload_at,
        frame_bytes: 120,
        subscribers,
        publishers: usize::from(publishers) * connections as usize,
    };
    let relay = Relay::listen(order).unwrap();
    let addresses = relay.addresses().unwrap();
    let relay = thread::spawn(|| relay.run());
    let request = "GET /eventhandler/subscription?eventtype=T HTTP/1.1\r\nHost: x\r\n\r\n".to_string();
    let subscriber = SubscriberOrder {
        address: addresses.subscribers,
        request,
        callers: Callers::default(),
        manners,
        publishers: usize::from(publishers),
    };
    let subscribed = subscribe(&subscriber).unwrap();
    let sent = Arc::new(OnceLock::new());
    let heard = Arc::clone(&sent);
    let receiving = thread::spawn(move || subscribed.receive(&heard));
    let seconds = u32::from(rate_per_s.is_some());
    let order = PublisherOrder {
        address: addresses.publishers,
        requests,
        callers: Callers::default(),
        connections,
        events_per_round,
        seconds,
        rate_per_s,
    };
    let published = publish(&order).unwrap();
    sent.set(claim(&published)).unwrap();
    let received = receiving.join().unwrap().unwrap();
    relay.join().unwrap().unwrap();
    Run { published, received, peak_rss_mb: None }
}

fn whole(shape: Shape) -> Run {
    relayed(shape, vec![Manner::Prompt; shape.subscribers], |published| Sent(published.sent.clone()))
}

fn faultless(run: &Run, shape: Shape, events: u64) {
    let Shape { publishers, subscribers, .. } = shape;
    let received = &run.received;
    assert_eq!(run.published.sent, vec![events; usize::from(publishers)]);
    assert_eq!(received.deliveries, events * u64::from(publishers) * subscribers as u64);
    assert_eq!((received.lost, received.out_of_order, received.duplicates, received.foreign), (0, 0, 0, 0));
    assert_eq!((run.latency().count(), run.bytes_per_delivery()), (received.deliveries, Some(120)));
    assert!(run.latency().max(Unit::Ms) < 60_000.0, "stamps are of one clock");
    assert_eq!(run.published.refused, 0);
}

#[test]
fn one_publisher_and_one_subscriber_come_whole_and_in_order_through_the_relay() {
    let shape = shape(1, 1, 1);
    let run = whole(shape);
    faultless(&run, shape, EVENTS_PER_ROUND);
    let figures = run.figures();
    let figure = |key: &str| figures.iter().find(|figure| figure.key == key).unwrap().value;
    assert_eq!(figure("events"), EVENTS_PER_ROUND as f64);
    assert!(figure("events_per_s") > 0.0 && figure("p99_9_us") >= figure("p50_us") && figure("p50_us") > 0.0);
    assert!(run.ratios(&run).iter().all(|ratio| ratio.value == 1.0));
}

#[test]
fn ten_of_each_come_whole_and_in_order_through_the_relay() {
    let shape = shape(10, 10, 1);
    faultless(&whole(shape), shape, EVENTS_PER_ROUND);
}

#[test]
fn a_pool_of_connections_sends_each_event_once() {
    let shape = shape(2, 2, 4);
    let run = whole(shape);
    assert_eq!(run.published.sent, [EVENTS_PER_ROUND; 2]);
    assert_eq!((run.received.deliveries, run.received.lost, run.received.duplicates), (EVENTS_PER_ROUND * 4, 0, 0));
}

#[test]
fn an_open_loop_sends_for_its_time_and_stamps_what_was_due() {
    let shape = Shape { rate_per_s: Some(100.0), ..shape(1, 1, 1) };
    let run = whole(shape);
    faultless(&run, shape, 100);
    let seconds = (run.published.last_ns - run.published.first_ns) as f64 / 1e9;
    assert!(seconds >= 0.98, "the last of 100 events is due after 0.99 s: {seconds}");
}

#[test]
fn slow_subscribers_are_measured_when_there_are_no_others() {
    let shape = shape(1, 2, 1);
    let run = relayed(shape, vec![Manner::Slow(1); 2], |published| Sent(published.sent.clone()));
    faultless(&run, shape, EVENTS_PER_ROUND);
    let reads = (EVENTS_PER_ROUND * 120) as f64 / 512.0;
    let seconds = (run.received.last_ns - run.published.first_ns) as f64 / 1e9;
    assert!(seconds >= reads * 0.9e-3, "{reads} reads with 1 ms between: {seconds} s");
}

#[test]
fn dead_subscribers_are_not_waited_for() {
    let run = relayed(shape(1, 3, 1), vec![Manner::Dead, Manner::Slow(1), Manner::Prompt], |published| Sent(published.sent.clone()));
    assert_eq!((run.received.deliveries, run.received.lost), (EVENTS_PER_ROUND, 0));
    assert_eq!(run.latency().count(), EVENTS_PER_ROUND);
}

#[test]
fn an_event_that_never_comes_is_lost() {
    let run = relayed(shape(1, 1, 1), vec![Manner::Prompt], |published| Sent(vec![published.sent[0] + 3]));
    assert_eq!((run.received.lost, run.received.deliveries), (3, EVENTS_PER_ROUND));
}

#[test]
fn all_requests_of_a_run_have_one_length() {
    let requests = requests(10);
    assert!(requests.iter().all(|request| request.text.len() == requests[0].text.len()));
    assert!(requests.iter().all(|request| request.payload_at == requests[0].payload_at));
}
