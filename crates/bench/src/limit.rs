//! `--find-limit`: the largest N of simultaneous requests that are all answered within a time.
//!
//! Deliorman 2020, section 6, asks for N at 0.1, 1 and 10 s, after the limits of human patience. Here an N passes when in
//! every repeat, each from the restored state, no request failed and the longest answer was below the time.

use std::time::Duration;

use crate::baseline::Baseline;
use crate::load::{self, Measured};
use crate::machine::Conditions;
use crate::open_files;
use crate::operation::Operation;
use crate::options::{LoadOptions, Mode};
use crate::published;
use crate::report::{Outcome, Report};
use crate::scene::Askers;
use crate::search::{self, Limit};
use crate::statistics::{Figure, Unit};

/// Where the search begins.
const FIRST: u32 = 100;

/// Searches and reports, with an outcome for each N that was tried, the limit first.
///
/// # Errors
/// The cloud does not start or cannot be filled, or this machine cannot hold so many connections.
pub fn run(operation: Operation, options: &LoadOptions, below: Duration) -> anyhow::Result<Report> {
    open_files::allow(options.up_to as usize)?;
    let state = options.states(operation == Operation::Register)[0];
    let mut baseline = Baseline::prepare(&options.target, state, operation.needs())?;
    let mut conditions = load::conditions(&baseline, options.repeat, load::warm_up(FIRST));
    let mut tried = Vec::new();
    let mut search = Search { operation, below, repeats: options.repeat, baseline: &mut baseline };
    let limit = search::largest(FIRST, options.up_to, |count| {
        let outcome = search.probe(count, &mut conditions)?;
        let passed = search.passed(&outcome);
        tried.push((count, outcome));
        anyhow::Ok(passed)
    })?;
    let title = format!("{}: largest N of simultaneous requests without errors below {below:?}", operation.name());
    let mut report = Report::new(title);
    report.note(told(&limit, options.repeat, below, &tried));
    report.note("between a pass and a failure the search halves until they are 2 % apart; above a failure nothing is tried".into());
    report.outcomes.push(summary(&limit));
    tried.sort_by_key(|(count, _)| *count);
    report.outcomes.extend(tried.into_iter().map(|(_, outcome)| outcome));
    report.published = published::of_load(operation, Mode::Simultaneous { count: limit.passed });
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

struct Search<'a> {
    operation: Operation,
    below: Duration,
    repeats: u32,
    baseline: &'a mut Baseline,
}

impl Search<'_> {
    /// Runs N requests as often as it takes to see it fail, or all repeats.
    fn probe(&mut self, count: u32, conditions: &mut Conditions) -> anyhow::Result<Outcome> {
        let mut outcome = Outcome::new(format!("{count} simultaneous"));
        for _ in 0..self.repeats {
            load::repeat(self.baseline, self.operation, Mode::Simultaneous { count }, Askers::Anyone, &mut outcome, conditions)?;
            if !self.passed(&outcome) {
                break;
            }
        }
        Ok(outcome)
    }

    fn passed(&self, outcome: &Outcome) -> bool {
        outcome.series.summary("errors") == Some(0.0) && outcome.latencies().max(Unit::Ms) < self.below.as_secs_f64() * 1e3
    }
}

/// The limit as figures, so that a threshold can be set on it.
fn summary(limit: &Limit) -> Outcome {
    let mut figures = vec![Figure::median("limit", f64::from(limit.passed))];
    figures.extend(limit.failed.map(|failed| Figure::median("first_failure", f64::from(failed))));
    let mut outcome = Outcome::new("limit".into());
    outcome.push(figures, Measured::default());
    outcome
}

fn told(limit: &Limit, repeats: u32, below: Duration, tried: &[(u32, Outcome)]) -> String {
    let worst = tried.iter().find(|(count, _)| *count == limit.passed).and_then(|(_, outcome)| outcome.series.row("max_ms"));
    let Some(worst) = worst else {
        return format!("not even one request was answered without error below {below:?}");
    };
    let end = match limit.failed {
        Some(failed) => format!("{failed} failed"),
        None => "which is the most that was tried: the limit is higher".to_string(),
    };
    format!(
        "{} passed in {repeats} of {repeats} repeats, longest answer {:.1} ms (min {:.1}, max {:.1} over the repeats); {end}. \
         With 95 % confidence such a run passes in at least {:.0} % of all cases.",
        limit.passed,
        worst.median,
        worst.min,
        worst.max,
        search::least_probability(repeats) * 100.0
    )
}
