//! The filter against its recursion in one dimension, and what it is for.

use proptest::prelude::*;

use super::*;
use crate::{
    parameters::Value,
    testing::{Bench, bytes, input, number, numbers, text},
};

fn rows(rows: &[&[f64]]) -> Value {
    Value::List(rows.iter().map(|row| Value::List(row.iter().map(|cell| number(*cell)).collect())).collect())
}

fn run(bench: &mut Bench, points: &[f64]) -> Vec<f64> {
    numbers(&bench.run(&[&[&bytes(points)]]).expect("it runs").expect("there is a result"))
}

fn random_walk_bench() -> Bench {
    let parameters = [("model", text("random_walk")), ("process_noise", number(0.25)), ("measurement_noise", number(4.0))];
    Bench::new(&EKF, &parameters, &[input("f64[<=64]")])
}

proptest! {
    #[test]
    fn a_random_walk_is_the_recursion_of_one_dimension(points in prop::collection::vec(prop_oneof![9 => -1e3..1e3f64, 1 => Just(f64::NAN)], 0..60), cut in 0usize..60) {
        let (mut state, mut variance) = (0.0, 1e6);
        let expected: Vec<f64> = points.iter().map(|point| {
            variance += 0.25;
            if point.is_finite() {
                let gain = variance / (variance + 4.0);
                state += gain * (point - state);
                variance *= 1.0 - gain;
            }
            state
        }).collect();
        let mut bench = random_walk_bench();
        let cut = cut.min(points.len());
        let mut found = run(&mut bench, &points[..cut]);
        // It goes on elsewhere from what it has saved.
        let mut saved = Vec::new();
        bench.operator.save(&mut saved);
        let mut other = random_walk_bench();
        prop_assert_eq!(other.operator.restore(&saved), Ok(()));
        found.extend(run(&mut other, &points[cut..]));
        prop_assert!(found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1e-6), "{:?} {:?}", found, expected);
        prop_assert_eq!(found.len(), expected.len());
    }
}

