//! What publishers and subscribers receive while this node begins or ceases to lead, or its disk fails.

use std::ops::Range;

use bodkin_arrowhead::{
    form::SystemRequest,
    name::NamingRules,
    system::{CoreSystemNames, SystemRegistration},
};
use bodkin_broker::{
    PublisherId, Sequence, StreamIdentity,
    member::Protection,
    wire::{EventHeader, Flags, RefusalReason},
};
use bodkin_store::event_log::{EventLog, EventLogLimits, Position};

use super::{super::super::publish::EventTexts, *};
use crate::{
    shard::log::{UNSYNCED_MAX, Waiting},
    topics::TopicError,
};

const DEADLINE_NS: u64 = 1_000_000_000;

impl Scene {
    /// A link of a DEALER that publishes as a registered system.
    pub(super) fn publisher(&mut self, name: &str) -> (usize, std::net::TcpStream) {
        let form =
            SystemRequest { system_name: Some(name.into()), address: Some("127.0.0.1".into()), port: Some(1), ..SystemRequest::default() };
        let system = SystemRegistration::parse(form, CoreSystemNames::Refused, &NamingRules::default(), "/test").unwrap();
        let store = self.shard.context.store.clone();
        self.runtime.block_on(store.write(move |draft| draft.register_system(&system), |_, _| ())).unwrap();
        let (slot, client) = self.dealer(name);
        self.shard.endpoint.dealer(slot).system = Ok(SystemName::parse(name).unwrap());
        (slot, client)
    }

    fn publish(&mut self, slot: usize, topic: &str, sequence: u64) -> Result<(), String> {
        self.publish_payload(slot, topic, sequence, &format!("event {sequence}"))
    }

    pub(super) fn publish_payload(&mut self, slot: usize, topic: &str, sequence: u64, payload: &str) -> Result<(), String> {
        let created_utc_ns = control::now().unix_nanos();
        let (publisher, incarnation, sequence) = (PublisherId(0), Incarnation(1), Sequence(sequence));
        let mut header = Vec::new();
        EventHeader { flags: Flags::default(), publisher, incarnation, sequence, created_utc_ns, epoch: EPOCH }.encode(&mut header);
        let texts = EventTexts { event_type: topic.as_bytes(), payload: payload.as_bytes(), metadata: None };
        self.shard.clock.advance();
        self.shard.dealer_event(slot, texts, &header)
    }

    /// Takes the messages that wait to be written to a link.
    fn messages(&mut self, slot: usize) -> Vec<Vec<Vec<u8>>> {
        let bytes = std::mem::take(self.shard.endpoint.links[slot].outbox.bytes());
        let (mut rest, mut messages, mut is_more) = (&bytes[..], Vec::new(), false);
        while let Some((flags, behind)) = rest.split_first() {
            let (length, body) = match flags & 2 {
                0 => (usize::from(behind[0]), &behind[1..]),
                _ => (u64::from_be_bytes(behind[..8].try_into().unwrap()) as usize, &behind[8..]),
            };
            if !is_more {
                messages.push(Vec::new());
            }
            messages.last_mut().unwrap().push(body[..length].to_vec());
            (rest, is_more) = (&body[length..], flags & 1 != 0);
        }
        messages
    }

    /// The payloads of the events that wait to be written to a link.
    fn events(&mut self, slot: usize) -> Vec<String> {
        let events = self.messages(slot).into_iter().filter(|frames| frames.len() > 1);
        events.map(|frames| String::from_utf8(frames[1].clone()).unwrap()).collect()
    }

    /// What a link is told of its events and subscriptions: a refusal, with its sequence and reason, or how far it is covered.
    fn answers(&mut self, slot: usize) -> Vec<Answer> {
        let messages = self.messages(slot);
        let commands = messages.iter().filter(|frames| frames.len() == 1).map(|frames| ClientFrame::decode(&frames[0]).unwrap());
        let answer = |command: ClientFrame<'_>| match command {
            ClientFrame::Covered { through, .. } => Some(Answer::Covered(through.0)),
            ClientFrame::Refused { sequence, reason, .. } => Some(Answer::Refused(sequence.0, reason)),
            ClientFrame::Subscribed { .. } => Some(Answer::Subscribed),
            ClientFrame::SubscribeRefused { reason, .. } => Some(Answer::SubscribeRefused(reason)),
            _ => None,
        };
        commands.filter_map(answer).collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Covered(u64),
    Refused(u64, RefusalReason),
    Subscribed,
    SubscribeRefused(RefusalReason),
}

