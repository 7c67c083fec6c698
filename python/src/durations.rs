//! How long something takes: until a condition holds, or until a token has come from one place to another.

use bodkin_petri::{
    expression::Expression,
    net::Net,
    solve::{
        self as analysis, Certainty, When,
        passage::{Quantile, passage as passed},
        response::{Begin, Question, ResponseTime},
    },
    states::STATES_MAX_DEFAULT,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::{exceptions::PyRuntimeError, prelude::*};

use crate::{mistake, net};

type Array<'py> = Bound<'py, PyArray1<f64>>;
/// Lower and upper ends of the quantiles, the mean with what it may be off, the method, whether the quantiles are bounded.
type Passage<'py> = (Array<'py>, Array<'py>, Option<(f64, f64)>, String, bool);
/// Probabilities by the times and what they may be off; quantiles; the mean with what it may be off; tokens that come in a unit of time.
type Response<'py> = (Array<'py>, f64, Array<'py>, Array<'py>, Option<(f64, f64)>, Option<f64>);

/// Quantiles of the time until a condition holds, and its mean.
#[pyfunction]
pub fn passage<'py>(py: Python<'py>, text: &str, until: &str, shares: Vec<f64>, error: f64) -> PyResult<Passage<'py>> {
    let net = net(text)?;
    let question = analysis::Question { until: Some(condition(&net, until)?), error, ..analysis::Question::new(&net, When::Steady) };
    let found = py.detach(|| passed(&question, &shares, true)).map_err(failed)?;
    let (low, high) = ends(py, &found.quantiles);
    Ok((low, high, found.mean, found.method.name().to_owned(), found.certainty == Certainty::Bound))
}

/// How long a token takes from a place to another.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the package beside it gives them their names")]
pub fn response<'py>(
    py: Python<'py>,
    text: &str,
    start: &str,
    end: &str,
    times: PyReadonlyArray1<'py, f64>,
    shares: Vec<f64>,
    is_first: bool,
    error: f64,
) -> PyResult<Response<'py>> {
    let net = net(text)?;
    let place = |name: &str| net.place(name).ok_or_else(|| mistake(format!("{name} is no place of the net")));
    let begin = if is_first { Begin::First } else { Begin::LongRun };
    let question = Question { net: &net, from: place(start)?, to: place(end)?, begin, error, states_max: STATES_MAX_DEFAULT };
    let times = times.as_slice().map_err(mistake)?.to_vec();
    let found = py.detach(|| {
        let found = ResponseTime::new(&question)?;
        let values = if times.is_empty() { None } else { Some(found.shares(&times)?) };
        let quantiles = if shares.is_empty() { Vec::new() } else { found.quantiles(&shares)? };
        Ok((values, quantiles, found.mean().ok(), found.rate))
    });
    let (values, quantiles, mean, rate) = found.map_err(failed)?;
    let (low, high) = ends(py, &quantiles);
    let (values, error) = values.map_or((Vec::new(), 0.0), |shares| (shares.values, shares.error));
    Ok((PyArray1::from_vec(py, values), error, low, high, mean, rate))
}

fn ends<'py>(py: Python<'py>, quantiles: &[Quantile]) -> (Array<'py>, Array<'py>) {
    let array = |end: fn(&Quantile) -> f64| PyArray1::from_vec(py, quantiles.iter().map(end).collect());
    (array(|quantile| quantile.low), array(|quantile| quantile.high))
}

/// What cannot be had, as Python tells it.
fn failed(error: analysis::SolveError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A condition over the places of a net.
pub fn condition(net: &Net, text: &str) -> PyResult<Expression> {
    let found = Expression::parse(text, &|name| net.place(name)).map_err(mistake)?;
    if found.is_boolean() { Ok(found) } else { Err(mistake(format!("{text} is a number; expected a condition, as in A > 0"))) }
}
