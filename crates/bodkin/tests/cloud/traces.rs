//! Traces: a request's `traceparent` is handed on, and a collector is told of what was done for it. The collector is a small server of the tests that keeps what it is
//! posted, in the protocol's JSON.

use bodkin_trust::{TrustDirectory, base64};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::{INSECURE_JSON_ID, event, subscription, system, with};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::{eventually, eventually_some};
use crate::support::push::{Manner, Notification, PushSubscriber};
use crate::support::secure::Client;
use crate::support::side::{Side, neighbours_with};
use crate::support::sse::EventStream;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CAUSE: &str = "00f067aa0ba902b7";
/// How often another cloud is asked.
const ATTEMPTS: u32 = 5;

fn said() -> String {
    format!("00-{TRACE}-{CAUSE}-01")
}

/// A collector, and what it was told.
struct Collector(PushSubscriber);

impl Collector {
    fn listen() -> Self {
        Self(PushSubscriber::listen(Manner::Answers))
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.0.port())
    }

    /// Every span, with the name of the cloud that tells of it.
    fn spans(&self) -> Vec<(String, Value)> {
        let told = |notification: &Notification| {
            assert_eq!((notification.method.as_str(), notification.target.as_str()), ("POST", "/v1/traces"));
            assert_eq!(notification.header("content-type"), Some("application/json"));
            let body = notification.json();
            let attributes = body["resourceSpans"][0]["resource"]["attributes"].as_array().expect("a list").clone();
            let instance =
                attributes.iter().find(|attribute| attribute["key"] == "service.instance.id").expect("whose it is")["value"]["stringValue"]
                    .clone();
            let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("a list").clone();
            let instance = instance.as_str().expect("a text").to_owned();
            spans.into_iter().map(move |span| (instance.clone(), span)).collect::<Vec<_>>()
        };
        self.0.notifications().iter().flat_map(told).collect()
    }

    /// The span of this name that is of the trace and fits.
    fn find(&self, name: &str, fits: impl Fn(&str, &Value) -> bool) -> Option<Value> {
        let look = || self.spans().into_iter().find(|(of, span)| span["name"] == name && span["traceId"] == TRACE && fits(of, span));
        eventually_some(look).map(|(_, span)| span)
    }

    /// The same, which has to be there.
    #[track_caller]
    fn span(&self, name: &str, fits: impl Fn(&str, &Value) -> bool) -> Value {
        self.find(name, fits).unwrap_or_else(|| panic!("no span {name} among {:#?}", self.spans()))
    }
}

/// The value of a span's attribute.
fn attribute(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().expect("a list");
    attributes.iter().find(|attribute| attribute["key"] == key).unwrap_or_else(|| panic!("no {key} in {span}"))["value"].clone()
}

/// A publisher, a subscriber that may hear it, and what was pushed to that.
struct Scene {
    cloud: Cloud,
    subscriber: PushSubscriber,
}

impl Scene {
    fn new(launch: Launch) -> Self {
        let (cloud, subscriber) = (launch.start(), PushSubscriber::listen(Manner::Answers));
        let (publisher, definition) = cloud.register_publisher("publisher", 1);
        let listener = cloud.register_system("subscriber", subscriber.port());
        cloud.allow(listener, publisher, definition, &[INSECURE_JSON_ID]);
        for event_type in ["hot", "press"] {
            cloud.subscribe(&subscription(event_type, system("subscriber", subscriber.port()), "/notify"));
        }
        Self { cloud, subscriber }
    }

    /// Publishes with this header; gives what the subscriber is sent.
    #[track_caller]
    fn publish(&self, event_type: &str, traceparent: Option<&str>, metadata: Value, payload: &str) -> Notification {
        let body = with(event(event_type, system("publisher", 1), payload), "/metaData", metadata).to_string();
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(traceparent.map(|value| ("Traceparent", value)));
        let mut connection = self.cloud.connect(System::EventHandler);
        connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("an answer").expect_status(200);
        self.subscriber.wait_for_payload(payload)
    }
}

