//! `/api/v1/graphs`: which event-processing graphs run, and what became of their events; they are deployed, replaced and removed here while the cloud runs.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_broker::graph::{Graph, OperatorId, OperatorSpec, Source};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::{Api, list, not_stored};
use crate::{
    answer::Answer,
    graph::{DeployedGraph, EdgeLink, GraphCounts, GraphError, LinkState, OperatorCounts, parse},
    request::{Method, Request},
    shared,
    topics::Declarer,
};

/// A graph that is to run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphForm {
    /// Its file, as text.
    file: String,
}

/// A graph as it is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GraphView<'g> {
    name: &'g str,
    declared_by: Declarer,
    operators: usize,
    nodes: Vec<NodeView<'g>>,
    suppliers: Vec<&'g str>,
    outputs: Vec<&'g str>,
    /// What comes from other edges.
    links: Vec<LinkView<'g>>,
    /// Why it stands still; `null`: it runs.
    suspended: Option<String>,
    taken: u64,
    refused: u64,
    rounds: u64,
    failed: u64,
    shed: u64,
    published: u64,
    marked: u64,
    late: u64,
    lost: u64,
}

/// A topic that comes from another edge.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkView<'g> {
    edge: &'g str,
    topic: &'g str,
    /// Why nothing comes from there; `null`: it is subscribed to.
    down: Option<String>,
    /// Events in a row that may be missing; `null`: nothing is kept for this edge.
    loss_tolerance: Option<u32>,
    received: u64,
    lost: u64,
    exceeded: u64,
    refused: u64,
}

/// An operator as it is told, with what it is joined to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeView<'g> {
    name: &'g str,
    level: u8,
    inputs: Vec<&'g str>,
    outputs: Vec<&'g str>,
    rounds: u64,
    failed: u64,
    shed: u64,
    marked: u64,
    /// What a round costs at the most, as the graph says, in microseconds.
    cost_us: f64,
    /// What its rounds have lasted, in microseconds, and the longest of them.
    busy_us: f64,
    longest_us: f64,
}

impl Api {
    /// Answers a request at `graphs`; that the method fits was seen before.
    pub(super) async fn graphs(&self, request: &Request) -> Answer {
        match request.method {
            Method::Post => self.deploy_graph(request).await,
            Method::Delete => self.remove_graph(request).await,
            _ => self.list_graphs(),
        }
    }

    fn list_graphs(&self) -> Answer {
        let graphs = self.graphs.table().all();
        let data: Vec<GraphView<'_>> = graphs.values().map(|graph| view(graph)).collect();
        list(&data, data.len() as u64)
    }

    /// Checks a graph, has it run, in the place of the one of its name, and keeps its file.
    async fn deploy_graph(&self, request: &Request) -> Answer {
        if let Some(refusal) = shared::refuse_here(&self.store, &self.realtime_at, "a graph") {
            return refusal;
        }
        let form: GraphForm = match serde_json::from_slice(&request.body) {
            Ok(form) => form,
            Err(error) => {
                return Answer::problem(400, &format!("Expected a JSON object with the graph's file as a text: {error}."));
            }
        };
        let file = match parse(&form.file) {
            Ok(file) => file,
            Err(mistakes) => {
                let told = mistakes.iter().map(|mistake| {
                    let line = form.file.bytes().take(mistake.at.start).filter(|byte| *byte == b'\n').count() + 1;
                    json!({"line": line, "what": mistake.what})
                });
                let members = Map::from_iter([("mistakes".to_owned(), told.collect())]);
                return Answer::problem_with(400, "The file has mistakes.", members);
            }
        };
        let name = file.graph.name.clone();
        let declared = match self.graphs.declared(file) {
            Ok(declared) => declared,
            Err(error) => return not_deployed(&error),
        };
        // One after the other: what fits is judged beside those that are there.
        let _turn = self.graphs.turn().await;
        if let Some(refusal) = self.configured(&name) {
            return refusal;
        }
        if let Err(error) = self.graphs.check(&declared) {
            return not_deployed(&error);
        }
        let graph = match self.graphs.deploy(declared, Declarer::Operator).await {
            Ok(graph) => graph,
            Err(why) => return Answer::problem(503, &format!("The graph does not run: {why}.")),
        };
        let kept = name.clone();
        match self.store.write(move |draft| draft.deploy_graph(&kept, &form.file), |_, ()| ()).await {
            Ok(()) => Answer::json(201, &view(&graph)),
            Err(error) => {
                // One that was in its place runs again behind the next start.
                self.graphs.withdraw(&name).await;
                not_stored(&error)
            }
        }
    }

