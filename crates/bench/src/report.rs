//! What an experiment ends with: one JSON document, or tables on a terminal.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::expectation::Faults;
use crate::load::StageTimes;
use crate::machine::Conditions;
use crate::published::Published;
use crate::statistics::{Figure, Latencies, Series};

/// The repeated runs of one thing.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was run.
    pub label: String,
    /// Its figures.
    pub series: Series,
    latencies: Latencies,
    faults: Faults,
    stages: Vec<StageTimes>,
}

impl Outcome {
    /// Nothing run yet.
    pub fn new(label: String) -> Self {
        Self { label, ..Self::default() }
    }

    /// Adds a run.
    pub fn push(&mut self, figures: Vec<Figure>, latencies: &Latencies, faults: Faults) {
        self.series.push(figures);
        self.latencies.add(latencies);
        self.faults.append(faults);
    }

    /// Adds the server's time of each stage during a run.
    pub fn add_stages(&mut self, stages: StageTimes) {
        self.stages.push(stages);
    }

    fn json(&self) -> Value {
        let mut object = self.series.json();
        object.insert("label".into(), json!(self.label));
        object.insert("first_errors".into(), json!(self.faults.first));
        object.insert("latency_histogram_ns".into(), json!(self.latencies.counts()));
        if !self.stages.is_empty() {
            object.insert("stages".into(), self.stages.iter().map(stages_json).collect());
        }
        Value::Object(object)
    }
}

fn stages_json(times: &StageTimes) -> Value {
    let of_system = |stages: &std::collections::BTreeMap<String, crate::stages::Stage>| {
        Value::Object(stages.iter().map(|(name, stage)| (name.clone(), stage.json())).collect())
    };
    Value::Object(times.iter().map(|(system, stages)| (system.clone(), of_system(stages))).collect())
}

/// A whole experiment.
#[derive(Debug, Default)]
pub struct Report {
    title: String,
    /// Under which conditions.
    pub conditions: Option<Conditions>,
    /// What was run; the first one's figures are also the document's own.
    pub outcomes: Vec<Outcome>,
    ratios: Vec<(String, f64)>,
    /// What others published.
    pub published: Vec<Published>,
    notes: Vec<String>,
}

impl Report {
    /// An empty report.
    pub fn new(title: String) -> Self {
        Self { title, ..Self::default() }
    }

    /// Adds a ratio of two figures.
    pub fn ratio(&mut self, what: String, ratio: f64) {
        self.ratios.push((what, ratio));
    }

    /// Adds a remark.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The whole report as one JSON document.
    pub fn json(&self) -> Value {
        let mut document = self.outcomes.first().map_or_else(Map::new, |outcome| outcome.series.json());
        document.insert("experiment".into(), json!(self.title));
        document.insert("conditions".into(), json!(self.conditions));
        document.insert("outcomes".into(), self.outcomes.iter().map(Outcome::json).collect());
        document
            .insert("ratios".into(), self.ratios.iter().map(|(what, ratio)| (what.clone(), json!(ratio))).collect::<Map<_, _>>().into());
        document.insert("published".into(), json!(self.published));
        document.insert("notes".into(), json!(self.notes));
        Value::Object(document)
    }

