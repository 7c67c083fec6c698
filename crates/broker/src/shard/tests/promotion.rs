//! A Backup that has to lead: what it goes on with, whom it waits for, and what it may say.

use super::*;
use crate::{Backup, Promotion};

/// A Backup that keeps these replicas of one stream and was told to discard up to `discarded`.
fn backup(replicas: &[u64], discarded: u64) -> Backup {
    let mut backup = Backup::new();
    backup.admit("A", roomy(), LIMITS.topics_max).unwrap();
    backup.begin_snapshot(Position(0), &mut Vec::new());
    backup.open_stream(StreamNumber(1), "A", PublisherId(1), Incarnation(1)).unwrap();
    for (position, sequence) in (1..).zip(replicas) {
        backup.keep(Position(position), StreamNumber(1), Sequence(*sequence), at(900)).unwrap().expect("it is new");
    }
    backup.discard(StreamNumber(1), Sequence(discarded), &mut Vec::new()).unwrap();
    backup
}

/// A shard of a node that follows.
fn following() -> Driven {
    let shard = Shard::follower(LIMITS);
    let mut driven = Driven { shard, now: 1_000, outputs: Vec::new() };
    driven.step(Input::Authority(Authority { epoch: Epoch::NONE, until: Instant::default() }));
    driven.shard.admit("A", roomy()).unwrap();
    driven
}

/// It leads from now on, and waits for publishers for 500.
fn leads(driven: &mut Driven, backup: Backup) -> StreamId {
    let authority = Authority { epoch: Epoch(2), until: Instant::NEVER };
    backup.promote(at(driven.now), Promotion { authority, redirect: Duration::from_nanos(500) }, &mut driven.shard);
    driven.step(Input::Backup(BackupStanding::Out));
    driven.stream(0, 1)
}

/// One that leads from 1000 on.
fn promoted(backup: Backup) -> (Driven, StreamId) {
    let mut driven = following();
    let stream = leads(&mut driven, backup);
    (driven, stream)
}

fn resend(driven: &mut Driven, stream: StreamId, sequence: u64) -> Accepted {
    let created = at(sequence * TERMS.period_ns);
    let publication = Publication { epoch: Epoch(2), sequence: Sequence(sequence), created, is_resent: true, has_wrong_clock: false };
    driven.shard.accept(at(driven.now), driven.shard.permit().expect("it leads"), stream, publication).unwrap()
}

#[test]
fn replicas_resends_and_new_events_go_out_in_the_order_of_their_stream() {
    let (mut driven, stream) = promoted(backup(&[3, 5], 0));
    assert_eq!(driven.work(), "", "the publisher may have what comes first");
    driven.step(Input::Resumed { stream, from: Sequence(2), to: Sequence(6) });
    assert_eq!(driven.work(), "");
    let mut words = Vec::new();
    for (sequence, is_known) in [(2, false), (3, true), (4, false), (5, true), (6, false)] {
        assert_eq!(resend(&mut driven, stream, sequence) == Accepted::Known, is_known, "{sequence}");
        words.push(driven.work());
    }
    assert_eq!(words, ["A2!", "A3!", "A4!", "A5!", "A6!"]);
    assert!(matches!(driven.publish(stream, 7), Ok(Accepted::Kept { is_excess: false, .. })));
    assert_eq!(driven.work(), "A7");
}

#[test]
fn what_the_publisher_does_not_have_any_more_need_not_wait_for_it() {
    let (mut driven, stream) = promoted(backup(&[3, 5], 0));
    driven.step(Input::Resumed { stream, from: Sequence(4), to: Sequence(5) });
    assert_eq!(driven.work(), "A3!");
    driven.step(Input::Resumed { stream, from: Sequence(6), to: Sequence(5) });
    assert_eq!(driven.work(), "A5!", "it keeps nothing");
}

#[test]
fn a_publisher_that_does_not_come_back_is_waited_for_until_the_redirect_is_over() {
    let (mut driven, _) = promoted(backup(&[3, 5], 0));
    assert_eq!(driven.shard.next_timer(), Some(at(1_500)));
    driven.now = 1_499;
    assert_eq!(driven.work(), "");
    driven.now = 1_500;
    assert_eq!(driven.work(), "A3! A5!");
}

