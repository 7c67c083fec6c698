//! Parts, bounds and suggestions by hand.

use std::num::NonZeroU32;

use super::{
    super::{Shape, response::Analysis, testing::*},
    bound::PlacedAnalysis,
    suggestion::{Price, better},
    *,
};

fn host(name: &str, cores: u32, way_ms: i64) -> Host {
    let workers = Workers { cores: NonZeroU32::new(cores).expect("there is one"), hop: Nanos::ZERO, is_preemptive: true };
    Host { name: name.to_owned(), workers, way: Nanos::from_millis(way_ms) }
}

fn placed(graph: &Graph, operators: &[usize], links: &[usize]) -> Placement {
    let link = |operator: &usize| Link {
        from: Source::Operator(OperatorId::of(*operator)),
        topic: format!("OVER{operator}"),
        deadline: Span::Infinite,
        loss_tolerance: None,
    };
    Placement {
        hosts: vec![host("press", 1, 2), host("office", 1, 3)],
        suppliers: vec![EdgeId::of(0); graph.suppliers().len()],
        operators: operators.iter().map(|edge| EdgeId::of(*edge)).collect(),
        links: links.iter().map(link).collect(),
    }
}

fn micros(bounds: &[crate::graph::response::Bound]) -> Vec<Option<i64>> {
    bounds.iter().map(|bound| bound.response.map(Nanos::micros_up)).collect()
}

#[test]
fn each_edge_has_an_ordinary_graph() {
    // S -> o0 -> o1 -> o2, and o0 is an output besides.
    let graph = chain(&[100, 200, 300], &[(0, 0), (2, 3)]);
    let parts = parts(&graph, &placed(&graph, &[0, 0, 1], &[1]));
    let [press, office] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!((press.exits.as_slice(), office.exits.as_slice()), (&[Exit::Output(0), Exit::Link(0)][..], &[Exit::Output(1)][..]));
    assert_eq!((press.entries.as_slice(), office.entries.as_slice()), (&[Entry::Own(SupplierId::of(0))][..], &[Entry::Link(0)][..]));
    let topics: Vec<&str> = press.graph.outputs().iter().map(|output| output.topic.as_str()).collect();
    assert_eq!(topics, ["T0", "OVER1"]);
    assert_eq!(press.graph.outputs()[1].level.get(), 3, "as urgent as what needs it elsewhere");
    let over = &office.graph.suppliers()[0];
    assert_eq!((over.topic.as_str(), over.period, over.jitter), ("OVER1", Nanos::from_millis(10), Nanos::ZERO));
}

#[test]
fn a_graph_on_one_edge_has_the_bounds_that_it_had() {
    let graph = figure_2_2();
    let one = placed(&graph, &[0; 7], &[]);
    let whole = Analysis::of(&graph, &one.hosts[0].workers);
    assert_eq!(PlacedAnalysis::of(&graph, &one).outputs, whole.outputs);
    assert_eq!(parts(&graph, &one)[0].graph.operators(), graph.operators());
}

#[test]
fn bounds_add_up_from_edge_to_edge() {
    let graph = chain(&[100, 200, 300], &[(0, 0), (2, 3)]);
    let found = PlacedAnalysis::of(&graph, &placed(&graph, &[0, 0, 1], &[1]));
    // At the press: T0 above the link, 100 us, and 300 us for both. Then 2 ms of way, and 300 us at the office.
    assert_eq!(micros(&found.links), [Some(2_300)]);
    assert_eq!(micros(&found.outputs), [Some(100), Some(2_600)]);
    assert!(found.is_feasible());
}

#[test]
fn what_comes_late_comes_in_bunches() {
    // What is 24 ms under way and made every 10 ms: three events may be there at once.
    let graph = chain(&[100, 300], &[(1, 0)]);
    let mut placement = placed(&graph, &[0, 1], &[0]);
    placement.hosts[0].way = Nanos::from_millis(24);
    let found = PlacedAnalysis::of(&graph, &placement);
    assert_eq!(micros(&found.links), [Some(24_100)]);
    assert_eq!(micros(&found.outputs), [Some(24_100 + 3 * 300)]);
}

#[test]
fn parts_that_wait_for_each_other_are_as_late_as_both() {
    // o0 at the press, o1 at the office, o2 at the press again.
    let graph = chain(&[100, 200, 300], &[(2, 0)]);
    let found = PlacedAnalysis::of(&graph, &placed(&graph, &[0, 1, 0], &[0, 1]));
    // The press: an event of each supplier at once, 400 us. 2 ms of way, 200 us, 3 ms, 400 us.
    assert_eq!(micros(&found.links), [Some(2_400), Some(5_600)]);
    assert_eq!(micros(&found.outputs), [Some(6_000)]);
}

#[test]
fn where_a_part_has_too_much_to_do_nothing_behind_it_has_a_bound() {
    let graph = chain(&[11_000, 100], &[(1, 0)]);
    let found = PlacedAnalysis::of(&graph, &placed(&graph, &[0, 1], &[0]));
    assert_eq!((micros(&found.links), micros(&found.outputs)), (vec![None], vec![None]));
    assert!(!found.is_feasible());
}

