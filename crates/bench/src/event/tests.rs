//! The roles against the bare relay, end to end, as threads of one process.

use std::sync::{Arc, OnceLock};
use std::thread;

use serde_json::json;

use super::publisher::publish;
use super::relay::Relay;
use super::subscriber::subscribe;
use super::*;

const EVENTS_PER_ROUND: u64 = 200;

fn requests(publishers: u16) -> Vec<PublishRequest> {
    let handler = Endpoint { authority: "localhost:1".into(), address: ([127, 0, 0, 1], 1).into() };
    (0..publishers).map(|n| publish_request(&handler, "T", &json!({ "systemName": format!("p{n:04}") })).unwrap()).collect()
}

/// Runs both sides against a relay; `claim` says what the subscribers are told was sent.
fn relayed(shape: Shape, claim: impl FnOnce(&PublisherReport) -> Sent) -> Run {
    let Shape { publishers, subscribers, events_per_round } = shape;
    let requests = requests(publishers);
    let publishers_count = usize::from(publishers);
    let order = RelayOrder {
        message_bytes: requests[0].text.len(),
        payload_at: requests[0].payload_at,
        frame_bytes: 120,
        subscribers,
        publishers: publishers_count,
    };
    let relay = Relay::listen(order).unwrap();
    let addresses = relay.addresses().unwrap();
    let relay = thread::spawn(|| relay.run());
    let request = "GET /eventhandler/subscription?eventtype=T HTTP/1.1\r\nHost: x\r\n\r\n".to_string();
    let subscriber = SubscriberOrder { address: addresses.subscribers, request, subscribers, publishers: publishers_count };
    let subscribed = subscribe(&subscriber).unwrap();
    let sent = Arc::new(OnceLock::new());
    let heard = Arc::clone(&sent);
    let receiving = thread::spawn(move || subscribed.receive(&heard));
    let published = publish(&PublisherOrder { address: addresses.publishers, requests, events_per_round, seconds: 0 }).unwrap();
    sent.set(claim(&published)).unwrap();
    let received = receiving.join().unwrap().unwrap();
    relay.join().unwrap().unwrap();
    Run { published, received, peak_rss_mb: None }
}

fn faultless(run: &Run, shape: Shape) {
    let Shape { publishers, subscribers, events_per_round } = shape;
    let received = &run.received;
    assert_eq!(run.published.sent, vec![events_per_round; usize::from(publishers)]);
    assert_eq!(received.deliveries, events_per_round * u64::from(publishers) * subscribers as u64);
    assert_eq!((received.lost, received.out_of_order, received.duplicates, received.foreign), (0, 0, 0, 0));
    assert_eq!((run.latency().count(), run.bytes_per_delivery()), (received.deliveries, Some(120)));
    assert!(run.latency().max(Unit::Ms) < 60_000.0, "stamps are of one clock");
    assert_eq!(run.published.refused, 0);
}

#[test]
fn scenario_a_comes_whole_and_in_order_through_the_relay() {
    let shape = Shape { events_per_round: EVENTS_PER_ROUND, ..Scenario::A.shape() };
    let run = relayed(shape, |published| Sent(published.sent.clone()));
    faultless(&run, shape);
    let figures = run.figures();
    let figure = |key: &str| figures.iter().find(|figure| figure.key == key).unwrap().value;
    assert_eq!(figure("events"), EVENTS_PER_ROUND as f64);
    assert!(figure("events_per_s") > 0.0 && figure("p99_9_us") >= figure("p50_us") && figure("p50_us") > 0.0);
    assert!(run.ratios(&run).iter().all(|ratio| ratio.value == 1.0));
}

#[test]
fn scenario_c_comes_whole_and_in_order_through_the_relay() {
    let shape = Shape { events_per_round: EVENTS_PER_ROUND, ..Scenario::C.shape() };
    faultless(&relayed(shape, |published| Sent(published.sent.clone())), shape);
}

#[test]
fn an_event_that_never_comes_is_lost() {
    let shape = Shape { events_per_round: EVENTS_PER_ROUND, ..Scenario::A.shape() };
    let run = relayed(shape, |published| Sent(vec![published.sent[0] + 3]));
    assert_eq!((run.received.lost, run.received.deliveries), (3, EVENTS_PER_ROUND));
}

#[test]
fn all_requests_of_a_run_have_one_length() {
    let requests = requests(10);
    assert!(requests.iter().all(|request| request.text.len() == requests[0].text.len()));
    assert!(requests.iter().all(|request| request.payload_at == requests[0].payload_at));
}
