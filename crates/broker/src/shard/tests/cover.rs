//! What covers an event, what is replicated for that, and what is not needed any more.

use super::*;

#[test]
fn an_event_is_covered_when_every_required_subscriber_has_it() {
    let mut driven = Driven::new(&[roomy()]);
    driven.join();
    let (stream, one, two) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000), driven.subscribe(0, 1_000_000));
    driven.publish(stream, 1).unwrap();
    assert_eq!(driven.work(), "A1");
    driven.delivered(one, stream, 1);
    assert_eq!(driven.covered(), None);
    driven.delivered(two, stream, 1);
    assert_eq!((driven.covered(), driven.shard.kept()), (Some(1), 0));
    driven.now += 1_000;
    assert_eq!(driven.work(), "", "what is covered is not replicated");
    assert_eq!(driven.shard.counters().cancelled, 1);
}

#[test]
fn an_event_is_covered_when_the_backup_has_it_and_kept_until_the_subscriber_has() {
    let mut driven = Driven::new(&[roomy()]);
    driven.join();
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    driven.publish(stream, 1).unwrap();
    driven.now += 57;
    assert_eq!(driven.work(), "A1! (A1)");
    assert_eq!(driven.told(), [Output::Declare { stream, number: StreamNumber(1) }]);
    driven.acknowledge_all();
    assert_eq!((driven.covered(), driven.shard.kept()), (Some(1), 1));
    driven.delivered(key, stream, 1);
    let discard = Output::Discard { number: StreamNumber(1), through: Sequence(1) };
    assert_eq!((driven.told(), driven.shard.kept()), (vec![discard], 0));
}

#[test]
fn where_nobody_acknowledges_only_the_backup_covers() {
    let mut driven = Driven::new(&[roomy()]);
    driven.join();
    let stream = driven.stream(0, 1);
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.now += 56;
    assert_eq!((driven.work().as_str(), driven.covered(), driven.shard.kept()), ("", None, 1));
    driven.now += 1;
    assert_eq!(driven.work(), "(A1)");
    driven.acknowledge_all();
    assert_eq!((driven.covered(), driven.shard.kept()), (Some(1), 0));
}

#[test]
fn what_has_left_the_send_queues_is_covered_where_the_topic_says_so() {
    let host = Terms { emptied_covers: true, ..roomy() };
    let mut driven = Driven::new(&[host, roomy()]);
    driven.join();
    let (stream, strict) = (driven.stream(0, 1), driven.stream(1, 1));
    let emptied = |driven: &mut Driven, stream, through| driven.step(Input::Emptied { stream, through: Sequence(through) });
    driven.publish(stream, 1).unwrap();
    driven.publish(strict, 1).unwrap();
    emptied(&mut driven, stream, 1);
    assert_eq!(driven.covered(), None, "what is not dispatched has left nothing");
    assert_eq!(driven.work(), "A1 B1");
    emptied(&mut driven, strict, 1);
    assert_eq!((driven.covered(), driven.shard.kept()), (None, 2), "this topic counts acknowledgements only");
    emptied(&mut driven, stream, 1);
    assert_eq!((driven.covered(), driven.shard.kept()), (Some(1), 1));
    driven.now += 57;
    assert_eq!(driven.work(), "(B1)", "what is covered is not replicated");
    driven.acknowledge_all();
    assert_eq!(driven.covered(), Some(1));
    driven.now += 100;
    driven.publish(stream, 2).unwrap();
    driven.now += 57;
    assert_eq!(driven.work(), "A2! (A2)", "a queue that stands still leaves it to the Backup");
    driven.acknowledge_all();
    assert_eq!(driven.covered(), Some(2));
    driven.now += 1_000;
    assert_eq!((driven.work().as_str(), driven.shard.kept()), ("", 0), "and keeps nothing here that the Backup has");
}

