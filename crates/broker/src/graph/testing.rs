//! Graphs for tests.

use super::*;
use crate::{
    timing::{Nanos, Span},
    topic::Level,
};

pub(super) fn supplier(topic: &str, shape: Shape, period_ms: i64) -> Supplier {
    Supplier { topic: topic.to_owned(), shape, period: Nanos::from_millis(period_ms), validity: Span::Infinite, jitter: Nanos::ZERO }
}

pub(super) fn operator(name: &str, shape: Shape, from: &[Source]) -> OperatorSpec {
    OperatorSpec {
        name: name.to_owned(),
        inputs: from.iter().map(|from| Edge { from: *from, usage: Use::Consume }).collect(),
        trigger: Trigger::All,
        shape,
        relative: Vec::new(),
        on_invalid: OnInvalid::Shed,
        cost: Nanos::ZERO,
    }
}

pub(super) fn output(topic: &str, from: usize, level: u8) -> Output {
    let level = Level::new(level).expect("there is one");
    Output { topic: topic.to_owned(), from: OperatorId::of(from), level, deadline: Span::Infinite }
}

/// A supplier of one number every 10 ms and operators in a row, each with its cost in microseconds; outputs are (operator, level).
pub(super) fn chain(costs_us: &[i64], outputs: &[(usize, u8)]) -> Graph {
    let operators = costs_us.iter().enumerate().map(|(at, cost_us)| {
        let from = if at == 0 { Source::Supplier(SupplierId::of(0)) } else { Source::Operator(OperatorId::of(at - 1)) };
        OperatorSpec { cost: Nanos::from_micros(*cost_us), ..operator(&format!("o{at}"), Shape::NUMBER, &[from]) }
    });
    let operators = operators.collect();
    let outputs = outputs.iter().map(|(from, level)| output(&format!("T{from}"), *from, *level)).collect();
    Graph::new("chain".to_owned(), vec![supplier("S", Shape::NUMBER, 10)], operators, outputs).expect("it is a graph")
}

/// The thesis' Figure 2.2 as its text gives it: o5 needs o1, o6 needs o1 and o2, o3 needs o2, o7 needs o1, o3, o4 and o5; consumers at o5 (high),
/// o6 (middle), o7 (low) and o4 (low).
pub(super) fn figure_2_2() -> Graph {
    let s = |n| Source::Supplier(SupplierId::of(n));
    let o = |n: usize| Source::Operator(OperatorId::of(n - 1));
    let inputs = [vec![s(0), s(1)], vec![s(2)], vec![o(2)], vec![s(3)], vec![o(1)], vec![o(1), o(2)], vec![o(1), o(3), o(4), o(5)]];
    let cost = Nanos::from_micros(100);
    let operators =
        inputs.iter().enumerate().map(|(at, inputs)| OperatorSpec { cost, ..operator(&format!("o{}", at + 1), Shape::NUMBER, inputs) });
    let operators = operators.collect();
    let suppliers = (1..=4).map(|n| supplier(&format!("S{n}"), Shape::NUMBER, 10)).collect();
    let outputs = vec![output("C1", 4, 0), output("C2", 5, 1), output("C3", 6, 2), output("C4", 3, 2)];
    Graph::new("figure".to_owned(), suppliers, operators, outputs).expect("it is a graph")
}
