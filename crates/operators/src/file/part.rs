//! What one edge runs of a placed file.

use bodkin_broker::graph::placement::{Entry, Exit, Part, Placement, bound::PlacedAnalysis};

use super::{Form, Forms, GraphFile};

impl GraphFile {
    /// The file as an edge runs it: its part of the graph, whose suppliers are as late as their links may be. None where nothing runs there.
    pub fn part(&self, placement: &Placement, placed: &PlacedAnalysis, edge: usize) -> Option<Self> {
        let part = placed.parts.iter().find(|part| part.edge.index() == edge)?;
        Some(Self {
            graph: part.graph.clone(),
            workers: placement.hosts[edge].workers,
            placement: None,
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
