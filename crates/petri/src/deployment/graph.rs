//! A graph of operators as its deployment sees it: what comes in how often, which operators one worker runs in a row, what goes out; and what was seen of it under
//! load.

use serde::{Deserialize, Serialize};

use super::{
    costs::{Wake, Work},
    durations::Durations,
};

/// A graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Whether more urgent levels stop less urgent ones, each having workers of its own; otherwise all levels share them.
    pub is_preemptive: bool,
    /// Topics that go in.
    pub suppliers: Vec<GraphSupplier>,
    /// In the order of the graph's file.
    pub operators: Vec<GraphOperator>,
    /// Operators that a worker runs one behind the other, by their places; each operator is in one row.
    pub rows: Vec<Vec<usize>>,
    /// Topics that come out.
    pub outputs: Vec<GraphOutput>,
}

/// A topic that goes in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphSupplier {
    /// Its name.
    pub topic: String,
    /// Between two events, as it is declared; in us.
    pub period_us: f64,
}

/// An operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphOperator {
    /// Its name.
    pub name: String,
    /// How urgent it is; 0 is the most urgent.
    pub level: u8,
    /// Where its events come from.
    pub inputs: Vec<GraphInput>,
    /// Whether any event starts it, with that one alone; otherwise it waits until every input has what it needs.
    pub is_started_by_any: bool,
}

/// An input of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphInput {
    /// Whose events it takes.
    pub from: GraphSource,
    /// New events that start a round; 0: it starts none, the latest one counts.
    pub step: u32,
}

/// Where events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphSource {
    /// A supplier, by its place.
    Supplier(usize),
    /// An operator, by its place.
    Operator(usize),
}

/// A topic that comes out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphOutput {
    /// Its name.
    pub topic: String,
    /// Whose results it has, by its place.
    pub from: usize,
    /// How urgent they are; 0 is the most urgent.
    pub level: u8,
}

/// A run of a graph under load, and what was seen of it; times in us.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphRun {
    /// Processors that the cloud, suppliers and consumers share.
    pub cores: u32,
    /// Worker threads, of each level where these are apart.
    pub workers: u32,
    /// How often suppliers pushed, as a part of what the graph declares.
    pub rate: f64,
    /// How long it was.
    pub elapsed_us: f64,
    /// Events that were pushed.
    pub sent: u64,
    /// By operator.
    pub operators: Vec<OperatorRun>,
    /// By output: from the push of the newest event that a result is made of to the consumer.
    pub latencies: Vec<Durations>,
    /// Processor time of the broker's shard.
    pub shard_us: f64,
    /// Processor time of all workers.
    pub workers_us: f64,
    /// Processor time of the suppliers.
    pub suppliers_us: f64,
    /// Processor time of the consumers.
    pub consumers_us: f64,
}

/// What an operator did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OperatorRun {
    /// Rounds.
    pub rounds: u64,
    /// How long they lasted together.
    pub busy_us: f64,
    /// The longest one since the graph was deployed.
    pub longest_us: f64,
}

/// What is to be predicted of a graph.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GraphDeployment {
    /// Processors that all share; 1 or more.
    pub cores: u32,
    /// Worker threads, of each level where these are apart; 1 or more.
    pub workers: u32,
    /// How often suppliers push, as a part of what the graph declares; above 0.
    pub rate: f64,
}

/// What each step of an event's way through a graph takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphCosts {
    /// A supplier writes an event, in us.
    pub push_us: f64,
    /// The shard takes an event and hands it to the operators, in us.
    pub take_us: f64,
    /// The shard takes what a row of operators has made, in us.
    pub finish_us: f64,
    /// It publishes a result, in us.
    pub publish_us: f64,
    /// A consumer reads a result, in us.
    pub read_us: f64,
    /// A worker comes to run, in us.
    pub begin_us: f64,
    /// Of each operator a round, and what part of its rounds has a result.
    pub operators: Vec<OperatorCost>,
    /// Until a thread of the cloud or of its suppliers and consumers that is woken has an idle processor.
    pub wake: Wake,
}

/// What an operator costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorCost {
    /// A round.
    pub work: Work,
    /// The part of its rounds that has a result, 0 to 1.
    pub emits: f64,
}

