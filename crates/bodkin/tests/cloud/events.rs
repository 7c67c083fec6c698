//! Events from the publisher to the subscriber: by server-sent events in both forms and by push, in order, without one
//! subscriber in another's way.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::arrowhead::{INSECURE_JSON_ID, event, subscription, system, with};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::{Connection, Pieces};
use crate::support::patience::{PATIENCE, eventually};
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};
use crate::support::skip;
use crate::support::sse::{EventStream, UnreadStream};
use crate::support::stream::{Event, Told};

/// The improved Event Handler's form: `event:` is the event type, `data:` the payload.
fn payloads_of(cloud: &Cloud, event_type: &str) -> EventStream {
    EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription", &[("eventtype", event_type)])
}

/// The other form: `data:` is the Event JSON.
fn events_of(cloud: &Cloud, event_type: &str) -> EventStream {
    EventStream::open(cloud.address(System::EventHandler), &format!("/eventhandler/events?event_type={event_type}"), &[])
}

fn data(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.data.as_str()).collect()
}

#[test]
fn event_streams_forbid_proxies_to_buffer() {
    let cloud = Cloud::shared();
    let streams = [
        (System::EventHandler, "/eventhandler/subscription?eventtype=unbuffered"),
        (System::EventHandler, "/eventhandler/events?event_type=unbuffered"),
        (System::EventHandler, "/api/v1/events?type=unbuffered"),
        (System::Monitor, "/api/v1/live?of=/api/v1/overview"),
    ];
    for (system, target) in streams {
        let head = UnreadStream::open(cloud.address(system), target, &[]).head;
        let values = |name: &str| {
            let named = head.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
            named.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(head.status, 200, "{target}");
        assert_eq!(values("Cache-Control"), ["no-cache, no-transform"], "{target}: {head:?}");
        assert_eq!(values("X-Accel-Buffering"), ["no"], "{target}: {head:?}");
    }
}

#[test]
fn stream_with_unknown_or_repeated_parameter_is_refused() {
    let cloud = Cloud::shared();
    let cases = [
        ("/eventhandler/subscription?eventtype=A&eventtype=B", "'eventtype' was given several times"),
        ("/eventhandler/subscription?eventtype=A&evnttype=B", "'evnttype' is unknown"),
        ("/eventhandler/events?event_type=A&event_type=A", "'event_type' was given several times"),
        ("/eventhandler/events?event_type=A&severty=Error", "'severty' is unknown"),
        ("/eventhandler/events?event_type=A&metadata.a=1&metadata.a=2", "'metadata.a' was given several times"),
        ("/eventhandler/events?event_type=A&since=0&since=0", "'since' was given several times"),
        ("/api/v1/events?type=A&event_type=B", "'event_type' is unknown"),
    ];
    for (target, told) in cases {
        let mut connection = cloud.connect(System::EventHandler);
        connection.send_request("GET", target, &[], None).expect("the request is sent");
        // A stream that is opened by mistake has no end to wait for.
        let head = connection.read_head().expect("a head");
        assert_eq!(head.status, 400, "{target}");
        let body = Pieces::of(&head).expect("a length").next(&mut connection).expect("a body").unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains(told), "{target}: {body}");
    }
    let two = cloud.connect(System::EventHandler).request("GET", "/eventhandler/subscription?eventtype=A", &[("eventtype", "B")], None);
    two.expect("an answer").expect_status(400);
    let same = UnreadStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=A", &[("eventtype", "a")]);
    assert_eq!(same.head.status, 200);
    let headers = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "//127.0.0.1:1/a"), ("ce-type", "A")];
    let posted = cloud.connect(System::EventHandler).request("POST", "/api/v1/events?typ=A", &headers, Some(b"1")).expect("an answer");
    assert!(posted.status == 400 && posted.text().contains("'typ' is unknown"), "{}", posted.text());
}

