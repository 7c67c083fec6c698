//! Whether services are still there: states, probes, and what is removed when the operator chose that (reference section 14).

use std::net::TcpListener;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{list, number, service, subscription, system, with};
use crate::support::cloud::{Cloud, Launch};
use crate::support::instant::utc;
use crate::support::patience::eventually;
use crate::support::ports::held_port;

const PAST: &str = "2001-01-01T00:00:00Z";
const FUTURE: &str = "2099-01-01T00:00:00Z";

/// What is known of a service.
fn life(cloud: &Cloud, id: i64) -> Option<Value> {
    let answer = cloud.get("/api/v1/services").expect_status(200).json();
    assert_eq!(number(&answer, "/count"), list(&answer, "/data").len() as i64);
    list(&answer, "/data").iter().find(|row| row["id"] == id).cloned()
}

fn state(cloud: &Cloud, id: i64) -> String {
    life(cloud, id).map_or("gone".into(), |life| life["state"].as_str().expect("a word").to_owned())
}

fn ending(name: &str, port: u16, end: &str) -> Value {
    with(service(name, system(name, port)), "/endOfValidity", end)
}

/// A port that nobody listens on.
#[test]
fn by_default_states_are_shown_and_nothing_is_probed_or_removed() {
    let cloud = Launch::new().start();
    let id = |entry: &Value| number(entry, "/id");
    let plain = cloud.register(&with(service("life-plain", system("life-plain", held_port())), "/serviceUri", "/x"));
    let (valid, over) = (cloud.register(&ending("life-valid", 9701, FUTURE)), cloud.register(&ending("life-over", 9702, PAST)));
    let unknown = json!({"id": id(&plain), "serviceDefinition": "life-plain", "provider": plain["provider"], "serviceUri": "/x",
        "endOfValidity": null, "state": "unknown", "lastProbeAt": null, "lastProbe": null,
        "unreachableSince": null, "deregisterAt": null});
    assert_eq!(life(&cloud, id(&plain)), Some(unknown));
    let fresh = life(&cloud, id(&valid)).expect("it is there");
    assert_eq!((&fresh["state"], &fresh["endOfValidity"], &fresh["deregisterAt"]), (&json!("fresh"), &json!(FUTURE), &Value::Null));
    let expired = life(&cloud, id(&over)).expect("it is there");
    assert_eq!((&expired["state"], &expired["endOfValidity"], &expired["deregisterAt"]), (&json!("expired"), &json!(PAST), &Value::Null));
    let page = cloud.get("/api/v1/services?page=1&item_per_page=2").expect_status(200).json();
    assert_eq!(list(&page, "/data").len(), 2);
    assert_eq!(cloud.get("/api/v1/services?page=1").expect_status(400).json()["status"], 400);
    assert_eq!(cloud.get("/api/v1/services?page=x&item_per_page=1").expect_status(400).json()["status"], 400);
}

#[test]
fn services_past_their_end_go_when_that_is_scheduled() {
    let cloud = Launch::new().flags(["--ttl-scheduled", "--deregister-after-s", "3600"]).start();
    let valid = cloud.register(&ending("ttl-valid", 9703, FUTURE));
    assert_eq!(life(&cloud, number(&valid, "/id")).expect("it is there")["deregisterAt"], FUTURE);
    let data = tempfile::tempdir().expect("a temporary directory");
    let before = Launch::new().data(data.path()).start();
    let over: Vec<Value> = (0..300).map(|index| before.register(&ending(&format!("ttl-over-{index}"), 9704, PAST))).collect();
    let stays = before.register(&ending("ttl-stays", 9704, FUTURE));
    before.stop();
    let after = Launch::new().data(data.path()).flags(["--ttl-scheduled"]).start();
    assert!(eventually(|| over.iter().all(|entry| after.get(&format!("/serviceregistry/mgmt/{}", number(entry, "/id"))).status == 400)));
    let row = Row::get("a valid one stays", format!("/serviceregistry/mgmt/{}", number(&stays, "/id")));
    check(&after, &[row, Row::get("its provider too", format!("/serviceregistry/mgmt/systems/{}", number(&stays, "/provider/id")))]);
    assert!(eventually(|| after.get("/serviceregistry/mgmt/logs?logger=job").text().contains("past their end of validity were removed")));
}

