//! How often operators run.

use super::super::spec::{Graph, OperatorId, OperatorSpec, Source, Trigger, Use};
use crate::timing::Nanos;

/// Most rounds that each operator can begin within a time.
///
/// A supplier makes `ceil(w / T)` events within w. An operator that needs several inputs takes an event of each: at most as many as the rarest input has and one that had
/// waited, and never more than the most frequent input has, for one of them was empty.
#[derive(Default)]
pub(super) struct Rounds {
    counts: Vec<u64>,
}

impl Rounds {
    /// Counts the rounds within a time.
    pub fn count(&mut self, graph: &Graph, within: Nanos) {
        self.counts.clear();
        self.counts.resize(graph.operators().len(), 0);
        for id in graph.order() {
            let spec = graph.operator(*id);
            let of = |input: &usize| {
                let edge = spec.inputs[*input];
                let events = match edge.from {
                    Source::Supplier(supplier) => within.steps_of(graph.suppliers()[supplier.index()].period),
                    Source::Operator(upstream) => self.counts[upstream.index()],
                };
                events.div_ceil(step(edge.usage))
            };
            let starting: Vec<u64> = starting(spec).iter().map(of).collect();
            let (least, most) = (starting.iter().min().copied(), starting.iter().max().copied());
            self.counts[id.index()] = match is_any(spec) {
                true => starting.iter().fold(0, |sum, events| sum.saturating_add(*events)),
                false => least.unwrap_or(0).saturating_add(1).min(most.unwrap_or(0)),
            };
        }
    }

    /// Rounds of an operator.
    pub fn of(&self, operator: OperatorId) -> u64 {
        self.counts[operator.index()]
    }

    /// Rounds a second in the long run.
    pub fn rate_per_s(graph: &Graph, operator: OperatorId) -> f64 {
        let mut rates = vec![0.0; graph.operators().len()];
        for id in graph.order() {
            let spec = graph.operator(*id);
            let of = |input: &usize| {
                let edge = spec.inputs[*input];
                let events: f64 = match edge.from {
                    Source::Supplier(supplier) => 1e9 / graph.suppliers()[supplier.index()].period.get() as f64,
                    Source::Operator(upstream) => rates[upstream.index()],
                };
                events / step(edge.usage) as f64
            };
            let starting = starting(spec);
            let each = starting.iter().map(of);
            rates[id.index()] = if is_any(spec) { each.sum() } else { each.fold(f64::INFINITY, f64::min) };
            if *id == operator {
                break;
            }
        }
        rates[operator.index()]
    }

    /// Operators whose results start an operator.
    pub fn upstream(graph: &Graph, operator: OperatorId) -> impl Iterator<Item = OperatorId> {
        let spec = graph.operator(operator);
        starting(spec).into_iter().filter_map(|input| match spec.inputs[input].from {
            Source::Operator(upstream) => Some(upstream),
            Source::Supplier(_) => None,
        })
    }
}

/// Whether any event of the starting inputs starts a round.
fn is_any(spec: &OperatorSpec) -> bool {
    spec.trigger == Trigger::Any || spec.inputs.iter().all(|edge| edge.usage == Use::Latest)
}

/// Inputs that start an operator.
fn starting(spec: &OperatorSpec) -> Vec<usize> {
    let is_any = is_any(spec);
    spec.inputs.iter().enumerate().filter(|(_, edge)| is_any || edge.usage != Use::Latest).map(|(input, _)| input).collect()
}

fn step(usage: Use) -> u64 {
    match usage {
        Use::Consume | Use::Latest => 1,
        Use::Window { step, .. } => u64::from(step.get()),
    }
}
