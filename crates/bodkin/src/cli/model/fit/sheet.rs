//! What was fitted, printed.

use bodkin_petri::{
    distribution::Form as LawForm,
    fit::{Confidence, Fitted, Report, Sample, Statistic, quantile_pairs},
};
use serde_json::{Value, json};

use crate::cli::{details::Details, printer::Printer, table::Table, write_out};

/// Points of a quantile-quantile plot.
const PAIRS_MAX: usize = 200;

/// Values of an empirical law that are repeated in the answer.
const VALUES_MAX: usize = 1_000;

/// Prints what was found.
pub fn print(sample: &Sample, report: &Report, level: f64, printer: Printer) -> anyhow::Result<()> {
    let verdict = verdict(report, level);
    if printer.is_json() {
        printer.document(&document(sample, report, level, &verdict))?;
    } else {
        write_out(&format!("{}\n{}{}{verdict}\n", details(sample, report), table(report, level), refused(report)))?;
    }
    Ok(())
}

fn verdict(report: &Report, level: f64) -> String {
    let fitting = report.fits.iter().find(|fitted| fitted.fits(level) == Some(true));
    match (report.any_fits, fitting) {
        (_, Some(fitted)) => format!("{} fits, and is the best of those that do", fitted.family.name()),
        (Some(_), None) => format!("no family fits: each is refused at the level of {level}"),
        (None, None) => "nothing was tested".to_owned(),
    }
}

fn details(sample: &Sample, report: &Report) -> Details {
    let (min, max) = sample.range();
    let outliers: Vec<String> = report.outliers.values.iter().take(10).map(f64::to_string).collect();
    let more = report.outliers.values.len().saturating_sub(outliers.len());
    let outliers = if more > 0 { format!("{} and {more} more", outliers.join(", ")) } else { outliers.join(", ") };
    Details::default()
        .with("values", sample.count())
        .with("mean", sample.mean())
        .with("standard deviation", sample.variance().sqrt())
        .with("range", format!("{min} to {max}, median {}", sample.quantile(0.5)))
        .with_some("rounded to", sample.resolution())
        .with("outliers", outliers)
}

fn table(report: &Report, level: f64) -> Table {
    let mut table = Table::new(&["FAMILY", "PARAMETERS", "LN L", "BIC", "KS", "P", "AD", "P", "FITS"]);
    for fitted in &report.fits {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        let parameters: Vec<String> = fitted.parameters.iter().map(|(name, value)| format!("{name} {value:.8}")).collect();
        let statistic = |of: fn(&bodkin_petri::fit::Test) -> Statistic| fitted.test.as_ref().map(of);
        let [distance, squared] = [statistic(|test| test.kolmogorov_smirnov), statistic(|test| test.anderson_darling)];
        let fits = match fitted.fits(level) {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        table.push([
            fitted.family.name().to_owned(),
            parameters.join(", "),
            number(fitted.log_likelihood),
            number(fitted.bic),
            number(distance.map(|statistic| statistic.value)),
            number(distance.map(|statistic| statistic.p_value)),
            number(squared.map(|statistic| statistic.value)),
            number(squared.map(|statistic| statistic.p_value)),
            fits.to_owned(),
        ]);
    }
    table
}

fn refused(report: &Report) -> String {
    report.refused.iter().map(|(family, error)| format!("{}: {error}\n", family.name())).collect()
}

fn document(sample: &Sample, report: &Report, level: f64, verdict: &str) -> Value {
    let (min, max) = sample.range();
    json!({
        "sample": {
            "values": sample.count(),
            "mean": sample.mean(),
            "standard_deviation": sample.variance().sqrt(),
            "min": min,
            "median": sample.quantile(0.5),
            "max": max,
            "resolution": sample.resolution(),
        },
        "outliers": { "below": report.outliers.low, "above": report.outliers.high, "values": report.outliers.values },
        "fits": report.fits.iter().map(|fitted| of_fit(sample, fitted, level)).collect::<Vec<_>>(),
        "refused": report.refused.iter().map(|(family, error)| json!({ "family": family.name(), "reason": error.to_string() })).collect::<Vec<_>>(),
        "level": level,
        "any_fits": report.any_fits,
        "verdict": verdict,
    })
}

fn of_fit(sample: &Sample, fitted: &Fitted, level: f64) -> Value {
    let statistic = |statistic: Statistic| json!({ "value": statistic.value, "p_value": statistic.p_value });
    let confidence = |confidence: &Confidence| {
        json!({
            "parameter": confidence.parameter,
            "low": confidence.interval.0,
            "high": confidence.interval.1,
            "covariances": confidence.covariances,
        })
    };
    let test = fitted.test.as_ref().map(|test| {
        json!({
            "kolmogorov_smirnov": statistic(test.kolmogorov_smirnov),
            "anderson_darling": statistic(test.anderson_darling),
            "resamples": test.resamples,
            "confidence": test.confidence.iter().map(confidence).collect::<Vec<_>>(),
        })
    });
    let parameters: serde_json::Map<String, Value> = fitted.parameters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let is_long = sample.count() > VALUES_MAX && matches!(LawForm::from(&fitted.distribution), LawForm::Empirical { .. });
    json!({
        "family": fitted.family.name(),
        "distribution": (!is_long).then(|| LawForm::from(&fitted.distribution)),
        "parameters": parameters,
        "log_likelihood": fitted.log_likelihood,
        "aic": fitted.aic,
        "bic": fitted.bic,
        "test": test,
        "fits": fitted.fits(level),
        "quantile_pairs": quantile_pairs(&fitted.distribution, sample, PAIRS_MAX),
    })
}
