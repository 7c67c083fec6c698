//! What subscribers ask of a topic beyond its declaration holds at the node that leads next from its first instant on.

use std::net::TcpStream;
use std::time::Duration;

use bodkin_broker::wire::ClientFrame;
use bodkin_broker::{Epoch, Incarnation};
use bodkin_client::realtime::{Brokers, ClientSecurity, RealtimeSubscriber, Session, SubscriberReport, Subscription};
use bodkin_zmtp::SocketType;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::clients::EACH;
use super::nodes::{Node, Pair};
use crate::dealer::{hear, say, subscribe};
use crate::support::arrowhead::system;
use crate::support::cloud::System;
use crate::support::link::{Heard, Link};
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

#[test]
fn wait_that_declaration_has_shortened_is_short_at_next_leader() {
    let (pair, _witness, mut backup, primary) = Pair::known("", "");
    let register = |name: &str, port| {
        primary
            .call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system(name, port)))
            .unwrap()
            .expect_status(201);
    };
    let declare = |required_for_max_s: u64| {
        let topic = json!({
            "event_type": "COLD", "period_ms": 10, "loss_tolerance": 0, "retention": 800, "required_for_max_s": required_for_max_s
        });
        primary.call(System::Monitor, "POST", "/api/v1/topics", Some(&topic)).expect("an answer").expect_status(201);
    };
    register("alarm", 1);
    declare(86_400);
    let (first, _) = pair.zmtp_addresses();
    let mut alarm = Link::client(TcpStream::connect(first).expect("a connection"), SocketType::Dealer, ClientSecurity::Null);
    assert!(matches!(alarm.hear(), Ok(Some(Heard::Ready(_)))));
    say(&mut alarm, &ClientFrame::Hello { epoch: Epoch::NONE, incarnation: Incarnation(1), name: "alarm" });
    hear(&mut alarm, |command| assert!(matches!(command, ClientFrame::Leader { is_leader: true, .. })));
    subscribe(&mut alarm, "cold", Some(Duration::from_secs(80_000)));
    hear(&mut alarm, |command| assert!(matches!(command, ClientFrame::Subscribed { .. }), "{command:?}"));
    primary.call(System::Monitor, "DELETE", "/api/v1/topics?event_type=COLD", None).expect("an answer");
    declare(2);
    // Its answer comes after the Backup has everything that was sent before.
    register("display", 2);
    primary.signal(Signal::SIGKILL);
    backup.served();
    assert!(eventually(|| backup.said().contains("not waited for any more")), "{}", backup.said());
}
