//! Rules that change while events wait for their subscriber.

use serde_json::json;

use super::{Scene, expect, numbers};
use crate::support::arrowhead::INSECURE_JSON_ID;
use crate::support::cloud::Launch;
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};

#[test]
fn what_waits_is_not_sent_any_more_when_its_rule_is_gone() {
    let port = held_port();
    let scene = Scene::new(Launch::new(), port);
    scene.publish(0..20);
    scene.wait_for("state", "open");
    let (subscriber, publisher, definition) = scene.forbid();
    let ended = scene.wait_for("behind", 0);
    assert!(ended["nextAttemptAt"].is_null(), "{ended}");
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    scene.cloud.allow(subscriber, publisher, definition, &[INSECURE_JSON_ID]);
    scene.publish(20..21);
    expect(&listener, &numbers(20..21));
    let live = scene.wait_for("state", "live");
    assert_eq!((&live["delivered"], &live["deadLetters"], &live["lost"]), (&json!(1), &json!(0), &json!(0)), "{live}");
}

#[test]
fn what_is_queued_is_not_sent_any_more_when_its_rule_is_gone() {
    let listener = PushSubscriber::listen(Manner::Waits);
    let scene = Scene::new(Launch::new(), listener.port());
    scene.publish(0..20);
    listener.wait_for_payload("0");
    let (subscriber, publisher, definition) = scene.forbid();
    listener.release();
    scene.wait_for("behind", 0);
    scene.cloud.allow(subscriber, publisher, definition, &[INSECURE_JSON_ID]);
    scene.publish(20..21);
    listener.wait_for_payload("20");
    assert_eq!(listener.payloads(), ["0", "20"]);
}
