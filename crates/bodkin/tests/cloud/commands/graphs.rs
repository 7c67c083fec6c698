//! `bodkin graph`: what a graph file says, whether it is in time, and its picture.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{bodkin, done, ended, json as printed_json, text};
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

/// The graph with the spectrum at the press and the rest in the office.
fn over_two_edges() -> String {
    let edges = "[[edge]]\nname = \"press\"\nway_ms = 2\n\n[[edge]]\nname = \"office\"\n\n[[link]]\nfrom = \"spectrum\"\ntopic = \"spectra\"\ndeadline_ms = 3\n";
    GRAPH.replace("name = \"loud\"\n", "name = \"loud\"\nedge = \"office\"\n").replace("deadline_us = 500", "deadline_us = 2500") + edges
}

#[test]
fn check_adds_up_what_several_edges_take_and_says_what_would_be_better() {
    let output = graph(&["check", "--output", "json"], &over_two_edges());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let link = json!({"topic": "SPECTRA", "from": "spectrum", "edge": "press", "to": ["office"], "response_us": 2400, "deadline_us": 3000, "feasible": true});
    assert_eq!((&found["links"], &found["outputs"][0]["response_us"], &found["levels"]), (&json!([link]), &json!(2500), &json!([])));
    assert_eq!(found["edges"][1], json!({"edge": "office", "cores": 1, "way_us": 0, "operators": ["loud"], "load_ppm": 10_000}));
    let better = &found["suggestion"];
    assert_eq!(
        (&better["late"], &better["events_per_s"], better["moves"].as_array().map(Vec::len)),
        (&json!(0), &json!(0.0), Some(1)),
        "{better}"
    );
    let output = graph(&["check"], &over_two_edges().replace("deadline_ms = 3", "deadline_us = 2399"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = text(&output.stdout);
    for part in [
        "SPECTRA  spectrum  press  office  2.4 ms      2.399 ms  may be late",
        "better: loud to press",
        "0 would be late instead of 1, 0 events/s go from edge to edge instead of 100",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn each_edge_runs_its_part_of_a_file() {
    let place = TempDir::new().expect("a temporary directory");
    let path = place.path().join("press.toml");
    fs::write(&path, over_two_edges()).expect("written");
    let path = path.to_str().expect("a text");
    let cloud = Launch::new().env("BODKIN_EDGE", "press").start();
    assert_eq!(done(&cloud, &format!("graph deploy {path}")), "deployed: graph press <1> runs\n");
    let listed = printed_json(&cloud, "graph list");
    let graph = &listed["data"][0];
    assert_eq!((&graph["operators"], &graph["outputs"]), (&json!(1), &json!(["SPECTRA"])), "{listed}");
    let elsewhere = Launch::new().start();
    let refused = text(&bodkin(&elsewhere, &format!("graph deploy {path}")).stderr);
    assert!(refused.contains("runs on the edges press, office"), "{refused}");
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
