//! Mixtures: one of several laws, taken by chance.

use super::{DistributionError, Erlang, Exponential, Law, checked::Check};
use crate::random::Draws;

/// One of several laws of the same family, each with its probability.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture<L> {
    branches: Vec<(f64, L)>,
}

/// One of several exponential laws: more variable than one of them.
pub type HyperExponential = Mixture<Exponential>;

/// One of several Erlang laws. These come as near to any law of times as one likes.
pub type HyperErlang = Mixture<Erlang>;

impl<L> Mixture<L> {
    /// 1 to 4,096 branches, each a probability and a law; the probabilities add up to 1 within 1e-9.
    pub fn new(branches: Vec<(f64, L)>) -> Result<Self, DistributionError> {
        let check = Check { law: "mixture" };
        check.parts("branches", branches.len())?;
        let probabilities = check.probabilities("probability", branches.iter().map(|(probability, _)| *probability))?;
        Ok(Self { branches: probabilities.into_iter().zip(branches).map(|(probability, (_, law))| (probability, law)).collect() })
    }

    /// Each branch's probability and law.
    pub fn branches(&self) -> &[(f64, L)] {
        &self.branches
    }

    /// The mean of `value` over the branches.
    fn mixed(&self, value: impl Fn(&L) -> f64) -> f64 {
        self.branches.iter().map(|(probability, law)| probability * value(law)).sum()
    }
}

impl<L: Law> Law for Mixture<L> {
    fn mean(&self) -> f64 {
        self.mixed(Law::mean)
    }

    fn variance(&self) -> f64 {
        let mean = self.mean();
        self.mixed(|law| law.variance() + (law.mean() - mean).powi(2))
    }

    fn support(&self) -> (f64, f64) {
        let supports = self.branches.iter().map(|(_, law)| law.support());
        supports.fold((f64::INFINITY, 0.0), |(low, high), (from, to)| (low.min(from), f64::max(high, to)))
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        self.branches.iter().map(|(probability, law)| Some(probability * law.pdf(x)?)).sum()
    }

    fn cdf(&self, x: f64) -> f64 {
        self.mixed(|law| law.cdf(x))
    }

    fn survival(&self, x: f64) -> f64 {
        self.mixed(|law| law.survival(x))
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        self.branches.iter().map(|(probability, law)| Some(probability * law.laplace(s)?)).sum()
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        let mut left = draws.uniform();
        let taken = self.branches.iter().find(|(probability, _)| {
            left -= probability;
            left < 0.0
        });
        // Rounding may leave a last bit of probability to nobody.
        let (_, law) = taken.unwrap_or(&self.branches[self.branches.len() - 1]);
        law.sample(draws)
    }
}
