//! Recordings: made now or read from a file, and as the models take them.

use std::path::{Path, PathBuf};

use bodkin_bench::{
    Counts, EventLoad, GraphLoad, RecordOptions, Stage, StageTimes,
    recording::{self, Processors, Recording, SCHEMA},
};
use bodkin_petri::deployment::{Dialogue, Durations, EventRun, OrchestrationRun, Sides};
use clap::Args;

use super::{file::read_text, graph};

/// Stages of the Orchestrator in the order of an answer's making.
const ORCHESTRATION_STAGES: [&str; 5] = ["receive", "parse", "execute", "authorise", "send"];
/// Those of them that are behind whatever other clouds are asked.
const STAGES_BEHIND: usize = 1;
/// What other clouds are asked for an orchestration, in this order, and what it is called: Rocha 2019, Figure 5.5.
const DIALOGUES: [(&str, &str); 2] = [("gsd_poll", "gsd"), ("icn_proposal", "icn")];

/// Where a recording comes from.
#[derive(Args, Clone, Debug)]
pub struct SourceOptions {
    /// A recording that was made before; without it loads are put on a cloud now
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["cloud", "loads", "seconds", "repeat", "orchestrations", "orchestration_consumers", "services", "intercloud", "consumers", "graph", "graph_keys", "graph_events", "graph_loads", "certificates", "core"])]
    recording: Option<PathBuf>,
    /// A graph file (TOML): events go through it in a cloud of its own, under the loads of --graph-load
    #[arg(long, value_name = "FILE.toml")]
    graph: Option<PathBuf>,
    /// Where the keys of its operators are
    #[arg(long, value_name = "DIR", requires = "graph")]
    graph_keys: Option<PathBuf>,
    /// What its supplier of TOPIC pushes, for one whose events the file does not tell, as JSON; of numbers and bytes any are made up
    #[arg(long = "graph-event", value_name = "TOPIC=TEXT", requires = "graph")]
    graph_events: Vec<String>,
    #[command(flatten)]
    record: RecordOptions,
}

/// What is to be recorded besides what the options of a recording say: it takes turns with that.
#[derive(Debug, Default)]
pub struct Further<'a> {
    /// Loads of events.
    pub events: &'a [EventLoad],
    /// Consumers that ask for orchestrations in their own cloud.
    pub orchestration_consumers: &'a [u32],
    /// Consumers whose orchestrations another cloud answers.
    pub consumers: &'a [u32],
    /// Loads of the graph.
    pub graph: &'a [GraphLoad],
}

impl SourceOptions {
    /// Why these cannot be recorded in a cloud that runs (decision 103); none: they can, or nothing of that is asked for.
    pub fn refusal(&self) -> Option<String> {
        let cloud = self.record.cloud.as_ref()?;
        let (option, why) = if self.graph.is_some() {
            (
                "--graph",
                "a graph is recorded in a cloud of its own for each load, with other workers and with nothing beside it on its shard",
            )
        } else if self.record.intercloud > 0 {
            (
                "--intercloud",
                "orchestrations that another cloud answers are recorded between two clouds and a relay of their own, whose steps and processor time are read on both sides",
            )
        } else {
            return None;
        };
        Some(format!(
            "{option} cannot be recorded in the cloud at {}: {why}; leave out --cloud on a machine like that cloud's, and calibrate its events and its own orchestrations with --cloud and without {option}",
            cloud.authority
        ))
    }

    /// The recording; what goes on is told on stderr while it is made.
    ///
    /// # Errors
    /// The file is none, or the cloud does not take the loads.
    pub fn recording(&self) -> anyhow::Result<Recording> {
        self.recording_with(&Further::default())
    }

    /// The same with further loads.
    ///
    /// # Errors
    /// As of [`Self::recording`].
    pub fn recording_with(&self, further: &Further<'_>) -> anyhow::Result<Recording> {
        if let Some(path) = &self.recording {
            return read(path).map_err(anyhow::Error::msg);
        }
        let mut record = self.record.clone();
        record.loads.extend_from_slice(further.events);
        record.orchestration_consumers = each_once(&record.orchestration_consumers, further.orchestration_consumers);
        record.consumers.extend_from_slice(further.consumers);
        record.graph_loads.extend_from_slice(further.graph);
        if let Some(path) = &self.graph {
            record.graph_plan = Some(graph::plan(path, self.graph_keys.clone(), &self.graph_events).map_err(anyhow::Error::msg)?);
        }
        recording::record(&record, &mut |what| eprintln!("bodkin: {what}"))
    }
}

fn read(path: &Path) -> Result<Recording, String> {
    let told = |reason: String| format!("{}: {reason}", path.display());
    let recording: Recording = serde_json::from_str(&read_text(path)?).map_err(|error| told(error.to_string()))?;
    if recording.schema == SCHEMA { Ok(recording) } else { Err(told(format!("its schema is {}; expected {SCHEMA}", recording.schema))) }
}

