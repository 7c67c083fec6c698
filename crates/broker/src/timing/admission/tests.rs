//! Topics and wishes that come and go.

use std::num::NonZeroU32;

use super::*;
use crate::{
    timing::{Change, Key},
    topic::{Period, TIME_MAX},
};

fn ms(millis: i64) -> Nanos {
    Nanos::from_millis(millis)
}

fn platform() -> Platform {
    Platform { failover: Some(ms(50)), broker_backup: Nanos::from_micros(50), ..Platform::default() }
}

fn topic(period_ms: i64, losses: u32, retention: u32) -> TopicSpec {
    TopicSpec {
        deadline: ms(period_ms).into(),
        loss_tolerance: LossTolerance::AtMost(losses),
        retention,
        dispatch_cost: ms(2),
        replica_cost: ms(1),
        ..TopicSpec::best_effort(Period::Every(ms(period_ms)))
    }
}

fn number(key: Key, value: i64) -> Change {
    Change { key, value }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, AdmissionError>) -> Refusal {
    match result {
        Err(AdmissionError::Refused(refusal)) => refusal,
        other => panic!("it is refused: {other:?}"),
    }
}

#[test]
fn a_topic_is_admitted_once() {
    let mut admission = Admission::new(platform()).expect("no fault");
    let admitted = admission.admit("TEMPERATURE", topic(100, 3, 0)).expect("fits");
    assert_eq!(admitted.deadlines.replicate, Nanos::from_micros(249_950).into());
    assert_eq!(admission.admit("TEMPERATURE", topic(100, 3, 0)), Err(AdmissionError::Declared));
    assert_eq!(admission.get("TEMPERATURE"), Some(admitted));
    admission.remove("TEMPERATURE");
    admission.remove("TEMPERATURE");
    assert_eq!(admission.get("TEMPERATURE"), None);
    assert_eq!(admission.admit("TEMPERATURE", topic(100, 3, 0)), Ok(admitted));
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let mut admission = Admission::new(platform()).expect("no fault");
    admission.admit("A", topic(100, 0, 1)).expect("fits");
    let before = format!("{admission:?}");
    let unkept = refusal(admission.admit("B", topic(100, 0, 0)));
    assert_eq!(unkept.to_string(), "a replica has -50.05 ms from the arrival on, and takes 1 ms");
    assert!(
        unkept.ways.contains(&vec![number(Key::Retention, 1)]) && unkept.ways.contains(&vec![number(Key::LossTolerance, 1)]),
        "{unkept:?}"
    );
    let crowded = refusal(admission.admit("B", TopicSpec { dispatch_cost: ms(95), ..topic(100, 0, 1) }));
    assert_eq!(crowded.to_string(), "core 0 would be asked for 99.00 % of its time, and may be for 95.00 %");
    let slow = refusal(admission.admit("B", TopicSpec { dispatch_cost: ms(60), ..topic(1_000, 0, 1) }));
    assert_eq!(slow.to_string(), "core 0 cannot meet all deadlines of level 0: within 49.95 ms, 61 ms of work may have to be done");
    let fault = admission.admit("B", TopicSpec { jitter: TIME_MAX + ms(1), ..topic(100, 0, 1) });
    assert_eq!(fault.expect_err("told").to_string(), "jitter must be at most 366 days");
    assert_eq!(format!("{admission:?}"), before);
}

#[test]
fn a_topic_is_as_strict_as_the_strictest_of_its_subscriptions() {
    let mut admission = Admission::new(platform()).expect("no fault");
    let marked = TopicSpec { mark_every: NonZeroU32::new(3).expect("three"), ..topic(100, 3, 1) };
    let declared = admission.admit("A", marked).expect("fits");
    assert_eq!(declared.deadlines.replicate, Nanos::from_micros(149_950).into());
    let wish =
        |losses, deadline_ms: Option<i64>| Wish { loss_tolerance: Some(LossTolerance::AtMost(losses)), deadline: deadline_ms.map(ms) };
    let stricter = admission.ask("A", 1, wish(1, Some(40))).expect("fits");
    assert_eq!((stricter.spec.loss_tolerance, stricter.spec.deadline), (LossTolerance::AtMost(1), ms(40).into()));
    assert_eq!(stricter.spec.mark_every.get(), 2, "marks are as close together as the wish needs");
    let strictest = admission.ask("A", 2, wish(0, None)).expect("fits");
    assert_eq!((strictest.spec.loss_tolerance, strictest.spec.deadline), (LossTolerance::AtMost(0), ms(40).into()));
    assert_eq!(strictest.deadlines.replicate, Nanos::from_micros(49_950).into());
    let looser = admission.ask("A", 3, wish(9, Some(900))).expect("it asks for less than there is");
    assert_eq!(looser, strictest);
    admission.withdraw("A", 2);
    admission.withdraw("A", 2);
    assert_eq!(admission.get("A"), Some(stricter));
    admission.withdraw("A", 1);
    admission.withdraw("A", 3);
    assert_eq!(admission.get("A"), Some(declared));
    admission.withdraw("B", 1);
    assert_eq!(admission.ask("B", 1, wish(0, None)), Err(AdmissionError::NotDeclared));
}

#[test]
fn a_wish_for_fewer_losses_leaves_less_to_be_dropped() {
    let mut admission = Admission::new(platform()).expect("no fault");
    admission.admit("A", TopicSpec { shed_max: 2, ..topic(100, 3, 1) }).expect("fits");
    let losses = |losses| Wish { loss_tolerance: Some(LossTolerance::AtMost(losses)), deadline: None };
    let mut asked = |most| admission.ask("A", 1, losses(most)).expect("fits").spec;
    assert_eq!(
        [3, 2, 1, 0].map(|most| (asked(most).shed_max, asked(most).crash_tolerance())),
        [(2, 1), (2, 0), (1, 0), (0, 0)].map(|(shed, crash)| (shed, LossTolerance::AtMost(crash)))
    );
}

#[test]
fn a_wish_that_does_not_fit_is_refused_alone() {
    let mut admission = Admission::new(platform()).expect("no fault");
    admission.admit("A", topic(100, 3, 0)).expect("fits");
    admission.admit("B", TopicSpec { dispatch_cost: ms(8), ..topic(200, 3, 1) }).expect("fits");
    admission.ask("A", 1, Wish { loss_tolerance: Some(LossTolerance::AtMost(2)), deadline: None }).expect("fits");
    let before = format!("{admission:?}");
    let lossless = refusal(admission.ask("A", 2, Wish { loss_tolerance: Some(LossTolerance::AtMost(0)), deadline: None }));
    assert!(lossless.ways.contains(&vec![number(Key::LossTolerance, 1)]), "{lossless:?}");
    let hasty = refusal(admission.ask("A", 2, Wish { loss_tolerance: None, deadline: Some(ms(9)) }));
    assert_eq!(hasty.to_string(), "core 0 cannot meet all deadlines of level 0: within 9 ms, 10 ms of work may have to be done");
    assert!(hasty.ways.contains(&vec![number(Key::Deadline, 10_000_000)]), "{hasty:?}");
    let absurd = admission.ask("A", 2, Wish { loss_tolerance: None, deadline: Some(ms(-1)) });
    assert_eq!(absurd.expect_err("told").to_string(), "deadline must be greater than 0; leave it out where there is none");
    assert_eq!(format!("{admission:?}"), before);
    let changed = admission.ask("A", 1, Wish { loss_tolerance: None, deadline: Some(ms(10)) }).expect("what it asks anew counts");
    assert_eq!(changed.spec.loss_tolerance, LossTolerance::AtMost(3));
}
