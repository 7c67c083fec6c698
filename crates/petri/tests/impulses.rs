//! What firings earn: of transitions without time, in markings, at time 0; beside closed forms and the simulator.

use bodkin_petri::{
    format::json,
    measure::Measure,
    net::Net,
    simulate::{self, Counters, simulate},
    solve::{Answer, Certainty, Method, Question, SolveError, When, solve},
};

/// A net of these places and transitions, in JSON.
fn net(places: &str, transitions: &str) -> Net {
    let text =
        format!(r#"{{"schema": "stpn-neutral-1", "name": "n", "time_unit": "s", "places": [{places}], "transitions": [{transitions}]}}"#);
    json::read(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn ask(net: &Net, when: When, measures: &[&str]) -> Result<Answer, SolveError> {
    let measures = measures.iter().map(|text| Measure::parse(text, net).unwrap_or_else(|error| panic!("{text}: {error}"))).collect();
    solve(&Question { measures, error: 1e-6, ..Question::new(net, when) })
}

#[track_caller]
fn close(answer: &Answer, net: &Net, row: usize, expected: &[f64]) {
    assert_eq!((answer.method, answer.certainty), (Method::Markov, Certainty::Bound));
    for (index, expected) in expected.iter().enumerate() {
        let column = net.places().len() + index;
        let (value, error) = (answer.values[row][column], answer.errors[column]);
        let rounding = 1e-13 * expected.abs();
        assert!((value - expected).abs() <= error + rounding && error <= 1e-6, "measure {index}: {value} for {expected}, {error:e}");
    }
}

/// Arrivals of rate 3 of which a quarter is tried again as often as it takes: a third of a try more for each, by way of two states without
/// time that lead to each other.
fn tries() -> Net {
    net(
        r#"{"id": "Source", "initial": 1}, {"id": "Try", "initial": 0}, {"id": "Failed", "initial": 0}"#,
        r#"{"id": "arrive", "kind": "timed", "distribution": {"type": "exponential", "rate": 3}, "inputs": [{"place": "Source"}], "outputs": [{"place": "Try"}]},
           {"id": "works", "kind": "immediate", "weight": 3, "inputs": [{"place": "Try"}], "outputs": [{"place": "Source"}]},
           {"id": "fails", "kind": "immediate", "weight": 1, "inputs": [{"place": "Try"}], "outputs": [{"place": "Failed"}]},
           {"id": "again", "kind": "immediate", "inputs": [{"place": "Failed"}], "outputs": [{"place": "Try"}]}"#,
    )
}

#[test]
fn firings_without_time_are_counted() {
    let net = tries();
    let measures = ["throughput(arrive)", "throughput(works)", "throughput(fails)", "throughput(again, 2 * Failed)"];
    close(&ask(&net, When::Steady, &measures).expect("an answer"), &net, 0, &[3.0, 3.0, 1.0, 2.0]);
    let measures = ["firings(works)", "firings(fails)", "throughput(fails)"];
    let answer = ask(&net, When::At(vec![0.0, 0.5, 20.0]), &measures).expect("an answer");
    for (row, time) in [0.0, 0.5, 20.0].into_iter().enumerate() {
        close(&answer, &net, row, &[3.0 * time, time, 1.0]);
    }
}

/// Tokens that die one by one, whoever is left: the sum of what is there at each death is `n (n + 1) / 2`.
#[test]
fn a_firing_earns_what_its_marking_says() {
    let net = net(
        r#"{"id": "A", "initial": 6}"#,
        r#"{"id": "die", "kind": "timed", "distribution": {"type": "erlang", "shape": 2, "rate": 4}, "servers": "infinite", "inputs": [{"place": "A"}]}"#,
    );
    let answer = ask(&net, When::At(vec![60.0]), &["firings(die, A)", "firings(die, 0.5)", "firings(die)"]).expect("an answer");
    close(&answer, &net, 0, &[21.0, 3.0, 6.0]);
}

/// M/M/1/K in the long run: departures leave the queue at rate `mu`, each with what it finds.
#[test]
fn departures_earn_what_a_queue_holds() {
    let net = net(
        r#"{"id": "Room", "initial": 4}, {"id": "Queue", "initial": 0}"#,
        r#"{"id": "arrive", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "inputs": [{"place": "Room"}], "outputs": [{"place": "Queue"}]},
           {"id": "serve", "kind": "timed", "distribution": {"type": "exponential", "rate": 2}, "inputs": [{"place": "Queue"}], "outputs": [{"place": "Room"}]}"#,
    );
    let weights = [1.0, 0.5, 0.25, 0.125, 0.0625];
    let mean: f64 = weights.iter().zip(0..).map(|(weight, queue)| weight * f64::from(queue)).sum::<f64>() / weights.iter().sum::<f64>();
    close(&ask(&net, When::Steady, &["throughput(serve, Queue)"]).expect("an answer"), &net, 0, &[2.0 * mean]);
}

#[test]
fn what_fires_at_time_0_is_counted_as_the_simulator_does() {
    let net = net(
        r#"{"id": "A", "initial": 2}, {"id": "B", "initial": 0}, {"id": "C", "initial": 0}"#,
        r#"{"id": "start", "kind": "immediate", "inputs": [{"place": "A"}], "outputs": [{"place": "B"}]},
           {"id": "work", "kind": "timed", "distribution": {"type": "hyper_exponential", "branches": [{"probability": 0.4, "rate": 1}, {"probability": 0.6, "rate": 5}]},
            "servers": 2, "inputs": [{"place": "B"}], "outputs": [{"place": "C"}]},
           {"id": "back", "kind": "immediate", "weight": 2, "inputs": [{"place": "C"}], "outputs": [{"place": "A"}]},
           {"id": "out", "kind": "immediate", "inputs": [{"place": "C"}]}"#,
    );
    let times = [0.0, 0.3, 1.5, 6.0];
    let texts = ["firings(start)", "firings(back)", "firings(out)", "firings(work)"];
    let answer = ask(&net, When::At(times.to_vec()), &texts).expect("an answer");
    close(&answer, &net, 0, &[2.0, 0.0, 0.0, 0.0]);
    let counters = Counters::new(&net);
    let measures = texts.map(|text| counters.expression(text).expect(text)).into();
    let question = simulate::Question { instants: times.to_vec(), measures, target: None, tag: None };
    let options = simulate::Options { runs: 20_000, confidence: 0.999_999, ..simulate::Options::default() };
    let simulated = simulate(&counters.net(), &question, &options).expect("an answer");
    for (index, text) in texts.iter().enumerate() {
        for (row, estimate) in simulated.measures[index].iter().enumerate() {
            let value = answer.values[row][net.places().len() + index];
            let agree = estimate.low - 1e-9 <= value && value <= estimate.high + 1e-9;
            assert!(agree, "{text} at {}: {value} beside {estimate:?}", times[row]);
        }
    }
}

#[test]
fn what_has_no_bound_is_refused_with_its_reason() {
    let refused = |net: &Net, when: When, measure: &str, reason: &str| {
        let error = ask(net, when, &[measure]).expect_err(measure).to_string();
        assert!(error.contains(reason), "{measure}: {error}");
    };
    let net_of_tries = tries();
    refused(&net_of_tries, When::Steady, "firings(works)", "grow without end in the long run: ask for throughput(works)");
    refused(&net_of_tries, When::Steady, "throughput(works, -1)", "transition works: what a firing earns is below 0 in some marking");
    let general = net(
        r#"{"id": "A", "initial": 1}, {"id": "B", "initial": 0}"#,
        r#"{"id": "wait", "kind": "timed", "distribution": {"type": "uniform", "min": 0, "max": 1}, "inputs": [{"place": "A"}], "outputs": [{"place": "B"}]},
           {"id": "back", "kind": "immediate", "inputs": [{"place": "B"}], "outputs": [{"place": "A"}]}"#,
    );
    refused(
        &general,
        When::Steady,
        "throughput(back)",
        "transition back: it is immediate, and its firings are known to method markov only, and this is regenerative",
    );
    refused(
        &general,
        When::At(vec![1.0]),
        "throughput(wait, A)",
        "what a firing earns is known to method markov only, and this is lattice",
    );
}