/// The runs with events.
pub fn event_runs(recording: &Recording) -> Vec<EventRun> {
    recording.events.iter().map(|run| event_run(run, recording.cores)).collect()
}

fn event_run(run: &recording::EventRun, cores: usize) -> EventRun {
    let us = |ns: u64| ns as f64 / 1e3;
    let stage = |name: &str| run.stages.get("eventhandler").and_then(|stages| stages.get(name)).map(durations).unwrap_or_default();
    EventRun {
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        publishers: run.publishers.into(),
        subscribers: u32::try_from(run.subscribers).unwrap_or(u32::MAX),
        rate_per_s: run.rate_per_s,
        events: run.events,
        elapsed_us: run.seconds * 1e6,
        latency: latencies(&run.latency_ns),
        answered: latencies(&run.answered_ns),
        receive: stage("receive"),
        parse: stage("parse"),
        authorise: stage("authorise"),
        execute: stage("execute"),
        send: stage("send"),
        publisher_us: us(run.publisher_processor_ns),
        publisher_sleeps: run.publisher_sleeps,
        subscriber_us: us(run.subscriber_processor_ns),
        subscriber_sleeps: run.subscriber_sleeps,
        subscriber_queued_us: run.subscriber_queued_ns.map(us),
        stream_reads: run.stream_reads,
        broker_us: run.server_processor_ns.map(us),
    }
}

/// Numbers of consumers, each once: what is calibrated from and what is predicted may be the same.
fn each_once(first: &[u32], further: &[u32]) -> Vec<u32> {
    let mut numbers = [first, further].concat();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The runs with orchestrations that the own cloud answered.
pub fn orchestration_runs(recording: &Recording) -> Vec<OrchestrationRun> {
    let run = |run: &recording::OrchestrationRun| {
        let stage = |name: &&str| {
            let times = run.stages.get("orchestrator").and_then(|stages| stages.get(*name));
            ((*name).to_owned(), times.map(durations).unwrap_or_default())
        };
        let latency = latencies(&run.latency_ns);
        OrchestrationRun {
            cores: u32::try_from(recording.cores).unwrap_or(u32::MAX),
            others: run.processors.as_ref().map_or(0.0, Processors::others),
            consumers: run.consumers,
            orchestrations: if run.orchestrations == 0 { latency.count() } else { run.orchestrations },
            latency,
            before: ORCHESTRATION_STAGES.iter().map(stage).collect(),
            dialogues: Vec::new(),
            after: Vec::new(),
            processor_us: run.processor_ns.map(|ns| ns as f64 / 1e3),
            sides: run.processors.as_ref().map(sides),
        }
    };
    recording.orchestrations.iter().map(run).collect()
}

/// The runs with orchestrations that another cloud answered.
pub fn intercloud_runs(recording: &Recording) -> Vec<OrchestrationRun> {
    recording.intercloud.iter().map(|run| intercloud_run(run, recording.cores)).collect()
}

fn intercloud_run(run: &recording::InterCloudRun, cores: usize) -> OrchestrationRun {
    let of =
        |times: &StageTimes, who: &str, what: &str| times.get(who).and_then(|times| times.get(what)).map(durations).unwrap_or_default();
    let stage = |name: &&str| ((*name).to_owned(), of(&run.stages, "orchestrator", name));
    let (before, after) = ORCHESTRATION_STAGES.split_at(ORCHESTRATION_STAGES.len() - STAGES_BEHIND);
    let dialogue = |(subject, name): (&str, &str)| Dialogue {
        name: name.to_owned(),
        call: of(&run.asking, subject, "call"),
        answer: of(&run.asking, subject, "answer"),
        decide: of(&run.asked, subject, "decide"),
    };
    OrchestrationRun {
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        others: run.processors.as_ref().map_or(0.0, Processors::others),
        consumers: run.consumers,
        orchestrations: run.orchestrations,
        latency: latencies(&run.latency_ns),
        before: before.iter().map(stage).collect(),
        dialogues: DIALOGUES.map(dialogue).into(),
        after: after.iter().map(stage).collect(),
        processor_us: run.processor_ns.map(|ns| ns as f64 / 1e3),
        sides: run.processors.as_ref().map(sides),
    }
}

fn sides(processors: &Processors) -> Sides {
    let [elapsed_us, consumers_us, clouds_us] =
        [processors.elapsed_ns, processors.consumers_ns, processors.clouds_ns].map(|ns| ns as f64 / 1e3);
    Sides { elapsed_us, consumers_us, clouds_us }
}

/// A distribution of latencies as a model takes it.
pub fn latencies(counts: &Counts) -> Durations {
    Durations::of_counts_ns(&counts.0)
}

fn durations(stage: &Stage) -> Durations {
    Durations::of_buckets_ns(&stage.buckets, stage.sum_ns)
}
