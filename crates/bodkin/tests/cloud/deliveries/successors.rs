//! Subscriptions that management makes another subscriber's, or to another event type: they begin with the present.

use serde_json::{Value, json};

use super::Scene;
use crate::support::arrowhead::{INSECURE_JSON_ID, subscription, system, with};
use crate::support::cloud::{Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};

/// Registers a second subscriber, which may hear the same publisher.
fn successor(scene: &Scene) -> PushSubscriber {
    let listener = PushSubscriber::listen(Manner::Answers);
    let id = scene.cloud.register_system("successor", listener.port());
    let rules = scene.cloud.get("/authorization/mgmt/intracloud").expect_status(200).json();
    let of = |member: &str| rules["data"][0][member]["id"].as_i64().expect("an id");
    scene.cloud.allow(id, of("providerSystem"), of("serviceDefinition"), &[INSECURE_JSON_ID]);
    listener
}

fn successors(listener: &PushSubscriber, notify_uri: &str) -> Value {
    subscription("hot", system("successor", listener.port()), notify_uri)
}

#[test]
fn a_successor_hears_nothing_of_its_predecessors_past() {
    let predecessor = PushSubscriber::listen(Manner::Waits);
    let scene = Scene::new(Launch::new(), predecessor.port());
    let listener = successor(&scene);
    scene.publish(0..3);
    predecessor.wait_for_payload("0");
    scene.change_to(&successors(&listener, "/notify"));
    scene.publish(3..4);
    listener.wait_for_payload("3");
    predecessor.release();
    let delivered = || scene.cloud.get("/metrics").text().contains("bodkin_push_delivered_total 2\n");
    assert!(eventually(delivered), "{}", scene.cloud.get("/metrics").text());
    scene.cloud.subscribe(&successors(&listener, "/elsewhere"));
    scene.publish(4..5);
    listener.wait_for_payload("4");
    assert_eq!((predecessor.payloads(), listener.payloads()), (vec!["0".into()], vec!["3".into(), "4".into()]));
}

#[test]
fn dead_letters_are_not_inherited() {
    let predecessor = PushSubscriber::listen(Manner::Answers);
    let scene = Scene::new(Launch::new().flags(["--push-attempts-max", "1"]), predecessor.port());
    let listener = successor(&scene);
    predecessor.answer_with(400, "");
    scene.publish(0..1);
    scene.wait_for("deadLetters", 1);
    scene.change_to(&successors(&listener, "/notify"));
    assert_eq!(scene.replay(), json!({"replayed": 0, "failed": 0, "remaining": 0, "elsewhere": 0}));
    scene.publish(1..2);
    listener.wait_for_payload("1");
    assert_eq!((listener.count(), &scene.delivery()["deadLetters"], &scene.dead_letters()["count"]), (1, &json!(0), &json!(0)));
    // Nor when the same subscriber is to hear something else.
    listener.answer_with(400, "");
    scene.publish(2..3);
    scene.wait_for("deadLetters", 1);
    listener.answer_with(200, "");
    scene.change_to(&with(successors(&listener, "/notify"), "/eventType", "cold"));
    assert_eq!(scene.replay(), json!({"replayed": 0, "failed": 0, "remaining": 0, "elsewhere": 0}));
}

#[test]
fn what_a_predecessor_refuses_late_is_no_letter_of_its_successors() {
    let predecessor = PushSubscriber::listen(Manner::Waits);
    let scene = Scene::new(Launch::new().flags(["--push-attempts-max", "1"]), predecessor.port());
    let listener = successor(&scene);
    predecessor.answer_with(400, "");
    scene.publish(0..1);
    predecessor.wait_for_payload("0");
    scene.change_to(&successors(&listener, "/notify"));
    scene.publish(1..2);
    listener.wait_for_payload("1");
    predecessor.release();
    let refused = || scene.cloud.get("/metrics").text().contains("bodkin_dead_letters_total 1\n");
    assert!(eventually(refused), "{}", scene.cloud.get("/metrics").text());
    assert_shown(scene.cloud.address(System::Monitor), "BodkinDeadLetters");
    assert_eq!(scene.dead_letters()["count"], 0);
}

#[test]
fn a_pause_stays_with_the_subscription() {
    let predecessor = PushSubscriber::listen(Manner::Answers);
    let scene = Scene::new(Launch::new(), predecessor.port());
    let listener = successor(&scene);
    scene.act("pause");
    scene.publish(0..1);
    scene.change_to(&successors(&listener, "/notify"));
    scene.publish(1..2);
    scene.wait_for("behind", 1);
    assert_eq!(scene.delivery()["state"], "paused");
    scene.act("resume");
    listener.wait_for_payload("1");
    assert_eq!((predecessor.count(), listener.count()), (0, 1));
}
