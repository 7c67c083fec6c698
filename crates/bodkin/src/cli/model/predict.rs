//! `bodkin model predict`.

use std::path::PathBuf;

use anyhow::Context;
use bodkin_bench::GraphLoad;
use bodkin_petri::deployment::{
    Deployment, Effort, GraphDeployment, GraphPrediction, OrchestrationDeployment, OrchestrationLaws, Prediction, PredictionError,
    is_beyond, predict_events, predict_graph, predict_orchestrations,
};
use bodkin_petri::simulate::Estimate;
use clap::Args;
use serde_json::json;

use super::{
    Form,
    calibrate::{deployment_text, threads},
    calibration::{CalibratedGraph, CalibrationFile, too_far_off},
    graph::deployment_text as graph_text,
    left_out::Reach,
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
    /// Warn where the mean of the recorded load that is nearest to what is asked is further off by a net of the other loads, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0)]
    left_out_within: f64,
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
    let asked = options.asked(&calibration, cores)?;
    // Of one recording some loads may be known well and others not: each net speaks for itself.
    if let Err(reason) = calibration.speaks_of(cores, asked.mean_off_percent(&calibration), options.calibrated_within) {
        eprintln!("bodkin: {reason}");
        return Ok(USAGE);
    }
    let predicted = match &asked {
        Asked::Orchestrations(laws, deployment) => predict_orchestrations(laws, deployment, &effort),
        Asked::Events(deployment) => predict_events(&calibration.events.nearest(deployment).costs, deployment, &effort),
    };
    match predicted {
        Ok(prediction) => {
            let reach = asked.reach(&calibration, options.intercloud);
            print(&prediction, &reach, form)?;
            warn(&reach, options.left_out_within);
            Ok(DONE)
        }
        Err(error) => {
            eprintln!("bodkin: {error}");
            Ok(if matches!(error, PredictionError::Deployment(_)) { USAGE } else { FAILED })
        }
    }
}

/// Tells on stderr what is doubtful of an answer.
fn warn(reach: &Reach<'_>, within_percent: f64) {
    reach.warnings(within_percent).iter().for_each(|warning| eprintln!("bodkin: {warning}"));
}

/// What is to be predicted, but for graphs.
enum Asked<'a> {
    Events(Deployment),
    Orchestrations(&'a OrchestrationLaws, OrchestrationDeployment),
}

impl Asked<'_> {
    /// How far its net is off for the loads from which it was made.
    fn mean_off_percent(&self, calibration: &CalibrationFile) -> f64 {
        match self {
            Self::Events(_) => calibration.mean_off_percent,
            Self::Orchestrations(laws, _) => laws.mean_off_percent,
        }
    }

    fn reach<'a>(&self, calibration: &'a CalibrationFile, is_intercloud: bool) -> Reach<'a> {
        let is_other = |cores: u32| cores != calibration.cores;
        match self {
            Self::Events(asked) => {
                let recorded: Vec<Deployment> = calibration.events.loads().iter().map(|load| load.load).collect();
                let nearest = deployment_text(&calibration.events.nearest(asked).load);
                let is_beyond = is_other(asked.cores) || is_beyond(&recorded, asked);
                Reach::new(calibration.loads.clone(), Some(nearest), &calibration.left_out.events, is_beyond)
            }
            Self::Orchestrations(laws, asked) => {
                let recorded: Vec<_> =
                    laws.consumers.iter().map(|consumers| OrchestrationDeployment { consumers: *consumers, ..*asked }).collect();
                let left_out = if is_intercloud { &calibration.left_out.intercloud } else { &calibration.left_out.orchestration };
                let is_beyond = is_other(asked.cores) || is_beyond(&recorded, asked);
                Reach::new(laws.consumers.iter().map(u32::to_string).collect(), None, left_out, is_beyond)
            }
        }
    }
}

impl PredictOptions {
    fn asked<'a>(&self, calibration: &'a CalibrationFile, cores: u32) -> anyhow::Result<Asked<'a>> {
        let Self { publishers, subscribers, rate: rate_per_s, others, .. } = *self;
        Ok(match self.consumers {
            Some(consumers) => Asked::Orchestrations(self.laws(calibration)?, OrchestrationDeployment { cores, others, consumers }),
            None => Asked::Events(Deployment { cores, publishers, subscribers, rate_per_s }),
        })
    }

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
    let CalibratedGraph { graph, costs, workers, mean_off_percent, loads } = calibrated;
    if *mean_off_percent > options.calibrated_within {
        eprintln!("bodkin: {}", too_far_off(*mean_off_percent));
        return Ok(USAGE);
    }
    let deployment = GraphDeployment { cores, workers: load.workers.unwrap_or(*workers), rate: f64::from(load.percent) / 100.0 };
    let nearest = costs.nearest(&deployment);
    match predict_graph(graph, &nearest.costs, &deployment, effort) {
        Ok(predicted) => {
            let recorded: Vec<GraphDeployment> = costs.loads().iter().map(|load| load.load).collect();
            let is_beyond = cores != calibration.cores || is_beyond(&recorded, &deployment);
            let reach = Reach::new(loads.clone(), Some(graph_text(&nearest.load)), &calibration.left_out.graph, is_beyond);
            print_graph(&predicted, &reach, form)?;
            warn(&reach, options.left_out_within);
            Ok(DONE)
        }
        Err(error) => {
            eprintln!("bodkin: {error}");
            Ok(FAILED)
        }
    }
}

fn print_graph(predicted: &[GraphPrediction], reach: &Reach<'_>, form: Form) -> anyhow::Result<()> {
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
            Printer::new(true).document(&json!({ "levels": predicted.iter().map(of_level).collect::<Vec<_>>(), "calibration": reach }))?;
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
            write_out(&with_reach(Details::default(), reach).to_string())?;
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

/// What an answer is made from, and how far off that may be.
fn with_reach(details: Details, reach: &Reach<'_>) -> Details {
    details.with("calibrated from", reach.source_text()).with("left out in turn", reach.off_text())
}

fn print(prediction: &Prediction, reach: &Reach<'_>, form: Form) -> anyhow::Result<()> {
    let Prediction { mean_us, quantiles_us, per_second, count, .. } = prediction;
    match form {
        Form::Csv => {
            let lines: String = rising(prediction).map(|(time, share)| format!("{time},{share}\n")).collect();
            write_out(&format!("us,share\n{lines}"))?;
        }
        Form::Json => {
            let mut document = document(prediction);
            document.insert("calibration".into(), json!(reach));
            Printer::new(true).document(&document)?;
        }
        Form::Table => {
            let mut details = Details::default().with("mean us", with_interval(mean_us));
            for ((_, us), name) in quantiles_us.iter().zip(["p50 us", "p90 us", "p99 us", "p99.9 us"]) {
                details = details.with(name, with_interval(us));
            }
            let details = details.with("responses", format!("{per_second:.0} a second, {count} simulated"));
            write_out(&with_reach(details, reach).to_string())?;
        }
    }
    Ok(())
}
