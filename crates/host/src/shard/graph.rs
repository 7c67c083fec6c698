//! Graphs in the shard: events of their suppliers' topics go in when they are handed to subscribers, and results go on as events of the outputs' topics, named after what they are
//! made of.

mod carried;
mod keep;
mod moving;
mod replace;

use std::ops::Range;

use bodkin_arrowhead::{
    caller::Authorized,
    publication::{self, JsonText, Publication},
    utc::UtcTime,
};
use bodkin_broker::{
    Accepted, Epoch, EventId, Instant, LeaderPermit, Refusal, ShardError, StreamIdentity, SubscriptionKey, TopicId,
    graph::{
        SupplierId,
        machine::{Action, EventSlot, JobId, Record},
    },
};

use self::{
    keep::{Checkpoints, Keeping},
    moving::{Pause, Successor},
};
use super::{Shard, not_taken::NotTaken, publish::Numbering};
use crate::{
    graph::{Deployment, Ended, Made, Throttle, used},
    realtime::Realtime,
};

/// A graph, and the topics of its events.
struct Deployed {
    deployment: Deployment,
    suppliers: Vec<TopicId>,
    outputs: Vec<TopicId>,
    /// In a pair: what is kept for it.
    keeping: Option<Keeping>,
    /// The graph that runs in its place as soon as what it has taken is processed.
    successor: Option<Successor>,
    /// Why it takes nothing in, besides.
    pause: Option<Pause>,
}

/// The graphs of a shard.
#[derive(Default)]
pub(super) struct Graphs {
    deployed: Vec<Deployed>,
    /// By topic: which graphs take its events, and as which supplier's.
    readers: Vec<Vec<(usize, SupplierId)>>,
    actions: Vec<Action>,
    results: Results,
    checkpoints: Checkpoints,
    /// What real-time workers leave of the cores' time to others; none before there are any.
    throttle: Option<Throttle>,
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
    /// Metadata of one that is of a trace.
    metadata: String,
}

/// A result that is to be published.
struct GraphResult {
    output: usize,
    /// Where its payload is.
    payload: Range<usize>,
    record: Record,
    made: Made,
    /// Results that its output has not had since the last one.
    shed: u32,
}

impl Graphs {
    /// Whether a graph takes the events of a topic.
    pub fn reads(&self, topic: TopicId) -> bool {
        self.readers.get(topic.0 as usize).is_some_and(|readers| !readers.is_empty())
    }

    /// Whether a graph makes the events of a topic: numbers that are passed over there are no losses.
    pub fn makes(&self, topic: TopicId) -> bool {
        self.deployed.iter().any(|deployed| deployed.outputs.contains(&topic))
    }

    /// Whether no graph has workers that are to be real-time threads.
    pub fn are_ordinary(&self) -> bool {
        let all = self
            .deployed
            .iter()
            .flat_map(|deployed| std::iter::once(deployed).chain(deployed.successor.as_ref().map(|successor| &*successor.deployed)));
        !all.into_iter().any(|deployed| deployed.deployment.is_preemptive())
    }

    /// Has less urgent levels wait as long as the process has used nearly all that its real-time threads may.
    fn hold(&mut self, now: std::time::Instant, now_ns: u64, realtime: &Realtime) {
        let mut preempting =
            self.deployed.iter_mut().map(|deployed| &mut deployed.deployment).filter(|deployment| deployment.preempts()).peekable();
        if preempting.peek().is_none() {
            self.throttle = None;
            return;
        }
        let is_held = self.throttle.get_or_insert_with(|| Throttle::begin(now, realtime.share_percent())).holds(now, used);
        // A graph that came meanwhile waits with the others.
        preempting.filter(|deployment| deployment.is_held() != is_held).for_each(|deployment| deployment.hold(now_ns, is_held));
    }

    /// When levels that wait are to go on.
    pub fn wait_until(&self) -> Option<std::time::Instant> {
        self.throttle.as_ref().and_then(Throttle::ends)
    }

    /// Hands an event to the graphs that take those of its topic, and are no subscribers of it.
    pub fn supply(&mut self, (now, now_ns): (Instant, u64), event: EventId, created_ns: u64, publication: &Publication<'_>) {
        let cause = publication.cause();
        for (graph, supplier) in self.readers.get(event.topic.0 as usize).into_iter().flatten() {
            let deployed = &mut self.deployed[*graph];
            if deployed.holds() {
                deployed.hold((event, created_ns), publication, false);
                continue;
            }
            let Deployed { deployment, keeping, .. } = deployed;
            deployment.take_in(now_ns, *supplier, (event, created_ns), publication.payload(), cause.as_ref());
            keeping.iter_mut().for_each(|keeping| keeping.note(now, *supplier, event));
        }
    }

