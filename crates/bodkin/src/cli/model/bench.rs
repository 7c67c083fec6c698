//! `bodkin model bench`: what was asked of the engine, measured, each case by a command that anybody can run.

mod cases;
mod measured;

use std::{env, fs, path::Path, time::Duration};

use anyhow::Context;
use bodkin_petri::format::json as own_form;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use self::{
    cases::{Case, Goal, Told},
    measured::{Used, largest_child_mb, measured},
};
use crate::{
    DONE, FAILED,
    cli::{printer::Printer, table::Table},
};

/// Exit code: a goal was missed.
const MISSED: u8 = 4;

/// Options of `bodkin model bench`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Each case is a command of its own, whose processor time is that of the process, with its start and with what it prints; on a machine where nothing else runs \
                        all of them take about a minute. Memory is the largest of all processes so far. What a goal is compared with stands in front of it: cpu, wall (on two \
                        processors), messages a second of one processor.\n\
                        Exit codes: 0 done, 1 a case has no answer, 4 a goal was missed; a build for development misses most."
)]
pub struct BenchOptions {
    /// Only these cases; without it all
    #[arg(long, value_name = "CASE,...", value_delimiter = ',', value_parser = cases::names())]
    only: Vec<String>,
    /// Time after which a case is stopped
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    limit_s: u32,
}

/// What came of a case.
#[derive(Debug, Serialize)]
struct Row {
    case: &'static str,
    /// What is behind `bodkin`, with the name of the net's file.
    command: String,
    goal: String,
    cpu_s: Option<f64>,
    wall_s: Option<f64>,
    largest_mb: f64,
    /// What was reached besides the time.
    told: String,
    met: bool,
}

/// Runs the cases and prints what each took; gives the exit code.
pub fn run(options: &BenchOptions, printer: Printer) -> anyhow::Result<u8> {
    let place = tempfile::tempdir().context("no directory for the nets")?;
    let limit = Duration::from_secs(options.limit_s.into());
    let asked = |case: &Case| options.only.is_empty() || options.only.iter().any(|name| name == case.name);
    let mut rows = Vec::new();
    for case in cases::all().iter().filter(|case| asked(case)) {
        rows.push(row(case, place.path(), limit)?);
    }
    print(&rows, printer)?;
    Ok(match (rows.iter().all(|row| row.cpu_s.is_some()), rows.iter().all(|row| row.met)) {
        (false, _) => FAILED,
        (true, false) => MISSED,
        (true, true) => DONE,
    })
}

fn row(case: &Case, place: &Path, limit: Duration) -> anyhow::Result<Row> {
    let path = place.join(case.file);
    let text = match case.file.ends_with(".json") {
        true => own_form::write(&own_form::read_with(&case.text, &case.parameters).context("the nets are right")?),
        false => case.text.clone(),
    };
    fs::write(&path, text)?;
    let mut command = std::process::Command::new(env::current_exe().context("where this program is")?);
    command.arg("model").arg(&case.arguments[0]).arg(&path).args(&case.arguments[1..]).args(["--output", "json"]);
    let found = measured(&mut command, place, limit).and_then(|(used, text)| {
        let answer: Value = serde_json::from_str(&text).map_err(|error| format!("its answer is no JSON: {error}"))?;
        let told = case.told(&answer).ok_or_else(|| "its answer lacks what was asked".to_owned())?;
        Ok((used, told))
    });
    let shown = format!("model {} {} {}", case.arguments[0], case.file, case.arguments[1..].join(" "));
    let goal = case.goals.iter().map(Goal::to_string).collect::<Vec<_>>().join(", ");
    let row = Row {
        case: case.name,
        command: shown,
        goal,
        cpu_s: None,
        wall_s: None,
        largest_mb: largest_child_mb(),
        told: String::new(),
        met: false,
    };
    Ok(match found {
        Ok((used, told)) => {
            let Used { cpu_s, wall_s } = used;
            let told = Told { cpu_s, wall_s, largest_mb: row.largest_mb, ..told };
            let met = case.goals.iter().all(|goal| goal.is_met(&told));
            Row { cpu_s: Some(cpu_s), wall_s: Some(wall_s), told: case.said(&told), met, ..row }
        }
        Err(reason) => Row { told: reason, ..row },
    })
}

fn print(rows: &[Row], printer: Printer) -> std::io::Result<()> {
    let mut table = Table::new(&["CASE", "GOAL", "CPU S", "WALL S", "MB", "REACHED", "MET"]);
    for row in rows {
        let seconds = |time: Option<f64>| time.map_or_else(String::new, |time| format!("{time:.3}"));
        let met = if row.met { "yes" } else { "no" }.to_owned();
        let cells = [
            row.case.to_owned(),
            row.goal.clone(),
            seconds(row.cpu_s),
            seconds(row.wall_s),
            format!("{:.0}", row.largest_mb),
            row.told.clone(),
            met,
        ];
        table.push(cells);
    }
    printer.rows(&rows, &table, "no cases")
}
