//! Every operator on numbers from 1e-300 to 1e300, against a naive reference.
//!
//! The recursive filters have their tests in `kalman::tests` and `average`.

use proptest::prelude::*;

use crate::{
    catalogue::{Input, KINDS, Kind},
    exact::tests::{any_magnitude, is_near, reference_sum},
    parameters::Value,
    testing::{Bench, bytes, input, number, numbers, text},
};

/// Kinds with a test of magnitudes: those below, and those with a test in their own module.
const TESTED: [&str; 19] = [
    "all",
    "any",
    "concatenate",
    "decrypt",
    "ekf",
    "encrypt",
    "fft",
    "join",
    "kurtosis",
    "map",
    "max",
    "median",
    "min",
    "moving_average",
    "rate_limit",
    "resample",
    "rms",
    "select",
    "threshold",
];

fn kind(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).expect("it is in the catalogue")
}

fn run(name: &str, parameters: &[(&str, Value)], shapes: &[&str], payloads: &[&[u8]]) -> Option<Vec<u8>> {
    let inputs: Vec<Input> = shapes.iter().map(|shape| input(shape)).collect();
    let events: Vec<[&[u8]; 1]> = payloads.iter().map(|payload| [*payload]).collect();
    let events: Vec<&[&[u8]]> = events.iter().map(<[_; 1]>::as_slice).collect();
    Bench::new(kind(name), parameters, &inputs).run(&events).expect("it runs")
}

fn points_of(name: &str, parameters: &[(&str, Value)], points: &[f64]) -> Vec<f64> {
    let shape = format!("f64[{}]", points.len());
    numbers(&run(name, parameters, &[&shape], &[&bytes(points)]).expect("there is a result"))
}

/// The fourth central moment by the square of the second, of points that are scaled to at most 1.
fn kurtosis(points: &[f64]) -> f64 {
    let largest = points.iter().map(|point| point.abs()).fold(0.0, f64::max);
    let count = points.len() as f64;
    let mean = reference_sum(points) / count;
    let deviations: Vec<f64> = points.iter().map(|point| point / largest - mean / largest).collect();
    let moment = |power| deviations.iter().map(|deviation| deviation.powi(power)).sum::<f64>() / count;
    moment(4) / moment(2).powi(2)
}

#[test]
fn every_operator_has_test_of_magnitudes() {
    assert_eq!(KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>(), TESTED);
}

