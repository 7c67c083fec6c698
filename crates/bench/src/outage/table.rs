//! Report of a campaign: an outcome for all faults, and one for each kind.

use crate::crash::ledger::Breach;
use crate::crash::state::{FaultResult, Saved};
use crate::crash::table::outcome;
use crate::load::Measured;
use crate::report::{Outcome, Report};

/// Outcome of all faults.
const ALL: &str = "all faults";
/// Outcome of faults that overlap.
const OVERLAPPING: &str = "two overlapping faults";

/// Returns the report of all results.
pub fn report(saved: &Saved, count: usize) -> Report {
    let mut report = Report::new(format!("outages of nodes and edges, seed {}", saved.seed));
    let mut outcomes: Vec<Outcome> = Vec::new();
    for result in &saved.results {
        outcome(&mut outcomes, ALL).push(result.figures.clone(), Measured::default());
        outcome(&mut outcomes, kind(result)).push(result.figures.clone(), Measured::default());
    }
    // The first outcome is that of all; the kinds follow by name.
    if let Some((_, kinds)) = outcomes.split_first_mut() {
        kinds.sort_by(|one, other| one.label.cmp(&other.label));
    }
    report.outcomes = outcomes;
    report.note(format!("seed {}: {} of {count} faults done", saved.seed, saved.results.len()));
    report.note("settle_s: from the end of the fault until everything that was answered had arrived and everything served".into());
    report.note("excused_losses, excused_repeats: events that a restored directory, a copy or a full disk explains".into());
    report.note("loss_reports: bodkin-lost at listeners; counted_losses: of metrics and lost records; lost_by_servers: commands that NATS acknowledged and does not have; same_identity: commands that an edge published again under their identity, as after a kill".into());
    for (result, Breach { expected, came }) in saved.results.iter().flat_map(|result| result.breaches.iter().map(move |one| (result, one)))
    {
        let logs = result.logs.as_ref().map(|logs| format!("; logs in {}", logs.display())).unwrap_or_default();
        report.note(format!("BROKEN by fault {}, {}: expected: {expected}; came: {came}{logs}", result.number, result.fault));
    }
    report
}

fn kind(result: &FaultResult) -> &str {
    if result.fault.contains('+') { OVERLAPPING } else { &result.fault }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Figure;

    #[test]
    fn report_has_all_faults_and_each_kind() {
        let mut saved = Saved::open(None, Some(7), 0, "").unwrap();
        for (number, fault, settle) in [(1, "kill-node", 1.0), (2, "kill-node", 3.0), (3, "cut-edge+kill-node", 5.0)] {
            let figures = vec![Figure::sum("faults", 1), Figure::median("settle_s", settle)];
            saved.results.push(FaultResult { number, fault: fault.into(), figures, ..FaultResult::default() });
        }
        saved.results[2].breaches.push(Breach { expected: "a".into(), came: "b".into() });
        let report = report(&saved, 3);
        let labels: Vec<&str> = report.outcomes.iter().map(|outcome| outcome.label.as_str()).collect();
        assert_eq!(labels, ["all faults", "kill-node", "two overlapping faults"]);
        assert_eq!(report.json()["faults"], 3);
        assert_eq!(report.outcomes[1].series.summary("settle_s"), Some(2.0));
        assert!(report.table().contains("BROKEN by fault 3, cut-edge+kill-node: expected: a; came: b"));
    }
}
