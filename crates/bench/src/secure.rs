//! The same load in insecure and in secure mode, alternated, and what the difference is made of.
//!
//! Both clouds are the bench's own and hold the same services, in secure mode with certificates and tokens. Over new connections each
//! request comes from a system of its own with its own certificate, so that every one is a full mutual handshake; the processor time of
//! both sides is held against that of so many handshakes in memory, on all cores at once as in the load. On kept connections one system
//! asks.

use std::sync::Arc;

use crate::baseline::Baseline;
use crate::certificates::Certificates;
use crate::handshake::Floor;
use crate::load::{self, Measured};
use crate::machine::Conditions;
use crate::open_files;
use crate::operation::Operation;
use crate::options::{LoadOptions, Mode};
use crate::published;
use crate::report::{Outcome, Report};
use crate::scene::Askers;
use crate::state::State;
use crate::statistics::{Figure, Row, Unit};

/// Handshakes of which the floor of a run is the mean.
const FLOOR_HANDSHAKES: u32 = 2000;

/// Runs and reports.
///
/// # Errors
/// A cloud does not start or cannot be filled, certificates cannot be made, or the kind of load is not compared.
pub fn run(operation: Operation, options: &LoadOptions, modes: &[Mode]) -> anyhow::Result<Report> {
    let most = modes.iter().copied().map(Mode::count).max().unwrap_or(0);
    if modes.iter().any(|mode| matches!(mode, Mode::Simultaneous { .. })) {
        open_files::allow(most as usize)?;
    }
    let certificates = Arc::new(options.secure.certificates.open(options.secure.resume)?);
    let floor = options.secure.certificates.open(false)?;
    let mut report = Report::new(format!("{}, {}, insecure and secure", operation.name(), load::title(modes)));
    tell_what_is_compared(&mut report, options.secure.resume);
    let mut secure_target = options.target.clone();
    secure_target.server.certificates = Some(certificates);
    let mut descriptions = Vec::new();
    let mut told: Option<Conditions> = None;
    for state in options.states(operation == Operation::Register) {
        let mut insecure = Baseline::prepare(&options.target, state, operation.needs())?;
        let mut secure = Baseline::prepare(&secure_target, state, operation.needs())?;
        let conditions = told.get_or_insert_with(|| {
            let mut conditions = load::conditions(&insecure, options.repeat, load::warm_up(most));
            conditions.server = format!("{}; and {}", insecure.server(), secure.server());
            conditions
        });
        descriptions.push(insecure.description());
        for mode in modes {
            let compared = Compared { operation, mode: *mode, state, floor: &floor };
            compared.run(&mut insecure, &mut secure, options.repeat, conditions, &mut report)?;
        }
    }
    report.published = published::of_load(operation, modes[0]);
    report.conditions = told.map(|mut conditions| {
        conditions.start_from(descriptions.join("; "));
        conditions.end();
        conditions
    });
    Ok(report)
}

fn tell_what_is_compared(report: &mut Report, resume: bool) {
    let handshakes = if resume { "clients resume a session that they had before" } else { "every handshake is a full one" };
    report.note(format!("secure: mutual TLS 1.3, a certificate for each system; {handshakes}; insecure and secure runs alternate"));
    report.note(
        "the floor: processor time of full mutual handshakes in memory, both ends together, on all cores behind each run (bodkin bench handshake)"
            .into(),
    );
    report.note(
        "in secure mode services ask for tokens, so that orchestrations make them; lookups go to a public core service in both".into(),
    );
}

/// One kind of load from one state.
struct Compared<'c> {
    operation: Operation,
    mode: Mode,
    state: State,
    /// Of the floor's two ends.
    floor: &'c Certificates,
}

impl Compared<'_> {
    fn run(
        &self,
        insecure: &mut Baseline,
        secure: &mut Baseline,
        repeats: u32,
        conditions: &mut Conditions,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let what = load::label(self.operation, self.mode, self.state, true);
        let askers = if matches!(self.mode, Mode::Simultaneous { .. }) { Askers::Each } else { Askers::One };
        let [mut without, mut with] = ["insecure", "secure"].map(|mode| Outcome::new(format!("{mode}, {what}")));
        let mut ratios = Outcome::new(format!("secure to insecure, run by run, {what}"));
        for _ in 0..repeats {
            load::repeat(insecure, self.operation, self.mode, askers, &mut without, conditions)?;
            load::repeat(secure, self.operation, self.mode, askers, &mut with, conditions)?;
            ratios.push(self.ratios(&without, &with)?, Measured::default());
        }
        ratios.series.rows().for_each(|row| report.ratio(format!("{}, {what}", row.key), row.median));
        report.outcomes.extend([without, with, ratios]);
        Ok(())
    }

    /// The latest secure run against the latest insecure one, and its processor time against the floor.
    fn ratios(&self, without: &Outcome, with: &Outcome) -> anyhow::Result<Vec<Figure>> {
        let latest = |outcome: &Outcome, key: &str| outcome.series.row(key).map(Row::latest);
        let of = |key: &str| Some((latest(without, key)?, latest(with, key)?));
        let ratio = |key: &str, name: &str| {
            of(key).filter(|(without, _)| *without > 0.0).map(|(without, with)| Figure::median(name, with / without))
        };
        let keys = [("mean_ms", "mean_ratio"), ("p50_ms", "p50_ratio"), ("p99_ms", "p99_ratio"), ("whole_ms", "whole_ratio")];
        let mut figures: Vec<Figure> = keys.into_iter().filter_map(|(key, name)| ratio(key, name)).collect();
        let cpu_s = |outcome: &Outcome| Some(latest(outcome, "server_cpu_s")? + latest(outcome, "generator_cpu_s")?);
        if let (Some(insecure_s), Some(secure_s)) = (cpu_s(without), cpu_s(with)) {
            figures.push(Figure::median("cpu_ratio", if insecure_s > 0.0 { secure_s / insecure_s } else { 0.0 }));
            if let Mode::Simultaneous { count } = self.mode {
                let handshake_us = Floor::on_all_cores(self.floor, FLOOR_HANDSHAKES)?.both.mean(Unit::Us);
                let floor_s = f64::from(count) * handshake_us / 1e6;
                figures.push(Figure::median("handshake_floor_us", handshake_us));
                figures.push(Figure::median("cpu_to_floor", secure_s / floor_s));
                figures.push(Figure::median("cpu_beyond_insecure_to_floor", (secure_s - insecure_s) / floor_s));
            }
        }
        Ok(figures)
    }
}
