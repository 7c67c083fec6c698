//! What a deployment takes over from the one before it of its name: states, events that wait, and the way to go on from there.

use std::sync::Arc;

use bodkin_arrowhead::publication::JsonText;
use bodkin_broker::{
    TopicId,
    graph::{
        OperatorId, Source, Taken,
        machine::{Waiting, WaitingEvent},
    },
};
use bodkin_operators::file::GraphFile;

use super::{Deployment, HeldEvent};
use crate::graph::{EdgeLink, GraphCounts};

/// Which operators of a file go on with their states where it takes the place of another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inheritance {
    /// Those that are made alike there, by name.
    pub kept: Vec<String>,
    /// The others: they begin anew.
    pub anew: Vec<String>,
}

impl Inheritance {
    /// Of two files.
    pub fn of(own: &GraphFile, before: &GraphFile) -> Self {
        let is_alike = |at: &usize| {
            let name = &own.graph.operators()[*at].name;
            let other = before.graph.operators().iter().position(|operator| operator.name == *name);
            other.is_some_and(|other| before.recipes[other].is_like(&own.recipes[*at]))
        };
        let (kept, anew): (Vec<usize>, Vec<usize>) = (0..own.graph.operators().len()).partition(is_alike);
        let names = |operators: Vec<usize>| operators.into_iter().map(|at| own.graph.operators()[at].name.clone()).collect();
        Self { kept: names(kept), anew: names(anew) }
    }
}

impl Deployment {
    /// Takes over what another one of this graph has that has nothing more to do: the states of operators that are made alike, and what waits at inputs that take the same; gives what was taken where an
    /// operator has come from. What can be begun of it begins when the deployment is [resumed](Self::resume).
    #[must_use]
    pub fn inherit(&mut self, before: &mut Self) -> Vec<Taken> {
        self.take_over_held(before);
        if before.counts.suspension().is_some() {
            // What a step has left behind that was not done is no state.
            return Vec::new();
        }
        self.carried.inherit(self.machine.graph(), before.machine.graph(), &before.carried);
        for at in 0..self.graph().operators().len() {
            let name = &self.graph().operators()[at].name;
            let Some(other) = before.graph().operators().iter().position(|operator| operator.name == *name) else { continue };
            let (own, other) = (OperatorId::of(at), OperatorId::of(other));
            self.inherit_state(own, before, other);
            self.inherit_waiting(own, before, other);
        }
        self.inherit_progress(before);
        self.take_over()
    }

    fn inherit_state(&mut self, own: OperatorId, before: &Self, other: OperatorId) {
        if !before.recipes[other.index()].is_like(&self.recipes[own.index()]) {
            return;
        }
        let mut state = Vec::new();
        before.plant.save(other, &mut state);
        if let Err(error) = self.plant.restore(own, &state) {
            tracing::error!(graph = self.graph().name, operator = self.graph().operator(own).name, %error, "an operator begins anew");
        }
    }

    fn inherit_waiting(&mut self, own: OperatorId, before: &Self, other: OperatorId) {
        for (input, edge) in self.graph().operator(own).inputs.clone().into_iter().enumerate() {
            let is_same = |(_, at): &(usize, &bodkin_broker::graph::Edge)| {
                at.usage == edge.usage
                    && before.source_name(at.from) == self.source_name(edge.from)
                    && before.graph().shape(at.from) == self.graph().shape(edge.from)
            };
            let Some((from, _)) = before.graph().operator(other).inputs.iter().enumerate().find(is_same) else { continue };
            let Waiting { events, fresh, came } = before.machine.waiting(other, from);
            let waiting = Waiting { events: events.iter().map(|slot| before.machine.record(*slot).into()).collect(), fresh, came };
            let payloads = events.iter().map(|slot| before.plant.payload(*slot).clone());
            self.put_waiting(own, input, &waiting, payloads);
        }
    }

    /// Lets events wait at an input, where they fit.
    pub(super) fn put_waiting(
        &mut self,
        operator: OperatorId,
        input: usize,
        waiting: &Waiting<WaitingEvent>,
        payloads: impl Iterator<Item = Vec<u8>>,
    ) {
        match self.machine.let_wait(operator, input, waiting) {
            Ok(slots) => slots.into_iter().zip(payloads).for_each(|(slot, payload)| self.plant.fill(slot, &payload)),
            Err(error) => {
                let graph = self.graph();
                tracing::error!(graph = graph.name, operator = graph.operator(operator).name, input, %error, "events that wait are of no use");
            }
        }
    }

