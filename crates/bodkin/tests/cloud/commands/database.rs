//! `bodkin db`: the database of a cloud as a file of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::text;
use crate::support::arrowhead::{service, system};
use crate::support::cloud::{BINARY, Cloud, Launch};

fn db(data: &Path, arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["db", "--output", "json", "--data"]).arg(data).args(arguments).arg(file);
    command.output().expect("the binary starts")
}

#[track_caller]
fn done(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[track_caller]
fn refused(output: &Output, why: &str) {
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(1) && told.contains(why), "{output:?}");
}

fn register(cloud: &Cloud, definition: &str) {
    cloud.post("/serviceregistry/register", &service(definition, system("provider", 4000))).expect_status(201);
}

fn has(cloud: &Cloud, definition: &str) -> bool {
    let form = json!({"serviceDefinitionRequirement": definition});
    let found = cloud.post("/serviceregistry/query", &form).expect_status(200).json();
    found["serviceQueryData"].as_array().is_some_and(|found| found.len() == 1)
}

#[test]
fn a_running_cloud_is_copied_and_a_stopped_one_goes_back_to_the_copy() {
    let (data, copies) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    let file = copies.path().join("monday");
    refused(&db(data.path(), &["backup"], &file), "there is no database");
    let cloud = Launch::new().data(data.path()).start();
    register(&cloud, "before");
    let made = done(&db(data.path(), &["backup"], &file));
    assert_eq!(made["bytes"], fs::metadata(&file).expect("it is there").len());
    register(&cloud, "behind");
    refused(&db(data.path(), &["backup"], &file), "is there already");
    let in_use = db(data.path(), &["restore"], &file);
    refused(&in_use, &format!("in use by another bodkin (pid {})", cloud.pid()));
    assert!(has(&cloud, "before") && has(&cloud, "behind"), "nobody has noticed");
    assert_eq!(cloud.stop().code(), Some(0));

    let back = done(&db(data.path(), &["restore"], &file));
    assert!(back["services"].as_u64().is_some_and(|services| services > 0) && back["moved_away"] == false, "{back}");
    let kept = data.path().join("bodkin.sqlite.replaced");
    assert_eq!(back["kept"], json!(kept), "what was there is not lost: {back}");
    let cloud = Launch::new().data(data.path()).start();
    assert!(has(&cloud, "before") && !has(&cloud, "behind"), "it is as it was");
    register(&cloud, "behind");
    assert_eq!(cloud.stop().code(), Some(0));

    // Another machine, which has nothing.
    let elsewhere = copies.path().join("elsewhere");
    done(&db(&elsewhere, &["restore"], &file));
    let cloud = Launch::new().data(&elsewhere).start();
    assert!(has(&cloud, "before"));
    assert_eq!(cloud.stop().code(), Some(0));

    done(&db(&elsewhere, &["restore"], &kept));
    let cloud = Launch::new().data(&elsewhere).start();
    assert!(has(&cloud, "behind"), "it was the wrong copy");
    assert_eq!(cloud.stop().code(), Some(0));
}

#[test]
fn what_is_no_copy_is_refused_with_what_to_do() {
    let (data, copies) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    let file = copies.path().join("notes.txt");
    fs::write(&file, "these are notes, and not a database").expect("written");
    refused(&db(data.path(), &["restore"], &file), "Name a file that bodkin db backup has made");
    refused(&db(data.path(), &["restore"], &copies.path().join("missing")), "missing cannot be used");
    assert_eq!(fs::read_dir(data.path()).expect("a directory").count(), 0, "nothing was begun");
}

#[test]
fn events_beside_new_database_are_refused() {
    let data = TempDir::new().expect("a directory");
    let cloud = Launch::new().data(data.path()).start();
    register(&cloud, "before");
    assert_eq!(cloud.stop().code(), Some(0));
    let bound = fs::read_to_string(data.path().join("events/database")).expect("the event log names its database");
    for entry in fs::read_dir(data.path()).expect("a directory").map(|entry| entry.expect("an entry")) {
        if entry.file_name().to_string_lossy().starts_with("bodkin.sqlite") {
            fs::remove_file(entry.path()).expect("a file");
        }
    }
    for _ in 0..2 {
        let refusal = Launch::new().data(data.path()).try_start().err().expect("it is refused");
        let told = &refusal.stderr;
        assert!(refusal.code == Some(1) && told.contains(bound.trim()) && told.contains("discard-events"), "{told}");
    }
    let doctor = Command::new(BINARY).args(["doctor", "--insecure", "--data"]).arg(data.path()).output().expect("the binary starts");
    assert!(text(&doctor.stdout).contains("belong to database"), "{}", text(&doctor.stdout));
    let mut discard = Command::new(BINARY);
    let discarded =
        done(&discard.args(["db", "discard-events", "--output", "json", "--data"]).arg(data.path()).output().expect("the binary starts"));
    assert_eq!(discarded["discarded"], json!(data.path().join("events.discarded")));
    let cloud = Launch::new().data(data.path()).start();
    assert!(!has(&cloud, "before"));
    assert_eq!(cloud.stop().code(), Some(0));
}
