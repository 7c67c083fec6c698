//! `bench arrec`: the experiments of Wang 2019, chapter 4. Table 4.1's topics, what replicating them costs, and what it saves when the Primary is killed.

mod category;

use std::fmt;

use super::dialect::Speech;
use super::listener::Hearing;
use super::row::{Key, Rows};
use super::stand::Stand;
use super::topic_file::{BACKUP_BUFFER, FailOver, Marks, Replication, Terms, topic_file};
use super::trial::{self, Trial};
use crate::options::{ArrecOptions, GroupSize, Recovery, ReplicationStrategy};
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
            Self::Periodic25 => "periodic-25",
            Self::Periodic50 => "periodic-50",
            Self::Eager => "eager",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::All => "the paper's ARREC_all: every event is replicated (M = 1) as late as its bound allows, unless it is safe before",
            Self::Li => "the paper's ARREC_Li: one event of max(L, 1) is replicated, as late as its bound allows, which is earlier",
            Self::Retransmission => "nothing is replicated: publishers send again the N events that they keep",
            Self::Periodic25 => {
                "all that came since the last time and is not safe yet is replicated every 25 ms, whatever bounds say: the paper's Periodic-25ms"
            }
            Self::Periodic50 => "the same every 50 ms: the paper's Periodic-50ms",
            Self::Eager => "every event is replicated when it comes, whatever may make it safe soon",
        }
    }

    fn terms(self) -> Terms {
        let lazy = Terms { failover: Some(FailOver::MS_40), batch_window_ms: BATCH_WINDOW_MS, ..Terms::PAIR };
        match self {
            Self::All => lazy,
            Self::Li => Terms { marks: Marks::Tolerance, ..lazy },
            Self::Retransmission => Terms { replication: Replication::Never, ..lazy },
            Self::Periodic25 => Terms { replication: Replication::Periodic { period_ms: 25 }, ..lazy },
            Self::Periodic50 => Terms { replication: Replication::Periodic { period_ms: 50 }, ..lazy },
            Self::Eager => Terms { replication: Replication::Eager, ..lazy },
        }
    }

    /// Whether the others are held against its traffic.
    fn is_compared_with(self) -> bool {
        matches!(self, Self::Periodic25 | Self::Periodic50 | Self::Eager)
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

impl Recovery {
    fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick recovery",
            Self::Full => "full recovery",
        }
    }

    /// What the Backup keeps although it is covered.
    fn backup_keeps(self) -> u32 {
        match self {
            Self::Quick => 0,
            Self::Full => BACKUP_BUFFER,
        }
    }
}

/// What makes a row, but for its topics and its fault.
#[derive(Clone, Copy)]
struct Configuration {
    strategy: ReplicationStrategy,
    size: GroupSize,
    recovery: Recovery,
    processing_us: u32,
}

impl fmt::Display for Configuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.strategy.name(), self.conditions())
    }
}

impl Configuration {
    /// What has to be the same for two strategies to be compared.
    fn conditions(&self) -> String {
        format!("{}, {}, {} us", self.size.name(), self.recovery.name(), self.processing_us)
    }
}

/// Every configuration that the options name.
fn configurations(options: &ArrecOptions) -> Vec<Configuration> {
    let mut configurations = Vec::new();
    for &strategy in &options.strategies {
        for &size in &options.groups {
            for &recovery in &options.recovery {
                configurations.push(Configuration { strategy, size, recovery, processing_us: options.processing_us });
            }
        }
    }
    configurations
}

