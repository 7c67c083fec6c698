//! `/api/v1/graphs/move`: an operator goes to another edge. Whoever moves it asks each edge for its steps; what an edge has come to is in its database, so that the steps can be asked for again.
//!
//! ```text
//! plan     where it runs    nothing changes: the new version, and who has a part of it
//! prepare  at the others    what the new version needs is subscribed to; where the operator is to come, nothing is taken in
//! commit   where it runs    one transaction: the new version, and what goes with the operator     <- from here on it has moved
//! finish   at the others    the new version runs; where the operator comes, with what has come with it
//! finish   where it ran     what has gone with it is forgotten
//! abandon  at the others    what is prepared is let go, and the version that runs goes on
//! ```
//!
//! `docs/design/graphs.md` says what a crash at each of them leaves.

use bodkin_broker::graph::{
    OperatorId, Source,
    handover::Handover,
    placement::{EdgeId, Placement},
};
use bodkin_operators::file::{self, GraphFile};
use serde::{Deserialize, Serialize};

use super::{AT_WORK_MAX, Api, not_deployed, not_stored, with_mistakes};
use crate::{
    answer::Answer,
    graph::{DeclaredGraph, DeployedGraph, Gone, Lateness, handover_of, handover_text, note_at_work, parse},
    limits::Limits,
    request::Request,
    shared,
    topics::Declarer,
};

/// Hosts between which operators move are of one release.
const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// Bytes of a step beside the file and what goes with the operator: names and braces.
const STEP_WORDS_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    Plan,
    Prepare,
    Commit,
    Finish,
    Abandon,
}

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveForm {
    graph: String,
    operator: String,
    to: String,
    step: Step,
    edge: Option<String>,
    release: Option<String>,
    file: Option<String>,
    handover: Option<String>,
    #[serde(default)]
    force: bool,
}

impl MoveForm {
    fn lateness(&self) -> Lateness {
        if self.force { Lateness::Told } else { Lateness::Refused }
    }
}

/// What has come of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MoveView<'m> {
    graph: &'m str,
    operator: &'m str,
    from: String,
    to: &'m str,
    step: Step,
    release: &'static str,
    digest: String,
    file: Option<&'m str>,
    edges: Vec<String>,
    committed: bool,
    handover: Option<String>,
}

/// A move from this edge.
struct Plan {
    /// The version in which the operator is elsewhere.
    file: GraphFile,
    from: String,
    /// The other edges: each of them has the same version.
    edges: Vec<String>,
    /// What has gone already, if it has.
    gone: Option<String>,
}

