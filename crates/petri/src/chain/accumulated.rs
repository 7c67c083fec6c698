//! What a Markov chain has earned up to given times.
//!
//! Uniformized, the time between two steps is `1 / q` on average whatever the steps are, so that what is earned up to `t` is
//! `sum over n of Poisson(n; q t) C(n) / q` with `C(n)` the sum of what the states of the first `n` steps earn in a unit of time. All terms are 0 or more.

use super::{
    Chain, ROUNDOFF, pairwise,
    poisson::Window,
    transient::{Reward, STEPS_MAX, TooManySteps, rounding_of_step},
};

/// What Poisson's laws leave out, as a part of what could be earned: far below rounding.
const TAIL: f64 = 1e-20;

/// Expectations at each time.
#[derive(Clone, Debug, PartialEq)]
pub struct Earned {
    /// For each time, what each reward has earned since time 0.
    pub values: Vec<Vec<f64>>,
    /// An expectation is off by at most this times what the reward earns at most in a unit of time.
    pub error: f64,
    /// Steps of the uniformized chain that were made.
    pub steps: usize,
}

/// What `rewards`, of which no value is below 0, have earned at `times`, which rise from 0.
///
/// # Errors
/// [`TooManySteps`].
pub fn accumulated(chain: &Chain, rewards: &[Reward], times: &[f64]) -> Result<Earned, TooManySteps> {
    // A chain that never moves earns all the same.
    let rate = Some(chain.exit_max()).filter(|rate| *rate > 0.0).unwrap_or(1.0);
    let latest = times.last().copied().unwrap_or(0.0);
    if rate * latest > STEPS_MAX as f64 {
        return Err(TooManySteps { steps: rate * latest });
    }
    let laws: Vec<Window> = times.iter().map(|time| Window::new(rate * time, TAIL)).collect();
    let steps = laws.iter().map(Window::last).max().unwrap_or(0);
    let mut sums = vec![Vec::with_capacity(steps + 1); rewards.len()];
    let (mut now, mut before) = (chain.first(), vec![0.0; chain.len()]);
    let mut earned = vec![0.0; rewards.len()];
    for number in 0..=steps {
        for ((sums, earned), reward) in sums.iter_mut().zip(&mut earned).zip(rewards) {
            sums.push(*earned);
            *earned += pairwise::sum(0..reward.len(), &|index| reward[index].1 * now[reward[index].0 as usize]);
        }
        if number < steps {
            // Whoever has no probability is left out, and nobody else.
            chain.step(rate, &now, &mut before, 0.0).expect("no state is left faster than the fastest");
            std::mem::swap(&mut now, &mut before);
        }
    }
    let of_law = |law: &Window| -> Vec<f64> {
        let weighted = |sums: &Vec<f64>| pairwise::sum(0..law.weights.len(), &|index| law.weights[index] * sums[law.first + index]) / rate;
        sums.iter().map(weighted).collect()
    };
    let error = laws.iter().zip(times).map(|(law, time)| error(chain, law, rate, *time)).fold(0.0, f64::max);
    Ok(Earned { values: laws.iter().map(of_law).collect(), error, steps })
}

/// Bound on the error at a time, for a reward of at most 1 in a unit of time.
///
/// `n` steps earn at most `n / q`, and the Poisson weight of `n` times `n` is `q t` times that of `n - 1`, so that behind the window there is at most `t` times
/// the probability from its last number on. Rounding: of each step as of probabilities, which a sum of `n` steps has `n^2 / 2` times; of the sums; of the
/// weights, as in [`transient`](super::transient).
fn error(chain: &Chain, law: &Window, rate: f64, time: f64) -> f64 {
    let last = law.last() as f64;
    let left_out = time * (2.0 * law.outside + law.weights[law.weights.len() - 1]);
    let of_sums = last * (0.5 * rounding_of_step(chain) + ROUNDOFF) + pairwise::rounding(chain.len());
    let of_weights = (2.0 * law.weights.len() as f64 + 500.0) * ROUNDOFF + pairwise::rounding(law.weights.len());
    left_out + last / rate * (of_sums + of_weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two states that change places: the time in the second one is known.
    #[test]
    fn the_time_in_a_state_is_the_integral_of_its_probability() {
        let mut chain = Chain::starting(vec![(0, 1.0)]);
        chain.push_row(&mut vec![(1, 3.0)]);
        chain.push_row(&mut vec![(0, 0.5)]);
        let times = [0.0, 0.01, 1.0, 20.0, 4_000.0];
        let Earned { values, error, .. } = accumulated(&chain, &[vec![(1, 1.0)], vec![(0, 2.0), (1, 2.0)]], &times).expect("few steps");
        assert!(error < 1e-7, "{error}");
        for (time, values) in times.iter().zip(values) {
            let (share, both) = (3.0 / 3.5, 3.5 * time);
            let exact = share * (time + (-both).exp_m1() / 3.5);
            assert!((values[0] - exact).abs() <= error, "at {time}: {} beside {exact}, {error}", values[0]);
            assert!((values[1] - 2.0 * time).abs() <= 2.0 * error, "at {time}: {}", values[1]);
        }
        let far = accumulated(&chain, &[vec![(1, 1.0)]], &[1e9]).expect_err("too many steps").steps;
        assert_eq!(far, 3e9);
    }
}
