//! `bodkin topic check`: the worked numbers, what it tells people, and files with mistakes; what `topic list, add, remove` ask of a cloud.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{asked, has_row, text};
use crate::support::cloud::BINARY;
use crate::support::double::Double;

fn check(form: &str, file: &Path) -> Output {
    Command::new(BINARY).args(["topic", "check", "--output", form]).arg(file).output().expect("the binary starts")
}

/// A file with this content, and the folder that it is in.
fn written(content: &str) -> (TempDir, PathBuf) {
    let place = TempDir::new().expect("a temporary directory");
    let path = place.path().join("topics.toml");
    fs::write(&path, content).expect("written");
    (place, path)
}

#[track_caller]
fn report(file: &Path, code: i32) -> Value {
    let output = check("json", file);
    assert_eq!(output.status.code(), Some(code), "{}: {output:?}", file.display());
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/timing")
}

/// Every member that is expected has to be there as it is expected; further ones may be.
fn compare(place: &str, expected: &Value, found: &Value) {
    match (expected, found) {
        (Value::Object(members), Value::Object(_)) => {
            for (name, member) in members {
                let found = found.get(name).unwrap_or_else(|| panic!("{place} has no {name}: {found}"));
                compare(&format!("{place}.{name}"), member, found);
            }
        }
        (Value::Array(elements), Value::Array(others)) => {
            assert_eq!(elements.len(), others.len(), "{place}: {others:?}");
            elements
                .iter()
                .zip(others)
                .enumerate()
                .for_each(|(index, (element, other))| compare(&format!("{place}[{index}]"), element, other));
        }
        _ => assert_eq!(found, expected, "{place}"),
    }
}

#[test]
fn the_worked_numbers_come_out() {
    let mut names: Vec<PathBuf> =
        fs::read_dir(vectors()).expect("the vectors are there").map(|entry| entry.expect("readable").path()).collect();
    names.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    assert!(names.len() >= 8, "{names:?}");
    for path in names {
        let expected = fs::read_to_string(path.with_extension("json")).expect("each file has its numbers");
        let expected: Value = serde_json::from_str(&expected).expect("JSON");
        let code = expected["exit_code"].as_i64().expect("a number") as i32;
        compare(&path.display().to_string(), &expected["report"], &report(&path, code));
    }
}

#[test]
fn people_are_told_what_is_refused_why_and_what_would_be_admitted() {
    let output = check("table", &vectors().join("frame_edge.toml"));
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    has_row(&told, &["KEEPS-TOO-FEW", "-100 us", "REFUSED"]);
    has_row(&told, &["NO-SLACK", "49.9 ms", "replicated", "replicate", "admitted"]);
    for line in [
        "frame_edge.toml:8: KEEPS-TOO-FEW is refused",
        "because a replica has -100 us from the arrival on, and takes 0",
        "would be admitted with retention = 2",
        "or with platform.failover_ms = 49.9",
        "1 of 2 entries are refused",
        "50 ms as stated",
        "later than their deadlines (x + promote + drain)",
        "taken as zero",
    ] {
        assert!(told.contains(line), "{line} is not told:\n{told}");
    }
}

#[test]
fn what_would_be_admitted_is() {
    let topic = |retention: &str| {
        format!("[platform]\nfailover_ms = 120\n[[topic]]\nevent_type = \"A\"\nperiod_ms = 50\nloss_tolerance = 0\n{retention}\n")
    };
    let (_place, path) = written(&topic("retention = 0"));
    let refused = report(&path, 1);
    let change = refused["topics"][0]["changes"][0][0].as_str().expect("a change").to_owned();
    assert_eq!(change, "retention = 3");
    fs::write(&path, topic(&change)).expect("written");
    assert_eq!(report(&path, 0)["admitted"], true);
    fs::write(&path, topic("retention = 2")).expect("written");
    assert_eq!(report(&path, 1)["admitted"], false);
}

