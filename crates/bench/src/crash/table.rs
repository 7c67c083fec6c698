//! Report of a campaign: outcomes by fault, gaps by fault and transport, and the breaches.

use std::sync::atomic::Ordering::Relaxed;

use super::clients::Scene;
use super::ledger::{Breach, Ledger};
use super::plan::{Line, Plan, Round, Transport};
use super::state::{FaultResult, Saved, Totals};
use crate::load::Measured;
use crate::options::CrashOptions;
use crate::report::{Outcome, Report};
use crate::statistics::{Figure, Latencies, Unit};

/// Figure: gaps that are longer than x where x bounds them.
pub const BEYOND: &str = "gaps_beyond_x";
/// Figure: faults after which another broker led than expected.
pub const UNEXPECTED: &str = "unexpected_leaders";
/// Percentiles of latencies.
const PERCENTS: [f64; 3] = [50.0, 99.0, 99.9];

/// Returns the figures of a round over all of its faults.
pub fn totals(round: &Round, scene: &Scene) -> Totals {
    let ledger = scene.ledger();
    let mut figures = Vec::new();
    for (name, tolerance) in [("l0", Some(0)), ("l3", Some(3)), ("linf", None)] {
        figures.extend(losses(&ledger, round, name, tolerance));
    }
    let published = ledger.published();
    let [duplicates, out_of_order, late] = (0..published.len()).fold([0; 3], |sum: [u64; 3], line| {
        let disorder = ledger.disorder(line);
        [sum[0] + disorder[0], sum[1] + disorder[1], sum[2] + disorder[2]]
    });
    let observed = scene.observed();
    figures.extend([
        Figure::sum("duplicates", duplicates),
        Figure::sum("out_of_order", out_of_order),
        Figure::sum("late", late),
        Figure::sum("no_room", scene.no_room.load(Relaxed)),
        Figure::sum("not_taken", observed.refused.values().sum()),
        Figure::sum("excess", (0..scene.settings.dealer_count()).map(|line| ledger.excess(line)).sum()),
        Figure::max("latency_max_ms", observed.all_latencies.max(Unit::Ms)),
    ]);
    if scene.settings.lines.len() > scene.settings.dealer_count() {
        figures.extend(deliveries(&ledger, &round.settings.lines, &scene.subscribers));
    }
    figures.extend(observed.latencies.figures("latency_", Unit::Ms, &PERCENTS));
    Totals { label: round.label.clone(), figures, latencies: observed.latencies.counts() }
}

/// Losses of the DEALER lines of this tolerance.
fn losses(ledger: &Ledger, round: &Round, name: &str, tolerance: Option<u32>) -> Vec<Figure> {
    let is_of = |line: &Line| line.transport == Transport::Dealer && line.terms.loss_tolerance == tolerance;
    let lines: Vec<usize> = (0..round.settings.lines.len()).filter(|index| is_of(&round.settings.lines[*index])).collect();
    let losses = || lines.iter().map(|line| ledger.losses(*line));
    let published = ledger.published();
    let mut figures = vec![
        Figure::sum(format!("{name}_published"), lines.iter().map(|line| published[*line]).sum()),
        Figure::sum(format!("{name}_lost"), losses().map(|losses| losses.events).sum()),
        Figure::max(format!("{name}_longest_run"), losses().map(|losses| losses.longest_run).max().unwrap_or_default() as f64),
    ];
    if tolerance == Some(0) {
        figures.push(Figure::sum("l0_covered_and_lost", losses().map(|losses| losses.covered).sum()));
    }
    figures
}

/// Accepted events of each transport, and their arrivals at each subscriber.
fn deliveries(ledger: &Ledger, lines: &[Line], subscribers: &[Transport]) -> Vec<Figure> {
    let key = |transport: Transport| transport.name().to_lowercase().replace(' ', "_");
    let mut figures = Vec::new();
    for publisher in Transport::PUBLISHERS {
        if publisher.acknowledges() {
            let [accepted, ..] = ledger.counts(publisher, Transport::Required);
            figures.push(Figure::sum(format!("{}_accepted", key(publisher)), accepted));
        }
        let is_reached = |subscriber: &&Transport| lines.iter().any(|line| line.transport == publisher && line.reaches(**subscriber));
        for subscriber in subscribers.iter().filter(is_reached) {
            let [_, arrived, _] = ledger.counts(publisher, *subscriber);
            figures.push(Figure::sum(format!("{}_to_{}", key(publisher), key(*subscriber)), arrived));
        }
    }
    figures
}

