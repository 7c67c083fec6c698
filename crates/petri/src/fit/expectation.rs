//! Mixtures by expectation maximization (Dempster, Laird and Rubin, 1977; for Erlang branches Thuemmler, Buchholz and Telek, "A novel
//! approach for phase-type fitting with the EM algorithm", IEEE TDSC 3, 2006).

use super::{FitError, Sample, likelihood::gamma_shape};
use crate::{
    distribution::{Distribution, DistributionError, Erlang, Exponential, HyperErlang, HyperExponential, Mixture},
    special::ln_gamma,
};

/// Most branches of a hyper-Erlang law.
const BRANCHES_MAX: usize = 4;

/// Most stages of a branch: nets with more are beyond what expands them, and a branch may not shrink to a value that repeats.
const STAGES_MAX: f64 = 100.0;

/// Most rounds.
const ROUNDS_MAX: u32 = 2_000;

/// A round that adds less than this to the logarithm of the likelihood is the last one: what is left is far below what the sample
/// leaves open.
const GAIN_MIN: f64 = 1e-6;

/// A branch that has less than this share of the sample is dropped.
const SHARE_MIN: f64 = 1e-9;

/// A gamma law and its probability.
#[derive(Clone, Copy, Debug)]
struct Branch {
    probability: f64,
    shape: f64,
    rate: f64,
}

/// What a round does with the shapes.
#[derive(Clone, Copy, PartialEq)]
enum Shapes {
    Free,
    Fixed,
}

/// A value, its logarithm, and how often it was measured.
struct Measured {
    value: f64,
    log: f64,
    times: f64,
}

/// The likeliest two branches of exponential laws.
pub(super) fn hyper_exponential(sample: &Sample) -> Result<HyperExponential, FitError> {
    if sample.variance() <= sample.mean() * sample.mean() {
        return Err(FitError::NoMaximum("the values vary no more than exponential ones"));
    }
    let measured = measured(sample);
    let memoryless = |branch: Branch| Branch { shape: 1.0, rate: branch.rate / branch.shape, ..branch };
    let best = likeliest(&measured, sample, 2, |start| maximized(&measured, start.into_iter().map(memoryless).collect(), Shapes::Fixed));
    if best.len() < 2 {
        return Err(FitError::NoMaximum("one branch is enough"));
    }
    let laws = best.iter().map(|branch| Ok((branch.probability, Exponential::new(branch.rate)?)));
    Ok(Mixture::new(laws.collect::<Result<_, DistributionError>>()?)?)
}

/// One to four branches of Erlang laws: as many as Schwarz's criterion pays for. Shapes are first fitted as real numbers, then
/// rounded and kept while the rest is fitted again.
pub(super) fn hyper_erlang(sample: &Sample) -> Result<HyperErlang, FitError> {
    let measured = measured(sample);
    let candidates = (1..=BRANCHES_MAX.min(sample.count() / 2).max(1)).map(|count| {
        let branches = likeliest(&measured, sample, count, |start| {
            let mut branches = maximized(&measured, start, Shapes::Free);
            for branch in &mut branches {
                let shape = branch.shape.round().clamp(1.0, STAGES_MAX);
                *branch = Branch { shape, rate: branch.rate * shape / branch.shape, ..*branch };
            }
            maximized(&measured, branches, Shapes::Fixed)
        });
        let free = (3 * branches.len() - 1) as f64;
        (free * (sample.count() as f64).ln() - 2.0 * likelihood(&measured, &branches), branches)
    });
    let (_, best) = candidates.min_by(|a, b| a.0.total_cmp(&b.0)).expect("one branch is always tried");
    let laws = best.iter().map(|branch| Ok((branch.probability, Erlang::new(branch.shape as u32, branch.rate)?)));
    Ok(Mixture::new(laws.collect::<Result<_, DistributionError>>()?)?)
}

/// Logarithm of the likelihood of `sample` under a mixture.
///
/// # Panics
/// If `distribution` is no mixture.
pub(super) fn log_likelihood(distribution: &Distribution, sample: &Sample) -> f64 {
    let branches: Vec<Branch> = match distribution {
        Distribution::HyperExponential(law) => {
            let branch = |(probability, law): &(f64, Exponential)| Branch { probability: *probability, shape: 1.0, rate: law.rate() };
            law.branches().iter().map(branch).collect()
        }
        Distribution::HyperErlang(law) => {
            let branch =
                |(probability, law): &(f64, Erlang)| Branch { probability: *probability, shape: f64::from(law.shape()), rate: law.rate() };
            law.branches().iter().map(branch).collect()
        }
        other => panic!("{} is no mixture", other.name()),
    };
    likelihood(&measured(sample), &branches)
}

fn measured(sample: &Sample) -> Vec<Measured> {
    let mut measured: Vec<Measured> = Vec::new();
    for value in sample.values() {
        match measured.last_mut().filter(|last| last.value == *value) {
            Some(last) => last.times += 1.0,
            None => measured.push(Measured { value: *value, log: value.ln(), times: 1.0 }),
        }
    }
    measured
}

