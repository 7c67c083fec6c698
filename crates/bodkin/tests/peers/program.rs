//! A foreign program at work in a folder of certificates.

use std::process::Output;

use crate::support::certificates::Certificates;
use crate::support::skip;

/// Runs a program with the words of `line`; nothing if it is not installed, which is noted.
pub fn run(program: &str, place: &Certificates, test: &str, line: &str) -> Option<Output> {
    let output = place.program(program, line).output().ok();
    if output.is_none() {
        skip::note(test, &format!("no {program} is installed"));
    }
    output
}

/// What it printed, wherever to.
pub fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What it printed; it must have succeeded.
#[track_caller]
pub fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}", told(output));
    told(output)
}
