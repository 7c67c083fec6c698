//! A backlog against a log whose files go, and against what a stream may have.

use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use bodkin_arrowhead::record::SystemId;
use bodkin_broker::{EventId, Incarnation, PublisherId, Sequence, TopicId, topic::Platform};
use bodkin_nats::lane::{Identity, Records};
use bodkin_store::event_log::{EventLog, EventLogLimits, Origin};
use tempfile::TempDir;

use super::super::{
    follower::{Chosen, Follower, Selection},
    writer::{Exclusion, tests::restarted},
};
use super::*;
use crate::topics::RealTimeTopics;

const LIMITS: EventLogLimits = EventLogLimits { bytes_max: 1 << 20, age_max: std::time::Duration::from_secs(3600) };
const TIME_NS: u64 = 1_800_000_000_000_000_000;
const WINDOW: usize = 4_096;
/// As whose the fleet's own events are published.
const OWN: u64 = 9;

struct Bench {
    log: EventLog,
    reader: EventLogReader,
    synced: Receiver<()>,
    follower: Follower,
    lanes: Vec<LaneBacklog>,
    /// Whether another node leads, whose records this one copies.
    follows: bool,
    _place: TempDir,
}

fn id(sequence: u64) -> EventId {
    EventId { publisher: PublisherId(1), incarnation: Incarnation(5), topic: TopicId(0), sequence: Sequence(sequence) }
}

/// A lane that begins now, of which nothing is noted.
fn lane_of(log: &EventLogReader) -> LaneBacklog {
    LaneBacklog::new(
        log.clone(),
        FleetForm::Payload,
        WINDOW,
        Checkpoint { epoch: 1, position: 0, from: Position(0) },
        restarted(Exclusion::None).0,
    )
}

/// A lane of the topics A and B, beside events of others.
fn bench() -> Bench {
    let place = TempDir::new().expect("a directory");
    let (told, synced) = channel();
    let on_sync = Box::new(move |_, _| {
        // The receiver may be gone at the last sync.
        let _ = told.send(());
    });
    let (log, reader) = EventLog::open(place.path(), LIMITS, Position(0), TIME_NS, on_sync).expect("a log");
    let lane = lane_of(&reader);
    let topics = RealTimeTopics::new(Platform::default(), Default::default()).expect("no topics");
    let chosen = Chosen::new([(0, "A"), (0, "B")].into_iter(), topics.into(), SystemId(OWN.cast_signed()));
    let selection = Selection::Chosen(chosen);
    let follower = Follower::new(reader.clone(), Position(0), selection);
    Bench { log, reader, synced, follower, lanes: vec![lane], follows: false, _place: place }
}

