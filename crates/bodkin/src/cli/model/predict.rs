//! `bodkin model predict`.

use std::path::PathBuf;

use anyhow::Context;
use bodkin_bench::GraphLoad;
use bodkin_petri::deployment::{
    Deployment, Effort, GraphDeployment, GraphPrediction, OrchestrationDeployment, OrchestrationLaws, Prediction, PredictionError,
    predict_events, predict_graph, predict_orchestrations,
};
use bodkin_petri::simulate::Estimate;
use clap::Args;
use serde_json::json;

use super::{
    Form,
    calibrate::threads,
    calibration::{CalibratedGraph, CalibrationFile, too_far_off},
};
use crate::{
    DONE, FAILED, USAGE,
    cli::{details::Details, printer::Printer, table::Table, write_out},
};

/// Options of `bodkin model predict`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Latencies of events from publisher to subscriber; with --consumers the response times of orchestrations; with --graph-load, by level, from the push of the newest event that a result of a graph is made of to its consumer. --output csv is \
                        the curve: the share of all that take no longer.\nExit codes: 0 done, 1 the deployment does not keep up with its rate, \
                        2 the calibration or an option has a mistake, or the calibration says nothing of it."
)]
pub struct PredictOptions {
    /// calibration.json of `bodkin model calibrate`
    #[arg(value_name = "CALIBRATION")]
    calibration: PathBuf,
    /// Processors that broker, publishers and subscribers share [default: as in the calibration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    cores: Option<u32>,
    /// Publishers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    publishers: u32,
    /// Subscribers, each of which hears everything
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    subscribers: u32,
    /// Events a second of each publisher [default: the next goes when the last is answered]
    #[arg(long, value_name = "R")]
    rate: Option<f64>,
    /// Consumers that ask for orchestrations, each one after the other: predicts these instead of events
    #[arg(long, value_name = "N", conflicts_with_all = ["publishers", "subscribers", "rate"], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    consumers: Option<u32>,
    /// Their orchestrations are answered by another cloud, which shares the processors with this one and the consumers
    #[arg(long, requires = "consumers")]
    intercloud: bool,
    /// How many of the processors others keep busy meanwhile, as 0.5
    #[arg(long, value_name = "PROCESSORS", default_value_t = 0.0, requires = "consumers")]
    others: f64,
    /// Predicts the calibration's graph instead, whose suppliers push at so many percent of the rate that it declares; with other workers than it was recorded with behind a colon, as 150:4
    #[arg(long, value_name = "PERCENT[:WORKERS]", conflicts_with_all = ["publishers", "subscribers", "rate", "consumers"])]
    graph_load: Option<GraphLoad>,
    /// Events, or orchestrations, that are simulated
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    events: u64,
    /// What the calibrated net's mean may be off for the loads from which it was made, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0)]
    calibrated_within: f64,
    /// Decides all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Predicts and prints; gives the exit code.
pub fn run(options: &PredictOptions, form: Form) -> anyhow::Result<u8> {
    let calibration = match CalibrationFile::read(&options.calibration) {
        Ok(calibration) => calibration,
        Err(mistake) => {
            eprintln!("bodkin: {mistake}");
            return Ok(USAGE);
        }
    };
    let effort = Effort { events: options.events, seed: options.seed, threads: threads() };
    let cores = options.cores.unwrap_or(calibration.cores);
    if let Some(load) = options.graph_load {
        return graph(options, &calibration, load, cores, &effort, form);
    }
    // Of one recording some loads may be known well and others not: each net speaks for itself.
    let laws = options.consumers.map(|consumers| options.laws(&calibration).map(|laws| (consumers, laws))).transpose()?;
    let off_percent = laws.map_or(calibration.mean_off_percent, |(_, laws)| laws.mean_off_percent);
    if let Err(reason) = calibration.speaks_of(cores, off_percent, options.calibrated_within) {
        eprintln!("bodkin: {reason}");
        return Ok(USAGE);
    }
    let predicted = match laws {
        Some((consumers, laws)) => {
            predict_orchestrations(laws, &OrchestrationDeployment { cores, others: options.others, consumers }, &effort)
        }
        None => {
            let PredictOptions { publishers, subscribers, rate: rate_per_s, .. } = *options;
            let asked = Deployment { cores, publishers, subscribers, rate_per_s };
            predict_events(calibration.events.nearest(&asked), &asked, &effort)
        }
    };
    match predicted {
        Ok(prediction) => {
            print(&prediction, form)?;
            Ok(DONE)
        }
        Err(error) => {
            eprintln!("bodkin: {error}");
            Ok(if matches!(error, PredictionError::Deployment(_)) { USAGE } else { FAILED })
        }
    }
}

impl PredictOptions {
    /// The orchestrations that are asked for.
    fn laws<'a>(&self, calibration: &'a CalibrationFile) -> anyhow::Result<&'a OrchestrationLaws> {
        if self.intercloud {
            calibration.intercloud.as_ref().context(
                "the calibration has no orchestrations that another cloud answers: none were recorded, which --intercloud of calibrate asks for",
            )
        } else {
            calibration.orchestration.as_ref().context("the calibration has no orchestrations: none were recorded")
        }
    }
}

