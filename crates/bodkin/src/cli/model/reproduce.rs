//! `bodkin model reproduce`: the models of Rocha's thesis (2019), what it printed of them, and what they are.

mod curves;
mod sequence;

use std::{fmt::Write, path::PathBuf, thread::available_parallelism};

use bodkin_petri::{
    distribution::{Distribution, Exponential},
    fit::{Family, Options, Report, Sample, fit},
    format::{drawing, json},
    net::Net,
    plot::{Chart, Mark, document, svg},
    solve::SolveError,
};
use clap::Args;
use serde_json::json;

use self::curves::{Curves, grid, quantile_and_mean};
use super::{csv, fit::charts};
use crate::{
    DONE, FAILED,
    cli::{printer::Printer, table::Table},
};

pub const INTRACLOUD: &str = include_str!("../../../../../vectors/petri/nets/intracloud.json");
pub const INTERCLOUD: &str = include_str!("../../../../../vectors/petri/nets/intercloud.json");
pub const EVENT_HANDLER: &str = include_str!("../../../../../vectors/petri/nets/event_handler_k1.json");
pub const FOUR_MESSAGES: &str = include_str!("../../../../../vectors/petri/nets/event_handler_k4_p4_c4_ss.json");
pub const FOUR_MESSAGES_AT_ONCE: &str = include_str!("../../../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json");
pub const LISTING: &str = include_str!("../../../../../vectors/petri/listing_6_1.csv");

/// The thesis calls a probability 1 that prints as 1.000.
const PRINTS_AS_ONE: f64 = 0.9995;

/// Error of the nets with several messages.
const ERROR_OF_SEVERAL: f64 = 1e-5;

/// Mean latencies in ms that it measured with one subscriber and with six: figure 7.5.
const MEASURED_MEANS: [f64; 2] = [8.98, 10.68];

/// Options of `bodkin model reproduce`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The thesis: R. Rocha, Evaluating and Improving the Performance of the Arrowhead Framework, Porto 2019. Its curves come from \
                        ORIS, which lags by about half a step for every transition. It does not print the data of 6.2: here values at even steps of \
                        the law that it took stand for them.\n\
                        Exit codes: 0 done, 1 the plot cannot be written."
)]
pub struct ReproduceOptions {
    /// Draw chapters 6 and 8's figures into this page
    #[arg(long, value_name = "OUT.html")]
    plot: Option<PathBuf>,
}

/// A number that the thesis prints.
struct Row {
    figure: &'static str,
    what: &'static str,
    published: &'static str,
    ours: f64,
    off: Off,
}

/// What a number may be off, and what kind of statement that is: a bound, an estimate, or the step of the grid that it was read off.
type Off = (f64, &'static str);

/// What was read off a grid may be off by its step.
fn step(step: f64) -> Off {
    (step, "grid's step")
}

/// Likelihoods are the greatest to the rounding of their search.
const SEARCHED: Off = (1e-9, "estimate");

/// Drawings and what is said of each.
type Figures = Vec<(String, &'static str)>;

/// Computes, prints and draws; gives the exit code.
pub fn run(options: &ReproduceOptions, printer: Printer) -> anyhow::Result<u8> {
    let (rows, figures) = match all() {
        Ok(found) => found,
        Err(error) => {
            eprintln!("bodkin: {error}");
            return Ok(FAILED);
        }
    };
    print(&rows, printer)?;
    if let Some(out) = &options.plot {
        let text = document("Rocha 2019, chapters 6 and 8", &figures, &table(&rows));
        if let Err(error) = std::fs::write(out, text) {
            eprintln!("bodkin: {}: {error}", out.display());
            return Ok(FAILED);
        }
    }
    Ok(DONE)
}

fn all() -> Result<(Vec<Row>, Figures), SolveError> {
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    listing(&mut rows, &mut figures);
    intracloud(&mut rows, &mut figures)?;
    intercloud(&mut rows, &mut figures)?;
    one_message(&mut rows, &mut figures)?;
    four_messages(&mut rows, &mut figures)?;
    Ok((rows, figures))
}

fn net(text: &str) -> Net {
    json::read(text).expect("the published nets are right")
}

fn print(rows: &[Row], printer: Printer) -> std::io::Result<()> {
    let mut lines = Table::new(&["FIGURE", "WHAT", "THESIS", "HERE", "+-", "BY"]);
    for row in rows {
        lines.push([
            row.figure.to_owned(),
            row.what.to_owned(),
            row.published.to_owned(),
            format!("{:.7}", row.ours),
            format!("{:.0e}", row.off.0),
            row.off.1.to_owned(),
        ]);
    }
    let row = |Row { figure, what, published, ours, off: (off, by) }: &Row| json!({ "figure": figure, "what": what, "published": published, "value": ours, "off": off, "by": by });
    printer.rows(&json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() }), &lines, "none")
}

