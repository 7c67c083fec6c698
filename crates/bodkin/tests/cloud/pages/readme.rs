//! Sections of the README are run as pages are, each in a folder of its own. What is not run says so where it stands.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::check_in;

const README: &str = "../README.md";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// How lines of commands begin.
const STARTS: [&str; 4] = ["bodkin ", "./x ", "sudo ", "export "];
/// What stands in front of commands that are not run, with the reason.
const NOT_RUN: &str = "no test";

/// Runs a section from its first command to its last, in an empty folder.
#[track_caller]
fn check_section(heading: &str) {
    check_in(README, Some(heading), |_| {});
}

#[test]
fn a_secure_cloud_by_hand_is_as_the_readme_says() {
    check_section("By hand, in secure mode");
}

#[test]
fn an_insecure_cloud_by_hand_is_as_the_readme_says() {
    check_section("By hand, in insecure mode");
}

#[test]
fn nets_are_solved_as_the_readme_says() {
    check_in(README, Some("Predicting"), |place| {
        symlink(Path::new(ROOT).join("vectors"), place.join("vectors")).expect("it is Bodkin's folder, as far as nets are read there");
    });
}

#[test]
fn certificates_are_made_as_the_readme_says() {
    check_section("Certificates");
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
            "README.md, fence of line {line}: run it (`sh`), or say in front of it that no test does, and why"
        );
    }
}

#[test]
fn a_fence_that_is_not_run_is_found_with_what_is_said_of_it() {
    let page = "# A\n```sh\nbodkin up\n```\nNo test\nruns it.\n```\nbodkin up\n```\n## B\n```\nbodkin\n```\n```\nbodkin up\n```\n";
    assert_eq!(unrun(page), [(7, "No test\nruns it.\n".to_owned()), (14, String::new())]);
}
