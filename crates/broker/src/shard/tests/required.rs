//! Subscriptions that events wait for, and for how long.

use super::*;

#[test]
fn who_comes_back_gets_what_it_has_missed_and_then_what_is_new_in_order() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key, other) = (driven.stream(0, 1), driven.subscribe(0, 5_000), driven.subscribe(0, 0));
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.step(Input::Detached { subscription: key });
    for sequence in 2..=3 {
        driven.now += 100;
        driven.publish(stream, sequence).unwrap();
    }
    assert_eq!(driven.work(), "A2! A3");
    assert_eq!((driven.handed(key), driven.handed(other)), (vec![1], vec![1, 2, 3]));
    driven.publish(stream, 4).unwrap();
    driven.attach(key, 1);
    assert_eq!(driven.work(), "A4 A2! A3 A4", "the last one once for those who are there, and once for who was behind");
    assert_eq!((driven.handed(key), driven.handed(other)), (vec![2, 3, 4], vec![4]), "who was there gets nothing again");
    driven.delivered(key, stream, 4);
    assert_eq!(driven.shard.kept(), 0);
}

#[test]
fn without_a_watermark_everything_that_was_not_acknowledged_comes_again() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 5_000));
    for sequence in 1..=3 {
        driven.now += 100;
        driven.publish(stream, sequence).unwrap();
    }
    driven.work();
    driven.delivered(key, stream, 1);
    driven.handed(key);
    driven.step(Input::Detached { subscription: key });
    driven.shard.attach(at(driven.now), key, 0, [], &mut driven.outputs);
    driven.work();
    assert_eq!(driven.handed(key), [2, 3]);
}

#[test]
fn what_a_full_connection_has_no_room_for_waits_for_who_is_required_and_is_lost_to_others() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key, other) = (driven.stream(0, 1), driven.subscribe(0, 5_000), driven.subscribe(0, 0));
    driven.publish(stream, 1).unwrap();
    while driven.shard.next(at(driven.now), &mut |_, _| Wanted::Full, &mut driven.outputs).is_some() {}
    assert_eq!((driven.handed(key), driven.handed(other), driven.shard.lost_events()), (vec![], vec![], 1));
    assert_eq!(driven.work(), "", "nothing is offered until there is room");
    for subscription in [key, other] {
        driven.step(Input::Sent { subscription, bytes: 0 });
    }
    assert!(
        driven.outputs.iter().any(|output| matches!(output, Output::TellLoss { subscription, events: 1, .. } if *subscription == other))
    );
    assert_eq!((driven.work().as_str(), driven.handed(key)), ("A1", vec![1]));
}

#[test]
fn who_is_away_for_too_long_is_not_required_any_more_and_is_told() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 500));
    driven.step(Input::Detached { subscription: key });
    driven.publish(stream, 1).unwrap();
    driven.now += 499;
    driven.work();
    assert_eq!((driven.covered(), driven.shard.kept()), (None, 1));
    driven.now += 1;
    assert_eq!(driven.shard.next_timer(), Some(at(driven.now)));
    driven.work();
    assert!(driven.told().contains(&Output::NotRequired { subscription: key, owed: 1 }));
    assert_eq!(driven.shard.subscription_count(), 0, "it has no session to go on with");
    driven.now += 5;
    driven.work();
    assert_eq!(driven.shard.kept(), 0, "it holds nothing up");
}

#[test]
fn who_is_silent_for_too_long_is_not_required_any_more_but_hears_on() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 500));
    driven.now += 10_000;
    driven.work();
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.delivered(key, stream, 1);
    driven.now += 10_000;
    driven.work();
    assert_eq!(driven.shard.counters().not_required, 0, "who owes nothing may be silent");
    driven.publish(stream, 2).unwrap();
    driven.work();
    driven.now += 400;
    driven.publish(stream, 3).unwrap();
    driven.work();
    driven.delivered(key, stream, 2);
    driven.now += 499;
    driven.work();
    assert_eq!(driven.shard.counters().not_required, 0, "it has said something");
    driven.now += 1;
    driven.work();
    assert!(driven.told().contains(&Output::NotRequired { subscription: key, owed: 1 }));
    driven.handed(key);
    driven.publish(stream, 4).unwrap();
    driven.work();
    assert_eq!(driven.handed(key), [4]);
}

