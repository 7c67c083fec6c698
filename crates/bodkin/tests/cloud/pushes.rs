//! Pushed events while their subscription, or the whole cloud, is ending.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::arrowhead::{event, number, subscription, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};

const EVENTS: usize = 20;

/// A cloud with a publisher that `subscriber` may hear, and the subscriber itself.
struct Scene {
    cloud: Cloud,
    listener: PushSubscriber,
}

impl Scene {
    fn new(launch: Launch) -> Self {
        let (cloud, listener) = (launch.start(), PushSubscriber::listen(Manner::Waits));
        let (publisher, definition) = cloud.register_publisher("publisher", 1);
        let subscriber = cloud.register_system("subscriber", listener.port());
        cloud.allow(subscriber, publisher, definition, &[2]);
        Self { cloud, listener }
    }

    fn subscription(&self, notify_uri: &str) -> Value {
        subscription("pushes", system("subscriber", self.listener.port()), notify_uri)
    }

    fn publish(&self, payload: &str) {
        self.cloud.publish(&event("pushes", system("publisher", 1), payload));
    }
}

/// As Java does: a key of blanks is no key, though it is returned as it was given.
#[test]
fn subscriber_with_blank_key_is_pushed_to() {
    let cloud = Launch::new().start();
    let (publisher, definition) = cloud.register_publisher("publisher", 1);
    for (name, key) in [("empty", ""), ("blank", "  ")] {
        let listener = PushSubscriber::listen(Manner::Answers);
        let mut form = system(name, listener.port());
        form["authenticationInfo"] = key.into();
        let created = cloud.post("/serviceregistry/mgmt/systems", &form).expect_status(201).json();
        assert_eq!(created["authenticationInfo"], key, "{created}");
        cloud.allow(number(&created, "/id"), publisher, definition, &[2]);
        cloud.subscribe(&subscription("pushes", form, "/notify"));
        cloud.publish(&event("pushes", system("publisher", 1), name));
        listener.wait_for_payload(name);
    }
}

#[test]
fn a_stop_lets_pushed_events_be_taken() {
    let scene = Scene::new(Launch::new());
    scene.cloud.subscribe(&scene.subscription("/notify"));
    let payloads: Vec<String> = (0..EVENTS).map(|number| number.to_string()).collect();
    payloads.iter().for_each(|payload| scene.publish(payload));
    scene.listener.wait_for_payload("0");
    scene.listener.release();
    assert!(scene.cloud.stop().success());
    assert_eq!(scene.listener.payloads(), payloads);
}

/// A client that keeps its connection has one more request answered while the cloud stops.
#[test]
fn event_that_is_answered_during_stop_is_pushed_after_restart() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = Launch::new().data(data.path()).start();
    let (listener, silent) = (PushSubscriber::listen(Manner::Answers), PushSubscriber::listen(Manner::KeepsSilent));
    let (publisher, definition) = cloud.register_publisher("publisher", 1);
    for (name, event_type, port) in [("subscriber", "pushes", listener.port()), ("silent", "held", silent.port())] {
        let subscriber = cloud.register_system(name, port);
        cloud.allow(subscriber, publisher, definition, &[2]);
        cloud.subscribe(&subscription(event_type, system(name, port), "/notify"));
    }
    let publish = |payload: &str| cloud.publish(&event("pushes", system("publisher", 1), payload));
    publish("before");
    listener.wait_for_payload("before");
    let mut connection = cloud.connect(System::EventHandler);
    // Who is silent holds the stop up, so that there is time behind the end of pushing.
    cloud.publish(&event("held", system("publisher", 1), "held"));
    silent.wait_for_payload("held");
    cloud.signal(Signal::SIGTERM);
    let has_ended_pushing = || cloud.stderr().contains("before these pushed events were taken");
    assert!(eventually(has_ended_pushing), "{}", cloud.stderr());
    let late = event("pushes", system("publisher", 1), "late").to_string();
    let headers = [("Content-Type", "application/json")];
    let answer = connection.request("POST", "/eventhandler/publish", &headers, Some(late.as_bytes())).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(cloud.stop().success());
    let cloud = Launch::new().data(data.path()).start();
    cloud.publish(&event("pushes", system("publisher", 1), "after"));
    listener.wait_for_payload("after");
    assert_eq!(listener.payloads(), ["before", "late", "after"]);
}

#[test]
fn what_waits_for_a_subscription_that_is_replaced_is_pushed_where_the_new_one_wants_it() {
    let scene = Scene::new(Launch::new());
    scene.cloud.subscribe(&scene.subscription("/notify"));
    scene.publish("first");
    scene.publish("waiting");
    scene.listener.wait_for_payload("first");
    scene.cloud.subscribe(&scene.subscription("/elsewhere"));
    scene.publish("after");
    scene.listener.release();
    assert_eq!(scene.listener.wait_for_payload("after").target, "/elsewhere");
    assert_eq!(scene.listener.payloads(), ["first", "waiting", "after"]);
    assert_eq!(scene.listener.notifications()[1].target, "/elsewhere");
}

#[test]
fn what_waits_for_an_ended_subscription_is_not_pushed() {
    let scene = Scene::new(Launch::new());
    scene.cloud.subscribe(&scene.subscription("/notify"));
    scene.publish("first");
    scene.publish("waiting");
    scene.listener.wait_for_payload("first");
    let port = scene.listener.port();
    let ending = format!("/eventhandler/unsubscribe?event_type=pushes&system_name=subscriber&address=127.0.0.1&port={port}");
    scene.cloud.delete(&ending).expect_status(200);
    scene.publish("for nobody");
    scene.cloud.subscribe(&scene.subscription("/anew"));
    scene.publish("after");
    scene.listener.release();
    scene.listener.wait_for_payload("after");
    assert_eq!(scene.listener.payloads(), ["first", "after"]);
}

#[test]
fn one_subscription_more_than_the_limit_is_refused() {
    let scene = Scene::new(Launch::new().flags(["--subscriptions-max", "1"]));
    scene.cloud.subscribe(&scene.subscription("/notify"));
    scene.cloud.subscribe(&scene.subscription("/replaced"));
    let second = subscription("others", system("subscriber", scene.listener.port()), "/notify");
    let refused = scene.cloud.post("/eventhandler/subscribe", &second).expect_status(503).json();
    assert_eq!(refused["exceptionType"], "UNAVAILABLE");
    let known = scene.cloud.get("/eventhandler/mgmt/subscriptions").json();
    assert_eq!((&known["count"], &known["data"][0]["notifyUri"]), (&Value::from(1), &Value::from("/replaced")));
}

#[test]
fn a_subscriber_that_management_moves_hears_events_where_it_is_now() {
    let cloud = Launch::new().start();
    let (former, present) = (PushSubscriber::listen(Manner::Answers), PushSubscriber::listen(Manner::Answers));
    let (publisher, definition) = cloud.register_publisher("publisher", 1);
    let subscriber = cloud.register_system("subscriber", former.port());
    cloud.allow(subscriber, publisher, definition, &[2]);
    cloud.subscribe(&subscription("moved", system("subscriber", former.port()), "/notify"));
    let publish = |payload: &str| cloud.publish(&event("moved", system("publisher", 1), payload));
    publish("before");
    former.wait_for_payload("before");
    let moved = system("subscriber", present.port());
    cloud.call("PUT", &format!("/serviceregistry/mgmt/systems/{subscriber}"), Some(&moved)).expect_status(200);
    publish("after");
    present.wait_for_payload("after");
    assert_eq!((former.payloads(), present.payloads()), (vec!["before".to_owned()], vec!["after".to_owned()]));
}
