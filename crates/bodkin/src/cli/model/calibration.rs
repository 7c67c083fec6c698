//! The file of a calibration: what every step costs, as it was estimated from a recording.

use std::path::Path;

use bodkin_petri::deployment::{
    Calibration, EventCosts, EventRun, Graph, GraphCalibration, GraphCostsByLoad, GraphPrediction, GraphRun, OrchestrationLaws, Prediction,
};
use serde::{Deserialize, Serialize};

use super::{calibrate::load_text, file::read_text, graph::load_text as graph_load_text, left_out::LeftOutLoads};

const SCHEMA: &str = "bodkin-calibration-4";

/// What predictions are made from.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationFile {
    schema: String,
    /// The machine on which it was recorded.
    pub machine: String,
    /// Processors that all shared there.
    pub cores: u32,
    /// Loads from which it was made.
    pub loads: Vec<String>,
    /// How far the net's mean is off, at most, for the loads from which it was made.
    pub mean_off_percent: f64,
    /// Costs of the event path for each of the loads, in us.
    pub events: EventCosts,
    /// Laws of an orchestration, in us, where orchestrations were recorded.
    pub orchestration: Option<OrchestrationLaws>,
    /// Laws of an orchestration that another cloud answers, in us, where such were recorded.
    #[serde(default)]
    pub intercloud: Option<OrchestrationLaws>,
    /// A graph and its costs, where one was recorded.
    #[serde(default)]
    pub graph: Option<CalibratedGraph>,
    /// How far nets of all other loads are off for each; nothing where it was not asked.
    #[serde(default)]
    pub left_out: LeftOutLoads,
}

/// A graph, and what each step of an event's way through it costs.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratedGraph {
    /// The graph.
    pub graph: Graph,
    /// Its costs under each of the loads, in us.
    pub costs: GraphCostsByLoad,
    /// Loads from which they were made: percent of the declared rate, and workers.
    pub loads: Vec<String>,
    /// Workers of its file.
    pub workers: u32,
    /// How far the net's mean is off, at most, for these loads.
    pub mean_off_percent: f64,
}

impl CalibratedGraph {
    /// A graph and what was calibrated of it; its file has so many workers.
    pub fn new(graph: Graph, workers: u32, calibration: &GraphCalibration) -> Self {
        let off = |(load, predicted): &(GraphRun, Vec<GraphPrediction>)| {
            let of_level = |predicted: &GraphPrediction| {
                100.0 * (predicted.response.mean_us.value / load.of_level(&graph, predicted.level).mean_us() - 1.0).abs()
            };
            predicted.iter().map(of_level).fold(0.0, f64::max)
        };
        let mean_off_percent = calibration.loads.iter().map(off).fold(0.0, f64::max);
        let loads = calibration.loads.iter().map(|(load, _)| graph_load_text(load)).collect();
        Self { graph, costs: calibration.costs.clone(), loads, workers, mean_off_percent }
    }
}

/// Why nothing is predicted from a calibration whose own loads its net is so far off.
pub fn too_far_off(mean_off_percent: f64) -> String {
    format!(
        "the net's mean is off by {mean_off_percent:.0} % for a load that it was made from, so it predicts no other: record again while the machine has nothing else to do, or ask with --calibrated-within {:.0}",
        mean_off_percent.ceil()
    )
}

impl CalibrationFile {
    /// What was calibrated on this machine.
    pub fn new(machine: String, cores: u32, calibration: &Calibration) -> Self {
        let loads = calibration.loads.iter().map(|(load, _)| load_text(load)).collect();
        let off = |(load, predicted): &(EventRun, Prediction)| 100.0 * (predicted.mean_us.value / load.latency.mean_us() - 1.0).abs();
        let mean_off_percent = calibration.loads.iter().map(off).fold(0.0, f64::max);
        Self {
            schema: SCHEMA.to_owned(),
            machine,
            cores,
            loads,
            mean_off_percent,
            events: calibration.costs.clone(),
            orchestration: None,
            intercloud: None,
            graph: None,
            left_out: LeftOutLoads::default(),
        }
    }

    /// Whether it says anything of so many processors, by a net of it whose mean is off by `off_percent` at most for what it was made from.
    ///
    /// # Errors
    /// It was made on one, and more are asked for; or the net is further off than `within_percent`.
    pub fn speaks_of(&self, cores: u32, off_percent: f64, within_percent: f64) -> Result<(), String> {
        if off_percent > within_percent {
            Err(too_far_off(off_percent))
        } else if self.cores == 1 && cores > 1 {
            Err(format!(
                "{cores} processors cannot be predicted from a calibration on one: there nobody waits until another processor wakes up; calibrate on two or more"
            ))
        } else {
            Ok(())
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong, with the file's name.
    pub fn read(path: &Path) -> Result<Self, String> {
        let told = |reason: String| format!("{}: {reason}", path.display());
        let file: Self = serde_json::from_str(&read_text(path)?).map_err(|error| told(error.to_string()))?;
        if file.schema == SCHEMA { Ok(file) } else { Err(told(format!("its schema is {}; expected {SCHEMA}", file.schema))) }
    }
}
