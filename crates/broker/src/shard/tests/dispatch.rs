//! Which event goes first, which one waits, which one is dropped.

use super::*;

fn due_within(level: u8, within_ns: u64) -> Terms {
    let level = crate::topic::Level::new(level).unwrap();
    Terms { level, dispatch_within_ns: Some(within_ns), replicate_within_ns: None, ..roomy() }
}

#[test]
fn the_highest_level_goes_first_and_in_it_the_earliest_deadline() {
    let mut driven = Driven::new(&[due_within(1, 10), due_within(0, 30), due_within(0, 20), due_within(7, 2), due_within(0, 20)]);
    for topic in 0..5 {
        let stream = driven.stream(topic, 1);
        driven.publish(stream, 1).unwrap();
    }
    assert_eq!(driven.work(), "C1 E1 B1 A1 D1");
}

#[test]
fn a_topic_without_a_deadline_goes_behind_those_of_its_level() {
    let mut driven = Driven::new(&[Terms { dispatch_within_ns: None, ..due_within(0, 0) }, due_within(0, 1_000), due_within(1, 10)]);
    for topic in 0..3 {
        let stream = driven.stream(topic, 1);
        driven.publish(stream, 1).unwrap();
    }
    assert_eq!(driven.work(), "B1 A1 C1");
}

#[test]
fn the_events_of_a_stream_keep_their_order_and_the_first_inherits_the_earliest_deadline() {
    let mut driven = Driven::new(&[Terms { created_before_ns: 90, jitter_ns: 1_000, ..due_within(0, 100) }, due_within(0, 60)]);
    let (slow, rival) = (driven.stream(0, 1), driven.stream(1, 1));
    let created = |now: u64, sequence, created| {
        (
            at(now),
            Publication {
                epoch: Epoch::NONE,
                sequence: Sequence(sequence),
                created: at(created),
                is_resent: false,
                has_wrong_clock: false,
            },
        )
    };
    // The second event was created before the first one, says its publisher, and so is due at 1010 and not at 1098.
    for (now, publication) in [created(1_000, 1, 998), created(1_000, 2, 910)] {
        driven.shard.accept(now, driven.shard.permit().expect("it leads"), slow, publication).unwrap();
    }
    driven.publish(rival, 1).unwrap();
    assert_eq!(driven.work(), "A1 A2 B1");
}

/// The first event of a fresh stream, from a publisher whose clock is known to be wrong: what it stamps, and whether it sends it again.
fn wrongly_stamped(stamped: u64, is_resent: bool) -> (Driven, StreamId) {
    let mut driven = Driven::new(&[due_within(0, 40)]);
    let stream = driven.stream(0, 1);
    let publication = Publication { epoch: Epoch::NONE, sequence: Sequence(1), created: at(stamped), is_resent, has_wrong_clock: true };
    assert!(matches!(
        driven.shard.accept(at(driven.now), driven.shard.permit().expect("it leads"), stream, publication),
        Ok(Accepted::Kept { is_excess: false, .. })
    ));
    (driven, stream)
}

#[test]
fn deadlines_of_a_publisher_with_a_wrong_clock_count_from_the_arrival_and_the_longest_way_before_it() {
    // It came at 1000, and its way takes 10 at the longest: whatever it stamps, it is due at 1030.
    for (stamped, is_resent) in [(1_000, false), (u64::MAX, false), (990, false), (0, false), (0, true), (u64::MAX, true)] {
        for (now, expected) in [(1_030, "A1"), (1_031, "A1!")] {
            let (mut driven, _) = wrongly_stamped(stamped, is_resent);
            driven.now = now;
            assert_eq!(driven.work(), expected, "stamped {stamped}, sent again {is_resent}");
        }
    }
}

#[test]
fn a_replica_of_a_publisher_with_a_wrong_clock_is_due_as_if_it_had_taken_the_longest_way() {
    let starts = |has_wrong_clock| {
        let mut driven = Driven::new(&[Terms { replicate_within_ns: Some(60), ..due_within(0, 1_000) }]);
        let stream = driven.stream(0, 1);
        driven.subscribe(0, 1_000);
        driven.step(Input::Backup(BackupStanding::Out));
        driven.join();
        let publication =
            Publication { epoch: Epoch::NONE, sequence: Sequence(1), created: at(driven.now), is_resent: false, has_wrong_clock };
        driven.shard.accept(at(driven.now), driven.shard.permit().expect("it leads"), stream, publication).unwrap();
        driven.work();
        driven.shard.next_timer().expect("the replica waits for its latest safe start").nanos()
    };
    assert_eq!((starts(false), starts(true)), (1_057, 1_049), "within 60, of which it takes 1: behind 998, and behind 990");
}

