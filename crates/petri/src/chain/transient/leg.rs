//! A piece of time over which one rate does.

use super::{
    Reward, STEPS_MAX,
    settling::{Change, Settling},
};
use crate::chain::{Chain, ROUNDOFF, pairwise, poisson::Window};

/// Steps between two looks at whether anything can still change.
const LOOK_EVERY: usize = 32;

/// From where the leg begins to its end, and to times on the way.
pub(super) struct Leg<'a> {
    pub chain: &'a Chain,
    /// No state that comes to have a probability above the cutoff may be left faster.
    pub rate: f64,
    /// Times since the leg's beginning, rising.
    pub offsets: &'a [f64],
    pub span: f64,
    /// Steps that are to follow behind the leg.
    pub behind: f64,
    /// Whether the probabilities at the end are asked for.
    pub with_end: bool,
    pub cutoff: f64,
    /// What the Poisson law of each time may leave out.
    pub tail: f64,
    /// The leg's part of all time.
    pub part: f64,
}

/// A leg that was gone.
pub(super) struct Walked {
    /// For each time the expectation of each reward.
    pub values: Vec<Vec<f64>>,
    pub end: Option<Vec<f64>>,
    /// What the leg adds to the error of every probability of a set.
    pub error: f64,
    pub steps: usize,
}

/// Why a leg was not gone.
pub(super) enum Stopped {
    /// A state is left faster than the rate.
    Faster,
    /// It is too long.
    TooManySteps,
}

/// How many steps there are until a time, as a law.
enum Steps {
    Few(Window),
    /// More than could be made: only what has settled before is known.
    Many,
}

impl Steps {
    fn until(mean: f64, tail: f64) -> Self {
        if mean > STEPS_MAX as f64 { Self::Many } else { Self::Few(Window::new(mean, tail)) }
    }

    fn first(&self) -> usize {
        match self {
            Self::Few(window) => window.first,
            Self::Many => usize::MAX,
        }
    }

    fn last(&self) -> usize {
        match self {
            Self::Few(window) => window.last(),
            Self::Many => usize::MAX,
        }
    }

    fn weight(&self, number: usize) -> f64 {
        match self {
            Self::Few(window) => window.weight(number),
            Self::Many => 0.0,
        }
    }

    /// The weight of `number` and all numbers behind it. Of [`Steps::Many`] no number is half their mean, so that what is before it is below any double
    /// (Chernoff: `exp(-0.15 mean)`).
    fn weight_from(&self, number: usize) -> f64 {
        match self {
            Self::Few(window) => window.weights[number.saturating_sub(window.first).min(window.weights.len())..].iter().sum(),
            Self::Many => 1.0,
        }
    }

    /// What is left out, and what rounding has done to the sum of the weights: the one at the mode is good to 5e-14, each further one is two operations
    /// more.
    fn error(&self) -> f64 {
        match self {
            Self::Few(window) => window.outside + (2.0 * window.weights.len() as f64 + 500.0) * ROUNDOFF,
            Self::Many => 0.0,
        }
    }
}

impl Leg<'_> {
    /// Goes from the probabilities `first`, in at most `steps_max` steps unless it settles.
    pub fn walk(&self, first: &[f64], rewards: &[Reward], settling: &mut Settling, steps_max: usize) -> Result<Walked, Stopped> {
        let laws: Vec<Steps> = self.offsets.iter().map(|offset| Steps::until(self.rate * offset, self.tail)).collect();
        let end_law = Steps::until(self.rate * self.span, self.tail);
        let last = laws.iter().chain(self.with_end.then_some(&end_law)).map(Steps::last).max().unwrap_or(0);
        let most = last.min(steps_max);
        let mut values = vec![vec![0.0; rewards.len()]; laws.len()];
        let mut end = self.with_end.then(|| vec![0.0; first.len()]);
        let mut walk = Walk { leg: self, now: first.to_vec(), before: vec![0.0; first.len()], lost: 0.0, lost_last: 0.0, steps: 0 };
        let (mut over, mut left) = (0, None);
        for number in 0..=most {
            if number % LOOK_EVERY == 0 {
                left = walk.left(settling, last.saturating_sub(number));
            }
            let is_settled = left.is_some();
            while over < laws.len() && laws[over].last() < number {
                over += 1;
            }
            let weight = |law: &Steps| if is_settled { law.weight_from(number) } else { law.weight(number) };
            // Times rise, so do their numbers of steps.
            let begun = if is_settled { laws.len() } else { over + laws[over..].partition_point(|law| law.first() <= number) };
            if begun > over {
                let expectations: Vec<f64> = rewards.iter().map(|reward| dot(reward, &walk.now)).collect();
                for (value, law) in values[over..begun].iter_mut().zip(&laws[over..begun]) {
                    let weight = weight(law);
                    value.iter_mut().zip(&expectations).for_each(|(value, expectation)| *value += weight * expectation);
                }
            }
            if let Some(end) = &mut end {
                let weight = weight(&end_law);
                if weight > 0.0 {
                    end.iter_mut().zip(&walk.now).for_each(|(sum, probability)| *sum += weight * probability);
                }
            }
            if is_settled {
                break;
            }
            if number < most {
                walk.step()?;
            }
        }
        if left.is_none() && most < last {
            return Err(Stopped::TooManySteps);
        }
        let outside = laws.iter().chain(self.with_end.then_some(&end_law)).map(Steps::error).fold(0.0, f64::max);
        let error = outside + left.unwrap_or(0.0) + walk.lost + walk.steps as f64 * rounding_of_step(self.chain);
        Ok(Walked { values, end, error, steps: walk.steps })
    }
}

fn dot(reward: &Reward, probabilities: &[f64]) -> f64 {
    pairwise::sum(0..reward.len(), &|index| {
        let (state, value) = reward[index];
        value * probabilities[state as usize]
    })
}

/// Bound on what rounding does to any sum of probabilities in one step. All terms have one sign, so that a sum is off by as many units as
/// it has terms: in a step those of a column, and in the rate of leaving those of a row; the sum over all states is the caller's.
pub(in crate::chain) fn rounding_of_step(chain: &Chain) -> f64 {
    (chain.row_len_max() + chain.column_len_max() + 6) as f64 * ROUNDOFF
}

/// The uniformized chain, step by step.
struct Walk<'a> {
    leg: &'a Leg<'a>,
    now: Vec<f64>,
    /// The same a step earlier.
    before: Vec<f64>,
    /// What was cut off, in all and in the last step.
    lost: f64,
    lost_last: f64,
    steps: usize,
}

impl Walk<'_> {
    fn step(&mut self) -> Result<(), Stopped> {
        let Leg { chain, rate, cutoff, .. } = *self.leg;
        self.lost_last = chain.step(rate, &self.now, &mut self.before, cutoff).ok_or(Stopped::Faster)?;
        std::mem::swap(&mut self.now, &mut self.before);
        self.lost += self.lost_last;
        self.steps += 1;
        Ok(())
    }

    /// What `remaining` further steps can still change, if that is little enough.
    fn left(&self, settling: &mut Settling, remaining: usize) -> Option<f64> {
        settling.absorbed(&self.now).or_else(|| {
            let before = (self.steps > 0).then_some(&self.before[..])?;
            let change = Change { now: &self.now, before, lost: self.lost_last, part: self.leg.part };
            settling.settled(&change, remaining as f64, self.leg.behind)
        })
    }
}
