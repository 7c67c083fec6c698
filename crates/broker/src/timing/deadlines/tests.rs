//! The worked examples of the papers' tables, and the papers' errors. The same tables are files in `vectors/timing`.

use std::num::NonZeroU32;

use super::*;
use crate::topic::LossTolerance::{Any, AtMost};

const INF: i64 = i64::MAX;

fn ms(millis: i64) -> Nanos {
    Nanos::from_millis(millis)
}

fn us(span: Span) -> Option<i64> {
    span.finite().map(Nanos::micros)
}

fn platform(failover_ms: i64) -> Platform {
    Platform { failover: Some(ms(failover_ms)), broker_backup: Nanos::from_micros(50), ..Platform::default() }
}

/// T and D in milliseconds.
fn topic(period_ms: i64, deadline_ms: i64, loss_tolerance: LossTolerance, retention: u32) -> TopicSpec {
    let deadline = if deadline_ms == INF { Span::Infinite } else { ms(deadline_ms).into() };
    TopicSpec { deadline, loss_tolerance, retention, ..TopicSpec::best_effort(Period::Every(ms(period_ms))) }
}

fn marked(topic: TopicSpec, mark_every: u32) -> TopicSpec {
    TopicSpec { mark_every: NonZeroU32::new(mark_every).expect("marks are at least one apart"), ..topic }
}

#[test]
fn the_categories_of_frame() {
    // T, D, L, N, BS; Dd, Dr in us; the paper replicates; slack of (D) in ms; smallest N.
    let categories = [
        (topic(50, 50, AtMost(0), 2), 1, Some(49_000), Some(49_950), false, Some(0), Some(2)),
        (topic(50, 50, AtMost(3), 0), 1, Some(49_000), Some(99_950), false, Some(50), Some(0)),
        (topic(100, 100, AtMost(0), 1), 1, Some(99_000), Some(49_950), true, Some(-50), Some(1)),
        (topic(100, 100, AtMost(3), 0), 1, Some(99_000), Some(249_950), false, Some(150), Some(0)),
        (topic(100, 100, Any, 0), 1, Some(99_000), None, false, None, Some(0)),
        (topic(500, 500, AtMost(0), 1), 20, Some(480_000), Some(449_950), true, Some(-50), Some(1)),
        (topic(100, 100, AtMost(0), 2), 1, Some(99_000), Some(149_950), false, Some(50), Some(1)),
        (topic(500, 500, AtMost(0), 2), 20, Some(480_000), Some(949_950), false, Some(450), Some(1)),
    ];
    for (topic, latency, dispatch, replicate, paper, slack_ms, retention_min) in categories {
        let topic = TopicSpec { broker_subscriber_min: ms(latency), broker_subscriber_max: ms(latency), ..topic };
        let found = Deadlines::of(&topic, &platform(50));
        assert_eq!((us(found.dispatch), us(found.replicate)), (dispatch, replicate), "{topic:?}");
        assert_eq!(found.paper_replicates, paper, "{topic:?}");
        assert_eq!(found.cancel_slack, Some(slack_ms.map_or(Span::Infinite, |slack| ms(slack).into())), "{topic:?}");
        assert_eq!(found.replication_predicted_cancelled(), slack_ms.is_none_or(|slack| slack >= 0), "{topic:?}");
        assert_eq!(found.retention_min, retention_min, "{topic:?}");
        assert!(found.dispatch_feasible() && found.replicate_feasible(), "{topic:?}");
    }
}

#[test]
fn one_event_less_kept_is_fifty_microseconds_too_few() {
    let found = Deadlines::of(&topic(50, 50, AtMost(0), 1), &platform(50));
    assert_eq!((us(found.replicate), found.replicate_feasible(), found.retention_min), (Some(-50), false, Some(2)));
}