/// The same of the calibration's graph.
fn graph(
    options: &PredictOptions,
    calibration: &CalibrationFile,
    load: GraphLoad,
    cores: u32,
    effort: &Effort,
    form: Form,
) -> anyhow::Result<u8> {
    let calibrated =
        calibration.graph.as_ref().context("the calibration has no graph: none was recorded, which --graph of calibrate asks for")?;
    let CalibratedGraph { graph, costs, workers, mean_off_percent, .. } = calibrated;
    if *mean_off_percent > options.calibrated_within {
        eprintln!("bodkin: {}", too_far_off(*mean_off_percent));
        return Ok(USAGE);
    }
    let deployment = GraphDeployment { cores, workers: load.workers.unwrap_or(*workers), rate: f64::from(load.percent) / 100.0 };
    match predict_graph(graph, costs, &deployment, effort) {
        Ok(predicted) => {
            print_graph(&predicted, form)?;
            Ok(DONE)
        }
        Err(error) => {
            eprintln!("bodkin: {error}");
            Ok(FAILED)
        }
    }
}

fn print_graph(predicted: &[GraphPrediction], form: Form) -> anyhow::Result<()> {
    match form {
        Form::Csv => {
            let line = |level: u8, (time, share): (f64, f64)| format!("{level},{time},{share}\n");
            let of_level =
                |of_level: &GraphPrediction| rising(&of_level.response).map(|point| line(of_level.level, point)).collect::<String>();
            write_out(&format!("level,us,share\n{}", predicted.iter().map(of_level).collect::<String>()))?;
        }
        Form::Json => {
            let of_level = |GraphPrediction { level, response, expected_per_second }: &GraphPrediction| {
                let mut document = document(response);
                document.insert("level".into(), json!(level));
                document.insert("expected_per_s".into(), json!(expected_per_second));
                document
            };
            Printer::new(true).document(&json!({ "levels": predicted.iter().map(of_level).collect::<Vec<_>>() }))?;
        }
        Form::Table => {
            let mut table = Table::new(&["LEVEL", "MEAN US", "P50 US", "P90 US", "P99 US", "P99.9 US", "RESULTS/S", "OF"]);
            for GraphPrediction { level, response, expected_per_second } in predicted {
                let [p50, p90, p99, p99_9] = Prediction::SHARES.map(|share| with_interval(&response.told_quantile_us(share)));
                let rates = [response.per_second, *expected_per_second].map(|rate| format!("{rate:.1}"));
                let [came, expected] = rates;
                table.push([level.to_string(), with_interval(&response.mean_us), p50, p90, p99, p99_9, came, expected]);
            }
            Printer::new(false).table(&table, "no levels")?;
        }
    }
    Ok(())
}

/// A number of microseconds, and the ends of its 99 % interval.
pub fn with_interval(us: &Estimate) -> String {
    let high = if us.high.is_finite() { format!("to {:.1}", us.high) } else { "or more".to_owned() };
    format!("{:.1} ({:.1} {high})", us.value, us.low)
}

/// The same for programs; `null`: there is no upper end.
pub fn interval(us: &Estimate) -> serde_json::Value {
    json!({ "value": us.value, "low": us.low, "high": us.high.is_finite().then_some(us.high) })
}

/// Points at which something happens: the curve is flat before the first response and behind the last.
fn rising(prediction: &Prediction) -> impl Iterator<Item = (f64, f64)> {
    prediction.curve.windows(2).filter(|pair| pair[1].1 > pair[0].1).map(|pair| pair[1])
}

fn document(prediction: &Prediction) -> serde_json::Map<String, serde_json::Value> {
    let Prediction { mean_us, quantiles_us, per_second, count, .. } = prediction;
    let quantile = |(share, us): &(f64, Estimate)| (format!("p{}_us", (share * 1e4).round() / 1e2).replace('.', "_"), interval(us));
    let mut document: serde_json::Map<_, _> = quantiles_us.iter().map(quantile).collect();
    document.insert("mean_us".into(), interval(mean_us));
    document.insert("responses_per_s".into(), json!(per_second));
    document.insert("simulated".into(), json!(count));
    document.insert("curve".into(), json!(rising(prediction).collect::<Vec<_>>()));
    document
}

fn print(prediction: &Prediction, form: Form) -> anyhow::Result<()> {
    let Prediction { mean_us, quantiles_us, per_second, count, .. } = prediction;
    match form {
        Form::Csv => {
            let lines: String = rising(prediction).map(|(time, share)| format!("{time},{share}\n")).collect();
            write_out(&format!("us,share\n{lines}"))?;
        }
        Form::Json => {
            Printer::new(true).document(&document(prediction))?;
        }
        Form::Table => {
            let mut details = Details::default().with("mean us", with_interval(mean_us));
            for ((_, us), name) in quantiles_us.iter().zip(["p50 us", "p90 us", "p99 us", "p99.9 us"]) {
                details = details.with(name, with_interval(us));
            }
            write_out(&details.with("responses", format!("{per_second:.0} a second, {count} simulated")).to_string())?;
        }
    }
    Ok(())
}
