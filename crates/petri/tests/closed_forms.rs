//! Nets whose answers are known in closed form.

mod nets;

use bodkin_petri::{
    distribution::{Deterministic, Distribution, Erlang, Exponential, Gamma, Lognormal, Uniform},
    format::json,
    measure::{Impulse, Measure},
    net::{Firing, Net, Servers, Transition},
    solve::{
        Answer, Certainty, Method, Question, SolveError, When,
        passage::{Quantile, passage},
        solve,
    },
};
use nets::{exponential, kanban, net, timed};

fn at(net: &Net, times: &[f64]) -> Answer {
    solve(&Question::new(net, When::At(times.to_vec()))).unwrap_or_else(|error| panic!("{}: {error}", net.name()))
}

fn steady(net: &Net, measures: &[&str]) -> Answer {
    steady_to(1e-7, net, measures)
}

fn steady_to(error: f64, net: &Net, measures: &[&str]) -> Answer {
    let measures = measures.iter().map(|text| Measure::parse(text, net).expect(text)).collect();
    solve(&Question { measures, error, ..Question::new(net, When::Steady) }).unwrap_or_else(|error| panic!("{}: {error}", net.name()))
}

#[track_caller]
fn assert_near(found: f64, expected: f64, error: f64, what: &str) {
    assert!((found - expected).abs() <= error, "{what}: {found} is {:e} from {expected}, allowed {error:e}", (found - expected).abs());
}

/// A queue with room for `room`, the one in service included, and `servers` servers.
fn queue(arrival: f64, service: f64, servers: u32, room: u32) -> Net {
    let law = Distribution::Exponential(Exponential::new(service).expect("it is right"));
    let servers = Servers::Count(servers.try_into().expect("not 0"));
    let transitions = vec![exponential("arrive", arrival, &[0], &[1]), timed("serve", law, servers, &[1], &[0])];
    net("queue", &[("room", room), ("waiting", 0)], transitions)
}

