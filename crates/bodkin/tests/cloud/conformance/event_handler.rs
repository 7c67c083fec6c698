//! Event Handler: publish, subscribe, unsubscribe and their management (reference sections 6, 6.1 and 6.2).

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{event, list, number, subscription, system, texts, with, without};
use crate::support::cloud::Cloud;
use crate::support::instant::utc;

const PUBLISH: &str = "/eventhandler/publish";
const SUBSCRIBE: &str = "/eventhandler/subscribe";
const SUBSCRIPTIONS: &str = "/eventhandler/mgmt/subscriptions";

fn after(seconds: u64) -> String {
    utc(SystemTime::now() + Duration::from_secs(seconds))
}

fn before(seconds: u64) -> String {
    utc(SystemTime::now() - Duration::from_secs(seconds))
}

/// The subscriptions of one subscriber.
fn subscriptions_of(cloud: &Cloud, name: &str) -> Vec<Value> {
    let all = cloud.get(SUBSCRIPTIONS).expect_status(200).json();
    list(&all, "/data").iter().filter(|row| row["subscriberSystem"]["systemName"] == name).cloned().collect()
}

#[test]
fn a_publish_with_nobody_to_notify_is_answered_without_a_body() {
    let cloud = Cloud::shared();
    cloud.register_system("publish-alone", 9901);
    let event = event("publish-alone", system("publish-alone", 9901), "x");
    check(
        &cloud,
        &[
            Row::post("bare", PUBLISH, &event).void(),
            Row::post("source in any case", PUBLISH, &with(event.clone(), "/source", system(" Publish-ALONE ", 9901))).void(),
            Row::post("with a time", PUBLISH, &with(event.clone(), "/timeStamp", after(0))).void(),
            Row::post("with a fraction", PUBLISH, &with(event.clone(), "/timeStamp", after(0).replace('Z', ".123456Z"))).void(),
            Row::post("with a blank time", PUBLISH, &with(event.clone(), "/timeStamp", " ")).void(),
            Row::post("with metadata", PUBLISH, &with(event.clone(), "/metaData", json!({"a": "b"}))).void(),
            Row::post("with null metadata", PUBLISH, &with(event, "/metaData", Value::Null)).void(),
        ],
    );
}

#[test]
fn a_wrong_publish_is_refused() {
    let cloud = Cloud::shared();
    cloud.register_system("publish-wrong", 9902);
    let event = event("publish-wrong", system("publish-wrong", 9902), "x");
    let rows = [
        ("no type", without(event.clone(), "/eventType")),
        ("blank type", with(event.clone(), "/eventType", " ")),
        ("no payload", without(event.clone(), "/payload")),
        ("blank payload", with(event.clone(), "/payload", " ")),
        ("no source", without(event.clone(), "/source")),
        ("null source", with(event.clone(), "/source", Value::Null)),
        ("source without a name", without(event.clone(), "/source/systemName")),
        ("source with a blank name", with(event.clone(), "/source/systemName", " ")),
        ("source without an address", without(event.clone(), "/source/address")),
        ("source without a port", without(event.clone(), "/source/port")),
    ];
    check(&cloud, &rows.map(|(claim, body)| Row::post(claim, PUBLISH, &body).bad_payload(PUBLISH)));
    let times = [
        ("unparsable time", with(event.clone(), "/timeStamp", "now")),
        ("ten minutes ago", with(event.clone(), "/timeStamp", before(600))),
        ("in ten minutes", with(event.clone(), "/timeStamp", after(600))),
    ];
    check(&cloud, &times.map(|(claim, body)| Row::post(claim, PUBLISH, &body).refused_as_any(400)));
    let stranger = with(event.clone(), "/source/systemName", "publish-nobody");
    let elsewhere = with(event, "/source/port", 9903);
    check(
        &cloud,
        &[
            Row::post("unregistered source", PUBLISH, &stranger).invalid_parameter(),
            Row::post("source on another port", PUBLISH, &elsewhere).invalid_parameter(),
        ],
    );
}

