//! `bench cpep`: the six sets of experiments of Wang 2019, chapter 2.
//!
//! [`cases`] says which rows a set has; a [`trial`] runs one: a [`service`] with the graph of a [`figures`] Figure, and suppliers and consumers in processes of their own, over sockets. Latency is what the
//! paper takes: from the push of the newest event that a result is made of to the consumer.

mod accept;
mod cases;
mod consumer;
mod figures;
mod flink;
mod graph_file;
mod precedence;
pub mod recorded;
mod service;
mod speech;
mod streams;
mod supplier;
mod tables;
mod threads;
mod trial;

pub use self::{
    consumer::{ConsumeOrder, ConsumeReport, Consumers},
    supplier::{Suppliers, SupplyOrder, SupplyReport},
};

use std::cell::OnceCell;

use self::{
    cases::{Case, cases},
    flink::FlinkProgram,
    precedence::InFront,
    service::Service,
    trial::Trial,
};
use super::row::{Key, Row, Rows};
use crate::options::{CpepOptions, Precedence, Processor};
use crate::published;
use crate::report::Report;

/// Runs every row that is not measured yet, and reports the sets.
///
/// # Errors
/// A service does not start, or a side fails.
pub fn run(options: &CpepOptions) -> anyhow::Result<Report> {
    let mut rows = Rows::open(options.series.state.as_deref())?;
    let list = options.sets.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let mut report = Report::new(format!("CPEP: sets {list}"));
    let mut conditions = options.series.conditions();
    notes(options, &mut report);
    let in_front = InFront::of(options.sides).unwrap_or_else(|why| {
        report.note(format!("suppliers and consumers are ordinary threads: {why:#}"));
        None
    });
    // A row says how it was measured.
    let sides = if in_front.is_some() { Precedence::First } else { Precedence::Beside };
    let all = cases(&CpepOptions { sides, ..options.clone() });
    let program = OnceCell::new();
    for case in &all {
        if case.processor == Processor::Flink
            && let Err(why) = program.get_or_init(|| FlinkProgram::build(&options.flink))
        {
            report.note(format!("{} is left out: {why:#}", case.label()));
            continue;
        }
        let (seconds, runs) = (options.series.seconds, options.series.runs);
        let first = Key { configuration: case.configuration(), topics: case.size, is_crash: false, seconds, run: 0 };
        let flink = program.get().and_then(|program| program.as_ref().ok());
        report.outcomes.push(rows.outcome(case.label(), &first, runs, |key| measure(options, case, flink, in_front.as_ref(), key))?);
    }
    report.comparisons = tables::beside(&all, &report.outcomes);
    report.published = published::of_cpep();
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn measure(options: &CpepOptions, case: &Case, flink: Option<&FlinkProgram>, in_front: Option<&InFront>, key: &Key) -> anyhow::Result<Row> {
    let graph = case.figure(key.run);
    let copies = [case.beside[0], case.size, case.beside[1]];
    let start = |sides: Option<_>| match (sides, flink) {
        (Some(sides), Some(flink)) => flink.start(copies, sides, options.cores).map(Service::Flink),
        _ => Service::bodkin(&graph, case.terms, options.series.data.as_deref()),
    };
    let comes_itself = case.processor == Processor::Flink;
    let trial = Trial { graph: &graph, comes_itself, start: &start, warm_up: options.series.warm_up(), in_front };
    trial::measure(&trial, key.clone())
}

fn notes(options: &CpepOptions, report: &mut Report) {
    report.note(format!(
        "{} s a run behind {} s of warm-up; suppliers, service and consumers share the cores of one machine, where the paper had a host for each; a graph has {} workers, of each level \
         where levels differ",
        options.series.seconds, options.series.warm_up_seconds, options.cores
    ));
    for note in [
        "latency: from the push of the newest event that a result is made of to the consumer; timely: within the period of its suppliers (sets 1 to 3, 5, 6), or within 10 ms (set 4), and not marked",
        "no shedding: what is not valid is computed all the same, and marked",
        "machine_cpu_percent is of all cores and all processes, service_cpu_percent of one core",
    ] {
        report.note(note.into());
    }
}
