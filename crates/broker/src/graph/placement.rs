//! A graph over several hosts: which operators run where, what goes from one edge to another, and the graph that each edge runs.
//!
//! What goes over is an ordinary topic of the edge that it is made on: the other edge takes it as a supplier that may be late. So each edge runs an ordinary [`Graph`], and
//! [`bound`] puts their bounds together.
//!
//! Source: Wang, *Real-Time Reliable Middleware for Industrial IoT*, 2019, section 2.4.4.

pub mod bound;
pub mod origin;
pub mod suggestion;
pub mod ways;

use std::{collections::BTreeMap, time::Duration};

use super::{
    response::{Workers, period_and_jitter},
    spec::{Edge, Graph, OperatorId, OperatorSpec, Output, Source, Supplier, SupplierId},
};
use crate::{
    timing::{Nanos, Span},
    topic::Level,
};

/// Edges that a graph may be placed on.
pub const EDGES_MAX: usize = 16;

/// For so long an edge keeps what another one needs and has not got: while that is away, for a graph that is to go on at another node, and while an operator moves. It is one time for all of them, for whoever
/// keeps for a shorter time than the others decides alone what is lost; it is long beside the start of an edge that was killed, and short beside what `retention` and memory have room for.
pub const KEPT_MAX: Duration = Duration::from_secs(30);

/// An edge of a placed graph, from 0 in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId(u8);

impl EdgeId {
    /// By its place.
    pub fn of(index: usize) -> Self {
        Self(u8::try_from(index).expect("a graph has fewer edges"))
    }

    /// Its place.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A host that runs a part of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, once in a graph.
    pub name: String,
    /// What its part runs on.
    pub workers: Workers,
    /// Longest time that an event takes from here to another edge.
    pub way: Nanos,
}

/// A topic that goes from its edge to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What is on it: a supplier's events as they are, or an operator's results.
    pub from: Source,
    /// Its topic; a supplier's own.
    pub topic: String,
    /// Longest time from the latest event that a result needs until it is at the other edge.
    pub deadline: Span,
    /// Events in a row that may be missing at the other edge; none: it hears what comes, and nothing is kept for it.
    pub loss_tolerance: Option<u32>,
}

/// Which part of a graph is where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The hosts, 1 to [`EDGES_MAX`].
    pub hosts: Vec<Host>,
    /// Where each supplier's topic is.
    pub suppliers: Vec<EdgeId>,
    /// Where each operator runs.
    pub operators: Vec<EdgeId>,
    /// What goes over; whatever [`Placement::crossing`] names is among them. Others are for operators that move.
    pub links: Vec<Link>,
}

impl Placement {
    /// Where events of a source are made.
    pub fn edge(&self, source: Source) -> EdgeId {
        match source {
            Source::Supplier(id) => self.suppliers[id.index()],
            Source::Operator(id) => self.operators[id.index()],
        }
    }

    /// What is made on one edge and needed on another, each once.
    pub fn crossing(&self, graph: &Graph) -> Vec<Source> {
        let inputs =
            graph.operators().iter().zip(&self.operators).flat_map(|(spec, edge)| spec.inputs.iter().map(move |input| (input.from, *edge)));
        let mut sources: Vec<Source> = inputs.filter(|(from, edge)| self.edge(*from) != *edge).map(|(from, _)| from).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// The link that a source goes over by.
    fn link(&self, from: Source) -> Option<usize> {
        self.links.iter().position(|link| link.from == from)
    }
}

/// Where the events of a part's supplier come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// They are published on this edge.
    Own(SupplierId),
    /// They come over a link, by its place.
    Link(usize),
}

/// What becomes of the results that a part writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// They are an output of the whole graph, by its place.
    Output(usize),
    /// They go over a link, by its place.
    Link(usize),
}

/// What one edge runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where.
    pub edge: EdgeId,
    /// An ordinary graph.
    pub graph: Graph,
    /// Which operator of the whole graph each operator is.
    pub operators: Vec<OperatorId>,
    /// Where each supplier comes from.
    pub entries: Vec<Entry>,
    /// What becomes of each output.
    pub exits: Vec<Exit>,
}

impl Part {
    /// Of an edge that has no operator.
    pub fn empty(name: String, edge: EdgeId) -> Self {
        let graph = Graph::new(name, Vec::new(), Vec::new(), Vec::new()).expect("what is empty has no fault");
        Self { edge, graph, operators: Vec::new(), entries: Vec::new(), exits: Vec::new() }
    }
}

/// The graphs of the edges that have operators, in the order of the edges. Links are there for all that goes over ([`Placement::crossing`]): whoever reads a form sees to that.
pub fn parts(graph: &Graph, placement: &Placement) -> Vec<Part> {
    let edges = (0..placement.hosts.len()).map(EdgeId::of).filter(|edge| placement.operators.contains(edge));
    edges.map(|edge| Cut { graph, placement, edge }.part()).collect()
}

/// One edge of a graph.
struct Cut<'g> {
    graph: &'g Graph,
    placement: &'g Placement,
    edge: EdgeId,
}