impl Bench {
    /// Appends events of A, B and others in turn; their payloads are their places in the log.
    fn fill(&mut self, events: u64, padding: usize) {
        for _ in 0..events {
            let number = self.log.next_position().0;
            let topic = ["A", "B", "OTHER"][number as usize % 3];
            let json = format!(r#"{{"eventType":"{topic}","payload":"{number}{:padding$}"}}"#, "");
            let (time_ns, id) = (TIME_NS + number, id(number));
            if self.follows {
                self.log
                    .append_copy(&Logged { position: Position(number), time_ns, id, topic, event: &json, origin: None }, Instant::now());
            } else {
                self.log.append(time_ns, id, topic, &json, Instant::now());
            }
            self.log.write(Instant::now());
            if number % 50 == 49 {
                self.sync();
            }
        }
        self.sync();
        self.sync();
    }

    /// Copies events of the node that leads, and leads then.
    fn copy(&mut self, events: u64) {
        self.follows = true;
        self.fill(events, 0);
        self.follows = false;
    }

    fn sync(&mut self) {
        while self.synced.try_recv().is_ok() {}
        self.log.sync();
        self.synced.recv_timeout(std::time::Duration::from_secs(10)).expect("a sync");
    }

    fn follow(&mut self) {
        let is_more = |_: &u32| self.follower.follow(&mut self.lanes, |_, _| ()).expect("the log is read");
        assert!((0..1_000).take_while(is_more).count() < 1_000, "no lane takes what there is");
    }

    fn lane(&mut self) -> &mut LaneBacklog {
        &mut self.lanes[0]
    }

    /// Takes everything off, batch by batch: the places of events, losses by topic, and the last batch's source.
    fn drain(&mut self) -> (Vec<u64>, Vec<(String, u64)>, Option<String>) {
        self.drain_of(0)
    }

    /// The same of one of several lanes.
    fn drain_of(&mut self, at: usize) -> (Vec<u64>, Vec<(String, u64)>, Option<String>) {
        let (mut places, mut lost, mut source) = (Vec::new(), Vec::new(), None);
        loop {
            self.follow();
            let lane = &mut self.lanes[at];
            lane.refill(usize::MAX).expect("the log is read");
            if lane.first() == lane.end() {
                assert_eq!(lane.len(), 0);
                return (places, lost, source);
            }
            let mut batch = Batch::new(WINDOW);
            lane.read(lane.first(), &mut batch);
            for record in Records::new(batch.bytes()) {
                match record.expect("a record") {
                    Record::Event { topic, payload, sequence, .. } => {
                        let place: u64 = std::str::from_utf8(payload).expect("text").trim().parse().expect("a number");
                        assert_eq!((sequence, topic), (place, ["A", "B"][place as usize % 3]));
                        places.push(place);
                    }
                    Record::Lost { topic, count } => lost.push((topic.to_owned(), count)),
                }
            }
            source = Stamp::read(batch.source()).source.map(|source| source.to_string());
            lane.release(lane.first() + batch.records() - 1);
        }
    }
}

/// Places of events of A and B.
fn of_lane(range: std::ops::Range<u64>) -> Vec<u64> {
    range.filter(|place| place % 3 != 2).collect()
}

fn held(epoch: u64, last: u64, source: &str) -> Held<'_> {
    Held { identity: Identity { epoch, first: 1, last }, source: Some(source) }
}

#[test]
fn what_waits_comes_from_the_log_in_its_order_however_much_it_is() {
    let mut bench = bench();
    bench.fill(600, 20);
    bench.follow();
    assert_eq!((bench.lane().len(), bench.lane().end()), (400, 1), "it is counted before a server was reached");
    assert_eq!(bench.lane().place(None), Place::Moved(1));
    assert_eq!(bench.drain().0, of_lane(0..600));
    bench.fill(9, 0);
    assert_eq!(bench.drain().0, of_lane(600..609), "what comes then goes on at once");
    assert_eq!(bench.lane().first(), 407);
}

#[test]
fn what_retention_takes_is_counted_by_topic_in_its_place() {
    let mut bench = bench();
    assert_eq!(bench.lane().place(None), Place::Moved(1));
    bench.fill(6, 0);
    bench.follow();
    // Of these the log keeps a part, and all of them were looked at in time.
    for _ in 0..60 {
        bench.fill(50, 1_000);
        bench.follow();
    }
    let first = bench.reader.state().first.0;
    assert!(first > 600, "{first}");
    let (places, lost, _) = bench.drain();
    let window: Vec<u64> = places.iter().copied().filter(|place| *place < first).collect();
    assert!(window.starts_with(&of_lane(0..6)) && window.len() < 20, "what was at hand is not lost: {window:?}");
    assert_eq!(places[window.len()..], of_lane(first..3_006));
    let gone: Vec<u64> = of_lane(0..first).into_iter().filter(|place| !window.contains(place)).collect();
    let of = |rest: u64| gone.iter().filter(|place| **place % 3 == rest).count() as u64;
    assert_eq!(lost, [("A".to_owned(), of(0)), ("B".to_owned(), of(1))]);
    assert_eq!(bench.lane().lost, gone.len() as u64);
}

#[test]
fn what_nobody_has_looked_at_is_counted_without_its_topic() {
    let mut bench = bench();
    assert_eq!(bench.lane().place(None), Place::Moved(1));
    bench.fill(3_000, 1_000);
    let first = bench.reader.state().first.0;
    let (places, lost, _) = bench.drain();
    assert_eq!((places, lost), (of_lane(first..3_000), vec![(String::new(), first)]));
}