/// Probabilities of 0, 1 ... customers in an M/M/c/K queue.
fn queue_lengths(arrival: f64, service: f64, servers: u32, room: u32) -> Vec<f64> {
    let mut weights = vec![1.0];
    for customers in 1..=room {
        weights.push(weights[customers as usize - 1] * arrival / (service * f64::from(customers.min(servers))));
    }
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

#[test]
fn queues_have_their_closed_form_in_the_long_run() {
    for servers in [1, 2, 5] {
        for room in [1, 4, 20, 150] {
            for arrival in [0.3, 1.0, 4.0] {
                let net = queue(arrival, 1.0, servers, room);
                let lengths = queue_lengths(arrival, 1.0, servers, room);
                let mean: f64 = lengths.iter().enumerate().map(|(customers, share)| customers as f64 * share).sum();
                let answer = steady(&net, &["room == 0", "throughput(serve)"]);
                let what = format!("M/M/{servers}/{room} at {arrival}");
                let [_, waiting, full, served] = answer.values[0][..] else { panic!("{what} has four values") };
                let blocked = lengths[room as usize];
                assert_near(waiting, mean, answer.errors[1] + 1e-11, &what);
                assert_near(full, blocked, answer.errors[2] + 1e-13, &what);
                assert_near(served, arrival * (1.0 - blocked), answer.errors[3] + 1e-12, &what);
            }
        }
    }
}

#[test]
fn a_queue_of_one_has_its_closed_form_at_any_time() {
    let (arrival, service) = (0.7, 1.3);
    let net = queue(arrival, service, 1, 1);
    let times = [0.0, 0.01, 0.5, 2.0, 10.0, 1e3];
    let answer = at(&net, &times);
    for (time, values) in times.iter().zip(&answer.values) {
        let sum = arrival + service;
        let expected = arrival / sum * (1.0 - (-sum * time).exp());
        assert_near(values[1], expected, answer.errors[1] + 1e-15, &format!("at {time}"));
    }
}

/// Lengths of an M/M/1/K queue at any time (Takacs, Introduction to the Theory of Queues, 1962, section 1.2): its long run, and a sum over the
/// chain's `K` other eigenvalues.
#[test]
fn queues_have_their_closed_form_at_any_time() {
    let (service, room, first) = (1.3, 6_u32, 2_u32);
    for arrival in [0.2, 0.7, 2.9] {
        let load: f64 = arrival / service;
        let ends = [exponential("arrive", arrival, &[0], &[1]), exponential("serve", service, &[1], &[0])];
        let net = net("queue", &[("room", room - first), ("waiting", first)], ends.into());
        let measures: Vec<Measure> =
            (0..=room).map(|length| Measure::parse(&format!("waiting == {length}"), &net).expect("a condition")).collect();
        let times = [0.0, 0.05, 0.6, 3.0, 20.0, 4_000.0, 1e11];
        let answer = solve(&Question { measures, ..Question::new(&net, When::At(times.to_vec())) }).expect("an answer");
        let long_run = queue_lengths(arrival, service, 1, room);
        for (time, values) in times.iter().zip(&answer.values) {
            for length in 0..=room {
                let mut sum = 0.0;
                for number in 1..=room {
                    let angle = f64::from(number) * std::f64::consts::PI / f64::from(room + 1);
                    let wave = |length: u32| (f64::from(length) * angle).sin() - load.sqrt() * (f64::from(length + 1) * angle).sin();
                    let decay = arrival + service - 2.0 * (arrival * service).sqrt() * angle.cos();
                    sum += wave(first) * wave(length) / (1.0 - 2.0 * load.sqrt() * angle.cos() + load) * (-decay * time).exp();
                }
                let shape = 2.0 / f64::from(room + 1) * load.powf(0.5 * (f64::from(length) - f64::from(first)));
                let expected = long_run[length as usize] + shape * sum;
                let column = 2 + length as usize;
                assert_near(values[column], expected, answer.errors[column] + 1e-13, &format!("{length} at {time}, arrivals {arrival}"));
            }
        }
    }
}

#[test]
fn a_race_is_won_in_proportion_to_the_rates() {
    let transitions = vec![exponential("a", 2.0, &[0], &[1]), exponential("b", 3.0, &[0], &[2])];
    let net = net("race", &[("start", 1), ("A", 0), ("B", 0)], transitions);
    let answer = steady(&net, &[]);
    assert_near(answer.values[0][1], 0.4, answer.errors[1], "A in the long run");
    let answer = at(&net, &[0.3]);
    assert_near(answer.values[0][2], 0.6 * (1.0 - (-1.5_f64).exp()), answer.errors[2], "B at 0.3");
}

#[test]
fn pure_death_with_a_clock_a_token_is_binomial() {
    let law = Distribution::Exponential(Exponential::new(0.4).expect("it is right"));
    let net = net("death", &[("alive", 30), ("dead", 0)], vec![timed("die", law, Servers::Infinite, &[0], &[1])]);
    let answer = at(&net, &[1.0, 5.0]);
    assert_near(answer.values[0][0], 30.0 * (-0.4_f64).exp(), answer.errors[0], "at 1");
    assert_near(answer.values[1][0], 30.0 * (-2.0_f64).exp(), answer.errors[0], "at 5");
}

#[test]
fn erlang_stages_of_tokens_at_once_stay_independent() {
    let law = Erlang::new(3, 2.0).expect("it is right");
    let expected = Distribution::Erlang(law.clone()).survival(1.2);
    let net = net("erlang", &[("A", 4), ("B", 0)], vec![timed("t", Distribution::Erlang(law), Servers::Infinite, &[0], &[1])]);
    let answer = at(&net, &[1.2]);
    // Four clocks that are alike, each in one of three stages or done.
    assert_eq!((answer.method, answer.states), (Method::Markov, 35));
    assert_near(answer.values[0][0], 4.0 * expected, answer.errors[0], "tokens left");
}

/// A net from transitions in JSON, over places A, B and C; A holds one token.
fn written(transitions: &str) -> Net {
    let text = format!(
        r#"{{"schema": "stpn-neutral-1", "name": "n", "time_unit": "s", "places": [{{"id": "A", "initial": 1}},
            {{"id": "B", "initial": 0}}, {{"id": "C", "initial": 0}}], "transitions": [{transitions}]}}"#
    );
    json::read(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn immediate(name: &str, from: &str, to: &str, weight: f64) -> String {
    format!(
        r#"{{"id": "{name}", "kind": "immediate", "weight": {weight}, "inputs": [{{"place": "{from}"}}], "outputs": [{{"place": "{to}"}}]}}"#
    )
}

#[test]
fn a_loop_without_time_is_left_with_the_probability_that_it_has() {
    // A to B and back by chance 3 of 4, to C by 1 of 4; then a timed transition from C that does nothing.
    let loops = [immediate("ab", "A", "B", 3.0), immediate("ac", "A", "C", 1.0), immediate("ba", "B", "A", 1.0)].join(",");
    let end = r#"{"id": "t", "kind": "timed", "rate": "2", "inputs": [{"place": "C"}], "outputs": [{"place": "B"}]}"#;
    let net = written(&format!("{loops}, {end}"));
    let answer = at(&net, &[0.0, 1.0]);
    assert_eq!(answer.states, 1, "only C takes time");
    assert_near(answer.values[1][2], 1.0, answer.errors[2], "always in C");
}

#[test]
fn a_loop_without_time_and_without_an_end_is_refused() {
    let net = written(&[immediate("ab", "A", "B", 1.0), immediate("ba", "B", "A", 1.0)].join(","));
    let error = solve(&Question::new(&net, When::Steady)).expect_err("time stands still");
    assert!(error.to_string().contains("fire for ever"), "{error}");
}

#[test]
fn a_net_that_grows_for_ever_is_refused_by_the_place_that_does() {
    let net = net("source", &[("A", 0)], vec![exponential("come", 1.0, &[], &[0])]);
    let error = solve(&Question { states_max: 5_000, ..Question::new(&net, When::At(vec![1.0])) }).expect_err("it has no end");
    assert!(error.to_string().contains("more than 5000 states, place A holding 5000 tokens"), "{error}");
}

#[test]
fn first_passage_into_a_condition_is_its_probability() {
    let net = queue(1.0, 1.0, 1, 3);
    let until = Measure::parse("waiting == 2", &net).expect("it is right");
    let Measure::Reward(condition) = until.clone() else { panic!("it is a reward") };
    let question = Question { measures: vec![until], until: Some(condition), ..Question::new(&net, When::At(vec![1.0, 400.0])) };
    let answer = solve(&question).expect("it can be solved");
    // From 0 to 2 by a chain whose generator [[-1, 1], [1, -2]] has the eigenvalues (-3 +- sqrt 5) / 2.
    let (fast, slow) = ((-3.0 - 5.0_f64.sqrt()) / 2.0, (-3.0 + 5.0_f64.sqrt()) / 2.0);
    let not_yet = (slow * fast.exp() - fast * slow.exp()) / (slow - fast);
    assert_near(answer.values[0][2], 1.0 - not_yet, answer.errors[2], "P(T <= 1)");
    assert_near(answer.values[1][2], 1.0, answer.errors[2], "it comes at last");
}

#[test]
fn kanban_systems_have_as_many_states_as_the_literature_counts() {
    for (tickets, states) in [(1, 160), (2, 4_600)] {
        let net = kanban(tickets);
        let answer = at(&net, &[10.0]);
        assert_eq!(answer.states, states);
        for cell in 0..4 {
            let tokens: f64 = answer.values[0][4 * cell..4 * cell + 4].iter().sum();
            assert_near(tokens, f64::from(tickets), 4.0 * answer.error(), "tokens of a cell");
        }
    }
}

/// Rounding grows with the logarithm of the number of states: 58,400 of them, added up one behind the other, would be too far off for this.
#[test]
fn many_states_leave_an_expectation_its_digits() {
    let net = kanban(3);
    let answer = solve(&Question { error: 1e-11, ..Question::new(&net, When::At(vec![1.0])) }).expect("the states are not too many");
    assert_eq!(answer.states, 58_400);
    assert!(answer.error() <= 1e-11, "{:e}", answer.error());
}

/// The gambler's ruin: 1 in 3.4e13 comes to 29 before 0. An error that does not shrink with the value would be of no use.
#[test]
fn a_rare_end_is_known_to_a_part_of_its_probability() {
    let net = written(
        r#"{"id": "win", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "guard": "A > 0 and A < 29", "outputs": [{"place": "A"}]},
           {"id": "lose", "kind": "timed", "distribution": {"type": "exponential", "rate": 3}, "guard": "A < 29", "inputs": [{"place": "A"}]}"#,
    );
    let exact = 2.0 / (3_f64.powi(29) - 1.0);
    let answer = steady_to(1e-9 * exact, &net, &["A == 29"]);
    let (found, error) = (answer.values[0].last().expect("the measure"), answer.errors.last().expect("its error"));
    assert!((found - exact).abs() <= *error && *error < 1e-9 * exact, "{found:e} off {error:e} for {exact:e}");
}

#[test]
fn long_runs_of_large_chains_are_certified_by_iteration() {
    let net = kanban(2);
    let (long, late) = (steady(&net, &[]), at(&net, &[2_000.0]));
    for place in 0..net.places().len() {
        assert_near(long.values[0][place], late.values[0][place], long.error() + late.error() + 1e-8, &net.places()[place].name);
    }
}

/// A queue with so much room that it is never full, for what counts: exponential arrivals and this service, or the other way round.
fn single_server(arrival: Distribution, service: Distribution) -> Net {
    let transitions = vec![timed("arrive", arrival, Servers::SINGLE, &[0], &[1]), timed("serve", service, Servers::SINGLE, &[1], &[0])];
    net("queue", &[("room", 60), ("waiting", 0)], transitions)
}

fn exponential_law(rate: f64) -> Distribution {
    Distribution::Exponential(Exponential::new(rate).expect("it is right"))
}

#[test]
fn queues_of_general_service_have_the_length_of_pollaczek_and_khinchine() {
    let law = |law: Result<Distribution, bodkin_petri::distribution::DistributionError>| law.expect("it is right");
    for service in [
        law(Deterministic::new(1.0).map(Distribution::Deterministic)),
        law(Uniform::new(0.0, 2.0).map(Distribution::Uniform)),
        law(Uniform::new(0.9, 1.1).map(Distribution::Uniform)),
        law(Gamma::new(1.7, 1.7).map(Distribution::Gamma)),
        law(Lognormal::new(-0.125, 0.5).map(Distribution::Lognormal)),
    ] {
        for arrival in [0.1, 0.5, 0.65] {
            let load = arrival * service.mean();
            let net = single_server(exponential_law(arrival), service.clone());
            let answer = steady_to(1e-6, &net, &["waiting == 0", "throughput(serve)"]);
            let what = format!("{service:?} at {arrival}");
            assert_eq!(answer.method, Method::Regenerative, "{what}");
            assert_eq!(answer.certainty == Certainty::Bound, !matches!(service, Distribution::Lognormal(_)), "{what}");
            let squared = service.variance() / service.mean().powi(2);
            let length = load + load * load * (1.0 + squared) / (2.0 * (1.0 - load));
            assert_near(answer.values[0][1], length, answer.errors[1] + 1e-10, &what);
            assert_near(answer.values[0][2], 1.0 - load, answer.errors[2] + 1e-10, &what);
            assert_near(answer.values[0][3], arrival, answer.errors[3] + 1e-10, &what);
        }
    }
}

#[test]
fn queues_of_fixed_arrivals_have_a_geometric_length() {
    for interval in [1.25, 2.0, 8.0] {
        let arrival = Distribution::Deterministic(Deterministic::new(interval).expect("it is right"));
        let net = single_server(arrival, exponential_law(1.0));
        let answer = steady(&net, &["waiting == 0", "waiting == 3", "throughput(arrive)"]);
        // The root of x = exp(-(1 - x) interval) below 1, by iteration.
        let root = (0..2_000).fold(0.5_f64, |root, _| (-(1.0 - root) * interval).exp());
        let load = 1.0 / interval;
        let what = format!("D/M/1 every {interval}");
        assert_near(answer.values[0][1], load / (1.0 - root), answer.errors[1] + 1e-10, &what);
        assert_near(answer.values[0][2], 1.0 - load, answer.errors[2] + 1e-10, &what);
        assert_near(answer.values[0][3], load * (1.0 - root) * root * root, answer.errors[3] + 1e-10, &what);
        assert_near(answer.values[0][4], load, answer.errors[4] + 1e-10, &what);
    }
}

#[test]
fn a_timeout_that_is_stopped_in_time_starts_anew() {
    // Work of rate 2 against a timeout of 0.8; repair of rate 3 behind either.
    let timeout = Distribution::Deterministic(Deterministic::new(0.8).expect("it is right"));
    let transitions = vec![
        exponential("work", 2.0, &[0], &[1]),
        timed("timeout", timeout, Servers::SINGLE, &[0], &[2]),
        exponential("done", 3.0, &[1], &[0]),
        exponential("repair", 0.5, &[2], &[0]),
    ];
    let net = net("timeout", &[("working", 1), ("done", 0), ("late", 0)], transitions);
    let answer = steady(&net, &["throughput(timeout)", "throughput(work)"]);
    let late = (-1.6_f64).exp();
    let parts = [(1.0 - late) / 2.0, (1.0 - late) / 3.0, late / 0.5];
    let cycle: f64 = parts.iter().sum();
    for (place, part) in parts.iter().enumerate() {
        assert_near(answer.values[0][place], part / cycle, answer.errors[place] + 1e-14, &net.places()[place].name);
    }
    assert_near(answer.values[0][3], late / cycle, answer.errors[3] + 1e-14, "timeouts");
    assert_near(answer.values[0][4], (1.0 - late) / cycle, answer.errors[4] + 1e-14, "work in time");
    assert_eq!(answer.certainty, Certainty::Bound);
}

#[test]
fn two_general_clocks_at_once_have_no_long_run_here() {
    let law = |max| Distribution::Uniform(Uniform::new(0.0, max).expect("it is right"));
    let transitions = vec![timed("a", law(1.0), Servers::SINGLE, &[0], &[0]), timed("b", law(2.0), Servers::SINGLE, &[1], &[1])];
    let net = net("two", &[("A", 1), ("B", 1)], transitions);
    let error = solve(&Question::new(&net, When::Steady)).expect_err("two at once");
    assert!(error.to_string().contains("transition b: two general delays run at once"), "{error}");
}

#[test]
fn fixed_times_that_follow_each_other_are_exact() {
    let fixed = |value| Distribution::Deterministic(Deterministic::new(value).expect("it is right"));
    let transitions = vec![timed("a", fixed(0.3), Servers::SINGLE, &[0], &[1]), timed("b", fixed(0.5), Servers::SINGLE, &[1], &[0])];
    let net = net("clockwork", &[("A", 1), ("B", 0)], transitions);
    let times = [0.2, 0.3, 0.7, 0.8, 1.0, 1.1, 80.2];
    let answer =
        solve(&Question { method: Some(Method::Lattice), ..Question::new(&net, When::At(times.to_vec())) }).expect("it can be solved");
    let in_b: Vec<f64> = answer.values.iter().map(|values| values[1]).collect();
    assert_eq!((in_b, answer.error()), (vec![0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0], 0.0));
}

#[test]
fn the_later_of_two_uniform_times_has_the_product_for_its_distribution() {
    let uniform = |max| Distribution::Uniform(Uniform::new(0.0, max).expect("it is right"));
    let mut join: Transition = exponential("join", 1.0, &[2, 3], &[4]);
    join.firing = Firing::Immediate { priority: 1, weight: 1.0 };
    let transitions =
        vec![timed("a", uniform(1.0), Servers::SINGLE, &[0], &[2]), timed("b", uniform(2.0), Servers::SINGLE, &[1], &[3]), join];
    let net = net("fork-join", &[("A", 1), ("B", 1), ("a done", 0), ("b done", 0), ("both", 0)], transitions);
    let times = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0];
    let answer = solve(&Question { error: 1e-7, ..Question::new(&net, When::At(times.to_vec())) }).expect("it can be solved");
    for (time, values) in times.iter().zip(&answer.values) {
        assert_near(values[4], time.min(1.0) * time / 2.0, answer.errors[4] + 1e-12, &format!("at {time}"));
    }
}