#[test]
fn the_period_of_a_publisher_with_a_wrong_clock_is_policed_by_what_it_stamps() {
    let (mut driven, stream) = wrongly_stamped(500, false);
    let publish = |driven: &mut Driven, sequence, created| {
        let publication =
            Publication { epoch: Epoch::NONE, sequence: Sequence(sequence), created: at(created), is_resent: false, has_wrong_clock: true };
        driven
            .shard
            .accept(at(driven.now), driven.shard.permit().expect("it leads"), stream, publication)
            .map(|accepted| matches!(accepted, Accepted::Kept { is_excess: true, .. }))
    };
    assert_eq!(publish(&mut driven, 2, 600), Ok(false), "a link has held both back");
    assert_eq!(publish(&mut driven, 3, 650), Ok(true));
}

#[test]
fn results_of_events_that_waited_together_are_not_excess() {
    let excess = |is_result: bool| -> Vec<u64> {
        let mut driven = Driven::new(&[TERMS]);
        let stream = driven.stream(0, 1);
        let publish = |sequence: &u64| {
            let (now, permit) = (at(driven.now), driven.shard.permit().expect("it leads"));
            let event =
                Publication { epoch: Epoch::NONE, sequence: Sequence(*sequence), created: now, is_resent: false, has_wrong_clock: false };
            let accepted = match is_result {
                true => driven.shard.accept_result(now, permit, stream, event),
                false => driven.shard.accept(now, permit, stream, event),
            };
            matches!(accepted, Ok(Accepted::Kept { is_excess: true, .. }))
        };
        (1..=u64::from(TERMS.backlog_max.get())).filter(publish).collect()
    };
    assert_eq!((excess(false), excess(true)), (vec![2, 3, 4], vec![]));
}

#[test]
fn an_event_that_is_late_is_dispatched_and_counted() {
    let mut driven = Driven::new(&[due_within(0, 40)]);
    let stream = driven.stream(0, 1);
    driven.publish(stream, 1).unwrap();
    driven.now += 38;
    assert_eq!(driven.work(), "A1", "created 2 before it came, within 40");
    driven.now += 100;
    driven.publish(stream, 2).unwrap();
    driven.now += 39;
    assert_eq!(driven.work(), "A2!");
    assert_eq!(driven.shard.counters().late, 1);
}

#[test]
fn a_topic_that_drops_what_is_late_drops_no_more_in_a_row_than_its_share_of_the_losses() {
    let mut driven = Driven::new(&[Terms { shed_max: Some(2), ..due_within(0, 40) }]);
    let stream = driven.stream(0, 1);
    for sequence in 1..=7 {
        driven.now += 100;
        driven.publish(stream, sequence).unwrap();
    }
    driven.now += 1_000;
    assert_eq!(driven.shard.waiting(), 7);
    assert_eq!(driven.work(), "A1! A4! A7!", "the leader before may have dropped as many in front of the first one");
    assert_eq!(driven.shard.waiting(), 0, "what was dropped waits no more");
    let shed: Vec<_> =
        driven.told().iter().filter_map(|told| if let Output::Shed { sequence, .. } = told { Some(sequence.0) } else { None }).collect();
    assert_eq!(shed, [2, 3, 5, 6]);
}

#[test]
fn excess_goes_out_when_there_is_nothing_else_and_is_dropped_when_a_rightful_event_has_to_go() {
    let mut driven = Driven::new(&[due_within(0, 40), due_within(7, 90)]);
    let (stream, other) = (driven.stream(0, 1), driven.stream(1, 1));
    let is_excess = |accepted| matches!(accepted, Ok(Accepted::Kept { is_excess: true, .. }));
    assert!(!is_excess(driven.publish(stream, 1)));
    assert_eq!(driven.work(), "A1");
    assert!(is_excess(driven.publish(stream, 2)));
    driven.now += 2;
    driven.publish(other, 1).unwrap();
    driven.now += 60;
    assert_eq!(driven.work(), "B1 A2", "behind the last level");
    assert!(is_excess(driven.publish(stream, 3)));
    driven.now += 60;
    assert!(!is_excess(driven.publish(stream, 4)));
    assert_eq!(driven.work(), "A4");
    let shed =
        |told: &Output| matches!(*told, Output::Shed { stream: of, sequence: Sequence(3), reason: ShedReason::Excess, .. } if of == stream);
    assert!(driven.told().iter().any(shed));
    assert_eq!((driven.shard.counters().excess, driven.shard.counters().shed), (2, 1));
}