#[test]
fn own_interface_refuses_unknown_and_repeated_parameters() {
    let cloud = Cloud::shared();
    let get = |target: &str| cloud.connect(System::Monitor).request("GET", target, &[], None).expect("an answer");
    for (target, told) in [
        ("/api/v1/audit?cout=5", "'cout' is unknown; known are from"),
        ("/api/v1/audit?count=5&count=6", "'count' was given several times"),
        ("/api/v1/topics?x=1", "has no query parameters"),
        ("/api/v1/live?of=/api/v1/overview&of=/api/v1/topics", "'of' was given several times"),
    ] {
        let answer = get(target).expect_status(400);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{target}");
        assert!(answer.text().contains(told), "{target}: {}", answer.text());
    }
    get("/api/v1/audit?count=5").expect_status(200);
    get("/api/v1/authorization/explain?consumer=a&service=b&interface=HTTP-INSECURE-JSON&interface=HTTP-SECURE-JSON").expect_status(200);
}

#[test]
fn core_systems_ignore_unknown_parameters_and_refuse_repeated_ones() {
    let cloud = Cloud::shared();
    let get = |target: &str| cloud.connect(System::ServiceRegistry).request("GET", target, &[], None).expect("an answer");
    get("/serviceregistry/mgmt/systems?page=0&item_per_page=5&unknown=1&unknown=2").expect_status(200);
    let refused = get("/serviceregistry/mgmt/systems?page=0&page=1&item_per_page=5").expect_status(400);
    assert_eq!(refused.text(), "");
}

#[test]
fn a_payload_stream_carries_type_payload_and_a_growing_identity() {
    let cloud = Cloud::shared();
    cloud.register_system("sse-payload", 1);
    let by_header = payloads_of(&cloud, "sse-payload");
    let by_query = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=SSE-Payload", &[]);
    let payloads = ["plain", "two\nlines", "carriage\r\nreturn", "\nedges\n", " leading blank", ": no comment", "värme 温度 😀", "data: x"];
    for payload in payloads {
        cloud.publish(&event("Sse-Payload", system("sse-payload", 1), payload));
    }
    // CR and CR LF end a line like LF does: that is all the format can carry.
    let expected: Vec<String> = payloads.iter().map(|payload| payload.replace("\r\n", "\n").replace('\r', "\n")).collect();
    for stream in [by_header, by_query] {
        let content_type = crate::support::http::header(&stream.head.headers, "content-type").map(str::to_string);
        assert!(content_type.is_some_and(|value| value.starts_with("text/event-stream")), "{:?}", stream.head);
        let events = stream.wait_for(payloads.len());
        assert_eq!(data(&events), expected);
        for event in &events {
            assert!(event.event_type.eq_ignore_ascii_case("sse-payload"), "{event:?}");
            assert!(!event.id.is_empty(), "{event:?}");
        }
        let mut ids: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
        ids.dedup();
        assert_eq!(ids.len(), payloads.len(), "each has an identity of its own: {ids:?}");
    }
}

#[test]
fn an_event_stream_carries_the_event_as_json() {
    let cloud = Cloud::shared();
    cloud.register_system("sse-json", 1);
    let stream = events_of(&cloud, "sse-json");
    let bare = event("Sse-Json", system("sse-json", 1), "two\nlines \"quoted\"");
    cloud.publish(&bare);
    cloud.publish(&with(bare, "/metaData", json!({"unit": "celsius"})));
    let events = stream.wait_for(2);
    let first: Value = serde_json::from_str(&events[0].data).expect("data is JSON");
    let mut members: Vec<&str> = first.as_object().expect("an object").keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["eventType", "metaData", "payload", "timeStamp"]);
    assert_eq!((&first["eventType"], &first["metaData"]), (&json!("Sse-Json"), &Value::Null));
    assert_eq!(first["payload"], "two\nlines \"quoted\"");
    assert!(first["timeStamp"].as_str().is_some_and(|stamp| stamp.ends_with('Z')), "{first}");
    let second: Value = serde_json::from_str(&events[1].data).expect("data is JSON");
    assert_eq!(second["metaData"], json!({"unit": "celsius"}));
    assert!(!events[0].id.is_empty() && events[0].id != events[1].id, "{events:?}");
}

