//! Races of fixed, measured and continuous delays with each other and with exponential ones: closed forms at times on and off the grid.

mod nets;

use bodkin_petri::{
    distribution::{Deterministic, Distribution, Empirical, Uniform},
    measure::Measure,
    net::{Firing, Net, Servers, Transition},
    solve::{Answer, Certainty, Method, Question, SolveError, When, passage::passage, solve},
};
use nets::{exponential, net, timed};

fn fixed(value: f64) -> Distribution {
    Distribution::Deterministic(Deterministic::new(value).expect("it is right"))
}

fn uniform(max: f64) -> Distribution {
    Distribution::Uniform(Uniform::new(0.0, max).expect("it is right"))
}

fn single(name: &str, law: Distribution, inputs: &[usize], outputs: &[usize]) -> Transition {
    timed(name, law, Servers::SINGLE, inputs, outputs)
}

fn immediate(name: &str, inputs: &[usize], outputs: &[usize]) -> Transition {
    let mut transition = exponential(name, 1.0, inputs, outputs);
    transition.firing = Firing::Immediate { priority: 1, weight: 1.0 };
    transition
}

fn with_priority(mut transition: Transition, value: u32, share: f64) -> Transition {
    let Firing::Timed(timed) = &mut transition.firing else { panic!("it is timed") };
    (timed.priority, timed.weight) = (value, share);
    transition
}

fn at(net: &Net, times: &[f64], error: f64) -> Answer {
    let question = Question { error, method: Some(Method::Lattice), ..Question::new(net, When::At(times.to_vec())) };
    solve(&question).unwrap_or_else(|error| panic!("{}: {error}", net.name()))
}

/// Every value of a place is within its stated error of what is exact, and the stated error is within the one that was asked for.
#[track_caller]
fn assert_exact(net: &Net, place: usize, times: &[f64], error: f64, exact: impl Fn(f64) -> f64) -> Answer {
    let answer = at(net, times, error);
    assert!(answer.errors[place] <= error, "{}: {:e}", net.name(), answer.errors[place]);
    for (time, values) in times.iter().zip(&answer.values) {
        let (found, exact) = (values[place], exact(*time));
        let off = (found - exact).abs();
        // Closed forms have a rounding error of their own.
        let stated = answer.errors[place] + 1e-12;
        assert!(off <= stated, "{} at {time}: {found} is {off:e} from {exact}, stated {stated:e}", net.name());
    }
    answer
}

const RACE: [(&str, u32); 3] = [("start", 1), ("early", 0), ("late", 0)];

#[test]
fn fixed_delay_from_time_0_races_an_exponential_exactly() {
    for (rate, delay) in [(1e-5, 2.0), (0.3, 2.0), (4.0, 0.7)] {
        let race = net("race", &RACE, vec![exponential("a", rate, &[0], &[1]), single("b", fixed(delay), &[0], &[2])]);
        let times = [0.0, 0.123, delay, delay + 1.0, 17.3];
        let answer = assert_exact(&race, 1, &times, 1e-6, |time| 1.0 - (-rate * time.min(delay)).exp());
        assert_eq!(answer.certainty, Certainty::Bound);
        assert_exact(&race, 2, &times, 1e-6, |time| if time < delay { 0.0 } else { (-rate * delay).exp() });
    }
}

#[test]
fn fixed_delay_behind_an_immediate_transition_races_exactly() {
    let transitions = vec![immediate("go", &[3], &[0]), exponential("a", 1e-5, &[0], &[1]), single("b", fixed(2.0), &[0], &[2])];
    let race = net("behind", &[("start", 0), ("early", 0), ("late", 0), ("before", 1)], transitions);
    assert_exact(&race, 1, &[3.0], 1e-6, |_| 1.0 - (-2e-5_f64).exp());
}

#[test]
fn measured_delays_race_an_exponential_exactly() {
    let law = || Distribution::Empirical(Empirical::new(vec![1.0, 2.0, 2.0, 3.5]).expect("it is right"));
    for rate in [1e-5, 0.4] {
        let race = net("measured", &RACE, vec![exponential("a", rate, &[0], &[1]), single("b", law(), &[0], &[2])]);
        let lost = |time: f64| [1.0, 2.0, 2.0, 3.5].map(|value| 1.0 - (-rate * time.min(value)).exp()).iter().sum::<f64>() / 4.0;
        assert_exact(&race, 1, &[0.5, 1.0, 1.77, 2.0, 3.4999, 10.0], 1e-8, lost);
    }
}

