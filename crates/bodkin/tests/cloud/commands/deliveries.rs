//! What `bodkin event list|show|replace|pause|resume|dead` ask of Event Handler and Bodkin's own port.

use serde_json::{Value, json};

use super::{asked, has_row, lines};
use crate::support::arrowhead::with;
use crate::support::double::{Double, Row};

fn display() -> Value {
    json!({"id": 4, "systemName": "display", "address": "127.0.0.1", "port": 9001})
}

fn delivery(state: &str) -> Value {
    json!({"id": 7, "eventType": "HOT", "subscriber": display(), "notifyUri": "/hot", "state": state, "delivered": 12, "attempts": 15,
        "failures": 3, "lost": 1, "deadLetters": 2, "behind": null, "consecutiveFailures": 3, "lastSuccessAt": null,
        "lastFailureAt": "2026-01-01T00:00:00Z", "lastError": "connection refused", "nextAttemptAt": "2026-01-01T00:00:05Z"})
}

fn subscription() -> Value {
    json!({"id": 7, "eventType": {"id": 1, "eventTypeName": "HOT"}, "subscriberSystem": display(), "filterMetaData": null, "notifyUri": "/hot",
        "matchMetaData": false, "startDate": null, "endDate": null, "sources": [], "createdAt": "2026-01-01T00:00:00Z"})
}

fn table() -> Vec<Row> {
    let dead = json!({"id": 1, "subscription": 7, "eventId": "1-2-3-4", "eventType": "HOT", "publishedAt": "2026-01-01T00:00:00Z", "attempts": 9,
        "reason": "410 Gone", "diedAt": "2026-01-01T00:01:00Z",
        "event": {"eventType": "hot", "metaData": null, "payload": "21.5", "timeStamp": "2026-01-01T00:00:00Z"}});
    let types = json!([{"eventType": "HOT", "published": 14, "subscriptions": 1, "streams": 0, "durable": true}]);
    vec![
        ("GET /api/v1/event-types", 200, json!({"data": types, "count": 1})),
        ("GET /api/v1/subscriptions", 200, json!({"data": [delivery("retrying")], "count": 1})),
        ("GET /api/v1/subscriptions/7", 200, delivery("retrying")),
        ("POST /api/v1/subscriptions/7/pause", 200, delivery("paused")),
        ("POST /api/v1/subscriptions/7/resume", 200, delivery("live")),
        ("GET /api/v1/dead-letters", 200, json!({"data": [dead], "count": 1})),
        ("GET /api/v1/dead-letters?subscription=7&page=1&item_per_page=5", 200, json!({"data": [], "count": 1})),
        ("POST /api/v1/dead-letters/replay", 200, json!({"replayed": 2, "failed": 1, "remaining": 1, "elsewhere": 0})),
        ("POST /api/v1/dead-letters/replay?subscription=7", 200, json!({"replayed": 2, "failed": 0, "remaining": 0, "elsewhere": 0})),
        ("DELETE /api/v1/dead-letters?subscription=7", 200, json!({"removed": 2})),
        ("GET /eventhandler/mgmt/subscriptions/7", 200, subscription()),
        ("PUT /eventhandler/mgmt/subscriptions/7", 200, with(subscription(), "/notifyUri", "/new")),
        ("GET /serviceregistry/mgmt/systems/4", 200, display()),
    ]
}

#[test]
fn event_types_and_deliveries_are_listed() {
    let double = Double::start(table());
    let (told, _) = asked(&double, "event list", 0);
    has_row(&told, &["HOT", "14", "yes"]);
    has_row(&told, &["7", "HOT", "display", "127.0.0.1:9001/hot", "retrying", "12", "unknown", "connection refused"]);
    let (document, _) = asked(&double, "--output json event list", 0);
    let document: Value = serde_json::from_str(&document).expect("one JSON document");
    assert_eq!((&document["eventTypes"][0]["published"], &document["subscriptions"][0]["id"]), (&json!(14), &json!(7)));
}

#[test]
fn a_delivery_is_shown_paused_and_resumed() {
    let double = Double::start(table());
    let (told, _) = asked(&double, "event show 7", 0);
    for line in [&["posted to", "/hot"], &["state", "retrying"], &["last error", "connection refused"], &["next attempt", "00:00:05Z"]] {
        has_row(&told, line);
    }
    let (told, requests) = asked(&double, "event pause 7", 0);
    assert_eq!((told.trim(), lines(&requests)), ("subscription 7 of display is paused", vec!["POST /api/v1/subscriptions/7/pause"]));
    assert_eq!(asked(&double, "event resume 7", 0).0.trim(), "subscription 7 of display is live");
    asked(&double, "event pause 8", 1);
}

#[test]
fn a_subscription_is_replaced_as_a_whole() {
    let double = Double::start(table());
    let (told, requests) = asked(&double, "event replace 7 HOT --system 4 --notify-uri /new --severity warning", 0);
    assert!(told.contains("replaced: subscription 7: display to HOT"), "{told}");
    let form = &requests.last().expect("a PUT").body;
    assert_eq!((&form["notifyUri"], &form["minSeverity"], &form["matchMetaData"]), (&json!("/new"), &json!("Warning"), &json!(false)));
}

#[test]
fn a_dead_letter_without_its_payload_or_event_is_listed() {
    let letter = |event: Value, withheld: Value| {
        let told = |of: &str| if event.is_null() { Value::Null } else { json!(of) };
        json!({"id": 1, "subscription": 7, "eventId": told("1-2-3-4"), "eventType": told("HOT"), "publishedAt": told("2026-01-01T00:00:00Z"),
            "attempts": 9, "reason": "410 Gone", "diedAt": "2026-01-01T00:01:00Z", "event": event, "payloadWithheldBytes": withheld})
    };
    let withheld = json!({"eventType": "hot", "metaData": null, "payload": null, "timeStamp": "2026-01-01T00:00:00Z"});
    let letters = [letter(withheld, json!(4)), letter(Value::Null, Value::Null)];
    let double = Double::start(vec![("GET /api/v1/dead-letters", 200, json!({"data": letters, "count": 2}))]);
    let told = asked(&double, "event dead list", 0).0;
    has_row(&told, &["HOT", "410 Gone", "(4 bytes, for subscribers)"]);
    has_row(&told, &["410 Gone", "(not kept any more)"]);
}

#[test]
fn dead_letters_are_listed_replayed_and_removed() {
    let double = Double::start(table());
    has_row(&asked(&double, "event dead list", 0).0, &["1", "7", "HOT", "410 Gone", "21.5"]);
    assert!(asked(&double, "event dead list --subscription 7 --page 1 --rows 5", 0).0.contains("no dead letters"));
    assert!(asked(&double, "event dead replay --all", 1).0.contains("2 were taken, 1 failed again, 1 are left"));
    asked(&double, "event dead replay --subscription 7", 0);
    assert!(asked(&double, "event dead remove --subscription 7", 0).0.contains("removed: 2 dead letters"));
    asked(&double, "event dead replay", 2);
}
