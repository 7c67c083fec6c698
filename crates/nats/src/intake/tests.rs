//! An intake with a server whose bytes are written by hand.

use super::*;
use crate::{jetstream::Api, protocol::Credentials};

const SECOND: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_secs(2);
const STREAM: &str = r#"{"created":"1","config":{"name":"C","storage":"file","discard":"old","num_replicas":1,"max_bytes":-1,"max_age":0},"state":{"messages":0,"bytes":0,"first_seq":1,"last_seq":0}}"#;
const CONSUMER: &str = r#"{"config":{"durable_name":"e","deliver_policy":"all","ack_policy":"explicit","ack_wait":5000000000,"max_deliver":-1,"max_ack_pending":256,"filter_subjects":["c.e.*"]},"delivered":{"consumer_seq":0,"stream_seq":0},"ack_floor":{"consumer_seq":0,"stream_seq":0}}"#;

struct Scene {
    intake: Intake,
    told: Vec<Told>,
}

impl Scene {
    /// A server has greeted.
    fn greeted() -> Self {
        let setup = IntakeSetup {
            api: Api::new(None).expect("no domain"),
            stream: "C".to_owned(),
            consumer: IntakeSetup::consumer("e", vec!["c.e.*".to_owned()]),
            creates: false,
            rewinds: true,
            process: None,
            taken_max: 256,
            look_every: LOOK_EVERY,
        };
        let mut scene = Self { intake: Intake::new(setup).expect("subjects"), told: Vec::new() };
        scene.reconnects(Duration::ZERO);
        scene
    }

    /// A connection ends, and a server greets on the next one.
    fn reconnects(&mut self, now: Duration) {
        let name = |text| Subject::new(text).expect("a subject");
        let options = Options {
            name: "e".to_owned(),
            credentials: Credentials::None,
            inbox: name("_INBOX.r"),
            is_encrypted: false,
            greeting_wait_max: SECOND,
            silence_max: 60 * SECOND,
        };
        self.intake.connected(options, name("_INBOX.p"), now);
        self.hears("INFO {\"server_name\":\"n\",\"headers\":true,\"max_payload\":1048576}\r\nPONG\r\n", now);
    }

    /// Messages come.
    fn open() -> Self {
        let mut scene = Self::greeted();
        scene.answers("STREAM.INFO.C", STREAM, Duration::ZERO);
        scene.intake.remembers(Memory::new(Some(0), []), 0);
        scene.answers("CONSUMER.INFO.C.e", CONSUMER, Duration::ZERO);
        assert_eq!(scene.told.pop(), Some(Told::Ready(0)));
        scene.told.clear();
        scene
    }

    fn hears(&mut self, bytes: &str, now: Duration) {
        self.intake.receive(bytes.as_bytes(), now, &mut self.told).expect("it goes on");
    }

    fn steps(&mut self, now: Duration) -> Duration {
        self.intake.step(now, &mut self.told).expect("it goes on")
    }

    fn says(&mut self) -> String {
        let mut out = Vec::new();
        self.intake.take_out(&mut out);
        String::from_utf8(out).expect("text")
    }

    /// What is due is asked, and gets this answer.
    fn answers(&mut self, call: &str, answer: &str, now: Duration) {
        self.steps(now);
        let said = self.says();
        let asked = format!("PUB $JS.API.{call} ");
        let rest = said.split(&asked).nth(1).unwrap_or_else(|| panic!("{call} is asked: {said}"));
        let reply = rest.split(' ').next().expect("where the answer goes");
        self.hears(&format!("MSG {reply} 1 {}\r\n{answer}\r\n", answer.len()), now);
    }

    /// The server says something about the pull of this number.
    fn says_of_pull(&mut self, number: u64, status: &str, now: Duration) {
        let block = format!("NATS/1.0 {status}\r\n\r\n");
        self.hears(&format!("HMSG _INBOX.p.{number} 2 {} {}\r\n{block}\r\n", block.len(), block.len()), now);
    }

