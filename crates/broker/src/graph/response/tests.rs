//! Bounds by hand, and by running.

use super::{
    super::{Edge, OperatorSpec, Output, Shape, Source, Supplier, SupplierId, Trigger, Use, testing::*},
    *,
};

fn workers(cores: u32, is_preemptive: bool) -> Workers {
    Workers { cores: NonZeroU32::new(cores).expect("there is one"), hop: Nanos::ZERO, is_preemptive }
}

fn responses_us(graph: &Graph, workers: &Workers) -> Vec<Option<i64>> {
    Analysis::of(graph, workers).outputs.iter().map(|bound| bound.response.map(Nanos::micros_up)).collect()
}

#[test]
fn a_way_alone_takes_its_costs() {
    let graph = chain(&[100, 200, 300], &[(0, 0), (2, 0)]);
    assert_eq!(responses_us(&graph, &workers(1, true)), [Some(600), Some(600)], "of one level any round may be in front");
    assert_eq!(responses_us(&graph, &workers(2, true)), [Some(350), Some(600)], "the other core takes a half of the others");
    let urgent = chain(&[100, 200, 300], &[(0, 0), (2, 1)]);
    assert_eq!(responses_us(&urgent, &workers(1, true)), [Some(100), Some(600)]);
    assert_eq!(responses_us(&urgent, &workers(1, false)), [Some(400), Some(600)], "a less urgent round of 300 us is not stopped");
}

#[test]
fn two_levels_on_one_core_are_those_of_the_textbook() {
    // T = 4, C = 1 above T = 6, C = 2 above T = 12, C = 3 (ms): responses 1, 3 and 10.
    let graph = independent(&[(4, 1_000, 0), (6, 2_000, 1), (12, 3_000, 2)]);
    assert_eq!(responses_us(&graph, &workers(1, true)), [Some(1_000), Some(3_000), Some(10_000)]);
}

/// Suppliers of (period in ms, cost in us, level), each with an operator and an output of its own.
fn independent(tasks: &[(i64, i64, u8)]) -> Graph {
    let suppliers = tasks.iter().enumerate().map(|(at, (period_ms, ..))| supplier(&format!("S{at}"), Shape::NUMBER, *period_ms));
    let operators = tasks.iter().enumerate().map(|(at, (_, cost_us, _))| OperatorSpec {
        cost: Nanos::from_micros(*cost_us),
        ..operator(&format!("o{at}"), Shape::NUMBER, &[Source::Supplier(SupplierId::of(at))])
    });
    let outputs = tasks.iter().enumerate().map(|(at, (.., level))| output(&format!("T{at}"), at, *level));
    let (suppliers, operators, outputs): (Vec<Supplier>, Vec<OperatorSpec>, Vec<Output>) =
        (suppliers.collect(), operators.collect(), outputs.collect());
    Graph::new("independent".to_owned(), suppliers, operators, outputs).expect("it is a graph")
}

#[test]
fn a_level_that_is_full_has_no_bound_and_nothing_below_it() {
    let graph = independent(&[(4, 1_000, 0), (4, 3_000, 1), (100, 10, 2)]);
    let analysis = Analysis::of(&graph, &workers(1, true));
    let responses: Vec<_> = analysis.levels.iter().map(|level| (level.load_above_ppm, level.response.is_some())).collect();
    assert_eq!(responses, [(250_000, true), (1_000_000, false), (1_000_100, false)]);
    assert_eq!(responses_us(&graph, &workers(1, true)), [Some(1_000), None, None]);
    assert!(!analysis.is_feasible() && Analysis::of(&graph, &workers(2, true)).is_feasible());
}

#[test]
fn rounds_are_counted_by_what_starts_them() {
    let source = |n| Source::Supplier(SupplierId::of(n));
    let windowed = |usage| Edge { from: source(0), usage };
    let step = |n| std::num::NonZeroU16::new(n).expect("it is not 0");
    let any = OperatorSpec { trigger: Trigger::Any, ..operator("any", Shape::NUMBER, &[source(0), source(1)]) };
    let window =
        OperatorSpec { inputs: vec![windowed(Use::Window { events: step(4), step: step(4) })], ..operator("window", Shape::NUMBER, &[]) };
    let latest = OperatorSpec {
        inputs: vec![windowed(Use::Latest), Edge { from: source(1), usage: Use::Consume }],
        ..operator("latest", Shape::NUMBER, &[])
    };
    let both = operator("both", Shape::NUMBER, &[source(0), source(1)]);
    let suppliers = vec![supplier("A", Shape::NUMBER, 5), supplier("B", Shape::NUMBER, 20)];
    let outputs = (0..4).map(|at| output(&format!("T{at}"), at, 0)).collect();
    let graph = Graph::new("g".to_owned(), suppliers, vec![any, window, latest, both], outputs).expect("it is a graph");
    let mut rounds = Rounds::default();
    let mut of = |within_ms| {
        rounds.count(&graph, Nanos::from_millis(within_ms));
        [0, 1, 2, 3].map(|operator| rounds.of(OperatorId::of(operator)))
    };
    assert_eq!(of(1), [2, 1, 1, 1], "one event of each");
    assert_eq!(of(20), [5, 1, 1, 2], "an event of B that had waited, and another one");
    assert_eq!(of(40), [10, 2, 2, 3]);
    let rates = [0, 1, 2, 3].map(|operator| Rounds::rate_per_s(&graph, OperatorId::of(operator)));
    assert_eq!(rates, [250.0, 50.0, 50.0, 50.0]);
}

#[test]
fn the_smallest_changes_are_told_and_do() {
    let mut graph = independent(&[(4, 1_000, 0), (6, 2_000, 1), (12, 3_000, 2)]);
    let outputs =
        graph.outputs().iter().zip([1, 3, 7]).map(|(output, ms)| Output { deadline: Nanos::from_millis(ms).into(), ..output.clone() });
    graph = Graph::new("g".to_owned(), graph.suppliers().to_vec(), graph.operators().to_vec(), outputs.collect()).expect("it is a graph");
    let found = ways(&graph, &workers(1, true));
    let two = NonZeroU32::new(2).expect("it is not 0");
    let percent = match &found[..] {
        [deadlines, cores, costs] => {
            assert_eq!(deadlines, &[Change::Deadline { output: 2, deadline: Nanos::from_millis(10) }]);
            assert_eq!(cores, &[Change::Cores(two)]);
            match costs[..] {
                [Change::CostPercent(percent)] => percent,
                _ => panic!("{costs:?}"),
            }
        }
        _ => panic!("{found:?}"),
    };
    assert!((1..100).contains(&percent), "{percent}");
    assert_eq!(ways(&graph, &workers(2, true)), Vec::<Vec<Change>>::new());
}
