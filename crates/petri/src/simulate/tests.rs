use super::{rounds::FIRST_ROUND, *};
use crate::format::json;

const EVENT_HANDLER: &str = include_str!("../../../../vectors/petri/nets/event_handler_k1.json");
const EVENT_HANDLER_CURVE: &str = include_str!("../../../../vectors/petri/curves/event_handler_k1.csv");

fn net(text: &str) -> Net {
    json::read(text).expect("the net is right")
}

/// A net of places `name tokens` and the given transitions in JSON.
fn small(places: &[(&str, u32)], transitions: &[&str]) -> Net {
    let places: Vec<String> = places.iter().map(|(name, tokens)| format!(r#"{{"id": "{name}", "initial": {tokens}}}"#)).collect();
    net(&format!(
        r#"{{"schema": "stpn-neutral-1", "name": "n", "time_unit": "s", "places": [{}], "transitions": [{}]}}"#,
        places.join(","),
        transitions.join(",")
    ))
}

fn measure(net: &Net, text: &str) -> Expression {
    Expression::parse(text, &|name| net.place(name)).expect("the measure is right")
}

fn ask(net: &Net, instants: &[f64], measures: &[&str]) -> Question {
    Question { instants: instants.to_vec(), measures: measures.iter().map(|text| measure(net, text)).collect(), target: None, tag: None }
}

fn options(seed: u64, runs: u64) -> Options {
    Options { seed, runs, ..Options::default() }
}

/// Probabilities of the places of the Event Handler's net at chosen times: the curve's columns.
fn event_handler_curve() -> Vec<(f64, [f64; 4])> {
    let rows = EVENT_HANDLER_CURVE.lines().skip(1).map(|line| line.split(',').map(|field| field.parse().expect("a number")).collect());
    rows.map(|row: Vec<f64>| (row[0], [row[1], row[2], row[3], row[4]])).collect()
}

/// Of 100 seeds at least 97 intervals of 99 % hold the exact value, at each of six times and for each place.
#[test]
fn intervals_cover_the_exact_curve_in_97_of_100_seeds() {
    let net = net(EVENT_HANDLER);
    let curve: Vec<(f64, [f64; 4])> =
        event_handler_curve().into_iter().filter(|(time, _)| [4.0, 5.0, 7.0, 8.0, 10.0, 14.0].contains(time)).collect();
    assert_eq!(curve.len(), 6);
    let instants: Vec<f64> = curve.iter().map(|(time, _)| *time).collect();
    let cores = "Executing_Thread_Core1 + Executing_Thread_Core2 + Executing_Thread_Core3 + Executing_Thread_Core4";
    let question = ask(&net, &instants, &["Publisher == 1", &format!("{cores} == 1"), "Ready_to_Send == 1", "Subscriber == 1"]);
    let mut covered = [[0_u32; 4]; 6];
    for seed in 0..100 {
        let answer = simulate(&net, &question, &options(seed, 400)).expect("an answer");
        for (instant, (_, exact)) in curve.iter().enumerate() {
            for (place, exact) in exact.iter().enumerate() {
                covered[instant][place] += u32::from(answer.measures[place][instant].covers(*exact));
            }
        }
    }
    assert!(covered.as_flattened().iter().all(|covered| *covered >= 97), "{covered:?}");
}

#[test]
fn the_answer_is_the_same_for_any_number_of_threads() {
    let net = net(include_str!("../../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json"));
    let mut question = ask(&net, &[1.0, 5.0, 5.5, 10.0], &["Subscriber / 3", "Ready_to_Send > 1"]);
    question.target = Some(measure(&net, "Subscriber == 4"));
    let answer =
        |threads| simulate(&net, &question, &Options { threads, half_width: Some(0.008), ..Options::default() }).expect("an answer");
    let one = answer(1);
    assert!(one.is_narrow && one.runs > FIRST_ROUND, "{} runs", one.runs);
    for threads in [2, 3, 64] {
        assert_eq!(answer(threads), one, "{threads} threads");
    }
}

/// Expected tokens of four messages, from tables of 40 million runs of a program of its own.
#[test]
fn four_messages_go_as_in_the_reference() {
    let check = |text: &str, curve: &str| {
        let net = net(text);
        let rows = curve.lines().skip(1).map(|line| line.split(',').map(|field| field.parse().expect("a number")).collect());
        let rows: Vec<Vec<f64>> = rows.filter(|row: &Vec<f64>| [4.0, 8.0, 11.0, 20.0, 26.0, 30.0].contains(&row[0])).collect();
        let instants: Vec<f64> = rows.iter().map(|row| row[0]).collect();
        let question = ask(&net, &instants, &["Publisher / 4", "Subscriber / 4", "Subscriber > 0", "Subscriber == 4"]);
        let answer = simulate(&net, &question, &Options { confidence: 0.9999, ..options(2, 20_000) }).expect("an answer");
        for (index, row) in rows.iter().enumerate() {
            for (measure, exact) in answer.measures.iter().zip([1.0 - row[1], row[5], row[6], row[7]]) {
                let estimate = measure[index];
                assert!(estimate.low - 3e-4 <= exact && exact <= estimate.high + 3e-4, "{estimate:?} for {exact} at {}", row[0]);
            }
        }
    };
    let single = include_str!("../../../../vectors/petri/nets/event_handler_k4_p4_c4_ss.json");
    check(single, include_str!("../../../../vectors/petri/curves/event_handler_k4_p4_c4_ss.csv"));
    let infinite = include_str!("../../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json");
    check(infinite, include_str!("../../../../vectors/petri/curves/event_handler_k4_p4_c4_is.csv"));
}

/// Whether an interval of 99.99 % of `runs` runs holds `exact`.
fn check(net: &Net, instant: f64, text: &str, exact: f64) {
    let question = ask(net, &[instant], &[text]);
    let answer = simulate(net, &question, &Options { confidence: 0.9999, ..options(5, 20_000) }).expect("an answer");
    let estimate = answer.measures[0][0];
    assert!(estimate.covers(exact), "{text} at {instant}: {estimate:?} for {exact}");
}

#[test]
fn servers_are_single_several_or_infinite() {
    for (servers, running) in [("\"single\"", 1.0_f64), ("2", 2.0), ("\"infinite\"", 3.0)] {
        let serve = format!(
            r#"{{"id": "serve", "kind": "timed", "distribution": {{"type": "exponential", "rate": 0.5}}, "servers": {servers},
                "inputs": [{{"place": "Waiting"}}], "outputs": [{{"place": "Served"}}]}}"#
        );
        let net = small(&[("Waiting", 3), ("Served", 0)], &[&serve]);
        check(&net, 1.0, "Served == 0", (-0.5 * running).exp());
    }
    // Of a rate with tokens in it the same: three of 0.5 until the first is served.
    let rate =
        r#"{"id": "serve", "kind": "timed", "rate": "0.5 * Waiting", "inputs": [{"place": "Waiting"}], "outputs": [{"place": "Served"}]}"#;
    let net = small(&[("Waiting", 3), ("Served", 0)], &[rate]);
    let still = (-0.5_f64).exp();
    check(&net, 1.0, "Served == 0", still.powi(3));
    check(&net, 1.0, "Served == 3", (1.0 - still).powi(3));
}

