//! Nets and curves as SVG.

use bodkin_petri::{
    format::drawing as net_drawing,
    plot::{Chart, Mark, svg},
};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::{mistake, net};

/// The net, drawn.
#[pyfunction]
pub fn drawing(text: &str) -> PyResult<String> {
    Ok(net_drawing::svg(&net(text)?))
}

/// A line's name, its values, and the ends of its band, where it has one.
type Line<'py> = (String, Column<'py>, Option<(Column<'py>, Column<'py>)>);
type Column<'py> = PyReadonlyArray1<'py, f64>;

/// A chart of lines over one axis.
#[pyfunction]
pub fn chart(title: String, x_label: String, y_label: String, x: Column<'_>, lines: Vec<Line<'_>>) -> PyResult<String> {
    let x = x.as_slice().map_err(mistake)?;
    let mut marks = Vec::new();
    for (name, values, band) in &lines {
        let column = |values: &Column<'_>| -> PyResult<Vec<f64>> {
            let values = values.as_slice().map_err(mistake)?;
            if values.len() == x.len() {
                Ok(values.to_vec())
            } else {
                Err(mistake(format!("{name} has {} values for {} places on the axis", values.len(), x.len())))
            }
        };
        if let Some((low, high)) = band {
            let points = x.iter().zip(column(low)?).zip(column(high)?).map(|((x, low), high)| (*x, low, high)).collect();
            marks.push(Mark::Band { points });
        }
        marks.push(Mark::Line { name: name.clone(), points: x.iter().copied().zip(column(values)?).collect() });
    }
    Ok(svg(&Chart { title, x_label, y_label, marks }))
}
