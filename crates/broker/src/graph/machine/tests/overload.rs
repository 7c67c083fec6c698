//! More events than there is time for: what is lost has cost nothing, and no level is without results that another one has already computed.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{
    super::{super::Supplier, pace::LOSSES_BEHIND},
    *,
};
use crate::timing::Nanos;

const US: u64 = 1_000;
const PERIOD_US: u64 = 10_000;
/// Suppliers of each copy of the graph, and its operators.
const SUPPLIERS: usize = 2;
const OPERATORS: usize = 4;

/// Copies of a graph with an operator of the high level, one of the middle level behind it and behind another one, whose result the low level has too. Events are valid for their period.
fn copies(count: usize) -> Graph {
    let valid = |topic: String| Supplier { validity: Nanos::from_millis(10).into(), ..supplier(&topic, Shape::NUMBER, 10) };
    let of = |name: String, cost_us: i64, inputs: &[Source]| OperatorSpec {
        cost: Nanos::from_micros(cost_us),
        ..operator(&name, Shape::NUMBER, inputs)
    };
    let (mut suppliers, mut operators, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for copy in 0..count {
        let on = |operator: usize| Source::Operator(OperatorId::of(OPERATORS * copy + operator));
        suppliers.extend(["A", "B"].map(|topic| valid(format!("{topic}{copy}"))));
        operators.push(of(format!("high {copy}"), 300, &[source(SUPPLIERS * copy)]));
        operators.push(of(format!("spectrum {copy}"), 500, &[source(SUPPLIERS * copy + 1)]));
        operators.push(of(format!("middle {copy}"), 50, &[on(0), on(1)]));
        operators.push(of(format!("low {copy}"), 20, &[on(1)]));
        for (level, from) in [0, 2, 3].into_iter().enumerate() {
            outputs.push(output(&format!("{level}-{copy}"), OPERATORS * copy + from, level as u8));
        }
    }
    Graph::new("copies".to_owned(), suppliers, operators, outputs).expect("it is a graph")
}

/// What came of a second of events.
#[derive(Debug)]
struct Seen {
    /// Results of each level.
    timely: [u64; 3],
    /// Rounds of the operator that middle and low level need, and of the two behind.
    rounds: [u64; 3],
}

/// Runs copies for a second on one core; the suppliers of each push at the same moment, copies one behind the other.
fn run(count: usize) -> Seen {
    let mut rig = Rig::with(copies(count), Policy { cores: 1, is_preemptive: false, replaces_queued: true });
    let mut agenda = Agenda::new();
    for copy in 0..count {
        let phase_us = copy as u64 * PERIOD_US / count as u64;
        for sequence in 1..=100u64 {
            let at_ns = (1_000_000 + phase_us + sequence * PERIOD_US) * US;
            let arrival = |supplier| Happening::Arrival { supplier: SUPPLIERS * copy + supplier, sequence };
            agenda.extend((0..SUPPLIERS).map(|supplier| Reverse((at_ns, arrival(supplier)))));
        }
    }
    let mut seen = Seen { timely: [0; 3], rounds: [0; 3] };
    rig.play(agenda, |_, action| {
        if let Action::Deliver { output, .. } = action {
            seen.timely[output % 3] += 1;
        }
    });
    for copy in 0..count {
        for (rounds, operator) in seen.rounds.iter_mut().zip(1..) {
            *rounds += rig.machine.counters(OperatorId::of(OPERATORS * copy + operator)).rounds;
        }
    }
    seen
}

#[test]
fn past_saturation_as_many_results_are_in_time_and_every_level_has_some() {
    // Eleven copies are 96 % of the core.
    let counts = [9, 11, 13, 15, 18, 22];
    let seen = counts.map(run);
    let timely = seen.iter().map(|seen| seen.timely.iter().sum::<u64>());
    let peak = timely.clone().max().expect("there are some");
    assert!(timely.skip(1).all(|timely| timely * 100 >= peak * 95), "a peak of {peak}, {seen:#?}");
    for (count, Seen { timely: [high, middle, low], rounds: [spectra, ..] }) in counts.into_iter().zip(&seen) {
        assert!(high * 100 >= count as u64 * 100 * 99, "{count} copies: {high} of the high level");
        assert!(
            low * 100 >= spectra * 85 && middle * 100 >= spectra * 90,
            "{count} copies: {spectra} spectra, of which came {middle} and {low}"
        );
    }
}

/// o0 (high, from A) stands alone; o1 (middle, from B) is read by o2 (low); o3 (low, from C) stands alone.
fn behind() -> Rig {
    let operators = vec![
        operator("o0", Shape::NUMBER, &[source(0)]),
        operator("o1", Shape::NUMBER, &[source(1)]),
        operator("o2", Shape::NUMBER, &[Source::Operator(OperatorId::of(1))]),
        operator("o3", Shape::NUMBER, &[source(2)]),
    ];
    let outputs = vec![output("X0", 0, 0), output("X1", 1, 1), output("X2", 2, 2), output("X3", 3, 2)];
    let suppliers = ["A", "B", "C"].map(|topic| supplier(topic, Shape::NUMBER, 10)).to_vec();
    let graph = Graph::new("g".to_owned(), suppliers, operators, outputs).expect("it is a graph");
    Rig::with(graph, Policy { cores: 1, is_preemptive: false, replaces_queued: true })
}

#[test]
fn a_level_that_does_not_keep_up_finishes_what_it_has_shared_before_it_takes_more_in() {
    let mut rig = behind();
    rig.now_ns = 1_000_000;
    rig.arrive(1, 1);
    assert_eq!(rig.running(), [1]);
    rig.arrive(2, 1);
    // One waits, and takes the turn of those in front of it.
    let last = u64::from(LOSSES_BEHIND) + 2;
    (2..last).for_each(|sequence| rig.arrive(1, sequence));
    rig.finish(1);
    assert_eq!(rig.running(), [1], "a burst is no overload: work of the level goes first");
    (last..last + 2).for_each(|sequence| rig.arrive(1, sequence));
    rig.finish(1);
    assert_eq!(rig.running(), [2], "what it has made is finished");
    rig.arrive(0, 1);
    rig.finish(2);
    assert_eq!(rig.running(), [0], "the most urgent level waits for nobody");
    rig.finish(0);
    assert_eq!(rig.running(), [1], "and less urgent levels take nothing in meanwhile");
    rig.finish(1);
    rig.finish(2);
    assert_eq!(rig.running(), [3], "until nothing waits");
}

#[test]
fn what_would_come_too_late_at_the_pace_of_late_is_not_begun_where_a_level_does_not_keep_up() {
    for losses in [0, LOSSES_BEHIND] {
        // Of one core, 1 ms is declared for both together; a round takes 4 ms, for others use the core.
        let graph = {
            let chain = chain(&[500, 500], &[(1, 0)]);
            let valid = Supplier { validity: Nanos::from_millis(10).into(), ..supplier("S", Shape::NUMBER, 10) };
            Graph::new("g".to_owned(), vec![valid], chain.operators().to_vec(), chain.outputs().to_vec()).expect("it is a graph")
        };
        let mut rig = Rig::with(graph, Policy { cores: 1, is_preemptive: false, replaces_queued: true });
        rig.now_ns = 1_000 * 1_000 * US;
        for sequence in 1..=40 {
            rig.arrive(0, sequence);
            for _ in 0..2 {
                rig.now_ns += 2_000 * US;
                rig.finish_all_once();
            }
        }
        (0..losses).for_each(|_| rig.machine.levels[0].pace.lose(rig.now_ns));
        let created_ns = rig.now_ns - 7_000 * US;
        rig.arrive_of(0, 41, created_ns).expect("it is valid for 3 ms more");
        assert_eq!(rig.running().is_empty(), losses > 0, "with {losses} losses");
        assert_eq!(rig.shed, if losses > 0 { vec![(0, 41, Invalid::TooLate)] } else { vec![] });
    }
}

#[test]
fn names_are_once_in_overload_too() {
    let mut rig = behind();
    rig.now_ns = 1_000_000;
    for sequence in 1..200 {
        (0..3).for_each(|supplier| rig.arrive(supplier, sequence));
        if sequence % 3 == 0 {
            rig.finish_all_once();
        }
    }
    rig.finish_all();
    let mut names = BTreeSet::new();
    assert!(rig.delivered_by.iter().all(|named| names.insert(*named)), "{:?}", rig.delivered_by);
    assert_eq!(rig.machine.slots_held(), 0);
}
