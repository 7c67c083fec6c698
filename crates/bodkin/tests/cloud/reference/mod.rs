//! `docs/reference`: what the binary says of itself, a page each. A page that differs is out of date; `cargo xtask reference` writes them anew.

mod api;
mod commands;
mod configuration;
mod metrics;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::cloud::BINARY;

/// Set by `cargo xtask reference`: pages are written, not compared.
const WRITE: &str = "BODKIN_WRITE_REFERENCE";

/// In front of every page.
const ORIGIN: &str = "This page is made of the binary itself by `cargo xtask reference`; `./x test` compares it.";

/// Compares a page with what it should be, or writes it.
#[track_caller]
fn page(name: &str, title: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    let expected = format!("# {title}\n\n{ORIGIN}\n\n{}\n", text.trim_end());
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
        fs::write(&path, expected).expect("a page is written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let first = found.lines().zip(expected.lines()).zip(1..).find(|((found, expected), _)| found != expected);
    let told = first.map(|((found, expected), line)| format!("line {line} is\n  {found}\nand should be\n  {expected}"));
    assert!(
        found == expected,
        "docs/reference/{name} is not what this binary says (cargo xtask reference writes it anew): {}",
        told.unwrap_or_else(|| "its length".into())
    );
}

/// What the binary prints, without the variables of whoever runs the tests.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let mut command = Command::new(BINARY);
    command.args(arguments);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BODKIN_")) {
        command.env_remove(name);
    }
    let output = command.output().expect("the binary starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
