//! `bodkin model check, solve, convert`: what a net is, what it will do, and in which forms it is read and written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::text;
use crate::support::cloud::BINARY;

fn model(arguments: &[&str], file: &Path) -> Output {
    let (command, options) = arguments.split_first().expect("there is a command");
    Command::new(BINARY).args(["model", command]).arg(file).args(options).output().expect("the binary starts")
}

fn net(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/petri/nets").join(name)
}

#[track_caller]
fn document(arguments: &[&str], file: &Path) -> Value {
    let output = model(&[arguments, ["--output", "json"].as_slice()].concat(), file);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[test]
fn check_tells_what_a_net_is_made_of() {
    let found = document(&["check"], &net("event_handler_k1.json"));
    assert_eq!(found["timed_transitions"], 6);
    assert_eq!(found["invariants"].as_array().map(Vec::len), Some(1), "{found}");
}

#[test]
fn a_mistake_in_a_net_is_told_with_its_place() {
    let place = TempDir::new().expect("a temporary directory");
    let path = place.path().join("net.json");
    let wrong = fs::read_to_string(net("event_handler_k1.json")).expect("it is there").replacen("\"Publisher\"", "\"Publisher2\"", 1);
    fs::write(&path, wrong).expect("written");
    let output = model(&["check"], &path);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("transition publish, input 1: Publisher is no place of the net"), "{output:?}");
}

#[test]
fn solve_gives_values_errors_and_the_method() {
    let found = document(&["solve", "--at", "258,448.2241038727679", "--measure", "Consumer_End == 1"], &net("intracloud.json"));
    assert_eq!(
        (&found["method"], &found["certainty"], &found["columns"][9]),
        (&json!("markov"), &json!("bound"), &json!("Consumer_End == 1"))
    );
    let error = found["error"].as_f64().expect("a number");
    assert!(error <= 1e-9, "{error}");
    for (row, expected) in [(0, 0.446_433_027_367_218), (1, 0.9995)] {
        let value = found["values"][row][9].as_f64().expect("a number");
        assert!((value - expected).abs() <= 1e-9, "{value} and {expected}");
    }
}

#[test]
fn curves_are_a_line_a_time() {
    let output = model(&["solve", "--transient", "0:5:20", "--output", "csv"], &net("event_handler_k1.json"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = text(&output.stdout);
    assert_eq!((text.lines().count(), text.lines().next().map(|header| header.starts_with("t,Publisher,"))), (6, Some(true)), "{text}");
    assert!(super::text(&output.stderr).contains("method sequential"), "{output:?}");
}

#[test]
fn the_long_run_of_a_chain_is_where_it_ends() {
    let found = document(&["solve", "--steady"], &net("intracloud.json"));
    let end = found["values"][0][8].as_f64().expect("a number");
    assert!((end - 1.0).abs() < 1e-9, "{found}");
}

#[test]
fn a_net_comes_back_the_same_by_way_of_pnml() {
    let place = TempDir::new().expect("a temporary directory");
    let (pnml, json, svg) = (place.path().join("net.pnml"), place.path().join("net.json"), place.path().join("net.svg"));
    let convert = |from: &Path, to: &Path| {
        let output = model(&["convert", to.to_str().expect("a path of words")], from);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    convert(&net("event_handler_k1.json"), &pnml);
    convert(&pnml, &json);
    convert(&pnml, &svg);
    assert!(fs::read_to_string(&svg).expect("it was written").starts_with("<svg"));
    let at = ["solve", "--at", "8"];
    assert_eq!(document(&at, &json)["values"], document(&at, &net("event_handler_k1.json"))["values"]);
}

#[test]
fn csv_is_for_curves_only() {
    let output = model(&["check", "--output", "csv"], &net("intracloud.json"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let output = Command::new(BINARY).args(["doctor", "--output", "csv"]).output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
