//! An answer, printed.

use std::fmt::Write;

use bodkin_petri::solve::{
    Answer, Certainty, Question, When,
    passage::{Passage, Quantile},
};
use serde_json::json;

use crate::cli::{
    details::Details,
    model::{Form, csv},
    printer::Printer,
    write_out,
};

/// Most columns that stand side by side for people; of more each has a block of its own.
const COLUMNS_SIDE_BY_SIDE: usize = 12;

/// Prints an answer; `measures` are the texts that were asked for.
pub fn print(question: &Question, measures: &[String], answer: &Answer, form: Form) -> anyhow::Result<()> {
    let columns: Vec<&str> =
        question.net.places().iter().map(|place| place.name.as_str()).chain(measures.iter().map(String::as_str)).collect();
    let times: Vec<Option<f64>> = match &question.when {
        When::Steady => vec![None],
        When::At(times) => times.iter().copied().map(Some).collect(),
    };
    let certainty = name(answer.certainty);
    match form {
        Form::Json => {
            let document = json!({
                "net": question.net.name(),
                "time_unit": question.net.time_unit(),
                "method": answer.method.name(),
                "reason": answer.reason,
                "error": answer.error(),
                "certainty": certainty,
                "states": answer.states,
                "steps": answer.steps,
                "columns": columns,
                "errors": answer.errors,
                "times": times,
                "values": answer.values,
            });
            Printer::new(true).document(&document)?;
        }
        Form::Csv => {
            eprintln!("bodkin: method {} ({}), error at most {:.2e} ({certainty})", answer.method.name(), answer.reason, answer.error());
            write_out(&rows(&columns, &times, answer))?;
        }
        Form::Table => {
            let details = Details::default()
                .with("net", question.net.name())
                .with("method", format!("{}: {}", answer.method.name(), answer.reason))
                .with("error", format!("{:.2e} ({certainty})", answer.error()))
                .with("states", answer.states);
            write_out(&format!("{details}\n{}", sheet(&columns, &times, answer, question.net.time_unit())))?;
        }
    }
    Ok(())
}

/// What kind of statement an error is, in a word.
pub fn name(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Bound => "bound",
        Certainty::Estimate => "estimate",
    }
}

/// Prints when a condition holds first.
pub fn print_passage(question: &Question, passage: &Passage, form: Form) -> anyhow::Result<()> {
    let (certainty, unit) = (name(passage.certainty), question.net.time_unit());
    match form {
        Form::Json => {
            let quantile = |Quantile { share, low, high }: &Quantile| json!({ "share": share, "low": low, "high": high });
            let document = json!({
                "net": question.net.name(),
                "time_unit": unit,
                "method": passage.method.name(),
                "certainty": certainty,
                "quantiles": passage.quantiles.iter().map(quantile).collect::<Vec<_>>(),
                "mean": passage.mean.map(|(value, error)| json!({ "value": value, "error": error })),
            });
            Printer::new(true).document(&document)?;
        }
        Form::Csv => {
            let method = passage.method.name();
            let row = |Quantile { share, low, high }: &Quantile| format!("{share},{low},{high},{method},{certainty}\n");
            let mean = |(value, error): (f64, f64)| format!("mean,{},{},{method},estimate\n", value - error, value + error);
            let rows: String = passage.quantiles.iter().map(row).chain(passage.mean.map(mean)).collect();
            write_out(&format!("share,low,high,method,certainty\n{rows}"))?;
        }
        Form::Table => {
            let mut details = Details::default()
                .with("net", question.net.name())
                .with("method", passage.method.name())
                .with_some("mean", passage.mean.map(|(value, error)| format!("{value:.10} {unit} +- {error:.1e} (estimate)")));
            for Quantile { share, low, high } in &passage.quantiles {
                let value = 0.5 * (low + high);
                details = details.with("quantile", format!("{share}: {value:.10} {unit} +- {:.1e} ({certainty})", 0.5 * (high - low)));
            }
            write_out(&details.to_string())?;
        }
    }
    Ok(())
}

/// A line for each time: values, then what each of them may be off, then how they were found.
fn rows(columns: &[&str], times: &[Option<f64>], answer: &Answer) -> String {
    let has_time = times.iter().any(Option::is_some);
    let named = |end: &'static str| columns.iter().map(move |column| csv::quoted(&format!("{column}{end}")));
    let header = has_time.then(|| "t".to_owned()).into_iter().chain(named("")).chain(named("_error"));
    let mut text = header.chain(["method", "certainty"].map(str::to_owned)).collect::<Vec<_>>().join(",") + "\n";
    for (time, values) in times.iter().zip(&answer.values) {
        let cells = time.iter().chain(values).chain(&answer.errors).map(|number| number.to_string());
        let how = [answer.method.name(), name(answer.certainty)].map(str::to_owned);
        text.push_str(&cells.chain(how).collect::<Vec<_>>().join(","));
        text.push('\n');
    }
    text
}

/// One time stands as a list; several as a table, or a list for each where there are too many columns for one.
fn sheet(columns: &[&str], times: &[Option<f64>], answer: &Answer, unit: &str) -> String {
    let mut text = String::new();
    let width = columns.iter().map(|column| column.chars().count()).max().unwrap_or(0);
    if times.len() > 1 && columns.len() <= COLUMNS_SIDE_BY_SIDE {
        let widths: Vec<usize> = columns.iter().map(|column| column.chars().count().max(12)).collect();
        let _ = write!(text, "{:>10}", format!("t / {unit}"));
        columns.iter().zip(&widths).for_each(|(column, width)| _ = write!(text, "  {column:>width$}"));
        for (time, values) in times.iter().zip(&answer.values) {
            let _ = write!(text, "\n{:>10}", time.unwrap_or_default());
            values.iter().zip(&widths).for_each(|(value, width)| _ = write!(text, "  {:>width$}", number(*value)));
        }
        text.push('\n');
        return text;
    }
    for (time, values) in times.iter().zip(&answer.values) {
        if let Some(time) = time {
            let _ = writeln!(text, "t = {time} {unit}");
        }
        for ((column, value), error) in columns.iter().zip(values).zip(&answer.errors) {
            let _ = writeln!(text, "{column:<width$}  {:<18}  +- {error:.1e}", number(*value));
        }
    }
    text
}

/// Ten digits; of small ones the first four.
fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 { format!("{value:.3e}") } else { format!("{value:.10}") }
}
