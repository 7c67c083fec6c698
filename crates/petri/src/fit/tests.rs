use super::*;
use crate::{
    distribution::{
        Erlang, Exponential, Gamma, HypoExponential, Lognormal, Mixture, PhaseType, Sampler, TruncatedNormal, Uniform, Weibull,
    },
    random::{Draws, Place},
};

/// Listing 6.1 of Rocha's thesis: 99 latencies of a request, in whole milliseconds, a line each under a header.
const LISTING: &str = include_str!("../../../../vectors/petri/listing_6_1.csv");

fn listing() -> Sample {
    let values = LISTING.lines().skip(1).map(|line| line.parse().expect("a number"));
    Sample::new(values.collect()).expect("times")
}

fn drawn(law: &Distribution, count: u32, seed: u64) -> Sample {
    let sampler = Sampler::new(law);
    let values = (0..count).map(|draw| sampler.sample(&mut Draws::at(seed, Place { run: 0, stream: 0, draw })));
    Sample::new(values.collect()).expect("times")
}

/// The values of an exact maximization, made with 50 digits.
#[test]
fn the_listings_gamma_law_is_exact_and_told_not_to_fit() {
    let report = fit(&listing(), &[Family::Gamma], &Options { resamples: 199, ..Options::default() });
    let fitted = &report.fits[0];
    let [shape, rate] = [&fitted.parameters[0], &fitted.parameters[1]].map(|(_, value)| *value);
    assert!((shape - 10.070_253_82).abs() < 1e-8, "shape {shape}");
    assert!((rate - 0.671_802_65).abs() < 1e-8, "rate {rate}");
    assert!((fitted.log_likelihood.expect("a density") + 290.821_369_24).abs() < 1e-7, "{:?}", fitted.log_likelihood);
    assert_eq!(fitted.fits(0.01), Some(false), "{:?}", fitted.test);
    assert_eq!(report.any_fits, Some(false));
    assert_eq!(report.outliers.values, [23.0, 29.0, 91.0]);
}

#[test]
fn rounded_values_are_known_as_such() {
    assert_eq!(listing().resolution(), Some(1.0));
    let tenths = Sample::new(vec![0.3, 0.7, 0.7, 12.1]).expect("times");
    assert_eq!(tenths.resolution(), Some(0.1));
    assert_eq!(Sample::new(vec![1.0, 2.0, 3.0]).expect("times").resolution(), None, "nothing repeats");
}

/// A likelihood is greatest where a step in any parameter makes it less.
#[test]
fn what_is_fitted_is_likelier_than_its_neighbours() {
    let laws: [(Family, Distribution); 9] = [
        (Family::HypoExponential, Distribution::HypoExponential(HypoExponential::new(&[3.0, 0.5]).expect("a law"))),
        (Family::HypoExponential, Distribution::HypoExponential(HypoExponential::new(&[40.0, 100.0]).expect("a law"))),
        (Family::Exponential, Distribution::Exponential(Exponential::new(3.0).expect("a law"))),
        (Family::Gamma, Distribution::Gamma(Gamma::new(0.6, 2.0).expect("a law"))),
        (Family::Gamma, Distribution::Gamma(Gamma::new(250.0, 2.0).expect("a law"))),
        (Family::Lognormal, Distribution::Lognormal(Lognormal::new(1.0, 0.5).expect("a law"))),
        (Family::Weibull, Distribution::Weibull(Weibull::new(0.7, 20.0).expect("a law"))),
        (Family::Weibull, Distribution::Weibull(Weibull::new(9.0, 0.1).expect("a law"))),
        (Family::TruncatedNormal, Distribution::TruncatedNormal(TruncatedNormal::new(1.0, 2.0, 0.0, f64::INFINITY).expect("a law"))),
    ];
    for (family, law) in laws {
        let sample = drawn(&law, 500, 3);
        let fitted = maximum_likelihood(family, &sample).expect("a maximum");
        let greatest = log_likelihood(&fitted, &sample).expect("a density");
        for neighbour in neighbours(&fitted, 1e-4) {
            let other = log_likelihood(&neighbour, &sample).expect("a density");
            assert!(other < greatest, "{neighbour:?} at {other} beside {fitted:?} at {greatest}");
        }
    }
}

