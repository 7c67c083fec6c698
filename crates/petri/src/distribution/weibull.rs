//! Weibull's law.

use super::{DistributionError, Law, checked::Check};
use crate::{random::Draws, special::ln_gamma};

/// `(x / scale)^shape` is exponential of rate 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Weibull {
    shape: f64,
    scale: f64,
}

impl Weibull {
    /// `shape` is 0.02 to 1e6 (below, the variance is beyond all numbers), `scale` above 0.
    pub fn new(shape: f64, scale: f64) -> Result<Self, DistributionError> {
        let check = Check { law: "weibull" };
        let shape = check.hold("shape", shape, (0.02..=1e6).contains(&shape), "0.02 to 1e6")?;
        Ok(Self { shape, scale: check.positive("scale", scale)? })
    }

    /// Below 1 the longer it has taken, the longer it takes; above 1 the other way round.
    pub fn shape(&self) -> f64 {
        self.shape
    }

    /// The quantile of `1 - 1 / e`.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Expected `(x / scale)^order`.
    fn moment(&self, order: f64) -> f64 {
        ln_gamma(1.0 + order / self.shape).exp()
    }

    fn exponent(&self, x: f64) -> f64 {
        (x.max(0.0) / self.scale).powf(self.shape)
    }
}

impl Law for Weibull {
    fn mean(&self) -> f64 {
        self.scale * self.moment(1.0)
    }

    fn variance(&self) -> f64 {
        // m2 - m1^2 as m1^2 (m2 / m1^2 - 1), since for a great shape both are nearly 1.
        let ratio = (ln_gamma(1.0 + 2.0 / self.shape) - 2.0 * ln_gamma(1.0 + 1.0 / self.shape)).exp_m1();
        self.mean() * self.mean() * ratio
    }

    fn support(&self) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        if x < 0.0 {
            return Some(0.0);
        }
        let exponent = self.exponent(x);
        Some(self.shape / self.scale * (x / self.scale).powf(self.shape - 1.0) * (-exponent).exp())
    }

    fn cdf(&self, x: f64) -> f64 {
        -(-self.exponent(x)).exp_m1()
    }

    fn survival(&self, x: f64) -> f64 {
        (-self.exponent(x)).exp()
    }

    fn quantile(&self, p: f64) -> f64 {
        self.scale * (-(-p).ln_1p()).powf(1.0 / self.shape)
    }

    fn laplace(&self, _: f64) -> Option<f64> {
        None
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        self.scale * (-draws.uniform().ln()).powf(1.0 / self.shape)
    }
}
