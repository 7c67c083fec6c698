//! Two processes of one name that publish: the run that began later does, and the earlier one is told.

use bodkin_client::realtime::RefusalReason;

use crate::{
    real_time_client::{Hears, Sends, required, start, topic, until},
    zmtp::address,
};

#[test]
fn the_later_run_of_a_publisher_is_the_one_that_publishes() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("hot", ""), &[]);
    let (mut earlier, topics) = Sends::to(address(&cloud), "sensor", &["hot"]);
    earlier.publish(topics[0], "1");
    until("it is covered", || {
        earlier.turn();
        earlier.covered == [1]
    });
    let (mut later, _) = Sends::to(address(&cloud), "sensor", &["hot"]);
    later.publish(topics[0], "1");
    until("it is covered", || {
        later.turn();
        later.covered == [1]
    });
    earlier.publish(topics[0], "2");
    until("the earlier one is told", || {
        earlier.turn();
        !earlier.refused.is_empty()
    });
    assert_eq!((earlier.refused[0].0, earlier.refused[0].1), (RefusalReason::OldIncarnation, 2));
}

/// Two processes of one name: the former one's events that are not covered yet would never be, and it would wait for them for ever.
#[test]
fn a_publisher_is_told_that_a_later_run_of_its_name_has_taken_its_place() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("hot", ""), &[]);
    let mut hears = Hears::from(address(&cloud), "display", "hot", required());
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    let (mut former, topics) = Sends::to(address(&cloud), "sensor", &["hot"]);
    (1..=64).for_each(|_| former.publish(topics[0], "former"));
    let (mut later, topics) = Sends::to(address(&cloud), "sensor", &["hot"]);
    until("the former run is in the broker", || {
        former.turn();
        cloud.get("/metrics").text().contains("bodkin_events_published_total 64\n")
    });
    later.publish(topics[0], "later");
    until("the former run is told that it is over", || {
        former.turn();
        later.turn();
        former.refused.len() == 64
    });
    let (reason, last, text) = former.refused.last().expect("they were counted");
    assert_eq!((*reason, *last), (RefusalReason::OldIncarnation, 64), "{text}");
    until("what both published arrives", || {
        later.turn();
        hears.turn();
        later.covered == [1]
    });
    assert_eq!(hears.events.len(), 65);
}
