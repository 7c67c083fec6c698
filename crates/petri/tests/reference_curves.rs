//! The thesis's nets against curves that were computed apart from this engine, with 60 digits: see `vectors/petri/README.md`.

use bodkin_petri::{
    format::json,
    measure::Measure,
    net::Net,
    solve::{Answer, Question, When, solve},
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
