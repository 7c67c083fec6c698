//! The commands, as a person or a script would use them: against a real cloud, and against a stand-in that keeps what was
//! asked and answers as the interface says.

mod authorization;
mod certificates;
mod database;
mod deliveries;
mod doctor;
pub mod edges;
mod events;
mod fleet;
mod graphs;
mod import;
mod models;
pub mod moves;
mod nets;
mod orchestration;
mod peers;
mod registry;
mod registry_changes;
mod replacements;
mod samples;
mod secure;
mod shell;
mod simulate;
mod store;
mod sweeps;
mod topics;

use std::net::SocketAddr;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::cloud::{BINARY, Cloud, System};
use crate::support::double::{Asked, Double};

/// Widest table and longest line of help for people, in characters.
const WIDTH_MAX: usize = 120;
/// Exit code of a command that was denied.
const DENIED: i32 = 3;

/// Runs `bodkin` with the words of `line`; quotes are not understood.
pub fn bodkin(cloud: &Cloud, line: &str) -> Output {
    started(cloud, line).output().expect("the binary starts")
}

/// `bodkin` with the words of `line`, to be started.
fn started(cloud: &Cloud, line: &str) -> Command {
    command(line, cloud.address(System::ServiceRegistry), cloud.address(System::Monitor))
}

fn command(line: &str, registry: SocketAddr, monitor: SocketAddr) -> Command {
    let mut command = Command::new(BINARY);
    command.args(line.split_whitespace());
    command.env("BODKIN_SERVICE_REGISTRY", registry.to_string()).env("BODKIN_MONITOR", monitor.to_string());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

/// What it printed; its exit code must be 0.
#[track_caller]
fn done(cloud: &Cloud, line: &str) -> String {
    ended(cloud, line, 0)
}

/// What it printed; its exit code must be `code`.
#[track_caller]
pub fn ended(cloud: &Cloud, line: &str, code: i32) -> String {
    printed(&bodkin(cloud, line), line, code)
}

#[track_caller]
fn printed(output: &Output, line: &str, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The one document it printed.
#[track_caller]
fn json(cloud: &Cloud, line: &str) -> Value {
    serde_json::from_str(&done(cloud, &format!("--output json {line}"))).expect("one JSON document")
}

/// What it printed and asked the stand-in.
#[track_caller]
fn asked(double: &Double, line: &str, code: i32) -> (String, Vec<Asked>) {
    let output = command(line, double.address(), double.address()).output().expect("the binary starts");
    (printed(&output, line, code), double.asked())
}

/// The request lines.
fn lines(asked: &[Asked]) -> Vec<&str> {
    asked.iter().map(|asked| asked.line.as_str()).collect()
}

/// A row as lists show it: whether one line has all the words.
#[track_caller]
fn has_row(table: &str, words: &[&str]) {
    assert!(table.lines().any(|line| words.iter().all(|word| line.contains(word))), "no line has {words:?}:\n{table}");
}
