//! A lane by itself: what it does with each answer, and when.

use super::super::{Record, overflow::MemoryBacklog};
use super::*;
use crate::jetstream::ApiError;

const MS: Duration = Duration::from_millis(1);

fn lane() -> Lane {
    Lane::new(Terms {
        stream: "FLEET".to_owned(),
        subject: Subject::new("fleet.edge-7.alarms").expect("a subject"),
        epoch: 5,
        batch_bytes_max: 4096,
        batch_wait_max: 10 * MS,
        rest_least: 50 * MS,
        rest_most: 1000 * MS,
    })
}

fn put(lane: &mut Lane, backlog: &mut MemoryBacklog, payload_bytes: usize, now: Duration) {
    let payload = vec![0; payload_bytes];
    let event = Record::Event { topic: "t", publisher: 1, incarnation: 1, sequence: 1, created_ns: 0, payload: &payload };
    let bytes = backlog.put(event).expect("there is room");
    lane.grown(bytes, now);
}

fn step(lane: &mut Lane, backlog: &mut MemoryBacklog, now: Duration) -> Step {
    lane.step(now, backlog, &mut Vec::new())
}

/// A lane that has asked.
fn asked(backlog: &mut MemoryBacklog) -> Lane {
    let mut lane = lane();
    assert_eq!(step(&mut lane, backlog, Duration::ZERO), Step::Wait(None), "there is no connection");
    lane.opened(1 << 20, Duration::ZERO);
    assert_eq!(step(&mut lane, backlog, Duration::ZERO), Step::Ask);
    assert_eq!(step(&mut lane, backlog, Duration::ZERO), Step::Wait(None));
    lane
}

fn found(lane: &mut Lane, last: Option<Last>, backlog: &mut MemoryBacklog) -> Vec<Told> {
    let mut told = Vec::new();
    lane.found(Ok(last), Duration::ZERO, backlog, &mut told);
    told
}

fn last(epoch: u64, first: u64, last: u64) -> Option<Last> {
    Some(Last { sequence: 40, headers: Identity { epoch, first, last }.headers() })
}

fn ends(lane: &mut Lane, answer: Result<PublishAck, AnswerError>, backlog: &mut MemoryBacklog, now: Duration) -> Vec<Told> {
    let mut told = Vec::new();
    lane.acknowledged(answer, now, backlog, &mut told);
    told
}

fn ack(seq: u64) -> Result<PublishAck, AnswerError> {
    Ok(PublishAck { stream: "FLEET".to_owned(), seq, duplicate: false })
}

fn refused(err_code: u32) -> Result<PublishAck, AnswerError> {
    Err(AnswerError::Refused(ApiError { code: 400, err_code, description: String::new() }))
}

#[test]
fn a_batch_goes_when_it_is_full_or_its_first_event_has_waited() {
    let mut backlog = MemoryBacklog::new(1, 1 << 20);
    let mut lane = asked(&mut backlog);
    assert_eq!(found(&mut lane, None, &mut backlog), [Told::Resumed(1)]);
    assert_eq!(step(&mut lane, &mut backlog, MS), Step::Wait(None), "there is nothing");
    put(&mut lane, &mut backlog, 100, MS);
    put(&mut lane, &mut backlog, 100, 8 * MS);
    assert_eq!(step(&mut lane, &mut backlog, 9 * MS), Step::Wait(Some(11 * MS)));
    assert_eq!(step(&mut lane, &mut backlog, 11 * MS), Step::Publish);
    let (subject, headers, payload) = lane.publication();
    assert_eq!((subject.as_str(), payload.len()), ("fleet.edge-7.alarms", 280));
    let headers: Vec<_> = headers.fields().map(|(name, value)| format!("{name}={value}")).collect();
    let expected = [
        "Bodkin-Batch=1",
        "Bodkin-Epoch=5",
        "Bodkin-First=1",
        "Bodkin-Last=2",
        "Nats-Msg-Id=fleet.edge-7.alarms/5/1-2",
        "Nats-Expected-Stream=FLEET",
        "Nats-Expected-Last-Subject-Sequence=0",
    ];
    assert_eq!(headers, expected);
    (0..40).for_each(|_| put(&mut lane, &mut backlog, 100, 12 * MS));
    assert_eq!(step(&mut lane, &mut backlog, 30 * MS), Step::Wait(None), "one is under way at a time");
    assert_eq!(ends(&mut lane, ack(9), &mut backlog, 30 * MS), [Told::Stored { through: 2, records: 2, is_duplicate: false }]);
    assert_eq!(step(&mut lane, &mut backlog, 12 * MS), Step::Publish, "it is full");
    let (_, headers, _) = lane.publication();
    assert_eq!((headers.get("Bodkin-First"), headers.get(EXPECTED_LAST_SUBJECT_SEQUENCE)), (Some("3"), Some("9")));
    assert_eq!(backlog.first(), 3, "what is stored is released");
}

