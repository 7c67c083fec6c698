//! Filters over the newest points of a signal.

use bodkin_broker::graph::{Element, Emission, Fault, Inputs, Operator, Shape, StateError, Trigger};

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    exact::ExactSum,
    parameters::Parameters,
    points::{Ring, read, write},
};

/// Longest window of a filter, in points.
const WINDOW_MAX: u32 = 65_536;

/// `moving_average`: of each point the mean of it and those in front of it, `window` points in all (1 to 65,536); in the beginning of as many as there are. Events are
/// one signal, whichever event a point comes in.
///
/// Input: one, of real points. Result: `f64`, as many points. While a NaN or an infinity is in the window the result is NaN. State: the window.
pub const MOVING_AVERAGE: Kind = Kind { name: "moving_average", inputs: 1..=1, trigger: Trigger::All, make: make::<Mean> };

/// `median`: as `moving_average`, with the median instead of the mean; of an even number of points the mean of the two in the middle. While a NaN is in the window the
/// result is NaN; infinities are larger or smaller than all others.
pub const MEDIAN: Kind = Kind { name: "median", inputs: 1..=1, trigger: Trigger::All, make: make::<Median> };

/// What is known of a window, kept up while points come and go.
trait Summary: Send + 'static {
    fn new(window: usize) -> Self;
    /// `point` has come, `replaced` has gone, `ring` is what there is now.
    fn update(&mut self, ring: &Ring, point: f64, replaced: Option<f64>) -> f64;
}

struct Filter<S> {
    element: Element,
    window: usize,
    ring: Ring,
    summary: S,
    points: Vec<f64>,
}

fn make<S: Summary>(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let window = parameters.whole("window", 1..=WINDOW_MAX, None)? as usize;
    demand(inputs, |input| input.shape.element().is_real() && input.events == 1, "a filter takes real points, and events one by one")?;
    let shape = Shape::new(Element::F64, inputs[0].shape.count()).map_err(Misfit::Result)?;
    let points = Vec::with_capacity(inputs[0].shape.points_max());
    let element = inputs[0].shape.element();
    Ok(Made::new(Filter { element, window, ring: Ring::new(window), summary: S::new(window), points }, shape))
}

impl<S: Summary> Operator for Filter<S> {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        read(self.element, inputs.all(), &mut self.points);
        for point in &self.points {
            let replaced = self.ring.push(*point);
            write(out, &[self.summary.update(&self.ring, *point, replaced)]);
        }
        Ok(Emission::Emit)
    }

    fn save(&self, state: &mut Vec<u8>) {
        self.ring.save(state);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let points = Ring::saved(self.window, state).ok_or(StateError)?;
        (self.ring, self.summary) = (Ring::new(self.window), S::new(self.window));
        for point in points {
            let replaced = self.ring.push(point);
            self.summary.update(&self.ring, point, replaced);
        }
        Ok(())
    }
}

/// The exact sum of the finite points: a huge point that leaves the window leaves no error.
struct Mean {
    sum: ExactSum,
    infinite: usize,
}

impl Summary for Mean {
    fn new(_: usize) -> Self {
        Self { sum: ExactSum::new(), infinite: 0 }
    }

    fn update(&mut self, _: &Ring, point: f64, replaced: Option<f64>) -> f64 {
        match replaced {
            Some(replaced) if replaced.is_finite() => self.sum.subtract(replaced),
            Some(_) => self.infinite -= 1,
            None => {}
        }
        if point.is_finite() {
            self.sum.add(point)
        } else {
            self.infinite += 1
        }
        if self.infinite > 0 { f64::NAN } else { self.sum.mean() }
    }
}

/// The points of the window in order, NaN behind all others.
struct Median {
    sorted: Vec<f64>,
}

impl Summary for Median {
    fn new(window: usize) -> Self {
        Self { sorted: Vec::with_capacity(window + 1) }
    }

