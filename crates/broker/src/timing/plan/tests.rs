//! Files of topics; and that the smallest change is the smallest.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::{
    timing::Key,
    topic::{LossTolerance, Period},
};

fn ms(millis: i64) -> Nanos {
    Nanos::from_millis(millis)
}

fn us(micros: i64) -> Nanos {
    Nanos::from_micros(micros)
}

/// The loads of FRAME: T, D, L, N in its six categories, so many topics of each, and costs.
fn frame(topics: [u32; 6]) -> Vec<(TopicSpec, u32)> {
    let categories = [
        (50, LossTolerance::AtMost(0), 2, 1),
        (50, LossTolerance::AtMost(3), 0, 1),
        (100, LossTolerance::AtMost(0), 1, 1),
        (100, LossTolerance::AtMost(3), 0, 1),
        (100, LossTolerance::Any, 0, 1),
        (500, LossTolerance::AtMost(0), 1, 20),
    ];
    let spec = |(period_ms, loss_tolerance, retention, latency_ms): (i64, LossTolerance, u32, i64)| TopicSpec {
        deadline: ms(period_ms).into(),
        loss_tolerance,
        retention,
        broker_subscriber_min: ms(latency_ms),
        broker_subscriber_max: ms(latency_ms),
        dispatch_cost: us(1),
        replica_cost: us(1),
        ..TopicSpec::best_effort(Period::Every(ms(period_ms)))
    };
    categories.into_iter().map(spec).zip(topics).collect()
}

fn frame_platform() -> Platform {
    Platform { failover: Some(ms(50)), broker_backup: us(50), ..Platform::default() }
}

#[test]
fn the_loads_of_frame_fit_on_one_core() {
    let plan = Plan::of(&Platform { promote: ms(1), ..frame_platform() }, &frame([10, 10, 4_500, 4_500, 4_500, 5]));
    assert!(plan.is_admitted());
    let [core] = plan.cores[..] else { panic!("there is one core") };
    assert_eq!(core.topics, 13_525);
    // Replicas of 9,025 topics, each 1 us, that may be due together, and a dispatch that was begun just before.
    let lead = core.replica_lead.expect("there are replicas");
    assert!(lead >= us(9_026) && lead < us(9_600), "{lead}");
    let recovery = core.recovery.expect("all deadlines are finite");
    assert_eq!(recovery.events, 10 * 4 + 10 * 2 + 4_500 * 3 + 4_500 * 2 + 5 * 3);
    assert_eq!(plan.failover_latency, Some(ms(50) + ms(1) + recovery.drain));
}

#[test]
fn a_hundred_thousand_entries_alike_are_one_class_each() {
    let mut entries = Vec::new();
    for (spec, topics) in frame([100, 100, 33_000, 33_000, 33_000, 800]) {
        entries.extend((0..topics).map(|_| (spec, 1)));
    }
    let plan = Plan::of(&Platform { cores: NonZeroU32::new(4).expect("four"), ..frame_platform() }, &entries);
    assert!(plan.is_admitted());
    assert!(plan.cores.iter().all(|core| core.topics == 25_000), "{:?}", plan.cores);
}

#[test]
fn a_hundred_thousand_different_entries_are_a_class_each() {
    let (category_2, _) = frame([1; 6])[2];
    let different = |index: i64| TopicSpec {
        period: Period::Every(ms(1_000) + us(index)),
        deadline: (ms(900) - us(index)).into(),
        jitter: Nanos::new(index),
        ..category_2
    };
    let entries: Vec<(TopicSpec, u32)> = (0..100_000).map(|index| (different(index), 1)).collect();
    assert!(Plan::of(&frame_platform(), &entries).is_admitted());
}

#[test]
fn a_logging_topic_has_no_bound_on_its_recovery() {
    let logging = TopicSpec { deadline: crate::timing::Span::Infinite, ..frame([1; 6])[2].0 };
    let plan = Plan::of(&frame_platform(), &[(logging, 1)]);
    assert!(plan.is_admitted());
    assert_eq!((plan.cores[0].recovery, plan.failover_latency), (None, None));
}

#[test]
fn an_entry_that_does_not_fit_does_not_keep_later_ones_out() {
    let [(sound, _), .., (last, _)] = frame([1; 6])[..] else { panic!("there are six") };
    let unkept = TopicSpec { retention: 1, ..sound };
    let crowd = TopicSpec { dispatch_cost: us(30), ..last };
    let plan = Plan::of(&frame_platform(), &[(sound, 1), (unkept, 1), (crowd, 100_000), (last, 1)]);
    let admitted: Vec<bool> = plan.verdicts.iter().map(|verdict| verdict.placed.is_ok()).collect();
    assert_eq!((admitted, plan.is_admitted()), (vec![true, false, false, true], false));
    let refusal = plan.verdicts[2].placed.as_ref().expect_err("it does not fit");
    let fewer = refusal.ways.iter().flatten().find(|change| change.key == Key::Count).expect("some fit");
    let fitting = u32::try_from(fewer.value).expect("a number");
    let with = |topics| Plan::of(&frame_platform(), &[(sound, 1), (crowd, topics), (last, 1)]).is_admitted();
    assert!(with(fitting) && !with(fitting + 1), "{fitting}");
}

