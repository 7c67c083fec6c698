//! A graph in a reliable pair, through crashes at any instant: operators of the product, the machines of broker, and around them what the host's shard does.
//!
//! One supplier, a filter with a state, and an operator that encrypts what the filter makes. All topics have L = 0. A seed decides what happens in which order: events, ends of rounds, checkpoints, replicas
//! and acknowledgements on their way, a link that is cut, and hosts that die in the middle of any of these. What is promised: each event's result is there once, under the name that follows from the event's; it
//! is what a filter would have made that never stopped; and no key meets a nonce twice with two texts.

mod leader;
pub mod link;
pub mod moving;
mod pair;
#[cfg(test)]
mod tests;

pub use self::leader::Flaw;
use self::pair::Pair;
use crate::random::Random;

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphTally {
    /// Events of the supplier.
    pub published: u64,
    /// Hosts that died with a graph.
    pub crashes: u64,
    /// Of these, with a round of an operator under way.
    pub crashes_in_a_round: u64,
    /// Graphs that went on from a checkpoint.
    pub restored: u64,
    /// Checkpoints that arrived.
    pub checkpoints: u64,
    /// Results that came more than once.
    pub duplicates: u64,
}

/// What is wrong, and behind how many steps of its run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}, step {step}: {what}")]
pub struct GraphViolation {
    /// The run.
    pub seed: u64,
    /// The step.
    pub step: u32,
    /// What.
    pub what: String,
}

/// What a promise that is broken says.
type Broken = String;

/// Runs one pair for so many steps, and then until nothing is left to be done.
pub fn run(seed: u64, steps: u32) -> Result<GraphTally, GraphViolation> {
    run_with(seed, steps, None)
}

/// The same with nodes that do something wrong, which is to be found.
pub fn run_with(seed: u64, steps: u32, flaw: Option<Flaw>) -> Result<GraphTally, GraphViolation> {
    let mut random = Random::new(seed);
    let mut pair = Pair::new(&mut random, flaw);
    for step in 0..steps {
        pair.act(&mut random).map_err(|what| GraphViolation { seed, step, what })?;
    }
    pair.settle().and_then(|()| pair.check_end()).map_err(|what| GraphViolation { seed, step: steps, what })?;
    Ok(pair.tally)
}