/// The law with one parameter a little less or more.
fn neighbours(law: &Distribution, step: f64) -> Vec<Distribution> {
    let near = |value: f64| [value - step * value.abs(), value + step * value.abs()];
    let pairs = |a: f64, b: f64| near(a).map(|a| (a, b)).into_iter().chain(near(b).map(|b| (a, b)));
    match law {
        Distribution::Exponential(law) => {
            near(law.rate()).map(|rate| Distribution::Exponential(Exponential::new(rate).expect("a law"))).to_vec()
        }
        Distribution::HypoExponential(law) => pairs(law.rates()[0], law.rates()[1])
            .map(|(a, b)| Distribution::HypoExponential(HypoExponential::new(&[a, b]).expect("a law")))
            .collect(),
        Distribution::Gamma(law) => {
            pairs(law.shape(), law.rate()).map(|(a, b)| Distribution::Gamma(Gamma::new(a, b).expect("a law"))).collect()
        }
        Distribution::Lognormal(law) => {
            pairs(law.mu(), law.sigma()).map(|(a, b)| Distribution::Lognormal(Lognormal::new(a, b).expect("a law"))).collect()
        }
        Distribution::Weibull(law) => {
            pairs(law.shape(), law.scale()).map(|(a, b)| Distribution::Weibull(Weibull::new(a, b).expect("a law"))).collect()
        }
        Distribution::TruncatedNormal(law) => {
            let of = |(a, b)| Distribution::TruncatedNormal(TruncatedNormal::new(a, b, 0.0, f64::INFINITY).expect("a law"));
            pairs(law.location(), law.spread()).map(of).collect()
        }
        other => panic!("{other:?} is not stepped"),
    }
}

#[test]
fn an_erlang_law_is_the_better_one_of_two_shapes() {
    let sample = listing();
    let Ok(Distribution::Erlang(law)) = maximum_likelihood(Family::Erlang, &sample) else { panic!("an Erlang law") };
    assert_eq!(law.shape(), 10);
    let one = Sample::new(vec![0.1, 1.0, 5.0, 0.01]).expect("times");
    let Ok(Distribution::Erlang(law)) = maximum_likelihood(Family::Erlang, &one) else { panic!("an Erlang law") };
    assert_eq!(law.shape(), 1, "a gamma shape below 1");
}

#[test]
fn two_erlang_branches_are_found_again() {
    let law = |shape, rate| Erlang::new(shape, rate).expect("a law");
    let mixed = Distribution::HyperErlang(Mixture::new(vec![(0.3, law(30, 15.0)), (0.7, law(12, 1.2))]).expect("a law"));
    let Ok(Distribution::HyperErlang(found)) = maximum_likelihood(Family::HyperErlang, &drawn(&mixed, 1_000, 5)) else {
        panic!("a mixture")
    };
    let [(first, short), (second, long)] = found.branches() else { panic!("{found:?}") };
    assert!((first - 0.3).abs() < 0.05 && (second - 0.7).abs() < 0.05, "{found:?}");
    assert!((25..=35).contains(&short.shape()) && (10..=14).contains(&long.shape()), "{found:?}");
}

#[test]
fn two_exponential_branches_are_found_again() {
    let law = |rate| Exponential::new(rate).expect("a law");
    let mixed = Distribution::HyperExponential(Mixture::new(vec![(0.8, law(10.0)), (0.2, law(0.5))]).expect("a law"));
    let Ok(Distribution::HyperExponential(found)) = maximum_likelihood(Family::HyperExponential, &drawn(&mixed, 5_000, 5)) else {
        panic!("a mixture")
    };
    let [(first, fast), (_, slow)] = found.branches() else { panic!("{found:?}") };
    assert!((first - 0.8).abs() < 0.03 && (fast.rate() / 10.0 - 1.0).abs() < 0.1 && (slow.rate() / 0.5 - 1.0).abs() < 0.1, "{found:?}");
}

