//! How long tables are measured, and where what is measured waits for the rest.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::machine::Conditions;

/// Of every row of a table.
#[derive(Debug, Clone, Args)]
pub struct SeriesOptions {
    /// Length of the measured time; a crash comes in its middle
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(2..=86_400))]
    pub seconds: u32,
    /// Time in front of the measured one
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub warm_up_seconds: u32,
    /// Runs of each row
    #[arg(long, value_name = "R", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Keep rows in this file and go on from there: what it holds is not measured again
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Where the brokers' temporary data directories are made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl SeriesOptions {
    /// Time in front of the measured one.
    pub fn warm_up(&self) -> Duration {
        Duration::from_secs(u64::from(self.warm_up_seconds))
    }

    /// The conditions of a table whose brokers are started for each row.
    pub fn conditions(&self) -> Conditions {
        let (server, warm_up) = ("own brokers, started by the bench for each run", format!("{} s of each run", self.warm_up_seconds));
        Conditions::begin("placed by the kernel".into(), server.into(), warm_up, self.runs)
    }
}
