//! Options of the use cases of the C library.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::value::{percent, positive};

/// The two use cases of Müller 2019 on an emulated radio channel, which need the sources of `zmtp-c`, `cc` and lwIP (Debian: liblwip-dev).
#[derive(Debug, Clone, Args)]
pub struct TaskfarmOptions {
    /// What is run; a comma list runs each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "tables,beyond,grain")]
    pub part: Vec<Part>,
    /// How master and workers speak to each other; a comma list runs each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "original,joined,farm")]
    pub form: Vec<Form>,
    /// Only with so many workers, of 1,2,4,8,10,16,32 [default: each]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=32))]
    pub workers: Vec<u32>,
    /// Runs of each, with seeds of their own
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Frames, and acknowledgements, that the channel loses beside collisions
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub loss: f64,
    /// What all randomness follows from: the same figures come again
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What a node's processor takes while it runs, in milliampere [assumed: STM32F103xE, 72 MHz, from flash, peripherals without a clock]
    #[arg(long, value_name = "MA", default_value_t = 30.5, value_parser = positive)]
    pub processor_runs_ma: f64,
    /// What it takes while it sleeps between interrupts, in milliampere [assumed: likewise]
    #[arg(long, value_name = "MA", default_value_t = 6.4, value_parser = positive)]
    pub processor_sleeps_ma: f64,
    /// The library's sources
    #[arg(long, value_name = "DIR", default_value = "zmtp-c")]
    pub library: PathBuf,
}

/// A part of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Tables 5.1 to 5.5, all 48 configurations.
    Tables,
    /// What the thesis left for later: more workers, larger inputs, a text that nobody holds.
    Beyond,
    /// Tasks of 200 ms each.
    Grain,
}

/// A form of a use case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The thesis': a message for each result, each in a segment of its own.
    Original,
    /// The same messages; those that wait share segments.
    Joined,
    /// By the task farm: credits, chunks that shrink, a message for each chunk.
    Farm,
}

impl Form {
    /// As the programs take it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Joined => "joined",
            Self::Farm => "farm",
        }
    }
}
