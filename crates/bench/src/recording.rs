//! What a cloud did under loads of known shape, as a file: models are calibrated from one and held against another.
//!
//! Of every run there are the stages as the server's recorder has them, whole latencies seen from outside, and the processor time of each
//! side. Loads alternate, so that a machine that changes its mind does so for all of them.

mod events;
mod graphs;
mod intercloud;
mod orchestrations;
mod processors;

pub use self::processors::Processors;
use serde::{Deserialize, Serialize};

use crate::load::StageTimes;
use crate::machine::Conditions;
use crate::options::RecordOptions;
use crate::statistics::Counts;

/// The schema of the file.
pub const SCHEMA: &str = "bodkin-recording-1";

/// Runs against one cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// [`SCHEMA`].
    pub schema: String,
    /// Processor model, kernel and load average of the machine in one line.
    pub machine: String,
    /// Processors that server, publishers and subscribers share.
    pub cores: usize,
    /// Runs with events, in the order in which they were made.
    pub events: Vec<EventRun>,
    /// Runs with orchestrations.
    pub orchestrations: Vec<OrchestrationRun>,
    /// Runs with orchestrations that another cloud answered.
    #[serde(default)]
    pub intercloud: Vec<InterCloudRun>,
    /// A graph, and runs with it.
    #[serde(default)]
    pub graph: Option<GraphRecording>,
}

/// One run with events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRun {
    /// Publishers, each with one connection.
    pub publishers: u16,
    /// Subscribers, each of which hears all events.
    pub subscribers: usize,
    /// Events a second of each publisher; none: the next goes when the last is answered.
    pub rate_per_s: Option<f64>,
    /// Events that were answered.
    pub events: u64,
    /// From the first publish to the last answer, in s.
    pub seconds: f64,
    /// From each send to each delivery: a latency in ns and how often it was seen.
    pub latency_ns: Counts,
    /// From each send to its answer.
    pub answered_ns: Counts,
    /// Processor time of the process of all publishers.
    pub publisher_processor_ns: u64,
    /// How often that slept.
    pub publisher_sleeps: u64,
    /// How long its threads were ready while others had the processors, where the kernel counts it.
    #[serde(default)]
    pub publisher_queued_ns: Option<u64>,
    /// Processor time of the process of all subscribers.
    pub subscriber_processor_ns: u64,
    /// How often that slept.
    pub subscriber_sleeps: u64,
    /// How long its threads were ready while others had the processors, where the kernel counts it.
    #[serde(default)]
    pub subscriber_queued_ns: Option<u64>,
    /// Reads by the subscribers that brought something.
    pub stream_reads: u64,
    /// Processor time of the server, in the kernel's ticks of 10 ms, where its process is known.
    pub server_processor_ns: Option<u64>,
    /// How long its threads were ready while others had the processors, where its process is known and the kernel counts it.
    #[serde(default)]
    pub server_queued_ns: Option<u64>,
    /// The server's stages during the run, by system.
    pub stages: StageTimes,
}

/// One run of orchestrations, by consumers that ask again when they have their answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrchestrationRun {
    /// Services in the cloud, each with a rule.
    pub services: u32,
    /// Consumers, each with one connection.
    #[serde(default = "alone")]
    pub consumers: u32,
    /// Orchestrations while all else was counted; of a recording that does not tell, as many as there are latencies.
    #[serde(default)]
    pub orchestrations: u64,
    /// From request to answer as a consumer sees it, without the first one on each connection.
    pub latency_ns: Counts,
    /// Processor time of the cloud, in the kernel's ticks of 10 ms, and of the consumers, where the cloud's process is known.
    #[serde(default)]
    pub processor_ns: Option<u64>,
    /// The same by side, with what others had; none in a recording of before.
    #[serde(default)]
    pub processors: Option<Processors>,
    /// The server's stages during the run, by system.
    pub stages: StageTimes,
}

/// Consumers of a recording that does not tell how many there were.
fn alone() -> u32 {
    1
}

/// One run of orchestrations that another cloud answered, by consumers that ask again when they have their answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterCloudRun {
    /// Consumers, each with one connection.
    pub consumers: u32,
    /// Services in the cloud that is asked, each with a rule.
    pub services: u32,
    /// Orchestrations while all else was counted.
    pub orchestrations: u64,
    /// From request to answer as a consumer sees it, without the first one on each connection.
    pub latency_ns: Counts,
    /// Processor time of both clouds, in the kernel's ticks of 10 ms, and of the consumers.
    pub processor_ns: Option<u64>,
    /// The same by side, with what others had; none in a recording of before.
    #[serde(default)]
    pub processors: Option<Processors>,
    /// Stages of the cloud that the consumers asked, by system.
    pub stages: StageTimes,
    /// Parts of its dialogues as it saw them, by what they were about.
    pub asking: StageTimes,
    /// The same as the other cloud saw them.
    pub asked: StageTimes,
}

/// A graph under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphRecording {
    /// The text of its file.
    pub file: String,
    /// Runs, in the order in which they were made.
    pub runs: Vec<GraphRun>,
}

/// One run with a graph: its suppliers pushed, each by its own clock, and consumers heard its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphRun {
    /// How often suppliers pushed, in percent of what the file declares.
    pub percent: u32,
    /// Workers, of each level where these are apart.
    pub workers: u32,
    /// How long it was, in s.
    pub seconds: f64,
    /// Events that were pushed.
    pub sent: u64,
    /// In the order of the file; of a graph that shares no operators each output has its own.
    pub operators: Vec<OperatorTimes>,
    /// In the order of the file.
    pub outputs: Vec<OutputTimes>,
    /// Processor time of the broker's shard.
    pub shard_ns: u64,
    /// Processor time of all workers.
    pub workers_ns: u64,
    /// Processor time of the process of all suppliers.
    pub suppliers_ns: u64,
    /// Processor time of the process of all consumers.
    pub consumers_ns: u64,
}

/// What an operator did in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorTimes {
    /// Its name.
    pub name: String,
    /// Rounds.
    pub rounds: u64,
    /// How long they lasted together, in us.
    pub busy_us: f64,
    /// The longest one since the graph was deployed, in us.
    pub longest_us: f64,
}

/// What came out at a topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputTimes {
    /// The topic.
    pub topic: String,
    /// From the push of the newest event that a result is made of to the consumer.
    pub latency_ns: Counts,
}

/// Makes the runs; `told` hears what begins.
///
/// # Errors
/// The cloud does not start or answer, has no stage recorder, or refuses the load.
pub fn record(options: &RecordOptions, told: &mut dyn FnMut(String)) -> anyhow::Result<Recording> {
    let placed = options.core.map(|core| crate::event::pin(core, options.cloud.is_some())).transpose()?;
    let conditions = Conditions::begin(placed.unwrap_or_default(), String::new(), String::new(), options.repeat);
    let cores = if options.core.is_some() { 1 } else { conditions.cores };
    let events = events::record(options, told)?;
    let orchestrations = orchestrations::record(options, told)?;
    let intercloud = intercloud::record(options, told)?;
    let graph = graphs::record(options, told)?;
    let load = conditions.load_before[0];
    let machine = format!("{}, {cores} of {} processors, {}, load {load}", conditions.cpu, conditions.cores, conditions.kernel);
    Ok(Recording { schema: SCHEMA.into(), machine, cores, events, orchestrations, intercloud, graph })
}