proptest! {
    #[test]
    fn statistics_of_any_magnitude_match_naive_reference(points in prop::collection::vec(any_magnitude(), 2..60)) {
        let of = |name| points_of(name, &[], &points)[0];
        prop_assert_eq!(of("min"), points.iter().copied().fold(f64::INFINITY, f64::min));
        prop_assert_eq!(of("max"), points.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let norm = points.iter().fold(0.0, |norm: f64, point| norm.hypot(*point));
        prop_assert!(is_near(of("rms"), norm / (points.len() as f64).sqrt(), 200.0), "{} {norm}", of("rms"));
        match points.iter().all(|point| *point == points[0]) {
            true => prop_assert!(of("kurtosis").is_nan()),
            false => prop_assert!(is_near(of("kurtosis"), kurtosis(&points), 1e4), "{} {}", of("kurtosis"), kurtosis(&points)),
        }
    }

    #[test]
    fn kurtosis_of_equal_points_is_nan(point in any_magnitude(), count in 1usize..60) {
        prop_assert!(points_of("kurtosis", &[], &vec![point; count])[0].is_nan());
    }

    #[test]
    fn fft_of_any_magnitude_matches_definition(signal in prop::collection::vec(any_magnitude(), 1..40)) {
        let count = signal.len();
        let turn = |k: usize, n: usize| -std::f64::consts::TAU * ((k * n) % count) as f64 / count as f64;
        let sum = |k: usize, of: fn(f64) -> f64| reference_sum(&signal.iter().enumerate().map(|(n, x)| x * of(turn(k, n))).collect::<Vec<_>>());
        let largest = signal.iter().map(|point| point.abs()).fold(0.0, f64::max);
        let found = points_of("fft", &[("spectrum", text("full"))], &signal);
        for (k, point) in found.as_chunks::<2>().0.iter().enumerate() {
            let expected = [sum(k, f64::cos), sum(k, f64::sin)];
            let is_right = point.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() <= 1e-12 * largest * count as f64);
            prop_assert!(is_right, "{k}: {point:?} {expected:?}");
        }
    }

    #[test]
    fn resample_of_any_magnitude_is_between_samples(before in any_magnitude(), after in any_magnitude(), at_ns in 1u64..1_000) {
        let mut bench = Bench::new(kind("resample"), &[("every_us", number(1.0))], &[input("f64")]);
        let mut sample = |made_ns: u64, point: f64| {
            bench.now_ns = made_ns;
            bench.run(&[&[&bytes(&[point])]]).expect("it runs").map(|rows| numbers(&rows)).unwrap_or_default()
        };
        sample(1_000 - at_ns, before);
        let share = at_ns as f64 / 1_000.0;
        let (found, expected) = (sample(2_000 - at_ns, after), before * (1.0 - share) + after * share);
        let near = |found: f64| (found - expected).abs() <= 4.0 * f64::EPSILON * before.abs().max(after.abs());
        prop_assert!(matches!(*found, [found] if near(found)), "{found:?} {expected}");
    }

    #[test]
    fn map_of_any_magnitude_is_its_expression(points in prop::collection::vec(any_magnitude(), 1..40), other in any_magnitude()) {
        let shapes = [&*format!("f64[{}]", points.len()), "f64"];
        let expression = [("expression", text("if(x0 > x1, x0 / 3 - x1, abs(x0) * 2e-5 + x1)"))];
        let found = run("map", &expression, &shapes, &[&bytes(&points), &bytes(&[other])]).expect("there is a result");
        let expected = points.iter().map(|x| if *x > other { x / 3.0 - other } else { x.abs() * 2e-5 + other });
        prop_assert_eq!(numbers(&found), expected.collect::<Vec<_>>());
    }

    #[test]
    fn threshold_of_any_magnitude_has_hysteresis(points in prop::collection::vec(any_magnitude(), 1..40), on in any_magnitude(), below in any_magnitude()) {
        let off = on.min(below);
        let expected = points.iter().fold(0, |is_on, point| if *point >= on { 1 } else if *point <= off { 0 } else { is_on });
        let parameters = [("on", number(on)), ("off", number(off)), ("emit", text("always"))];
        let shape = format!("f64[{}]", points.len());
        prop_assert_eq!(run("threshold", &parameters, &[&shape], &[&bytes(&points)]), Some(vec![expected]));
    }

    #[test]
    fn numbers_of_any_magnitude_pass_through_json(point in any_magnitude()) {
        let joined = run("join", &[("names", Value::List(vec![text("n")]))], &["f64"], &[&bytes(&[point])]).expect("there is a result");
        let selected = run("select", &[("path", text("n"))], &["json[<=400]"], &[&joined]).expect("there is a result");
        prop_assert_eq!(numbers(&selected), [point]);
    }

    #[test]
    fn correlation_counts_any_number_but_zero(point in any_magnitude()) {
        let happened = run("any", &[], &["f64"], &[&bytes(&[point])]);
        prop_assert_eq!(happened, (point != 0.0).then(|| vec![1]));
        let mut bench = Bench::new(kind("all"), &[("within_ms", number(1.0))], &[input("f64"), input("f64")]);
        let payload = bytes(&[point]);
        let events: [&[&[u8]]; 2] = [&[&payload], &[]];
        prop_assert_eq!(bench.run(&events), Ok(None));
        prop_assert_eq!(bench.run(&[events[1], events[0]]), Ok((point != 0.0).then(|| vec![1, 1])));
    }

    #[test]
    fn payloads_of_any_magnitude_pass_unchanged(points in prop::collection::vec(any_magnitude(), 4)) {
        let payload = bytes(&points);
        prop_assert_eq!(run("concatenate", &[], &["f64[3]", "f64"], &[&payload[..24], &payload[24..]]), Some(payload.clone()));
        prop_assert_eq!(run("rate_limit", &[("every_ms", number(1.0))], &["f64[4]"], &[&payload]), Some(payload.clone()));
        let key = [("key", text("k"))];
        let encrypted = with_key("encrypt", &key, "f64[4]", &payload);
        let decrypted = with_key("decrypt", &[key[0].clone(), ("shape", text("f64[4]"))], "bytes[<=80]", &encrypted);
        prop_assert_eq!(decrypted, payload);
    }
}

/// The result of an operator that needs the key `k`.
fn with_key(name: &str, parameters: &[(&str, Value)], shape: &str, payload: &[u8]) -> Vec<u8> {
    let mut keys = crate::Keys::new(1, 1);
    keys.add("k", &[9; 32]).expect("it is a key");
    let parameters = crate::parameters::Parameters::new(parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    let made = (kind(name).make)(&mut parameters.at("graph", "operator").with_keys(Some(keys)), &[input(shape)]);
    let mut operator = made.unwrap_or_else(|misfit| panic!("{name}: {misfit}")).operator;
    crate::testing::run_one(&mut *operator, payload).expect("it runs")
}
