//! Simulation: what a net does, seen in many runs, with intervals that hold the true value with a stated probability.
//!
//! Runs are independent and begin in the first marking. A run's random numbers depend on the seed, the run's number, the transition
//! and how often that has drawn in the run ([`crate::random`]), so that an answer is the same, bit by bit, for any number of threads,
//! and nets that differ in a parameter only are compared on the same luck (common random numbers).
//!
//! The rules of time: enabling is judged behind each firing, of immediate transitions too; a clock goes on while its transition is
//! enabled before and behind a firing; the one that has fired draws anew. Of several servers each has a clock; a degree that falls
//! stops the youngest. Clocks that run out at the same instant fire by priority, then by chance in proportion to their weights.

mod control;
mod counters;
mod estimate;
mod program;
mod rounds;
mod splitting;
mod stack;
mod state;
mod tag;
mod tally;

use std::ops::ControlFlow;

use self::rounds::Simulation;
pub use self::{
    control::Control,
    counters::Counters,
    estimate::Estimate,
    splitting::{RareEvent, Rarity, Splitting, split},
    tag::{Joins, Response, Tag, TagStart},
};
use crate::{expression::Expression, net::Net};

/// Most instants times places and measures.
const CELLS_MAX: usize = 4_000_000;

/// What is asked of a simulation.
#[derive(Clone, Debug)]
pub struct Question {
    /// Instants from 0, in rising order; runs end with the last.
    pub instants: Vec<f64>,
    /// What is looked at beside the tokens of every place.
    pub measures: Vec<Expression>,
    /// A run ends where this condition holds, too, and the time until then is asked for.
    pub target: Option<Expression>,
    /// Tokens whose times are asked for; the instants are then those of the distribution of these times, too.
    pub tag: Option<Tag>,
}

/// How a simulation is done.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Decides all random numbers.
    pub seed: u64,
    /// Probability with which an interval is to hold the true value; above 0, below 1.
    pub confidence: f64,
    /// Runs go on until no interval of a measure (of a place, where no measure is asked for) is wider to one side than this.
    pub half_width: Option<f64>,
    /// Runs to make; with a half-width the most runs.
    pub runs: u64,
    /// Threads to use; answers do not depend on it.
    pub threads: usize,
}

impl Default for Options {
    /// Seed 1, 99 %, 100,000 runs, one thread.
    fn default() -> Self {
        Self { seed: 1, confidence: 0.99, half_width: None, runs: 100_000, threads: 1 }
    }
}

/// What the runs showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Expected tokens, `[places, instants]`.
    pub places: Vec<Vec<Estimate>>,
    /// Expected values, `[measures, instants]`.
    pub measures: Vec<Vec<Estimate>>,
    /// Where a target was given.
    pub passage: Option<Passage>,
    /// Where a tag was given, and a token has gone its way.
    pub response: Option<Response>,
    /// What conditions were compared with; of others the runs alone were counted.
    pub controls: Vec<Control>,
    /// Runs that all this is from.
    pub runs: u64,
    /// Firings in them.
    pub events: u64,
    /// The widest interval of those that were to be narrow, to its wider side.
    pub half_width: f64,
    /// Whether that is as narrow as was asked; true where nothing was.
    pub is_narrow: bool,
}

/// The time until the target's condition holds first.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// Probability that it is at most each instant.
    pub cdf: Vec<Estimate>,
    /// Its mean; none where a run did not get there.
    pub mean: Option<Estimate>,
    /// Shares and their quantiles, as far as the runs can tell them.
    pub quantiles: Vec<(f64, Estimate)>,
    /// Runs that did not get there until the last instant.
    pub missing: u64,
}

/// Quantiles of a [`Passage`].
pub const QUANTILES: [f64; 8] = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999];

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// No instants, or ones that are no rising times.
    #[error("instants are to be finite, from 0 and rising, and at least one")]
    Instants,
    /// More than fits.
    #[error("{0} instants times places and measures are more than {CELLS_MAX}")]
    Cells(usize),
    /// An option that has no meaning.
    #[error("{0}")]
    Option(String),
    /// Immediate transitions fire for ever.
    #[error(
        "at time {time} more than {} immediate transitions fire without time passing: {transition} is one of them",
        state::IMMEDIATES_MAX
    )]
    Timeless {
        /// The last of them.
        transition: String,
        /// When.
        time: f64,
    },
    /// More tokens than can be counted.
    #[error("at time {time} place {place} has more tokens than can be counted")]
    Overfull {
        /// Where.
        place: String,
        /// When.
        time: f64,
    },
    /// A rate that is none.
    #[error("at time {time} the rate of transition {transition} is {rate}, not a finite number above 0")]
    Rate {
        /// Its name.
        transition: String,
        /// The rate.
        rate: f64,
        /// When.
        time: f64,
    },
    /// A measure without a mean or a spread that can be told.
    #[error("measure {number}, or its square, is no finite number in a marking that was met; expected one of 1e150 at the most")]
    NoNumber {
        /// Which measure, from 1.
        number: usize,
    },
    /// More draws in one run than are numbered.
    #[error("transition {transition} fires more than 4,294,967,295 times until time {time}")]
    Endless {
        /// Its name.
        transition: String,
        /// When.
        time: f64,
    },
}

/// Simulates `net`.
///
/// # Errors
/// A question or an option without a meaning, and nets that come to no end.
pub fn simulate(net: &Net, question: &Question, options: &Options) -> Result<Answer, SimulationError> {
    let simulation = Simulation::new(net, question, options)?;
    match simulation.answered()? {
        ControlFlow::Break(answer) => Ok(answer),
        ControlFlow::Continue(controls) => match simulation.compared(controls).answered()? {
            ControlFlow::Break(answer) => Ok(answer),
            ControlFlow::Continue(_) => unreachable!("whoever has controls looks for none"),
        },
    }
}

#[cfg(test)]
mod tests;
