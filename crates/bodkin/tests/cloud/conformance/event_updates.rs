//! Event Handler: subscriptions that management changes, and authorization that changes under them (reference 6, 6.4).

use std::thread;

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, event, list, number, service, subscription, system, texts, with, without};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::push::{Manner, PushSubscriber};

const AUTH_UPDATE: &str = "/eventhandler/publish/authupdate";
const SUBSCRIPTIONS: &str = "/eventhandler/mgmt/subscriptions";
const SUBSCRIPTION: &str = "/eventhandler/mgmt/subscriptions/{id}";

/// The id of the one subscription of a subscriber.
fn id_of(cloud: &Cloud, subscriber: &str) -> i64 {
    let all = cloud.get(SUBSCRIPTIONS).json();
    let mine = list(&all, "/data").iter().find(|row| row["subscriberSystem"]["systemName"] == subscriber);
    number(mine.expect("a subscription"), "/id")
}

fn put(claim: &str, target: impl Into<String>, body: &Value) -> Row {
    Row::new(claim, "PUT", target).sending("application/json", body.to_string())
}

#[test]
fn an_auth_update_is_checked_and_answered_without_a_body() {
    let cloud = Cloud::shared();
    cloud.register_system("auth-updater", 9970);
    let update = event("Subscriber_Auth_Update", system("auth-updater", 9970), "7");
    check(
        &cloud,
        &[
            Row::post("in any case", AUTH_UPDATE, &update).void(),
            Row::post("a number", AUTH_UPDATE, &with(update.clone(), "/payload", 7)).void(),
            Row::post("of nobody", AUTH_UPDATE, &with(update.clone(), "/payload", "123456789")).void(),
        ],
    );
    let wrong = [
        ("another type", with(update.clone(), "/eventType", "hot")),
        ("no type", without(update.clone(), "/eventType")),
        ("no payload", without(update.clone(), "/payload")),
        ("no id", with(update.clone(), "/payload", "x")),
        ("id 0", with(update.clone(), "/payload", "0")),
        ("no source", without(update.clone(), "/source")),
        ("a time that is none", with(update.clone(), "/timeStamp", "now")),
    ];
    check(&cloud, &wrong.map(|(claim, body)| Row::post(claim, AUTH_UPDATE, &body).bad_payload(AUTH_UPDATE)));
    let stranger = with(update, "/source/port", 9971);
    check(&cloud, &[Row::post("unregistered source", AUTH_UPDATE, &stranger).invalid_parameter()]);
}

#[test]
fn a_thousand_rules_in_a_burst_all_count_for_the_next_event() {
    const RULES: u16 = 1000;
    const CLIENTS: u16 = 8;
    let (cloud, listener) = (Launch::new().start(), PushSubscriber::listen(Manner::Answers));
    let consumer = cloud.register_system("burst", listener.port());
    cloud.subscribe(&subscription("burst", system("burst", listener.port()), "/notify"));
    let mut registry = cloud.connect(System::ServiceRegistry);
    let headers = [("Content-Type", "application/json")];
    let rules: Vec<Value> = (0..RULES)
        .map(|publisher| {
            let body = service("burst-service", system("burst-publisher", 1 + publisher)).to_string();
            let answer = registry.request("POST", "/serviceregistry/register", &headers, Some(body.as_bytes())).expect("registered");
            let entry = answer.expect_status(201).json();
            json!({"consumerId": consumer, "providerIds": [number(&entry, "/provider/id")],
                "serviceDefinitionIds": [number(&entry, "/serviceDefinition/id")], "interfaceIds": [INSECURE_JSON_ID]})
        })
        .collect();
    thread::scope(|scope| {
        for some in rules.chunks(usize::from(RULES / CLIENTS)) {
            let mut authorization = cloud.connect(System::Authorization);
            scope.spawn(move || {
                for rule in some {
                    let body = rule.to_string();
                    let answer = authorization.request("POST", "/authorization/mgmt/intracloud", &headers, Some(body.as_bytes()));
                    answer.expect("answered").expect_status(201);
                }
            });
        }
    });
    let mut events = cloud.connect(System::EventHandler);
    for publisher in 0..RULES {
        let body = event("burst", system("burst-publisher", 1 + publisher), &publisher.to_string()).to_string();
        events.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("answered").expect_status(200);
    }
    listener.wait_until(|all| all.len() >= usize::from(RULES), "further notification");
    assert_eq!(listener.payloads(), (0..RULES).map(|publisher| publisher.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_managed_subscription_becomes_another_one_under_its_id() {
    let cloud = Cloud::shared();
    cloud.register_system("sub-put", 9972);
    let first = subscription("sub-put", system("sub-put", 9972), "/first");
    cloud.subscribe(&first);
    let id = id_of(&cloud, "sub-put");
    let target = format!("{SUBSCRIPTIONS}/{id}");
    let filters = json!({"minSeverity": "error", "payloadFilter": {"a/b": ">1"}, "filterMetaData": {"k": "v"}, "matchMetaData": true});
    let mut second = with(with(first.clone(), "/notifyUri", "/second"), "/eventType", "sub-put-other");
    for (member, value) in filters.as_object().expect("an object") {
        second = with(second, &format!("/{member}"), value.clone());
    }
    second = with(second, "/sources", json!([system("sub-put", 9972)]));
    check(
        &cloud,
        &[
            put("replaced", &target, &second)
                .is("/id", id)
                .is("/notifyUri", "/second")
                .is("/eventType/eventTypeName", "SUB-PUT-OTHER")
                .is("/payloadFilter/a~1b", ">1")
                .is("/matchMetaData", true),
            put("back", &target, &first).is("/notifyUri", "/first").is("/matchMetaData", false).is("/filterMetaData", Value::Null),
        ],
    );
    assert_eq!(cloud.call("PUT", &target, Some(&second)).json(), cloud.get(&target).json(), "what is answered is what is there");
    assert_eq!(texts(list(&cloud.get(&target).json(), "/sources"), "/systemName"), ["sub-put"]);

    cloud.register_system("sub-put-taken", 9973);
    let taken = subscription("sub-put", system("sub-put-taken", 9973), "/taken");
    cloud.subscribe(&taken);
    check(
        &cloud,
        &[
            put("another one's subscriber and type", &target, &taken).invalid_parameter(),
            put("nothing there", format!("{SUBSCRIPTIONS}/999999"), &with(first.clone(), "/eventType", "x")).invalid_parameter(),
            put("nobody", &target, &with(first.clone(), "/subscriberSystem/systemName", "sub-nobody")).invalid_parameter(),
            put("id 0", format!("{SUBSCRIPTIONS}/0"), &first).bad_payload(SUBSCRIPTION),
            put("no URI", &target, &without(first.clone(), "/notifyUri")).bad_payload(SUBSCRIPTION),
            put("no severity", &target, &with(first, "/minSeverity", "bad")).bad_payload(SUBSCRIPTION),
        ],
    );
    assert_eq!(cloud.get(&target).json()["notifyUri"], "/second", "a refused change changes nothing");
}
