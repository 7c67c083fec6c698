//! A pair in network namespaces, whose cables are pulled and whose processes die: nothing that was promised is broken. How fast, this test does not say.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::cloud::BINARY;
use crate::support::skip;

/// Long beside the stalls of a busy machine, so that nobody is replaced who should not be.
const TIMES: [&str; 8] = ["--lease-ms", "400", "--heartbeat-ms", "40", "--detect-jitter-ms", "200", "--redirect-ms", "400"];
const FAULTS: &str = "none,kill,host-loss,stop-1ms,stop-20ms,stop-200ms,cut-pair,cut-publishers,cut-leader,kill-witness,kill-backup";
/// Faults with a configuration drawn for every five.
const DRAWN: &str = "30";

/// Whether this machine lets namespaces be made.
pub fn has_namespaces() -> bool {
    let name = format!("bodkin-look-{}", std::process::id());
    let ip =
        |word: &str| Command::new("ip").args(["netns", word, &name]).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    ip("add") && ip("delete")
}

#[test]
#[ignore = "peer: ./x test --all"]
fn nothing_that_was_promised_is_broken_by_a_fault() {
    if !has_namespaces() {
        return skip::note("nothing_that_was_promised_is_broken_by_a_fault", "network namespaces cannot be made here");
    }
    let report = report(&[&["--times", "1", "--streams", "2", "--dealer-only", "--fault", FAULTS][..], &TIMES[..]].concat());
    let outcomes = report["outcomes"].as_array().expect("one for each fault");
    let faults: Vec<&Value> = FAULTS.split(',').map(|fault| labeled(outcomes, fault)).collect();
    for outcome in faults {
        for figure in ["broken_promises", "l0_covered_and_lost", "not_taken", "excess"] {
            assert_eq!(outcome[figure], 0, "{figure} of {}: {outcome:#}\n{:#}", outcome["label"], report["notes"]);
        }
        assert!(outcome["l0_published"].as_u64().is_some_and(|published| published > 100), "{outcome:#}");
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn drawn_faults_break_no_promise_of_any_transport() {
    if !has_namespaces() {
        return skip::note("drawn_faults_break_no_promise_of_any_transport", "network namespaces cannot be made here");
    }
    let report = report(&["--faults", DRAWN]);
    let outcomes = report["outcomes"].as_array().expect("the outcomes of a report");
    let drawn = labeled(outcomes, "drawn faults");
    assert_eq!(drawn["breaches"], 0, "{:#}", report["notes"]);
    let results = &drawn["zmtp_dealer_to_graph"];
    assert!(results.as_u64().is_some_and(|results| results > 0), "{drawn:#}");
    for publisher in ["http_post", "zmtp_req", "zmtp_push", "zmtp_pub", "zmtp_dealer"] {
        for subscriber in ["required_subscriber", "event_stream", "http_callback", "zmtp_sub"] {
            let arrived = &drawn[format!("{publisher}_to_{subscriber}")];
            assert!(arrived.as_u64().is_some_and(|arrived| arrived > 0), "{publisher} to {subscriber}: {drawn:#}");
        }
    }
}

/// The report of a campaign with these options, which prints its seed and its breaches on standard error.
fn report(options: &[&str]) -> Value {
    let mut command = Command::new(BINARY);
    let logs = tempfile::tempdir().expect("a temporary directory").keep();
    command.args(["--output", "json", "bench", "crash", "--logs"]).arg(&logs).args(options);
    let output = command.output().expect("the binary starts");
    // Shown if the test fails: the seed repeats the faults.
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "the campaign fails: see above");
    // Logs stay only if there are some: a directory with entries is not removed.
    let _ = std::fs::remove_dir(&logs);
    serde_json::from_slice(&output.stdout).expect("a report is one JSON document")
}

fn labeled<'o>(outcomes: &'o [Value], label: &str) -> &'o Value {
    outcomes.iter().find(|outcome| outcome["label"] == label).unwrap_or_else(|| panic!("no outcome {label}: {outcomes:#?}"))
}
