//! Options of the experiments with graphs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::series::SeriesOptions;

/// Copies of the graph of sets 3, 4 and 6: with nothing in common their operators are nearly as many as a graph may have.
const COPIES_MAX: i64 = 40;

/// The six sets of experiments of Wang 2019, chapter 2.
#[derive(Debug, Clone, Args)]
pub struct CpepOptions {
    /// Which sets; a comma list runs each: 1 latency by level, 2 with priorities or without, 3 with operators in common or without, 4 absolute validity, 5 relative validity, 6 overheads
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,3,4,5,6", value_parser = clap::value_parser!(u32).range(1..=6))]
    pub sets: Vec<u32>,
    /// What processes the events of set 1; a comma list runs each. Flink is left out, and that is told, where there is no Java or no Maven
    #[arg(long, value_enum, value_delimiter = ',', default_value = "bodkin,flink")]
    pub processors: Vec<Processor>,
    /// Streams of the high level in sets 1, 2 and 5
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=50))]
    pub high: u32,
    /// Streams of the middle level there; a comma list runs each [default: 3,6,9,12,15; with --short 3,9]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=50))]
    pub middle: Vec<u32>,
    /// Streams of the low level there
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(0..=50))]
    pub low: u32,
    /// Copies of the whole graph in sets 3, 4 and 6; a comma list runs each [default: 1,3,5,7,9,11,13; with --short 3]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=COPIES_MAX))]
    pub copies: Vec<u32>,
    /// Only rows whose names have this in them, as "set 4, shared, shedding"; a comma is part of it
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Worker threads of a graph, of each level where these differ
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cores: u32,
    /// How suppliers and consumers share the machine with the service: first, as real-time threads in front of all of its, or beside it, as ordinary ones. What cannot be had is told, and they are beside it
    #[arg(long, value_enum, default_value = "first")]
    pub sides: Precedence,
    /// The Flink program's sources
    #[arg(long, value_name = "DIR", default_value = "bench/peers/flink")]
    pub flink: PathBuf,
    /// The part that a gate can wait for: fewer streams, and of set 5 one validity
    #[arg(long)]
    pub short: bool,
    #[command(flatten)]
    /// How each row is measured.
    pub series: SeriesOptions,
}

/// Who goes first where suppliers and consumers share processors with the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Precedence {
    /// They do, as if they had processors of their own.
    First,
    /// Whoever the kernel takes: they are ordinary threads.
    Beside,
}

/// What processes events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Processor {
    /// Bodkin, with the graph in a file.
    Bodkin,
    /// Apache Flink, with a program of its own.
    Flink,
}

impl CpepOptions {
    /// Streams of the middle level.
    pub fn middle(&self) -> Vec<u32> {
        match (self.middle.is_empty(), self.short) {
            (false, _) => self.middle.clone(),
            (true, true) => vec![3, 9],
            (true, false) => vec![3, 6, 9, 12, 15],
        }
    }

    /// Copies of the graph.
    pub fn copies(&self) -> Vec<u32> {
        match (self.copies.is_empty(), self.short) {
            (false, _) => self.copies.clone(),
            (true, true) => vec![3],
            (true, false) => vec![1, 3, 5, 7, 9, 11, 13],
        }
    }
}
