//! `bench taskfarm`: the use cases of Müller 2019 by the C library of small nodes, on the channel of that thesis' nodes.
//!
//! A [`cell`] is a master and its workers: processes of the C library's own programs with lwIP's TCP, 6LoWPAN and frames of IEEE 802.15.4 (`zmtp-c/examples/radio`), and
//! between them a [`channel`] that carries one frame at a time. Their time is the channel's: a station's processor takes what a Cortex-M3 would, and a run does not
//! depend on the machine that it runs on.

mod cell;
mod channel;
mod configuration;
mod energy;
mod frame;
mod programs;
mod radio;
mod run;
mod series;
mod station;
mod tables;

use crate::load::Measured as Nothing;
use crate::machine::Conditions;
use crate::options::{Part, TaskfarmOptions};
use crate::report::{Outcome, Report};
use crate::statistics::Figure;

use self::configuration::{Configuration, UseCase};
use self::energy::Processor;
use self::programs::Programs;
use self::tables::{Measured, Results};

/// Runs what the options name, and reports it.
///
/// # Errors
/// The programs cannot be built. A run that fails is told in the report.
pub fn run(options: &TaskfarmOptions) -> anyhow::Result<Report> {
    let programs = Programs::build(&options.library)?;
    let mut report = Report::new("use cases of small nodes on an emulated channel of 250 kbit/s".into());
    let server = "none: a master and its workers, processes of zmtp-c with lwIP, in the channel's own time".to_string();
    let mut conditions = Conditions::begin("placed by the kernel, which does not matter".into(), server, "none".into(), options.repeat);
    let mut all = Outcome::new("all runs".into());
    let mut results = Results::default();
    for configuration in wanted(options) {
        eprintln!("{}", configuration.label());
        results.0.push(measure(&configuration, options, &programs, &mut all));
    }
    report.outcomes.push(all);
    report.outcomes.extend(results.0.iter().filter(|measured| is_grain(measured)).filter_map(|measured| scaling(&results, measured)));
    report.comparisons = results.thesis_tables(&options.form);
    report.comparisons.push(results.costs());
    notes(&mut report, options);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn wanted(options: &TaskfarmOptions) -> Vec<Configuration> {
    let mut wanted: Vec<Configuration> = options.part.iter().flat_map(|part| series::configurations(*part, &options.form)).collect();
    wanted.retain(|configuration| options.workers.is_empty() || options.workers.contains(&configuration.workers));
    wanted
}

/// Runs of one configuration. The first has the same seed in each configuration, and so have the others.
fn measure(configuration: &Configuration, options: &TaskfarmOptions, programs: &Programs, all: &mut Outcome) -> Measured {
    let mut runs = Vec::new();
    for repeat in 0..options.repeat {
        let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(repeat));
        let mut nothing = Nothing::default();
        match run::run(configuration, programs, Processor::of(options), options.loss / 100.0, seed) {
            Ok(run) => runs.push(run),
            Err(error) => nothing.faults.add(format!("{}, seed {seed}: {error:#}", configuration.label())),
        }
        let failed = nothing.faults.count;
        all.push(vec![Figure::sum("runs", 1), Figure::sum("failed", failed)], nothing);
    }
    Measured { configuration: *configuration, runs }
}

fn is_grain(measured: &Measured) -> bool {
    matches!(measured.configuration.use_case, UseCase::Primes { work_us: 1.., .. })
}

/// How tasks of a real grain scale.
fn scaling(results: &Results, measured: &Measured) -> Option<Outcome> {
    let mut outcome = Outcome::new(measured.configuration.label());
    let percent = |speed_up: f64| 100.0 * speed_up / f64::from(measured.configuration.workers);
    let (speed_up, with_connection) = (results.speed_up(measured, Measured::work_s)?, results.speed_up(measured, Measured::total_s)?);
    let figures = [
        ("total_s", measured.total_s()),
        ("work_s", measured.work_s()),
        ("speed_up", speed_up),
        ("efficiency_percent", percent(speed_up)),
        ("efficiency_with_connection_percent", percent(with_connection)),
    ];
    outcome.push(figures.map(|(key, value)| Figure::median(key, value)).to_vec(), Nothing::default());
    Some(outcome)
}

fn notes(report: &mut Report, options: &TaskfarmOptions) {
    report.note(format!(
        "seed {}; {} % of frames and of acknowledgements lost beside collisions; every station hears every other one",
        options.seed, options.loss
    ));
    report.note(
        "the thesis' totals have a close in them that waits for about 60 s (TIME_WAIT of its TCP); ours end with the last result, and `close s` tells the end apart".into(),
    );
    if options.part.contains(&Part::Tables) {
        report.note("word and line count by the farm: one measurement beside all numbers of passages, as it makes its own".into());
    }
    report.note("floor s: what the same frames take without random delays, losses and pauses".into());
    report.note(format!(
        "mJ and mW: of an M3 node whose radio, by its datasheet, listens whenever it does not send, and whose processor takes {} mA running and {} mA asleep",
        options.processor_runs_ma, options.processor_sleeps_ma
    ));
}
