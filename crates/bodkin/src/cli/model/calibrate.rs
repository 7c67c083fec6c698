//! `bodkin model calibrate`.

use std::{fs, path::PathBuf, thread::available_parallelism};

use anyhow::Context;
use bodkin_bench::recording::Recording;
use bodkin_petri::{
    deployment::{
        Beside, Calibration, Deployment, Effort, EventRun, GraphCalibration, GraphDeployment, GraphPrediction, GraphRun, LoadCosts,
        OperatorCost, OrchestrationDeployment, OrchestrationLaws, Wake, calibrate, calibrate_graph, deployment, event_path,
        fit_orchestrations, graph_path, orchestration,
    },
    distribution::Distribution,
    format::json,
};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::{
    calibration::{CalibratedGraph, CalibrationFile},
    graph,
    recording::{SourceOptions, event_runs, intercloud_runs, orchestration_runs},
};
use crate::{
    DONE, FAILED, USAGE,
    cli::{details::Details, printer::Printer, table::Table},
};

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

/// A load of a graph, and what the calibrated net makes of it.
type GraphLoadSeen = (GraphRun, Vec<GraphPrediction>);

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
    let effort = Effort { events: options.events, seed: options.seed, threads: threads() };
    let calibration = match calibrate(&event_runs(&recording), &effort) {
        Ok(calibration) => calibration,
        Err(error) => {
            eprintln!("bodkin: {error}");
            return Ok(FAILED);
        }
    };
    let mut file = CalibrationFile::new(recording.machine.clone(), u32::try_from(recording.cores)?, &calibration);
    for (runs, laws) in [(orchestration_runs(&recording), &mut file.orchestration), (intercloud_runs(&recording), &mut file.intercloud)] {
        if runs.is_empty() {
            continue;
        }
        match fit_orchestrations(&runs, &effort) {
            Ok(fitted) => *laws = Some(fitted),
            Err(error) => {
                eprintln!("bodkin: {error}");
                return Ok(FAILED);
            }
        }
    }
    let graph = match graph_of(&recording, &effort) {
        Ok(graph) => graph,
        Err(error) => {
            eprintln!("bodkin: {error}");
            return Ok(FAILED);
        }
    };
    let graph_loads = graph.map(|(calibrated, calibration)| {
        file.graph = Some(calibrated);
        calibration.loads
    });
    options.write(&calibration, &file)?;
    print(&calibration, &file, graph_loads.as_deref(), printer)?;
    Ok(DONE)
}

/// The graph of a recording, calibrated; none where there is none.
pub fn graph_of(recording: &Recording, effort: &Effort) -> anyhow::Result<Option<(CalibratedGraph, GraphCalibration)>> {
    let Some((graph, runs)) = graph::runs(recording).map_err(anyhow::Error::msg)? else { return Ok(None) };
    let calibration = calibrate_graph(&graph, &runs, effort)?;
    Ok(Some((CalibratedGraph::new(graph, graph::workers(recording), &calibration), calibration)))
}

/// As many as the machine has processors.
pub fn threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// A load as it is typed.
pub fn load_text(run: &EventRun) -> String {
    deployment_text(&deployment(run))
}

fn deployment_text(Deployment { publishers, subscribers, rate_per_s, .. }: &Deployment) -> String {
    let rate = rate_per_s.map(|rate| format!("@{rate}")).unwrap_or_default();
    format!("{publishers}x{subscribers}{rate}")
}

impl CalibrateOptions {
    fn write(&self, calibration: &Calibration, file: &CalibrationFile) -> anyhow::Result<()> {
        self.put("calibration.json", pretty(file)?)?;
        for (load, _) in &calibration.loads {
            let path = event_path(calibration.costs.nearest(&deployment(load)), &deployment(load))?;
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
            self.put("graph.json", json::write(&graph_path(graph, costs, &deployment)?.net))?;
        }
        Ok(())
    }

