//! Laws for measured times.

use bodkin_petri::{
    distribution::Form,
    fit::{self as fitting, Family, Sample},
};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::mistake;

/// Of one family: its name, the law as JSON, mean, log-likelihood, Akaike's and Schwarz's criterion, the p-values of Kolmogorov and Smirnov's
/// and of Anderson and Darling's test, its parameters, the ends of their intervals of 95 %, and their covariances.
type Fitted =
    (String, String, f64, Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>, Vec<(String, f64)>, Intervals, Vec<Vec<f64>>);
type Intervals = Vec<(String, f64, f64)>;

/// Fits each family, the best first by Schwarz's criterion.
#[pyfunction]
pub fn fit(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, f64>,
    families: Option<Vec<String>>,
    resamples: u32,
    seed: u64,
    threads: usize,
) -> PyResult<Vec<Fitted>> {
    let sample = Sample::new(values.as_slice().map_err(mistake)?.to_vec()).map_err(mistake)?;
    let families: Vec<Family> = families.map_or_else(
        || Ok(Family::ALL.into_iter().filter(|family| family.is_usual()).collect()),
        |names| names.iter().map(|name| family(name)).collect::<PyResult<_>>(),
    )?;
    let options = fitting::Options { resamples, seed, threads, ..fitting::Options::default() };
    let report = py.detach(|| fitting::fit(&sample, &families, &options));
    Ok(report.fits.iter().map(told).collect())
}

fn told(fitted: &fitting::Fitted) -> Fitted {
    let law = serde_json::to_string(&Form::from(&fitted.distribution)).expect("a law has no number that JSON has not");
    let test = fitted.test.as_ref();
    let confidence = test.map_or(&[][..], |test| &test.confidence);
    (
        fitted.family.name().to_owned(),
        law,
        fitted.distribution.mean(),
        fitted.log_likelihood,
        fitted.aic,
        fitted.bic,
        test.map(|test| test.kolmogorov_smirnov.p_value),
        test.map(|test| test.anderson_darling.p_value),
        fitted.parameters.clone(),
        confidence.iter().map(|of| (of.parameter.clone(), of.interval.0, of.interval.1)).collect(),
        confidence.iter().map(|of| of.covariances.clone()).collect(),
    )
}

fn family(name: &str) -> PyResult<Family> {
    let known = || Family::ALL.map(Family::name).join(", ");
    let found = Family::ALL.into_iter().find(|family| family.name() == name);
    found.ok_or_else(|| mistake(format!("{name} is no family; expected one of {}", known())))
}
