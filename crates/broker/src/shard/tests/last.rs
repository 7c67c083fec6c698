//! The last event of a stream, where it was dropped.

use super::*;

const SILENCE: u64 = LAST_AFTER_MIN.as_nanos() as u64;
/// Longer than any test.
const WAIT: u64 = 1 << 40;

/// A topic of which one late event in a row is dropped, a required subscription and another one, and a stream whose first event both have.
fn dropping() -> (Driven, StreamId, SubscriptionKey, SubscriptionKey) {
    let mut driven = Driven::new(&[Terms { shed_max: Some(1), ..roomy() }]);
    driven.leads(1);
    let (required, other, stream) = (driven.subscribe(0, WAIT), driven.subscribe(0, 0), driven.stream(0, 1));
    driven.publish(stream, 1).unwrap();
    assert_eq!(driven.work(), "A1");
    driven.delivered(required, stream, 1);
    driven.outputs.clear();
    (driven, stream, required, other)
}

impl Driven {
    /// Publishes an event that is late when its turn comes, and is dropped.
    fn publish_late(&mut self, stream: StreamId, sequence: u64) {
        self.now += 200;
        self.publish(stream, sequence).unwrap();
        self.now += 1_000;
        assert_eq!(self.work(), "", "it is late");
    }

    /// Takes out what a subscription was told to be the last event.
    fn lasts(&mut self, key: SubscriptionKey) -> Vec<u64> {
        let mut lasts = Vec::new();
        self.outputs.retain(|output| match output {
            Output::TellLast { subscription, event } if *subscription == key => {
                lasts.push(event.sequence.0);
                false
            }
            _ => true,
        });
        lasts
    }
}

#[test]
fn what_was_dropped_at_the_end_of_a_stream_is_told_behind_a_silence_and_once() {
    let (mut driven, stream, required, other) = dropping();
    driven.publish_late(stream, 2);
    driven.now += SILENCE - 1;
    driven.work();
    assert_eq!([driven.lasts(required), driven.lasts(other)], [[0; 0]; 2], "the next one may still show it");
    assert!(driven.shard.next_timer() <= Some(at(driven.now + 1)));
    driven.now += 1;
    driven.work();
    assert_eq!([driven.lasts(required), driven.lasts(other)], [[2], [2]]);
    driven.now += 10 * SILENCE;
    driven.work();
    assert_eq!([driven.lasts(required), driven.lasts(other)], [[0; 0]; 2]);
}

#[test]
fn silence_before_last_is_period_within_limits() {
    let silence = |period: Duration| Terms { period_ns: period.as_nanos() as u64, ..roomy() }.last_after();
    let ms = Duration::from_millis;
    assert_eq!([ms(1), ms(20), ms(10_000)].map(silence), [LAST_AFTER_MIN, ms(20), LAST_AFTER_MAX]);
    assert_eq!((LAST_AFTER_MIN, LAST_AFTER_MAX), (ms(5), ms(1_000)));
}

#[test]
fn what_the_next_event_shows_is_not_told() {
    let (mut driven, stream, required, other) = dropping();
    driven.publish_late(stream, 2);
    driven.publish(stream, 3).unwrap();
    assert_eq!(driven.work(), "A3");
    driven.now += 10 * SILENCE;
    driven.work();
    assert_eq!([driven.lasts(required), driven.lasts(other)], [[0; 0]; 2]);
}

#[test]
fn who_was_away_is_told_behind_what_it_is_brought_and_whenever_it_comes_again() {
    let (mut driven, stream, required, other) = dropping();
    driven.step(Input::Detached { subscription: required });
    driven.now += 200;
    driven.publish(stream, 2).unwrap();
    assert_eq!(driven.work(), "A2");
    driven.publish_late(stream, 3);
    driven.now += SILENCE;
    driven.work();
    assert_eq!((driven.lasts(required), driven.lasts(other)), (vec![], vec![3]), "nobody is there who could hear it");
    driven.attach(required, 1);
    assert_eq!(driven.lasts(required), [0; 0], "2 is still to be brought");
    assert_eq!(driven.work(), "A2!");
    let place = |wanted: &dyn Fn(&Output) -> bool| driven.outputs.iter().position(wanted);
    let brought = place(&|output| matches!(output, Output::Deliver { subscription, .. } if *subscription == required));
    let told = place(&|output| matches!(output, Output::TellLast { .. }));
    assert!(brought.is_some() && brought < told, "{brought:?} {told:?}");
    assert_eq!((driven.lasts(required), driven.lasts(other)), (vec![3], vec![]));
    driven.step(Input::Detached { subscription: required });
    driven.attach(required, 2);
    driven.work();
    assert_eq!((driven.lasts(required), driven.lasts(other)), (vec![3], vec![]), "the first word may have gone with its session");
}

#[test]
fn the_end_of_a_stream_is_told_at_once_and_a_new_epoch_tells_it_again() {
    let (mut driven, stream, required, other) = dropping();
    driven.publish_late(stream, 2);
    driven.now += SILENCE;
    driven.work();
    assert_eq!([driven.lasts(required), driven.lasts(other)], [[2], [2]]);
    driven.leads(2);
    driven.work();
    assert_eq!([driven.lasts(required), driven.lasts(other)], [[2], [2]], "who has heard of another leader did not believe the first word");
    driven.publish(stream, 3).unwrap();
    assert_eq!(driven.work(), "A3");
    driven.delivered(required, stream, 3);
    driven.publish_late(stream, 4);
    driven.outputs.clear();
    driven.shard.end_stream(stream);
    let told = driven.told();
    let last = |key: SubscriptionKey| Output::TellLast { subscription: key, event: EventId { sequence: Sequence(4), ..event_of(&told) } };
    let closed = Output::Closed { stream, number: None };
    assert!(told.ends_with(&[last(required), last(other), closed]), "{told:?}");
}

/// The event of the first word about a last one.
fn event_of(told: &[Output]) -> EventId {
    told.iter().find_map(|output| if let Output::TellLast { event, .. } = output { Some(*event) } else { None }).expect("there is one")
}
