//! How often operators run.

use super::super::spec::{Graph, OperatorId, OperatorSpec, Source, Trigger, Use};
use crate::timing::Nanos;

/// Most rounds that each operator can begin within a time.
///
/// Of a supplier `ceil((w + J) / T)` events come within w. An operator that needs several inputs takes an event of each: at most as many as the rarest input has and one that had
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
                    Source::Supplier(supplier) => {
                        let supplier = &graph.suppliers()[supplier.index()];
                        (within + supplier.jitter).steps_of(supplier.period)
                    }
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
        Flow::of(graph, operator).rate_per_s
    }

    /// Operators whose results start an operator.
    pub fn upstream(graph: &Graph, operator: OperatorId) -> impl Iterator<Item = OperatorId> {
        Self::awaited(graph, operator).filter_map(|source| match source {
            Source::Operator(upstream) => Some(upstream),
            Source::Supplier(_) => None,
        })
    }

    /// What starts an operator.
    pub fn awaited(graph: &Graph, operator: OperatorId) -> impl Iterator<Item = Source> {
        let spec = graph.operator(operator);
        starting(spec).into_iter().map(|input| spec.inputs[input].from)
    }
}

/// Events or rounds: less than `rate * w + burst` of them in any time w.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flow {
    rate_per_s: f64,
    burst: f64,
}

impl Flow {
    const NONE: Self = Self { rate_per_s: 0.0, burst: 0.0 };

    /// The rounds of an operator.
    pub fn of(graph: &Graph, operator: OperatorId) -> Self {
        let mut flows = vec![Self::NONE; graph.operators().len()];
        for id in graph.order() {
            flows[id.index()] = Self::next(graph, graph.operator(*id), &flows);
            if *id == operator {
                break;
            }
        }
        flows[operator.index()]
    }

    /// The rounds of an operator behind others.
    fn next(graph: &Graph, spec: &OperatorSpec, flows: &[Self]) -> Self {
        let of = |input: &usize| {
            let edge = spec.inputs[*input];
            let events = match edge.from {
                Source::Supplier(supplier) => {
                    let supplier = &graph.suppliers()[supplier.index()];
                    let (jitter, period) = (supplier.jitter.get() as f64, supplier.period.get() as f64);
                    Self { rate_per_s: 1e9 / period, burst: jitter / period + 1.0 }
                }
                Source::Operator(upstream) => flows[upstream.index()],
            };
            let step = step(edge.usage) as f64;
            Self { rate_per_s: events.rate_per_s / step, burst: (events.burst + step - 1.0) / step }
        };
        let starting = starting(spec);
        let each: Vec<Self> = starting.iter().map(of).collect();
        if is_any(spec) {
            return each
                .iter()
                .fold(Self::NONE, |sum, flow| Self { rate_per_s: sum.rate_per_s + flow.rate_per_s, burst: sum.burst + flow.burst });
        }
        let rarest = each.iter().copied().min_by(|one, other| one.rate_per_s.total_cmp(&other.rate_per_s)).unwrap_or(Self::NONE);
        // One of the rarest input may have waited for the others.
        Self { burst: rarest.burst + if each.len() > 1 { 1.0 } else { 0.0 }, ..rarest }
    }

    /// The same as a supplier has it: the period, rounded down, and the jitter, rounded up, with which `ceil((w + J) / T)` is not less.
    pub fn period_and_jitter(self) -> (Nanos, Nanos) {
        let period_ns = 1e9 / self.rate_per_s;
        let period = Nanos::saturating(period_ns as i128).max(Nanos::new(1));
        (period, Nanos::saturating(((self.burst - 1.0) * period_ns).ceil() as i128).max(Nanos::ZERO))
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