    /// Notes that the broker has handed the event at work to a graph, as a subscriber.
    pub fn hand(&mut self, subscription: SubscriptionKey) {
        self.checkpoints.hand(subscription);
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.deployed.iter().position(|deployed| deployed.deployment.graph().name == name)
    }

    fn list_readers(&mut self) {
        self.readers.iter_mut().for_each(Vec::clear);
        for (at, deployed) in self.deployed.iter().enumerate() {
            let subscribes = |supplier: &usize| deployed.keeping.as_ref().is_some_and(|keeping| keeping.subscribes(*supplier));
            let is_fetched = |supplier: &usize| deployed.deployment.link_of(SupplierId::of(*supplier)).is_some();
            let own = |(supplier, _): &(usize, &TopicId)| !subscribes(supplier) && !is_fetched(supplier);
            for (supplier, topic) in deployed.suppliers.iter().enumerate().filter(own) {
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
    fn add(&mut self, deployment: &Deployment, output: usize, (slot, record): (EventSlot, Record), shed: u32) {
        let from = self.payloads.len();
        deployment.push_text(output, &mut self.payloads);
        let made = deployment.made(slot, &record);
        self.waiting.push(GraphResult { output, payload: from..self.payloads.len(), record, made, shed });
    }
}

impl Shard {
    /// Has a graph run from now on. Where the leader before has left a checkpoint of the version `before`, that one goes on from there, and this one takes its place.
    pub(super) fn deploy(&mut self, deployment: Deployment, before: Option<Deployment>) -> Result<(), ShardError> {
        if let Some(mut before) = before {
            if self.awaits(&before) {
                self.deploy(before, None)?;
            } else {
                deployment.spare(&mut before);
            }
        }
        let new = self.with_topics(deployment)?;
        match self.graphs.named(&new.deployment.graph().name) {
            Some(at) => self.succeed(at, Successor::certain(new)),
            None => {
                self.graphs.deployed.push(new);
                self.graph_begins(self.graphs.deployed.len() - 1);
            }
        }
        self.enlist();
        Ok(())
    }

    /// A graph with the topics of its events.
    fn with_topics(&mut self, deployment: Deployment) -> Result<Deployed, ShardError> {
        let graph = deployment.graph();
        let mut numbers =
            |topics: &mut dyn Iterator<Item = &String>| topics.map(|topic| self.broker.topic(topic)).collect::<Result<Vec<_>, _>>();
        let suppliers = numbers(&mut graph.suppliers().iter().map(|supplier| &supplier.topic))?;
        let outputs = numbers(&mut graph.outputs().iter().map(|output| &output.topic))?;
        tracing::info!(graph = graph.name, operators = graph.operators().len(), "a graph is deployed");
        Ok(Deployed { deployment, suppliers, outputs, keeping: None, successor: None, pause: None })
    }

    fn graph_begins(&mut self, at: usize) {
        let has_gone_on = self.begin_keeping(at);
        self.graphs.list_readers();
        let now_ns = self.clock.utc_ns_of(self.clock.broker());
        if has_gone_on {
            self.graphs.deployed[at].deployment.has_taken_over();
        } else {
            let taken = self.graphs.deployed[at].deployment.take_over();
            self.keep_brought(at, &taken);
            self.graphs.deployed[at].deployment.resume(now_ns);
        }
        let Deployed { deployment, keeping, .. } = &mut self.graphs.deployed[at];
        if has_gone_on || keeping.is_none() {
            deployment.is_at_work();
        }
        deployment.fetch();
    }

    /// Ends a graph; one that is not there is no error.
    pub(super) fn withdraw(&mut self, graph: &str) {
        self.await_graph_no_more(graph);
        if let Some(at) = self.graphs.named(graph) {
            let Deployed { keeping, .. } = self.graphs.deployed.remove(at);
            self.end_keeping(graph, keeping);
            self.graphs.list_readers();
        }
    }

    /// Takes the results of rounds that are over.
    pub(super) fn take_rounds(&mut self) {
        for at in 0..self.graphs.deployed.len() {
            while let Some((job, ended)) = self.graphs.deployed[at].deployment.take_ended() {
                self.round_is_over(at, job, ended);
            }
            self.replace_graph(at);
            self.look_after_moves(at);
            if !self.graphs.deployed[at].is_held_up() {
                self.supply_held(at);
                self.supply_carried(at);
            }
        }
        self.graphs.hold(self.clock.now, self.clock.utc_ns_of(self.clock.broker()), &self.context.realtime);
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
                // Its operator may run its next round from the next action on.
                Action::Deliver { output, slot, record, shed, .. } => results.add(deployment, output, (slot, record), shed),
                action => deployment.carry_out(now_ns, action),
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
        let source = self.graphs.deployed[at].deployment.source(lead.publisher, &self.context.store.snapshot());
        let (processing, cause) = self.begin_process(&result.made);
        let caused = cause.as_ref().map(|cause| (cause, &mut texts.metadata));
        let publication = publication::derived(event_type, payload, is_marked, source, UtcTime::from_unix_nanos(begin_ns), caused);
        let published = self.publish_derived(&publication, lead.identity(topic));
        let deployment = &self.graphs.deployed[at].deployment;
        let refusal = published.as_ref().err().filter(|_| processing.is_some());
        self.end_process(processing, deployment.graph(), result.output, refusal.map(NotTaken::told));
        deployment.count_result(now_ns, result.output, &result.record, published.is_ok());
        if let Err(refusal) = published {
            tracing::debug!(graph = deployment.graph().name, why = refusal.told(), "a result of a graph was not published");
        }
    }

    fn publish_derived(&mut self, publication: &Authorized<Publication<'_>>, name: EventId) -> Result<(), NotTaken> {
        let snapshot = self.context.store.snapshot();
        self.sync(&snapshot);
        self.take(&snapshot, publication, Numbering::Derived(name)).map(drop)
    }

    /// Offers the broker a result, in the stream that it is named in.
    pub(super) fn accept_derived(&mut self, permit: LeaderPermit, name: EventId, created_ns: u64) -> Result<Accepted, NotTaken> {
        let accepted = self.accept_named(permit, name, created_ns, true);
        if let Err(NotTaken::Broker(Refusal::Full { .. })) = accepted {
            // It does not come again: those behind it are not to wait for it, and whoever hears the topic lacks it.
            self.broker.tell_lost(name.topic, 1, &mut self.outputs);
            self.give_up(name);
        }
        accepted
    }

    /// Offers the broker an event that has its name already.
    pub(super) fn accept_named(
        &mut self,
        permit: LeaderPermit,
        name: EventId,
        created_ns: u64,
        is_result: bool,
    ) -> Result<Accepted, NotTaken> {
        let EventId { publisher, incarnation, topic, sequence } = name;
        let identity = StreamIdentity { topic, publisher, incarnation };
        let stream = self.broker.open_stream(&permit, identity)?;
        let created = self.clock.local_of_utc_ns(created_ns);
        let event = bodkin_broker::Publication { epoch: Epoch::NONE, sequence, created, is_resent: false, has_wrong_clock: false };
        let now = self.clock.broker();
        let accepted = match is_result {
            true => self.broker.accept_result(now, permit, stream, event),
            false => self.broker.accept(now, permit, stream, event),
        };
        self.publishers.heard(stream, self.clock.now);
        accepted.map_err(NotTaken::Broker)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bodkin_operators::Keys;

    use super::*;
    use crate::graph::{Carriers, GraphCounts, GraphTable, parse};

    /// A graph whose workers are real-time threads.
    fn deployed(realtime: &Arc<Realtime>) -> Deployed {
        let text = "[graph]\nname = \"means\"\npreemption = true\n[[supplier]]\ntopic = \"level\"\nshape = \"f64\"\nperiod_ms = 1\n\
            [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"level\"]\nwindow = 4\n\
            [[output]]\ntopic = \"mean\"\nfrom = \"mean\"\n";
        let file = parse(text).expect("it is a graph");
        let (_, inbox) = Shard::inbox().expect("there is an inbox");
        let (counts, table) = (Arc::new(GraphCounts::of(1)), Arc::<GraphTable>::default());
        let mut deployment =
            Deployment::start(&file, &Keys::default(), counts, (Vec::new(), Carriers::default()), realtime, &inbox, &table)
                .expect("it starts");
        deployment.look();
        assert!(deployment.preempts());
        Deployed { deployment, suppliers: vec![TopicId(0)], outputs: vec![TopicId(1)], keeping: None, successor: None, pause: None }
    }

    #[test]
    fn a_graph_that_comes_while_others_wait_waits_with_them() {
        let (begin, realtime) = (std::time::Instant::now(), Realtime::preempting());
        // This process has used more than a hundredth of a window since it began.
        let throttle = Throttle::new(begin, Duration::ZERO, 1, 6);
        let mut graphs = Graphs { deployed: vec![deployed(&realtime)], throttle: Some(throttle), ..Graphs::default() };
        let are_held = |graphs: &mut Graphs, ms: u64| {
            graphs.hold(begin + Duration::from_millis(ms), 0, &realtime);
            graphs.deployed.iter().map(|deployed| deployed.deployment.is_held()).collect::<Vec<_>>()
        };
        assert_eq!(are_held(&mut graphs, 1), [true]);
        graphs.deployed.push(deployed(&realtime));
        assert_eq!(are_held(&mut graphs, 2), [true, true]);
        assert_eq!(are_held(&mut graphs, 50), [false, false], "a new window begins");
    }
}
