//! Orchestrator: reservations and orchestration by proxy (reference sections 5, 13 and 14).

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{list, number, service, system, texts, with, without};
use crate::support::cloud::{Cloud, Launch};
use crate::support::patience::eventually;

const ORCHESTRATION: &str = "/orchestrator/orchestration";
const PROXY: &str = "/orchestrator/orchestration-by-proxy";
const RESERVATIONS: &str = "/orchestrator/qos_reservations";
const LOCK: &str = "/orchestrator/qos_temporary_lock";

/// Two consumers who may use a service of two providers.
fn stage(cloud: &Cloud, name: &str) {
    let consumers = ["one", "two"].map(|which| cloud.register_system(&format!("{name}-{which}"), 9951));
    for which in ["a", "b"] {
        let entry = cloud.register(&service(name, system(&format!("{name}-{which}"), 9951)));
        for consumer in consumers {
            cloud.allow(consumer, number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"), &[2]);
        }
    }
}

fn form(name: &str, consumer: &str) -> Value {
    json!({"requesterSystem": system(&format!("{name}-{consumer}"), 9951), "orchestrationFlags": {"overrideStore": true},
        "requestedService": {"serviceDefinitionRequirement": name}})
}

/// What a consumer is answered.
#[track_caller]
fn results(cloud: &Cloud, name: &str, consumer: &str) -> Vec<Value> {
    list(&cloud.post(ORCHESTRATION, &form(name, consumer)).expect_status(200).json(), "/response").clone()
}

#[track_caller]
fn providers(cloud: &Cloud, name: &str, consumer: &str) -> Vec<String> {
    let names = texts(&results(cloud, name, consumer), "/provider/systemName");
    names.iter().map(|provider| provider[name.len() + 1..].to_owned()).collect()
}

/// The reservations of a consumer.
fn reservations(cloud: &Cloud, consumer: &str) -> Vec<Value> {
    let answer = cloud.get(RESERVATIONS).expect_status(200).json();
    list(&answer, "/data").iter().filter(|row| row["consumerSystemName"] == consumer).cloned().collect()
}

#[test]
fn locked_results_are_kept_for_one_consumer_and_all_but_the_chosen_one_are_let_go() {
    let cloud = Cloud::shared();
    stage(&cloud, "reserve-life");
    let offered = results(&cloud, "reserve-life", "one");
    let lock = |consumer: &str| json!({"requester": system(&format!("reserve-life-{consumer}"), 9951), "orList": offered});
    check(
        &cloud,
        &[
            Row::post("both are locked and echoed", LOCK, &lock("one")).is("/response", json!(offered)),
            Row::post("nothing is left for another", LOCK, &lock("two")).is("", json!({"response": []})),
        ],
    );
    let locked = reservations(&cloud, "reserve-life-one");
    assert_eq!(locked.len(), 2);
    assert!(locked.iter().all(|row| row["temporaryLock"] == true), "{locked:?}");
    assert_eq!(providers(&cloud, "reserve-life", "one"), ["a", "b"], "the holder may use them");
    assert_eq!(providers(&cloud, "reserve-life", "two"), Vec::<String>::new());

    let confirm = with(lock("one"), "/selected", offered[1].clone());
    check(
        &cloud,
        &[
            Row::post("one is chosen", RESERVATIONS, &confirm).void(),
            Row::post("it is chosen again", RESERVATIONS, &confirm).void(),
            Row::post("another may not have it", RESERVATIONS, &with(lock("two"), "/selected", offered[1].clone())).invalid_parameter(),
        ],
    );
    let kept = reservations(&cloud, "reserve-life-one");
    assert_eq!(kept.len(), 1);
    let expected = json!({"id": kept[0]["id"], "reservedProviderId": offered[1]["provider"]["id"], "reservedServiceId": offered[1]["service"]["id"],
        "consumerSystemName": "reserve-life-one", "consumerAddress": "127.0.0.1", "consumerPort": 9951, "temporaryLock": false,
        "reservedTo": kept[0]["reservedTo"], "createdAt": kept[0]["createdAt"], "updatedAt": kept[0]["updatedAt"]});
    assert_eq!(kept[0], expected);
    assert_eq!(providers(&cloud, "reserve-life", "two"), ["a"]);
}

#[test]
fn reservations_end_and_are_removed() {
    let cloud = Launch::new().flags(["--qos-reservation-temp-lock-duration-s", "1", "--qos-reservation-check-interval-s", "1"]).start();
    stage(&cloud, "reserve-end");
    let offered = results(&cloud, "reserve-end", "one");
    cloud.post(LOCK, &json!({"requester": system("reserve-end-one", 9951), "orList": offered})).expect_status(200);
    assert!(eventually(|| providers(&cloud, "reserve-end", "two") == ["a", "b"]));
    assert_eq!(cloud.get(RESERVATIONS).json(), json!({"data": [], "count": 0}));
    let again = json!({"requester": system("reserve-end-two", 9951), "orList": offered});
    check(&cloud, &[Row::post("they are free again", LOCK, &again).has_length("/response", 2)]);
}

#[test]
fn an_incomplete_reservation_is_refused() {
    let cloud = Cloud::shared();
    stage(&cloud, "reserve-form");
    let offered = results(&cloud, "reserve-form", "one");
    let whole = json!({"requester": system("reserve-form-one", 9951), "orList": offered, "selected": offered[0]});
    let bad = |path: &'static str, body: Value| Row::post(body.to_string(), path, &body).bad_payload(path);
    check(
        &cloud,
        &[
            bad(LOCK, without(whole.clone(), "/requester")),
            bad(LOCK, with(whole.clone(), "/requester/systemName", " ")),
            bad(LOCK, without(whole.clone(), "/requester/port")),
            bad(LOCK, with(whole.clone(), "/orList", json!([{"provider": {"id": 1}}]))),
            bad(RESERVATIONS, without(whole.clone(), "/requester")),
            bad(RESERVATIONS, without(whole.clone(), "/selected")),
            bad(RESERVATIONS, with(whole.clone(), "/selected", json!({"service": {"id": 1}}))),
            Row::post("nothing to lock", LOCK, &with(whole.clone(), "/orList", Value::Null)).is("", json!({"response": []})),
            Row::post("a provider that is not", RESERVATIONS, &with(whole, "/selected/provider/id", 999_999_999)).invalid_parameter(),
        ],
    );
}

#[test]
fn a_proxy_is_not_asked_for_rules() {
    let cloud = Cloud::shared();
    cloud.register(&service("proxy-ask", system("proxy-provider", 9952)));
    cloud.register_system("proxy-consumer", 9952);
    let form = |flags: Value| {
        json!({"requesterSystem": system("proxy-consumer", 9952), "orchestrationFlags": flags,
        "requestedService": {"serviceDefinitionRequirement": "proxy-ask", "interfaceRequirements": ["HTTP-INSECURE-JSON"]}})
    };
    let dynamic = form(json!({"overrideStore": true, "externalServiceRequest": true}));
    check(
        &cloud,
        &[
            Row::post("the consumer itself", ORCHESTRATION, &form(json!({"overrideStore": true}))).is("/response", json!([])),
            Row::post("a proxy, whatever the external flag says", PROXY, &dynamic)
                .has_length("/response", 1)
                .is("/response/0/provider/systemName", "proxy-provider"),
            Row::post("from the store", PROXY, &form(json!({}))).is("/response", json!([])),
            Row::post("to other clouds", PROXY, &form(json!({"overrideStore": true, "triggerInterCloud": true})))
                .bad_payload(PROXY)
                .saying_last("NO GATEKEEPER mode."),
            Row::post("without a requester", PROXY, &without(dynamic, "/requesterSystem")).bad_payload(PROXY),
        ],
    );
}
