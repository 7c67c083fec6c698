//! Measured durations as a histogram: all that a recorder keeps of them.

use serde::{Deserialize, Serialize};

use crate::{
    distribution::{Distribution, DistributionError},
    fit::{Family, Sample},
};

/// Values that stand for a histogram where a law is fitted to it.
const SAMPLE_VALUES: usize = 500;

/// Families that durations of stages are likely to be of; the best by likelihood, less its parameters, is taken.
const FAMILIES: [Family; 3] = [Family::Gamma, Family::Lognormal, Family::HyperErlang];

/// How often which duration was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Durations {
    /// Durations in us, ascending, and how often each was seen: those of a bucket stand for its upper edge.
    pub counts: Vec<(f64, u64)>,
    /// Sum of all, in us: exact where buckets are coarse.
    pub sum_us: f64,
}

impl Durations {
    /// Of buckets in ns, as the stage recorder has them, and the sum of what is in them.
    pub fn of_buckets_ns(buckets: &[(u64, u64)], sum_ns: u64) -> Self {
        Self { counts: buckets.iter().map(|(upper, count)| (*upper as f64 / 1e3, *count)).collect(), sum_us: sum_ns as f64 / 1e3 }
    }

    /// Of values in ns and how often each was seen.
    pub fn of_counts_ns(counts: &[(u64, u64)]) -> Self {
        let sum_ns: f64 = counts.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
        Self { counts: counts.iter().map(|(value, count)| (*value as f64 / 1e3, *count)).collect(), sum_us: sum_ns / 1e3 }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Their mean in us; 0 where there are none.
    pub fn mean_us(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum_us / self.count() as f64 }
    }

    /// The least duration in us that `share` of all are not above; 0 where there are none.
    pub fn quantile_us(&self, share: f64) -> f64 {
        let wanted = share * self.count() as f64;
        let mut passed = 0.0;
        for (value, count) in &self.counts {
            passed += *count as f64;
            if passed >= wanted {
                return *value;
            }
        }
        self.counts.last().map_or(0.0, |(value, _)| *value)
    }

    /// Variance over squared mean of those that `share` of all are not above.
    pub fn squared_variation(&self, share: f64) -> f64 {
        let limit = self.quantile_us(share);
        let kept = || self.counts.iter().filter(|(value, _)| *value <= limit).map(|(value, times)| (*value, *times as f64));
        let count: f64 = kept().map(|(_, times)| times).sum();
        let mean = kept().map(|(value, times)| value * times).sum::<f64>() / count;
        if mean > 0.0 { kept().map(|(value, times)| (value / mean - 1.0).powi(2) * times).sum::<f64>() / count } else { 0.0 }
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.counts.extend(&other.counts);
        self.counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.counts.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        self.sum_us += other.sum_us;
    }

    /// So many values at even steps of the distribution, each through `map`.
    pub fn spread(&self, map: impl Fn(f64) -> f64) -> Vec<f64> {
        let step = |index: usize| (index as f64 + 0.5) / SAMPLE_VALUES as f64;
        (0..SAMPLE_VALUES).map(|index| map(self.quantile_us(step(index)))).collect()
    }

    /// The likeliest law of the durations, scaled to have `mean_us` as its mean.
    ///
    /// # Errors
    /// There are no durations, or a mean that none has.
    pub fn law(&self, mean_us: f64) -> Result<Distribution, DistributionError> {
        let of_sample = self.spread(|value| value).iter().sum::<f64>() / SAMPLE_VALUES as f64;
        likeliest(self.spread(|value| value * mean_us / of_sample), mean_us)
    }
}

/// The likeliest law of these times, by Akaike's criterion; a fixed time where all are the same.
///
/// # Errors
/// A mean that no law has.
pub fn likeliest(values: Vec<f64>, mean_us: f64) -> Result<Distribution, DistributionError> {
    let fixed = || crate::fit::match_moments(mean_us, 0.0);
    let Ok(sample) = Sample::new(values) else { return fixed() };
    let report = crate::fit::fit(&sample, &FAMILIES, &crate::fit::Options { resamples: 0, ..crate::fit::Options::default() });
    let best = report.fits.into_iter().min_by(|a, b| a.aic.unwrap_or(f64::INFINITY).total_cmp(&b.aic.unwrap_or(f64::INFINITY)));
    // Where all values are the same no family has a likeliest law.
    best.map_or_else(fixed, |best| Ok(best.distribution))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 values of an exponential law with this mean.
    fn exponential(mean_us: f64) -> Durations {
        let value = |index: u64| ((-(1.0 - (index as f64 + 0.5) / 1e3).ln()) * mean_us * 1e3) as u64;
        let buckets: Vec<(u64, u64)> = (0..1_000).map(|index| (value(index), 1)).collect();
        Durations::of_counts_ns(&buckets)
    }

    #[test]
    fn a_histogram_has_its_mean_and_quantiles() {
        let durations = Durations::of_buckets_ns(&[(1_000, 1), (2_000, 2), (4_000, 1)], 8_400);
        assert_eq!((durations.count(), durations.mean_us()), (4, 2.1), "the sum is exact, the edges are not");
        assert_eq!([0.0, 0.25, 0.5, 0.75, 0.76, 1.0].map(|share| durations.quantile_us(share)), [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]);
        let mut both = durations.clone();
        both.add(&Durations::of_buckets_ns(&[(2_000, 1), (3_000, 1)], 5_000));
        assert_eq!(both.counts, [(1.0, 1), (2.0, 3), (3.0, 1), (4.0, 1)]);
        assert!((Durations::default().mean_us(), Durations::default().quantile_us(0.5)) == (0.0, 0.0));
    }

    #[test]
    fn a_law_has_the_mean_that_is_asked_for_and_the_shape_of_the_durations() {
        let law = exponential(7.0).law(3.0).expect("there is one");
        assert!((law.mean() / 3.0 - 1.0).abs() < 0.02, "{law:?}");
        assert!((law.quantile(0.99) / (3.0 * 100_f64.ln()) - 1.0).abs() < 0.1, "{law:?}");
        let fixed = Durations { counts: vec![(5.0, 100)], sum_us: 500.0 };
        assert_eq!(fixed.law(2.0).expect("there is one").variance(), 0.0);
        assert!((exponential(2.0).squared_variation(1.0) - 1.0).abs() < 0.05);
    }
}
