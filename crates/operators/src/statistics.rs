//! One number of many points.

use bodkin_broker::graph::{Element, Emission, Fault, Inputs, Operator, Shape, Trigger};

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    exact::ExactSum,
    parameters::Parameters,
    points::{read, write},
};

/// `min`: the smallest point of an event; of a window, of all its events. Input: one, of real points. Result: `f64`. Of no point at all, and where one is NaN, NaN.
/// No state.
pub const MIN: Kind = Kind { name: "min", inputs: 1..=1, trigger: Trigger::All, make: |parameters, inputs| make(parameters, inputs, min) };

/// `max`: the largest point, as [`MIN`].
pub const MAX: Kind = Kind { name: "max", inputs: 1..=1, trigger: Trigger::All, make: |parameters, inputs| make(parameters, inputs, max) };

/// `rms`: the square root of the mean of the squares, as [`MIN`]. Where a point is infinite it is infinite.
pub const RMS: Kind = Kind { name: "rms", inputs: 1..=1, trigger: Trigger::All, make: |parameters, inputs| make(parameters, inputs, rms) };

/// `kurtosis`: the fourth central moment by the square of the second, of the points as they are (no correction for a sample, 3 of a normal distribution), as [`MIN`].
/// NaN also where a point is infinite, or all are equal. Source: Pearson 1905.
pub const KURTOSIS: Kind =
    Kind { name: "kurtosis", inputs: 1..=1, trigger: Trigger::All, make: |parameters, inputs| make(parameters, inputs, kurtosis) };

struct Statistic {
    element: Element,
    of: fn(&[f64]) -> f64,
    points: Vec<f64>,
}

fn make(_: &mut Parameters, inputs: &[Input], of: fn(&[f64]) -> f64) -> Result<Made, Misfit> {
    demand(inputs, |input| input.shape.element().is_real(), "a statistic takes real points")?;
    let points = Vec::with_capacity(inputs[0].shape.points_max() * inputs[0].events);
    Ok(Made::new(Statistic { element: inputs[0].shape.element(), of, points }, Shape::NUMBER))
}

impl Operator for Statistic {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        read(self.element, inputs.all(), &mut self.points);
        let is_defined = !self.points.is_empty() && !self.points.iter().any(|point| point.is_nan());
        write(out, &[if is_defined { (self.of)(&self.points) } else { f64::NAN }]);
        Ok(Emission::Emit)
    }
}

fn min(points: &[f64]) -> f64 {
    points.iter().copied().fold(f64::INFINITY, f64::min)
}

fn max(points: &[f64]) -> f64 {
    points.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn rms(points: &[f64]) -> f64 {
    // By the largest, so that no square overflows.
    let largest = points.iter().map(|point| point.abs()).fold(0.0, f64::max);
    if largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    let squares: f64 = points.iter().map(|point| (point / largest).powi(2)).sum();
    largest * (squares / points.len() as f64).sqrt()
}

fn kurtosis(points: &[f64]) -> f64 {
    if !points.iter().all(|point| point.is_finite()) || points.iter().all(|point| *point == points[0]) {
        return f64::NAN;
    }
    let count = points.len() as f64;
    let mut sum = ExactSum::new();
    points.iter().for_each(|point| sum.add(*point));
    let mean = sum.mean();
    // A deviation from the mean may be larger than any double.
    let scale = if points.iter().any(|point| point.abs() > f64::MAX / 4.0) { 0.25 } else { 1.0 };
    let deviation = |point: &f64| point * scale - mean * scale;
    let largest = points.iter().map(|point| deviation(point).abs()).fold(0.0, f64::max);
    let moment = |power| points.iter().map(|point| (deviation(point) / largest).powi(power)).sum::<f64>() / count;
    moment(4) / moment(2).powi(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Bench, bytes, input, numbers};

    fn of(kind: &Kind, points: &[f64]) -> f64 {
        let mut bench = Bench::new(kind, &[], &[input("f64[<=100]")]);
        numbers(&bench.run(&[&[&bytes(points)]]).expect("it runs").expect("there is a result"))[0]
    }

    proptest! {
        #[test]
        fn statistics_are_their_definitions(points in prop::collection::vec(-1e6..1e6f64, 2..100)) {
            let count = points.len() as f64;
            let mut sorted = points.clone();
            sorted.sort_by(f64::total_cmp);
            prop_assert_eq!((of(&MIN, &points), of(&MAX, &points)), (sorted[0], sorted[points.len() - 1]));
            let rms = (points.iter().map(|point| point * point).sum::<f64>() / count).sqrt();
            prop_assert!((of(&RMS, &points) - rms).abs() <= 1e-9 * rms);
            let mean = points.iter().sum::<f64>() / count;
            let moment = |power| points.iter().map(|point| (point - mean).powi(power)).sum::<f64>() / count;
            let kurtosis = moment(4) / moment(2).powi(2);
            prop_assert!((of(&KURTOSIS, &points) - kurtosis).abs() <= 1e-9 * kurtosis);
        }
    }

    #[test]
    fn what_has_no_statistic_is_defined() {
        let infinity = f64::INFINITY;
        for kind in [&MIN, &MAX, &RMS, &KURTOSIS] {
            assert!(of(kind, &[]).is_nan() && of(kind, &[1.0, f64::NAN]).is_nan(), "{}", kind.name);
        }
        assert_eq!([of(&MIN, &[1.0, -infinity]), of(&MAX, &[1.0, -infinity]), of(&RMS, &[1.0, -infinity])], [-infinity, 1.0, infinity]);
        assert!(of(&KURTOSIS, &[1.0, infinity]).is_nan() && of(&KURTOSIS, &[2.0, 2.0]).is_nan());
        assert!((of(&RMS, &[1e300, -1e300]) - 1e300).abs() < 1e286, "no square overflows");
        assert_eq!((of(&RMS, &[0.0]), of(&KURTOSIS, &[-1.0, 1.0])), (0.0, 1.0));
    }

    #[test]
    fn a_window_of_events_is_one_set_of_points() {
        let window = Input { events: 2, ..input("i16[1]") };
        let mut bench = Bench::new(&MAX, &[], &[window]);
        assert_eq!(
            bench.run(&[&[&7i16.to_le_bytes(), &(-9i16).to_le_bytes()]]).map(|found| numbers(&found.expect("there is a result"))),
            Ok(vec![7.0])
        );
    }
}
