//! The tree: how long a source file may be, what may be left in one, and what has to be there.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::imports;

/// Most lines of a source file; past it, look for the second noun that hides inside.
const SOURCE_LINES_MAX: usize = 600;

/// Name endings of files that people write as code.
const SOURCE_ENDINGS: &[&str] = &[".rs", ".c", ".h", ".ts", ".svelte", ".css", ".mjs", ".py", ".sh"];

/// Marks of unfinished work. In pieces, so that this file may be checked like any other.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("for", " now"),
];

/// Folders that exist on one machine only; in pieces as well.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// What a decision record says, in this order.
const DECISION_HEADINGS: &[&str] = &["Context", "Choice", "Given up", "Evidence", "How to undo"];

/// Folders, at any depth, that hold nothing of ours. In a linked worktree `.git` is a file that names another place.
const SKIPPED_FOLDERS: &[&str] = &[".git", ".bodkin", "node_modules", "target"];

/// Deepest folder that is read; a deeper one is an error.
const DEPTH_MAX: u32 = 32;

/// A text file: its path from the root, with `/`, and what it holds.
#[derive(Debug)]
pub struct TextFile {
    path: String,
    text: String,
}

impl TextFile {
    /// One of a test's.
    #[cfg(test)]
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// From the root, with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What it holds.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Reads every text file under `root`. A file that is not UTF-8 is no text and is left out; links are not followed.
pub fn read(root: &Path) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    read_folder(root, "", 0, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_folder(folder: &Path, prefix: &str, depth: u32, files: &mut Vec<TextFile>) -> Result<()> {
    anyhow::ensure!(depth <= DEPTH_MAX, "{}: deeper than {DEPTH_MAX} folders", folder.display());
    for entry in fs::read_dir(folder).with_context(|| format!("{} is read", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
            read_folder(&entry.path(), &format!("{path}/"), depth + 1, files)?;
        } else if kind.is_file() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
            let bytes = fs::read(entry.path()).with_context(|| format!("{path} is read"))?;
            files.extend(String::from_utf8(bytes).ok().map(|text| TextFile { path, text }));
        }
    }
    Ok(())
}

/// Everything that the tree may not have, and everything it lacks, a line each.
pub fn violations(files: &[TextFile]) -> Vec<String> {
    let mut violations: Vec<String> = files.iter().flat_map(violations_of).collect();
    for folder in imports::pure_folders() {
        let bans = format!("{folder}/clippy.toml");
        if !files.iter().any(|file| file.path == bans) {
            violations.push(format!("{bans}: is missing; it bans clocks, files and sockets from a pure crate"));
        }
    }
    violations
}

fn violations_of(file: &TextFile) -> Vec<String> {
    let mut violations = Vec::new();
    let path = &file.path;
    for (number, line) in (1..).zip(file.text.lines()) {
        for machine_path in MACHINE_PATHS.iter().filter(|machine_path| line.contains(**machine_path)) {
            violations.push(format!("{path}:{number}: names a folder of one machine, {machine_path}"));
        }
        for mark in UNFINISHED.iter().filter(|mark| is_source(path) && has_word(line, mark)) {
            violations.push(format!("{path}:{number}: {mark}"));
        }
    }
    let lines = file.text.lines().count();
    if is_source(path) && lines > SOURCE_LINES_MAX {
        violations.push(format!("{path}: {lines} lines, {SOURCE_LINES_MAX} are allowed"));
    }
    if path.starts_with("docs/decisions/") && path.ends_with(".md") && headings(&file.text) != DECISION_HEADINGS {
        violations.push(format!("{path}: a decision record has the headings {}", DECISION_HEADINGS.join(", ")));
    }
    violations
}

fn is_source(path: &str) -> bool {
    SOURCE_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// Whether `word` is in `line`, with no letter, digit or `_` touching its ends.
fn has_word(line: &str, word: &str) -> bool {
    let touches = |neighbour: Option<char>| neighbour.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !touches(before.chars().next_back()) && (word.ends_with('(') || !touches(after.chars().next()))
    })
}

/// The second-level headings of a Markdown text.
fn headings(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("## ")).map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expect: &[&str]) {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        assert_eq!(violations_of(&file), expect, "{path}");
    }

    #[test]
    fn a_source_file_may_be_so_long_and_no_longer() {
        check("crates/a/src/lib.rs", &"//\n".repeat(SOURCE_LINES_MAX), &[]);
        check("crates/a/src/lib.rs", &"//\n".repeat(SOURCE_LINES_MAX + 1), &["crates/a/src/lib.rs: 601 lines, 600 are allowed"]);
        check("Cargo.lock", &"#\n".repeat(SOURCE_LINES_MAX + 1), &[]);
    }

    #[test]
    fn unfinished_work_is_found_in_every_form() {
        for mark in UNFINISHED {
            check("a.rs", &format!("fn a() {{}}\n// {mark} more"), &[&format!("a.rs:2: {mark}")]);
            check("a.md", mark, &[]);
        }
    }

    #[test]
    fn a_mark_inside_a_longer_word_is_none() {
        let [todo, .., wait] = UNFINISHED else { panic!("more than one mark") };
        check("a.rs", &format!("let MY_{todo} = {todo}S; // {wait}here"), &[]);
        check("a.rs", &format!("{todo}: later"), &[&format!("a.rs:1: {todo}")]);
    }

    #[test]
    fn a_path_of_one_machine_is_found_in_any_file() {
        for path in MACHINE_PATHS {
            check("README.md", &format!("see {path}notes"), &[&format!("README.md:1: names a folder of one machine, {path}")]);
        }
        check("README.md", "see /var/lib/bodkin/", &[]);
    }

    #[test]
    fn a_decision_record_has_all_its_headings() {
        let text = |headings: &[&str]| headings.iter().map(|heading| format!("## {heading}\nText.\n")).collect::<String>();
        let expect = "docs/decisions/0001.md: a decision record has the headings Context, Choice, Given up, Evidence, How to undo";
        check("docs/decisions/0001.md", &text(DECISION_HEADINGS), &[]);
        check("docs/decisions/0001.md", &text(&DECISION_HEADINGS[1..]), &[expect]);
        check("docs/design/shard.md", "## Anything\n", &[]);
    }

    #[test]
    fn a_pure_crate_without_its_bans_is_told() {
        let folders: Vec<String> = imports::pure_folders().collect();
        assert_eq!(
            folders,
            ["broker", "operators", "arrowhead", "simulator", "zmtp", "petri", "relay", "nats"].map(|name| format!("crates/{name}"))
        );
        let bans = folders.iter().map(|folder| TextFile { path: format!("{folder}/clippy.toml"), text: String::new() });
        let mut files: Vec<TextFile> = bans.collect();
        assert_eq!(violations(&files), [""; 0]);
        files.remove(0);
        let expect = "crates/broker/clippy.toml: is missing; it bans clocks, files and sockets from a pure crate";
        assert_eq!(violations(&files), [expect]);
    }

    #[test]
    fn this_file_is_among_those_that_are_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
        let files = read(root).expect("the tree is read");
        assert!(files.iter().any(|file| file.path == "xtask/src/tree.rs" && file.text.contains("this_file_is_among")));
        assert!(files.iter().all(|file| !file.path.starts_with("target/") && !file.path.starts_with(".git/")));
    }
}
