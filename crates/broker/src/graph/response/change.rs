//! What would have to change so that every output is in time.

use std::{fmt, num::NonZeroU32};

use super::{Analysis, CORES_MAX, Workers};
use crate::{
    graph::{Graph, OperatorSpec, Output},
    timing::{Nanos, Span},
};

/// The smallest change of its kind that would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So many cores.
    Cores(NonZeroU32),
    /// All operators at so many percent of their costs.
    CostPercent(u32),
    /// A later deadline of an output, by its place; all of these together.
    Deadline {
        /// The output.
        output: usize,
        /// Its deadline.
        deadline: Nanos,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cores(cores) => write!(f, "graph.cores = {cores}"),
            Self::CostPercent(percent) => write!(f, "all costs at {percent} % of what they are"),
            Self::Deadline { deadline, .. } => write!(f, "deadline_us = {}", deadline.micros_up()),
        }
    }
}

/// Ways to make a graph feasible, each of which would do; none if it is, or if none of these helps.
pub fn ways(graph: &Graph, workers: &Workers) -> Vec<Vec<Change>> {
    let analysis = Analysis::of(graph, workers);
    if analysis.is_feasible() {
        return Vec::new();
    }
    let cores = || {
        let with = |cores: u32| Workers { cores: NonZeroU32::new(cores).expect("it is 1 or more"), ..*workers };
        let fits = |cores: u32| Analysis::of(graph, &with(cores)).is_feasible();
        let cores = least(workers.cores.get() + 1, CORES_MAX, fits)?;
        Some(vec![Change::Cores(with(cores).cores)])
    };
    let costs = || {
        let fits = |less: u32| Analysis::of(&scaled(graph, 100 - less), workers).is_feasible();
        least(1, 99, fits).map(|less| vec![Change::CostPercent(100 - less)])
    };
    [deadlines(graph, &analysis), cores(), costs()].into_iter().flatten().collect()
}

fn deadlines(graph: &Graph, analysis: &Analysis) -> Option<Vec<Change>> {
    let late = graph.outputs().iter().zip(&analysis.outputs).enumerate().filter(|(_, (_, bound))| !bound.is_feasible);
    late.map(|(output, (_, bound))| Some(Change::Deadline { output, deadline: bound.response? })).collect()
}

/// The least number from `from` to `to` that fits, where all larger ones fit too.
fn least(mut from: u32, mut to: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    if from > to || !fits(to) {
        return None;
    }
    while from < to {
        let middle = from + (to - from) / 2;
        if fits(middle) { to = middle } else { from = middle + 1 }
    }
    Some(from)
}

fn scaled(graph: &Graph, percent: u32) -> Graph {
    let cost = |cost: Nanos| Nanos::saturating(i128::from(cost.get()) * i128::from(percent) / 100);
    let operators = graph.operators().iter().map(|operator| OperatorSpec { cost: cost(operator.cost), ..operator.clone() }).collect();
    let outputs: Vec<Output> = graph.outputs().to_vec();
    Graph::new(graph.name.clone(), graph.suppliers().to_vec(), operators, outputs).expect("only costs have changed")
}

impl Change {
    /// The deadline as an output would have it.
    pub fn deadline(self) -> Option<(usize, Span)> {
        match self {
            Self::Deadline { output, deadline } => Some((output, deadline.into())),
            _ => None,
        }
    }
}