#[test]
fn an_event_is_followed_from_its_publisher_to_its_subscriber() {
    let collector = Collector::listen();
    let scene = Scene::new(Launch::new().flags(["--otlp-url", &collector.url()]));
    let heard = scene.publish("hot", Some(&said()), json!({"room": "7"}), "1");
    let publish = collector.span("publish", |_, span| span["parentSpanId"] == CAUSE);
    let of_publish = |_: &str, span: &Value| span["parentSpanId"] == publish["spanId"];
    assert_eq!(attribute(&publish, "messaging.destination.name"), json!({"stringValue": "HOT"}));
    assert_eq!(attribute(&publish, "http.response.status_code"), json!({"intValue": "200"}));
    let dispatch = collector.span("dispatch", of_publish);
    assert_eq!(attribute(&dispatch, "bodkin.receivers"), json!({"intValue": "1"}));
    let deliver = collector.span("deliver", of_publish);
    assert_eq!(attribute(&deliver, "bodkin.subscriber"), json!({"stringValue": "subscriber"}));
    assert_eq!(deliver["status"], json!({}));
    // The subscriber is told of its delivery, and the event says who has published it.
    let carried = |span: &Value| format!("00-{TRACE}-{}-01", span["spanId"].as_str().expect("an identity"));
    assert_eq!(heard.header("traceparent"), Some(carried(&deliver).as_str()));
    assert_eq!(heard.json()["metaData"], json!({"room": "7", "traceparent": carried(&publish)}));
    for span in [&publish, &dispatch, &deliver] {
        let at = |key: &str| span[key].as_str().expect("a text").parse::<u64>().expect("nanoseconds");
        assert!(at("startTimeUnixNano") <= at("endTimeUnixNano") && at("startTimeUnixNano") > 1_700_000_000_000_000_000, "{span}");
    }

    let topic = json!({"event_type": "press", "period_ms": 100, "deadline_ms": 10_000});
    scene.cloud.post("/api/v1/topics", &topic).expect_status(201);
    scene.publish("press", Some(&said()), Value::Null, "2");
    let is_press = |_: &str, span: &Value| attribute(span, "messaging.destination.name") == json!({"stringValue": "PRESS"});
    assert_eq!(attribute(&collector.span("dispatch", is_press), "bodkin.late"), json!({"boolValue": false}));
}

#[test]
fn what_is_not_sampled_is_handed_on_and_not_told() {
    let collector = Collector::listen();
    let scene = Scene::new(Launch::new().flags(["--otlp-url", &collector.url()]));
    let unsampled = said().replace("-01", "-00");
    assert_eq!(scene.publish("hot", Some(&unsampled), Value::Null, "1").header("traceparent"), Some(unsampled.as_str()));
    let untraced = scene.publish("hot", None, Value::Null, "2");
    assert_eq!((untraced.header("traceparent"), &untraced.json()["metaData"]), (None, &Value::Null));
    // What is told behind them shows that there was time to tell of them. What has ended when the cloud ends is told.
    scene.publish("hot", Some(&said()), Value::Null, "3");
    assert!(scene.cloud.stop().success());
    let causes: Vec<_> = collector.spans().into_iter().map(|(_, span)| span["name"].as_str().expect("a text").to_owned()).collect();
    assert_eq!((causes.len(), causes.iter().filter(|name| *name == "publish").count()), (3, 1), "{causes:?}");
}

#[test]
fn requests_that_name_no_trace_begin_one_now_and_then() {
    let collector = Collector::listen();
    let scene = Scene::new(Launch::new().flags(["--otlp-url", &collector.url(), "--trace-one-in", "1"]));
    let heard = scene.publish("hot", None, Value::Null, "1");
    let said = heard.header("traceparent").expect("its trace").to_owned();
    let has_begun = || {
        collector.spans().iter().any(|(_, span)| {
            span["name"] == "publish" && span["parentSpanId"] == "" && said.contains(span["traceId"].as_str().expect("a text"))
        })
    };
    assert!(eventually(has_begun), "{said}: {:#?}", collector.spans());
}

#[test]
fn without_a_collector_a_trace_is_handed_on_as_it_came() {
    let scene = Scene::new(Launch::new());
    let (own, other) = (said(), said().replace(CAUSE, "1111111111111111"));
    let heard = scene.publish("hot", Some(&own), Value::Null, "1");
    assert_eq!((heard.header("traceparent"), &heard.json()["metaData"]["traceparent"]), (Some(own.as_str()), &json!(own)));
    // What the event says itself goes before what its request says.
    let heard = scene.publish("hot", Some(&own), json!({"traceparent": other}), "2");
    assert_eq!((heard.header("traceparent"), &heard.json()["metaData"]), (Some(other.as_str()), &json!({"traceparent": other})));
    for none in ["", "00-0-0-01", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"] {
        let heard = scene.publish("hot", Some(none), Value::Null, &format!("none {none}"));
        assert_eq!((heard.header("traceparent"), &heard.json()["metaData"]), (None, &Value::Null), "{none}");
    }
}

#[test]
fn a_collector_that_takes_nothing_is_counted_and_holds_nobody_up() {
    let collector = Collector::listen();
    collector.0.answer_with(400, "");
    let scene = Scene::new(Launch::new().flags(["--otlp-url", &collector.url()]));
    scene.publish("hot", Some(&said()), Value::Null, "1");
    let count = || {
        let metrics = scene.cloud.get("/metrics").expect_status(200).text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("bodkin_spans_failed_total ").map(str::to_owned));
        line.expect("it is counted").parse::<u64>().expect("a number")
    };
    assert!(eventually(|| count() == 3), "{}; {}", count(), scene.cloud.stderr());
    scene.publish("hot", Some(&said()), Value::Null, "2");
    assert!(scene.cloud.stderr().contains("the collector of traces has not taken spans"), "{}", scene.cloud.stderr());
}