#[test]
fn a_time_within_the_tolerance_is_accepted_either_way() {
    let cloud = Cloud::shared();
    cloud.register_system("publish-tolerance", 9904);
    let event = event("publish-tolerance", system("publish-tolerance", 9904), "x");
    check(
        &cloud,
        &[
            Row::post("100 s ago", PUBLISH, &with(event.clone(), "/timeStamp", before(100))).void(),
            Row::post("in 100 s", PUBLISH, &with(event, "/timeStamp", after(100))).void(),
        ],
    );
}

#[test]
fn a_wrong_subscription_is_refused_and_leaves_nothing() {
    let cloud = Cloud::shared();
    cloud.register_system("sub-wrong", 9905);
    let good = subscription("sub-wrong", system("sub-wrong", 9905), "/notify");
    let rows = [
        ("no type", without(good.clone(), "/eventType")),
        ("blank type", with(good.clone(), "/eventType", " ")),
        ("no URI", without(good.clone(), "/notifyUri")),
        ("blank URI", with(good.clone(), "/notifyUri", " ")),
        ("no subscriber", without(good.clone(), "/subscriberSystem")),
        ("subscriber without a name", without(good.clone(), "/subscriberSystem/systemName")),
        ("subscriber without an address", without(good.clone(), "/subscriberSystem/address")),
        ("subscriber without a port", without(good.clone(), "/subscriberSystem/port")),
        ("matching without a filter", with(good.clone(), "/matchMetaData", true)),
    ];
    check(&cloud, &rows.map(|(claim, body)| Row::post(claim, SUBSCRIBE, &body).bad_payload(SUBSCRIBE)));
    let dates = [
        ("unparsable start", with(good.clone(), "/startDate", "today")),
        ("unparsable end", with(good.clone(), "/endDate", "tomorrow")),
        ("start long past", with(good.clone(), "/startDate", before(600))),
        ("end long past", with(good.clone(), "/endDate", before(600))),
        ("end before start", with(with(good.clone(), "/startDate", after(600)), "/endDate", after(300))),
        ("end equal to start", with(with(good.clone(), "/startDate", "2035-01-01T00:00:00Z"), "/endDate", "2035-01-01T00:00:00Z")),
    ];
    check(&cloud, &dates.map(|(claim, body)| Row::post(claim, SUBSCRIBE, &body).invalid_parameter()));
    let port = with(good.clone(), "/subscriberSystem/port", 0);
    check(&cloud, &[Row::post("port 0", SUBSCRIBE, &port).invalid_parameter()]);
    let unknown = [
        ("unregistered subscriber", with(good.clone(), "/subscriberSystem/systemName", "sub-nobody")),
        ("unregistered source", with(good, "/sources", json!([system("sub-nobody", 1)]))),
    ];
    check(&cloud, &unknown.map(|(claim, body)| Row::post(claim, SUBSCRIBE, &body).refused_as_any(400)));
    assert_eq!(subscriptions_of(&cloud, "sub-wrong"), Vec::<Value>::new());
}

#[test]
fn a_subscription_is_read_with_its_nulls() {
    let cloud = Cloud::shared();
    let id = cloud.register_system("sub-read", 9906);
    cloud.register_system("sub-read-source", 9906);
    check(&cloud, &[Row::post("subscribe", SUBSCRIBE, &subscription("sub-Read", system("SUB-read", 9906), "/n?a=b")).void()]);
    let rows = subscriptions_of(&cloud, "sub-read");
    assert_eq!(rows.len(), 1);
    let target = format!("{SUBSCRIPTIONS}/{}", number(&rows[0], "/id"));
    assert_eq!(cloud.get(&target).json(), rows[0]);
    let mut members: Vec<&str> = rows[0].as_object().expect("an object").keys().map(String::as_str).collect();
    members.sort_unstable();
    let expected = [
        "createdAt",
        "endDate",
        "eventType",
        "filterMetaData",
        "id",
        "matchMetaData",
        "notifyUri",
        "sources",
        "startDate",
        "subscriberSystem",
        "updatedAt",
    ];
    assert_eq!(members, expected, "null members are kept");
    check(
        &cloud,
        &[Row::get("read", target)
            .is("/eventType/eventTypeName", "SUB-READ")
            .has("/eventType/id")
            .has("/eventType/createdAt")
            .is("/subscriberSystem/id", id)
            .is("/notifyUri", "/n?a=b")
            .is("/matchMetaData", false)
            .is("/startDate", Value::Null)
            .is("/endDate", Value::Null)],
    );
}

