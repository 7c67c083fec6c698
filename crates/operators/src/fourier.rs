//! The spectrum of a real signal.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use bodkin_broker::graph::{Count, Element, Emission, Fault, Inputs, Operator, Shape, Trigger};
use realfft::{RealFftPlanner, RealToComplex, num_complex::Complex};

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    parameters::Parameters,
    points::write,
};

/// `fft`: the discrete Fourier transform `X[k] = sum over n of x[n] * exp(-2 pi i k n / N)`, not scaled, of the N real points of its input; of a window, of all its
/// events as one signal.
///
/// Input: one, of real points, a fixed number of them. Result: `complex128[N/2 + 1]` (`spectrum = "half"`, the default: the other half is its mirror image),
/// `complex128[N]` (`"full"`), or `f64[N/2 + 1]` (`"magnitude"`, the absolute values). A NaN or an infinity in the input makes every point of the result NaN or
/// infinite. No state. Source: Cooley and Tukey 1965; the crate `realfft`, planned when the first operator of as many points is made.
pub const FFT: Kind = Kind { name: "fft", inputs: 1..=1, trigger: Trigger::All, make };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spectrum {
    Half,
    Full,
    Magnitude,
}

/// What is to be computed for a number of points. It is the same for all operators.
type Plan = dyn RealToComplex<f64>;

thread_local! {
    /// The plans of operators that this thread has made, by their numbers of points: those of one graph are made by one thread.
    static PLANS: RefCell<BTreeMap<usize, Weak<Plan>>> = const { RefCell::new(BTreeMap::new()) };
}

/// The plan for so many points: that of another operator, or a new one. It is gone with the last operator that has it.
fn plan(points: usize) -> Arc<Plan> {
    PLANS.with_borrow_mut(|plans| {
        if let Some(plan) = plans.get(&points).and_then(Weak::upgrade) {
            return plan;
        }
        plans.retain(|_, plan| plan.strong_count() > 0);
        let plan = RealFftPlanner::new().plan_fft_forward(points);
        plans.insert(points, Arc::downgrade(&plan));
        plan
    })
}

struct Fft {
    element: Element,
    spectrum: Spectrum,
    plan: Arc<Plan>,
    signal: Vec<f64>,
    half: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

fn make(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let words = [("half", Spectrum::Half), ("full", Spectrum::Full), ("magnitude", Spectrum::Magnitude)];
    let spectrum = parameters.word("spectrum", &words, false)?;
    let is_fixed = |input: &Input| input.shape.element().is_real() && matches!(input.shape.count(), Count::Exactly(_));
    demand(inputs, is_fixed, "fft takes a fixed number of real points")?;
    let points = inputs[0].shape.points_max() * inputs[0].events;
    let (element, count) = match spectrum {
        Spectrum::Half => (Element::Complex128, points / 2 + 1),
        Spectrum::Full => (Element::Complex128, points),
        Spectrum::Magnitude => (Element::F64, points / 2 + 1),
    };
    let shape = Shape::new(element, Count::Exactly(u32::try_from(count).unwrap_or(u32::MAX))).map_err(Misfit::Result)?;
    let plan = plan(points);
    let (signal, half, scratch) = (Vec::with_capacity(points), plan.make_output_vec(), plan.make_scratch_vec());
    Ok(Made::new(Fft { element: inputs[0].shape.element(), spectrum, plan, signal, half, scratch }, shape))
}

impl Operator for Fft {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        self.signal.clear();
        inputs.all().iter().for_each(|event| self.element.read(event.payload, &mut self.signal));
        let done = self.plan.process_with_scratch(&mut self.signal, &mut self.half, &mut self.scratch);
        done.map_err(|_| Fault::Input { input: 0, what: "has another number of points" })?;
        match self.spectrum {
            Spectrum::Half => self.half.iter().for_each(|point| write(out, &[point.re, point.im])),
            Spectrum::Magnitude => self.half.iter().for_each(|point| write(out, &[point.norm()])),
            Spectrum::Full => {
                self.half.iter().for_each(|point| write(out, &[point.re, point.im]));
                // X[N - k] is the conjugate of X[k].
                let mirrored = 1..(self.signal.len()).div_ceil(2);
                self.half[mirrored].iter().rev().for_each(|point| write(out, &[point.re, -point.im]));
            }
        }
        Ok(Emission::Emit)
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Bench, bytes, input, numbers, text};

    fn naive(signal: &[f64]) -> Vec<(f64, f64)> {
        let turn = |k: usize, n: usize| -TAU * ((k * n) % signal.len()) as f64 / signal.len() as f64;
        let point = |k| signal.iter().enumerate().map(move |(n, x)| (x * turn(k, n).cos(), x * turn(k, n).sin()));
        (0..signal.len()).map(|k| point(k).fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1))).collect()
    }

    proptest! {
        #[test]
        fn every_form_is_the_sum_of_the_definition(signal in prop::collection::vec(-1e3..1e3f64, 1..70)) {
            let expected = naive(&signal);
            let shape = input(&format!("f64[{}]", signal.len()));
            let payload = bytes(&signal);
            let spectrum = |word: &str| {
                let mut bench = Bench::new(&FFT, &[("spectrum", text(word))], &[shape]);
                numbers(&bench.run(&[&[&payload]]).expect("it runs").expect("there is a result"))
            };
            let near = |found: &[f64], expected: Vec<f64>| {
                found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-8)
            };
            let flat = |points: &[(f64, f64)]| points.iter().flat_map(|(re, im)| [*re, *im]).collect::<Vec<f64>>();
            let half = signal.len() / 2 + 1;
            prop_assert!(near(&spectrum("full"), flat(&expected)));
            prop_assert!(near(&spectrum("half"), flat(&expected[..half])));
            prop_assert!(near(&spectrum("magnitude"), expected[..half].iter().map(|(re, im)| re.hypot(*im)).collect()));
        }
    }

    #[test]
    fn operators_of_as_many_points_have_one_plan_which_goes_with_the_last_of_them() {
        let first = plan(4_093);
        assert!(Arc::ptr_eq(&first, &plan(4_093)) && !Arc::ptr_eq(&first, &plan(4_091)));
        let seen = Arc::downgrade(&first);
        drop(first);
        assert!(seen.upgrade().is_none());
    }

    #[test]
    fn a_window_is_one_signal_and_nan_is_everywhere() {
        let window = Input { events: 2, ..input("u8[2]") };
        let mut bench = Bench::new(&FFT, &[], &[window]);
        assert_eq!(bench.shape.to_string(), "complex128[3]");
        let found = bench.run(&[&[&[1, 2], &[3, 4]]]).expect("it runs").expect("there is a result");
        assert_eq!(numbers(&found), [10.0, 0.0, -2.0, 2.0, -2.0, 0.0]);
        let mut bench = Bench::new(&FFT, &[("spectrum", text("magnitude"))], &[input("f64[4]")]);
        let found = bench.run(&[&[&bytes(&[1.0, f64::NAN, 0.0, 0.0])]]).expect("it runs").expect("there is a result");
        assert!(numbers(&found).iter().all(|point| point.is_nan()), "{found:?}");
    }

    #[test]
    fn a_signal_of_no_fixed_length_is_refused() {
        for shape in ["f64[<=4]", "complex128[4]", "json[9]"] {
            assert!(make(&mut Parameters::default(), &[input(shape)]).is_err(), "{shape}");
        }
    }
}