    /// The consumer brings this one.
    fn brings(&mut self, sequence: u64, now: Duration) {
        self.hears(&format!("MSG c.e.T 2 $JS.ACK.C.e.1.{sequence}.{sequence}.1.0 1\r\nx\r\n"), now);
    }
}

#[test]
fn who_waits_for_an_answer_about_the_stream_does_not_come_again_at_once() {
    let mut scene = Scene::open();
    scene.steps(SECOND);
    let looked = LOOK_PERIOD;
    scene.says_of_pull(1, "100 Idle Heartbeat", looked - SECOND);
    scene.steps(looked);
    assert!(scene.says().contains("STREAM.INFO.C"));
    for late_ms in [0, 500, 1_000, 1_999] {
        let now = looked + Duration::from_millis(late_ms);
        scene.says_of_pull(1, "100 Idle Heartbeat", now);
        assert!(scene.steps(now) > now, "{late_ms} ms behind the question");
    }
    assert_eq!(scene.told, []);
    scene.steps(looked + QUESTION_WAIT_MAX);
    assert_eq!(scene.told, [Told::None(Refusal::NoAnswer.into())], "without an answer all is asked anew");
}

#[test]
fn a_message_that_no_pull_has_room_for_is_told_and_not_asked_for_without_a_pause() {
    let too_long = "409 Message Size Exceeds MaxBytes";
    let mut scene = Scene::open();
    scene.steps(SECOND);
    assert!(scene.says().contains("CONSUMER.MSG.NEXT.C.e _INBOX.p.1 "));
    scene.brings(1, SECOND);
    scene.says_of_pull(1, too_long, SECOND);
    scene.steps(SECOND);
    assert!(scene.says().contains("_INBOX.p.2 "), "it had no room in what was left");
    assert!(matches!(scene.told[..], [Told::Take(_)]));
    scene.says_of_pull(2, too_long, SECOND);
    assert_eq!(scene.told[1..], [Told::None(NoIntake::Ended("Message Size Exceeds MaxBytes".to_owned()))]);
    assert!(scene.steps(SECOND) >= SECOND + LOOK_EVERY);
    assert_eq!(scene.says(), "");
}