#[test]
fn where_two_promises_are_broken_both_are_told_and_mended() {
    let hasty = TopicSpec { deadline: ms(1).into(), retention: 1, ..frame([1; 6])[0].0 };
    let plan = Plan::of(&frame_platform(), &[(hasty, 1)]);
    let refusal = plan.verdicts[0].placed.as_ref().expect_err("it does not fit");
    assert!(matches!(refusal.reasons[..], [Reason::Replicate { .. }, Reason::Dispatch { .. }]), "{refusal:?}");
    let (kept, later) = (Change { key: Key::Retention, value: 2 }, Change { key: Key::Deadline, value: 1_002_000 });
    assert!(refusal.ways.contains(&vec![kept, later]), "{refusal:?}");
    assert_eq!((kept.to_string(), later.to_string()), ("retention = 2".to_owned(), "deadline_ms = 1.002".to_owned()));
}

#[test]
fn the_search_for_ways_ends() {
    let (sound, _) = frame([1; 6])[1];
    let cores = Cores::new(&frame_platform());
    let mut search = Search { cores, tasks: SEARCH_TASKS_MAX - 1, unsought: 0 };
    let crowd = Candidate { spec: TopicSpec { dispatch_cost: ms(49), ..sound }, topics: 1, platform: frame_platform() };
    assert!(!search.ways(&crowd).is_empty(), "what is begun is ended");
    assert_eq!((search.ways(&crowd), search.unsought), (Vec::new(), 1));
}

/// Closer to what was asked by one unit.
fn one_unit_less(change: Change) -> Change {
    let step = match change.key {
        Key::Retention | Key::LossTolerance | Key::Deadline | Key::Period | Key::GapMin => -1,
        Key::MarkEvery | Key::Failover | Key::DispatchCost | Key::ReplicaCost | Key::Count => 1,
    };
    Change { value: change.value + step, ..change }
}

fn topics() -> impl Strategy<Value = (TopicSpec, u32)> {
    let timing = (5i64..60, 1i64..80, (0u32..4, 0u32..3), 0u32..3, 1u32..6);
    let costs = (0i64..6, 0i64..30, 0i64..30, 0i64..5, 1u32..40, 0u8..2);
    (timing, costs).prop_map(
        |((period, deadline, (losses, shed_max), retention, mark_every), (latency, dispatch, replica, jitter, topics, level))| {
            let spec = TopicSpec {
                deadline: ms(deadline).into(),
                loss_tolerance: LossTolerance::AtMost(losses),
                shed_max: shed_max.min(losses),
                retention,
                mark_every: NonZeroU32::new(mark_every).expect("from 1 on"),
                jitter: ms(jitter),
                level: crate::topic::Level::new(level).expect("of two"),
                broker_subscriber_max: ms(latency),
                dispatch_cost: us(100 * dispatch),
                replica_cost: us(100 * replica),
                ..TopicSpec::best_effort(Period::Every(ms(period)))
            };
            (spec, topics)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every way is admitted beside what was there; and none of its values is larger than it has to be.
    #[test]
    fn the_smallest_change_is_admitted_and_one_unit_less_is_not(others in prop::collection::vec(topics(), 0..3), (asked, count) in topics(), failover_ms in 1i64..120) {
        let platform = Platform { failover: Some(ms(failover_ms)), ..frame_platform() };
        let admitted = Plan::of(&platform, &others);
        let kept: Vec<(TopicSpec, u32)> = others.iter().zip(&admitted.verdicts).filter(|(_, verdict)| verdict.placed.is_ok()).map(|(entry, _)| *entry).collect();
        // The others keep what they count on: a change of x is asked for this topic.
        let mut cores = Cores::new(&platform);
        for (spec, topics) in kept {
            let placed = cores.place(&Workload::from(&Candidate { spec, topics, platform }));
            prop_assert!(placed.is_ok());
        }
        let is_admitted = |candidate: &Candidate| {
            reasons(candidate).is_empty() && {
                let mut cores = cores.clone();
                cores.place(&Workload::from(candidate)).is_ok()
            }
        };
        let candidate = Candidate { spec: asked, topics: count, platform };
        if is_admitted(&candidate) {
            return Ok(());
        }
        for way in (Search { cores: cores.clone(), tasks: 0, unsought: 0 }).ways(&candidate) {
            let with = |changes: &[Change]| changes.iter().fold(candidate, |candidate, change| change.applied_to(candidate));
            prop_assert!(is_admitted(&with(&way)), "{way:?}");
            for index in 0..way.len() {
                let mut less = way.clone();
                less[index] = one_unit_less(less[index]);
                prop_assert!(!is_admitted(&with(&less)), "{way:?} with {less:?}");
            }
        }
    }
}
