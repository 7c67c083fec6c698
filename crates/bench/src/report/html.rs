//! A document as one HTML file that needs nothing else: no script, no font, no picture from elsewhere.

use std::fmt::Write;

use super::axis::{Axis, count, time};
use super::chart::{Chart, Curve, Stroke};
use super::{Document, Outcome, PERCENTS, Report, figure};
use crate::machine::Conditions;
use crate::statistics::Unit;
use crate::threshold::Verdict;
use crate::time_line::Point;

const STYLE: &str = include_str!("style.css");
/// Points of a distribution that are drawn.
const CURVE_POINTS: usize = 160;
/// Runs whose time lines are drawn into one picture.
const TIME_LINES_MAX: usize = 2;
/// Figures that have a column beside the distribution, and what it is called.
const HIGHLIGHTS: [(&str, &str); 14] = [
    ("limit", "largest N"),
    ("first_failure", "first failure"),
    ("start_ms", "start, ms"),
    ("idle_rss_mb", "idle, MB"),
    ("rows_per_s", "rows/s"),
    ("events_per_s", "events/s"),
    ("deliveries_per_s", "deliveries/s"),
    ("p50_ratio", "p50 ratio"),
    ("mean_ratio", "mean ratio"),
    ("p99_ratio", "p99 ratio"),
    ("lost", "lost"),
    ("out_of_order", "out of order"),
    ("errors", "errors"),
    ("peak_rss_mb", "peak MB"),
];

impl Document {
    /// The page.
    pub fn html(&self) -> String {
        let mut out = String::new();
        let title = escape(&self.title);
        put(&mut out, format_args!("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>"));
        put(&mut out, format_args!("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"));
        put(&mut out, format_args!("<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>"));
        put(&mut out, format_args!("<header>\n<p class=\"eyebrow\">Bodkin load laboratory</p>\n<h1>{title}</h1>"));
        put(&mut out, format_args!("{}\n</header>", self.summary()));
        if let Some(conditions) = self.reports.iter().find_map(|report| report.conditions.as_ref()) {
            host(&mut out, conditions);
        }
        if self.reports.len() > 1 {
            self.contents(&mut out);
        }
        for (at, report) in self.reports.iter().enumerate() {
            section(&mut out, at, report);
        }
        for (command, why) in &self.failures {
            put(&mut out, format_args!("<section><h2>Could not be run</h2><pre>{}</pre>", escape(command)));
            put(&mut out, format_args!("<p class=\"missed\">{}</p></section>", escape(why)));
        }
        put(&mut out, format_args!("</main>\n</body>\n</html>"));
        out
    }

    fn summary(&self) -> String {
        let verdicts: Vec<&Verdict> = self.reports.iter().flat_map(|report| &report.verdicts).collect();
        let missed = verdicts.iter().filter(|verdict| !verdict.met).count();
        let thresholds = match (verdicts.len(), missed) {
            (0, _) => "<span class=\"badge\">no thresholds set</span>".to_string(),
            (all, 0) => format!("<span class=\"badge met\">all {all} thresholds met</span>"),
            (all, missed) => format!("<span class=\"badge missed\">{missed} of {all} thresholds missed</span>"),
        };
        let failed = match self.failures.len() {
            0 => String::new(),
            failed => format!(" <span class=\"badge missed\">{failed} experiments could not be run</span>"),
        };
        format!("<p>{thresholds}{failed}</p>")
    }

    fn contents(&self, out: &mut String) {
        put(out, format_args!("<nav aria-label=\"Contents\">\n<ol>"));
        for (at, report) in self.reports.iter().enumerate() {
            let mark = match (report.verdicts.is_empty(), report.missed()) {
                (true, _) => "",
                (false, false) => " <span class=\"met\">met</span>",
                (false, true) => " <span class=\"missed\">missed</span>",
            };
            put(out, format_args!("<li><a href=\"#s{at}\">{}</a>{mark}</li>", escape(&report.title)));
        }
        put(out, format_args!("</ol>\n</nav>"));
    }
}