#[test]
fn equal_fixed_delays_fire_by_priority_and_weight() {
    let race = |first: (u32, f64), second: (u32, f64)| {
        let a = with_priority(single("a", fixed(2.0), &[0], &[1]), first.0, first.1);
        let b = with_priority(single("b", fixed(2.0), &[0], &[2]), second.0, second.1);
        net("equal", &RACE, vec![a, b, exponential("leave", 0.1, &[0], &[])])
    };
    let alive = (-0.2_f64).exp();
    assert_exact(&race((0, 1.0), (0, 3.0)), 1, &[1.99, 2.0, 5.0], 1e-8, |time| if time < 2.0 { 0.0 } else { 0.25 * alive });
    assert_exact(&race((1, 1.0), (0, 3.0)), 1, &[2.0], 1e-8, |_| alive);
    assert_exact(&race((0, 1.0), (1, 3.0)), 1, &[2.0], 1e-8, |_| 0.0);
}

/// A fixed delay of 1, and then a uniform one against an exponential one.
#[test]
fn race_that_begins_when_a_fixed_delay_ends_is_exact() {
    let places = [("start", 0), ("early", 0), ("late", 0), ("before", 1)];
    let transitions =
        vec![single("wait", fixed(1.0), &[3], &[0]), exponential("a", 0.8, &[0], &[1]), single("b", uniform(1.5), &[0], &[2])];
    let won = |time: f64| {
        // The integral of 0.8 e^(-0.8 x) (1 - x / 1.5) from 0 to the end.
        let end = (time - 1.0).clamp(0.0, 1.5);
        let (rate, gone) = (0.8, (-0.8 * end).exp());
        (1.0 - gone) - ((1.0 - gone) / rate - end * gone) / 1.5
    };
    assert_exact(&net("later", &places, transitions), 1, &[0.3, 1.0, 1.25, 1.6, 2.2, 2.5, 4.0], 1e-8, won);
}

/// Of two delays with a density none has priority: they never end in one instant.
#[test]
fn priorities_do_not_decide_a_race_of_densities() {
    let a = with_priority(single("a", uniform(1.0), &[0], &[1]), 7, 1.0);
    let b = with_priority(single("b", uniform(1.0), &[0], &[2]), 0, 9.0);
    let race = net("densities", &RACE, vec![a, b]);
    assert_exact(&race, 1, &[0.25, 0.5, 1.0, 2.0], 1e-7, |time: f64| time.min(1.0) - time.min(1.0).powi(2) / 2.0);
}

/// A fixed delay that begins when an exponential one ends, against another exponential one.
#[test]
fn fixed_delay_that_begins_at_a_random_time_races_exactly() {
    let places = [("ready", 1), ("runs", 0), ("done", 0), ("lost", 0)];
    let (begin, lose): (f64, f64) = (0.9, 0.4);
    let transitions =
        vec![exponential("begin", begin, &[0], &[1]), single("end", fixed(1.0), &[1], &[2]), exponential("lose", lose, &[1], &[3])];
    let race = net("random start", &places, transitions);
    let done = |time: f64| if time < 1.0 { 0.0 } else { (1.0 - (-begin * (time - 1.0)).exp()) * (-lose).exp() };
    assert_exact(&race, 2, &[0.25, 0.5, 1.0, 1.25, 2.0, 5.0], 1e-7, done);
    assert_exact(&race, 2, &[0.313, 0.99, 0.999, 1.0, 1.001, 1.777, 3.171], 1e-7, done);
}