/// A publisher whose events are all covered says what it keeps in front of its next event only. Every second event is a mark: the others may be missing.
#[test]
fn event_that_was_no_mark_does_not_go_out_behind_a_later_one() {
    let mut driven = following();
    driven.shard.admit("A", Terms { mark_every: NonZeroU32::new(2).unwrap(), ..roomy() }).unwrap();
    let stream = leads(&mut driven, backup(&[3, 5], 0));
    driven.now = 1_500;
    assert_eq!(driven.work(), "A3! A5!");
    driven.step(Input::Resumed { stream, from: Sequence(4), to: Sequence(6) });
    assert_eq!(resend(&mut driven, stream, 4), Accepted::Known);
    assert_eq!(resend(&mut driven, stream, 5), Accepted::Known);
    assert!(matches!(resend(&mut driven, stream, 6), Accepted::Kept { .. }));
    assert_eq!(driven.work(), "A6!");
}

#[test]
fn event_that_was_no_mark_goes_out_in_front_of_a_mark_that_is_held() {
    let mut driven = following();
    driven.shard.admit("A", Terms { mark_every: NonZeroU32::new(2).unwrap(), ..roomy() }).unwrap();
    let stream = leads(&mut driven, backup(&[3], 0));
    driven.step(Input::Resumed { stream, from: Sequence(2), to: Sequence(3) });
    assert!(matches!(resend(&mut driven, stream, 2), Accepted::Kept { .. }));
    assert_eq!(resend(&mut driven, stream, 3), Accepted::Known);
    assert_eq!(driven.work(), "A2! A3!");
}

#[test]
fn nothing_is_covered_until_the_publisher_has_said_what_it_keeps() {
    let (mut driven, stream) = promoted(backup(&[3, 5], 0));
    driven.now = 1_500;
    driven.work();
    assert_eq!(driven.covered(), None, "the fourth event may be with the publisher alone");
    driven.step(Input::Resumed { stream, from: Sequence(4), to: Sequence(6) });
    resend(&mut driven, stream, 6);
    assert_eq!(driven.covered(), Some(6));
}

#[test]
fn an_event_without_a_word_in_front_of_it_says_that_nothing_older_is_kept() {
    let (mut driven, stream) = promoted(backup(&[3, 5], 0));
    resend(&mut driven, stream, 7);
    assert_eq!(driven.work(), "A3! A5! A7!");
    assert_eq!(driven.covered(), Some(7), "nobody is required, and the Backup is out");
}

#[test]
fn what_was_discarded_is_known() {
    let (mut driven, stream) = promoted(backup(&[3], 5));
    assert_eq!(driven.shard.kept(), 0);
    driven.step(Input::Resumed { stream, from: Sequence(5), to: Sequence(6) });
    assert_eq!(resend(&mut driven, stream, 5), Accepted::Known);
    assert_ne!(resend(&mut driven, stream, 6), Accepted::Known);
    assert_eq!(driven.work(), "A6!");
}

#[test]
fn what_is_recovered_is_kept_for_a_required_subscriber_until_it_comes_and_says_what_it_has() {
    let (mut driven, stream) = promoted(backup(&[3, 4, 5], 0));
    driven.step(Input::Resumed { stream, from: Sequence(6), to: Sequence(5) });
    assert_eq!(driven.next().map(|_| ()), Some(()), "dispatched to nobody");
    let key = driven.shard.subscribe("A", 0, Overflow::Loses).unwrap();
    driven.shard.require(at(driven.now), key, Duration::from_nanos(10_000), Attachment::Awaited);
    assert_eq!(driven.work(), "A4! A5!");
    driven.now += 9_000;
    assert_eq!((driven.work().as_str(), driven.shard.kept(), driven.handed(key)), ("", 3, vec![]));
    driven.attach(key, 2);
    assert_eq!((driven.work().as_str(), driven.handed(key)), ("A3! A4! A5!", vec![3, 4, 5]));
    driven.delivered(key, stream, 5);
    assert_eq!(driven.shard.kept(), 0);
}

