//! Graphs in the shard: events of their suppliers' topics go in when they are handed to subscribers, and results go on as events of the outputs' topics, named after what they are
//! made of.

use std::ops::Range;

use bodkin_arrowhead::{
    caller::Authorized,
    publication::{self, JsonText, Publication},
    record::SystemId,
    utc::UtcTime,
};
use bodkin_broker::{
    Accepted, Epoch, EventId, ShardError, StreamIdentity, Terms, TopicId,
    graph::{
        SupplierId,
        machine::{Action, EventSlot, JobId, Record},
    },
};

use super::{Shard, not_taken::NotTaken, publish::Numbering};
use crate::graph::{Deployment, Ended};

/// A graph, and the topics of its events.
struct Deployed {
    deployment: Deployment,
    suppliers: Vec<TopicId>,
    outputs: Vec<TopicId>,
    /// The graph that runs in its place as soon as its rounds are over.
    successor: Option<Box<Deployed>>,
}

/// The graphs of a shard.
#[derive(Default)]
pub(super) struct Graphs {
    deployed: Vec<Deployed>,
    /// By topic: which graphs take its events, and as which supplier's.
    readers: Vec<Vec<(usize, SupplierId)>>,
    actions: Vec<Action>,
    results: Results,
}

/// Results on their way out, in buffers that are kept.
#[derive(Default)]
struct Results {
    waiting: Vec<GraphResult>,
    /// Their payloads, one behind the other.
    payloads: String,
    /// Texts of one of them as JSON.
    payload_literal: String,
    event_type_literal: String,
}

/// A result that is to be published.
struct GraphResult {
    output: usize,
    /// Where its payload is.
    payload: Range<usize>,
    record: Record,
    /// Results that its output has not had since the last one.
    shed: u32,
}

impl Graphs {
    /// Whether a graph takes the events of a topic.
    pub fn reads(&self, topic: TopicId) -> bool {
        self.readers.get(topic.0 as usize).is_some_and(|readers| !readers.is_empty())
    }

    /// Whether no graph has workers that are to be real-time threads.
    pub fn are_ordinary(&self) -> bool {
        let all = self.deployed.iter().flat_map(|deployed| std::iter::once(deployed).chain(deployed.successor.as_deref()));
        !all.into_iter().any(|deployed| deployed.deployment.is_preemptive())
    }

    /// Hands an event to the graphs that take those of its topic.
    pub fn supply(&mut self, now_ns: u64, event: EventId, created_ns: u64, payload: JsonText<'_>) {
        for (graph, supplier) in self.readers.get(event.topic.0 as usize).into_iter().flatten() {
            self.deployed[*graph].deployment.take_in(now_ns, *supplier, event, created_ns, payload);
        }
    }

    /// Has a graph run; where one of its name runs, as soon as that one is at rest.
    fn insert(&mut self, new: Deployed) {
        let is_same = |deployed: &Deployed| deployed.deployment.graph().name == new.deployment.graph().name;
        match self.deployed.iter().position(is_same) {
            Some(at) => {
                self.deployed[at].deployment.wind_up();
                self.deployed[at].successor = Some(Box::new(new));
                self.replace(at);
            }
            None => self.deployed.push(new),
        }
        self.list_readers();
    }

    /// Lets a successor begin, if it may.
    fn replace(&mut self, at: usize) {
        let before = &mut self.deployed[at];
        if !before.deployment.is_at_rest() {
            return;
        }
        let Some(mut successor) = before.successor.take() else { return };
        successor.deployment.inherit(&before.deployment);
        self.deployed[at] = *successor;
        self.list_readers();
    }

    /// Ends a graph; one that is not there is no error.
    pub fn remove(&mut self, name: &str) {
        self.deployed.retain(|deployed| deployed.deployment.graph().name != name);
        self.list_readers();
    }

    fn list_readers(&mut self) {
        self.readers.iter_mut().for_each(Vec::clear);
        for (at, deployed) in self.deployed.iter().enumerate() {
            for (supplier, topic) in deployed.suppliers.iter().enumerate() {
                let place = topic.0 as usize;
                if place >= self.readers.len() {
                    self.readers.resize_with(place + 1, Vec::new);
                }
                self.readers[place].push((at, SupplierId::of(supplier)));
            }
        }
    }
}

impl Results {
    fn add(&mut self, deployment: &Deployment, output: usize, slot: EventSlot, record: Record, shed: u32) {
        let from = self.payloads.len();
        deployment.push_text(output, slot, &mut self.payloads);
        self.waiting.push(GraphResult { output, payload: from..self.payloads.len(), record, shed });
    }
}

