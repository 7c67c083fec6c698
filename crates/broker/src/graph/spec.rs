//! A graph as it is declared: suppliers, operators, outputs, and what follows for each of them.

use std::num::NonZeroU16;

use super::{order::order, shape::Shape};
use crate::{
    timing::{Nanos, Span},
    topic::Level,
};

/// Suppliers that a graph may have.
pub const SUPPLIERS_MAX: usize = 1024;
/// Operators that a graph may have.
pub const OPERATORS_MAX: usize = 1024;
/// Topics that a graph may write.
pub const OUTPUTS_MAX: usize = 1024;
/// Inputs that an operator may have.
pub const INPUTS_MAX: usize = 16;
/// Events that one round of an operator may take, all windows together.
pub const EVENTS_MAX: usize = 64;
/// Streams that the results of an operator may have for each publisher: `OperatorSpec::lead`.
pub const LEADS_MAX: usize = 255;

/// A supplier of a graph, from 0 in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SupplierId(u16);

/// An operator of a graph, from 0 in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorId(u16);

impl SupplierId {
    /// By its place.
    pub fn of(index: usize) -> Self {
        Self(u16::try_from(index).expect("a graph has fewer suppliers"))
    }

    /// Its place.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl OperatorId {
    /// By its place.
    pub fn of(index: usize) -> Self {
        Self(u16::try_from(index).expect("a graph has fewer operators"))
    }

    /// Its place.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Where the events of an input come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// From publishers of a topic.
    Supplier(SupplierId),
    /// From another operator.
    Operator(OperatorId),
}

/// A topic of which a graph takes the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supplier {
    /// The topic.
    pub topic: String,
    /// What its events are.
    pub shape: Shape,
    /// Least time between two events; greater than 0.
    pub period: Nanos,
    /// How long an event counts after its creation (absolute validity); greater than 0.
    pub validity: Span,
    /// How much later than another one an event may come, for its way here; events are `period` apart where they are made.
    pub jitter: Nanos,
}

/// What becomes of an event that an operator has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// It is never used again by this operator; until then a newer one replaces it (the paper's rule).
    #[default]
    Consume,
    /// It stays until a newer one comes, and does not start the operator.
    Latest,
    /// The newest ones at once, as often as `step` further ones are there.
    Window {
        /// How many.
        events: NonZeroU16,
        /// How many of them are new, at most all.
        step: NonZeroU16,
    },
}

impl Use {
    /// Events that one round takes from an input.
    pub fn events(self) -> usize {
        match self {
            Self::Consume | Self::Latest => 1,
            Self::Window { events, .. } => usize::from(events.get()),
        }
    }
}

/// An input of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Where its events come from.
    pub from: Source,
    /// What becomes of them.
    pub usage: Use,
}

/// When an operator runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// When every input has what it needs; inputs of [`Use::Latest`] do not start it.
    #[default]
    All,
    /// At any event of any input, with that one alone.
    Any,
}

/// What becomes of a round whose events are not valid together, or no longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnInvalid {
    /// It is not computed.
    #[default]
    Shed,
    /// It is, and the result is marked.
    Mark,
}

/// Inputs whose events must have been made within a time of each other (relative validity).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelativeValidity {
    /// Which ones, by their place; two at least.
    pub inputs: Vec<u8>,
    /// Longest time between the creations of any two.
    pub within: Nanos,
}

/// An operator of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorSpec {
    /// Its name, once in a graph.
    pub name: String,
    /// Where its events come from, 1 to [`INPUTS_MAX`].
    pub inputs: Vec<Edge>,
    /// When it runs.
    pub trigger: Trigger,
    /// What it makes.
    pub shape: Shape,
    /// Sets of inputs that must fit each other.
    pub relative: Vec<RelativeValidity>,
    /// What becomes of what is not valid.
    pub on_invalid: OnInvalid,
    /// Longest processor time of a round.
    pub cost: Nanos,
}

/// A topic that a graph writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The topic.
    pub topic: String,
    /// Whose results it has.
    pub from: OperatorId,
    /// How urgent they are.
    pub level: Level,
    /// Longest time from the latest event that a result needs to the result.
    pub deadline: Span,
}

/// Why parts make no graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphFault {
    /// Operators wait for each other.
    Cycle(super::Cycle),
    /// Nothing comes of an operator.
    LeadsNowhere(OperatorId),
    /// Nobody takes a supplier's events.
    Unheard(SupplierId),
    /// A topic is written twice, or is a supplier's too: the second output that has it.
    TopicTaken(usize),
    /// More events in a round than [`EVENTS_MAX`].
    TooManyEvents(OperatorId),
    /// More streams than [`LEADS_MAX`].
    TooManyLeads(OperatorId),
}

