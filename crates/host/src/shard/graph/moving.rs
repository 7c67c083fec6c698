//! An operator goes to another host: the graph without it is ready here, and takes the place of the one with it when that has nothing more to do, when all that the operator has made is where it is
//! needed, and when it is kept in the database what goes with the operator. Until the last of these nothing has changed, and the graph before goes on if it is not so.

use bodkin_broker::{ShardError, TopicId, graph::handover::Handover};
use tokio::sync::oneshot;

use super::{Deployed, Shard};
use crate::graph::Deployment;

/// The graph that runs in the place of another one.
pub(super) struct Successor {
    pub deployed: Box<Deployed>,
    giving: Option<Giving>,
}

/// An operator that goes.
struct Giving {
    operator: String,
    /// Topics that it writes: what is there has to be acknowledged before it goes.
    writes: Vec<TopicId>,
    /// Whoever is given what goes with it; none when that was done.
    given: Option<oneshot::Sender<Handover>>,
    is_kept: bool,
}

/// Why a graph takes nothing in: an operator is to come, whose events it has to have sent to where that is now.
pub(super) struct Pause {
    /// Told when all is sent and acknowledged.
    held: Option<oneshot::Sender<()>>,
}

impl Successor {
    /// One that begins when the graph before has nothing more to do.
    pub fn certain(deployed: Deployed) -> Self {
        Self { deployed: Box::new(deployed), giving: None }
    }

    /// Whether it may begin then.
    pub fn may_begin(&self) -> bool {
        self.giving.as_ref().is_none_or(|giving| giving.is_kept)
    }
}

impl Shard {
    /// Has a graph without an operator be ready to take the place of the one of its name.
    pub(in crate::shard) fn give_operator(
        &mut self,
        deployment: Deployment,
        operator: String,
        given: oneshot::Sender<Handover>,
    ) -> Result<(), ShardError> {
        let new = self.with_topics(deployment)?;
        // One that was removed meanwhile gives nothing, which its sender says when it is dropped.
        let Some(at) = self.graphs.named(&new.deployment.graph().name) else { return Ok(()) };
        let Deployed { deployment, outputs, .. } = &self.graphs.deployed[at];
        let graph = deployment.graph();
        let writes = graph.outputs().iter().zip(outputs).filter(|(output, _)| graph.operator(output.from).name == operator);
        let writes = writes.map(|(_, topic)| *topic).collect();
        let giving = Giving { operator, writes, given: Some(given), is_kept: false };
        self.succeed(at, Successor { deployed: Box::new(new), giving: Some(giving) });
        self.look_after_moves(at);
        self.enlist();
        Ok(())
    }

    /// What was given is kept, so that the graph without it begins; or it is not, and the one with it goes on.
    pub(in crate::shard) fn operator_given(&mut self, graph: &str, is_kept: bool) {
        let Some(at) = self.graphs.named(graph) else { return };
        let before = &mut self.graphs.deployed[at];
        let Some(Successor { giving: Some(giving), .. }) = &mut before.successor else { return };
        if is_kept {
            giving.is_kept = true;
            self.replace_graph(at);
        } else if let Some(mut never_begun) = before.successor.take() {
            before.deployment.spare(&mut never_begun.deployed.deployment);
            self.supply_held(at);
            self.supply_carried(at);
        }
    }

    /// Has a graph take nothing in, or go on.
    pub(in crate::shard) fn hold_graph_up(&mut self, graph: &str, held: Option<oneshot::Sender<()>>) {
        let Some(at) = self.graphs.named(graph) else {
            if let Some(held) = held {
                let _ = held.send(());
            }
            return;
        };
        self.graphs.deployed[at].pause = held.map(|held| Pause { held: Some(held) });
        self.look_after_moves(at);
        if !self.graphs.deployed[at].is_held_up() {
            self.supply_held(at);
            self.supply_carried(at);
        }
    }

    /// Gives what is to be given, and tells what is held, when nothing is under way.
    pub(super) fn look_after_moves(&mut self, at: usize) {
        let Deployed { deployment, outputs, successor, pause, .. } = &mut self.graphs.deployed[at];
        if !deployment.is_idle() {
            return;
        }
        if let Some(pause) = pause
            && outputs.iter().all(|topic| !self.broker.is_owed(*topic))
            && let Some(held) = pause.held.take()
        {
            let _ = held.send(());
        }
        let Some(Successor { deployed, giving: Some(giving) }) = successor else { return };
        if giving.given.is_some() && giving.writes.iter().all(|topic| !self.broker.is_owed(*topic)) {
            let handover = deployment.hand_over(&giving.operator, deployed.deployment.digest());
            let given = giving.given.take().expect("it was just there");
            // Whoever does not wait any more says that it is not kept.
            let _ = given.send(handover);
        }
    }
}
