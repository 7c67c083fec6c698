//! Values for ticks of several lengths, extrapolated to none.
//!
//! The error is a series in the powers of the tick from the second one on. Only even powers count where no two events of a cell depend
//! on each other's order; where they do, odd powers count too. Both series are extrapolated, and the one that settles better is taken,
//! column by column.

use std::ops::Range;

/// Fewest levels: fewer agree by chance too easily.
pub const LEVELS_MIN: usize = 4;

/// Largest ratio of two levels' changes that counts: a series that shrinks more slowly does not settle.
const RATIO_MAX: f64 = 0.9;

/// Times that an error is taken which a change of levels shows.
const SAFETY: f64 = 2.0;

/// Powers of the tick that an error has.
#[derive(Clone, Copy, Debug)]
enum Powers {
    /// 2, 4, 6 ...
    Even,
    /// 2, 3, 4 ...
    All,
}

/// Values `[times, columns]` of each level.
#[derive(Default)]
pub struct Levels {
    /// A level's tick, the first one's being 1.
    ticks: Vec<f64>,
    values: Vec<Vec<Vec<f64>>>,
    /// By column: the most that was cut off in any level.
    cut: Vec<f64>,
    /// By kind of series and column: what the last level changed.
    changes: [Vec<f64>; 2],
    /// Values for a tick of 0, and for each column what they may be off.
    pub best: Vec<Vec<f64>>,
    pub errors: Vec<f64>,
}

impl Levels {
    /// Adds the values of the first tick divided by `division`; of each column's values `cut` may be missing.
    pub fn add(&mut self, division: u32, values: Vec<Vec<f64>>, cut: Vec<f64>) {
        self.ticks.push(f64::from(division).recip());
        self.cut.resize(cut.len(), 0.0);
        self.cut.iter_mut().zip(cut).for_each(|(most, cut)| *most = most.max(cut));
        self.values.push(values);
        let (even, even_errors) = self.series(Powers::Even);
        let (all, all_errors) = self.series(Powers::All);
        self.best = even;
        for (best, all) in self.best.iter_mut().zip(all) {
            let taken = even_errors.iter().zip(&all_errors).map(|(even, all)| all < even);
            best.iter_mut().zip(all).zip(taken).filter(|(_, is_all)| *is_all).for_each(|((best, all), _)| *best = all);
        }
        self.errors = even_errors.iter().zip(&all_errors).map(|(even, all)| even.min(*all)).collect();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The values by one kind of series, and for each column what they may be off.
    fn series(&mut self, powers: Powers) -> (Vec<Vec<f64>>, Vec<f64>) {
        let count = self.values.len();
        let best = self.extrapolated(powers, 0..count);
        if count == 1 {
            return (best, vec![f64::INFINITY; self.cut.len()]);
        }
        let finest = largest(&best, &self.extrapolated(powers, 0..count - 1));
        let before = std::mem::replace(&mut self.changes[powers as usize], finest.clone());
        if count < LEVELS_MIN {
            return (best, vec![f64::INFINITY; self.cut.len()]);
        }
        // The changes by the finest level and by the coarsest one: rather the error of an answer without it.
        let coarsest = largest(&best, &self.extrapolated(powers, 1..count));
        let enlarged: f64 = weights(powers, &self.ticks).iter().map(|weight| weight.abs()).sum();
        let error = |column: usize| {
            // Where levels change less and less by a constant ratio, all further ones together change this many times as much.
            let ratio = (finest[column] / before[column].max(f64::MIN_POSITIVE)).min(RATIO_MAX);
            let further = (ratio / (1.0 - ratio)).max(1.0);
            SAFETY * further * finest[column].max(coarsest[column]) + enlarged * self.cut[column]
        };
        let errors = (0..self.cut.len()).map(error).collect();
        (best, errors)
    }

    /// The series through some levels, at 0.
    fn extrapolated(&self, powers: Powers, levels: Range<usize>) -> Vec<Vec<f64>> {
        let weights = weights(powers, &self.ticks[levels.clone()]);
        let mut sums: Vec<Vec<f64>> = self.values[levels.start].iter().map(|row| vec![0.0; row.len()]).collect();
        for (weight, values) in weights.iter().zip(&self.values[levels]) {
            for (sums, values) in sums.iter_mut().zip(values) {
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        sums
    }
}

/// The weights of values at these ticks for the value at 0. Of a polynomial in the square they are Lagrange's; those of a polynomial
/// without linear term follow from Lagrange's and the derivative at 0, which has to vanish.
fn weights(powers: Powers, ticks: &[f64]) -> Vec<f64> {
    let lagrange = |power: i32, own: f64| -> f64 {
        let others = ticks.iter().filter(|other| **other != own).map(|other| other.powi(power));
        others.map(|other| other / (other - own.powi(power))).product()
    };
    match powers {
        Powers::Even => ticks.iter().map(|own| lagrange(2, *own)).collect(),
        Powers::All => {
            let inverses: f64 = ticks.iter().map(|tick| tick.recip()).sum();
            ticks.iter().map(|own| lagrange(1, *own) / (own * inverses)).collect()
        }
    }
}

/// For each column the largest difference at any time.
fn largest(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<f64> {
    let mut found = vec![0.0_f64; a.first().map_or(0, Vec::len)];
    for (a, b) in a.iter().zip(b) {
        found.iter_mut().zip(a.iter().zip(b)).for_each(|(found, (a, b))| *found = found.max((a - b).abs()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_series_are_extrapolated_exactly() {
        let even = |tick: f64| 3.0 - 0.5 * tick.powi(2) + 0.25 * tick.powi(4) + 0.125 * tick.powi(6);
        let all = |tick: f64| 3.0 - 0.5 * tick.powi(2) + 0.25 * tick.powi(3) + 0.125 * tick.powi(4);
        for value in [even as fn(f64) -> f64, all] {
            let mut levels = Levels::default();
            for division in [1, 2, 3, 4, 6] {
                levels.add(division, vec![vec![value(1.0 / f64::from(division))]], vec![0.0]);
                assert!(levels.len() >= LEVELS_MIN || levels.errors[0].is_infinite(), "too few levels");
            }
            let off = (levels.best[0][0] - 3.0).abs();
            assert!(off < 1e-12 && off <= levels.errors[0] + 1e-14, "{off:e} and {:e}", levels.errors[0]);
        }
    }

    /// A series in the tick itself is not what is extrapolated: the estimate has to contain what it costs.
    #[test]
    fn error_of_first_order_is_within_the_estimate() {
        let mut levels = Levels::default();
        for (number, division) in [1, 2, 3, 4, 6, 8, 12, 16].into_iter().enumerate() {
            levels.add(division, vec![vec![3.0 - 0.5 / f64::from(division)]], vec![0.0]);
            let off = (levels.best[0][0] - 3.0).abs();
            assert!(number + 1 < LEVELS_MIN || off <= levels.errors[0], "{division}: {off:e}, told {:e}", levels.errors[0]);
        }
    }

    #[test]
    fn what_was_cut_off_is_enlarged_as_the_values_are() {
        let mut levels = Levels::default();
        [1, 2, 3, 4].into_iter().for_each(|division| levels.add(division, vec![vec![1.0]], vec![1e-3]));
        assert!(levels.errors[0] > 1e-3 && levels.errors[0] < 1e-2, "{}", levels.errors[0]);
    }
}
