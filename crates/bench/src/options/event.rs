//! Options of the experiments with events.

use clap::{Args, ValueEnum};

use super::secure::SecureOptions;
use super::target::{ServerOptions, TargetOptions};
use super::value::{percent, rate_per_s};

/// Rocha 2019, chapter 7.
#[derive(Debug, Clone, Args)]
pub struct EventOptions {
    /// Publishers x subscribers x events: A 1x1x2000, B1 1x1x9000, B6 1x6x9000, C 10x10x1000 each, D 1x7x3000, E as D with slow subscribers
    #[arg(long, value_enum, ignore_case = true)]
    pub scenario: Scenario,
    /// How events reach the subscribers; pushes have no relay beside them
    #[arg(long, value_enum, default_value_t = Transport::Sse)]
    pub transport: Transport,
    /// Pin server, relay, publishers and subscribers to this core [default: placed by the kernel]
    #[arg(long, value_name = "K")]
    pub core: Option<usize>,
    /// Worker threads of the own server's control plane; a comma list runs each (the data plane is one thread whatever this says)
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "target", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Vec<u32>,
    /// Connections of each publisher, over which its events go in turn; a comma list runs each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub connections: Vec<u32>,
    /// Open loop: events a second of each publisher, latency from the intended send time [default: 300 for E, else closed loop]
    #[arg(long, value_name = "R", value_parser = rate_per_s)]
    pub rate: Option<f64>,
    /// Subscribers that never take anything; plain runs alternate with these, and the others' p99 is compared
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "0%")]
    pub dead: f64,
    /// Subscribers that take an event and then pause
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "0%")]
    pub slow: f64,
    /// How long a slow subscriber pauses
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub pause_ms: u32,
    /// Shortest run; the scenario's events are repeated until it is reached
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Runs of broker and relay each whose figures count
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// Whether the secure mode is measured, too.
    pub secure: SecureOptions,
    #[command(flatten)]
    /// The cloud under load.
    pub target: TargetOptions,
}

/// A scenario of Rocha 2019, chapter 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum Scenario {
    /// One publisher, one subscriber, 2000 events.
    A,
    /// One publisher, one subscriber, 9000 events.
    B1,
    /// One publisher, six subscribers, 9000 events.
    B6,
    /// Ten publishers, ten subscribers, 1000 events of each publisher.
    C,
    /// One publisher, seven subscribers, 3000 events; he swept the thread pool.
    D,
    /// As D, each subscriber on a small machine of its own: here each pauses after what it reads.
    E,
}

/// How events reach subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Event streams.
    Sse,
    /// A request to the subscriber for each event.
    Push,
}

/// Events from the log.
#[derive(Debug, Clone, Args)]
pub struct ReplayOptions {
    /// Events that are published and replayed
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub events: u32,
    /// Replays of each kind whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// The own server.
    pub server: ServerOptions,
}

/// Events that were refused.
#[derive(Debug, Clone, Args)]
pub struct DeadLetterOptions {
    /// Events that are refused and delivered afterwards
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub events: u32,
    /// Runs whose figures count
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// The own server.
    pub server: ServerOptions,
}
