//! What an experiment ends with: one JSON document, tables on a terminal, or a page to look at.

mod axis;
mod chart;
mod comparison;
mod document;
mod html;
mod text;

pub use comparison::{ComparedRow, Comparison};
pub use document::Document;

use serde_json::{Map, Value, json};

use crate::expectation::Faults;
use crate::load::{Measured, StageTimes};
use crate::machine::Conditions;
use crate::published::Published;
use crate::statistics::{Figure, Latencies, Series, Unit};
use crate::threshold::{Threshold, Verdict};
use crate::time_line::{Point, TimeLine};

/// Percentiles that every distribution is shown with.
pub const PERCENTS: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

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
    /// Of the last run.
    time_line: TimeLine,
}

impl Outcome {
    /// Nothing run yet.
    pub fn new(label: String) -> Self {
        Self { label, ..Self::default() }
    }

    /// Adds a run.
    pub fn push(&mut self, figures: Vec<Figure>, measured: Measured) {
        self.series.push(figures);
        self.latencies.add(&measured.latencies);
        self.faults.append(measured.faults);
        self.time_line = measured.time_line;
    }

    /// Adds the server's time of each stage during a run.
    pub fn add_stages(&mut self, stages: StageTimes) {
        self.stages.push(stages);
    }

    /// The latencies of all runs.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    fn json(&self) -> Value {
        let mut object = self.series.json();
        object.insert("label".into(), json!(self.label));
        object.insert("first_errors".into(), json!(self.faults.first));
        object.insert("latency_histogram_ns".into(), json!(self.latencies.counts()));
        if self.latencies.count() > 0 {
            let percentile = |percent: &f64| (format!("p{percent}"), json!(self.latencies.percentile(*percent, Unit::Ms)));
            let mut percentiles: Map<_, _> = PERCENTS.iter().map(percentile).collect();
            percentiles.insert("max".into(), json!(self.latencies.max(Unit::Ms)));
            object.insert("percentiles_ms".into(), Value::Object(percentiles));
            object.insert("time_line".into(), json!(self.time_line.points().collect::<Vec<Point>>()));
        }
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
    /// Tables of others with our figures beside them.
    pub comparisons: Vec<Comparison>,
    /// What others published.
    pub published: Vec<Published>,
    notes: Vec<String>,
    verdicts: Vec<Verdict>,
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

    /// Holds the outcomes against thresholds.
    pub fn judge(&mut self, thresholds: &[Threshold]) {
        for threshold in thresholds {
            self.verdicts.extend(threshold.judge(&self.outcomes));
        }
    }

    /// Whether a threshold was missed.
    pub fn missed(&self) -> bool {
        self.verdicts.iter().any(|verdict| !verdict.met)
    }

    /// The whole report as one JSON document.
    pub fn json(&self) -> Value {
        let mut document = self.outcomes.first().map_or_else(Map::new, |outcome| outcome.series.json());
        document.insert("experiment".into(), json!(self.title));
        document.insert("conditions".into(), json!(self.conditions));
        document.insert("outcomes".into(), self.outcomes.iter().map(Outcome::json).collect());
        document
            .insert("ratios".into(), self.ratios.iter().map(|(what, ratio)| (what.clone(), json!(ratio))).collect::<Map<_, _>>().into());
        document.insert("comparisons".into(), json!(self.comparisons));
        document.insert("published".into(), json!(self.published));
        document.insert("notes".into(), json!(self.notes));
        document.insert("thresholds".into(), json!(self.verdicts));
        Value::Object(document)
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
        let measured = Measured { latencies, faults, time_line: TimeLine::default() };
        outcome.push(vec![Figure::median("mean_ms", 1.5), Figure::sum("errors", 1)], measured);
        report.outcomes.push(outcome);
        report.ratio("p50, broker to relay".into(), 1.25);
        report.judge(&["errors<1".parse().unwrap(), "mean_ms<2".parse().unwrap()]);
        assert!(report.missed());
        let json = report.json();
        assert_eq!((&json["mean_ms"], &json["errors"]), (&json!(1.5), &json!(1)));
        assert_eq!(json["repeats"]["mean_ms"]["values"], json!([1.5]));
        assert_eq!(json["outcomes"][0]["first_errors"], json!(["status 500"]));
        assert_eq!(json["outcomes"][0]["latency_histogram_ns"], json!([[5, 1]]));
        assert_eq!(json["ratios"]["p50, broker to relay"], json!(1.25));
        let table = report.table();
        for part in [
            "register 2 simultaneous",
            "mean_ms",
            "1.500",
            "one of 1 errors: status 500",
            "ratio p50, broker to relay: 1.250",
            "MISSED errors<1: 1",
            "met mean_ms<2: 1.500",
        ] {
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
