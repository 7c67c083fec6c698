//! What one edge runs of a placed file.

use bodkin_broker::graph::{
    SupplierId,
    placement::{EdgeId, Entry, Exit, Link, Part, Placement, bound::PlacedAnalysis},
};

use super::{Form, Forms, GraphFile};

/// What a part needs of other edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Names of the whole graph's edges, in the order of the file.
    pub edges: Vec<String>,
    /// Which of them runs the part.
    pub own: usize,
    /// The suppliers that come over links.
    pub suppliers: Vec<FetchedSupplier>,
    /// Where each operator of the whole graph runs, by its name, in the order of the file.
    pub placed: Vec<(String, EdgeId)>,
}

/// A supplier that comes over a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedSupplier {
    /// Which one of the part.
    pub supplier: SupplierId,
    /// What its events are in the whole graph: the name of an operator, or the topic of a supplier.
    pub source: String,
    /// Where its events are made.
    pub from: EdgeId,
    /// Events in a row that may be missing; none: nothing is kept for this edge.
    pub loss_tolerance: Option<u32>,
}

impl GraphFile {
    /// The file as an edge runs it: its part of the graph, whose suppliers are as late as their links may be. Of an edge without operators it has none: one may come. None of an edge that is not in the file.
    pub fn part(&self, placement: &Placement, placed: &PlacedAnalysis, edge: usize) -> Option<Self> {
        if edge >= placement.hosts.len() {
            return None;
        }
        let empty = || Part::empty(self.graph.name.clone(), EdgeId::of(edge));
        let part = &placed.parts.iter().find(|part| part.edge.index() == edge).cloned().unwrap_or_else(empty);
        Some(Self {
            graph: part.graph.clone(),
            workers: placement.hosts[edge].workers,
            placement: None,
            text: self.text.clone(),
            fetched: self.fetched(placement, part),
            recipes: part.operators.iter().map(|id| self.recipes[id.index()].clone()).collect(),
            forms: self.part_forms(part),
            link_forms: Vec::new(),
            output_places: part.exits.iter().map(|exit| self.place(*exit)).collect(),
            ..*self
        })
    }

    fn part_forms(&self, part: &Part) -> Forms {
        let supplier = |entry: &Entry| -> Form {
            match entry {
                Entry::Own(id) => self.forms.suppliers[id.index()],
                Entry::Link(link) => self.link_forms[*link],
            }
        };
        let output = |exit: &Exit| match exit {
            Exit::Output(output) => self.forms.outputs[*output],
            Exit::Link(link) => self.link_forms[*link],
        };
        Forms { suppliers: part.entries.iter().map(supplier).collect(), outputs: part.exits.iter().map(output).collect() }
    }

    /// Where an output of a part stands in the text; a link has no table of an output.
    fn place(&self, exit: Exit) -> std::ops::Range<usize> {
        match exit {
            Exit::Output(output) => self.output_places[output].clone(),
            Exit::Link(_) => 0..0,
        }
    }

    fn fetched(&self, placement: &Placement, part: &Part) -> Fetched {
        let suppliers = part.entries.iter().enumerate().filter_map(|(at, entry)| {
            let Entry::Link(link) = entry else { return None };
            let Link { from, loss_tolerance, .. } = placement.links[*link];
            let source = self.graph.source_name(from).to_owned();
            Some(FetchedSupplier { supplier: SupplierId::of(at), source, from: placement.edge(from), loss_tolerance })
        });
        let edges = placement.hosts.iter().map(|host| host.name.clone());
        let names = self.graph.operators().iter().map(|operator| operator.name.clone());
        let placed = names.zip(placement.operators.iter().copied()).collect();
        Fetched { edges: edges.collect(), own: part.edge.index(), suppliers: suppliers.collect(), placed }
    }
}