#[test]
fn it_goes_on_behind_the_record_that_the_stream_names() {
    let mut bench = bench();
    bench.fill(60, 0);
    let name = RecordName { time_ns: TIME_NS + 30, id: id(30) };
    // At another position, as in the log of a pair's other node.
    for position in [30, 4, 4_000] {
        bench.lanes[0] = LaneBacklog::new(
            bench.reader.clone(),
            FleetForm::Payload,
            WINDOW,
            Checkpoint { epoch: 1, position: 0, from: Position(9) },
            restarted(Exclusion::None).0,
        );
        bench.lanes[0].wants = Some(Position(0));
        bench.follow();
        let source = Source { position: Position(position), name }.to_string();
        assert_eq!(bench.lane().place(Some(held(4, 77, &source))), Place::Moved(4));
        assert_eq!(bench.lane().first(), 78);
        let (places, lost, last) = bench.drain();
        assert_eq!((places, lost), (of_lane(31..60), vec![]));
        let last: Source = last.expect("a source").parse().expect("a source");
        assert_eq!(last.position, Position(58));
        let end = bench.lane().end();
        assert_eq!(bench.lane().place(Some(held(4, end - 1, &last.to_string()))), Place::Kept);
    }
}

#[test]
fn a_record_of_another_log_begins_an_epoch_and_later_stops_it() {
    let mut bench = bench();
    bench.copy(60);
    bench.lanes[0] = lane_of(&bench.reader);
    let foreign = |time| Source { position: Position(20), name: RecordName { time_ns: TIME_NS + time, id: id(7_000) } }.to_string();
    let (before, behind) = (foreign(30), foreign(40));
    assert_eq!(bench.lane().place(Some(held(4, 77, &before))), Place::Moved(5));
    assert_eq!(bench.lane().place(Some(held(4, 77, &before))), Place::Kept, "it is the one that it was placed by");
    // Another process' batch was still under way.
    assert_eq!(bench.lane().place(Some(held(4, 80, &behind))), Place::Moved(5));
    assert_eq!((bench.lane().first(), bench.drain().0), (1, of_lane(40..60)), "with what was accepted here at the same instant");
    let end = bench.lane().end();
    assert_eq!(bench.lane().place(Some(held(5, end, &behind))), Place::Stop(Stop::Ahead(end)));
    assert_eq!(bench.lane().place(Some(held(6, 1, &behind))), Place::Stop(Stop::NewerEpoch(6)));
    assert_eq!(bench.lane().place(None), Place::Kept, "an empty subject changes nothing");
}

/// The former leader's last batch, of events that only its log has, may be stored behind the next leader's look at the stream.
#[test]
fn a_batch_of_another_log_at_its_own_positions_is_not_taken_for_its_own() {
    let mut bench = bench();
    bench.copy(60);
    bench.lanes[0] = lane_of(&bench.reader);
    let common = Source { position: Position(30), name: RecordName { time_ns: TIME_NS + 30, id: id(30) } }.to_string();
    assert_eq!(bench.lane().place(Some(held(4, 77, &common))), Place::Moved(4));
    bench.fill(9, 0);
    bench.follow();
    bench.lane().refill(usize::MAX).expect("the log is read");
    assert!(bench.lane().end() > 80, "it has records at these positions");
    // By the clock of the other node it is newer than all that this one has taken since.
    let foreign = Source { position: Position(60), name: RecordName { time_ns: TIME_NS + 1_000, id: id(7_000) } }.to_string();
    assert_eq!(bench.lane().place(Some(held(4, 80, &foreign))), Place::Moved(5));
    assert_eq!((bench.lane().first(), bench.drain().0), (1, of_lane(60..69)), "what this node has taken since it began is forwarded");
}

/// The shard accepts events from its takeover on, and a lane begins later. The clock of the former leader is ahead.
#[test]
fn events_between_takeover_and_lane_are_forwarded() {
    let mut bench = bench();
    bench.copy(60);
    bench.fill(9, 0);
    bench.lanes[0] = lane_of(&bench.reader);
    let foreign = Source { position: Position(60), name: RecordName { time_ns: TIME_NS + 1_000, id: id(7_000) } }.to_string();
    assert_eq!(bench.lane().place(Some(held(4, 80, &foreign))), Place::Moved(5));
    assert_eq!(bench.drain().0, of_lane(60..69));
}

