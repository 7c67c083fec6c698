//! From measured times to laws: maximum likelihood, how well each law fits, and whether any does.
//!
//! [`fit`] tries families on a [`Sample`] and tests each with the right distribution of its statistics: that of samples drawn from
//! the fitted law and fitted again (parametric bootstrap; Stute, Gonzalez Manteiga and Presedo Quindimil, "Bootstrap based
//! goodness-of-fit tests", Metrika 40, 1993). Tables of Kolmogorov and Smirnov are for laws that were known before, and would pass
//! far too much. Where the data are rounded, what is drawn is rounded the same way.

mod bootstrap;
mod expectation;
mod goodness;
mod likelihood;
mod moments;
mod sample;
mod stages;
mod two_stages;

pub use self::{
    bootstrap::{Confidence, Statistic, Test},
    goodness::{anderson_darling, kolmogorov_smirnov, quantile_pairs},
    likelihood::{FitError, log_likelihood, maximum_likelihood},
    moments::match_moments,
    sample::{Outliers, Sample, SampleError},
};

use crate::distribution::Distribution;

/// A family of laws that is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// One parameter: rate.
    Exponential,
    /// Two: a whole shape, rate.
    Erlang,
    /// Two: shape, rate.
    Gamma,
    /// Three: two branches of exponential laws.
    HyperExponential,
    /// Two: the rates of two exponential stages, one behind the other.
    HypoExponential,
    /// Two to twelve: the rates of as many exponential stages, one behind the other.
    HypoExponentialN,
    /// Up to eleven: one to four branches of Erlang laws of at most 100 stages.
    HyperErlang,
    /// Three to nine: acyclic laws of two to five phases, in their canonical form.
    PhaseType,
    /// Two: both ends.
    Uniform,
    /// One: the value, where all are the same.
    Deterministic,
    /// Two: mean and standard deviation of a normal law that is cut at 0.
    TruncatedNormal,
    /// Two: mean and standard deviation of the logarithm.
    Lognormal,
    /// Two: shape, scale.
    Weibull,
    /// As many as one likes: no law of it is the likeliest, and that is told.
    Expolynomial,
    /// None: the sample itself.
    Empirical,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 15] = [
        Self::Exponential,
        Self::Erlang,
        Self::Gamma,
        Self::HyperExponential,
        Self::HypoExponential,
        Self::HypoExponentialN,
        Self::HyperErlang,
        Self::PhaseType,
        Self::Uniform,
        Self::Deterministic,
        Self::TruncatedNormal,
        Self::Lognormal,
        Self::Weibull,
        Self::Expolynomial,
        Self::Empirical,
    ];

    /// Whether it is fitted where nothing says which families are: the others take long, or never have a law.
    pub fn is_usual(self) -> bool {
        !matches!(self, Self::HypoExponentialN | Self::PhaseType | Self::Expolynomial)
    }

    /// Its name: that of its laws in files, but for stages of any number, whose laws are hypo-exponential ones.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Erlang => "erlang",
            Self::Gamma => "gamma",
            Self::HyperExponential => "hyper_exponential",
            Self::HypoExponential => "hypo_exponential",
            Self::HypoExponentialN => "hypo_exponential_n",
            Self::HyperErlang => "hyper_erlang",
            Self::PhaseType => "phase_type",
            Self::Uniform => "uniform",
            Self::Deterministic => "deterministic",
            Self::TruncatedNormal => "truncated_normal",
            Self::Lognormal => "lognormal",
            Self::Weibull => "weibull",
            Self::Expolynomial => "expolynomial",
            Self::Empirical => "empirical",
        }
    }

    /// Whether a law of it can be compared and tested: a density is needed for that.
    fn has_density(self) -> bool {
        !matches!(self, Self::Deterministic | Self::Empirical)
    }
}

/// How laws are tested.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Samples that are drawn from each fitted law and fitted again. The smallest p-value is one over one more: fewer than one over
    /// the level refuse nothing. 0 for no tests and no confidence intervals.
    pub resamples: u32,
    /// Decides what is drawn.
    pub seed: u64,
    /// A law fits when neither test is less likely than this.
    pub level: f64,
    /// Threads to use; answers do not depend on it.
    pub threads: usize,
}

impl Default for Options {
    /// 999 samples, seed 1, level 0.01, one thread.
    fn default() -> Self {
        Self { resamples: 999, seed: 1, level: 0.01, threads: 1 }
    }
}

/// A law fitted to a sample.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// Its family.
    pub family: Family,
    /// The law of the greatest likelihood.
    pub distribution: Distribution,
    /// Names and values of its parameters.
    pub parameters: Vec<(String, f64)>,
    /// Logarithm of the likelihood; none for laws without a density.
    pub log_likelihood: Option<f64>,
    /// Akaike's criterion: less is better.
    pub aic: Option<f64>,
    /// Schwarz's criterion: less is better.
    pub bic: Option<f64>,
    /// Tests of the fit, and how sure the parameters are; none without a density or without resamples.
    pub test: Option<Test>,
}

impl Fitted {
    /// Whether the tests let the law pass at `level`; none where there was no test, or too few resamples for so small a p-value.
    pub fn fits(&self, level: f64) -> Option<bool> {
        let test = self.test.as_ref().filter(|test| 1.0 / f64::from(test.resamples + 1) < level)?;
        Some(test.kolmogorov_smirnov.p_value >= level && test.anderson_darling.p_value >= level)
    }
}

/// What was found of a sample.
#[derive(Clone, Debug)]
pub struct Report {
    /// The fitted laws: those with a density by Schwarz's criterion, the best first, then the others.
    pub fits: Vec<Fitted>,
    /// Families without a law of greatest likelihood, and why.
    pub refused: Vec<(Family, FitError)>,
    /// Values far outside of the others.
    pub outliers: Outliers,
    /// Whether a tested law fits; none where none was tested.
    pub any_fits: Option<bool>,
}

/// Fits each of `families` to `sample` and tests it.
pub fn fit(sample: &Sample, families: &[Family], options: &Options) -> Report {
    let (mut fits, mut refused) = (Vec::new(), Vec::new());
    for family in families {
        match maximum_likelihood(*family, sample) {
            Ok(distribution) => fits.push(judged(*family, distribution, sample, options)),
            Err(error) => refused.push((*family, error)),
        }
    }
    fits.sort_by(|a, b| a.bic.unwrap_or(f64::INFINITY).total_cmp(&b.bic.unwrap_or(f64::INFINITY)));
    let verdicts: Vec<bool> = fits.iter().filter_map(|fitted| fitted.fits(options.level)).collect();
    let any_fits = (!verdicts.is_empty()).then(|| verdicts.contains(&true));
    Report { fits, refused, outliers: sample.outliers(), any_fits }
}

fn judged(family: Family, distribution: Distribution, sample: &Sample, options: &Options) -> Fitted {
    let parameters = likelihood::parameters(&distribution);
    let log_likelihood = log_likelihood(&distribution, sample);
    let free = likelihood::free_parameters(&distribution) as f64;
    let aic = log_likelihood.map(|value| 2.0 * free - 2.0 * value);
    let bic = log_likelihood.map(|value| free * (sample.count() as f64).ln() - 2.0 * value);
    let tested = family.has_density() && options.resamples > 0;
    let test = tested.then(|| bootstrap::test(family, &distribution, sample, options));
    Fitted { family, distribution, parameters, log_likelihood, aic, bic, test }
}

#[cfg(test)]
mod tests;
