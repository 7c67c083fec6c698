//! Nets in other forms, and with other values for their parameters. All of them are texts.

use std::collections::BTreeMap;

use bodkin_petri::format::{json, pnml, xpn};
use pyo3::prelude::*;

use crate::{mistake, net};

/// A net of a PNML document in Bodkin's own form, and what was passed over: tools, and how many elements of each.
#[pyfunction]
pub fn from_pnml(text: &str, which: Option<&str>) -> PyResult<(String, BTreeMap<String, usize>)> {
    let document = pnml::document(text, which).map_err(mistake)?;
    Ok((json::write(&document.net), document.passed_over))
}

/// A net of ORIS in Bodkin's own form. Its files have neither a name nor a unit of time.
#[pyfunction]
pub fn from_xpn(text: &str, name: &str, time_unit: &str) -> PyResult<String> {
    Ok(json::write(&xpn::read(text, name, time_unit).map_err(mistake)?))
}

/// The net as a PNML document.
#[pyfunction]
pub fn to_pnml(text: &str) -> PyResult<String> {
    Ok(pnml::write(&net(text)?))
}

/// The net with these values of its parameters, as numbers.
#[pyfunction]
pub fn with_parameters(text: &str, set: Vec<(String, f64)>) -> PyResult<String> {
    Ok(json::write(&json::read_with(text, &set).map_err(mistake)?))
}