#[test]
fn the_categories_of_arrec() {
    // T, D, L, N; Dr in us for M = 1 and x = 50, 20; for M = max(L, 1) likewise; for M = L + 1 and x = 20.
    let categories = [
        (topic(50, INF, AtMost(0), 1), [-50, 29_950, -50, 29_950, 29_950]),
        (topic(100, 100, AtMost(0), 1), [49_950, 79_950, 49_950, 79_950, 79_950]),
        (topic(500, 500, AtMost(0), 1), [449_950, 479_950, 449_950, 479_950, 479_950]),
        (topic(50, 50, AtMost(3), 0), [99_950, 129_950, -50, 29_950, -20_050]),
        (topic(100, 100, AtMost(3), 0), [249_950, 279_950, 49_950, 79_950, -20_050]),
    ];
    for (topic, expected) in categories {
        let AtMost(losses) = topic.loss_tolerance else { panic!("the table has no best effort") };
        let cases = [(1, 50), (1, 20), (losses.max(1), 50), (losses.max(1), 20), (losses + 1, 20)];
        for ((mark_every, failover_ms), expected) in cases.into_iter().zip(expected) {
            let found = Deadlines::of(&marked(topic, mark_every), &platform(failover_ms));
            assert_eq!(us(found.replicate), Some(expected), "{topic:?}, M = {mark_every}, x = {failover_ms} ms");
            assert_eq!(found.replicate_feasible(), expected >= 0);
        }
    }
}

/// Lemma 5 of ARREC has `M = max(L, 1) + 1`, which is 2 for L = 0: every second event would never be replicated.
#[test]
fn marks_are_never_further_apart_than_the_tolerance_allows() {
    let lemma_5 = marked(topic(4, 4, AtMost(0), 3), 2);
    let found = Deadlines::of(&lemma_5, &platform(1));
    assert_eq!((found.replicate_feasible(), found.retention_min), (false, None));
    assert_eq!(found.mark_every_max, Some(1));
    let found = Deadlines::of(&marked(topic(50, 50, AtMost(3), 0), 1), &platform(20));
    assert_eq!(found.mark_every_max, Some(3));
    assert_eq!(Deadlines::of(&topic(50, 50, Any, 0), &platform(20)).mark_every_max, None);
}

/// `L_shed + L_crash <= L`: what is dropped as late may come together with what a crash takes.
#[test]
fn what_may_be_dropped_as_late_is_not_left_for_a_crash() {
    let sheds = |losses, shed_max| TopicSpec { shed_max, ..topic(50, 50, AtMost(losses), 1) };
    let found = |losses, shed_max| {
        let Deadlines { replicate, retention_min, mark_every_max, .. } = Deadlines::of(&sheds(losses, shed_max), &platform(20));
        (replicate, retention_min, mark_every_max)
    };
    for (losses, shed_max) in [(3, 1), (4, 2), (9, 7)] {
        assert_eq!(found(losses, shed_max), found(2, 0), "{losses} {shed_max}");
    }
    assert_eq!(found(3, 3), found(0, 0));
    assert_eq!(sheds(3, 1).crash_tolerance(), AtMost(2));
    assert_eq!(TopicSpec { shed_max: 5, ..topic(50, 50, Any, 1) }.crash_tolerance(), Any);
}

/// Lemma 3, and what it leaves out: N + L >= 1 is not enough.
#[test]
fn without_retention_and_tolerance_nothing_can_be_kept() {
    let found = Deadlines::of(&topic(50, 50, AtMost(0), 0), &platform(1));
    assert_eq!((found.replicate_feasible(), found.retention_min), (false, Some(1)));
    assert_eq!(Deadlines::of(&topic(50, 50, AtMost(0), 1), &platform(200)).retention_min, Some(5));
}

