//! How many steps a uniformized chain makes while a delay runs.

use crate::{
    chain::{ROUNDOFF, poisson::Window},
    distribution::{Distribution, Gamma},
    quadrature::gauss_points,
};

/// Most steps while one delay runs.
pub const STEPS_MAX: usize = 1_000_000;

/// Halves of the probability at either end of a law that have pieces of their own; what is left of it is 1e-15.
const OCTAVES: i32 = 50;

/// Most times that the pieces of an integral are halved.
const HALVINGS_MAX: u32 = 8;

/// Probabilities of the number of steps, and what follows from them.
#[derive(Clone, Debug)]
pub struct Steps {
    /// Probability that the delay ends behind exactly so many steps.
    pub ends: Vec<f64>,
    /// Expected time at which so many steps were made and the delay has not ended: the integral of `Poisson(k; rate t)` times the
    /// survival function, which is the probability of more than `k` steps over the rate.
    pub times: Vec<f64>,
    /// Probability that is missing in `ends` or in the wrong place.
    pub wrong: f64,
    /// Time that is missing in `times` behind the last step.
    pub missing_time: f64,
    /// What rounding has done to each number, relative.
    pub rounding: f64,
    /// Whether `wrong` is a bound; else integrals were compared with those over half the pieces.
    pub is_bound: bool,
}

impl Steps {
    /// Of a chain that makes `rate` steps per unit of time, leaving out about `tail`. None where that are more than [`STEPS_MAX`].
    pub fn of(law: &Distribution, rate: f64, tail: f64) -> Option<Self> {
        if rate == 0.0 {
            return Some(Self { ends: vec![1.0], times: vec![law.mean()], wrong: 0.0, missing_time: 0.0, rounding: 0.0, is_bound: true });
        }
        // Far above the mean a law may still have a share of it that counts.
        let latest = law.quantile(1.0 - 1e-12).max(law.mean());
        if rate * latest > 0.5 * STEPS_MAX as f64 {
            return None;
        }
        let (ends, wrong, is_bound) = match law {
            Distribution::Deterministic(law) => (mixture([(law.value(), 1.0)], rate, tail), tail, true),
            Distribution::Empirical(law) => {
                let share = 1.0 / law.values().len() as f64;
                (mixture(law.values().iter().map(|value| (*value, share)), rate, tail), tail, true)
            }
            Distribution::Uniform(law) => uniform(law.min(), law.max(), rate, tail),
            Distribution::Gamma(law) => (negative_binomial(law, rate, tail), tail, true),
            _ => {
                let (ends, change) = integrated(law, rate, tail);
                (ends, change, false)
            }
        };
        let mut more = 0.0;
        let time = |end: &f64| {
            let time = more / rate;
            more += end;
            time
        };
        let mut times: Vec<f64> = ends.iter().rev().map(time).collect();
        times.reverse();
        let missing_time = (law.mean() - times.iter().sum::<f64>()).max(0.0);
        let missing = (1.0 - ends.iter().sum::<f64>()).max(0.0);
        // A window's weights are each good to two operations a step from the mode, and that to 5e-14.
        let rounding = (3 * ends.len() + 500) as f64 * ROUNDOFF;
        Some(Self { ends, times, wrong: missing.max(wrong), missing_time, rounding, is_bound })
    }
}

/// For delays that are one of several fixed times.
fn mixture(times: impl IntoIterator<Item = (f64, f64)>, rate: f64, tail: f64) -> Vec<f64> {
    let mut ends = Vec::new();
    for (time, share) in times {
        let window = Window::new(rate * time, tail);
        if ends.len() <= window.last() {
            ends.resize(window.last() + 1, 0.0);
        }
        ends[window.first..].iter_mut().zip(&window.weights).for_each(|(end, weight)| *end += share * weight);
    }
    ends
}

/// The integral of Poisson's law over its mean from `min` to `max` times the rate is the difference of the probabilities of more steps.
/// With what is wrong, and whether that is a bound.
fn uniform(min: f64, max: f64, rate: f64, tail: f64) -> (Vec<f64>, f64, bool) {
    // Differences are divided by the length below and added up: what is left out of each grows by both.
    let (length, last) = (rate * (max - min), rate * max);
    let share = tail * length.min(1.0) / (2.0 * last + 100.0);
    let (early, late) = (Window::new(rate * min, share), Window::new(last, share));
    let (mut more_early, mut more_late) = (0.0, 0.0);
    let end = |number: usize| {
        let end = ((more_late - more_early) / length).max(0.0);
        more_early += early.weight(number);
        more_late += late.weight(number);
        end
    };
    let mut ends: Vec<f64> = (0..=late.last().max(early.last())).rev().map(end).collect();
    ends.reverse();
    let rounding = (3 * ends.len() + 500) as f64 * ROUNDOFF * (max / (max - min));
    (ends, tail + 2.0 * rounding, true)
}

