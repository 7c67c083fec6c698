//! Random graphs under random arrivals: slots come back, no name comes twice, and no result takes longer than the analysis says.

use std::{cmp::Reverse, collections::BTreeSet, num::NonZeroU32};

use proptest::prelude::*;

use super::{
    super::super::{
        Supplier,
        response::{Analysis, Workers},
    },
    *,
};
use crate::timing::Nanos;

/// An operator by chance: its inputs by number, its cost in microseconds, its output's level, whether any event starts it.
type Draft = (Vec<usize>, i64, u8, bool);

fn graph(periods_ms: &[i64], drafts: &[Draft]) -> Graph {
    let suppliers: Vec<Supplier> = periods_ms.iter().enumerate().map(|(at, ms)| supplier(&format!("S{at}"), Shape::NUMBER, *ms)).collect();
    let mut is_read = vec![false; periods_ms.len() + drafts.len()];
    let mut operators = Vec::new();
    for (at, (inputs, cost_us, _, is_any)) in drafts.iter().enumerate() {
        let known = periods_ms.len() + at;
        let mut numbers: Vec<usize> = inputs.iter().map(|input| input % known).collect();
        if at + 1 == drafts.len() {
            // The last operator reads what nobody else reads of the suppliers.
            numbers.extend((0..periods_ms.len()).filter(|supplier| !is_read[*supplier]));
        }
        numbers.sort_unstable();
        numbers.dedup();
        let from = |number: usize| match number.checked_sub(periods_ms.len()) {
            None => source(number),
            Some(operator) => Source::Operator(OperatorId::of(operator)),
        };
        numbers.iter().for_each(|number| is_read[*number] = true);
        let inputs: Vec<Source> = numbers.into_iter().map(from).collect();
        let trigger = if *is_any { Trigger::Any } else { Trigger::All };
        operators.push(OperatorSpec { trigger, cost: Nanos::from_micros(*cost_us), ..operator(&format!("o{at}"), Shape::NUMBER, &inputs) });
    }
    let ends = drafts.iter().enumerate().filter(|(at, _)| !is_read[periods_ms.len() + at]);
    let outputs = ends.map(|(at, (_, _, level, _))| output(&format!("X{at}"), at, *level)).collect();
    Graph::new("chance".to_owned(), suppliers, operators, outputs).expect("it is a graph")
}

/// Runs a graph with every operator taking its cost; gives the longest time of each output and what it has delivered. Gaps between events are the periods and what `more` adds.
fn run(graph: &Graph, cores: usize, more_us: &[u64]) -> Vec<(u64, usize)> {
    let mut rig = Rig::new(graph.clone(), cores);
    let mut agenda = Agenda::new();
    for (at, supplier) in graph.suppliers().iter().enumerate() {
        let mut now_ns = more_us[at % more_us.len()] * 1_000;
        for sequence in 1..=30 {
            agenda.push(Reverse((now_ns, Happening::Arrival { supplier: at, sequence })));
            let gap = if sequence % 3 == 0 { more_us[(at + sequence as usize) % more_us.len()] * 1_000 } else { 0 };
            now_ns += supplier.period.get().unsigned_abs() + gap;
        }
    }
    let mut longest = vec![(0, 0); graph.outputs().len()];
    let mut names = BTreeSet::new();
    rig.play(agenda, |now_ns, action| match action {
        Action::Run(_) => {}
        Action::Deliver { output, record, .. } => {
            let (time_ns, count) = &mut longest[*output];
            *time_ns = (*time_ns).max(now_ns - record.begin_ns);
            *count += 1;
            assert!(names.insert((*output, record.lead)), "{:?} comes twice", record.lead);
        }
        Action::Shed { .. } => panic!("{action:?}"),
    });
    let waiting: usize = graph.operators().iter().map(|operator| operator.inputs.len()).sum();
    assert!(rig.machine.slots_held() <= waiting, "only what waits for others is held");
    longest
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    prop::collection::vec((prop::collection::vec(0usize..64, 1..4), 10i64..600, 0u8..4, prop::bool::weighted(0.2)), 1..9)
}

proptest! {
    #[test]
    fn no_result_takes_longer_than_the_analysis_says(
        periods_ms in prop::collection::vec(2i64..20, 1..4), drafts in drafts(), cores in 1u32..4, more_us in prop::collection::vec(0u64..5_000, 1..8),
    ) {
        let graph = graph(&periods_ms, &drafts);
        let workers = Workers { cores: NonZeroU32::new(cores).expect("it is not 0"), hop: Nanos::ZERO, is_preemptive: false };
        let analysis = Analysis::of(&graph, &workers);
        let found = run(&graph, cores as usize, &more_us);
        for (output, (longest_ns, count)) in found.into_iter().enumerate() {
            if let Some(bound) = analysis.outputs[output].response {
                prop_assert!(longest_ns <= bound.get().unsigned_abs(), "output {output}: {longest_ns} ns of {count} results, bound {bound}, {graph:?}");
            }
        }
    }
}