/// Idle with probability `sum of e^(-rate (t - n)) (rate (t - n))^n / n!` over the services `n` that fit into the time.
#[test]
fn queue_of_one_with_fixed_service_has_its_closed_form() {
    let rate: f64 = 0.7;
    let queue =
        net("M/D/1/1", &[("room", 1), ("busy", 0)], vec![exponential("arrive", rate, &[0], &[1]), single("serve", fixed(1.0), &[1], &[0])]);
    let idle = |time: f64| {
        let mut factorial = 1.0;
        let term = |n: u32| {
            factorial *= f64::from(n.max(1));
            let left = rate * (time - f64::from(n)).max(0.0);
            (-left).exp() * left.powi(n as i32) / factorial
        };
        (0..=(time + 1e-12) as u32).map(term).sum::<f64>()
    };
    let times: Vec<f64> = (0..=50).map(|index| f64::from(index) * 0.1).collect();
    assert_exact(&queue, 0, &times, 1e-6, idle);
    assert_exact(&queue, 0, &[0.2345, 0.9999, 1.0001, 1.234, 2.5001, 3.99, 4.717], 1e-6, idle);
}

/// Whatever is in service at a time has left one service later, and nothing that begins after it (Crommelin, Post Office Electrical
/// Engineers' Journal 25, 1932): lengths follow from those one service before and the arrivals meanwhile.
#[test]
fn queue_with_fixed_service_follows_crommelin_at_any_time() {
    const ROOM: usize = 30;
    let rate: f64 = 0.7;
    let queue = net(
        "M/D/1/30",
        &[("room", ROOM as u32), ("waiting", 0)],
        vec![exponential("arrive", rate, &[0], &[1]), single("serve", fixed(1.0), &[1], &[0])],
    );
    let poisson = |mean: f64| -> Vec<f64> {
        let mut weight = (-mean).exp();
        (0..=ROOM)
            .map(|number| {
                let own = weight;
                weight *= mean / (number + 1) as f64;
                own
            })
            .collect()
    };
    let length = |time: f64| {
        let services = (time + 1e-12).floor();
        let mut lengths = poisson(rate * (time - services).max(0.0));
        for _ in 0..services as usize {
            let arrivals = poisson(rate);
            let mut next = vec![0.0; ROOM + 1];
            for (before, share) in lengths.iter().enumerate() {
                (0..=ROOM - before).for_each(|more| next[before.saturating_sub(1) + more] += share * arrivals[more]);
            }
            lengths = next;
        }
        lengths.iter().enumerate().map(|(length, share)| length as f64 * share).sum::<f64>()
    };
    let times: Vec<f64> = (0..=50).map(|index| f64::from(index) * 0.1).collect();
    assert_exact(&queue, 1, &times, 1e-6, length);
    assert_exact(&queue, 1, &[0.33, 0.9973, 1.0049, 2.7283, 3.1916], 1e-6, length);
}

/// Arrivals at fixed times: the exponential servers between them are a death process.
#[test]
fn queue_with_fixed_arrivals_is_exact_at_any_time() {
    let (rate, interval): (f64, f64) = (1.3, 0.5);
    let servers = timed(
        "serve",
        Distribution::Exponential(bodkin_petri::distribution::Exponential::new(rate).expect("it is right")),
        Servers::Infinite,
        &[0],
        &[],
    );
    let queue = net("D/M/inf", &[("busy", 0)], vec![single("arrive", fixed(interval), &[], &[0]), servers]);
    let busy = |time: f64| (1..=(time / interval + 1e-9) as u32).map(|n| (-rate * (time - interval * f64::from(n))).exp()).sum::<f64>();
    let answer = assert_exact(&queue, 0, &[0.1, 0.4999, 0.5, 0.777, 2.0, 4.123], 1e-8, busy);
    assert_eq!(answer.certainty, Certainty::Bound);
}

#[test]
fn fork_join_of_fixed_delays_is_certain_at_any_time() {
    let transitions = vec![
        immediate("fork", &[0], &[1, 2, 3]),
        single("a", fixed(1.3), &[1], &[4]),
        single("b", fixed(0.7), &[2], &[5]),
        single("c", fixed(2.11), &[3], &[6]),
        immediate("join", &[4, 5, 6], &[7]),
    ];
    let places = [("start", 1), ("a", 0), ("b", 0), ("c", 0), ("a done", 0), ("b done", 0), ("c done", 0), ("all", 0)];
    let fork = net("fork-join", &places, transitions);
    let times = [0.1, 0.69999, 0.7, 1.2345, 1.3, 2.1, 2.1099, 2.11, 2.1101, 9.87];
    let done = |limit: f64| move |time: f64| if time < limit { 0.0 } else { 1.0 };
    for (place, limit) in [(4, 1.3), (5, 0.7)] {
        assert_exact(&fork, place, &times, 1e-9, move |time| done(limit)(time) - done(2.11)(time));
    }
    let answer = assert_exact(&fork, 7, &times, 1e-9, done(2.11));
    assert!(answer.values.iter().flatten().all(|value| *value == 0.0 || *value == 1.0), "{:?}", answer.values);
}

