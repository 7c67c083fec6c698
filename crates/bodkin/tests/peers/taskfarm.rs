//! The C library's use cases on the emulated radio, with lwIP's TCP: all that there is is counted, and tasks of a real grain scale.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::cloud::BINARY;
use crate::support::skip;

const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../zmtp-c");

/// Runs `bench taskfarm` with these words; nothing without lwIP, which is noted.
fn report(test: &str, line: &str) -> Option<Value> {
    let has_lwip = Command::new("pkg-config").args(["--exists", "lwip"]).status().is_ok_and(|status| status.success());
    if !has_lwip {
        skip::note(test, "no lwIP is installed");
        return None;
    }
    let mut command = Command::new(BINARY);
    command.args(["--output", "json", "bench", "taskfarm", "--library"]).arg(Path::new(LIBRARY)).args(line.split(' '));
    let output = command.output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("a report is one JSON document"))
}

#[test]
#[ignore = "peer: ./x test --all"]
fn both_use_cases_count_all_there_is_in_every_form_and_a_seed_repeats_a_run() {
    const TEST: &str = "both_use_cases_count_all_there_is_in_every_form_and_a_seed_repeats_a_run";
    let line = "--part tables --workers 4 --repeat 1 --loss 3% --seed 7 --threshold failed<1";
    let Some(once) = report(TEST, line) else { return };
    assert_eq!(once["runs"], 6 + 6 + 6 + 4 + 1, "prime count in three forms, word count in four allocations and by the farm");
    let tables = once["comparisons"].as_array().expect("the thesis' tables and what it took");
    assert_eq!(tables.len(), 4, "with four workers alone there is no speed-up to tell of: {tables:#?}");
    let again = report(TEST, line).expect("it has run once");
    assert_eq!(once["comparisons"], again["comparisons"]);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_message_of_the_original_form_is_a_segment() {
    const TEST: &str = "a_message_of_the_original_form_is_a_segment";
    let line = "--part tables --form original --workers 1 --repeat 1 --loss 0% --threshold failed<1";
    let Some(report) = report(TEST, line) else { return };
    let took = report["comparisons"].as_array().and_then(|tables| tables.last()).expect("what it took");
    let column = |name: &str| took["columns"].as_array().expect("columns").iter().position(|column| column == name).expect(name);
    let [messages, segments] = ["messages", "with data"].map(column);
    let rows: Vec<&Value> =
        took["rows"].as_array().expect("rows").iter().filter(|row| row["what"].as_str().unwrap().starts_with("primes")).collect();
    assert_eq!(rows.len(), 5);
    for row in rows {
        let figure = |column: usize| row["figures"][column].as_f64().expect("a figure");
        // Either end's greeting and READY are one more.
        assert!((figure(segments) - figure(messages) - 2.0).abs() < 0.5, "{row:#}");
    }
}

/// What thirty-two stations want to say at once takes the channel more than a minute, and TCP's timers with it: nobody goes before it has arrived.
#[test]
#[ignore = "peer: ./x test --all"]
fn all_that_thirty_two_workers_have_found_arrives() {
    const TEST: &str = "all_that_thirty_two_workers_have_found_arrives";
    report(TEST, "--part beyond --form original --workers 32 --repeat 1 --threshold failed<1");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn tasks_of_200_ms_are_done_by_ten_workers_at_90_percent_efficiency() {
    const TEST: &str = "tasks_of_200_ms_are_done_by_ten_workers_at_90_percent_efficiency";
    report(TEST, "--part grain --workers 1,10 --repeat 3 --threshold failed<1 --threshold efficiency_percent>90");
}