/// The rows as a table of a page.
fn table(rows: &[Row]) -> String {
    let mut text = "<table>\n<tr><th>figure</th><th>what</th><th>thesis</th><th>here</th><th>&#177;</th><th>by</th></tr>\n".to_owned();
    for Row { figure, what, published, ours, off: (off, by) } in rows {
        let what = what.replace('<', "&lt;");
        let _ = writeln!(
            text,
            "<tr><td>{figure}</td><td>{what}</td><td>{published}</td><td>{ours:.7}</td><td>{off:.0e}</td><td>{by}</td></tr>"
        );
    }
    text + "</table>\n"
}

/// Chapter 6's way from latencies to laws: Erlang's where gamma's shape is large, exponential where it is near 1.
fn listing(rows: &mut Vec<Row>, figures: &mut Figures) {
    let sample = csv::column(LISTING, None).ok().and_then(|values| Sample::new(values).ok()).expect("the listing has values");
    let report = fitted(&sample, Family::Erlang);
    let parameter = |report: &Report, family: Family, name: &str| {
        let fitted = report.fits.iter().find(|fitted| fitted.family == family).expect("both are fitted");
        fitted.parameters.iter().find(|(own, _)| own == name).expect("a parameter of the family").1
    };
    let shape = parameter(&report, Family::Gamma, "shape");
    rows.push(Row { figure: "6.1", what: "gamma's shape", published: "10.0646", ours: shape, off: SEARCHED });
    rows.push(Row {
        figure: "6.1",
        what: "Erlang's shape",
        published: "10",
        ours: parameter(&report, Family::Erlang, "shape"),
        off: (0.0, "bound"),
    });
    rows.push(Row {
        figure: "6.1",
        what: "Erlang's rate",
        published: "0.67",
        ours: parameter(&report, Family::Erlang, "rate"),
        off: SEARCHED,
    });
    let said = match report.any_fits {
        Some(false) => "Figure 6.1. Tested by drawing again, neither law fits the listing's 99 values.",
        _ => "Figure 6.1.",
    };
    figures.extend(charts::of(&sample, &report).iter().map(|(chart, _)| (svg(chart), said)));

    let sample = even_sample(&exponential());
    let report = fitted(&sample, Family::Exponential);
    let rate = parameter(&report, Family::Exponential, "rate");
    rows.push(Row {
        figure: "6.2",
        what: "exponential rate, of values at even steps of its law",
        published: "0.27",
        ours: rate,
        off: SEARCHED,
    });
    let shape = parameter(&report, Family::Gamma, "shape");
    rows.push(Row { figure: "6.2", what: "gamma's shape, of the same", published: "about 1", ours: shape, off: SEARCHED });
    let said = "Figure 6.2. The thesis does not print its data: these are 99 values at even steps of the law that it took for them, exponential with rate 0.27.";
    figures.extend(charts::of(&sample, &report).iter().map(|(chart, _)| (svg(chart), said)));
}

fn fitted(sample: &Sample, beside_gamma: Family) -> Report {
    let threads = available_parallelism().map_or(1, usize::from);
    fit(sample, &[Family::Gamma, beside_gamma], &Options { resamples: 199, threads, ..Options::default() })
}

/// The law that the thesis took for the answers to the consumer of another cloud.
fn exponential() -> Distribution {
    Distribution::Exponential(Exponential::new(0.27).expect("the rate is one"))
}

/// As many values as the listing has, at the middles of as many equal shares of a law.
fn even_sample(law: &Distribution) -> Sample {
    const VALUES: u32 = 99;
    let value = |index: u32| law.quantile((f64::from(index) + 0.5) / f64::from(VALUES));
    Sample::new((0..VALUES).map(value).collect()).expect("quantiles are times")
}

/// By how much a mean is below the measured one.
fn below_percent(mean: f64, measured: f64) -> f64 {
    100.0 * (1.0 - mean / measured)
}