/// Returns the report of all results.
pub fn report(options: &CrashOptions, plan: &Plan, saved: &Saved) -> Report {
    let x_ms = options.failover().as_secs_f64() * 1e3;
    let x = if options.faults.is_some() { "drawn configurations".to_owned() } else { format!("x = {x_ms:.1} ms") };
    let mut report = Report::new(format!("faults of a pair, {x}, seed {}", saved.seed));
    let mut outcomes: Vec<Outcome> = Vec::new();
    let labels = plan.rounds.iter().flat_map(|round| round.faults.iter().map(|_| &round.label));
    for (result, label) in saved.results.iter().zip(labels) {
        outcome(&mut outcomes, &result.fault).push(result.figures.clone(), Measured::default());
        outcome(&mut outcomes, label).push(broken(result), Measured::default());
    }
    for totals in &saved.totals {
        let measured = Measured { latencies: Latencies::from_counts(&totals.latencies), ..Measured::default() };
        outcome(&mut outcomes, &totals.label).push(totals.figures.clone(), measured);
    }
    for (result, gaps) in saved.results.iter().flat_map(|result| result.gaps.iter().map(move |gaps| (result, gaps))) {
        let figures = vec![Figure::median("first_back_ms", gaps.first_ms), Figure::median("last_back_ms", gaps.last_ms)];
        outcome(&mut outcomes, &format!("{}: {}", result.fault, gaps.transport.name())).push(figures, Measured::default());
    }
    report.outcomes = outcomes;
    notes(&mut report, options, plan, saved);
    report
}

/// What one fault has broken. Another leader than expected may be the machine's fault, so it is no breach.
fn broken(result: &FaultResult) -> Vec<Figure> {
    let breaches = result.breaches.len() as u64;
    let unexpected = result.figures.iter().filter(|figure| figure.key == UNEXPECTED).map(|figure| figure.value as u64);
    vec![Figure::sum("breaches", breaches), Figure::sum("broken_promises", breaches + unexpected.sum::<u64>())]
}

/// Returns the outcome of this label, which is added if it is not there.
pub fn outcome<'o>(outcomes: &'o mut Vec<Outcome>, label: &str) -> &'o mut Outcome {
    let at = outcomes.iter().position(|outcome| outcome.label == label).unwrap_or_else(|| {
        outcomes.push(Outcome::new(label.to_owned()));
        outcomes.len() - 1
    });
    &mut outcomes[at]
}

fn notes(report: &mut Report, options: &CrashOptions, plan: &Plan, saved: &Saved) {
    report.note(format!("seed {}: {} of {} faults done", saved.seed, saved.results.len(), plan.fault_count()));
    report.note(
        "gap_ms: from a fault until the publishers turn to the broker that leads next; cover_gap_ms: longest time without an event that is told to be safe, until all is well again".into(),
    );
    report.note(
        "first_back_ms, last_back_ms: longest time without an answer (PUSH, PUB: without an arrival) of the first and the last client of the transport, from the fault until the pair is whole".into(),
    );
    report.note(
        "a fault strikes a leader with a Backup in sync; waits_for_backup: how often one had to be waited for, after a stall had made the other broker lead alone".into(),
    );
    if options.faults.is_none() {
        report.note(format!(
            "{} streams each with an event every {} ms of which none may be lost (l0), three in a row (l3), any (linf); broken_promises counts what must not be",
            options.streams, options.period_ms
        ));
    }
    for (result, Breach { expected, came }) in
        saved.results.iter().flat_map(|result| result.breaches.iter().map(move |breach| (result, breach)))
    {
        let logs = result.logs.as_ref().map(|logs| format!("; logs in {}", logs.display())).unwrap_or_default();
        report.note(format!("BROKEN by fault {}, {}: expected: {expected}; came: {came}{logs}", result.number, result.fault));
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::Gaps;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: CrashOptions,
    }

    #[test]
    fn report_has_breaches_and_gaps_by_transport() {
        let options = Command::parse_from(["crash", "--faults", "2"]).options;
        let mut saved = Saved::open(None, Some(7), 0, "").unwrap();
        for (number, first_ms) in [(1, 5.0), (2, 9.0)] {
            let gaps = vec![Gaps { transport: Transport::Http, first_ms, last_ms: 2.0 * first_ms }];
            let breaches = if number == 2 { vec![Breach { expected: "a".into(), came: "b".into() }] } else { Vec::new() };
            let figures = vec![Figure::sum(UNEXPECTED, 1)];
            saved.results.push(FaultResult { number, fault: "kill".into(), figures, gaps, breaches, logs: Some("logs".into()) });
        }
        let report = report(&options, &Plan::new(&options, 7), &saved);
        let summary = |label: &str, key: &str| {
            let outcome = report.outcomes.iter().find(|outcome| outcome.label == label);
            outcome.and_then(|outcome| outcome.series.row(key)).map(|row| (row.summary, row.max))
        };
        assert_eq!(summary("drawn faults", "breaches"), Some((1.0, 1.0)));
        assert_eq!(summary("drawn faults", "broken_promises"), Some((3.0, 2.0)));
        assert_eq!(summary("kill: HTTP POST", "first_back_ms"), Some((7.0, 9.0)));
        assert_eq!(summary("kill: HTTP POST", "last_back_ms"), Some((14.0, 18.0)));
        assert!(report.table().contains("BROKEN by fault 2, kill: expected: a; came: b; logs in logs"));
    }
}
