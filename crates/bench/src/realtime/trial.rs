//! One run of a table: a workload against brokers, the Primary killed in its middle or not, and the figures.

use std::time::Duration;

use super::cpu::{self, ByThread};
use super::dialect::Speech;
use super::figures;
use super::listener::Hearing;
use super::row::{Key, Row};
use super::run::{Moment, Plan, Sides, run as run_sides};
use super::stand::Stand;
use super::system::SYSTEM;
use super::traffic::bytes_sent_to;
use super::workload::Workload;
use crate::resident::Resident;
use crate::statistics::{Figure, Latencies, Unit};

/// What is run.
pub struct Trial {
    /// Against whom.
    pub stand: Stand,
    /// What both sides speak.
    pub speech: Speech,
    /// What is published and heard.
    pub workload: Workload,
    /// How subscribers take events.
    pub hearing: Hearing,
    /// The subscriber in the cloud, if one is.
    pub in_cloud: Option<usize>,
    /// Time in front of the measured one.
    pub warm_up: Duration,
}

/// Runs it, and gives the row of this key. Processor time and traffic are those up to the crash.
///
/// # Errors
/// A side fails, or a broker is gone that should not be.
pub fn measure(trial: Trial, key: Key) -> anyhow::Result<Row> {
    let Trial { mut stand, speech, workload, hearing, in_cloud, warm_up } = trial;
    let measured = Duration::from_secs(u64::from(key.seconds));
    let before_end = if key.is_crash { measured / 2 } else { measured };
    let idle_mb = memory(&stand)?;
    let plan = Plan {
        speech,
        brokers: stand.addresses()?,
        system: SYSTEM.into(),
        hearing,
        in_cloud,
        workload: workload.clone(),
        warm_up,
        measured,
        crash_after: key.is_crash.then_some(before_end),
        awaits_all: false,
    };
    let (mut before, mut used, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    let mut memory_mb = Vec::new();
    let sides = run_sides(plan, &mut |moment| {
        let is_end = moment == if key.is_crash { Moment::Crash } else { Moment::Over };
        if moment == Moment::Measured {
            before = readings(&stand)?;
        }
        if moment == Moment::Measured || is_end {
            sent.extend(stand.backup_address().and_then(bytes_sent_to));
        }
        if is_end {
            used = percents(&before, &readings(&stand)?, before_end.as_secs_f64());
        }
        match moment {
            Moment::Measured => {}
            Moment::Crash => stand.kill_primary()?,
            Moment::Over => memory_mb = memory(&stand)?,
        }
        Ok(())
    })?;
    let mut figures = of_groups(&workload, &sides, key.is_crash);
    figures.extend(figures::of_sides(&sides, measured.as_secs_f64()));
    figures.extend(figures::covered(&sides));
    if key.is_crash {
        let [first_ns, last_ns] = sides.published.redirected_ns;
        figures.push(Figure::median("redirected_first_ms", first_ns as f64 / 1e6));
        figures.push(Figure::median("redirected_last_ms", last_ns as f64 / 1e6));
        figures.push(Figure::median("cover_gap_ms", sides.published.cover_gap_ns as f64 / 1e6));
        figures.push(Figure::median("resent", sides.published.resent as f64));
    }
    if let [from, to] = sent[..] {
        let bits = to.saturating_sub(from) as f64 * 8.0;
        figures.push(Figure::median("replication_mbit_per_s", bits / 1e6 / before_end.as_secs_f64()));
    }
    for (name, percent) in &used {
        figures.extend(figures::of_process(name, percent));
    }
    figures.push(Figure::median("brokers_cpu_percent", used.iter().flat_map(|(_, percent)| percent.values()).sum()));
    figures.extend(idle_mb.into_iter().map(|(name, mb)| Figure::median(format!("{name}_idle_rss_mb"), mb)));
    figures.extend(memory_mb.into_iter().map(|(name, mb)| Figure::max(format!("{name}_rss_mb"), mb)));
    let refusals = sides.published.refusals.clone();
    let (latency, time_line) = (figures::latencies(&sides).counts(), sides.heard.time_line);
    Ok(Row { key, figures, latency, time_line, refusals, refused: sides.published.refused })
}

fn memory(stand: &Stand) -> anyhow::Result<Vec<(&'static str, f64)>> {
    stand.pids().into_iter().map(|(name, pid)| Ok((name, Resident::of(pid).now_mb()?))).collect()
}

fn readings(stand: &Stand) -> anyhow::Result<Vec<(&'static str, ByThread)>> {
    stand.pids().into_iter().map(|(name, pid)| Ok((name, cpu::by_thread(pid)?))).collect()
}

fn percents(before: &[(&'static str, ByThread)], after: &[(&'static str, ByThread)], seconds: f64) -> Vec<(&'static str, ByThread)> {
    let both = before.iter().zip(after);
    both.map(|((name, before), (_, after))| (*name, cpu::percent(before, after, seconds))).collect()
}

/// What became of each group: promises kept, latencies. Keys begin with `c` and the number at the end of the group's name.
fn of_groups(workload: &Workload, sides: &Sides, is_crash: bool) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (group, heard) in workload.groups.iter().zip(&sides.heard.groups) {
        let category = group.name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let latency = Latencies::from_counts(&heard.latency);
        let mut add = |what: &str, value: f64| figures.push(Figure::median(format!("c{category}_{what}"), value));
        add("loss_success_percent", figures::percent(heard.streams_kept, heard.streams));
        add("latency_success_percent", figures::percent(heard.in_time, heard.expected));
        add("longest_run", heard.longest_run as f64);
        add("p50_ms", latency.percentile(50.0, Unit::Ms));
        add("p99_ms", latency.percentile(99.0, Unit::Ms));
        add("p99_9_ms", latency.percentile(99.9, Unit::Ms));
        add("max_ms", latency.max(Unit::Ms));
        if is_crash {
            add("peak_after_crash_ms", heard.peak_after_crash_ns as f64 / 1e6);
            add("late_until_ms", heard.late_until_ns as f64 / 1e6);
        }
        figures.push(Figure::sum(format!("c{category}_lost"), heard.expected - heard.received));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::tally::GroupReport;
    use crate::realtime::workload::tests::small;

    #[test]
    fn each_group_has_the_columns_of_the_tables() {
        let mut workload = small();
        workload.groups[1].name = "FRAME5".into();
        let mut sides = Sides::default();
        sides.heard.groups = vec![
            GroupReport::default(),
            GroupReport { streams: 4, streams_kept: 3, expected: 10, in_time: 5, received: 8, ..GroupReport::default() },
        ];
        let figures = of_groups(&workload, &sides, true);
        let of = |key: &str| figures.iter().find(|figure| figure.key == key).map(|figure| figure.value);
        assert_eq!((of("c5_loss_success_percent"), of("c5_latency_success_percent"), of("c5_lost")), (Some(75.0), Some(50.0), Some(2.0)));
        assert_eq!((of("c5_peak_after_crash_ms"), of("c_loss_success_percent")), (Some(0.0), Some(100.0)));
    }
}