#[test]
fn the_memory_of_a_clock_is_forgotten_kept_or_repeated() {
    // A job of 2 is disabled from 1 to 1.5: forgotten and repeated it ends at 3.5, of an age at 2.5.
    for (memory, end) in [("enabling", 3.5), ("age", 2.5), ("repeat_identical", 3.5)] {
        let work = format!(
            r#"{{"id": "work", "kind": "timed", "distribution": {{"type": "deterministic", "value": 2}}, "memory": "{memory}",
                "inputs": [{{"place": "Job"}}], "outputs": [{{"place": "Done"}}], "inhibitors": [{{"place": "Down"}}]}}"#
        );
        let fail = r#"{"id": "fail", "kind": "timed", "distribution": {"type": "deterministic", "value": 1}, "inputs": [{"place": "Up"}], "outputs": [{"place": "Down"}]}"#;
        let repair = r#"{"id": "repair", "kind": "timed", "distribution": {"type": "deterministic", "value": 0.5}, "inputs": [{"place": "Down"}], "outputs": [{"place": "Fixed"}]}"#;
        let net = small(&[("Job", 1), ("Done", 0), ("Up", 1), ("Down", 0), ("Fixed", 0)], &[&work, fail, repair]);
        let question = Question { target: Some(measure(&net, "Done == 1")), ..ask(&net, &[10.0], &[]) };
        let passage = simulate(&net, &question, &options(1, 10)).expect("an answer").passage.expect("a target");
        assert_eq!(passage.mean.map(|mean| mean.value), Some(end), "{memory}");
    }
    // Repeated is the same delay, forgotten another one: uniform in 0 to 2, interrupted at 1. What was to end before 1 has ended.
    for (memory, at, done) in
        [("repeat_identical", 2.4, 0.5), ("enabling", 2.4, 0.5 + 0.5 * 0.45), ("repeat_identical", 3.0, 0.75), ("age", 2.0, 0.75)]
    {
        let work = format!(
            r#"{{"id": "work", "kind": "timed", "distribution": {{"type": "uniform", "min": 0, "max": 2}}, "memory": "{memory}",
                "inputs": [{{"place": "Job"}}], "outputs": [{{"place": "Done"}}], "inhibitors": [{{"place": "Down"}}]}}"#
        );
        let fail = r#"{"id": "fail", "kind": "timed", "distribution": {"type": "deterministic", "value": 1}, "inputs": [{"place": "Up"}], "outputs": [{"place": "Down"}]}"#;
        let repair = r#"{"id": "repair", "kind": "timed", "distribution": {"type": "deterministic", "value": 0.5}, "inputs": [{"place": "Down"}], "outputs": [{"place": "Fixed"}]}"#;
        let net = small(&[("Job", 1), ("Done", 0), ("Up", 1), ("Down", 0), ("Fixed", 0)], &[&work, fail, repair]);
        check(&net, at, "Done == 1", done);
    }
}