#[test]
fn where_somebody_is_required_the_send_queues_say_nothing() {
    let mut driven = Driven::new(&[Terms { emptied_covers: true, ..roomy() }]);
    driven.join();
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.step(Input::Emptied { stream, through: Sequence(1) });
    assert_eq!((driven.covered(), driven.shard.kept()), (None, 1));
    driven.delivered(key, stream, 1);
    assert_eq!((driven.covered(), driven.shard.kept()), (Some(1), 0));
}

#[test]
fn without_a_backup_that_may_lead_acceptance_covers_what_nobody_acknowledges() {
    for standing in [BackupStanding::Absent, BackupStanding::Out] {
        let mut driven = Driven::new(&[roomy(), roomy()]);
        driven.step(Input::Backup(standing));
        let (stream, other, key) = (driven.stream(0, 1), driven.stream(1, 1), driven.subscribe(1, 1_000_000));
        driven.publish(stream, 1).unwrap();
        assert_eq!(driven.covered(), Some(1));
        driven.publish(other, 1).unwrap();
        driven.work();
        assert_eq!(driven.covered(), None, "a required subscriber still counts");
        driven.delivered(key, other, 1);
        assert_eq!(driven.covered(), Some(1));
    }
}

#[test]
fn a_backup_that_has_gone_and_may_be_voted_for_covers_nothing_nor_does_acceptance() {
    let mut driven = Driven::new(&[roomy()]);
    driven.join();
    let stream = driven.stream(0, 1);
    driven.publish(stream, 1).unwrap();
    driven.now += 60;
    assert_eq!(driven.work(), "A1! (A1)");
    driven.step(Input::Backup(BackupStanding::Lost));
    driven.now += 100;
    driven.publish(stream, 2).unwrap();
    assert_eq!((driven.work().as_str(), driven.covered()), ("A2", None));
    driven.step(Input::Backup(BackupStanding::Out));
    assert_eq!(driven.covered(), Some(2), "it will not lead, so there is nothing to wait for");
    driven.now += 100;
    driven.publish(stream, 3).unwrap();
    driven.step(Input::Backup(BackupStanding::Joining));
    assert_eq!(driven.work(), "A3 (A3) end");
    driven.acknowledge_all();
    assert_eq!(driven.covered(), Some(3));
    driven.step(Input::Backup(BackupStanding::Settling));
    driven.now += 100;
    driven.publish(stream, 4).unwrap();
    driven.now += 60;
    assert_eq!(driven.work(), "A4! (A4)");
    driven.acknowledge_all();
    assert_eq!(driven.covered(), None, "it may be voted for, and may not");
    driven.step(Input::Backup(BackupStanding::InSync));
    assert_eq!(driven.covered(), Some(4), "what it acknowledged meanwhile counts now");
}

#[test]
fn a_joining_backup_is_given_each_stream_in_order_and_the_end_behind_the_last() {
    let mut driven = Driven::new(&[Terms { streams_max: 300, ..roomy() }]);
    driven.step(Input::Backup(BackupStanding::Out));
    let _key = driven.subscribe(0, 1_000_000);
    let streams: Vec<_> = (0..300).map(|publisher| driven.stream(0, publisher)).collect();
    driven.publish(streams[299], 1).unwrap();
    assert_eq!(driven.work(), "A1");
    driven.step(Input::Backup(BackupStanding::Joining));
    driven.now += 100;
    driven.publish(streams[299], 2).unwrap();
    assert_eq!(driven.work(), "A2", "some hundred streams are looked at in a turn");
    assert_eq!(driven.shard.next_timer(), Some(at(0)), "and then it goes on");
    assert_eq!(driven.work(), "(A1) (A2) end");
}

