//! Best-effort topics.

use std::time::Duration;

use proptest::prelude::*;

use crate::{Wanted, shard::*};

const LIMITS: ShardLimits = ShardLimits { subscriptions_max: 3, topics_max: 3, queue_bytes_max: 4 };

fn shard() -> Shard<u8> {
    Shard::new(Incarnation(7), LIMITS)
}

fn publish(shard: &mut Shard<u8>, topic: &str, publisher: u64, size: u64) -> Vec<Output> {
    let mut outputs = Vec::new();
    shard
        .publish(Instant::default(), shard.permit().unwrap(), topic, PublisherId(publisher), &mut |_, _| Wanted::Bytes(size), &mut outputs)
        .unwrap();
    outputs
}

fn sent(shard: &mut Shard<u8>, subscription: SubscriptionKey, bytes: u64) -> Vec<Output> {
    let mut outputs = Vec::new();
    shard.step(Instant::from_nanos(9), Input::Sent { subscription, bytes }, &mut outputs);
    outputs
}

#[test]
fn every_subscription_of_the_topic_hears_the_event_once() {
    let mut shard = shard();
    let keys = [
        shard.subscribe("A", 1, Overflow::Loses).unwrap(),
        shard.subscribe("B", 2, Overflow::Loses).unwrap(),
        shard.subscribe("A", 3, Overflow::Loses).unwrap(),
    ];
    let heard: Vec<_> = publish(&mut shard, "A", 5, 1)
        .into_iter()
        .map(|output| matches!(output, Output::Deliver { subscription, .. } if subscription == keys[0] || subscription == keys[2]))
        .collect();
    assert_eq!(heard, [true, true]);
    assert!(publish(&mut shard, "C", 5, 1).is_empty());
    assert_eq!(shard.subscribe("A", 4, Overflow::Loses), Err(ShardError::Subscriptions(3)));
}

#[test]
fn an_event_with_a_name_of_its_own_keeps_it_and_what_will_not_come_is_told() {
    let mut shard = shard();
    let key = shard.subscribe("A", 1, Overflow::Loses).unwrap();
    let topic = shard.topic("A").unwrap();
    let event = EventId { publisher: PublisherId(1 << 56 | 5), incarnation: Incarnation(3), topic, sequence: Sequence(41) };
    let mut outputs = Vec::new();
    shard.tell_lost(topic, 2, &mut outputs);
    let published = shard.publish_named(
        Instant::default(),
        shard.permit().unwrap(),
        event,
        &mut |_, offered| {
            assert_eq!(offered.id, event);
            Wanted::Bytes(1)
        },
        &mut outputs,
    );
    assert_eq!(published, Ok(()));
    assert_eq!(
        outputs,
        [Output::TellLoss { subscription: key, events: 2, during: Duration::ZERO }, Output::Deliver { subscription: key, event },]
    );
    assert_eq!(shard.topics().next().unwrap().published, 1);
    assert_eq!(
        publish(&mut shard, "A", 5, 1),
        [Output::Deliver {
            subscription: key,
            event: EventId { publisher: PublisherId(5), incarnation: Incarnation(7), topic, sequence: Sequence(1) }
        }]
    );
}

#[test]
fn an_event_that_is_not_for_a_receiver_is_no_loss() {
    let mut shard = shard();
    shard.subscribe("A", 1, Overflow::Loses).unwrap();
    let mut outputs = Vec::new();
    shard.publish(Instant::default(), shard.permit().unwrap(), "A", PublisherId(1), &mut |_, _| Wanted::No, &mut outputs).unwrap();
    assert_eq!(outputs, []);
}

#[test]
fn an_overflowing_subscriber_is_told_its_loss_behind_what_was_queued() {
    let mut shard = shard();
    let key = shard.subscribe("A", 1, Overflow::Loses).unwrap();
    assert_eq!(publish(&mut shard, "A", 1, 3).len(), 1);
    assert_eq!(publish(&mut shard, "A", 1, 2).len(), 0);
    assert_eq!(publish(&mut shard, "A", 1, 1).len(), 0, "the loss keeps its place in the order");
    assert_eq!(sent(&mut shard, key, 0), []);
    assert_eq!(sent(&mut shard, key, 1), [Output::TellLoss { subscription: key, events: 2, during: Duration::from_nanos(9) }]);
    assert_eq!(publish(&mut shard, "A", 1, 2).len(), 1);
}

