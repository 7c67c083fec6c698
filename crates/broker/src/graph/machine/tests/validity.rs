//! What is valid, and what becomes of the rest.

use super::{
    super::super::{RelativeValidity, Supplier},
    *,
};
use crate::timing::Nanos;

const MS: u64 = 1_000_000;

/// A (valid for 10 ms) and B (valid for 20 ms) are joined by an operator of 2 ms, which an operator of 3 ms reads; then comes the output.
fn joined(on_invalid: OnInvalid, within_ms: Option<i64>) -> Rig {
    let valid = |topic: &str, ms| Supplier { validity: Nanos::from_millis(ms).into(), ..supplier(topic, Shape::NUMBER, 10) };
    let relative = within_ms.map(|ms| RelativeValidity { inputs: vec![0, 1], within: Nanos::from_millis(ms) }).into_iter().collect();
    let join =
        OperatorSpec { relative, on_invalid, cost: Nanos::from_millis(2), ..operator("join", Shape::NUMBER, &[source(0), source(1)]) };
    let last =
        OperatorSpec { on_invalid, cost: Nanos::from_millis(3), ..operator("last", Shape::NUMBER, &[Source::Operator(OperatorId::of(0))]) };
    let graph = Graph::new("g".to_owned(), vec![valid("A", 10), valid("B", 20)], vec![join, last], vec![output("X", 1, 0)]);
    Rig::new(graph.expect("it is a graph"), 1)
}

fn at(rig: &mut Rig, ms: u64, supplier: usize, sequence: u64) {
    rig.now_ns = ms * MS;
    rig.arrive(supplier, sequence);
}

#[test]
fn a_result_is_valid_as_long_as_all_that_it_was_made_of() {
    let mut rig = joined(OnInvalid::Shed, None);
    at(&mut rig, 100, 0, 1);
    at(&mut rig, 103, 1, 1);
    rig.finish_all();
    let (record, ..) = rig.delivered[0];
    assert_eq!((record.begin_ns, record.end_ns, record.is_marked), (103 * MS, 110 * MS, false));
}

#[test]
fn validity_ends_before_its_end() {
    // The last operator needs 3 ms more.
    for (now_ms, expected) in [(107, vec![]), (108, vec![(1, 1, Invalid::TooLate)]), (110, vec![(1, 1, Invalid::Expired)])] {
        let mut rig = joined(OnInvalid::Shed, None);
        at(&mut rig, 100, 0, 1);
        at(&mut rig, 101, 1, 1);
        rig.now_ns = now_ms * MS;
        rig.finish_all();
        assert_eq!((rig.shed.clone(), rig.delivered.len()), (expected.clone(), usize::from(expected.is_empty())), "at {now_ms} ms");
    }
    let mut rig = joined(OnInvalid::Shed, None);
    rig.now_ns = 110 * MS;
    assert_eq!((rig.arrive_of(0, 1, 100 * MS), rig.arrive_of(0, 2, 100 * MS + 1)), (Err(Refused::Expired), Ok(())));
}

#[test]
fn what_could_not_be_done_in_time_is_not_begun() {
    for (now_ms, is_begun) in [(105, true), (106, false)] {
        let mut rig = joined(OnInvalid::Shed, None);
        at(&mut rig, 100, 0, 1);
        at(&mut rig, now_ms, 1, 1);
        assert_eq!(rig.running().is_empty(), !is_begun, "5 ms are left to do at {now_ms} ms");
        assert_eq!(rig.shed, if is_begun { vec![] } else { vec![(0, 1, Invalid::TooLate)] });
    }
}

#[test]
fn only_what_is_not_valid_is_dropped() {
    let mut rig = joined(OnInvalid::Shed, None);
    at(&mut rig, 100, 0, 1);
    at(&mut rig, 109, 1, 1);
    assert_eq!((rig.shed.len(), rig.running()), (1, vec![]), "A is dropped");
    at(&mut rig, 112, 0, 2);
    rig.finish_all();
    assert_eq!(
        rig.delivered
            .iter()
            .map(|(record, follows, shed)| (record.lead.sequence.0, record.end_ns / MS, follows.0, *shed))
            .collect::<Vec<_>>(),
        [(2, 122, 0, 1)],
        "B has waited, and the output knows of one less"
    );
}

#[test]
fn events_made_too_far_apart_do_not_meet() {
    let mut rig = joined(OnInvalid::Shed, Some(4));
    at(&mut rig, 100, 1, 1);
    at(&mut rig, 105, 0, 1);
    assert_eq!((rig.shed.clone(), rig.running()), (vec![(0, 1, Invalid::Apart)], vec![]), "B is dropped, A waits on");
    at(&mut rig, 107, 1, 2);
    assert_eq!(rig.running(), [0]);
    rig.finish_all();
    assert_eq!(rig.sequences(), [1]);
}

#[test]
fn relative_validity_is_looked_at_again_after_replacement() {
    let mut rig = joined(OnInvalid::Shed, Some(4));
    rig.machine.policy.cores = 2;
    // The operator runs while the events of its next round come, and one is replaced.
    at(&mut rig, 100, 0, 1);
    at(&mut rig, 100, 1, 1);
    assert_eq!(rig.running(), [0]);
    at(&mut rig, 101, 0, 2);
    at(&mut rig, 103, 1, 2);
    at(&mut rig, 106, 1, 3);
    rig.finish(0);
    assert_eq!((rig.shed.clone(), rig.running()), (vec![(0, 2, Invalid::Apart)], vec![1]), "2 ms apart became 5 ms apart");
}

#[test]
fn what_is_marked_goes_on_and_is_marked_to_the_end() {
    let mut rig = joined(OnInvalid::Mark, Some(4));
    at(&mut rig, 100, 1, 1);
    at(&mut rig, 105, 0, 1);
    rig.finish_all();
    assert_eq!((rig.shed.len(), rig.delivered.iter().map(|(record, ..)| record.is_marked).collect::<Vec<_>>()), (0, vec![true]));
    assert_eq!([0, 1].map(|operator| rig.machine.counters(OperatorId::of(operator)).marked), [1, 1]);
}
