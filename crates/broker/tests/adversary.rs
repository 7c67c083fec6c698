//! The bound of the theory, (A), against an adversary on a small grid of time: every crash instant, every phase of the marks, and arrivals with
//! gaps that the period and the jitter allow. At the bound no run of losses is longer than tolerated; one unit later there is one.
//!
//! The adversary delivers nothing that need not be delivered: an event survives the Primary's host if the publisher still keeps it, or if it
//! was marked and its replica was due at the Backup by the crash.

use bodkin_broker::{
    timing::{Deadlines, Nanos, Span},
    topic::{LossTolerance, Period, Platform, TopicSpec},
};
use proptest::prelude::*;

/// Parts of a unit of the theory in which crashes are tried: one may fall between two instants at which something happens.
const FINE: i64 = 2;

/// T, N, L, M, x and J, in units.
#[derive(Clone, Copy, Debug)]
struct Case {
    period: i64,
    retention: u32,
    losses: u32,
    mark_every: u32,
    failover: i64,
    jitter: i64,
}

impl Case {
    /// (A) relative to the creation, in parts of a unit: latest cover of a marked event.
    fn bound(self) -> i64 {
        let units = |units: i64| Nanos::new(FINE * units);
        let spec = TopicSpec {
            loss_tolerance: LossTolerance::AtMost(self.losses),
            retention: self.retention,
            mark_every: self.mark_every.try_into().expect("marks are at least one apart"),
            jitter: units(self.jitter),
            ..TopicSpec::best_effort(Period::Every(units(self.period)))
        };
        let platform = Platform { failover: Some(units(self.failover)), ..Platform::default() };
        let Span::Finite(bound) = Deadlines::of(&spec, &platform).replicate_from_creation else { panic!("losses are bounded") };
        bound.get()
    }

    /// Events that are enough for every run that the adversary can make.
    fn events(self) -> i64 {
        (self.retention + self.losses + 2 * self.mark_every + 3).into()
    }

    /// One event in every period.
    fn periodic(self) -> Vec<i64> {
        (0..self.events()).map(|index| FINE * self.period * index).collect()
    }

    /// The longest run of losses that a crash can make where marked events are covered so long behind their creation.
    fn longest_run(self, creations: &[i64], covered_after: i64) -> u32 {
        let last = creations.last().expect("there are events");
        let crashes = 0..=last + covered_after;
        let runs = crashes.flat_map(|crash| (0..self.mark_every).map(move |phase| self.run(creations, covered_after, crash, phase)));
        runs.max().expect("there is an instant")
    }

    fn run(self, creations: &[i64], covered_after: i64, crash: i64, phase: u32) -> u32 {
        // All that is created before the publisher has turned to the Backup goes to the dead Primary; the newest of it is sent again.
        let sent = creations.iter().take_while(|created| **created < crash + FINE * self.failover).count();
        let kept_from = sent.saturating_sub(self.retention as usize);
        let (mut run, mut longest) = (0, 0);
        for (index, created) in creations[..kept_from].iter().enumerate() {
            let is_marked = index as u32 % self.mark_every == phase;
            run = if is_marked && created + covered_after <= crash { 0 } else { run + 1 };
            longest = longest.max(run);
        }
        longest
    }
}

/// N and L from 0 to 3, x up to more than two periods, and M as it is given for L.
fn cases(marks: impl Fn(u32) -> std::ops::RangeInclusive<u32>) -> Vec<Case> {
    let mut cases = Vec::new();
    for (retention, losses) in (0..4).flat_map(|retention| (0..4).map(move |losses| (retention, losses))) {
        for mark_every in marks(losses) {
            cases.extend([0, 1, 3, 4, 5, 9].map(|failover| Case { period: 4, retention, losses, mark_every, failover, jitter: 0 }));
        }
    }
    cases
}

#[test]
fn at_the_bound_no_run_is_too_long_and_one_unit_later_there_is_one() {
    let mut feasible = 0;
    for case in cases(|losses| 1..=losses + 1) {
        let bound = case.bound();
        if bound >= 0 {
            feasible += 1;
            assert!(case.longest_run(&case.periodic(), bound) <= case.losses, "{case:?}");
        }
        // No cover comes before the creation: where the bound is negative, not even the quickest is in time.
        let too_late = (bound + FINE).max(0);
        assert!(case.longest_run(&case.periodic(), too_late) > case.losses, "{case:?}");
    }
    assert!(feasible > 100, "{feasible}");
}

#[test]
fn marks_further_apart_than_the_tolerance_are_never_enough() {
    for case in cases(|losses| losses + 2..=losses + 2) {
        assert!(case.longest_run(&case.periodic(), 0) > case.losses, "{case:?}");
    }
}

/// A backlog is what makes Lemma 5 wrong: what is not covered has not been delivered either.
#[test]
fn lemma_5_loses_an_event_of_a_topic_that_tolerates_no_loss() {
    let lemma_5 = Case { period: 4, retention: 1, losses: 0, mark_every: 2, failover: 1, jitter: 0 };
    assert_eq!(lemma_5.longest_run(&lemma_5.periodic(), 0), 1);
}

#[test]
fn gaps_below_the_period_break_the_bound_unless_they_are_declared() {
    let undeclared = Case { period: 4, retention: 1, losses: 1, mark_every: 1, failover: 3, jitter: 0 };
    let declared = Case { period: 3, ..undeclared };
    let gaps_of_3: Vec<i64> = (0..undeclared.events()).map(|index| FINE * 3 * index).collect();
    assert_eq!(undeclared.longest_run(&gaps_of_3, undeclared.bound()), 2);
    assert_eq!(declared.longest_run(&gaps_of_3, declared.bound()), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// Each event is late or early within J, and later by what comes extra.
    #[test]
    fn sporadic_arrivals_with_jitter_do_not_break_the_bound(
        (retention, losses, skipped) in (0u32..4, 0u32..4, 0u32..4),
        failover in 0i64..10,
        jitter in 0i64..5,
        early in prop::collection::vec(0i64..10, 24),
        extra in prop::collection::vec(prop_oneof![3 => Just(0i64), 1 => 0i64..12], 24),
    ) {
        let case = Case { period: 4, retention, losses, mark_every: 1 + skipped.min(losses), failover, jitter };
        let bound = case.bound();
        prop_assume!(bound >= 0);
        let mut nominal = FINE * jitter;
        let mut creations: Vec<i64> = early.iter().zip(extra).take(case.events() as usize).map(|(early, extra)| {
            nominal += FINE * case.period + extra;
            nominal - early.min(&(FINE * jitter))
        }).collect();
        creations.sort_unstable();
        prop_assert!(case.longest_run(&creations, bound) <= losses, "{:?} with {:?}", case, creations);
    }

    /// The adversary comes early by J with all events but the first.
    #[test]
    fn declared_jitter_is_needed_to_the_last_unit((retention, losses) in (0u32..4, 0u32..4), failover in 0i64..10, jitter in 1i64..4) {
        let case = Case { period: 4, retention, losses, mark_every: 1, failover, jitter };
        prop_assume!(case.bound() >= 0 && retention + losses > 0);
        let creations: Vec<i64> = (0..case.events()).map(|index| FINE * (4 * index - jitter * index.min(1))).collect();
        prop_assert!(case.longest_run(&creations, case.bound()) <= losses);
        prop_assert!(case.longest_run(&creations, case.bound() + FINE) > losses, "{:?}", case);
    }
}
