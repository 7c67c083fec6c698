//! `bodkin simulate`.

use std::process::{Command, Output};

use serde_json::Value;

use super::text;
use crate::support::cloud::BINARY;

fn simulate(options: &str) -> Output {
    Command::new(BINARY).arg("simulate").args(options.split_whitespace()).output().expect("the binary starts")
}

/// The answer, without what this machine's load decides.
fn answer(options: &str) -> Value {
    let output = simulate(&format!("{options} --output json"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut answer: Value = serde_json::from_slice(&output.stdout).expect("one document");
    answer.as_object_mut().expect("an object").remove("seconds").expect("the seconds are told");
    answer
}

#[test]
fn a_seed_repeats_its_simulation() {
    let first = answer("--seed 7 --crashes 1");
    assert_eq!(first, answer("--seed 7 --crashes 1"));
    assert_ne!(first["created"], answer("--seed 8 --crashes 1")["created"]);
    assert!(first["crashes"].as_u64() >= Some(1) && first["violation"].is_null() && first["repeat"].is_null(), "{first}");
}

#[test]
fn the_first_limit_ends_it() {
    let short = answer("--seed 7 --hours 0.0001 --crashes 1000000");
    assert_eq!(short["clouds"], 1, "a cloud is simulated to its end: {short}");
    assert!(answer("--seed 7 --crashes 50 --hours 1000")["crashes"].as_u64() >= Some(50));
}

#[test]
fn people_are_told_the_seed_what_was_checked_and_the_verdict() {
    let told = text(&simulate("--hours 0.0001").stdout);
    for word in ["seed ", "every promise was kept", "never two leaders", "host crash", "longest gap"] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

#[test]
fn limits_that_mean_nothing_are_refused() {
    for options in ["--hours 0", "--hours -1", "--hours inf", "--crashes 0", "--seconds 0", "--seed x"] {
        assert_eq!(simulate(options).status.code(), Some(2), "{options}");
    }
}
