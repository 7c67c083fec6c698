//! The engine as Python calls it: nets as text, numbers as arrays. What people use is the package beside it, `bodkin_petri`.

mod answers;
mod durations;
mod fits;
mod forms;
mod pictures;

use bodkin_petri::{format::json, net::Net};
use pyo3::{exceptions::PyValueError, prelude::*};

/// What the package is made of.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(answers::columns, module)?)?;
    module.add_function(wrap_pyfunction!(answers::solve, module)?)?;
    module.add_function(wrap_pyfunction!(answers::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(durations::passage, module)?)?;
    module.add_function(wrap_pyfunction!(durations::response, module)?)?;
    module.add_function(wrap_pyfunction!(forms::from_pnml, module)?)?;
    module.add_function(wrap_pyfunction!(forms::from_xpn, module)?)?;
    module.add_function(wrap_pyfunction!(forms::to_pnml, module)?)?;
    module.add_function(wrap_pyfunction!(forms::with_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(fits::fit, module)?)?;
    module.add_function(wrap_pyfunction!(pictures::fit_drawing, module)?)?;
    module.add_function(wrap_pyfunction!(pictures::drawing, module)?)?;
    module.add_function(wrap_pyfunction!(pictures::chart, module)?)?;
    Ok(())
}

/// A mistake of the caller's as Python tells it.
fn mistake(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The net that the text is, in the form of `docs/formats/net.md`.
fn net(text: &str) -> PyResult<Net> {
    json::read(text).map_err(mistake)
}
