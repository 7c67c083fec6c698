//! `bodkin model peers`: other programs beside Bodkin, of which a test has none but what it writes itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::cloud::BINARY;

fn peers(place: &Path, storm: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["--output", "json", "model", "peers", "--sirio"]).arg(place.join("nothing")).arg("--storm").arg(place.join(storm));
    command.args(arguments).output().expect("the binary starts")
}

#[test]
fn programs_are_held_against_bodkins_own_values_and_what_is_not_there_is_told() {
    let place = TempDir::new().expect("a temporary directory");
    // A program that says what it was asked, and that one message has a half of itself at the subscriber at any time.
    let script = "#!/bin/sh\ngrep -q '^place Publisher 1$' \"$1\" || exit 5\n[ \"$2 $3 $4\" = '0.1 20 Subscriber' ] || exit 6\nprintf 't,Subscriber\\n0,0.5\\n20,0.5\\n'\n";
    fs::write(place.path().join("half.sh"), script).expect("written");
    let output = peers(place.path(), "half.sh", &["--cases", "event-handler-k1", "--python", "sh"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let rows: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let [bodkin, sirio, storm] = &rows.as_array().expect("rows")[..] else { panic!("a row for each program: {rows}") };
    assert_eq!((bodkin["program"].as_str(), bodkin["off"].as_f64()), (Some("bodkin"), Some(1e-9)), "{rows}");
    assert!(bodkin["cpu_s"].as_f64().is_some_and(|cpu_s| cpu_s > 0.0), "{rows}");
    assert!(sirio["told"].as_str().is_some_and(|told| told.contains("no pom.xml")) && sirio["cpu_s"].is_null(), "{rows}");
    // Nearly all of it is there after 20 ms, and none at first.
    assert!(storm["off"].as_f64().is_some_and(|off| (0.49..=0.5).contains(&off)), "{rows}");

    let output = peers(place.path(), "missing.py", &["--cases", "event-handler-k1", "--python", "/no/python"]);
    let rows: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert!(rows[2]["told"].as_str().is_some_and(|told| told.contains("/no/python does not start")), "{rows}");
}

#[test]
fn what_was_asked_of_the_engine_is_measured() {
    let cases = "event-handler-1,event-handler-1-gamma,rare,gamma-fit";
    let output = Command::new(BINARY).args(["model", "bench", "--only", cases, "--output", "json"]).output().expect("the binary starts");
    // A build for development may miss a time; no answer is another code.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    let rows: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.iter().filter_map(|row| row["case"].as_str()).collect::<Vec<_>>().join(","), cases);
    for row in rows {
        assert!(row["cpu_s"].as_f64().is_some_and(|time| time > 0.0) && row["largest_mb"].as_f64().is_some_and(|size| size > 1.0), "{row}");
    }
    assert!(rows[0]["told"].as_str().is_some_and(|told| told.contains("estimate of sequential")), "{}", rows[0]);
    assert_eq!(rows[2]["met"], true, "no time was asked of it: {}", rows[2]);
    assert!(rows[3]["told"].as_str().is_some_and(|told| told.contains("shape 10.0702538")), "{}", rows[3]);
    assert_eq!(rows[3]["met"], true, "{}", rows[3]);
    let output = Command::new(BINARY).args(["model", "bench", "--only", "all"]).output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
