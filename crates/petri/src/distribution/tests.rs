//! Every law against `vectors/petri/distributions.json` (50 digits, made with mpmath), and against itself.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::random::Place;

/// The laws of the vectors, with their values.
fn vectors() -> Vec<(Distribution, Value)> {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../../vectors/petri/distributions.json")).expect("the vectors are JSON");
    let law = |case: &Value| Distribution::try_from(serde_json::from_value::<Form>(case["law"].clone()).expect("a form")).expect("a law");
    cases.into_iter().map(|case| (law(&case), case)).collect()
}

fn number(value: &Value) -> f64 {
    value.as_str().map_or_else(|| value.as_f64().expect("a number"), |text| text.parse().expect("a number"))
}

fn check(what: &str, law: &Distribution, computed: f64, expected: f64, allowed: f64) {
    let error = (computed - expected).abs() / expected.abs().max(f64::MIN_POSITIVE);
    assert!(error <= allowed || (computed - expected).abs() < 1e-16, "{what} of {law:?}: {computed:e} for {expected:e}, {error:e} off");
}

#[test]
fn moments_densities_and_tails_are_exact() {
    for (law, case) in vectors() {
        // Those that subtract probabilities are exact to a share of 1, not of the value.
        let allowed = if matches!(law, Distribution::Expolynomial(_)) { 1e-9 } else { 1e-12 };
        check("mean", &law, law.mean(), number(&case["mean"]), allowed);
        check("variance", &law, law.variance(), number(&case["variance"]), 100.0 * allowed);
        for point in case["points"].as_array().expect("points") {
            let x = number(&point[0]);
            assert_eq!(law.pdf(x).is_some(), !point[1].is_null(), "density of {law:?} at {x}");
            if let Some(density) = law.pdf(x) {
                check("density", &law, density, number(&point[1]), allowed);
            }
            check("cdf", &law, law.cdf(x), number(&point[2]), allowed);
            check("survival", &law, law.survival(x), number(&point[3]), allowed);
        }
        for pair in case.get("laplace").and_then(Value::as_array).into_iter().flatten() {
            let s = number(&pair[0]);
            check("Laplace transform", &law, law.laplace(s).expect("it has one"), number(&pair[1]), allowed);
        }
    }
}

#[test]
fn quantiles_undo_the_distribution_function() {
    for (law, _) in vectors().iter().filter(|(law, _)| law.pdf(1.0).is_some()) {
        for p in [1e-12, 1e-3, 0.25, 0.5, 0.9, 0.999] {
            let x = law.quantile(p);
            // What one bit of the quantile is in probability.
            let spacing = law.pdf(x).expect("it has one") * x * f64::EPSILON;
            check("cdf at the quantile", law, law.cdf(x), p, 1e-9 + 4.0 * spacing / p);
        }
        assert_eq!((law.quantile(0.0), law.quantile(1.0)), law.support(), "{law:?}");
    }
}

#[test]
fn the_quantile_of_steps_is_where_the_step_is() {
    let law = Empirical::new(vec![6.0, 1.0, 2.0, 2.0]).expect("values");
    let steps = [(0.0, 1.0), (0.25, 1.0), (0.26, 2.0), (0.75, 2.0), (0.76, 6.0), (1.0, 6.0)];
    for (p, x) in steps {
        assert_eq!(Law::quantile(&law, p), x, "at {p}");
    }
}

/// Kolmogorov and Smirnov's distance of 4,000 draws, which is beyond 2.0 / sqrt(n) in one of 1,500 cases, and their mean.
#[test]
fn what_is_drawn_has_the_law() {
    const COUNT: u32 = 4_000;
    for (index, (law, _)) in vectors().into_iter().enumerate() {
        for way in ["law", "sampler"] {
            let sampler = Sampler::new(&law);
            let draw = |draw| {
                let mut draws = Draws::at(11, Place { run: index as u64, stream: 0, draw });
                if way == "law" { law.sample(&mut draws) } else { sampler.sample(&mut draws) }
            };
            let mut times: Vec<f64> = (0..COUNT).map(draw).collect();
            let mean = times.iter().sum::<f64>() / f64::from(COUNT);
            let error = (law.variance() / f64::from(COUNT)).sqrt();
            assert!((mean - law.mean()).abs() <= 4.0 * error + 1e-12, "{way} {law:?}: mean {mean} for {}", law.mean());
            times.sort_unstable_by(f64::total_cmp);
            let below = |x: f64| times.partition_point(|time| *time <= x) as f64 / f64::from(COUNT);
            let distance = times.iter().map(|x| (below(*x) - law.cdf(*x)).abs()).fold(0.0, f64::max);
            assert!(distance < 2.0 / f64::from(COUNT).sqrt(), "{way} {law:?}: distance {distance}");
        }
    }
}

