//! Probabilities of a Markov chain at given times, by uniformization.
//!
//! `p(t) = sum over k of Poisson(k; q t) p(0) P^k` with `P = I + Q / q` (Jensen 1953; Grassmann 1977). Every term is 0 or more, so that
//! nothing cancels, and three things only are left out, each with a bound: the tails of the Poisson law, probabilities below a
//! cutoff, and rounding.
//!
//! Time goes in legs. Each has a rate of its own, which need not be above that of states that have no probability in it: a chain whose fast states
//! are over, or not yet met, takes as many steps as the others need (adaptive uniformization is due to van Moorsel and Sanders, Stochastic Models 10,
//! 1994; theirs changes the rate at every step). A leg ends early where what is left can change nothing any more ([`settling`]).

mod leg;
mod settling;

pub(super) use self::leg::rounding_of_step;
use self::{
    leg::{Leg, Stopped},
    settling::Settling,
};
use super::{Chain, pairwise};

/// Most steps of the uniformized chain in one analysis.
pub const STEPS_MAX: usize = 20_000_000;

/// The share of the error that each of the two truncations may have.
const TAIL_SHARE: f64 = 0.4;

/// The share of the error that may be left when a leg ends early.
const SETTLED_SHARE: f64 = 0.1;

/// The share of the error that probabilities below the cutoff may have.
const CUTOFF_SHARE: f64 = 0.1;

/// Steps of a leg behind which the rate is looked at again: so many that the Poisson law's width adds little to them.
const LEG_STEPS: f64 = 2_048.0;

/// A lower rate is taken where it is this much lower.
const SLOWER: f64 = 4.0;

/// Most additions of an analysis that is too long for its steps, in the hope that it settles.
const HOPE_MAX: f64 = 4e9;

/// What a leg's rate is above that of the states which it begins with: the next ones may be left a little faster.
const RATE_MARGIN: f64 = 1.25;

/// A chain that would take too many steps.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "the analysis would take {steps:.3e} steps, and the probabilities did not settle before; expected at most {STEPS_MAX}: the fastest rate times \
     the latest time is too large"
)]
pub struct TooManySteps {
    /// The steps that it would take.
    pub steps: f64,
}

/// Expectations at each time.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// For each time, the expectation of each reward.
    pub values: Vec<Vec<f64>>,
    /// For every probability of a set of states and every time: no more than this away from the true one. The error of an expectation
    /// is at most this times the reward's range.
    pub error: f64,
    /// Steps of the uniformized chain that were made.
    pub steps: usize,
}

/// Probabilities of all states at each time, told one behind the other.
pub struct Visit<'a> {
    /// Index of the time.
    pub time: usize,
    /// Probability of each state.
    pub probabilities: &'a [f64],
}

/// A value for some states, by rising state; 0 for the others.
pub type Reward = Vec<(u32, f64)>;

/// Expectations of `rewards` at `times`, which rise from 0, to about `error`.
///
/// All times of a leg share one sequence of steps; good for many times of a chain that is not too large.
///
/// # Errors
/// [`TooManySteps`].
pub fn curves(chain: &Chain, rewards: &[Reward], times: &[f64], error: f64) -> Result<Curves, TooManySteps> {
    let mut journey = Journey::new(chain, times, error);
    let mut values = Vec::with_capacity(times.len());
    while values.len() < times.len() {
        values.extend(journey.go(&times[values.len()..], rewards, false)?);
    }
    Ok(Curves { values, error: journey.error(), steps: journey.steps })
}

/// Tells `visit` the probabilities of all states at each of `times`, which rise from 0, to about `error`; gives the error and the steps.
///
/// One vector a time, from one time to the next; good for few times, or for large chains.
///
/// # Errors
/// [`TooManySteps`].
pub fn visit(chain: &Chain, times: &[f64], error: f64, mut visit: impl FnMut(Visit)) -> Result<(f64, usize), TooManySteps> {
    let mut journey = Journey::new(chain, times, error);
    for (index, time) in times.iter().enumerate() {
        while journey.go(&[*time], &[], true)?.is_empty() {}
        visit(Visit { time: index, probabilities: &journey.now });
    }
    Ok((journey.error(), journey.steps))
}

/// From time 0 on, leg by leg.
struct Journey<'a> {
    chain: &'a Chain,
    /// The rate at which no state is left faster.
    fastest: f64,
    /// Whether some states are left so much slower that they may do with a lower rate.
    is_stiff: bool,
    clock: f64,
    last: f64,
    now: Vec<f64>,
    error_asked: f64,
    /// So small that all that is cut off in all steps is [`CUTOFF_SHARE`] of the error at most.
    cutoff: f64,
    settling: Settling<'a>,
    /// Sum of the legs' errors.
    error_of_legs: f64,
    steps: usize,
    steps_max: usize,
}