fn intracloud(rows: &mut Vec<Row>, figures: &mut Figures) -> Result<(), SolveError> {
    let net = net(INTRACLOUD);
    let curves = Curves::of(&net, grid(0.1, 500.0), &[], 1e-9)?;
    let (peak, _) = curves.peak("Orchestrator_Pre_SR");
    let falls = curves.above("Service_Registry_Pre_Query", "Consumer_Begin") - peak;
    let ((one, one_off), (mean, mean_off)) = quantile_and_mean(&net, "Consumer_End > 0", PRINTS_AS_ONE)?;
    let mut row = |what, published, ours, off| rows.push(Row { figure: "6.5", what, published, ours, off });
    row("time of Orchestrator_Pre_SR's peak, ms", "35.1", peak, step(0.1));
    row("later Consumer_Begin is below Service_Registry_Pre_Query, ms", "3.9", falls, step(0.1));
    row("P(Consumer_End) at 258 ms", "0.443", curves.at("Consumer_End", 258.0), curves.error("Consumer_End"));
    row("Consumer_End most probable from, ms", "258", curves.most_probable("Consumer_End"), step(0.1));
    row("P(Consumer_End) prints as 1 from, ms", "448.6", one, one_off);
    row("mean of the model, ms (measured: 598.12)", "", mean, mean_off);
    // The thesis compares the time that prints as 1 with the measured mean.
    row("below the measured mean, %", "25", below_percent(mean, 598.12), (100.0 * mean_off.0 / 598.12, mean_off.1));
    figures.push((drawing::svg(&net), "Figure 6.3, with the net's transitions as they are computed."));
    figures.push((sequence::svg(&net), "Figure 6.4. Each message is a transition of the net, with its law; rates are by ms."));
    figures.push((svg(&curves.chart("Intracloud orchestration")), "Figure 6.5. No value is further off than 1e-9."));
    Ok(())
}

fn intercloud(rows: &mut Vec<Row>, figures: &mut Figures) -> Result<(), SolveError> {
    let net = net(INTERCLOUD);
    let curves = Curves::of(&net, grid(1.0, 4000.0), &[], 1e-9)?;
    let ((one, one_off), (mean, mean_off)) = quantile_and_mean(&net, "Consumer_End > 0", PRINTS_AS_ONE)?;
    // From the mean time of its coming to where the next place is more probable.
    let held = curves.first_above("Service_Registry_Cloud_A_Pre_Query", "Orchestrator_Cloud_A_Pre_SR") - 10.0 / 0.67;
    let mut row = |what, published, ours, off| rows.push(Row { figure: "6.8", what, published, ours, off });
    row("Orchestrator_Cloud_A_Pre_SR holds the token for, ms", "202", held, step(1.0));
    row("Consumer_End most probable from, ms", "1422", curves.most_probable("Consumer_End"), step(1.0));
    row("P(Consumer_End) prints as 1 from, ms", "2867", one, one_off);
    row("mean of the model, ms (measured: 4566.6)", "", mean, mean_off);
    row("below the measured mean, %", "37", below_percent(mean, 4566.6), (100.0 * mean_off.0 / 4566.6, mean_off.1));
    figures.push((drawing::svg(&net), "Figure 6.6, with the net's transitions as they are computed."));
    figures.push((sequence::svg(&net), "Figure 6.7. Each message is a transition of the net, with its law; rates are by ms."));
    figures.push((svg(&curves.chart("Intercloud orchestration")), "Figure 6.8. No value is further off than 1e-9."));
    Ok(())
}

