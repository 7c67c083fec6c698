//! Push that loses nothing: retries, the event log behind a subscriber that is away, pauses, restarts, dead letters.

mod circuit;
mod gaps;
mod letters;
mod replays;
mod rules;
mod stops;
mod successors;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::{event, list, number, subscription, system, texts, with};
use crate::support::cloud::{Cloud, Launch};
use crate::support::patience::{eventually, eventually_some};
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};

const SUBSCRIPTIONS: &str = "/api/v1/subscriptions";
const DEAD_LETTERS: &str = "/api/v1/dead-letters";

/// Retries within milliseconds, so that a test need not wait.
const QUICK: [&str; 4] = ["--push-backoff-min-ms", "1", "--push-backoff-max-ms", "20"];

/// A cloud with a publisher that the subscriber on `port` may hear.
struct Scene {
    cloud: Cloud,
    port: u16,
}

impl Scene {
    fn new(launch: Launch, port: u16) -> Self {
        Self::begin(launch.flags(QUICK), port)
    }

    /// At the pace that `launch` says.
    fn begin(launch: Launch, port: u16) -> Self {
        let cloud = launch.start();
        let (publisher, definition) = cloud.register_publisher("publisher", 1);
        let subscriber = cloud.register_system("subscriber", port);
        cloud.allow(subscriber, publisher, definition, &[2]);
        let scene = Self { cloud, port };
        scene.cloud.subscribe(&scene.subscription());
        scene
    }

    fn subscription(&self) -> Value {
        subscription("hot", system("subscriber", self.port), "/notify")
    }

    fn publish(&self, numbers: std::ops::Range<usize>) {
        numbers.for_each(|number| self.cloud.publish(&event("hot", system("publisher", 1), &number.to_string())));
    }

    /// The one delivery, as it is told.
    fn delivery(&self) -> Value {
        let all = self.cloud.get(SUBSCRIPTIONS).expect_status(200).json();
        assert_eq!(all["count"], 1, "{all}");
        all["data"][0].clone()
    }

