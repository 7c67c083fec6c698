//! The law of the greatest likelihood in each family.

use super::{Family, Sample, expectation, stages, two_stages};
use crate::{
    distribution::{
        Deterministic, Distribution, DistributionError, Empirical, Erlang, Exponential, Gamma, Lognormal, TruncatedNormal, Uniform, Weibull,
    },
    special::{digamma, ln_gamma, normal_cdf, normal_pdf, trigamma},
};

/// Steps of Newton's method; a handful is enough.
const STEPS_MAX: u32 = 100;

/// Why a family has no law of greatest likelihood.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// The likelihood grows without end, or towards a law of another family.
    #[error("no law of this family is the likeliest: {0}")]
    NoMaximum(&'static str),
    /// The likeliest parameters are none that a law takes.
    #[error(transparent)]
    Parameters(#[from] DistributionError),
}

/// The law of `family` under which `sample` is the likeliest.
///
/// Exact (to about 1e-12 of each parameter) but for mixtures, more than two stages and phase-type laws, which are found by expectation maximization, whose
/// maximum may be a local one.
pub fn maximum_likelihood(family: Family, sample: &Sample) -> Result<Distribution, FitError> {
    let (min, max) = sample.range();
    if family == Family::Empirical {
        return Ok(Distribution::Empirical(Empirical::new(sample.values().to_vec())?));
    }
    if family == Family::Deterministic {
        let same = if min == max { Ok(min) } else { Err(FitError::NoMaximum("the values differ")) };
        return Ok(Distribution::Deterministic(Deterministic::new(same?)?));
    }
    if family == Family::Exponential {
        return Ok(Distribution::Exponential(Exponential::new(1.0 / sample.mean())?));
    }
    if family == Family::Expolynomial {
        return Err(FitError::NoMaximum(
            "pieces may be as narrow around a value as one likes, which makes it likelier without end; hyper_erlang and phase_type laws are sums of the same terms",
        ));
    }
    if min == max {
        return Err(FitError::NoMaximum("all values are the same"));
    }
    let takes_zero = matches!(family, Family::Uniform | Family::TruncatedNormal | Family::HyperExponential);
    if min == 0.0 && !takes_zero {
        return Err(FitError::NoMaximum("a value is 0"));
    }
    Ok(match family {
        Family::Erlang => erlang(sample)?,
        Family::Gamma => {
            let shape = gamma_shape(sample.mean().ln() - sample.mean_log());
            Distribution::Gamma(Gamma::new(shape, shape / sample.mean())?)
        }
        Family::HyperExponential => Distribution::HyperExponential(expectation::hyper_exponential(sample)?),
        Family::HypoExponential => Distribution::HypoExponential(two_stages::hypo_exponential(sample)?),
        Family::HypoExponentialN => Distribution::HypoExponential(stages::hypo_exponential(sample)?),
        Family::PhaseType => Distribution::PhaseType(stages::phase_type(sample)?),
        Family::HyperErlang => Distribution::HyperErlang(expectation::hyper_erlang(sample)?),
        Family::Uniform => Distribution::Uniform(Uniform::new(min, max)?),
        Family::TruncatedNormal => truncated_normal(sample)?,
        Family::Lognormal => {
            let spread = |value: &f64| (value.ln() - sample.mean_log()).powi(2);
            let variance = sample.values().iter().map(spread).sum::<f64>() / sample.count() as f64;
            Distribution::Lognormal(Lognormal::new(sample.mean_log(), variance.sqrt())?)
        }
        Family::Weibull => weibull(sample)?,
        Family::Exponential | Family::Deterministic | Family::Expolynomial | Family::Empirical => unreachable!("are answered above"),
    })
}

/// Logarithm of the likelihood of `sample`; none for laws without a density. Minus infinity where a value is impossible.
pub fn log_likelihood(distribution: &Distribution, sample: &Sample) -> Option<f64> {
    let count = sample.count() as f64;
    let gamma = |shape: f64, rate: f64| {
        let powers = if shape == 1.0 { 0.0 } else { (shape - 1.0) * sample.mean_log() };
        count * (shape * rate.ln() - ln_gamma(shape) + powers - rate * sample.mean())
    };
    match distribution {
        Distribution::Exponential(law) => Some(gamma(1.0, law.rate())),
        Distribution::Erlang(law) => Some(gamma(f64::from(law.shape()), law.rate())),
        Distribution::Gamma(law) => Some(gamma(law.shape(), law.rate())),
        Distribution::HyperExponential(_) | Distribution::HyperErlang(_) => Some(expectation::log_likelihood(distribution, sample)),
        Distribution::HypoExponential(law) => match *law.rates() {
            [first, second] => Some(two_stages::likelihood([first, second], sample)),
            _ => by_density(distribution, sample),
        },
        _ => by_density(distribution, sample),
    }
}

fn by_density(distribution: &Distribution, sample: &Sample) -> Option<f64> {
    sample.values().iter().map(|value| distribution.pdf(*value).map(f64::ln)).sum()
}

/// Names and values of a law's parameters. Those of branches have the branch's number behind their name.
pub(super) fn parameters(distribution: &Distribution) -> Vec<(String, f64)> {
    let named = |list: &[(&str, f64)]| list.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    match distribution {
        Distribution::Exponential(law) => named(&[("rate", law.rate())]),
        Distribution::Erlang(law) => named(&[("shape", f64::from(law.shape())), ("rate", law.rate())]),
        Distribution::Gamma(law) => named(&[("shape", law.shape()), ("rate", law.rate())]),
        Distribution::Uniform(law) => named(&[("min", law.min()), ("max", law.max())]),
        Distribution::Deterministic(law) => named(&[("value", law.value())]),
        Distribution::TruncatedNormal(law) => named(&[("mean", law.location()), ("sd", law.spread())]),
        Distribution::Lognormal(law) => named(&[("mu", law.mu()), ("sigma", law.sigma())]),
        Distribution::Weibull(law) => named(&[("shape", law.shape()), ("scale", law.scale())]),
        Distribution::HypoExponential(law) => {
            law.rates().iter().enumerate().flat_map(|(index, rate)| of_branch(index, &[("rate", *rate)])).collect()
        }
        Distribution::PhaseType(law) => {
            let phase =
                |(index, initial): (usize, &f64)| of_branch(index, &[("initial", *initial), ("rate", -law.generator()[index][index])]);
            law.initial().iter().enumerate().flat_map(phase).collect()
        }
        Distribution::HyperExponential(law) => {
            let branches = law.branches().iter().enumerate();
            branches
                .flat_map(|(index, (probability, law))| of_branch(index, &[("probability", *probability), ("rate", law.rate())]))
                .collect()
        }
        Distribution::HyperErlang(law) => {
            let branches = law.branches().iter().enumerate();
            let parameters = |(index, (probability, law)): (usize, &(f64, Erlang))| {
                of_branch(index, &[("probability", *probability), ("shape", f64::from(law.shape())), ("rate", law.rate())])
            };
            branches.flat_map(parameters).collect()
        }
        _ => Vec::new(),
    }
}

fn of_branch(index: usize, parameters: &[(&str, f64)]) -> Vec<(String, f64)> {
    parameters.iter().map(|(name, value)| (format!("{name}_{}", index + 1), *value)).collect()
}

/// How many of the parameters are free: of the probabilities of branches all but one.
pub(super) fn free_parameters(distribution: &Distribution) -> usize {
    let tied = matches!(distribution, Distribution::HyperExponential(_) | Distribution::HyperErlang(_) | Distribution::PhaseType(_));
    parameters(distribution).len() - usize::from(tied)
}

/// The shape where `ln shape - digamma(shape)` is `spread`, which is above 0: by Newton's method on the shape's reciprocal (Minka,
/// "Estimating a gamma distribution", 2002).
pub(super) fn gamma_shape(spread: f64) -> f64 {
    let mut shape = (3.0 - spread + ((spread - 3.0).powi(2) + 24.0 * spread).sqrt()) / (12.0 * spread);
    for _ in 0..STEPS_MAX {
        let missing = shape.ln() - digamma(shape) - spread;
        let reciprocal = 1.0 / shape + missing / (shape * shape * (1.0 / shape - trigamma(shape)));
        let next = 1.0 / reciprocal;
        let settled = (next - shape).abs() <= 1e-14 * shape;
        shape = next;
        if settled {
            break;
        }
    }
    shape
}

/// The better one of the two whole shapes around gamma's: on either side of that the likelihood falls.
fn erlang(sample: &Sample) -> Result<Distribution, FitError> {
    let shape = gamma_shape(sample.mean().ln() - sample.mean_log());
    let law = |shape: f64| -> Result<(f64, Distribution), FitError> {
        let stages = shape.clamp(1.0, 1e9) as u32;
        let law = Distribution::Erlang(Erlang::new(stages, f64::from(stages) / sample.mean())?);
        Ok((log_likelihood(&law, sample).unwrap_or(f64::NEG_INFINITY), law))
    };
    let (below, above) = (law(shape.floor())?, law(shape.ceil())?);
    Ok(if above.0 > below.0 { above.1 } else { below.1 })
}

/// The root of the likelihood's slope in the shape, which falls, by Newton's method kept between bounds.
fn weibull(sample: &Sample) -> Result<Distribution, FitError> {
    // Powers of what is at most 1 do not overflow.
    let (_, max) = sample.range();
    let logs: Vec<f64> = sample.values().iter().map(|value| (value / max).ln()).collect();
    let count = logs.len() as f64;
    let mean_log = logs.iter().sum::<f64>() / count;
    let sums = |shape: f64| {
        logs.iter().fold((0.0, 0.0, 0.0), |(powers, first, second), log| {
            let power = (shape * log).exp();
            (powers + power, first + power * log, second + power * log * log)
        })
    };
    let spread = (logs.iter().map(|log| (log - mean_log).powi(2)).sum::<f64>() / count).sqrt();
    let mut shape = std::f64::consts::PI / (6.0_f64.sqrt() * spread);
    let (mut low, mut high) = (0.0, f64::INFINITY);
    for _ in 0..STEPS_MAX {
        let (powers, first, second) = sums(shape);
        let slope = first / powers - 1.0 / shape - mean_log;
        if slope < 0.0 {
            low = shape;
        } else {
            high = shape;
        }
        let curvature = (second * powers - first * first) / (powers * powers) + 1.0 / (shape * shape);
        let newton = shape - slope / curvature;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high.min(4.0 * shape)) };
        let settled = (next - shape).abs() <= 1e-14 * shape;
        shape = next;
        if settled {
            break;
        }
    }
    let scale = max * (sums(shape).0 / count).powf(1.0 / shape);
    Ok(Distribution::Weibull(Weibull::new(shape, scale)?))
}

/// The normal law cut at 0 that has the sample's mean and variance: in an exponential family that is the likeliest one. The ratio of
/// variance and squared mean depends on where the cut is in standard deviations only, and rises with it to 1.
fn truncated_normal(sample: &Sample) -> Result<Distribution, FitError> {
    const CUT_MAX: f64 = 20.0;
    let shape = |cut: f64| {
        let hazard = normal_pdf(cut) / normal_cdf(-cut);
        (hazard - cut, 1.0 + cut * hazard - hazard * hazard)
    };
    let ratio = sample.variance() / (sample.mean() * sample.mean());
    let reached = |cut: f64| {
        let (mean, variance) = shape(cut);
        variance / (mean * mean)
    };
    let (mut low, mut high) = (-2.0 / ratio.sqrt() - 1.0, CUT_MAX);
    if ratio >= reached(high) {
        return Err(FitError::NoMaximum("the values vary as much as exponential ones"));
    }
    while high - low > 1e-14 * low.abs().max(1.0) {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if reached(middle) < ratio {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (mean, _) = shape(low);
    let spread = sample.mean() / mean;
    Ok(Distribution::TruncatedNormal(TruncatedNormal::new(-low * spread, spread, 0.0, f64::INFINITY)?))
}
