//! How long a Markov chain takes until it has come to a state that it does not leave, on average.
//!
//! The expected times solve `-Q h = 1`. They are found by sweeps (Gauss-Seidel) and certified afterwards: `-Q` has an inverse without a number below 0, so that times `g`
//! whose `-Q g` is within `1 - d` and `1 + d` in every state are between `(1 - d) h` and `(1 + d) h`.

use super::{Chain, ROUNDOFF, steady::SWEEPS_MAX};

/// Sweeps between two looks at how far the times are off.
const LOOK_EVERY: usize = 8;

/// Expected times.
#[derive(Clone, Debug, PartialEq)]
pub struct Absorption {
    /// From the chain's first probabilities.
    pub mean: f64,
    /// By which part of itself each of the times, and so their mean, may be off.
    pub part: f64,
    /// The longest of all states' times.
    pub longest: f64,
}

/// Expected times until the chain does not move any more, to about `part` of themselves. None where they were not found: a state may never come to such an end.
pub fn absorption(chain: &Chain, part: f64) -> Option<Absorption> {
    let mut times = vec![0.0; chain.len()];
    let mut reached = f64::INFINITY;
    for sweep in 1..=SWEEPS_MAX {
        // States are numbered as they are met: those of the highest numbers are the nearest to the end.
        for state in (0..chain.len()).rev().filter(|state| chain.exit(*state) > 0.0) {
            let others: f64 = chain.row(state).map(|(other, rate)| rate * times[other]).sum();
            times[state] = (1.0 + others) / chain.exit(state);
        }
        if sweep % LOOK_EVERY == 0 {
            let (before, now) = (reached, off(chain, &times));
            reached = now;
            // Rounding leaves something in any case.
            if now <= part || (now < 1e-9 && now >= before) {
                break;
            }
        }
    }
    if !reached.is_finite() || reached >= 0.5 {
        return None;
    }
    let mean = chain.first().iter().zip(&times).map(|(probability, time)| probability * time).sum();
    let longest = times.iter().copied().fold(0.0, f64::max);
    Some(Absorption { mean, part: reached / (1.0 - reached), longest: longest / (1.0 - reached) })
}

/// How far `-Q times` is from 1 at most, with what rounding may hide.
fn off(chain: &Chain, times: &[f64]) -> f64 {
    let roundings = (chain.row_len_max() + 4) as f64 * 2.0 * ROUNDOFF;
    let of_state = |state: usize| {
        let exit = chain.exit(state);
        if exit == 0.0 {
            return 0.0;
        }
        let others: f64 = chain.row(state).map(|(other, rate)| rate * times[other]).sum();
        let out = exit * times[state];
        (out - others - 1.0).abs() + roundings * (out + others + 1.0) + chain.doubt(state) * times.iter().copied().fold(0.0, f64::max)
    };
    (0..chain.len()).map(of_state).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk from 1 to `last`, up and down with these rates, that ends in 0.
    fn walk(last: u32, up: f64, down: f64) -> Chain {
        let mut chain = Chain::starting(vec![(1, 1.0)]);
        chain.push_row(&mut Vec::new());
        for state in 1..=last {
            let mut row = vec![(state - 1, down)];
            row.extend((state < last).then_some((state + 1, up)));
            chain.push_row(&mut row);
        }
        chain
    }

    #[test]
    fn a_busy_period_takes_as_long_as_its_formula_says() {
        for (last, up, down) in [(1_u32, 1.0_f64, 2.0), (5, 0.5, 1.0), (200, 0.9, 1.0)] {
            // The first step down takes the sum of (up / down)^i / down.
            let expected: f64 = (0..last).map(|step| (up / down).powi(step as i32) / down).sum();
            let found = absorption(&walk(last, up, down), 1e-11).expect("it ends");
            assert!((found.mean / expected - 1.0).abs() <= found.part && found.part < 1e-9, "{found:?} instead of {expected}");
            assert!(found.longest >= found.mean);
        }
    }

    #[test]
    fn what_never_ends_has_no_mean() {
        let mut chain = Chain::starting(vec![(0, 1.0)]);
        [vec![(1, 1.0)], vec![(0, 1.0)]].iter_mut().for_each(|row| chain.push_row(row));
        assert_eq!(absorption(&chain, 1e-9), None);
    }
}
