//! A pair in network namespaces, whose cables are pulled and whose processes die: nothing that was promised is broken. How fast, this test does not say.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::cloud::BINARY;
use crate::support::skip;

/// Long beside the stalls of a busy machine, so that nobody is replaced who should not be.
const TIMES: [&str; 8] = ["--lease-ms", "400", "--heartbeat-ms", "40", "--detect-jitter-ms", "200", "--redirect-ms", "400"];
const FAULTS: &str = "none,kill,host-loss,stop-1ms,stop-20ms,stop-200ms,cut-pair,cut-publishers,cut-leader,kill-witness,kill-backup";

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
    let mut command = Command::new(BINARY);
    command.args(["--output", "json", "bench", "crash", "--times", "1", "--streams", "2", "--fault", FAULTS]).args(TIMES);
    let output = command.output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report is one JSON document");
    let outcomes = report["outcomes"].as_array().expect("one for each fault");
    assert_eq!(outcomes.len(), FAULTS.split(',').count());
    for outcome in outcomes {
        for figure in ["broken_promises", "l0_covered_and_lost", "not_taken", "excess"] {
            assert_eq!(outcome[figure], 0, "{figure} of {}: {outcome:#}", outcome["label"]);
        }
        assert!(outcome["l0_published"].as_u64().is_some_and(|published| published > 100), "{outcome:#}");
    }
}
