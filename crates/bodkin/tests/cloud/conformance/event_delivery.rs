//! Event Handler: who gets which event, and in what form (reference sections 6.1 to 6.4).

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::arrowhead::{INSECURE_JSON_ID, event, subscription, system, with};
use crate::support::cloud::Cloud;
use crate::support::instant::utc;
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};

/// A publisher, a push subscriber and the rule that lets the one hear the other.
struct Scene<'a> {
    cloud: &'a Cloud,
    name: &'a str,
    listener: PushSubscriber,
    consumer: i64,
}

impl<'a> Scene<'a> {
    fn new(cloud: &'a Cloud, name: &'a str) -> Self {
        let listener = PushSubscriber::listen(Manner::Answers);
        let consumer = cloud.register_system(&format!("{name}-subscriber"), listener.port());
        let scene = Self { cloud, name, listener, consumer };
        scene.allow("publisher");
        scene
    }

    /// Registers the publisher `name-which` and allows it; gives the id of the rule.
    fn allow(&self, which: &str) -> i64 {
        let (provider, definition) = self.cloud.register_publisher(&format!("{}-{which}", self.name), 9950);
        self.cloud.allow(self.consumer, provider, definition, &[INSECURE_JSON_ID])
    }

    fn subscription(&self) -> Value {
        subscription(self.name, system(&format!("{}-subscriber", self.name), self.listener.port()), "/notify/here")
    }

    fn source(&self, which: &str) -> Value {
        system(&format!("{}-{which}", self.name), 9950)
    }

    fn event(&self, payload: &str) -> Value {
        event(self.name, self.source("publisher"), payload)
    }
}

#[test]
fn a_notification_is_a_post_of_the_event_to_the_notify_uri() {
    let cloud = Cloud::shared();
    let scene = Scene::new(&cloud, "push-form");
    cloud.subscribe(&with(scene.subscription(), "/notifyUri", "/notify/here?a=b"));
    let stamp = utc(SystemTime::now());
    let mut published = with(scene.event("first\n\"quoted\" ö"), "/eventType", "Push-Form");
    published = with(with(published, "/timeStamp", stamp.as_str()), "/metaData", json!({"k": "v"}));
    cloud.publish(&published);
    let first = scene.listener.wait_for_payload("first\n\"quoted\" ö");
    assert_eq!((first.method.as_str(), first.target.as_str()), ("POST", "/notify/here?a=b"));
    assert!(first.header("content-type").is_some_and(|value| value.starts_with("application/json")), "{first:?}");
    let accepted: String =
        first.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("accept")).map(|(_, value)| value.as_str()).collect();
    assert!(accepted.contains("text/plain") && accepted.contains("application/json"), "{accepted}");
    let expected = json!({"eventType": "Push-Form", "metaData": {"k": "v"}, "payload": "first\n\"quoted\" ö", "timeStamp": stamp});
    assert_eq!(first.json(), expected, "the type and time as published");

    cloud.publish(&scene.event("second"));
    let second = scene.listener.wait_for_payload("second").json();
    assert_eq!(second.get("metaData"), Some(&Value::Null), "a null member is kept");
    let stamp = second["timeStamp"].as_str().unwrap_or_default();
    assert!(stamp.starts_with("20") && stamp.ends_with('Z'), "generated: {stamp:?}");
    assert_eq!(scene.listener.connections(), 1, "the connection is kept");
}

#[test]
fn metadata_filters_only_when_matching_is_asked_for() {
    let cloud = Cloud::shared();
    let scene = Scene::new(&cloud, "push-meta");
    let filtered = with(scene.subscription(), "/filterMetaData", json!({"Level": "HIGH"}));
    let publish = |payload: &str, metadata: Value| cloud.publish(&with(scene.event(payload), "/metaData", metadata));
    cloud.subscribe(&filtered);
    publish("unmatched passes", json!({"Level": "low"}));
    scene.listener.wait_for_payload("unmatched passes");

    cloud.subscribe(&with(filtered, "/matchMetaData", true));
    publish("other value", json!({"Level": "low"}));
    publish("other case of key", json!({"level": "HIGH"}));
    publish("no pair", json!({}));
    publish("no metadata", Value::Null);
    publish("other case of value", json!({"Level": "High", "more": "x"}));
    scene.listener.wait_for_payload("other case of value");
    assert_eq!(scene.listener.payloads(), ["unmatched passes", "other case of value"]);
}

#[test]
fn an_event_before_the_start_date_is_not_delivered_and_one_after_is() {
    let cloud = Cloud::shared();
    let scene = Scene::new(&cloud, "push-start");
    let start = SystemTime::now() + Duration::from_secs(2);
    cloud.subscribe(&with(scene.subscription(), "/startDate", utc(start)));
    let start_second = start.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    // The payload is the second of publishing, taken before it is sent.
    let published = eventually(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
        cloud.publish(&scene.event(&now.to_string()));
        scene.listener.count() > 0
    });
    assert!(published, "nothing was delivered after the start date");
    let first: u64 = scene.listener.payloads()[0].parse().expect("a number of seconds");
    // Sent before the second turned, stamped after.
    assert!(first + 1 >= start_second, "delivered {} s early", start_second - first);
}

