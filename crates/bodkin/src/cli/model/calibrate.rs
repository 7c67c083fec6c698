//! `bodkin model calibrate`.

mod sheet;

use std::{fs, path::PathBuf, thread::available_parallelism};

use anyhow::Context;
use bodkin_bench::recording::Recording;
use bodkin_petri::{
    deployment::{
        Calibration, Deployment, Effort, EventRun, GraphDeployment, GraphPrediction, GraphRun, OrchestrationCalibration,
        OrchestrationDeployment, OrchestrationLaws, OrchestrationRun, Prediction, calibrate, calibrate_graph, deployment, event_path,
        fit_orchestrations, graph_path, leave_out, leave_out_of_graph, leave_out_of_orchestrations, orchestration,
    },
    format::json,
};
use clap::Args;
use serde::Serialize;

use super::{
    calibration::{CalibratedGraph, CalibrationFile},
    graph,
    left_out::LeftOutLoad,
    recording::{SourceOptions, event_runs, intercloud_runs, orchestration_runs},
};
use crate::{DONE, FAILED, USAGE, cli::printer::Printer};

/// Options of `bodkin model calibrate`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Puts loads on a cloud and reads its stages (or takes a recording of that), estimates what each step of an event's and of an \
                        orchestration's way costs, and writes DIR/calibration.json for `predict` and `validate`, DIR/recording.json, and the \
                        fitted nets.\nQUEUED US is how long the subscribers' thread stood ready in front of a processor, for each time that it had slept, as the kernel counts it.\nExit codes: 0 done, 1 the cloud cannot be recorded or nothing can be estimated, 2 an option has a mistake, or needs clouds of its own."
)]
pub struct CalibrateOptions {
    /// Where the files are written; the directory is made where it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    source: SourceOptions,
    /// Events with which a net is tried, for each load and some hundred times
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    events: u64,
    /// Decides the random numbers of the nets
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Calibrates and prints; gives the exit code.
pub fn run(options: &CalibrateOptions, printer: Printer) -> anyhow::Result<u8> {
    if let Some(refusal) = options.source.refusal() {
        eprintln!("bodkin: {refusal}");
        return Ok(USAGE);
    }
    let recording = options.source.recording()?;
    // It took its time, and is there whatever becomes of it.
    fs::create_dir_all(&options.out).with_context(|| format!("cannot make {}", options.out.display()))?;
    options.put("recording.json", pretty(&recording)?)?;
    eprintln!(
        "bodkin: estimating; behind that each of three loads or more is left out and predicted by the others, which takes about as long again"
    );
    match options.calibrated(&recording) {
        Ok(calibrated) => {
            options.write(&calibrated)?;
            sheet::print(&calibrated, printer)?;
            Ok(DONE)
        }
        Err(error) => {
            eprintln!("bodkin: {error}");
            Ok(FAILED)
        }
    }
}

/// What a recording was calibrated to.
struct Calibrated {
    file: CalibrationFile,
    events: Calibration,
    orchestrations: Vec<(OrchestrationRun, Prediction)>,
    elsewhere: Vec<(OrchestrationRun, Prediction)>,
    /// Loads of the graph, where there is one.
    graph: Vec<(GraphRun, Vec<GraphPrediction>)>,
}

/// As many as the machine has processors.
pub fn threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// A load as it is typed.
pub fn load_text(run: &EventRun) -> String {
    deployment_text(&deployment(run))
}

/// The load of a deployment as it is typed.
pub fn deployment_text(Deployment { publishers, subscribers, rate_per_s, .. }: &Deployment) -> String {
    let rate = rate_per_s.map(|rate| format!("@{rate}")).unwrap_or_default();
    format!("{publishers}x{subscribers}{rate}")
}

impl CalibrateOptions {
    fn calibrated(&self, recording: &Recording) -> anyhow::Result<Calibrated> {
        let effort = Effort { events: self.events, seed: self.seed, threads: threads() };
        let runs = event_runs(recording);
        let events = calibrate(&runs, &effort)?;
        let mut file = CalibrationFile::new(recording.machine.clone(), u32::try_from(recording.cores)?, &events);
        file.left_out.events = leave_out(&runs, &effort)?.iter().map(LeftOutLoad::of_events).collect();
        let orchestrations = |runs: Vec<OrchestrationRun>| -> anyhow::Result<(Option<OrchestrationLaws>, Vec<_>, Vec<_>)> {
            if runs.is_empty() {
                return Ok((None, Vec::new(), Vec::new()));
            }
            let OrchestrationCalibration { laws, loads } = fit_orchestrations(&runs, &effort)?;
            let left_out = leave_out_of_orchestrations(&runs, &effort)?.iter().map(LeftOutLoad::of_orchestrations).collect();
            Ok((Some(laws), left_out, loads))
        };
        let own;
        (file.orchestration, file.left_out.orchestration, own) = orchestrations(orchestration_runs(recording))?;
        let elsewhere;
        (file.intercloud, file.left_out.intercloud, elsewhere) = orchestrations(intercloud_runs(recording))?;
        let mut of_graph = Vec::new();
        if let Some((graph, runs)) = graph::runs(recording).map_err(anyhow::Error::msg)? {
            let calibration = calibrate_graph(&graph, &runs, &effort)?;
            let left_out = leave_out_of_graph(&graph, &runs, &effort)?;
            file.left_out.graph = left_out.iter().map(|left_out| LeftOutLoad::of_graph(&graph, left_out)).collect();
            file.graph = Some(CalibratedGraph::new(graph, graph::workers(recording), &calibration));
            of_graph = calibration.loads;
        }
        Ok(Calibrated { file, events, orchestrations: own, elsewhere, graph: of_graph })
    }

    fn write(&self, Calibrated { events, file, .. }: &Calibrated) -> anyhow::Result<()> {
        self.put("calibration.json", pretty(file)?)?;
        for (load, _) in &events.loads {
            let asked = deployment(load);
            let path = event_path(&events.costs.nearest(&asked).costs, &asked)?;
            self.put(&format!("events-{}.json", load_text(load)), json::write(&path.net))?;
        }
        let alone = OrchestrationDeployment { cores: file.cores, others: 0.0, consumers: 1 };
        for (laws, name) in [(&file.orchestration, "orchestration.json"), (&file.intercloud, "intercloud.json")] {
            if let Some(laws) = laws {
                self.put(name, json::write(&orchestration(laws, &alone)?.0))?;
            }
        }
        if let Some(CalibratedGraph { graph, costs, workers, .. }) = &file.graph {
            let deployment = GraphDeployment { cores: file.cores, workers: *workers, rate: 1.0 };
            self.put("graph.json", json::write(&graph_path(graph, &costs.nearest(&deployment).costs, &deployment)?.net))?;
        }
        Ok(())
    }

    fn put(&self, name: &str, text: String) -> anyhow::Result<()> {
        let path = self.out.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// As a file has it.
pub fn pretty(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