/// The likeliest of what `climb` makes of the starts, its branches by their means.
fn likeliest(measured: &[Measured], sample: &Sample, count: usize, climb: impl Fn(Vec<Branch>) -> Vec<Branch>) -> Vec<Branch> {
    let climbed = starts(sample, count).into_iter().map(climb);
    let climbed = climbed.map(|branches| (likelihood(measured, &branches), branches));
    let (_, mut best) = climbed.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there is a start");
    best.sort_by(|a, b| (a.shape / a.rate).total_cmp(&(b.shape / b.rate)));
    best
}

/// Where to begin: the sorted values in groups of the same size, and in groups of which each is a fifth of what is left, for tails.
fn starts(sample: &Sample, count: usize) -> Vec<Vec<Branch>> {
    let values = sample.values();
    let same = |group: usize| values.len() * group / count;
    let falling = |group: usize| if group == count { values.len() } else { values.len() - values.len() / 5_usize.pow(group as u32) };
    let groups = |bound: &dyn Fn(usize) -> usize| -> Vec<Branch> {
        let slices = (0..count).map(|group| &values[bound(group)..bound(group + 1)]);
        slices.filter(|slice| !slice.is_empty()).map(|slice| of_group(slice, values.len())).collect()
    };
    if count == 1 { vec![groups(&same)] } else { vec![groups(&same), groups(&falling)] }
}

/// The branch with the group's mean, and nearly its spread.
fn of_group(group: &[f64], of: usize) -> Branch {
    let count = group.len() as f64;
    let mean = (group.iter().sum::<f64>() / count).max(f64::MIN_POSITIVE);
    let variance = group.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let shape = (mean * mean / variance.max(1e-6 * mean * mean)).clamp(1.0, STAGES_MAX);
    Branch { probability: count / of as f64, shape, rate: shape / mean }
}

/// Rounds until nothing is gained any more.
fn maximized(measured: &[Measured], start: Vec<Branch>, shapes: Shapes) -> Vec<Branch> {
    let mut branches = start;
    let mut before = f64::NEG_INFINITY;
    for _ in 0..ROUNDS_MAX {
        let (likelihood, next) = round(measured, &branches, shapes);
        if likelihood - before < GAIN_MIN {
            break;
        }
        before = likelihood;
        branches = next;
    }
    branches
}

/// What each value is worth to each branch, and the branches that are the likeliest for it; the logarithm of the likelihood of those
/// that were given.
fn round(measured: &[Measured], branches: &[Branch], shapes: Shapes) -> (f64, Vec<Branch>) {
    let constants = constants(branches);
    let mut sums = vec![[0.0; 3]; branches.len()];
    let mut logs = vec![0.0; branches.len()];
    let mut likelihood = 0.0;
    for Measured { value, log, times } in measured {
        let total = densities(branches, &constants, *value, *log, &mut logs);
        likelihood += times * total;
        for (sum, own) in sums.iter_mut().zip(&logs) {
            let weight = times * (own - total).exp();
            // A branch of shape 1 takes values of 0, whose logarithm is none.
            let weighted_log = if weight > 0.0 && shapes == Shapes::Free { weight * log } else { 0.0 };
            *sum = [sum[0] + weight, sum[1] + weight * value, sum[2] + weighted_log];
        }
    }
    let count: f64 = sums.iter().map(|sum| sum[0]).sum();
    let next = branches.iter().zip(&sums).filter(|(_, sum)| sum[0] > SHARE_MIN * count).map(|(branch, [weight, values, logs])| {
        let mean = values / weight;
        let shape = match shapes {
            Shapes::Fixed => branch.shape,
            Shapes::Free => {
                let spread = mean.ln() - logs / weight;
                // From 1/(2 STAGES_MAX) on the shape is below the limit.
                if spread > 0.5 / STAGES_MAX { gamma_shape(spread).clamp(1.0, STAGES_MAX) } else { STAGES_MAX }
            }
        };
        Branch { probability: weight / count, shape, rate: shape / mean }
    });
    (likelihood, next.collect())
}

fn likelihood(measured: &[Measured], branches: &[Branch]) -> f64 {
    let constants = constants(branches);
    let mut logs = vec![0.0; branches.len()];
    measured.iter().map(|Measured { value, log, times }| times * densities(branches, &constants, *value, *log, &mut logs)).sum()
}

/// Of each branch what its density's logarithm has without the value.
fn constants(branches: &[Branch]) -> Vec<f64> {
    let constant = |branch: &Branch| branch.probability.ln() + branch.shape * branch.rate.ln() - ln_gamma(branch.shape);
    branches.iter().map(constant).collect()
}

/// Writes the logarithm of each branch's share of the density at `value`; the logarithm of the whole.
fn densities(branches: &[Branch], constants: &[f64], value: f64, log: f64, logs: &mut [f64]) -> f64 {
    for ((branch, constant), own) in branches.iter().zip(constants).zip(&mut *logs) {
        let power = if branch.shape == 1.0 { 0.0 } else { (branch.shape - 1.0) * log };
        *own = constant + power - branch.rate * value;
    }
    let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    greatest + logs.iter().map(|own| (own - greatest).exp()).sum::<f64>().ln()
}