/// A graph without a cycle, in which every part is of use, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Its name.
    pub name: String,
    suppliers: Vec<Supplier>,
    operators: Vec<OperatorSpec>,
    outputs: Vec<Output>,
    order: Vec<OperatorId>,
    levels: Vec<Level>,
    supplier_levels: Vec<Level>,
    remaining: Vec<Nanos>,
    leads: Vec<u8>,
}

impl Graph {
    /// Puts parts together. Numbers are those of the limits above, and inputs and outputs name what is there: whoever reads a form sees to both.
    pub fn new(
        name: String,
        suppliers: Vec<Supplier>,
        operators: Vec<OperatorSpec>,
        outputs: Vec<Output>,
    ) -> Result<Self, Vec<GraphFault>> {
        let sources: Vec<Vec<Source>> = operators.iter().map(|operator| operator.inputs.iter().map(|edge| edge.from).collect()).collect();
        let order = order(&sources).map_err(|cycle| vec![GraphFault::Cycle(cycle)])?;
        let levels = levels(&operators, &outputs, &order);
        let supplier_levels = supplier_levels(suppliers.len(), &operators, &levels);
        let mut faults = Vec::new();
        let useless = levels.iter().enumerate().filter(|(_, level)| level.is_none());
        faults.extend(useless.map(|(operator, _)| GraphFault::LeadsNowhere(OperatorId::of(operator))));
        let is_read = |supplier: usize| sources.iter().flatten().any(|source| *source == Source::Supplier(SupplierId::of(supplier)));
        faults.extend(
            (0..suppliers.len()).filter(|supplier| !is_read(*supplier)).map(|supplier| GraphFault::Unheard(SupplierId::of(supplier))),
        );
        let is_taken = |index: usize, output: &Output| {
            let is_same = |topic: &str| topic == output.topic;
            suppliers.iter().any(|supplier| is_same(&supplier.topic)) || outputs[..index].iter().any(|other| is_same(&other.topic))
        };
        faults.extend(
            outputs.iter().enumerate().filter(|(index, output)| is_taken(*index, output)).map(|(index, _)| GraphFault::TopicTaken(index)),
        );
        let events = |operator: &OperatorSpec| operator.inputs.iter().map(|edge| edge.usage.events()).sum::<usize>();
        let crowded = operators.iter().enumerate().filter(|(_, operator)| events(operator) > EVENTS_MAX);
        faults.extend(crowded.map(|(operator, _)| GraphFault::TooManyEvents(OperatorId::of(operator))));
        let leads = leads(&operators, &order).map_err(|operator| faults.push(GraphFault::TooManyLeads(operator)));
        match (leads, faults.is_empty()) {
            (Ok(leads), true) => Ok(Self {
                name,
                remaining: remaining(&operators, &outputs, &order),
                levels: levels.into_iter().flatten().collect(),
                supplier_levels: supplier_levels.into_iter().flatten().collect(),
                suppliers,
                operators,
                outputs,
                order,
                leads,
            }),
            _ => Err(faults),
        }
    }

    /// The same graph with suppliers that come at other times: as many, of the same topics and shapes.
    pub(super) fn with_suppliers(&self, suppliers: Vec<Supplier>) -> Self {
        debug_assert_eq!(suppliers.len(), self.suppliers.len(), "as many suppliers come at other times");
        Self { suppliers, ..self.clone() }
    }

    /// By their ids.
    pub fn suppliers(&self) -> &[Supplier] {
        &self.suppliers
    }

    /// By their ids.
    pub fn operators(&self) -> &[OperatorSpec] {
        &self.operators
    }

    /// In the order of the file.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Operators, each behind those it takes events from.
    pub fn order(&self) -> &[OperatorId] {
        &self.order
    }

    /// An operator.
    pub fn operator(&self, id: OperatorId) -> &OperatorSpec {
        &self.operators[id.index()]
    }

    /// How urgent an operator is: as the most urgent output downstream.
    pub fn level(&self, id: OperatorId) -> Level {
        self.levels[id.index()]
    }

    /// How urgent a supplier's events are: as the most urgent operator that takes them.
    pub fn supplier_level(&self, id: SupplierId) -> Level {
        self.supplier_levels[id.index()]
    }

    /// Processor time from the start of an operator until its nearest output has a result: what is valid for a shorter time comes too late for every consumer.
    pub fn remaining(&self, id: OperatorId) -> Nanos {
        self.remaining[id.index()]
    }

