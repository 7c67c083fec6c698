//! Laws made of the normal one.

use super::{DistributionError, Law, checked::Check, sampling::standard_normal};
use crate::{
    random::Draws,
    special::{normal_cdf, normal_pdf, normal_quantile},
};

/// Its logarithm is normal with mean `mu` and standard deviation `sigma`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lognormal {
    mu: f64,
    sigma: f64,
}

impl Lognormal {
    /// `mu` is -200 to 200, `sigma` above 0 and at most 10: the moments are numbers.
    pub fn new(mu: f64, sigma: f64) -> Result<Self, DistributionError> {
        let check = Check { law: "lognormal" };
        let mu = check.hold("mu", mu, (-200.0..=200.0).contains(&mu), "-200 to 200")?;
        Ok(Self { mu, sigma: check.hold("sigma", sigma, sigma > 0.0 && sigma <= 10.0, "above 0 and at most 10")? })
    }

    /// Mean of the logarithm.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// Standard deviation of the logarithm.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    fn standardized(&self, x: f64) -> f64 {
        (x.max(0.0).ln() - self.mu) / self.sigma
    }
}

impl Law for Lognormal {
    fn mean(&self) -> f64 {
        (self.mu + 0.5 * self.sigma * self.sigma).exp()
    }

    fn variance(&self) -> f64 {
        (self.sigma * self.sigma).exp_m1() * self.mean() * self.mean()
    }

    fn support(&self) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        Some(if x <= 0.0 { 0.0 } else { normal_pdf(self.standardized(x)) / (self.sigma * x) })
    }

    fn cdf(&self, x: f64) -> f64 {
        normal_cdf(self.standardized(x))
    }

    fn survival(&self, x: f64) -> f64 {
        normal_cdf(-self.standardized(x))
    }

    fn quantile(&self, p: f64) -> f64 {
        (self.mu + self.sigma * normal_quantile(p)).exp()
    }

    fn laplace(&self, _: f64) -> Option<f64> {
        None
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        (self.mu + self.sigma * standard_normal(draws)).exp()
    }
}

/// A normal law of mean `mean` and standard deviation `sd`, under the condition that it is in `min` to `max`.
#[derive(Clone, Debug, PartialEq)]
pub struct TruncatedNormal {
    location: f64,
    spread: f64,
    min: f64,
    max: f64,
    /// Probability of the interval under the normal law.
    mass: f64,
}

/// Least probability of the interval: below it what is left of the normal law is made of rounding errors.
const MASS_MIN: f64 = 1e-200;

impl TruncatedNormal {
    /// `mean` and `sd` are those of the normal law before the cut; `min` is at least 0, `max` above it and perhaps infinite. The
    /// interval must hold at least 1e-200 of the normal law.
    pub fn new(mean: f64, sd: f64, min: f64, max: f64) -> Result<Self, DistributionError> {
        let check = Check { law: "truncated_normal" };
        let mut law = Self {
            location: check.finite("mean", mean)?,
            spread: check.positive("sd", sd)?,
            min: check.not_negative("min", min)?,
            max: check.above("max", max, min)?,
            mass: 1.0,
        };
        law.mass = law.between(min, max);
        check.hold("min", min, law.mass >= MASS_MIN, "where the normal law has at least 1e-200 of its probability up to max")?;
        Ok(law)
    }

    /// Mean of the normal law before the cut.
    pub fn location(&self) -> f64 {
        self.location
    }

    /// Standard deviation of the normal law before the cut.
    pub fn spread(&self) -> f64 {
        self.spread
    }

    fn standardized(&self, x: f64) -> f64 {
        (x - self.location) / self.spread
    }

    /// Probability under the normal law that it is in `from` to `to`, taken from the nearer tail.
    fn between(&self, from: f64, to: f64) -> f64 {
        let (from, to) = (self.standardized(from), self.standardized(to));
        if from > 0.0 { normal_cdf(-from) - normal_cdf(-to) } else { normal_cdf(to) - normal_cdf(from) }
    }

    /// Densities of the standard normal law at both ends, over the mass, and those times the standardized ends.
    fn ends(&self) -> [(f64, f64); 2] {
        [self.min, self.max].map(|end| {
            let z = self.standardized(end);
            let density = normal_pdf(z) / self.mass;
            (density, if z.is_finite() { z * density } else { 0.0 })
        })
    }
}

impl Law for TruncatedNormal {
    fn mean(&self) -> f64 {
        let [(low, _), (high, _)] = self.ends();
        self.location + self.spread * (low - high)
    }

    fn variance(&self) -> f64 {
        let [(low, low_slope), (high, high_slope)] = self.ends();
        self.spread * self.spread * (1.0 + low_slope - high_slope - (low - high).powi(2))
    }

    fn support(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        let inside = (self.min..=self.max).contains(&x);
        Some(if inside { normal_pdf(self.standardized(x)) / (self.spread * self.mass) } else { 0.0 })
    }

    fn cdf(&self, x: f64) -> f64 {
        (self.between(self.min, x.clamp(self.min, self.max)) / self.mass).min(1.0)
    }

    fn survival(&self, x: f64) -> f64 {
        (self.between(x.clamp(self.min, self.max), self.max) / self.mass).min(1.0)
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        // e^(-s x) times a normal density is one of another mean; where that is far off, its mass is beyond numbers.
        let shifted = Self { location: self.location - s * self.spread * self.spread, ..self.clone() };
        let mass = shifted.between(self.min, self.max);
        (mass > MASS_MIN).then(|| (-s * self.location + 0.5 * (s * self.spread).powi(2)).exp() * mass / self.mass)
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        if self.mass < 0.25 {
            return self.quantile(draws.uniform());
        }
        loop {
            let x = self.location + self.spread * standard_normal(draws);
            if (self.min..=self.max).contains(&x) {
                return x;
            }
        }
    }
}