    fn update(&mut self, _: &Ring, point: f64, replaced: Option<f64>) -> f64 {
        let place = |sorted: &[f64], point: f64| sorted.partition_point(|other| other.total_cmp(&point).is_lt());
        // One sign of NaN, so that all of them are at the end.
        let ordered = |point: f64| if point.is_nan() { f64::NAN } else { point };
        if let Some(replaced) = replaced.map(ordered) {
            let at = place(&self.sorted, replaced);
            self.sorted.remove(at);
        }
        let point = ordered(point);
        self.sorted.insert(place(&self.sorted, point), point);
        let count = self.sorted.len();
        match self.sorted[count - 1].is_nan() {
            true => f64::NAN,
            false if count % 2 == 1 => self.sorted[count / 2],
            false => f64::midpoint(self.sorted[count / 2 - 1], self.sorted[count / 2]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        exact::tests::{any_magnitude, is_near, reference_sum},
        testing::{Bench, bytes, input, number, numbers},
    };

    fn filtered(kind: &Kind, window: usize, events: &[Vec<f64>]) -> Vec<f64> {
        let mut bench = Bench::new(kind, &[("window", number(window as f64))], &[input("f64[<=64]")]);
        let results = events.iter().map(|event| bench.run(&[&[&bytes(event)]]).expect("it runs").expect("there is a result"));
        results.flat_map(|result| numbers(&result)).collect()
    }

    fn naive(window: usize, signal: &[f64], of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        (1..=signal.len()).map(|end| of(&signal[end.saturating_sub(window)..end])).collect()
    }

    fn mean(points: &[f64]) -> f64 {
        if points.iter().all(|point| point.is_finite()) { points.iter().sum::<f64>() / points.len() as f64 } else { f64::NAN }
    }

    fn median(points: &[f64]) -> f64 {
        let mut sorted = points.to_vec();
        sorted.sort_by(f64::total_cmp);
        if points.iter().any(|point| point.is_nan()) { f64::NAN } else { (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0 }
    }

    fn point() -> impl Strategy<Value = f64> {
        prop_oneof![20 => -1e3..1e3f64, 1 => Just(f64::NAN), 1 => Just(-f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(f64::NEG_INFINITY)]
    }

    fn same(found: &[f64], expected: &[f64]) -> bool {
        let near = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() < 1e-9;
        found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| near(*found, *expected))
    }

    proptest! {
        #[test]
        fn filters_are_their_definitions(window in 1usize..20, events in prop::collection::vec(prop::collection::vec(point(), 0..12), 0..8)) {
            let signal = events.concat();
            let (found, expected) = (filtered(&MOVING_AVERAGE, window, &events), naive(window, &signal, mean));
            prop_assert!(same(&found, &expected), "{found:?} {expected:?}");
            let (found, expected) = (filtered(&MEDIAN, window, &events), naive(window, &signal, median));
            prop_assert!(same(&found, &expected), "{found:?} {expected:?}");
        }

        #[test]
        fn filters_of_any_magnitude_match_naive_reference(window in 1usize..12, signal in prop::collection::vec(any_magnitude(), 1..80)) {
            let found = filtered(&MOVING_AVERAGE, window, &signal.chunks(64).map(<[f64]>::to_vec).collect::<Vec<_>>());
            let expected = naive(window, &signal, |points| reference_sum(points) / points.len() as f64);
            prop_assert!(found.iter().zip(&expected).all(|(found, expected)| is_near(*found, *expected, 2.0)), "{found:?} {expected:?}");
            let found = filtered(&MEDIAN, window, &signal.chunks(64).map(<[f64]>::to_vec).collect::<Vec<_>>());
            prop_assert_eq!(found, naive(window, &signal, median));
        }

        #[test]
        fn a_filter_goes_on_from_what_it_has_saved(window in 1usize..20, before in prop::collection::vec(point(), 0..50), after in prop::collection::vec(point(), 1..20)) {
            for kind in [&MOVING_AVERAGE, &MEDIAN] {
                let bench = || Bench::new(kind, &[("window", number(window as f64))], &[input("f64[<=64]")]);
                let (mut first, mut second) = (bench(), bench());
                first.run(&[&[&bytes(&before)]]).expect("it runs");
                let mut state = Vec::new();
                first.operator.save(&mut state);
                prop_assert_eq!(second.operator.restore(&state), Ok(()));
                let run = |bench: &mut Bench| numbers(&bench.run(&[&[&bytes(&after)]]).expect("it runs").expect("there is a result"));
                let (one, other) = (run(&mut first), run(&mut second));
                prop_assert!(same(&one, &other), "{one:?} {other:?}");
                prop_assert_eq!(second.operator.restore(&vec![0; (window + 1) * 8]), Err(StateError));
                prop_assert_eq!(second.operator.restore(&[0; 7]), Err(StateError));
            }
        }
    }

    #[test]
    fn mean_after_huge_point_is_of_window() {
        let signal = [vec![20.0; 12], vec![1e300], vec![20.0; 25], vec![1e17], vec![20.0; 25]].concat();
        let found = filtered(&MOVING_AVERAGE, 10, &signal.chunks(1).map(<[f64]>::to_vec).collect::<Vec<_>>());
        let expected = naive(10, &signal, |points| reference_sum(points) / points.len() as f64);
        assert_eq!(found, expected);
        assert_eq!(filtered(&MOVING_AVERAGE, 3, &[vec![f64::MAX; 5]]), [f64::MAX; 5]);
        assert_eq!(filtered(&MOVING_AVERAGE, 3, &vec![vec![1e16, 1.0, -1e16]; 1000])[2..], [1.0 / 3.0; 2998]);
    }
}