fn one_message(rows: &mut Vec<Row>, figures: &mut Figures) -> Result<(), SolveError> {
    let net = net(EVENT_HANDLER);
    let curves = Curves::of(&net, grid(0.01, 20.0), &[], 1e-9)?;
    let ((one, one_off), (mean, mean_off)) = quantile_and_mean(&net, "Subscriber > 0", PRINTS_AS_ONE)?;
    let ((almost, almost_off), _) = quantile_and_mean(&net, "Subscriber > 0", 0.99)?;
    let (peak, height) = curves.peak("Ready_to_Send");
    let mut row = |what, published, ours, off| rows.push(Row { figure: "8.2", what, published, ours, off });
    row("P(Publisher) prints as 1 until, ms", "2.1", curves.at_least_until("Publisher", PRINTS_AS_ONE), step(0.01));
    row("Subscriber above Publisher from, ms", "7.6", curves.above("Subscriber", "Publisher"), step(0.01));
    row("time of Ready_to_Send's peak, ms", "7.6", peak, step(0.01));
    row("P(Ready_to_Send) at its peak", "0.47", height, (1e-4, "grid's step"));
    row("Subscriber most probable from, ms", "8.5", curves.most_probable("Subscriber"), step(0.01));
    row("P(Subscriber) at 10.68 ms", "0.804", curves.at("Subscriber", 10.68), curves.error("Subscriber"));
    row("P(Publisher) < 0.0005 from, ms", "13.6", curves.at_least_until("Publisher", 1.0 - PRINTS_AS_ONE), step(0.01));
    row("P(Subscriber) is 0.99 at, ms", "14.3", almost, almost_off);
    row("P(Subscriber) prints as 1 from, ms", "17.1", one, one_off);
    row("mean of the model, ms (measured: 8.95)", "", mean, mean_off);
    // The thesis compares the time from which Subscriber is the most probable place, by the mean of both.
    row("off the measured mean, %", "5.16", -below_percent(mean, 8.95), (100.0 * mean_off.0 / 8.95, mean_off.1));
    figures.push((drawing::svg(&net), "Figure 8.1, with one message and four cores."));
    figures.push((svg(&curves.chart("Event Handler, one message")), "Figure 8.2. Errors are estimated at less than 1e-9."));
    Ok(())
}

fn four_messages(rows: &mut Vec<Row>, figures: &mut Figures) -> Result<(), SolveError> {
    const DELIVERED: &str = "Subscriber == 4";
    let (one_by_one, at_once) = (net(FOUR_MESSAGES), net(FOUR_MESSAGES_AT_ONCE));
    let one_by_one = Curves::of(&one_by_one, grid(0.5, 60.0), &[DELIVERED], ERROR_OF_SEVERAL)?;
    let at_once = Curves::of(&at_once, grid(0.5, 30.0), &[DELIVERED], ERROR_OF_SEVERAL)?;
    let off = |curves: &Curves| (curves.error(DELIVERED).0 * curves.times.last().copied().unwrap_or_default(), "estimate");
    let times = |factor: f64, (off, by): Off| (factor * off, by);
    let inside = at_once.at(DELIVERED, 16.0) - at_once.at(DELIVERED, 8.0);
    let mut row = |what, published, ours, off| rows.push(Row { figure: "8.3", what, published, ours, off });
    row("share within 8 to 16 ms, four messages in flight at once", "all", inside, times(2.0, at_once.error(DELIVERED)));
    row("mean until the fourth is there, in flight at once, ms", "", at_once.mean(DELIVERED), off(&at_once));
    row("mean until the fourth is there, one by one, ms", "", one_by_one.mean(DELIVERED), off(&one_by_one));
    let any = |curves: &Curves| curves.at("Subscriber", 16.0) - curves.at("Subscriber", 8.0);
    row(
        "share of single messages within 8 to 16 ms, in flight at once",
        "most",
        0.25 * any(&at_once),
        times(0.5, at_once.error("Subscriber")),
    );
    let line = |name: &str, curves: &Curves, column: &str, share: f64| {
        let values = curves.curve(column);
        let slopes = curves.times.windows(2).zip(values.windows(2)).map(density);
        Mark::Line { name: name.to_owned(), points: slopes.map(|(time, slope)| (time, share * slope)).collect() }
    };
    let marks = vec![
        line("a message, in flight at once", &at_once, "Subscriber", 0.25),
        line("a message, one by one", &one_by_one, "Subscriber", 0.25),
        line("all four, in flight at once", &at_once, DELIVERED, 1.0),
        line("all four, one by one", &one_by_one, DELIVERED, 1.0),
        Mark::Dots { name: "measured means (7.5)".to_owned(), points: MEASURED_MEANS.map(|mean| (mean, 0.0)).into() },
    ];
    let chart = Chart {
        title: "Event Handler, four messages: time until one and until all are delivered".to_owned(),
        x_label: "t / ms".to_owned(),
        y_label: "density".to_owned(),
        marks,
    };
    let said = "Figure 8.3, by both readings of the net: the thesis does not say how many servers publish and notify have. Of its measurements beside it \
                (figure 7.5) it prints the means, of one subscriber and of six.";
    figures.push((svg(&chart), said));
    Ok(())
}

/// The slope of a distribution function between two times, in their middle.
fn density((times, values): (&[f64], &[f64])) -> (f64, f64) {
    (0.5 * (times[0] + times[1]), (values[1] - values[0]) / (times[1] - times[0]))
}
