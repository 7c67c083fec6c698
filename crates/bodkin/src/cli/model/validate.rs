//! `bodkin model validate`: what was predicted beside what is measured, means with means.

use std::path::PathBuf;

use bodkin_petri::deployment::{Effort, EventRun, Prediction, PredictionError, deployment, predict_events};
use clap::Args;
use serde::Serialize;

use super::{
    calibrate::{load_text, threads},
    calibration::CalibrationFile,
    recording::{SourceOptions, event_runs},
};
use crate::{
    DONE, FAILED, USAGE,
    cli::{printer::Printer, table::Table},
};

/// Exit code: a prediction is further off than was asked.
const TOO_FAR: u8 = 4;

/// Options of `bodkin model validate`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Each load is measured as often as --repeat says, and predicted once. A prediction holds when it is within the asked part of the \
                        mean of all runs, or between the least and the greatest of them; both are told.\n\
                        Exit codes: 0 all hold, 1 the cloud cannot be recorded or not be predicted, 2 the calibration has a mistake or says nothing of the machine, 4 one does not hold."
)]
pub struct ValidateOptions {
    /// calibration.json of `bodkin model calibrate`, from other loads
    #[arg(value_name = "CALIBRATION")]
    calibration: PathBuf,
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
    mean: Compared,
    p99: Compared,
}

/// Measures, predicts and prints; gives the exit code.
pub fn run(options: &ValidateOptions, printer: Printer) -> anyhow::Result<u8> {
    let calibration = match CalibrationFile::read(&options.calibration) {
        Ok(calibration) => calibration,
        Err(mistake) => {
            eprintln!("bodkin: {mistake}");
            return Ok(USAGE);
        }
    };
    let recording = options.source.recording()?;
    if let Err(reason) = calibration.speaks_of(u32::try_from(recording.cores)?, f64::INFINITY) {
        eprintln!("bodkin: {reason}");
        return Ok(USAGE);
    }
    let runs = event_runs(&recording);
    let mut rows = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        if runs[..index].iter().any(|earlier| earlier.is_like(run)) {
            continue;
        }
        let of_load: Vec<&EventRun> = runs[index..].iter().filter(|other| other.is_like(run)).collect();
        match options.row(&calibration, &of_load) {
            Ok(row) => rows.push(row),
            Err(error) => {
                eprintln!("bodkin: {}: {error}", load_text(run));
                return Ok(FAILED);
            }
        }
    }
    print(&rows, printer)?;
    Ok(if rows.iter().all(|row| row.mean.holds() && row.p99.holds()) { DONE } else { TOO_FAR })
}

impl ValidateOptions {
    fn row(&self, calibration: &CalibrationFile, runs: &[&EventRun]) -> Result<Row, PredictionError> {
        let effort = Effort { events: self.events, seed: self.seed, threads: threads() };
        let predicted: Prediction = predict_events(&calibration.events, &deployment(runs[0]), &effort)?;
        let means: Vec<f64> = runs.iter().map(|run| run.latency.mean_us()).collect();
        let p99s: Vec<f64> = runs.iter().map(|run| run.latency.quantile_us(0.99)).collect();
        let load = load_text(runs[0]);
        Ok(Row {
            was_calibrated_with: calibration.loads.contains(&load),
            load,
            runs: runs.len(),
            mean: Compared::new(&means, predicted.mean_us.value, self.mean_within),
            p99: Compared::new(&p99s, predicted.quantile_us(0.99), self.p99_within),
        })
    }
}

impl Compared {
    /// The runs' mean stands for them.
    fn new(measured_us: &[f64], predicted_us: f64, within_percent: f64) -> Self {
        let mean_us = measured_us.iter().sum::<f64>() / measured_us.len() as f64;
        let (min_us, max_us) = measured_us.iter().fold((f64::INFINITY, 0.0), |(min, max): (f64, f64), us| (min.min(*us), max.max(*us)));
        let error_percent = 100.0 * (predicted_us / mean_us - 1.0);
        Self {
            measured_us: mean_us,
            measured_min_us: min_us,
            measured_max_us: max_us,
            predicted_us,
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
            format!("{:.1}", self.predicted_us),
            format!("{:+.1} %{verdict}", self.error_percent),
        ]
    }
}

fn print(rows: &[Row], printer: Printer) -> anyhow::Result<()> {
    let mut table = Table::new(&["LOAD", "RUNS", "MEAN US", "PREDICTED", "OFF", "P99 US", "PREDICTED", "OFF"]);
    for row in rows {
        let ([mean, mean_by_net, mean_off], [p99, p99_by_net, p99_off]) = (row.mean.cells(), row.p99.cells());
        let load = if row.was_calibrated_with { format!("{} (calibrated with it)", row.load) } else { row.load.clone() };
        table.push([load, row.runs.to_string(), mean, mean_by_net, mean_off, p99, p99_by_net, p99_off]);
    }
    printer.rows(&rows, &table, "no runs with events")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_holds_within_its_part_or_in_the_spread() {
        let compared = |predicted_us| Compared::new(&[90.0, 100.0, 140.0], predicted_us, 10.0);
        for (predicted_us, is_within, is_in_spread) in [
            (100.0, true, true),
            (120.5, true, true),
            (135.0, false, true),
            (95.0, false, true),
            (150.0, false, false),
            (80.0, false, false),
        ] {
            let compared = compared(predicted_us);
            assert_eq!((compared.is_within, compared.is_in_spread), (is_within, is_in_spread), "{predicted_us}");
            assert_eq!(compared.holds(), is_within || is_in_spread);
        }
        assert!((compared(121.0).error_percent - 10.0).abs() < 1e-9, "of the mean of the runs, 110");
    }
}
