//! Nets and curves as SVG.

use bodkin_petri::{
    distribution::{Distribution, Form},
    fit::{Sample, quantile_pairs},
    format::drawing as net_drawing,
    plot::{Chart, Mark, histogram, svg},
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

/// Points of a law's curve, and most of the sample's.
const POINTS: usize = 400;

/// A sample under a law: `density`, `cdf`, or quantiles over quantiles, `qq`.
#[pyfunction]
pub fn fit_drawing(values: Column<'_>, law: &str, name: &str, kind: &str) -> PyResult<String> {
    let sample = Sample::new(values.as_slice().map_err(mistake)?.to_vec()).map_err(mistake)?;
    let form: Form = serde_json::from_str(law).map_err(mistake)?;
    let law = Distribution::try_from(form).map_err(mistake)?;
    let (min, max) = sample.range();
    let at = |index: usize| min + (max - min) * index as f64 / (POINTS - 1) as f64;
    let curve = |value: &dyn Fn(f64) -> f64| Mark::Line {
        name: name.to_owned(),
        points: (0..POINTS).map(|index| (at(index), value(at(index)))).collect(),
    };
    let (title, x_label, y_label, marks) = match kind {
        "density" => {
            let bars = Mark::Bars { name: "measured".to_owned(), bars: histogram(sample.values(), sample.resolution()) };
            ("Density", "value", "density", vec![bars, curve(&|x| law.pdf(x).unwrap_or_default())])
        }
        "cdf" => {
            let count = sample.count();
            let ranks = (0..count).step_by(count.div_ceil(POINTS));
            let steps = ranks.flat_map(|rank| [rank, rank + 1].map(|below| (sample.values()[rank], below as f64 / count as f64)));
            let measured = Mark::Line { name: "measured".to_owned(), points: steps.collect() };
            ("Distribution function", "value", "share", vec![measured, curve(&|x| law.cdf(x))])
        }
        "qq" => {
            let pairs = quantile_pairs(&law, &sample, POINTS);
            let (low, high) = (pairs.first().map_or(0.0, |pair| pair.0), pairs.last().map_or(1.0, |pair| pair.0));
            let same = Mark::Line { name: "the same".to_owned(), points: vec![(low, low), (high, high)] };
            (
                "Quantiles of the data over those of the law",
                "law",
                "data",
                vec![same, Mark::Dots { name: "quantiles".to_owned(), points: pairs }],
            )
        }
        other => return Err(mistake(format!("{other} is no drawing of a fit; expected density, cdf or qq"))),
    };
    let text = |text: &str| text.to_owned();
    Ok(svg(&Chart { title: format!("{title}: {name}"), x_label: text(x_label), y_label: text(y_label), marks }))
}