/// What came and what was served differ by what is there; a source fires as often as its rate says; all tokens that are gone have fired.
#[test]
fn firings_are_counted_with_their_bound() {
    let asked = |net: &Net, times: &[f64], measures: &[&str]| {
        let measures = measures.iter().map(|text| Measure::parse(text, net).expect(text)).collect();
        // Rounding adds up, too, and the bound with it.
        let question = Question { measures, error: 1e-7, ..Question::new(net, When::At(times.to_vec())) };
        solve(&question).unwrap_or_else(|error| panic!("{}: {error}", net.name()))
    };
    let times = [0.0, 0.3, 2.0, 40.0, 1_000.0];
    for servers in [1, 3] {
        let net = queue(0.8, 1.0, servers, 6);
        let answer = asked(&net, &times, &["firings(arrive)", "firings(\"serve\")", "throughput(serve)"]);
        assert_eq!(answer.certainty, Certainty::Bound);
        for values in &answer.values {
            let within = answer.errors[2] + answer.errors[3] + answer.errors[1];
            assert_near(values[2] - values[3], values[1], within, "what came and is not served");
        }
        // In the end as often as the throughput says.
        let [before, last] = [3, 4].map(|time| &answer.values[time]);
        let mean = (last[3] - before[3]) / (times[4] - times[3]);
        assert_near(mean, last[4], 1e-4, "the throughput of the long run");
    }
    let source = net("source", &[("A", 1)], vec![exponential("fire", 2.5, &[0], &[0])]);
    let answer = asked(&source, &times, &["firings(fire)"]);
    times.iter().zip(&answer.values).for_each(|(time, values)| assert_near(values[1], 2.5 * time, answer.errors[1], "a source"));
    let law = Distribution::Erlang(Erlang::new(3, 2.0).expect("it is right"));
    let ending = net("ending", &[("A", 4), ("B", 0)], vec![timed("end", law, Servers::SINGLE, &[0], &[1])]);
    let answer = asked(&ending, &times, &["firings(end)"]);
    answer.values.iter().for_each(|values| assert_near(values[2], values[1], answer.errors[2] + answer.errors[1], "who has ended"));
    assert!(answer.errors[2] < 2e-8, "{:?}", answer.errors);

    let refused = |net: &Net, when: When| {
        let measures = vec![Measure::Firings(Impulse { transition: 0, each: None })];
        solve(&Question { measures, ..Question::new(net, when) }).expect_err("it is not known").to_string()
    };
    assert_eq!(refused(&source, When::Steady), "firings(fire) grow without end in the long run: ask for throughput(fire)");
    let uniform = Distribution::Uniform(Uniform::new(0.0, 1.0).expect("it is right"));
    let general = net("uniform", &[("A", 1), ("B", 0)], vec![timed("t", uniform, Servers::SINGLE, &[0], &[1])]);
    let told = refused(&general, When::At(vec![1.0]));
    assert_eq!(told, "firings(t) are added up by method markov only, and this is sequential: count them by simulation");
}