#[test]
fn subscriber_with_wish_receives_before_admission_answers() {
    for wish in [(None, Some(DEADLINE_NS)), (Some(0), None)] {
        let mut scene = Scene::new();
        let (display, _display) = scene.dealer("display");
        scene.declare("T", false);
        scene.shard.subscribe_dealer(display, "t", wish, None, Watermarks::Own(&[]));
        let (sensor, _sensor) = scene.publisher("sensor");
        scene.leads();
        scene.publish(sensor, "T", 1).unwrap();
        scene.shard.work(16);
        assert_eq!(scene.events(display), ["event 1"]);
        scene.shard.make_noted();
        assert_eq!(scene.shard.endpoint.dealer(display).questions, 1, "admission has not answered");
        scene.publish(sensor, "T", 2).unwrap();
        scene.shard.work(16);
        assert_eq!(scene.events(display), ["event 2"]);
        let link = scene.shard.dealer_key(display);
        scene.shard.dealer_answered(link, "T", Ok(()));
        assert_eq!(scene.answers(display), [Answer::Subscribed]);
        scene.publish(sensor, "T", 3).unwrap();
        scene.shard.work(16);
        assert_eq!(scene.events(display), ["event 3"]);
    }
}

#[test]
fn subscriber_whose_wish_is_refused_receives_no_more() {
    let mut scene = Scene::new();
    let (display, _display) = scene.dealer("display");
    scene.declare("T", false);
    scene.shard.subscribe_dealer(display, "t", (None, Some(DEADLINE_NS)), None, Watermarks::Own(&[]));
    let (sensor, _sensor) = scene.publisher("sensor");
    scene.leads();
    scene.shard.make_noted();
    scene.answers(display);
    let link = scene.shard.dealer_key(display);
    scene.shard.dealer_answered(link, "T", Err(TopicError::Platform("it does not fit".to_owned())));
    assert_eq!(scene.answers(display), [Answer::SubscribeRefused(RefusalReason::NotAdmitted)]);
    scene.publish(sensor, "T", 1).unwrap();
    scene.shard.work(16);
    assert_eq!((scene.events(display), scene.heard(display)), (vec![], 0));
}

/// Events that are due before a best-effort one, so that the work in front of it outlasts the lease.
const DUE: usize = 100;
const LEASE: Duration = Duration::from_millis(2);

impl Scene {
    /// Publishes a best-effort event in front of which the lease that the shard knows ends; it ends for good, unless it goes on.
    fn publish_past_lease(&mut self, goes_on: bool) -> (usize, Result<(), String>) {
        let ((display, _display), (sensor, _sensor)) = (self.dealer("display"), self.publisher("sensor"));
        let topics: Vec<String> = (0..DUE).map(|number| format!("T-{number}")).collect();
        for topic in &topics {
            self.declare(topic, false);
            self.shard.subscribe_dealer(display, topic, (None, None), None, Watermarks::Own(&[]));
        }
        self.leads();
        let payload = "\"".repeat(20_000);
        for topic in &topics {
            self.publish_payload(sensor, topic, 1, &payload).unwrap();
        }
        self.answers(sensor);
        self.leadership.lead(EPOCH, boot_time().plus(LEASE));
        self.shard.renew_authority();
        if goes_on {
            self.leadership.lead(EPOCH, bodkin_broker::Instant::NEVER);
        }
        let published = self.publish(sensor, "BEST-EFFORT", 1);
        self.shard.tell_covered();
        (sensor, published)
    }
}

#[test]
fn event_refused_behind_due_work_ends_the_link() {
    let mut scene = Scene::new();
    let (sensor, published) = scene.publish_past_lease(false);
    assert_eq!(scene.answers(sensor), [Answer::Refused(1, RefusalReason::NotLeading)]);
    published.unwrap_err();
}

#[test]
fn event_is_accepted_when_the_lease_is_renewed_during_due_work() {
    let mut scene = Scene::new();
    let (sensor, published) = scene.publish_past_lease(true);
    published.unwrap();
    assert_eq!(scene.answers(sensor), [Answer::Covered(1)]);
}

impl Scene {
    /// Gives the shard an event log, which is never synced by itself.
    fn open_log(&mut self) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let limits = EventLogLimits { bytes_max: 1 << 20, age_max: Duration::from_secs(60) };
        let (log, _) = EventLog::open(directory.path(), limits, Position(0), 1, Box::new(|_, _| {})).unwrap();
        self.shard.log = Some(log);
        directory
    }

    /// Publishes events, and ends the turn with the result of their sync.
    fn sync(&mut self, slot: usize, topic: &str, sequences: Range<u64>, result: Result<(), String>) -> Vec<Answer> {
        for sequence in sequences {
            self.publish(slot, topic, sequence).unwrap();
            self.shard.work(16);
        }
        self.shard.end_turn();
        // Without a Backup its disk is not waited for.
        self.shard.pair_tells(News::Protection(Protection::Alone));
        self.shard.serve_backup();
        let end = self.shard.log.as_ref().unwrap().next_position();
        self.shard.synced(end, result);
        self.shard.tell_covered();
        self.answers(slot)
    }
}

