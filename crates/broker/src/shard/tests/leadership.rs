//! Who may accept events, in which numbers, and whose the slots of a topic are.

use super::*;
use crate::{Backup, Promotion};

fn authority(epoch: u64) -> Authority {
    Authority { epoch: Epoch(epoch), until: Instant::NEVER }
}

fn follower() -> Driven {
    let mut driven = Driven { shard: Shard::follower(LIMITS), now: 1_000, outputs: Vec::new() };
    driven.shard.admit("A", TERMS).unwrap();
    driven
}

fn identity(publisher: u64, incarnation: Incarnation) -> StreamIdentity {
    StreamIdentity { topic: TopicId(0), publisher: PublisherId(publisher), incarnation }
}

#[test]
fn follower_issues_no_permit_before_takeover() {
    let mut driven = follower();
    assert_eq!(driven.shard.permit().err(), Some(Refusal::NotLeading));
    // The vote alone is not enough: the events of the leader before are not here yet.
    driven.step(Input::Authority(authority(2)));
    assert_eq!(driven.shard.permit().err(), Some(Refusal::NotLeading));
    let promotion = Promotion { authority: authority(2), redirect: Duration::ZERO };
    Backup::new().promote(at(driven.now), promotion, &mut driven.shard);
    assert!(driven.shard.permit().is_ok());
}

#[test]
fn cold_takeover_issues_permits() {
    let mut driven = follower();
    driven.shard.take_over_nothing();
    let permit = driven.shard.permit().unwrap();
    let published = driven.shard.publish(at(driven.now), permit, "B", PublisherId(1), &mut |_, _| Wanted::No, &mut Vec::new());
    assert_eq!(published, Err(ShardError::NotLeading), "it has no lease yet");
    driven.leads(2);
    assert_eq!(driven.publish_best_effort("B", 1).sequence, Sequence(1));
}

#[test]
fn permit_of_an_earlier_epoch_is_refused() {
    let mut driven = follower();
    driven.shard.take_over_nothing();
    driven.leads(2);
    let (stream, permit) = (driven.stream(0, 1), driven.shard.permit().unwrap());
    driven.leads(4);
    let publication =
        Publication { epoch: Epoch::NONE, sequence: Sequence(1), created: at(driven.now), is_resent: false, has_wrong_clock: false };
    assert_eq!(driven.shard.accept(at(driven.now), permit, stream, publication), Err(Refusal::NotLeading));
}

#[test]
fn each_epoch_numbers_in_a_greater_incarnation() {
    let mut driven = follower();
    driven.shard.take_over_nothing();
    driven.leads(1);
    let first = [driven.publish_best_effort("B", 1), driven.publish_best_effort("B", 1)];
    driven.fenced(1);
    driven.leads(3);
    let next = driven.publish_best_effort("B", 1);
    assert!(next.incarnation > first[1].incarnation, "{next} after {}", first[1]);
    assert_eq!((first[1].sequence, next.sequence), (Sequence(2), Sequence(1)), "every incarnation begins with 1");
    assert_eq!(driven.shard.topics().map(|topic| topic.published).collect::<Vec<_>>(), [0, 3], "the count of events goes on");
    // The other node started long before; only its epoch counts.
    let mut other = follower();
    other.shard.take_over_nothing();
    other.leads(4);
    assert!(other.publish_best_effort("B", 1).incarnation > next.incarnation);
}

#[test]
fn newer_run_takes_slot_of_its_publisher() {
    let mut driven = Driven::new(&[Terms { streams_max: 2, ..TERMS }]);
    let key = driven.subscribe(0, 1_000);
    let open = |driven: &mut Driven, publisher, incarnation| {
        let permit = driven.shard.permit().unwrap();
        driven.shard.open_stream(&permit, identity(publisher, incarnation))
    };
    // The required subscriber acknowledges nothing, so that no run ends.
    for epoch in 1..=RUNS_PER_PUBLISHER_MAX as u64 {
        let stream = open(&mut driven, 1, Incarnation::of_epoch(Epoch(epoch))).unwrap();
        driven.publish(stream, 1).unwrap();
        driven.work();
    }
    assert_eq!(open(&mut driven, 1, Incarnation::of_epoch(Epoch(99))), Err(ShardError::Runs(8)));
    let second = open(&mut driven, 2, Incarnation(5)).unwrap();
    driven.publish(second, 1).unwrap();
    assert_eq!(open(&mut driven, 3, Incarnation(5)), Err(ShardError::Publishers(2)));
    let oldest = driven.shard.stream(&identity(1, Incarnation::of_epoch(Epoch(1)))).unwrap();
    driven.delivered(key, oldest, 1);
    driven.told();
    assert!(open(&mut driven, 1, Incarnation::of_epoch(Epoch(99))).is_ok(), "the oldest run has ended");
}

