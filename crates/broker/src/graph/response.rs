//! How long an output takes at the worst, before anything runs.
//!
//! The time counts from the latest event that a result needs (Wang 2019, section 2.6) to the result. Levels are looked at the most urgent first; nothing is assumed
//! about the order inside of a level.
//!
//! On **one core** it is the longest time in which rounds of the level and those above leave the core no rest (Audsley et al., *Applying new scheduling theory to static
//! priority pre-emptive scheduling*, 1993): the least w with `w = B + W(w)`. W(w) is the work of these levels that begins within w; B is what a less urgent round may
//! still take where it is not stopped.
//!
//! On **m cores**, look back from the result: at every instant either a round on the way to it runs, or all cores run other rounds of these levels, or less urgent ones
//! that had begun. So
//!
//! ```text
//! R <= sum over the way of (C + B) + (work of operators that are not on the way) / m
//! ```
//!
//! which is Graham's bound (1969) with interference as in Melani et al., *Response-time analysis of conditional DAG tasks in multiprocessor systems* (ECRTS 2015). Work
//! that was there before is counted as release jitter of the level's own R (Tindell and Clark, *Holistic schedulability analysis*, 1994). It holds while every
//! operator's round is over before its next one begins; where that cannot be shown there is no bound.

mod change;
mod rounds;

use std::num::NonZeroU32;

pub use self::change::{Change, ways};
use self::rounds::{Flow, Rounds};
use super::spec::{Graph, OperatorId, Output, Source, SupplierId};
use crate::{
    timing::{Nanos, Span},
    topic::Level,
};

/// Cores that the workers of a graph may have.
pub const CORES_MAX: u32 = 256;
/// Steps of the search for a fixed point; a graph so near to its limit that they do not suffice has no bound.
const STEPS_MAX: usize = 4_096;
/// Longest time that is a bound.
const RESPONSE_MAX: Nanos = Nanos::from_millis(3_600_000);

/// What a graph runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// Cores, 1 to [`CORES_MAX`]; each level has as many workers.
    pub cores: NonZeroU32,
    /// Processor time that a round costs besides its operator's: queues, hand-over, wake-up.
    pub hop: Nanos,
    /// Whether a more urgent round stops a less urgent one, which needs real-time threads; otherwise it waits for the end of it.
    pub is_preemptive: bool,
}

impl Default for Workers {
    fn default() -> Self {
        Self { cores: NonZeroU32::MIN, hop: Nanos::ZERO, is_preemptive: false }
    }
}

/// What is known of an output beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Longest time from the latest event that a result needs to the result. None: no bound can be given.
    pub response: Option<Nanos>,
    /// Whether that is within the deadline.
    pub is_feasible: bool,
}

/// The work of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelLoad {
    /// Which one.
    pub level: Level,
    /// Its operators.
    pub operators: usize,
    /// Processor time of one core that it takes, in millionths, rounded up.
    pub load_ppm: u64,
    /// The same of it and all more urgent ones.
    pub load_above_ppm: u64,
    /// Longest time that any operator of the level takes. None: no bound can be given.
    pub response: Option<Nanos>,
}

/// What is known of a graph beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// The levels that there are, the most urgent first.
    pub levels: Vec<LevelLoad>,
    /// In the order of the graph's outputs.
    pub outputs: Vec<Bound>,
}

impl Analysis {
    /// Analyses a graph.
    pub fn of(graph: &Graph, workers: &Workers) -> Self {
        let mut search = Search { graph, workers, above: Vec::new() };
        let mut levels: Vec<Level> = graph.order().iter().map(|operator| graph.level(*operator)).collect();
        levels.sort_unstable();
        levels.dedup();
        let mut loads: Vec<LevelLoad> = Vec::with_capacity(levels.len());
        for level in levels {
            let load_ppm = search.operators(level).map(|operator| search.load_ppm(operator)).sum::<u64>();
            let load_above_ppm = loads.last().map_or(0, |above| above.load_above_ppm) + load_ppm;
            let is_bounded = loads.last().is_none_or(|above| above.response.is_some());
            let is_light = load_above_ppm < u64::from(workers.cores.get()) * 1_000_000;
            let response = if is_bounded && is_light { search.level(level) } else { None };
            loads.push(LevelLoad { level, operators: search.operators(level).count(), load_ppm, load_above_ppm, response });
            search.above.extend(response.map(|response| (level, response)));
        }
        let outputs = graph.outputs().iter().map(|output| search.output(output)).collect();
        Self { levels: loads, outputs }
    }

    /// Whether every output is in time.
    pub fn is_feasible(&self) -> bool {
        self.outputs.iter().all(|bound| bound.is_feasible)
    }
}

struct Search<'g> {
    graph: &'g Graph,
    workers: &'g Workers,
    /// How long the levels take that are known already, the most urgent first.
    above: Vec<(Level, Nanos)>,
}