#[test]
fn what_is_not_suited_to_a_method_is_refused() {
    let law = Distribution::Uniform(Uniform::new(0.0, 1.0).expect("it is right"));
    let net = net("uniform", &[("A", 1), ("B", 0)], vec![timed("t", law, Servers::SINGLE, &[0], &[1])]);
    let question = Question { method: Some(Method::Markov), ..Question::new(&net, When::At(vec![1.0])) };
    assert!(matches!(solve(&question), Err(SolveError::Explore(_))));
    let measures = vec![Measure::Throughput(Impulse { transition: 0, each: None })];
    let question = Question { measures, ..Question::new(&net, When::At(vec![1.0])) };
    assert!(solve(&question).expect_err("a general clock has no rate").to_string().contains("throughput(t) is not known"));
}

/// A sum with what is no number, or too large for one, is none: by no method does it come with an error of 0.
#[test]
fn a_measure_that_is_no_number_is_refused_by_every_method() {
    let law = Distribution::Uniform(Uniform::new(1.0, 2.0).expect("it is right"));
    let general = || timed("u", law.clone(), Servers::SINGLE, &[1], &[0]);
    let there = || exponential("t", 2.0, &[0], &[1]);
    let states = [("A", 1), ("B", 0)];
    let markov = net("markov", &states, vec![there(), exponential("u", 1.0, &[1], &[0])]);
    let mixed = net("mixed", &states, vec![there(), general()]);
    let once = net("once", &[("A", 0), ("B", 1)], vec![general()]);
    let at = || When::At(vec![0.5, 1.5]);
    for (net, when, method) in [
        (&markov, at(), Method::Markov),
        (&markov, When::Steady, Method::Markov),
        (&mixed, When::Steady, Method::Regenerative),
        (&mixed, at(), Method::Lattice),
        (&once, at(), Method::Sequential),
    ] {
        for text in ["1e308 * 10 * A - 1e308 * 10 * A", "1e308 * 10 * (A + B)"] {
            let ask = |text: &str| {
                let measures = ["A", text].map(|text| Measure::parse(text, net).expect(text)).to_vec();
                solve(&Question { measures, error: 1e-2, method: Some(method), ..Question::new(net, when.clone()) })
            };
            assert!(ask("2 * A").is_ok(), "{}", net.name());
            let told = ask(text).expect_err(net.name()).to_string();
            assert!(told.contains("measure 2 is no finite number"), "{} by {}: {told}", net.name(), method.name());
        }
    }
}

