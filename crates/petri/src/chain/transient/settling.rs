//! When nothing that is left can change a probability by more than is allowed.
//!
//! * All but a rest is in states that are never left: no more than the rest can still move.
//! * A stochastic matrix enlarges no difference, so each further step changes the probabilities by no more than the last one did: `n` of them by no more
//!   than `n` times that.
//! * For the same reason the probabilities never get further away from the chain's long run than they are. That is worth working out where very many steps
//!   are left; it comes with a bound of its own ([`mod@crate::chain::steady`]), and where it cannot be had the steps are made.
//!
//! The first and the last hold for ever, the second for one leg.

use super::leg::rounding_of_step;
use crate::chain::{
    Chain, ROUNDOFF,
    steady::{self, steady},
};

/// Steps from which on the long run is worth its work, which is two iterations of as many sweeps at most.
const LONG_RUN_STEPS_MIN: f64 = 2.0 * steady::SWEEPS_MAX as f64;

/// The long run is not looked for before a step changes less than this share of what is allowed.
const LONG_RUN_CHANGE: f64 = 1e-2;

/// The part of what is allowed that the long run itself may be off.
const LONG_RUN_SHARE: f64 = 0.1;

/// Probabilities of the long run, and how far those of any set of states are off.
struct LongRun {
    probabilities: Vec<f64>,
    error: f64,
}

/// The last step.
pub(super) struct Change<'a> {
    pub now: &'a [f64],
    pub before: &'a [f64],
    /// Probability that it has cut off.
    pub lost: f64,
    /// The leg's part of all time.
    pub part: f64,
}

/// What a chain can still do.
pub(super) struct Settling<'a> {
    chain: &'a Chain,
    /// What probabilities of sets may be off when all is over, and over all legs that end early.
    allowed: f64,
    rounding: f64,
    is_over: bool,
    /// None: not looked for yet; none inside: it cannot be had.
    long_run: Option<Option<LongRun>>,
}

impl<'a> Settling<'a> {
    /// Probabilities of sets may be `allowed` off.
    pub fn new(chain: &'a Chain, allowed: f64) -> Self {
        Self { chain, allowed: 0.5 * allowed, rounding: rounding_of_step(chain), is_over: false, long_run: None }
    }

    /// Whether nothing can change any more that was not counted.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The probability of the states that can be left, if it is little enough; nothing where that was counted before.
    pub fn absorbed(&mut self, now: &[f64]) -> Option<f64> {
        if self.is_over {
            return Some(0.0);
        }
        let moving = now.iter().zip(&self.chain.exits).filter(|(_, exit)| **exit > 0.0).map(|(probability, _)| probability).sum();
        self.end(moving)
    }

    /// No less than what the `remaining` steps of a leg can change, or all steps that ever follow, if it is little enough. `behind` the leg there are
    /// about so many.
    pub fn settled(&mut self, change: &Change, remaining: f64, behind: f64) -> Option<f64> {
        let Change { now, before, lost, part } = *change;
        let change = distance(now, before) + lost;
        if remaining * change <= self.allowed * part {
            // Rounding hides as much of each step's change as it would have added to that step.
            return Some(remaining * (change + self.rounding));
        }
        if remaining + behind < LONG_RUN_STEPS_MIN || change > LONG_RUN_CHANGE * self.allowed {
            return None;
        }
        let (chain, error) = (self.chain, LONG_RUN_SHARE * self.allowed);
        let long_run = self.long_run.get_or_insert_with(|| {
            let found = steady(chain, error).ok()?;
            Some(LongRun { probabilities: found.probabilities, error: found.error })
        });
        let LongRun { probabilities, error } = long_run.as_ref()?;
        // There and back again; a distance is twice the largest difference of a set at most.
        let left = 2.0 * (distance(now, probabilities) + 2.0 * error + now.len() as f64 * ROUNDOFF);
        self.end(left)
    }

    fn end(&mut self, left: f64) -> Option<f64> {
        self.is_over = left <= self.allowed;
        self.is_over.then_some(left)
    }
}

/// Sum of the differences.
fn distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).sum()
}
