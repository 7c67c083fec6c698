//! Any graph under load, as it is recorded for a model: suppliers push its topics at a part of what it declares, consumers hear its results, and a run tells what each operator and each thread did.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::consumer::ConsumeOrder;
use super::streams::{Arrivals, Streams};
use super::supplier::SupplyOrder;
use super::threads::on_processors;
use crate::client::Client;
use crate::cloud::{Cloud, Directory};
use crate::draws::Draws;
use crate::event::payload::monotonic_ns;
use crate::event::role::{RoleOrder, Told};
use crate::event::side::Side;
use crate::options::{GraphLoad, ServerOptions};
use crate::realtime::run::sleep_until;
use crate::realtime::session::utc_at_zero_ns;
use crate::realtime::system::{self, SYSTEM};
use crate::realtime::window::Window;
use crate::recording::{GraphRun, OperatorTimes, OutputTimes};
use crate::request;
use crate::statistics::Counts;

/// Longest event.
const EVENT_BYTES_MAX: u32 = 1 << 18;
/// Longest wait for a side to be connected.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest time that a side may take beyond its window.
const REPORT_WAIT_MAX: Duration = Duration::from_secs(60);
/// Between the word that both sides are there and the start.
const BEFORE_START_NS: u64 = 200_000_000;
/// Time in front of the measured one.
const WARM_UP_NS: u64 = 500_000_000;

/// A graph, as whoever puts it under load has to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphPlan {
    /// Its name.
    pub name: String,
    /// Its file, of which [`Self::text`] says how many workers it has.
    pub file: String,
    /// Whether more urgent levels stop the others.
    pub is_preemptive: bool,
    /// Workers that the file has.
    pub workers: u32,
    /// Where the keys of its operators are.
    pub keys: Option<PathBuf>,
    /// Its suppliers.
    pub suppliers: Vec<PlannedSupplier>,
    /// Topics of its outputs, in the order of the file.
    pub outputs: Vec<String>,
}

/// A supplier of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedSupplier {
    /// Its topic.
    pub topic: String,
    /// Between two events, as it is declared.
    pub period_ns: u64,
    /// Events that it takes, as they are written.
    pub texts: Vec<String>,
}

impl GraphPlan {
    /// The file for so many workers: `cores` of the table `[graph]`.
    pub fn text(&self, workers: u32) -> String {
        let (mut text, mut is_head) = (String::new(), false);
        for line in self.file.lines() {
            let begun = line.trim_start();
            if begun.starts_with('[') {
                is_head = begun.starts_with("[graph]");
            }
            let is_cores = is_head && begun.strip_prefix("cores").is_some_and(|rest| rest.trim_start().starts_with('='));
            if !is_cores {
                text.push_str(line);
                text.push('\n');
            }
            if begun.starts_with("[graph]") {
                text.push_str(&format!("cores = {workers}\n"));
            }
        }
        text
    }

    fn streams(&self, percent: u32, run: u32) -> Streams {
        let arrivals = Arrivals { are_together: false, jitter_ns: 0, seed: u64::from(run) + 1 };
        let (mut streams, mut draws) = (Streams::new(arrivals, None), Draws::new(arrivals.seed));
        for supplier in &self.suppliers {
            let period_ns = (supplier.period_ns * 100 / u64::from(percent)).max(1);
            streams.supply(&[(supplier.topic.clone(), 0)], period_ns, arrivals, &mut draws);
        }
        for (described, supplier) in streams.suppliers.iter_mut().zip(&self.suppliers) {
            described.texts.clone_from(&supplier.texts);
        }
        // Each topic is told by itself.
        let consumer = |(level, topic): (usize, &String)| super::streams::Consumer { topic: topic.clone(), level, period_ns: u64::MAX };
        streams.consumers = self.outputs.iter().enumerate().map(consumer).collect();
        streams
    }
}

/// A cloud with a graph, for one load.
pub struct GraphRig<'p> {
    plan: &'p GraphPlan,
    load: GraphLoad,
    workers: u32,
    cloud: Cloud,
    runs: u32,
}

/// `/api/v1/graphs`, as far as it is asked.
#[derive(Deserialize)]
struct Graphs {
    data: Vec<Deployed>,
}

#[derive(Deserialize)]
struct Deployed {
    name: String,
    suspended: Option<String>,
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    name: String,
    rounds: u64,
    busy_us: f64,
    longest_us: f64,
}

impl<'p> GraphRig<'p> {
    /// Starts a cloud.
    ///
    /// # Errors
    /// It does not start, or refuses the graph.
    pub fn new(plan: &'p GraphPlan, load: GraphLoad) -> anyhow::Result<Self> {
        let workers = load.workers.unwrap_or(plan.workers);
        let directory = Directory::new(None)?;
        let graph = directory.file("graph.toml", &plan.text(workers))?;
        let scheduling = if plan.is_preemptive { "fifo" } else { "default" };
        let keys = plan.keys.as_ref().map_or(String::new(), |keys| format!("graph_keys = {keys:?}\n"));
        let configuration = format!(
            "zmtp_system = \"{SYSTEM}\"\nevent_log = false\nevent_bytes_max = {EVENT_BYTES_MAX}\nscheduling = \"{scheduling}\"\ngraphs = [{graph:?}]\n{keys}"
        );
        let arguments = vec!["--config".into(), directory.file("bodkin.toml", &configuration)?];
        let cloud = Cloud::start(directory, &ServerOptions { arguments, ..ServerOptions::default() })?;
        system::register(&cloud.service_registry)?;
        Ok(Self { plan, load, workers, cloud, runs: 0 })
    }