#[test]
fn an_event_of_a_stream_that_is_opened_behind_the_end_of_what_is_given_is_replicated_too() {
    let mut driven = Driven::new(&[roomy()]);
    driven.step(Input::Backup(BackupStanding::Out));
    driven.step(Input::Backup(BackupStanding::Joining));
    assert_eq!(driven.work(), "end");
    let (stream, _key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    driven.publish(stream, 1).unwrap();
    driven.acknowledge_all();
    driven.step(Input::Backup(BackupStanding::Settling));
    driven.step(Input::Backup(BackupStanding::InSync));
    driven.now += 60;
    assert_eq!(driven.work(), "A1! (A1)");
}

#[test]
fn a_checkpoint_goes_behind_the_results_that_wait_to_be_replicated() {
    let mut driven = Driven::new(&[Terms { jitter_ns: 1_000, ..roomy() }, roomy()]);
    driven.join();
    let (results, other) = (driven.stream(0, 1), driven.stream(1, 1));
    for sequence in 1..=3 {
        driven.publish(results, sequence).unwrap();
    }
    driven.publish(other, 1).unwrap();
    let mut sent = Vec::new();
    while let Some(Work::Replicate { event, .. }) = driven.shard.replicate_next(at(driven.now), TopicId(0), &mut driven.outputs) {
        sent.push(event_name(event));
    }
    assert_eq!(sent, ["A1", "A2", "A3"], "none of them is due");
    let position = driven.shard.checkpoint(7).expect("there is a Backup");
    assert_eq!(position, driven.shard.position());
    driven.told();
    driven.acknowledge_all();
    assert!(driven.outputs.contains(&Output::Arrived { checkpoint: 7 }));
    assert_eq!(driven.work(), "A1 A2 A3 B1", "they were replicated");
    driven.step(Input::Backup(BackupStanding::Lost));
    assert_eq!(driven.shard.checkpoint(8), None);
}

#[test]
fn a_stream_of_our_own_run_that_ends_leaves_its_place_and_goes_on_with_its_numbers() {
    let mut driven = Driven::new(&[Terms { streams_max: 2, ..TERMS }]);
    let [ours, other] = [(1, 7), (2, 1)].map(|(publisher, incarnation)| driven.stream_of(0, publisher, incarnation));
    for stream in [ours, other] {
        for sequence in 1..=3 {
            driven.now += 1_000;
            driven.publish(stream, sequence).unwrap();
        }
        driven.work();
        driven.shard.end_stream(stream);
    }
    let mut closed = 0;
    for _ in 0..3 {
        // What is dispatched settles, and then what was dispatched meanwhile.
        driven.now += 1_000_000;
        driven.step(Input::Backup(BackupStanding::Absent));
        driven.work();
        closed += driven.told().iter().filter(|output| matches!(output, Output::Closed { .. })).count();
    }
    assert_eq!(closed, 2);
    let [ours, other] = [(1, 7), (2, 1)].map(|(publisher, incarnation)| driven.stream_of(0, publisher, incarnation));
    assert_eq!([ours, other].map(|stream| driven.shard.last(stream)), [Some(Sequence(3)), Some(Sequence(0))]);
    assert!(matches!(driven.publish(ours, 3), Ok(Accepted::Known)));
    assert!(matches!(driven.publish(ours, 4), Ok(Accepted::Kept { .. })));
}

#[test]
fn a_stream_that_ends_is_closed_on_the_link_by_the_number_that_it_has_in_this_session() {
    let mut driven = Driven::new(&[roomy()]);
    driven.shard.set_replication(AT_ONCE);
    let mut closed = |ends: bool| {
        driven.join();
        let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
        driven.now += 100;
        driven.publish(stream, 1).unwrap();
        assert_eq!(driven.work(), "A1 (A1)");
        if ends {
            driven.step(Input::Backup(BackupStanding::Lost));
        }
        driven.step(Input::Unsubscribe { subscription: key });
        driven.shard.end_stream(stream);
        driven.step(Input::Backup(if ends { BackupStanding::Out } else { BackupStanding::InSync }));
        driven.acknowledge_all();
        driven.now += 10;
        driven.work();
        let told = driven.told();
        told.iter().find_map(|output| if let Output::Closed { number, .. } = output { Some(*number) } else { None })
    };
    assert_eq!(closed(false), Some(Some(StreamNumber(1))));
    assert_eq!(closed(true), Some(None), "the session is over, and its numbers with it");
}

#[test]
fn one_event_of_m_is_a_mark_counted_from_the_last_mark_and_covers_those_in_front() {
    let mut driven = Driven::new(&[Terms { mark_every: NonZeroU32::new(3).unwrap(), ..roomy() }]);
    driven.join();
    driven.shard.set_replication(AT_ONCE);
    let (stream, _key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    let mut covered = Vec::new();
    let mut words = Vec::new();
    for sequence in 1..=7 {
        driven.now += 100;
        driven.publish(stream, sequence).unwrap();
        words.push(driven.work());
        driven.acknowledge_all();
        covered.push(driven.covered());
    }
    assert_eq!(words.join(" "), "A1 (A1) A2 A3 A4 (A4) A5 A6 A7 (A7)");
    assert_eq!(covered, [Some(1), None, None, Some(4), None, None, Some(7)]);
}

#[test]
fn a_backup_that_keeps_some_of_what_is_covered_forgets_as_many_at_a_time() {
    let discarded = |backlog: u32| {
        let mut driven = Driven::new(&[Terms { backlog_max: NonZeroU32::new(backlog).unwrap(), ..TERMS }]);
        driven.join();
        driven.shard.set_replication(ReplicationPolicy { backup_keeps: 2, ..AT_ONCE });
        let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
        let mut discarded = Vec::new();
        for sequence in 1..=9 {
            driven.now += 100;
            driven.publish(stream, sequence).unwrap();
            driven.work();
            driven.step(Input::Sent { subscription: key, bytes: 1 });
            driven.delivered(key, stream, sequence);
            for output in driven.told() {
                if let Output::Discard { through, .. } = output {
                    discarded.push((sequence, through.0));
                }
            }
        }
        discarded
    };
    assert_eq!(discarded(64), [(4, 2), (6, 4), (8, 6)], "between two and three stay when a turn ends");
    assert_eq!(discarded(3), [(2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7), (9, 8)], "and no more than fit beside one to come");
}

#[test]
fn excess_is_never_a_mark() {
    let mut driven = Driven::new(&[roomy()]);
    driven.join();
    driven.shard.set_replication(AT_ONCE);
    let stream = driven.stream(0, 1);
    for sequence in 1..=3 {
        driven.publish(stream, sequence).unwrap();
    }
    assert_eq!(driven.work(), "A1 (A1) A2 A3");
}

#[test]
fn losses_that_do_not_matter_need_no_cover() {
    let mut driven = Driven::new(&[Terms { replicate_within_ns: None, ..roomy() }]);
    driven.join();
    let stream = driven.stream(0, 1);
    driven.publish(stream, 1).unwrap();
    assert_eq!(driven.covered(), Some(1));
    driven.now += 1_000;
    assert_eq!(driven.work(), "A1!");
}

#[test]
fn a_subscriber_that_begins_does_not_cover_what_was_there_before() {
    let mut driven = Driven::new(&[roomy()]);
    driven.join();
    let stream = driven.stream(0, 1);
    driven.publish(stream, 1).unwrap();
    assert_eq!(driven.work(), "A1");
    let key = driven.subscribe(0, 1_000_000);
    assert_eq!(driven.covered(), None);
    driven.now += 10;
    driven.publish(stream, 2).unwrap();
    driven.work();
    driven.delivered(key, stream, 2);
    assert_eq!(driven.covered(), None, "nobody has the first one");
    driven.now += 50;
    assert_eq!(driven.work(), "(A1)");
    driven.acknowledge_all();
    assert_eq!((driven.covered(), driven.shard.kept()), (Some(2), 0));
}

#[test]
fn an_event_that_comes_again_is_told_to_be_covered_again() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.delivered(key, stream, 1);
    assert_eq!((driven.covered(), driven.covered()), (Some(1), None));
    assert_eq!(driven.publish(stream, 1), Ok(Accepted::Known));
    assert_eq!(driven.covered(), Some(1));
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_covers_nothing() {
    let mut driven = Driven::new(&[roomy(), roomy()]);
    let (stream, key, stranger) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000), driven.subscribe(1, 1_000_000));
    driven.publish(stream, 1).unwrap();
    driven.delivered(key, stream, 9);
    driven.delivered(stranger, stream, 9);
    assert_eq!(driven.covered(), None, "it is not dispatched yet");
    driven.work();
    driven.delivered(stranger, stream, 9);
    assert_eq!(driven.covered(), None, "it hears another topic");
    let ahead = Position(driven.shard.position().0 + 1);
    assert!(driven.shard.acknowledged(ahead, &mut Vec::new()).is_err());
}