    /// Streams that an operator's results have for each publisher: one for every way from a supplier on which an event starts it.
    pub fn leads(&self, id: OperatorId) -> u8 {
        self.leads[id.index()]
    }

    /// The name of a source: the topic of a supplier, or an operator's own.
    pub fn source_name(&self, source: Source) -> &str {
        match source {
            Source::Supplier(id) => &self.suppliers[id.index()].topic,
            Source::Operator(id) => &self.operators[id.index()].name,
        }
    }

    /// What the events of an input are.
    pub fn shape(&self, source: Source) -> Shape {
        match source {
            Source::Supplier(id) => self.suppliers[id.index()].shape,
            Source::Operator(id) => self.operators[id.index()].shape,
        }
    }

    /// Operators that take events from a source, each with the place of the input.
    pub fn readers(&self, source: Source) -> impl Iterator<Item = (OperatorId, usize)> {
        let inputs = self.operators.iter().enumerate().flat_map(|(operator, spec)| {
            spec.inputs.iter().enumerate().map(move |(input, edge)| (OperatorId::of(operator), input, edge.from))
        });
        inputs.filter(move |(.., from)| *from == source).map(|(operator, input, _)| (operator, input))
    }
}

/// The most urgent level downstream of each operator; none where nothing comes of it.
fn levels(operators: &[OperatorSpec], outputs: &[Output], order: &[OperatorId]) -> Vec<Option<Level>> {
    let mut levels: Vec<Option<Level>> = vec![None; operators.len()];
    let raise = |of: &mut Option<Level>, to: Level| *of = Some(of.map_or(to, |level| level.min(to)));
    outputs.iter().for_each(|output| raise(&mut levels[output.from.index()], output.level));
    for operator in order.iter().rev() {
        let Some(level) = levels[operator.index()] else { continue };
        for edge in &operators[operator.index()].inputs {
            if let Source::Operator(upstream) = edge.from {
                raise(&mut levels[upstream.index()], level);
            }
        }
    }
    levels
}

fn supplier_levels(suppliers: usize, operators: &[OperatorSpec], levels: &[Option<Level>]) -> Vec<Option<Level>> {
    let mut found: Vec<Option<Level>> = vec![None; suppliers];
    for (operator, level) in operators.iter().zip(levels) {
        for edge in &operator.inputs {
            if let (Source::Supplier(id), Some(level)) = (edge.from, level) {
                let place = &mut found[id.index()];
                *place = Some(place.map_or(*level, |other| other.min(*level)));
            }
        }
    }
    found
}

fn remaining(operators: &[OperatorSpec], outputs: &[Output], order: &[OperatorId]) -> Vec<Nanos> {
    let mut behind = vec![Nanos::MAX; operators.len()];
    outputs.iter().for_each(|output| behind[output.from.index()] = Nanos::ZERO);
    for operator in order.iter().rev() {
        let all = operators[operator.index()].cost + behind[operator.index()];
        for edge in &operators[operator.index()].inputs {
            if let Source::Operator(upstream) = edge.from {
                behind[upstream.index()] = behind[upstream.index()].min(all);
            }
        }
    }
    operators.iter().zip(behind).map(|(operator, behind)| operator.cost + behind).collect()
}

/// Streams of each operator; the first one that has too many.
fn leads(operators: &[OperatorSpec], order: &[OperatorId]) -> Result<Vec<u8>, OperatorId> {
    let mut leads = vec![1u8; operators.len()];
    for id in order {
        let of = |edge: &Edge| match edge.from {
            Source::Supplier(_) => 1,
            Source::Operator(upstream) => usize::from(leads[upstream.index()]),
        };
        let all: usize = operators[id.index()].leading().map(|input| of(&operators[id.index()].inputs[input])).sum();
        leads[id.index()] = u8::try_from(all).map_err(|_| *id)?;
    }
    Ok(leads)
}

impl OperatorSpec {
    /// Inputs that an operator's results are named after. Where every input has to be there it is the first one that is not [`Use::Latest`]; every event of it starts
    /// one round at the most, so that a result has the identity of that event, in another topic. Where any event starts a round it is each of them.
    pub fn leading(&self) -> impl Iterator<Item = usize> {
        let starts = self.inputs.iter().position(|edge| edge.usage != Use::Latest);
        let (from, to) = match (self.trigger, starts) {
            (Trigger::All, Some(input)) => (input, input + 1),
            _ => (0, self.inputs.len()),
        };
        from..to
    }
}

#[cfg(test)]
mod tests;
