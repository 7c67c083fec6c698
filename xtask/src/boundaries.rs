//! Lists of the documents that name where foreign bytes are read and where `unsafe` is allowed.
//!
//! `cargo xtask tree` compares both lists with the tree: `Bytes from outside` in ARCHITECTURE.md, and the
//! statement on `unsafe` in SECURITY.md.

use std::collections::BTreeSet;

use crate::tree::TextFile;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const SECURITY: &str = "SECURITY.md";
const HEADING: &str = "## Bytes from outside";
const UNSAFE_STATEMENT: &str = "* `unsafe` is denied";
/// Attribute of a file that may use `unsafe`; in pieces, so that this file may be checked like any other.
const ALLOWS_UNSAFE: &str = concat!("#![allow(", "unsafe_code)]");
/// Cell of a place that no fuzz target reads.
const NOT_FUZZED: &str = "not fuzzed";
const TARGETS: &str = "fuzz/fuzz_targets/";

/// Returns every difference between the lists and the tree, a line each.
pub fn violations(files: &[TextFile]) -> Vec<String> {
    let mut violations = unsafe_violations(files);
    violations.extend(place_violations(files));
    violations
}

fn text<'a>(files: &'a [TextFile], path: &str) -> &'a str {
    files.iter().find(|file| file.path() == path).map_or("", TextFile::text)
}

/// Returns the words of a text between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn unsafe_violations(files: &[TextFile]) -> Vec<String> {
    let lines = text(files, SECURITY).lines().skip_while(|line| !line.starts_with(UNSAFE_STATEMENT));
    let statement: Vec<&str> =
        lines.enumerate().take_while(|(at, line)| *at == 0 || !line.starts_with('*')).map(|(_, line)| line).collect();
    let statement = statement.join("\n");
    if statement.is_empty() {
        return vec![format!("{SECURITY}: the statement `{UNSAFE_STATEMENT}` is missing")];
    }
    let listed: BTreeSet<&str> = quoted(&statement).filter(|word| word.ends_with(".rs")).collect();
    let allows = |file: &&TextFile| file.path().ends_with(".rs") && file.text().lines().any(|line| line.starts_with(ALLOWS_UNSAFE));
    let allowing: BTreeSet<&str> = files.iter().filter(allows).map(TextFile::path).collect();
    let unlisted = allowing.difference(&listed).map(|path| format!("{path}: allows unsafe code, and {SECURITY} does not list the file"));
    let needless = listed.difference(&allowing).map(|path| format!("{SECURITY}: lists {path}, which does not allow unsafe code"));
    unlisted.chain(needless).collect()
}

fn place_violations(files: &[TextFile]) -> Vec<String> {
    let section = text(files, ARCHITECTURE).lines().skip_while(|line| *line != HEADING).skip(1).take_while(|line| !line.starts_with("## "));
    let rows: Vec<Vec<&str>> = section
        .filter(|line| line.starts_with("| ") && !line.starts_with("| bytes "))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    if rows.is_empty() {
        return vec![format!("{ARCHITECTURE}: the table of `{HEADING}` is missing")];
    }
    let is_there = |path: &str| {
        files.iter().any(|file| file.path() == path || file.path().strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    };
    let targets: BTreeSet<&str> = files.iter().filter_map(|file| file.path().strip_prefix(TARGETS)?.strip_suffix(".rs")).collect();
    let mut violations = Vec::new();
    let mut named = BTreeSet::new();
    for row in &rows {
        let [bytes, places, fuzzed] = row[..] else {
            violations.push(format!("{ARCHITECTURE}: bytes, places, and fuzz targets expected in {}", row.join(" | ")));
            continue;
        };
        let lost = quoted(places).filter(|place| !is_there(place));
        violations.extend(lost.map(|place| format!("{ARCHITECTURE}: {bytes}: {place} does not exist")));
        if quoted(places).next().is_none() {
            violations.push(format!("{ARCHITECTURE}: {bytes}: no place is named"));
        }
        if quoted(fuzzed).next().is_none() && fuzzed != NOT_FUZZED {
            violations.push(format!("{ARCHITECTURE}: {bytes}: a fuzz target or \"{NOT_FUZZED}\" expected, \"{fuzzed}\" found"));
        }
        named.extend(quoted(fuzzed));
    }
    let unknown = named.difference(&targets).map(|target| format!("{ARCHITECTURE}: there is no fuzz target {target}"));
    let unnamed = targets.difference(&named).map(|target| format!("{ARCHITECTURE}: no place names the fuzz target {target}"));
    violations.into_iter().chain(unknown).chain(unnamed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(architecture: &str, security: &str, allowing: &[&str]) -> Vec<TextFile> {
        let mut files = vec![
            TextFile::new(ARCHITECTURE, architecture),
            TextFile::new(SECURITY, security),
            TextFile::new("fuzz/fuzz_targets/wire.rs", ""),
            TextFile::new("crates/a/src/wire/mod.rs", ""),
        ];
        files.extend(allowing.iter().map(|path| TextFile::new(path, &format!("//! Calls.\n{ALLOWS_UNSAFE} // Reason.\n"))));
        files
    }

    const PLACES: &str =
        "## Bytes from outside\n\n| bytes | read by | fuzz target |\n|---|---|---|\n| frames | `crates/a/src/wire` | `wire` |\n\n## Next\n";
    const STATEMENT: &str = "* `unsafe` is denied but in\n  `crates/a/src/b.rs`.\n* Next: `c.rs`.\n";

    #[test]
    fn lists_equal_to_the_tree_are_accepted() {
        assert_eq!(violations(&tree(PLACES, STATEMENT, &["crates/a/src/b.rs"])), Vec::<String>::new());
        let unfuzzed = PLACES.replace("\n\n## Next", "\n| rows | `crates/a/src/wire/mod.rs` | not fuzzed |\n");
        assert_eq!(violations(&tree(&unfuzzed, STATEMENT, &["crates/a/src/b.rs"])), Vec::<String>::new());
    }

    #[test]
    fn differences_are_named() {
        let cases = [
            (PLACES, STATEMENT, &["crates/a/src/b.rs", "x.rs"][..], "x.rs: allows unsafe code"),
            (PLACES, STATEMENT, &[], "lists crates/a/src/b.rs"),
            (PLACES, "", &[], "is missing"),
            ("", STATEMENT, &["crates/a/src/b.rs"], "is missing"),
        ];
        for (architecture, security, allowing, expected) in cases {
            let found = violations(&tree(architecture, security, allowing));
            assert!(matches!(&found[..], [one] if one.contains(expected)), "{expected}: {found:?}");
        }
        for (from, to, expected) in [
            ("crates/a/src/wire", "crates/a/src/wir", "crates/a/src/wir does not exist"),
            ("`wire` |", "`wires` |", "there is no fuzz target wires"),
            ("`wire` |", " |", "a fuzz target or"),
            ("`wire` |", "not fuzzed |", "no place names the fuzz target wire"),
            ("`crates/a/src/wire`", "", "no place is named"),
        ] {
            let found = violations(&tree(&PLACES.replace(from, to), STATEMENT, &["crates/a/src/b.rs"]));
            assert!(found.iter().any(|line| line.contains(expected)), "{expected}: {found:?}");
        }
    }
}
