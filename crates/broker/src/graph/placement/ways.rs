//! Whether results of operators that any event starts have names on every edge.
//!
//! Of such an operator the way on which a result came is part of its name, and of the parts before one way is kept ([`origin`](super::origin)). So such operators may be on the way of a result in one part
//! that is not the last; where a second part adds a way and its results go on, they could not be told apart.

use super::{
    super::spec::{Graph, OperatorId, Source},
    Placement,
};

/// What is known of the ways of a source's results: which of these there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Ways {
    /// One was added in a part before this one.
    is_earlier: bool,
    /// One was added in this part.
    is_here: bool,
}

/// An operator whose results are needed on another edge and could not be told apart there; none where all can.
pub fn nameless(graph: &Graph, placement: &Placement) -> Option<OperatorId> {
    let mut all: Vec<Vec<Ways>> = vec![Vec::new(); graph.operators().len()];
    for id in graph.order() {
        let (spec, edge) = (graph.operator(*id), placement.edge(Source::Operator(*id)));
        let mut ways = Vec::new();
        for (place, input) in spec.leading().enumerate() {
            let from = spec.inputs[input].from;
            let before = match from {
                Source::Supplier(_) => vec![Ways::default()],
                Source::Operator(upstream) => all[upstream.index()].clone(),
            };
            for Ways { is_earlier, is_here } in before {
                let here = if placement.edge(from) == edge {
                    Ways { is_earlier, is_here }
                } else {
                    Ways { is_earlier: is_earlier || is_here, is_here: false }
                };
                // The first input's way is no part of the name.
                ways.push(Ways { is_here: here.is_here || place > 0, ..here });
            }
        }
        ways.sort_unstable();
        ways.dedup();
        all[id.index()] = ways;
    }
    let is_nameless = |source: &Source| match source {
        Source::Operator(id) => all[id.index()].iter().any(|ways| ways.is_earlier && ways.is_here),
        Source::Supplier(_) => false,
    };
    placement.crossing(graph).into_iter().find(is_nameless).and_then(|source| match source {
        Source::Operator(id) => Some(id),
        Source::Supplier(_) => None,
    })
}
