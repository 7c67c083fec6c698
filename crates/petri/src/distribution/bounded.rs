//! Laws of an interval and of a single value.

use super::{DistributionError, Law, checked::Check};
use crate::random::Draws;

/// Every time from `min` to `max` as likely.
#[derive(Clone, Debug, PartialEq)]
pub struct Uniform {
    min: f64,
    max: f64,
}

impl Uniform {
    /// `min` is at least 0, `max` above it.
    pub fn new(min: f64, max: f64) -> Result<Self, DistributionError> {
        let check = Check { law: "uniform" };
        let min = check.not_negative("min", min)?;
        Ok(Self { min, max: check.finite("max", check.above("max", max, min)?)? })
    }

    /// The shortest time.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The longest time.
    pub fn max(&self) -> f64 {
        self.max
    }

    fn width(&self) -> f64 {
        self.max - self.min
    }
}

impl Law for Uniform {
    fn mean(&self) -> f64 {
        self.min + 0.5 * self.width()
    }

    fn variance(&self) -> f64 {
        self.width() * self.width() / 12.0
    }

    fn support(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        Some(if (self.min..=self.max).contains(&x) { 1.0 / self.width() } else { 0.0 })
    }

    fn cdf(&self, x: f64) -> f64 {
        ((x - self.min) / self.width()).clamp(0.0, 1.0)
    }

    fn survival(&self, x: f64) -> f64 {
        ((self.max - x) / self.width()).clamp(0.0, 1.0)
    }

    fn quantile(&self, p: f64) -> f64 {
        self.min + p * self.width()
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        // (1 - e^-y) / y is 1 at 0.
        let y = s * self.width();
        let shape = if y == 0.0 { 1.0 } else { -(-y).exp_m1() / y };
        Some((-s * self.min).exp() * shape)
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        self.quantile(draws.uniform())
    }
}

/// Always `value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Deterministic {
    value: f64,
}

impl Deterministic {
    /// `value` is at least 0.
    pub fn new(value: f64) -> Result<Self, DistributionError> {
        Ok(Self { value: Check { law: "deterministic" }.not_negative("value", value)? })
    }

    /// The time.
    pub fn value(&self) -> f64 {
        self.value
    }
}

impl Law for Deterministic {
    fn mean(&self) -> f64 {
        self.value
    }

    fn variance(&self) -> f64 {
        0.0
    }

    fn support(&self) -> (f64, f64) {
        (self.value, self.value)
    }

    fn pdf(&self, _: f64) -> Option<f64> {
        None
    }

    fn cdf(&self, x: f64) -> f64 {
        if x >= self.value { 1.0 } else { 0.0 }
    }

    fn survival(&self, x: f64) -> f64 {
        1.0 - self.cdf(x)
    }

    fn quantile(&self, _: f64) -> f64 {
        self.value
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        Some((-s * self.value).exp())
    }

    fn sample(&self, _: &mut Draws) -> f64 {
        self.value
    }
}