    #[track_caller]
    fn wait_for(&self, member: &str, wanted: impl Into<Value>) -> Value {
        let wanted = wanted.into();
        let mut last = Value::Null;
        let found = eventually_some(|| {
            last = self.delivery();
            (last[member] == wanted).then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("{member} is never {wanted}, but {last}; {}", self.cloud.stderr()))
    }

    fn act(&self, action: &str) -> Value {
        let id = number(&self.delivery(), "/id");
        self.cloud.call("POST", &format!("{SUBSCRIPTIONS}/{id}/{action}"), Some(&json!({}))).expect_status(200).json()
    }

    fn dead_letters(&self) -> Value {
        self.cloud.get(&format!("{DEAD_LETTERS}?item_per_page=1000")).expect_status(200).json()
    }

    /// Removes the rule by which the subscriber hears the publisher; gives the consumer, the provider and the definition it named.
    fn forbid(&self) -> (i64, i64, i64) {
        let rules = self.cloud.get("/authorization/mgmt/intracloud").expect_status(200).json();
        let rule = &rules["data"][0];
        self.cloud.delete(&format!("/authorization/mgmt/intracloud/{}", number(rule, "/id"))).expect_status(200);
        (number(rule, "/consumerSystem/id"), number(rule, "/providerSystem/id"), number(rule, "/serviceDefinition/id"))
    }

    /// Makes the subscription another one's, or to another event type.
    fn change_to(&self, subscription: &Value) {
        let id = number(&self.delivery(), "/id");
        self.cloud.call("PUT", &format!("/eventhandler/mgmt/subscriptions/{id}"), Some(subscription)).expect_status(200);
    }

    fn replay(&self) -> Value {
        self.cloud.call("POST", &format!("{DEAD_LETTERS}/replay"), Some(&json!({}))).expect_status(200).json()
    }
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

/// Waits until so many notifications came, and compares their payloads.
#[track_caller]
fn expect(listener: &PushSubscriber, payloads: &[String]) {
    listener.wait_until(|all| all.len() >= payloads.len(), "further notification");
    assert_eq!(listener.payloads(), payloads);
}

#[test]
fn a_subscriber_that_was_away_gets_everything_in_order_and_then_goes_live() {
    let port = held_port();
    let scene = Scene::new(Launch::new(), port);
    scene.publish(0..300);
    let open = scene.wait_for("state", "open");
    assert!(open["consecutiveFailures"].as_u64() >= Some(5), "{open}");
    assert!(open["lastError"].as_str().is_some_and(|error| error.contains("refused")), "{open}");
    assert!(open["nextAttemptAt"].is_string() && open["lastFailureAt"].is_string() && open["lastSuccessAt"].is_null(), "{open}");
    assert_eq!((&open["delivered"], &open["behind"]), (&json!(0), &json!(300)), "{open}");
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    scene.publish(300..400);
    expect(&listener, &numbers(0..400));
    scene.wait_for("delivered", 400);
    let live = scene.wait_for("state", "live");
    assert_eq!((&live["delivered"], &live["lost"], &live["deadLetters"]), (&json!(400), &json!(0), &json!(0)), "{live}");
    scene.publish(400..410);
    expect(&listener, &numbers(0..410));
    scene.wait_for("behind", 0);
    let metrics = scene.cloud.get("/metrics").text();
    assert!(metrics.contains("bodkin_push_delivered_total 410\n"), "{metrics}");
    assert!(
        metrics.contains("bodkin_events_lost_total 0\n") && metrics.contains("bodkin_push_subscriptions{state=\"live\"} 1\n"),
        "{metrics}"
    );
}

#[test]
fn a_slow_subscriber_falls_behind_and_loses_nothing() {
    let listener = PushSubscriber::listen(Manner::Waits);
    let scene = Scene::new(Launch::new().flags(["--subscriber-queue-bytes-max", "1000"]), listener.port());
    scene.publish(0..500);
    scene.wait_for("state", "behind");
    listener.release();
    expect(&listener, &numbers(0..500));
    scene.wait_for("state", "live");
    assert_eq!(scene.delivery()["lost"], 0);
    let ids: std::collections::BTreeSet<String> =
        listener.notifications().iter().map(|one| one.header("bodkin-event-id").expect("an id").to_owned()).collect();
    assert_eq!(ids.len(), 500, "every event has an id of its own");
}

#[test]
fn a_failing_subscriber_is_tried_again_and_says_when() {
    let listener = PushSubscriber::listen(Manner::Answers);
    let scene = Scene::new(Launch::new(), listener.port());
    for (status, headers) in [(503, ""), (500, ""), (429, "Retry-After: 0\r\n"), (408, ""), (302, "Location: /elsewhere\r\n")] {
        listener.answer_with(status, headers);
        let before = listener.count();
        scene.publish(0..1);
        listener.wait_until(|all| all.len() > before + 6, "seventh attempt, which a refused event would not get");
        assert_eq!(scene.delivery()["lastError"], format!("the subscriber answered {status}"));
        listener.answer_with(200, "");
        scene.wait_for("state", "live");
    }
    assert!(listener.notifications().iter().all(|one| one.target == "/notify"), "a redirect is not followed");
    let ids: std::collections::BTreeSet<String> =
        listener.notifications().iter().map(|one| one.header("bodkin-event-id").expect("an id").to_owned()).collect();
    assert_eq!(ids.len(), 5, "attempts at an event have its id");
    listener.answer_with(503, "Retry-After: 100\r\n");
    let before = listener.count();
    scene.publish(0..1);
    listener.wait_until(|all| all.len() == before + 1, "attempt");
    scene.wait_for("state", "retrying");
    assert_eq!(listener.count(), before + 1, "the wish is respected, however short the backoff");
    assert_eq!(scene.delivery()["deadLetters"], 0);
}

#[test]
fn a_refused_event_is_a_dead_letter_and_can_be_replayed() {
    let listener = PushSubscriber::listen(Manner::Answers);
    let scene = Scene::new(Launch::new().flags(["--push-attempts-max", "2"]), listener.port());
    listener.answer_with(422, "");
    scene.publish(0..3);
    scene.wait_for("deadLetters", 3);
    expect(&listener, &["0", "0", "1", "1", "2", "2"].map(String::from));
    listener.answer_with(200, "");
    scene.publish(3..4);
    listener.wait_for_payload("3");
    let letters = scene.dead_letters();
    assert_eq!((&letters["count"], list(&letters, "/data").len()), (&json!(3), 3), "{letters}");
    assert_eq!(texts(list(&letters, "/data"), "/event/payload"), numbers(0..3));
    let first = &letters["data"][0];
    assert_eq!(
        (&first["attempts"], &first["reason"], &first["eventType"]),
        (&json!(2), &json!("the subscriber answered 422"), &json!("HOT"))
    );
    assert!(first["diedAt"].is_string() && first["publishedAt"].is_string(), "{first}");
    assert_eq!(first["eventId"].as_str(), listener.notifications()[0].header("bodkin-event-id"));
    let page = scene.cloud.get(&format!("{DEAD_LETTERS}?page=1&item_per_page=2")).expect_status(200).json();
    assert_eq!((texts(list(&page, "/data"), "/event/payload"), &page["count"]), (numbers(2..3), &json!(3)));

    assert_eq!(scene.replay(), json!({"replayed": 3, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(listener.payloads()[7..], numbers(0..3));
    assert_eq!((&scene.dead_letters()["count"], &scene.delivery()["deadLetters"]), (&json!(0), &json!(0)));
    assert_eq!(scene.replay(), json!({"replayed": 0, "failed": 0, "remaining": 0, "elsewhere": 0}));
}

#[test]
fn a_replay_keeps_what_is_refused_once_more_and_ends_at_a_failure() {
    let listener = PushSubscriber::listen(Manner::Answers);
    let scene = Scene::new(Launch::new().flags(["--push-attempts-max", "1"]), listener.port());
    listener.answer_with(400, "");
    scene.publish(0..5);
    scene.wait_for("deadLetters", 5);
    assert_eq!(scene.replay(), json!({"replayed": 0, "failed": 5, "remaining": 5, "elsewhere": 0}));
    let letters = scene.dead_letters();
    assert!(list(&letters, "/data").iter().all(|letter| letter["attempts"] == 2), "{letters}");
    listener.answer_with(503, "");
    let ended = scene.replay();
    assert_eq!((&ended["replayed"], &ended["remaining"]), (&json!(0), &json!(5)), "{ended}");
    listener.answer_with(200, "");
    assert_eq!(scene.replay(), json!({"replayed": 5, "failed": 0, "remaining": 0, "elsewhere": 0}));

    listener.answer_with(400, "");
    scene.publish(5..7);
    scene.wait_for("deadLetters", 2);
    let id = number(&scene.delivery(), "/id");
    let removed = scene.cloud.delete(&format!("{DEAD_LETTERS}?subscription={id}")).expect_status(200).json();
    assert_eq!(removed, json!({"removed": 2}));
    assert_eq!((&scene.dead_letters()["count"], &scene.delivery()["deadLetters"]), (&json!(0), &json!(0)));
}

#[test]
fn who_fails_too_long_loses_its_backlog_to_one_row_of_dead_letters() {
    let port = held_port();
    let scene = Scene::new(Launch::new().flags(["--push-give-up-s", "1", "--dead-letters-max", "1"]), port);
    scene.cloud.publish(&event("other", system("publisher", 1), "not for the subscriber"));
    scene.publish(0..100);
    scene.wait_for("deadLetters", 99);
    scene.publish(100..150);
    scene.wait_for("deadLetters", 149);
    let letters = scene.dead_letters();
    assert_eq!(texts(list(&letters, "/data"), "/event/payload"), numbers(0..149), "one row, for only one is kept");
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    listener.wait_for_payload("149");
    scene.wait_for("state", "live");
    assert_eq!(scene.replay(), json!({"replayed": 149, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(listener.payloads()[1..], numbers(0..149));
}

#[test]
fn a_pause_holds_events_back_over_a_restart_and_refuses_replays() {
    let (listener, place) = (PushSubscriber::listen(Manner::Answers), TempDir::new().expect("a temporary directory"));
    let scene = Scene::new(Launch::new().data(place.path()).flags(["--push-attempts-max", "1"]), listener.port());
    listener.answer_with(400, "");
    scene.publish(0..1);
    scene.wait_for("deadLetters", 1);
    listener.answer_with(200, "");
    assert_eq!(scene.act("pause")["state"], "paused");
    scene.publish(1..20);
    let id = number(&scene.delivery(), "/id");
    let refused = scene.cloud.call("POST", &format!("{DEAD_LETTERS}/replay?subscription={id}"), Some(&json!({}))).expect_status(409);
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(scene.replay(), json!({"replayed": 0, "failed": 0, "remaining": 1, "elsewhere": 0}), "all but the paused one");
    let port = scene.port;
    assert!(scene.cloud.stop().success());
    let scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port };
    let paused = scene.wait_for("state", "paused");
    assert_eq!((&paused["behind"], &paused["deadLetters"]), (&json!(19), &json!(1)), "{paused}");
    assert_eq!(listener.count(), 1);
    scene.publish(20..30);
    assert_ne!(scene.act("resume")["state"], "paused");
    expect(&listener, &numbers(0..30));
    assert_eq!(scene.replay()["replayed"], 1);
}

#[test]
fn what_is_published_behind_a_pause_waits_for_its_end() {
    let listener = PushSubscriber::listen(Manner::Answers);
    let scene = Scene::new(Launch::new(), listener.port());
    for round in 0..50 {
        scene.act("pause");
        scene.publish(round..round + 1);
        scene.wait_for("behind", 1);
        assert_eq!(listener.count(), round);
        scene.act("resume");
        listener.wait_for_payload(&round.to_string());
        scene.wait_for("state", "live");
    }
}

#[test]
fn of_pauses_and_resumptions_at_once_the_last_one_holds_over_a_restart() {
    let place = TempDir::new().expect("a temporary directory");
    let mut scene = Scene::new(Launch::new().data(place.path()), 9);
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for first in 0..2 {
                let scene = &scene;
                scope.spawn(move || (0..20).for_each(|round| drop(scene.act(["pause", "resume"][(first + round) % 2]))));
            }
        });
        let is_paused = scene.delivery()["state"] == "paused";
        scene.cloud.kill();
        scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port: 9 };
        assert_eq!(scene.delivery()["state"] == "paused", is_paused);
    }
}

#[test]
fn what_was_not_delivered_at_a_stop_is_delivered_after_the_next_start_and_nothing_else() {
    let (port, place) = (held_port(), TempDir::new().expect("a temporary directory"));
    let scene = Scene::new(Launch::new().data(place.path()), port);
    scene.publish(0..50);
    scene.wait_for("state", "open");
    assert!(scene.cloud.stop().success());
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    let scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port };
    scene.publish(50..60);
    expect(&listener, &numbers(0..60));
    scene.wait_for("state", "live");
    assert!(scene.cloud.stop().success());
    let scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port };
    scene.publish(60..61);
    expect(&listener, &numbers(0..61));
}

#[test]
fn a_kill_doubles_a_second_of_events_at_the_most_and_loses_none() {
    let (listener, place) = (PushSubscriber::listen(Manner::Answers), TempDir::new().expect("a temporary directory"));
    let mut scene = Scene::new(Launch::new().data(place.path()), listener.port());
    let port = scene.port;
    for round in 0..3 {
        scene.publish(round * 100..round * 100 + 100);
        scene.cloud.kill();
        scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port };
    }
    scene.publish(300..301);
    listener.wait_for_payload("300");
    let mut seen = std::collections::BTreeSet::new();
    let mut payloads = Vec::new();
    for one in listener.notifications() {
        if seen.insert(one.header("bodkin-event-id").expect("an id").to_owned()) {
            payloads.push(one.payload());
        }
    }
    assert_eq!(payloads, numbers(0..301), "without what is doubled everything is there, in order");
}

