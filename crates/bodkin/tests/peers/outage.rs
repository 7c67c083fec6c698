//! Nodes on one database and edges of a fleet, with their links and servers, under drawn faults: no promise is broken.

use std::process::Command;

use serde_json::Value;

use crate::fleet::program;
use crate::postgres::server::Server;
use crate::support::cloud::BINARY;
use crate::support::skip;

/// Seed of the faults.
const SEED: &str = "7";
const FAULTS: &str = "20";
/// All faults but one: a full disk needs a disk of its own.
const KINDS: &str = "kill-node,kill-edge,stop-node,stop-edge,restart-node,restart-edge,cut-database,cut-node,cut-edge,stall-database,\
    stall-node,stall-edge,crash-database,crash-nats,clone-node,clone-edge,restore-node,restore-edge";

#[test]
#[ignore = "peer: ./x test --all"]
fn drawn_outages_break_no_promise() {
    const TEST: &str = "drawn_outages_break_no_promise";
    if program(TEST).is_none() {
        return;
    }
    if Server::start().is_none() {
        return skip::note(TEST, "no PostgreSQL server");
    }
    eprintln!("seed {SEED}");
    let logs = tempfile::tempdir().expect("a temporary directory").keep();
    let mut command = Command::new(BINARY);
    command
        .args([
            "--output",
            "json",
            "bench",
            "outage",
            "--faults",
            FAULTS,
            "--fault",
            KINDS,
            "--seed",
            SEED,
            "--seconds",
            "0.5",
            "--tls",
            "--logs",
        ])
        .arg(&logs);
    let output = command.output().expect("the binary starts");
    // Shown if the test fails: the seed repeats the faults.
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "the campaign fails: see above");
    // Logs stay only if there are some: a directory with entries is not removed.
    let _ = std::fs::remove_dir(&logs);
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report is one JSON document");
    assert_eq!(report["breaches"], 0, "{:#}", report["notes"]);
    assert_eq!(report["faults"], 20, "{report:#}");
}