#[test]
fn both_forms_name_an_event_alike() {
    let cloud = Cloud::shared();
    cloud.register_system("sse-identity", 1);
    let (payloads, events) = (payloads_of(&cloud, "sse-identity"), events_of(&cloud, "sse-identity"));
    cloud.publish(&event("sse-identity", system("sse-identity", 1), "x"));
    assert_eq!(payloads.wait_for(1)[0].id, events.wait_for(1)[0].id);
}

#[test]
fn a_stream_is_of_one_type_and_needs_one() {
    let cloud = Cloud::shared();
    cloud.register_system("sse-type", 1);
    let stream = payloads_of(&cloud, "sse-type");
    for (event_type, payload) in [("sse-type-other", "other"), ("sse-typ", "shorter"), ("sse-type", "own")] {
        cloud.publish(&event(event_type, system("sse-type", 1), payload));
    }
    assert_eq!(data(&stream.wait_for(1)), ["own"]);
    for (target, told) in [
        ("/eventhandler/subscription", ""),
        (
            "/eventhandler/events",
            "The parameter event_type names the event type to hear and is missing: /eventhandler/events?event_type=NAME.",
        ),
        ("/eventhandler/events?event_type=", "Event type"),
    ] {
        let answer = cloud.get(target);
        assert_eq!(answer.status, 400, "{target}");
        let body = answer.text();
        assert!(body.contains(told) && body.is_empty() == told.is_empty(), "{target}: {body}");
    }
}

#[test]
fn a_connection_publishes_again_after_many_events() {
    let cloud = Cloud::shared();
    cloud.register_system("sse-kept", 1);
    let stream = payloads_of(&cloud, "sse-kept");
    let mut publisher = cloud.connect(System::EventHandler);
    for number in 0..200 {
        publish_on(&mut publisher, &event("sse-kept", system("sse-kept", 1), &number.to_string()));
    }
    let numbers: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    assert_eq!(data(&stream.wait_for(200)), numbers);
}

#[test]
fn subscribers_that_leave_disturb_nobody() {
    let cloud = Cloud::shared();
    cloud.register_system("sse-leaving", 1);
    let staying = payloads_of(&cloud, "sse-leaving");
    let mut publisher = cloud.connect(System::EventHandler);
    for number in 0..100 {
        let leaving = payloads_of(&cloud, "sse-leaving");
        publish_on(&mut publisher, &event("sse-leaving", system("sse-leaving", 1), &number.to_string()));
        drop(leaving);
    }
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(data(&staying.wait_for(100)), numbers);
}

fn publish_on(connection: &mut Connection, event: &Value) {
    let headers = [("Content-Type", "application/json")];
    let body = event.to_string();
    connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("an answer").expect_status(200);
}

const PUBLISHERS: usize = 4;
const EVENTS_EACH: usize = 500;
/// Events on the way to the slowest receiver, so that no bounded queue has a reason to lose one.
const WINDOW: usize = 100;

