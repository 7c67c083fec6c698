//! Licences: everything that is linked, and everything that builds it, may be used and passed on by anyone.

use std::iter::Peekable;
use std::str::SplitWhitespace;

use crate::workspace::Workspace;

/// SPDX names of licences that a dependency may have. MPL-2.0 asks that changes to its own files are published; we make none.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "blessing",
];

/// Exceptions (SPDX `WITH`): each only adds permissions to its licence.
const ALLOWED_EXCEPTIONS: &[&str] = &["LLVM-exception"];

/// Deepest nesting of parentheses that is read; a deeper expression is refused.
const DEPTH_MAX: u32 = 16;

/// Every package whose licence is missing, unreadable or not allowed, a line each.
pub fn violations(workspace: &Workspace) -> Vec<String> {
    let packages = workspace.packages.values();
    let refused = packages.filter_map(|package| match package.licence.as_deref() {
        None => Some(format!("{}: names no licence", package.name)),
        Some(expression) => match is_allowed(expression) {
            Ok(true) => None,
            Ok(false) => Some(format!("{}: its licence is not on the list of xtask/src/licence.rs: {expression}", package.name)),
            Err(Unreadable) => Some(format!("{}: its licence is no SPDX expression: {expression}", package.name)),
        },
    });
    refused.collect()
}

/// The text is not an SPDX expression of at most [`DEPTH_MAX`] levels.
#[derive(Debug, PartialEq, Eq)]
struct Unreadable;

/// Whether some choice that `expression` offers needs only allowed licences. Reads SPDX and cargo's old `/` for `OR`.
fn is_allowed(expression: &str) -> Result<bool, Unreadable> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let allowed = either(&mut words, 0)?;
    if words.next().is_some() { Err(Unreadable) } else { Ok(allowed) }
}

type Words<'a> = Peekable<SplitWhitespace<'a>>;

fn either(words: &mut Words, depth: u32) -> Result<bool, Unreadable> {
    let mut allowed = both(words, depth)?;
    while words.next_if_eq(&"OR").is_some() {
        allowed |= both(words, depth)?;
    }
    Ok(allowed)
}

fn both(words: &mut Words, depth: u32) -> Result<bool, Unreadable> {
    let mut allowed = one(words, depth)?;
    while words.next_if_eq(&"AND").is_some() {
        allowed &= one(words, depth)?;
    }
    Ok(allowed)
}

fn one(words: &mut Words, depth: u32) -> Result<bool, Unreadable> {
    match words.next() {
        Some("(") if depth < DEPTH_MAX => {
            let allowed = either(words, depth + 1)?;
            words.next_if_eq(&")").map(|_| allowed).ok_or(Unreadable)
        }
        None | Some("(" | ")" | "AND" | "OR" | "WITH") => Err(Unreadable),
        Some(licence) => {
            let excepted = match words.next_if_eq(&"WITH") {
                None => true,
                Some(_) => ALLOWED_EXCEPTIONS.contains(&words.next().ok_or(Unreadable)?),
            };
            let or_later = licence.strip_suffix('+').unwrap_or(licence);
            Ok(excepted && ALLOWED.contains(&or_later))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_allowed_if_one_choice_of_it_is() {
        let cases = [
            ("MIT", Ok(true)),
            ("GPL-3.0", Ok(false)),
            ("MPL-2.0+", Ok(true)),
            ("GPL-2.0+", Ok(false)),
            ("MIT OR GPL-3.0", Ok(true)),
            ("GPL-3.0 OR AGPL-3.0", Ok(false)),
            ("MIT AND GPL-3.0", Ok(false)),
            ("MIT AND Apache-2.0", Ok(true)),
            ("MIT/Apache-2.0", Ok(true)),
            ("GPL-2.0 / Unlicense", Ok(true)),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Ok(true)),
            ("(MIT OR Apache-2.0) AND GPL-3.0", Ok(false)),
            ("GPL-3.0 OR MIT AND ISC", Ok(true)),
            ("MIT OR GPL-3.0 AND AGPL-3.0", Ok(true)),
            ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", Ok(true)),
            ("Apache-2.0 WITH Nonsense", Ok(false)),
            ("", Err(Unreadable)),
            ("MIT OR", Err(Unreadable)),
            ("MIT Apache-2.0", Err(Unreadable)),
            ("(MIT", Err(Unreadable)),
            ("MIT)", Err(Unreadable)),
            ("AND MIT", Err(Unreadable)),
            ("MIT WITH", Err(Unreadable)),
        ];
        for (expression, expect) in cases {
            assert_eq!(is_allowed(expression), expect, "{expression}");
        }
    }

    #[test]
    fn parentheses_are_read_to_a_limit() {
        let nested = |depth: u32| format!("{}MIT{}", "(".repeat(depth as usize), ")".repeat(depth as usize));
        assert_eq!(is_allowed(&nested(DEPTH_MAX)), Ok(true));
        assert_eq!(is_allowed(&nested(DEPTH_MAX + 1)), Err(Unreadable));
    }

    #[test]
    fn a_bad_licence_a_missing_one_and_an_unreadable_one_are_told() {
        let workspace = Workspace::default()
            .with_external("closed", Some("LicenseRef-Closed"), &[])
            .with_external("fine", Some("MIT OR Apache-2.0"), &[])
            .with_external("odd", Some("either of two"), &[])
            .with_external("silent", None, &[]);
        let expect = [
            "closed: its licence is not on the list of xtask/src/licence.rs: LicenseRef-Closed",
            "odd: its licence is no SPDX expression: either of two",
            "silent: names no licence",
        ];
        assert_eq!(violations(&workspace), expect);
    }
}
