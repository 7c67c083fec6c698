//! Which dead letters a replay may send.

use std::collections::BTreeSet;

use serde_json::json;
use tempfile::TempDir;

use super::{QUICK, Scene, expect, numbers};
use crate::support::arrowhead::{INSECURE_JSON_ID, event, list, number, system, texts, with};
use crate::support::cloud::Launch;
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};

/// A subscriber that refuses what it is sent, at once.
fn refusing() -> (Scene, PushSubscriber) {
    let listener = PushSubscriber::listen(Manner::Answers);
    let scene = Scene::new(Launch::new().flags(["--push-attempts-max", "1"]), listener.port());
    listener.answer_with(400, "");
    (scene, listener)
}

/// A registered address may be that of another machine's page: nobody reads it through Bodkin.
#[test]
fn what_a_subscriber_answers_is_shown_nowhere() {
    let (scene, listener) = refusing();
    listener.answer_with(422, "X-Inner: swordfish\r\n");
    listener.answer_with_body("swordfish");
    scene.publish(0..2);
    let told = scene.wait_for("deadLetters", 2);
    for shown in [told.to_string(), scene.dead_letters().to_string(), scene.cloud.stderr()] {
        assert!(!shown.contains("swordfish"), "{shown}");
    }
    assert_eq!(listener.connections(), 1, "the body was read and the connection kept");
}

#[test]
fn a_letter_whose_rule_is_gone_is_not_sent() {
    let (scene, listener) = refusing();
    scene.publish(0..1);
    scene.wait_for("deadLetters", 1);
    let (subscriber, publisher, definition) = scene.forbid();
    listener.answer_with(200, "");
    assert_eq!(scene.replay(), json!({"replayed": 0, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(scene.delivery()["lost"], 1);
    scene.cloud.allow(subscriber, publisher, definition, &[INSECURE_JSON_ID]);
    scene.publish(1..2);
    expect(&listener, &numbers(0..2));
}

#[test]
fn a_letter_that_does_not_pass_the_present_filter_is_not_sent() {
    let (scene, listener) = refusing();
    scene.publish(0..3);
    scene.wait_for("deadLetters", 3);
    listener.answer_with(200, "");
    scene.cloud.subscribe(&with(scene.subscription(), "/minSeverity", "Warning"));
    assert_eq!(scene.replay(), json!({"replayed": 0, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(listener.count(), 3);
}

#[test]
fn a_backlog_that_is_refused_in_a_replay_stays_one_row() {
    let port = held_port();
    let scene = Scene::new(Launch::new().flags(["--push-give-up-s", "1", "--dead-letters-max", "1"]), port);
    scene.publish(0..100);
    scene.wait_for("deadLetters", 99);
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    listener.wait_for_payload("99");
    scene.wait_for("state", "live");
    listener.answer_with(400, "");
    assert_eq!(scene.replay(), json!({"replayed": 0, "failed": 99, "remaining": 99, "elsewhere": 0}));
    let letters = scene.dead_letters();
    let rows: BTreeSet<i64> = list(&letters, "/data").iter().map(|letter| number(letter, "/id")).collect();
    assert_eq!((texts(list(&letters, "/data"), "/event/payload"), rows.len()), (numbers(0..99), 1));
    assert_eq!(scene.delivery()["deadLetters"], 99);
    listener.answer_with(200, "");
    assert_eq!(scene.replay(), json!({"replayed": 99, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(scene.delivery()["deadLetters"], 0);
}

#[test]
fn a_letter_whose_event_is_gone_with_the_log_is_not_another_event() {
    let (listener, place) = (PushSubscriber::listen(Manner::Answers), TempDir::new().expect("a temporary directory"));
    let scene = Scene::new(Launch::new().data(place.path()).flags(["--push-attempts-max", "1"]), listener.port());
    listener.answer_with(400, "");
    scene.publish(0..2);
    scene.wait_for("deadLetters", 2);
    listener.answer_with(200, "");
    let port = scene.port;
    assert!(scene.cloud.stop().success());
    std::fs::remove_dir_all(place.path().join("events")).expect("the log is moved away");
    let scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port };
    // They must not take the places of the letters' events.
    scene.cloud.publish(&event("other", system("publisher", 1), "not for the subscriber"));
    scene.publish(2..3);
    listener.wait_for_payload("2");
    assert_eq!(scene.replay(), json!({"replayed": 0, "failed": 0, "remaining": 0, "elsewhere": 0}));
    let told = scene.wait_for("deadLetters", 0);
    assert_eq!(told["lost"], 2, "{told}");
    assert_eq!(listener.payloads(), numbers(0..3));
}
