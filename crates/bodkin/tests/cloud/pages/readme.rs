//! The README's first steps are run as pages are. What is not run says so where it stands, in a comment that readers do not see.

use std::fs;
use std::path::Path;

use super::check_in;

const README: &str = "../README.md";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// How lines of commands begin.
const STARTS: [&str; 4] = ["bodkin ", "./x ", "sudo ", "export "];
/// What stands in front of commands that are not run, with the reason.
const NOT_RUN: &str = "no test";
/// A newcomer reads it in a quarter of an hour; what is longer has a page of its own.
const BYTES_MAX: usize = 12_000;

#[test]
fn a_cloud_of_your_own_is_as_the_readme_says() {
    check_in(README, Some("A cloud of your own"), |_| {});
}

#[test]
fn the_readme_is_for_a_newcomer() {
    let page = fs::read_to_string(Path::new(ROOT).join("README.md")).expect("it is there");
    assert!(page.len() <= BYTES_MAX, "{} bytes: put it into docs, and say there that it is", page.len());
    let shown = page.lines().filter(|line| !line.starts_with("<!--"));
    let of_us: Vec<&str> = shown.filter(|line| line.to_lowercase().contains(NOT_RUN)).collect();
    assert!(of_us.is_empty(), "what tests do is for us: {of_us:?}");
}

/// The fences of commands that no test runs, each with its line and the text between it and the fence or heading before.
fn unrun(page: &str) -> Vec<(usize, String)> {
    let mut unrun = Vec::new();
    let mut open: Option<(usize, bool, bool)> = None;
    let mut before = String::new();
    for (line, text) in (1..).zip(page.lines()) {
        match (text.strip_prefix("```"), open) {
            (Some(info), None) => open = Some((line, info.is_empty(), false)),
            (Some(_), Some((line, is_plain, has_commands))) => {
                if is_plain && has_commands {
                    unrun.push((line, before.clone()));
                }
                before.clear();
                open = None;
            }
            (None, Some((line, is_plain, has_commands))) => {
                open = Some((line, is_plain, has_commands || STARTS.iter().any(|start| text.starts_with(start))));
            }
            (None, None) if text.starts_with('#') => before.clear(),
            (None, None) => before.extend([text, "\n"]),
        }
    }
    unrun
}

#[test]
fn commands_of_the_readme_that_no_test_runs_say_so() {
    let page = fs::read_to_string(Path::new(ROOT).join("README.md")).expect("it is there");
    let unrun = unrun(&page);
    assert!(!unrun.is_empty(), "release builds are made by no test");
    for (line, before) in unrun {
        assert!(
            before.to_lowercase().contains(NOT_RUN),
            "README.md, fence of line {line}: run it (`sh`), or say in a comment in front of it that no test does, and why"
        );
    }
}

#[test]
fn a_fence_that_is_not_run_is_found_with_what_is_said_of_it() {
    let page = "# A\n```sh\nbodkin up\n```\nNo test\nruns it.\n```\nbodkin up\n```\n## B\n```\nbodkin\n```\n```\nbodkin up\n```\n";
    assert_eq!(unrun(page), [(7, "No test\nruns it.\n".to_owned()), (14, String::new())]);
}
