//! What a net will do.

use bodkin_petri::{
    measure::Measure,
    simulate::{self as simulation, Counters, Estimate},
    solve::{self as analysis, Certainty, Method, When},
};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::{exceptions::PyRuntimeError, prelude::*};

use crate::{durations::condition, mistake, net};

/// Values with what they may be off.
type Solved<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>, String, String, bool);
/// Values and both ends of their intervals.
type Simulated<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>, u64);

/// Names of the places, which are the first columns of every answer.
#[pyfunction]
pub fn columns(text: &str) -> PyResult<Vec<String>> {
    Ok(net(text)?.places().iter().map(|place| place.name.clone()).collect())
}

/// Expected tokens and measures, `[times, columns]`; in the long run where no times are given. Then what each column may be off, the method, why that
/// one, and whether that is a bound.
#[pyfunction]
pub fn solve<'py>(
    py: Python<'py>,
    text: &str,
    times: Option<PyReadonlyArray1<'py, f64>>,
    measures: Vec<String>,
    until: Option<String>,
    error: f64,
    method: Option<String>,
) -> PyResult<Solved<'py>> {
    let net = net(text)?;
    let when = times.map_or(Ok(When::Steady), |times| Ok::<_, PyErr>(When::At(times.as_slice().map_err(mistake)?.to_vec())))?;
    let mut question = analysis::Question::new(&net, when);
    question.measures = measures.iter().map(|text| Measure::parse(text, &net).map_err(mistake)).collect::<PyResult<_>>()?;
    question.until = until.map(|text| condition(&net, &text)).transpose()?;
    question.error = error;
    question.method = method.map(|name| named(&name)).transpose()?;
    let answer = py.detach(|| analysis::solve(&question)).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let values = PyArray2::from_vec2(py, &answer.values).map_err(mistake)?;
    let is_bound = answer.certainty == Certainty::Bound;
    Ok((values, PyArray1::from_vec(py, answer.errors), answer.method.name().to_owned(), answer.reason, is_bound))
}

/// The same values from random runs, `[times, columns]`, and the ends of their intervals; how many runs were made.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the package beside it gives them their names")]
pub fn simulate<'py>(
    py: Python<'py>,
    text: &str,
    times: PyReadonlyArray1<'py, f64>,
    measures: Vec<String>,
    runs: u64,
    half_width: Option<f64>,
    confidence: f64,
    seed: u64,
    threads: usize,
) -> PyResult<Simulated<'py>> {
    let net = net(text)?;
    let counters = Counters::new(&net);
    let question = simulation::Question {
        instants: times.as_slice().map_err(mistake)?.to_vec(),
        measures: measures.iter().map(|text| counters.expression(text).map_err(mistake)).collect::<PyResult<_>>()?,
        target: None,
        tag: None,
    };
    let counted = counters.net();
    let options = simulation::Options { seed, confidence, half_width, runs, threads };
    let answer = py.detach(|| simulation::simulate(&counted, &question, &options)).map_err(mistake)?;
    let columns: Vec<&Vec<Estimate>> = answer.places.iter().take(net.places().len()).chain(&answer.measures).collect();
    let array = |of: fn(&Estimate) -> f64| {
        let row = |instant: usize| columns.iter().map(|column| of(&column[instant])).collect::<Vec<f64>>();
        let rows: Vec<Vec<f64>> = (0..question.instants.len()).map(row).collect();
        PyArray2::from_vec2(py, &rows).map_err(mistake)
    };
    Ok((array(|estimate| estimate.value)?, array(|estimate| estimate.low)?, array(|estimate| estimate.high)?, answer.runs))
}

fn named(name: &str) -> PyResult<Method> {
    let known = || Method::ALL.map(Method::name).join(", ");
    Method::ALL
        .into_iter()
        .find(|method| method.name() == name)
        .ok_or_else(|| mistake(format!("{name} is no method; expected one of {}", known())))
}
