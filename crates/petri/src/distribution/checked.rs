//! The checks of parameters.

/// Largest number of branches, stages, pieces or terms of one law.
pub(super) const PARTS_MAX: usize = 4_096;

/// What probabilities that must add up to 1 may be off.
const MASS_SLACK: f64 = 1e-9;

/// A parameter that the law does not take.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{law}: {parameter} is {given}, not {expected}")]
pub struct DistributionError {
    /// The law's name.
    pub law: &'static str,
    /// Which parameter.
    pub parameter: &'static str,
    /// Its value.
    pub given: String,
    /// What it may be.
    pub expected: String,
}

/// Makes the errors of one law.
#[derive(Clone, Copy)]
pub(super) struct Check {
    pub law: &'static str,
}

impl Check {
    /// A finite number above 0.
    pub fn positive(self, parameter: &'static str, value: f64) -> Result<f64, DistributionError> {
        self.hold(parameter, value, value > 0.0 && value.is_finite(), "a finite number above 0")
    }

    /// A finite number from 0.
    pub fn not_negative(self, parameter: &'static str, value: f64) -> Result<f64, DistributionError> {
        self.hold(parameter, value, value >= 0.0 && value.is_finite(), "a finite number from 0")
    }

    /// A finite number.
    pub fn finite(self, parameter: &'static str, value: f64) -> Result<f64, DistributionError> {
        self.hold(parameter, value, value.is_finite(), "a finite number")
    }

    /// A number above `limit`, which may be infinite.
    pub fn above(self, parameter: &'static str, value: f64, limit: f64) -> Result<f64, DistributionError> {
        if value > limit { Ok(value) } else { Err(self.error(parameter, value, format!("above {limit}"))) }
    }

    /// From 1 to [`PARTS_MAX`] parts.
    pub fn parts(self, parameter: &'static str, count: usize) -> Result<(), DistributionError> {
        if (1..=PARTS_MAX).contains(&count) {
            Ok(())
        } else {
            Err(self.error(parameter, format!("a list of {count}"), format!("a list of 1 to {PARTS_MAX}")))
        }
    }

    /// Probabilities that add up to 1 within 1e-9, made to do so to the last bit.
    pub fn probabilities(self, parameter: &'static str, values: impl Iterator<Item = f64>) -> Result<Vec<f64>, DistributionError> {
        let values: Vec<f64> = values.collect();
        for value in &values {
            self.hold(parameter, *value, (0.0..=1.0).contains(value), "a probability")?;
        }
        let sum: f64 = values.iter().sum();
        if (sum - 1.0).abs() > MASS_SLACK {
            return Err(self.error(parameter, format!("{sum} altogether"), "1 altogether"));
        }
        Ok(values.iter().map(|value| value / sum).collect())
    }

    pub fn hold(self, parameter: &'static str, value: f64, holds: bool, expected: &str) -> Result<f64, DistributionError> {
        if holds { Ok(value) } else { Err(self.error(parameter, value, expected)) }
    }

    pub fn error(self, parameter: &'static str, given: impl ToString, expected: impl Into<String>) -> DistributionError {
        DistributionError { law: self.law, parameter, given: given.to_string(), expected: expected.into() }
    }
}
