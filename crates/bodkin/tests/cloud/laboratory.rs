//! The load laboratory in miniature: every experiment runs once, against its own server or a given one, and its report is
//! what was asked for. How fast anything is, these tests do not say.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::arrowhead::{list, number};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::skip;

/// Exit code of a bench that ran and missed a threshold.
const THRESHOLD_MISSED: i32 = 4;

/// Runs `bodkin bench` with the words of `line`; `FILE:x` becomes a file x in the directory.
fn bench(place: &TempDir, line: &str) -> Output {
    let word = |word: &str| match word.strip_prefix("FILE:") {
        Some(name) => place.path().join(name).to_str().expect("text").to_string(),
        None => word.to_string(),
    };
    let arguments = line.split_whitespace().map(word);
    Command::new(BINARY).args(["--output", "json", "bench"]).args(arguments).output().expect("the binary starts")
}

/// The report of an experiment that ran.
#[track_caller]
fn report(line: &str) -> Value {
    let place = TempDir::new().expect("a temporary directory");
    let output = bench(&place, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a report is one JSON document")
}

/// The outcome with this label.
#[track_caller]
fn outcome<'a>(report: &'a Value, label: &str) -> &'a Value {
    let outcomes = list(report, "/outcomes").iter();
    let found = outcomes.clone().find(|outcome| outcome["label"] == label);
    found.unwrap_or_else(|| panic!("no outcome {label} among {:?}", outcomes.map(|outcome| &outcome["label"]).collect::<Vec<_>>()))
}

#[test]
fn every_kind_of_load_is_answered_without_errors() {
    for operation in ["register", "unregister", "query", "authorize", "orchestrate", "list", "token", "subscribe", "unsubscribe"] {
        let report = report(&format!("{operation} --simultaneous 5,10 --repeat 2 --services 10"));
        let outcomes = list(&report, "/outcomes");
        let answered: Vec<i64> = outcomes.iter().map(|outcome| number(outcome, "/answered")).collect();
        let errors: Vec<i64> = outcomes.iter().map(|outcome| number(outcome, "/errors")).collect();
        assert_eq!((answered, errors), (vec![10, 20], vec![0, 0]), "{operation}");
    }
}

#[test]
fn every_repeat_starts_from_the_named_state() {
    // Each repeat registers the same services: what one of them left behind would be refused.
    let report = report("register --sequential --count 20 --state data:3:8 --repeat 3");
    assert_eq!((number(&report, "/answered"), number(&report, "/errors")), (60, 0));
    assert_eq!(report["conditions"]["state"], "data:3:8, restored before each run");
}

#[test]
fn the_data_are_loaded_once_and_found_again() {
    let cloud = Launch::new().start();
    let target = format!("http://{}", cloud.address(System::ServiceRegistry));
    let count = |cloud: &Cloud, path: &str| number(&cloud.get(path).expect_status(200).json(), "/count");
    let before = count(&cloud, "/serviceregistry/mgmt");
    for _ in 0..2 {
        let report = report(&format!("data --seed 7 --services 20 --target {target}"));
        assert_eq!(number(&report, "/services"), 20);
        assert_eq!(count(&cloud, "/serviceregistry/mgmt"), before + 20);
        assert_eq!(count(&cloud, "/authorization/mgmt/intracloud"), 20);
    }
}

#[test]
fn the_data_are_written_as_lines_and_into_a_directory_that_can_be_served() {
    let place = TempDir::new().expect("a temporary directory");
    let output = bench(&place, "data --seed 7 --services 5 --out FILE:data.jsonl --into FILE:data");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = fs::read_to_string(place.path().join("data.jsonl")).expect("written");
    let cloud = Launch::new().data(&place.path().join("data")).start();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        let definition = line["registration"]["serviceDefinition"].as_str().expect("a name");
        let query = serde_json::json!({"serviceDefinitionRequirement": definition});
        let found = cloud.query(&query);
        assert_eq!(list(&found, "/serviceQueryData").len(), 1, "{definition}");
    }
    assert_eq!(lines.lines().count(), 5);
    let again = bench(&place, "data --seed 7 --services 5 --into FILE:data");
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not empty"));
}

#[test]
fn a_missed_threshold_is_exit_code_4_and_the_report_says_which() {
    let place = TempDir::new().expect("a temporary directory");
    let line = "query --simultaneous 10 --services 5 --repeat 1 --report FILE:a.html --json FILE:a.json";
    let met = bench(&place, &format!("{line} --threshold p99<60s --threshold errors<1"));
    assert_eq!(met.status.code(), Some(0));
    let missed = bench(&place, &format!("{line} --threshold p99<1us --threshold errors<1"));
    assert_eq!(missed.status.code(), Some(THRESHOLD_MISSED));
    let written: Value = serde_json::from_slice(&fs::read(place.path().join("a.json")).expect("written")).expect("JSON");
    let verdicts: Vec<_> = list(&written, "/thresholds").iter().map(|verdict| verdict["met"] == true).collect();
    assert_eq!(verdicts, [false, true]);
    let html = fs::read_to_string(place.path().join("a.html")).expect("written");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("1 of 2 thresholds missed") && html.contains("<svg"));
    assert!(!html.contains("<script") && !html.contains("http://"), "the page needs nothing else");
}

#[test]
fn the_largest_number_of_simultaneous_requests_is_found() {
    let report = report("query --find-limit --below 60s --services 10 --up-to 150 --repeat 1");
    assert_eq!(number(&report, "/limit"), 150);
    assert_eq!(number(outcome(&report, "150 simultaneous"), "/errors"), 0);
}

