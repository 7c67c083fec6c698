//! What subscribers ask of a topic beyond its declaration holds at the node that leads next from its first instant on.

use std::time::Duration;

use bodkin_client::realtime::{Brokers, RealtimeSubscriber, Session, SubscriberReport, Subscription};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::clients::EACH;
use super::nodes::{Node, Pair};
use crate::support::arrowhead::system;
use crate::support::cloud::System;
use crate::support::patience::eventually;

const TOPIC: &str = "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 10\ndeadline_ms = 500\nloss_tolerance = 3\nretention = 800\n";

/// What a node says that a topic promises.
fn topic(node: &Node) -> Value {
    let topics = node.call(System::Monitor, "GET", "/api/v1/topics", None).expect("an answer").expect_status(200).json();
    let all = topics["data"].as_array().unwrap_or_else(|| panic!("{topics}")).clone();
    all.into_iter().find(|topic| topic["eventType"] == "HOT").unwrap_or_else(|| panic!("{topics}"))
}

fn promised(node: &Node) -> (Value, Value) {
    let topic = topic(node);
    (topic["deadlineUs"].clone(), topic["lossTolerance"].clone())
}

#[test]
fn the_strictest_is_in_force_at_the_promoted_node_before_its_subscriber_has_come_back() {
    let (pair, _witness, mut backup, primary) = Pair::known("", TOPIC);
    primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("display", 2))).unwrap().expect_status(201);
    let declared = promised(&primary);
    let (first, second) = pair.zmtp_addresses();
    let mut subscriber = RealtimeSubscriber::connect(Brokers::pair("display", first, second), EACH).expect("a subscriber");
    let (loss_tolerance, deadline) = (Some(0), Some(Duration::from_millis(400)));
    subscriber.subscribe("hot", Subscription { loss_tolerance, deadline, ..Subscription::default() });
    let mut is_subscribed = false;
    let subscribed = eventually(|| {
        // The node that follows says so too, of what it has noted: nothing of that is in force anywhere.
        let turned = subscriber.turn(Duration::from_millis(5), |report| {
            is_subscribed |= matches!(report, SubscriberReport::Subscribed(_, Session::One));
        });
        turned.expect("a turn");
        is_subscribed
    });
    assert!(subscribed, "{}", primary.said());
    let asked = promised(&primary);
    assert_ne!(asked, declared);
    primary.protected(true);
    // The subscriber takes no further turn, so it asks nothing of the node that leads next.
    primary.signal(Signal::SIGKILL);
    backup.served();
    assert_eq!(promised(&backup), asked, "{}", backup.said());
    drop(subscriber);
}
