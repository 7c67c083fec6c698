//! How far a sample is from a law.

use super::Sample;
use crate::distribution::Distribution;

/// Kolmogorov and Smirnov's statistic: the largest distance of the two distribution functions.
pub fn kolmogorov_smirnov(distribution: &Distribution, sample: &Sample) -> f64 {
    let count = sample.count() as f64;
    let distances = sample.values().iter().enumerate().map(|(rank, value)| {
        let (below, above) = (rank as f64 / count, (rank + 1) as f64 / count);
        let probability = distribution.cdf(*value);
        (probability - below).abs().max((above - probability).abs())
    });
    distances.fold(0.0, f64::max)
}

/// Anderson and Darling's statistic `A^2`: the squared distance, weighted so that both tails count as much as the middle.
pub fn anderson_darling(distribution: &Distribution, sample: &Sample) -> f64 {
    // An impossible value is as far away as numbers go.
    const IMPOSSIBLE: f64 = 1e-300;
    let values = sample.values();
    let count = values.len() as f64;
    let terms = values.iter().zip(values.iter().rev()).enumerate().map(|(rank, (low, high))| {
        let tails = distribution.cdf(*low).max(IMPOSSIBLE).ln() + distribution.survival(*high).max(IMPOSSIBLE).ln();
        (2 * rank + 1) as f64 * tails
    });
    -count - terms.sum::<f64>() / count
}

/// Quantiles of the law beside those of the sample, at most `count` of them: on a straight line where the law fits.
pub fn quantile_pairs(distribution: &Distribution, sample: &Sample, count: usize) -> Vec<(f64, f64)> {
    let count = count.min(sample.count());
    let share = |index: usize| (index as f64 + 0.5) / count as f64;
    let own = |index: usize| {
        if count == sample.count() { sample.values()[index] } else { sample.quantile(share(index)) }
    };
    (0..count).map(|index| (distribution.quantile(share(index)), own(index))).collect()
}