#[test]
fn who_falls_behind_is_offered_nothing_and_loses_nothing_until_it_has_caught_up() {
    let mut shard = shard();
    let key = shard.subscribe("A", 1, Overflow::FallsBehind).unwrap();
    assert_eq!(publish(&mut shard, "A", 1, 3).len(), 1);
    assert_eq!(publish(&mut shard, "A", 1, 2), [Output::FellBehind { subscription: key }]);
    let unasked = &mut |_: &u8, _| panic!("who is behind is not asked");
    shard.publish(Instant::default(), shard.permit().unwrap(), "A", PublisherId(1), unasked, &mut Vec::new()).unwrap();
    let mut step = |input| {
        let mut outputs = Vec::new();
        shard.step(Instant::default(), input, &mut outputs);
        outputs
    };
    assert_eq!(step(Input::Sent { subscription: key, bytes: 3 }), []);
    assert_eq!(step(Input::FallBehind { subscription: key }), [], "it is told once");
    assert_eq!(step(Input::CatchUp { subscription: key, bytes: 2 }), []);
    assert_eq!(step(Input::FallBehind { subscription: key }), [Output::FellBehind { subscription: key }]);
    assert_eq!(step(Input::CatchUp { subscription: key, bytes: 0 }), []);
    assert_eq!(publish(&mut shard, "A", 1, 2).len(), 1);
    assert_eq!(publish(&mut shard, "A", 1, 1), [Output::FellBehind { subscription: key }]);
    assert_eq!(shard.lost_events(), 0);
}

#[test]
fn an_event_larger_than_the_queue_passes_an_empty_one() {
    let mut shard = shard();
    let key = shard.subscribe("A", 1, Overflow::Loses).unwrap();
    assert_eq!(publish(&mut shard, "A", 1, 100).len(), 1);
    assert_eq!(sent(&mut shard, key, 100), []);
}

#[test]
fn a_removed_subscription_leaves_nothing_behind() {
    let mut shard = shard();
    let old = shard.subscribe("A", 1, Overflow::Loses).unwrap();
    shard.step(Instant::default(), Input::Unsubscribe { subscription: old }, &mut Vec::new());
    let new = shard.subscribe("A", 2, Overflow::Loses).unwrap();
    assert_eq!((shard.receiver(old), shard.receiver(new)), (None, Some(&2)));
    assert_eq!(sent(&mut shard, old, 1), []);
    shard.step(Instant::default(), Input::Unsubscribe { subscription: old }, &mut Vec::new());
    assert_eq!(shard.subscription_count(), 1);
}

#[test]
fn events_are_numbered_whether_anybody_listens_or_not() {
    let mut shard = shard();
    let mut numbers = |topic: &str, publisher| {
        let permit = shard.permit().unwrap();
        shard
            .publish(Instant::default(), permit, topic, PublisherId(publisher), &mut |_, _| Wanted::No, &mut Vec::new())
            .map(|id| (id.topic.0, id.sequence.0))
    };
    assert_eq!([numbers("A", 1), numbers("A", 1), numbers("A", 2), numbers("B", 1)], [Ok((0, 1)), Ok((0, 2)), Ok((0, 1)), Ok((1, 1))]);
    assert_eq!([numbers("C", 1), numbers("D", 1)], [Ok((2, 1)), Ok((0, 3))], "D has the number of A, and continues");
    for publisher in 3..47 {
        assert!(numbers("D", publisher).is_ok(), "{publisher}");
    }
    assert!(numbers("D", 47).is_ok());
    assert_eq!(numbers("D", 48), Err(ShardError::Streams(48)), "A's two are released");
    assert_eq!(shard.topics().map(|topic| (topic.name, topic.published)).collect::<Vec<_>>(), [("B", 1), ("C", 1), ("D", 48)]);
}

#[test]
fn the_others_hear_on_when_subscriptions_end_in_any_order() {
    let mut shard = Shard::new(Incarnation(7), ShardLimits { subscriptions_max: 100, ..LIMITS });
    let mut keys: Vec<_> = (0..20).map(|receiver| shard.subscribe("A", receiver, Overflow::Loses).unwrap()).collect();
    while !keys.is_empty() {
        let ended = keys.swap_remove(keys.len() * 7 % 11 % keys.len());
        shard.step(Instant::default(), Input::Unsubscribe { subscription: ended }, &mut Vec::new());
        assert_eq!(publish(&mut shard, "A", 1, 0).len(), keys.len());
    }
}