#[test]
fn a_publisher_that_floods_delays_nobody() {
    let mut driven = Driven::new(&[due_within(0, 40), due_within(0, 40)]);
    let (flood, other) = (driven.stream(0, 1), driven.stream(1, 1));
    driven.publish(flood, 1).unwrap();
    for sequence in 2..=60 {
        driven.publish(flood, sequence).unwrap();
    }
    driven.publish(other, 1).unwrap();
    assert!(driven.work().starts_with("A1 B1 A2"));
}

#[test]
fn a_flood_is_dropped_in_front_of_each_rightful_event_and_what_follows_goes_out_behind_it() {
    let mut driven = Driven::new(&[due_within(0, 40)]);
    let stream = driven.stream(0, 1);
    for sequence in 1..=60 {
        driven.now += u64::from(sequence % 20 == 1) * 100;
        driven.publish(stream, sequence).unwrap();
    }
    driven.now -= 200;
    let rest: Vec<_> = (42..=60).map(|sequence| format!("A{sequence}")).collect();
    assert_eq!(driven.work(), format!("A1 A21 A41 {}", rest.join(" ")));
    let shed = driven.told().iter().filter(|told| matches!(told, Output::Shed { reason: ShedReason::Excess, .. })).count();
    assert_eq!((shed, driven.shard.counters().shed), (38, 38));
}

