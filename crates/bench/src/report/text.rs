//! A report as tables on a terminal.

use std::fmt::Write;

use super::{Outcome, Report, figure};
use crate::load::StageTimes;
use crate::machine::Conditions;
use crate::published::Published;
use crate::threshold::Verdict;

impl Report {
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
        self.comparisons.iter().for_each(|comparison| out.push_str(&comparison.text()));
        published_table(&mut out, &self.published);
        self.verdicts.iter().for_each(|verdict| line(&mut out, format_args!("\n{}", verdict.sentence())));
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
    if let Some(state) = &conditions.state {
        line(out, format_args!("  state: {state}"));
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

impl Verdict {
    /// Whether the threshold was met, with the figure.
    pub fn sentence(&self) -> String {
        let value = self.value.map(|value| format!("{} for ", figure(value))).unwrap_or_default();
        format!("{} {}: {value}{}", if self.met { "met" } else { "MISSED" }, self.threshold, self.outcome)
    }
}