#[test]
fn two_stages_are_found_again_and_take_as_long_as_the_sample() {
    let law = Distribution::HypoExponential(HypoExponential::new(&[0.5, 3.0]).expect("a law"));
    let sample = drawn(&law, 5_000, 5);
    let Ok(Distribution::HypoExponential(found)) = maximum_likelihood(Family::HypoExponential, &sample) else { panic!("two stages") };
    let [fast, slow] = *found.rates() else { panic!("{found:?}") };
    assert!((fast / 3.0 - 1.0).abs() < 0.1 && (slow / 0.5 - 1.0).abs() < 0.05, "{found:?}");
    assert!((1.0 / fast + 1.0 / slow - sample.mean()).abs() < 1e-12 * sample.mean(), "{found:?}");
    // By its closed form as by its stages.
    let by_density: f64 =
        sample.values().iter().map(|value| Distribution::HypoExponential(found.clone()).pdf(*value).expect("a density").ln()).sum();
    let closed = log_likelihood(&Distribution::HypoExponential(found), &sample).expect("a density");
    assert!((closed - by_density).abs() < 1e-9 * by_density.abs(), "{closed} beside {by_density}");
}

/// As the two stages whose likelihood has a root that is bisected.
#[test]
fn two_of_several_stages_are_those_of_the_bisection() {
    let law = Distribution::HypoExponential(HypoExponential::new(&[0.5, 3.0]).expect("a law"));
    let sample = drawn(&law, 300, 5);
    let rates = |family| match maximum_likelihood(family, &sample) {
        Ok(Distribution::HypoExponential(law)) => {
            let mut rates = law.rates().to_vec();
            rates.sort_by(f64::total_cmp);
            rates
        }
        other => panic!("{other:?}"),
    };
    let (exact, found) = (rates(Family::HypoExponential), rates(Family::HypoExponentialN));
    assert_eq!(found.len(), 2, "a third stage is not paid for: {found:?}");
    assert!(exact.iter().zip(&found).all(|(exact, found)| (found / exact - 1.0).abs() < 0.05), "{exact:?} and {found:?}");
}

#[test]
fn stages_and_phases_are_as_likely_as_the_law_that_was_drawn() {
    let three = HypoExponential::new(&[0.4, 2.0, 2.5]).expect("a law");
    let generator = [vec![-0.5, 0.5, 0.0], vec![0.0, -2.0, 2.0], vec![0.0, 0.0, -9.0]];
    let acyclic = PhaseType::new(&[0.2, 0.1, 0.7], &generator).expect("a law");
    for (family, law) in
        [(Family::HypoExponentialN, Distribution::HypoExponential(three)), (Family::PhaseType, Distribution::PhaseType(acyclic))]
    {
        let sample = drawn(&law, 300, 7);
        let found = maximum_likelihood(family, &sample).expect("a law");
        let [found_log, drawn_log] = [&found, &law].map(|law| log_likelihood(law, &sample).expect("a density"));
        // With fewer parameters it may be less likely by what Schwarz's criterion takes for each.
        let paid = 0.5 * 300_f64.ln() * likelihood::free_parameters(&law) as f64;
        assert!(found_log > drawn_log - paid, "{found_log} beside {drawn_log}: {found:?}");
        assert!((found.mean() / sample.mean() - 1.0).abs() < 1e-9, "{found:?}");
        let distance = kolmogorov_smirnov(&found, &sample);
        assert!(distance < 1.63 / 300_f64.sqrt(), "{distance}: {found:?}");
    }
}

#[test]
fn a_family_without_a_maximum_says_why() {
    let check = |family, values: &[f64], expected: &str| {
        let error = maximum_likelihood(family, &Sample::new(values.to_vec()).expect("times")).map_err(|error| error.to_string());
        assert_eq!(error, Err(format!("no law of this family is the likeliest: {expected}")));
    };
    check(Family::Gamma, &[2.0, 2.0, 2.0], "all values are the same");
    let without_end = "pieces may be as narrow around a value as one likes, which makes it likelier without end; hyper_erlang and phase_type laws are sums of the same terms";
    check(Family::Expolynomial, &[1.0, 2.0, 4.0], without_end);
    check(Family::HypoExponentialN, &[0.1, 0.1, 9.0], "the values vary as much as exponential ones: one stage is enough");
    check(Family::Lognormal, &[0.0, 2.0, 2.5], "a value is 0");
    check(Family::HyperExponential, &[1.0, 2.0, 2.5], "the values vary no more than exponential ones");
    check(
        Family::HypoExponential,
        &[1.0, 1.1, 0.9, 1.05],
        "the values vary less than those of two stages of different rates: an Erlang law is likelier",
    );
    check(Family::HypoExponential, &[0.01, 0.02, 0.1, 9.0], "the values vary as much as exponential ones: one stage is enough");
    check(Family::TruncatedNormal, &[0.01, 0.02, 0.03, 9.0], "the values vary as much as exponential ones");
    check(Family::Deterministic, &[0.01, 0.02, 0.03, 9.0], "the values differ");
}