#[test]
fn fork_join_of_a_fixed_and_a_uniform_delay_is_right_at_any_time() {
    let transitions = vec![
        immediate("fork", &[0], &[1, 2]),
        single("a", fixed(0.6), &[1], &[3]),
        single("b", uniform(1.0), &[2], &[4]),
        immediate("join", &[3, 4], &[5]),
    ];
    let places = [("start", 1), ("a", 0), ("b", 0), ("a done", 0), ("b done", 0), ("both", 0)];
    let fork = net("mixed fork-join", &places, transitions);
    let both = |time: f64| if time < 0.6 { 0.0 } else { time.min(1.0) };
    assert_exact(&fork, 5, &[0.1234, 0.5999, 0.6, 0.6001, 0.7654, 0.999, 1.5], 1e-7, both);
}

#[test]
fn delays_without_common_divisor_are_refused_by_name() {
    let transitions = vec![single("a", fixed(1.0), &[0], &[1]), single("b", fixed(std::f64::consts::SQRT_2), &[0], &[2])];
    let race = net("incommensurate", &RACE, transitions);
    let question = Question { method: Some(Method::Lattice), ..Question::new(&race, When::At(vec![1.2])) };
    let error = solve(&question).expect_err("they have no common divisor");
    assert!(matches!(error, SolveError::Question(_)) && error.to_string().contains("round them"), "{error}");
}

/// Mean times until the last place of a net is marked, by method regenerative: no distribution function is integrated.
#[test]
fn mean_until_absorption_has_its_closed_form() {
    let mean = |net: &Net, place: usize| {
        let text = format!("\"{}\" > 0", net.places()[place].name);
        let Ok(Measure::Reward(until)) = Measure::parse(&text, net) else { panic!("{text} is a condition") };
        let question = Question { until: Some(until), ..Question::new(net, When::Steady) };
        passage(&question, &[], true).unwrap_or_else(|error| panic!("{}: {error}", net.name())).mean.expect("it was asked for")
    };
    let (rate, delay): (f64, f64) = (0.7, 2.0);
    let sum = net("sum", &RACE, vec![single("a", fixed(delay), &[0], &[1]), exponential("b", rate, &[1], &[2])]);
    let first = net("first", &RACE, vec![exponential("a", rate, &[0], &[2]), single("b", fixed(delay), &[0], &[2])]);
    // Whenever the delay is over, all begins again.
    let again =
        net("again", &RACE, vec![exponential("a", rate, &[0], &[2]), single("b", fixed(delay), &[0], &[1]), immediate("c", &[1], &[0])]);
    // Two general clocks at once: the integral is cut where the function jumps.
    let fork = vec![
        immediate("fork", &[3], &[0, 1]),
        single("a", fixed(0.7), &[0], &[4]),
        single("b", fixed(2.11), &[1], &[5]),
        immediate("join", &[4, 5], &[2]),
    ];
    let places = [("a", 0), ("b", 0), ("both", 0), ("start", 1), ("a done", 0), ("b done", 0)];
    let (found, error) = mean(&net("fork-join", &places, fork), 2);
    assert!((found - 2.11).abs() <= error && error < 1e-6, "{found} +- {error:e}");
    for (net, exact) in [(sum, delay + 1.0 / rate), (first, (1.0 - (-rate * delay).exp()) / rate), (again, 1.0 / rate)] {
        let (found, error) = mean(&net, 2);
        assert!((found - exact).abs() <= error + 1e-12 && error < 1e-8, "{}: {found} +- {error:e}, exact {exact}", net.name());
    }
}
