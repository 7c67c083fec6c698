//! Probabilities of a Markov chain at given times, by uniformization.
//!
//! `p(t) = sum over k of Poisson(k; q t) p(0) P^k` with `P = I + Q / q` (Jensen 1953; Grassmann 1977). Every term is 0 or more, so that
//! nothing cancels, and three things only are left out, each with a bound: the tails of the Poisson law, probabilities below a
//! cutoff, and rounding. Where all probability but a rest has come to states that are never left, the rest bounds what can still
//! change, and the sum ends there.

use super::{Chain, ROUNDOFF, poisson::Window};

/// Most steps of the uniformized chain in one analysis.
pub const STEPS_MAX: usize = 20_000_000;

/// The share of the error that each of the two truncations may have.
const TAIL_SHARE: f64 = 0.4;

/// A chain that would take too many steps.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the analysis would take {steps:.3e} steps; expected at most {STEPS_MAX}: the fastest rate times the latest time is too large")]
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
/// All times share one sequence of steps; good for many times of a chain that is not too large.
///
/// # Errors
/// [`TooManySteps`].
pub fn curves(chain: &Chain, rewards: &[Reward], times: &[f64], error: f64) -> Result<Curves, TooManySteps> {
    let rate = uniform_rate(chain);
    let windows: Vec<Window> = times.iter().map(|time| Window::new(rate * time, TAIL_SHARE * error)).collect();
    let last = windows.iter().map(Window::last).max().unwrap_or(0);
    check_steps(last as f64)?;
    let mut values = vec![vec![0.0; rewards.len()]; times.len()];
    let cutoff = cutoff(chain, last, error);
    let mut walk = Walk::new(chain, rate, chain.first(), cutoff);
    // Times rise, so do the windows: those before `begun` are over.
    let (mut over, mut settled) = (0, 0.0);
    for number in 0..=last {
        let is_settled = number % 32 == 0 && walk.unsettled() <= 0.1 * error;
        while over < windows.len() && windows[over].last() < number {
            over += 1;
        }
        let is_asked = is_settled || windows[over..].first().is_some_and(|window| window.first <= number);
        let expectations: Vec<f64> = rewards.iter().filter(|_| is_asked).map(|reward| dot(reward, &walk.now)).collect();
        for (value, window) in values[over..].iter_mut().zip(&windows[over..]) {
            if !is_settled && window.first > number {
                break;
            }
            let weight = if is_settled { tail_weight(window, number) } else { window.weight(number) };
            value.iter_mut().zip(&expectations).for_each(|(value, expectation)| *value += weight * expectation);
        }
        if is_settled {
            settled = walk.unsettled();
            break;
        }
        if number < last {
            walk.step();
        }
    }
    let outside = windows.iter().map(|window| window.outside + rounding_of(window)).fold(0.0, f64::max);
    Ok(Curves { values, error: outside + settled + walk.lost + walk.rounding(), steps: walk.steps })
}

/// Tells `visit` the probabilities of all states at each of `times`, which rise from 0, to about `error`; gives the error and the steps.
///
/// One vector a time, from one time to the next; good for few times, or for large chains.
///
/// # Errors
/// [`TooManySteps`].
pub fn visit(chain: &Chain, times: &[f64], error: f64, mut visit: impl FnMut(Visit)) -> Result<(f64, usize), TooManySteps> {
    let rate = uniform_rate(chain);
    let share = error / times.len().max(1) as f64;
    let spans: Vec<f64> = times.iter().scan(0.0, |last, time| Some(*time - std::mem::replace(last, *time))).collect();
    let windows: Vec<Window> = spans.iter().map(|span| Window::new(rate * span, TAIL_SHARE * share)).collect();
    let steps: usize = windows.iter().map(Window::last).sum();
    check_steps(steps as f64)?;
    let cutoff = cutoff(chain, steps, error);
    let (mut now, mut total, mut made) = (chain.first(), 0.0, 0);
    for (time, window) in windows.iter().enumerate() {
        let mut walk = Walk::new(chain, rate, now, cutoff);
        let mut sum = vec![0.0; chain.len()];
        for number in 0..=window.last() {
            if number >= window.first {
                let weight = window.weight(number);
                sum.iter_mut().zip(&walk.now).for_each(|(sum, probability)| *sum += weight * probability);
            }
            if number % 32 == 31 && walk.unsettled() <= 0.1 * share {
                let weight = tail_weight(window, number + 1);
                sum.iter_mut().zip(&walk.now).for_each(|(sum, probability)| *sum += weight * probability);
                total += walk.unsettled();
                break;
            }
            if number < window.last() {
                walk.step();
            }
        }
        total += window.outside + rounding_of(window) + walk.lost + walk.rounding();
        made += walk.steps;
        visit(Visit { time, probabilities: &sum });
        now = sum;
    }
    Ok((total, made))
}

/// The weight of `number` and all numbers behind it.
fn tail_weight(window: &Window, number: usize) -> f64 {
    window.weights[number.saturating_sub(window.first).min(window.weights.len())..].iter().sum()
}

/// Bound on what rounding has done to the sum of a window's weights: the one at the mode is good to 5e-14, each further
/// one is two operations more.
fn rounding_of(window: &Window) -> f64 {
    (2.0 * window.weights.len() as f64 + 500.0) * ROUNDOFF
}

fn uniform_rate(chain: &Chain) -> f64 {
    // A chain of absorbing states only stays where it is, whatever the rate.
    let rate = chain.exit_max();
    if rate > 0.0 { rate } else { 1.0 }
}

fn check_steps(steps: f64) -> Result<(), TooManySteps> {
    if steps <= STEPS_MAX as f64 { Ok(()) } else { Err(TooManySteps { steps }) }
}

/// So small that all that is cut off in all steps is a tenth of the error at most.
fn cutoff(chain: &Chain, steps: usize, error: f64) -> f64 {
    0.1 * error / (chain.len() as f64 * (steps + 1) as f64)
}

fn dot(reward: &Reward, probabilities: &[f64]) -> f64 {
    reward.iter().map(|(state, value)| value * probabilities[*state as usize]).sum()
}

/// The uniformized chain, step by step.
struct Walk<'a> {
    chain: &'a Chain,
    rate: f64,
    now: Vec<f64>,
    next: Vec<f64>,
    cutoff: f64,
    lost: f64,
    steps: usize,
    /// Operations that one step does to one probability, at most.
    operations: f64,
}

impl<'a> Walk<'a> {
    fn new(chain: &'a Chain, rate: f64, now: Vec<f64>, cutoff: f64) -> Self {
        let next = vec![0.0; now.len()];
        let operations = (chain.row_len_max() + chain.column_len_max() + 6) as f64;
        Self { chain, rate, now, next, cutoff, lost: 0.0, steps: 0, operations }
    }

    fn step(&mut self) {
        self.lost += self.chain.step(self.rate, &self.now, &mut self.next, self.cutoff);
        std::mem::swap(&mut self.now, &mut self.next);
        self.steps += 1;
    }

    /// Probability of the states that can be left: no more than this can still move.
    fn unsettled(&self) -> f64 {
        self.now.iter().zip(&self.chain.exits).filter(|(_, exit)| **exit > 0.0).map(|(probability, _)| probability).sum()
    }

    /// Bound on what rounding has done to any sum of probabilities. All terms have one sign, so that a sum is off by as many units as
    /// it has terms: in a step those of a column, and in the rate of leaving those of a row; the sum over all states is the caller's.
    fn rounding(&self) -> f64 {
        (self.steps as f64 * self.operations + self.now.len() as f64) * ROUNDOFF
    }
}
