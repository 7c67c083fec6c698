//! What systems may do for themselves on the wire, and that a rule that is removed ends what was open because of it.

use bodkin_trust::{PrivateKey, base64, key::KeySize};
use serde_json::json;

use super::{allow, register, register_publisher};
use crate::support::arrowhead::{event, service, subscription, system};
use crate::support::cloud::System;
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};
use crate::support::secure::{Client, SecureCloud, public_key};
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

/// Subscribes three systems, and returns the path that ends the subscription of each.
fn subscribe_three(secure: &SecureCloud, owner: &str) -> [String; 3] {
    let client = Client::system(owner);
    [1, 2, 3].map(|port| {
        register(&secure.cloud, &client, &system(owner, port));
        let body = subscription("ended", system(owner, port), "/events");
        client.expect(&secure.cloud, "POST", "/eventhandler/subscribe", Some(&body), 200);
        format!("/eventhandler/unsubscribe?event_type=ended&system_name={owner}&address=127.0.0.1&port={port}")
    })
}

/// Counts the subscriptions of a system, as the operator sees them.
fn subscription_count(secure: &SecureCloud, owner: &str) -> usize {
    let listed = Client::system("sysop").expect(&secure.cloud, "GET", "/eventhandler/mgmt/subscriptions", None, 200).json();
    let subscriptions = listed["data"].as_array().expect("a list");
    subscriptions.iter().filter(|row| row["subscriberSystem"]["systemName"] == owner).count()
}

#[test]
fn subscription_is_ended_by_subscriber_or_operator_only() {
    let secure = SecureCloud::shared();
    let [first, second, _] = subscribe_three(&secure, "unsub-owner");
    let denied = Client::system("unsub-stranger").expect(&secure.cloud, "DELETE", &first, None, 401).json();
    assert_eq!(denied["exceptionType"], "AUTH", "{denied}");
    Client::system("eventhandler").expect(&secure.cloud, "DELETE", &first, None, 401);
    assert_eq!(subscription_count(&secure, "unsub-owner"), 3);
    Client::system("unsub-owner").expect(&secure.cloud, "DELETE", &first, None, 200);
    Client::system("sysop").expect(&secure.cloud, "DELETE", &second, None, 200);
    assert_eq!(subscription_count(&secure, "unsub-owner"), 1);
    let explained = "/api/v1/access/explain?caller=unsub-stranger&method=DELETE&path=/eventhandler/unsubscribe&system=unsub-owner";
    let told = Client::system("sysop").expect(&secure.cloud, "GET", explained, None, 200).json();
    assert_eq!(told["allowed"], false, "{told}");
}

#[test]
fn unsubscribe_by_any_keeps_upstreams_rule_and_warns() {
    let secure = SecureCloud::start(["--unsubscribe-by-any"]);
    let [first, ..] = subscribe_three(&secure, "unsub-owner");
    Client::system("unsub-stranger").expect(&secure.cloud, "DELETE", &first, None, 200);
    assert_eq!(subscription_count(&secure, "unsub-owner"), 2);
    let explained = "/api/v1/access/explain?caller=unsub-stranger&method=DELETE&path=/eventhandler/unsubscribe&system=unsub-owner";
    let told = Client::system("sysop").expect(&secure.cloud, "GET", explained, None, 200).json();
    assert_eq!(told["allowed"], true, "{told}");
    let said = secure.cloud.stderr();
    assert!(said.contains("every system of the cloud may end the subscriptions of other systems"), "{said}");
}

