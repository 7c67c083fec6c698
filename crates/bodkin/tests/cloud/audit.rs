//! The audit log of a real cloud: what gets into it, from where it can be read, and what `bodkin audit verify` finds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, system};
use crate::support::cloud::{BINARY, Cloud, Launch};
use crate::support::patience::eventually_some;

fn audit(data: &Path, line: &str) -> Output {
    Command::new(BINARY).arg("audit").args(line.split_whitespace()).arg("--data").arg(data).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

#[track_caller]
fn done(data: &Path, line: &str) -> String {
    let output = audit(data, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn exported(data: &Path, line: &str) -> Vec<Value> {
    done(data, &format!("export {line}")).lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The file of a log that is young.
fn file(data: &Path) -> PathBuf {
    data.join("audit/0000000001.jsonl")
}

/// A provider of `audit-d`, a consumer, and a rule for it; gives the consumer's id.
fn permitted(cloud: &Cloud) -> i64 {
    let entry = cloud.post("/serviceregistry/register", &service("audit-d", system("audit-p", 1))).expect_status(201).json();
    let consumer = cloud.register_system("audit-c", 2);
    cloud.allow(consumer, number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"), &[INSECURE_JSON_ID]);
    consumer
}

#[test]
fn changes_and_orchestrations_are_told_with_who_what_from_where_and_why() {
    let data = TempDir::new().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).start();
    let consumer = permitted(&cloud);
    let asked = json!({"requesterSystem": system("audit-c", 2), "orchestrationFlags": {"overrideStore": true},
        "requestedService": {"serviceDefinitionRequirement": "audit-d"}});
    cloud.post("/orchestrator/orchestration", &asked).expect_status(200);
    cloud.post("/authorization/mgmt/intracloud", &json!({"consumerId": -1})).expect_status(400);
    let rules = cloud.get("/authorization/mgmt/intracloud").json();
    let rule = number(&list(&rules, "/data")[0], "/id");
    cloud.delete(&format!("/authorization/mgmt/intracloud/{rule}")).expect_status(200);

    let entries = exported(data.path(), "");
    let changes: Vec<_> = entries.iter().filter(|entry| entry["kind"] == "change").collect();
    let told: Vec<_> = changes.iter().map(|entry| (entry["what"].as_str().unwrap(), entry["status"].as_i64().unwrap())).collect();
    let removal = format!("DELETE /authorization/mgmt/intracloud/{rule}");
    assert_eq!(told, [("POST /authorization/mgmt/intracloud", 201), ("POST /authorization/mgmt/intracloud", 400), (&removal, 200)]);
    for entry in &changes {
        assert_eq!((&entry["caller"], &entry["from"]), (&json!("anonymous"), &json!("127.0.0.1")), "{entry}");
    }
    assert_eq!((&changes[0]["detail"]["body"]["consumerId"], &changes[0]["detail"]["made"]), (&json!(consumer), &json!([rule])));

    let given = eventually_some(|| exported(data.path(), "--kind orchestration").pop());
    let given = given.expect("an orchestration is written soon");
    assert_eq!(given["detail"]["consumer"], "audit-c@127.0.0.1:2");
    assert_eq!(given["detail"]["asked"], "audit-d");
    let because = format!("Service Registry, authorization rule {rule}");
    let expected =
        json!([{"provider": "audit-p@127.0.0.1:1", "service": "audit-d", "interfaces": ["HTTP-INSECURE-JSON"], "because": because}]);
    assert_eq!(given["detail"]["given"], expected);
}

#[test]
fn what_systems_do_for_themselves_and_reading_is_not_told() {
    let data = TempDir::new().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).start();
    cloud.post("/serviceregistry/register", &service("audit-own", system("audit-own", 1))).expect_status(201);
    cloud.get("/serviceregistry/mgmt/systems").expect_status(200);
    cloud.get("/api/v1/audit").expect_status(200);
    assert!(cloud.stop().success());
    let kinds: Vec<Value> = exported(data.path(), "").iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, [json!("start"), json!("stop")]);
}

#[test]
fn it_is_read_over_http_by_number_kind_and_caller() {
    let cloud = Launch::new().start();
    permitted(&cloud);
    let read = |query: &str| cloud.get(&format!("/api/v1/audit{query}")).expect_status(200).json();
    let all = read("");
    let newest = list(&all, "/data").last().expect("there are entries").clone();
    assert_eq!((&newest["kind"], &all["head"]["number"]), (&json!("change"), &newest["number"]));
    assert_eq!(list(&read("?kind=start"), "/data").len(), 1);
    assert_eq!(list(&read("?from=2&count=1"), "/data")[0]["number"], 2);
    assert_eq!(list(&read("?count=1"), "/data")[0], newest);
    assert_eq!(list(&read("?caller=nobody"), "/data").len(), 0);
    assert_eq!(list(&read("?since=2031-01-01T00:00:00Z"), "/data").len(), 0);
    for query in ["?from=x", "?kind=none", "?since=now", "?count=-1"] {
        let problem = cloud.get(&format!("/api/v1/audit{query}")).expect_status(400).json();
        assert_eq!(problem["title"], "Bad Request", "{query}");
    }
}

#[test]
fn an_answered_change_survives_a_kill_and_the_log_stays_whole() {
    let data = TempDir::new().expect("a temporary directory");
    let mut made = BTreeMap::new();
    for round in 0..4 {
        let cloud = Launch::new().data(data.path()).start();
        for turn in 0..5 {
            let name = format!("audit-kill-{round}-{turn}");
            let row = cloud.post("/serviceregistry/mgmt/services", &json!({"serviceDefinition": name})).expect_status(201).json();
            made.insert(number(&row, "/id"), name);
        }
        cloud.kill();
    }
    assert!(done(data.path(), "verify").contains("whole"));
    let told = exported(data.path(), "--kind change");
    let told: BTreeMap<i64, String> = told
        .iter()
        .map(|entry| {
            (entry["detail"]["made"][0].as_i64().unwrap(), entry["detail"]["body"]["serviceDefinition"].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(told, made);
}

#[test]
fn verify_names_the_first_line_that_is_wrong() {
    let data = TempDir::new().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).start();
    permitted(&cloud);
    assert!(done(data.path(), "verify").contains("yes"), "while the cloud runs");
    assert!(cloud.stop().success());
    let whole = fs::read_to_string(file(data.path())).expect("the log is text");
    assert_eq!(whole.lines().count(), 3);
    let check = |text: String, place: &str, words: &str| {
        fs::write(file(data.path()), text).expect("the log can be written");
        let output = audit(data.path(), "verify");
        let told = text_of_both(&output);
        assert!(output.status.code() == Some(1) && told.contains(place) && told.contains(words), "{place} {words}: {told}");
    };
    check(whole.replace("anonymous", "innocent"), "0000000001.jsonl:3", "was changed");
    check(whole.lines().take(2).map(|line| format!("{line}\n")).collect(), "0000000001.jsonl:2", "the end is missing");
    check(whole.lines().filter(|line| !line.contains("\"change\"")).map(|line| format!("{line}\n")).collect(), ".jsonl:2", "were removed");
    check(String::new(), "audit", "the end is missing");
    fs::write(file(data.path()), &whole).expect("the log can be written");
    let document: Value = serde_json::from_str(&text(
        &Command::new(BINARY).args(["--output", "json", "audit", "verify", "--data"]).arg(data.path()).output().expect("it starts").stdout,
    ))
    .expect("one JSON document");
    assert_eq!((&document["whole"], &document["entries"], &document["checkpoint"]), (&json!(true), &json!(3), &document["head"]));
    fs::write(file(data.path()), whole.lines().take(1).map(|line| format!("{line}\n")).collect::<String>()).expect("it can be written");
    let cloud = Launch::new().data(data.path()).start();
    assert!(cloud.stderr().contains("audit log"), "a start tells it too: {}", cloud.stderr());
    assert!(cloud.stop().success());
    assert!(text_of_both(&audit(data.path(), "verify")).contains("the database knows of entry 3"), "and it stays told");
}

fn text_of_both(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn the_end_is_printed_and_exported_for_spreadsheets() {
    let data = TempDir::new().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).start();
    permitted(&cloud);
    let told = done(data.path(), "tail -n 1");
    assert!(
        told.lines().count() == 1 && told.contains("change anonymous from 127.0.0.1: POST /authorization/mgmt/intracloud -> 201"),
        "{told}"
    );
    let sheet = done(data.path(), "export --format csv --kind change");
    assert!(sheet.starts_with("number,at,kind,") && sheet.lines().count() == 2, "{sheet}");
    let output = audit(&data.path().join("nowhere"), "tail");
    assert!(output.status.code() == Some(1) && text(&output.stderr).contains("--data"), "{output:?}");
}

#[test]
fn nothing_secret_gets_into_it() {
    let data = TempDir::new().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).start();
    let mut body = system("audit-secret", 1);
    body["authenticationInfo"] = json!("MIIBIjANBgkqhkiG9w0");
    cloud.post("/serviceregistry/mgmt/systems", &body).expect_status(201);
    let kept = fs::read_to_string(file(data.path())).expect("the log is text");
    assert!(kept.contains("audit-secret") && !kept.contains("MIIBIjANBgkqhkiG9w0"), "{kept}");
}
