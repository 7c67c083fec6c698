//! A graph takes the place of another one of its name, at one instant: what was published before is processed by the one before, to its end; what is published from then on waits meanwhile, and is
//! taken by the one behind, in its order. Nothing is lost, and nothing is taken twice.

use bodkin_arrowhead::publication::Publication;
use bodkin_broker::{
    EventId,
    graph::{SupplierId, Taken},
};

use super::{Deployed, Graphs, Shard, moving::Successor};
use crate::graph::HeldEvent;

impl Deployed {
    /// Whether events of its topics wait: another version is to take its place, or others wait already.
    pub(super) fn holds(&self) -> bool {
        self.is_held_up() || self.deployment.is_holding()
    }

    /// Whether it takes nothing in.
    pub(super) fn is_held_up(&self) -> bool {
        self.successor.is_some() || self.pause.is_some()
    }

    /// Lets an event wait until it goes on.
    pub(super) fn hold(&mut self, (event, created_ns): (EventId, u64), publication: &Publication<'_>, is_kept: bool) {
        let mut payload = String::new();
        publication.payload().push_to(&mut payload);
        self.deployment.keep_for_later(HeldEvent { event, created_ns, payload, cause: publication.cause(), is_kept });
    }
}

impl Graphs {
    /// Lets a successor take over, if it may; gives what it succeeds, and what was taken where an operator has come from.
    fn replace(&mut self, at: usize) -> Option<(Deployed, Vec<Taken>)> {
        let before = &mut self.deployed[at];
        if !before.deployment.is_idle() || before.successor.as_ref().is_some_and(|successor| !successor.may_begin()) {
            return None;
        }
        let Successor { mut deployed, .. } = before.successor.take()?;
        let taken = deployed.deployment.inherit(&mut before.deployment);
        Some((std::mem::replace(before, *deployed), taken))
    }
}

impl Shard {
    /// Has a graph take the place of one that runs.
    pub(super) fn succeed(&mut self, at: usize, new: Successor) {
        let before = &mut self.graphs.deployed[at];
        if let Some(mut never_begun) = before.successor.take() {
            new.deployed.deployment.spare(&mut never_begun.deployed.deployment);
            before.deployment.spare(&mut never_begun.deployed.deployment);
        }
        before.successor = Some(new);
        self.replace_graph(at);
    }

    /// Has a successor run as soon as what the graph before has taken is processed.
    pub(super) fn replace_graph(&mut self, at: usize) {
        let now_ns = self.clock.utc_ns_of(self.clock.broker());
        let Some((before, taken)) = self.graphs.replace(at) else { return };
        tracing::info!(graph = before.deployment.graph().name, "a graph has taken the place of the one before");
        self.succeed_keeping(at, before, &taken);
        // Checkpoints have the states in front of what begins now.
        self.graphs.deployed[at].deployment.resume(now_ns);
        self.graphs.list_readers();
        let Deployed { deployment, keeping, .. } = &mut self.graphs.deployed[at];
        if keeping.is_none() {
            deployment.is_at_work();
        }
        deployment.fetch();
        self.supply_held(at);
    }

    /// Hands a graph what was held for it, as long as it has room.
    pub(super) fn supply_held(&mut self, at: usize) {
        loop {
            let Deployed { deployment, suppliers, keeping, .. } = &mut self.graphs.deployed[at];
            let Some((supplier, held)) = deployment.next_held(suppliers) else { return };
            self.clock.advance();
            let now = self.clock.broker();
            let EventId { publisher, incarnation, sequence, .. } = held.event;
            let taken = Taken { supplier: SupplierId::of(supplier), publisher, incarnation, through: sequence };
            // An operator that has come here may have had it where it was.
            if !deployment.carried().has(&taken) {
                deployment.take_held(self.clock.utc_ns_of(now), supplier, &held);
            }
            let is_tracked = keeping.as_mut().is_some_and(|keeping| keeping.take(now, taken));
            if held.is_kept && !is_tracked {
                self.acknowledge_suppliers(at, &mut vec![taken]);
            }
        }
    }
}
