//! `/api/v1/graphs`: which event-processing graphs run, and what became of their events; they are deployed, replaced and removed here while the cloud runs.

mod moves;

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use bodkin_broker::graph::{Graph, OperatorId, OperatorSpec};
use bodkin_operators::file::{Fetched, Mistake};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::{Api, list, not_stored};
use crate::{
    answer::Answer,
    graph::{
        DeployError, DeployedGraph, EdgeLink, Gone, GraphCounts, GraphError, Inheritance, Lateness, LinkState, OperatorCounts,
        note_at_work, parse,
    },
    request::{Method, Request},
    shared,
    topics::Declarer,
};

/// How long an edge that has a new version waits until that is at work before it says so.
const AT_WORK_MAX: Duration = Duration::from_secs(1);
/// How long a change waits until the Backup has what the one before has made.
const SETTLED_MAX: Duration = Duration::from_secs(3);
const SETTLED_LOOK: Duration = Duration::from_millis(5);

/// A graph that is to run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphForm {
    /// Its file, as text.
    file: String,
    /// Even if an operator that is between two edges is gone by that.
    #[serde(default)]
    force: bool,
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
    /// Of its file: hosts with the same one run the same version.
    digest: String,
    /// Where the operators of a graph over several edges run.
    placement: Vec<PlaceView<'g>>,
    /// An operator that is between two hosts.
    moving: Option<String>,
    /// Where it took the place of another one: operators that go on with the states of that, and those that begin anew.
    states_kept: Vec<String>,
    states_anew: Vec<String>,
    /// Why it stands still; `null`: it runs.
    suspended: Option<String>,
    taken: u64,
    refused: u64,
    excess: u64,
    replaced: u64,
    rounds: u64,
    failed: u64,
    restarts: u64,
    shed: u64,
    published: u64,
    marked: u64,
    late: u64,
    lost: u64,
}

/// Where an operator runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlaceView<'g> {
    operator: &'g str,
    edge: &'g str,
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
    restarts: u64,
    /// What a round costs at the most, as the graph says, in microseconds.
    cost_us: f64,
    /// What its rounds have lasted, in microseconds, and the longest of them.
    busy_us: f64,
    longest_us: f64,
}

impl Api {
    /// Answers a request at `graphs`; that the method fits was seen before.
    pub(super) async fn graphs(&self, request: &Request) -> Answer {
        if let Err(refusal) = self.graphs_are_there().await {
            return refusal;
        }
        match request.method {
            Method::Post => self.deploy_graph(request).await,
            Method::Delete => self.remove_graph(request).await,
            _ => self.list_graphs(),
        }
    }

    /// A node that has just led for the first time does not know its graphs yet: what it said of them would be wrong, and what it did would be undone.
    async fn graphs_are_there(&self) -> Result<(), Answer> {
        let refusal = || Answer::problem(503, "This node has begun to lead, and its graphs are not there yet: ask again.");
        if self.graphs.has_begun().await { Ok(()) } else { Err(refusal()) }
    }

    /// Waits, in a pair, until the Backup has a checkpoint of the version that runs, so that a change leaves it no version but that and the next one.
    async fn is_settled(&self, graph: &str) -> Result<(), Answer> {
        if !self.graphs.has_pair() {
            return Ok(());
        }
        let until = tokio::time::Instant::now() + SETTLED_MAX;
        while self.graphs.table().get(graph).is_some() {
            let asked = graph.to_owned();
            let moves = self.store.read(move |draft| draft.graph_moves(&asked)).await.map_err(|error| not_stored(&error))?;
            if moves.is_settled() {
                break;
            }
            if tokio::time::Instant::now() >= until {
                let told = format!(
                    "The Backup does not have the version of graph {graph} that runs yet, and could not go on from it: ask again when it does."
                );
                return Err(Answer::problem(503, &told));
            }
            tokio::time::sleep(SETTLED_LOOK).await;
        }
        Ok(())
    }