#[test]
fn runs_of_publisher_and_node_are_not_ordered() {
    let mut driven = Driven::new(&[TERMS]);
    let by_client = driven.stream_of(0, 1, 1_800_000_000_000_000_000);
    driven.publish(by_client, 1).unwrap();
    let permit = driven.shard.permit().unwrap();
    driven.shard.open_stream(&permit, identity(1, Incarnation::of_epoch(Epoch(2)))).unwrap();
    driven.work();
    driven.told();
    assert!(matches!(driven.publish(by_client, 2), Ok(Accepted::Kept { .. })), "its client still publishes");
}

/// The deliveries put out since the last look, as run and sequence.
fn delivered(driven: &mut Driven) -> Vec<(u64, u64)> {
    let outputs = std::mem::take(&mut driven.outputs);
    let run_of = |event: EventId| (event.incarnation.0, event.sequence.0);
    outputs.iter().filter_map(|output| if let Output::Deliver { event, .. } = output { Some(run_of(*event)) } else { None }).collect()
}

#[test]
fn returning_subscriber_receives_runs_in_order() {
    let mut driven = Driven::new(&[]);
    driven.shard = Shard::new(Incarnation(7), ShardLimits { queue_bytes_max: 100, ..LIMITS });
    driven.shard.admit("A", roomy()).unwrap();
    let key = driven.subscribe(0, 1_000_000);
    driven.step(Input::Detached { subscription: key });
    for run in 1..=3 {
        let stream = driven.stream_of(0, 1, run);
        driven.publish(stream, 1).unwrap();
        driven.publish(stream, 2).unwrap();
        driven.work();
    }
    driven.outputs.clear();
    driven.attach(key, 0);
    // The newest run goes on while the subscriber still receives the oldest.
    driven.next();
    let newest = driven.stream_of(0, 1, 4);
    driven.publish(newest, 1).unwrap();
    driven.work();
    // A subscriber remembers two runs of a publisher: it would take a third one's events for those of a run that is over.
    assert_eq!(delivered(&mut driven), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1)]);
}

#[test]
fn newer_run_is_brought_when_the_older_closes() {
    let mut driven = Driven::new(&[roomy()]);
    let key = driven.subscribe(0, 1_000_000);
    driven.step(Input::Detached { subscription: key });
    for run in 1..=2 {
        let stream = driven.stream_of(0, 1, run);
        driven.publish(stream, 1).unwrap();
        driven.work();
    }
    driven.outputs.clear();
    // It has the event of the first run, and says so.
    driven.attach(key, 1);
    driven.work();
    assert_eq!(delivered(&mut driven), [(2, 1)]);
}

#[test]
fn inherited_streams_of_silent_publishers_are_known() {
    let mut backup = Backup::new();
    backup.admit("A", TERMS, LIMITS.topics_max).unwrap();
    backup.begin_snapshot(Position(0), &mut Vec::new());
    for (number, incarnation) in [(1, Incarnation(5)), (2, Incarnation::of_epoch(Epoch(1)))] {
        backup.open_stream(StreamNumber(number), "A", PublisherId(u64::from(number)), incarnation).unwrap();
    }
    let mut driven = follower();
    backup.promote(at(driven.now), Promotion { authority: authority(2), redirect: Duration::ZERO }, &mut driven.shard);
    let publishers = driven.shard.unnumbered_streams().map(|stream| driven.shard.identity(stream).unwrap().publisher);
    assert_eq!(publishers.collect::<Vec<_>>(), [PublisherId(2)]);
}