#[test]
fn quantiles_and_the_mean_of_a_first_passage_are_those_of_its_law() {
    let gamma = Gamma::new(6.235, 2.683).expect("it is right");
    let erlang = Erlang::new(13, 2.088).expect("it is right");
    for (law, method) in [(Distribution::Gamma(gamma), Method::Sequential), (Distribution::Erlang(erlang), Method::Markov)] {
        let net = net("one", &[("A", 1), ("B", 0)], vec![timed("t", law.clone(), Servers::SINGLE, &[0], &[1])]);
        let Ok(Measure::Reward(until)) = Measure::parse("B > 0", &net) else { panic!("it is a reward") };
        let question = Question { until: Some(until), ..Question::new(&net, When::Steady) };
        let found = passage(&question, &[0.01, 0.5, 0.99], true).expect("it comes to pass");
        assert_eq!(found.method, method);
        for Quantile { share, low, high } in found.quantiles {
            let exact = law.quantile(share);
            assert!(low <= exact * (1.0 + 1e-12) && exact <= high * (1.0 + 1e-12), "{share}: {exact} in {low} to {high}");
            assert!(high - low <= 2e-6 * high, "{share}: {low} to {high}");
        }
        let (mean, error) = found.mean.expect("it was asked for");
        assert!((mean - law.mean()).abs() <= error && error < 1e-5, "{mean} +- {error:e} for {}", law.mean());
    }
}

#[test]
fn a_condition_that_may_never_hold_has_no_late_quantiles() {
    let net = net("race", &[("start", 1), ("A", 0), ("B", 0)], vec![exponential("a", 2.0, &[0], &[1]), exponential("b", 3.0, &[0], &[2])]);
    let Ok(Measure::Reward(until)) = Measure::parse("A > 0", &net) else { panic!("it is a reward") };
    let question = Question { until: Some(until), ..Question::new(&net, When::Steady) };
    let Quantile { low, high, .. } = passage(&question, &[0.2], false).expect("it comes to 0.4").quantiles[0];
    let exact = 2.0_f64.ln() / 5.0;
    assert!(low <= exact && exact <= high, "{exact} in {low} to {high}");
    let error = passage(&question, &[0.5], false).expect_err("it does not come to 0.5").to_string();
    assert!(error.contains("it may never come to 0.5"), "{error}");
}
