//! The machine, driven by scripts and by chance.

mod bound;
mod in_a_row;
mod order;
mod overload;
mod rig;
mod validity;

use self::rig::{Agenda, Happening, Rig, one_level};
use super::{
    super::{OperatorSpec, Output, Shape, Trigger, Use, testing::*},
    *,
};
use crate::event::{Incarnation, PublisherId, Sequence, TopicId};

#[test]
fn a_result_is_named_after_the_event_that_started_it() {
    let mut rig = Rig::new(chain(&[1, 1], &[(1, 0)]), 1);
    for sequence in 1..=3 {
        rig.arrive(0, sequence);
        rig.finish_all();
    }
    let names: Vec<_> = rig.delivered.iter().map(|(record, follows, shed)| (record.lead.sequence.0, follows.0, *shed)).collect();
    assert_eq!(names, [(1, 0, 0), (2, 1, 0), (3, 2, 0)]);
    let identity = rig.delivered[2].0.lead.identity(TopicId(7));
    assert_eq!(identity.to_string(), "1-1-7-3", "publisher 1, incarnation 1, the output's topic, the sequence of the supplier's event");
}

#[test]
fn what_any_event_starts_has_a_name_for_each_way() {
    let any = OperatorSpec { trigger: Trigger::Any, ..operator("any", Shape::NUMBER, &[source(0), source(1)]) };
    let graph = Graph::new(
        "g".to_owned(),
        vec![supplier("A", Shape::NUMBER, 1), supplier("B", Shape::NUMBER, 1)],
        vec![any],
        vec![output("X", 0, 0)],
    );
    let mut rig = Rig::new(graph.expect("it is a graph"), 1);
    rig.arrive(0, 5);
    rig.arrive(1, 5);
    rig.finish_all();
    let names: Vec<_> = rig.delivered.iter().map(|(record, ..)| record.lead.identity(TopicId(0)).publisher.0).collect();
    assert_eq!(names, [1, 1 << 56 | 1]);
    assert_eq!(rig.ran, [vec![1, 0], vec![0, 1]], "each event alone");
}

#[test]
fn a_newer_event_replaces_one_that_waits_and_used_ones_are_gone() {
    let mut rig = Rig::new(one_level(&[&[(0, Use::Consume), (1, Use::Consume)]]), 1);
    rig.arrive(0, 1);
    rig.arrive(0, 2);
    rig.arrive(1, 1);
    rig.finish_all();
    assert_eq!((rig.sequences(), rig.machine.counters(OperatorId::of(0)).replaced), (vec![2], 1));
    rig.arrive(1, 2);
    rig.finish_all();
    assert_eq!(rig.sequences(), [2], "the second event of A was used");
    rig.arrive(0, 3);
    rig.finish_all();
    assert_eq!(rig.sequences(), [2, 3]);
    assert_eq!(rig.machine.slots_held(), 0);
}

#[test]
fn the_latest_event_is_used_again_and_starts_nothing() {
    let mut rig = Rig::new(one_level(&[&[(0, Use::Consume), (1, Use::Latest)]]), 1);
    rig.arrive(1, 1);
    rig.arrive(0, 1);
    rig.finish_all();
    rig.arrive(0, 2);
    rig.finish_all();
    rig.arrive(1, 2);
    rig.finish_all();
    assert_eq!((rig.sequences(), rig.machine.slots_held()), (vec![1, 2], 1));
}

#[test]
fn two_latest_inputs_start_at_any_event_once_both_are_there() {
    let mut rig = Rig::new(one_level(&[&[(0, Use::Latest), (1, Use::Latest)]]), 1);
    for (supplier, sequence) in [(0, 1), (0, 2), (1, 7), (0, 3)] {
        rig.arrive(supplier, sequence);
        rig.finish_all();
    }
    let names: Vec<_> = rig.delivered.iter().map(|(record, ..)| (record.lead.branch, record.lead.sequence.0)).collect();
    assert_eq!(names, [(1, 7), (0, 3)]);
}

