//! Recordings: made now or read from a file, and as the models take them.

use std::path::{Path, PathBuf};

use bodkin_bench::{
    Counts, EventLoad, GraphLoad, RecordOptions, Stage, StageTimes,
    recording::{self, Recording, SCHEMA},
};
use bodkin_petri::deployment::{Dialogue, Durations, EventRun, InterCloudRun};
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
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["cloud", "loads", "seconds", "repeat", "orchestrations", "services", "intercloud", "consumers", "graph", "graph_keys", "graph_events", "graph_loads", "certificates", "core"])]
    recording: Option<PathBuf>,
    /// A graph file (TOML): events go through it in a cloud of its own, under the loads of --graph-load
    #[arg(long, value_name = "FILE.toml", conflicts_with = "cloud")]
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
    /// Consumers whose orchestrations another cloud answers.
    pub consumers: &'a [u32],
    /// Loads of the graph.
    pub graph: &'a [GraphLoad],
}

impl SourceOptions {
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

/// The stages and the response times of all orchestrations; none where none were recorded.
pub fn orchestrations(recording: &Recording) -> Option<(Vec<(String, Durations)>, Durations)> {
    let mut stages: Vec<(String, Durations)> = ORCHESTRATION_STAGES.map(|name| (name.to_owned(), Durations::default())).into();
    let mut latency = Durations::default();
    for run in &recording.orchestrations {
        latency.add(&latencies(&run.latency_ns));
        for (name, sum) in &mut stages {
            if let Some(stage) = run.stages.get("orchestrator").and_then(|stages| stages.get(name)) {
                sum.add(&durations(stage));
            }
        }
    }
    (latency.count() > 0).then_some((stages, latency))
}

/// The runs with orchestrations that another cloud answered.
pub fn intercloud_runs(recording: &Recording) -> Vec<InterCloudRun> {
    recording.intercloud.iter().map(|run| intercloud_run(run, recording.cores)).collect()
}

fn intercloud_run(run: &recording::InterCloudRun, cores: usize) -> InterCloudRun {
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
    InterCloudRun {
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        consumers: run.consumers,
        orchestrations: run.orchestrations,
        latency: latencies(&run.latency_ns),
        before: before.iter().map(stage).collect(),
        dialogues: DIALOGUES.map(dialogue).into(),
        after: after.iter().map(stage).collect(),
        processor_us: run.processor_ns.map(|ns| ns as f64 / 1e3),
    }
}

/// A distribution of latencies as a model takes it.
pub fn latencies(counts: &Counts) -> Durations {
    Durations::of_counts_ns(&counts.0)
}

fn durations(stage: &Stage) -> Durations {
    Durations::of_buckets_ns(&stage.buckets, stage.sum_ns)
}
