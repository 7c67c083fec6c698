//! Options of faults that strike nodes and edges.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::value::positive;
use crate::outage::Fault;

/// Faults of three nodes on one database and of a fleet of three edges, which need the programs of PostgreSQL and nats-server.
#[derive(Debug, Clone, Args)]
pub struct OutageOptions {
    /// Number of faults to draw at random
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub faults: u32,
    /// Faults to draw from [default: all]
    #[arg(long, value_enum, value_name = "FAULT", value_delimiter = ',')]
    pub fault: Vec<Fault>,
    /// Seed that repeats the drawn faults [default: a new one]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// File with the seed and the results so far; a rerun with the same options continues after the last finished fault
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Directory for the logs of each fault that breaks a promise [default: bodkin-outage-SEED in this folder]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Program of nodes and edges [default: this program]
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Directory of PostgreSQL's programs [default: the newest in /usr/lib/postgresql]
    #[arg(long, value_name = "DIR")]
    pub postgres: Option<PathBuf>,
    /// NATS servers, which are a cluster if there are several; BODKIN_NATS_SERVER names the program if it is not on PATH
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub nats_servers: u8,
    /// Give each node a disk of its own, which can be full: it needs root's rights, mkfs.ext4 and a loop device
    #[arg(long)]
    pub with_disks: bool,
    /// Speak TLS to PostgreSQL and NATS, which accept clients with a certificate only
    #[arg(long)]
    pub tls: bool,
    /// Milliseconds between two events of a publisher
    #[arg(long, value_name = "MS", default_value = "50", value_parser = positive)]
    pub period_ms: f64,
    /// Seconds without a fault before each one
    #[arg(long, value_name = "S", default_value = "1", value_parser = positive)]
    pub seconds: f64,
    /// Longest time in seconds until everything has settled after a fault
    #[arg(long, value_name = "S", default_value = "90", value_parser = positive)]
    pub settle_max_s: f64,
    /// Directory for the temporary data directories [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl OutageOptions {
    /// Returns the program of nodes and edges.
    ///
    /// # Errors
    /// Returns an error if the system does not tell the path of this program.
    pub fn program(&self) -> anyhow::Result<PathBuf> {
        self.program.clone().map_or_else(std::env::current_exe, Ok).context("cannot tell the path of this program")
    }

    /// Returns the faults to draw from.
    pub fn drawn(&self) -> Vec<Fault> {
        let all = if self.fault.is_empty() { &Fault::ALL[..] } else { &self.fault[..] };
        // A node has a disk that can be full only with this option.
        all.iter().copied().filter(|fault| self.with_disks || *fault != Fault::FullNode).collect()
    }

    /// Returns the options that the plan comes from, as text: a state file is of one such text.
    pub fn plan_text(&self) -> String {
        let names: Vec<String> = self.drawn().iter().map(|fault| fault.name()).collect();
        let tls = if self.tls { " --tls" } else { "" };
        format!("outage --faults {} --fault {}{tls}", self.faults, names.join(","))
    }
}
