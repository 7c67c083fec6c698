//! Traces: a request's `traceparent` is handed on, and a collector is told of what was done for it. The collector is a small server of the tests that keeps what it is
//! posted, in the protocol's JSON.

use bodkin_trust::{TrustDirectory, base64};
use bodkin_zmtp::{Metadata, SocketType};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::{INSECURE_JSON_ID, event, subscription, system, with};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::link::Heard;
use crate::support::patience::{eventually, eventually_some};
use crate::support::push::{Manner, Notification, PushSubscriber};
use crate::support::secure::Client;
use crate::support::side::{Side, neighbours_with};
use crate::support::sse::EventStream;
use crate::zmtp;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CAUSE: &str = "00f067aa0ba902b7";
/// What others say of the trace.
const STATE: &str = "rojo=00f067aa0ba902b7,congo=\"1\"";
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
        let headers: Vec<_> = traceparent.map(|value| ("Traceparent", value)).into_iter().collect();
        self.publish_with(event_type, &headers, metadata, payload)
    }

    /// The same with these headers.
    #[track_caller]
    fn publish_with(&self, event_type: &str, headers: &[(&str, &str)], metadata: Value, payload: &str) -> Notification {
        let body = with(event(event_type, system("publisher", 1), payload), "/metaData", metadata).to_string();
        let headers = [&[("Content-Type", "application/json")], headers].concat();
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
fn what_is_said_of_a_trace_goes_with_it() {
    let collector = Collector::listen();
    let scene = Scene::new(Launch::new().flags(["--otlp-url", &collector.url()]));
    let own = said();
    // Two headers are one list; the event's metadata have it whole.
    let (one, other) = STATE.split_once(',').expect("two members");
    let headers = [("traceparent", own.as_str()), ("tracestate", one), ("Tracestate", other)];
    let heard = scene.publish_with("hot", &headers, json!({"room": "7"}), "1");
    assert_eq!((heard.header("tracestate"), &heard.json()["metaData"]["tracestate"]), (Some(STATE), &json!(STATE)));
    for name in ["publish", "dispatch", "deliver"] {
        assert_eq!(collector.span(name, |_, _| true)["traceState"], STATE, "{name}");
    }
    // An event that says so itself is believed; what is no list is said by nobody, and neither is what is of no trace.
    let heard = scene.publish_with("hot", &headers, json!({"traceparent": own, "tracestate": "own=1"}), "2");
    assert_eq!((heard.header("tracestate"), &heard.json()["metaData"]["tracestate"]), (Some("own=1"), &json!("own=1")));
    for (state, payload) in [("UPPER=1", "3"), (&(0..33).map(|at| format!("k{at}=v")).collect::<Vec<_>>().join(","), "4")] {
        let heard = scene.publish_with("hot", &[("traceparent", &own), ("tracestate", state)], Value::Null, payload);
        assert!(heard.header("traceparent").is_some(), "{state}");
        assert_eq!((heard.header("tracestate"), &heard.json()["metaData"]["tracestate"]), (None, &Value::Null), "{state}");
    }
    let heard = scene.publish_with("hot", &[("tracestate", STATE)], Value::Null, "5");
    assert_eq!((heard.header("tracestate"), &heard.json()["metaData"]), (None, &Value::Null));
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

#[test]
fn who_hears_on_a_connection_of_its_own_is_told_of_too() {
    let collector = Collector::listen();
    let cloud = zmtp::cloud(&["--otlp-url", &collector.url()]);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/events?event_type=hot", &[]);
    // One that asks for metadata, and one that does not.
    let asking = Metadata::of(SocketType::Sub).with("X-Bodkin-Metadata", b"yes").expect("a property");
    let mut asking = zmtp::link(&cloud, asking);
    asking.subscribe(b"hot");
    zmtp::settle(&mut asking);
    let mut sub = zmtp::subscriber(&cloud, "hot");
    let mut publisher = zmtp::peer(&cloud, SocketType::Req);
    let metadata = format!(r#"{{"room":"7","traceparent":"{}","tracestate":"a=1"}}"#, said());
    publisher.say(&[b"", b"hot", b"21", b"", metadata.as_bytes()]);
    assert_eq!(publisher.hear().expect("a reply"), Some(Heard::Message(vec![vec![], b"200".to_vec(), vec![]])));

    let message = |heard| if let Some(Heard::Message(frames)) = heard { frames } else { panic!("no message: {heard:?}") };
    let frames = message(asking.hear().expect("an event"));
    assert_eq!((&frames[..2], frames.len(), frames[3].as_slice()), (&[b"hot".to_vec(), b"21".to_vec()][..], 4, metadata.as_bytes()));
    assert_eq!(message(sub.hear().expect("an event")).len(), 3);
    let heard: Value = serde_json::from_str(&stream.wait_for(1)[0].data).expect("Event JSON");
    assert_eq!(heard["metaData"]["traceparent"], json!(said()), "{heard}");

    let publish = collector.span("publish", |_, span| span["parentSpanId"] == CAUSE);
    assert_eq!(attribute(&publish, "network.protocol.name"), json!({"stringValue": "zmtp"}));
    let deliveries = || {
        let mut protocols: Vec<_> = collector
            .spans()
            .into_iter()
            .filter(|(_, span)| span["name"] == "deliver" && span["parentSpanId"] == CAUSE && span["status"] == json!({}))
            .map(|(_, span)| attribute(&span, "network.protocol.name")["stringValue"].as_str().expect("a text").to_owned())
            .collect();
        protocols.sort();
        protocols
    };
    assert!(eventually(|| deliveries() == ["http", "zmtp", "zmtp"]), "{:?} {:#?}", deliveries(), collector.spans());

    // What is no object of scalars is refused, and says so; an event without metadata has three frames for everybody.
    publisher.say(&[b"", b"hot", b"22", b"", b"[1]"]);
    let reply = message(publisher.hear().expect("a reply"));
    assert_eq!(reply[1], b"400");
    assert!(String::from_utf8_lossy(&reply[2]).contains("Expected a JSON object of texts"), "{reply:?}");
    publisher.say(&[b"", b"hot", b"23"]);
    assert_eq!(message(publisher.hear().expect("a reply"))[1], b"200");
    assert_eq!(message(asking.hear().expect("an event")).len(), 3);
}

#[test]
fn a_request_to_the_own_port_is_told_if_it_is_of_a_trace() {
    let collector = Collector::listen();
    let cloud = Launch::new().flags(["--otlp-url", &collector.url(), "--trace-one-in", "1"]).start();
    let ask = |headers: &[(&str, &str)], target: &str| {
        cloud.connect(System::Monitor).request("GET", target, headers, None).expect("an answer").status
    };
    assert_eq!(ask(&[], "/api/v1/topics"), 200);
    assert_eq!(ask(&[("traceparent", &said()), ("tracestate", STATE)], "/api/v1/topics"), 200);
    let told = collector.span("GET /api/v1/topics", |_, span| span["parentSpanId"] == CAUSE && span["traceState"] == STATE);
    assert_eq!(attribute(&told, "http.response.status_code"), json!({"intValue": "200"}));
    assert_eq!(attribute(&told, "http.route"), json!({"stringValue": "/api/v1/topics"}));
    // None begins there: whoever looks at the cloud is not looked at.
    let own = collector.spans().into_iter().filter(|(_, span)| span["name"] == "GET /api/v1/topics").count();
    assert_eq!(own, 1);
}

/// Two levels, of which the first one is smoothed as well.
const LEVELS: &str = r#"
[graph]
name = "levels"

[[supplier]]
topic = "left"
shape = "f64"
period_ms = 1

[[supplier]]
topic = "right"
shape = "f64"
period_ms = 1

[[operator]]
name = "smooth"
kind = "moving_average"
inputs = ["left"]
window = 1

[[operator]]
name = "both"
kind = "concatenate"
inputs = ["smooth", "right"]

[[output]]
topic = "smooth-left"
from = "smooth"

[[output]]
topic = "both-levels"
from = "both"
"#;

#[test]
fn what_a_graph_makes_is_of_the_traces_of_what_it_is_made_of() {
    let (place, collector) = (TempDir::new().expect("a temporary directory"), Collector::listen());
    let graph = place.path().join("levels.toml");
    std::fs::write(&graph, LEVELS).expect("written");
    let cloud = Launch::new().flags(["--otlp-url", &collector.url(), "--graphs", graph.to_str().expect("text")]).start();
    cloud.register_system("sensor", 1);
    let stream = |event_type: &str| {
        EventStream::open(cloud.address(System::EventHandler), &format!("/eventhandler/events?event_type={event_type}"), &[])
    };
    let (smooth, both) = (stream("smooth-left"), stream("both-levels"));
    let publish = |event_type: &str, traceparent: Option<&str>| {
        let headers: Vec<_> =
            traceparent.map(|value| ("traceparent", value)).into_iter().chain([("Content-Type", "application/json")]).collect();
        let body = event(event_type, system("sensor", 1), "2").to_string();
        let mut connection = cloud.connect(System::EventHandler);
        connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("an answer").expect_status(200);
    };
    let metadata = |stream: &EventStream, count: usize| {
        let heard: Value = serde_json::from_str(&stream.wait_for(count)[count - 1].data).expect("Event JSON");
        heard["metaData"].clone()
    };
    // Nothing of no trace.
    publish("left", None);
    publish("right", None);
    assert_eq!((metadata(&smooth, 1), metadata(&both, 1)), (json!({"derived": "true"}), json!({"derived": "true"})));

    let other = said().replace(TRACE, "11111111111111111111111111111111");
    publish("left", Some(&said()));
    let published = collector.span("publish", |_, _| true);
    let smoothed =
        collector.span("process", |_, span| attribute(span, "messaging.destination.name") == json!({"stringValue": "SMOOTH-LEFT"}));
    assert_eq!((&smoothed["parentSpanId"], &smoothed["links"]), (&published["spanId"], &json!([])));
    assert_eq!(attribute(&smoothed, "bodkin.graph"), json!({"stringValue": "levels"}));
    let carried = |span: &Value| json!(format!("00-{TRACE}-{}-01", span["spanId"].as_str().expect("an identity")));
    assert_eq!(metadata(&smooth, 2)["traceparent"], carried(&smoothed));
    collector.span("dispatch", |_, span| span["parentSpanId"] == smoothed["spanId"]);

    // Made of two events, named after the first one's.
    publish("right", Some(&other));
    let joined =
        collector.span("process", |_, span| attribute(span, "messaging.destination.name") == json!({"stringValue": "BOTH-LEVELS"}));
    assert_eq!(joined["parentSpanId"], published["spanId"]);
    let links = joined["links"].as_array().expect("a list");
    assert_eq!((links.len(), &links[0]["traceId"]), (1, &json!("11111111111111111111111111111111")));
    assert_eq!(metadata(&both, 2), json!({"derived": "true", "traceparent": carried(&joined)}));
}

/// A request that is of the trace; gives the answer's status.
#[track_caller]
fn ask(side: &Side, name: &str, system: System, target: &str, body: &Value) -> u16 {
    let client = Client::believing(&side.system(name), TrustDirectory::new(side.data.join("trust")).anchor().expect("an authority"));
    let mut connection = client.connect(side.cloud.address(system)).expect("a connection");
    let headers = [("Content-Type", "application/json"), ("traceparent", &said()), ("tracestate", STATE)];
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
    assert_eq!(answered["traceState"], STATE, "it is in the sealed question");
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
    assert_eq!(heard["metaData"]["tracestate"], STATE, "{heard}");
    // The attempt that was heard, which need not be the first.
    let answered = collector.span("answer shared_event", |of, _| of.starts_with("two."));
    let asked = collector.span("ask shared_event", |of, span| of.starts_with("one.") && span["spanId"] == answered["parentSpanId"]);
    let deliver = collector.span("deliver", |of, span| of.starts_with("one.") && span["spanId"] == asked["parentSpanId"]);
    assert_eq!(deliver["parentSpanId"], publish["spanId"]);
    collector.span("dispatch", |of, span| of.starts_with("two.") && span["parentSpanId"] == publish["spanId"]);
}
