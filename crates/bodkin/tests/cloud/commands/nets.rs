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
    let (header, line) = (text.lines().next().expect("a header"), text.lines().nth(2).expect("a line"));
    let column = |name: &str| header.split(',').position(|other| other == name).and_then(|index| line.split(',').nth(index)).expect(name);
    assert_eq!((column("t"), column("method"), column("certainty")), ("5", "sequential", "estimate"), "{text}");
    let error: f64 = column("Subscriber_error").parse().expect("a number");
    assert!(error > 0.0 && error <= 1e-9, "{error}");
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

#[test]
fn how_long_a_token_takes_is_computed_with_a_bound() {
    let place = TempDir::new().expect("a temporary directory");
    let path = place.path().join("queue.json");
    let exponential = |id: &str, rate: f64, from: &str, to: &str| json!({ "id": id, "kind": "timed", "distribution": { "type": "exponential", "rate": rate }, "inputs": [{ "place": from }], "outputs": [{ "place": to }] });
    let queue = json!({
        "schema": "stpn-neutral-1", "name": "queue", "time_unit": "ms",
        "places": [{ "id": "room", "initial": 50 }, { "id": "waiting", "initial": 0 }, { "id": "served", "initial": 0 }],
        "transitions": [exponential("arrive", 1.0, "room", "waiting"), exponential("serve", 2.0, "waiting", "served"), exponential("leave", 1e3, "served", "room")],
    });
    fs::write(&path, queue.to_string()).expect("written");
    let found = document(&["solve", "--response", "waiting:served", "--transient", "0:1:3"], &path);
    assert!(found["error"].as_f64().expect("an error") <= 1e-9 && found["certainty"] == "bound", "{found}");
    for (time, share) in found["shares"].as_array().expect("a share for each time").iter().enumerate() {
        let (share, expected) = (share.as_f64().expect("a number"), 1.0 - (-(time as f64)).exp());
        assert!((share - expected).abs() < 1e-6, "by {time}: {share} and {expected}");
    }
    let found = document(&["solve", "--response", "waiting:served", "--quantile", "0.99"], &path);
    let high = found["quantiles"][0]["high"].as_f64().expect("a number");
    assert!((high - 100_f64.ln()).abs() < 1e-5 && (found["mean"]["value"].as_f64().expect("a mean") - 1.0).abs() < 1e-6, "{found}");
    for (options, code, told) in [
        (
            ["solve", "--response", "serve:served", "--at", "1"].as_slice(),
            2,
            "serve is a transition, and a time is computed from place to place",
        ),
        (&["solve", "--response", "waiting", "--at", "1"], 2, "FROM:TO is expected"),
        (&["solve", "--response", "waiting:elsewhere", "--at", "1"], 2, "elsewhere is no place"),
        (&["solve", "--quantile", "0.5"], 2, "--quantile is one of the time of --until or of --response"),
        (&["solve", "--response", "waiting:served", "--begin", "first", "--at", "1"], 1, "place waiting: it holds no token at time 0"),
    ] {
        let output = model(options, &path);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {output:?}");
        assert!(text(&output.stderr).contains(told), "{options:?}: {output:?}");
    }
}

#[test]
fn of_a_document_of_several_nets_one_is_asked_for() {
    let place = TempDir::new().expect("a temporary directory");
    let path = place.path().join("nets.pnml");
    let net = |id: &str, kind: &str, tokens: u32| {
        format!(
            "<net id=\"{id}\" type=\"http://www.pnml.org/version-2009/grammar/{kind}\"><name><text>{id}</text></name><toolspecific tool=\"drawn by\" version=\"1\"/>\
             <place id=\"p\"><initialMarking><text>{tokens}</text></initialMarking></place><transition id=\"t\"/><arc id=\"a\" source=\"p\" target=\"t\"/></net>"
        )
    };
    fs::write(&path, format!("<pnml>{}{}{}</pnml>", net("one", "ptnet", 1), net("two", "ptnet", 2), net("coloured", "symmetricnet", 0)))
        .expect("written");
    let output = model(&["check"], &path);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        text(&output.stderr).contains("3 nets: one, two, coloured; expected one of them to be chosen by its id (--net ID)"),
        "{output:?}"
    );
    let solved = document(&["solve", "--net", "two", "--at", "0"], &path);
    assert_eq!((&solved["net"], &solved["values"][0][0]), (&json!("two"), &json!(2.0)));
    let told = text(&model(&["check", "--net", "one"], &path).stderr);
    assert!(told.contains("passed over: what drawn by says for itself, 1 times"), "{told}");
    let output = model(&["check", "--net", "coloured"], &path);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("expected a place/transition net"), "{output:?}");
    let output = model(&["check", "--net", "one"], &self::net("event_handler_k1.json"));
    assert!(text(&output.stderr).contains("--net is for PNML documents of several"), "{output:?}");
}

#[test]
fn a_net_of_oris_is_solved_as_it_is() {
    let path = net("../oris/event_handler_k1.xpn");
    let at = ["solve", "--at", "8"];
    assert_eq!(document(&at, &path)["values"], document(&at, &net("event_handler_k1.json"))["values"]);
}

#[test]
fn a_number_that_is_none_of_an_option_is_told_well() {
    for (options, told) in [
        (["simulate", "--at", "5", "--half-width", "-1"].as_slice(), "the half-width is -1; expected a number above 0"),
        (&["simulate", "--at", "5", "--confidence", "-0.5"], "the confidence is -0.5; expected a number above 0 and below 1"),
        (&["simulate", "--at", "-5"], "-5 is no time; a number from 0 is expected"),
        (&["simulate", "--at", "5", "--runs", "-7"], "invalid value '-7' for '--runs <N>'"),
        (&["solve", "--at", "-1,2"], "-1 is no time; a number from 0 is expected"),
        (&["solve", "--at", "1", "--error", "-0.5"], "--error is -0.5; expected a number above 0 and below 1"),
        (&["solve", "--transient", "-1:1:5"], "-1 is no time; a number from 0 is expected"),
    ] {
        let output = model(options, &net("event_handler_k1.json"));
        assert_eq!(output.status.code(), Some(2), "{options:?}: {output:?}");
        assert!(text(&output.stderr).contains(told), "{options:?}: {output:?}");
    }
}
