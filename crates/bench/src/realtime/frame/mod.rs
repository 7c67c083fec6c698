//! `bench frame`: the experiments of Wang 2019, chapter 3. Table 3.2's topics, the Primary killed in the middle, and what came of them.

mod category;
mod configuration;
mod tables;

use super::cloud_latency;
use super::row::{Key, Rows};
use super::trial::{self, Trial};
use crate::options::{Configuration, FrameOptions};
use crate::published;
use crate::report::Report;

/// Runs every row that is not measured yet, and reports the table.
///
/// # Errors
/// A broker does not start, or a side fails.
pub fn run(options: &FrameOptions) -> anyhow::Result<Report> {
    let mut rows = Rows::open(options.table.series.state.as_deref())?;
    let (topics, faults) = (options.topics(), options.table.faults());
    let list = topics.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let mut report = Report::new(format!("FRAME: {list} topics"));
    let mut conditions = options.table.series.conditions();
    notes(options, &topics, &mut report);
    for configuration in &options.configurations {
        report.note(format!("{}: {}", configuration.name(), configuration.description()));
        for topics in &topics {
            for is_crash in faults.iter().copied().filter(|is_crash| !is_crash || configuration.has_pair()) {
                let label = tables::label(*configuration, options.cloud, *topics, is_crash);
                let name = tables::name(*configuration, options.cloud);
                let first = Key { configuration: name, topics: *topics, is_crash, seconds: options.table.series.seconds, run: 0 };
                let measure = |key: &Key| trial::measure(trial(options, *configuration, key)?, key.clone());
                let outcome = rows.outcome(label, &first, options.table.series.runs, measure)?;
                report.outcomes.push(outcome);
            }
        }
    }
    report.comparisons = tables::beside(&options.configurations, options.cloud, &topics, &report.outcomes);
    report.published = published::of_frame(&topics);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn trial(options: &FrameOptions, configuration: Configuration, key: &Key) -> anyhow::Result<Trial> {
    let workload = category::workload(key.topics, configuration == Configuration::FramePlus, u64::from(key.run) + 1);
    let stand = configuration.stand(&workload, options.table.series.data.as_deref())?;
    Ok(Trial {
        stand,
        speech: configuration.speech(),
        workload,
        hearing: configuration.hearing(),
        in_cloud: options.cloud.then_some(category::IN_CLOUD),
        warm_up: options.table.series.warm_up(),
    })
}

fn notes(options: &FrameOptions, topics: &[u32], report: &mut Report) {
    let rates =
        topics.iter().map(|topics| format!("{topics} topics are {:.0} events/s", category::workload(*topics, false, 1).events_per_s()));
    report.note(rates.collect::<Vec<_>>().join(", "));
    report.note(format!(
        "Table 3.2's categories, 16-byte payloads, {} s a run; a proxy sends its topics in one burst a period, the bursts' places in it drawn from a seed; \
         beyond 20,000 topics categories 2 to 4 have a period and a deadline of 1 s",
        options.table.series.seconds
    ));
    for note in [
        "loss_success: percent of topics that missed no more than L events in a row; latency_success: percent of all events that came within D of the time they \
         were due, so that what the sender's own machine held up or what was lost counts as late",
        "the paper had seven hosts, three cores a broker of their own and a cloud subscriber 20 ms away; here all processes share the cores of one machine",
        "fcfs and fcfs-minus have no order of their own in the broker: all their topics have the longest deadline of the table, so that the earliest deadline is the \
         earliest arrival, and category 4 is replicated as category 3 is",
    ] {
        report.note(note.into());
    }
    if options.cloud {
        report.note(format!("cloud: the way between the brokers and category 5's subscriber takes {}", cloud_latency::description()));
    }
}