#[test]
fn a_limited_server_says_so_and_its_group_is_gone_afterwards() {
    let place = TempDir::new().expect("a temporary directory");
    let output = bench(&place, "query --simultaneous 10 --services 5 --repeat 1 --cpu 0.5 --memory 256M");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("no control group") {
        assert_eq!(output.status.code(), Some(1), "a server that cannot be limited is not started");
        return skip::note("laboratory::a_limited_server_says_so_and_its_group_is_gone_afterwards", "control groups cannot be made here");
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("stays"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let server = report["conditions"]["server"].as_str().expect("text");
    assert!(server.contains("limited by a control group to 0.5 processors and 256 MiB of memory"), "{server}");
    assert_eq!((number(&report, "/errors"), report["throttled_s"].is_number()), (0, true));
}

#[test]
fn a_server_that_its_limit_kills_is_told() {
    let place = TempDir::new().expect("a temporary directory");
    let output = bench(&place, "query --simultaneous 10 --services 5 --repeat 1 --memory 1M");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    if said.contains("no control group") {
        return skip::note("laboratory::a_server_that_its_limit_kills_is_told", "control groups cannot be made here");
    }
    assert!(said.contains("the server did not start: it ended before it was ready"), "{said}");
}

#[test]
fn a_sweep_of_threads_and_connections_has_a_row_for_each() {
    let report = report("event --scenario D --threads 1,2 --connections 1,3 --seconds 1 --repeat 1");
    for label in ["1 threads, 1 connections", "1 threads, 3 connections", "2 threads, 1 connections", "2 threads, 3 connections"] {
        let broker = outcome(&report, &format!("broker, {label}"));
        assert_eq!((number(broker, "/lost"), number(broker, "/errors"), number(broker, "/duplicates")), (0, 0, 0), "{label}");
        assert!(number(broker, "/events") >= 3000 && broker["out_of_order"].is_number());
        outcome(&report, &format!("relay, {label}"));
    }
}

#[test]
fn slow_subscribers_at_a_fixed_rate_lose_nothing() {
    let report = report("event --scenario E --rate 100 --seconds 1 --repeat 1");
    let broker = outcome(&report, "broker");
    assert_eq!((number(broker, "/events"), number(broker, "/deliveries"), number(broker, "/lost")), (100, 700, 0));
}

#[test]
fn dead_and_slow_subscribers_stand_beside_runs_without_them() {
    for transport in ["sse", "push"] {
        let report = report(&format!("event --scenario C --transport {transport} --rate 20 --dead 10% --slow 10% --seconds 1 --repeat 1"));
        let afflicted = outcome(&report, "beside 10 % dead, 10 % slow (pause 5 ms)");
        let plain = outcome(&report, "all prompt");
        for (run, deliveries) in [(afflicted, 200 * 8), (plain, 200 * 10)] {
            assert_eq!((number(run, "/deliveries"), number(run, "/lost"), number(run, "/out_of_order")), (deliveries, 0, 0), "{transport}");
        }
        assert!(number(afflicted, "/deliveries_to_others") > 0, "the slow one hears, too");
        let ratios = report["ratios"].as_object().expect("ratios");
        assert!(ratios.iter().any(|(what, ratio)| what.starts_with("p99_ratio") && ratio.is_number()), "{ratios:?}");
    }
}

#[test]
fn a_listener_that_comes_back_gets_all_of_the_log_in_order() {
    let report = report("replay --events 3000 --repeat 2");
    let since = outcome(&report, "since the beginning");
    assert_eq!((number(since, "/replayed"), number(since, "/lost"), number(since, "/out_of_order")), (6000, 0, 0));
    let after = outcome(&report, "after Last-Event-ID");
    assert!((1..6000).contains(&number(after, "/replayed")), "what was heard before does not come again");
    assert_eq!((number(after, "/lost"), number(after, "/out_of_order"), number(after, "/duplicates")), (0, 0, 0));
}

#[test]
fn refused_events_are_delivered_once_they_are_taken() {
    let report = report("dead-letters --events 400 --repeat 1");
    let letters = outcome(&report, "one subscriber");
    for (figure, events) in [("/replayed", 400), ("/delivered", 400), ("/left", 0), ("/lost", 0), ("/out_of_order", 0), ("/errors", 0)] {
        assert_eq!(number(letters, figure), events, "{figure}");
    }
}

#[test]
fn management_lists_are_read_to_their_ends() {
    let report = report("page --services 55 --item-per-page 10 --repeat 1");
    for (path, least) in [
        ("/serviceregistry/mgmt", 55),
        ("/serviceregistry/mgmt/systems", 55),
        ("/serviceregistry/mgmt/services", 55),
        ("/authorization/mgmt/intracloud", 55),
    ] {
        let list = outcome(&report, &format!("GET {path}"));
        assert!(number(list, "/rows") >= least && number(list, "/errors") == 0 && list["rows_per_s"].as_f64() > Some(0.0), "{path}");
    }
}

#[test]
fn a_series_is_one_report_whose_sections_have_their_commands() {
    let report = report("lab --quick --only query --threshold errors<1 --certificates FILE:certificates");
    let reports = list(&report, "/reports");
    let commands: Vec<_> = reports.iter().map(|report| report["conditions"]["command"].as_str().expect("text").to_string()).collect();
    assert!(commands.len() > 2 && commands.iter().all(|command| command.starts_with("bodkin bench query")), "{commands:?}");
    assert!(list(&report, "/failures").is_empty());
}
