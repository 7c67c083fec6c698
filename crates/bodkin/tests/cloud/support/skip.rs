//! A test that cannot run here says so where the runner counts it.

use std::fs::OpenOptions;
use std::io::Write;

/// The environment variable that names the file in which skips are counted.
const SKIPS_VARIABLE: &str = "BODKIN_SKIPS";

/// Notes that `test` did not run and why: a line `SKIP test: reason` in the file of skips and on standard output.
pub fn note(test: &str, reason: &str) {
    let line = format!("SKIP {test}: {reason}");
    println!("{line}");
    if let Some(path) = std::env::var_os(SKIPS_VARIABLE) {
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the file of skips opens");
        writeln!(file, "{line}").expect("the file of skips is written");
    }
}