#[test]
fn who_does_not_accept_is_shown_and_stays() {
    let cloud = Launch::new().flags(["--probe-services", "--ping-timeout-ms", "500"]).start();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let open_port = listener.local_addr().expect("an address").port();
    let open = number(&cloud.register(&service("probe-open", system("probe-open", open_port))), "/id");
    let closed = number(&cloud.register(&service("probe-closed", system("probe-closed", held_port()))), "/id");
    assert!(eventually(|| state(&cloud, open) == "fresh" && state(&cloud, closed) == "unreachable"));
    let (open, closed) = (life(&cloud, open).expect("it is there"), life(&cloud, closed).expect("it stays"));
    assert_eq!((&open["lastProbe"], &open["unreachableSince"]), (&json!("reachable"), &Value::Null));
    assert_eq!((&closed["lastProbe"], &closed["unreachableSince"]), (&json!("unreachable"), &closed["lastProbeAt"]));
    assert_eq!(closed["deregisterAt"], Value::Null);
}

#[test]
fn who_does_not_accept_goes_when_pings_are_scheduled() {
    let cloud = Launch::new().flags(["--ping-scheduled", "--ping-timeout-ms", "500"]).start();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let open_port = listener.local_addr().expect("an address").port();
    let open = number(&cloud.register(&service("ping-open", system("ping-open", open_port))), "/id");
    let closed = cloud.register(&service("ping-closed", system("ping-closed", held_port())));
    assert!(eventually(|| state(&cloud, open) == "fresh" && state(&cloud, number(&closed, "/id")) == "gone"));
    let row = Row::get("its system stays", format!("/serviceregistry/mgmt/systems/{}", number(&closed, "/provider/id")));
    check(
        &cloud,
        &[
            row,
            Row::post("core services stay", "/serviceregistry/query", &json!({"serviceDefinitionRequirement": "service-register"}))
                .is("/unfilteredHits", 1),
        ],
    );
}

#[test]
fn what_is_stale_goes_after_the_time_that_was_chosen() {
    let cloud = Launch::new().flags(["--probe-services", "--ping-timeout-ms", "500", "--deregister-after-s", "2"]).start();
    let closed = number(&cloud.register(&service("stale-closed", system("stale-closed", held_port()))), "/id");
    let over = number(&cloud.register(&ending("stale-over", held_port(), PAST)), "/id");
    assert!(eventually(|| matches!(state(&cloud, closed).as_str(), "unreachable" | "gone")));
    if let Some(life) = life(&cloud, closed) {
        assert!(life["deregisterAt"].is_string(), "{life}");
    }
    assert!(eventually(|| state(&cloud, closed) == "gone" && state(&cloud, over) == "gone"));
}

#[test]
fn subscriptions_past_their_end_go_when_that_is_scheduled() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let before = Launch::new().data(data.path()).start();
    before.register_system("life-subscriber", 9705);
    let end = SystemTime::now() + Duration::from_secs(2);
    before.subscribe(&with(subscription("life-ending", system("life-subscriber", 9705), "/notify"), "/endDate", utc(end)));
    before.subscribe(&subscription("life-staying", system("life-subscriber", 9705), "/notify"));
    before.stop();
    let names = |cloud: &Cloud| -> Vec<String> {
        let answer = cloud.get("/eventhandler/mgmt/subscriptions").expect_status(200).json();
        list(&answer, "/data").iter().map(|row| row["eventType"]["eventTypeName"].as_str().expect("a name").to_owned()).collect()
    };
    let unscheduled = Launch::new().data(data.path()).start();
    assert!(eventually(|| SystemTime::now() > end + Duration::from_secs(1)));
    assert_eq!(names(&unscheduled).len(), 2, "nothing goes unless that is chosen");
    unscheduled.stop();
    let scheduled = Launch::new().data(data.path()).flags(["--event-handler-ttl-scheduled"]).start();
    assert!(eventually(|| names(&scheduled) == ["LIFE-STAYING"]));
}

#[test]
fn an_interval_of_nothing_is_refused_at_start() {
    let refusal = Launch::new().flags(["--ttl-interval-min", "0"]).try_start().err().expect("it does not start");
    assert!(refusal.stderr.contains("ttl_interval_min must be at least 1"), "{}", refusal.stderr);
}
