//! Nets drawn, and laws fitted to what a running cloud has measured.

use bodkin_petri::{
    fit::{Family, Options, Sample, fit as fit_laws, kolmogorov_smirnov},
    format::{drawing, json},
};
use serde_json::{Value, json};

/// Families that the times of a computer's work are likely to be of.
const FAMILIES: [Family; 6] =
    [Family::Exponential, Family::Erlang, Family::Gamma, Family::Lognormal, Family::Weibull, Family::HyperExponential];
/// Values that stand for a histogram, at even steps of its shares.
const VALUES_MAX: u64 = 500;
/// Points of a curve.
const POINTS: usize = 80;

/// A net's file as SVG; or what is wrong with it.
pub fn draw(file: &str) -> Result<String, String> {
    json::read(file).map(|net| drawing::svg(&net)).map_err(|error| error.to_string())
}

/// Laws fitted to a histogram, the likeliest first, with their curves beside what was measured, in microseconds.
pub fn fit(buckets: &[(u64, u64)]) -> Result<Value, String> {
    let sample = Sample::new(values_us(buckets)).map_err(|error| format!("nothing can be fitted: {error}"))?;
    let report = fit_laws(&sample, &FAMILIES, &Options { resamples: 0, ..Options::default() });
    let measured = shares(buckets);
    let curve_at: Vec<f64> = grid(&measured);
    let laws: Vec<Value> = report
        .fits
        .iter()
        .map(|law| {
            let curve: Vec<f64> = curve_at.iter().map(|us| law.distribution.cdf(*us)).collect();
            let parameters: serde_json::Map<String, Value> = law.parameters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            json!({
                "family": law.family.name(), "parameters": parameters, "bic": law.bic, "distance": kolmogorov_smirnov(&law.distribution, &sample),
                "meanUs": law.distribution.mean(), "p99Us": law.distribution.quantile(0.99), "shares": curve,
            })
        })
        .collect();
    let count: u64 = buckets.iter().map(|(_, count)| count).sum();
    let measured_at: Vec<f64> = curve_at.iter().map(|us| share_below(&measured, *us)).collect();
    Ok(json!({
        "count": count, "values": sample.count(), "meanUs": sample.mean(), "p99Us": quantile(&measured, 0.99),
        "us": curve_at, "measured": measured_at, "laws": laws,
    }))
}

/// Each bucket's upper bound in microseconds, and the share of all that is not above it.
fn shares(buckets: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut below = 0;
    let share = |(upper_ns, count): &(u64, u64)| {
        below += count;
        (*upper_ns as f64 / 1e3, below as f64 / all as f64)
    };
    buckets.iter().map(share).collect()
}

/// The share that is not above a time, on straight lines between the bounds.
fn share_below(shares: &[(f64, f64)], us: f64) -> f64 {
    let (mut at_us, mut at_share) = (0.0, 0.0);
    for (bound_us, share) in shares {
        if us <= *bound_us {
            return at_share + (share - at_share) * ((us - at_us) / (bound_us - at_us)).clamp(0.0, 1.0);
        }
        (at_us, at_share) = (*bound_us, *share);
    }
    1.0
}

/// The bound that a share is not above.
fn quantile(shares: &[(f64, f64)], wanted: f64) -> Option<f64> {
    shares.iter().find(|(_, share)| *share >= wanted).map(|(us, _)| *us)
}

/// At most [`VALUES_MAX`] values with the histogram's shares, each the middle of what is known of it: a bucket is a sixteenth wide.
fn values_us(buckets: &[(u64, u64)]) -> Vec<f64> {
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let wanted = all.min(VALUES_MAX);
    let mut values = Vec::with_capacity(wanted as usize);
    let mut below = 0;
    for (upper_ns, count) in buckets {
        below += count;
        let reached = u128::from(below) * u128::from(wanted) / u128::from(all.max(1));
        let new = reached as usize - values.len();
        // Within a bucket at even steps, so that no two values are tied.
        values.extend((0..new).map(|step| *upper_ns as f64 / 1e3 * (1.0 - (step as f64 + 0.5) / new as f64 / 17.0)));
    }
    values
}

/// Times at which curves are drawn: from nothing to where nearly everything is done, closer where more happens.
fn grid(shares: &[(f64, f64)]) -> Vec<f64> {
    let first = shares.first().map_or(1.0, |(us, _)| us / 2.0).max(1e-3);
    let last = quantile(shares, 0.999).unwrap_or(1.0).max(first * 1.01);
    (0..POINTS).map(|step| first * (last / first).powf(step as f64 / (POINTS - 1) as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buckets a sixteenth wide, as the stages have them, of an exponential law with this mean.
    fn exponential(mean_ns: f64, count: u64) -> Vec<(u64, u64)> {
        let cdf = |ns: f64| 1.0 - (-ns / mean_ns).exp();
        let bounds: Vec<f64> = (0..200).map(|step| 100.0 * (17.0f64 / 16.0).powi(step)).collect();
        let between = |pair: &[f64]| (pair[1] as u64, ((cdf(pair[1]) - cdf(pair[0])) * count as f64).round() as u64);
        bounds.windows(2).map(between).filter(|(_, count)| *count > 0).collect()
    }

    #[test]
    fn the_law_of_a_histogram_is_found_with_its_mean() {
        let found = fit(&exponential(20_000.0, 100_000)).expect("laws");
        let law = |family: &str| found["laws"].as_array().unwrap().iter().find(|law| law["family"] == family).cloned().unwrap();
        let mean_us = law("exponential")["meanUs"].as_f64().unwrap();
        assert!((mean_us - 20.0).abs() < 0.6, "{mean_us}");
        assert!(law("exponential")["distance"].as_f64().unwrap() < 0.02, "{}", law("exponential"));
        assert!(law("lognormal")["distance"].as_f64().unwrap() > 0.03, "another law fits worse");
        let (us, measured) = (found["us"].as_array().unwrap(), found["measured"].as_array().unwrap());
        for (us, share) in us.iter().zip(measured) {
            let exact = 1.0 - (-us.as_f64().unwrap() / 20.0).exp();
            assert!((share.as_f64().unwrap() - exact).abs() < 0.02, "{us}: {share} and not {exact}");
        }
    }

    #[test]
    fn too_few_times_are_told() {
        assert!(fit(&[]).unwrap_err().contains("0 values"));
        assert!(fit(&[(100, 2)]).unwrap_err().contains("2 values"));
        assert!(fit(&[(100, 3)]).is_ok(), "three of one bucket are no three of one value");
    }

    #[test]
    fn a_file_that_is_no_net_is_told() {
        assert!(draw("{}").is_err());
    }
}