#[test]
fn every_event_is_refused_when_its_sync_fails() {
    // A run may begin with any number.
    const FIRST: u64 = 1 << 40;
    let mut scene = Scene::new();
    let _log = scene.open_log();
    scene.declare("KEPT", true);
    let (sensor, _sensor) = scene.publisher("sensor");
    scene.leads();
    let answers = scene.sync(sensor, "KEPT", FIRST..FIRST + 3, Err("the disk is full".to_owned()));
    let refused = |sequence| Answer::Refused(sequence, RefusalReason::NotKept);
    assert_eq!(answers, [refused(FIRST), refused(FIRST + 1), refused(FIRST + 2), Answer::Covered(FIRST + 2)]);
    assert_eq!(scene.sync(sensor, "KEPT", FIRST + 3..FIRST + 5, Ok(())), [Answer::Covered(FIRST + 4)]);
}

#[test]
fn durable_event_beyond_unsynced_limit_is_refused() {
    let mut scene = Scene::new();
    let _log = scene.open_log();
    scene.shard.context.durable = ["KEPT".into()].into();
    let (sensor, _sensor) = scene.publisher("sensor");
    scene.leads();
    assert_eq!(scene.sync(sensor, "KEPT", 1..2, Ok(())), [Answer::Covered(1)]);
    let stream = StreamIdentity { topic: TopicId(0), publisher: PublisherId(9), incarnation: Incarnation(9) };
    scene.shard.unsynced.publishers = vec![(Position(u64::MAX), Waiting::Event(stream, Sequence(1))); UNSYNCED_MAX].into();
    scene.publish(sensor, "KEPT", 2).unwrap();
    assert_eq!(scene.answers(sensor), [Answer::Refused(2, RefusalReason::NotKept)]);
    // Events by HTTP and REQ pass the same check.
    assert_eq!(scene.shard.check_durable(None).map_err(|error| error.error_code), Err(503));
    scene.publish(sensor, "NOT-KEPT", 1).unwrap();
    scene.shard.tell_covered();
    assert_eq!(scene.answers(sensor), [Answer::Covered(1)]);
    scene.shard.unsynced.publishers.clear();
    assert_eq!(scene.sync(sensor, "KEPT", 3..4, Ok(())), [Answer::Covered(3)]);
}

#[test]
fn best_effort_event_is_refused_when_its_sync_fails() {
    let mut scene = Scene::new();
    let _log = scene.open_log();
    scene.shard.context.durable = ["KEPT".into()].into();
    let (sensor, _sensor) = scene.publisher("sensor");
    scene.leads();
    assert_eq!(scene.sync(sensor, "KEPT", 1..2, Ok(())), [Answer::Covered(1)]);
    // The first one comes again.
    let answers = scene.sync(sensor, "KEPT", 1..3, Err("the disk is full".to_owned()));
    assert_eq!(answers, [Answer::Refused(2, RefusalReason::NotKept), Answer::Covered(2)]);
}

impl Scene {
    /// Ends a publisher's link before anything is written to it, and opens its next one.
    fn reconnect(&mut self, slot: usize, name: &str) -> (usize, std::net::TcpStream) {
        self.shard.forget_dealer(slot);
        self.shard.endpoint.links.remove(slot);
        let (slot, client) = self.dealer(name);
        self.shard.endpoint.dealer(slot).system = Ok(SystemName::parse(name).unwrap());
        (slot, client)
    }

    /// Ends a turn in which a link was read; everything in the log is on the disk.
    fn turn(&mut self, slot: usize) -> Vec<Answer> {
        self.shard.work(16);
        self.shard.end_turn();
        self.shard.serve_backup();
        if let Some(log) = &self.shard.log {
            let end = log.next_position();
            self.shard.synced(end, Ok(()));
        }
        self.shard.tell_covered();
        self.answers(slot)
    }

    /// Publishes an event that waits for its sync.
    fn publish_unsynced(&mut self, slot: usize, topic: &str, sequence: u64) {
        self.publish(slot, topic, sequence).unwrap();
        self.shard.work(16);
        self.shard.end_turn();
        self.shard.pair_tells(News::Protection(Protection::Alone));
        self.shard.serve_backup();
    }

