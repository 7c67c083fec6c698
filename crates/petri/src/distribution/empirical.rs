//! What was measured.

use super::{DistributionError, Law, checked::Check};
use crate::random::Draws;

/// Each of the measured values as likely.
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    /// From the smallest to the largest.
    values: Vec<f64>,
}

/// Most values of an empirical law.
const VALUES_MAX: usize = 10_000_000;

impl Empirical {
    /// 1 to 10,000,000 values, each at least 0, in any order.
    pub fn new(mut values: Vec<f64>) -> Result<Self, DistributionError> {
        let check = Check { law: "empirical" };
        if values.is_empty() || values.len() > VALUES_MAX {
            return Err(check.error("values", format!("a list of {}", values.len()), format!("a list of 1 to {VALUES_MAX}")));
        }
        for value in &values {
            check.not_negative("values", *value)?;
        }
        values.sort_unstable_by(f64::total_cmp);
        Ok(Self { values })
    }

    /// The values, from the smallest to the largest.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    fn count(&self) -> f64 {
        self.values.len() as f64
    }

    fn expected(&self, value: impl Fn(f64) -> f64) -> f64 {
        self.values.iter().map(|x| value(*x)).sum::<f64>() / self.count()
    }

    /// The value at `share` of the way from the first to behind the last.
    fn at(&self, share: f64) -> f64 {
        self.values[((share * self.count()) as usize).min(self.values.len() - 1)]
    }
}

impl Law for Empirical {
    fn mean(&self) -> f64 {
        self.expected(|x| x)
    }

    fn variance(&self) -> f64 {
        let mean = self.mean();
        self.expected(|x| (x - mean) * (x - mean))
    }

    fn support(&self) -> (f64, f64) {
        (self.values[0], self.values[self.values.len() - 1])
    }

    fn pdf(&self, _: f64) -> Option<f64> {
        None
    }

    fn cdf(&self, x: f64) -> f64 {
        self.values.partition_point(|value| *value <= x) as f64 / self.count()
    }

    fn survival(&self, x: f64) -> f64 {
        (self.values.len() - self.values.partition_point(|value| *value <= x)) as f64 / self.count()
    }

    fn quantile(&self, p: f64) -> f64 {
        let rank = (p * self.count()).ceil() as usize;
        self.values[rank.clamp(1, self.values.len()) - 1]
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        Some(self.expected(|x| (-s * x).exp()))
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        self.at(draws.uniform())
    }
}