#[test]
fn what_a_full_batch_leaves_waits_since_it_came() {
    let mut backlog = MemoryBacklog::new(1, 1 << 20);
    let mut lane = asked(&mut backlog);
    found(&mut lane, None, &mut backlog);
    (0..2).for_each(|_| put(&mut lane, &mut backlog, 1900, MS));
    put(&mut lane, &mut backlog, 1900, 5 * MS);
    assert_eq!(step(&mut lane, &mut backlog, 5 * MS), Step::Publish, "it is full");
    ends(&mut lane, ack(9), &mut backlog, 6 * MS);
    assert_eq!(step(&mut lane, &mut backlog, 6 * MS), Step::Wait(Some(15 * MS)));
    (0..2).for_each(|_| put(&mut lane, &mut backlog, 1900, 9 * MS));
    assert_eq!(step(&mut lane, &mut backlog, 9 * MS), Step::Publish, "it is full again");
    ends(&mut lane, ack(10), &mut backlog, 10 * MS);
    assert_eq!(step(&mut lane, &mut backlog, 10 * MS), Step::Wait(Some(19 * MS)));
    assert_eq!(step(&mut lane, &mut backlog, 19 * MS), Step::Publish);
    assert_eq!(ends(&mut lane, ack(11), &mut backlog, 20 * MS), [Told::Stored { through: 5, records: 1, is_duplicate: false }]);
}

#[test]
fn it_goes_on_behind_what_the_stream_has_of_its_epoch() {
    for (what, last, told, sequence) in [
        ("nothing", None, Told::Resumed(1), "0"),
        ("a part", last(5, 1, 2), Told::Resumed(3), "40"),
        ("everything", last(5, 3, 3), Told::Resumed(4), "40"),
        ("an epoch before", last(4, 70, 90), Told::Resumed(1), "40"),
    ] {
        let mut backlog = MemoryBacklog::new(1, 1 << 20);
        let mut lane = asked(&mut backlog);
        (0..3).for_each(|_| put(&mut lane, &mut backlog, 1, Duration::ZERO));
        assert_eq!(found(&mut lane, last, &mut backlog), [told], "{what}");
        put(&mut lane, &mut backlog, 1, Duration::ZERO);
        assert_eq!(step(&mut lane, &mut backlog, 10 * MS), Step::Publish, "{what}");
        assert_eq!(lane.publication().1.get(EXPECTED_LAST_SUBJECT_SEQUENCE), Some(sequence), "{what}");
    }
}

#[test]
fn it_stops_where_another_one_has_its_name_and_looks_again() {
    let foreign = Last { sequence: 1, headers: Headers::default() };
    for (last, stop) in [
        (last(6, 1, 1), Stop::NewerEpoch(6)),
        (last(5, 1, 2), Stop::Ahead(2)),
        (Some(foreign), Stop::Foreign(IdentityError::Missing("Bodkin-Batch"))),
    ] {
        let mut backlog = MemoryBacklog::new(1, 1 << 20);
        let mut lane = asked(&mut backlog);
        put(&mut lane, &mut backlog, 1, Duration::ZERO);
        assert_eq!(found(&mut lane, last, &mut backlog), [Told::Stopped(stop)]);
        assert_eq!(step(&mut lane, &mut backlog, 999 * MS), Step::Wait(Some(1000 * MS)));
        assert_eq!(step(&mut lane, &mut backlog, 1000 * MS), Step::Ask);
    }
}

