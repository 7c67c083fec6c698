//! Options of forwarding to a fleet's stream.

use std::path::PathBuf;

use clap::Args;

/// Events of a node into a JetStream stream on three servers of this machine, that sync before they acknowledge.
#[derive(Debug, Clone, Args)]
pub struct FleetOptions {
    /// Events of a run: the bare client's, and those that wait while the link is cut
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    pub events: u32,
    /// Events a second of the live load, and of that which fills the backlog
    #[arg(long, value_name = "R", default_value_t = 30_000.0)]
    pub rate: f64,
    /// Events a second beside which the backlog is drained
    #[arg(long, value_name = "R", default_value_t = 1_000.0)]
    pub beside: f64,
    /// Seconds of the live loads
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Cuts of the link during the live load of `--rate`, each of a second
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub cuts: u32,
    /// Kills of servers (SIGKILL, and begun again a second later) during the same load, which lasts 12 s for each at the least; by turns the stream's leader and the next one of all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub kills: u32,
    /// Events a second by which the backlog becomes smaller beside live events
    #[arg(long, value_name = "R", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub pace: u32,
    /// Publishers, each with an event type of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub publishers: u32,
    /// Bytes of an event's payload
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(16..=60_000))]
    pub payload_bytes: u32,
    /// Bytes of a batch
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(4096..=1_000_000))]
    pub batch_bytes: u32,
    /// Runs whose figures count
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Where the node's temporary data directory is made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}
