//! `bodkin graph`: what a graph file says, whether it is in time, and its picture.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{done, ended, json as printed_json, text};
use crate::support::cloud::{BINARY, Launch};

const GRAPH: &str = r#"
[graph]
name = "press <1>"

[[supplier]]
topic = "vibration"
shape = "i16[512]"
period_ms = 10

[[operator]]
name = "spectrum"
kind = "fft"
inputs = ["vibration"]
spectrum = "magnitude"
cost_us = 400

[[operator]]
name = "loud"
kind = "max"
inputs = ["spectrum"]
cost_us = 100

[[output]]
topic = "loudness"
from = "loud"
deadline_us = 500
"#;

fn graph(arguments: &[&str], file: &str) -> Output {
    let place = TempDir::new().expect("a temporary directory");
    let path = place.path().join("press.toml");
    fs::write(&path, file).expect("written");
    Command::new(BINARY).arg("graph").args(arguments).arg(&path).output().expect("the binary starts")
}

#[test]
fn check_says_how_long_each_output_takes() {
    let output = graph(&["check", "--output", "json"], GRAPH);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let expected = json!([{"topic": "LOUDNESS", "from": "loud", "level": 0, "shape": "f64", "response_us": 500, "deadline_us": 500, "feasible": true}]);
    assert_eq!((&found["outputs"], &found["changes"], &found["levels"][0]["load_ppm"]), (&expected, &json!([]), &json!(50_000)));
}

#[test]
fn an_output_that_may_be_late_is_told_with_what_would_do() {
    let output = graph(&["check"], &GRAPH.replace("deadline_us = 500", "deadline_us = 499"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = text(&output.stdout);
    for part in [
        "may be late",
        "1 of 1 outputs may be late",
        "would do: LOUDNESS: deadline_us = 500",
        "or:       all costs at 99 % of what they are",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn a_mistake_is_told_with_its_place() {
    let output = graph(&["check"], &GRAPH.replace("\"max\"", "\"maximum\""));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("press.toml:19:8: kind must be one of all, any, concatenate, "), "{output:?}");
    let output = graph(&["draw"], "[graph]\nname = 5\n");
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("press.toml:2:8: name must be a text"), "{output:?}");
}

#[test]
fn draw_writes_a_picture() {
    let output = graph(&["draw"], GRAPH);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let picture = text(&output.stdout);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n") && picture.contains("press &lt;1&gt;"), "{picture}");
    for name in ["VIBRATION", "spectrum", "loud", "LOUDNESS"] {
        assert!(picture.contains(&format!(">{name}</text>")), "{name}");
    }
}

#[test]
fn a_graph_is_deployed_listed_and_removed() {
    let place = TempDir::new().expect("a temporary directory");
    let path = place.path().join("press.toml");
    fs::write(&path, GRAPH).expect("written");
    let (cloud, path) = (Launch::new().start(), path.to_str().expect("text"));
    assert_eq!(done(&cloud, &format!("graph deploy {path}")), "deployed: graph press <1> runs\n");
    let listed = printed_json(&cloud, "graph list");
    assert_eq!((&listed["data"][0]["name"], &listed["data"][0]["operators"]), (&json!("press <1>"), &json!(2)));
    assert!(done(&cloud, "graph list").contains("operator"));
    ended(&cloud, "graph remove none", 1);
    fs::write(path, GRAPH.replace("fft", "ftt")).expect("written");
    ended(&cloud, &format!("graph deploy {path}"), 2);
}