/// For gamma laws: from the mode both ways, by the ratio of neighbours, and divided by the sum.
fn negative_binomial(law: &Gamma, rate: f64, tail: f64) -> Vec<f64> {
    let share = rate / (law.rate() + rate);
    let ratio = |number: f64| (law.shape() + number) / (number + 1.0) * share;
    let mode = ((law.shape() - 1.0) * rate / law.rate()).max(0.0).floor();
    let mut below = Vec::new();
    let (mut weight, mut number) = (1.0, mode);
    while number > 0.0 && weight > 1e-3 * tail {
        number -= 1.0;
        weight /= ratio(number);
        below.push(weight);
    }
    let mut ends = vec![0.0; number as usize];
    ends.extend(below.iter().rev());
    let (mut weight, mut number) = (1.0, mode);
    ends.push(weight);
    // Ratios come down to `share` from above it or up from below: the larger one bounds what is left as a geometric series.
    while ratio(number).max(share) >= 1.0 || weight / (1.0 - ratio(number).max(share)) > 1e-3 * tail {
        weight *= ratio(number);
        number += 1.0;
        ends.push(weight);
    }
    let sum: f64 = ends.iter().sum();
    ends.iter_mut().for_each(|end| *end /= sum);
    ends
}

/// For other laws: Gauss's points between quantiles, in pieces that are halved until the change is below `tail`, which is given back.
fn integrated(law: &Distribution, rate: f64, tail: f64) -> (Vec<f64>, f64) {
    let lower = (1..=OCTAVES).rev().map(|octave| law.quantile(0.5_f64.powi(octave)));
    let upper = (2..=OCTAVES).map(|octave| law.quantile(1.0 - 0.5_f64.powi(octave)));
    let mut cuts: Vec<f64> = lower.chain(upper).collect();
    cuts.dedup();
    let ends = |pieces: u32| {
        let points = cuts.windows(2).flat_map(|pair| {
            let step = (pair[1] - pair[0]) / f64::from(pieces);
            (0..pieces).flat_map(move |piece| gauss_points(pair[0] + f64::from(piece) * step, pair[0] + f64::from(piece + 1) * step))
        });
        mixture(points.map(|(time, weight)| (time, weight * law.pdf(time).unwrap_or(0.0))), rate, 1e-2 * tail)
    };
    let mut found = ends(1);
    let mut change = f64::INFINITY;
    for halving in 1..=HALVINGS_MAX {
        let finer = ends(1 << halving);
        let at = |ends: &[f64], index: usize| ends.get(index).copied().unwrap_or(0.0);
        change = (0..finer.len().max(found.len())).map(|index| (at(&finer, index) - at(&found, index)).abs()).sum();
        found = finer;
        if change <= tail {
            break;
        }
    }
    (found, change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{Deterministic, Empirical, Lognormal, Uniform, Weibull};

    #[test]
    fn steps_have_the_mean_and_the_spread_that_the_law_gives_them() {
        let laws = [
            Distribution::Deterministic(Deterministic::new(0.7).expect("right")),
            Distribution::Empirical(Empirical::new(vec![0.2, 0.5, 3.0]).expect("right")),
            Distribution::Uniform(Uniform::new(0.0, 2.0).expect("right")),
            Distribution::Uniform(Uniform::new(1.0, 1.5).expect("right")),
            Distribution::Gamma(Gamma::new(6.235, 2.683).expect("right")),
            Distribution::Gamma(Gamma::new(0.4, 1.5).expect("right")),
            Distribution::Lognormal(Lognormal::new(0.1, 0.5).expect("right")),
            Distribution::Weibull(Weibull::new(0.8, 1.2).expect("right")),
        ];
        for law in laws {
            for rate in [0.3, 4.0, 90.0] {
                let steps = Steps::of(&law, rate, 1e-12).expect("there are not too many");
                let moment = |power: i32| steps.ends.iter().enumerate().map(|(k, end)| end * (k as f64).powi(power)).sum::<f64>();
                let (mean, variance) = (rate * law.mean(), rate * law.mean() + rate * rate * law.variance());
                assert!(
                    steps.wrong + steps.missing_time / law.mean() < 1e-9,
                    "{law:?} {rate}: {:e}, {:e}",
                    steps.wrong,
                    steps.missing_time
                );
                assert!((moment(1) / mean - 1.0).abs() < 1e-8, "{law:?} {rate}: {} and {mean}", moment(1));
                assert!(((moment(2) - moment(1).powi(2)) / variance - 1.0).abs() < 1e-6, "{law:?} {rate}");
                assert!((steps.times.iter().sum::<f64>() / law.mean() - 1.0).abs() < 1e-8, "{law:?} {rate}");
                if let Some(none) = law.laplace(rate) {
                    assert!((steps.ends[0] - none).abs() < 1e-10, "{law:?} {rate}: {} and {none}", steps.ends[0]);
                }
            }
        }
    }
}
