//! `bodkin model validate`: what was predicted beside what is measured, means with means.

use std::{fs, path::PathBuf};

use anyhow::Context;
use bodkin_bench::{EventLoad, GraphLoad, recording::Recording};
use bodkin_petri::deployment::{
    Durations, Effort, EventRun, Graph, GraphPrediction, GraphRun, OrchestrationDeployment, OrchestrationLaws, OrchestrationRun,
    Prediction, calibrate, calibrate_graph, deployment, fit_orchestrations, predict_events, predict_graph, predict_orchestrations,
};
use bodkin_petri::simulate::Estimate;
use clap::Args;
use serde::Serialize;

use super::{
    calibrate::{load_text, pretty, threads},
    calibration::{CalibratedGraph, CalibrationFile},
    graph,
    predict::with_interval,
    recording::{Further, SourceOptions, event_runs, intercloud_runs, orchestration_runs},
};
use crate::{
    DONE, FAILED, USAGE,
    cli::{printer::Printer, table::Table},
};

/// Exit code: a prediction is further off than was asked.
const TOO_FAR: u8 = 4;

/// Fewest processors of others that are worth a word.
const OTHERS_TOLD_MIN: f64 = 0.01;

/// Options of `bodkin model validate`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Each load is measured as often as --repeat says, and predicted once. A prediction holds when it is within the asked part of the \
                        median of all runs, or between the least and the greatest of them; both are told. With --calibrate the loads that the \
                        prediction is made from and those that it is held against take turns, so that a machine that changes its mind does so for both.\n\
                        Exit codes: 0 all hold, 1 the cloud cannot be recorded or not be predicted, 2 the calibration has a mistake or says nothing of the machine, 4 one does not hold."
)]
pub struct ValidateOptions {
    /// calibration.json of `bodkin model calibrate`, from other loads
    #[arg(value_name = "CALIBRATION", required_unless_present = "calibrate", conflicts_with = "calibrate")]
    calibration: Option<PathBuf>,
    /// In place of a calibration: calibrate from these loads, which are recorded in turn with the others or are in the recording
    #[arg(long, value_name = "PxS[@R]|NAME", value_delimiter = ',')]
    calibrate: Vec<EventLoad>,
    /// With --calibrate: calibrate orchestrations in the own cloud from loads with these consumers
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "calibrate", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    calibrate_orchestrations: Vec<u32>,
    /// With --calibrate: calibrate orchestrations that another cloud answers from loads with these consumers
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "calibrate", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    calibrate_consumers: Vec<u32>,
    /// With --calibrate: calibrate the graph of --graph from these loads
    #[arg(long, value_name = "PERCENT[:WORKERS]", value_delimiter = ',', requires = "calibrate")]
    calibrate_graph: Vec<GraphLoad>,
    /// Write what was recorded, for --recording
    #[arg(long, value_name = "FILE.json", conflicts_with = "recording")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    source: SourceOptions,
    /// What a predicted mean may be off, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    mean_within: f64,
    /// What a predicted p99 may be off, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0)]
    p99_within: f64,
    /// Events that are simulated for each load
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    events: u64,
    /// Decides the random numbers of the nets
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// A figure, measured and predicted.
#[derive(Debug, Serialize)]
struct Compared {
    measured_us: f64,
    measured_min_us: f64,
    measured_max_us: f64,
    predicted_us: f64,
    /// Ends of the 99 % interval of what the net says; no upper one: it is beyond what was looked at.
    predicted_low_us: f64,
    predicted_high_us: Option<f64>,
    error_percent: f64,
    is_within: bool,
    is_in_spread: bool,
}

/// A load, measured and predicted.
#[derive(Debug, Serialize)]
struct Row {
    load: String,
    was_calibrated_with: bool,
    runs: usize,
    /// How many of the processors others kept busy; none: nothing is known of it.
    others: Option<f64>,
    mean: Compared,
    p99: Compared,
}

/// Runs by what is in them.
struct Runs {
    events: Vec<EventRun>,
    orchestrations: Vec<OrchestrationRun>,
    elsewhere: Vec<OrchestrationRun>,
    graph: Vec<GraphRun>,
}

/// Measures, predicts and prints; gives the exit code.
pub fn run(options: &ValidateOptions, printer: Printer) -> anyhow::Result<u8> {
    let told = |mistake: &dyn std::fmt::Display, code: u8| {
        eprintln!("bodkin: {mistake}");
        Ok(code)
    };
    if let Some(refusal) = options.source.refusal() {
        return told(&refusal, USAGE);
    }
    let read = match options.calibration.as_deref().map(CalibrationFile::read).transpose() {
        Ok(calibration) => calibration,
        Err(mistake) => return told(&mistake, USAGE),
    };
    let further = Further {
        events: &options.calibrate,
        orchestration_consumers: &options.calibrate_orchestrations,
        consumers: &options.calibrate_consumers,
        graph: &options.calibrate_graph,
    };
    let recording = options.source.recording_with(&further)?;
    if let Some(path) = &options.keep {
        fs::write(path, pretty(&recording)?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let (graph, graph_runs) =
        graph::runs(&recording).map_err(anyhow::Error::msg)?.map_or((None, Vec::new()), |(graph, runs)| (Some(graph), runs));
    let (from, runs) = options.parted(&recording, graph_runs);
    let calibration = match read.map_or_else(|| options.calibrated(&recording, &from, graph), Ok) {
        Ok(calibration) => calibration,
        Err(error) => return told(&error, FAILED),
    };
    if let Err(reason) = calibration.speaks_of(u32::try_from(recording.cores)?, 0.0, f64::INFINITY) {
        return told(&reason, USAGE);
    }
    let rows = match options.rows(&calibration, &runs) {
        Ok(rows) => rows,
        Err(error) => return told(&format!("{error:#}"), FAILED),
    };
    if rows.is_empty() {
        return told(&"no load is left to predict: give one with --load that is not among those of --calibrate", FAILED);
    }
    print(&rows, printer)?;
    Ok(if rows.iter().all(|row| row.mean.holds() && row.p99.holds()) { DONE } else { TOO_FAR })
}

/// The runs of each load, in the order in which the first of each was made.
fn by_load<T>(runs: &[T], is_like: fn(&T, &T) -> bool) -> Vec<Vec<&T>> {
    let mut loads: Vec<Vec<&T>> = Vec::new();
    for run in runs {
        match loads.iter_mut().find(|load| is_like(load[0], run)) {
            Some(load) => load.push(run),
            None => loads.push(vec![run]),
        }
    }
    loads
}

/// What was there for the runs of a load: others had what they had in the one or two whose mean latency is the median, since it is that which is predicted.
fn in_the_middle(runs: &[&OrchestrationRun]) -> OrchestrationDeployment {
    let mut sorted = runs.to_vec();
    sorted.sort_by(|a, b| a.latency.mean_us().total_cmp(&b.latency.mean_us()));
    let [low, high] = [(sorted.len() - 1) / 2, sorted.len() / 2].map(|at| sorted[at].deployment());
    OrchestrationDeployment { others: 0.5 * (low.others + high.others), ..low }
}

impl ValidateOptions {
    fn effort(&self) -> Effort {
        Effort { events: self.events, seed: self.seed, threads: threads() }
    }

    /// The runs that are calibrated from, and those that are predicted.
    fn parted(&self, recording: &Recording, graph: Vec<GraphRun>) -> (Runs, Runs) {
        let from: Vec<String> = self.calibrate.iter().map(EventLoad::to_string).collect();
        let workers = graph::workers(recording);
        let (from_events, events) = event_runs(recording).into_iter().partition(|run| from.contains(&load_text(run)));
        let asked = |runs: Vec<OrchestrationRun>, from: &[u32]| runs.into_iter().partition(|run| from.contains(&run.consumers));
        let (from_orchestrations, orchestrations) = asked(orchestration_runs(recording), &self.calibrate_orchestrations);
        let (from_elsewhere, elsewhere) = asked(intercloud_runs(recording), &self.calibrate_consumers);
        let (from_graph, graph) = graph.into_iter().partition(|run| self.is_from(run, workers));
        (
            Runs { events: from_events, orchestrations: from_orchestrations, elsewhere: from_elsewhere, graph: from_graph },
            Runs { events, orchestrations, elsewhere, graph },
        )
    }

    /// Whether a run of the graph is one that is calibrated from; a load without workers is one of those of the file.
    fn is_from(&self, run: &GraphRun, workers: u32) -> bool {
        let is_it = |load: &GraphLoad| format!("{}:{}", load.percent, load.workers.unwrap_or(workers)) == graph::load_text(run);
        self.calibrate_graph.iter().any(is_it)
    }

    fn calibrated(&self, recording: &Recording, from: &Runs, graph: Option<Graph>) -> anyhow::Result<CalibrationFile> {
        let effort = self.effort();
        let calibration = calibrate(&from.events, &effort)?;
        let mut file = CalibrationFile::new(recording.machine.clone(), u32::try_from(recording.cores)?, &calibration);
        let fitted = |runs: &[OrchestrationRun]| {
            (!runs.is_empty()).then(|| fit_orchestrations(runs, &effort).map(|calibration| calibration.laws)).transpose()
        };
        file.orchestration = fitted(&from.orchestrations)?;
        file.intercloud = fitted(&from.elsewhere)?;
        if let Some(graph) = graph.filter(|_| !from.graph.is_empty()) {
            let calibration = calibrate_graph(&graph, &from.graph, &effort)?;
            file.graph = Some(CalibratedGraph::new(graph, graph::workers(recording), &calibration));
        }
        eprintln!("bodkin: calibrated from {}; its net is {:.0} % off for them at most", file.loads.join(", "), file.mean_off_percent);
        for (laws, whose) in [(&file.orchestration, "orchestrations"), (&file.intercloud, "orchestrations that another cloud answers")] {
            if let Some(OrchestrationLaws { consumers, mean_off_percent, .. }) = laws {
                let numbers: Vec<String> = consumers.iter().map(u32::to_string).collect();
                eprintln!(
                    "bodkin: the net of {whose}, from {} consumers, is {mean_off_percent:.0} % off for them at most",
                    numbers.join(" and ")
                );
            }
        }
        Ok(file)
    }

    fn rows(&self, calibration: &CalibrationFile, runs: &Runs) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for load in by_load(&runs.events, EventRun::is_like) {
            rows.push(self.row(calibration, &load).with_context(|| load_text(load[0]))?);
        }
        let of_consumers = |load: &[&OrchestrationRun]| format!("orchestrations of {} consumers", load[0].consumers);
        match &calibration.orchestration {
            Some(laws) => {
                for load in by_load(&runs.orchestrations, OrchestrationRun::is_like) {
                    rows.push(self.row_of_orchestrations("orchestrations", laws, &load).with_context(|| of_consumers(&load))?);
                }
            }
            None if runs.orchestrations.is_empty() => {}
            None => eprintln!(
                "bodkin: orchestrations were recorded, and the calibration has none to hold against them: --calibrate-orchestrations, or calibrate with --orchestrations"
            ),
        }
        for load in by_load(&runs.elsewhere, OrchestrationRun::is_like) {
            let laws =
                calibration.intercloud.as_ref().context("the calibration has none: --calibrate-consumers, or --intercloud of calibrate");
            let row = laws.and_then(|laws| self.row_of_orchestrations("intercloud", laws, &load));
            rows.push(row.with_context(|| format!("{} whom another cloud answers", of_consumers(&load)))?);
        }
        for load in by_load(&runs.graph, GraphRun::is_like) {
            let of_levels = self.rows_of_graph(calibration, &load);
            rows.extend(of_levels.with_context(|| format!("graph, {}", graph::load_text(load[0])))?);
        }
        Ok(rows)
    }

    fn row(&self, calibration: &CalibrationFile, runs: &[&EventRun]) -> anyhow::Result<Row> {
        let asked = deployment(runs[0]);
        let predicted = predict_events(&calibration.events.nearest(&asked).costs, &asked, &self.effort())?;
        let measured: Vec<&Durations> = runs.iter().map(|run| &run.latency).collect();
        let load = load_text(runs[0]);
        let was_calibrated_with = calibration.loads.contains(&load);
        Ok(self.compared(load, was_calibrated_with, &measured, &predicted))
    }

    fn row_of_orchestrations(&self, what: &str, laws: &OrchestrationLaws, runs: &[&OrchestrationRun]) -> anyhow::Result<Row> {
        let deployment = in_the_middle(runs);
        let consumers = deployment.consumers;
        let predicted = predict_orchestrations(laws, &deployment, &self.effort())?;
        let measured: Vec<&Durations> = runs.iter().map(|run| &run.latency).collect();
        let row = self.compared(format!("{what} x{consumers}"), laws.consumers.contains(&consumers), &measured, &predicted);
        Ok(Row { others: Some(deployment.others), ..row })
    }

    /// A row for each level.
    fn rows_of_graph(&self, calibration: &CalibrationFile, runs: &[&GraphRun]) -> anyhow::Result<Vec<Row>> {
        let CalibratedGraph { graph, costs, loads, .. } =
            calibration.graph.as_ref().context("the calibration has no graph: --calibrate-graph, or --graph of calibrate")?;
        let load = graph::load_text(runs[0]);
        let row = |GraphPrediction { level, response, .. }: &GraphPrediction| {
            let measured: Vec<Durations> = runs.iter().map(|run| run.of_level(graph, *level)).collect();
            let told = format!("graph {load}, level {level}");
            self.compared(told, loads.contains(&load), &measured.iter().collect::<Vec<_>>(), response)
        };
        let asked = runs[0].deployment();
        Ok(predict_graph(graph, &costs.nearest(&asked).costs, &asked, &self.effort())?.iter().map(row).collect())
    }

    fn compared(&self, load: String, was_calibrated_with: bool, measured: &[&Durations], predicted: &Prediction) -> Row {
        let means: Vec<f64> = measured.iter().map(|latency| latency.mean_us()).collect();
        let p99s: Vec<f64> = measured.iter().map(|latency| latency.quantile_us(0.99)).collect();
        Row {
            load,
            was_calibrated_with,
            runs: measured.len(),
            others: None,
            mean: Compared::new(&means, &predicted.mean_us, self.mean_within),
            p99: Compared::new(&p99s, &predicted.told_quantile_us(0.99), self.p99_within),
        }
    }
}

impl Compared {
    /// The runs' median stands for them: one in which the machine was taken away for a while would move their mean as far as it likes.
    fn new(measured_us: &[f64], predicted: &Estimate, within_percent: f64) -> Self {
        let predicted_us = predicted.value;
        let mut sorted = measured_us.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median_us = 0.5 * (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]);
        let (min_us, max_us) = (sorted[0], sorted[sorted.len() - 1]);
        let error_percent = 100.0 * (predicted_us / median_us - 1.0);
        Self {
            measured_us: median_us,
            measured_min_us: min_us,
            measured_max_us: max_us,
            predicted_us,
            predicted_low_us: predicted.low,
            predicted_high_us: predicted.high.is_finite().then_some(predicted.high),
            error_percent,
            is_within: error_percent.abs() <= within_percent,
            is_in_spread: (min_us..=max_us).contains(&predicted_us),
        }
    }

    fn holds(&self) -> bool {
        self.is_within || self.is_in_spread
    }

    fn cells(&self) -> [String; 3] {
        let verdict = match (self.is_within, self.is_in_spread) {
            (true, _) => "",
            (false, true) => ", in the spread",
            (false, false) => ", MISSED",
        };
        [
            format!("{:.1} ({:.1} to {:.1})", self.measured_us, self.measured_min_us, self.measured_max_us),
            with_interval(&Estimate {
                value: self.predicted_us,
                low: self.predicted_low_us,
                high: self.predicted_high_us.unwrap_or(f64::INFINITY),
            }),
            format!("{:+.1} %{verdict}", self.error_percent),
        ]
    }
}

fn print(rows: &[Row], printer: Printer) -> anyhow::Result<()> {
    let mut table = Table::new(&["LOAD", "RUNS", "MEAN US", "PREDICTED", "OFF", "P99 US", "PREDICTED", "OFF"]);
    for row in rows {
        let ([mean, mean_by_net, mean_off], [p99, p99_by_net, p99_off]) = (row.mean.cells(), row.p99.cells());
        let mut load = if row.was_calibrated_with { format!("{} (calibrated with it)", row.load) } else { row.load.clone() };
        if let Some(others) = row.others.filter(|others| *others >= OTHERS_TOLD_MIN) {
            load += &format!(", others {others:.2} processors");
        }
        table.push([load, row.runs.to_string(), mean, mean_by_net, mean_off, p99, p99_by_net, p99_off]);
    }
    printer.rows(&rows, &table, "no runs with events")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    #[test]
    fn a_prediction_holds_within_its_part_or_in_the_spread() {
        let compared = |predicted_us| Compared::new(&[90.0, 100.0, 140.0], &exactly(predicted_us), 10.0);
        for (predicted_us, is_within, is_in_spread) in [
            (100.0, true, true),
            (109.5, true, true),
            (135.0, false, true),
            (111.0, false, true),
            (150.0, false, false),
            (80.0, false, false),
        ] {
            let compared = compared(predicted_us);
            assert_eq!((compared.is_within, compared.is_in_spread), (is_within, is_in_spread), "{predicted_us}");
            assert_eq!(compared.holds(), is_within || is_in_spread);
        }
        assert!((compared(121.0).error_percent - 21.0).abs() < 1e-9, "of the median of the runs, 100");
        assert_eq!(Compared::new(&[1.0, 4.0, 2.0, 300.0], &exactly(1.0), 10.0).measured_us, 3.0);
    }
}