#[test]
fn a_refused_batch_is_sent_again_as_the_same_with_pauses_that_double() {
    let mut backlog = MemoryBacklog::new(1, 1 << 20);
    let mut lane = asked(&mut backlog);
    put(&mut lane, &mut backlog, 1, Duration::ZERO);
    found(&mut lane, None, &mut backlog);
    let mut now = 10 * MS;
    for rest in [50, 100, 200, 400, 800, 1000, 1000] {
        assert_eq!(step(&mut lane, &mut backlog, now), Step::Publish);
        let told = ends(&mut lane, refused(10_077), &mut backlog, now);
        assert!(matches!(&told[..], [Told::Refused(Refusal::Answer(_))]), "{told:?}");
        now += rest * MS;
        assert_eq!(step(&mut lane, &mut backlog, now - MS), Step::Wait(Some(now)));
        assert_eq!(step(&mut lane, &mut backlog, now), Step::Ask);
        put(&mut lane, &mut backlog, 1, now);
        assert_eq!(found(&mut lane, None, &mut backlog), [Told::Resumed(1)]);
        assert_eq!(lane.publication().1.get(MESSAGE_ID), Some("fleet.edge-7.alarms/5/1-1"), "more would be another batch");
    }
}

#[test]
fn a_batch_that_is_there_already_is_found_by_asking_once() {
    let mut backlog = MemoryBacklog::new(1, 1 << 20);
    let mut lane = asked(&mut backlog);
    put(&mut lane, &mut backlog, 1, Duration::ZERO);
    found(&mut lane, None, &mut backlog);
    assert_eq!(step(&mut lane, &mut backlog, 10 * MS), Step::Publish);
    // A late copy of it was first.
    assert_eq!(ends(&mut lane, refused(10_071), &mut backlog, 10 * MS), []);
    assert_eq!(step(&mut lane, &mut backlog, 10 * MS), Step::Ask);
    assert_eq!(found(&mut lane, last(5, 1, 1), &mut backlog), [Told::Resumed(2)]);
    assert_eq!((step(&mut lane, &mut backlog, 10 * MS), backlog.first()), (Step::Wait(None), 2));
}

#[test]
fn what_is_not_in_the_stream_any_more_is_told_once_a_batch_behind_it_is() {
    for (last, gone) in [(last(5, 1, 1), Told::StreamLost(2, 3)), (None, Told::Emptied(3))] {
        // 1 to 3 are not held any more.
        let mut backlog = MemoryBacklog::new(4, 1 << 20);
        let mut lane = asked(&mut backlog);
        put(&mut lane, &mut backlog, 1, Duration::ZERO);
        assert_eq!(found(&mut lane, last, &mut backlog), [Told::Resumed(4)], "a leader of yesterday may have said so");
        assert_eq!(step(&mut lane, &mut backlog, 10 * MS), Step::Publish);
        assert_eq!(ends(&mut lane, ack(41), &mut backlog, 10 * MS)[0], gone);
    }
}

#[test]
fn an_event_without_room_in_any_batch_is_a_loss_and_does_not_stop_the_lane() {
    let mut backlog = MemoryBacklog::new(1, 1 << 20);
    let mut lane = asked(&mut backlog);
    put(&mut lane, &mut backlog, 5000, Duration::ZERO);
    found(&mut lane, None, &mut backlog);
    let mut told = Vec::new();
    assert_eq!(lane.step(10 * MS, &mut backlog, &mut told), Step::Publish);
    assert_eq!(
        (told, lane.publication().2),
        (vec![Told::TooLong { events: 1, bytes_max: 4096, is_servers: false }], &b"\x02\x00\x01t\x00\x00\x00\x00\x00\x00\x00\x01"[..])
    );
}

#[test]
fn event_beyond_the_servers_limit_names_the_server() {
    let mut backlog = MemoryBacklog::new(1, 1 << 20);
    let mut lane = Lane::new(Terms { batch_bytes_max: 32_768, ..lane().terms().clone() });
    lane.opened(ENVELOPE_BYTES_MAX + 8192, Duration::ZERO);
    put(&mut lane, &mut backlog, 10_000, Duration::ZERO);
    assert_eq!(step(&mut lane, &mut backlog, 10 * MS), Step::Ask);
    found(&mut lane, None, &mut backlog);
    let mut told = Vec::new();
    assert_eq!(lane.step(10 * MS, &mut backlog, &mut told), Step::Publish);
    assert_eq!(told, [Told::TooLong { events: 1, bytes_max: 8192, is_servers: true }]);
}

