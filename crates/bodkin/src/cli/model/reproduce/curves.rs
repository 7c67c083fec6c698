//! A net's curves over the grid that a published figure has, and what is read off them.

use bodkin_petri::{
    measure::Measure,
    net::Net,
    plot::{Chart, Mark},
    solve::{Answer, Question, SolveError, When, passage::passage, solve},
};

use super::Off;
use crate::cli::model::solve::sheet::name as certainty;

/// Multiples of `step` from 0 to `last`.
pub fn grid(step: f64, last: f64) -> Vec<f64> {
    (0..=(last / step).round() as usize).map(|index| index as f64 * step).collect()
}

/// A net solved at some times; places come first, the measures behind them.
pub struct Curves<'a> {
    pub net: &'a Net,
    pub times: Vec<f64>,
    pub answer: Answer,
    names: Vec<String>,
}

impl<'a> Curves<'a> {
    pub fn of(net: &'a Net, times: Vec<f64>, measures: &[&str], error: f64) -> Result<Self, SolveError> {
        let parsed = measures.iter().map(|text| Measure::parse(text, net).expect("measures of the published nets are right")).collect();
        let answer = solve(&Question { measures: parsed, error, ..Question::new(net, When::At(times.clone())) })?;
        let names = net.places().iter().map(|place| place.name.clone()).chain(measures.iter().map(|text| (*text).to_owned())).collect();
        Ok(Self { net, times, answer, names })
    }

    fn column(&self, name: &str) -> usize {
        self.names.iter().position(|own| own == name).unwrap_or_else(|| panic!("{name} is a place or a measure of {}", self.net.name()))
    }

    /// Its values at all times.
    pub fn curve(&self, name: &str) -> Vec<f64> {
        let column = self.column(name);
        self.answer.values.iter().map(|values| values[column]).collect()
    }

    /// What they may be off, and whether that is a bound.
    pub fn error(&self, name: &str) -> Off {
        (self.answer.errors[self.column(name)], certainty(self.answer.certainty))
    }

    /// The value at a time of the grid.
    pub fn at(&self, name: &str, time: f64) -> f64 {
        let index = self.times.iter().position(|own| (own - time).abs() < 1e-9).unwrap_or_else(|| panic!("{time} is on the grid"));
        self.answer.values[index][self.column(name)]
    }

    /// When it is largest, and how large.
    pub fn peak(&self, name: &str) -> (f64, f64) {
        let values = self.times.iter().copied().zip(self.curve(name));
        values.fold((0.0, f64::NEG_INFINITY), |peak, point| if point.1 > peak.1 { point } else { peak })
    }

    /// The first time of the grid from which on `condition` holds of all values at a time.
    fn holds_from(&self, condition: impl Fn(&[f64]) -> bool) -> f64 {
        let last = self.answer.values.iter().rposition(|values| !condition(values));
        last.map_or(0.0, |index| self.times.get(index + 1).copied().unwrap_or(f64::INFINITY))
    }

    /// The first time from which on one value is above another.
    pub fn above(&self, upper: &str, lower: &str) -> f64 {
        let (upper, lower) = (self.column(upper), self.column(lower));
        self.holds_from(|values| values[upper] > values[lower])
    }

    /// The first time at which one value is above another.
    pub fn first_above(&self, upper: &str, lower: &str) -> f64 {
        let (upper, lower) = (self.column(upper), self.column(lower));
        let first = self.answer.values.iter().position(|values| values[upper] > values[lower]);
        first.map_or(f64::INFINITY, |index| self.times[index])
    }

    /// The first time from which on a place is the most probable one.
    pub fn most_probable(&self, name: &str) -> f64 {
        let (column, places) = (self.column(name), self.net.places().len());
        self.holds_from(|values| (0..places).all(|place| place == column || values[column] > values[place]))
    }

    /// The last time up to which a value is at least this.
    pub fn at_least_until(&self, name: &str, value: f64) -> f64 {
        let column = self.column(name);
        let below = self.answer.values.iter().position(|values| values[column] < value);
        below.map_or(f64::INFINITY, |index| self.times[index.saturating_sub(1)])
    }

    /// The mean of the time whose distribution function a curve is: the area above it, by Simpson's rule; the grid has an even number
    /// of steps.
    pub fn mean(&self, name: &str) -> f64 {
        let (curve, step) = (self.curve(name), self.times[1] - self.times[0]);
        curve.windows(3).step_by(2).map(|cells| step / 3.0 * (6.0 - cells[0] - 4.0 * cells[1] - cells[2])).sum()
    }

    /// All places that ever hold anything, as a figure; places that may be exchanged are drawn once.
    pub fn chart(&self, title: &str) -> Chart {
        let mut marks: Vec<Mark> = Vec::new();
        let mut drawn: Vec<Vec<f64>> = Vec::new();
        for place in self.net.places() {
            let curve = self.curve(&place.name);
            let is_empty = curve.iter().all(|value| *value < 1e-9);
            if !is_empty && !drawn.contains(&curve) {
                marks
                    .push(Mark::Line { name: place.name.clone(), points: self.times.iter().copied().zip(curve.iter().copied()).collect() });
                drawn.push(curve);
            }
        }
        let x_label = format!("t / {}", self.net.time_unit());
        Chart { title: title.to_owned(), x_label, y_label: "probability, or expected tokens".to_owned(), marks }
    }
}

/// A figure, and by how much it may be off.
pub type Figure = (f64, Off);

/// The middle of the interval in which the time is by which `condition` holds with a probability, and half its width; and the mean, whose error is an estimate.
pub fn quantile_and_mean(net: &Net, condition: &str, share: f64) -> Result<(Figure, Figure), SolveError> {
    let Ok(Measure::Reward(until)) = Measure::parse(condition, net) else { panic!("{condition} is a condition of {}", net.name()) };
    let question = Question { until: Some(until), ..Question::new(net, When::Steady) };
    let found = passage(&question, &[share], true)?;
    let quantile = found.quantiles[0];
    let (mean, mean_off) = found.mean.expect("it was asked for");
    let half = (0.5 * (quantile.high - quantile.low), certainty(found.certainty));
    Ok(((0.5 * (quantile.low + quantile.high), half), (mean, (mean_off, "estimate"))))
}
