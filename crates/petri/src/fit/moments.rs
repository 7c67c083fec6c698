//! Laws of a given mean and variance.

use crate::distribution::{Deterministic, Distribution, DistributionError, Exponential, Gamma, Mixture};

/// A law with this mean and this squared coefficient of variation (variance over squared mean): deterministic at 0, gamma below 1,
/// exponential at 1, and above two exponential branches of balanced means, each of which carries half of the mean.
pub fn match_moments(mean: f64, squared_variation: f64) -> Result<Distribution, DistributionError> {
    Ok(match squared_variation {
        0.0 => Distribution::Deterministic(Deterministic::new(mean)?),
        1.0 => Distribution::Exponential(Exponential::new(1.0 / mean)?),
        below if below < 1.0 => Distribution::Gamma(Gamma::new(1.0 / below, 1.0 / (below * mean))?),
        above => {
            let first = 0.5 * (1.0 + ((above - 1.0) / (above + 1.0)).sqrt());
            let branch = |probability: f64| Ok((probability, Exponential::new(2.0 * probability / mean)?));
            Distribution::HyperExponential(Mixture::new(vec![branch(first)?, branch(1.0 - first)?])?)
        }
    })
}
