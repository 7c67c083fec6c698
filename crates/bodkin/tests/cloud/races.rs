//! Many at once end in exactly the rows that one after the other would have made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Barrier, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, subscription, system, texts, with};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Answer;
use crate::support::random::Random;

/// Connections that send at the same time.
const CONNECTIONS: usize = 64;

const SYSTEMS: usize = 50;
const DEFINITIONS: usize = 25;
const URIS: [&str; 2] = ["", "/second"];
/// How often each (definition, system, URI) is registered: 50 * 25 * 2 * 4 = 10,000.
const COPIES: usize = 4;

/// Sends every body to `target` over `CONNECTIONS` connections released together; answers in the order of `bodies`.
fn post_together(cloud: &Cloud, system: System, target: &str, bodies: &[Value]) -> Vec<Answer> {
    let barrier = Barrier::new(CONNECTIONS);
    let answers = Mutex::new(Vec::with_capacity(bodies.len()));
    thread::scope(|scope| {
        for first in 0..CONNECTIONS {
            let (barrier, answers) = (&barrier, &answers);
            scope.spawn(move || {
                let mut connection = cloud.connect(system);
                barrier.wait();
                for (index, body) in bodies.iter().enumerate().skip(first).step_by(CONNECTIONS) {
                    let bytes = body.to_string();
                    let headers = [("Content-Type", "application/json")];
                    let answer = connection.request("POST", target, &headers, Some(bytes.as_bytes())).expect("an answer");
                    answers.lock().expect("no thread panics while it holds this").push((index, answer));
                }
            });
        }
    });
    let mut answers = answers.into_inner().expect("no thread panicked");
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// (definition, system, URI)
type Triple = (String, String, String);

fn triple_of(entry: &Value) -> Triple {
    let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str).expect("text").to_string();
    (text("/serviceDefinition/serviceDefinition"), text("/provider/systemName"), text("/serviceUri"))
}

fn colliding_requests() -> Vec<(Triple, Value)> {
    let mut requests = Vec::new();
    for copy in 0..SYSTEMS * DEFINITIONS * URIS.len() * COPIES {
        let (name, rest) = (format!("race-s-{}", copy % SYSTEMS), copy / SYSTEMS);
        let (definition, rest) = (format!("race-d-{}", rest % DEFINITIONS), rest / DEFINITIONS);
        let uri = URIS[rest % URIS.len()].to_string();
        let body = with(service(&definition, system(&name, 10_000)), "/serviceUri", uri.as_str());
        requests.push(((definition, name, uri), body));
    }
    Random::from_environment("order of the registrations").shuffle(&mut requests);
    requests
}

#[test]
fn ten_thousand_colliding_registrations_end_in_one_row_for_each_distinct_one() {
    let cloud = Launch::new().start();
    let requests = colliding_requests();
    assert_eq!(requests.len(), 10_000);
    let bodies: Vec<Value> = requests.iter().map(|(_, body)| body.clone()).collect();
    let answers = post_together(&cloud, System::ServiceRegistry, "/serviceregistry/register", &bodies);

    let mut won: BTreeMap<&Triple, i64> = BTreeMap::new();
    for ((triple, _), answer) in requests.iter().zip(&answers) {
        let body = answer.json();
        if answer.status == 201 {
            assert_eq!(&triple_of(&body), triple, "the answer is of the request");
            assert_eq!(won.insert(triple, number(&body, "/id")), None, "{triple:?} was registered twice");
        } else {
            assert_eq!((answer.status, &body["exceptionType"]), (400, &json!("INVALID_PARAMETER")), "{body}");
        }
    }
    let distinct: BTreeSet<&Triple> = requests.iter().map(|(triple, _)| triple).collect();
    assert_eq!(won.keys().copied().collect::<BTreeSet<_>>(), distinct, "each was registered once");

    let rows = cloud.get("/serviceregistry/mgmt").expect_status(200).json();
    let raced: BTreeMap<Triple, i64> = list(&rows, "/data")
        .iter()
        .map(|row| (triple_of(row), number(row, "/id")))
        .filter(|(triple, _)| distinct.contains(triple))
        .collect();
    assert_eq!(raced, won.into_iter().map(|(triple, id)| (triple.clone(), id)).collect(), "rows are the answers");
    let ids: BTreeSet<i64> = list(&rows, "/data").iter().map(|row| number(row, "/id")).collect();
    assert_eq!(ids.len(), list(&rows, "/data").len(), "ids are unique");
    assert_eq!(number(&rows, "/count"), ids.len() as i64);

    no_name_is_doubled(&cloud.get("/serviceregistry/mgmt/systems").json(), "/systemName", "race-s-", SYSTEMS);
    no_name_is_doubled(&cloud.get("/serviceregistry/mgmt/services").json(), "/serviceDefinition", "race-d-", DEFINITIONS);
}

