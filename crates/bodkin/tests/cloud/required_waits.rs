//! Topics that reject events because a required subscriber has not acknowledged earlier ones: how long they may wait, and what operators see.

use std::time::Duration;

use bodkin_broker::wire::{ClientFrame, EventHeader, RefusalReason};
use bodkin_broker::{Epoch, Sequence};
use serde_json::{Value, json};

use crate::commands::ended;
use crate::dealer::{dealer, header, hear, publish, refused, say, subscribe};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::link::Link;
use crate::support::patience::eventually;
use crate::zmtp::heard;

/// A cloud with a topic `hot` that keeps few events, and the system `sensor`.
fn cloud(data: &std::path::Path, platform: &str, topic: &str) -> Cloud {
    let file = data.join("bodkin.toml");
    let promises = "period_us = 1\nloss_tolerance = 0\nretention = 2";
    std::fs::write(&file, format!("[platform]\nfailover_us = 1\n{platform}\n[[topic]]\nevent_type = \"hot\"\n{promises}\n{topic}\n"))
        .expect("written");
    let cloud = Launch::new().data(data).flags(["--config", file.to_str().expect("text")]).start();
    cloud.register_system("sensor", 1);
    cloud
}

fn waits_for(cloud: &Cloud) -> Value {
    cloud.get("/api/v1/topics").expect_status(200).json()["data"][0]["waitsFor"].clone()
}

/// Publishes until the topic is full; returns how many events it has accepted.
fn fill(sensor: &mut Link) -> u64 {
    for sequence in 1..10_000 {
        publish(sensor, "hot", b"1", &header(sequence));
        // An accepted event is not answered before it is covered: the answer to a clock request is behind it.
        say(sensor, &ClientFrame::ClockRequest { epoch: Epoch::NONE, sent_utc_ns: 0 });
        let mut is_full = false;
        while !hear(sensor, |command| {
            is_full |= matches!(command, ClientFrame::Refused { reason: RefusalReason::Full, .. });
            matches!(command, ClientFrame::ClockReply { .. })
        }) {}
        if is_full {
            return sequence - 1;
        }
    }
    panic!("the backlog is bounded");
}

#[test]
fn publisher_goes_on_behind_an_event_that_was_refused_for_room_and_then_for_good() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), "", "");
    let (mut alarm, mut sensor) = (dealer(&cloud, "alarm"), dealer(&cloud, "sensor"));
    subscribe(&mut alarm, "hot", Some(Duration::from_secs(86_000)));
    hear(&mut alarm, |command| assert!(matches!(command, ClientFrame::Subscribed { .. })));
    let accepted = fill(&mut sensor);
    // It comes again on another connection, and too late to be believed.
    drop(sensor);
    let mut sensor = dealer(&cloud, "sensor");
    publish(&mut sensor, "hot", b"1", &EventHeader { created_utc_ns: 1, ..header(accepted + 1) });
    assert_eq!(refused(&mut sensor).0, RefusalReason::Header);
    for _ in 0..accepted {
        let (_, _, EventHeader { publisher, incarnation, sequence: through, .. }) = heard(&mut alarm);
        say(&mut alarm, &ClientFrame::Delivered { epoch: Epoch::NONE, publisher, incarnation, through, topic: "hot" });
    }
    assert!(eventually(|| waits_for(&cloud) == Value::Null), "{}", waits_for(&cloud));
    publish(&mut sensor, "hot", b"1", &header(accepted + 2));
    let (_, _, next) = heard(&mut alarm);
    assert_eq!(next.sequence, Sequence(accepted + 2));
}

#[test]
fn subscriber_that_holds_up_a_topic_is_reported() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), "", "");
    let (mut alarm, mut sensor) = (dealer(&cloud, "alarm"), dealer(&cloud, "sensor"));
    subscribe(&mut alarm, "hot", Some(Duration::from_secs(86_000)));
    hear(&mut alarm, |command| assert!(matches!(command, ClientFrame::Subscribed { .. })));
    assert_eq!(waits_for(&cloud), Value::Null);
    ended(&cloud, "status", 0);
    let accepted = fill(&mut sensor);
    let told = waits_for(&cloud);
    assert_eq!((&told["subscriber"], &told["requiredForS"], &told["rejected"]), (&json!("alarm"), &json!(86_000), &json!(1)), "{told}");
    let since = told["since"].as_str().expect("a time").to_owned();
    let shown = ended(&cloud, "status", 1);
    assert!(shown.contains("HOT for alarm since") && shown.contains(&since), "{shown}");
    let listed = ended(&cloud, "topic list", 0);
    assert!(listed.contains(&format!("alarm since {since}")), "{listed}");
    let metrics = cloud.get("/metrics").expect_status(200).text();
    assert!(metrics.contains("\nbodkin_topics_waiting 1\n"), "{metrics}");
    assert_shown(cloud.address(System::Monitor), "BodkinTopicWaits");
    assert!(metrics.contains("\nbodkin_topic_waiting_seconds{event_type=\"HOT\",subscriber=\"alarm\"} "), "{metrics}");
    assert!(eventually(|| cloud.stderr().contains("topic waits for a required subscriber")), "{}", cloud.stderr());
    for _ in 0..accepted {
        let (_, _, EventHeader { publisher, incarnation, sequence: through, .. }) = heard(&mut alarm);
        say(&mut alarm, &ClientFrame::Delivered { epoch: Epoch::NONE, publisher, incarnation, through, topic: "hot" });
    }
    assert!(eventually(|| waits_for(&cloud) == Value::Null), "{}", waits_for(&cloud));
    assert!(eventually(|| cloud.stderr().contains("topic no longer waits for the required subscriber")), "{}", cloud.stderr());
    ended(&cloud, "status", 0);
    publish(&mut sensor, "hot", b"1", &EventHeader { sequence: Sequence(accepted + 1), ..header(1) });
    assert_eq!(heard(&mut alarm).2.sequence, Sequence(accepted + 1));
}

#[test]
fn wait_beyond_the_topics_bound_is_refused() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), "required_for_max_s = 60", "");
    ended(&cloud, "topic add cold period_s=1 required_for_max_s=5", 0);
    let mut alarm = dealer(&cloud, "alarm");
    for (topic, seconds, bound) in [("hot", 61, "at most 60 s (required_for_max)"), ("cold", 6, "at most 5 s (required_for_max)")] {
        subscribe(&mut alarm, topic, Some(Duration::from_secs(seconds)));
        let (reason, text) = refused(&mut alarm);
        assert!(reason == RefusalReason::NotAdmitted && text.contains(bound), "{reason:?} {text}");
        subscribe(&mut alarm, topic, Some(Duration::from_secs(seconds - 1)));
        hear(&mut alarm, |command| assert!(matches!(command, ClientFrame::Subscribed { .. }), "{command:?}"));
    }
}

#[test]
fn lower_bound_ends_a_wait_that_has_begun() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), "", "");
    let declare = |bound: &str| ended(&cloud, &format!("topic add cold period_us=1 loss_tolerance=0 retention=2 {bound}"), 0);
    declare("");
    let mut alarm = dealer(&cloud, "alarm");
    subscribe(&mut alarm, "cold", Some(Duration::from_secs(86_000)));
    hear(&mut alarm, |command| assert!(matches!(command, ClientFrame::Subscribed { .. })));
    // It is away, and its topic is declared anew.
    drop(alarm);
    ended(&cloud, "topic remove cold", 0);
    declare("required_for_max_ms=1");
    assert!(eventually(|| cloud.stderr().contains("not waited for any more")), "{}", cloud.stderr());
}