#[test]
fn a_replay_that_is_killed_goes_on_where_it_was() {
    const EVENTS: usize = 9000;
    let (port, place) = (held_port(), TempDir::new().expect("a temporary directory"));
    let scene = Scene::new(Launch::new().data(place.path()).flags(["--push-give-up-s", "1"]), port);
    let mut connection = scene.cloud.connect(crate::support::cloud::System::EventHandler);
    for number in 0..EVENTS {
        let body = event("hot", system("publisher", 1), &number.to_string()).to_string();
        let headers = [("Content-Type", "application/json")];
        connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("published");
    }
    scene.wait_for("deadLetters", EVENTS - 1);
    let listener = PushSubscriber::listen_at(port, Manner::Answers);
    listener.wait_for_payload(&(EVENTS - 1).to_string());
    scene.wait_for("state", "live");
    let mut replaying = scene.cloud.connect(crate::support::cloud::System::Monitor);
    replaying.send_request("POST", &format!("{DEAD_LETTERS}/replay"), &[], Some(b"")).expect("sent");
    assert!(eventually(|| number(&scene.dead_letters(), "/count") < EVENTS as i64 - 1), "it does not begin");
    scene.cloud.kill();
    let scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port };
    let left = number(&scene.dead_letters(), "/count");
    assert!(left < EVENTS as i64 - 1, "{left}");
    let done = scene.replay();
    assert_eq!(done, json!({"replayed": left, "failed": 0, "remaining": 0, "elsewhere": 0}));
    let mut all: Vec<usize> = listener.payloads().iter().map(|payload| payload.parse().expect("a number")).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), EVENTS, "none is missing");
}

