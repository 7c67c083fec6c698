//! Options of several nodes that serve one cloud.

use std::path::PathBuf;

use clap::Args;

/// Nodes of one cloud on a PostgreSQL database, all on this machine.
#[derive(Debug, Clone, Args)]
pub struct NodesOptions {
    /// An empty database, as postgres://USER@HOST/NAME; what the nodes write stays there
    #[arg(long, value_name = "URL")]
    pub database: String,
    /// How many nodes; a comma list runs each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2,4", value_parser = clap::value_parser!(u32).range(2..=64))]
    pub nodes: Vec<u32>,
    /// Registrations that race: each service is registered at two nodes at once, and one of them may
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    pub registrations: u32,
    /// Changes of which each is looked for at another node until it shows it, with nobody else there, and as many beside registrations
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub changes: u32,
    /// Registrations per second beside the second half of these
    #[arg(long, value_name = "R", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub beside_per_s: u32,
    /// Queries of a run at a node, and at one with a database of its own by turns; 0: none
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub queries: u32,
    /// Services that the queries are about
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub services: u32,
    /// Runs of the queries, whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Restarts the database's server by this command of the shell, with a writer at each node; it has to end when the server serves again
    #[arg(long, value_name = "COMMAND")]
    pub restart: Option<String>,
    /// How many times, with each number of nodes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100), requires = "restart")]
    pub restarts: u32,
    /// Instead of all that: so many events of a run, published at one node and heard there or at another, one at a time, by the NATS servers of --node-events
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000_000), requires = "node_events")]
    pub events: u32,
    /// The NATS servers by which events go from node to node, as node_events of the configuration names them
    #[arg(long, value_name = "URL", requires = "events")]
    pub node_events: Option<String>,
    /// By a JetStream stream of this name there, which no other cloud has, instead of core NATS; it is made on one server
    #[arg(long, value_name = "NAME", requires = "node_events")]
    pub node_events_stream: Option<String>,
    /// Where the nodes' temporary data directories are made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}
