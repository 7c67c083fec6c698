//! Options of the experiments with events.

use clap::{Args, ValueEnum};

use super::target::TargetOptions;

/// Rocha 2019, chapter 7.
#[derive(Debug, Clone, Args)]
pub struct EventOptions {
    /// Publishers x subscribers x events: A 1x1x2000, B1 1x1x9000, B6 1x6x9000, C 10x10x1000 each
    #[arg(long, value_enum, ignore_case = true)]
    pub scenario: Scenario,
    /// Pin server, relay, publishers and subscribers to this core [default: placed by the kernel]
    #[arg(long, value_name = "K")]
    pub core: Option<usize>,
    /// Shortest run; the scenario's events are repeated until it is reached
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Runs of broker and relay each whose figures count
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
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
}
