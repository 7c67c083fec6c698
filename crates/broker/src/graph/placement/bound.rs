//! How long an output of a placed graph takes at the worst, from edge to edge.
//!
//! Each part is analysed as any graph ([`Analysis`]). What comes over a link may be late by all that it went through: the longest time of its operator's part, of its way, and of
//! what that part had waited for (Tindell and Clark, *Holistic schedulability analysis for distributed hard real-time systems*, 1994). Lateness and bounds follow from each
//! other, so the least that agree are searched for, from none on; where they do not agree, because parts keep each other waiting, there is no bound.

use super::{
    super::{
        response::{Analysis, Bound, awaited},
        spec::{Graph, OperatorId, Source, Supplier},
    },
    Entry, Exit, Part, Placement, parts,
};
use crate::timing::{Nanos, Span};

/// Steps of the search.
const STEPS_MAX: usize = 256;

/// What is known of a placed graph beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedAnalysis {
    /// What each edge runs, with how late what comes over links may be.
    pub parts: Vec<Part>,
    /// In the order of the parts.
    pub analyses: Vec<Analysis>,
    /// In the order of the graph's outputs: from the latest event that a result needs to the result, wherever they are.
    pub outputs: Vec<Bound>,
    /// In the order of the links: from the latest event that it needs until it is at the other edge.
    pub links: Vec<Bound>,
}

impl PlacedAnalysis {
    /// Analyses a graph.
    pub fn of(graph: &Graph, placement: &Placement) -> Self {
        let plain = parts(graph, placement);
        // A supplier's events have nothing but their way.
        let mut arrivals: Vec<Option<Nanos>> =
            placement.links.iter().map(|link| matches!(link.from, Source::Supplier(_)).then(|| way(placement, link.from))).collect();
        let known = arrivals.clone();
        for arrival in &mut arrivals {
            arrival.get_or_insert(Nanos::ZERO);
        }
        for _ in 0..STEPS_MAX {
            let step = Step::of(&plain, placement, &arrivals);
            let next: Vec<Option<Nanos>> = step.links(placement).into_iter().zip(&known).map(|(found, known)| known.or(found)).collect();
            if next == arrivals {
                return step.finish(graph, placement);
            }
            arrivals = next;
        }
        // They grow without an end: none of what comes from an operator has a bound.
        let step = Step::of(&plain, placement, &known);
        step.finish(graph, placement)
    }

    /// Whether every output and every link is in time.
    pub fn is_feasible(&self) -> bool {
        self.outputs.iter().chain(&self.links).all(|bound| bound.is_feasible)
    }
}

/// Longest time from an edge to another one.
fn way(placement: &Placement, from: Source) -> Nanos {
    placement.hosts[placement.edge(from).index()].way
}

/// Bounds that follow from how late each link is at the most; none where that has no bound.
struct Step<'a> {
    arrivals: &'a [Option<Nanos>],
    parts: Vec<Part>,
    analyses: Vec<Analysis>,
}

impl<'a> Step<'a> {
    fn of(plain: &[Part], placement: &Placement, arrivals: &'a [Option<Nanos>]) -> Self {
        let parts: Vec<Part> = plain.iter().map(|part| late(part, arrivals)).collect();
        let analyses = parts.iter().map(|part| Analysis::of(&part.graph, &placement.hosts[part.edge.index()].workers)).collect();
        Self { arrivals, parts, analyses }
    }

    /// The bound of an output of a part, from the latest event on; none where anything that comes into the part has none, for it may come at any time in any number.
    fn whole(&self, part: usize, output: usize) -> Option<Nanos> {
        let (analysis, part) = (&self.analyses[part], &self.parts[part]);
        let arrival = |entry: &Entry| match entry {
            Entry::Own(_) => Some(Nanos::ZERO),
            Entry::Link(link) => self.arrivals[*link],
        };
        let arrivals: Vec<Nanos> = part.entries.iter().map(arrival).collect::<Option<_>>()?;
        let from: OperatorId = part.graph.outputs()[output].from;
        let latest = awaited(&part.graph, from).into_iter().map(|supplier| arrivals[supplier.index()]).max().unwrap_or_default();
        analysis.outputs[output].response.map(|response| latest + response)
    }

    /// When what goes over each link is there; none of those that are suppliers' events.
    fn links(&self, placement: &Placement) -> Vec<Option<Nanos>> {
        let mut found = vec![None; placement.links.len()];
        for (number, part) in self.parts.iter().enumerate() {
            for (output, exit) in part.exits.iter().enumerate() {
                if let Exit::Link(link) = exit {
                    found[*link] = self.whole(number, output).map(|whole| whole + way(placement, placement.links[*link].from));
                }
            }
        }
        found
    }

    fn finish(self, graph: &Graph, placement: &Placement) -> PlacedAnalysis {
        let judged = |response: Option<Nanos>, deadline: Span| Bound {
            response,
            is_feasible: response.is_some_and(|response| Span::Finite(response) <= deadline),
        };
        let mut outputs: Vec<Option<Bound>> = vec![None; graph.outputs().len()];
        for (number, part) in self.parts.iter().enumerate() {
            for (output, exit) in part.exits.iter().enumerate() {
                if let Exit::Output(whole) = exit {
                    outputs[*whole] = Some(judged(self.whole(number, output), graph.outputs()[*whole].deadline));
                }
            }
        }
        let crossing = placement.crossing(graph);
        let links = placement.links.iter().zip(self.arrivals).map(|(link, arrival)| match crossing.contains(&link.from) {
            true => judged(*arrival, link.deadline),
            // Nobody needs it where operators are now.
            false => Bound { response: None, is_feasible: true },
        });
        let links = links.collect();
        let outputs = outputs.into_iter().map(|bound| bound.expect("each output is made by a part")).collect();
        PlacedAnalysis { outputs, links, parts: self.parts, analyses: self.analyses }
    }
}

/// A part whose suppliers are as late as their links.
fn late(part: &Part, arrivals: &[Option<Nanos>]) -> Part {
    let suppliers = part.graph.suppliers().iter().zip(&part.entries).map(|(supplier, entry)| {
        let late = match entry {
            Entry::Own(_) => Nanos::ZERO,
            Entry::Link(link) => arrivals[*link].unwrap_or_default(),
        };
        Supplier { jitter: supplier.jitter + late, ..supplier.clone() }
    });
    Part { graph: part.graph.with_suppliers(suppliers.collect()), ..part.clone() }
}
