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

/// It leads from 1000 on, and waits for publishers until 1500.
fn promoted(backup: Backup) -> (Driven, StreamId) {
    let promotion = Promotion {
        authority: Authority { epoch: Epoch(2), until: Instant::NEVER },
        redirect: Duration::from_nanos(500),
        incarnation: Incarnation(8),
        limits: LIMITS,
    };
    let mut driven = Driven { shard: backup.promote(at(1_000), promotion), now: 1_000, outputs: Vec::new() };
    driven.step(Input::Backup(BackupStanding::Out));
    let stream = driven.stream(0, 1);
    (driven, stream)
}

fn resend(driven: &mut Driven, stream: StreamId, sequence: u64) -> Accepted {
    let created = at(sequence * TERMS.period_ns);
    let publication = Publication { epoch: Epoch(2), sequence: Sequence(sequence), created, is_resent: true };
    driven.shard.accept(at(driven.now), stream, publication).unwrap()
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
fn a_new_run_is_a_stream_of_its_own_behind_what_is_left_of_the_one_before() {
    let (mut driven, _) = promoted(backup(&[3], 0));
    assert_eq!(driven.work(), "", "its publisher may come back");
    let new = driven.stream_of(0, 1, 2);
    driven.publish(new, 1).unwrap();
    assert_eq!(driven.work(), "A3! A1");
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
