//! Replays of dead letters that something ends, or that are slow.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{DEAD_LETTERS, QUICK, Scene};
use crate::support::arrowhead::{number, with};
use crate::support::cloud::{Launch, System};
use crate::support::http::Connection;
use crate::support::patience::eventually;
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};

/// A replay of 99 letters whose first one has come to a subscriber that does not answer yet, as it has to the newest event.
struct Replaying {
    scene: Scene,
    listener: PushSubscriber,
    answer: Connection,
}

impl Replaying {
    fn begin() -> Self {
        let port = held_port();
        let scene = Scene::new(Launch::new().flags(["--push-give-up-s", "1"]), port);
        scene.publish(0..100);
        scene.wait_for("deadLetters", 99);
        let listener = PushSubscriber::listen_at(port, Manner::Waits);
        let mut answer = scene.cloud.connect(System::Monitor);
        answer.send_request("POST", &format!("{DEAD_LETTERS}/replay"), &[], Some(b"")).expect("sent");
        listener.wait_for_payload("0");
        listener.wait_for_payload("99");
        Self { scene, listener, answer }
    }

    /// Lets the subscriber answer; gives what the replay says when it has ended.
    #[track_caller]
    fn end(&mut self) -> Value {
        self.listener.release();
        self.answer.read_answer().expect("an answer").expect_status(200).json()
    }

    /// What came, in the order of numbers.
    fn heard(&self) -> Vec<usize> {
        let mut heard: Vec<usize> = self.listener.payloads().iter().map(|payload| payload.parse().expect("a number")).collect();
        heard.sort_unstable();
        heard
    }
}

#[test]
fn a_replay_ends_with_its_subscription() {
    let mut replaying = Replaying::begin();
    let port = replaying.scene.port;
    let unsubscribe = format!("/eventhandler/unsubscribe?event_type=hot&system_name=subscriber&address=127.0.0.1&port={port}");
    replaying.scene.cloud.delete(&unsubscribe).expect_status(200);
    assert_eq!(replaying.end(), json!({"replayed": 1, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(replaying.heard(), [0, 99], "nothing but what was under way");
}

#[test]
fn what_is_replayed_slowly_is_noted_by_and_by() {
    const LETTERS: i64 = 59;
    let (port, place) = (held_port(), TempDir::new().expect("a temporary directory"));
    let scene = Scene::new(Launch::new().data(place.path()).flags(["--push-give-up-s", "1"]), port);
    scene.publish(0..60);
    scene.wait_for("deadLetters", LETTERS);
    let _listener = PushSubscriber::listen_at(port, Manner::IsSlow);
    let mut replaying = scene.cloud.connect(System::Monitor);
    replaying.send_request("POST", &format!("{DEAD_LETTERS}/replay"), &[], Some(b"")).expect("sent");
    let mut left = LETTERS;
    assert!(eventually(|| {
        left = number(&scene.dead_letters(), "/count");
        left < LETTERS
    }));
    assert!(left > LETTERS / 2, "{left} are left, and so long nothing was noted");
    scene.cloud.kill();
    let scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port };
    assert!(number(&scene.dead_letters(), "/count") <= left);
}

#[test]
fn a_replay_ends_with_its_letters() {
    let mut replaying = Replaying::begin();
    let removed = replaying.scene.cloud.delete(DEAD_LETTERS).expect_status(200).json();
    assert_eq!(removed, json!({"removed": 99}));
    assert_eq!(replaying.end(), json!({"replayed": 1, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(replaying.heard(), [0, 99], "nothing but what was under way");
    replaying.scene.wait_for("deadLetters", 0);
}

#[test]
fn a_replay_ends_when_the_subscription_is_to_something_else() {
    let mut replaying = Replaying::begin();
    let cold = with(replaying.scene.subscription(), "/eventType", "cold");
    replaying.scene.change_to(&cold);
    assert_eq!(replaying.end()["replayed"], 1);
    assert_eq!(replaying.heard(), [0, 99], "nothing but what was under way");
}

#[test]
fn a_replay_goes_on_where_its_subscription_wants_it_now() {
    let mut replaying = Replaying::begin();
    let elsewhere = with(replaying.scene.subscription(), "/notifyUri", "/elsewhere");
    replaying.scene.cloud.subscribe(&elsewhere);
    assert_eq!(replaying.end(), json!({"replayed": 99, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(replaying.heard(), (0..100).collect::<Vec<_>>());
    let there = replaying.listener.notifications().iter().filter(|one| one.target == "/elsewhere").count();
    assert_eq!(there, 98);
}

#[test]
fn a_replay_sends_nothing_more_once_the_rule_is_gone() {
    let mut replaying = Replaying::begin();
    replaying.scene.forbid();
    assert_eq!(replaying.end(), json!({"replayed": 1, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(replaying.heard(), [0, 99], "nothing but what was under way");
    assert_eq!(number(&replaying.scene.delivery(), "/lost"), 98);
}