#[test]
fn what_a_pause_of_the_lease_leaves_untold_is_told_when_it_is_over() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.step(Input::Authority(Authority { epoch: Epoch::NONE, until: at(driven.now) }));
    driven.delivered(key, stream, 1);
    assert_eq!(driven.covered(), None);
    driven.step(Input::Authority(Authority::ALONE));
    assert_eq!((driven.covered(), driven.covered()), (Some(1), None));
}

#[test]
fn control_operations_and_replicas_share_one_order() {
    let mut driven = Driven::new(&[roomy()]);
    assert_eq!(driven.shard.control(1), None, "there is no link");
    driven.join();
    driven.shard.set_replication(AT_ONCE);
    let (stream, _key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    let first = driven.shard.control(11).unwrap();
    driven.publish(stream, 1).unwrap();
    driven.work();
    let last = driven.shard.control(12).unwrap();
    assert_eq!(last.0, first.0 + 2);
    driven.told();
    driven.shard.acknowledged(first, &mut driven.outputs).unwrap();
    assert_eq!(driven.told(), [Output::Replicated { operation: 11 }]);
    driven.shard.acknowledged(last, &mut driven.outputs).unwrap();
    assert_eq!(driven.told(), [Output::Replicated { operation: 12 }, Output::Covered { stream, through: Sequence(1) }]);
}

#[test]
fn backup_that_catches_up_is_given_events_after_control_operations() {
    let mut driven = Driven::new(&[roomy()]);
    driven.step(Input::Backup(BackupStanding::Out));
    let (stream, _key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.step(Input::Backup(BackupStanding::CatchingUp));
    let operation = driven.shard.control(11).unwrap();
    driven.now += 100;
    driven.publish(stream, 2).unwrap();
    assert_eq!(driven.work(), "A2", "it goes to the subscriber alone");
    driven.told();
    driven.step(Input::Backup(BackupStanding::Joining));
    assert_eq!(driven.work(), "(A1) (A2) end");
    driven.shard.acknowledged(operation, &mut driven.outputs).unwrap();
    assert!(driven.told().contains(&Output::Replicated { operation: 11 }), "the session goes on");
    driven.acknowledge_all();
    assert_eq!(driven.told(), [Output::CaughtUp]);
}

#[test]
fn what_is_filled_in_behind_a_replica_is_not_covered_by_its_acknowledgement() {
    let mut driven = Driven::new(&[Terms { jitter_ns: 10_000, ..roomy() }]);
    driven.join();
    driven.shard.set_replication(AT_ONCE);
    let (stream, _key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    driven.publish(stream, 5).unwrap();
    assert_eq!(driven.work(), "A5 (A5)");
    let fifth = driven.shard.position();
    driven.publish(stream, 4).unwrap();
    driven.shard.acknowledged(fifth, &mut driven.outputs).unwrap();
    assert_eq!(driven.covered(), None);
    assert_eq!(driven.work(), "A4 (A4) (A5)");
    driven.acknowledge_all();
    assert_eq!(driven.covered(), Some(5));
}
