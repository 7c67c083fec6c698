//! The thesis's nets against curves that were computed apart from this engine, with 60 digits: see `vectors/petri/README.md`.

use bodkin_petri::{
    format::json,
    measure::Measure,
    net::Net,
    solve::{Answer, Method, Question, When, solve},
};

/// A table of numbers with a header.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<f64>>,
}

fn table(text: &str) -> Table {
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<String>>());
    let columns = lines.next().expect("it has a header");
    let rows = lines.map(|line| line.iter().map(|field| field.parse().expect("a number")).collect()).collect();
    Table { columns, rows }
}

fn net(text: &str) -> Net {
    json::read(text).expect("the reference nets are right")
}

/// The largest difference between the answer and the table.
fn difference(net: &Net, answer: &Answer, table: &Table) -> f64 {
    let mut largest = 0.0_f64;
    for (row, values) in table.rows.iter().zip(&answer.values) {
        for (column, expected) in table.columns.iter().zip(row).skip(1) {
            let place = net.place(column).expect("the columns are places");
            largest = largest.max((values[place] - expected).abs());
        }
    }
    largest
}

fn times(table: &Table) -> Vec<f64> {
    table.rows.iter().map(|row| row[0]).collect()
}

#[test]
fn orchestration_follows_the_exact_curves() {
    for (text, curve) in [
        (include_str!("../../../vectors/petri/nets/intracloud.json"), include_str!("../../../vectors/petri/curves/intracloud.csv")),
        (include_str!("../../../vectors/petri/nets/intercloud.json"), include_str!("../../../vectors/petri/curves/intercloud.csv")),
    ] {
        let (net, table) = (net(text), table(curve));
        let answer = solve(&Question::new(&net, When::At(times(&table)))).expect("it can be solved");
        let difference = difference(&net, &answer, &table);
        assert!(answer.error() <= 1e-9, "{}: {}", net.name(), answer.error());
        assert!(difference <= answer.error() + 1e-11, "{}: {difference:e} beside a bound of {:e}", net.name(), answer.error());
    }
}

#[test]
fn one_event_follows_the_exact_curve() {
    let net = net(include_str!("../../../vectors/petri/nets/event_handler_k1.json"));
    let table = table(include_str!("../../../vectors/petri/curves/event_handler_k1.csv"));
    let cores = ["Executing_Thread_Core1", "Executing_Thread_Core2", "Executing_Thread_Core3", "Executing_Thread_Core4"];
    let any_core = Measure::parse(&cores.join(" + "), &net).expect("it is right");
    let answer = solve(&Question { measures: vec![any_core], ..Question::new(&net, When::At(times(&table))) }).expect("it can be solved");
    let column = |name: &str| net.place(name).unwrap_or(net.places().len());
    for (row, values) in table.rows.iter().zip(&answer.values) {
        for (name, expected) in table.columns.iter().zip(row).skip(1) {
            let error = (values[column(name)] - expected).abs();
            assert!(error <= 1e-9, "{name} at {}: {error:e} beside an estimate of {:e}", row[0], answer.error());
        }
    }
}

/// Means of several measures over time, beside those of 40 or 10 million simulated runs: within five standard errors and the estimate.
fn check_simulated(text: &str, curves: &str, error: f64, step: usize) {
    let (net, table) = (net(text), table(curves));
    let messages: f64 = net.places().iter().map(|place| f64::from(place.initial)).sum();
    let rows: Vec<&Vec<f64>> = table.rows.iter().step_by(step).collect();
    let measures = ["Publisher", "Request_Queue", "Active_Threads", "Ready_to_Send", "Subscriber"];
    let all = Measure::parse(&format!("Subscriber == {messages}"), &net).expect("it is right");
    let question = Question { measures: vec![all], error, ..Question::new(&net, When::At(rows.iter().map(|row| row[0]).collect())) };
    let answer = solve(&question).expect("it can be solved");
    let runs = if messages > 4.0 { 1e7 } else { 4e7 };
    for (row, values) in rows.iter().zip(&answer.values) {
        let tokens = |name: &str| values[net.place(name).expect("it is a place")] / messages;
        let [publisher, queue, threads, ready, delivered] = measures.map(tokens);
        let left =
            [1.0 - publisher, 1.0 - publisher - queue, 1.0 - publisher - queue - threads, ready + delivered, delivered, 0.0, values[9]];
        for (index, (found, expected)) in left.into_iter().zip(&row[1..]).enumerate().filter(|(index, _)| *index != 5) {
            // A fraction of messages that are not independent varies no more than one event of that probability.
            let deviation = (expected * (1.0 - expected) / runs).sqrt() + 1.0 / runs;
            let allowed = 5.0 * deviation + answer.error();
            assert!((found - expected).abs() <= allowed, "{} column {} at {}: {found} and {expected}", net.name(), index + 1, row[0]);
        }
    }
}

#[test]
fn four_events_follow_the_simulated_curves() {
    check_simulated(
        include_str!("../../../vectors/petri/nets/event_handler_k4_p4_c4_ss.json"),
        include_str!("../../../vectors/petri/curves/event_handler_k4_p4_c4_ss.csv"),
        1e-4,
        4,
    );
}

#[test]
fn four_events_in_flight_at_once_follow_the_simulated_curves() {
    check_simulated(
        include_str!("../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json"),
        include_str!("../../../vectors/petri/curves/event_handler_k4_p4_c4_is.csv"),
        1e-4,
        4,
    );
}

#[test]
fn one_event_of_real_shapes_has_the_mean_of_its_parts() {
    let text = include_str!("../../../vectors/petri/nets/event_handler_k1.json");
    let text = text
        .replace("\"erlang\"", "\"gamma\"")
        .replace("\"shape\": 13,", "\"shape\": 13.235,")
        .replace("\"shape\": 6,", "\"shape\": 6.235,");
    let net = net(&text);
    let times: Vec<f64> = (0..=4_000).map(|index| f64::from(index) * 0.01).collect();
    let answer = solve(&Question { error: 1e-8, ..Question::new(&net, When::At(times.clone())) }).expect("it can be solved");
    assert_eq!(answer.method, Method::Sequential);
    // The mean of the time to the end is the area above its distribution function (Simpson's rule).
    let subscriber = net.place("Subscriber").expect("it is a place");
    let above: Vec<f64> = answer.values.iter().map(|values| 1.0 - values[subscriber]).collect();
    let area: f64 = above.windows(3).step_by(2).map(|cells| (cells[0] + 4.0 * cells[1] + cells[2]) * 0.01 / 3.0).sum();
    let mean = 13.235 / 2.088 + 0.5 + 6.235 / 2.683;
    assert!((area - mean).abs() < 1e-7, "{area} and {mean}");
    let ticks = Question { error: 1e-7, method: Some(Method::Lattice), ..Question::new(&net, When::At(vec![5.0, 8.0, 12.0])) };
    let ticks = solve(&ticks).expect("it can be solved");
    for (time, values) in [500, 800, 1_200].into_iter().zip(&ticks.values) {
        let difference = (values[subscriber] - answer.values[time][subscriber]).abs();
        assert!(difference <= ticks.error() + answer.error(), "two methods at {}: {difference:e}", times[time]);
    }
}