    fn put(&self, name: &str, text: String) -> anyhow::Result<()> {
        let path = self.out.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn wake_text(wake: Wake) -> String {
    let Wake { usual_us, held_up, held_up_us, held_up_busy } = wake;
    let [idle, busy] = [held_up, held_up_busy].map(|probability| 100.0 * probability);
    format!("{usual_us:.2} us; in {idle:.2} % of all held up, {held_up_us:.0} us; where no processor is idle in {busy:.2} %")
}

/// As a file has it.
pub fn pretty(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn print(calibration: &Calibration, file: &CalibrationFile, graph: Option<&[GraphLoadSeen]>, printer: Printer) -> anyhow::Result<()> {
    // Work is the same for all loads.
    let costs = &calibration.costs.loads()[0].costs;
    let loads: Vec<_> = calibration
        .loads
        .iter()
        .map(|(load, predicted)| {
            json!({
                "load": load_text(load), "events": load.events, "measured_mean_us": load.latency.mean_us(), "net_mean_us": predicted.mean_us.value,
                "measured_p99_us": load.latency.quantile_us(0.99), "net_p99_us": predicted.quantile_us(0.99),
                "subscribers_queued_us": load.queued_us(),
            })
        })
        .collect();
    printer.one(
        &json!({ "costs": calibration.costs, "orchestration": file.orchestration, "intercloud": file.intercloud, "graph": file.graph, "loads": loads }),
        &Details::default()
            .with("publisher", format!("takes an answer in {:.2} us, publishes in {:.2} us", costs.take.mean_us, costs.publish.mean_us))
            .with("broker, a turn", format!("{:.2} us, its log {:.2} us", costs.turn.mean_us, costs.log.mean_us))
            .with("broker, an event", {
                let [receive, execute, answer] = [costs.receive, costs.execute, costs.answer].map(|work| work.mean_us);
                format!("receives in {receive:.2} us, decides in {execute:.2} us, answers in {answer:.2} us")
            })
            .with("broker, a subscriber", format!("decides in {:.2} us, writes in {:.2} us", costs.execute_each_us, costs.write.mean_us))
            .with("subscriber", format!("reads in {:.2} us, takes an event in {:.2} us", costs.read.mean_us, costs.note.mean_us))
            .with("comes to run", {
                let [publishers, subscribers] = [costs.publisher_switch, costs.subscriber_switch].map(|work| work.mean_us);
                format!("the publishers' thread in {publishers:.2} us, the subscribers' in {subscribers:.2} us")
            })
    )?;
    let mut table = Table::new(&["LOAD", "EVENTS", "MEAN US", "BY NET", "P99 US", "BY NET", "QUEUED US"]);
    for (load, predicted) in &calibration.loads {
        let us = |value: f64| format!("{value:.1}");
        let (mean, p99) = (load.latency.mean_us(), load.latency.quantile_us(0.99));
        table.push([
            load_text(load),
            load.events.to_string(),
            us(mean),
            us(predicted.mean_us.value),
            us(p99),
            us(predicted.quantile_us(0.99)),
            load.queued_us().map_or_else(|| "unknown".to_owned(), us),
        ]);
    }
    printer.table(&table, "no loads")?;
    let mut table = Table::new(&["LOAD", "WAKE-UP", "OF SUBSCRIBERS"]);
    for LoadCosts { deployment, costs } in calibration.costs.loads() {
        table.push([deployment_text(deployment), wake_text(costs.wake), wake_text(costs.subscriber_wake)]);
    }
    printer.table(&table, "no loads")?;
    for (laws, title) in [(&file.orchestration, "ORCHESTRATION"), (&file.intercloud, "IN ANOTHER CLOUD")] {
        if let Some(laws) = laws {
            print_orchestration(laws, title, printer)?;
        }
    }
    match (&file.graph, graph) {
        (Some(calibrated), Some(loads)) => print_graph(calibrated, loads, printer),
        _ => Ok(()),
    }
}

/// What a graph's operators cost, and its loads by level.
fn print_graph(calibrated: &CalibratedGraph, loads: &[GraphLoadSeen], printer: Printer) -> anyhow::Result<()> {
    let CalibratedGraph { graph, costs, .. } = calibrated;
    let mut table = Table::new(&["OPERATOR", "LEVEL", "WORKS US", "VARIES", "HAS A RESULT"]);
    for (operator, cost) in graph.operators.iter().zip(&costs.operators) {
        let OperatorCost { work, emits } = cost;
        let varies = format!("{:.0} %", 100.0 * work.squared_variation.sqrt());
        table.push([
            operator.name.clone(),
            operator.level.to_string(),
            format!("{:.1}", work.mean_us),
            varies,
            format!("{:.0} %", 100.0 * emits),
        ]);
    }
    printer.table(&table, "no operators")?;
    let mut table = Table::new(&["GRAPH LOAD", "LEVEL", "RESULTS", "MEAN US", "BY NET", "P99 US", "BY NET"]);
    for (load, predicted) in loads {
        for GraphPrediction { level, response, .. } in predicted {
            let us = |value: f64| format!("{value:.1}");
            let measured = load.of_level(graph, *level);
            table.push([
                graph::load_text(load),
                level.to_string(),
                measured.count().to_string(),
                us(measured.mean_us()),
                us(response.mean_us.value),
                us(measured.quantile_us(0.99)),
                us(response.quantile_us(0.99)),
            ]);
        }
    }
    printer.table(&table, "no loads")?;
    Ok(())
}

/// The steps of an orchestration, in their order.
fn print_orchestration(laws: &OrchestrationLaws, title: &'static str, printer: Printer) -> anyhow::Result<()> {
    let mut table = Table::new(&[title, "WORKS US", "MORE WHERE ALONE US", "WAITS US"]);
    for step in &laws.steps {
        let waits = Distribution::try_from(step.waits.clone())?;
        table.push([step.name.clone(), format!("{:.1}", step.work_us), format!("{:.1}", step.alone_us), format!("{:.1}", waits.mean())]);
    }
    let Beside { alone, many } = laws.beside_us;
    table.push(["beside the way, for one consumer".to_owned(), format!("{alone:.1}"), "0.0".to_owned(), "0.0".to_owned()]);
    table.push(["for each of very many".to_owned(), format!("{many:.1}"), "0.0".to_owned(), "0.0".to_owned()]);
    printer.table(&table, "no steps")?;
    Ok(())
}