#[test]
fn a_start_date_a_little_past_does_not_block() {
    let cloud = Cloud::shared();
    let scene = Scene::new(&cloud, "push-started");
    cloud.subscribe(&with(scene.subscription(), "/startDate", utc(SystemTime::now() - Duration::from_secs(60))));
    cloud.publish(&scene.event("through"));
    scene.listener.wait_for_payload("through");
}

#[test]
fn an_event_after_the_end_date_and_its_tolerance_is_not_delivered() {
    let cloud = Cloud::shared();
    let scene = Scene::new(&cloud, "push-end");
    let now = SystemTime::now();
    // The tolerance is 120 s, so this subscription ends 20 s from now.
    cloud.subscribe(&with(scene.subscription(), "/endDate", utc(now - Duration::from_secs(100))));
    let stamped = |payload: &str, time: SystemTime| cloud.publish(&with(scene.event(payload), "/timeStamp", utc(time)));
    stamped("too late", now + Duration::from_secs(60));
    stamped("in time", now);
    scene.listener.wait_for_payload("in time");
    assert_eq!(scene.listener.payloads(), ["in time"]);
}

#[test]
fn only_the_sources_named_are_heard() {
    let cloud = Cloud::shared();
    let scene = Scene::new(&cloud, "push-sources");
    scene.allow("other");
    let other = |payload: &str| cloud.publish(&event(scene.name, scene.source("other"), payload));
    cloud.subscribe(&scene.subscription());
    other("without sources both are heard");
    scene.listener.wait_for_payload("without sources both are heard");
    cloud.subscribe(&with(scene.subscription(), "/sources", json!([scene.source("publisher")])));
    for round in ["one", "two"] {
        other(&format!("other {round}"));
        cloud.publish(&scene.event(round));
        scene.listener.wait_for_payload(round);
    }
    assert_eq!(scene.listener.payloads(), ["without sources both are heard", "one", "two"]);
}

#[test]
fn a_rule_changes_who_is_heard_while_subscribed() {
    let cloud = Cloud::shared();
    let scene = Scene::new(&cloud, "push-rules");
    cloud.subscribe(&scene.subscription());
    let (provider, definition) = cloud.register_publisher("push-rules-late", 9950);
    let late = |payload: &str| cloud.publish(&event(scene.name, scene.source("late"), payload));
    for round in ["one", "two"] {
        late("not yet allowed");
        cloud.publish(&scene.event(round));
        scene.listener.wait_for_payload(round);
    }
    assert_eq!(scene.listener.payloads(), ["one", "two"]);

    let rule = cloud.allow(scene.consumer, provider, definition, &[INSECURE_JSON_ID]);
    let heard = || scene.listener.payloads().iter().any(|payload| payload == "allowed");
    let became_heard = eventually(|| {
        late("allowed");
        heard()
    });
    assert!(became_heard, "the rule did not reach the subscription");

    cloud.delete(&format!("/authorization/mgmt/intracloud/{rule}")).expect_status(200);
    let mut round = 0;
    let fell_silent = eventually(|| {
        round += 1;
        late(&format!("after deletion {round}"));
        cloud.publish(&scene.event(&format!("mark {round}")));
        scene.listener.wait_for_payload(&format!("mark {round}"));
        !scene.listener.payloads().contains(&format!("after deletion {round}"))
    });
    assert!(fell_silent, "the rule's end did not reach the subscription");
}

#[test]
fn a_named_source_is_heard_once_a_rule_allows_it() {
    let cloud = Cloud::shared();
    let scene = Scene::new(&cloud, "push-marked");
    let (provider, definition) = cloud.register_publisher("push-marked-late", 9950);
    let sources = json!([scene.source("publisher"), scene.source("late")]);
    cloud.subscribe(&with(scene.subscription(), "/sources", sources));
    let late = |payload: &str| cloud.publish(&event(scene.name, scene.source("late"), payload));
    for round in ["one", "two"] {
        late("not yet allowed");
        cloud.publish(&scene.event(round));
        scene.listener.wait_for_payload(round);
    }
    assert_eq!(scene.listener.payloads(), ["one", "two"]);
    cloud.allow(scene.consumer, provider, definition, &[INSECURE_JSON_ID]);
    let became_heard = eventually(|| {
        late("allowed");
        scene.listener.payloads().iter().any(|payload| payload == "allowed")
    });
    assert!(became_heard, "the mark of the named source did not change");
}

#[test]
fn a_replaced_or_ended_subscription_is_not_notified_again() {
    let cloud = Cloud::shared();
    let scene = Scene::new(&cloud, "push-replaced");
    cloud.subscribe(&scene.subscription());
    cloud.publish(&scene.event("first"));
    scene.listener.wait_for_payload("first");
    cloud.subscribe(&with(scene.subscription(), "/notifyUri", "/elsewhere"));
    cloud.publish(&scene.event("second"));
    assert_eq!(scene.listener.wait_for_payload("second").target, "/elsewhere");
    cloud
        .delete(&format!(
            "/eventhandler/unsubscribe?event_type={}&system_name={}-subscriber&address=127.0.0.1&port={}",
            scene.name,
            scene.name,
            scene.listener.port()
        ))
        .expect_status(200);
    cloud.publish(&scene.event("unheard"));
    cloud.subscribe(&scene.subscription());
    cloud.publish(&scene.event("third"));
    scene.listener.wait_for_payload("third");
    assert_eq!(scene.listener.payloads(), ["first", "second", "third"]);
}
