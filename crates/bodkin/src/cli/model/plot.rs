//! `bodkin model plot`.

use std::{
    path::{Path, PathBuf},
    thread::available_parallelism,
};

use bodkin_petri::{
    expression::Expression,
    measure::Measure,
    net::Net,
    plot::{Chart, Mark, page, svg},
    simulate,
    solve::{self, Certainty, When},
};
use clap::Args;
use serde_json::json;

use super::{expressions::expression, file::NetFile, times::Grid};
use crate::{DONE, FAILED, USAGE, cli::printer::Printer};

/// Options of `bodkin model plot`.
#[derive(Args, Clone, Debug)]
#[command(
    allow_negative_numbers = true,
    after_help = "The end of OUT says its form: .svg is a chart, .html a page with it that needs no network.\nExit codes: 0 done, 1 there is no \
                        answer or OUT cannot be written, 2 the net or an option has a mistake."
)]
pub struct PlotOptions {
    #[command(flatten)]
    net: NetFile,
    /// File to write; one that is there is replaced
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Times from T0 to T1, STEP apart
    #[arg(long, value_name = "T0:STEP:T1", allow_hyphen_values = true)]
    transient: Grid,
    /// Draw these and no places: an expression over places; of a condition its probability
    #[arg(long = "measure", value_name = "EXPR")]
    measures: Vec<String>,
    /// Simulate, and draw the intervals of 99 % as bands
    #[arg(long)]
    simulate: bool,
    /// Runs of a simulation
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "simulate")]
    runs: u64,
    /// Decides all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, requires = "simulate")]
    seed: u64,
    /// What values may be off at most without --simulate
    #[arg(long, value_name = "E", default_value_t = 1e-6)]
    error: f64,
}

/// Curves and what is said of them.
type Curves = (Vec<Mark>, String);

/// Draws; gives the exit code.
pub fn run(options: &PlotOptions, printer: Printer) -> anyhow::Result<u8> {
    let asked = options.net.read().and_then(|net| options.measures(&net).map(|measures| (net, measures)));
    let (net, measures) = match asked {
        Ok(asked) => asked,
        Err(mistake) => return Ok(refused(&mistake, USAGE)),
    };
    let curves = if options.simulate { options.simulated(&net, measures) } else { options.solved(&net, measures) };
    let (marks, said) = match curves {
        Ok(curves) => curves,
        Err(mistake) => return Ok(refused(&mistake, FAILED)),
    };
    let y_label = if options.measures.is_empty() { "expected tokens" } else { "expected value" };
    let x_label = format!("t / {}", net.time_unit());
    let chart = Chart { title: net.name().to_owned(), x_label, y_label: y_label.to_owned(), marks };
    let written = write_charts(&options.out, net.name(), &[(chart, said.clone())]);
    if let Err(mistake) = written {
        return Ok(refused(&mistake, FAILED));
    }
    let out = options.out.display().to_string();
    printer.done(&json!({ "net": net.name(), "out": out, "said": said }), &format!("{out}: {said}"))?;
    Ok(DONE)
}

/// Writes charts in the form that the file's name asks for.
///
/// # Errors
/// That there is no such form, or what hinders the writing.
pub fn write_charts(out: &Path, title: &str, charts: &[(Chart, String)]) -> Result<(), String> {
    let told = |reason: String| format!("{}: {reason}", out.display());
    let text = match (out.extension().and_then(|end| end.to_str()), charts) {
        (Some("html"), _) => page(title, charts),
        (Some("svg"), [(chart, _)]) => svg(chart),
        (Some("svg"), _) => return Err(told("an SVG file holds one chart; a name that ends with .html is expected".to_owned())),
        _ => return Err(told("its form is not known; expected a name that ends with .svg or .html".to_owned())),
    };
    std::fs::write(out, text).map_err(|error| told(error.to_string()))
}

fn refused(mistake: &str, code: u8) -> u8 {
    eprintln!("bodkin: {mistake}");
    code
}

impl PlotOptions {
    fn measures(&self, net: &Net) -> Result<Vec<Expression>, String> {
        self.measures.iter().map(|text| expression(net, "--measure", text)).collect()
    }

    /// Names of the curves, and how many of an answer's columns come before them.
    fn names(&self, net: &Net) -> (Vec<String>, usize) {
        let places = || net.places().iter().map(|place| place.name.clone()).collect();
        if self.measures.is_empty() { (places(), 0) } else { (self.measures.clone(), net.places().len()) }
    }

    fn solved(&self, net: &Net, measures: Vec<Expression>) -> Result<Curves, String> {
        let measures = measures.into_iter().map(Measure::Reward).collect();
        let question = solve::Question { measures, error: self.error, ..solve::Question::new(net, When::At(self.transient.0.clone())) };
        let answer = solve::solve(&question).map_err(|error| format!("{error}; --simulate draws what cannot be computed"))?;
        let (names, first) = self.names(net);
        let line = |(index, name): (usize, String)| {
            let points = self.transient.0.iter().zip(&answer.values).map(|(time, values)| (*time, values[first + index]));
            Mark::Line { name, points: points.collect() }
        };
        let certainty = if answer.certainty == Certainty::Bound { "at most" } else { "estimated at" };
        let said = format!("method {}, error {certainty} {:.1e}", answer.method.name(), answer.error());
        Ok((names.into_iter().enumerate().map(line).collect(), said))
    }

    fn simulated(&self, net: &Net, measures: Vec<Expression>) -> Result<Curves, String> {
        let question = simulate::Question { instants: self.transient.0.clone(), measures, target: None, tag: None };
        let threads = available_parallelism().map_or(1, usize::from);
        let options = simulate::Options { seed: self.seed, runs: self.runs, threads, ..simulate::Options::default() };
        let answer = simulate::simulate(net, &question, &options).map_err(|error| error.to_string())?;
        let (names, first) = self.names(net);
        let columns = answer.places.iter().chain(&answer.measures).skip(first);
        let marks = names.into_iter().zip(columns).flat_map(|(name, estimates)| {
            let points = || self.transient.0.iter().zip(estimates);
            let band = points().map(|(time, estimate)| (*time, estimate.low, estimate.high)).collect();
            let line = points().map(|(time, estimate)| (*time, estimate.value)).collect();
            [Mark::Band { points: band }, Mark::Line { name, points: line }]
        });
        Ok((marks.collect(), format!("{} runs, bands of 99 %, seed {}", answer.runs, self.seed)))
    }
}
