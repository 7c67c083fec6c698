//! Operators that one worker runs in a row.

use proptest::prelude::*;

use super::{chain as row, *};
use crate::{graph::Supplier, timing::Nanos};

const PREEMPTIVE: Policy = Policy { cores: 1, is_preemptive: true, replaces_queued: false };

fn emit() -> Outcome {
    Outcome::Done(Emission::Emit, 8)
}

/// Operators behind each other in the machine's eye: which one follows.
fn followers(graph: &Graph) -> Vec<Option<usize>> {
    chain::followers(graph).into_iter().map(|next| next.map(OperatorId::index)).collect()
}

#[test]
fn operators_follow_each_other_where_nothing_is_decided_between_them() {
    let plain = row(&[1, 1, 1], &[(2, 0)]);
    assert_eq!(followers(&plain), [Some(1), Some(2), None]);
    let levels = row(&[1, 1, 1], &[(1, 0), (2, 3)]);
    assert_eq!(followers(&levels), [Some(1), None, None], "a result that has an output is published first, and a less urgent level waits");
    let long = row(&[1; 6], &[(5, 0)]);
    assert_eq!(followers(&long), [Some(1), Some(2), Some(3), None, Some(5), None], "{CHAIN_MAX} at the most");
    let costly = row(&[2_000, 2_000, 2_000, 100], &[(3, 0)]);
    assert_eq!(followers(&costly), [Some(1), None, Some(3), None], "not for more than half of the 10 ms between two events");
    let joined = one_level(&[&[(0, Use::Consume), (1, Use::Consume)], &[(0, Use::Consume)]]);
    assert_eq!(followers(&joined), [None, None]);
    assert_eq!(followers(&figure_2_2()), [None; 7], "every result has two readers, or a reader that takes others too");
    for change in [
        |second: &mut OperatorSpec| second.on_invalid = OnInvalid::Mark,
        |second: &mut OperatorSpec| second.trigger = Trigger::Any,
        |second: &mut OperatorSpec| second.inputs[0].usage = Use::Latest,
    ] {
        let (first, mut second) = (operator("a", Shape::NUMBER, &[source(0)]), operator("b", Shape::NUMBER, &[]));
        second.inputs = vec![rig::edge(Source::Operator(OperatorId::of(0)), Use::Consume)];
        let graph =
            |second| Graph::new("g".to_owned(), vec![supplier("S", Shape::NUMBER, 10)], vec![first, second], vec![output("T", 1, 0)]);
        change(&mut second);
        assert_eq!(followers(&graph(second).expect("it is a graph")), [None, None]);
    }
}

#[test]
fn a_worker_goes_on_with_the_result_that_it_has() {
    let mut rig = Rig::with(row(&[1, 1, 1], &[(2, 0)]), PREEMPTIVE);
    rig.arrive(0, 1);
    rig.arrive(0, 2);
    assert_eq!(rig.running(), [0], "the others are run by the same worker");
    let first = rig.jobs.remove(0);
    let second = rig.machine.next(first.operator).expect("o1 follows");
    assert_eq!(second.event, rig.machine.job(first).expect("it runs").result);
    let third = rig.machine.next(second.job.operator).expect("o2 follows");
    assert_eq!((third.event, rig.machine.next(third.job.operator)), (second.result, None));
    rig.report(first, emit());
    assert!(rig.running().is_empty(), "the next event waits for the end of all three");
    rig.report(second.job, emit());
    rig.report(third.job, emit());
    assert_eq!((rig.sequences(), rig.running()), (vec![1], vec![0]));
    rig.finish_all();
    assert_eq!((rig.sequences(), rig.machine.slots_held()), (vec![1, 2], 0));
    let rounds: Vec<u64> = (0..3).map(|at| rig.machine.counters(OperatorId::of(at)).rounds).collect();
    assert_eq!(rounds, [2, 2, 2], "each operator's rounds are its own");
}

#[test]
fn without_real_time_threads_each_round_is_a_step_of_its_own() {
    let mut rig = Rig::new(row(&[1, 1], &[(1, 0)]), 1);
    rig.arrive(0, 1);
    assert_eq!(rig.machine.next(OperatorId::of(0)), None);
    rig.finish(0);
    assert_eq!(rig.running(), [1]);
}