proptest! {
    #[test]
    fn room_in_the_matrices_changes_no_bit(points in prop::collection::vec(prop_oneof![9 => -1e3..1e3f64, 1 => Just(f64::INFINITY)], 0..60), is_moving: bool) {
        let parameters = [("process_noise", number(0.25)), ("measurement_noise", number(4.0))];
        let mut parameters = Parameters::new(parameters.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let model = if is_moving { constant_velocity(&mut parameters) } else { random_walk(&mut parameters) }.expect("it is one");
        let start = vec![0.0; model.transition.rows()];
        let blueprint = Blueprint { element: Element::F64, model, start, start_variance: 1e6, gives_state: true, points_max: 64 };
        let shape = "f64[<=128]".parse().expect("it is a shape");
        let results = |operator: Box<dyn Operator>| {
            let mut bench = Bench { shape, operator, now_ns: 0, publisher: 0 };
            let found: Vec<u64> = run(&mut bench, &points).into_iter().map(f64::to_bits).collect();
            let mut state = Vec::new();
            bench.operator.save(&mut state);
            (found, state)
        };
        let expected = results(Box::new(blueprint.filter::<SIDE_MAX>()));
        prop_assert_eq!(&results(Box::new(blueprint.filter::<2>())), &expected);
        if !is_moving {
            prop_assert_eq!(&results(Box::new(blueprint.filter::<1>())), &expected);
        }
    }
}

#[test]
fn a_steady_velocity_is_found() {
    let parameters = [
        ("model", text("constant_velocity")),
        ("process_noise", number(1e-6)),
        ("measurement_noise", number(1.0)),
        ("result", text("state")),
    ];
    let mut bench = Bench::new(&EKF, &parameters, &[input("f64[200]")]);
    let line: Vec<f64> = (0..200).map(|step| 5.0 + 0.5 * f64::from(step) + if step % 2 == 0 { 0.3 } else { -0.3 }).collect();
    let found = run(&mut bench, &line);
    let [.., value, velocity] = found[..] else { panic!("there are states") };
    assert!((value - 104.5).abs() < 0.2 && (velocity - 0.5).abs() < 0.01, "{value} {velocity}");
}

#[test]
fn matrices_of_the_same_model_are_the_same_filter() {
    let named = [("model", text("constant_velocity")), ("process_noise", number(0.01)), ("measurement_noise", number(1.0))];
    let written = [
        ("model", text("matrices")),
        ("transition", rows(&[&[1.0, 1.0], &[0.0, 1.0]])),
        ("measurement", rows(&[&[1.0, 0.0]])),
        ("process_noise", rows(&[&[0.0025, 0.005], &[0.005, 0.01]])),
        ("measurement_noise", rows(&[&[1.0]])),
    ];
    let points: Vec<f64> = (0..50).map(|step| f64::from(step * step % 17)).collect();
    let [one, other] = [named.as_slice(), &written].map(|parameters| run(&mut Bench::new(&EKF, parameters, &[input("f64[50]")]), &points));
    assert_eq!(one, other);
}

#[test]
fn several_measurements_a_step_are_taken_together() {
    let parameters = [
        ("model", text("matrices")),
        ("transition", rows(&[&[1.0, 0.0], &[0.0, 1.0]])),
        ("measurement", rows(&[&[1.0, 0.0], &[0.0, 1.0]])),
        ("process_noise", rows(&[&[0.0, 0.0], &[0.0, 0.0]])),
        ("measurement_noise", rows(&[&[1.0, 0.0], &[0.0, 1.0]])),
        ("start", Value::List(vec![number(1.0), number(2.0)])),
        ("start_variance", number(1.0)),
    ];
    let mut bench = Bench::new(&EKF, &parameters, &[input("f64[2]")]);
    assert_eq!(run(&mut bench, &[3.0, 2.0]), [2.0, 2.0], "half way between what was known and what was measured");
    assert_eq!(run(&mut bench, &[f64::INFINITY, 9.0]), [2.0, 2.0], "a step with an infinity is predicted only");
    assert_eq!(bench.operator.restore(&[0; 40]), Err(StateError));
}

#[test]
fn matrices_that_are_no_model_are_refused() {
    let refused = |key: &str, value: Value| {
        let all = [
            ("model", text("matrices")),
            ("transition", rows(&[&[1.0, 1.0], &[0.0, 1.0]])),
            ("measurement", rows(&[&[1.0, 0.0]])),
            ("process_noise", rows(&[&[1.0, 0.0], &[0.0, 1.0]])),
            ("measurement_noise", rows(&[&[1.0]])),
        ];
        let mut parameters =
            Parameters::new(all.into_iter().map(|(name, other)| (name.to_owned(), if name == key { value.clone() } else { other })));
        make(&mut parameters, &[input("f64[50]")]).err().map(|misfit| misfit.to_string()).unwrap_or_default()
    };
    assert_eq!(refused("", number(0.0)), "");
    assert_eq!(refused("transition", rows(&[&[1.0, 1.0]])), "transition must be a list of 1 rows of 1 numbers each");
    assert_eq!(refused("measurement", rows(&[&[1.0]])), "measurement must be a list of 1 rows of 2 numbers each");
    assert!(refused("process_noise", rows(&[&[1.0, 0.5], &[0.0, 1.0]])).starts_with("process_noise must be a covariance"));
    assert!(refused("process_noise", rows(&[&[-1.0, 0.0], &[0.0, 1.0]])).starts_with("process_noise must be a covariance"));
    assert!(refused("measurement_noise", rows(&[&[0.0]])).starts_with("measurement_noise must be a covariance"));
}

fn model_bench(model: &str) -> Bench {
    let noises = [("process_noise", number(0.01)), ("measurement_noise", number(1.0))];
    let growing = [
        ("transition", rows(&[&[1.1]])),
        ("measurement", rows(&[&[1.0]])),
        ("process_noise", rows(&[&[0.01]])),
        ("measurement_noise", rows(&[&[1.0]])),
    ];
    let of_model = if model == "matrices" { growing.to_vec() } else { noises.to_vec() };
    Bench::new(&EKF, &[vec![("model", text(model))], of_model].concat(), &[input("f64[<=5000]")])
}

const MODELS: [&str; 3] = ["random_walk", "constant_velocity", "matrices"];

fn state_of(bench: &Bench) -> Vec<f64> {
    let mut state = Vec::new();
    bench.operator.save(&mut state);
    numbers(&state)
}

#[test]
fn filter_after_overflow_restarts_with_next_measurement() {
    let calm = [20.0; 30];
    let cases: [(&str, Vec<f64>); 3] =
        [("constant_velocity", vec![1.7e308]), ("matrices", vec![f64::NAN; 4_000]), ("random_walk", vec![f64::MAX, -f64::MAX])];
    for (model, huge) in cases {
        let (mut bench, mut fresh) = (model_bench(model), model_bench(model));
        run(&mut bench, &huge);
        let before = bench.operator.take_restarts();
        let found = run(&mut bench, &calm);
        let restarts = before + bench.operator.take_restarts();
        assert_eq!((restarts, bench.operator.take_restarts()), (1, 0), "{model}");
        assert!(found.iter().all(|point| point.is_finite()), "{model}: {found:?}");
        if model != "random_walk" {
            assert_eq!(found, run(&mut fresh, &calm), "{model}");
        }
    }
}

#[test]
fn filter_restored_without_finite_state_restarts() {
    for model in MODELS {
        let cells = state_of(&model_bench(model)).len();
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for at in 0..cells {
                let (mut bench, mut fresh) = (model_bench(model), model_bench(model));
                let mut state = state_of(&bench);
                state[at] = wrong;
                assert_eq!(bench.operator.restore(&bytes(&state)), Ok(()));
                // The state is the same at a standby that has taken it over before the next measurement.
                assert_eq!(run(&mut bench, &[f64::NAN]).len(), 1);
                assert_eq!(run(&mut bench, &[20.0; 9]), run(&mut fresh, &[20.0; 9]), "{model} {wrong} at {at}");
                assert_eq!(bench.operator.take_restarts(), 1, "{model} {wrong} at {at}");
            }
        }
    }
}