fn host(out: &mut String, conditions: &Conditions) {
    let Conditions { cpu, cores, kernel, version, commit, filesystem, .. } = conditions;
    put(out, format_args!("<dl class=\"facts\">"));
    fact(out, "Machine", &format!("{cpu}, {cores} cores"));
    fact(out, "Kernel", kernel);
    fact(out, "Bodkin", &format!("{version}, commit {commit}"));
    if let Some(filesystem) = filesystem {
        fact(out, "Data on", filesystem);
    }
    put(out, format_args!("</dl>"));
}

fn fact(out: &mut String, name: &str, value: &str) {
    put(out, format_args!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value)));
}

fn section(out: &mut String, at: usize, report: &Report) {
    put(out, format_args!("<section id=\"s{at}\">\n<h2>{}</h2>", escape(&report.title)));
    if let Some(conditions) = &report.conditions {
        run_facts(out, conditions);
    }
    for verdict in &report.verdicts {
        let class = if verdict.met { "met" } else { "missed" };
        put(out, format_args!("<p class=\"verdict {class}\">{}</p>", escape(&verdict.sentence())));
    }
    report.notes.iter().for_each(|note| put(out, format_args!("<p class=\"note\">{}</p>", escape(note))));
    distribution_table(out, &report.outcomes);
    charts(out, report);
    for (what, ratio) in &report.ratios {
        put(out, format_args!("<p class=\"ratio\"><b>{ratio:.3}</b> {}</p>", escape(what)));
    }
    report.comparisons.iter().for_each(|comparison| put(out, format_args!("{}", comparison.html())));
    published(out, report);
    all_figures(out, &report.outcomes);
    put(out, format_args!("</section>"));
}

fn run_facts(out: &mut String, conditions: &Conditions) {
    put(out, format_args!("<pre>{}</pre>\n<dl class=\"facts small\">", escape(&conditions.command)));
    fact(out, "Server", &conditions.server);
    fact(out, "Placement", &conditions.placement);
    if let Some(state) = &conditions.state {
        fact(out, "State", state);
    }
    fact(out, "Warm-up", &conditions.warm_up);
    fact(out, "Repeats", &conditions.repeats.to_string());
    let load = |load: [f64; 3]| load.map(|load| format!("{load:.2}")).join(" ");
    fact(out, "Load average", &format!("{} before, {} after", load(conditions.load_before), load(conditions.load_after)));
    put(out, format_args!("</dl>"));
}

fn distribution_table(out: &mut String, outcomes: &[Outcome]) {
    let shown: Vec<_> = HIGHLIGHTS.iter().filter(|(key, _)| outcomes.iter().any(|outcome| outcome.series.summary(key).is_some())).collect();
    let timed = outcomes.iter().any(|outcome| outcome.latencies.count() > 0);
    put(out, format_args!("<div class=\"scroll\"><table>\n<thead><tr><th></th>"));
    if timed {
        PERCENTS.iter().for_each(|percent| put(out, format_args!("<th>p{percent}</th>")));
        put(out, format_args!("<th>max</th><th>mean</th><th>n</th>"));
    }
    shown.iter().for_each(|(_, name)| put(out, format_args!("<th>{name}</th>")));
    put(out, format_args!("</tr></thead>\n<tbody>"));
    for (at, outcome) in outcomes.iter().enumerate() {
        put(out, format_args!("<tr><th><span class=\"key c{}\"></span>{}</th>", at % 8, escape(&outcome.label)));
        if timed {
            distribution_cells(out, outcome);
        }
        for (key, _) in &shown {
            let value = outcome.series.summary(key);
            put(out, format_args!("<td>{}</td>", value.map_or_else(String::new, highlight)));
        }
        put(out, format_args!("</tr>"));
        for fault in &outcome.faults.first {
            let width = shown.len() + if timed { PERCENTS.len() + 4 } else { 1 };
            let count = outcome.faults.count;
            put(out, format_args!("<tr><td class=\"fault\" colspan=\"{width}\">one of {count} errors: {}</td></tr>", escape(fault)));
        }
    }
    put(out, format_args!("</tbody>\n</table></div>"));
}

