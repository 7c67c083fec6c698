//! The operators of a file: who needs whom, and what each of them makes.

use std::ops::Range;

use bodkin_broker::graph::{Cycle, Edge, OperatorId, OperatorSpec, Source, Supplier, order};

use super::{Head, NAME_BYTES_MAX, ON_INVALID, Reading, table::Table};
use crate::{
    catalogue::{Input, Kind, Made, Misfit},
    cipher::Keys,
    parameters::Parameters,
};

/// How an operator is made, as often as it is needed.
#[derive(Clone)]
pub struct Recipe {
    kind: &'static Kind,
    parameters: Parameters,
    inputs: Vec<Input>,
}

impl Recipe {
    /// Makes one; with the keys of a deployment, if there is one. Only a key that is not among them can be wrong.
    pub fn make(&self, keys: Option<&Keys>) -> Result<Made, Misfit> {
        (self.kind.make)(&mut self.parameters.clone().with_keys(keys.cloned()), &self.inputs)
    }

    /// Whether it makes the same operator.
    pub fn is_like(&self, other: &Self) -> bool {
        self.kind.name == other.kind.name && self.inputs == other.inputs && self.parameters.says_like(&other.parameters)
    }

    /// The operator's kind.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }
}

impl std::fmt::Debug for Recipe {
    /// Without the parameters: there are keys among them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recipe").field("kind", &self.kind.name).finish_non_exhaustive()
    }
}

/// An operator whose inputs are known, and not yet what it makes.
struct Draft<'t> {
    table: Table<'t>,
    name: String,
    kind: Option<&'static Kind>,
    inputs: Vec<Edge>,
    input_places: Vec<Range<usize>>,
}

impl Reading {
    /// Reads all operators; none if one of them is wrong.
    pub(super) fn operators(
        &mut self,
        tables: Vec<Table<'_>>,
        suppliers: &[Option<Supplier>],
        head: &Head,
        kinds: &'static [Kind],
    ) -> Option<Vec<(OperatorSpec, Recipe)>> {
        let mut named: Vec<(Table<'_>, String)> = Vec::with_capacity(tables.len());
        for (index, mut table) in tables.into_iter().enumerate() {
            let name = table.text(self, "name").unwrap_or_default();
            if name.len() > NAME_BYTES_MAX {
                self.wrong(table.place("name"), format!("name must have at most {NAME_BYTES_MAX} bytes"));
            }
            if !name.is_empty() {
                self.named(&name, Source::Operator(OperatorId::of(index)), table.place("name"));
            }
            named.push((table, name));
        }
        let mut drafts: Vec<Draft<'_>> = named.into_iter().map(|(table, name)| self.draft(table, name, kinds)).collect();
        let sources: Vec<Vec<Source>> = drafts.iter().map(|draft| draft.inputs.iter().map(|edge| edge.from).collect()).collect();
        let order = match order(&sources) {
            Ok(order) => order,
            Err(Cycle(cycle)) => {
                let names: Vec<&str> = cycle.iter().chain(cycle.first()).map(|operator| drafts[operator.index()].name.as_str()).collect();
                let at = drafts[cycle[0].index()].table.place("inputs");
                self.wrong(at, format!("operators wait for each other: {}", names.join(" -> ")));
                return None;
            }
        };
        let mut done: Vec<Option<(OperatorSpec, Recipe)>> = drafts.iter().map(|_| None).collect();
        for operator in order {
            let draft = &mut drafts[operator.index()];
            done[operator.index()] = self.operator(draft, suppliers, &done, head);
        }
        drafts.into_iter().filter(|draft| draft.kind.is_some()).for_each(|draft| draft.table.finish(self));
        done.into_iter().collect()
    }

    fn draft<'t>(&mut self, mut table: Table<'t>, name: String, kinds: &'static [Kind]) -> Draft<'t> {
        let kind = table.text(self, "kind").and_then(|name| {
            let kind = kinds.iter().find(|kind| kind.name == name);
            if kind.is_none() {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
                self.wrong(table.place("kind"), format!("kind must be one of {}", names.join(", ")));
            }
            kind
        });
        let edge = self.edge_of(&mut table);
        self.places.operators.push(edge);
        let (inputs, input_places) = self.inputs(&mut table);
        if let Some(kind) = kind.filter(|kind| !inputs.is_empty() && !kind.inputs.contains(&inputs.len())) {
            let (least, most) = (kind.inputs.start(), kind.inputs.end());
            let count = if least == most { least.to_string() } else { format!("{least} to {most}") };
            self.wrong(table.place("inputs"), format!("{} takes {count} inputs, and there are {}", kind.name, inputs.len()));
        }
        Draft { table, name, kind, inputs, input_places }
    }

    /// Makes an operator once, so that its parameters and inputs are checked. Behind one that is wrong nothing is told.
    fn operator(
        &mut self,
        draft: &mut Draft<'_>,
        suppliers: &[Option<Supplier>],
        done: &[Option<(OperatorSpec, Recipe)>],
        head: &Head,
    ) -> Option<(OperatorSpec, Recipe)> {
        let before = self.found.len();
        let table = &mut draft.table;
        let relative = self.relative(table, &draft.inputs);
        let on_invalid = table.word(self, "on_invalid", &ON_INVALID).unwrap_or(head.on_invalid);
        let cost = table.time(self, "cost").and_then(|cost| cost.finite()).unwrap_or_default();
        let mut parameters = table.parameters().at(&head.name, &draft.name);
        let kind = draft.kind?;
        let shape = |edge: &Edge| match edge.from {
            Source::Supplier(supplier) => suppliers[supplier.index()].as_ref().map(|supplier| supplier.shape),
            Source::Operator(operator) => done[operator.index()].as_ref().map(|(spec, _)| spec.shape),
        };
        let inputs: Option<Vec<Input>> =
            draft.inputs.iter().map(|edge| Some(Input { shape: shape(edge)?, events: edge.usage.events() })).collect();
        let made = match inputs.filter(|inputs| kind.inputs.contains(&inputs.len())) {
            Some(inputs) => (kind.make)(&mut parameters, &inputs).map(|made| (made.shape, inputs)).map_err(|misfit| match misfit {
                Misfit::Parameter(error) if table.has(&error.key) => self.wrong(table.place(&error.key), error.to_string()),
                Misfit::Input { input, shape, needed } => {
                    self.wrong(draft.input_places[input].clone(), format!("this input is {shape}: {needed}"));
                }
                misfit => self.wrong(table.head(), misfit.to_string()),
            }),
            // Whether its parameters are right cannot be known.
            None => {
                table.know(parameters.unknown());
                Err(())
            }
        };
        let is_known = made.is_ok() || self.found.len() == before;
        table.know(parameters.known());
        if !is_known {
            // It has asked only for what is in front of its first mistake.
            table.know(parameters.unknown());
        }
        let (shape, inputs) = made.ok()?;
        let Draft { name, inputs: edges, .. } = draft;
        let spec = OperatorSpec { name: name.clone(), inputs: edges.clone(), trigger: kind.trigger, shape, relative, on_invalid, cost };
        Some((spec, Recipe { kind, parameters, inputs }))
    }
}