#[test]
fn immediate_transitions_go_by_priority_and_then_by_weight() {
    let go = |id: &str, priority: u32, weight: f64| {
        format!(
            r#"{{"id": "{id}", "kind": "immediate", "priority": {priority}, "weight": {weight}, "inputs": [{{"place": "Start"}}], "outputs": [{{"place": "{id}"}}]}}"#
        )
    };
    let net = small(&[("Start", 1), ("A", 0), ("B", 0), ("C", 0)], &[&go("A", 2, 1.0), &go("B", 2, 3.0), &go("C", 1, 100.0)]);
    check(&net, 0.0, "B == 1", 0.75);
    check(&net, 0.0, "A == 1", 0.25);
}

#[test]
fn clocks_that_end_together_go_by_priority_and_then_by_weight() {
    let go = |id: &str, priority: u32, weight: f64| {
        format!(
            r#"{{"id": "{id}", "kind": "timed", "distribution": {{"type": "deterministic", "value": 2}}, "priority": {priority}, "weight": {weight},
                "inputs": [{{"place": "Start"}}], "outputs": [{{"place": "{id}"}}]}}"#
        )
    };
    let net = small(&[("Start", 1), ("A", 0), ("B", 0), ("C", 0)], &[&go("A", 2, 1.0), &go("B", 2, 3.0), &go("C", 1, 100.0)]);
    check(&net, 2.0, "B == 1", 0.75);
    check(&net, 2.0, "C == 1", 0.0);
}

/// An M/M/1/3 queue at time 50 is in its steady state: `rho^n` in proportion.
#[test]
fn a_queue_settles_where_it_should() {
    let arrive = r#"{"id": "arrive", "kind": "timed", "distribution": {"type": "exponential", "rate": 0.8}, "outputs": [{"place": "Queue"}], "inhibitors": [{"place": "Queue", "weight": 3}]}"#;
    let serve = r#"{"id": "serve", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "inputs": [{"place": "Queue"}]}"#;
    let net = small(&[("Queue", 0)], &[arrive, serve]);
    let sum: f64 = (0..4).map(|queue| 0.8_f64.powi(queue)).sum();
    for queue in 0..4 {
        check(&net, 50.0, &format!("Queue == {queue}"), 0.8_f64.powi(queue) / sum);
    }
}