#[test]
fn who_was_known_before_gets_what_is_kept_and_is_waited_for_from_the_promotion_on() {
    let mut driven = following();
    let there = driven.subscribe(0, 10_000);
    let away = driven.shard.subscribe("A", 0, Overflow::Loses).unwrap();
    driven.shard.require(at(driven.now), away, Duration::from_nanos(10_000), Attachment::Awaited);
    // It has been away for longer than it is waited for, but not from the node that leads now.
    driven.now = 1_000_000;
    let stream = leads(&mut driven, backup(&[3, 4], 0));
    driven.step(Input::Resumed { stream, from: Sequence(5), to: Sequence(4) });
    assert_eq!((driven.work().as_str(), driven.handed(there), driven.handed(away)), ("A3! A4!", vec![3, 4], vec![]));
    driven.delivered(there, stream, 4);
    assert_eq!((driven.covered(), driven.shard.kept()), (None, 2), "the other one is waited for");
    driven.now += 9_000;
    driven.attach(away, 3);
    assert_eq!((driven.work().as_str(), driven.handed(away)), ("A4!", vec![4]));
    driven.now += 9_999;
    driven.work();
    assert_eq!(driven.shard.counters().not_required, 0);
    driven.now += 1;
    driven.work();
    assert_eq!((driven.shard.counters().not_required, driven.shard.kept()), (1, 0), "it has acknowledged nothing");
}

#[test]
fn topics_are_known_by_other_numbers_to_the_shard_and_new_ones_come_with_their_streams() {
    let mut backup = backup(&[3], 0);
    backup.admit("B", roomy(), LIMITS.topics_max).unwrap();
    backup.open_stream(StreamNumber(2), "B", PublisherId(1), Incarnation(1)).unwrap();
    backup.keep(Position(2), StreamNumber(2), Sequence(7), at(900)).unwrap().expect("it is new");
    let mut driven = Driven { shard: Shard::follower(LIMITS), now: 1_000, outputs: Vec::new() };
    driven.shard.subscribe("Z", 0, Overflow::Loses).unwrap();
    driven.shard.prepare("A", TERMS, TopicId(0));
    let authority = Authority { epoch: Epoch(2), until: Instant::NEVER };
    backup.promote(at(1_000), Promotion { authority, redirect: Duration::ZERO }, &mut driven.shard);
    assert_eq!(driven.shard.terms("A").map(|(topic, terms)| (topic, *terms)), Some((TopicId(1), TERMS)), "its own terms count");
    assert_eq!(driven.shard.terms("B").map(|(topic, terms)| (topic, *terms)), Some((TopicId(2), roomy())));
    let mut went_out = Vec::new();
    while let Some(Work::Dispatch { event, .. }) = driven.next() {
        went_out.push((driven.shard.topic_name(event.topic).to_string(), event.sequence.0));
    }
    assert_eq!(went_out, [("A".to_owned(), 3), ("B".to_owned(), 7)]);
}

#[test]
fn ten_thousand_timers_that_ring_too_early_behind_a_promotion_are_set_anew_a_few_at_a_time() {
    const SUBSCRIPTIONS: u32 = 10_000;
    let limits = ShardLimits { subscriptions_max: SUBSCRIPTIONS as usize, ..LIMITS };
    let mut driven = Driven { shard: Shard::follower(limits), ..following() };
    driven.shard.admit("A", roomy()).unwrap();
    for _ in 0..SUBSCRIPTIONS {
        let key = driven.shard.subscribe("A", 0, Overflow::Loses).unwrap();
        driven.shard.require(at(driven.now), key, Duration::from_nanos(10_000), Attachment::Awaited);
    }
    driven.now = 1_000_000;
    leads(&mut driven, Backup::new());
    // A timer is in the past as long as it was not looked at.
    let mut steps = 0;
    while driven.shard.next_timer().is_some_and(|at| at.nanos() <= driven.now) {
        driven.next();
        steps += 1;
    }
    assert!(steps >= SUBSCRIPTIONS / 16, "{steps} steps for all of them: one of them takes as long as many events");
    assert_eq!(driven.shard.counters().not_required, 0);
    driven.now += 10_000;
    driven.next();
    assert_eq!(driven.shard.counters().not_required, 16, "they are not waited for any more");
}

#[test]
fn a_new_run_is_a_stream_of_its_own_behind_what_is_left_of_the_one_before() {
    let (mut driven, _) = promoted(backup(&[3], 0));
    assert_eq!(driven.work(), "", "its publisher may come back");
    let new = driven.stream_of(0, 1, 2);
    driven.publish(new, 1).unwrap();
    assert_eq!(driven.work(), "A3! A1");
}

