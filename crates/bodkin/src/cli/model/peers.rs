//! `bodkin model peers`: the same nets by other programs, where they are there, with what each takes and how far it is off.

mod lines;
mod solver;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Context;
use bodkin_petri::format::json;
use clap::{Args, ValueEnum};
use serde::Serialize;

use self::solver::{Solution, Solver};
use crate::{
    DONE, FAILED,
    cli::{printer::Printer, table::Table},
};

/// Options of `bodkin model peers`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Each program solves each net in a process of its own: processor seconds are those of the process, with its start and with what it \
                        compiles on the way. Off is the largest difference from Bodkin's own values, which are right to the error in its row. Sirio \
                        is built from its sources here, which wants Java 17 and Maven; Storm is the Python package stormpy (2.0), and is asked for one place, by the \
                        probability of each number of tokens.\n\
                        Exit codes: 0 done, with or without peers, 1 Bodkin has no answer itself."
)]
pub struct PeersOptions {
    /// The nets
    #[arg(long, value_enum, value_delimiter = ',', default_value = "intracloud,event-handler-k1,kanban3")]
    cases: Vec<Case>,
    /// Sources of the program for Sirio
    #[arg(long, value_name = "DIR", default_value = "bench/peers/sirio")]
    sirio: PathBuf,
    /// The program for Storm
    #[arg(long, value_name = "FILE.py", default_value = "bench/peers/storm/solve.py")]
    storm: PathBuf,
    /// A Python that has stormpy
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
    /// Time after which a program is stopped
    #[arg(long, value_name = "S", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    limit_s: u32,
}

/// A net and the times at which it is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Case {
    /// Orchestration inside a cloud, every half millisecond to 500
    Intracloud,
    /// Orchestration between clouds, every 5 ms to 4,000
    Intercloud,
    /// The Event Handler with one message, every 0.1 ms to 20
    EventHandlerK1,
    /// The Event Handler with four messages, every half millisecond to 50
    EventHandlerK4,
    /// Four cells with three tickets each, after 10 s: 58,400 states
    Kanban3,
    /// The same with five: 2,546,432 states
    Kanban5,
}

const KANBAN: &str = include_str!("../../../../../vectors/petri/nets/kanban.json");

impl Case {
    /// What the net's file says, its parameters, the step and the last time, and the error that Bodkin is asked for.
    fn question(self) -> (&'static str, Vec<(String, f64)>, f64, f64, f64) {
        use super::reproduce::{EVENT_HANDLER, FOUR_MESSAGES, INTERCLOUD, INTRACLOUD};
        let tickets = |count| vec![("tickets".to_owned(), count)];
        match self {
            Self::Intracloud => (INTRACLOUD, Vec::new(), 0.5, 500.0, 1e-9),
            Self::Intercloud => (INTERCLOUD, Vec::new(), 5.0, 4_000.0, 1e-9),
            Self::EventHandlerK1 => (EVENT_HANDLER, Vec::new(), 0.1, 20.0, 1e-9),
            Self::EventHandlerK4 => (FOUR_MESSAGES, Vec::new(), 0.5, 50.0, 1e-5),
            // One time: the step is all of it.
            Self::Kanban3 => (KANBAN, tickets(3.0), 10.0, 10.0, 1e-9),
            Self::Kanban5 => (KANBAN, tickets(5.0), 10.0, 10.0, 1e-9),
        }
    }

    /// What programs are asked for that make an analysis for each value.
    fn place(self) -> &'static str {
        match self {
            Self::Kanban3 | Self::Kanban5 => "out4",
            Self::Intracloud | Self::Intercloud | Self::EventHandlerK1 | Self::EventHandlerK4 => "Subscriber",
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What came of one program with one net.
#[derive(Debug, Serialize)]
struct Row {
    case: String,
    program: &'static str,
    cpu_s: Option<f64>,
    off: Option<f64>,
    told: String,
}

impl Row {
    fn new(case: Case, program: &'static str, found: &Result<Solution, String>, off: impl FnOnce(&Solution) -> Option<f64>) -> Self {
        let (cpu_s, off, told) = match found {
            Ok(solution) => (Some(solution.cpu_s), off(solution), String::new()),
            Err(reason) => (None, None, reason.clone()),
        };
        Self { case: case.name(), program, cpu_s, off, told }
    }
}

/// Solves and prints; gives the exit code.
pub fn run(options: &PeersOptions, printer: Printer) -> anyhow::Result<u8> {
    let place = tempfile::tempdir().context("no directory for the nets")?;
    let sirio = solver::sirio(&options.sirio);
    let mut rows = Vec::new();
    for case in &options.cases {
        let (text, parameters, step, last, error) = case.question();
        let net = json::read_with(text, &parameters).context("the nets are right")?;
        let (whole, flat) = (place.path().join("net.json"), place.path().join("net.lines"));
        std::fs::write(&whole, json::write(&net)).and_then(|()| std::fs::write(&flat, lines::of(&net)))?;
        let solver = Solver { place: place.path(), limit: Duration::from_secs(options.limit_s.into()) };
        let numbers = [step.to_string(), last.to_string()];

        let ours = solver.solve(&mut own(&whole, step, last, error)?);
        rows.push(Row::new(*case, "bodkin", &ours, |_| Some(error)));
        let Ok(ours) = ours else { continue };
        let off = |theirs: &Solution| theirs.off(&ours);
        let found = sirio.as_ref().map_err(Clone::clone).and_then(|sirio| solver.solve(sirio.command().arg(&flat).args(&numbers)));
        rows.push(Row::new(*case, "sirio", &found, off));
        let mut storm = Command::new(&options.python);
        let found = solver.solve(storm.arg(&options.storm).arg(&flat).args(&numbers).arg(case.place()));
        rows.push(Row::new(*case, "storm", &found, off));
    }
    print(&rows, printer)?;
    Ok(if rows.iter().any(|row| row.program == "bodkin" && row.cpu_s.is_none()) { FAILED } else { DONE })
}

/// This program, as anybody would start it.
fn own(net: &Path, step: f64, last: f64, error: f64) -> anyhow::Result<Command> {
    let mut command = Command::new(env::current_exe().context("where this program is")?);
    command.args(["model", "solve"]).arg(net);
    if step < last {
        command.args(["--transient", &format!("0:{step}:{last}")])
    } else {
        command.args(["--at", &last.to_string()])
    };
    command.args(["--error", &error.to_string(), "--output", "csv"]);
    Ok(command)
}

fn print(rows: &[Row], printer: Printer) -> std::io::Result<()> {
    let mut table = Table::new(&["CASE", "PROGRAM", "CPU S", "OFF", "TOLD"]);
    for row in rows {
        let cpu_s = row.cpu_s.map_or_else(String::new, |cpu_s| format!("{cpu_s:.2}"));
        let off = row.off.map_or_else(String::new, |off| format!("{off:.1e}"));
        table.push([row.case.clone(), row.program.to_owned(), cpu_s, off, row.told.clone()]);
    }
    printer.rows(&rows, &table, "no cases")
}