#[test]
fn a_passage_has_its_law_mean_and_quantiles() {
    let go = r#"{"id": "go", "kind": "timed", "distribution": {"type": "erlang", "shape": 3, "rate": 2}, "inputs": [{"place": "A"}], "outputs": [{"place": "B"}]}"#;
    let net = small(&[("A", 1), ("B", 0)], &[go]);
    let law = crate::distribution::Distribution::Erlang(crate::distribution::Erlang::new(3, 2.0).expect("a law"));
    let question = Question { target: Some(measure(&net, "B == 1")), ..ask(&net, &[0.5, 1.0, 2.0, 100.0], &[]) };
    let answer = simulate(&net, &question, &Options { confidence: 0.9999, ..options(3, 20_000) }).expect("an answer");
    let passage = answer.passage.expect("a target");
    assert_eq!(passage.missing, 0);
    assert!(passage.mean.expect("all arrive").covers(1.5), "{:?}", passage.mean);
    for (instant, estimate) in question.instants.iter().zip(&passage.cdf) {
        assert!(estimate.covers(law.cdf(*instant)), "{estimate:?} at {instant}");
    }
    assert_eq!(passage.quantiles.len(), QUANTILES.len());
    for (share, estimate) in &passage.quantiles {
        assert!(estimate.covers(law.quantile(*share)), "{share}: {estimate:?}");
    }
}

/// Latencies from the start of a message's own publish, from tables of 10 and 40 million runs of a program of its own.
#[test]
fn tagged_messages_take_as_long_as_in_the_reference() {
    let check = |text: &str, curve: &str, mean: f64| {
        let net = net(text);
        let from = TagStart::Service(net.transition("publish").expect("it is there"));
        let tag = Tag::new(from, net.place("Subscriber").expect("it is there"));
        let rows = curve.lines().skip(1).map(|line| line.split(',').map(|field| field.parse().expect("a number")).collect());
        let rows: Vec<Vec<f64>> = rows.filter(|row: &Vec<f64>| [6.0, 8.0, 9.0, 12.0, 100.0].contains(&row[0])).collect();
        let instants: Vec<f64> = rows.iter().map(|row| row[0]).filter(|time| *time < 100.0).chain([120.0]).collect();
        let question = Question { tag: Some(tag), ..ask(&net, &instants, &[]) };
        let answer = simulate(&net, &question, &Options { confidence: 0.9999, ..options(4, 10_000) }).expect("an answer");
        let response = answer.response.expect("messages arrive");
        assert_eq!(response.count, answer.runs * u64::from(net.initial()[0]));
        assert!(response.mean.covers(mean), "{:?} for {mean}", response.mean);
        for (row, estimate) in rows.iter().zip(&response.cdf) {
            assert!(estimate.low - 3e-4 <= row[8] && row[8] <= estimate.high + 3e-4, "{estimate:?} for {} at {}", row[8], row[0]);
        }
    };
    let four = include_str!("../../../../vectors/petri/nets/event_handler_k4_p4_c4_ss.json");
    check(four, include_str!("../../../../vectors/petri/curves/event_handler_k4_p4_c4_ss.csv"), 8.970_615);
    let infinite = include_str!("../../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json");
    check(infinite, include_str!("../../../../vectors/petri/curves/event_handler_k4_p4_c4_is.csv"), 8.962_668_7);
}

/// The response time of a closed loop of three customers at two servers, by Little's law, and of an M/M/1 queue from its arrivals.
#[test]
fn a_queue_answers_in_the_time_that_little_says() {
    let arrive = r#"{"id": "arrive", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "inputs": [{"place": "Away"}], "outputs": [{"place": "Queue"}], "servers": "infinite"}"#;
    let serve = r#"{"id": "serve", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "inputs": [{"place": "Queue"}], "outputs": [{"place": "Away"}], "servers": 2}"#;
    let net = small(&[("Away", 3), ("Queue", 0)], &[arrive, serve]);
    let tag = Tag::new(TagStart::Arrival(1), 0);
    let question = Question { tag: Some(tag), ..ask(&net, &[1.0, 2_000.0], &["Queue"]) };
    let answer = simulate(&net, &question, &Options { confidence: 0.9999, ..options(4, 30) }).expect("an answer");
    // Rates 3, 2, 1 up and 1, 2, 2 down: in proportion to 1, 3, 3, 1.5.
    let (queued, arriving) = ((3.0 + 6.0 + 4.5) / 8.5, (3.0 + 6.0 + 3.0) / 8.5);
    let mean = answer.response.expect("they are served").mean;
    assert!(mean.covers(queued / arriving), "{mean:?} for {}", queued / arriving);
}