    fn list_graphs(&self) -> Answer {
        let graphs = self.graphs.table().all();
        let data: Vec<GraphView<'_>> = graphs.values().map(|graph| self.graph_view(graph)).collect();
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
            Err(mistakes) => return with_mistakes(400, "The file has mistakes.", &form.file, &mistakes),
        };
        let name = file.graph.name.clone();
        let declared = match self.graphs.declared(file, Lateness::Refused) {
            Ok(declared) => declared,
            Err(error) => return not_deployed(&error),
        };
        // One after the other: what fits is judged beside those that are there.
        let _turn = self.graphs.turn().await;
        if let Some(refusal) = self.configured(&name).or_else(|| self.between_edges(&name, form.force)) {
            return refusal;
        }
        self.graphs.let_go(&name, None);
        if let Err(error) = self.graphs.check(&declared, Lateness::Refused) {
            return not_deployed(&error);
        }
        if !form.force
            && let Err(refusal) = self.is_settled(&name).await
        {
            return refusal;
        }
        // In front of its first checkpoint, so that a Backup with that has its file.
        let before = self.graphs.table().get(&name);
        let (kept, file) = (name.clone(), form.file);
        if let Err(error) = self.store.write(move |draft| draft.deploy_graph(&kept, &file), |_, ()| ()).await {
            return not_stored(&error);
        }
        let (graph, at_work) = match self.graphs.deploy(declared, Declarer::Operator, None).await {
            Ok(deployed) => deployed,
            Err(why) => return self.not_deployed_after_all(name, before.as_deref(), &why).await,
        };
        self.graphs.moves().note_gone(&name, None);
        let noted = tokio::spawn(note_at_work(self.store.clone(), graph.clone(), at_work));
        // Who is told that it runs finds that the Backup goes on with it; where that takes longer, what it needs is kept until then.
        let _ = tokio::time::timeout(AT_WORK_MAX, noted).await;
        Answer::json(201, &self.graph_view(&graph))
    }

    /// A graph that is kept does not run: what was kept in its place is again.
    async fn not_deployed_after_all(&self, name: String, before: Option<&DeployedGraph>, why: &DeployError) -> Answer {
        let before = before.map(|before| before.file.text.clone());
        let put_back = self.store.write(
            move |draft| match &before {
                Some(file) => draft.deploy_graph(&name, file).and_then(|()| draft.is_at_work(&name, file)),
                None => draft.forget_graph(&name).map(drop),
            },
            |_, ()| (),
        );
        match put_back.await {
            Ok(()) => Answer::problem(503, &format!("The graph does not run: {why}.")),
            Err(error) => not_stored(&error),
        }
    }

    /// Stops a graph: events of its suppliers' topics go to their subscribers only.
    async fn remove_graph(&self, request: &Request) -> Answer {
        let name = request.parameter("name").unwrap_or_default().to_owned();
        let is_forced = request.parameter("force").is_some_and(|force| force == "true");
        let _turn = self.graphs.turn().await;
        if let Some(refusal) = self.configured(&name).or_else(|| self.between_edges(&name, is_forced)) {
            return refusal;
        }
        self.graphs.let_go(&name, None);
        let forgotten = name.clone();
        match self.store.write(move |draft| draft.forget_graph(&forgotten), |_, was_kept| was_kept).await {
            Err(error) => not_stored(&error),
            Ok(false) => Answer::problem(404, &format!("There is no graph of the name {name}.")),
            Ok(true) => {
                self.graphs.moves().note_gone(&name, None);
                self.graphs.withdraw(&name).await;
                Answer::empty(200)
            }
        }
    }

    /// The refusal to replace or remove a graph of which an operator is between two edges: what goes with it would be gone.
    fn between_edges(&self, name: &str, is_forced: bool) -> Option<Answer> {
        let moving = self.moving(name).filter(|_| !is_forced)?;
        let told = format!(
            "Of graph {name} an operator is between two edges ({moving}), and what goes with it would be lost: bring the move to its end, by the same `bodkin graph move` where the operator ran, or say --force."
        );
        Some(Answer::problem(409, &told))
    }

    /// The refusal to change what the configuration declares.
    fn configured(&self, name: &str) -> Option<Answer> {
        let graph = self.graphs.table().get(name).filter(|graph| graph.declarer == Declarer::Configuration)?;
        let told = format!("Graph {} is named in the configuration: change its file there, and start again.", graph.file.graph.name);
        Some(Answer::problem(409, &told))
    }
}

