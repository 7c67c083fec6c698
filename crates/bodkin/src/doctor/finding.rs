//! What an examination found.

use std::fmt;

use serde::Serialize;

use crate::wrap::wrap;

/// Widest line, in characters.
const LINE_WIDTH: usize = 120;
/// Where the text begins, in characters.
const TEXT_COLUMN: usize = 26;

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// In order.
    Ok,
    /// Bodkin works, worse than it could.
    Warning,
    /// Bodkin does not work, or will lose something.
    Problem,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What an examination found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// How good it is.
    pub verdict: Verdict,
    /// What is so, and what it means.
    pub found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    /// In order.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, found: found.into(), advice: None }
    }

    /// Worse than it could be.
    pub fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, found: found.into(), advice: Some(advice.into()) }
    }

    /// Bad.
    pub fn problem(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Problem, found: found.into(), advice: Some(advice.into()) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = LINE_WIDTH - TEXT_COLUMN;
        let advice = self.advice.as_ref().map(|advice| format!("To do: {advice}"));
        let lines: Vec<String> = wrap(&self.found, width).into_iter().chain(advice.iter().flat_map(|advice| wrap(advice, width))).collect();
        let head = format!("{:<9}{:<17}", self.verdict.name(), self.check);
        for (at, line) in lines.iter().enumerate() {
            writeln!(f, "{:<TEXT_COLUMN$}{line}", if at == 0 { head.as_str() } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_is_the_greatest() {
        assert!(Verdict::Ok < Verdict::Warning && Verdict::Warning < Verdict::Problem);
    }

    #[test]
    fn advice_stands_under_what_was_found() {
        let told = Finding::warning("clocks", "one", "two ".repeat(40)).to_string();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "warning  clocks           one");
        assert!(lines[1].starts_with("                          To do: two"));
        assert!(lines.len() == 3 && lines.iter().all(|line| line.len() <= LINE_WIDTH));
    }
}