fn distribution_cells(out: &mut String, outcome: &Outcome) {
    let latencies = &outcome.latencies;
    if latencies.count() == 0 {
        return put(out, format_args!("{}", "<td></td>".repeat(PERCENTS.len() + 3)));
    }
    let cell = |us: f64| time(us * 1e3);
    PERCENTS.iter().for_each(|percent| put(out, format_args!("<td>{}</td>", cell(latencies.percentile(*percent, Unit::Us)))));
    put(out, format_args!("<td>{}</td><td>{}</td>", cell(latencies.max(Unit::Us)), cell(latencies.mean(Unit::Us))));
    put(out, format_args!("<td>{}</td>", count(latencies.count() as f64)));
}

/// Large figures with their thousands apart, others to four digits.
fn highlight(value: f64) -> String {
    if value.abs() >= 1000.0 { count(value) } else { figure(value) }
}

fn charts(out: &mut String, report: &Report) {
    let timed: Vec<(usize, &Outcome)> = report.outcomes.iter().enumerate().filter(|(_, outcome)| outcome.latencies.count() > 1).collect();
    if timed.is_empty() {
        return;
    }
    put(out, format_args!("<figure>\n{}", distribution_chart(&timed).svg()));
    put(out, format_args!("<figcaption>Share of answers that took at most so long. {}</figcaption>\n</figure>", legend(&timed)));
    let mut run: Vec<(usize, &Outcome)> = timed.into_iter().filter(|(_, outcome)| outcome.time_line.points().count() > 2).collect();
    // More than two hide each other: those with the most answers are what the time line is about.
    run.sort_by_key(|(_, outcome)| std::cmp::Reverse(outcome.latencies.count()));
    run.truncate(TIME_LINES_MAX);
    run.sort_by_key(|(at, _)| *at);
    if !run.is_empty() {
        put(out, format_args!("<figure>\n{}{}", throughput_chart(&run).svg(), latency_chart(&run).svg()));
        put(
            out,
            format_args!(
                "<figcaption>The last run over time: answers a second, mean latency, and as a thin line the longest. {}</figcaption>\n</figure>",
                legend(&run)
            ),
        );
    }
}

