//! The exponential law.

use super::{DistributionError, Law, checked::Check};
use crate::random::Draws;

/// Without memory: density `rate e^(-rate x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Exponential {
    rate: f64,
}

impl Exponential {
    /// `rate` is above 0.
    pub fn new(rate: f64) -> Result<Self, DistributionError> {
        Ok(Self { rate: Check { law: "exponential" }.positive("rate", rate)? })
    }

    /// Firings per unit of time.
    pub fn rate(&self) -> f64 {
        self.rate
    }
}

impl Law for Exponential {
    fn mean(&self) -> f64 {
        1.0 / self.rate
    }

    fn variance(&self) -> f64 {
        self.mean() * self.mean()
    }

    fn support(&self) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        Some(if x < 0.0 { 0.0 } else { self.rate * self.survival(x) })
    }

    fn cdf(&self, x: f64) -> f64 {
        -(-self.rate * x.max(0.0)).exp_m1()
    }

    fn survival(&self, x: f64) -> f64 {
        (-self.rate * x.max(0.0)).exp()
    }

    fn quantile(&self, p: f64) -> f64 {
        -(-p).ln_1p() / self.rate
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        Some(self.rate / (self.rate + s))
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        -draws.uniform().ln() / self.rate
    }
}
