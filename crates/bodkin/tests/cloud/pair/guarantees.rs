//! Who relies on a bound on losses is told while there is no Backup that could give it.

use std::time::Duration;

use bodkin_client::realtime::{
    Brokers, Guarantee, PublisherReport, RealtimePublisher, RealtimeSubscriber, Retention, SessionReport, SubscriberReport, Subscription,
    WhenFull,
};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::clients::EACH;
use super::nodes::Pair;
use crate::real_time::notices;
use crate::support::arrowhead::system;
use crate::support::cloud::System;
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;
use crate::support::sse::EventStream;

const TOPICS: &str = "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 10\nloss_tolerance = 3\nretention = 800\n\
    [[topic]]\nevent_type = \"any\"\nperiod_ms = 10\n";

#[test]
fn replicas_that_take_longer_than_is_stated_suspend_the_bound_on_losses() {
    // No acknowledgement is back within two microseconds.
    let tables = format!("broker_backup_us = 1\n{TOPICS}");
    let (pair, _witness, _backup, primary) = Pair::known("replication = \"eager\"\n", &tables);
    primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("sensor", 1))).unwrap().expect_status(201);
    let hot = EventStream::open(primary.address(System::EventHandler), "/eventhandler/subscription?eventtype=hot", &[]);
    assert_eq!(primary.gauge("bodkin_backup_far"), 0, "nothing was replicated");
    let (first, second) = pair.zmtp_addresses();
    let mut publisher = RealtimePublisher::connect(Brokers::pair("sensor", first, second)).expect("a publisher");
    let topic = publisher.add_topic("hot", Retention::new(1, 64, WhenFull::Block));
    publisher.publish(topic, b"1").expect("there is room");
    let (mut covered, mut losses) = (0, None);
    let told = eventually(|| {
        let turned = publisher.turn(Duration::from_millis(1), |report| match report {
            PublisherReport::Covered { through, .. } => covered = through.0,
            PublisherReport::Session(SessionReport::Guaranteed(_, told)) => losses = Some((told.losses, told.broker_backup_stated)),
            _ => {}
        });
        turned.expect("a turn");
        (covered, losses) == (1, Some((Guarantee::Suspended, Duration::from_micros(1))))
    });
    assert!(told, "{covered} {losses:?}: {}", primary.said());
    assert_eq!(primary.gauge("bodkin_backup_far"), 1);
    assert_shown(primary.address(System::Monitor), "BodkinBackupFar");
    let overview = primary.call(System::Monitor, "GET", "/api/v1/overview", None).expect("an answer").json();
    let way_s = overview["numbers"]["bodkin_backup_way_seconds"].as_f64().expect("a number");
    assert!(way_s > 1e-6, "{way_s}");
    hot.wait_until(|told| notices(told).last().is_some_and(|notice| notice["losses"] == "suspended"), "the stream is told");
    assert!(primary.said().contains("replicas take longer to the Backup"), "{}", primary.said());
}

#[test]
fn a_publisher_a_subscriber_and_a_stream_are_told_that_there_is_no_backup_and_that_it_is_back() {
    let (mut pair, _witness, backup, primary) = Pair::known("", TOPICS);
    let (first, second) = pair.zmtp_addresses();
    let mut publisher = RealtimePublisher::connect(Brokers::pair("sensor", first, second)).expect("a publisher");
    let mut subscriber = RealtimeSubscriber::connect(Brokers::pair("display", first, second), EACH).expect("a subscriber");
    subscriber.subscribe("hot", Subscription::default());
    let stream = |topic: &str| {
        EventStream::open(primary.address(System::EventHandler), &format!("/eventhandler/subscription?eventtype={topic}"), &[])
    };
    let (hot, any) = (stream("hot"), stream("any"));
    let (mut published, mut subscribed) = (Vec::new(), Vec::new());
    let mut both_are_told = |expected: &[Guarantee]| {
        eventually(|| {
            let turned = publisher.turn(Duration::from_millis(1), |report| {
                if let PublisherReport::Session(SessionReport::Guaranteed(_, told)) = report {
                    published.push(told.losses);
                }
            });
            turned.expect("a turn");
            let turned = subscriber.turn(Duration::from_millis(1), |report| {
                if let SubscriberReport::Session(SessionReport::Guaranteed(_, told)) = report {
                    subscribed.push(told.losses);
                }
            });
            turned.expect("a turn");
            (&published[..], &subscribed[..]) == (expected, expected)
        })
    };
    assert!(both_are_told(&[Guarantee::Held]), "the Backup is in sync, and who follows says nothing: {}", primary.said());

    drop(backup);
    assert!(both_are_told(&[Guarantee::Held, Guarantee::Suspended]), "{}", primary.said());
    let losses = |told: &[_]| notices(told).iter().map(|notice| notice["losses"].clone()).collect::<Vec<Value>>();
    hot.wait_until(|told| losses(told) == ["suspended"], "the stream is told as well");
    let later = stream("hot");
    later.wait_until(|told| losses(told) == ["suspended"], "who comes later is told at once");

    let _backup = pair.backup();
    assert!(both_are_told(&[Guarantee::Held, Guarantee::Suspended, Guarantee::Held]), "{}", primary.said());
    later.wait_until(|told| losses(told) == ["suspended", "held"], "it is back");
    assert!(!any.has(|told| !notices(told).is_empty()), "a topic that tolerates any loss has nothing to suspend");
}

#[test]
fn failover_longer_than_x_suspends_bound_on_losses() {
    let (pair, _witness, mut backup, primary) = Pair::known("", TOPICS);
    primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("sensor", 1))).unwrap().expect_status(201);
    let (first, second) = pair.zmtp_addresses();
    let mut publisher = RealtimePublisher::connect(Brokers::pair("sensor", first, second)).expect("a publisher");
    let topic = publisher.add_topic("hot", Retention::new(800, 800, WhenFull::Block));
    let mut covered = 0;
    let mut publish = |number: u64| {
        publisher.publish(topic, b"1").expect("there is room");
        eventually(|| {
            let turned = publisher.turn(Duration::from_millis(1), |report| {
                if let PublisherReport::Covered { through, .. } = report {
                    covered = through.0;
                }
            });
            turned.expect("a turn");
            covered == number
        })
    };
    assert!(publish(1), "{}", primary.said());
    let platform = primary.call(System::Monitor, "GET", "/api/v1/platform", None).expect("an answer").json();
    let x = Duration::from_micros(platform["failoverUs"].as_u64().expect("a number"));
    primary.signal(Signal::SIGKILL);
    // The publisher takes no turn meanwhile, so the next leader hears it too late.
    std::thread::sleep(x * 2);
    backup.served();
    assert!(publish(2), "{}", backup.said());
    assert!(eventually(|| backup.gauge("bodkin_failover_long") == 1), "x is {x:?}: {}", backup.said());
    let hot = EventStream::open(backup.address(System::EventHandler), "/eventhandler/subscription?eventtype=hot", &[]);
    hot.wait_until(|told| notices(told).len() == 1, "there is no Backup");
    drop(primary);
    let _primary = pair.primary();
    backup.protected(true);
    hot.wait_until(|told| notices(told).len() > 1, "there is a Backup");
    let after = EventStream::open(backup.address(System::EventHandler), "/eventhandler/subscription?eventtype=hot", &[]);
    for stream in [&hot, &after] {
        stream.wait_until(|told| notices(told).last().is_some_and(|notice| notice["losses"] == "suspended"), "x was exceeded");
    }
}