#[test]
fn a_batch_that_another_server_does_not_take_is_cut_anew() {
    let mut backlog = MemoryBacklog::new(1, 1 << 20);
    let mut lane = Lane::new(Terms { batch_bytes_max: 32_768, ..lane().terms().clone() });
    (0..40).for_each(|_| put(&mut lane, &mut backlog, 700, Duration::ZERO));
    for (bytes_max, last_position) in [(1 << 20, "40"), (16_384, "15")] {
        lane.closed();
        lane.opened(bytes_max, Duration::ZERO);
        assert_eq!(step(&mut lane, &mut backlog, 10 * MS), Step::Ask);
        found(&mut lane, None, &mut backlog);
        assert_eq!(step(&mut lane, &mut backlog, 10 * MS), Step::Publish);
        assert_eq!(lane.publication().1.get("Bodkin-Last"), Some(last_position));
        assert!(lane.publication().2.len() < bytes_max);
    }
}

#[test]
fn a_batch_that_its_server_does_not_take_any_more_is_cut_anew() {
    let (mut backlog, mut told) = (MemoryBacklog::new(1, 1 << 20), Vec::new());
    let mut lane = Lane::new(Terms { batch_bytes_max: 32_768, ..lane().terms().clone() });
    (0..40).for_each(|_| put(&mut lane, &mut backlog, 700, Duration::ZERO));
    lane.opened(1 << 20, Duration::ZERO);
    for last_position in ["40", "15"] {
        assert_eq!(step(&mut lane, &mut backlog, 600_000 * MS), Step::Ask);
        found(&mut lane, None, &mut backlog);
        assert_eq!(step(&mut lane, &mut backlog, 600_000 * MS), Step::Publish);
        assert_eq!(lane.publication().1.get("Bodkin-Last"), Some(last_position));
        lane.unanswered(Refusal::TooLong(16_384), Duration::ZERO, &mut told);
    }
}

/// A backlog that finds its place by what the stream has.
struct Placed(MemoryBacklog, Vec<Place>);

impl Backlog for Placed {
    fn first(&self) -> u64 {
        self.0.first()
    }

    fn end(&self) -> u64 {
        self.0.end()
    }

    fn read(&mut self, from: u64, batch: &mut Batch) {
        self.0.read(from, batch);
        batch.set_source(format!("{from}"));
    }

    fn place(&mut self, last: Option<Held<'_>>) -> Place {
        let place = self.1.pop().expect("it is asked as often as the stream");
        if let (Place::Moved(_), Some(held)) = (&place, last) {
            self.0 = MemoryBacklog::new(held.identity.last + 1, 1 << 20);
        }
        place
    }

    fn release(&mut self, through: u64) {
        self.0.release(through);
    }
}

#[test]
fn a_backlog_says_where_it_goes_on_and_gets_its_word_back() {
    let mut lane = lane();
    let mut backlog = Placed(MemoryBacklog::new(1, 1 << 20), vec![Place::Moved(7)]);
    lane.opened(1 << 20, Duration::ZERO);
    assert_eq!(lane.step(Duration::ZERO, &mut backlog, &mut Vec::new()), Step::Ask);
    let mut told = Vec::new();
    lane.found(Ok(last(7, 1, 90)), Duration::ZERO, &mut backlog, &mut told);
    assert_eq!(told, [Told::Resumed(91)], "in the stream's epoch, behind what it has");
    put(&mut lane, &mut backlog.0, 1, Duration::ZERO);
    assert_eq!(lane.step(10 * MS, &mut backlog, &mut Vec::new()), Step::Publish);
    let (_, headers, _) = lane.publication();
    assert_eq!(
        (headers.get("Bodkin-Epoch"), headers.get("Bodkin-First"), headers.get("Bodkin-Source")),
        (Some("7"), Some("91"), Some("91"))
    );
    assert_eq!(headers.get(MESSAGE_ID), Some("fleet.edge-7.alarms/7/91-91/91"), "another edge's batch has another ID");
    assert_eq!(headers.get(EXPECTED_LAST_SUBJECT_SEQUENCE), Some("40"));
    let stop = Stop::Unplaced("no log".to_owned());
    backlog.1.push(Place::Stop(stop.clone()));
    lane.closed();
    lane.opened(1 << 20, 20 * MS);
    assert_eq!(lane.step(20 * MS, &mut backlog, &mut Vec::new()), Step::Ask);
    told.clear();
    lane.found(Ok(None), 20 * MS, &mut backlog, &mut told);
    assert_eq!(told, [Told::Stopped(stop)]);
}