/// Two edges of one name: the other one's batch has this lane's epoch, and positions that it has given.
#[test]
fn foreign_batch_stops_lane_until_adopted() {
    let mut bench = bench();
    bench.fill(60, 0);
    bench.follow();
    assert_eq!(bench.lane().place(None), Place::Moved(1));
    bench.lane().refill(usize::MAX).expect("the log is read");
    bench.lane().release(10);
    let own = Stamp { writer: Some(bench.lane().writers.own()), source: bench.lane().source };
    let end = bench.lane().end();
    assert_eq!(bench.lane().place(Some(held(1, end - 1, &own.to_string()))), Place::Kept);
    let stranger = Writer { database: 7, incarnation: 9 };
    let foreign = Stamp { writer: Some(stranger), source: own.source }.to_string();
    for _ in 0..3 {
        let stopped = bench.lane().place(Some(held(1, 20, &foreign)));
        assert!(matches!(&stopped, Place::Stop(Stop::OtherWriter(why)) if why.contains(&stranger.to_string())), "{stopped:?}");
    }
    assert!(bench.lane().len() > 0, "its events wait, and are reported");
    bench.lane().adopt();
    assert_eq!(bench.lane().place(Some(held(1, 20, &foreign))), Place::Moved(2));
    // Told twice before the lane was seen to continue.
    bench.lane().adopt();
    assert_eq!(bench.lane().place(Some(held(1, 20, &foreign))), Place::Kept, "on the next connection");
    let other = Stamp { writer: Some(stranger), source: None }.to_string();
    assert!(matches!(bench.lane().place(Some(held(1, 21, &other))), Place::Stop(_)), "an adoption is of one batch");
    assert_eq!(bench.lane().first(), 1);
    bench.follow();
    assert_eq!(bench.drain().0, of_lane(15..60), "what was not stored before");
}

/// A copy of a directory finds batches of the original again and again, and none of its own was stored.
#[test]
fn copy_stops_when_original_still_publishes() {
    let mut bench = bench();
    bench.fill(60, 0);
    bench.follow();
    let (writers, original) = restarted(Exclusion::None);
    bench.lane().writers = writers;
    let batch = Stamp { writer: Some(original), source: None }.to_string();
    let mut stopped = false;
    for last in 70..80 {
        stopped = matches!(bench.lane().place(Some(held(1, last, &batch))), Place::Stop(Stop::OtherWriter(_)));
        assert_eq!(stopped, last >= 74, "{last}");
    }
    assert!(stopped);
    // The operator ends the original.
    bench.lane().adopt();
    assert!(matches!(bench.lane().place(Some(held(1, 79, &batch))), Place::Moved(_)));
    assert_eq!(bench.lane().place(Some(held(1, 79, &batch))), Place::Kept);
}

/// A log continues behind positions that the database knows. Nothing was lost at those that it leaves out: no record was there.
#[test]
fn positions_left_out_at_start_are_no_loss_in_new_epoch() {
    for is_followed_before in [false, true] {
        let mut bench = bench();
        let place = TempDir::new().expect("a directory");
        drop(EventLog::open(place.path(), LIMITS, Position(0), TIME_NS, Box::new(|_, _| ())).expect("a log"));
        let (told, synced) = channel();
        let on_sync = Box::new(move |_, _| {
            // The receiver may be gone at the last sync.
            let _ = told.send(());
        });
        let (log, reader) = EventLog::open(place.path(), LIMITS, Position(39), TIME_NS, on_sync).expect("a log");
        let topics = RealTimeTopics::new(Platform::default(), Default::default()).expect("no topics");
        let chosen = Chosen::new([(0, "A"), (0, "B")].into_iter(), topics.into(), SystemId(OWN.cast_signed()));
        bench.follower = Follower::new(reader.clone(), Position(0), Selection::Chosen(chosen));
        (bench.lanes, bench.log, bench.reader, bench.synced) = (vec![lane_of(&reader)], log, reader, synced);
        bench.fill(9, 0);
        if is_followed_before {
            bench.follow();
        }
        let foreign = Source { position: Position(7), name: RecordName { time_ns: TIME_NS, id: id(7_000) } }.to_string();
        assert_eq!(bench.lane().place(Some(held(4, 80, &foreign))), Place::Moved(5));
        let (places, lost, _) = bench.drain();
        assert_eq!((places, lost), (of_lane(39..48), vec![]), "followed before: {is_followed_before}");
        assert_eq!(bench.lane().lost, 0);
        bench._place = place;
    }
}