    fn inherit_progress(&mut self, before: &Self) {
        for (at, output) in
            self.machine.graph().outputs().iter().enumerate().map(|(at, output)| (at, output.topic.clone())).collect::<Vec<_>>()
        {
            if let Some(other) = before.graph().outputs().iter().position(|known| known.topic == output) {
                let (newest, shed) = before.machine.progress(other);
                self.machine.go_on_behind(at, newest, shed);
            }
        }
    }

    /// Begins what can be begun of what it has taken over.
    pub fn resume(&mut self, now_ns: u64) {
        let mut actions = std::mem::take(&mut self.actions);
        self.machine.resume(now_ns, &mut actions);
        // No round is over.
        actions.drain(..).for_each(|action| self.carry_out(now_ns, action));
        self.actions = actions;
        self.note_replaced();
    }

    /// What the events of a source are in the whole graph.
    pub(super) fn source_name(&self, source: Source) -> &str {
        match source {
            Source::Supplier(id) => &self.sources[id.index()],
            Source::Operator(_) => self.graph().source_name(source),
        }
    }

    fn take_over_held(&mut self, before: &mut Self) {
        self.held = std::mem::take(&mut before.held);
        // What came over a link that is another one now was not acknowledged, and comes again over that.
        for (link, event) in before.waiting.drain(..) {
            if self.fetches(&link) {
                self.waiting.push_back((link, event));
            } else {
                link.arrived();
            }
        }
        self.spare(before);
    }

    /// Takes the links over that it has in common with another deployment, which ends.
    pub fn spare(&self, before: &mut Self) {
        before.links.retain(|link| !self.fetches(link));
        for link in &before.links {
            link.leave(|topic| hears(&self.links, &link.edge, topic));
        }
    }

    /// Holds an event until the graph goes on; one more than may be held is counted as refused.
    pub fn keep_for_later(&mut self, event: HeldEvent) {
        let id = event.event;
        if !self.held.push(event) {
            GraphCounts::one(&self.counts.refused);
            if let Some(times) = self.seldom.due(&self.graph().name) {
                tracing::warn!(graph = self.graph().name, event = %id, times, "more events have come than are held for a graph that is replaced or busy");
            }
        }
    }

    /// Whether events are held that go before all others.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// The next event that was held, if those in front of it have been taken, so that the queue of its supplier is there for what comes behind the last one; `suppliers` are their topics. One of a topic that the graph does not take is gone.
    pub fn next_held(&mut self, suppliers: &[TopicId]) -> Option<(usize, HeldEvent)> {
        loop {
            let (machine, place) = (&self.machine, |topic| suppliers.iter().position(|supplier| *supplier == topic));
            let may = |topic| place(topic).is_none_or(|at| machine.has_taken_all(bodkin_broker::graph::SupplierId::of(at)));
            let event = self.held.pop(may)?;
            if let Some(at) = place(event.event.topic) {
                return Some((at, event));
            }
        }
    }

    /// Takes an event that was held.
    pub fn take_held(&mut self, now_ns: u64, supplier: usize, held: &HeldEvent) {
        let mut literal = String::new();
        let payload = JsonText::write(&held.payload, &mut literal);
        let supplier = bodkin_broker::graph::SupplierId::of(supplier);
        self.take_in(now_ns, supplier, (held.event, held.created_ns), payload, held.cause.as_ref());
    }
}

/// Whether some of these links bring a topic from an edge.
pub fn hears(links: &[Arc<EdgeLink>], edge: &str, topic: &str) -> bool {
    links.iter().any(|link| link.edge == edge && link.topics.iter().any(|known| known.topic == topic))
}

/// Links of a deployment, of which those of the one before go on that are alike.
pub fn links(made: Vec<Arc<EdgeLink>>, before: &[Arc<EdgeLink>]) -> Vec<Arc<EdgeLink>> {
    made.into_iter().map(|link| before.iter().find(|known| known.is_like(&link)).cloned().unwrap_or(link)).collect()
}
