//! The part of the load laboratory with topics that have periods, in miniature: it runs, everything that was published is accounted for, and the report
//! has what the works' tables have. How fast anything is, these tests do not say.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::arrowhead::{list, number};
use crate::support::cloud::BINARY;

fn bench(line: &str) -> Output {
    Command::new(BINARY).args(["--output", "json", "bench"]).args(line.split_whitespace()).output().expect("the binary starts")
}

#[track_caller]
fn report(line: &str) -> Value {
    let output = bench(line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a report is one JSON document")
}

#[test]
fn events_over_zmtp_stand_beside_the_bare_relay() {
    let report = report("zmtp --scenario C --rate 20,50 --seconds 1 --repeat 1");
    let outcomes = list(&report, "/outcomes");
    let labels: Vec<&str> = outcomes.iter().filter_map(|outcome| outcome["label"].as_str()).collect();
    assert_eq!(labels[..2], ["broker, 200 events/s", "relay, 200 events/s"]);
    assert_eq!(labels.len(), 6);
    for (outcome, deliveries) in [(0, 2000), (1, 2000), (3, 5000), (4, 5000)] {
        let outcome = &outcomes[outcome];
        assert_eq!((number(outcome, "/deliveries_per_s"), number(outcome, "/lost")), (deliveries, 0), "{outcome}");
    }
    assert!(report["ratios"]["p50_ratio, 500 events/s"].is_number(), "{}", report["ratios"]);
}

#[test]
fn a_table_of_topics_goes_on_where_it_was_cut() {
    let place = TempDir::new().expect("a temporary directory");
    let state = place.path().join("rows");
    let line = |runs| {
        format!("frame --topics 60 --configurations pub-sub --seconds 2 --warm-up-seconds 1 --runs {runs} --state {}", state.display())
    };
    let rows = || fs::read_to_string(&state).expect("written").lines().count();
    let first = report(&line(1));
    assert_eq!(rows(), 1);
    let again = report(&line(2));
    assert_eq!(rows(), 2, "what was measured is not measured again");
    let outcome = |report: &Value| list(report, "/outcomes")[0].clone();
    assert_eq!(outcome(&again)["label"], "pub-sub, 60 topics, no fault");
    assert_eq!(outcome(&again)["repeats"]["p50_us"]["values"][0], outcome(&first)["repeats"]["p50_us"]["values"][0]);
    for key in ["/c0_loss_success_percent", "/c5_loss_success_percent"] {
        assert_eq!(number(&outcome(&again), key), 100);
    }
    assert_eq!(number(&outcome(&again), "/lost"), 0);
}

/// One run of each table that needs a pair. That nothing was lost by a crash is for other tests: here a node may be fenced by a busy machine as well.
#[test]
fn the_tables_of_a_pair_have_the_papers_columns() {
    let frame = report("frame --topics 60 --configurations bodkin,frame-plus --fault crash --seconds 3 --warm-up-seconds 1 --runs 1");
    for (outcome, label) in
        list(&frame, "/outcomes").iter().zip(["bodkin, 60 topics, Primary killed", "frame-plus, 60 topics, Primary killed"])
    {
        assert_eq!(outcome["label"], label);
        let figures =
            ["c2_loss_success_percent", "c2_latency_success_percent", "c0_peak_after_crash_ms", "cover_gap_ms", "backup_cpu_percent"];
        assert!(figures.iter().all(|key| outcome[*key].is_number()), "{outcome}");
    }
    let arrec = report(
        "arrec --topics 320 --strategies all,periodic-25 --groups small --processing-us 1 --fault none --seconds 2 --warm-up-seconds 1 --runs 1",
    );
    let outcomes = list(&arrec, "/outcomes");
    assert_eq!(outcomes[0]["label"], "all, small groups, quick recovery, 1 us, 320 topics, no fault");
    assert!(outcomes.iter().all(|outcome| outcome["c1_p99_ms"].is_number() && outcome["c5_longest_run"].is_number()), "{arrec}");
    let saved = "replication traffic saved against periodic-25, percent: all, small groups, quick recovery, 1 us, 320 topics, no fault";
    // A pair that a busy machine has parted says nothing to its other half.
    let is_compared = outcomes.iter().all(|outcome| outcome["replication_mbit_per_s"].as_f64().is_some_and(|traffic| traffic > 0.0));
    assert!(!is_compared || arrec["ratios"][saved].is_number(), "{arrec}");
    assert!(
        list(&arrec, "/published")
            .iter()
            .any(|published| published["source"].as_str().is_some_and(|source| source.contains("section 4.7")))
    );
}

#[test]
fn what_a_backup_keeps_that_is_told_nothing_comes_again() {
    let line = "frame --topics 60 --configurations fcfs,fcfs-minus --fault crash --seconds 3 --warm-up-seconds 1 --runs 1";
    let frame = report(line);
    let again: Vec<i64> = list(&frame, "/outcomes").iter().map(|outcome| number(outcome, "/duplicates")).collect();
    assert!(again[1] > again[0] && again[1] > 60, "{again:?}");
}

#[test]
fn only_the_subscriber_in_the_cloud_waits_for_its_way() {
    let frame = report("frame --topics 60 --configurations bodkin --cloud --fault none --seconds 2 --warm-up-seconds 1 --runs 1");
    let outcome = &list(&frame, "/outcomes")[0];
    assert_eq!(outcome["label"], "bodkin, cloud, 60 topics, no fault");
    let least_ms = |category: u32| outcome[format!("c{category}_p50_ms")].as_f64().expect("a figure");
    assert!(least_ms(5) >= 5.0, "{outcome}");
    assert_eq!((number(outcome, "/c0_loss_success_percent"), number(outcome, "/c5_loss_success_percent")), (100, 100));
}

#[test]
fn events_are_kept_in_memory_in_the_log_and_on_the_disk() {
    let report = report("durable --publishers 2 --rate 50 --seconds 1 --repeat 1");
    let outcomes = list(&report, "/outcomes");
    let labels: Vec<&str> = outcomes.iter().filter_map(|outcome| outcome["label"].as_str()).collect();
    let expected =
        ["in memory", "appended", "synced", "one flush of the disk", "one flush of the disk, at the pace of the events", "run by run"]
            .map(|what| format!("{what}, 2 publishers"));
    assert_eq!(labels, expected);
    for outcome in &outcomes[..3] {
        assert_eq!((number(outcome, "/events"), number(outcome, "/refused")), (100, 0), "{outcome}");
        assert_eq!(number(outcome, "/kept_percent"), 100, "{outcome}");
    }
    assert!(report["ratios"]["appended_p50_ratio, 2 publishers"].is_number(), "{report}");
}

#[test]
fn a_covered_event_stands_beside_a_chain_of_hops() {
    let report = report("cover --rate 100 --seconds 2 --repeat 1");
    let labels: Vec<&str> = list(&report, "/outcomes").iter().filter_map(|outcome| outcome["label"].as_str()).collect();
    assert_eq!(labels, ["pair", "chain", "pair to chain, run by run"]);
    let chain = &list(&report, "/outcomes")[1];
    assert!((199..=200).contains(&number(chain, "/events")), "{chain}");
    assert!(report["ratios"]["p50_ratio"].is_number(), "{report}");
}