#[test]
fn events_that_this_node_numbers_are_behind_what_is_held_of_a_leader_that_began_later() {
    let (mut driven, _) = promoted(backup(&[3], 0));
    let ours = driven.stream_of(0, 1, 0);
    driven.publish(ours, 1).unwrap();
    driven.publish(ours, 2).unwrap();
    driven.now = 1_499;
    assert_eq!(driven.work(), "");
    driven.now = 1_500;
    assert_eq!(driven.work(), "A3! A1! A2");
    driven.publish(ours, 3).unwrap();
    assert_eq!(driven.work(), "A3", "nothing is held any more");
}

#[test]
fn a_backup_keeps_frames_in_order_or_says_what_is_wrong() {
    use crate::BackupError::{Full, Number, NumberInUse, Topic};
    let mut backup = backup(&[3], 0);
    let number = StreamNumber(1);
    let keep =
        |backup: &mut Backup, position, number, sequence| backup.keep(Position(position), StreamNumber(number), Sequence(sequence), at(1));
    assert_eq!(keep(&mut backup, 3, 1, 4), Err(crate::BackupError::Position { expected: 2, found: 3 }));
    assert_eq!(keep(&mut backup, 2, 9, 4), Err(Number(9)));
    assert_eq!(keep(&mut backup, 2, 1, 3), Ok(None), "it is there");
    assert_eq!(backup.open_stream(number, "A", PublisherId(2), Incarnation(1)), Err(NumberInUse(1)));
    assert_eq!(backup.open_stream(StreamNumber(2), "B", PublisherId(2), Incarnation(1)), Err(Topic));
    assert_eq!(backup.discard(StreamNumber(2), Sequence(1), &mut Vec::new()), Err(Number(2)));
    for sequence in 4..67 {
        assert!(keep(&mut backup, sequence - 1, 1, sequence).unwrap().is_some());
    }
    assert_eq!(keep(&mut backup, 66, 1, 67), Err(Full(64)));
}

#[test]
fn what_comes_behind_a_control_operation_is_acknowledged_when_that_is_on_the_disk() {
    let mut backup = backup(&[3], 0);
    assert_eq!(backup.acknowledgement(), Some(Position(1)));
    backup.control(Position(2)).unwrap();
    backup.keep(Position(3), StreamNumber(1), Sequence(4), at(1)).unwrap();
    backup.control(Position(4)).unwrap();
    assert_eq!(backup.acknowledgement(), None);
    backup.saved(Position(2));
    assert_eq!((backup.acknowledgement(), backup.acknowledgement()), (Some(Position(3)), None));
    backup.saved(Position(4));
    assert_eq!(backup.acknowledgement(), Some(Position(4)));
}

#[test]
fn what_the_leader_before_has_dropped_as_late_is_not_known_so_that_the_first_late_event_goes_out() {
    let sheds = Terms { shed_max: Some(1), ..roomy() };
    let mut driven = following();
    driven.shard.admit("A", sheds).unwrap();
    let stream = leads(&mut driven, backup(&[3, 4, 5], 0));
    driven.step(Input::Resumed { stream, from: Sequence(6), to: Sequence(5) });
    driven.now += 1_000;
    assert_eq!(driven.work(), "A3! A5!", "2 may have been dropped, and 3 with it were two in a row");
    driven.publish(stream, 6).unwrap();
    driven.now += 1_000;
    assert_eq!(driven.work(), "");
    driven.publish(stream, 7).unwrap();
    driven.step(Input::Authority(Authority { epoch: Epoch(4), until: Instant::NEVER }));
    driven.now += 1_000;
    assert_eq!(driven.work(), "A7!", "another one has led in between");
    driven.publish(stream, 8).unwrap();
    driven.step(Input::Authority(Authority { epoch: Epoch(6), until: Instant::NEVER }));
    driven.now += 1_000;
    assert_eq!(driven.work(), "A8!", "8 might have been dropped here, but the one in front of it elsewhere");
}

#[test]
fn what_a_crash_has_taken_between_late_events_counts_as_dropped() {
    let sheds = Terms { shed_max: Some(2), ..roomy() };
    let mut driven = following();
    driven.shard.admit("A", sheds).unwrap();
    // The marks of every other event: 4, 6 and 8 died with the host.
    let stream = leads(&mut driven, backup(&[3, 5, 7, 9, 10], 0));
    driven.step(Input::Resumed { stream, from: Sequence(11), to: Sequence(10) });
    driven.now += 1_000;
    assert_eq!(driven.work(), "A3! A7! A10!", "4 to 6 and 8 to 9: as many as may be dropped, and one that was lost");
}
