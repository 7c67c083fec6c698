//! How seldom who does not take events is asked, and when it is given up.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Scene, expect, numbers};
use crate::support::cloud::Launch;
use crate::support::patience::eventually;
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};

#[test]
fn who_refuses_everything_is_asked_as_rarely_as_who_is_away() {
    let listener = PushSubscriber::listen(Manner::Answers);
    let flags = ["--push-attempts-max", "1", "--push-breaker-failures", "3"];
    let patient = ["--push-backoff-min-ms", "60000", "--push-backoff-max-ms", "60000"];
    let scene = Scene::begin(Launch::new().flags(flags).flags(patient), listener.port());
    listener.answer_with(403, "");
    scene.publish(0..100);
    let open = scene.wait_for("state", "open");
    assert!(open["nextAttemptAt"].is_string(), "{open}");
    let begun = Instant::now();
    // The first three die at once; each wait behind them is anything up to a minute, so a fourth in a row of short ones is no chance.
    assert!(eventually(|| listener.count() > 7 || begun.elapsed() > Duration::from_secs(2)));
    assert!(listener.count() <= 7, "{} attempts", listener.count());
    listener.answer_with(200, "");
    scene.act("pause");
    scene.act("resume");
    let live = scene.wait_for("state", "live");
    // The others waited in the event log.
    scene.wait_for("delivered", 100 - live["deadLetters"].as_u64().expect("a number"));
}

#[test]
fn a_pause_is_no_time_of_failing() {
    let port = held_port();
    let scene = Scene::new(Launch::new().flags(["--push-give-up-s", "3"]), port);
    scene.publish(0..10);
    scene.wait_for("state", "open");
    scene.act("pause");
    let paused = Instant::now();
    let attempts = |delivery: &Value| delivery["attempts"].as_u64().expect("a number");
    assert!(eventually(|| paused.elapsed() > Duration::from_millis(3100)));
    let before = attempts(&scene.act("resume"));
    assert!(eventually(|| attempts(&scene.delivery()) >= before + 2));
    assert_eq!(scene.delivery()["deadLetters"], 0);
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    expect(&listener, &numbers(0..10));
}
