//! Where operators would better run.
//!
//! A search downhill, from the places that are declared and from the place of each operator's first input: operators are moved alone, with all that only they need, or with all
//! that needs them, as long as that is better. Better is, in this order: fewer outputs and links that may be late, fewer events a second from edge to edge, shorter bounds of
//! all outputs together, less load on the edge that has most of it. So operators that share what they need stay together, and low levels that share nothing move to where there is room (Wang 2019, section 2.4.4).
//! What is found is good, not the best there is.

use super::{
    super::{
        response::rate_per_s,
        spec::{Graph, OperatorId, Source},
    },
    EdgeId, Link, Placement,
    bound::PlacedAnalysis,
    ways::nameless,
};
use crate::timing::Span;

/// Placements that a search looks at; then it stays with the best so far.
pub const PLACEMENTS_MAX: usize = 2_000;

/// What is to be small, the first one before all others.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Price {
    /// Outputs and links that may be late.
    pub late: usize,
    /// Events a second that go from edge to edge.
    pub events_per_s: f64,
    /// Bounds of all outputs together, in seconds.
    pub bounds_s: f64,
    /// Load of the edge that has most of it, in millionths of its cores.
    pub load_ppm: f64,
}

impl Price {
    /// The price of a placement.
    pub fn of(graph: &Graph, placement: &Placement) -> Self {
        let placed = PlacedAnalysis::of(graph, placement);
        let load = placed.parts.iter().zip(&placed.analyses).map(|(part, analysis)| {
            let cores = placement.hosts[part.edge.index()].workers.cores.get();
            analysis.levels.last().map_or(0, |level| level.load_above_ppm) as f64 / f64::from(cores)
        });
        Self {
            late: placed.outputs.iter().chain(&placed.links).filter(|bound| !bound.is_feasible).count(),
            events_per_s: over(graph, placement),
            bounds_s: placed.outputs.iter().filter_map(|bound| bound.response).map(|bound| bound.get() as f64 / 1e9).sum(),
            load_ppm: load.fold(0.0, f64::max),
        }
    }
}

/// Events a second that go from edge to edge; one that goes to two edges counts twice.
fn over(graph: &Graph, placement: &Placement) -> f64 {
    let rate = |source: Source| match source {
        Source::Supplier(id) => 1e9 / graph.suppliers()[id.index()].period.get() as f64,
        Source::Operator(id) => rate_per_s(graph, id),
    };
    let crossing = placement.crossing(graph).into_iter().map(|source| {
        let mut edges: Vec<EdgeId> = graph.readers(source).map(|(reader, _)| placement.operators[reader.index()]).collect();
        edges.sort_unstable();
        edges.dedup();
        rate(source) * edges.iter().filter(|edge| **edge != placement.edge(source)).count() as f64
    });
    // An empty sum of floats is -0.
    crossing.fold(0.0, |sum, rate| sum + rate)
}

/// A better placement of the operators, with links for what goes over then; none where the search finds no better one. `topic` names the topic of a link that is not declared.
pub fn better(graph: &Graph, placement: &Placement, topic: impl Fn(Source) -> String) -> Option<(Placement, Price)> {
    let mut search = Search { graph, topic, left: PLACEMENTS_MAX };
    let declared = Price::of(graph, placement);
    let near = search.near_their_suppliers(placement);
    let found = [placement.clone(), near].map(|start| search.downhill(start));
    let best = found.into_iter().reduce(|best, other| if other.1 < best.1 { other } else { best })?;
    (best.1 < declared).then_some(best)
}

struct Search<'g, T> {
    graph: &'g Graph,
    topic: T,
    /// Placements that may still be looked at.
    left: usize,
}

impl<T: Fn(Source) -> String> Search<'_, T> {
    /// Each operator where its first input is made.
    fn near_their_suppliers(&self, placement: &Placement) -> Placement {
        let mut near = placement.clone();
        for id in self.graph.order() {
            near.operators[id.index()] = near.edge(self.graph.operator(*id).inputs[0].from);
        }
        self.linked(near)
    }

    /// With links for all that goes over, and no others.
    fn linked(&self, mut placement: Placement) -> Placement {
        let links = placement.crossing(self.graph).into_iter().map(|from| {
            let declared = placement.links.iter().find(|link| link.from == from).cloned();
            declared.unwrap_or_else(|| Link { from, topic: (self.topic)(from), deadline: Span::Infinite, loss_tolerance: None })
        });
        placement.links = links.collect();
        placement
    }

    /// Takes the best move as long as there is a good one.
    fn downhill(&mut self, start: Placement) -> (Placement, Price) {
        let mut price = Price::of(self.graph, &start);
        let mut best = start;
        loop {
            let mut next: Option<(Placement, Price)> = None;
            for operators in self.groups() {
                for edge in (0..best.hosts.len()).map(EdgeId::of) {
                    if operators.iter().all(|id| best.operators[id.index()] == edge) {
                        continue;
                    }
                    if self.left == 0 {
                        return next.unwrap_or((best, price));
                    }
                    self.left -= 1;
                    let mut moved = best.clone();
                    operators.iter().for_each(|id| moved.operators[id.index()] = edge);
                    let moved = self.linked(moved);
                    if nameless(self.graph, &moved).is_some() {
                        continue;
                    }
                    let found = Price::of(self.graph, &moved);
                    if found < next.as_ref().map_or(price, |(_, price)| *price) {
                        next = Some((moved, found));
                    }
                }
            }
            match next {
                Some((placement, less)) => (best, price) = (placement, less),
                None => return (best, price),
            }
        }
    }

    /// What is moved together: each operator alone, with all that is needed for it alone, and with all that needs it.
    fn groups(&self) -> Vec<Vec<OperatorId>> {
        let mut groups: Vec<Vec<OperatorId>> = Vec::new();
        for id in self.graph.order() {
            groups.extend([vec![*id], self.needed_alone(*id), self.behind(*id)]);
        }
        groups.iter_mut().for_each(|group| group.sort_unstable());
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// An operator with those upstream of which nothing else comes.
    fn needed_alone(&self, id: OperatorId) -> Vec<OperatorId> {
        let mut found = vec![id];
        for upstream in self.graph.order().iter().rev() {
            let mut readers = self.graph.readers(Source::Operator(*upstream)).peekable();
            let is_written = self.graph.outputs().iter().any(|output| output.from == *upstream);
            if !is_written && readers.peek().is_some() && readers.all(|(reader, _)| found.contains(&reader)) {
                found.push(*upstream);
            }
        }
        found
    }

    /// An operator with those downstream of it.
    fn behind(&self, id: OperatorId) -> Vec<OperatorId> {
        let mut found = vec![id];
        for downstream in self.graph.order() {
            let needs =
                |operator: &OperatorId| self.graph.operator(*downstream).inputs.iter().any(|edge| edge.from == Source::Operator(*operator));
            if !found.contains(downstream) && found.iter().any(needs) {
                found.push(*downstream);
            }
        }
        found
    }
}