#[test]
fn consumer_ahead_of_restored_taker_is_made_again() {
    let mut scene = Scene::greeted();
    scene.answers("STREAM.INFO.C", STREAM, Duration::ZERO);
    scene.intake.remembers(Memory::new(Some(7), []), 0);
    let ahead = CONSUMER.replace("\"stream_seq\":0", "\"stream_seq\":9");
    scene.answers("CONSUMER.INFO.C.e", &ahead, Duration::ZERO);
    scene.answers("CONSUMER.DELETE.C.e", r#"{"success":true}"#, Duration::ZERO);
    let said = scene.says();
    assert!(said.contains("CONSUMER.CREATE.C.e") && said.contains(r#""opt_start_seq":8"#), "{said}");
    // The server counts what is in front of the first message of its subjects as acknowledged.
    let reply = said.split("CONSUMER.CREATE.C.e").nth(1).and_then(|rest| rest.split(' ').nth(1)).expect("where the answer goes").to_owned();
    scene.told.clear();
    scene.hears(&format!("MSG {reply} 1 {}\r\n{ahead}\r\n", ahead.len()), Duration::ZERO);
    assert_eq!(scene.told, [Told::Ready(0)]);
}

#[test]
fn consumer_ahead_that_cannot_be_deleted_is_loss() {
    let mut scene = Scene::greeted();
    scene.answers("STREAM.INFO.C", STREAM, Duration::ZERO);
    scene.intake.remembers(Memory::new(Some(7), []), 0);
    let ahead = CONSUMER.replace("\"stream_seq\":0", "\"stream_seq\":9");
    scene.answers("CONSUMER.INFO.C.e", &ahead, Duration::ZERO);
    assert!(scene.says().contains("CONSUMER.DELETE.C.e"));
    // A question without the right has no answer.
    scene.hears("-ERR 'Permissions Violation for Publish to \"$JS.API.CONSUMER.DELETE.C.e\"'\r\n", Duration::ZERO);
    let refused = scene.steps(QUESTION_WAIT_MAX);
    assert!(!scene.told.iter().any(|told| matches!(told, Told::Lost(_))), "{:?}", scene.told);
    let (mut now, mut said) = (refused, String::new());
    for _ in 0..20 {
        now = scene.steps(now).max(now);
        said = scene.says();
        if said.contains("STREAM.INFO.C") {
            break;
        }
    }
    assert!(said.contains("STREAM.INFO.C"), "it looks again: {said}");
    let reply = said.split("STREAM.INFO.C ").nth(1).and_then(|rest| rest.split(' ').next()).expect("where the answer goes").to_owned();
    scene.hears(&format!("MSG {reply} 1 {}\r\n{STREAM}\r\n", STREAM.len()), now);
    scene.intake.remembers(Memory::new(Some(7), []), 0);
    scene.answers("CONSUMER.INFO.C.e", &ahead, now);
    assert!(scene.told.contains(&Told::Lost(2)) && matches!(scene.told.last(), Some(Told::Ready(_))), "{:?}", scene.told);
}

#[test]
fn new_taker_begins_with_its_own_start() {
    let mut scene = Scene::greeted();
    scene.intake.setup.creates = true;
    scene.answers("STREAM.INFO.C", STREAM, Duration::ZERO);
    scene.intake.remembers(Memory::since("2026-11-30T09:00:00Z".to_owned()), 0);
    let none = r#"{"error":{"code":404,"err_code":10014,"description":"consumer not found"}}"#;
    scene.answers("CONSUMER.INFO.C.e", none, Duration::ZERO);
    let said = scene.says();
    assert!(said.contains(r#""deliver_policy":"by_start_time""#) && said.contains(r#""opt_start_time":"2026-11-30T09:00:00Z""#), "{said}");
}

#[test]
fn a_consumer_that_takes_no_such_pull_is_told() {
    let mut scene = Scene::open();
    scene.steps(SECOND);
    scene.says_of_pull(1, "409 Exceeded MaxRequestMaxBytes of 1024", SECOND);
    assert_eq!(scene.told, [Told::None(NoIntake::Ended("Exceeded MaxRequestMaxBytes of 1024".to_owned()))]);
}

#[test]
fn a_taker_that_cannot_say_what_it_remembers_is_asked_again() {
    let mut scene = Scene::greeted();
    scene.answers("STREAM.INFO.C", STREAM, Duration::ZERO);
    let is_asked = |told: &Told| matches!(told, Told::Stream(_));
    assert!(scene.told.last().is_some_and(is_asked));
    scene.intake.does_not_remember(SECOND);
    assert_eq!(scene.steps(SECOND), SECOND + LOOK_EVERY);
    assert_eq!(scene.says(), "");
    scene.told.clear();
    scene.answers("STREAM.INFO.C", STREAM, SECOND + LOOK_EVERY);
    assert!(scene.told.last().is_some_and(is_asked));
}

#[test]
fn a_server_that_brings_without_end_is_not_taken_from() {
    let mut scene = Scene::open();
    for sequence in 1..=UNDER_WAY_MAX as u64 + 1 {
        scene.brings(sequence, SECOND);
    }
    assert_eq!((scene.intake.taken(), scene.told.pop()), (UNDER_WAY_MAX, Some(Told::None(NoIntake::TooMany))));
}

/// What the server says of the consumer with this process noted.
fn noted(process: &str) -> String {
    CONSUMER.replacen(
        "\"config\":{",
        &format!("\"config\":{{\"metadata\":{{\"bodkin-process\":\"{process}\"}},\"inactive_threshold\":7,"),
        1,
    )
}

#[test]
fn process_that_made_consumer_is_replaced() {
    let mut scene = Scene::greeted();
    scene.intake.setup.process = Some("first".to_owned());
    for (noted_process, last) in [("first", Told::Ready(0)), ("second", Told::None(NoIntake::AnotherProcess("second".to_owned())))] {
        scene.answers("STREAM.INFO.C", STREAM, SECOND);
        scene.intake.remembers(Memory::new(Some(0), []), 0);
        scene.answers("CONSUMER.INFO.C.e", &noted(noted_process), SECOND);
        assert_eq!(scene.told.last(), Some(&last));
        scene.reconnects(SECOND);
    }
}

#[test]
fn process_asks_again_whose_request_to_be_noted_was_lost() {
    let mut scene = Scene::greeted();
    scene.intake.setup.process = Some("later".to_owned());
    for time in [Duration::ZERO, SECOND] {
        scene.answers("STREAM.INFO.C", STREAM, time);
        scene.intake.remembers(Memory::new(Some(0), []), 0);
        scene.answers("CONSUMER.INFO.C.e", &noted("earlier"), time);
        assert!(scene.says().contains("CONSUMER.CREATE.C.e"), "its former start is noted");
        // The connection ends before the answer.
        scene.reconnects(time + SECOND);
    }
    scene.answers("STREAM.INFO.C", STREAM, 2 * SECOND);
    scene.intake.remembers(Memory::new(Some(0), []), 0);
    scene.answers("CONSUMER.INFO.C.e", &noted("last"), 2 * SECOND);
    assert_eq!(scene.told.last(), Some(&Told::None(NoIntake::AnotherProcess("last".to_owned()))), "it was replaced");
}

#[test]
fn process_that_starts_later_takes_over() {
    let mut scene = Scene::greeted();
    scene.intake.setup.process = Some("later".to_owned());
    scene.answers("STREAM.INFO.C", STREAM, Duration::ZERO);
    scene.intake.remembers(Memory::new(Some(0), []), 0);
    scene.told.clear();
    scene.answers("CONSUMER.INFO.C.e", &noted("earlier"), Duration::ZERO);
    let claim = scene.says();
    assert!(
        claim.contains("CONSUMER.CREATE") && claim.contains("\"bodkin-process\":\"later\"") && claim.contains("\"inactive_threshold\":7"),
        "{claim}"
    );
    let reply =
        claim.split("CONSUMER.CREATE.C.e").nth(1).and_then(|rest| rest.split(' ').nth(1)).expect("where the answer goes").to_owned();
    let answer = noted("later");
    scene.hears(&format!("MSG {reply} 1 {}\r\n{answer}\r\n", answer.len()), Duration::ZERO);
    assert_eq!(scene.told, [Told::Ready(0)]);
    scene.told.clear();
    // Another look finds one that is later still: from then on nothing is taken, and it is not claimed again.
    scene.steps(SECOND);
    scene.says();
    let look = |scene: &mut Scene, now| scene.answers("STREAM.INFO.C", STREAM, now);
    scene.says_of_pull(1, "100 Idle Heartbeat", LOOK_PERIOD - SECOND);
    look(&mut scene, LOOK_PERIOD);
    scene.answers("CONSUMER.INFO.C.e", &noted("last"), LOOK_PERIOD);
    assert_eq!(scene.told, [Told::Leaving, Told::None(NoIntake::AnotherProcess("last".to_owned()))], "a pull stands");
    scene.told.clear();
    look(&mut scene, LOOK_PERIOD + LOOK_EVERY);
    scene.answers("CONSUMER.INFO.C.e", &noted("last"), LOOK_PERIOD + LOOK_EVERY);
    assert_eq!(scene.told, [Told::Leaving, Told::None(NoIntake::AnotherProcess("last".to_owned()))]);
}

#[test]
fn stream_without_limits_retention_is_not_used() {
    for retention in ["workqueue", "interest"] {
        let mut scene = Scene::greeted();
        let stream = STREAM.replacen("\"config\":{", &format!("\"config\":{{\"retention\":\"{retention}\","), 1);
        scene.answers("STREAM.INFO.C", &stream, Duration::ZERO);
        assert_eq!(scene.told.pop(), Some(Told::None(NoIntake::Retention)), "{retention}");
        // The stream is looked at again, and no consumer of it is used.
        assert_eq!(scene.steps(Duration::ZERO), LOOK_EVERY);
        assert_eq!(scene.says(), "");
        scene.told.clear();
        scene.answers("STREAM.INFO.C", STREAM, LOOK_EVERY);
        assert!(matches!(scene.told[..], [Told::Stream(_)]), "{:?}", scene.told);
    }
}
