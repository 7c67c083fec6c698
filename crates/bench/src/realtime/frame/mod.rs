//! `bench frame`: the experiments of Wang 2019, chapter 3. Table 3.2's topics, the Primary killed in the middle, and what came of them.

mod category;
mod configuration;
mod row;

use std::time::Duration;

use anyhow::Context;

use self::category::CATEGORIES;
use self::configuration::Stand;
use self::row::{Key, Row, Rows};
use super::cpu::{self, ByThread};
use super::figures;
use super::run::{Moment, Plan, Sides, run as run_sides};
use super::system::SYSTEM;
use super::workload::Workload;
use crate::expectation::Faults;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::{Configuration, FrameOptions};
use crate::published;
use crate::report::{Outcome, Report};
use crate::resident::Resident;
use crate::statistics::{Figure, Latencies, Unit};
use crate::time_line::TimeLine;

/// Runs every row that is not measured yet, and reports the table.
///
/// # Errors
/// A broker does not start, or a side fails.
pub fn run(options: &FrameOptions) -> anyhow::Result<Report> {
    let mut rows = Rows::open(options.state.as_deref())?;
    let (topics, faults) = (options.topics(), options.faults());
    let list = topics.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let mut report = Report::new(format!("FRAME: {list} topics"));
    let warm_up = format!("{} s of each run", options.warm_up_seconds);
    let mut conditions =
        Conditions::begin("placed by the kernel".into(), "own brokers, started by the bench for each run".into(), warm_up, options.runs);
    let rates =
        topics.iter().map(|topics| format!("{topics} topics are {:.0} events/s", category::workload(*topics, false, 1).events_per_s()));
    report.note(rates.collect::<Vec<_>>().join(", "));
    for configuration in &options.configurations {
        report.note(format!("{}: {}", configuration.name(), configuration.description()));
        for topics in &topics {
            for is_crash in faults.iter().copied().filter(|is_crash| !is_crash || configuration.has_pair()) {
                let fault = if is_crash { "Primary killed" } else { "no fault" };
                let mut outcome = Outcome::new(format!("{}, {topics} topics, {fault}", configuration.name()));
                for run in 0..options.runs {
                    let key = Key { configuration: configuration.name().into(), topics: *topics, is_crash, seconds: options.seconds, run };
                    if rows.find(&key).is_none() {
                        eprintln!("{}, run {} of {}", outcome.label, run + 1, options.runs);
                        rows.add(measure(options, *configuration, key.clone())?)?;
                    }
                    let row = rows.find(&key).context("a row that was just added")?;
                    outcome.push(row.figures.clone(), measured(row));
                }
                report.outcomes.push(outcome);
            }
        }
    }
    notes(options, &mut report);
    report.published = published::of_frame(&topics);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn notes(options: &FrameOptions, report: &mut Report) {
    report.note(format!(
        "Table 3.2's categories, 16-byte payloads, {} s a run; a proxy sends its topics in one burst a period, the bursts' places in it drawn from a seed; \
         beyond 20,000 topics categories 2 to 4 have a period and a deadline of 1 s",
        options.seconds
    ));
    report.note(
        "loss_success: percent of topics that missed no more than L events in a row; latency_success: percent of all events that came within D of the time they \
         were due, so that what the sender's own machine held up or what was lost counts as late"
            .into(),
    );
    report.note(
        "the paper had seven hosts, three cores a broker of their own and a cloud subscriber 20 ms away; here all processes share the cores of one machine".into(),
    );
    report.note(
        "FCFS and FCFS- (replicate every message on arrival, then dispatch in order of arrival; with and without telling the Backup what was dispatched) are not \
         run: the broker has no order of work but deadlines"
            .into(),
    );
}

fn measured(row: &Row) -> Measured {
    let faults = Faults { count: row.refused, first: row.refusals.clone() };
    Measured { latencies: Latencies::from_counts(&row.latency), faults, time_line: TimeLine::default() }
}

fn measure(options: &FrameOptions, configuration: Configuration, key: Key) -> anyhow::Result<Row> {
    let seconds = f64::from(options.seconds);
    let workload = category::workload(key.topics, configuration == Configuration::FramePlus, u64::from(key.run) + 1);
    let mut stand = Stand::start(configuration, &workload, options)?;
    let idle_mb =
        stand.pids().into_iter().map(|(name, pid)| Ok((name, Resident::of(pid).now_mb()?))).collect::<anyhow::Result<Vec<_>>>()?;
    let measured = Duration::from_secs(u64::from(options.seconds));
    let plan = Plan {
        speech: configuration.speech(),
        brokers: stand.addresses()?,
        system: SYSTEM.into(),
        is_required: matches!(configuration, Configuration::Bodkin | Configuration::Alone),
        workload: workload.clone(),
        warm_up: Duration::from_secs(u64::from(options.warm_up_seconds)),
        measured,
        crash_after: key.is_crash.then_some(measured / 2),
    };
    let (mut before, mut used, mut figures) = (Vec::new(), Vec::new(), Vec::new());
    let sides = run_sides(plan, &mut |moment| {
        match moment {
            Moment::Measured => before = readings(&stand)?,
            Moment::Crash => {
                used = percents(&before, &readings(&stand)?, seconds / 2.0);
                stand.kill_primary()?;
            }
            Moment::Over => {
                if !key.is_crash {
                    used = percents(&before, &readings(&stand)?, seconds);
                }
                for (name, pid) in stand.pids() {
                    figures.push(Figure::max(format!("{name}_rss_mb"), Resident::of(pid).now_mb()?));
                }
            }
        }
        Ok(())
    })?;
    let mut all = of_categories(&workload, &sides, key.is_crash);
    all.extend(figures::of_sides(&sides, seconds));
    all.extend(figures::covered(&sides));
    if key.is_crash {
        all.push(Figure::median("cover_gap_ms", sides.published.cover_gap_ns as f64 / 1e6));
    }
    for (name, percent) in &used {
        all.extend(figures::of_process(name, percent));
    }
    all.push(Figure::median("brokers_cpu_percent", used.iter().flat_map(|(_, percent)| percent.values()).sum()));
    all.extend(idle_mb.into_iter().map(|(name, mb)| Figure::median(format!("{name}_idle_rss_mb"), mb)));
    all.extend(figures);
    let refusals = sides.published.refusals.clone();
    Ok(Row { key, figures: all, latency: figures::latencies(&sides).counts(), refusals, refused: sides.published.refused })
}

fn readings(stand: &Stand) -> anyhow::Result<Vec<(&'static str, ByThread)>> {
    stand.pids().into_iter().map(|(name, pid)| Ok((name, cpu::by_thread(pid)?))).collect()
}

fn percents(before: &[(&'static str, ByThread)], after: &[(&'static str, ByThread)], seconds: f64) -> Vec<(&'static str, ByThread)> {
    let both = before.iter().zip(after);
    both.map(|((name, before), (_, after))| (*name, cpu::percent(before, after, seconds))).collect()
}

/// The figures of Tables 3.4 and 3.5 and of Figures 3.9 to 3.11, by category.
fn of_categories(workload: &Workload, sides: &Sides, is_crash: bool) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (number, (group, heard)) in workload.groups.iter().zip(&sides.heard.groups).enumerate() {
        let latency = Latencies::from_counts(&heard.latency);
        let mut add = |what: &str, value: f64| figures.push(Figure::median(format!("c{number}_{what}"), value));
        add("loss_success_percent", figures::percent(heard.streams_kept, heard.streams));
        add("latency_success_percent", figures::percent(heard.in_time, heard.expected));
        add("longest_run", heard.longest_run as f64);
        add("p50_ms", latency.percentile(50.0, Unit::Ms));
        add("p99_ms", latency.percentile(99.0, Unit::Ms));
        add("p99_9_ms", latency.percentile(99.9, Unit::Ms));
        add("max_ms", latency.max(Unit::Ms));
        if is_crash {
            add("peak_after_crash_ms", heard.peak_after_crash_ns as f64 / 1e6);
        }
        figures.push(Figure::sum(format!("c{number}_lost"), heard.expected - heard.received));
        debug_assert_eq!(group.loss_tolerance, CATEGORIES[number].loss_tolerance);
    }
    figures
}
