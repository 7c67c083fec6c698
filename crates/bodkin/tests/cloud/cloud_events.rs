//! CloudEvents 1.0 at `/api/v1/events`: in either mode of HTTP in, as an event stream out, and the same events as everybody else's.

use serde_json::{Value, json};

use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, System};
use crate::support::http::Answer;
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