#[test]
fn a_full_stream_refuses_and_takes_again_what_it_refused() {
    let mut driven = Driven::new(&[TERMS]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    for sequence in 1..=4 {
        driven.now += 100;
        driven.publish(stream, sequence).unwrap();
    }
    driven.work();
    driven.now += 100;
    assert_eq!(driven.publish(stream, 5), Err(Refusal::Full { kept: 4, from: Sequence(5), retry_after_ns: 100 }));
    assert_eq!(driven.publish(stream, 4), Ok(Accepted::Known), "what is there is no reason to wait");
    driven.delivered(key, stream, 1);
    assert!(matches!(driven.publish(stream, 5), Ok(Accepted::Kept { .. })));
}

#[test]
fn new_terms_give_open_streams_more_room() {
    let mut driven = Driven::new(&[TERMS]);
    let (stream, _key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    for sequence in 1..=4 {
        driven.publish(stream, sequence).unwrap();
    }
    assert!(matches!(driven.publish(stream, 5), Err(Refusal::Full { kept: 4, .. })));
    driven.shard.admit("A", roomy()).unwrap();
    assert!(matches!(driven.publish(stream, 5), Ok(Accepted::Kept { .. })));
    assert_eq!(driven.shard.slots_max(), 64);
}

#[test]
fn behind_an_event_that_was_refused_none_is_taken_before_it_comes_again_or_is_given_up() {
    let mut driven = Driven::new(&[TERMS]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    let publish = |driven: &mut Driven, sequence| {
        driven.now += 100;
        driven.publish(stream, sequence).map(|_| ())
    };
    (1..=4).for_each(|sequence| publish(&mut driven, sequence).unwrap());
    driven.work();
    let full = |kept, from| Err(Refusal::Full { kept, from: Sequence(from), retry_after_ns: 100 });
    assert_eq!([publish(&mut driven, 5), publish(&mut driven, 6)], [full(4, 5), full(4, 5)]);
    driven.delivered(key, stream, 4);
    assert_eq!(publish(&mut driven, 7), full(0, 5), "under way before the refusal was heard");
    assert_eq!([5, 6, 7].map(|sequence| publish(&mut driven, sequence)), [Ok(()); 3]);
    driven.step(Input::Authority(Authority { epoch: Epoch::NONE, until: at(driven.now) }));
    assert_eq!([publish(&mut driven, 8), publish(&mut driven, 9)], [Err(Refusal::NotLeading); 2]);
    driven.step(Input::Authority(Authority::ALONE));
    assert_eq!(publish(&mut driven, 9), full(3, 8));
    driven.step(Input::Resumed { stream, from: Sequence(9), to: Sequence(9) });
    assert_eq!(publish(&mut driven, 9), Ok(()));
    let waits = |taken| matches!(taken, Err(Refusal::Full { from: Sequence(10), .. }));
    assert!(waits(publish(&mut driven, 10)));
    driven.work();
    driven.step(Input::Sent { subscription: key, bytes: 4 });
    driven.work();
    driven.delivered(key, stream, 9);
    assert!(waits(publish(&mut driven, 11)));
    driven.step(Input::GivenUp { stream, sequence: Sequence(9) });
    assert!(waits(publish(&mut driven, 11)), "another one was given up");
    driven.step(Input::GivenUp { stream, sequence: Sequence(10) });
    assert_eq!(publish(&mut driven, 11), Ok(()));
}

#[test]
fn an_event_that_was_refused_and_is_covered_meanwhile_is_not_waited_for() {
    let mut driven = Driven::new(&[TERMS]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    for sequence in 1..=4 {
        driven.now += 100;
        driven.publish(stream, sequence).unwrap();
    }
    driven.work();
    assert!(driven.publish(stream, 5).is_err());
    // It has the fifth event from the leader before.
    driven.attach(key, 5);
    assert_eq!(driven.covered(), Some(5));
    driven.now += 200;
    assert!(matches!(driven.publish(stream, 6), Ok(Accepted::Kept { .. })));
}

#[test]
fn an_event_that_was_refused_in_an_earlier_epoch_and_comes_no_more_is_not_waited_for() {
    let mut driven = Driven::new(&[TERMS]);
    let stream = driven.stream(0, 1);
    let publish = |driven: &mut Driven, epoch, sequence| {
        driven.now += 100;
        let (epoch, sequence, created) = (Epoch(epoch), Sequence(sequence), at(driven.now));
        let publication = Publication { epoch, sequence, created, is_resent: false, has_wrong_clock: false };
        driven.shard.accept(at(driven.now), driven.shard.permit().expect("it leads"), stream, publication).map(|_| ())
    };
    driven.leads(1);
    assert_eq!(publish(&mut driven, 1, 1), Ok(()));
    driven.fenced(1);
    // A cut has held 2 back. The leader of epoch 2 has covered it, and has died.
    assert_eq!(publish(&mut driven, 1, 2), Err(Refusal::NotLeading));
    driven.leads(3);
    assert_eq!(publish(&mut driven, 3, 3), Ok(()), "its publisher keeps nothing that was sent before, and need not say so");
    // The same of one that comes when this node leads again.
    assert_eq!(publish(&mut driven, 1, 4), Err(Refusal::Epoch { found: Epoch(1), epoch: Epoch(3) }));
    assert_eq!(publish(&mut driven, 3, 5), Ok(()));
    // Of one epoch what was refused is waited for.
    driven.fenced(3);
    assert_eq!(publish(&mut driven, 3, 6), Err(Refusal::NotLeading));
    driven.leads(3);
    assert!(matches!(publish(&mut driven, 3, 7), Err(Refusal::Full { from: Sequence(6), .. })));
    assert_eq!(
        [6, 7].map(|sequence| publish(&mut driven, 3, sequence)),
        [Ok(()), Err(Refusal::Full { kept: 4, from: Sequence(7), retry_after_ns: 100 })]
    );
}

#[test]
fn events_that_a_link_has_held_back_are_no_excess() {
    let mut driven = Driven::new(&[due_within(0, 40)]);
    let stream = driven.stream(0, 1);
    for sequence in 1..=3 {
        let created = at(400 + sequence * 100);
        let publication =
            Publication { epoch: Epoch::NONE, sequence: Sequence(sequence), created, is_resent: false, has_wrong_clock: false };
        let accepted = driven.shard.accept(at(driven.now), driven.shard.permit().expect("it leads"), stream, publication);
        assert!(matches!(accepted, Ok(Accepted::Kept { is_excess: false, .. })), "{sequence}");
    }
    assert_eq!(driven.shard.next_timer(), Some(at(0)));
    assert_eq!(driven.work(), "A1 A2 A3", "their deadlines are those of events that took as long as may be, and not earlier");
}

#[test]
fn a_sequence_that_cannot_be_is_refused() {
    let mut driven = Driven::new(&[roomy()]);
    let stream = driven.stream(0, 1);
    assert_eq!(driven.publish(stream, 0), Err(Refusal::Sequence { found: 0, last: 0 }));
    assert!(driven.publish(stream, 1 << 40).is_ok(), "a stream may be known by others for long");
    let found = (1 << 40) + SEQUENCE_GAP_MAX + 1;
    assert_eq!(driven.publish(stream, found), Err(Refusal::Sequence { found, last: 1 << 40 }));
}

#[test]
fn who_does_not_lead_neither_accepts_nor_dispatches_nor_covers() {
    let mut driven = Driven::new(&[roomy()]);
    let stream = driven.stream(0, 1);
    driven.step(Input::Authority(Authority { epoch: Epoch(3), until: at(1_010) }));
    let publish = |driven: &mut Driven, epoch, sequence| {
        let publication = Publication {
            epoch: Epoch(epoch),
            sequence: Sequence(sequence),
            created: at(driven.now),
            is_resent: false,
            has_wrong_clock: false,
        };
        driven.shard.accept(at(driven.now), driven.shard.permit().expect("it leads"), stream, publication).err()
    };
    let other = |found| Some(Refusal::Epoch { found: Epoch(found), epoch: Epoch(3) });
    let found = [(0, 1), (3, 2), (2, 3), (4, 3)].map(|(epoch, sequence)| publish(&mut driven, epoch, sequence));
    assert_eq!(found, [None, None, other(2), other(4)]);
    driven.now = 1_010;
    assert_eq!(publish(&mut driven, 3, 3), Some(Refusal::NotLeading));
    assert_eq!((driven.work().as_str(), driven.covered()), ("", None));
    driven.step(Input::Authority(Authority { epoch: Epoch(3), until: at(1_020) }));
    assert_eq!(driven.work(), "A1 A2");
}

#[test]
fn a_new_run_of_a_publisher_begins_a_stream_and_the_old_one_ends_when_it_is_empty() {
    let mut driven = Driven::new(&[roomy()]);
    let (old, key) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    driven.publish(old, 1).unwrap();
    driven.work();
    let new = driven.stream_of(0, 1, 2);
    assert_ne!(old, new);
    assert!(matches!(driven.publish(new, 1), Ok(Accepted::Kept { .. })), "its sequence 1 is not old");
    driven.told();
    driven.delivered(key, old, 1);
    let told = driven.told();
    assert_eq!(told.last(), Some(&Output::Closed { stream: old, number: None }));
    assert!(told.contains(&Output::Covered { stream: old, through: Sequence(1) }), "it ends when everything is told");
    assert_eq!(driven.publish(old, 2), Err(Refusal::Stream));
}

#[test]
fn a_topic_that_was_best_effort_goes_on_counting() {
    let mut driven = Driven::new(&[]);
    let publish = |driven: &mut Driven| driven.publish_best_effort("A", 1).sequence.0;
    assert_eq!([publish(&mut driven), publish(&mut driven)], [1, 2]);
    driven.shard.admit("A", roomy()).unwrap();
    let stream = driven.stream_of(0, 1, 7);
    assert_eq!(driven.shard.last(stream), Some(Sequence(2)));
    assert_eq!(driven.publish(stream, 2), Ok(Accepted::Known));
    assert!(matches!(driven.publish(stream, 3), Ok(Accepted::Kept { .. })));
}

#[test]
fn the_next_timer_is_the_next_thing_to_do() {
    let mut driven = Driven::new(&[TERMS]);
    driven.join();
    let stream = driven.stream(0, 1);
    assert_eq!(driven.shard.next_timer(), None);
    driven.publish(stream, 1).unwrap();
    assert_eq!(driven.shard.next_timer(), Some(at(0)), "at once");
    assert_eq!(driven.work(), "A1");
    assert_eq!(driven.shard.next_timer(), Some(at(1_005)), "it counts as received");
    driven.now = 1_005;
    assert_eq!(driven.work(), "");
    // Created at 998, 2 before it arrived; replicated within 60, which takes 1.
    assert_eq!(driven.shard.next_timer(), Some(at(1_057)));
    driven.now = 1_056;
    assert_eq!(driven.work(), "");
    driven.now = 1_057;
    assert_eq!(driven.work(), "(A1)");
    assert_eq!(driven.shard.next_timer(), None);
}

#[test]
fn an_offer_names_the_slot_of_the_work_that_follows() {
    let mut driven = Driven::new(&[due_within(0, 1_000), due_within(0, 10)]);
    for topic in 0..2 {
        driven.subscribe(topic, 0);
        let stream = driven.stream(topic, 1);
        driven.publish(stream, 1).unwrap();
    }
    for _ in 0..2 {
        let mut offered = None;
        let mut offer = |_: &u8, event: OfferedEvent| {
            offered = Some(event);
            Wanted::Bytes(1)
        };
        let work = driven.shard.next(at(driven.now), &mut offer, &mut driven.outputs);
        let Some(Work::Dispatch { slot, event, .. }) = work else { panic!("{work:?}") };
        assert_eq!(offered, Some(OfferedEvent { id: event, slot: Some(slot) }));
    }
}
