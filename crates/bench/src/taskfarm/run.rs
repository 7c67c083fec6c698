//! The figures of one run.

use anyhow::{Context, bail};

use super::cell::{self, Ended};
use super::configuration::Configuration;
use super::energy::{self, Energy, Processor};
use super::programs::Programs;

/// What a run has come to. Times in seconds of the cell's own clock.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// From the master's start until all workers were ready, and from then until all results were there.
    pub connect_s: f64,
    /// See `connect_s`.
    pub work_s: f64,
    /// From then until all connections were over.
    pub close_s: f64,
    /// Messages heard by anybody.
    pub messages: f64,
    /// TCP segments, and those with data.
    pub segments: f64,
    /// See `segments`.
    pub data_segments: f64,
    /// Frames on the air, those sent again, and those given up.
    pub frames: f64,
    /// See `frames`.
    pub repeated: f64,
    /// See `frames`.
    pub given_up: f64,
    /// Octets on the air.
    pub octets: f64,
    /// How long the channel was in use.
    pub air_s: f64,
    /// How long it would have been at the least with these frames.
    pub floor_s: f64,
    /// The master's energy, and a worker's on average.
    pub master: Energy,
    /// See `master`.
    pub worker: Energy,
}

impl Run {
    /// What the thesis measures: from the master's start until all results are summed.
    pub fn total_s(&self) -> f64 {
        self.connect_s + self.work_s
    }
}

/// Runs a configuration.
///
/// # Errors
/// A station fails, the run does not end, or something else was counted than there is.
pub fn run(configuration: &Configuration, programs: &Programs, processor: Processor, loss: f64, seed: u64) -> anyhow::Result<Run> {
    let ended = cell::run(&configuration.calls(programs), loss, seed)?;
    let (master, workers) = ended.split_first().context("a cell has a master")?;
    let by_workers: u64 = workers.iter().map(|worker| worker.said.counted).sum();
    if (master.said.counted, by_workers) != (configuration.expected(), configuration.expected()) {
        bail!("the master has counted {}, the workers {by_workers}, and there are {}", master.said.counted, configuration.expected());
    }
    let sum = |of: fn(&Ended) -> u64| ended.iter().map(of).sum::<u64>() as f64;
    let energies: Vec<Energy> = workers.iter().map(|worker| energy::estimate(worker, processor)).collect();
    let mean = |of: fn(&Energy) -> f64| energies.iter().map(of).sum::<f64>() / energies.len() as f64;
    Ok(Run {
        connect_s: master.said.connect_us as f64 / 1e6,
        work_s: master.said.work_us as f64 / 1e6,
        close_s: master.said.close_us as f64 / 1e6,
        messages: sum(|ended| ended.said.messages),
        segments: sum(|ended| ended.usage.segments),
        data_segments: sum(|ended| ended.usage.data_segments),
        frames: sum(|ended| ended.usage.frames),
        repeated: sum(|ended| ended.usage.repeated),
        given_up: sum(|ended| ended.usage.given_up),
        octets: sum(|ended| ended.usage.octets),
        air_s: sum(|ended| ended.usage.air_us) / 1e6,
        floor_s: sum(|ended| ended.usage.least_us) / 1e6,
        master: energy::estimate(master, processor),
        worker: Energy { millijoules: mean(|energy| energy.millijoules), milliwatts: mean(|energy| energy.milliwatts) },
    })
}
