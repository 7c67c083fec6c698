//! `bodkin model fit, simulate, plot`: laws of measured times, curves with intervals, and charts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::text;
use crate::support::cloud::BINARY;

fn model(command: &str, file: &Path, options: &[&str]) -> Output {
    Command::new(BINARY).args(["model", command]).arg(file).args(options).output().expect("the binary starts")
}

fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/petri").join(name)
}

#[track_caller]
fn document(command: &str, file: &Path, options: &[&str]) -> Value {
    let output = model(command, file, &[options, &["--output", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn fit_finds_the_gamma_law_of_the_listing_and_says_that_it_does_not_fit() {
    let listing = vector("listing_6_1.csv");
    let found = document("fit", &listing, &["--family", "gamma", "--family", "erlang", "--resamples", "199"]);
    let gamma = found["fits"].as_array().expect("fits").iter().find(|fitted| fitted["family"] == "gamma").expect("it was asked for");
    assert!((number(&gamma["parameters"]["shape"]) - 10.070_253_82).abs() < 1e-8, "{gamma}");
    assert_eq!(gamma["fits"], false, "{gamma}");
    assert_eq!(found["any_fits"], false);
    assert_eq!(found["outliers"]["values"], serde_json::json!([23.0, 29.0, 91.0]));
    let told = text(&model("fit", &listing, &["--family", "gamma", "--resamples", "199"]).stdout);
    assert!(told.contains("no family fits: each is refused at the level of 0.01"), "{told}");
}

#[test]
fn simulate_gives_the_same_answer_for_any_number_of_threads_and_holds_the_exact_value() {
    let net = vector("nets/event_handler_k1.json");
    let options = |threads| ["--at", "8,12", "--measure", "Subscriber == 1", "--runs", "20000", "--threads", threads];
    let one = document("simulate", &net, &options("1"));
    assert_eq!(document("simulate", &net, &options("2")), one);
    let curve = one["curves"].as_array().expect("curves").last().expect("the measure").clone();
    assert_eq!(curve["name"], "Subscriber == 1");
    // The exact curve at 8 and 12 ms.
    for (estimate, exact) in curve["estimates"].as_array().expect("estimates").iter().zip(exact_subscriber(&["8", "12"])) {
        assert!(number(&estimate["low"]) <= exact && exact <= number(&estimate["high"]), "{estimate} for {exact}");
    }
}

fn exact_subscriber(times: &[&str]) -> Vec<f64> {
    let curve = fs::read_to_string(vector("curves/event_handler_k1.csv")).expect("it is there");
    let row = |time: &&str| {
        let row = curve.lines().find(|line| line.split(',').next() == Some(*time)).expect("the time is in the table");
        row.split(',').next_back().expect("a column").parse().expect("a number")
    };
    times.iter().map(row).collect()
}

#[test]
fn simulate_tells_times_until_a_condition_and_of_single_tokens() {
    let net = vector("nets/event_handler_k4_p4_c4_ss.json");
    let options = ["--at", "60", "--until", "Subscriber == 4", "--response", "publish:Subscriber", "--runs", "5000"];
    let found = document("simulate", &net, &options);
    let mean = &found["until"]["mean"];
    assert!((number(&mean["value"]) - 27.652).abs() < 4.0 * 3.58 / 5000_f64.sqrt(), "{mean}");
    let mean = &found["response"]["mean"];
    assert!((number(&mean["value"]) - 8.9706).abs() < 4.0 * 1.97 / 20_000_f64.sqrt(), "{mean}");
    let csv = text(&model("simulate", &net, &["--transient", "0:10:20", "--runs", "100", "--output", "csv"]).stdout);
    assert!(csv.starts_with("t,Publisher,Publisher_low,Publisher_high,"), "{csv}");
    assert_eq!(csv.lines().count(), 4, "a header and three times");
}

#[test]
fn simulate_says_when_its_intervals_stay_too_wide() {
    let net = vector("nets/event_handler_k1.json");
    let output = model("simulate", &net, &["--at", "8", "--half-width", "0.0001", "--runs", "1000"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stderr).contains("more --runs make it narrower"), "{output:?}");
}

#[test]
fn simulate_compares_a_condition_with_a_sum_of_known_law_and_says_so() {
    let net = vector("nets/event_handler_k10_p4_c4_ss.json");
    let options = ["--at", "60,65,70", "--measure", "Subscriber == 10", "--half-width", "0.006", "--threads", "2"];
    let found = document("simulate", &net, &options);
    let control = &found["controls"][0];
    let expected = serde_json::json!(["Subscriber == 10", "publish", 10]);
    assert_eq!(serde_json::json!([control["condition"], control["transition"], control["delays"]]), expected, "{found}");
    let curve = fs::read_to_string(vector("curves/event_handler_k10_p4_c4_ss.csv")).expect("it is there");
    let exact = |time: &str| {
        let row = curve.lines().find(|line| line.split(',').next() == Some(time)).expect("the time is in the table");
        row.split(',').nth(7).expect("a column").parse::<f64>().expect("a number")
    };
    let measured = found["curves"].as_array().expect("curves").last().expect("the measure").clone();
    for (estimate, time) in measured["estimates"].as_array().expect("estimates").iter().zip(["60", "65", "70"]) {
        let exact = exact(time);
        // The table is of 10 million runs: three standard deviations are 5e-4.
        assert!(number(&estimate["low"]) - 5e-4 <= exact && exact <= number(&estimate["high"]) + 5e-4, "{estimate} for {exact} at {time}");
    }
    let told = text(&model("simulate", &net, &options).stdout);
    assert!(told.contains("Subscriber == 10: with 10 delays of publish and"), "{told}");
}

#[test]
fn a_rare_event_is_found_by_splitting() {
    let place = TempDir::new().expect("a temporary directory");
    let net = place.path().join("queue.json");
    let content = r#"{"schema": "stpn-neutral-1", "name": "queue", "time_unit": "s", "places": [{"id": "Queue", "initial": 1}], "transitions": [
        {"id": "arrive", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "outputs": [{"place": "Queue"}]},
        {"id": "serve", "kind": "timed", "distribution": {"type": "exponential", "rate": 3}, "inputs": [{"place": "Queue"}]}]}"#;
    fs::write(&net, content).expect("written");
    let options =
        ["--at", "1e6", "--until", "Queue >= 12", "--rare", "Queue", "--levels", "2:1:11", "--stop", "Queue == 0", "--particles", "500"];
    let found = document("simulate", &net, &[&options[..], &["--within", "15"]].concat());
    // The gambler's ruin.
    let exact = 2.0 / (3_f64.powi(12) - 1.0);
    let probability = &found["probability"];
    assert!(number(&probability["low"]) <= exact && exact <= number(&probability["high"]), "{probability} for {exact}");
    assert!(number(&probability["high"]) <= 1.15 * number(&probability["value"]), "{probability}");
    let output = model(
        "simulate",
        &net,
        &[&options[..6], &["--levels", "6:1:6", "--stop", "Queue == 0", "--particles", "1", "--within", "1e-9"]].concat(),
    );
    assert_eq!(output.status.code(), Some(4), "60,000 replicates of a particle are no such interval: {output:?}");
}

#[test]
fn charts_are_written_as_svg_and_as_a_page() {
    let place = TempDir::new().expect("a temporary directory");
    let net = vector("nets/event_handler_k1.json");
    for (name, options) in
        [("curves.svg", &["--transient", "0:1:20"][..]), ("bands.html", &["--transient", "0:1:20", "--simulate", "--runs", "500"])]
    {
        let out = place.path().join(name);
        let output = Command::new(BINARY).args(["model", "plot"]).arg(&net).arg(&out).args(options).output().expect("the binary starts");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let drawn = fs::read_to_string(&out).expect("written");
        assert!(drawn.contains("<polyline") && drawn.contains("Ready_to_Send"), "{drawn}");
        assert_eq!(drawn.contains("<polygon"), name == "bands.html", "bands where it was simulated");
    }
    let out = place.path().join("fit.html");
    let plot = out.to_str().expect("a name");
    document("fit", &vector("listing_6_1.csv"), &["--family", "gamma", "--resamples", "0", "--plot", plot]);
    assert_eq!(fs::read_to_string(&out).expect("written").matches("<svg").count(), 3);
}