#[test]
fn a_full_queue_costs_a_required_subscriber_no_event_and_others_no_time() {
    let mut driven = Driven::new(&[Terms { period_ns: 1, ..roomy() }]);
    let (stream, key, other) = (driven.stream(0, 1), driven.subscribe(0, 5_000), driven.subscribe(0, 0));
    for sequence in 1..=4 {
        driven.now += 1;
        driven.publish(stream, sequence).unwrap();
        driven.work();
    }
    driven.step(Input::Sent { subscription: other, bytes: 4 });
    for sequence in 5..=8 {
        driven.now += 1;
        driven.publish(stream, sequence).unwrap();
        driven.work();
    }
    assert_eq!((driven.handed(key), driven.handed(other)), (vec![1, 2, 3, 4], (1..=8).collect()));
    driven.step(Input::Sent { subscription: key, bytes: 1 });
    driven.work();
    assert_eq!(driven.handed(key), [0; 0], "half of the queue has to be read");
    driven.step(Input::Sent { subscription: key, bytes: 3 });
    driven.work();
    assert_eq!((driven.handed(key), driven.shard.lost_events()), (vec![5, 6, 7, 8], 0));
}

#[test]
fn an_event_that_is_not_for_a_required_subscriber_does_not_wait_for_it() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 5_000));
    for sequence in 1..=3 {
        driven.now += 100;
        driven.publish(stream, sequence).unwrap();
    }
    let mut only_the_second = |_: &u8, event: OfferedEvent| if event.id.sequence.0 == 2 { Wanted::Bytes(1) } else { Wanted::No };
    while driven.shard.next(at(driven.now), &mut only_the_second, &mut driven.outputs).is_some() {}
    assert_eq!((driven.handed(key), driven.covered(), driven.shard.kept()), (vec![2], Some(1), 2));
    driven.delivered(key, stream, 2);
    assert_eq!((driven.covered(), driven.shard.kept()), (Some(3), 0));
}

#[test]
fn what_a_watermark_shows_to_have_arrived_is_not_replicated_although_it_is_still_to_be_dispatched() {
    let mut driven = Driven::new(&[Terms { replicate_within_ns: Some(20), ..roomy() }]);
    driven.join();
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 5_000));
    driven.publish(stream, 1).unwrap();
    driven.step(Input::Detached { subscription: key });
    driven.attach(key, 1);
    driven.now += 20;
    assert_eq!((driven.work().as_str(), driven.handed(key)), ("A1", vec![]));
}

#[test]
fn the_bytes_of_a_work_are_there_until_the_next_is_asked_for() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key, _other) = (driven.stream(0, 1), driven.subscribe(0, 5_000), driven.subscribe(0, 0));
    driven.publish(stream, 1).unwrap();
    driven.shard.subscribe("A", 1, Overflow::Loses).unwrap();
    // The required one does not want it, so that nothing waits behind its dispatch.
    let others_only = &mut |receiver: &u8, _: OfferedEvent| if *receiver == 1 { Wanted::Bytes(1) } else { Wanted::No };
    let Some(Work::Dispatch { slot, .. }) = driven.shard.next(at(driven.now), others_only, &mut driven.outputs) else {
        panic!("there is work")
    };
    assert!(!driven.outputs.contains(&Output::Freed { slot }) && driven.handed(key).is_empty());
    assert_eq!(driven.next(), None);
    assert!(driven.outputs.contains(&Output::Freed { slot }));
}

#[test]
fn who_leaves_holds_nothing_up() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, leaving, staying) = (driven.stream(0, 1), driven.subscribe(0, 5_000), driven.subscribe(0, 5_000));
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.delivered(staying, stream, 1);
    assert_eq!(driven.covered(), None);
    driven.step(Input::Unsubscribe { subscription: leaving });
    assert_eq!((driven.covered(), driven.shard.kept()), (Some(1), 0));
}

