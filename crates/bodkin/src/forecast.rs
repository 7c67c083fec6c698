//! What a provider's next answers will take, from what its last ones took.

use bodkin_petri::fit::{Family, Options, Sample, fit};

/// Families that times of connecting are likely to be of.
const FAMILIES: [Family; 3] = [Family::Gamma, Family::Lognormal, Family::Weibull];

/// What `share` of the next times are not above, by the likeliest law of the last ones; none where these are too few to have one, or all the same.
pub fn forecast(times_ms: &[f64], share: f64) -> Option<f64> {
    let sample = Sample::new(times_ms.to_vec()).ok()?;
    let report = fit(&sample, &FAMILIES, &Options { resamples: 0, ..Options::default() });
    let likelihood = |law: &bodkin_petri::fit::Fitted| law.log_likelihood.unwrap_or(f64::NEG_INFINITY);
    // All have two parameters.
    let best = report.fits.iter().max_by(|a, b| likelihood(a).total_cmp(&likelihood(b)))?;
    Some(best.distribution.quantile(share)).filter(|time_ms| time_ms.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times at even steps of an exponential law with mean 2: 99 % are below 9.21.
    #[test]
    fn a_tail_is_predicted_that_few_times_show() {
        let times: Vec<f64> = (0..20).map(|index| -2.0 * (1.0 - (f64::from(index) + 0.5) / 20.0).ln()).collect();
        let longest = times.iter().copied().fold(0.0, f64::max);
        let predicted = forecast(&times, 0.99).expect("there are enough");
        assert!(longest < 7.5 && (8.0..10.5).contains(&predicted), "{predicted}, and no time was above {longest}");
        assert!(forecast(&times, 0.5).expect("likewise") < 2.0);
    }

    #[test]
    fn too_few_times_predict_nothing() {
        assert_eq!(forecast(&[1.0, 2.0], 0.99), None);
    }
}
