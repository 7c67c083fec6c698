//! Data under the laws that were fitted to them.

use bodkin_petri::{
    fit::{Fitted, Report, Sample, quantile_pairs},
    plot::{Chart, Mark, histogram},
};

/// Most laws in a chart: the best ones.
const LAWS_MAX: usize = 4;

/// Points of a curve.
const POINTS: usize = 400;

/// Points of a quantile-quantile chart.
const PAIRS_MAX: usize = 500;

/// The charts of a report and what is said of each.
pub fn of(sample: &Sample, report: &Report) -> Vec<(Chart, String)> {
    let laws: Vec<&Fitted> = report.fits.iter().filter(|fitted| fitted.log_likelihood.is_some()).take(LAWS_MAX).collect();
    let densities = std::iter::once(Mark::Bars { name: "measured".to_owned(), bars: histogram(sample.values(), sample.resolution()) });
    let densities = densities.chain(laws.iter().map(|law| curve(sample, law, |x| law.distribution.pdf(x).unwrap_or_default())));
    let functions = std::iter::once(Mark::Line { name: "measured".to_owned(), points: steps(sample) });
    let functions = functions.chain(laws.iter().map(|law| curve(sample, law, |x| law.distribution.cdf(x))));
    let mut charts = vec![
        (chart("Density", "value", "density", densities.collect()), "The data as bars of the same area as the curves.".to_owned()),
        (chart("Distribution function", "value", "share", functions.collect()), "The share of values up to each.".to_owned()),
    ];
    if let Some(best) = laws.first() {
        let pairs = quantile_pairs(&best.distribution, sample, PAIRS_MAX);
        let (low, high) = (pairs.first().map_or(0.0, |pair| pair.0), pairs.last().map_or(1.0, |pair| pair.0));
        let marks = vec![
            Mark::Line { name: "the same".to_owned(), points: vec![(low, low), (high, high)] },
            Mark::Dots { name: "quantiles".to_owned(), points: pairs },
        ];
        let title = format!("Quantiles of the data over those of the {} law", best.family.name());
        charts.push((chart(&title, "law", "data", marks), "On the line where the law fits.".to_owned()));
    }
    charts
}

fn chart(title: &str, x_label: &str, y_label: &str, marks: Vec<Mark>) -> Chart {
    Chart { title: title.to_owned(), x_label: x_label.to_owned(), y_label: y_label.to_owned(), marks }
}

fn curve(sample: &Sample, law: &Fitted, value: impl Fn(f64) -> f64) -> Mark {
    let (min, max) = sample.range();
    let at = |index: usize| min + (max - min) * index as f64 / (POINTS - 1) as f64;
    Mark::Line { name: law.family.name().to_owned(), points: (0..POINTS).map(|index| (at(index), value(at(index)))).collect() }
}

/// The sample's distribution function, at most at [`POINTS`] of its values.
fn steps(sample: &Sample) -> Vec<(f64, f64)> {
    let count = sample.count();
    let corners = (0..count).step_by(count.div_ceil(POINTS)).flat_map(|rank| {
        let value = sample.values()[rank];
        [(value, rank as f64 / count as f64), (value, (rank + 1) as f64 / count as f64)]
    });
    corners.collect()
}
