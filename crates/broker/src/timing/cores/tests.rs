//! Where topics go.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::{
    timing::Candidate,
    topic::{LossTolerance, Period, TopicSpec},
};

fn platform(cores: u32) -> Platform {
    Platform { cores: NonZeroU32::new(cores).expect("some"), ..Platform::default() }
}

/// Times in microseconds.
fn dispatched(period: i64, deadline: i64, cost: i64) -> TopicSpec {
    let us = Nanos::from_micros;
    TopicSpec { deadline: us(deadline).into(), dispatch_cost: us(cost), ..TopicSpec::best_effort(Period::Every(us(period))) }
}

fn workload(spec: TopicSpec, topics: u32) -> Workload {
    Workload::from(&Candidate { spec, topics, platform: platform(1) })
}

fn sorted(mut placement: Placement) -> Placement {
    placement.sort_unstable();
    placement
}

#[test]
fn topics_go_where_the_least_is() {
    let mut cores = Cores::new(&platform(3));
    assert_eq!(cores.place(&workload(dispatched(100, 100, 40), 1)), Ok(vec![(0, 1)]));
    assert_eq!(cores.place(&workload(dispatched(100, 100, 10), 5)).map(sorted), Ok(vec![(1, 3), (2, 2)]));
    let loads: Vec<u64> = cores.loads().map(Load::ppm).collect();
    assert_eq!(loads, [400_000, 300_000, 200_000]);
}

#[test]
fn topics_without_costs_are_spread_as_well() {
    let mut cores = Cores::new(&platform(2));
    assert_eq!(cores.place(&workload(dispatched(100, 100, 0), 5)).map(sorted), Ok(vec![(0, 3), (1, 2)]));
}

#[test]
fn a_topic_that_does_not_fit_on_the_least_loaded_core_goes_to_another() {
    let mut cores = Cores::new(&platform(2));
    // Core 0 carries much that is due soon, core 1 little, but one job of it is long.
    assert_eq!(cores.place(&workload(dispatched(100, 100, 30), 1)), Ok(vec![(0, 1)]));
    assert_eq!(cores.place(&workload(dispatched(10_000, 10_000, 60), 1)), Ok(vec![(1, 1)]));
    assert_eq!(cores.place(&workload(dispatched(1_000, 50, 20), 1)), Ok(vec![(0, 1)]), "on core 1 the long job would be in the way");
}

#[test]
fn what_does_not_fit_as_a_whole_is_not_placed_and_how_many_would_have_fitted_is_told() {
    let mut cores = Cores::new(&platform(2));
    let before = format!("{cores:?}");
    let (rejection, fitting) = cores.place(&workload(dispatched(100, 100, 10), 19)).expect_err("19 of 18");
    assert_eq!(fitting, 18);
    assert!(matches!(rejection, Rejection::Load { load, load_max, .. } if load > load_max), "{rejection:?}");
    assert_eq!(format!("{cores:?}"), before);
    assert_eq!(cores.place(&workload(dispatched(100, 100, 10), 18)).map(sorted), Ok(vec![(0, 9), (1, 9)]));
}

#[test]
fn what_was_placed_is_taken_off_without_a_trace() {
    let mut cores = Cores::new(&platform(2));
    let (first, second) = (workload(dispatched(7, 7, 1), 3), workload(dispatched(11, 9, 2), 2));
    let placed = cores.place(&first).expect("fits");
    let before = format!("{cores:?}");
    let more = cores.place(&second).expect("fits");
    cores.remove(&second, &more);
    assert_eq!(format!("{cores:?}"), before);
    cores.remove(&first, &placed);
    assert_eq!(format!("{cores:?}"), format!("{:?}", Cores::new(&platform(2))));
}

#[test]
fn publishers_of_a_topic_stay_together() {
    let shared = TopicSpec { publishers: NonZeroU32::new(3).expect("three"), ..dispatched(100, 100, 20) };
    let mut cores = Cores::new(&platform(2));
    assert_eq!(cores.place(&workload(shared, 2)).map(sorted), Ok(vec![(0, 1), (1, 1)]));
    assert_eq!(cores.loads().map(Load::ppm).collect::<Vec<_>>(), [600_000, 600_000]);
}