#[test]
fn a_window_has_the_newest_events_at_every_step() {
    let number = |number| std::num::NonZeroU16::new(number).expect("it is not 0");
    let mut rig = Rig::new(one_level(&[&[(0, Use::Window { events: number(3), step: number(2) })]]), 1);
    for sequence in 1..=7 {
        rig.arrive(0, sequence);
        rig.finish_all();
    }
    assert_eq!((rig.sequences(), &rig.ran), (vec![3, 5, 7], &vec![vec![3]; 3]));
}

#[test]
fn an_operator_runs_one_round_at_a_time_and_others_run_beside_it() {
    let mut rig = Rig::new(chain(&[1, 1, 1], &[(2, 0)]), 2);
    rig.arrive(0, 1);
    rig.arrive(0, 2);
    assert_eq!(rig.running(), [0], "the second event waits for the first operator");
    rig.finish(0);
    assert_eq!(rig.running(), [0, 1], "a new round has begun before the last one ends");
    rig.finish(0);
    assert_eq!(rig.running(), [1]);
    rig.finish_all();
    assert_eq!(rig.sequences(), [1, 2]);
}

#[test]
fn a_result_of_another_shape_is_none() {
    let mut rig = Rig::new(chain(&[1, 1], &[(1, 0)]), 1);
    rig.arrive(0, 1);
    let job = rig.jobs.remove(0);
    rig.report(job, Outcome::Done(Emission::Emit, 9));
    rig.arrive(0, 2);
    rig.finish_all();
    assert_eq!(rig.machine.counters(OperatorId::of(0)).failed, 1);
    assert_eq!(
        rig.delivered.iter().map(|(record, follows, shed)| (record.lead.sequence.0, follows.0, *shed)).collect::<Vec<_>>(),
        [(2, 0, 1)]
    );
}

#[test]
fn what_is_held_back_is_no_loss() {
    let mut rig = Rig::new(chain(&[1, 1], &[(1, 0)]), 1);
    for (sequence, emission) in [(1, Emission::Emit), (2, Emission::Nothing), (3, Emission::Emit)] {
        rig.arrive(0, sequence);
        let job = rig.jobs.remove(0);
        rig.report(job, Outcome::Done(emission, 8));
        rig.finish_all();
    }
    assert_eq!(
        rig.delivered.iter().map(|(record, follows, shed)| (record.lead.sequence.0, follows.0, *shed)).collect::<Vec<_>>(),
        [(1, 0, 0), (3, 1, 0)]
    );
}

#[test]
fn events_that_are_no_events_are_refused() {
    let mut rig = Rig::new(chain(&[1], &[(0, 0)]), 1);
    let arrival = Arrival { bytes: 7, ..rig.arrival(0, 1) };
    assert!(matches!(rig.machine.arrive(0, arrival, &mut Vec::new()), Err(Refused::Shape { bytes: 7, .. })));
    rig.machine.suspend();
    let arrival = rig.arrival(0, 1);
    assert_eq!(rig.machine.arrive(0, arrival, &mut Vec::new()), Err(Refused::Suspended));
    assert_eq!(rig.machine.arrivals_lost(), (2, 0));
}

#[test]
fn a_result_that_comes_too_late_for_its_worker_changes_nothing() {
    let mut rig = Rig::new(chain(&[1], &[(0, 0)]), 1);
    rig.arrive(0, 1);
    let job = rig.jobs.remove(0);
    rig.report(job, Outcome::Done(Emission::Emit, 8));
    rig.report(job, Outcome::Done(Emission::Emit, 8));
    rig.report(JobId { round: 9, ..job }, Outcome::Done(Emission::Emit, 8));
    assert_eq!((rig.sequences(), rig.machine.job(job)), (vec![1], None));
}

fn source(number: usize) -> Source {
    Source::Supplier(SupplierId::of(number))
}
