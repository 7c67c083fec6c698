//! Foreign programs: at work in a folder of certificates, and Python with a library.

use std::process::{Command, Output, Stdio};

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

/// The Python that `variable` names, or the usual one, if it has the library; nothing if it has not, which is noted.
pub fn python(variable: &str, library: &str, test: &str) -> Option<String> {
    let python = std::env::var(variable).unwrap_or_else(|_| "python3".to_owned());
    let has_library = Command::new(&python).args(["-c", &format!("import {library}")]).stderr(Stdio::null()).status();
    if !has_library.is_ok_and(|status| status.success()) {
        skip::note(test, &format!("no {library} is installed"));
        return None;
    }
    Some(python)
}
