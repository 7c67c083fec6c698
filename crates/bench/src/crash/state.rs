//! State file of a campaign: the seed and the results of finished faults, so that a rerun continues.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::ledger::Breach;
use super::plan::Transport;
use crate::statistics::{Counts, Figure};

/// Version of the file's form.
const VERSION: u32 = 1;

/// How long the clients of one transport had no answer, or no event, around a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gaps {
    /// The transport.
    pub transport: Transport,
    /// Gap of the first client that was served again.
    pub first_ms: f64,
    /// Gap of the last client that was served again.
    pub last_ms: f64,
}

/// Result of one fault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultResult {
    /// The fault's number in the campaign, from 1.
    pub number: usize,
    /// Its name.
    pub fault: String,
    /// Figures of the fault.
    pub figures: Vec<Figure>,
    /// Gaps by transport.
    pub gaps: Vec<Gaps>,
    /// Broken promises.
    pub breaches: Vec<Breach>,
    /// Directory with the logs of the nodes, if there are breaches.
    pub logs: Option<PathBuf>,
}

impl FaultResult {
    /// Prints the result: each breach with the seed, the fault, what was expected, what came, and where the logs are.
    pub fn print(&self, seed: u64) {
        let Self { number, fault, breaches, logs, .. } = self;
        if breaches.is_empty() {
            eprintln!("fault {number}, {fault}: nothing broken");
        }
        for Breach { expected, came } in breaches {
            eprintln!("seed {seed}, fault {number}, {fault}: expected: {expected}; came: {came}");
        }
        if let Some(logs) = logs {
            eprintln!("logs of the nodes: {}", logs.display());
        }
    }
}

/// Totals of one round, or of the part of a round that ran without a break.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Label of the round.
    pub label: String,
    /// Figures over all of its faults.
    pub figures: Vec<Figure>,
    /// Latencies of DEALER.
    pub latencies: Counts,
}

/// A campaign's results so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    version: u32,
    /// Seed of the plan.
    pub seed: u64,
    /// The options that the plan comes from.
    options: String,
    /// Results of finished faults, in their order.
    pub results: Vec<FaultResult>,
    /// Totals of finished rounds.
    pub totals: Vec<Totals>,
    #[serde(skip)]
    path: Option<PathBuf>,
}

impl Saved {
    /// Returns the state in the file at `path`, or an empty one with this seed if there is no such file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is of another campaign.
    pub fn open(path: Option<&Path>, seed: Option<u64>, fresh_seed: u64, options: &str) -> anyhow::Result<Self> {
        let empty = Self {
            version: VERSION,
            seed: seed.unwrap_or(fresh_seed),
            options: options.to_owned(),
            results: Vec::new(),
            totals: Vec::new(),
            path: path.map(Path::to_owned),
        };
        let Some(path) = path.filter(|path| path.exists()) else { return Ok(empty) };
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let saved: Self = serde_json::from_slice(&text).with_context(|| format!("{} is not the state of a campaign", path.display()))?;
        ensure!(saved.version == VERSION, "{} has version {}, expected {VERSION}: use another file", path.display(), saved.version);
        ensure!(
            seed.is_none_or(|seed| seed == saved.seed),
            "{} is of seed {}, not of the seed that --seed states: use another file",
            path.display(),
            saved.seed
        );
        ensure!(saved.options == options, "{} is of other options: use another file, or these options: {}", path.display(), saved.options);
        Ok(Self { path: empty.path, ..saved })
    }

    /// Writes the state, if it has a file. A crash leaves the former state or the new one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let part = path.with_extension("part");
        let text = serde_json::to_vec(self).expect("a state is texts and numbers");
        let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rerun_continues_with_seed_and_results() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let mut first = Saved::open(Some(&path), None, 7, "--faults 3").unwrap();
        first.results.push(FaultResult { number: 1, fault: "kill".into(), ..FaultResult::default() });
        first.write().unwrap();
        let second = Saved::open(Some(&path), None, 8, "--faults 3").unwrap();
        assert_eq!((second.seed, &second.results), (7, &first.results));
    }

    #[test]
    fn state_of_another_campaign_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        Saved::open(Some(&path), Some(7), 0, "--faults 3").unwrap().write().unwrap();
        let error = |seed, options| Saved::open(Some(&path), seed, 0, options).unwrap_err().to_string();
        assert!(error(Some(8), "--faults 3").contains("of seed 7"));
        assert!(error(None, "--faults 4").contains("or these options: --faults 3"));
        std::fs::write(&path, "{}").unwrap();
        assert!(error(None, "--faults 3").contains("not the state of a campaign"));
    }
}