impl Graph {
    /// The levels that results have, the most urgent first.
    pub fn levels(&self) -> Vec<u8> {
        let mut levels: Vec<u8> = self.outputs.iter().map(|output| output.level).collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    /// Results of each operator in a us, if every event becomes one that can.
    pub(super) fn results_per_us(&self, costs: &GraphCosts, rate: f64) -> Vec<f64> {
        let mut results = vec![0.0; self.operators.len()];
        // Behind as many passes as there are operators everything has come through, in whichever order they stand.
        for _ in 0..self.operators.len() {
            for (index, operator) in self.operators.iter().enumerate() {
                let of_input = |input: &GraphInput| match input.from {
                    GraphSource::Supplier(place) => rate / self.suppliers[place].period_us / f64::from(input.step),
                    GraphSource::Operator(place) => results[place] / f64::from(input.step),
                };
                let starting = operator.inputs.iter().filter(|input| input.step > 0).map(of_input);
                let rounds = if operator.is_started_by_any { starting.sum() } else { starting.fold(f64::INFINITY, f64::min) };
                results[index] = if rounds.is_finite() { rounds * costs.operators[index].emits } else { 0.0 };
            }
        }
        results
    }

    /// Inputs of operators that take what comes from there: operator and input, by their places.
    pub fn readers(&self, from: GraphSource) -> impl Iterator<Item = (usize, usize)> {
        let inputs = |(operator, described): (usize, &GraphOperator)| -> Vec<(usize, usize)> {
            let takes = |(input, described): (usize, &GraphInput)| (described.from == from).then_some((operator, input));
            described.inputs.iter().enumerate().filter_map(takes).collect()
        };
        self.operators.iter().enumerate().flat_map(inputs).collect::<Vec<_>>().into_iter()
    }

    /// What is wrong with it, if anything is: numbers of what is not there, an operator in no row or in two.
    pub fn mistake(&self) -> Option<String> {
        let is_there = |source: GraphSource| match source {
            GraphSource::Supplier(place) => place < self.suppliers.len(),
            GraphSource::Operator(place) => place < self.operators.len(),
        };
        let mut in_rows: Vec<usize> = self.rows.iter().flatten().copied().collect();
        in_rows.sort_unstable();
        if in_rows != (0..self.operators.len()).collect::<Vec<_>>() || self.rows.iter().any(Vec::is_empty) {
            return Some("each operator is in one row".to_owned());
        }
        if self.suppliers.is_empty() || self.outputs.is_empty() {
            return Some("a graph has suppliers and outputs".to_owned());
        }
        if let Some(supplier) = self.suppliers.iter().find(|supplier| !(supplier.period_us > 0.0 && supplier.period_us.is_finite())) {
            return Some(format!("supplier {}: its period is {} us; expected a time above 0", supplier.topic, supplier.period_us));
        }
        let lost = self.operators.iter().find(|operator| !operator.inputs.iter().all(|input| is_there(input.from)));
        if let Some(operator) = lost {
            return Some(format!("operator {} takes events of what is not there", operator.name));
        }
        self.outputs
            .iter()
            .find(|output| output.from >= self.operators.len())
            .map(|output| format!("output {} is of no operator", output.topic))
    }
}

impl GraphRun {
    /// Whether it is another run of the same load.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.cores, self.workers, self.rate) == (other.cores, other.workers, other.rate)
    }

    /// What it was a run of.
    pub fn deployment(&self) -> GraphDeployment {
        GraphDeployment { cores: self.cores, workers: self.workers, rate: self.rate }
    }

    /// Adds another run of the same load.
    pub fn add(&mut self, other: &Self) {
        self.elapsed_us += other.elapsed_us;
        self.sent += other.sent;
        for (ours, theirs) in self.operators.iter_mut().zip(&other.operators) {
            ours.rounds += theirs.rounds;
            ours.busy_us += theirs.busy_us;
            ours.longest_us = ours.longest_us.max(theirs.longest_us);
        }
        self.latencies.iter_mut().zip(&other.latencies).for_each(|(ours, theirs)| ours.add(theirs));
        self.shard_us += other.shard_us;
        self.workers_us += other.workers_us;
        self.suppliers_us += other.suppliers_us;
        self.consumers_us += other.consumers_us;
    }

    /// The latencies of all results of a level.
    pub fn of_level(&self, graph: &Graph, level: u8) -> Durations {
        let mut all = Durations::default();
        let of_level = graph.outputs.iter().zip(&self.latencies).filter(|(output, _)| output.level == level);
        of_level.for_each(|(_, latency)| all.add(latency));
        all
    }

    /// Mean of the latencies of all results, in us.
    pub fn mean_us(&self) -> f64 {
        let count: u64 = self.latencies.iter().map(Durations::count).sum();
        self.latencies.iter().map(|latency| latency.sum_us).sum::<f64>() / count.max(1) as f64
    }

    /// Rounds of all rows: each begins with one of its first operator's.
    pub fn rows(&self, graph: &Graph) -> u64 {
        graph.rows.iter().map(|row| self.operators[row[0]].rounds).sum()
    }
}