/// The shapes and layers where the normal numbers' corner cases are: far tails have their share.
#[test]
fn normal_numbers_reach_their_tails() {
    const COUNT: u32 = 400_000;
    let mut beyond = [0_u32; 5];
    for draw in 0..COUNT {
        let x = sampling::standard_normal(&mut Draws::at(5, Place { run: 0, stream: 0, draw })).abs();
        for (limit, count) in beyond.iter_mut().enumerate() {
            *count += u32::from(x > limit as f64 * 0.9 + 0.4);
        }
    }
    for (limit, count) in beyond.into_iter().enumerate() {
        let expected = f64::from(COUNT) * crate::special::erfc((limit as f64 * 0.9 + 0.4) / std::f64::consts::SQRT_2);
        assert!((f64::from(count) - expected).abs() < 4.0 * expected.sqrt(), "{count} beyond limit {limit}, for {expected}");
    }
}

#[test]
fn what_is_no_law_is_refused_with_the_parameter() {
    let cases = [
        (r#"{"type": "exponential", "rate": 0}"#, "exponential: rate is 0, not a finite number above 0"),
        (r#"{"type": "erlang", "shape": 0, "rate": 1}"#, "erlang: shape is 0, not above 0 and at most 1e9"),
        (r#"{"type": "uniform", "min": 2, "max": 2}"#, "uniform: max is 2, not above 2"),
        (r#"{"type": "uniform", "min": -1, "max": 2}"#, "uniform: min is -1, not a finite number from 0"),
        (
            r#"{"type": "hyper_exponential", "branches": [{"probability": 0.5, "rate": 1}]}"#,
            "mixture: probability is 0.5 altogether, not 1 altogether",
        ),
        (r#"{"type": "hypo_exponential", "rates": []}"#, "hypo_exponential: rates is a list of 0, not a list of 1 to 512"),
        (
            r#"{"type": "phase_type", "initial": [1, 0], "generator": [[-1, 1], [1, -1]]}"#,
            "phase_type: generator is a chain without an end, not one that ends, within 10,000 steps of its fastest phase",
        ),
        (
            r#"{"type": "phase_type", "initial": [1], "generator": [[-1, 1]]}"#,
            "phase_type: generator is 1 rows beside 1 initial probabilities, not a square of 1 to 512 rows, one for each initial probability",
        ),
        (r#"{"type": "weibull", "shape": 0.001, "scale": 1}"#, "weibull: shape is 0.001, not 0.02 to 1e6"),
        (
            r#"{"type": "expolynomial", "pieces": [{"min": 0, "max": 1, "terms": [{"coefficient": 2, "power": 0, "rate": 0}]}]}"#,
            "expolynomial: pieces is 2, not a mass of 1",
        ),
        (
            r#"{"type": "expolynomial", "pieces": [{"min": 0, "max": 1, "terms": [{"coefficient": 4, "power": 1, "rate": 0}, {"coefficient": -1, "power": 0, "rate": 0}]}]}"#,
            "expolynomial: terms is -1, not a density of at least 0 everywhere",
        ),
        (r#"{"type": "empirical", "values": [1, -2]}"#, "empirical: values is -2, not a finite number from 0"),
    ];
    for (form, expected) in cases {
        let form: Form = serde_json::from_str(form).expect("a form");
        assert_eq!(Distribution::try_from(form.clone()).map_err(|error| error.to_string()), Err(expected.to_owned()), "{form:?}");
    }
    let unknown = serde_json::from_str::<Form>(r#"{"type": "exponential", "rate": 1, "mean": 1}"#).map_err(|error| error.to_string());
    assert!(unknown.as_ref().is_err_and(|error| error.contains("unknown field `mean`")), "{unknown:?}");
}

#[test]
fn a_law_survives_its_form() {
    for (law, _) in vectors() {
        let text = serde_json::to_string(&Form::from(&law)).expect("a form is JSON");
        let again = Distribution::try_from(serde_json::from_str::<Form>(&text).expect("a form"));
        assert_eq!(again, Ok(law.clone()), "{text}");
        assert!(text.contains(&format!("\"type\":\"{}\"", law.name())), "{text}");
    }
}

proptest! {
    /// Distribution function and survival are one, monotone, and agree with the quantile, for any gamma law.
    #[test]
    fn gamma_laws_hold_together(shape in 0.05_f64..5e3, rate in 1e-3_f64..1e3, p in 1e-9_f64..0.999_999) {
        let law = Distribution::Gamma(Gamma::new(shape, rate).expect("a law"));
        let x = law.quantile(p);
        prop_assert!((law.cdf(x) - p).abs() <= 1e-11 * p.max(1e-3), "{} for {p} at {x}", law.cdf(x));
        prop_assert!((law.cdf(x) + law.survival(x) - 1.0).abs() < 1e-14);
        prop_assert!(law.cdf(x * 1.001) >= law.cdf(x));
    }

    /// A chain of stages is the sum of its stages: its transform is their product, and with equal rates it is Erlang's law.
    #[test]
    fn equal_stages_are_an_erlang_law(stages in 1_u32..40, rate in 0.01_f64..100.0, p in 0.01_f64..0.99) {
        let erlang = Distribution::Erlang(Erlang::new(stages, rate).expect("a law"));
        let chain = Distribution::HypoExponential(HypoExponential::new(&vec![rate; stages as usize]).expect("a law"));
        let x = erlang.quantile(p);
        prop_assert!((chain.cdf(x) - p).abs() < 1e-12);
        prop_assert!((chain.variance() / erlang.variance() - 1.0).abs() < 1e-12);
    }
}
