//! A sweep's values, printed and drawn.

use std::{fmt::Write, path::Path};

use bodkin_petri::{
    net::Net,
    plot::{Chart, Mark, Surface, document, svg},
};
use serde_json::json;

use super::{Found, Grid, Point, SweepOptions, Value};
use crate::cli::{
    model::{Form, csv},
    printer::Printer,
    write_out,
};

/// Prints a line for each point.
pub fn print(options: &SweepOptions, net: &Net, grid: &Grid, points: &[Point], form: Form) -> anyhow::Result<()> {
    let names = options.names();
    match form {
        Form::Json => {
            let value = |value: &Value| json!({ "value": value.value, "low": value.low, "high": value.high });
            let point = |(index, point): (usize, &Point)| {
                let set: serde_json::Map<String, serde_json::Value> =
                    grid.set(index).into_iter().map(|(name, value)| (name, json!(value))).collect();
                match point {
                    Ok(Found { values, method, certainty }) => {
                        let values: Vec<_> = values.iter().map(value).collect();
                        json!({ "parameters": set, "values": values, "method": method, "certainty": certainty, "refused": null })
                    }
                    Err(reason) => json!({ "parameters": set, "values": null, "method": null, "certainty": null, "refused": reason }),
                }
            };
            let points: Vec<_> = points.iter().enumerate().map(point).collect();
            Printer::new(true).document(&json!({ "net": net.name(), "time_unit": net.time_unit(), "asked": names, "points": points }))?;
        }
        Form::Csv => write_out(&rows(&names, grid, points))?,
        Form::Table => write_out(&lines(&names, grid, points))?,
    }
    Ok(())
}

fn rows(names: &[String], grid: &Grid, points: &[Point]) -> String {
    let parameters = grid.parameters().iter().map(|vary| csv::quoted(&vary.name));
    let header = parameters.chain(names.iter().flat_map(|name| ["", "_low", "_high"].map(|end| csv::quoted(&format!("{name}{end}")))));
    let mut text = header.chain(["method", "certainty", "refused"].map(str::to_owned)).collect::<Vec<_>>().join(",") + "\n";
    for (index, point) in points.iter().enumerate() {
        let set = grid.set(index).into_iter().map(|(_, value)| value.to_string());
        let (values, how): (Vec<String>, [String; 3]) = match point {
            Ok(Found { values, method, certainty }) => {
                let numbers = values.iter().flat_map(|value| [value.value, value.low, value.high]);
                (numbers.map(|number| number.to_string()).collect(), [(*method).to_owned(), csv::quoted(certainty), String::new()])
            }
            Err(reason) => (vec![String::new(); 3 * names.len()], [String::new(), String::new(), csv::quoted(reason)]),
        };
        text.push_str(&set.chain(values).chain(how).collect::<Vec<_>>().join(","));
        text.push('\n');
    }
    text
}

fn lines(names: &[String], grid: &Grid, points: &[Point]) -> String {
    let mut text = String::new();
    for (index, point) in points.iter().enumerate() {
        let set: Vec<String> = grid.set(index).into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let _ = writeln!(text, "{}", set.join(", "));
        match point {
            Ok(Found { values, method, certainty }) => {
                for (name, Value { value, low, high }) in names.iter().zip(values) {
                    let _ = writeln!(text, "  {name}  {value:.8}  ({low:.8} to {high:.8})");
                }
                let _ = writeln!(text, "  {method}, {certainty}");
            }
            Err(reason) => _ = writeln!(text, "  {reason}"),
        }
    }
    text
}

/// Draws what was asked for over the parameters, in the form that the file's name asks for.
///
/// # Errors
/// That there is no such form, or what hinders the writing.
pub fn draw(out: &Path, options: &SweepOptions, net: &Net, grid: &Grid, points: &[Point]) -> Result<(), String> {
    let told = |reason: String| format!("{}: {reason}", out.display());
    let names = options.names();
    let drawings: Vec<(String, &str)> = match grid.parameters() {
        [only] => vec![(svg(&curves(net, &names, &only.name, grid, points)), "")],
        _ => (0..names.len()).map(|asked| (surface(&names[asked], asked, grid, points).svg(), "")).collect(),
    };
    let text = match (out.extension().and_then(|end| end.to_str()), drawings.as_slice()) {
        (Some("html"), drawings) => document(net.name(), drawings, &table(&names, grid, points)),
        (Some("svg"), [(drawing, _)]) => drawing.clone(),
        (Some("svg"), _) => return Err(told("an SVG file holds one drawing; a name that ends with .html is expected".to_owned())),
        _ => return Err(told("its form is not known; expected a name that ends with .svg or .html".to_owned())),
    };
    std::fs::write(out, text).map_err(|error| told(error.to_string()))
}

/// All points as a table of a page, with how each was found.
fn table(names: &[String], grid: &Grid, points: &[Point]) -> String {
    let row = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let parameters = grid.parameters().iter().map(|vary| vary.name.clone());
    let header: Vec<String> = parameters.chain(names.iter().cloned()).chain(["method", "certainty"].map(str::to_owned)).collect();
    let mut text = format!("<table>\n{}", row("th", &header));
    for (index, point) in points.iter().enumerate() {
        let set = grid.set(index).into_iter().map(|(_, value)| value.to_string());
        let found: Vec<String> = match point {
            Ok(Found { values, method, certainty }) => {
                let values = values.iter().map(|Value { value, low, high }| format!("{value:.8} ({low:.8} to {high:.8})"));
                values.chain([(*method).to_owned(), certainty.clone()]).collect()
            }
            Err(reason) => vec![String::new(); names.len()].into_iter().chain([reason.clone(), String::new()]).collect(),
        };
        text.push_str(&row("td", &set.chain(found).collect::<Vec<_>>()));
    }
    text + "</table>\n"
}

/// A text with the characters replaced that mean something in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn curves(net: &Net, names: &[String], parameter: &str, grid: &Grid, points: &[Point]) -> Chart {
    let at = |index: usize| grid.set(index)[0].1;
    let marks = names.iter().enumerate().flat_map(|(asked, name)| {
        let mut known: Vec<(f64, Value)> =
            points.iter().enumerate().filter_map(|(index, point)| Some((at(index), *point.as_ref().ok()?.values.get(asked)?))).collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        let band = known.iter().map(|(x, value)| (*x, value.low, value.high)).collect();
        let line = known.iter().map(|(x, value)| (*x, value.value)).collect();
        [Mark::Band { points: band }, Mark::Line { name: name.clone(), points: line }]
    });
    Chart { title: net.name().to_owned(), x_label: parameter.to_owned(), y_label: "value".to_owned(), marks: marks.collect() }
}

fn surface(name: &str, asked: usize, grid: &Grid, points: &[Point]) -> Surface {
    let [x, y] = grid.parameters() else { unreachable!("a surface is over two parameters") };
    let value = |point: &Point| point.as_ref().ok().map(|found| found.values[asked].value);
    let values = points.chunks(x.values.len()).map(|row| row.iter().map(value).collect()).collect();
    Surface { title: name.to_owned(), x: (x.name.clone(), x.values.clone()), y: (y.name.clone(), y.values.clone()), values }
}
