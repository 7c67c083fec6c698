//! The part of the load laboratory that holds the secure mode against the insecure one, in miniature: it runs, every request is
//! answered, and the report has what the difference is made of. How large that is, these tests do not say.

use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::arrowhead::{list, number};
use crate::support::cloud::BINARY;

/// Where all runs here keep their certificates: keys take their time.
fn certificates() -> &'static TempDir {
    static CERTIFICATES: OnceLock<TempDir> = OnceLock::new();
    CERTIFICATES.get_or_init(|| TempDir::new().expect("a temporary directory"))
}

fn bench(line: &str) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["--output", "json", "bench"]).args(line.split_whitespace());
    command.arg("--certificates").arg(certificates().path()).output().expect("the binary starts")
}

#[track_caller]
fn report(line: &str) -> Value {
    let output = bench(line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a report is one JSON document")
}

/// The outcome whose label begins so.
#[track_caller]
fn outcome<'a>(report: &'a Value, label: &str) -> &'a Value {
    let begins = |outcome: &&Value| outcome["label"].as_str().expect("a label").starts_with(label);
    list(report, "/outcomes").iter().find(begins).unwrap_or_else(|| panic!("no outcome {label} in {report}"))
}

#[test]
fn a_new_connection_and_certificate_for_each_request_in_both_modes() {
    for operation in ["register", "query", "authorize", "orchestrate"] {
        let report = report(&format!("{operation} --simultaneous 5 --secure --repeat 2"));
        for mode in ["insecure, ", "secure, "] {
            let run = outcome(&report, mode);
            assert_eq!(run["full_handshakes"], if mode == "secure, " { Value::from(10) } else { Value::Null }, "{operation}");
            assert_eq!((number(run, "/answered"), number(run, "/errors")), (10, 0), "{operation} {mode}: {}", run["first_errors"]);
        }
        let ratios = outcome(&report, "secure to insecure");
        for key in ["mean_ratio", "whole_ratio", "cpu_to_floor"] {
            assert!(ratios[key].as_f64().is_some_and(|ratio| ratio > 0.0), "{operation} {key}: {ratios}");
        }
    }
}

#[test]
fn one_kept_connection_in_both_modes() {
    for operation in ["register", "query", "authorize", "orchestrate"] {
        let report = report(&format!("{operation} --sequential --count 20 --services 10 --secure --repeat 1"));
        for mode in ["insecure, ", "secure, "] {
            let run = outcome(&report, mode);
            assert_eq!((number(run, "/answered"), number(run, "/errors")), (20, 0), "{operation} {mode}: {}", run["first_errors"]);
        }
        assert!(outcome(&report, "secure to insecure")["p50_ratio"].is_number(), "{operation}");
    }
}

#[test]
fn sessions_are_resumed_where_that_is_asked_for() {
    let report = report("register --simultaneous 5 --secure --resume --repeat 1");
    let run = outcome(&report, "secure, ");
    assert_eq!((number(run, "/answered"), number(run, "/errors")), (5, 0), "{}", run["first_errors"]);
    assert_eq!((number(run, "/full_handshakes"), number(run, "/resumed_handshakes")), (0, 5));
}

#[test]
fn events_go_over_tls_beside_plain_ones() {
    let report = report("event --scenario A --secure --seconds 1 --repeat 1");
    for mode in ["insecure", "secure"] {
        let run = outcome(&report, mode);
        assert_eq!((number(run, "/lost"), number(run, "/errors"), number(run, "/out_of_order")), (0, 0, 0), "{mode}");
        assert!(number(run, "/deliveries") >= 2000, "{mode}");
    }
    assert!(outcome(&report, "secure to insecure")["p50_ratio"].is_number());
}

#[test]
fn a_handshake_has_the_time_of_both_its_ends() {
    let report = report("handshake --count 20 --repeat 2");
    let time = outcome(&report, "processor time");
    let us = |key: &str| time[key].as_f64().expect("a figure");
    assert!(us("cpu_p50_us") >= us("client_cpu_p50_us") && us("client_cpu_p50_us") > 0.0 && us("server_cpu_p50_us") > 0.0, "{time}");
}

