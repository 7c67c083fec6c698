//! Options of the experiments with topics that have periods.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::series::SeriesOptions;
use super::target::ServerOptions;
use super::value::rate_per_s;

/// Events over ZMTP.
#[derive(Debug, Clone, Args)]
pub struct ZmtpOptions {
    /// Publishers x subscribers, each of which hears all: A 1x1, C 10x10
    #[arg(long, value_enum, ignore_case = true)]
    pub scenario: ZmtpScenario,
    /// By which sockets events come and go
    #[arg(long, value_enum, default_value_t = Sockets::PubSub)]
    pub sockets: Sockets,
    /// Events a second of each publisher; a comma list runs each [default: 1000 for A; 1000,2000,4000 for C]
    #[arg(long, value_name = "R", value_delimiter = ',', value_parser = rate_per_s)]
    pub rate: Vec<f64>,
    /// Length of a run
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Runs of broker and relay each whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// The own server.
    pub server: ServerOptions,
}

/// A scenario of Rocha 2019, chapter 7, at a fixed rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum ZmtpScenario {
    /// One publisher, one subscriber.
    A,
    /// Ten publishers, ten subscribers.
    C,
}

/// Kinds of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sockets {
    /// PUB and SUB, two frames, best effort.
    PubSub,
    /// DEALER at both ends, with header and acknowledgements.
    Dealer,
}

/// The experiments of Wang 2019, chapter 3.
#[derive(Debug, Clone, Args)]
pub struct FrameOptions {
    /// How many topics; a comma list runs each [default: 1525,4525,7525,10525,13525; with --short 1525,7525]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(28..=200_000))]
    pub topics: Vec<u32>,
    /// What is run; a comma list runs each. Those of others need nats-server or mosquitto on PATH
    #[arg(long, value_enum, value_delimiter = ',', default_value = "bodkin,frame,frame-plus,fcfs,fcfs-minus")]
    pub configurations: Vec<Configuration>,
    /// Category 5's subscriber is in the cloud: the way to it takes 5 to 35 ms, and now and then it stands still for a second. Pairs only
    #[arg(long)]
    pub cloud: bool,
    /// The part that a gate can wait for: fewer topics
    #[arg(long)]
    pub short: bool,
    #[command(flatten)]
    /// How the table is measured.
    pub table: TableOptions,
}

/// How a table is measured, row by row.
#[derive(Debug, Clone, Args)]
pub struct TableOptions {
    /// Whether the Primary is killed in the middle; a comma list runs each [default: none,crash]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub fault: Vec<Fault>,
    #[command(flatten)]
    /// How each row is measured.
    pub series: SeriesOptions,
}

impl TableOptions {
    /// Without and with a crash.
    pub fn faults(&self) -> Vec<bool> {
        if self.fault.is_empty() { vec![false, true] } else { self.fault.iter().map(|fault| *fault == Fault::Crash).collect() }
    }
}

/// The experiments of Wang 2019, chapter 4.
#[derive(Debug, Clone, Args)]
pub struct ArrecOptions {
    /// How many topics; a comma list runs each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1200,1300,1400,1500,1600", value_parser = clap::value_parser!(u32).range(301..=200_000))]
    pub topics: Vec<u32>,
    /// How events are replicated; a comma list runs each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "all,li,retransmission,periodic-25,periodic-50,eager")]
    pub strategies: Vec<ReplicationStrategy>,
    /// Whether the Backup is told what it need not keep; a comma list runs each, all but the first only with a crash
    #[arg(long, value_enum, value_delimiter = ',', default_value = "quick,full")]
    pub recovery: Vec<Recovery>,
    /// Who publishes category 5: one publisher, or one for ten topics each; a comma list runs each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "large,small")]
    pub groups: Vec<GroupSize>,
    /// What each event costs its subscriber before it acknowledges it
    #[arg(long, value_name = "US", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub processing_us: u32,
    #[command(flatten)]
    /// How the table is measured.
    pub table: TableOptions,
}

/// How events are replicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReplicationStrategy {
    /// Every one, as late as it may be.
    All,
    /// One of max(L, 1), as late as it may be.
    Li,
    /// None.
    Retransmission,
    /// All that is not covered, every 25 ms.
    #[value(name = "periodic-25")]
    Periodic25,
    /// The same every 50 ms.
    #[value(name = "periodic-50")]
    Periodic50,
    /// Every one, when it comes.
    Eager,
}

/// What a Backup does again that leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Recovery {
    /// What no subscriber has acknowledged.
    Quick,
    /// All that was replicated last, for it was not told what has become of it.
    Full,
}

/// How many publishers category 5 has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GroupSize {
    /// One.
    Large,
    /// One for ten topics.
    Small,
}

/// What a row of the table is run against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Configuration {
    /// A pair; acknowledged events are safe.
    Bodkin,
    /// A pair; what was handed to the kernel is safe.
    Frame,
    /// As `frame`, with more retention.
    FramePlus,
    /// A pair that replicates every event and dispatches in order of arrival.
    Fcfs,
    /// The same, and the Backup is not told what was dispatched.
    FcfsMinus,
    /// One node, acknowledged.
    Alone,
    /// One node, best effort.
    PubSub,
    /// nats-server, core.
    Nats,
    /// nats-server with JetStream on one node.
    JetstreamR1,
    /// nats-server with JetStream on three nodes.
    JetstreamR3,
    /// mosquitto, at most once.
    MosquittoQos0,
    /// mosquitto, at least once.
    MosquittoQos1,
}

/// What happens in the middle of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// Nothing.
    None,
    /// The Primary gets SIGKILL.
    Crash,
}

impl FrameOptions {
    /// How many topics each row has.
    pub fn topics(&self) -> Vec<u32> {
        match (&self.topics[..], self.short) {
            ([], false) => vec![1525, 4525, 7525, 10_525, 13_525],
            ([], true) => vec![1525, 7525],
            (topics, _) => topics.to_vec(),
        }
    }
}

/// From a publisher's send to its covered.
#[derive(Debug, Clone, Args)]
pub struct CoverOptions {
    /// Events a second, at most 1000
    #[arg(long, value_name = "R", default_value = "500", value_parser = covered_rate_per_s)]
    pub rate: f64,
    /// Length of a run
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Runs of pair and chain each whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Where the nodes' temporary data directories are made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// From a publisher's send to an event that is kept.
#[derive(Debug, Clone, Args)]
pub struct DurableOptions {
    /// Publishers; a comma list runs each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,16", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub publishers: Vec<u32>,
    /// Events a second of each
    #[arg(long, value_name = "R", default_value = "100", value_parser = rate_per_s)]
    pub rate: f64,
    /// Length of a run
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Runs of each whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Where the nodes' temporary data directories are made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// The topic's retention is enough for a fail-over up to this rate.
fn covered_rate_per_s(text: &str) -> Result<f64, String> {
    const MAX: f64 = 1000.0;
    rate_per_s(text).and_then(|rate| if rate <= MAX { Ok(rate) } else { Err(format!("at most {MAX} events a second")) })
}
