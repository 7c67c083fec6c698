//! Gamma laws, and Erlang's, which are those of a whole shape.

use super::{DistributionError, Law, checked::Check, sampling::GammaSampler};
use crate::{
    random::Draws,
    special::{gamma_p, gamma_q, gamma_quantile, poisson_weight},
};

/// Largest shape of a gamma or Erlang law; the relative spread is 3e-5 there.
const SHAPE_MAX: f64 = 1e9;

/// Density `rate^shape x^(shape - 1) e^(-rate x) / Gamma(shape)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gamma {
    shape: f64,
    rate: f64,
}

impl Gamma {
    /// `shape` is above 0 and at most 1e9, `rate` above 0.
    pub fn new(shape: f64, rate: f64) -> Result<Self, DistributionError> {
        Self::checked(Check { law: "gamma" }, shape, rate)
    }

    fn checked(check: Check, shape: f64, rate: f64) -> Result<Self, DistributionError> {
        let shape = check.hold("shape", shape, shape > 0.0 && shape <= SHAPE_MAX, "above 0 and at most 1e9")?;
        Ok(Self { shape, rate: check.positive("rate", rate)? })
    }

    /// Number of stages, whole or not.
    pub fn shape(&self) -> f64 {
        self.shape
    }

    /// Rate of a stage: the mean is `shape / rate`.
    pub fn rate(&self) -> f64 {
        self.rate
    }
}

impl Law for Gamma {
    fn mean(&self) -> f64 {
        self.shape / self.rate
    }

    fn variance(&self) -> f64 {
        self.shape / (self.rate * self.rate)
    }

    fn support(&self) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        let scaled = self.rate * x;
        Some(match x {
            _ if x < 0.0 => 0.0,
            0.0 if self.shape < 1.0 => f64::INFINITY,
            0.0 => {
                if self.shape == 1.0 {
                    self.rate
                } else {
                    0.0
                }
            }
            _ => self.rate * self.shape / scaled * poisson_weight(self.shape, scaled),
        })
    }

    fn cdf(&self, x: f64) -> f64 {
        gamma_p(self.shape, self.rate * x.max(0.0))
    }

    fn survival(&self, x: f64) -> f64 {
        gamma_q(self.shape, self.rate * x.max(0.0))
    }

    fn quantile(&self, p: f64) -> f64 {
        gamma_quantile(self.shape, p) / self.rate
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        Some((-self.shape * (s / self.rate).ln_1p()).exp())
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        GammaSampler::new(self.shape, self.rate).sample(draws)
    }
}

/// The sum of `shape` exponential times of one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Erlang {
    stages: u32,
    gamma: Gamma,
}

impl Erlang {
    /// `shape` is 1 to 1e9, `rate` above 0.
    pub fn new(shape: u32, rate: f64) -> Result<Self, DistributionError> {
        Ok(Self { stages: shape, gamma: Gamma::checked(Check { law: "erlang" }, f64::from(shape), rate)? })
    }

    /// Number of stages.
    pub fn shape(&self) -> u32 {
        self.stages
    }

    /// Rate of a stage: the mean is `shape / rate`.
    pub fn rate(&self) -> f64 {
        self.gamma.rate
    }
}

impl Law for Erlang {
    fn mean(&self) -> f64 {
        self.gamma.mean()
    }

    fn variance(&self) -> f64 {
        self.gamma.variance()
    }

    fn support(&self) -> (f64, f64) {
        self.gamma.support()
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        self.gamma.pdf(x)
    }

    fn cdf(&self, x: f64) -> f64 {
        self.gamma.cdf(x)
    }

    fn survival(&self, x: f64) -> f64 {
        self.gamma.survival(x)
    }

    fn quantile(&self, p: f64) -> f64 {
        self.gamma.quantile(p)
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        self.gamma.laplace(s)
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        self.gamma.sample(draws)
    }
}