/// A dozen messages, each published behind the other and then passed on: the sum of the dozen delays is nearly all of the time.
fn dozen() -> Net {
    let publish = r#"{"id": "publish", "kind": "timed", "distribution": {"type": "erlang", "shape": 4, "rate": 4},
        "inputs": [{"place": "Made"}], "outputs": [{"place": "Queue"}]}"#;
    let pass = r#"{"id": "pass", "kind": "timed", "distribution": {"type": "exponential", "rate": 5},
        "inputs": [{"place": "Queue"}], "outputs": [{"place": "Heard"}]}"#;
    small(&[("Made", 12), ("Queue", 0), ("Heard", 0)], &[publish, pass])
}

/// Of 100 seeds at least 97 intervals hold the exact value, as of runs that are counted alone, and the mean of all is where it should be.
/// The last instant is in the middle: half of the runs end with delays that they have not drawn.
#[test]
fn a_condition_that_is_compared_with_a_known_sum_keeps_its_value_and_its_intervals() {
    let net = dozen();
    let instants = [9.0, 10.5, 11.5, 12.2];
    let question = ask(&net, &instants, &["Heard == 12"]);
    let mut analysis = crate::solve::Question::new(&net, crate::solve::When::At(instants.to_vec()));
    analysis.measures = vec![crate::measure::Measure::parse("Heard == 12", &net).expect("a condition")];
    let exact: Vec<f64> = crate::solve::solve(&analysis).expect("a chain").values.iter().map(|row| row[3]).collect();
    let (mut covered, mut sums) = ([0_u32; 4], [0.0; 4]);
    for seed in 0..100 {
        let options = Options { half_width: Some(0.01), threads: 2, ..options(seed, 1_000_000) };
        let answer = simulate(&net, &question, &options).expect("an answer");
        assert!(answer.is_narrow && answer.runs == FIRST_ROUND, "{} runs", answer.runs);
        assert_eq!(answer.controls.iter().map(|control| (control.transition, control.delays)).collect::<Vec<_>>(), [(0, 12)]);
        for (index, estimate) in answer.measures[0].iter().enumerate() {
            covered[index] += u32::from(estimate.covers(exact[index]));
            sums[index] += estimate.value;
        }
    }
    assert!(covered.iter().all(|covered| *covered >= 97), "{covered:?}");
    // The differences vary by 0.1 at the most, over 409,600 runs.
    let apart = sums.iter().zip(&exact).map(|(sum, exact)| (sum / 100.0 - exact).abs()).fold(0.0, f64::max);
    assert!(apart < 4.0 * (0.1 / 409_600.0_f64).sqrt(), "{apart:e} beside {exact:?}");
}

/// Four times the runs, at least, for the same interval; and the same answer whoever makes them.
#[test]
fn a_known_sum_saves_runs_where_a_condition_depends_on_it() {
    let net = dozen();
    let mut question = ask(&net, &[8.0, 10.0, 12.0, 14.0, 20.0], &[]);
    question.target = Some(measure(&net, "Heard == 12"));
    let answer = |threads, half_width| {
        simulate(&net, &question, &Options { half_width: Some(half_width), threads, ..options(3, 1_000_000) }).expect("an answer")
    };
    let one = answer(1, 0.003);
    assert_eq!(answer(3, 0.003), one, "three threads");
    let alone = 0.25 * (2.5758_f64 / 0.003).powi(2);
    assert!(one.is_narrow && (one.runs as f64) < 0.25 * alone, "{} runs beside {alone}", one.runs);
    let passage = one.passage.expect("a target");
    assert!(passage.cdf.windows(2).all(|pair| pair[0].low <= pair[1].high) && passage.cdf[4].value > 0.99, "{:?}", passage.cdf);
    assert!(answer(1, 0.05).controls.is_empty(), "the first round is enough");
}

/// Where no one transition decides, where a condition comes and goes, and where other values need the runs anyway, runs are counted alone.
#[test]
fn nothing_is_compared_where_it_would_save_nothing() {
    let publish = r#"{"id": "publish", "kind": "timed", "distribution": {"type": "erlang", "shape": 4, "rate": 4}, "servers": "infinite",
        "inputs": [{"place": "Made"}], "outputs": [{"place": "Heard"}]}"#;
    let at_once = small(&[("Made", 12), ("Heard", 0)], &[publish]);
    let dozen = dozen();
    for (net, measures) in [(&at_once, &["Heard == 12"][..]), (&dozen, &["Queue > 0"]), (&dozen, &["Heard == 12", "Heard / 2"])] {
        let question = ask(net, &[1.0, 2.0, 6.0, 12.0], measures);
        let answer = simulate(net, &question, &Options { half_width: Some(0.01), ..options(1, 1_000_000) }).expect("an answer");
        assert!(answer.is_narrow && answer.controls.is_empty(), "{measures:?}: {:?}", answer.controls);
        assert!(answer.runs > FIRST_ROUND, "{measures:?}: {} runs", answer.runs);
    }
}