    fn sync_fails(&mut self) {
        let end = self.shard.log.as_ref().unwrap().next_position();
        self.shard.synced(end, Err("the disk is full".to_owned()));
        self.shard.tell_covered();
    }

    fn resume(&mut self, slot: usize, topic: &str, from: u64, to: u64) {
        self.shard.resume_run(slot, topic, Incarnation(1), Sequence(from), Sequence(to));
    }
}

#[test]
fn event_whose_refusal_is_lost_with_the_link_is_refused_again() {
    for is_real_time in [true, false] {
        let mut scene = Scene::new();
        let _log = scene.open_log();
        if is_real_time {
            scene.declare("KEPT", true);
        } else {
            scene.shard.context.durable = ["KEPT".into()].into();
        }
        let (sensor, _sensor) = scene.publisher("sensor");
        scene.leads();
        assert_eq!(scene.sync(sensor, "KEPT", 1..2, Ok(())), [Answer::Covered(1)]);
        scene.publish_unsynced(sensor, "KEPT", 2);
        scene.publish_unsynced(sensor, "KEPT", 3);
        scene.sync_fails();
        let (sensor, _sensor) = scene.reconnect(sensor, "sensor");
        scene.resume(sensor, "KEPT", 1, 4);
        scene.publish(sensor, "KEPT", 1).unwrap();
        assert_eq!(scene.turn(sensor), [Answer::Covered(1)], "the others are still to come");
        let refused = |sequence| Answer::Refused(sequence, RefusalReason::NotKept);
        scene.publish(sensor, "KEPT", 2).unwrap();
        assert_eq!(scene.turn(sensor), [refused(2), Answer::Covered(2)]);
        scene.publish(sensor, "KEPT", 3).unwrap();
        scene.publish(sensor, "KEPT", 4).unwrap();
        assert_eq!(scene.turn(sensor), [refused(3), Answer::Covered(4)]);
        // It has heard the refusals, so that it keeps none of these events.
        scene.resume(sensor, "KEPT", 4, 5);
        scene.publish(sensor, "KEPT", 5).unwrap();
        assert_eq!(scene.turn(sensor), [Answer::Covered(5)]);
    }
}

#[test]
fn cover_does_not_pass_a_refused_event_that_comes_again() {
    for is_real_time in [true, false] {
        let mut scene = Scene::new();
        if is_real_time {
            scene.declare("HOT", false);
        }
        let (sensor, _sensor) = scene.publisher("sensor");
        scene.leads();
        scene.publish(sensor, "HOT", 1).unwrap();
        let long = "x".repeat(70_000);
        scene.publish_payload(sensor, "HOT", 2, &long).unwrap();
        scene.publish(sensor, "HOT", 3).unwrap();
        let refused = Answer::Refused(2, RefusalReason::TooLarge);
        assert_eq!(scene.turn(sensor), [Answer::Refused(2, RefusalReason::TooLarge), Answer::Covered(3)]);
        let (sensor, _sensor) = scene.reconnect(sensor, "sensor");
        scene.resume(sensor, "HOT", 1, 3);
        scene.publish(sensor, "HOT", 1).unwrap();
        assert_eq!(scene.turn(sensor), [Answer::Covered(1)]);
        // What is refused is taken if the rules allow it meanwhile, and else refused again; later events have gone out, so that this one cannot.
        scene.publish(sensor, "HOT", 2).unwrap();
        scene.publish(sensor, "HOT", 3).unwrap();
        assert_eq!(scene.turn(sensor), [refused, Answer::Covered(3)]);
    }
}

#[test]
fn cover_does_not_wait_for_events_that_were_given_up() {
    // A publisher that has received the refusal names only what it keeps, or does not send the event and names its last one.
    for named in [2, 3] {
        let mut scene = Scene::new();
        let _log = scene.open_log();
        scene.declare("KEPT", true);
        let (sensor, _sensor) = scene.publisher("sensor");
        scene.leads();
        assert_eq!(scene.sync(sensor, "KEPT", 1..3, Ok(())), [Answer::Covered(2)]);
        scene.publish_unsynced(sensor, "KEPT", 3);
        scene.sync_fails();
        let (sensor, _sensor) = scene.reconnect(sensor, "sensor");
        scene.resume(sensor, "KEPT", 2, named);
        scene.publish(sensor, "KEPT", 2).unwrap();
        if named == 3 {
            assert_eq!(scene.turn(sensor), [Answer::Covered(2)]);
            scene.shard.repeat_cover(sensor, "KEPT", Incarnation(1), Sequence(3));
        }
        assert_eq!(scene.turn(sensor), [Answer::Covered(3)]);
    }
}
