//! The answer of `bodkin graph check` for people: operators, levels, outputs, and what would have to change.

use std::io;

use bodkin_broker::{
    graph::{
        OperatorId, Use,
        response::{Analysis, Bound, Change},
    },
    timing::{Nanos, Span},
};
use bodkin_operators::file::GraphFile;

use super::{
    super::{printer::Printer, table::Table, write_out},
    placed::Placed,
    report::{source_name, told},
};

/// Prints everything that there is of a graph on one host.
pub(super) fn print(file: &GraphFile, analysis: &Analysis, ways: &[Vec<Change>], printer: Printer) -> io::Result<()> {
    printer.table(&operators(file), "no operators")?;
    write_out("\n")?;
    printer.table(&levels(analysis), "no levels")?;
    print_outputs(file, &analysis.outputs, ways, printer)
}

/// Prints a graph over several edges.
pub(super) fn print_placed(placed: &Placed<'_>, printer: Printer) -> io::Result<()> {
    printer.table(&operators(placed.file), "no operators")?;
    print_outputs(placed.file, &placed.analysis.outputs, &[], printer)?;
    placed.print(printer)
}

fn print_outputs(file: &GraphFile, bounds: &[Bound], ways: &[Vec<Change>], printer: Printer) -> io::Result<()> {
    write_out("\n")?;
    printer.table(&outputs(file, bounds), "no outputs")?;
    let late = bounds.iter().filter(|bound| !bound.is_feasible).count();
    if late > 0 {
        write_out(&format!("\n{late} of {} outputs may be late\n", bounds.len()))?;
        for (number, way) in ways.iter().enumerate() {
            let changes: Vec<String> = way.iter().map(|change| told(file, change)).collect();
            write_out(&format!("  {} {}\n", if number == 0 { "would do:" } else { "or:      " }, changes.join(", ")))?;
        }
    }
    Ok(())
}

fn operators(file: &GraphFile) -> Table {
    let mut table = Table::new(&["OPERATOR", "KIND", "INPUTS", "RESULT", "LEVEL", "COST", "TO AN OUTPUT"]);
    for (index, (operator, recipe)) in file.graph.operators().iter().zip(&file.recipes).enumerate() {
        let id = OperatorId::of(index);
        let inputs = operator.inputs.iter().map(|edge| {
            let name = source_name(file, edge.from);
            match edge.usage {
                Use::Consume => name.to_owned(),
                Use::Latest => format!("{name} (latest)"),
                Use::Window { events, .. } => format!("{name} ({events})"),
            }
        });
        table.push([
            operator.name.clone(),
            recipe.kind().name.to_owned(),
            inputs.collect::<Vec<_>>().join(", "),
            operator.shape.to_string(),
            file.graph.level(id).get().to_string(),
            operator.cost.to_string(),
            file.graph.remaining(id).to_string(),
        ]);
    }
    table
}

fn levels(analysis: &Analysis) -> Table {
    let mut table = Table::new(&["LEVEL", "OPERATORS", "LOAD", "WITH THOSE ABOVE", "WORST CASE"]);
    for load in &analysis.levels {
        let percent = |ppm: u64| format!("{:.2} %", ppm as f64 / 1e4);
        table.push([
            load.level.get().to_string(),
            load.operators.to_string(),
            percent(load.load_ppm),
            percent(load.load_above_ppm),
            bound(load.response),
        ]);
    }
    table
}

fn outputs(file: &GraphFile, bounds: &[Bound]) -> Table {
    let mut table = Table::new(&["OUTPUT", "FROM", "LEVEL", "RESULT", "WORST CASE", "DEADLINE", ""]);
    for (output, found) in file.graph.outputs().iter().zip(bounds) {
        table.push([
            output.topic.clone(),
            file.graph.operator(output.from).name.clone(),
            output.level.get().to_string(),
            file.graph.operator(output.from).shape.to_string(),
            bound(found.response),
            if output.deadline == Span::Infinite { "none".to_owned() } else { output.deadline.to_string() },
            if found.is_feasible { "in time" } else { "may be late" }.to_owned(),
        ]);
    }
    table
}

pub(super) fn bound(response: Option<Nanos>) -> String {
    response.map_or_else(|| "no bound".to_owned(), |response| response.to_string())
}
