//! What follows from the parts of a graph, and which parts make none.

use super::{
    super::{Cycle, Element, testing::*},
    *,
};

#[test]
fn levels_flow_upstream_from_the_outputs() {
    // Figure 2.2 of the thesis.
    let graph = figure_2_2();
    let numbers: Vec<u8> = (0..7).map(|operator| graph.level(OperatorId::of(operator)).get()).collect();
    assert_eq!(numbers, [0, 1, 2, 2, 0, 1, 2], "o1 and o5 are high, o2 and o6 middle, o3, o4, o7 low");
    let suppliers: Vec<u8> = (0..graph.suppliers().len()).map(|supplier| graph.supplier_level(SupplierId::of(supplier)).get()).collect();
    assert_eq!(suppliers, [0, 0, 1, 2], "a supplier's events are as urgent as their most urgent reader");
}

#[test]
fn what_is_left_to_do_is_the_way_to_the_nearest_output() {
    let graph = chain(&[10, 20, 30], &[(0, 0), (2, 1)]);
    let micros: Vec<i64> = (0..3).map(|operator| graph.remaining(OperatorId::of(operator)).micros()).collect();
    assert_eq!(micros, [10, 50, 30], "the first operator has an output of its own");
}

#[test]
fn parts_that_make_no_graph_are_told() {
    let shape = Shape::new(Element::F64, super::super::Count::Exactly(1)).expect("it is one");
    let operator = |name: &str, from: &[Source]| operator(name, shape, from);
    let (s, o) = (|n| Source::Supplier(SupplierId::of(n)), |n| Source::Operator(OperatorId::of(n)));
    let parts = |operators: Vec<OperatorSpec>, outputs: Vec<Output>| {
        Graph::new("g".to_owned(), vec![supplier("A", shape, 10), supplier("B", shape, 10)], operators, outputs)
    };
    let cases = [
        (
            parts(vec![operator("x", &[o(1), s(0), s(1)]), operator("y", &[o(0)])], vec![output("X", 0, 0)]),
            GraphFault::Cycle(Cycle(vec![OperatorId::of(1), OperatorId::of(0)])),
        ),
        (
            parts(vec![operator("x", &[s(0), s(1)]), operator("y", &[o(0)])], vec![output("X", 0, 0)]),
            GraphFault::LeadsNowhere(OperatorId::of(1)),
        ),
        (parts(vec![operator("x", &[s(1)])], vec![output("X", 0, 0)]), GraphFault::Unheard(SupplierId::of(0))),
        (parts(vec![operator("x", &[s(0), s(1)])], vec![output("A", 0, 0)]), GraphFault::TopicTaken(0)),
        (parts(vec![operator("x", &[s(0), s(1)])], vec![output("X", 0, 0), output("X", 0, 1)]), GraphFault::TopicTaken(1)),
    ];
    for (found, fault) in cases {
        assert_eq!(found, Err(vec![fault]));
    }
    let mut wide = operator("x", &[s(0), s(1)]);
    let events = NonZeroU16::new(64).expect("it is not 0");
    wide.inputs[0].usage = Use::Window { events, step: events };
    assert_eq!(parts(vec![wide], vec![output("X", 0, 0)]), Err(vec![GraphFault::TooManyEvents(OperatorId::of(0))]));
}

#[test]
fn an_operator_that_any_event_starts_has_a_stream_for_each_way_to_it() {
    let shape = Shape::NUMBER;
    let (s, o) = (|n| Source::Supplier(SupplierId::of(n)), |n| Source::Operator(OperatorId::of(n)));
    let any = |name: &str, from: &[Source]| OperatorSpec { trigger: Trigger::Any, ..operator(name, shape, from) };
    let join = OperatorSpec {
        inputs: vec![Edge { from: s(0), usage: Use::Latest }, Edge { from: o(1), usage: Use::Consume }],
        ..operator("j", shape, &[])
    };
    let operators = vec![any("a", &[s(0), s(1), s(0)]), any("b", &[o(0), s(1)]), join];
    let graph = Graph::new("g".to_owned(), vec![supplier("A", shape, 1), supplier("B", shape, 1)], operators, vec![output("X", 2, 0)])
        .expect("it is one");
    assert_eq!([0, 1, 2].map(|operator| graph.leads(OperatorId::of(operator))), [3, 4, 4]);
    assert_eq!(graph.operator(OperatorId::of(2)).leading().collect::<Vec<_>>(), [1]);
}
