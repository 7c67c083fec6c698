//! One report or many, as they are written.

use serde_json::{Value, json};

use super::Report;

/// The reports of a series, or the one of a single experiment.
#[derive(Debug, Default)]
pub struct Document {
    /// What they are about.
    pub title: String,
    /// Each in a section of its own.
    pub reports: Vec<Report>,
    /// Commands that could not be run, and why.
    pub failures: Vec<(String, String)>,
    series: bool,
}

impl Document {
    /// Of one experiment.
    pub fn single(report: Report) -> Self {
        Self { title: report.title.clone(), reports: vec![report], failures: Vec::new(), series: false }
    }

    /// Of a series that has not begun.
    pub fn series(title: String) -> Self {
        Self { title, series: true, ..Self::default() }
    }

    /// Whether any threshold was missed.
    pub fn missed(&self) -> bool {
        self.reports.iter().any(Report::missed)
    }

    /// As JSON: a single report is its own document.
    pub fn json(&self) -> Value {
        match (&self.reports[..], self.series) {
            ([report], false) => report.json(),
            (reports, _) => json!({
                "experiment": self.title,
                "reports": reports.iter().map(Report::json).collect::<Vec<_>>(),
                "failures": self.failures.iter().map(|(command, why)| json!({ "command": command, "why": why })).collect::<Vec<_>>(),
            }),
        }
    }

    /// As tables.
    pub fn table(&self) -> String {
        let mut tables: Vec<String> = self.reports.iter().map(Report::table).collect();
        tables.extend(self.failures.iter().map(|(command, why)| format!("{command}\nFAILED: {why}\n")));
        tables.join("\n----\n\n")
    }
}