#[test]
fn what_has_come_from_the_fleet_does_not_go_back_there() {
    let mut bench = bench();
    bench.fill(3, 0);
    for publisher in [OWN, 1] {
        let name = EventId { publisher: PublisherId(publisher), ..id(77) };
        let json = r#"{"eventType":"A","payload":"x"}"#;
        bench.log.append(TIME_NS + 9, name, "A", json, Instant::now());
        bench.log.write(Instant::now());
    }
    bench.follow();
    assert_eq!(bench.lane().len(), 3, "A and B, and the one of A that was made here");
}

#[test]
fn what_other_nodes_have_accepted_is_forwarded_by_them_alone() {
    let mut bench = bench();
    bench.fill(1, 0);
    let origin = Origin { node: 0xb2, position: Position(7), epoch: 1, lane: 1 };
    let json = r#"{"eventType":"A","payload":"1"}"#;
    bench.log.append_from(Some(origin), TIME_NS, id(1), "A", json, Instant::now());
    bench.log.append_from(Some(origin), TIME_NS, id(1), "A", "9", Instant::now());
    bench.log.write(Instant::now());
    assert_eq!(bench.lane().place(None), Place::Moved(1));
    assert_eq!(bench.drain().0, [0], "neither to the fleet");
    bench.follower = Follower::new(bench.reader.clone(), Position(0), Selection::Accepted);
    bench.lanes = vec![lane_of(&bench.reader)];
    assert_eq!(bench.lane().place(None), Place::Moved(1));
    assert_eq!(bench.drain().0, [0], "nor to the other nodes");
}

/// It is lost with its host before, and its publisher sends it again to the next leader, whose log has it as another record.
#[test]
fn durable_event_waits_until_it_is_confirmed_and_what_is_behind_it_too() {
    let mut bench = bench();
    let durable = ["B"].into_iter().map(Box::from).collect();
    let topics = RealTimeTopics::new(Platform::default(), durable).expect("no topics");
    let chosen = Chosen::new([(0, "A"), (0, "B")].into_iter(), topics.into(), SystemId(OWN.cast_signed()));
    bench.follower = Follower::new(bench.reader.clone(), Position(0), Selection::Chosen(chosen));
    assert_eq!(bench.lane().place(None), Place::Moved(1));
    bench.fill(6, 0);
    assert_eq!(bench.drain().0, [0], "the next one is durable");
    assert_eq!(bench.drain().0, [0; 0]);
    bench.log.confirm(Position(4));
    assert_eq!(bench.drain().0, [1, 3]);
    bench.log.confirm(Position(2));
    bench.log.confirm(Position(6));
    assert_eq!(
        bench.drain(),
        (vec![4], vec![], Some(Source { position: Position(4), name: RecordName { time_ns: TIME_NS + 4, id: id(4) } }.to_string()))
    );
}

/// Places of events of one of the topics A (0) and B (1).
fn of_topic(range: std::ops::Range<u64>, topic: u64) -> Vec<u64> {
    range.filter(|place| place % 3 == topic).collect()
}

#[test]
fn a_lane_that_stands_still_does_not_hold_up_another_one_and_lacks_nothing_when_it_goes_on() {
    let mut bench = bench();
    bench.lanes = vec![lane_of(&bench.reader), lane_of(&bench.reader)];
    let topics = RealTimeTopics::new(Platform::default(), Default::default()).expect("no topics");
    let chosen = Chosen::new([(0, "A"), (1, "B")].into_iter(), topics.into(), SystemId(OWN.cast_signed()));
    bench.follower = Follower::new(bench.reader.clone(), Position(0), Selection::Chosen(chosen));
    // Of the first one nothing gets through to the stream, whatever is the reason.
    bench.lane().waiting_max = 20;
    assert_eq!(bench.lanes[1].place(None), Place::Moved(1));
    bench.fill(300, 0);
    assert_eq!(bench.drain_of(1).0, of_topic(0..300, 1), "the other one has all of its events");
    assert_eq!(bench.lane().len(), 20);
    assert_eq!(bench.lane().place(None), Place::Moved(1));
    assert_eq!(bench.drain_of(0).0, of_topic(0..300, 0), "what had no room is read when there is");
    assert_eq!(bench.lanes[1].len(), 0, "and nothing comes twice to the other one");
}
