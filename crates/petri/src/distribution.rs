//! Probability laws of the time that a timed transition takes.
//!
//! A [`Distribution`] that exists is right: its parameters were checked when it was made, and the error says which one was wrong. All
//! laws are of times, so nothing below 0 has any probability. Rates are per unit of time of the net, everything else is in that unit.

mod bounded;
mod checked;
mod empirical;
mod expolynomial;
mod exponential;
mod form;
mod gamma;
mod inverse;
mod mixture;
mod normal;
mod phase_type;
mod sampling;
mod weibull;

pub use self::{
    bounded::{Deterministic, Uniform},
    checked::DistributionError,
    empirical::Empirical,
    expolynomial::{Expolynomial, Piece, Term},
    exponential::Exponential,
    form::Form,
    gamma::{Erlang, Gamma},
    mixture::{HyperErlang, HyperExponential, Mixture},
    normal::{Lognormal, TruncatedNormal},
    phase_type::{HypoExponential, PhaseType},
    sampling::Sampler,
    weibull::Weibull,
};

use crate::random::Draws;

/// What is known of every law.
pub(crate) trait Law {
    /// Expected time.
    fn mean(&self) -> f64;

    /// Expected squared distance from the mean.
    fn variance(&self) -> f64;

    /// The shortest interval that holds all probability; its end may be infinite.
    fn support(&self) -> (f64, f64);

    /// Density at `x`; none where the law has points of positive probability.
    fn pdf(&self, x: f64) -> Option<f64>;

    /// Probability of at most `x`.
    fn cdf(&self, x: f64) -> f64;

    /// Probability of more than `x`, exact where it is small.
    fn survival(&self, x: f64) -> f64;

    /// Smallest `x` where the distribution function is at least `p`, which is in 0 to 1.
    fn quantile(&self, p: f64) -> f64 {
        inverse::quantile(self, p)
    }

    /// Expected `e^(-s x)` for `s` at least 0; none where it has no cheap form.
    fn laplace(&self, s: f64) -> Option<f64>;

    /// One time of this law.
    fn sample(&self, draws: &mut Draws) -> f64 {
        self.quantile(draws.uniform())
    }
}

/// The law of a timed transition's time.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Without memory.
    Exponential(Exponential),
    /// A whole number of exponential stages of one rate.
    Erlang(Erlang),
    /// Erlang's law for a real number of stages.
    Gamma(Gamma),
    /// One of several exponential laws.
    HyperExponential(HyperExponential),
    /// Exponential stages of their own rates, one behind the other.
    HypoExponential(HypoExponential),
    /// One of several Erlang laws.
    HyperErlang(HyperErlang),
    /// Time to absorption of a Markov chain.
    PhaseType(PhaseType),
    /// Every time of an interval as likely.
    Uniform(Uniform),
    /// Always the same.
    Deterministic(Deterministic),
    /// A normal law, cut to an interval.
    TruncatedNormal(TruncatedNormal),
    /// Its logarithm is normal.
    Lognormal(Lognormal),
    /// A power of it is exponential.
    Weibull(Weibull),
    /// Sums of polynomials times exponentials, piece by piece.
    Expolynomial(Expolynomial),
    /// What was measured, each value as likely.
    Empirical(Empirical),
}

impl Distribution {
    /// Expected time.
    pub fn mean(&self) -> f64 {
        self.law().mean()
    }

    /// Expected squared distance from the mean.
    pub fn variance(&self) -> f64 {
        self.law().variance()
    }

    /// The shortest interval that holds all probability; its end may be infinite.
    pub fn support(&self) -> (f64, f64) {
        self.law().support()
    }

    /// Density at `x`. None for laws with points of positive probability: deterministic and empirical ones.
    pub fn pdf(&self, x: f64) -> Option<f64> {
        self.law().pdf(x)
    }

    /// Probability of at most `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        self.law().cdf(x)
    }

    /// Probability of more than `x`, exact where it is small.
    pub fn survival(&self, x: f64) -> f64 {
        self.law().survival(x)
    }

    /// Smallest `x` where the distribution function is at least `p`.
    ///
    /// # Panics
    /// If `p` is not in 0 to 1.
    pub fn quantile(&self, p: f64) -> f64 {
        assert!((0.0..=1.0).contains(&p), "a quantile is asked for a probability, not {p}");
        self.law().quantile(p)
    }

    /// Laplace transform of the law, expected `e^(-s x)`, at a real `s` of at least 0. None where it has no cheap form: lognormal,
    /// Weibull and expolynomial laws.
    ///
    /// # Panics
    /// If `s` is below 0.
    pub fn laplace(&self, s: f64) -> Option<f64> {
        assert!(s >= 0.0, "the Laplace transform of a time is asked for a number from 0, not {s}");
        self.law().laplace(s)
    }

    /// One time of this law. Whoever needs many makes a [`Sampler`] first.
    pub fn sample(&self, draws: &mut Draws) -> f64 {
        self.law().sample(draws)
    }

    /// The law's name as it is in files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exponential(_) => "exponential",
            Self::Erlang(_) => "erlang",
            Self::Gamma(_) => "gamma",
            Self::HyperExponential(_) => "hyper_exponential",
            Self::HypoExponential(_) => "hypo_exponential",
            Self::HyperErlang(_) => "hyper_erlang",
            Self::PhaseType(_) => "phase_type",
            Self::Uniform(_) => "uniform",
            Self::Deterministic(_) => "deterministic",
            Self::TruncatedNormal(_) => "truncated_normal",
            Self::Lognormal(_) => "lognormal",
            Self::Weibull(_) => "weibull",
            Self::Expolynomial(_) => "expolynomial",
            Self::Empirical(_) => "empirical",
        }
    }

    fn law(&self) -> &dyn Law {
        match self {
            Self::Exponential(law) => law,
            Self::Erlang(law) => law,
            Self::Gamma(law) => law,
            Self::HyperExponential(law) => law,
            Self::HypoExponential(law) => law,
            Self::HyperErlang(law) => law,
            Self::PhaseType(law) => law,
            Self::Uniform(law) => law,
            Self::Deterministic(law) => law,
            Self::TruncatedNormal(law) => law,
            Self::Lognormal(law) => law,
            Self::Weibull(law) => law,
            Self::Expolynomial(law) => law,
            Self::Empirical(law) => law,
        }
    }
}

#[cfg(test)]
mod tests;