proptest! {
    /// What a subscriber hears of one publisher is ascending, and every gap is told with its exact size.
    #[test]
    fn gaps_are_told_exactly(script in prop::collection::vec((0u64..3, 0u64..3), 1..200)) {
        let mut shard = shard();
        let key = shard.subscribe("A", 1, Overflow::Loses).unwrap();
        let (mut queued, mut last, mut told, mut published) = (0u64, 0u64, 0u64, 0u64);
        for (size, drained) in script {
            let mut outputs = publish(&mut shard, "A", 1, size);
            published += 1;
            queued += outputs.len() as u64 * size;
            let bytes = drained.min(queued);
            queued -= bytes;
            outputs.extend(sent(&mut shard, key, bytes));
            for output in outputs {
                match output {
                    Output::Deliver { event, .. } => {
                        prop_assert_eq!(event.sequence.0, last + told + 1);
                        (last, told) = (event.sequence.0, 0);
                    }
                    Output::TellLoss { events, .. } => told += events,
                    other => prop_assert!(false, "{other:?} on a topic that loses"),
                }
            }
        }
        let rest = sent(&mut shard, key, queued);
        let untold: u64 = rest.iter().map(|output| if let Output::TellLoss { events, .. } = output { *events } else { 0 }).sum();
        prop_assert_eq!(published, last + told + untold);
        prop_assert!(shard.lost_events() >= told + untold && shard.lost_events() <= published);
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Publish { topic: usize, publisher: u64 },
    Subscribe(usize),
    Unsubscribe(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..8usize, 1..3u64).prop_map(|(topic, publisher)| Step::Publish { topic, publisher }),
        1 => (0..8usize).prop_map(Step::Subscribe),
        1 => (0..3usize).prop_map(Step::Unsubscribe),
    ]
}

proptest! {
    /// There are more names than topics. A topic is refused only if each one has a subscription, and no event has another one's name,
    /// publisher and number.
    #[test]
    fn unused_topics_are_released_and_events_stay_distinct(steps in prop::collection::vec(step(), 1..200)) {
        const NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];
        let mut shard = shard();
        let (mut events, mut subscribed) = (std::collections::BTreeSet::new(), Vec::new());
        for step in steps {
            match step {
                Step::Publish { topic, publisher } => {
                    let mut heard = Vec::new();
                    let mut offer = |receiver: &u8, _| {
                        heard.push(*receiver);
                        Wanted::Bytes(1)
                    };
                    let permit = shard.permit().unwrap();
                    let published = shard.publish(Instant::default(), permit, NAMES[topic], PublisherId(publisher), &mut offer, &mut Vec::new());
                    let in_use: std::collections::BTreeSet<usize> = subscribed.iter().map(|(topic, _)| *topic).collect();
                    let is_refused = in_use.len() == LIMITS.topics_max && !in_use.contains(&topic);
                    prop_assert_eq!(published.is_err(), is_refused);
                    prop_assert!(heard.iter().all(|receiver| usize::from(*receiver) == topic), "a subscription hears its topic only");
                    if let Ok(event) = published {
                        prop_assert!(events.insert((topic, publisher, event.sequence)), "{event:?} was there before");
                        prop_assert_eq!(shard.topic_name(event.topic).as_ref(), NAMES[topic]);
                    }
                }
                Step::Subscribe(topic) => {
                    if let Ok(key) = shard.subscribe(NAMES[topic], topic as u8, Overflow::Loses) {
                        subscribed.push((topic, key));
                    }
                }
                Step::Unsubscribe(at) if at < subscribed.len() => {
                    let (_, subscription) = subscribed.swap_remove(at);
                    shard.step(Instant::default(), Input::Unsubscribe { subscription }, &mut Vec::new());
                }
                Step::Unsubscribe(_) => {}
            }
        }
    }
}

#[test]
fn pinned_topic_is_not_released() {
    let mut shard = shard();
    let pinned = shard.topic("A").unwrap();
    for name in ["B", "C", "D", "E", "F"] {
        publish(&mut shard, name, 1, 1);
    }
    assert_eq!((shard.topic("A"), shard.topic_id("F").is_some(), shard.topic_id("B")), (Ok(pinned), true, None));
}
