//! Pushed subscribers that fall behind and catch up all the time, under load: each hears every publisher in order, and nothing
//! twice or not at all.

use std::thread;

use serde_json::json;

use crate::support::arrowhead::{event, list, number, subscription, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};

const PUBLISHERS: usize = 3;
const EVENTS: usize = 1500;
const SUBSCRIBERS: usize = 4;

/// Publishes its share as `publisher-number`, one after the other on one connection.
fn publish(cloud: &Cloud, publisher: usize) {
    let mut connection = cloud.connect(System::EventHandler);
    for number in 0..EVENTS {
        let source = system("publisher", 1 + publisher as u16);
        let body = event(["over", "under"][number % 2], source, &format!("{publisher}-{number}")).to_string();
        let headers = [("Content-Type", "application/json")];
        connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("answered").expect_status(200);
    }
}

#[test]
fn falling_behind_and_catching_up_loses_doubles_and_reorders_nothing() {
    // A queue of a few events overflows all the time.
    let flags = ["--subscriber-queue-bytes-max", "400", "--push-backoff-min-ms", "1", "--push-backoff-max-ms", "5"];
    let cloud = Launch::new().flags(flags).start();
    let publishers: Vec<(i64, i64)> = (0..PUBLISHERS).map(|port| cloud.register_publisher("publisher", 1 + port as u16)).collect();
    let listeners: Vec<PushSubscriber> = (0..SUBSCRIBERS).map(|_| PushSubscriber::listen(Manner::Answers)).collect();
    for listener in &listeners {
        let id = cloud.register_system("subscriber", listener.port());
        for (publisher, definition) in &publishers {
            cloud.allow(id, *publisher, *definition, &[2]);
        }
        cloud.subscribe(&subscription("over", system("subscriber", listener.port()), "/notify"));
    }
    let ids: Vec<i64> = list(&cloud.get("/api/v1/subscriptions").json(), "/data").iter().map(|row| number(row, "/id")).collect();
    thread::scope(|scope| {
        let publishing: Vec<_> = (0..PUBLISHERS)
            .map(|publisher| {
                scope.spawn({
                    let cloud = &cloud;
                    move || publish(cloud, publisher)
                })
            })
            .collect();
        // Meanwhile one is paused and resumed, and one is replaced, again and again.
        let mut round = 0;
        while publishing.iter().any(|publishing| !publishing.is_finished()) {
            let action = ["pause", "resume"][round % 2];
            cloud.call("POST", &format!("/api/v1/subscriptions/{}/{action}", ids[0]), Some(&json!({}))).expect_status(200);
            cloud.subscribe(&subscription("over", system("subscriber", listeners[1].port()), &format!("/notify/{round}")));
            round += 1;
        }
    });
    cloud.call("POST", &format!("/api/v1/subscriptions/{}/resume", ids[0]), Some(&json!({}))).expect_status(200);
    for (index, listener) in listeners.iter().enumerate() {
        listener.wait_until(|all| all.len() >= PUBLISHERS * EVENTS / 2, "further notification");
        let payloads = listener.payloads();
        for publisher in 0..PUBLISHERS {
            let prefix = format!("{publisher}-");
            let heard: Vec<usize> = payloads.iter().filter_map(|payload| payload.strip_prefix(&prefix)?.parse().ok()).collect();
            let expected: Vec<usize> = (0..EVENTS).step_by(2).collect();
            assert_eq!(heard, expected, "subscriber {index}, publisher {publisher}");
        }
    }
    let is_live = || list(&cloud.get("/api/v1/subscriptions").json(), "/data").iter().all(|row| row["state"] == "live" && row["lost"] == 0);
    assert!(eventually(is_live), "{}", cloud.get("/api/v1/subscriptions").text());
}