#[test]
fn every_subscriber_gets_every_event_in_the_order_of_its_publisher() {
    let cloud = Launch::new().start();
    let listeners = [PushSubscriber::listen(Manner::Answers), PushSubscriber::listen(Manner::Answers)];
    let silent = PushSubscriber::listen(Manner::KeepsSilent);
    let closed = held_port();
    let publishers: Vec<(i64, i64)> = (0..PUBLISHERS).map(|index| cloud.register_publisher(&format!("order-{index}"), 1)).collect();
    for (index, port) in [listeners[0].port(), listeners[1].port(), silent.port(), closed].into_iter().enumerate() {
        let name = format!("order-subscriber-{index}");
        let consumer = cloud.register_system(&name, port);
        for (provider, definition) in &publishers {
            cloud.allow(consumer, *provider, *definition, &[INSECURE_JSON_ID]);
        }
        cloud.subscribe(&subscription("order", system(&name, port), "/notify"));
    }
    let streams = [payloads_of(&cloud, "order"), payloads_of(&cloud, "ORDER"), events_of(&cloud, "order")];
    let fewest = || streams.iter().map(EventStream::count).chain(listeners.iter().map(PushSubscriber::count)).min().unwrap_or(0);

    thread::scope(|scope| {
        for publisher in 0..PUBLISHERS {
            let (cloud, fewest) = (&cloud, &fewest);
            scope.spawn(move || {
                let mut connection = cloud.connect(System::EventHandler);
                let source = system(&format!("order-{publisher}"), 1);
                for number in 0..EVENTS_EACH {
                    publish_on(&mut connection, &event("order", source.clone(), &format!("{publisher} {number}")));
                    assert!(eventually(|| fewest() + WINDOW > PUBLISHERS * number), "a subscriber fell behind at event {number}");
                }
            });
        }
    });
    let total = PUBLISHERS * EVENTS_EACH;
    for stream in &streams[..2] {
        assert_in_order(stream.wait_for(total).into_iter().map(|event| event.data));
    }
    let payload = |event: Event| serde_json::from_str::<Value>(&event.data).expect("JSON")["payload"].as_str().expect("text").to_string();
    assert_in_order(streams[2].wait_for(total).into_iter().map(payload));
    for listener in &listeners {
        listener.wait_until(|notifications| notifications.len() >= total, "complete set of notifications");
        assert_in_order(listener.payloads().into_iter());
    }
    assert!(silent.count() >= 1, "the silent one was tried");
}

/// Every number of every publisher once, each publisher's in order.
#[track_caller]
fn assert_in_order(payloads: impl Iterator<Item = String>) {
    let mut next: BTreeMap<usize, usize> = BTreeMap::new();
    for payload in payloads {
        let (publisher, number) = payload.split_once(' ').expect("publisher and number");
        let expected = next.entry(publisher.parse().expect("a publisher")).or_default();
        assert_eq!(number.parse(), Ok(*expected), "of publisher {publisher}");
        *expected += 1;
    }
    assert_eq!(next.into_values().collect::<Vec<_>>(), [EVENTS_EACH; PUBLISHERS]);
}

/// Payload that fills socket buffers quickly, in bytes; below the limit of 64 KiB.
const LARGE_BYTES: usize = 48 * 1024;
/// More than the socket buffers of both ends and any sensible queue hold together, in events: about 58 MB.
const LARGE_EVENTS: usize = 1_200;

#[test]
fn a_subscriber_that_does_not_read_is_told_its_losses_and_stops_nobody() {
    let cloud = Launch::new().start();
    cloud.register_system("lossy", 1);
    let idle = UnreadStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=lossy", &[]);
    assert_eq!(idle.head.status, 200);
    let reading = payloads_of(&cloud, "lossy");
    let mut publisher = cloud.connect(System::EventHandler);
    let filling = "x".repeat(LARGE_BYTES);
    for number in 0..LARGE_EVENTS {
        publish_on(&mut publisher, &event("lossy", system("lossy", 1), &format!("{number} {filling}")));
        assert!(eventually(|| reading.count() > number), "the one that reads was stopped at event {number} by the one that does not");
    }
    let heard: Vec<usize> = reading.wait_for(LARGE_EVENTS).iter().map(number_of).collect();
    assert_eq!(heard, (0..LARGE_EVENTS).collect::<Vec<_>>());

    let late = idle.read();
    let ends_with_last = |told: &[Told]| told.iter().any(|item| matches!(item, Told::Event(event) if event.data == "last"));
    let complete = Instant::now() + PATIENCE;
    // Published until one gets through: its queue may still be full when the first of them comes.
    while !late.has(ends_with_last) && Instant::now() < complete {
        publish_on(&mut publisher, &event("lossy", system("lossy", 1), "last"));
        thread::sleep(Duration::from_millis(20));
    }
    let told = late.wait_until(ends_with_last, "event after the losses");
    let before_last = told.iter().position(|item| matches!(item, Told::Event(event) if event.data == "last")).expect("it is there");
    let received: Vec<usize> = told[..before_last].iter().filter_map(large_event).map(number_of).collect();
    let lost: usize = told[..before_last].iter().filter_map(loss).sum();
    assert!(received.is_sorted() && received.len() < LARGE_EVENTS, "{} of {LARGE_EVENTS} fitted", received.len());
    // An event "last" that was itself lost is counted too.
    assert!(received.len() + lost >= LARGE_EVENTS, "{} received and {lost} told lost of {LARGE_EVENTS}", received.len());
}

