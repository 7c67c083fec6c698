//! Subscribers whose application acknowledges, at a new leader and without one.

use super::*;

/// A publisher, and a subscriber whose application acknowledges, at two brokers; the first one leads. Gives the publisher's run, too.
fn attached_application(first: &TestBroker, second: &TestBroker) -> (Sends, Hears, Incarnation) {
    let brokers = Brokers::pair("sensor", first.address, second.address);
    let incarnation = brokers.incarnation;
    let mut sends = Sends::to(brokers, Retention::new(8, 64, WhenFull::Block));
    let mut hears = Hears::from(Brokers::pair("display", first.address, second.address), REQUIRED);
    hears.subscriber = hears.subscriber.acknowledged_by_application();
    both(&mut sends, &mut hears, "both are attached", |sends, hears| sends.publisher.leader().is_some() && hears.subscribed >= 2);
    sends.publish(1..=3);
    both(&mut sends, &mut hears, "they arrive", |_, hears| hears.events.len() == 3);
    (sends, hears, incarnation)
}

fn delivered(broker: &TestBroker) -> Vec<u64> {
    broker.said.try_iter().filter_map(|said| if let Said::Delivered(through) = said { Some(through) } else { None }).collect()
}

#[test]
fn duplicate_of_acknowledged_event_is_acknowledged_to_new_leader() {
    let (first, second) = (TestBroker::leading(1), TestBroker::start(ServerSecurity::Null));
    let (mut sends, mut hears, incarnation) = attached_application(&first, &second);
    hears.subscriber.acknowledge(hears.topic, PublisherId(1), incarnation, Sequence(2));
    both(&mut sends, &mut hears, "two are covered", |sends, _| sends.covered == 2);

    // The next leader has not heard of it, and hands out again what the publisher keeps.
    drop(first);
    second.order(Order::Lead(Epoch(2)));
    both(&mut sends, &mut hears, "everything comes again", |_, hears| hears.counters().duplicates == 3);
    let mut through = Vec::new();
    until("the first two are acknowledged again", || {
        sends.turn();
        hears.turn();
        through.extend(delivered(&second));
        through.contains(&2)
    });
    assert_eq!(through.iter().max(), Some(&2), "the application still has the third one in hand");
    hears.subscriber.acknowledge(hears.topic, PublisherId(1), incarnation, Sequence(3));
    both(&mut sends, &mut hears, "everything is covered", |sends, _| sends.covered == 3);
    assert_eq!(hears.events, [1, 2, 3]);
}

#[test]
fn acknowledgement_without_leader_is_sent_to_the_next() {
    let (first, second) = (TestBroker::leading(1), TestBroker::start(ServerSecurity::Null));
    let (mut sends, mut hears, incarnation) = attached_application(&first, &second);
    let leads = |is_leader| first.order(Order::Say(vec![bytes(&ClientFrame::Leader { epoch: Epoch(1), is_leader })]));
    leads(false);
    both(&mut sends, &mut hears, "nobody leads", |_, hears| hears.subscriber.leader().is_none());
    hears.subscriber.acknowledge(hears.topic, PublisherId(1), incarnation, Sequence(3));
    hears.turn();
    assert_eq!(delivered(&first), [] as [u64; 0]);
    leads(true);
    both(&mut sends, &mut hears, "everything is covered", |sends, _| sends.covered == 3);
    assert_eq!((&hears.events[..], hears.counters().duplicates), (&[1, 2, 3][..], 0), "nothing came again");
}