impl Search<'_> {
    fn operators(&self, level: Level) -> impl Iterator<Item = OperatorId> {
        self.graph.order().iter().copied().filter(move |operator| self.graph.level(*operator) == level)
    }

    fn cost(&self, operator: OperatorId) -> Nanos {
        self.graph.operator(operator).cost + self.workers.hop
    }

    fn load_ppm(&self, operator: OperatorId) -> u64 {
        let rate = Rounds::rate_per_s(self.graph, operator);
        // Rounded up, and never past what a sum of all operators can hold.
        (self.cost(operator).get() as f64 * rate / 1e3).ceil().min(1e12) as u64
    }

    /// What a less urgent round may still take.
    fn blocking(&self, level: Level) -> Nanos {
        let below = self.graph.order().iter().filter(|operator| !self.workers.is_preemptive && self.graph.level(**operator) > level);
        below.map(|operator| self.cost(*operator)).max().unwrap_or_default()
    }

    /// The longest that an operator of a level takes, once those above are known.
    fn level(&self, level: Level) -> Option<Nanos> {
        if self.workers.cores == NonZeroU32::MIN {
            return fixed_point(|within| self.busy(level, within));
        }
        let longest = |within| self.operators(level).map(|operator| self.responses(level, within, within)[operator.index()]).max();
        let response = fixed_point(|within| longest(within).unwrap_or_default())?;
        let mut rounds = Rounds::default();
        rounds.count(self.graph, response);
        self.operators(level).all(|operator| rounds.of(operator) <= 1).then_some(response)
    }

    fn output(&self, output: &Output) -> Bound {
        let level = self.graph.level(output.from);
        let known = self.above.iter().find(|(of, _)| *of == level).map(|(_, response)| *response);
        let response = known.and_then(|response| match self.workers.cores {
            NonZeroU32::MIN => Some(response),
            _ => fixed_point(|within| self.responses(level, within, response)[output.from.index()]),
        });
        Bound { response, is_feasible: response.is_some_and(|response| Span::Finite(response) <= output.deadline) }
    }

    /// One core: B + W(within).
    fn busy(&self, level: Level, within: Nanos) -> Nanos {
        let mut rounds = Rounds::default();
        rounds.count(self.graph, within);
        let urgent = self.graph.order().iter().copied().filter(|operator| self.graph.level(*operator) <= level);
        // One round of each is there at the beginning.
        let work = urgent.map(|operator| i128::from(rounds.of(operator).max(1)) * i128::from(self.cost(operator).get()));
        Nanos::saturating(work.sum::<i128>() + i128::from(self.blocking(level).get()))
    }

    /// Several cores: the bound of each operator of a level within a time, where rounds of the level were begun `late` before at the most. What is on the way counts fully
    /// instead of by its share.
    fn responses(&self, level: Level, within: Nanos, late: Nanos) -> Vec<Nanos> {
        let cores = i128::from(self.workers.cores.get());
        let blocking = i128::from(self.blocking(level).get());
        let work = self.work(level, within, late);
        let all: i128 = work.iter().sum();
        let mut ways = vec![0i128; work.len()];
        for operator in self.graph.order() {
            let at = operator.index();
            let own = (i128::from(self.cost(*operator).get()) + blocking) * cores - work[at];
            ways[at] = own + Rounds::upstream(self.graph, *operator).map(|upstream| ways[upstream.index()]).max().unwrap_or_default();
        }
        ways.into_iter().map(|way| Nanos::saturating((way + all + cores - 1).div_euclid(cores))).collect()
    }

    /// Work of each operator of a level and those above within a time; of others none.
    fn work(&self, level: Level, within: Nanos, late: Nanos) -> Vec<i128> {
        let mut work = vec![0; self.graph.operators().len()];
        let mut rounds = Rounds::default();
        let above = self.above.iter().copied().filter(|(above, _)| *above < level);
        for (level, late) in above.chain([(level, late)]) {
            rounds.count(self.graph, within + late);
            for operator in self.operators(level) {
                work[operator.index()] = i128::from(rounds.of(operator).max(1)) * i128::from(self.cost(operator).get());
            }
        }
        work
    }
}

/// Rounds that an operator runs in a second, in the long run.
pub(super) fn rate_per_s(graph: &Graph, operator: OperatorId) -> f64 {
    Rounds::rate_per_s(graph, operator)
}

/// An operator's results as a supplier would have them: least time between two in the long run, and how much later than that one may be.
pub(super) fn period_and_jitter(graph: &Graph, operator: OperatorId) -> (Nanos, Nanos) {
    Flow::of(graph, operator).period_and_jitter()
}

/// Suppliers whose events an operator's results wait for, on whatever way.
pub(super) fn awaited(graph: &Graph, operator: OperatorId) -> Vec<SupplierId> {
    let mut waited = vec![false; graph.operators().len()];
    waited[operator.index()] = true;
    let mut found = Vec::new();
    for id in graph.order().iter().rev() {
        if !waited[id.index()] {
            continue;
        }
        for source in Rounds::awaited(graph, *id) {
            match source {
                Source::Operator(upstream) => waited[upstream.index()] = true,
                Source::Supplier(supplier) => found.push(supplier),
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The least time that is not shorter than what follows from it.
fn fixed_point(next: impl Fn(Nanos) -> Nanos) -> Option<Nanos> {
    let mut response = Nanos::ZERO;
    for _ in 0..STEPS_MAX {
        let longer = next(response);
        if longer <= response {
            return Some(response);
        }
        if longer > RESPONSE_MAX {
            return None;
        }
        response = longer;
    }
    None
}

#[cfg(test)]
mod tests;
