//! Options of the loads that go over the control plane.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};

use super::secure::SecureOptions;
use super::target::{ServerOptions, TargetOptions};
use super::value::{duration, rate_per_s};
use crate::data;
use crate::state::State;

/// Services in the cloud where nothing says how many.
const SERVICES: u32 = 1000;

/// Load by one kind of request.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("mode").required(true).args(["simultaneous", "find_limit", "rate", "sequential"])))]
pub struct LoadOptions {
    /// Release N requests on N new connections together; a comma list makes a table
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    simultaneous: Vec<u32>,
    /// Find the largest N of simultaneous requests without errors whose longest answer takes less than --below
    #[arg(long, requires = "below")]
    find_limit: bool,
    /// Longest response time that --find-limit accepts
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["simultaneous", "rate", "sequential"])]
    below: Option<Duration>,
    /// Largest N that --find-limit tries
    #[arg(long, value_name = "N", default_value_t = 16_000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    pub up_to: u32,
    /// Open loop on kept connections: requests per second, latency from the intended send time
    #[arg(long, value_name = "R", value_parser = rate_per_s)]
    rate: Option<f64>,
    /// Closed loop on one kept connection
    #[arg(long)]
    sequential: bool,
    /// Requests of an open or closed loop [default: 100 with --rate, 2000 with --sequential]
    #[arg(long, value_name = "C", conflicts_with_all = ["simultaneous", "find_limit"], value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    count: Option<u32>,
    /// Services in the cloud before; a comma list runs each and compares [default: the most requests with --simultaneous, else 1000]
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "state", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    services: Vec<u32>,
    /// State that is restored before each run: empty, or data:SEED[:SERVICES] [default: empty for register, else data:1 with --services]
    #[arg(long, value_name = "STATE")]
    state: Option<State>,
    /// Runs whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// Whether the secure mode is measured, too.
    pub secure: SecureOptions,
    #[command(flatten)]
    /// The cloud under load.
    pub target: TargetOptions,
}

/// How requests are let go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// All together, each on a connection of its own.
    Simultaneous {
        /// Requests and connections.
        count: u32,
    },
    /// At fixed times.
    OpenLoop {
        /// Requests a second.
        rate_per_s: f64,
        /// Requests of a run.
        count: u32,
    },
    /// The next when the last was answered.
    Sequential {
        /// Requests of a run.
        count: u32,
    },
}

/// What the options ask for.
#[derive(Debug, Clone, PartialEq)]
pub enum Round {
    /// Each mode from each state.
    Runs(Vec<Mode>),
    /// The largest number of simultaneous requests under this response time.
    FindLimit(Duration),
}

impl LoadOptions {
    /// How requests are let go.
    pub fn round(&self) -> Round {
        match (self.below.filter(|_| self.find_limit), self.rate) {
            (Some(below), _) => Round::FindLimit(below),
            (None, Some(rate_per_s)) => Round::Runs(vec![Mode::OpenLoop { rate_per_s, count: self.count.unwrap_or(100) }]),
            (None, None) if self.sequential => Round::Runs(vec![Mode::Sequential { count: self.count.unwrap_or(2000) }]),
            (None, None) => Round::Runs(self.simultaneous.iter().map(|count| Mode::Simultaneous { count: *count }).collect()),
        }
    }

    /// The states to start from, the fewest services first; `empty_by_default` where a load brings its services itself.
    pub fn states(&self, empty_by_default: bool) -> Vec<State> {
        if let Some(state) = self.state {
            return vec![state];
        }
        let seed = if self.target.target.is_none() { State::SEED } else { State::fresh_seed() };
        if empty_by_default && self.services.is_empty() {
            return vec![State { seed, services: 0 }];
        }
        let mut services = self.services.clone();
        services.sort_unstable();
        services.dedup();
        if services.is_empty() {
            let most = if self.find_limit { Some(data::SERVICES) } else { self.simultaneous.iter().copied().max() };
            services.push(most.unwrap_or(SERVICES));
        }
        services.into_iter().map(|services| State { seed, services }).collect()
    }
}

/// Management lists.
#[derive(Debug, Clone, Args)]
pub struct PageOptions {
    /// Services in the cloud, each with a rule
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub services: u32,
    /// Seed of their data
    #[arg(long, value_name = "S", default_value_t = State::SEED)]
    pub seed: u64,
    /// Rows of a page
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub item_per_page: u32,
    /// Runs whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// The cloud under load.
    pub target: TargetOptions,
}

/// Test data.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("where").required(true).multiple(true).args(["out", "target", "into"])))]
pub struct DataOptions {
    /// Seed of the data: the same seed gives the same services and rules
    #[arg(long, value_name = "S")]
    pub seed: u64,
    /// How many services, and as many rules
    #[arg(long, value_name = "N", default_value_t = data::SERVICES, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub services: u32,
    /// Write them as JSON lines: each a registration and the consumer that may use it
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Load them into an own server with this data directory, which must be new or empty, and end it
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub into: Option<PathBuf>,
    #[command(flatten)]
    /// The cloud into which they are loaded.
    pub target: TargetOptions,
}

/// Start and idle memory.
#[derive(Debug, Clone, Args)]
pub struct StartOptions {
    /// Services in the data directory of the second part
    #[arg(long, value_name = "N", default_value_t = data::SERVICES, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub services: u32,
    /// Starts whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// The own server.
    pub server: ServerOptions,
}

/// The full series.
#[derive(Debug, Clone, Args)]
pub struct LabOptions {
    /// Few requests and short runs: whether everything works, not how fast
    #[arg(long)]
    pub quick: bool,
    /// Only the experiments whose command begins with this word
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Print the commands of the series and end
    #[arg(long)]
    pub list: bool,
    /// Where the own servers' temporary data directories are made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where certificates are kept [default: as with --secure]
    #[arg(long, value_name = "DIR")]
    pub certificates: Option<PathBuf>,
}