impl Api {
    /// Answers a request at `graphs/move`.
    pub(in crate::api) async fn move_operator(&self, request: &Request) -> Answer {
        if let Some(refusal) = shared::refuse_here(&self.store, &self.realtime_at, "a graph") {
            return refusal;
        }
        let form: MoveForm = match serde_json::from_slice(&request.body) {
            Ok(form) => form,
            Err(error) => return Answer::problem(400, &format!("Expected a JSON object with a step of a move: {error}.")),
        };
        let own = self.graphs.edge();
        if let Some(meant) = form.edge.as_deref().filter(|meant| *meant != own) {
            return Answer::problem(409, &format!("The edge {meant} is meant, and this is {own}: say where {meant} answers."));
        }
        if let Err(refusal) = self.graphs_are_there().await {
            return refusal;
        }
        let _turn = self.graphs.turn().await;
        let answer = match form.step {
            Step::Plan => self.plan(&form).await.map(|plan| planned(&form, &plan)),
            Step::Prepare => self.prepare(&form).await,
            Step::Commit => self.commit(&form).await,
            Step::Finish => self.finish(&form).await,
            Step::Abandon => {
                self.graphs.let_go(&form.graph, None);
                Ok(Answer::json(200, &MoveView { committed: false, ..moved(&form, String::new(), None) }))
            }
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    /// What would be, and whether it may.
    async fn plan(&self, form: &MoveForm) -> Result<Plan, Answer> {
        let deployed = self.moving_graph(form)?;
        let own = self.graphs.edge().to_owned();
        let running = whole(&deployed)?;
        if let Some(gone) = self.graphs.moves().gone(&form.graph) {
            return self.gone_already(form, gone, running, own).await;
        }
        let conflict = |why: String| Answer::problem(409, &format!("{why}."));
        let text = file::moved(&running, &form.operator, &form.to).map_err(|fault| conflict(fault.to_string()))?;
        let placement = running.placement.as_ref().expect("what is moved is placed");
        let operator = id_of(&running, &form.operator);
        let at = &placement.hosts[placement.operators[operator.index()].index()].name;
        if *at != own {
            return Err(conflict(format!("{} runs on the edge {at}, and this is {own}: ask there", form.operator)));
        }
        let file =
            parse(&text).map_err(|mistakes| with_mistakes(409, "The file has mistakes with the operator there.", &text, &mistakes))?;
        let to = placement.hosts.iter().position(|host| host.name == form.to).map(EdgeId::of).expect("it was found before");
        if let Some(source) = read_there(&running, placement, operator, to) {
            let (name, to) = (&form.operator, &form.to);
            let why = format!(
                "{name} takes {source}, which another operator takes on {to} already: how far each has taken it cannot be told apart there; move that one too, one after the other by way of another edge, or deploy the graph anew"
            );
            return Err(conflict(why));
        }
        self.declared_as_moved(form, file.clone())?;
        let edges = others(&file, &own);
        Ok(Plan { file, from: own, edges, gone: None })
    }

    /// The plan of a move that is committed, and of which it is not known that it has come to its end.
    async fn gone_already(&self, form: &MoveForm, gone: Gone, running: GraphFile, own: String) -> Result<Plan, Answer> {
        if (gone.operator.as_str(), gone.to.as_str()) != (form.operator.as_str(), form.to.as_str()) {
            let why = format!(
                "{} has gone to {}, which has not taken it yet: that move has to come to its end before another one.",
                gone.operator, gone.to
            );
            return Err(Answer::problem(409, &why));
        }
        let name = form.graph.clone();
        let moves = self.store.read(move |draft| draft.graph_moves(&name)).await.map_err(|error| not_stored(&error))?;
        let edges = others(&running, &own);
        Ok(Plan { file: running, from: own, edges, gone: moves.given })
    }

    /// Prepares the new version at an edge where the operator does not run now.
    async fn prepare(&self, form: &MoveForm) -> Result<Answer, Answer> {
        let conflict = |why: String| Answer::problem(409, &format!("{why}."));
        if let Some(other) = form.release.as_deref().filter(|other| *other != RELEASE) {
            return Err(conflict(format!(
                "{} is of release {RELEASE}, and the edge where the operator runs of {other}",
                self.graphs.edge()
            )));
        }
        let (file, text) = new_version(form)?;
        if let Some(refusal) = self.configured(&form.graph) {
            return Err(refusal);
        }
        if let Some(deployed) = self.graphs.table().get(&form.graph) {
            let running = whole(&deployed)?;
            let is_same = *running.text == *text || file::moved(&running, &form.operator, &form.to).is_ok_and(|moved| moved == text);
            if !is_same {
                return Err(conflict(format!(
                    "{} has another file of the graph {}: deploy the same one first",
                    self.graphs.edge(),
                    form.graph
                )));
            }
            if *running.text == *text {
                return Ok(Answer::json(200, &MoveView { committed: true, ..moved(form, String::new(), Some(&file)) }));
            }
        }
        let declared = self.declared_as_moved(form, file.clone())?;
        self.is_settled(&form.graph).await?;
        self.graphs.prepare(declared, &form.operator, &form.to).await.map_err(|error| conflict(error.to_string()))?;
        Ok(Answer::json(200, &moved(form, String::new(), Some(&file))))
    }

    /// Gives the operator: from the transaction on it is elsewhere.
    async fn commit(&self, form: &MoveForm) -> Result<Answer, Answer> {
        let plan = self.plan(form).await?;
        let answer = |handover: String| {
            let view = MoveView {
                committed: true,
                handover: Some(handover),
                edges: plan.edges.clone(),
                ..moved(form, plan.from.clone(), Some(&plan.file))
            };
            Answer::json(200, &view)
        };
        if let Some(given) = plan.gone {
            return Ok(answer(given));
        }
        let conflict = |why: String| Answer::problem(409, &format!("{why}."));
        let declared = self.declared_as_moved(form, plan.file.clone())?;
        self.is_settled(&form.graph).await?;
        // What this edge needs of the operator from now on it hears before anything is made there.
        self.graphs.prepare(declared.clone(), &form.operator, &form.to).await.map_err(|error| conflict(error.to_string()))?;
        let given = self.graphs.give(declared, &form.operator).await;
        let (graph, handover, at_work) = given.map_err(|why| {
            self.graphs.let_go(&form.graph, None);
            conflict(why.to_string())
        })?;
        let text = handover_text(&handover);
        if let Some(why) = too_long(&plan.file.text, &text, Limits::default().body_bytes_max) {
            self.graphs.given(&graph, false).await;
            self.graphs.let_go(&form.graph, None);
            return Err(conflict(why));
        }
        let (name, version, kept) = (form.graph.clone(), plan.file.text.to_string(), text.clone());
        let stored = self.store.write(move |draft| draft.give_operator(&name, &version, &kept), |_, ()| ()).await;
        if stored.is_ok() {
            let gone = Gone { operator: form.operator.clone(), to: form.to.clone() };
            self.graphs.moves().note_gone(&form.graph, Some(gone));
        }
        self.graphs.given(&graph, stored.is_ok()).await;
        self.graphs.let_go(&form.graph, None);
        stored.map_err(|error| not_stored(&error))?;
        tokio::spawn(note_at_work(self.store.clone(), graph, at_work));
        Ok(answer(text))
    }

    /// Has the new version run at an edge, with what has come with the operator where it comes; where it ran what has gone is forgotten.
    async fn finish(&self, form: &MoveForm) -> Result<Answer, Answer> {
        let (file, text) = new_version(form)?;
        let done = |from: String| Answer::json(200, &MoveView { committed: true, ..moved(form, from, Some(&file)) });
        let name = form.graph.clone();
        if let Some(deployed) = self.graphs.table().get(&form.graph).filter(|deployed| *deployed.file.text == *text) {
            if self.graphs.moves().gone(&form.graph).is_some() {
                self.store.write(move |draft| draft.was_taken(&name), |_, ()| ()).await.map_err(|error| not_stored(&error))?;
                self.graphs.moves().note_gone(&form.graph, None);
            }
            return Ok(done(deployed.file.fetched.edges[deployed.file.fetched.own].clone()));
        }
        let prepared = self.graphs.moves().prepared(&form.graph).filter(|prepared| prepared.declared.file.digest == file.digest);
        let Some(prepared) = prepared else {
            return Err(Answer::problem(409, "It is not prepared here, or not any more: prepare it again."));
        };
        let comes_here = form.to == self.graphs.edge();
        let brought = match (&form.handover, comes_here) {
            (Some(handover), true) => Some(arrived(handover, &file, form)?),
            (None, true) => return Err(Answer::problem(400, "What goes with the operator is missing (handover).")),
            (_, false) => None,
        };
        self.is_settled(&form.graph).await?;
        let kept = brought.as_ref().map(handover_text);
        let stored = self.store.write(
            move |draft| match &kept {
                Some(taken) => draft.take_operator(&name, &text, taken),
                None => draft.deploy_graph(&name, &text),
            },
            |_, ()| (),
        );
        stored.await.map_err(|error| not_stored(&error))?;
        let deployed = self.graphs.deploy(prepared.declared.clone(), Declarer::Operator, brought).await;
        self.graphs.let_go(&form.graph, None);
        let (graph, at_work) = deployed.map_err(|why| Answer::problem(503, &format!("The graph does not run: {why}.")))?;
        let noted = tokio::spawn(note_at_work(self.store.clone(), graph, at_work));
        // A move that follows finds it noted; where a Backup takes longer to have the graph, what it needs is kept until then.
        let _ = tokio::time::timeout(AT_WORK_MAX, noted).await;
        Ok(done(String::new()))
    }

    /// The graph that is to be moved, which the operator has deployed.
    fn moving_graph(&self, form: &MoveForm) -> Result<std::sync::Arc<DeployedGraph>, Answer> {
        if let Some(refusal) = self.configured(&form.graph) {
            return Err(refusal);
        }
        let deployed = self.graphs.table().get(&form.graph);
        deployed.ok_or_else(|| Answer::problem(404, &format!("There is no graph of the name {}.", form.graph)))
    }

    fn declared_as_moved(&self, form: &MoveForm, file: GraphFile) -> Result<DeclaredGraph, Answer> {
        let declared = self.graphs.declared(file, form.lateness()).map_err(|error| not_deployed(&error))?;
        self.graphs.check(&declared, form.lateness()).map_err(|error| not_deployed(&error))?;
        Ok(declared)
    }
}

fn planned(form: &MoveForm, plan: &Plan) -> Answer {
    let view = MoveView { edges: plan.edges.clone(), committed: plan.gone.is_some(), ..moved(form, plan.from.clone(), Some(&plan.file)) };
    Answer::json(200, &view)
}

fn moved<'m>(form: &'m MoveForm, from: String, file: Option<&'m GraphFile>) -> MoveView<'m> {
    let MoveForm { graph, operator, to, step, .. } = form;
    let told = file.filter(|_| matches!(step, Step::Plan | Step::Commit)).map(|file| &*file.text);
    MoveView {
        graph,
        operator,
        from,
        to,
        step: *step,
        release: RELEASE,
        digest: file.map(|file| format!("{:016x}", file.digest)).unwrap_or_default(),
        file: told,
        edges: Vec::new(),
        committed: false,
        handover: None,
    }
}

/// The whole file of which a graph runs a part.
fn whole(deployed: &DeployedGraph) -> Result<GraphFile, Answer> {
    let text = &deployed.file.text;
    parse(text).map_err(|mistakes| with_mistakes(409, "The file that runs has mistakes by now.", text, &mistakes))
}

/// The version that a step is about.
fn new_version(form: &MoveForm) -> Result<(GraphFile, String), Answer> {
    let text = form.file.clone().ok_or_else(|| Answer::problem(400, "The graph's new version is missing (file)."))?;
    let file = parse(&text).map_err(|mistakes| with_mistakes(400, "The file has mistakes.", &text, &mistakes))?;
    if file.graph.name != form.graph || !file.graph.operators().iter().any(|operator| operator.name == form.operator) {
        return Err(Answer::problem(400, "The file is of another graph, or has no such operator."));
    }
    Ok((file, text))
}

fn id_of(file: &GraphFile, operator: &str) -> OperatorId {
    let at = file.graph.operators().iter().position(|known| known.name == operator);
    OperatorId::of(at.expect("it was found before"))
}

/// The other edges.
fn others(file: &GraphFile, own: &str) -> Vec<String> {
    let hosts = file.placement.iter().flat_map(|placement| &placement.hosts);
    hosts.map(|host| host.name.clone()).filter(|edge| edge != own).collect()
}

/// What an operator takes that another operator on this edge takes too, where it is not made by an operator here: such a source is held up as a whole.
fn read_there(file: &GraphFile, placement: &Placement, operator: OperatorId, to: EdgeId) -> Option<String> {
    let is_read = |source: &Source| {
        let is_held_up = placement.edge(*source) == to && matches!(source, Source::Operator(_));
        !is_held_up && file.graph.readers(*source).any(|(reader, _)| reader != operator && placement.operators[reader.index()] == to)
    };
    let inputs = file.graph.operator(operator).inputs.iter().map(|edge| edge.from);
    inputs.into_iter().find(is_read).map(|source| file.graph.source_name(source).to_owned())
}

/// Why a file and what goes with an operator are no request that the edge takes where it comes; it would stand nowhere behind the commit.
fn too_long(file: &str, handover: &str, body_bytes_max: usize) -> Option<String> {
    let file = serde_json::to_string(file).expect("a text is JSON").len();
    let bytes = file + handover.len() + STEP_WORDS_BYTES;
    (bytes > body_bytes_max).then(|| {
        format!(
            "a request with the file, the operator's state and what waits at its inputs would have {bytes} bytes, and an edge takes {body_bytes_max}: move it when less waits, or deploy the file with it there anew"
        )
    })
}

/// What has come with an operator, as publishers are called here.
fn arrived(text: &str, file: &GraphFile, form: &MoveForm) -> Result<Handover, Answer> {
    let refused = |why: &str| Answer::problem(400, &format!("What goes with the operator cannot be used: {why}."));
    let handover = handover_of(text).ok_or_else(|| refused("it is no handover of this release"))?;
    if handover.digest != file.digest || handover.operator != form.operator {
        return Err(refused("it is of another version, or another operator"));
    }
    let placement = file.placement.as_ref().ok_or_else(|| refused("the graph has no edges"))?;
    let host = |name: &str| placement.hosts.iter().position(|host| host.name == name).map(EdgeId::of);
    let (from, to) = (host(&handover.from), host(&form.to));
    let (Some(from), Some(to)) = (from, to) else { return Err(refused("its edges are not in the file")) };
    let made = |source: &str| {
        let operator = file.graph.operators().iter().position(|known| known.name == source).map(OperatorId::of);
        let supplier = || file.graph.suppliers().iter().position(|known| known.topic == source);
        let source =
            operator.map(Source::Operator).or_else(|| supplier().map(|at| Source::Supplier(bodkin_broker::graph::SupplierId::of(at))))?;
        Some(placement.edge(source))
    };
    handover.arrived(from, to, placement.hosts.len(), made).map_err(|error| refused(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_no_edge_takes_is_told_before_the_operator_goes() {
        let (file, handover) = ("[graph]\nname = \"line\"\n", "A".repeat(1000));
        let form = |handover: &str| serde_json::json!({ "graph": "g".repeat(64), "operator": "o".repeat(64), "to": "e".repeat(64), "step": "finish", "release": RELEASE, "file": file, "handover": handover, "force": true });
        let bytes = form(&handover).to_string().len();
        assert!(bytes <= 1000 + STEP_WORDS_BYTES + file.len() + 10, "{bytes} bytes");
        assert_eq!(too_long(file, &handover, bytes + STEP_WORDS_BYTES), None);
        assert!(too_long(file, &handover, bytes).is_some_and(|why| why.contains("when less waits")));
    }
}