#[test]
fn a_new_subscription_replaces_the_old_one() {
    let cloud = Cloud::shared();
    cloud.register_system("sub-replace", 9907);
    cloud.register_system("sub-replace-source", 9907);
    let first = subscription("sub-replace", system("sub-replace", 9907), "/first");
    cloud.subscribe(&first);
    let mut second = with(first.clone(), "/notifyUri", "/second");
    second = with(with(second, "/filterMetaData", json!({"a": "b"})), "/matchMetaData", true);
    second = with(with(second, "/startDate", "2034-01-01T00:00:00Z"), "/endDate", "2035-01-01T00:00:00Z");
    second = with(second, "/sources", json!([system("sub-replace-source", 9907)]));
    second = with(second, "/eventType", "SUB-Replace");
    check(&cloud, &[Row::post("again, in another case", SUBSCRIBE, &second).void()]);
    let rows = subscriptions_of(&cloud, "sub-replace");
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!((&row["notifyUri"], &row["matchMetaData"]), (&json!("/second"), &json!(true)));
    assert_eq!(row["filterMetaData"], json!({"a": "b"}));
    assert_eq!((&row["startDate"], &row["endDate"]), (&json!("2034-01-01T00:00:00Z"), &json!("2035-01-01T00:00:00Z")));
    assert_eq!(texts(list(row, "/sources"), "/systemName"), ["sub-replace-source"]);
    cloud.subscribe(&with(first, "/eventType", "sub-replace-other"));
    assert_eq!(subscriptions_of(&cloud, "sub-replace").len(), 2, "another event type is another subscription");
}

#[test]
fn unsubscribing_is_answered_alike_whether_or_not_there_was_something() {
    let cloud = Cloud::shared();
    cloud.register_system("sub-end", 9908);
    cloud.subscribe(&subscription("sub-end", system("sub-end", 9908), "/notify"));
    let target = |event_type: &str, name: &str| {
        format!("/eventhandler/unsubscribe?event_type={event_type}&system_name={name}&address=127.0.0.1&port=9908")
    };
    check(
        &cloud,
        &[
            Row::delete("another type", target("sub-end-no-such", "sub-end")).void(),
            Row::delete("another system", target("sub-end", "sub-nobody")).void(),
        ],
    );
    assert_eq!(subscriptions_of(&cloud, "sub-end").len(), 1);
    check(&cloud, &[Row::delete("in any case", target("Sub-End", "SUB-end")).void()]);
    assert_eq!(subscriptions_of(&cloud, "sub-end").len(), 0);
    check(&cloud, &[Row::delete("again", target("sub-end", "sub-end")).void()]);
}

#[test]
fn a_managed_subscription_is_deleted_and_a_missing_one_is_no_error() {
    let cloud = Cloud::shared();
    cloud.register_system("sub-managed", 9909);
    cloud.subscribe(&subscription("sub-managed", system("sub-managed", 9909), "/notify"));
    let id = number(&subscriptions_of(&cloud, "sub-managed")[0], "/id");
    let target = format!("{SUBSCRIPTIONS}/{id}");
    check(
        &cloud,
        &[
            Row::delete("delete", &target).void(),
            Row::get("it is gone", &target).invalid_parameter(),
            Row::delete("delete again", &target).void(),
            Row::get("id 0", format!("{SUBSCRIPTIONS}/0")).bad_payload(format!("{SUBSCRIPTIONS}/{{id}}")),
            Row::delete("id 0", format!("{SUBSCRIPTIONS}/0")).bad_payload(format!("{SUBSCRIPTIONS}/{{id}}")),
        ],
    );
}