#[test]
fn costs_and_stalls_count() {
    let exact = TopicSpec { dispatch_cost: ms(3), replica_cost: ms(4), ..topic(50, 5, AtMost(0), 1) };
    let platform = Platform { failover: Some(ms(42)), batch_cost: ms(2), blocking: ms(2), ..Platform::default() };
    let found = Deadlines::of(&exact, &platform);
    assert_eq!((found.dispatch, found.dispatch_need), (ms(5).into(), ms(5)));
    assert_eq!((found.replicate, found.replicate_need), (ms(8).into(), ms(8)));
    assert!(found.dispatch_feasible() && found.replicate_feasible());
    let one_more = Nanos::new(1);
    let slower = Platform { blocking: platform.blocking + one_more, ..platform };
    let found = Deadlines::of(&exact, &slower);
    assert!(!found.dispatch_feasible() && !found.replicate_feasible());
    assert_eq!(found.retention_min, Some(2));
}

#[test]
fn every_bound_is_subtracted_where_it_belongs() {
    let topic = TopicSpec {
        publisher_broker: Nanos::new(1),
        broker_subscriber_max: Nanos::new(20),
        jitter: Nanos::new(300),
        ..topic(1, 1, AtMost(1), 1)
    };
    let platform = Platform {
        failover: Some(Nanos::new(4_000)),
        broker_backup: Nanos::new(50_000),
        clock_error: Nanos::new(7),
        ..Platform::default()
    };
    let found = Deadlines::of(&topic, &platform);
    assert_eq!(found.dispatch_from_creation, ms(1).less_nanos(27));
    assert_eq!(found.dispatch, ms(1).less_nanos(28));
    assert_eq!(found.replicate_from_creation, ms(2).less_nanos(54_307));
    assert_eq!(found.replicate, ms(2).less_nanos(54_308));
    assert_eq!(found.cancel_slack, Some(ms(1).less_nanos(4_307)));
}

impl Nanos {
    fn less_nanos(self, nanos: i64) -> Span {
        (self - Nanos::new(nanos)).into()
    }
}

/// With an infinite T the paper never replicates; what is policed is the gap, and the bound counts on no more.
#[test]
fn rare_events_are_bounded_by_their_policed_gap() {
    let rare = TopicSpec { period: Period::Rare { gap_min: ms(30) }, ..topic(1, 50, AtMost(0), 1) };
    let found = Deadlines::of(&rare, &platform(50));
    assert_eq!((us(found.replicate), found.retention_min, found.paper_replicates), (Some(-20_050), Some(2), false));
    let unkept = TopicSpec { retention: 0, ..rare };
    assert!(Deadlines::of(&unkept, &platform(50)).paper_replicates);
}

#[test]
fn the_backup_holds_what_may_be_created_until_the_discard() {
    let topic = TopicSpec { broker_subscriber_max: ms(1), ..topic(50, 50, AtMost(3), 0) };
    let entries = |topic, platform| Deadlines::of(&topic, &platform).backup_entries;
    // 50 + 1 + 0.05 ms in periods of 50 ms; of 150 ms where every third is marked.
    assert_eq!(entries(topic, platform(20)), Some(2));
    assert_eq!(entries(marked(topic, 3), platform(20)), Some(1));
    assert_eq!(entries(topic, Platform { batch_window: ms(49), ..platform(20) }), Some(3));
    assert_eq!(entries(TopicSpec { jitter: ms(49), ..topic }, platform(20)), Some(3));
    assert_eq!(entries(TopicSpec { deadline: Span::Infinite, ..topic }, platform(20)), None);
    assert_eq!(entries(TopicSpec { deadline: Span::Infinite, loss_tolerance: Any, ..topic }, platform(20)), Some(0));
}

#[test]
fn the_largest_numbers_end_where_the_numbers_end() {
    let endless = TopicSpec { retention: u32::MAX, ..topic(1, 1, AtMost(u32::MAX), 0) };
    let endless = TopicSpec { period: Period::Every(crate::topic::TIME_MAX), ..endless };
    let found = Deadlines::of(&endless, &platform(1));
    assert!(found.replicate_feasible() && found.retention_min == Some(0), "{found:?}");
    let tiny = TopicSpec { period: Period::Every(Nanos::new(1)), ..topic(1, 1, AtMost(0), 0) };
    assert_eq!(Deadlines::of(&tiny, &platform(60_000)).retention_min, None, "more than can be stated");
}