/// The test refuses what is right as often as it says: 5 of 100 at a level of 0.05, here 1 to 12 (99 of 100 times).
#[test]
fn a_right_family_is_refused_no_more_often_than_the_level_says() {
    let law = Distribution::Weibull(Weibull::new(1.7, 3.0).expect("a law"));
    let options = |seed| Options { resamples: 39, seed, ..Options::default() };
    let p_values = (0..100).map(|seed| {
        let report = fit(&drawn(&law, 60, 1_000 + seed), &[Family::Weibull], &options(seed));
        report.fits[0].test.as_ref().expect("a test").anderson_darling.p_value
    });
    let refused = p_values.filter(|p_value| *p_value <= 0.05).count();
    assert!((1..=12).contains(&refused), "{refused} of 100");
}

#[test]
fn too_few_resamples_are_no_test() {
    let report = |resamples| fit(&listing(), &[Family::Gamma], &Options { resamples, ..Options::default() });
    assert_eq!(report(99).any_fits, None);
    assert_eq!(report(100).any_fits, Some(false));
}

#[test]
fn the_threads_do_not_change_the_answer() {
    let options = |threads| Options { resamples: 50, threads, ..Options::default() };
    let one = fit(&listing(), &[Family::Gamma, Family::Weibull], &options(1));
    let three = fit(&listing(), &[Family::Gamma, Family::Weibull], &options(3));
    assert_eq!(format!("{:?}", one.fits), format!("{:?}", three.fits));
}

#[test]
fn the_best_family_comes_first() {
    let sample = drawn(&Distribution::Lognormal(Lognormal::new(1.0, 0.8).expect("a law")), 1_000, 9);
    let families = [Family::Exponential, Family::Gamma, Family::Weibull, Family::Uniform, Family::Lognormal, Family::Empirical];
    let report = fit(&sample, &families, &Options { resamples: 199, ..Options::default() });
    assert_eq!(report.fits[0].family, Family::Lognormal);
    assert_eq!(report.fits[0].fits(0.01), Some(true), "{:?}", report.fits[0].test);
    assert_eq!(report.fits.last().expect("fits").family, Family::Empirical, "which has no density");
}

#[test]
fn moments_are_matched() {
    for squared_variation in [0.0, 0.1, 0.5, 1.0, 1.7, 40.0] {
        let law = match_moments(3.0, squared_variation).expect("a law");
        let found = law.variance() / (law.mean() * law.mean());
        assert!((law.mean() - 3.0).abs() < 1e-12 && (found - squared_variation).abs() < 1e-10, "{law:?}");
    }
}

/// A uniform sample in its own law: the statistics by hand.
#[test]
fn the_statistics_are_those_of_their_definitions() {
    let law = Distribution::Uniform(Uniform::new(0.0, 1.0).expect("a law"));
    let sample = Sample::new(vec![0.1, 0.4, 0.9]).expect("times");
    assert!((kolmogorov_smirnov(&law, &sample) - (2.0 / 3.0 - 0.4)).abs() < 1e-15);
    let by_hand = -3.0 - ((0.1_f64.ln() + 0.1_f64.ln()) + 3.0 * (0.4_f64.ln() + 0.6_f64.ln()) + 5.0 * (0.9_f64.ln() + 0.9_f64.ln())) / 3.0;
    assert!((anderson_darling(&law, &sample) - by_hand).abs() < 1e-13);
    assert_eq!(quantile_pairs(&law, &sample, 10), [(0.5 / 3.0, 0.1), (0.5, 0.4), (2.5 / 3.0, 0.9)]);
}