#[test]
fn results_of_operators_that_any_event_starts_go_on_from_one_part_only() {
    use super::{super::spec::Trigger, ways::nameless};
    // A and B -> o0, o0 and C -> o1, o1 -> o2.
    let suppliers = ["A", "B", "C"].map(|topic| supplier(topic, Shape::NUMBER, 10)).into();
    let [a, b, c] = [0, 1, 2].map(|at| Source::Supplier(SupplierId::of(at)));
    let [o0, o1] = [0, 1].map(|at| Source::Operator(OperatorId::of(at)));
    let any = |name: &str, inputs: &[Source]| OperatorSpec { trigger: Trigger::Any, ..operator(name, Shape::NUMBER, inputs) };
    let graph = |second: OperatorSpec| {
        let operators = vec![any("o0", &[a, b]), second, operator("o2", Shape::NUMBER, &[o1])];
        Graph::new("g".to_owned(), Vec::clone(&suppliers), operators, vec![output("T", 2, 0)]).expect("it is a graph")
    };
    let found = |graph: &Graph, operators: &[usize]| nameless(graph, &placed(graph, operators, &[0, 1])).map(OperatorId::index);
    let twice = graph(any("o1", &[c, o0]));
    assert_eq!(found(&twice, &[0, 1, 0]), Some(1), "both o0 at the press and o1 at the office add a way, and o2 is at the press");
    assert_eq!(found(&twice, &[0, 1, 1]), None, "the second way goes nowhere");
    assert_eq!(found(&twice, &[0, 0, 1]), None, "both are on one edge");
    let first = graph(any("o1", &[o0, c]));
    assert_eq!(found(&first, &[0, 1, 0]), None, "the first input's way is no part of the name");
    let once = graph(operator("o1", Shape::NUMBER, &[o0, c]));
    assert_eq!(found(&once, &[0, 1, 0]), None);
}

#[test]
fn several_ways_on_which_any_event_starts_a_round_make_a_burst() {
    use super::super::spec::Trigger;
    let suppliers = vec![supplier("A", Shape::NUMBER, 10), supplier("B", Shape::NUMBER, 10)];
    let sources = [0, 1].map(|at| Source::Supplier(SupplierId::of(at)));
    let any = OperatorSpec { trigger: Trigger::Any, ..operator("any", Shape::NUMBER, &sources) };
    let last = OperatorSpec { cost: Nanos::from_micros(100), ..operator("last", Shape::NUMBER, &[Source::Operator(OperatorId::of(0))]) };
    let graph = Graph::new("g".to_owned(), suppliers, vec![any, last], vec![output("T", 1, 0)]).expect("it is a graph");
    let found = PlacedAnalysis::of(&graph, &placed(&graph, &[0, 1], &[0]));
    let office = &found.parts[1].graph.suppliers()[0];
    assert_eq!(office.period, Nanos::from_millis(5), "an event every 5 ms in the long run");
    // One more at once, and 2 ms of way.
    assert_eq!(office.jitter, Nanos::from_millis(7));
    assert_eq!(micros(&found.outputs), [Some(2_200)], "both may be there at once");
}

#[test]
fn what_shares_stays_together_and_a_low_level_goes_where_there_is_room() {
    // Two low levels of 6 ms each in 10 ms: one core is too little for both; o0 is what both need.
    let o = |n: usize| Source::Operator(OperatorId::of(n));
    let costs = [100, 6_000, 6_000, 100];
    let inputs = [Source::Supplier(SupplierId::of(0)), o(0), o(0), o(0)];
    let operators = costs.iter().zip(inputs).enumerate().map(|(at, (cost_us, from))| OperatorSpec {
        cost: Nanos::from_micros(*cost_us),
        ..operator(&format!("o{at}"), Shape::NUMBER, &[from])
    });
    let outputs = vec![output("LOW1", 1, 5), output("LOW2", 2, 6), output("HIGH", 3, 0)];
    let graph = Graph::new("g".to_owned(), vec![supplier("S", Shape::NUMBER, 10)], operators.collect(), outputs).expect("it is a graph");
    let placement = placed(&graph, &[0; 4], &[]);
    assert!(!PlacedAnalysis::of(&graph, &placement).is_feasible());
    let (found, price) = better(&graph, &placement, |_| "OVER".to_owned()).expect("one of the low ones can go");
    assert_eq!(price.late, 0);
    assert_eq!((found.operators[0], found.operators[3]), (EdgeId::of(0), EdgeId::of(0)), "the urgent one stays with what it needs");
    assert_ne!(found.operators[1], found.operators[2], "one of the two goes");
    assert_eq!(found.links.len(), 1, "one topic goes over: {:?}", found.links);
    assert_eq!(better(&graph, &found, |_| "OVER".to_owned()), None, "there is nothing better: {:?}", Price::of(&graph, &found));
}
