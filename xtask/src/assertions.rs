//! Assertions of the crates that keep the pair's promises: each says why nothing that a peer, a client or an operator does reaches it.
//!
//! What others send is refused by types and errors; an assertion that fails is a fault of Bodkin's own. `cargo xtask assertions` lists them for who reviews
//! them, and `cargo xtask tree` refuses one without a reason.

use crate::tree::TextFile;

/// Beginnings of the paths where they are looked for: the machines, the pair, and every path of an event.
const PATHS: [&str; 8] = [
    "crates/broker/src/",
    "crates/zmtp/src/",
    "crates/host/src/pair",
    "crates/host/src/shard",
    "crates/host/src/topics",
    "crates/host/src/graph",
    "crates/host/src/fleet",
    "crates/host/src/push",
];

/// What asserts, and behind how many arguments its reason stands.
const KINDS: [(&str, usize); 7] =
    [(".unwrap()", 0), (".expect(", 0), ("unreachable!(", 0), ("panic!(", 0), ("assert!(", 1), ("assert_eq!(", 2), ("assert_ne!(", 2)];

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Assertion {
    /// `FILE:LINE`.
    pub place: String,
    /// In the program's words; none if it gives none.
    pub reason: Option<String>,
}

/// All assertions outside of tests.
pub fn assertions(files: &[TextFile]) -> Vec<Assertion> {
    let is_test =
        |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/schedule") || path.ends_with("/vectors.rs");
    let is_looked_at = |path: &str| PATHS.iter().any(|beginning| path.starts_with(beginning)) && path.ends_with(".rs") && !is_test(path);
    files.iter().filter(|file| is_looked_at(file.path())).flat_map(assertions_of).collect()
}

/// Those without a reason, a line each.
pub fn violations(files: &[TextFile]) -> Vec<String> {
    let bare = assertions(files).into_iter().filter(|assertion| assertion.reason.is_none());
    bare.map(|Assertion { place, .. }| format!("{place}: an assertion says why it cannot be reached")).collect()
}

fn assertions_of(file: &TextFile) -> Vec<Assertion> {
    let text = without_tests(file.text());
    let mut found: Vec<(usize, Option<String>)> = Vec::new();
    for (kind, skipped) in KINDS {
        for (at, _) in text.match_indices(kind) {
            let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
            // The compiler makes a constant's.
            if line.trim_start().starts_with("//") || line.contains("const ") {
                continue;
            }
            let reason = arguments(&text[at + kind.len()..]).get(skipped).and_then(|argument| literal(argument));
            // A method of that name that is no `Option`'s.
            if kind == ".expect(" && reason.is_none() {
                continue;
            }
            found.push((at, reason));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let place = |at: usize| format!("{}:{}", file.path(), text[..at].matches('\n').count() + 1);
    found.into_iter().map(|(at, reason)| Assertion { place: place(at), reason }).collect()
}

/// The text with modules of tests blanked; lines keep their numbers.
fn without_tests(text: &str) -> String {
    let mut is_in_tests = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        is_in_tests |= line.starts_with("#[cfg(test)]");
        lines.push(if is_in_tests { "" } else { line });
        if line.starts_with('}') || line.ends_with(';') && !line.starts_with(' ') {
            is_in_tests = false;
        }
    }
    lines.join("\n")
}

/// The arguments of a call, from behind its parenthesis.
fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut arguments) = (0, 0, Vec::new());
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => {
                while let Some((_, letter)) = letters.next().filter(|(_, letter)| *letter != '"') {
                    if letter == '\\' {
                        letters.next();
                    }
                }
            }
            '(' | '[' | '{' => depth += 1,
            ',' if depth == 0 => {
                arguments.push(text[begin..at].trim());
                begin = at + 1;
            }
            ')' | ']' | '}' if depth == 0 => {
                arguments.push(text[begin..at].trim());
                break;
            }
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    arguments
}

/// The words of a string literal.
fn literal(argument: &str) -> Option<String> {
    let words = argument.strip_prefix('"')?.strip_suffix('"')?;
    (!words.is_empty()).then(|| words.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertion_without_a_reason_is_found_outside_of_tests() {
        let text = "fn a() {\n    assert!(x(1, 2) > 0, \"there is {x}, always\");\n    assert_eq!(a, [b, c]);\n    // assert!(no)\n    \
            x.expect(token)?;\n    x.expect(\"it \\\"is\\\" there\");\n    y.unwrap();\n    unreachable!(\"{a} has gone\")\n}\n\n\
            #[cfg(test)]\nmod tests {\n    fn b() {\n        x.unwrap();\n    }\n}\n";
        let files = [TextFile::new("crates/broker/src/a.rs", text), TextFile::new("crates/broker/src/a/tests.rs", text)];
        let found = assertions(&files);
        let reasons: Vec<(&str, Option<&str>)> =
            found.iter().map(|found| (found.place.rsplit(':').next().expect("a line"), found.reason.as_deref())).collect();
        let expected = [
            ("2", Some("there is {x}, always")),
            ("3", None),
            ("6", Some("it \\\"is\\\" there")),
            ("7", None),
            ("8", Some("{a} has gone")),
        ];
        assert_eq!(reasons, expected);
        let place = |line: u32| format!("crates/broker/src/a.rs:{line}: an assertion says why it cannot be reached");
        assert_eq!(violations(&files), [place(3), place(7)]);
    }
}
