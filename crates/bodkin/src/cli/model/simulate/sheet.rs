//! A simulation's answer, printed.

use std::fmt::Write;

use bodkin_petri::{
    net::Net,
    simulate::{Answer, Control, Estimate, Question},
};
use serde_json::{Value, json};

use crate::cli::{
    details::Details,
    model::{Form, csv},
    printer::Printer,
    write_out,
};

/// Prints an answer; `measures` are the texts that were asked for.
pub fn print(net: &Net, question: &Question, measures: &[String], seed: u64, answer: &Answer, form: Form) -> anyhow::Result<()> {
    let names = net.places().iter().map(|place| place.name.as_str()).chain(measures.iter().map(String::as_str));
    let curves: Vec<(&str, &[Estimate])> = names.zip(answer.places.iter().chain(&answer.measures).map(Vec::as_slice)).collect();
    match form {
        Form::Json => Printer::new(true).document(&document(net, question, &curves, measures, seed, answer))?,
        Form::Csv => write_out(&rows(question, &curves, answer))?,
        Form::Table => {
            let mut details = Details::default()
                .with("net", net.name())
                .with("runs", answer.runs)
                .with("firings", answer.events)
                .with("half-width", format!("{:.1e} at most", answer.half_width));
            for control in &answer.controls {
                details = details.with("compared", compared(net, measures, control));
            }
            write_out(&format!("{details}\n{}{}{}", sheet(net, question, &curves), passage(net, answer), response(net, question, answer)))?;
        }
    }
    Ok(())
}

fn document(net: &Net, question: &Question, curves: &[(&str, &[Estimate])], measures: &[String], seed: u64, answer: &Answer) -> Value {
    let estimate = |estimate: &Estimate| json!({ "value": estimate.value, "low": estimate.low, "high": estimate.high });
    let curve =
        |(name, estimates): &(&str, &[Estimate])| json!({ "name": name, "estimates": estimates.iter().map(estimate).collect::<Vec<_>>() });
    let passage = answer.passage.as_ref().map(|passage| {
        let quantile = |(share, value): &(f64, Estimate)| json!({ "share": share, "estimate": estimate(value) });
        json!({
            "cdf": passage.cdf.iter().map(estimate).collect::<Vec<_>>(),
            "mean": passage.mean.as_ref().map(estimate),
            "quantiles": passage.quantiles.iter().map(quantile).collect::<Vec<_>>(),
            "missing": passage.missing,
        })
    });
    let response = answer.response.as_ref().map(|response| {
        json!({
            "cdf": response.cdf.iter().map(estimate).collect::<Vec<_>>(),
            "mean": estimate(&response.mean),
            "count": response.count,
        })
    });
    let control = |control: &Control| {
        json!({
            "condition": measures.get(control.condition).map_or("until", String::as_str),
            "transition": net.transitions()[control.transition].name,
            "delays": control.delays,
            "shift": control.shift,
        })
    };
    json!({
        "net": net.name(),
        "time_unit": net.time_unit(),
        "method": "simulation",
        "seed": seed,
        "runs": answer.runs,
        "firings": answer.events,
        "half_width": answer.half_width,
        "is_narrow": answer.is_narrow,
        "controls": answer.controls.iter().map(control).collect::<Vec<_>>(),
        "times": question.instants,
        "curves": curves.iter().map(curve).collect::<Vec<_>>(),
        "until": passage,
        "response": response,
    })
}

/// A line a time; of each curve its value and both ends of the interval.
fn rows(question: &Question, curves: &[(&str, &[Estimate])], answer: &Answer) -> String {
    let cdf = answer.passage.iter().map(|passage| ("until", passage.cdf.as_slice()));
    let response = answer.response.iter().map(|response| ("response", response.cdf.as_slice()));
    let curves: Vec<(&str, &[Estimate])> = curves.iter().copied().chain(cdf).chain(response).collect();
    let header = curves.iter().flat_map(|(name, _)| ["", "_low", "_high"].map(|end| csv::quoted(&format!("{name}{end}"))));
    let mut text = std::iter::once("t".to_owned()).chain(header).collect::<Vec<_>>().join(",") + "\n";
    for (index, time) in question.instants.iter().enumerate() {
        let estimates = curves.iter().flat_map(|(_, estimates)| [estimates[index].value, estimates[index].low, estimates[index].high]);
        let cells: Vec<String> = std::iter::once(*time).chain(estimates).map(|number| number.to_string()).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

fn sheet(net: &Net, question: &Question, curves: &[(&str, &[Estimate])]) -> String {
    let width = curves.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (index, time) in question.instants.iter().enumerate() {
        let _ = writeln!(text, "t = {time} {}", net.time_unit());
        for (name, estimates) in curves {
            let _ = writeln!(text, "{name:<width$}  {}", interval(&estimates[index]));
        }
    }
    text
}

fn passage(net: &Net, answer: &Answer) -> String {
    let Some(passage) = &answer.passage else { return String::new() };
    let mut text = format!("\nuntil the condition holds, in {}\n", net.time_unit());
    if passage.missing > 0 {
        let _ = writeln!(text, "in {} of {} runs it does not", passage.missing, answer.runs);
    }
    if let Some(mean) = &passage.mean {
        let _ = writeln!(text, "mean    {}", interval(mean));
    }
    for (share, estimate) in &passage.quantiles {
        let _ = writeln!(text, "{:<6}  {}", format!("{}%", share * 100.0), interval(estimate));
    }
    text
}

fn response(net: &Net, question: &Question, answer: &Answer) -> String {
    let Some(response) = &answer.response else { return String::new() };
    let mut text = format!("\n{} responses, in {}\nmean    {}\n", response.count, net.time_unit(), interval(&response.mean));
    for (time, estimate) in question.instants.iter().zip(&response.cdf) {
        let _ = writeln!(text, "at most {time}  {}", interval(estimate));
    }
    text
}

/// What a condition's probability is compared with.
fn compared(net: &Net, measures: &[String], control: &Control) -> String {
    let Control { condition, transition, delays, shift } = control;
    let condition = measures.get(*condition).map_or("--until", String::as_str);
    let transition = &net.transitions()[*transition].name;
    format!("{condition}: with {delays} delays of {transition} and {shift:.4} {}, whose law is known", net.time_unit())
}

fn interval(estimate: &Estimate) -> String {
    format!("{:<14.8}  {:.8} to {:.8}", estimate.value, estimate.low, estimate.high)
}