#[test]
fn orchestrations_lead_to_another_cloud_in_both_cases() {
    let report = report("intercloud --simultaneous 5 --sequential 5 --services 3 --repeat 1 --relay-messages 20");
    for case in ["case 1", "case 2"] {
        for (way, count) in [("5 sequential", 5), ("5 simultaneous", 5)] {
            let run = outcome(&report, &format!("{case}, {way}"));
            assert_eq!((number(run, "/answered"), number(run, "/errors")), (count, 0), "{case} {way}: {}", run["first_errors"]);
            let ms = |key: &str| run[key].as_f64().unwrap_or_else(|| panic!("no {key} in {run}"));
            for part in ["gsd_call_ms", "gsd_answer_ms", "gsd_decide_ms", "icn_call_ms", "icn_answer_ms", "icn_decide_ms"] {
                assert!(ms(part) > 0.0, "{case} {way} {part}");
            }
            assert!(
                ms("gsd_whole_ms") + ms("icn_whole_ms") <= ms("mean_ms") && ms("icn_decide_ms") <= ms("icn_answer_ms"),
                "{case} {way}: {run}"
            );
        }
    }
    for length in [100, 100_000] {
        let hop = outcome(&report, &format!("case 1, messages of {length} bytes through the relay"));
        let us = |key: &str| hop[key].as_f64().unwrap_or_else(|| panic!("no {key} in {hop}"));
        assert!((us("hop_p50_us") - (us("relay_p50_us") - us("plain_p50_us")) / 2.0).abs() < 0.1 && us("plain_p50_us") > 0.0, "{hop}");
    }
    let published = report["published"].to_string();
    assert!(published.contains("intercloud orchestration") && published.contains("orchestrate intercloud 2"), "{published}");
}

#[test]
fn orchestrations_open_tunnels_that_carry_bytes_and_are_closed() {
    let line =
        "intercloud --gateway --simultaneous 5 --sequential 5 --services 3 --repeat 1 --relay-messages 20 --sessions 4 --tunnel-mb 2";
    let report = report(line);
    for label in ["case 2, 5 sequential", "case 2, 5 simultaneous"] {
        let run = outcome(&report, label);
        assert_eq!((number(run, "/answered"), number(run, "/errors")), (5, 0), "{label}: {}", run["first_errors"]);
        for part in ["gsd_wait_ms", "gsd_decide_ms", "icn_wait_ms", "icn_decide_ms", "icn_open_provider_ms", "icn_open_consumer_ms"] {
            assert!(run[part].as_f64().is_some_and(|ms| ms >= 0.0), "{label}: no {part} in {run}");
        }
    }
    let held = outcome(&report, "4 sessions, the first run of the processes");
    assert_eq!(number(held, "/errors"), 0, "{held}");
    assert!(held["enter_p50_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{held}");
    assert_eq!((number(held, "/sessions_at_consumers"), number(held, "/sessions_at_providers")), (4, 4), "{held}");
    let rate = |way: &str, key: &str| {
        let run = outcome(&report, &format!("2 MB by {way}"));
        run[key].as_f64().filter(|rate| *rate > 0.0).unwrap_or_else(|| panic!("no {key} in {run}"))
    };
    for (key, what) in [("to_provider_mb_per_s", "to the provider"), ("to_consumer_mb_per_s", "to the consumer")] {
        let expected = rate("tunnel", key) / rate("plain TLS, 3 forwarders", key);
        let told = report["ratios"][format!("throughput {what}, tunnel to plain TLS, 3 forwarders")].as_f64().expect("a ratio");
        assert!((told / expected - 1.0).abs() < 0.01, "{told} for {expected}");
    }
    let goals = &report["comparisons"][0];
    assert_eq!(goals["columns"], serde_json::json!(["goal", "measured"]));
    assert!(goals["rows"].to_string().contains("at least"), "{goals}");
}

#[test]
fn what_is_not_compared_is_told() {
    for (line, why) in [
        ("intercloud --gateway --case 1", "case 1 has no --gateway"),
        ("token --simultaneous 5 --secure", "token is not measured with --secure"),
        ("register --find-limit --below 1s --secure", "--find-limit has no --secure"),
        ("event --scenario C --transport push --secure", "--secure goes with prompt event streams"),
        ("query --sequential --secure --target http://127.0.0.1:1", "cannot be used with"),
    ] {
        let output = bench(line);
        assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains(why), "{line}: {output:?}");
    }
}
