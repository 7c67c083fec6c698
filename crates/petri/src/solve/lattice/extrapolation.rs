//! Values for ticks of several lengths, extrapolated to none.

use std::ops::Range;

/// Fewest levels: fewer agree by chance too easily.
pub const LEVELS_MIN: usize = 4;

/// Values `[times, columns]` of each level.
#[derive(Default)]
pub struct Levels {
    /// The square of a level's tick, the first one's being 1.
    squares: Vec<f64>,
    values: Vec<Vec<Vec<f64>>>,
    /// By column: the most that was cut off in any level.
    cut: Vec<f64>,
    /// Values for a tick of 0, and for each column what they may be off.
    pub best: Vec<Vec<f64>>,
    pub errors: Vec<f64>,
}

impl Levels {
    /// Adds the values of the first tick divided by `division`; of each column's values `cut` may be missing.
    pub fn add(&mut self, division: u32, values: Vec<Vec<f64>>, cut: Vec<f64>) {
        self.squares.push(f64::from(division).powi(-2));
        self.cut.resize(cut.len(), 0.0);
        self.cut.iter_mut().zip(cut).for_each(|(most, cut)| *most = most.max(cut));
        self.values.push(values);
        let count = self.values.len();
        self.best = self.extrapolated(0..count);
        self.errors = vec![f64::INFINITY; self.cut.len()];
        if count >= LEVELS_MIN {
            // What the finest level and what the coarsest one has changed: rather the error of an answer without it.
            let finest = largest(&self.best, &self.extrapolated(0..count - 1));
            let coarsest = largest(&self.best, &self.extrapolated(1..count));
            let enlarged: f64 = weights(&self.squares).iter().map(|weight| weight.abs()).sum();
            let changes = finest.into_iter().zip(coarsest).map(|(finest, coarsest)| finest.max(coarsest));
            self.errors = changes.zip(&self.cut).map(|(change, cut)| change + enlarged * cut).collect();
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The polynomial in the square of the tick through some levels, at 0.
    fn extrapolated(&self, levels: Range<usize>) -> Vec<Vec<f64>> {
        let weights = weights(&self.squares[levels.clone()]);
        let mut sums: Vec<Vec<f64>> = self.values[levels.start].iter().map(|row| vec![0.0; row.len()]).collect();
        for (weight, values) in weights.iter().zip(&self.values[levels]) {
            for (sums, values) in sums.iter_mut().zip(values) {
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        sums
    }
}

/// Lagrange's weights of points, for the value at 0.
fn weights(points: &[f64]) -> Vec<f64> {
    let weight = |own: &f64| points.iter().filter(|other| *other != own).map(|other| other / (other - own)).product();
    points.iter().map(weight).collect()
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
    fn a_polynomial_in_the_square_of_the_tick_is_extrapolated_exactly() {
        let value = |tick: f64| 3.0 - 0.5 * tick.powi(2) + 0.25 * tick.powi(4) + 0.125 * tick.powi(6);
        let mut levels = Levels::default();
        for division in [1, 2, 3, 4] {
            assert!(levels.errors.iter().all(|error| error.is_infinite()), "too few levels");
            levels.add(division, vec![vec![value(1.0 / f64::from(division))]], vec![0.0]);
        }
        assert!((levels.best[0][0] - 3.0).abs() < 1e-13, "{}", levels.best[0][0]);
        let without_finest = levels.extrapolated(0..3)[0][0];
        assert!((levels.errors[0] - (without_finest - 3.0).abs()).abs() < 1e-12, "{} beside {without_finest}", levels.errors[0]);
    }

    #[test]
    fn what_was_cut_off_is_enlarged_as_the_values_are() {
        let mut levels = Levels::default();
        [1, 2, 3, 4].into_iter().for_each(|division| levels.add(division, vec![vec![1.0]], vec![1e-3]));
        assert!(levels.errors[0] > 1e-3 && levels.errors[0] < 1e-2, "{}", levels.errors[0]);
    }
}
