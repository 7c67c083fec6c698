//! CloudEvents 1.0 at `/api/v1/events`: in either mode of HTTP in, as an event stream out, posted to sinks that ask for them, and the same events as everybody else's.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::arrowhead::{event, subscription, system, with};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Answer;
use crate::support::patience::eventually;
use crate::support::push::{Manner, Notification, PushSubscriber};
use crate::support::sse::EventStream;

const EVENTS: &str = "/api/v1/events";

fn post(cloud: &Cloud, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    cloud.connect(System::EventHandler).request("POST", EVENTS, headers, Some(body)).expect("an answer")
}

/// The CloudEvents that a stream has brought, of which there are so many.
fn heard(stream: &EventStream, count: usize) -> Vec<Value> {
    stream.wait_for(count).iter().map(|event| serde_json::from_str(&event.data).expect("data is JSON")).collect()
}

#[test]
fn an_event_goes_in_and_comes_out_in_either_form() {
    let cloud = Cloud::shared();
    let sensor = system("ce-sensor", 4711);
    cloud.post("/serviceregistry/mgmt/systems", &sensor).expect_status(201);
    let source = format!("//{}:4711/ce-sensor", sensor["address"].as_str().expect("an address"));
    let as_cloud_events = EventStream::open_on(cloud.connect(System::EventHandler), "/api/v1/events?type=ce-heat", &[]);
    let as_events = EventStream::open_on(cloud.connect(System::EventHandler), "/eventhandler/events?event_type=ce-heat", &[]);

    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-id", "one"),
        ("CE-Source", source.as_str()),
        ("ce-type", "ce-heat"),
        ("Content-Type", "application/json"),
    ];
    post(&cloud, &headers, br#"{"celsius":21.5}"#).expect_status(200);
    let structured = json!({"specversion": "1.0", "id": "two", "source": source, "type": "ce-heat", "datacontenttype": "text/plain", "data": "22", "room": "7"});
    post(&cloud, &[("Content-Type", "application/cloudevents+json")], structured.to_string().as_bytes()).expect_status(200);
    cloud.post("/eventhandler/publish", &event("ce-heat", sensor, "23")).expect_status(200);

    let [one, two, three] = &heard(&as_cloud_events, 3)[..] else { panic!("three events were published") };
    for event in [one, two, three] {
        assert_eq!((&event["specversion"], &event["type"]), (&"1.0".into(), &"ce-heat".into()), "{event}");
        assert!(event["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
    }
    assert_eq!((&one["id"], &one["source"], &one["data"]), (&"one".into(), &source.as_str().into(), &json!({"celsius": 21.5})));
    assert_eq!((&two["id"], &two["data"], &two["room"]), (&"two".into(), &"22".into(), &"7".into()));
    assert_eq!((&three["data"], &three["datacontenttype"]), (&"23".into(), &"text/plain".into()));
    assert!(three["source"].as_str().is_some_and(|source| source.starts_with("/serviceregistry/mgmt/systems/")), "{three}");
    let events = heard(&as_events, 3);
    assert_eq!((&events[0]["payload"], &events[1]["metaData"]["ce-room"]), (&r#"{"celsius":21.5}"#.into(), &"7".into()));
    let ids = |stream: &EventStream| stream.wait_for(3).iter().map(|event| event.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&as_cloud_events), ids(&as_events), "the identities are the same");
    // Who was away is brought what the event log has, in the same form.
    let replayed = EventStream::open_on(cloud.connect(System::EventHandler), "/api/v1/events?type=ce-heat&since=0", &[]);
    assert_eq!(heard(&replayed, 3)[1], *two);
}

#[test]
fn structured_data_arrives_as_its_text() {
    let cloud = Cloud::shared();
    cloud.post("/serviceregistry/mgmt/systems", &system("ce-octets", 4712)).expect_status(201);
    let streams = ["/api/v1/events?type=ce-octets", "/eventhandler/events?event_type=ce-octets"]
        .map(|target| EventStream::open_on(cloud.connect(System::EventHandler), target, &[]));
    let data = "{ \"b\":1,\n \"a\":123456789012345678901234567890, \"f\":1.10, \"n\":1e400 }";
    let body = format!(
        r#"{{"specversion":"1.0","id":"3","source":"//127.0.0.1:4712/ce-octets","type":"ce-octets","room":7,"isopen":true,"data":{data}}}"#
    );
    post(&cloud, &[("Content-Type", "application/cloudevents+json")], body.as_bytes()).expect_status(200);
    let told = streams[0].wait_for(1).remove(0).data;
    assert!(told.contains(&format!(r#""data":{data}"#)), "{told}");
    assert!(told.contains(r#""room":7"#) && told.contains(r#""isopen":true"#) && !told.contains("datacontenttype"), "{told}");
    assert_eq!(heard(&streams[1], 1)[0]["payload"], data);
}

#[test]
fn coded_body_is_refused_on_every_port() {
    let cloud = Cloud::shared();
    let places = [
        (System::EventHandler, EVENTS),
        (System::EventHandler, "/eventhandler/publish"),
        (System::EventHandler, "/eventhandler/subscribe"),
        (System::ServiceRegistry, "/serviceregistry/register"),
        (System::Authorization, "/authorization/intracloud/check"),
        (System::Orchestrator, "/orchestrator/orchestration"),
        (System::Monitor, "/api/v1/topics"),
    ];
    for (system, path) in places {
        for coding in ["gzip", "br", "identity, x-unknown"] {
            let headers = [("Content-Type", "application/json"), ("Content-Encoding", coding)];
            let answer = cloud.connect(system).request("POST", path, &headers, Some(b"\x1f\x8b\x08\0")).expect("an answer");
            assert_eq!((answer.status, answer.header("accept-encoding")), (415, Some("identity")), "{path} {coding}: {}", answer.text());
            assert!(answer.text().contains(coding), "{path}: {}", answer.text());
        }
        let headers = [("Content-Type", "application/json"), ("Content-Encoding", "identity")];
        let answer = cloud.connect(system).request("POST", path, &headers, Some(b"{}")).expect("an answer");
        assert!(!answer.text().contains("content coding"), "{path}: {}", answer.text());
    }
}

#[test]
fn what_is_no_event_that_may_be_published_is_a_problem() {
    let cloud = Cloud::shared();
    let attributes = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "//127.0.0.1:1/nobody-has-this"), ("ce-type", "ce-refused")];
    type Case<'c> = (&'c [(&'c str, &'c str)], u16, &'c str);
    let cases: [Case<'_>; 4] = [
        (&attributes[..3], 400, "The attribute type is missing"),
        (&attributes, 400, "is not registered"),
        (&[("Content-Type", "text/plain")], 415, "ce-specversion"),
        (&[("Content-Type", "application/cloudevents-batch+json")], 415, "send one event"),
    ];
    for (headers, status, told) in cases {
        let answer = post(&cloud, headers, b"[]");
        assert_eq!((answer.status, answer.header("content-type")), (status, Some("application/problem+json")), "{}", answer.text());
        assert!(answer.text().contains(told), "{}", answer.text());
    }
    let asked = |method: &str| cloud.connect(System::EventHandler).request(method, EVENTS, &[], None).expect("an answer");
    assert_eq!((asked("DELETE").status, asked("OPTIONS").header("allow")), (405, Some("GET, POST, OPTIONS")));
    assert_eq!(asked("GET").status, 400, "which type is not said");
}

/// A cloud that tries soon again, a publisher, and a sink that may hear it and asks for CloudEvents.
struct Asked {
    cloud: Cloud,
    sink: PushSubscriber,
}

/// What a sink says that takes events of whoever asks.
const GRANTED: &str = "WebHook-Allowed-Origin: *\r\nWebHook-Allowed-Rate: *\r\n";

impl Asked {
    fn new(mode: &str, says: &str) -> Self {
        let cloud =
            Launch::new().flags(["--push-backoff-min-ms", "1", "--push-backoff-max-ms", "20", "--push-breaker-failures", "1000"]).start();
        let sink = PushSubscriber::listen(Manner::Answers);
        sink.answer_with(200, says);
        let (publisher, definition) = cloud.register_publisher("publisher", 4711);
        let subscriber = cloud.register_system("sink", sink.port());
        cloud.allow(subscriber, publisher, definition, &[2]);
        let asked = Self { cloud, sink };
        asked.cloud.subscribe(&asked.wish(mode));
        asked
    }

    fn wish(&self, mode: &str) -> Value {
        let form = subscription("ce-pushed", system("sink", self.sink.port()), "/in?of=events");
        with(form, "/filterMetaData", json!({ "cloudevents": mode }))
    }

    fn publish(&self, id: &str, payload: &[u8]) {
        let headers = [
            ("ce-specversion", "1.0"),
            ("ce-id", id),
            ("ce-source", "//127.0.0.1:4711/publisher"),
            ("ce-type", "ce-pushed"),
            ("ce-subject", "a%20b"),
        ];
        post(&self.cloud, &[&headers[..], &[("Content-Type", "application/json")]].concat(), payload).expect_status(200);
    }

    /// The events that came, of which there are so many, in front of which the sink was asked.
    fn events(&self, count: usize) -> Vec<Notification> {
        let is_event = |notification: &&Notification| notification.method == "POST";
        let all = self.sink.wait_until(|came| came.iter().filter(is_event).count() >= count, "CloudEvents");
        let at = all.iter().position(|notification| notification.method == "POST").expect("it was waited for");
        assert!(at > 0 && all[..at].iter().all(|notification| notification.method == "OPTIONS"), "{all:?}");
        assert!(all[at..].iter().all(|notification| notification.method == "POST"), "it is asked once: {all:?}");
        let origin = all[0].header("webhook-request-origin").expect("who asks says who it is");
        assert!(origin.ends_with(".arrowhead.eu"), "{origin}");
        assert!(all.iter().all(|one| one.target == "/in?of=events" && one.header("webhook-request-origin") == Some(origin)), "{all:?}");
        all[at..].to_vec()
    }
}

#[test]
fn a_sink_that_asks_is_posted_structured_events() {
    let asked = Asked::new("structured", GRANTED);
    asked.publish("one", br#"{"celsius":21.5}"#);
    asked.cloud.publish(&event("ce-pushed", system("publisher", 4711), "22"));
    let [one, two] = &asked.events(2)[..] else { panic!("two events were published") };
    assert_eq!(one.header("content-type"), Some("application/cloudevents+json; charset=utf-8"));
    let (first, second) = (one.json(), two.json());
    assert_eq!((&first["id"], &first["type"], &first["subject"]), (&"one".into(), &"ce-pushed".into(), &"a b".into()));
    assert_eq!((&first["data"], &first["source"]), (&json!({"celsius": 21.5}), &"//127.0.0.1:4711/publisher".into()));
    assert_eq!(
        (&second["data"], second["id"].as_str()),
        (&"22".into(), two.header("bodkin-event-id")),
        "the identity is the id of one that had none"
    );
    let listed = asked.cloud.get("/eventhandler/mgmt/subscriptions").json();
    assert_eq!(
        (&listed["data"][0]["filterMetaData"], &listed["data"][0]["matchMetaData"]),
        (&json!({"cloudevents": "structured"}), &false.into())
    );
}

#[test]
fn a_sink_that_asks_is_posted_binary_events() {
    let asked = Asked::new("binary", GRANTED);
    asked.publish("one", br#"{"celsius": 21.5}"#);
    asked.publish("two", &[0xff, 0, 1]);
    let [one, two] = &asked.events(2)[..] else { panic!("two events were published") };
    let attribute = |name: &str| one.header(name);
    assert_eq!((attribute("ce-specversion"), attribute("ce-id"), attribute("ce-type")), (Some("1.0"), Some("one"), Some("ce-pushed")));
    assert_eq!((attribute("content-type"), attribute("ce-subject")), (Some("application/json"), Some("a%20b")));
    assert_eq!(
        (one.body.as_slice(), two.body.as_slice()),
        (&br#"{"celsius": 21.5}"#[..], &[0xff, 0, 1][..]),
        "data is as it was published"
    );
}

#[test]
fn a_sink_that_does_not_agree_is_sent_nothing_until_it_does() {
    let asked = Asked::new("structured", "WebHook-Allowed-Origin: somebody.else\r\n");
    asked.publish("one", b"1");
    let state = || asked.cloud.get("/api/v1/subscriptions").json()["data"][0].clone();
    assert!(eventually(|| state()["lastError"].as_str().is_some_and(|told| told.contains("WebHook-Allowed-Origin"))), "{}", state());
    let asked_for = asked.sink.notifications();
    assert!(!asked_for.is_empty() && asked_for.iter().all(|one| one.method == "OPTIONS" && one.body.is_empty()), "{asked_for:?}");
    asked.sink.answer_with(204, GRANTED);
    assert_eq!(asked.events(1)[0].json()["id"], "one", "nothing is lost");
}

#[test]
fn a_sink_is_posted_no_more_in_a_minute_than_it_has_allowed() {
    let (asked, begun) = (Asked::new("binary", "WebHook-Allowed-Origin: *\r\nWebHook-Allowed-Rate: 60\r\n"), Instant::now());
    for id in ["one", "two", "three"] {
        asked.publish(id, b"1");
    }
    asked.events(3);
    assert!(begun.elapsed() >= Duration::from_secs(2), "one a second is allowed, and three took {:?}", begun.elapsed());
}

#[test]
fn a_cloud_is_a_sink_of_another_ones_events() {
    let (from, to) = (Launch::new().start(), Launch::new().start());
    let port = to.address(System::EventHandler).port();
    let (publisher, definition) = from.register_publisher("publisher", 4711);
    let other = from.register_system("other", port);
    from.allow(other, publisher, definition, &[2]);
    let form = subscription("ce-onward", system("other", port), EVENTS);
    from.subscribe(&with(form, "/filterMetaData", json!({"cloudevents": "binary"})));
    to.register_system("publisher", 4711);
    let stream = EventStream::open_on(to.connect(System::EventHandler), "/api/v1/events?type=ce-onward", &[]);
    let source = format!("//{}:4711/publisher", system("publisher", 4711)["address"].as_str().expect("an address"));
    let headers =
        [("ce-specversion", "1.0"), ("ce-id", "one"), ("ce-source", &source), ("ce-type", "ce-onward"), ("Content-Type", "text/plain")];
    post(&from, &headers, b"21").expect_status(200);
    let one = &heard(&stream, 1)[0];
    assert_eq!((&one["id"], &one["source"], &one["data"]), (&"one".into(), &source.into(), &"21".into()));
    // Who asks is answered by its own name, and not by what is none.
    let ask = |origin: &str| {
        to.connect(System::EventHandler).request("OPTIONS", EVENTS, &[("WebHook-Request-Origin", origin)], None).expect("an answer")
    };
    let answer = ask("works.acme.arrowhead.eu");
    assert_eq!(
        (answer.status, answer.header("webhook-allowed-origin"), answer.header("webhook-allowed-rate")),
        (200, Some("works.acme.arrowhead.eu"), Some("*"))
    );
    assert_eq!(ask("*").header("webhook-allowed-origin"), None);
}

#[test]
fn another_wish_than_the_two_modes_is_refused() {
    let cloud = Cloud::shared();
    cloud.register_system("ce-wisher", 4712);
    let form = with(subscription("ce-wished", system("ce-wisher", 4712), "/in"), "/filterMetaData", json!({"cloudevents": "batched"}));
    let refusal = cloud.post("/eventhandler/subscribe", &form);
    assert_eq!(refusal.status, 400);
    assert!(refusal.text().contains("structured or binary is expected"), "{}", refusal.text());
}