#[test]
fn a_category_stands_for_many_topics_and_says_how_many_fit() {
    let topic = |count: u32| {
        format!(
            "[platform]\nfailover_ms = 5\ncores = 2\n[[topic]]\nevent_type = \"A\"\nperiod_ms = 100\ndeadline_ms = 100\ndispatch_cost_ms = 1\ncount = {count}\n"
        )
    };
    let (_place, path) = written(&topic(1_000));
    let refused = report(&path, 1);
    assert_eq!(refused["topics"][0]["changes"][0][0], "count = 190");
    assert_eq!(refused["demand"]["feasible"], false);
    fs::write(&path, topic(190)).expect("written");
    let admitted = report(&path, 0);
    let on_cores: Vec<u64> =
        admitted["cores"].as_array().expect("a list").iter().map(|core| core["topics"].as_u64().expect("a number")).collect();
    assert_eq!(on_cores, [95, 95]);
    fs::write(&path, topic(191)).expect("written");
    report(&path, 1);
}

#[test]
fn a_mistake_is_told_by_its_file_line_and_key() {
    let cases = [
        ("[[topic]]\nevent_type = \"A\"\nperiod_ms = 0\n", "topics.toml:3:13: period_ms must be greater than 0"),
        ("[[topic]]\nevent_type = \"A\"\nperiod_ms = 5\nperiod_us = 5\n", "topics.toml:4:1: period_us says again what period_ms says"),
        (
            "[[topic]]\nevent_type = \"A\"\nperiod_ms = 5\nretension = 1\n",
            "topics.toml:4:1: retension is no key here: did you mean retention?",
        ),
        ("[platform]\nfailover_ms = \"soon\"\n", "topics.toml:2:15: failover_ms must be a number"),
        ("[[topic]\n", "topics.toml:1:"),
    ];
    for (content, expected) in cases {
        let (_place, path) = written(content);
        for form in ["table", "json"] {
            let output = check(form, &path);
            let told = text(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
            assert!(told.contains(expected), "{expected} is not told: {told}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_told_by_its_path() {
    let output = check("table", Path::new("no-such-topics.toml"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("no-such-topics.toml: cannot be read"), "{output:?}");
}

fn topic() -> Value {
    json!({"eventType": "HOT", "periodUs": 100_000, "deadlineUs": 50_500, "lossTolerance": null, "retention": 0, "level": 2, "publishers": 1,
        "durable": false, "declaredBy": "operator", "guarantee": "held", "accepted": 7, "excess": 1, "refused": 3, "dispatched": 7, "late": 4, "shed": 5})
}

#[test]
fn topics_of_a_running_cloud_are_listed_added_and_removed() {
    let double = Double::start(vec![
        ("GET /api/v1/topics", 200, json!({"data": [topic()], "count": 1})),
        ("POST /api/v1/topics", 201, topic()),
        ("DELETE /api/v1/topics?event_type=hot", 200, Value::Null),
    ]);
    has_row(&asked(&double, "topic list", 0).0, &["HOT", "100 ms", "50.5 ms", "2", "operator", "held", "7", "1", "3", "4", "5"]);
    let (told, requests) = asked(&double, "topic add hot period_ms=0.1 deadline_ms=inf durable=true", 0);
    assert!(told.contains("admitted: HOT is a real-time topic"), "{told}");
    let form = &requests.last().expect("a POST").body;
    assert_eq!(form, &json!({"event_type": "hot", "period_ms": 0.1, "deadline_ms": "inf", "durable": true}));
    let (_, requests) = asked(&double, "topic add hot period_ms=1 publishers=2 publisher=sensor,true", 0);
    assert_eq!(requests.last().expect("a POST").body["publisher"], json!(["sensor", "true"]));
    let (_, requests) = asked(&double, "topic add hot period_ms=1 publisher=sensor", 0);
    assert_eq!(requests.last().expect("a POST").body["publisher"], "sensor");
    assert!(asked(&double, "topic remove hot", 0).0.contains("removed: events of hot are best effort"));
    asked(&double, "topic add hot period_ms", 1);
    asked(&double, "topic add hot period_ms=1 period_ms=2", 1);
    asked(&double, "topic remove cold", 1);
}
