//! `bench arrec`: the experiments of Wang 2019, chapter 4. Table 4.1's topics, what replicating them costs, and what it saves when the Primary is killed.

mod category;

use std::time::Duration;

use super::dialect::Speech;
use super::row::{Key, Rows};
use super::stand::Stand;
use super::topic_file::{FailOver, Marks, Replication, Terms, topic_file};
use super::trial::{self, Trial};
use crate::options::{ArrecOptions, GroupSize, ReplicationStrategy};
use crate::published;
use crate::report::{Outcome, Report};

/// How long a replica may wait for others, in ms (section 4.7.2).
const BATCH_WINDOW_MS: u32 = 40;

impl ReplicationStrategy {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Li => "li",
            Self::Retransmission => "retransmission",
            Self::Eager => "eager",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::All => "the paper's ARREC_all: every event is replicated (M = 1) as late as its bound allows, unless it is safe before",
            Self::Li => "the paper's ARREC_Li: one event of max(L, 1) is replicated, as late as its bound allows, which is earlier",
            Self::Retransmission => "nothing is replicated: publishers send again the N events that they keep",
            Self::Eager => {
                "every event is replicated when it comes: in the place of the paper's periodic replication, which sends all that came since the last time"
            }
        }
    }

    fn terms(self) -> Terms {
        let lazy = Terms { failover: Some(FailOver::MS_40), batch_window_ms: BATCH_WINDOW_MS, ..Terms::PAIR };
        match self {
            Self::All => lazy,
            Self::Li => Terms { marks: Marks::Tolerance, ..lazy },
            Self::Retransmission => Terms { replication: Replication::Never, ..lazy },
            Self::Eager => Terms { replication: Replication::Eager, ..lazy },
        }
    }
}

impl GroupSize {
    fn name(self) -> &'static str {
        match self {
            Self::Large => "large group",
            Self::Small => "small groups",
        }
    }
}

/// Runs every row that is not measured yet, and reports the table.
///
/// # Errors
/// A broker does not start, or a side fails.
pub fn run(options: &ArrecOptions) -> anyhow::Result<Report> {
    let mut rows = Rows::open(options.table.state.as_deref())?;
    let list = options.topics.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let mut report = Report::new(format!("ARREC: {list} topics"));
    let mut conditions = options.table.conditions();
    notes(options, &mut report);
    for strategy in &options.strategies {
        report.note(format!("{}: {}", strategy.name(), strategy.description()));
        for size in &options.groups {
            for topics in &options.topics {
                for is_crash in options.table.faults() {
                    let configuration = format!("{}, {}, {} us", strategy.name(), size.name(), options.processing_us);
                    let fault = if is_crash { "Primary killed" } else { "no fault" };
                    let label = format!("{configuration}, {topics} topics, {fault}");
                    let first =
                        Key { configuration: configuration.clone(), topics: *topics, is_crash, seconds: options.table.seconds, run: 0 };
                    let outcome =
                        trial::outcome(&mut rows, label, &first, options.table.runs, |key| trial(options, *strategy, *size, key))?;
                    report.outcomes.push(outcome);
                }
            }
        }
    }
    compare(&mut report);
    report.published = published::of_arrec();
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn trial(options: &ArrecOptions, strategy: ReplicationStrategy, size: GroupSize, key: &Key) -> anyhow::Result<Trial> {
    let workload = category::workload(key.topics, size == GroupSize::Large, u64::from(key.run) + 1);
    let stand = Stand::pair(&workload, &topic_file(&workload, strategy.terms()), options.table.data.as_deref())?;
    Ok(Trial {
        stand,
        speech: Speech::ZmtpDealer,
        workload,
        is_required: true,
        processing: Duration::from_micros(u64::from(options.processing_us)),
        warm_up: options.table.warm_up(),
    })
}

/// Traffic that being lazy saves, where both were run without a fault.
fn compare(report: &mut Report) {
    let traffic = |outcome: &Outcome| outcome.series.summary("replication_mbit_per_s");
    let mut saved = Vec::new();
    for eager in report.outcomes.iter().filter(|outcome| outcome.label.starts_with("eager")) {
        let others = report
            .outcomes
            .iter()
            .filter(|outcome| outcome.label.split_once(',').map(|(_, what)| what) == eager.label.split_once(',').map(|(_, what)| what));
        for other in others.filter(|outcome| !outcome.label.starts_with("eager")) {
            if let (Some(all), Some(lazy)) = (traffic(eager).filter(|all| *all > 0.0), traffic(other)) {
                saved.push((format!("replication traffic saved, percent: {}", other.label), (1.0 - lazy / all) * 100.0));
            }
        }
    }
    saved.into_iter().for_each(|(what, percent)| report.ratio(what, percent));
}

fn notes(options: &ArrecOptions, report: &mut Report) {
    report.note(format!(
        "Table 4.1's categories, 512-byte payloads, {} s a run, one subscriber; proxies of ten topics, category 5 of one publisher (large group) or of ten topics \
         each (small groups); x is 40 ms, for no greater one is feasible with N = 1, L = 0, T = 50 ms; batch window {BATCH_WINDOW_MS} ms",
        options.table.seconds
    ));
    report.note(format!(
        "each event costs its subscriber {} us of a processor before it is acknowledged, in the place of a graph's operators (the paper: 100 us on two cores)",
        options.processing_us
    ));
    report
        .note("replication_mbit_per_s: bytes that the Primary sends to the Backup over TCP as `ss` tells them, heartbeats included".into());
    report.note(
        "not run: periodic replication (the broker has none; `eager` sends what it would, all that came), and quick recovery switched off (a Backup's events that \
         were acknowledged are gone from it at once)"
            .into(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Figure;

    #[test]
    fn what_being_lazy_saves_is_told_for_equal_rows() {
        let mut report = Report::new("ARREC".into());
        for (label, traffic) in [("all, large group, 1200", 5.0), ("eager, large group, 1200", 50.0), ("li, small groups, 1200", 1.0)] {
            let mut outcome = Outcome::new(label.into());
            outcome.push(vec![Figure::median("replication_mbit_per_s", traffic)], Default::default());
            report.outcomes.push(outcome);
        }
        compare(&mut report);
        let ratios = report.json()["ratios"].clone();
        assert_eq!(ratios.as_object().unwrap().len(), 1);
        assert!((ratios["replication traffic saved, percent: all, large group, 1200"].as_f64().unwrap() - 90.0).abs() < 1e-9);
    }

    #[test]
    fn only_what_replicates_lazily_counts_marks() {
        let workload = category::workload(1200, true, 1);
        let file = |strategy: ReplicationStrategy| topic_file(&workload, strategy.terms());
        assert!(file(ReplicationStrategy::Li).contains("mark_every = 3") && !file(ReplicationStrategy::All).contains("mark_every"));
        assert!(file(ReplicationStrategy::Eager).contains("replication = \"eager\""));
        assert!(!file(ReplicationStrategy::Retransmission).contains("loss_tolerance = 0"));
    }
}