impl<'a> Journey<'a> {
    fn new(chain: &'a Chain, times: &[f64], error: f64) -> Self {
        // A chain of absorbing states only stays where it is, whatever the rate.
        let fastest = Some(chain.exit_max()).filter(|rate| *rate > 0.0).unwrap_or(1.0);
        let slowest = chain.exits.iter().copied().filter(|exit| *exit > 0.0).fold(fastest, f64::min);
        let last = times.last().copied().unwrap_or(0.0);
        let asked = fastest * last;
        let planned = asked.min(STEPS_MAX as f64);
        let hope = HOPE_MAX / (chain.len() + chain.transitions()) as f64;
        let legs = times.len() as f64 + 1.0 + planned / LEG_STEPS;
        Self {
            chain,
            fastest,
            is_stiff: SLOWER * RATE_MARGIN * slowest < fastest,
            clock: 0.0,
            last,
            now: chain.first(),
            error_asked: error,
            // Legs make more steps than their mean, by less than half.
            cutoff: CUTOFF_SHARE * error / (chain.len() as f64 * (1.5 * planned + 1_000.0 * legs + 1.0)),
            settling: Settling::new(chain, SETTLED_SHARE * error),
            error_of_legs: 0.0,
            steps: 0,
            // Legs make more steps than their mean; where they cannot all be made, less than half of the mean, as [`leg::Steps::Many`] wants it.
            steps_max: if asked <= STEPS_MAX as f64 { 2 * STEPS_MAX } else { hope.min(0.5 * STEPS_MAX as f64) as usize },
        }
    }

    /// The bound on every probability of a set of states so far, with the rounding of expectations that are summed in pairs.
    fn error(&self) -> f64 {
        self.error_of_legs + pairwise::rounding(self.chain.len())
    }

    /// One leg towards the last of `times`, which have not been reached yet; gives the expectations at those that were. `now` is where the leg ended
    /// if it did before the last time, or if `with_end` asks for it.
    fn go(&mut self, times: &[f64], rewards: &[Reward], with_end: bool) -> Result<Vec<Vec<f64>>, TooManySteps> {
        let whole = times.last().map_or(0.0, |last| last - self.clock);
        let (mut rate, mut span) = self.pace(whole);
        loop {
            let is_whole = span >= whole;
            let inside = if is_whole { times.len() } else { times.partition_point(|time| *time <= self.clock + span) };
            let offsets: Vec<f64> = times[..inside].iter().map(|time| time - self.clock).collect();
            // A leg may be as much off as its part of the time is.
            let part = if self.last > 0.0 { span / self.last } else { 1.0 };
            let leg = Leg {
                chain: self.chain,
                rate,
                offsets: &offsets,
                span,
                behind: rate * (self.last - self.clock - span).max(0.0),
                with_end: with_end || !is_whole,
                cutoff: self.cutoff,
                tail: (TAIL_SHARE * self.error_asked * part).max(f64::MIN_POSITIVE),
                part,
            };
            match leg.walk(&self.now, rewards, &mut self.settling, self.steps_max - self.steps) {
                Ok(walked) => {
                    self.clock = if is_whole { times.last().copied().unwrap_or(self.clock) } else { self.clock + span };
                    self.now = walked.end.unwrap_or_default();
                    self.error_of_legs += walked.error;
                    self.steps += walked.steps;
                    return Ok(walked.values);
                }
                Err(Stopped::Faster) => {
                    rate = (2.0 * rate).min(self.fastest);
                    span = self.span(rate, whole);
                }
                Err(Stopped::TooManySteps) => return Err(TooManySteps { steps: self.steps as f64 + self.fastest * whole }),
            }
        }
    }

    /// The rate of the next leg, and how long it is.
    fn pace(&self, whole: f64) -> (f64, f64) {
        if !self.is_stiff || self.fastest * whole <= 2.0 * LEG_STEPS || self.settling.is_over() {
            return (self.fastest, whole);
        }
        let counts = self.now.iter().zip(&self.chain.exits).filter(|(probability, _)| **probability > self.cutoff);
        let rate = RATE_MARGIN * counts.map(|(_, exit)| *exit).fold(0.0, f64::max);
        let rate = if rate > 0.0 && SLOWER * rate < self.fastest { rate } else { self.fastest };
        (rate, self.span(rate, whole))
    }

    fn span(&self, rate: f64, whole: f64) -> f64 {
        whole.min(LEG_STEPS / rate)
    }
}