#[test]
fn in_a_later_epoch_who_is_required_is_brought_what_was_under_way_in_an_earlier_one() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key, other) = (driven.stream(0, 1), driven.subscribe(0, 5_000), driven.subscribe(0, 0));
    driven.leads(1);
    driven.attach(key, 0);
    driven.publish(stream, 1).unwrap();
    driven.work();
    assert_eq!((driven.handed(key), driven.handed(other)), (vec![1], vec![1]));
    // Another node leads in epoch 2. Who has heard of that does not believe what comes late from epoch 1.
    driven.fenced(1);
    driven.leads(3);
    driven.now += 100;
    driven.publish(stream, 2).unwrap();
    driven.work();
    assert_eq!((driven.handed(key), driven.handed(other)), (vec![1, 2], vec![2]));
    driven.leads(3);
    driven.now += 100;
    driven.publish(stream, 3).unwrap();
    driven.work();
    assert_eq!(driven.handed(key), [3], "a lease that goes on changes nothing");
}

/// A node that leads in epoch 1, and has handed two events to a required subscriber.
fn two_under_way() -> (Driven, StreamId, SubscriptionKey) {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 5_000));
    driven.leads(1);
    driven.attach(key, 0);
    for sequence in 1..=2 {
        driven.publish(stream, sequence).unwrap();
        driven.work();
        driven.now += 100;
    }
    assert_eq!(driven.handed(key), [1, 2]);
    (driven, stream, key)
}

#[test]
fn what_another_node_has_brought_in_its_epoch_does_not_come_again() {
    let (mut driven, stream, key) = two_under_way();
    driven.fenced(1);
    driven.leads(3);
    driven.attach(key, 3);
    for sequence in 3..=4 {
        driven.publish(stream, sequence).unwrap();
        driven.now += 100;
    }
    driven.work();
    assert_eq!((driven.handed(key), driven.covered(), driven.shard.kept()), (vec![4], Some(3), 1));
}

#[test]
fn the_time_in_which_another_node_led_does_not_count_as_waiting() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, away, silent) = (driven.stream(0, 1), driven.subscribe(0, 500), driven.subscribe(0, 500));
    driven.leads(1);
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.handed(away);
    driven.step(Input::Detached { subscription: away });
    driven.fenced(1);
    driven.now += 10_000;
    driven.leads(3);
    driven.work();
    driven.now += 499;
    driven.work();
    assert_eq!(driven.shard.counters().not_required, 0, "they could not say anything here");
    driven.attach(away, 0);
    driven.now += 1;
    driven.work();
    assert_eq!((driven.handed(away), driven.shard.counters().not_required), (vec![1], 1));
    assert!(driven.told().iter().any(|told| matches!(told, Output::NotRequired { subscription, owed: 1.. } if *subscription == silent)));
}

#[test]
fn who_attaches_again_on_its_session_has_the_queue_that_it_had() {
    let (mut driven, stream, key) = two_under_way();
    driven.leads(3);
    driven.attach(key, 0);
    driven.work();
    assert_eq!(driven.handed(key), [1, 2], "the queue of four bytes is full now");
    driven.publish(stream, 3).unwrap();
    driven.work();
    assert_eq!(driven.handed(key), [0; 0]);
    driven.step(Input::Sent { subscription: key, bytes: 4 });
    driven.work();
    assert_eq!(driven.handed(key), [3]);
}

#[test]
fn who_attaches_in_front_of_the_dispatch_is_handed_events_by_their_deadlines() {
    let mut driven = Driven::new(&[roomy()]);
    let (stream, key) = (driven.stream(0, 1), driven.subscribe(0, 5_000));
    driven.step(Input::Detached { subscription: key });
    driven.publish(stream, 1).unwrap();
    driven.attach(key, 0);
    assert_eq!((driven.work().as_str(), driven.handed(key)), ("A1", vec![1]), "once, and not behind everything else");
}