#[test]
fn without_a_log_events_are_tried_again_and_lost_when_the_queue_is_full() {
    let listener = PushSubscriber::listen(Manner::Answers);
    let flags = ["--event-log", "false", "--subscriber-queue-bytes-max", "1000"];
    let scene = Scene::new(Launch::new().flags(flags), listener.port());
    listener.answer_with(503, "");
    scene.publish(0..100);
    listener.wait_until(|all| all.len() > 7, "further attempt");
    listener.answer_with(200, "");
    scene.wait_for("state", "live");
    let lost = || scene.cloud.get("/metrics").text().contains("bodkin_events_lost_total 0\n");
    assert!(!lost(), "what did not fit is lost");
    // More is lost until half of the queue is read.
    scene.wait_for("behind", 0);
    scene.act("pause");
    scene.act("resume");
    scene.publish(100..101);
    listener.wait_for_payload("100");
    assert_eq!(scene.dead_letters(), json!({"data": [], "count": 0}));
}

#[test]
fn what_is_wrong_is_told_as_a_problem() {
    let scene = Scene::new(Launch::new(), 9);
    let id = number(&scene.delivery(), "/id");
    let shown = scene.cloud.get(&format!("{SUBSCRIPTIONS}/{id}")).expect_status(200).json();
    assert_eq!((&shown["eventType"], &shown["notifyUri"], &shown["state"]), (&json!("HOT"), &json!("/notify"), &json!("live")));
    assert_eq!((&shown["subscriber"]["systemName"], &shown["subscriber"]["port"]), (&json!("subscriber"), &json!(9)));
    for (method, target, status) in [
        ("GET", format!("{SUBSCRIPTIONS}/999"), 404),
        ("GET", format!("{SUBSCRIPTIONS}/x"), 400),
        ("POST", format!("{SUBSCRIPTIONS}/999/pause"), 404),
        ("POST", format!("{SUBSCRIPTIONS}/{id}/stop"), 404),
        ("POST", format!("{SUBSCRIPTIONS}/{id}/pause/now"), 404),
        ("GET", format!("{SUBSCRIPTIONS}/{id}/pause"), 405),
        ("DELETE", format!("{SUBSCRIPTIONS}/{id}"), 405),
        ("POST", SUBSCRIPTIONS.to_owned(), 405),
        ("GET", format!("{DEAD_LETTERS}?subscription=x"), 400),
        ("GET", format!("{DEAD_LETTERS}?page=x"), 400),
        ("GET", format!("{DEAD_LETTERS}?subscription=999"), 404),
        ("GET", format!("{DEAD_LETTERS}/replay"), 405),
        ("POST", format!("{DEAD_LETTERS}/replay?subscription=999"), 404),
        ("POST", DEAD_LETTERS.to_owned(), 405),
        ("GET", format!("{DEAD_LETTERS}/x"), 404),
        ("POST", format!("{SUBSCRIPTIONS}/x/pause"), 400),
    ] {
        let body = (method == "POST").then(|| json!({}));
        let answer = scene.cloud.call(method, &target, body.as_ref());
        assert_eq!((answer.status, answer.header("content-type")), (status, Some("application/problem+json")), "{method} {target}");
        assert_eq!(answer.json()["status"], status);
    }
    let replaced = with(scene.subscription(), "/notifyUri", "/elsewhere");
    scene.cloud.subscribe(&replaced);
    assert_eq!(number(&scene.delivery(), "/id"), id, "a replaced subscription is the same delivery");
}
