//! What one edge runs of a placed file.

use bodkin_broker::graph::{
    SupplierId,
    placement::{EdgeId, Entry, Exit, Part, Placement, bound::PlacedAnalysis},
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
}

/// A supplier that comes over a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedSupplier {
    /// Which one of the part.
    pub supplier: SupplierId,
    /// Where its events are made.
    pub from: EdgeId,
    /// Events in a row that may be missing; none: nothing is kept for this edge.
    pub loss_tolerance: Option<u32>,
}

impl GraphFile {
    /// The file as an edge runs it: its part of the graph, whose suppliers are as late as their links may be. None where nothing runs there.
    pub fn part(&self, placement: &Placement, placed: &PlacedAnalysis, edge: usize) -> Option<Self> {
        let part = placed.parts.iter().find(|part| part.edge.index() == edge)?;
        Some(Self {
            graph: part.graph.clone(),
            workers: placement.hosts[edge].workers,
            placement: None,
            fetched: fetched(placement, part),
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
}

fn fetched(placement: &Placement, part: &Part) -> Fetched {
    let suppliers = part.entries.iter().enumerate().filter_map(|(at, entry)| {
        let Entry::Link(link) = entry else { return None };
        let link = &placement.links[*link];
        Some(FetchedSupplier { supplier: SupplierId::of(at), from: placement.edge(link.from), loss_tolerance: link.loss_tolerance })
    });
    let edges = placement.hosts.iter().map(|host| host.name.clone());
    Fetched { edges: edges.collect(), own: part.edge.index(), suppliers: suppliers.collect() }
}
