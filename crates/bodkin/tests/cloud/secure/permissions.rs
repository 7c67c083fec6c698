//! A rule that is removed ends what was open because of it.

use serde_json::json;

use super::{allow, register, register_publisher};
use crate::support::arrowhead::{event, subscription, system};
use crate::support::cloud::System;
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};
use crate::support::secure::{Client, SecureCloud};
use crate::support::sse::EventStream;

#[test]
fn the_last_rule_of_a_listener_ends_its_stream() {
    let secure = SecureCloud::shared();
    let (listener, sysop) = (Client::system("permitted"), Client::system("sysop"));
    let sources = ["permitted-a", "permitted-b"].map(|name| register_publisher(&secure.cloud, &Client::system(name), name));
    let id = register(&secure.cloud, &listener, &system("permitted", 1));
    let target = "/eventhandler/subscription?eventtype=permitted&system_name=permitted&address=127.0.0.1&port=1";
    let open = || EventStream::open_on(listener.connect(secure.cloud.address(System::EventHandler)).expect("a connection"), target, &[]);
    // Who waits for its first rule is not ended.
    let stream = open();
    let rules = sources.map(|source| allow(&secure.cloud, id, source));
    let remove = |rule: i64| sysop.expect(&secure.cloud, "DELETE", &format!("/authorization/mgmt/intracloud/{rule}"), None, 200);
    let publish = |name: &str, payload: &str| {
        let body = event("permitted", system(name, 1), payload);
        Client::system(name).expect(&secure.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
    };
    publish("permitted-a", "one");
    assert_eq!(stream.wait_for(1)[0].data, "one");
    // A look at the rules comes once a second; another one is left, and events go on.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    remove(rules[0]);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    publish("permitted-a", "not any more");
    publish("permitted-b", "two");
    assert_eq!(stream.wait_for(2)[1].data, "two");
    remove(rules[1]);
    stream.until_end();
}

#[test]
fn a_removed_rule_ends_what_is_tried_again() {
    let secure = SecureCloud::shared();
    let (subscriber, sysop) = (Client::system("retried"), Client::system("sysop"));
    let sources = ["retried-a", "retried-b"].map(|name| register_publisher(&secure.cloud, &Client::system(name), name));
    let inbox = PushSubscriber::listen(Manner::Answers);
    inbox.answer_with(503, "");
    let id = register(&secure.cloud, &subscriber, &system("retried", inbox.port()));
    let rules = sources.map(|source| allow(&secure.cloud, id, source));
    let body = subscription("retried", system("retried", inbox.port()), "/events");
    subscriber.expect(&secure.cloud, "POST", "/eventhandler/subscribe", Some(&body), 200);
    for (name, payload) in [("retried-a", "withdrawn"), ("retried-b", "kept")] {
        let body = event("retried", system(name, 1), payload);
        Client::system(name).expect(&secure.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
    }
    assert!(eventually(|| inbox.count() >= 2), "nothing is tried again");
    sysop.expect(&secure.cloud, "DELETE", &format!("/authorization/mgmt/intracloud/{}", rules[0]), None, 200);
    // The next attempt is another event's.
    inbox.wait_for_payload("kept");
    inbox.answer_with(200, "");
    let tried = inbox.count();
    let body = event("retried", system("retried-b", 1), json!("last").as_str().expect("text"));
    Client::system("retried-b").expect(&secure.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
    inbox.wait_for_payload("last");
    assert!(!inbox.payloads()[tried..].contains(&"withdrawn".to_owned()), "{:?}", inbox.payloads());
}