/// To be the operator is not to be a subscriber.
#[test]
fn the_operator_sees_what_was_not_taken_and_not_what_was_in_it() {
    let secure = SecureCloud::start(["--push-attempts-max", "1"]);
    let (subscriber, sysop) = (Client::system("refusing"), Client::system("sysop"));
    let source = register_publisher(&secure.cloud, &Client::system("secretive"), "secretive");
    let inbox = PushSubscriber::listen(Manner::Answers);
    inbox.answer_with(400, "");
    let id = register(&secure.cloud, &subscriber, &system("refusing", inbox.port()));
    allow(&secure.cloud, id, source);
    let body = subscription("refusing", system("refusing", inbox.port()), "/events");
    subscriber.expect(&secure.cloud, "POST", "/eventhandler/subscribe", Some(&body), 200);
    let body = event("refusing", system("secretive", 1), "swordfish");
    Client::system("secretive").expect(&secure.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
    let letters = || sysop.expect(&secure.cloud, "GET", "/api/v1/dead-letters", None, 200).json();
    assert!(eventually(|| letters()["count"] == 1), "{}", letters());
    let told = letters();
    let letter = &told["data"][0];
    assert_eq!((&letter["event"]["payload"], &letter["payloadWithheldBytes"]), (&json!(null), &json!("swordfish".len())), "{told}");
    assert_eq!(letter["eventType"], "REFUSING", "{told}");
    // The subscriber has registered no key, so it is called over http.
    let reason = letter["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("the subscriber answered 400 over http; a port that expects TLS answers so"), "{told}");
    assert!(!told.to_string().contains("swordfish"), "{told}");
    subscriber.expect(&secure.cloud, "GET", "/api/v1/dead-letters", None, 403);
    // It is delivered again all the same: its subscriber may hear it.
    inbox.answer_with(200, "");
    let replayed = sysop.expect(&secure.cloud, "POST", "/api/v1/dead-letters/replay", Some(&json!({})), 200).json();
    assert_eq!(replayed, json!({"replayed": 1, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(inbox.payloads().last().map(String::as_str), Some("swordfish"));
}

/// Tokens are sealed to the key that a provider has registered, and are good wherever that key is.
#[test]
fn a_system_cannot_register_the_key_of_another() {
    let secure = SecureCloud::shared();
    let owner = PrivateKey::generate(KeySize::Bits2048).expect("a key");
    let with = |key: &str| {
        let mut form = service("stolen-service", system("key-thief", 1));
        form["providerSystem"]["authenticationInfo"] = json!(key);
        form
    };
    let thief = Client::system("key-thief");
    let stolen = with(&base64::encode(&owner.public_key_info()));
    for (path, form) in [("/serviceregistry/register", &stolen), ("/serviceregistry/register-system", &stolen["providerSystem"])] {
        let denied = thief.expect(&secure.cloud, "POST", path, Some(form), 401).json();
        assert_eq!(denied["exceptionType"], "AUTH", "{denied}");
    }
    thief.expect(&secure.cloud, "POST", "/serviceregistry/register", Some(&with(&public_key())), 201);
    // The operator knows what it does.
    let id = register(&secure.cloud, &thief, &system("key-thief", 2));
    let target = format!("/serviceregistry/mgmt/systems/{id}");
    let mut moved = stolen["providerSystem"].clone();
    moved["port"] = json!(2);
    Client::system("sysop").expect(&secure.cloud, "PUT", &target, Some(&moved), 200);
}

#[test]
fn the_operator_is_told_why_and_nobody_else_is() {
    let secure = SecureCloud::shared();
    let ask = |client: &str, target: &str, status: u16| Client::system(client).expect(&secure.cloud, "GET", target, None, status).json();
    let mgmt = "/api/v1/access/explain?caller=curious&path=/serviceregistry/mgmt/systems";
    let told = ask("sysop", mgmt, 200);
    assert_eq!((&told["allowed"], &told["enforced"]), (&json!(false), &json!(true)), "{told}");
    assert!(told["steps"].to_string().contains("sysop only"), "{told}");
    assert_eq!(ask("sysop", "/api/v1/access/explain?caller=curious&path=/serviceregistry/echo", 200)["allowed"], true);
    ask("curious", mgmt, 403);
    let service = json!({"serviceDefinitionRequirement": "nothing", "interfaceRequirements": ["HTTP-SECURE-JSON"]});
    let form = json!({"requesterSystem": system("curious", 1), "requestedService": service, "orchestrationFlags": {"overrideStore": true}});
    let orchestrate = |client: &str, status: u16| {
        Client::system(client).expect(&secure.cloud, "POST", "/api/v1/orchestration?explain=true", Some(&form), status).json()
    };
    let told = orchestrate("sysop", 200);
    assert_eq!((&told["response"], &told["explanation"]["outcome"]), (&json!([]), &json!("nothing")), "{told}");
    orchestrate("curious", 403);
}