/// A request that is of the trace; gives the answer's status.
#[track_caller]
fn ask(side: &Side, name: &str, system: System, target: &str, body: &Value) -> u16 {
    let client = Client::believing(&side.system(name), TrustDirectory::new(side.data.join("trust")).anchor().expect("an authority"));
    let mut connection = client.connect(side.cloud.address(system)).expect("a connection");
    let headers = [("Content-Type", "application/json"), ("traceparent", &said())];
    connection.request("POST", target, &headers, Some(body.to_string().as_bytes())).expect("an answer").status
}

#[test]
fn a_trace_goes_on_in_the_other_cloud() {
    let (place, collector) = (TempDir::new().expect("a temporary directory"), Collector::listen());
    let (one, two) = neighbours_with(place.path(), &["--otlp-url", &collector.url()]);
    // A question: the second cloud looks for a service in the first one.
    let form = json!({
        "requesterSystem": {"systemName": "sysop", "address": "127.0.0.1", "port": 8000},
        "requestedService": {"serviceDefinitionRequirement": "heat"},
        "orchestrationFlags": {"overrideStore": true, "enableInterCloud": true},
    });
    // On a busy machine a dialogue may come to nothing: then it is asked again.
    let answered = (0..ATTEMPTS).find_map(|_| {
        ask(&two, "sysop", System::Orchestrator, "/orchestrator/orchestration", &form);
        collector.find("answer gsd_poll", |of, _| of.starts_with("one."))
    });
    let answered = answered.unwrap_or_else(|| panic!("nothing was answered: {:#?}", collector.spans()));
    assert_eq!(attribute(&answered, "bodkin.cloud"), json!({"stringValue": "two.test"}));
    let asked = collector.span("ask gsd_poll", |of, span| of.starts_with("two.") && span["spanId"] == answered["parentSpanId"]);
    assert_eq!(attribute(&asked, "bodkin.cloud"), json!({"stringValue": "one.test"}));
    let orchestrate = collector.span("Orchestrate", |of, span| of.starts_with("two.") && span["spanId"] == asked["parentSpanId"]);
    assert_eq!(orchestrate["parentSpanId"], CAUSE);

    // An event: the first cloud shares it with the second one.
    let key = base64::encode(&one.system("sensor").key().public_key_info());
    one.done(&format!(
        "service add heat --system sensor --address 127.0.0.1 --port 9000 --uri /heat --secure CERTIFICATE --authentication-info {key}"
    ));
    let clouds = one.done("cloud list");
    let id = clouds["data"].as_array().expect("rows").iter().find(|row| row["name"] == "two").expect("it is known")["id"].clone();
    one.done("cloud share-event heat two --deadline-ms 20000");
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    two.done("cloud accept-event heat one");
    two.done("system add display --address 127.0.0.1 --port 9001");
    two.done("auth add --consumer display --provider gatekeeper --service inter-cloud-events");
    let display = Client::believing(&two.system("display"), TrustDirectory::new(two.data.join("trust")).anchor().expect("an authority"));
    let stream = EventStream::open_on(
        display.connect(two.cloud.address(System::EventHandler)).expect("a connection"),
        "/eventhandler/events?event_type=heat",
        &[],
    );
    let published = ask(&one, "sensor", System::EventHandler, "/eventhandler/publish", &event("heat", system("sensor", 9000), "23"));
    assert_eq!(published, 200);
    let heard: Value = serde_json::from_str(&stream.wait_for(1)[0].data).expect("Event JSON");
    let publish = collector.span("publish", |of, _| of.starts_with("one."));
    let carried = format!("00-{TRACE}-{}-01", publish["spanId"].as_str().expect("an identity"));
    assert_eq!(heard["metaData"]["traceparent"], json!(carried), "{heard}");
    // The attempt that was heard, which need not be the first.
    let answered = collector.span("answer shared_event", |of, _| of.starts_with("two."));
    let asked = collector.span("ask shared_event", |of, span| of.starts_with("one.") && span["spanId"] == answered["parentSpanId"]);
    let deliver = collector.span("deliver", |of, span| of.starts_with("one.") && span["spanId"] == asked["parentSpanId"]);
    assert_eq!(deliver["parentSpanId"], publish["spanId"]);
    collector.span("dispatch", |of, span| of.starts_with("two.") && span["parentSpanId"] == publish["spanId"]);
}