    /// The report as tables.
    pub fn table(&self) -> String {
        let mut out = format!("{}\n", self.title);
        if let Some(conditions) = &self.conditions {
            conditions_table(&mut out, conditions);
        }
        for outcome in &self.outcomes {
            outcome_table(&mut out, outcome);
        }
        for (what, ratio) in &self.ratios {
            line(&mut out, format_args!("\nratio {what}: {ratio:.3}"));
        }
        for note in &self.notes {
            line(&mut out, format_args!("\n{note}"));
        }
        published_table(&mut out, &self.published);
        out
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("text takes text");
}

fn conditions_table(out: &mut String, conditions: &Conditions) {
    line(out, format_args!("  {}", conditions.command));
    let Conditions { cpu, cores, kernel, version, commit, .. } = conditions;
    line(out, format_args!("  {cpu}, {cores} cores, {kernel}; bodkin {version}, commit {commit}"));
    line(out, format_args!("  server: {}; placement: {}", conditions.server, conditions.placement));
    if let Some(filesystem) = &conditions.filesystem {
        line(out, format_args!("  data on {filesystem}"));
    }
    line(out, format_args!("  warm-up: {}; repeats: {}", conditions.warm_up, conditions.repeats));
    line(out, format_args!("  load average before {:?}, after {:?}", conditions.load_before, conditions.load_after));
}

fn outcome_table(out: &mut String, outcome: &Outcome) {
    let width = outcome.series.rows().map(|row| row.key.len()).max().unwrap_or(0).max(outcome.label.len());
    line(out, format_args!("\n{:width$} {:>12} {:>12} {:>12}", outcome.label, "median", "min", "max"));
    for row in outcome.series.rows() {
        line(out, format_args!("{:width$} {:>12} {:>12} {:>12}", row.key, figure(row.median), figure(row.min), figure(row.max)));
    }
    for fault in &outcome.faults.first {
        line(out, format_args!("  one of {} errors: {fault}", outcome.faults.count));
    }
    if let Some(last) = outcome.stages.last() {
        stages_table(out, last);
    }
}

fn stages_table(out: &mut String, times: &StageTimes) {
    line(out, format_args!("\n{:34} {:>9} {:>12} {:>12} {:>12}", "server, last run", "count", "mean us", "p50 us", "p99 us"));
    for (system, stages) in times {
        for (name, stage) in stages {
            let (mean, p50, p99) = (figure(stage.mean_us()), figure(stage.percentile_us(50.0)), figure(stage.percentile_us(99.0)));
            line(out, format_args!("{:34} {:>9} {mean:>12} {p50:>12} {p99:>12}", format!("{system} {name}"), stage.count));
        }
    }
}

fn published_table(out: &mut String, published: &[Published]) {
    let mut source = "";
    for figure in published {
        if figure.source != source {
            source = &figure.source;
            line(out, format_args!("\n{source}"));
        }
        line(out, format_args!("  {}: {}", figure.what, figure.figures));
    }
}

/// Four significant digits, and counts as they are.
fn figure(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        let whole_digits = value.abs().log10().floor() as i32 + 1;
        format!("{value:.*}", usize::try_from((4 - whole_digits).clamp(0, 6)).expect("clamped to no less than 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_its_figures_at_the_top_and_by_outcome() {
        let mut report = Report::new("register 2 simultaneous".into());
        let mut faults = Faults::default();
        faults.add("status 500".into());
        let mut outcome = Outcome::new("fresh names".into());
        let mut latencies = Latencies::default();
        latencies.record_ns(5);
        outcome.push(vec![Figure::median("mean_ms", 1.5), Figure::sum("errors", 1)], &latencies, faults);
        report.outcomes.push(outcome);
        report.ratio("p50, broker to relay".into(), 1.25);
        let json = report.json();
        assert_eq!((&json["mean_ms"], &json["errors"]), (&json!(1.5), &json!(1)));
        assert_eq!(json["repeats"]["mean_ms"]["values"], json!([1.5]));
        assert_eq!(json["outcomes"][0]["first_errors"], json!(["status 500"]));
        assert_eq!(json["outcomes"][0]["latency_histogram_ns"], json!([[5, 1]]));
        assert_eq!(json["ratios"]["p50, broker to relay"], json!(1.25));
        let table = report.table();
        for part in ["register 2 simultaneous", "mean_ms", "1.500", "one of 1 errors: status 500", "ratio p50, broker to relay: 1.250"] {
            assert!(table.contains(part), "{table}");
        }
    }

    #[test]
    fn figures_have_four_digits() {
        for (value, text) in [(0.0, "0"), (12.0, "12"), (1.23456, "1.235"), (0.012345, "0.01235"), (12345.6, "12346"), (99.996, "100.00")] {
            assert_eq!(figure(value), text);
        }
    }
}