fn number_of(event: &Event) -> usize {
    event.data.split(' ').next().and_then(|digits| digits.parse().ok()).expect("a numbered payload")
}

fn large_event(told: &Told) -> Option<&Event> {
    if let Told::Event(event) = told { (event.data.len() > LARGE_BYTES).then_some(event) } else { None }
}

/// The count of a told loss: the first number of a comment, or of an event that nobody published.
fn loss(told: &Told) -> Option<usize> {
    let text = match told {
        Told::Comment(text) => text,
        Told::Event(event) if !event.event_type.eq_ignore_ascii_case("lossy") => &event.data,
        _ => return None,
    };
    let digits: String = text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[test]
fn curl_hears_what_is_published() {
    let test = "curl_hears_what_is_published";
    let cloud = Cloud::shared();
    cloud.register_system("sse-curl", 1);
    let url = format!("http://{}/eventhandler/subscription?eventtype=sse-curl", cloud.address(System::EventHandler));
    let listening = Command::new("curl").args(["--silent", "--no-buffer", "--max-time", "20", &url]).stdout(Stdio::piped()).spawn();
    let Ok(mut curl) = listening else { return skip::note(test, "curl is not installed") };
    let output = curl.stdout.take().expect("standard output is piped");
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let lines = std::io::BufRead::lines(std::io::BufReader::new(output)).map_while(Result::ok);
        lines.for_each(|line| drop(sender.send(line)));
    });
    let mut heard = Vec::new();
    // When curl's subscription begins is not seen from here, so it is published until curl hears it.
    let complete = eventually(|| {
        cloud.publish(&event("sse-curl", system("sse-curl", 1), "first\nsecond"));
        heard.extend(receiver.try_iter());
        heard.windows(2).any(|lines| lines[0].contains("data:") && lines[0].ends_with("first") && lines[1].ends_with("second"))
    });
    curl.kill().expect("curl is there to be killed");
    curl.wait().expect("a killed child ends");
    assert!(complete, "{heard:?}");
    let event_line = heard.iter().find_map(|line| line.strip_prefix("event:")).map(str::trim);
    assert!(event_line.is_some_and(|value| value.eq_ignore_ascii_case("sse-curl")), "{heard:?}");
}

#[test]
fn each_stage_of_the_path_is_counted() {
    let cloud = Launch::new().start();
    cloud.register_system("stages", 1);
    let stream = payloads_of(&cloud, "stages");
    for _ in 0..10 {
        cloud.publish(&event("stages", system("stages", 1), "x"));
    }
    stream.wait_for(10);
    let stages = cloud.get("/api/v1/stages").expect_status(200).json();
    assert_eq!(stages["unit"], "ns");
    for (system, stage, least) in [("eventhandler", "parse", 10), ("serviceregistry", "database", 1), ("serviceregistry", "parse", 1)] {
        let histogram = &stages["systems"][system][stage];
        let count = histogram["count"].as_u64().unwrap_or_else(|| panic!("no {system} {stage} in {stages}"));
        assert!(count >= least, "{system} {stage}: {histogram}");
        let buckets = histogram["buckets"].as_array().expect("buckets");
        let bounds: Vec<u64> = buckets.iter().map(|bucket| bucket[0].as_u64().expect("an upper bound")).collect();
        let counts: Vec<u64> = buckets.iter().map(|bucket| bucket[1].as_u64().expect("a count")).collect();
        assert!(bounds.is_sorted() && !counts.contains(&0), "{system} {stage}: {histogram}");
        assert_eq!(counts.iter().sum::<u64>(), count, "{system} {stage}: {histogram}");
        assert!(histogram["sum_ns"].as_u64().is_some_and(|sum| sum > 0 && sum <= bounds.last().copied().unwrap_or(0) * count));
    }
    for target in ["/healthz", "/readyz", "/metrics"] {
        cloud.get(target).expect_status(200);
    }
}