    /// Stops a graph: events of its suppliers' topics go to their subscribers only.
    async fn remove_graph(&self, request: &Request) -> Answer {
        let name = request.parameter("name").unwrap_or_default().to_owned();
        let _turn = self.graphs.turn().await;
        if let Some(refusal) = self.configured(&name) {
            return refusal;
        }
        let forgotten = name.clone();
        match self.store.write(move |draft| draft.forget_graph(&forgotten), |_, was_kept| was_kept).await {
            Err(error) => not_stored(&error),
            Ok(false) => Answer::problem(404, &format!("There is no graph of the name {name}.")),
            Ok(true) => {
                self.graphs.withdraw(&name).await;
                Answer::empty(200)
            }
        }
    }

    /// The refusal to change what the configuration declares.
    fn configured(&self, name: &str) -> Option<Answer> {
        let graph = self.graphs.table().get(name).filter(|graph| graph.declarer == Declarer::Configuration)?;
        let told = format!("Graph {} is named in the configuration: change its file there, and start again.", graph.file.graph.name);
        Some(Answer::problem(409, &told))
    }
}

fn view(graph: &DeployedGraph) -> GraphView<'_> {
    let DeployedGraph { declarer, file, counts, links } = graph;
    let GraphCounts { taken, refused, rounds, failed, shed, published, marked, late, lost, .. } = &**counts;
    GraphView {
        name: &file.graph.name,
        declared_by: *declarer,
        operators: file.graph.operators().len(),
        nodes: nodes(&file.graph, counts),
        suppliers: file.graph.suppliers().iter().map(|supplier| supplier.topic.as_str()).collect(),
        outputs: file.graph.outputs().iter().map(|output| output.topic.as_str()).collect(),
        links: links.iter().flat_map(|link| self::links(link)).collect(),
        suspended: counts.suspension().map(ToString::to_string),
        taken: taken.load(Relaxed),
        refused: refused.load(Relaxed),
        rounds: rounds.load(Relaxed),
        failed: failed.load(Relaxed),
        shed: shed.load(Relaxed),
        published: published.load(Relaxed),
        marked: marked.load(Relaxed),
        late: late.load(Relaxed),
        lost: lost.load(Relaxed),
    }
}

fn links(link: &EdgeLink) -> impl Iterator<Item = LinkView<'_>> {
    let down = match link.state() {
        LinkState::Up => None,
        LinkState::Down(why) => Some(why),
    };
    link.topics.iter().map(move |topic| LinkView {
        edge: &link.edge,
        topic: &topic.topic,
        down: down.clone(),
        loss_tolerance: topic.loss_tolerance,
        received: topic.received.load(Relaxed),
        lost: topic.lost.load(Relaxed),
        exceeded: topic.exceeded.load(Relaxed),
        refused: topic.refused.load(Relaxed),
    })
}

/// Operators in the order of the file.
fn nodes<'g>(graph: &'g Graph, counts: &GraphCounts) -> Vec<NodeView<'g>> {
    let source = |source| match source {
        Source::Supplier(id) => graph.suppliers()[id.index()].topic.as_str(),
        Source::Operator(id) => graph.operator(id).name.as_str(),
    };
    let node = |(index, operator)| {
        let (id, operator): (OperatorId, &OperatorSpec) = (OperatorId::of(index), operator);
        let OperatorCounts { rounds, failed, shed, marked, busy_ns, longest_ns } = counts.operator(id);
        let us = |ns: u64| ns as f64 / 1e3;
        NodeView {
            name: &operator.name,
            level: graph.level(id).get(),
            inputs: operator.inputs.iter().map(|edge| source(edge.from)).collect(),
            outputs: graph.outputs().iter().filter(|output| output.from == id).map(|output| output.topic.as_str()).collect(),
            rounds: rounds.load(Relaxed),
            failed: failed.load(Relaxed),
            shed: shed.load(Relaxed),
            marked: marked.load(Relaxed),
            cost_us: us(operator.cost.get().unsigned_abs()),
            busy_us: us(busy_ns.load(Relaxed)),
            longest_us: us(longest_ns.load(Relaxed)),
        }
    };
    graph.operators().iter().enumerate().map(node).collect()
}

fn not_deployed(error: &GraphError) -> Answer {
    Answer::problem(409, &format!("{error}."))
}