    /// One run.
    ///
    /// # Errors
    /// A side fails, or the graph stands still.
    pub fn run(&mut self, seconds: u32) -> anyhow::Result<GraphRun> {
        let streams = self.plan.streams(self.load.percent, self.runs);
        self.runs += 1;
        let broker = self.cloud.zmtp.context("the broker has no ZMTP port")?;
        let utc_at_zero_ns = utc_at_zero_ns();
        let consume = ConsumeOrder { broker: Some(broker), streams: streams.clone(), utc_at_zero_ns };
        let mut consumers = Side::start("consuming side", &RoleOrder::Consumers(consume))?;
        let Told::Subscribed = consumers.hear(CONNECT_WAIT_MAX)? else { bail!("the consuming side told something else than its start") };
        let supply = SupplyOrder { broker: Some(broker), streams, utc_at_zero_ns };
        let mut suppliers = Side::start("supplying side", &RoleOrder::Suppliers(supply))?;
        let Told::Connected = suppliers.hear(CONNECT_WAIT_MAX)? else { bail!("the supplying side told something else than its start") };
        let start_ns = monotonic_ns() + BEFORE_START_NS;
        let measured_from_ns = start_ns + WARM_UP_NS;
        let window = Window { start_ns, measured_from_ns, end_ns: measured_from_ns + u64::from(seconds) * 1_000_000_000, crash_ns: None };
        consumers.give(&window)?;
        suppliers.give(&window)?;
        let pid = self.cloud.pid().context("an own server has a process")?;
        sleep_until(window.measured_from_ns);
        let (threads_before, nodes_before) = (on_processors(pid)?, self.nodes()?);
        sleep_until(window.end_ns);
        let (threads, nodes) = (on_processors(pid)?, self.nodes()?);
        let Told::Supplied(supplied) = suppliers.hear(REPORT_WAIT_MAX)? else {
            bail!("the supplying side told something else than its report")
        };
        let Told::Consumed(consumed) = consumers.hear(REPORT_WAIT_MAX)? else {
            bail!("the consuming side told something else than its report")
        };
        let since = |names: &dyn Fn(&str) -> bool| worked_ns(&threads, names).saturating_sub(worked_ns(&threads_before, names));
        let operator = |(node, before): (Node, &Node)| OperatorTimes {
            rounds: node.rounds.saturating_sub(before.rounds),
            busy_us: node.busy_us - before.busy_us,
            longest_us: node.longest_us,
            name: node.name,
        };
        let latency = |at: usize| consumed.levels.get(at).map_or_else(Counts::default, |level| level.latency.clone());
        let output = |(at, topic): (usize, &String)| OutputTimes { topic: topic.clone(), latency_ns: latency(at) };
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        Ok(GraphRun {
            percent: self.load.percent,
            workers: self.workers,
            seconds: f64::from(seconds),
            sent: supplied.sent,
            operators: nodes.into_iter().zip(&nodes_before).map(operator).collect(),
            outputs: self.plan.outputs.iter().enumerate().map(output).collect(),
            shard_ns: since(&|name| name.starts_with("shard-")),
            workers_ns: since(&|name| name.starts_with("operator-")),
            suppliers_ns: ns(supplied.cpu_s),
            consumers_ns: ns(consumed.cpu_s),
        })
    }

    /// What the operators have done so far.
    fn nodes(&self) -> anyhow::Result<Vec<Node>> {
        let monitor = self.cloud.api()?;
        let graphs: Graphs = Client::connect(monitor)?.ask(&request::get(monitor, "/api/v1/graphs", "application/json"), 200)?;
        let of_plan = graphs.data.into_iter().find(|graph| graph.name == self.plan.name);
        let graph = of_plan.with_context(|| format!("graph {} does not run", self.plan.name))?;
        match graph.suspended {
            Some(why) => bail!("graph {} stands still: {why}", self.plan.name),
            None => Ok(graph.nodes),
        }
    }

    /// Ends the cloud.
    ///
    /// # Errors
    /// It does not end.
    pub fn close(self) -> anyhow::Result<()> {
        self.cloud.close().map(drop)
    }
}

fn worked_ns(threads: &BTreeMap<String, u64>, names: &dyn Fn(&str) -> bool) -> u64 {
    threads.iter().filter(|(name, _)| names(name)).map(|(_, ns)| ns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_for_other_workers() {
        let plan = |file: &str| GraphPlan {
            name: "g".into(),
            file: file.into(),
            is_preemptive: false,
            workers: 1,
            keys: None,
            suppliers: Vec::new(),
            outputs: Vec::new(),
        };
        let of_two = "[graph]\ncores = 2\nname = \"g\"\n\n[[operator]]\ncores = 7\n";
        assert_eq!(plan("[graph]\nname = \"g\"\ncores   = 4 # as here\n\n[[operator]]\ncores = 7\n").text(2), of_two);
        assert_eq!(plan("[graph]\nname = \"g\"\n\n[[operator]]\ncores = 7\n").text(2), of_two);
    }

    #[test]
    fn suppliers_push_at_a_part_of_their_rate_and_each_topic_is_told_by_itself() {
        let supplier = PlannedSupplier { topic: "in".into(), period_ns: 1_000_000, texts: vec!["1".into(), "2".into()] };
        let plan = GraphPlan {
            name: "g".into(),
            file: String::new(),
            is_preemptive: true,
            workers: 1,
            keys: None,
            suppliers: vec![supplier],
            outputs: ["a", "b", "c", "d"].map(str::to_owned).into(),
        };
        let streams = plan.streams(50, 0);
        assert_eq!((streams.suppliers[0].period_ns, streams.suppliers[0].texts.len(), streams.timers.len()), (2_000_000, 2, 1));
        assert_eq!((streams.levels(), streams.subscriptions()), (4, vec![plan.outputs.clone()]));
        assert_ne!(streams.timers, plan.streams(50, 1).timers, "a run has phases of its own");
    }
}
