//! `bodkin event` on a real cloud: publish, tail, replay, subscriptions, the event log.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{bodkin, done, has_row, json, started, text};
use crate::real_time_client::topic;
use crate::support::arrowhead::{service, system};
use crate::support::cloud::{Cloud, Launch};
use crate::support::patience::eventually;
use crate::support::ports::held_offset;
use crate::zmtp::address;
use crate::zmtp_ipc::path;

/// A listener that runs; killed when dropped.
struct Tail {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Tail {
    /// Starts it and waits until it is subscribed.
    fn start(cloud: &Cloud, line: &str) -> Self {
        let mut child = started(cloud, line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let tail = Self { child, stdout };
        wait_for_listener(cloud);
        tail
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line of text");
        line.trim_end().to_owned()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for_listener(cloud: &Cloud) {
    let listens = || text(&cloud.get("/metrics").body).contains("bodkin_event_subscriptions 1\n");
    assert!(eventually(listens), "the listener did not subscribe");
}

fn cloud() -> Cloud {
    let cloud = Launch::new().start();
    cloud.register(&service("heat", system("sensor", 9000)));
    cloud.register_system("display", 9001);
    cloud
}

fn payloads(printed: &str) -> Vec<String> {
    let data = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["data"].as_str().expect("a text").to_owned();
    printed.lines().map(data).collect()
}

#[test]
fn what_is_published_from_the_command_line_is_heard_there() {
    let cloud = cloud();
    let mut tail = Tail::start(&cloud, "--output json event tail HOT --count 2");
    done(&cloud, "event publish hot 21.5 --system sensor --metadata unit=celsius");
    done(&cloud, "event publish hot -22.5 --system sensor");
    assert_eq!(payloads(&format!("{}\n{}", tail.line(), tail.line())), ["21.5", "-22.5"]);
    assert!(eventually(|| tail.child.try_wait().expect("it can be waited for").is_some_and(|status| status.success())));

    let log = json(&cloud, "event log");
    assert_eq!((&log["nextPosition"], &log["suspended"]), (&json!(2), &Value::Null));
    has_row(&done(&cloud, "event log"), &["events", "2"]);
}

#[test]
fn a_tail_hears_only_what_its_filters_let_pass() {
    let cloud = cloud();
    let line = "event tail HOT --metadata room=7 --severity warning --payload temperature/value=>21.5";
    let mut tail = Tail::start(&cloud, line);
    for (payload, metadata) in [
        ("{\"temperature\":{\"value\":22,\"of\":\"a\"}}", "--metadata room=8 --metadata severity=Error"),
        ("{\"temperature\":{\"value\":22,\"of\":\"b\"}}", "--metadata room=7 --metadata severity=Debugging"),
        ("{\"temperature\":{\"value\":21,\"of\":\"c\"}}", "--metadata room=7 --metadata severity=Error"),
        ("{\"temperature\":{\"value\":22,\"of\":\"d\"}}", "--metadata room=7 --metadata severity=Error"),
    ] {
        done(&cloud, &format!("event publish hot {payload} --system sensor {metadata}"));
    }
    assert!(tail.line().contains("\"d\""));
}

#[test]
fn a_replay_prints_what_is_kept_and_ends() {
    let cloud = cloud();
    for payload in ["1", "2", "3"] {
        done(&cloud, &format!("event publish hot {payload} --system sensor"));
    }
    let everything = done(&cloud, "--output json event replay hot --since 0");
    assert_eq!(payloads(&everything), ["1", "2", "3"]);
    let first: Value = serde_json::from_str(everything.lines().next().expect("a line")).expect("JSON");
    let id = first["id"].as_str().expect("an id");
    assert_eq!(done(&cloud, &format!("event replay hot --after {id}")), "2\n3\n");
    assert_eq!(done(&cloud, "event replay hot --since 2099-01-01T00:00:00Z"), "");
    let whole = done(&cloud, "event replay hot --since 1970-01-01T00:00:00Z --form event");
    assert_eq!(serde_json::from_str::<Value>(whole.lines().next().expect("a line")).expect("JSON")["payload"], "1");
    assert_eq!(bodkin(&cloud, "event replay hot --since yesterday").status.code(), Some(1));
    assert_eq!(done(&cloud, "event replay cold --since 0"), "");

    let expired = bodkin(&cloud, "event replay hot --after 1-2-3-4");
    assert_eq!(text(&expired.stdout), "1\n2\n3\n", "what is kept");
    assert!(text(&expired.stderr).contains("events were lost here"), "{expired:?}");
}

/// A listener hears what was published before it came back, whether it had `heard_before` or not.
fn goes_on(heard_before: bool) {
    let port_offset = held_offset();
    let data = TempDir::new().expect("a temporary directory");
    let start = || Launch::new().data(data.path()).port_offset(port_offset.get()).start();
    let cloud = start();
    cloud.register(&service("heat", system("sensor", 9000)));
    let mut tail = Tail::start(&cloud, "event tail HOT");
    if heard_before {
        done(&cloud, "event publish hot before --system sensor");
        assert_eq!(tail.line(), "before");
    }
    cloud.kill();
    let cloud = start();
    done(&cloud, "event publish hot between --system sensor");
    wait_for_listener(&cloud);
    done(&cloud, "event publish hot after --system sensor");
    assert_eq!((tail.line(), tail.line()), ("between".to_owned(), "after".to_owned()));
}

#[test]
fn a_tail_goes_on_where_it_was_when_the_cloud_comes_back() {
    goes_on(true);
}

#[test]
fn a_tail_that_has_heard_nothing_misses_nothing_when_the_cloud_comes_back() {
    goes_on(false);
}

#[test]
fn subscriptions_are_made_listed_and_ended() {
    let cloud = cloud();
    let line =
        "event subscribe hot --system display --notify-uri /hot --source sensor --severity error --payload a=>1 --metadata unit=celsius";
    done(&cloud, line);
    let subscriptions = json(&cloud, "event subscriptions --page 0 --rows 5");
    let subscription = &subscriptions["data"][0];
    assert_eq!((&subscription["notifyUri"], &subscription["minSeverity"]), (&json!("/hot"), &json!("Error")));
    assert_eq!(subscription["payloadFilter"], json!({"a": ">1"}));
    has_row(&done(&cloud, "event subscriptions"), &["HOT", "display", "127.0.0.1:9001/hot", "unit=celsius severity>=Error a=>1"]);
    done(&cloud, "event unsubscribe hot --system display");
    assert_eq!(json(&cloud, "event subscriptions")["count"], 0);

    let told = done(&cloud, "event subscribe hot --system display --notify-uri /hot --cloudevents binary");
    let subscription = json(&cloud, "event subscriptions")["data"][0].clone();
    assert_eq!((&subscription["filterMetaData"], &subscription["matchMetaData"]), (&json!({"cloudevents": "binary"}), &json!(false)));
    let id = subscription["id"].clone();
    let advice = "it hears nobody yet: no rule lets display use a service of a publisher; bodkin auth add --consumer display";
    let shown = || done(&cloud, &format!("event show {id}"));
    assert!(told.contains(advice) && shown().contains(advice), "{told}{}", shown());
    done(&cloud, "auth add --consumer display --provider sensor --service heat");
    assert!(!shown().contains("hears nobody"), "{}", shown());
    let again = done(&cloud, "event subscribe hot --system display --notify-uri /hot");
    assert!(!again.contains("nobody"), "{again}");
    let id = json(&cloud, "event subscriptions")["data"][0]["id"].clone();
    assert_eq!(json(&cloud, &format!("event remove {id}"))["removed"]["id"], id);
    assert_eq!(bodkin(&cloud, &format!("event remove {id}")).status.code(), Some(1));
}

#[test]
fn in_real_time_an_event_is_published_until_it_is_covered_and_heard_with_its_losses_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("bodkin.toml");
    std::fs::write(&file, topic("hot", "broker_subscriber_max_ms = 1")).expect("written");
    let cloud = Launch::new().flags(["--config", file.to_str().expect("text")]).start();
    cloud.register_system("sensor", 9000);
    let (zmtp, ipc) = (address(&cloud), path(&cloud).expect("there is a path"));
    let mut tail = Tail::start(
        &cloud,
        &format!(
            "--output json event tail hot --realtime --zmtp ipc://{} --system display --required-for-s 60 --deadline-ms 100 --count 2",
            ipc.display()
        ),
    );
    let publish = |payload: &str, system: &str| format!("event publish Hot {payload} --system {system} --realtime --zmtp {zmtp}");
    assert!(done(&cloud, &publish("first", "sensor")).starts_with("covered: Hot by sensor, "));
    let covered = json(&cloud, &publish("second", "sensor"));
    assert_eq!((&covered["covered"]["eventType"], &covered["covered"]["system"]), (&json!("Hot"), &json!("sensor")));
    for (sequence, data) in ["first", "second"].into_iter().enumerate() {
        let heard: Value = serde_json::from_str(&tail.line()).expect("JSON");
        assert_eq!((&heard["data"], &heard["outOfOrder"]), (&json!(data), &json!(false)), "{sequence}");
        assert!(heard["publisher"].as_u64().expect("a number") > 0 && heard["sequence"] == 1, "{heard}: each command is a run of its own");
    }
    let summary: Value = serde_json::from_str(&tail.line()).expect("JSON");
    assert_eq!((&summary["summary"]["received"], &summary["summary"]["lost"]), (&json!(2), &json!(0)));
    assert!(summary["summary"]["late"].is_u64(), "{summary}");
    // Everybody has gone; who is required is waited for, so that nothing is covered.
    let told = |line: &str| text(&bodkin(&cloud, line).stderr);
    assert!(told(&format!("{} --covered-within-ms 200", publish("third", "sensor"))).contains("is not covered within 200 ms"));
    assert!(told(&publish("fourth", "stranger")).contains("stranger is not registered"));
    let refused = told(&format!("event tail hot --realtime --zmtp {zmtp} --system other --deadline-ms 0"));
    assert!(refused.contains("not subscribed (NotAdmitted)"), "{refused}");
    let filtered = told(&format!("event tail hot --realtime --zmtp {zmtp} --severity Warning"));
    assert!(filtered.contains("hears a topic whole"), "{filtered}");
}