#[track_caller]
fn no_name_is_doubled(rows: &Value, pointer: &str, prefix: &str, expected: usize) {
    let mut names = texts(list(rows, "/data"), pointer);
    names.retain(|name| name.starts_with(prefix));
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!((names.len(), distinct.len()), (expected, expected), "{prefix}");
}

#[test]
fn one_rule_inserted_by_all_at_once_is_created_once() {
    let cloud = Launch::new().start();
    let consumer = cloud.register_system("race-consumer", 1);
    let mut bodies = Vec::new();
    for which in 0..8 {
        let entry = cloud.register(&service(&format!("race-rule-{which}"), system(&format!("race-rule-{which}"), 1)));
        let rule = json!({"consumerId": consumer, "providerIds": [number(&entry, "/provider/id")],
            "serviceDefinitionIds": [number(&entry, "/serviceDefinition/id")], "interfaceIds": [INSECURE_JSON_ID]});
        bodies.extend(vec![rule; CONNECTIONS]);
    }
    let answers = post_together(&cloud, System::Authorization, "/authorization/mgmt/intracloud", &bodies);
    let created: i64 = answers.into_iter().map(|answer| number(&answer.expect_status(201).json(), "/count")).sum();
    assert_eq!(created, 8);
    assert_eq!(number(&cloud.get("/authorization/mgmt/intracloud").json(), "/count"), 8);
}

#[test]
fn no_entry_outlives_a_system_that_is_unregistered_meanwhile() {
    let cloud = Launch::new().start();
    let barrier = Barrier::new(CONNECTIONS);
    thread::scope(|scope| {
        for participant in 0..CONNECTIONS {
            let (cloud, barrier) = (&cloud, &barrier);
            scope.spawn(move || {
                let mut connection = cloud.connect(System::ServiceRegistry);
                barrier.wait();
                for turn in 0..40 {
                    let name = format!("race-gone-{}", turn % 4);
                    let answer = if participant % 2 == 0 {
                        let body = service(&format!("race-gone-{participant}"), system(&name, 1)).to_string();
                        let headers = [("Content-Type", "application/json")];
                        connection.request("POST", "/serviceregistry/register", &headers, Some(body.as_bytes()))
                    } else {
                        let target = format!("/serviceregistry/unregister-system?system_name={name}&address=127.0.0.1&port=1");
                        connection.request("DELETE", &target, &[], None)
                    };
                    let status = answer.expect("an answer").status;
                    assert!(matches!(status, 200 | 201 | 400), "{status}");
                }
            });
        }
    });
    let ids = |target: &str, pointer: &str| -> BTreeSet<i64> {
        let rows = cloud.get(target).expect_status(200).json();
        list(&rows, "/data").iter().map(|row| number(row, pointer)).collect()
    };
    let (systems, providers) = (ids("/serviceregistry/mgmt/systems", "/id"), ids("/serviceregistry/mgmt", "/provider/id"));
    assert!(providers.is_subset(&systems), "entries of {:?} outlived them", providers.difference(&systems));
}

#[test]
fn one_subscription_made_by_all_at_once_is_one_row_of_one_of_them() {
    let cloud = Launch::new().start();
    cloud.register_system("race-subscriber", 1);
    let bodies: Vec<Value> =
        (0..4 * CONNECTIONS).map(|index| subscription("race", system("race-subscriber", 1), &format!("/{index}"))).collect();
    let answers = post_together(&cloud, System::EventHandler, "/eventhandler/subscribe", &bodies);
    assert!(answers.iter().all(|answer| answer.status == 200));
    let rows = cloud.get("/eventhandler/mgmt/subscriptions").json();
    assert_eq!(number(&rows, "/count"), 1, "{rows}");
    let kept = rows["data"][0]["notifyUri"].as_str().and_then(|uri| uri[1..].parse::<usize>().ok());
    assert!(kept.is_some_and(|index| index < bodies.len()), "{rows}");
}