#[test]
fn postponed_replicas_leave_room_for_dispatches_that_come_later() {
    let replicated = TopicSpec {
        retention: 1,
        loss_tolerance: LossTolerance::AtMost(0),
        replica_cost: Nanos::from_micros(2),
        ..dispatched(1_000, 20, 6)
    };
    let mut cores = Cores::new(&platform(1));
    cores.place(&workload(replicated, 2)).expect("fits");
    let lead = cores.replica_lead(0).expect("there are replicas");
    // Two replicas, and a dispatch that was begun just before: 2 * 2 + 6 us; by itself the batch would be begun 4 us before.
    assert!(lead >= Nanos::from_micros(10) && lead <= Nanos::from_micros(11), "{lead}");
    let mut none = Cores::new(&platform(1));
    none.place(&workload(dispatched(1_000, 20, 6), 2)).expect("fits");
    assert_eq!(none.replica_lead(0), None);
}

#[test]
fn a_backlog_is_drained_beside_what_comes() {
    let us = Nanos::from_micros;
    let mut cores = Cores::new(&platform(1));
    assert_eq!(cores.drain(0, us(90)), us(90));
    cores.place(&workload(dispatched(100, 100, 50), 1)).expect("fits");
    // A job at once, one 100 us later; the third comes when all is done.
    assert_eq!(cores.drain(0, us(90)), us(190));
    assert_eq!(cores.drain(0, Nanos::ZERO), Nanos::ZERO);
    // With 1 us of work each 1.1 us a long backlog takes more steps than are tried: the line has it a little longer.
    let mut busy = Cores::new(&platform(1));
    let quick = TopicSpec { dispatch_cost: us(1), ..dispatched(1, 1_000, 1) };
    busy.place(&workload(TopicSpec { period: Period::Every(Nanos::new(1_100)), ..quick }, 1)).expect("fits");
    let drained = busy.drain(0, us(10_000));
    assert!(drained >= us(110_000) && drained < us(110_020), "{drained}");
}

fn specs() -> impl Strategy<Value = Vec<(TopicSpec, u32)>> {
    let spec =
        (10i64..60, 10i64..80, 1i64..9, 1u32..5).prop_map(|(period, deadline, cost, topics)| (dispatched(period, deadline, cost), topics));
    prop::collection::vec(spec, 1..12)
}

proptest! {
    /// Where each topic goes by itself, one after the other.
    #[test]
    fn many_topics_go_where_each_would(before in specs(), (period, cost, topics) in (10i64..60, 0i64..9, 1u32..60), count in 1u32..5) {
        let mut cores = Cores::new(&platform(count));
        for (spec, topics) in before {
            let _fits_or_not = cores.place(&workload(spec, topics));
        }
        let many = workload(dispatched(period, 1_000, cost), topics);
        let together = cores.spread(&many);
        let mut each = vec![0; count as usize];
        for _ in 0..topics {
            let next = Workload { topics: 1, ..many };
            let [(core, 1)] = cores.spread(&next)[..] else { panic!("one topic goes to one core") };
            let least = |index: &usize| {
                let Core { height, topics, .. } = cores.cores[*index];
                (if cost == 0 { 0 } else { height }, topics)
            };
            prop_assert!((0..each.len()).all(|other| least(&core) <= least(&other)));
            each[core] += 1;
            cores.cores[core].change(&next, 1);
        }
        prop_assert_eq!(together, each.into_iter().enumerate().filter(|(_, topics)| *topics > 0).collect::<Placement>());
    }

    /// All at once is one after the other, only quicker.
    #[test]
    fn placing_all_is_placing_each(specs in specs(), cores in 1u32..4) {
        let workloads: Vec<Workload> = specs.iter().map(|(spec, topics)| workload(*spec, *topics)).collect();
        let (mut together, mut apart) = (Cores::new(&platform(cores)), Cores::new(&platform(cores)));
        let mut placed = Vec::new();
        together.place_all(&workloads, &mut placed);
        let one_by_one: Vec<_> = workloads.iter().map(|workload| apart.place(workload)).collect();
        let shape = |placed: &Vec<Result<Placement, (Rejection, u32)>>| {
            placed.iter().map(|placed| placed.clone().map(sorted).map_err(|(_, fitting)| fitting)).collect::<Vec<_>>()
        };
        prop_assert_eq!(shape(&placed), shape(&one_by_one));
        prop_assert_eq!(format!("{together:?}"), format!("{apart:?}"));
    }
}