#[test]
fn nothing_follows_a_round_without_a_result() {
    for outcome in [Outcome::Done(Emission::Nothing, 0), Outcome::Failed, Outcome::Done(Emission::Emit, 3)] {
        let mut rig = Rig::with(row(&[1, 1, 1], &[(2, 0)]), PREEMPTIVE);
        rig.arrive(0, 1);
        let job = rig.jobs.remove(0);
        rig.report(job, outcome);
        assert_eq!((rig.machine.slots_held(), rig.machine.next(job.operator)), (0, None), "{outcome:?}");
        rig.arrive(0, 2);
        rig.finish_all();
        let shed = u32::from(outcome != Outcome::Done(Emission::Nothing, 0));
        let delivered: Vec<_> = rig.delivered.iter().map(|(record, _, shed)| (record.lead.sequence.0, *shed)).collect();
        assert_eq!((delivered, rig.machine.slots_held()), (vec![(2, shed)], 0), "{outcome:?}");
    }
}

#[test]
fn what_is_too_late_by_then_is_not_begun_and_told() {
    let operators = (0..3).map(|at| {
        let from = if at == 0 { source(0) } else { Source::Operator(OperatorId::of(at - 1)) };
        OperatorSpec { cost: Nanos::from_micros(100), ..operator(&format!("o{at}"), Shape::NUMBER, &[from]) }
    });
    let validity = Span::Finite(Nanos::from_millis(1));
    let suppliers = vec![Supplier { validity, ..supplier("S", Shape::NUMBER, 10) }];
    let graph = Graph::new("g".to_owned(), suppliers, operators.collect(), vec![output("T", 2, 0)]).expect("it is a graph");
    let mut rig = Rig::with(graph, PREEMPTIVE);
    rig.arrive(0, 1);
    let next = rig.machine.next(OperatorId::of(0)).expect("o1 follows");
    assert_eq!(next.too_late_ns, 800_000, "o1 and o2 take 0.2 ms");
    rig.now_ns = 800_000;
    rig.finish(0);
    assert_eq!((&*rig.shed, rig.running()), (&[(1, 1, Invalid::TooLate)][..], vec![]));
    let counters = rig.machine.counters(OperatorId::of(1));
    assert_eq!((counters.rounds, counters.shed_too_late, rig.machine.slots_held()), (0, 1, 0));
    rig.arrive(0, 2);
    rig.finish_all();
    assert_eq!(rig.delivered.iter().map(|(record, _, shed)| (record.lead.sequence.0, *shed)).collect::<Vec<_>>(), [(2, 1)]);
}

#[test]
fn another_node_goes_on_in_the_middle_of_a_row() {
    let graph = row(&[1, 1, 1], &[(2, 0)]);
    let mut rig = Rig::with(graph.clone(), PREEMPTIVE);
    rig.arrive(0, 1);
    rig.arrive(0, 2);
    let (mut held, mut bytes) = (Vec::new(), Vec::new());
    rig.machine.save(&mut held, &mut bytes);
    let mut other = Rig::with(graph, PREEMPTIVE);
    other.machine.restore(&bytes, &mut held).expect("it fits");
    assert_eq!(held.len(), 2, "the event of the round that runs, and the one that waits");
    other.resume();
    other.finish_all();
    assert_eq!((other.sequences(), other.machine.slots_held()), (vec![1, 2], 0));
}

proptest! {
    /// Rounds in a row change who is asked when, and nothing about what is made of which events.
    #[test]
    fn results_are_those_of_single_rounds(
        costs in prop::collection::vec(1i64..3_000, 1..7), cores in 1usize..3, script in prop::collection::vec(0usize..3, 1..60),
    ) {
        let ends = [(costs.len() - 1, 0)];
        let graph = row(&costs, &ends);
        let run = |is_preemptive| {
            let mut rig = Rig::with(graph.clone(), Policy { cores, is_preemptive, replaces_queued: false });
            let mut sequence = 0;
            for step in &script {
                match step {
                    0 => {
                        sequence += 1;
                        rig.arrive(0, sequence);
                    }
                    _ => rig.finish_all(),
                }
            }
            rig.finish_all();
            assert_eq!(rig.machine.slots_held(), 0);
            (0..costs.len()).for_each(|at| assert!(rig.machine.next(OperatorId::of(at)).is_none()));
            (rig.delivered, (0..costs.len()).map(|at| *rig.machine.counters(OperatorId::of(at))).collect::<Vec<_>>())
        };
        prop_assert_eq!(run(false), run(true));
    }
}