fn any_point() -> impl Strategy<Value = f64> {
    prop_oneof![9 => crate::exact::tests::any_magnitude(), 1 => Just(f64::NAN), 1 => prop_oneof![Just(f64::MAX), Just(-f64::MAX)]]
}

proptest! {
    #[test]
    fn filter_is_finite_after_each_finite_measurement(points in prop::collection::vec(any_point(), 1..200), nulls in 0usize..4_500) {
        for model in MODELS {
            let mut bench = model_bench(model);
            run(&mut bench, &vec![f64::NAN; nulls]);
            for (point, found) in points.iter().zip(run(&mut bench, &points)) {
                prop_assert!(!point.is_finite() || found.is_finite(), "{model}: {found} of {point}");
            }
            let state = state_of(&bench);
            prop_assert!(!points[points.len() - 1].is_finite() || state.iter().all(|cell| cell.is_finite()), "{model}: {state:?}");
        }
    }

    #[test]
    fn filter_of_scaled_signal_is_scaled_filter(points in prop::collection::vec(-1e3..1e3f64, 1..60), power in -980i32..980) {
        // A power of two changes no fraction, and the covariance does not depend on the measurements.
        let scale = 2f64.powi(power);
        for model in MODELS {
            let scaled: Vec<f64> = points.iter().map(|point| point * scale).collect();
            let found = run(&mut model_bench(model), &scaled);
            let expected: Vec<f64> = run(&mut model_bench(model), &points).iter().map(|point| point * scale).collect();
            prop_assert_eq!(found, expected, "{}", model);
        }
    }
}

#[test]
fn model_without_finite_first_estimate_is_refused() {
    let parameters = [("model", text("random_walk")), ("process_noise", number(1e308)), ("measurement_noise", number(1.7e308))];
    let mut parameters = Parameters::new(parameters.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let refused = make(&mut parameters, &[input("f64")]).err().map(|misfit| misfit.to_string());
    let expected = "start_variance with this model makes no finite first estimate: use numbers of another magnitude";
    assert_eq!(refused.as_deref(), Some(expected));
}
