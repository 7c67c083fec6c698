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
