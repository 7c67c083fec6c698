#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "how long a search takes is what is promised of it")]

use std::time::{Duration, Instant};

use super::*;

/// A search beyond the bound ends within this, in a debug build on a busy machine too: all twelve together take less.
const SEARCH_MAX: Duration = Duration::from_secs(10);

/// Loss bounds without any slack: one unit more of anything is one too many. In the first one every term counts; in the second one clocks are
/// exact, so that nothing makes up for an event that comes late.
const TIGHT: [Bound; 2] = [
    Bound {
        period: 5,
        jitter: 1,
        tolerance: 1,
        retention: 2,
        mark_every: 1,
        failover: 8,
        broker_backup: 2,
        clock_error: 1,
        publisher_broker_min: 1,
        publisher_broker: 3,
        broker_subscriber: 0,
        deadline: None,
    },
    Bound {
        period: 4,
        jitter: 1,
        tolerance: 1,
        retention: 1,
        mark_every: 1,
        failover: 4,
        broker_backup: 1,
        clock_error: 0,
        publisher_broker_min: 1,
        publisher_broker: 2,
        broker_subscriber: 0,
        deadline: None,
    },
];

/// Deadlines without any slack.
const PROMPT: [Bound; 2] = [
    Bound { clock_error: 1, broker_subscriber: 2, deadline: Some(6), ..TIGHT[0] },
    Bound { clock_error: 0, broker_subscriber: 2, deadline: Some(4), ..TIGHT[1] },
];

fn check_holds(bound: &Bound) -> u64 {
    assert!(bound.is_admitted(), "{bound:?}");
    match bound.search(&Nature::within(bound)) {
        Found::Nothing(tried) => tried,
        Found::Breach(script, breach) => panic!("{bound:?} is broken by {script:?}: {breach:?}"),
    }
}

/// One unit beyond the bound in one term a breach is found, in one of `bounds` at least and within [`SEARCH_MAX`], and within the bound there is none.
fn check_counts(bounds: &[Bound], term: Term) {
    bounds.iter().for_each(|bound| {
        check_holds(bound);
    });
    let is_found = |bound: &Bound| matches!(bound.search(&Nature::beyond(bound, term)), Found::Breach(..));
    let begun = Instant::now();
    assert!(bounds.iter().any(is_found), "{term:?} may be exceeded by a unit, and nothing breaks");
    let took = begun.elapsed();
    assert!(took < SEARCH_MAX, "{term:?}: the breach was found after {took:?}, {SEARCH_MAX:?} are allowed");
}

macro_rules! each_term_counts {
    ($($name:ident: $bounds:ident, $term:ident;)*) => {$(
        #[test]
        fn $name() {
            check_counts(&$bounds, Term::$term);
        }
    )*};
}

each_term_counts! {
    losses_break_without_the_retention: TIGHT, Retention;
    losses_break_without_the_tolerance: TIGHT, Tolerance;
    losses_break_without_the_period: TIGHT, Period;
    losses_break_without_the_marks: TIGHT, MarkEvery;
    losses_break_without_the_jitter: TIGHT, Jitter;
    losses_break_without_the_fail_over_time: TIGHT, Failover;
    losses_break_without_the_way_to_the_backup: TIGHT, BrokerBackup;
    losses_break_without_the_clock_error: TIGHT, ClockError;
    losses_break_without_the_way_to_the_primary: TIGHT, PublisherBroker;
    deadlines_break_without_the_way_to_the_subscriber: PROMPT, BrokerSubscriber;
    deadlines_break_without_the_clock_error: PROMPT, ClockError;
    deadlines_break_without_the_way_to_the_primary: PROMPT, PublisherBroker;
}

fn bounds(failovers: [u32; 3]) -> impl Iterator<Item = Bound> {
    let marks = (0..=2).flat_map(|tolerance| (1..=tolerance + 1).map(move |mark_every| (tolerance, mark_every)));
    let kept = marks.flat_map(|(tolerance, mark_every)| (1..=2).map(move |retention| (tolerance, mark_every, retention)));
    let ways = kept.flat_map(move |(tolerance, mark_every, retention)| {
        failovers.into_iter().flat_map(move |failover| {
            (0..=1).map(move |unit| Bound {
                period: 4,
                jitter: unit,
                tolerance,
                retention,
                mark_every,
                failover,
                broker_backup: unit,
                clock_error: unit,
                publisher_broker_min: 0,
                publisher_broker: 1,
                broker_subscriber: 0,
                deadline: None,
            })
        })
    });
    ways.filter(Bound::is_admitted)
}

#[test]
fn no_bound_that_is_admitted_is_broken() {
    let tried: Vec<u64> = bounds([1, 4, 9]).map(|bound| check_holds(&bound)).collect();
    assert!(tried.len() > 20, "{} bounds were admitted", tried.len());
}
