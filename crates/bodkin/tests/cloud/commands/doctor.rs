//! `bodkin doctor`: it says what is so, and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::{WIDTH_MAX, text};
use crate::support::cloud::{BINARY, Launch};
use crate::support::ports::held_offset;

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["doctor", "--insecure", "--stall-s", "1"]).args(arguments);
    command.output().expect("the binary starts")
}

/// Findings by what was looked at; of several the worst.
#[track_caller]
fn findings(arguments: &[&str], code: i32) -> BTreeMap<String, (String, String)> {
    let output = doctor(&[arguments, &["--output", "json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let mut worst = BTreeMap::new();
    for finding in document["findings"].as_array().expect("a list") {
        let member = |name: &str| finding[name].as_str().expect("a text").to_owned();
        let verdict = (member("verdict"), member("found"));
        let kept = worst.entry(member("check")).or_insert_with(|| verdict.clone());
        if verdict.0 == "problem" {
            *kept = verdict;
        }
    }
    worst
}

/// Names and bytes of the files of a directory, at any depth.
fn tree(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(tree(&path));
        } else {
            files.insert(path.display().to_string(), fs::read(&path).expect("readable"));
        }
    }
    files
}

#[test]
fn an_empty_machine_is_examined_and_left_as_it_is() {
    let place = TempDir::new().expect("a temporary directory");
    let data = place.path().join("new");
    let output = doctor(&["--any-port", "--data", data.to_str().expect("text")]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}");
    for named in [
        "CLOCK_MONOTONIC",
        "CLOCK_BOOTTIME",
        "time of day",
        "CAP_SYS_NICE",
        "RLIMIT_RTPRIO",
        "RLIMIT_MEMLOCK",
        "open files",
        "wake-ups",
        "none needed: insecure mode",
        "does not exist; bodkin up makes it",
        "MiB are free",
        "a sync takes",
        "0 problems",
    ] {
        assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(named), "{named} is missing:\n{told}");
    }
    assert!(told.lines().all(|line| line.chars().count() <= WIDTH_MAX), "{told}");
    assert!(!data.exists(), "the doctor made the data directory");
}

#[test]
fn a_running_cloud_is_found_and_left_as_it_is() {
    let port_offset = held_offset();
    let data = TempDir::new().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).port_offset(port_offset.get()).start();
    let (path, offset) = (data.path().to_str().expect("text"), port_offset.get().to_string());
    let arguments = ["--data", path, "--port-offset", offset.as_str()];
    let running = findings(&arguments, 0);
    let pid = format!("(pid {})", cloud.pid());
    assert!(running["port"].1.contains(&pid) && running["lock"].1.contains(&pid), "{running:?}");
    assert!(running["running"].1.contains("is ready") && running["database"].1.contains("whole"), "{running:?}");
    assert!(running["event log"].1.contains("files with"), "{running:?}");
    assert_eq!(cloud.stop().code(), Some(0));

    let before = tree(data.path());
    let stopped = findings(&arguments, 0);
    assert!(stopped["port"].1.contains("is free") && stopped["lock"].1.contains("no process"), "{stopped:?}");
    assert!(stopped["running"].1.contains("no Bodkin") && stopped["database"].1.contains("whole"), "{stopped:?}");
    assert_eq!(tree(data.path()), before);

    // Secure mode, which its data is not of: bodkin up would refuse it.
    let secure = Command::new(BINARY).args(["doctor", "--stall-s", "1"]).args(arguments).output().expect("the binary starts");
    let told = text(&secure.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(secure.status.code() == Some(1) && told.contains("it was used in insecure mode, and secure mode is asked for"), "{told}");
    assert_eq!(tree(data.path()), before);
}

#[test]
fn what_would_keep_a_cloud_from_starting_is_a_problem() {
    let place = TempDir::new().expect("a temporary directory");
    let data = place.path().to_str().expect("text").to_owned();
    fs::write(place.path().join("bodkin.sqlite"), "this is no database, but long enough to be looked at as one").expect("written");
    let damaged = findings(&["--any-port", "--data", &data], 1);
    assert_eq!(damaged["database"].0, "problem", "{damaged:?}");

    let file = place.path().join("bodkin.sqlite");
    let no_directory = findings(&["--any-port", "--data", file.to_str().expect("text")], 1);
    assert_eq!(no_directory["data"].0, "problem", "{no_directory:?}");

    let elsewhere = findings(&["--any-port", "--listen", "203.0.113.7", "--data", &data], 1);
    assert_eq!(elsewhere["address"].0, "problem", "{elsewhere:?}");

    let refused = findings(&["--any-port", "--listen", "0.0.0.0", "--data", &data], 1);
    assert!(refused["options"].0 == "problem" && refused["options"].1.contains("--domain-name"), "{refused:?}");

    let others = held_offset();
    let port = 8440 + others.get();
    let _taken = TcpListener::bind(("127.0.0.1", port)).expect("nobody listens on a port that is held");
    let offset = others.get().to_string();
    let new = place.path().join("new");
    let held = findings(&["--port-offset", &offset, "--data", new.to_str().expect("text")], 1);
    assert!(held["port"].1.contains(&port.to_string()) && held["port"].1.contains(&std::process::id().to_string()), "{held:?}");
}

#[test]
fn wrong_options_are_a_wrong_use() {
    assert_eq!(doctor(&["--config", "/nobody/has/this.toml"]).status.code(), Some(2));
    assert_eq!(doctor(&["--stall-s", "0"]).status.code(), Some(2));
}