impl Cut<'_> {
    fn part(&self) -> Part {
        let operators: Vec<OperatorId> = (0..self.graph.operators().len()).map(OperatorId::of).filter(|id| self.is_here(*id)).collect();
        let mut entries: BTreeMap<Source, SupplierId> = BTreeMap::new();
        let specs = operators.iter().map(|id| self.operator(*id, &operators, &mut entries)).collect();
        let mut suppliers: Vec<(SupplierId, Source)> = entries.into_iter().map(|(source, id)| (id, source)).collect();
        suppliers.sort_unstable();
        let sources: Vec<Source> = suppliers.into_iter().map(|(_, source)| source).collect();
        let (outputs, exits): (Vec<Output>, Vec<Exit>) = self.outputs(&operators).into_iter().unzip();
        let suppliers = sources.iter().map(|source| self.supplier(*source)).collect();
        let graph = Graph::new(self.graph.name.clone(), suppliers, specs, outputs);
        Part {
            edge: self.edge,
            graph: graph.expect("a part of a graph, with what is needed of it elsewhere as outputs, is a graph"),
            operators,
            entries: sources.into_iter().map(|source| self.entry(source)).collect(),
            exits,
        }
    }

    fn is_here(&self, operator: OperatorId) -> bool {
        self.placement.operators[operator.index()] == self.edge
    }

    /// An operator with inputs that are operators and suppliers of this edge; suppliers that are missing are added.
    fn operator(&self, id: OperatorId, here: &[OperatorId], entries: &mut BTreeMap<Source, SupplierId>) -> OperatorSpec {
        let spec = self.graph.operator(id);
        let inputs = spec.inputs.iter().map(|Edge { from, usage }| {
            let own = match from {
                Source::Operator(upstream) => here.iter().position(|operator| operator == upstream),
                Source::Supplier(_) => None,
            };
            let from = own.map_or_else(
                || {
                    let next = SupplierId::of(entries.len());
                    Source::Supplier(*entries.entry(*from).or_insert(next))
                },
                |own| Source::Operator(OperatorId::of(own)),
            );
            Edge { from, usage: *usage }
        });
        OperatorSpec { inputs: inputs.collect(), ..spec.clone() }
    }

    fn entry(&self, source: Source) -> Entry {
        match source {
            Source::Supplier(id) if self.placement.suppliers[id.index()] == self.edge => Entry::Own(id),
            _ => Entry::Link(self.placement.link(source).expect("what goes over has a link")),
        }
    }

    /// What comes in. Of an operator's results: as often as it runs in the long run, and valid as long as the shortest of the suppliers behind it.
    fn supplier(&self, source: Source) -> Supplier {
        match source {
            Source::Supplier(id) => self.graph.suppliers()[id.index()].clone(),
            Source::Operator(id) => {
                let link = self.placement.link(source).expect("what goes over has a link");
                let (period, jitter) = period_and_jitter(self.graph, id);
                Supplier {
                    topic: self.placement.links[link].topic.clone(),
                    shape: self.graph.operator(id).shape,
                    period,
                    validity: validity(self.graph, source),
                    jitter,
                }
            }
        }
    }

    /// The whole graph's outputs that are made here, then what other edges need.
    fn outputs(&self, here: &[OperatorId]) -> Vec<(Output, Exit)> {
        let own = |id: OperatorId| here.iter().position(|operator| *operator == id).map(OperatorId::of);
        let whole = self.graph.outputs().iter().enumerate();
        let mut outputs: Vec<(Output, Exit)> =
            whole.filter_map(|(place, output)| Some((Output { from: own(output.from)?, ..output.clone() }, Exit::Output(place)))).collect();
        for (place, link) in self.placement.links.iter().enumerate() {
            let Source::Operator(id) = link.from else { continue };
            if let (Some(from), Some(level)) = (own(id), self.level_elsewhere(id)) {
                let deadline = link.deadline.less(self.placement.hosts[self.edge.index()].way);
                outputs.push((Output { topic: link.topic.clone(), from, level, deadline }, Exit::Link(place)));
            }
        }
        outputs
    }

    /// How urgent an operator's results are on other edges; none where nobody needs them.
    fn level_elsewhere(&self, id: OperatorId) -> Option<Level> {
        let readers = self.graph.readers(Source::Operator(id)).filter(|(reader, _)| !self.is_here(*reader));
        readers.map(|(reader, _)| self.graph.level(reader)).min()
    }
}

/// The shortest validity of the suppliers behind a source.
fn validity(graph: &Graph, source: Source) -> Span {
    let mut shortest = vec![Span::Infinite; graph.operators().len()];
    let of = |source: Source, shortest: &[Span]| match source {
        Source::Supplier(id) => graph.suppliers()[id.index()].validity,
        Source::Operator(id) => shortest[id.index()],
    };
    for id in graph.order() {
        let inputs = graph.operator(*id).inputs.iter().map(|edge| of(edge.from, &shortest));
        shortest[id.index()] = inputs.min().unwrap_or(Span::Infinite);
    }
    of(source, &shortest)
}

#[cfg(test)]
mod tests;
