//! Tests of a fit, and how sure its parameters are, by drawing samples from the fitted law and fitting them again.

use super::{Family, Options, Sample, anderson_darling, kolmogorov_smirnov, likelihood, maximum_likelihood};
use crate::{
    distribution::{Distribution, Sampler},
    random::{Draws, Place},
};

/// What is in a confidence interval: this share of the resampled parameters.
const CONFIDENCE: f64 = 0.95;

/// A statistic and how often a sample of the law itself has one as great.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistic {
    /// Its value.
    pub value: f64,
    /// Probability of at least this value, if the law were right.
    pub p_value: f64,
}

/// Where a parameter may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Confidence {
    /// Its name.
    pub parameter: String,
    /// Ends of the 95 % interval.
    pub interval: (f64, f64),
    /// Covariances with every parameter, in their order: the region's shape.
    pub covariances: Vec<f64>,
}

/// What resampling says of a fitted law.
#[derive(Clone, Debug)]
pub struct Test {
    /// Largest distance of the distribution functions.
    pub kolmogorov_smirnov: Statistic,
    /// Weighted squared distance, strict in the tails.
    pub anderson_darling: Statistic,
    /// Of each parameter.
    pub confidence: Vec<Confidence>,
    /// Samples that were drawn and could be fitted again.
    pub resamples: u32,
}

/// One sample of the law, fitted again.
struct Resample {
    distances: [f64; 2],
    parameters: Vec<f64>,
}

/// Tests `distribution`, the law of `family` fitted to `sample`.
pub(super) fn test(family: Family, distribution: &Distribution, sample: &Sample, options: &Options) -> Test {
    let resamples = drawn(family, distribution, sample, options);
    let distances = [kolmogorov_smirnov(distribution, sample), anderson_darling(distribution, sample)];
    let statistic = |index: usize| {
        let as_great = resamples.iter().filter(|resample| resample.distances[index] >= distances[index]).count();
        Statistic { value: distances[index], p_value: (as_great + 1) as f64 / (resamples.len() + 1) as f64 }
    };
    Test {
        kolmogorov_smirnov: statistic(0),
        anderson_darling: statistic(1),
        confidence: confidence(distribution, &resamples),
        resamples: resamples.len() as u32,
    }
}

/// Every resample by its own number, whichever thread makes it.
fn drawn(family: Family, distribution: &Distribution, sample: &Sample, options: &Options) -> Vec<Resample> {
    let threads = options.threads.max(1);
    let share = (options.resamples as usize).div_ceil(threads).max(1);
    let numbers: Vec<u32> = (0..options.resamples).collect();
    let chunks = numbers.chunks(share);
    let make = |numbers: &[u32]| -> Vec<Resample> {
        numbers.iter().filter_map(|number| resample(family, distribution, sample, options.seed, *number)).collect()
    };
    std::thread::scope(|scope| {
        let made: Vec<_> = chunks.map(|numbers| scope.spawn(move || make(numbers))).collect();
        made.into_iter().flat_map(|thread| thread.join().expect("a panic of a thread is one of the whole")).collect()
    })
}

fn resample(family: Family, distribution: &Distribution, sample: &Sample, seed: u64, number: u32) -> Option<Resample> {
    let sampler = Sampler::new(distribution);
    let place = |draw| Place { run: u64::from(number), stream: 0, draw };
    let rounded = |time: f64| match sample.resolution() {
        // A time that was rounded to 0 was taken as one step.
        Some(step) => ((time / step).round() * step).max(if sample.range().0 > 0.0 { step } else { 0.0 }),
        None => time,
    };
    let values = (0..sample.count() as u32).map(|draw| rounded(sampler.sample(&mut Draws::at(seed, place(draw))))).collect();
    let again = Sample::of_times(values, sample.resolution());
    let law = maximum_likelihood(family, &again).ok()?;
    let distances = [kolmogorov_smirnov(&law, &again), anderson_darling(&law, &again)];
    let parameters = likelihood::parameters(&law).into_iter().map(|(_, value)| value).collect();
    Some(Resample { distances, parameters })
}

/// The middle 95 % of each parameter, and their covariances, of the resamples that have as many parameters.
fn confidence(distribution: &Distribution, resamples: &[Resample]) -> Vec<Confidence> {
    let names = likelihood::parameters(distribution);
    let same: Vec<&Resample> = resamples.iter().filter(|resample| resample.parameters.len() == names.len()).collect();
    if same.len() < 2 {
        return Vec::new();
    }
    let count = same.len() as f64;
    let means: Vec<f64> =
        (0..names.len()).map(|index| same.iter().map(|resample| resample.parameters[index]).sum::<f64>() / count).collect();
    let covariance = |a: usize, b: usize| {
        let product = |resample: &&Resample| (resample.parameters[a] - means[a]) * (resample.parameters[b] - means[b]);
        same.iter().map(product).sum::<f64>() / (count - 1.0)
    };
    let of_parameter = |(index, (parameter, _)): (usize, (String, f64))| {
        let mut values: Vec<f64> = same.iter().map(|resample| resample.parameters[index]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let end = |share: f64| values[((share * count) as usize).min(values.len() - 1)];
        let interval = (end(0.5 * (1.0 - CONFIDENCE)), end(0.5 * (1.0 + CONFIDENCE)));
        Confidence { parameter, interval, covariances: (0..means.len()).map(|other| covariance(index, other)).collect() }
    };
    names.into_iter().enumerate().map(of_parameter).collect()
}