fn legend(outcomes: &[(usize, &Outcome)]) -> String {
    let name = |(at, outcome): &(usize, &Outcome)| format!("<span class=\"key c{}\"></span>{}", at % 8, escape(&outcome.label));
    outcomes.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn distribution_chart(outcomes: &[(usize, &Outcome)]) -> Chart {
    let least = outcomes.iter().map(|(_, outcome)| outcome.latencies.percentile(0.0, Unit::Us) * 1e3).fold(f64::MAX, f64::min);
    let most = outcomes.iter().map(|(_, outcome)| outcome.latencies.max(Unit::Us) * 1e3).fold(0.0, f64::max);
    let curve = |(at, outcome): &(usize, &Outcome)| Curve {
        label: outcome.label.clone(),
        colour: *at,
        stroke: Stroke::Line,
        points: outcome.latencies.shares(CURVE_POINTS),
    };
    Chart {
        title: "Distribution of latencies".into(),
        height: 300.0,
        x: Axis::time(least, most),
        x_label: "latency",
        y: Axis::Nines,
        y_label: "share of answers",
        curves: outcomes.iter().map(curve).collect(),
    }
}

/// Length of the longest run, as the axis that all runs share.
fn seconds(outcomes: &[(usize, &Outcome)]) -> Axis {
    let last = outcomes.iter().filter_map(|(_, outcome)| Some(outcome.time_line.points().last()?.at_s)).fold(0.0, f64::max);
    Axis::linear(last, |at_s| time(at_s * 1e9))
}

fn throughput_chart(outcomes: &[(usize, &Outcome)]) -> Chart {
    let most = outcomes.iter().flat_map(|(_, outcome)| outcome.time_line.points()).map(|point| point.per_s).fold(0.0, f64::max);
    let curve = |(at, outcome): &(usize, &Outcome)| Curve {
        label: outcome.label.clone(),
        colour: *at,
        stroke: Stroke::Area,
        points: outcome.time_line.points().map(|point| (point.at_s, point.per_s)).collect(),
    };
    Chart {
        title: "Throughput".into(),
        height: 190.0,
        x: seconds(outcomes),
        x_label: "time from the start: answers a second above, latency below",
        y: Axis::linear(most, count),
        y_label: "answers a second",
        curves: outcomes.iter().map(curve).collect(),
    }
}

fn latency_chart(outcomes: &[(usize, &Outcome)]) -> Chart {
    let answered = |outcome: &Outcome| outcome.time_line.points().filter(|point| point.max_ns > 0).collect::<Vec<_>>();
    let points: Vec<_> = outcomes.iter().flat_map(|(_, outcome)| answered(outcome)).collect();
    let least = points.iter().map(|point| point.mean_ns).fold(f64::MAX, f64::min);
    let most = points.iter().map(|point| point.max_ns as f64).fold(0.0, f64::max);
    let curves = outcomes.iter().flat_map(|(at, outcome)| {
        let line = |name: &str, value: fn(&Point) -> f64, stroke| Curve {
            label: format!("{}, {name}", outcome.label),
            colour: *at,
            stroke,
            points: answered(outcome).iter().map(|point| (point.at_s, value(point))).collect(),
        };
        [line("mean", |point| point.mean_ns, Stroke::Line), line("longest", |point| point.max_ns as f64, Stroke::Thin)]
    });
    Chart {
        title: "Latency".into(),
        height: 190.0,
        x: seconds(outcomes),
        x_label: "",
        y: Axis::time(least, most),
        y_label: "latency",
        curves: curves.collect(),
    }
}

fn published(out: &mut String, report: &Report) {
    if report.published.is_empty() {
        return;
    }
    put(out, format_args!("<h3>Beside what others published</h3>\n<div class=\"scroll\"><table class=\"beside\">\n<tbody>"));
    for outcome in report.outcomes.iter().filter(|outcome| outcome.latencies.count() > 0) {
        let (mean, p99) = (outcome.latencies.mean(Unit::Us) * 1e3, outcome.latencies.percentile(99.0, Unit::Us) * 1e3);
        let figures = format!("mean {}, p99 {}, errors {}", time(mean), time(p99), outcome.series.summary("errors").unwrap_or(0.0));
        put(out, format_args!("<tr class=\"ours\"><th>Bodkin: {}</th><td>{figures}</td></tr>", escape(&outcome.label)));
    }
    let mut source = "";
    for figure in &report.published {
        if figure.source != source {
            source = &figure.source;
            put(out, format_args!("<tr><td class=\"source\" colspan=\"2\">{}</td></tr>", escape(source)));
        }
        put(out, format_args!("<tr><th>{}</th><td>{}</td></tr>", escape(&figure.what), escape(&figure.figures)));
    }
    put(out, format_args!("</tbody>\n</table></div>"));
}

fn all_figures(out: &mut String, outcomes: &[Outcome]) {
    put(out, format_args!("<details>\n<summary>Every figure with its median, least and greatest over the repeats</summary>"));
    for outcome in outcomes {
        put(out, format_args!("<div class=\"scroll\"><table>\n<thead><tr><th>{}</th>", escape(&outcome.label)));
        put(out, format_args!("<th>median</th><th>min</th><th>max</th></tr></thead>\n<tbody>"));
        for row in outcome.series.rows() {
            let (median, min, max) = (figure(row.median), figure(row.min), figure(row.max));
            put(out, format_args!("<tr><th>{}</th><td>{median}</td><td>{min}</td><td>{max}</td></tr>", escape(&row.key)));
        }
        put(out, format_args!("</tbody>\n</table></div>"));
    }
    put(out, format_args!("</details>"));
}

/// Text as HTML shows it.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("text takes text");
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