#[test]
fn for_a_graph_events_are_kept_and_its_word_alone_covers_what_nobody_else_hears() {
    for is_heard in [false, true] {
        let mut driven = Driven::new(&[roomy()]);
        driven.join();
        let stream = driven.stream(0, 1);
        let graph = driven.shard.subscribe("A", 0, Overflow::Loses).unwrap();
        driven.shard.keep_for(at(driven.now), graph, Duration::from_secs(1), Attachment::New);
        let _listener = is_heard.then(|| driven.subscribe(0, 0));
        driven.publish(stream, 1).unwrap();
        assert_eq!(driven.work(), "A1");
        driven.delivered(graph, stream, 1);
        assert_eq!(driven.covered(), (!is_heard).then_some(1), "a listener may still lose it with the host");
        driven.now += 60;
        assert_eq!(driven.work(), if is_heard { "(A1)" } else { "" });
        driven.acknowledge_all();
        driven.now += 60;
        driven.work();
        assert_eq!(driven.shard.kept(), 0);
        // What the graph has not acknowledged is kept, at the Backup too.
        driven.publish(stream, 2).unwrap();
        driven.now += 60;
        driven.work();
        driven.acknowledge_all();
        driven.told();
        driven.now += 1_000;
        assert_eq!((driven.work().as_str(), driven.shard.kept(), driven.told()), ("", 1, vec![]));
        driven.delivered(graph, stream, 2);
        assert_eq!((driven.shard.kept(), driven.told().len()), (0, 1), "and then let go");
    }
}

#[test]
fn what_a_required_subscriber_has_and_a_graph_has_not_is_not_covered_by_that() {
    let mut driven = Driven::new(&[roomy()]);
    driven.join();
    let (stream, reader) = (driven.stream(0, 1), driven.subscribe(0, 1_000_000));
    let graph = driven.shard.subscribe("A", 0, Overflow::Loses).unwrap();
    driven.shard.keep_for(at(driven.now), graph, Duration::from_secs(1), Attachment::New);
    driven.publish(stream, 1).unwrap();
    driven.work();
    driven.delivered(reader, stream, 1);
    assert_eq!((driven.covered(), driven.shard.kept()), (None, 1));
    driven.delivered(graph, stream, 1);
    assert_eq!((driven.covered(), driven.shard.kept()), (Some(1), 0));
    driven.publish(stream, 2).unwrap();
    driven.work();
    driven.delivered(graph, stream, 2);
    assert_eq!(driven.covered(), None, "the subscriber's word counts as before");
}

#[test]
fn full_stream_names_its_slowest_required_reader() {
    let mut driven = Driven::new(&[Terms { backlog_max: NonZeroU32::new(2).unwrap(), period_ns: 1, ..TERMS }]);
    let (stream, other) = (driven.stream(0, 1), driven.stream(0, 2));
    let [fast, slow] = [driven.subscribe(0, 10_000), driven.subscribe(0, 10_000)];
    let awaited = |driven: &Driven, publisher| driven.shard.awaited_by(TopicId(0), PublisherId(publisher));
    for sequence in [1, 2] {
        assert_eq!(awaited(&driven, 1), None, "it has capacity");
        driven.now += 100;
        driven.publish(stream, sequence).unwrap();
        driven.work();
    }
    driven.publish(other, 1).unwrap();
    driven.delivered(fast, stream, 1);
    assert_eq!(awaited(&driven, 1), Some(slow));
    assert_eq!([awaited(&driven, 2), awaited(&driven, 3)], [None; 2], "its stream is not full, or not there");
    driven.delivered(slow, stream, 2);
    assert_eq!(awaited(&driven, 1), None, "the first event was released");
}

#[test]
fn changed_wait_counts_from_the_end_of_the_session() {
    for (before, after) in [(10_000, 50), (50, 10_000)] {
        let mut driven = Driven::new(&[TERMS]);
        let key = driven.subscribe(0, before);
        driven.step(Input::Detached { subscription: key });
        driven.shard.change_wait(at(driven.now), key, Duration::from_nanos(after));
        let not_required = |driven: &mut Driven| {
            driven.work();
            driven.told().iter().any(|output| matches!(output, Output::NotRequired { subscription, .. } if *subscription == key))
        };
        driven.now += after - 1;
        assert!(!not_required(&mut driven));
        driven.now += 1;
        assert!(not_required(&mut driven));
    }
}
