//! `bodkin model fleet`: what it says of many edges.

use std::process::{Command, Output};

use serde_json::Value;

use super::text;
use crate::support::cloud::BINARY;

fn fleet(options: &[&str]) -> Output {
    Command::new(BINARY).args(["model", "fleet", "--seconds", "2"]).args(options).output().expect("the binary starts")
}

#[test]
fn what_is_full_first_is_told_with_what_would_help() {
    // A batch is closed 10 ms behind its first event, and the next one begins 1 ms later on average: 50 edges send 4,545 a second, and each of three disks syncs 1,000 of them.
    let output = fleet(&["--edges", "50", "--topics", "1000", "--sync-us", "1000", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let first = &found["loads"][0];
    let load = first["load"].as_f64().expect("a number");
    assert!(first["station"] == "disk of a server" && (4.5..5.0).contains(&load), "{found}");
    let edges = |change: &str| {
        let variants = found["variants"].as_array().expect("a list");
        variants.iter().find(|row| row["change"] == change).expect("there is one")["edges_max"].as_u64().expect("a number")
    };
    assert_eq!(edges("as it is"), 11);
    assert!(edges("batches of 100 ms") >= 90, "ten times the events a batch: {found}");
    assert!((30..=33).contains(&edges("one replica")), "a third of the syncs: {found}");
}

/// The page of a thousand edges shows this command's figures: they are the same on any machine.
#[test]
fn the_page_of_many_edges_has_the_figures_of_its_command() {
    let output = Command::new(BINARY)
        .args(["model", "fleet", "--edges", "1000", "--topics", "1000", "--output", "json"])
        .output()
        .expect("the binary starts");
    assert_eq!(output.status.code(), Some(1), "it falls behind: {output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let page = include_str!("../../../../../docs/experiments/scale.md");
    let rows: Vec<Vec<&str>> =
        page.lines().filter(|line| line.starts_with("| ")).map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let number = |text: &str| text.trim_end_matches(" %").replace(',', "").parse::<f64>().ok();
    let loads = found["loads"].as_array().expect("a list");
    let shown: Vec<_> = rows.iter().filter(|row| row.len() == 2).filter_map(|row| Some((row[0], number(row[1])?))).collect();
    assert_eq!(shown.len(), 5, "{shown:?}");
    for (station, percent) in shown {
        let told = loads.iter().find(|load| load["station"] == station).and_then(|load| load["load"].as_f64()).expect("there is one");
        let digit = if percent < 10.0 { 10.0 } else { 1.0 };
        assert_eq!((told * 100.0 * digit).round() / digit, percent, "{station}");
    }
    let variants = found["variants"].as_array().expect("a list");
    let shown: Vec<_> = rows.iter().filter(|row| row.len() == 3 && number(row[2]).is_some()).collect();
    assert_eq!(shown.len(), variants.len(), "{shown:?}");
    for (row, variant) in shown.iter().zip(variants) {
        assert!(variant["change"].as_str().is_some_and(|change| row[0].starts_with(change)), "{row:?}: {variant}");
        assert!(variant["first_limit"].as_str().is_some_and(|first| first.starts_with(row[1])), "{row:?}: {variant}");
        assert_eq!(variant["edges_max"].as_f64(), number(row[2]), "{row:?}");
    }
}

#[test]
fn a_small_fleet_keeps_up_and_a_number_that_cannot_be_is_told() {
    let output = fleet(&["--edges", "10", "--topics", "100"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = text(&output.stdout);
    assert!(told.contains("FULL FIRST") && !told.contains("falls behind"), "{told}");
    let output = fleet(&["--replicas", "4"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(2), "bodkin: replicas must be from 1 to 3, and 4 came\n"));
}
