//! Two exponential stages, one behind the other: the likeliest rates.
//!
//! Expectation maximization would set each stage's mean to what is expected of it given the values, and these add up to the values: so where
//! nothing changes any more the means of both add up to the sample's, and one number is left, the shorter stage's part. The likelihood's
//! slope in it is a sum of formulas, whose root is bisected.

use super::{FitError, Sample};
use crate::distribution::HypoExponential;

/// Parts that a shorter stage is looked for at, from the least on; towards equal stages the slope is 0 whatever the values are.
const PART_MIN: f64 = 1e-3;
const PART_MAX: f64 = 0.499;
const PARTS: u32 = 24;

/// Bisections: a double has no more to tell.
const BISECTIONS_MAX: u32 = 60;

/// Below this the difference of two numbers that are nearly the same is taken from its series.
const SMALL: f64 = 1e-3;

/// The law of the greatest likelihood. All values are above 0, and not all the same.
pub(super) fn hypo_exponential(sample: &Sample) -> Result<HypoExponential, FitError> {
    let slope = |part: f64| sample.values().iter().map(|value| slope_at(value / sample.mean(), part)).sum::<f64>();
    // Evenly in the logarithm.
    let parts = (0..=PARTS).map(|step| PART_MIN * (PART_MAX / PART_MIN).powf(f64::from(step) / f64::from(PARTS)));
    let slopes: Vec<(f64, f64)> = parts.map(|part| (part, slope(part))).collect();
    let tops = slopes.windows(2).filter(|pair| pair[0].1 > 0.0 && pair[1].1 <= 0.0).map(|pair| root(pair[0].0, pair[1].0, slope));
    let laws = tops.map(|part| [part, 1.0 - part].map(|part| 1.0 / (part * sample.mean())));
    let best = laws.max_by(|a, b| likelihood(*a, sample).total_cmp(&likelihood(*b, sample)));
    match best {
        Some(rates) => Ok(HypoExponential::new(&rates)?),
        None if slopes[0].1 <= 0.0 => Err(FitError::NoMaximum("the values vary as much as exponential ones: one stage is enough")),
        None => Err(FitError::NoMaximum("the values vary less than those of two stages of different rates: an Erlang law is likelier")),
    }
}

/// Logarithm of the likelihood of `sample` under two stages of these rates.
pub(super) fn likelihood([a, b]: [f64; 2], sample: &Sample) -> f64 {
    let (fast, slow) = (a.max(b), a.min(b));
    let constant = fast.ln() + slow.ln();
    let difference = fast - slow;
    // (e^(-slow x) - e^(-fast x)) / (fast - slow), which is x where both are the same.
    let spread = |x: f64| if difference * x == 0.0 { x.ln() } else { (-(-difference * x).exp_m1() / difference).ln() };
    sample.values().iter().map(|x| constant - slow * x + spread(*x)).sum()
}

/// The slope of the logarithm of the density at `x` in the shorter stage's part of a mean of 1.
fn slope_at(x: f64, part: f64) -> f64 {
    let (fast, slow) = (1.0 / part, 1.0 / (1.0 - part));
    let difference = fast - slow;
    let late = late(difference * x) / difference;
    // Of the density's logarithm in the faster and in the slower rate, and of these in the part.
    let in_fast = 1.0 / fast - late;
    let in_slow = 1.0 / slow - x + late;
    in_slow * slow * slow - in_fast * fast * fast
}

/// `1 - z / (e^z - 1)` for `z` of at least 0.
fn late(z: f64) -> f64 {
    if z < SMALL { z / 2.0 - z * z / 12.0 + z.powi(4) / 720.0 } else { 1.0 - z / z.exp_m1() }
}

fn root(low: f64, high: f64, slope: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..BISECTIONS_MAX {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if slope(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;

    /// The slope beside differences of the density's logarithm.
    #[test]
    fn the_slope_is_that_of_the_density() {
        for part in [0.002, 0.1, 0.3, 0.49] {
            for x in [1e-4, 0.03, 0.5, 1.0, 7.0] {
                let log = |part: f64| {
                    let law = HypoExponential::new(&[1.0 / part, 1.0 / (1.0 - part)]).expect("a law");
                    Distribution::HypoExponential(law).pdf(x).expect("a density").ln()
                };
                let step = 1e-4 * part;
                let measured = (log(part + step) - log(part - step)) / (2.0 * step);
                let found = slope_at(x, part);
                assert!((found - measured).abs() < 1e-5 * (1.0 + measured.abs() + 1.0 / part), "{part} {x}: {found} beside {measured}");
            }
        }
        assert!((late(SMALL * 0.999) / late(SMALL * 1.001) - 0.999 / 1.001).abs() < 1e-6);
    }
}
