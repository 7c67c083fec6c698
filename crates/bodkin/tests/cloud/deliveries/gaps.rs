//! Events that the event log did not keep long enough for their subscriber: counted, each once.

use serde_json::Value;

use super::Scene;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::Launch;
use crate::support::patience::eventually;
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};

const EVENTS: u64 = 300;
/// Of 1.2 MB of events the log keeps the last of its files, which have 64 KiB each.
const SHORT_LOG: [&str; 2] = ["--event-log-bytes-max", "200000"];

/// Publishes more than the log keeps, and waits until it has dropped what is too much.
fn publish_large(scene: &Scene) {
    let payload = "x".repeat(4000);
    (0..EVENTS).for_each(|_| scene.cloud.publish(&event("hot", system("publisher", 1), &payload)));
    let log = || scene.cloud.get("/api/v1/event-log").expect_status(200).json();
    assert!(eventually(|| log()["firstPosition"] != 0 && log()["syncedPosition"] == EVENTS), "{}", log());
}

fn count(delivery: &Value, member: &str) -> u64 {
    delivery[member].as_u64().unwrap_or_else(|| panic!("no number {member} in {delivery}"))
}

fn metric(scene: &Scene, name: &str) -> u64 {
    let metrics = scene.cloud.get("/metrics").text();
    let number = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no {name} in {metrics}"))
}

fn lost_in_all(scene: &Scene) -> u64 {
    metric(scene, "bodkin_events_lost_total")
}

#[test]
fn what_is_given_up_is_a_dead_letter_or_counted_as_lost() {
    let scene = Scene::new(Launch::new().flags(SHORT_LOG).flags(["--push-give-up-s", "3"]), held_port());
    publish_large(&scene);
    let mut last = Value::Null;
    // The newest event is neither: it is tried on.
    let all_told = || {
        last = scene.delivery();
        count(&last, "lost") + count(&last, "deadLetters") + 1 == EVENTS
    };
    assert!(eventually(all_told), "{last}");
    assert!(count(&last, "lost") > 0 && count(&last, "deadLetters") > 0, "{last}");
    assert_eq!(lost_in_all(&scene), count(&last, "lost"));
    scene.publish(0..1);
    assert_eq!(lost_in_all(&scene), count(&last, "lost"), "a publish forgets no loss");
}

#[test]
fn a_gap_is_counted_once_however_often_its_subscriber_is_paused_at_it() {
    let listener = PushSubscriber::listen(Manner::Answers);
    let scene = Scene::new(Launch::new().flags(SHORT_LOG), listener.port());
    listener.answer_with(503, "");
    scene.act("pause");
    publish_large(&scene);
    let mut gaps = Vec::new();
    for _ in 0..3 {
        let before = listener.count();
        scene.act("resume");
        listener.wait_until(|all| all.len() > before + 1, "second attempt");
        scene.act("pause");
        gaps.push(count(&scene.delivery(), "lost"));
    }
    assert!(gaps[0] > 0 && gaps.iter().all(|gap| *gap == gaps[0]), "{gaps:?}");
    listener.answer_with(200, "");
    scene.act("resume");
    let delivered = scene.wait_for("delivered", EVENTS - gaps[0]);
    assert_eq!(count(&delivered, "lost"), gaps[0], "{delivered}");
}
