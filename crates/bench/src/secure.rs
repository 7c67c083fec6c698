//! The same load in insecure and in secure mode, alternated, and what the difference is made of.
//!
//! Both clouds are the bench's own and hold the same services, in secure mode with certificates and tokens. Over new connections each
//! request comes from a system of its own with its own certificate, so that every one is a full mutual handshake; the processor time of
//! both sides is held against that of so many handshakes in memory. On kept connections one system asks.

use std::sync::Arc;

use crate::baseline::Baseline;
use crate::handshake::Floor;
use crate::load::{self, Measured};
use crate::machine::Conditions;
use crate::operation::Operation;
use crate::options::{LoadOptions, Mode};
use crate::published;
use crate::report::{Outcome, Report};
use crate::scene::Askers;
use crate::simultaneous;
use crate::state::State;
use crate::statistics::{Figure, Unit};

/// Handshakes of which the floor is the mean.
const FLOOR_HANDSHAKES: u32 = 1000;

/// Runs and reports.
///
/// # Errors
/// A cloud does not start or cannot be filled, certificates cannot be made, or the kind of load is not compared.
pub fn run(operation: Operation, options: &LoadOptions, modes: &[Mode]) -> anyhow::Result<Report> {
    let most = modes.iter().copied().map(Mode::count).max().unwrap_or(0);
    if modes.iter().any(|mode| matches!(mode, Mode::Simultaneous { .. })) {
        simultaneous::allow_connections(most)?;
    }
    let certificates = Arc::new(options.secure.certificates.open(options.secure.resume)?);
    let floor = Floor::measure(&options.secure.certificates.open(false)?, FLOOR_HANDSHAKES)?;
    let mut report = Report::new(format!("{}, {}, insecure and secure", operation.name(), load::title(modes)));
    tell_what_is_compared(&mut report, options.secure.resume, &floor);
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
            let compared = Compared { operation, mode: *mode, state, floor_us: floor.both.mean(Unit::Us) };
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

fn tell_what_is_compared(report: &mut Report, resume: bool, floor: &Floor) {
    let handshakes = if resume { "clients resume a session that they had before" } else { "every handshake is a full one" };
    report.note(format!("secure: mutual TLS 1.3, a certificate for each system; {handshakes}; insecure and secure runs alternate"));
    report.note(format!(
        "the floor: one full mutual handshake in memory takes {:.0} us of processor time, both ends together (bodkin bench handshake)",
        floor.both.mean(Unit::Us)
    ));
    report.note(
        "in secure mode services ask for tokens, so that orchestrations make them; lookups go to a public core service in both".into(),
    );
}

/// One kind of load from one state.
struct Compared {
    operation: Operation,
    mode: Mode,
    state: State,
    floor_us: f64,
}

impl Compared {
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
        for _ in 0..repeats {
            load::repeat(insecure, self.operation, self.mode, askers, &mut without, conditions)?;
            load::repeat(secure, self.operation, self.mode, askers, &mut with, conditions)?;
        }
        let figures = self.ratios(&without, &with);
        figures.iter().for_each(|figure| report.ratio(format!("{}, {what}", figure.key), figure.value));
        let mut ratios = Outcome::new(format!("secure to insecure, {what}"));
        ratios.push(figures, Measured::default());
        report.outcomes.extend([without, with, ratios]);
        Ok(())
    }

    /// Medians of the secure runs against those of the insecure ones, and their processor time against the floor.
    fn ratios(&self, without: &Outcome, with: &Outcome) -> Vec<Figure> {
        let of = |key: &str| Some((without.series.summary(key)?, with.series.summary(key)?));
        let ratio = |key: &str, name: &str| {
            of(key).filter(|(without, _)| *without > 0.0).map(|(without, with)| Figure::median(name, with / without))
        };
        let keys = [("mean_ms", "mean_ratio"), ("p50_ms", "p50_ratio"), ("p99_ms", "p99_ratio"), ("whole_ms", "whole_ratio")];
        let mut figures: Vec<Figure> = keys.into_iter().filter_map(|(key, name)| ratio(key, name)).collect();
        let cpu_s = |outcome: &Outcome| Some(outcome.series.summary("server_cpu_s")? + outcome.series.summary("generator_cpu_s")?);
        if let (Some(insecure_s), Some(secure_s)) = (cpu_s(without), cpu_s(with)) {
            figures.push(Figure::median("cpu_ratio", if insecure_s > 0.0 { secure_s / insecure_s } else { 0.0 }));
            if let Mode::Simultaneous { count } = self.mode {
                let floor_s = f64::from(count) * self.floor_us / 1e6;
                figures.push(Figure::median("handshakes_floor_s", floor_s));
                figures.push(Figure::median("cpu_to_floor", secure_s / floor_s));
                figures.push(Figure::median("cpu_beyond_insecure_to_floor", (secure_s - insecure_s) / floor_s));
            }
        }
        figures
    }
}
