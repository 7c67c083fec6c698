//! One measured row of the table, and the file in which rows wait for the rest of the table.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::expectation::Faults;
use crate::load::Measured;
use crate::report::Outcome;
use crate::statistics::{Counts, Figure, Latencies};
use crate::time_line::TimeLine;

/// Which row: measured once, whatever becomes of the rest of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// What was run.
    pub configuration: String,
    /// How many topics.
    pub topics: u32,
    /// Whether the Primary was killed.
    pub is_crash: bool,
    /// Length of the measured time, in s.
    pub seconds: u32,
    /// Which repeat, from 0.
    pub run: u32,
}

/// What a row ends with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which.
    pub key: Key,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// All its latencies.
    pub latency: Counts,
    /// How they went over the measured time.
    #[serde(default)]
    pub time_line: TimeLine,
    /// Refusals in words.
    pub refusals: Vec<String>,
    /// How many there were.
    pub refused: u64,
}

/// The rows measured so far.
pub struct Rows {
    rows: Vec<Row>,
    file: Option<File>,
}

impl Rows {
    /// Those of a file, a row a line, or none; new ones are added to the file as they come.
    ///
    /// # Errors
    /// The file cannot be read or written, or holds something else.
    pub fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self { rows: Vec::new(), file: None }) };
        let of_path = || format!("the rows in {}", path.display());
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).with_context(of_path)?;
        let mut rows = Vec::new();
        for line in BufReader::new(&file).lines() {
            rows.push(serde_json::from_str(&line?).with_context(of_path)?);
        }
        Ok(Self { rows, file: Some(file) })
    }

    /// The row of this key.
    pub fn find(&self, key: &Key) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == *key)
    }

    /// All runs of one row, `first` being that of the first: those that are kept, and those that `measure` gives now.
    ///
    /// # Errors
    /// A run fails, or the rows cannot be kept.
    pub fn outcome(
        &mut self,
        label: String,
        first: &Key,
        runs: u32,
        measure: impl Fn(&Key) -> anyhow::Result<Row>,
    ) -> anyhow::Result<Outcome> {
        let mut outcome = Outcome::new(label);
        for run in 0..runs {
            let key = Key { run, ..first.clone() };
            if self.find(&key).is_none() {
                eprintln!("{}, run {} of {runs}", outcome.label, run + 1);
                self.add(measure(&key)?)?;
            }
            let row = self.find(&key).context("a row that was just added")?;
            let faults = Faults { count: row.refused, first: row.refusals.clone() };
            let measured = Measured { latencies: Latencies::from_counts(&row.latency), faults, time_line: row.time_line.clone() };
            outcome.push(row.figures.clone(), measured);
        }
        Ok(outcome)
    }

    /// Keeps one more.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, row: Row) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", serde_json::to_string(&row)?)?;
        }
        self.rows.push(row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_goes_on_where_it_was_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let key = |run| Key { configuration: "bodkin".into(), topics: 1525, is_crash: true, seconds: 60, run };
        let row = |run| Row {
            key: key(run),
            figures: vec![Figure::median("p50_us", 1.5), Figure::sum("lost", 3)],
            latency: Counts(vec![(5, 1)]),
            time_line: TimeLine::default(),
            refusals: Vec::new(),
            refused: 0,
        };
        Rows::open(Some(&path)).unwrap().add(row(0)).unwrap();
        let mut rows = Rows::open(Some(&path)).unwrap();
        assert_eq!((rows.find(&key(0)), rows.find(&key(1))), (Some(&row(0)), None));
        rows.add(row(1)).unwrap();
        assert_eq!(Rows::open(Some(&path)).unwrap().find(&key(1)), Some(&row(1)));
        std::fs::write(&path, "something else\n").unwrap();
        assert!(Rows::open(Some(&path)).is_err());
    }
}
