//! Events that come over links from other edges go to the graph that fetches them, and to nobody else: whoever wants to hear them hears them where they are made.

use std::sync::Arc;

use bodkin_arrowhead::publication::JsonText;
use bodkin_broker::{EventId, graph::Taken};

use super::{Deployed, Shard, keep::Keeping};
use crate::graph::{CarriedEvent, EdgeLink};

impl Shard {
    /// Takes an event that has come over a link. One for a graph that does not run any more is not acknowledged: it comes again to the next one.
    pub(in crate::shard) fn take_carried(&mut self, link: Arc<EdgeLink>, event: Box<CarriedEvent>) {
        let deployed = &mut self.graphs.deployed;
        match deployed.iter().position(|deployed| deployed.deployment.fetches(&link)) {
            Some(at) => {
                deployed[at].deployment.let_wait(link, event);
                self.supply_carried(at);
            }
            None => link.arrived(),
        }
    }

    /// Hands a graph what waits for it, as long as it has room.
    pub(super) fn supply_carried(&mut self, at: usize) {
        if self.graphs.deployed[at].is_held_up() {
            return;
        }
        while let Some((link, event)) = self.graphs.deployed[at].deployment.next_carried() {
            self.clock.advance();
            self.supply_one(at, &link, &event);
        }
    }

    /// Hands a graph an event of a link. It is acknowledged when it is safe here: in a pair when the Backup has it in a checkpoint, else at once.
    fn supply_one(&mut self, at: usize, link: &EdgeLink, event: &CarriedEvent) {
        link.arrived();
        let now = self.clock.broker();
        let now_ns = self.clock.utc_ns_of(now);
        let Deployed { deployment, keeping, suppliers, .. } = &mut self.graphs.deployed[at];
        let supplier = link.topics[event.topic].supplier;
        let (publisher, incarnation, sequence) = (event.publisher, event.header.incarnation, event.header.sequence);
        let taken = Taken { supplier, publisher, incarnation, through: sequence };
        let came = deployment.carried().arrive(keeping.as_mut().map(Keeping::cover), now, &taken);
        if came.is_new {
            let id = EventId { publisher, incarnation, topic: suppliers[supplier.index()], sequence };
            let mut literal = String::new();
            let payload = JsonText::write(&event.payload, &mut literal);
            deployment.take_in(now_ns, supplier, (id, event.header.created_utc_ns), payload, event.cause.as_ref());
        }
        if came.is_safe {
            link.acknowledge(supplier, publisher, incarnation, sequence);
        }
        self.let_graphs_go();
    }
}