impl Api {
    fn graph_view<'g>(&self, graph: &'g DeployedGraph) -> GraphView<'g> {
        let DeployedGraph { declarer, file, counts, links, states } = graph;
        let Inheritance { kept, anew } = states.clone().unwrap_or_default();
        let GraphCounts { taken, refused, excess, replaced, rounds, failed, shed, published, marked, late, lost, .. } = &**counts;
        GraphView {
            name: &file.graph.name,
            declared_by: *declarer,
            operators: file.graph.operators().len(),
            nodes: nodes(&file.graph, counts),
            suppliers: file.graph.suppliers().iter().map(|supplier| supplier.topic.as_str()).collect(),
            outputs: file.graph.outputs().iter().map(|output| output.topic.as_str()).collect(),
            links: links.iter().flat_map(|link| self::links(link)).collect(),
            states_kept: kept,
            states_anew: anew,
            digest: format!("{:016x}", file.digest),
            placement: placement(&file.fetched),
            moving: self.moving(&file.graph.name),
            suspended: counts.suspension().map(ToString::to_string),
            taken: taken.load(Relaxed),
            refused: refused.load(Relaxed),
            excess: excess.load(Relaxed),
            replaced: replaced.load(Relaxed),
            rounds: rounds.load(Relaxed),
            failed: failed.load(Relaxed),
            restarts: counts.restarts(),
            shed: shed.load(Relaxed),
            published: published.load(Relaxed),
            marked: marked.load(Relaxed),
            late: late.load(Relaxed),
            lost: lost.load(Relaxed),
        }
    }

    /// What is on its way of a graph, in words.
    fn moving(&self, graph: &str) -> Option<String> {
        let moves = self.graphs.moves();
        let gone = moves.gone(graph).map(|Gone { operator, to }| format!("{operator} has gone to {to}, which has not taken it yet"));
        gone.or_else(|| {
            let prepared = moves.prepared(graph)?;
            Some(format!("prepared for {} on {}", prepared.operator, prepared.to))
        })
    }
}

/// Where operators of the whole graph run.
fn placement(fetched: &Fetched) -> Vec<PlaceView<'_>> {
    fetched.placed.iter().map(|(operator, edge)| PlaceView { operator, edge: &fetched.edges[edge.index()] }).collect()
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
    let node = |(index, operator)| {
        let (id, operator): (OperatorId, &OperatorSpec) = (OperatorId::of(index), operator);
        let OperatorCounts { rounds, failed, shed, marked, restarts, busy_ns, longest_ns } = counts.operator(id);
        let us = |ns: u64| ns as f64 / 1e3;
        NodeView {
            name: &operator.name,
            level: graph.level(id).get(),
            inputs: operator.inputs.iter().map(|edge| graph.source_name(edge.from)).collect(),
            outputs: graph.outputs().iter().filter(|output| output.from == id).map(|output| output.topic.as_str()).collect(),
            rounds: rounds.load(Relaxed),
            failed: failed.load(Relaxed),
            shed: shed.load(Relaxed),
            marked: marked.load(Relaxed),
            restarts: restarts.load(Relaxed),
            cost_us: us(operator.cost.get().unsigned_abs()),
            busy_us: us(busy_ns.load(Relaxed)),
            longest_us: us(longest_ns.load(Relaxed)),
        }
    };
    graph.operators().iter().enumerate().map(node).collect()
}

/// What is wrong with a file, with its lines.
fn with_mistakes(status: u16, what: &str, file: &str, mistakes: &[Mistake]) -> Answer {
    let told = mistakes.iter().map(|mistake| {
        let line = file.bytes().take(mistake.at.start).filter(|byte| *byte == b'\n').count() + 1;
        json!({"line": line, "what": mistake.what})
    });
    Answer::problem_with(status, what, Map::from_iter([("mistakes".to_owned(), told.collect())]))
}

fn not_deployed(error: &GraphError) -> Answer {
    Answer::problem(409, &format!("{error}."))
}