/// Two nets that differ in a rate: with the same seed the difference of the answers is far less by chance than each answer.
#[test]
fn a_sweep_meets_the_same_luck() {
    let queue = |rate: f64| {
        let arrive =
            r#"{"id": "arrive", "kind": "timed", "distribution": {"type": "exponential", "rate": 0.5}, "outputs": [{"place": "Queue"}]}"#;
        let serve = format!(
            r#"{{"id": "serve", "kind": "timed", "distribution": {{"type": "exponential", "rate": {rate}}}, "inputs": [{{"place": "Queue"}}]}}"#
        );
        small(&[("Queue", 0)], &[arrive, &serve])
    };
    let value = |rate, seed| {
        let net = queue(rate);
        simulate(&net, &ask(&net, &[20.0], &[]), &options(seed, 500)).expect("an answer").places[0][0].value
    };
    let spread = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
    };
    let same: Vec<f64> = (0..30).map(|seed| value(1.0, seed) - value(1.05, seed)).collect();
    let other: Vec<f64> = (0..30).map(|seed| value(1.0, seed) - value(1.05, 1_000 + seed)).collect();
    assert!(spread(&same) * 5.0 < spread(&other), "{} beside {}", spread(&same), spread(&other));
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let timed = r#"{"id": "t", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "inputs": [{"place": "A"}], "outputs": [{"place": "B"}]}"#;
    let there = r#"{"id": "there", "kind": "immediate", "inputs": [{"place": "B"}], "outputs": [{"place": "C"}]}"#;
    let back = r#"{"id": "back", "kind": "immediate", "inputs": [{"place": "C"}], "outputs": [{"place": "B"}]}"#;
    let net = small(&[("A", 1), ("B", 0), ("C", 0)], &[timed, there, back]);
    let refused =
        |instants: &[f64], options: Options| simulate(&net, &ask(&net, instants, &[]), &options).expect_err("no answer").to_string();
    assert!(refused(&[50.0], options(1, 2)).contains("more than 1000000 immediate transitions fire without time passing: "));
    assert_eq!(refused(&[2.0, 1.0], options(1, 2)), "instants are to be finite, from 0 and rising, and at least one");
    assert_eq!(refused(&[], options(1, 2)), "instants are to be finite, from 0 and rising, and at least one");
    assert_eq!(refused(&[1.0], options(1, 1)), "there is 1 run; expected at least 2");
    assert_eq!(refused(&[1.0], Options { half_width: Some(0.0), ..options(1, 10) }), "the half-width is 0; expected a number above 0");
    let stuck = r#"{"id": "t", "kind": "timed", "rate": "A - 1", "inputs": [{"place": "A"}]}"#;
    let net = small(&[("A", 2)], &[stuck]);
    let error = simulate(&net, &ask(&net, &[100.0], &[]), &options(1, 2)).expect_err("no answer").to_string();
    assert!(error.contains("the rate of transition t is 0, not a finite number above 0"), "{error}");
    let fills = r#"{"id": "t", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "outputs": [{"place": "A", "weight": 2147483647}]}"#;
    let full = small(&[("A", 2)], &[fills]);
    let error = simulate(&full, &ask(&full, &[100.0], &[]), &options(1, 2)).expect_err("no answer").to_string();
    assert!(error.ends_with("place A has more tokens than can be counted"), "{error}");
    // Of a square that is no number there is no spread, and of no spread no interval.
    for (text, is_told) in [("1e308 * 10 * A - 1e308 * 10 * A", false), ("1e200 * A", false), ("1e150 * A", true)] {
        let question = ask(&net, &[0.0], &["A", text]);
        match simulate(&net, &question, &options(1, 10)) {
            Ok(answer) => assert!(is_told && answer.measures[1][0].covers(2e150), "{text}"),
            Err(error) => assert!(!is_told && error == SimulationError::NoNumber { number: 2 }, "{text}: {error}"),
        }
    }
}