impl Shard {
    /// Has a graph run from now on.
    pub(super) fn deploy(&mut self, deployment: Deployment) -> Result<(), ShardError> {
        let graph = deployment.graph();
        let mut numbers =
            |topics: &mut dyn Iterator<Item = &String>| topics.map(|topic| self.broker.topic(topic)).collect::<Result<Vec<_>, _>>();
        let suppliers = numbers(&mut graph.suppliers().iter().map(|supplier| &supplier.topic))?;
        let outputs = numbers(&mut graph.outputs().iter().map(|output| &output.topic))?;
        tracing::info!(graph = graph.name, operators = graph.operators().len(), "a graph is deployed");
        self.graphs.insert(Deployed { deployment, suppliers, outputs, successor: None });
        self.enlist();
        Ok(())
    }

    /// Takes the results of rounds that are over.
    pub(super) fn take_rounds(&mut self) {
        for at in 0..self.graphs.deployed.len() {
            while let Some((job, ended)) = self.graphs.deployed[at].deployment.take_ended() {
                self.round_is_over(at, job, ended);
            }
            self.graphs.replace(at);
        }
    }

    /// Looks over the graphs, once a second.
    pub(super) fn look_over_graphs(&mut self) {
        self.graphs.deployed.iter_mut().for_each(|deployed| deployed.deployment.look());
    }

    fn round_is_over(&mut self, at: usize, job: JobId, ended: Ended) {
        self.clock.advance();
        let now_ns = self.clock.utc_ns_of(self.clock.broker());
        let Graphs { deployed, actions, results, .. } = &mut self.graphs;
        let deployment = &mut deployed[at].deployment;
        deployment.finish(now_ns, job, ended, actions);
        for action in actions.drain(..) {
            match action {
                // Its slot may be another event's from the next action on.
                Action::Deliver { output, slot, record, shed, .. } => results.add(deployment, output, slot, record, shed),
                action => deployment.carry_out(action),
            }
        }
        let mut results = std::mem::take(&mut self.graphs.results);
        let mut waiting = std::mem::take(&mut results.waiting);
        for result in waiting.drain(..) {
            self.publish_result(at, now_ns, &result, &mut results);
        }
        results.waiting = waiting;
        results.payloads.clear();
        self.graphs.results = results;
    }

    /// Publishes a result in its output's topic.
    fn publish_result(&mut self, at: usize, now_ns: u64, result: &GraphResult, texts: &mut Results) {
        let Deployed { deployment, outputs, .. } = &self.graphs.deployed[at];
        let topic = outputs[result.output];
        self.scratch.event_type.clear();
        self.scratch.event_type.push_str(&deployment.graph().outputs()[result.output].topic);
        if result.shed > 0 {
            self.broker.tell_lost(topic, result.shed.into(), &mut self.outputs);
            self.carry_out_now();
        }
        let Record { lead, begin_ns, is_marked, .. } = result.record;
        let event_type = JsonText::write(&self.scratch.event_type, &mut texts.event_type_literal);
        let payload = JsonText::write(&texts.payloads[result.payload.clone()], &mut texts.payload_literal);
        let source = SystemId(lead.publisher.0.cast_signed());
        let publication = publication::derived(event_type, payload, is_marked, source, UtcTime::from_unix_nanos(begin_ns));
        let published = self.publish_derived(&publication, lead.identity(topic));
        let deployment = &self.graphs.deployed[at].deployment;
        deployment.count_result(now_ns, result.output, &result.record, published.is_ok());
        if let Err(refusal) = published {
            tracing::debug!(graph = deployment.graph().name, why = refusal.told(), "a result of a graph was not published");
        }
    }

    fn publish_derived(&mut self, publication: &Authorized<Publication<'_>>, name: EventId) -> Result<(), NotTaken> {
        if !self.leads() {
            return Err(NotTaken::Broker(bodkin_broker::Refusal::NotLeading));
        }
        let snapshot = self.context.store.snapshot();
        self.sync(&snapshot);
        self.take(&snapshot, publication, Numbering::Derived(name)).map(drop)
    }

    /// Offers the broker a result, in the stream that it is named in.
    pub(super) fn accept_derived(&mut self, name: EventId, created_ns: u64, terms: &Terms) -> Result<Accepted, NotTaken> {
        let EventId { publisher, incarnation, topic, sequence } = name;
        let identity = StreamIdentity { topic, publisher, incarnation };
        let stream = self.broker.open_stream(identity).map_err(|_| NotTaken::too_many_publishers(terms))?;
        let created = self.clock.local_of_utc_ns(created_ns);
        let event = bodkin_broker::Publication { epoch: Epoch::NONE, sequence, created, is_resent: false };
        let accepted = self.broker.accept(self.clock.broker(), stream, event).map_err(NotTaken::Broker);
        self.publishers.heard(stream, self.clock.now);
        accepted
    }
}
