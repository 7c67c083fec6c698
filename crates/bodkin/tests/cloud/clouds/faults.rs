//! What becomes of faults between clouds (`docs/design/between-clouds.md`): each row of the table names tests that there are.

use std::fs;
use std::path::{Path, PathBuf};

const TITLE: &str = "## What becomes of faults\n";
/// Where the modules of a target begin.
const TARGETS: [(&str, &str); 5] = [
    ("cloud", "bodkin/tests/cloud"),
    ("host", "host/src"),
    ("peers", "bodkin/tests/peers"),
    ("relay", "relay/src"),
    ("trust", "trust/src"),
];

/// The file that a module's path leads to, or the one that has it within.
fn source(root: &Path, module: &str) -> String {
    let path: PathBuf = module.split("::").collect();
    let files = [root.join(&path).with_extension("rs"), root.join(&path).join("mod.rs")];
    let within = root.join(&path).parent().map(|parent| parent.with_extension("rs"));
    let read = files.into_iter().chain(within).find_map(|file| fs::read_to_string(file).ok());
    read.unwrap_or_else(|| panic!("{module} is no module of {}", root.display()))
}

#[test]
fn every_row_of_the_table_of_faults_names_tests_that_there_are() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' directory");
    let text = fs::read_to_string(crates.join("../docs/design/between-clouds.md")).expect("the page is there");
    let section = text.split_once(TITLE).expect("the section is there").1.split("\n## ").next().expect("it has a text");
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 15, "{} rows", rows.len());
    for row in rows {
        let shown = row.trim_end_matches(" |").rsplit(" | ").next().expect("a last cell");
        let tests: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test in {row}");
        for test in tests {
            let (target, path) = test.split_once(' ').unwrap_or_else(|| panic!("a target and a test: {test}"));
            let (module, name) = path.rsplit_once("::").unwrap_or_else(|| panic!("a module and a test: {test}"));
            let (_, root) = TARGETS.iter().find(|(known, _)| *known == target).unwrap_or_else(|| panic!("no target {target}"));
            let source = source(&crates.join(root), module);
            assert!(source.contains(&format!("fn {name}() {{")), "there is no test {test}");
        }
    }
}