/// Runs every row that is not measured yet, and reports the table.
///
/// # Errors
/// A broker does not start, or a side fails.
pub fn run(options: &ArrecOptions) -> anyhow::Result<Report> {
    let mut rows = Rows::open(options.table.series.state.as_deref())?;
    let list = options.topics.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let mut report = Report::new(format!("ARREC: {list} topics"));
    let mut conditions = options.table.series.conditions();
    notes(options, &mut report);
    options.strategies.iter().for_each(|strategy| report.note(format!("{}: {}", strategy.name(), strategy.description())));
    for configuration in configurations(options) {
        for topics in &options.topics {
            // What is done again behind a crash makes no difference without one.
            let is_first = options.recovery.first() == Some(&configuration.recovery);
            for is_crash in options.table.faults().into_iter().filter(|is_crash| *is_crash || is_first) {
                let fault = if is_crash { "Primary killed" } else { "no fault" };
                let label = format!("{configuration}, {topics} topics, {fault}");
                let seconds = options.table.series.seconds;
                let first = Key { configuration: configuration.to_string(), topics: *topics, is_crash, seconds, run: 0 };
                let measure = |key: &Key| trial::measure(trial(options, configuration, key)?, key.clone());
                let outcome = rows.outcome(label, &first, options.table.series.runs, measure)?;
                report.outcomes.push(outcome);
            }
        }
    }
    compare(options, &mut report);
    report.published = published::of_arrec();
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn trial(options: &ArrecOptions, configuration: Configuration, key: &Key) -> anyhow::Result<Trial> {
    let Configuration { strategy, size, recovery, processing_us } = configuration;
    let workload = category::workload(key.topics, size == GroupSize::Large, u64::from(key.run) + 1);
    let terms = Terms { backup_keeps: recovery.backup_keeps(), ..strategy.terms() };
    let stand = Stand::pair(&workload, &topic_file(&workload, terms), options.table.series.data.as_deref())?;
    Ok(Trial {
        stand,
        speech: Speech::ZmtpDealer,
        workload,
        hearing: Hearing { is_required: true, processing_ns: u64::from(processing_us) * 1000, begins_anew: recovery == Recovery::Full },
        in_cloud: None,
        warm_up: options.table.series.warm_up(),
    })
}

/// Traffic that each strategy saves against those that look at no bound.
fn compare(options: &ArrecOptions, report: &mut Report) {
    let traffic = |strategy: &ReplicationStrategy, conditions: &str| {
        let label = format!("{}, {conditions}", strategy.name());
        report.outcomes.iter().find(|outcome| outcome.label == label)?.series.summary("replication_mbit_per_s")
    };
    let is_of = |outcome: &Outcome, strategy: &ReplicationStrategy| outcome.label.split(',').next() == Some(strategy.name());
    let mut saved = Vec::new();
    for compared in options.strategies.iter().filter(|strategy| strategy.is_compared_with()) {
        for outcome in report.outcomes.iter().filter(|outcome| is_of(outcome, compared)) {
            let conditions = outcome.label.split_once(", ").map_or("", |(_, conditions)| conditions);
            let Some(all) = traffic(compared, conditions).filter(|all| *all > 0.0) else { continue };
            for strategy in options.strategies.iter().filter(|strategy| !strategy.is_compared_with()) {
                let Some(less) = traffic(strategy, conditions) else { continue };
                let what = format!("replication traffic saved against {}, percent: {}, {conditions}", compared.name(), strategy.name());
                saved.push((what, (1.0 - less / all) * 100.0));
            }
        }
    }
    saved.into_iter().for_each(|(what, percent)| report.ratio(what, percent));
}

fn notes(options: &ArrecOptions, report: &mut Report) {
    report.note(format!(
        "Table 4.1's categories, 512-byte payloads, {} s a run, one subscriber; proxies of ten topics, category 5 of one publisher (large group) or of ten topics \
         each (small groups); x is 40 ms, for no greater one is feasible with N = 1, L = 0, T = 50 ms; batch window {BATCH_WINDOW_MS} ms",
        options.table.series.seconds
    ));
    report.note(format!(
        "each event costs its subscriber {} us of a processor before it is acknowledged, in the place of a graph's operators (the paper: 100 us on two cores)",
        options.processing_us
    ));
    report
        .note("replication_mbit_per_s: bytes that the Primary sends to the Backup over TCP as `ss` tells them, heartbeats included".into());
    report.note(format!(
        "quick recovery: the Backup prunes what subscribers have acknowledged, and they tell it what they have; full recovery: it keeps {BACKUP_BUFFER} events of each \
         topic whatever became of them, is told nothing, and each event that comes again costs as much as before"
    ));
    report.note(
        "duplicates: events that came again and were dropped; late_until_ms: from the crash until the last event came that was later than D, or than T where there is \
         no D"
            .into(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Figure;

    fn options(strategies: &str, recovery: &str) -> ArrecOptions {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: ArrecOptions,
        }
        <Line as clap::Parser>::parse_from(["arrec", "--strategies", strategies, "--recovery", recovery]).options
    }

    #[test]
    fn what_being_lazy_saves_is_told_for_equal_rows() {
        let mut report = Report::new("ARREC".into());
        let rows = [("all, large, 1200", 5.0), ("periodic-25, large, 1200", 50.0), ("eager, large, 1200", 100.0), ("li, small, 1200", 1.0)];
        for (label, traffic) in rows {
            let mut outcome = Outcome::new(label.into());
            outcome.push(vec![Figure::median("replication_mbit_per_s", traffic)], Default::default());
            report.outcomes.push(outcome);
        }
        compare(&options("all,li,periodic-25,eager", "quick"), &mut report);
        let ratios = report.json()["ratios"].clone();
        assert_eq!(ratios.as_object().unwrap().len(), 2, "{ratios}");
        for (against, percent) in [("periodic-25", 90.0), ("eager", 95.0)] {
            let ratio = &ratios[format!("replication traffic saved against {against}, percent: all, large, 1200")];
            assert!((ratio.as_f64().unwrap() - percent).abs() < 1e-9, "{ratios}");
        }
    }

    #[test]
    fn every_configuration_has_a_name_of_its_own() {
        let all = options("all,li,retransmission,periodic-25,periodic-50,eager", "quick,full");
        let names: std::collections::BTreeSet<String> = configurations(&all).iter().map(Configuration::to_string).collect();
        assert_eq!((names.len(), names.contains("periodic-25, large group, full recovery, 100 us")), (24, true), "{names:?}");
    }

    #[test]
    fn only_what_replicates_lazily_counts_marks() {
        let workload = category::workload(1200, true, 1);
        let file = |strategy: ReplicationStrategy| topic_file(&workload, strategy.terms());
        assert!(file(ReplicationStrategy::Li).contains("mark_every = 3") && !file(ReplicationStrategy::All).contains("mark_every"));
        assert!(file(ReplicationStrategy::Eager).contains("replication = \"eager\""));
        assert!(file(ReplicationStrategy::Periodic50).contains("replication = \"periodic\"\nreplication_period_ms = 50\n"));
        assert!(!file(ReplicationStrategy::Retransmission).contains("loss_tolerance = 0"));
    }
}
