//! Confidence intervals of means.

use crate::special::normal_quantile;

/// Sums over runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub runs: f64,
    pub value: f64,
    pub square: f64,
}

/// A mean and where it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean of the runs.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The distance of the farther end.
    pub fn half_width(&self) -> f64 {
        (self.high - self.value).max(self.value - self.low)
    }

    /// Whether `value` is in the interval.
    pub fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// How wide intervals are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    /// Standard deviations of a normal variable that the confidence reaches on either side.
    reach: f64,
}

impl Interval {
    /// That holds the true value with probability `confidence`.
    pub fn new(confidence: f64) -> Self {
        Self { reach: normal_quantile(0.5 + 0.5 * confidence) }
    }

    /// The mean of values that are `low` to `high`.
    ///
    /// Agresti and Coull's interval ("Approximate is better than 'exact' for interval estimation of binomial proportions", The
    /// American Statistician 52, 1998), for any bounded value: `reach^2` further runs, half of them with the lowest and half with
    /// the highest value, are counted in. So an interval has a width where no run has seen anything but one value, too.
    pub fn mean(&self, sums: Sums, (low, high): (f64, f64)) -> Estimate {
        let added = self.reach * self.reach;
        let runs = sums.runs + added;
        let center = (sums.value + 0.5 * added * (low + high)) / runs;
        let square = (sums.square + 0.5 * added * (low * low + high * high)) / runs;
        let half = self.reach * ((square - center * center).max(0.0) / runs).sqrt();
        let value = sums.value / sums.runs;
        Estimate { value, low: (center - half).max(low).min(value), high: (center + half).min(high).max(value) }
    }

    /// The mean of values without known bounds.
    pub fn unbounded_mean(&self, sums: Sums) -> Estimate {
        let value = sums.value / sums.runs;
        let variance = (sums.square / sums.runs - value * value).max(0.0) * sums.runs / (sums.runs - 1.0).max(1.0);
        let half = self.reach * (variance / sums.runs).sqrt();
        Estimate { value, low: value - half, high: value + half }
    }

    /// The mean of a few values without known bounds, with the quantile of Student's distribution in place of the normal one (by
    /// Fisher and Cornish's expansion: within 1 % from 9 degrees of freedom on).
    pub fn mean_of_few(&self, sums: Sums) -> Estimate {
        self.of_few(sums.runs).unbounded_mean(sums)
    }

    /// As wide as the spread between so many runs, 2 or more, asks for: with Student's quantile, as in [`Interval::mean_of_few`].
    pub fn of_few(&self, runs: f64) -> Self {
        let (z, freedom) = (self.reach, runs - 1.0);
        let cube = z.powi(3);
        let second = 5.0 * z.powi(5) + 16.0 * cube + 3.0 * z;
        Self { reach: z + (cube + z) / (4.0 * freedom) + second / (96.0 * freedom * freedom) }
    }

    /// What the share of so many independent values may be off.
    pub fn reach_of_share(&self, share: f64, count: f64) -> f64 {
        self.reach * (share * (1.0 - share) / count).max(0.0).sqrt()
    }

    /// The ratio of two sums over runs, `by` being the sum of the products: the spread of what a run's value is off from its part. Of few runs it is asked of [`Interval::of_few`].
    pub fn ratio(&self, value: Sums, count: Sums, by: f64) -> Estimate {
        let ratio = value.value / count.value;
        let seen = (value.square - 2.0 * ratio * by + ratio * ratio * count.square).max(0.0);
        // One number is taken from the runs themselves.
        let residual = seen * value.runs / (value.runs - 1.0).max(1.0);
        let half = self.reach * residual.sqrt() / count.value;
        Estimate { value: ratio, low: ratio - half, high: ratio + half }
    }

    /// The ratio as a share, which is 0 to 1: as in [`Interval::mean`] runs are counted in, half of them of either end.
    pub fn share(&self, ratio: Estimate, runs: f64) -> Estimate {
        let added = self.reach * self.reach;
        let center = (runs * ratio.value + 0.5 * added) / (runs + added);
        let spread = runs * (ratio.half_width() / self.reach).powi(2) * runs + 0.25 * added;
        let half = self.reach * spread.sqrt() / (runs + added);
        Estimate { value: ratio.value, low: (center - half).max(0.0).min(ratio.value), high: (center + half).min(1.0).max(ratio.value) }
    }

    /// The quantile of `share` of `sorted` values: the interval is between two of them that are as far to either side as the number
    /// of values below may be by chance, whatever the law. None beyond what the values can tell.
    pub fn quantile(&self, sorted: &[f64], of: usize, share: f64) -> Option<Estimate> {
        let count = of as f64;
        let spread = self.reach * (count * share * (1.0 - share)).sqrt();
        let value = *sorted.get(((share * count).ceil() as usize).max(1) - 1)?;
        let low = (share * count - spread).floor();
        let high = (share * count + spread).ceil() as usize;
        if low < 1.0 {
            return None;
        }
        Some(Estimate { value, low: sorted[low as usize - 1], high: *sorted.get(high)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact coverage of the interval for a probability, summed over all binomial outcomes: at 99 % it is nowhere below 98 %.
    #[test]
    fn intervals_of_probabilities_cover_them() {
        let interval = Interval::new(0.99);
        for (runs, p) in [(100, 0.001), (100, 0.02), (100, 0.5), (1_000, 0.000_1), (1_000, 0.003), (200, 0.9), (1_000, 0.3)] {
            let mut weight = (f64::from(runs) * f64::ln_1p(-p)).exp();
            let mut covered = 0.0;
            for hits in 0..=runs {
                let hits_count = f64::from(hits);
                let sums = Sums { runs: f64::from(runs), value: hits_count, square: hits_count };
                if interval.mean(sums, (0.0, 1.0)).covers(p) {
                    covered += weight;
                }
                weight *= f64::from(runs - hits) / (hits_count + 1.0) * p / (1.0 - p);
            }
            assert!(covered > 0.98, "{covered} of {runs} runs at {p}");
        }
    }

    #[test]
    fn a_value_that_was_never_seen_to_change_has_a_width() {
        let estimate = Interval::new(0.99).mean(Sums { runs: 1_000.0, value: 0.0, square: 0.0 }, (0.0, 1.0));
        assert_eq!(estimate.value, 0.0);
        assert!(estimate.high > 0.004 && estimate.high < 0.02 && estimate.low == 0.0, "{estimate:?}");
    }

    /// Student's quantiles of 99.5 % for 9, 19 and 49 degrees of freedom, from tables.
    #[test]
    fn a_mean_of_few_values_has_a_wider_interval() {
        for (runs, quantile) in [(10.0_f64, 3.2498), (20.0, 2.8609), (50.0, 2.6800)] {
            // Values of variance 1.
            let estimate = Interval::new(0.99).mean_of_few(Sums { runs, value: 0.0, square: runs - 1.0 });
            assert!((estimate.half_width() * runs.sqrt() / quantile - 1.0).abs() < 1e-2, "{estimate:?} of {runs}");
        }
    }

    #[test]
    fn a_quantile_is_between_two_values() {
        let sorted: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let median = Interval::new(0.99).quantile(&sorted, 1_000, 0.5).expect("there are values enough");
        assert_eq!(median, Estimate { value: 500.0, low: 459.0, high: 542.0 });
        assert_eq!(Interval::new(0.99).quantile(&sorted, 1_000, 0.999), None, "the upper end is beyond the last");
        assert_eq!(Interval::new(0.99).quantile(&sorted[..400], 1_000, 0.5), None, "fewer have arrived");
    }
}
