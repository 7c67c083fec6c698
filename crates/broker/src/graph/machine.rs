//! The graph at work: which operator runs next on which events, and what becomes of its results.
//!
//! [`Machine::arrive`] takes an event of a supplier, [`Machine::finish`] the result of a round; both write what is to be done into a buffer of the caller's, in the order in which it
//! is to be done. The machine has no clock, no thread and no payload: the host has a buffer for every [`EventSlot`], and workers that run rounds.
//!
//! **Who is next.** Levels are looked at from the most urgent on. A level begins what is ready, in the order in which it became ready; where nothing is, it takes the
//! next of its suppliers' events; where there is none either, and a core is free of this level's work and that of those above, it hands the oldest shared event over to a less urgent level. So work of a
//! level goes before sharing from it, and sharing goes before work of any level below (Wang 2019, section 2.4.1). An operator runs one round at a time; others run beside it,
//! and a new round of the graph may begin before the last one ends. Operators in a row are run by one worker where more urgent rounds may stop it ([`Machine::next`]).
//!
//! **What is valid.** An event counts from its creation for the supplier's validity, the end not included; a result for as long as all that it was made of. A round is judged
//! when it is to begin: what is not valid, or would not be when the nearest output could have a result, is shed, and with it nothing else; or the result is marked. A result is judged once
//! more in front of its outputs.
//!
//! **Names.** A result is named after an event that started it, in another topic ([`Lead`]): who is handed the same event again after a fail-over makes a result of the same
//! name, which falls as a duplicate. Each event starts at most one round of an operator, so that no two results have one name. An output says which result it follows and how many were shed between the
//! two: a number that is missing without that is a loss.
//!
//! Nothing is allocated after the first events of each stream.

mod chain;
mod counters;
mod held;
mod inputs;
mod level;
mod node;
mod pace;
mod progress;
mod rate;
mod schedule;
mod store;
mod waiting;
mod words;

pub use self::{
    chain::{CHAIN_MAX, Next, followers},
    counters::OperatorCounters,
    held::HeldError,
    inputs::Invalid,
    store::{EventSlot, Record},
    waiting::{Waiting, WaitingEvent},
    words::{Action, Arrival, Job, JobId, Lead, Outcome, Policy, Refused},
};
use self::{
    inputs::Round,
    level::{LevelQueues, Move},
    node::{Node, Running},
    progress::Progress,
    rate::ArrivalRate,
    store::Store,
};
use super::{
    operator::Emission,
    spec::{Graph, OnInvalid, OperatorId, Source, SupplierId},
};
use crate::timing::Span;

/// Events of a supplier that wait to be taken at the most, where newer ones do not replace them.
pub const QUEUE_MAX: usize = 64;

#[derive(Clone, Debug, Default)]
struct OutputState {
    follows: Progress,
    shed: u32,
}

/// A graph at work.
#[derive(Clone, Debug)]
pub struct Machine {
    graph: Graph,
    policy: Policy,
    store: Store,
    nodes: Vec<Node>,
    outputs: Vec<OutputState>,
    /// The most urgent first.
    levels: Vec<LevelQueues>,
    /// Of each supplier: its level, and who reads it.
    suppliers: Vec<(usize, Vec<(OperatorId, usize)>)>,
    /// Of each supplier.
    rates: Vec<ArrivalRate>,
    refused: u64,
    excess: u64,
    replaced_queued: u64,
    replaced_at_inputs: u64,
    is_suspended: bool,
    /// Whether less urgent levels wait for the host's word.
    is_held: bool,
    dropped: Vec<EventSlot>,
}

impl Machine {
    /// A graph at rest.
    ///
    /// # Panics
    /// If there is no core.
    pub fn new(graph: Graph, policy: Policy) -> Self {
        assert!(policy.cores > 0, "a graph needs a core");
        let mut numbers: Vec<_> = graph.order().iter().map(|operator| graph.level(*operator)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let place = |level| numbers.binary_search(&level).expect("every operator's level is one");
        let queued = |supplier: SupplierId| queue_len(&graph, policy, supplier);
        let store = Store::new(&graph, queued);
        let node = |(at, follower)| Node::new(&graph, OperatorId::of(at), place(graph.level(OperatorId::of(at))), follower);
        let nodes: Vec<Node> = followers(&graph).into_iter().enumerate().map(node).collect();
        let suppliers: Vec<_> = (0..graph.suppliers().len())
            .map(|at| {
                let id = SupplierId::of(at);
                (place(graph.supplier_level(id)), graph.readers(Source::Supplier(id)).collect())
            })
            .collect();
        let slots = store.len();
        let levels = numbers.iter().map(|_| LevelQueues::new(nodes.len(), slots)).collect();
        let outputs = graph.outputs().iter().map(|_| OutputState::default()).collect();
        let dropped = Vec::with_capacity(super::EVENTS_MAX);
        let rates = vec![ArrivalRate::default(); graph.suppliers().len()];
        Self {
            graph,
            policy,
            store,
            nodes,
            outputs,
            levels,
            suppliers,
            rates,
            refused: 0,
            excess: 0,
            replaced_queued: 0,
            replaced_at_inputs: 0,
            is_suspended: false,
            is_held: false,
            dropped,
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// How many payload buffers the host has.
    pub fn slots(&self) -> usize {
        self.store.len()
    }

    /// How many of them hold an event that is needed.
    pub fn slots_held(&self) -> usize {
        self.store.held()
    }

    /// What is known of the event in a slot.
    pub fn record(&self, slot: EventSlot) -> &Record {
        self.store.record(slot)
    }

    /// What became of an operator's rounds so far.
    pub fn counters(&self, operator: OperatorId) -> &OperatorCounters {
        &self.nodes[operator.index()].counters
    }

    /// Suppliers' events that were not taken, and those that were replaced before they were.
    pub fn arrivals_lost(&self) -> (u64, u64) {
        (self.refused, self.replaced_queued)
    }

    /// Counts events and results that newer ones replaced before an operator used them.
    pub fn replaced(&self) -> u64 {
        self.replaced_queued + self.replaced_at_inputs
    }

    /// Counts taken events that arrived faster than their supplier's period and jitter allow.
    pub fn excess(&self) -> u64 {
        self.excess
    }

    /// Takes an event. The caller puts its payload into the slot before it carries out what is in `out`.
    pub fn arrive(&mut self, now_ns: u64, arrival: Arrival, out: &mut Vec<Action>) -> Result<EventSlot, Refused> {
        let supplier = &self.graph.suppliers()[arrival.supplier.index()];
        let end_ns = match supplier.validity {
            Span::Finite(validity) => arrival.created_ns.saturating_add(validity.get().unsigned_abs()),
            Span::Infinite => u64::MAX,
        };
        let refused = match () {
            () if self.is_suspended => Some(Refused::Suspended),
            () if !supplier.shape.fits(arrival.bytes) => Some(Refused::Shape { bytes: arrival.bytes, shape: supplier.shape }),
            () if now_ns >= end_ns && self.sheds(arrival.supplier) => Some(Refused::Expired),
            () => None,
        };
        if let Some(refused) = refused {
            self.refused += 1;
            return Err(refused);
        }
        self.excess += u64::from(self.rates[arrival.supplier.index()].is_excess(now_ns, supplier));
        let Arrival { publisher, incarnation, sequence, .. } = arrival;
        assert!(publisher.0 < 1 << 56, "a publisher's number leaves room for the way");
        let source = Source::Supplier(arrival.supplier);
        let slot = self.store.take(source);
        let lead = Lead { publisher, incarnation, sequence, branch: 0 };
        let (begin_ns, bytes) = (arrival.created_ns, arrival.bytes as u32);
        self.store.write(slot, Record { source, lead, begin_ns, end_ns, bytes, is_marked: false }, 0);
        self.queue(now_ns, arrival.supplier, slot);
        self.schedule(now_ns, out);
        Ok(slot)
    }

    /// Whether every reader of a supplier sheds what is not valid.
    fn sheds(&self, supplier: SupplierId) -> bool {
        let readers = &self.suppliers[supplier.index()].1;
        readers.iter().all(|(operator, _)| self.graph.operator(*operator).on_invalid == OnInvalid::Shed)
    }

    /// Whether an event of a supplier would wait without replacing one that waits, in the queue or in front of an operator that has all it needs for its next round.
    pub fn has_room(&self, supplier: SupplierId) -> bool {
        if self.suppliers[supplier.index()].1.iter().any(|(reader, _)| self.nodes[reader.index()].inputs.is_ready()) {
            return false;
        }
        let (source, most) = (Source::Supplier(supplier), queue_len(&self.graph, self.policy, supplier));
        let level = &self.levels[self.suppliers[supplier.index()].0];
        level.arrivals().filter(|slot| self.store.record(*slot).source == source).count() < most
    }

    /// Whether no event of a supplier waits to be taken, or for its turn in front of an operator: the next one takes no other one's place, and leaves the whole queue to those behind it.
    pub fn has_taken_all(&self, supplier: SupplierId) -> bool {
        let level = &self.levels[self.suppliers[supplier.index()].0];
        self.has_room(supplier) && level.arrivals().all(|slot| self.store.record(slot).source != Source::Supplier(supplier))
    }

    /// Lets a supplier's event wait to be taken; one that it replaces is gone.
    fn queue(&mut self, now_ns: u64, supplier: SupplierId, slot: EventSlot) {
        let (source, most) = (Source::Supplier(supplier), queue_len(&self.graph, self.policy, supplier));
        let store = &self.store;
        let level = &mut self.levels[self.suppliers[supplier.index()].0];
        if let Some(replaced) = level.arrive(slot, most, |slot| store.record(slot).source == source) {
            self.replaced_queued += 1;
            level.pace.lose(now_ns);
            self.store.release(replaced);
        }
    }

    /// Takes the result of a round. One of a round that does not run any more changes nothing. Where a worker has [gone on](Self::next) behind it, the outcome of that round is to be told next.
    pub fn finish(&mut self, now_ns: u64, job: JobId, outcome: Outcome, out: &mut Vec<Action>) {
        let node = &mut self.nodes[job.operator.index()];
        if node.rounds != job.round {
            return;
        }
        let Some(running) = node.running.take() else { return };
        self.levels[node.level].running -= 1;
        for slot in &running.events {
            self.store.release(*slot);
        }
        let Running { mut events, mut counts, result, round, first } = running;
        events.clear();
        counts.clear();
        node.spare = (events, counts);
        let shape = self.graph.operator(job.operator).shape;
        let mut is_followed = false;
        match outcome {
            Outcome::Done(Emission::Emit, bytes) if shape.fits(bytes) => {
                node.counters.emitted += 1;
                node.counters.marked += u64::from(round.is_marked);
                let (source, Round { lead, begin_ns, end_ns, is_marked, begun_ns }) = (Source::Operator(job.operator), round);
                self.store.write(result, Record { source, lead, begin_ns, end_ns, bytes: bytes as u32, is_marked }, begun_ns);
                self.deliver(now_ns, job.operator, result, out);
                is_followed = self.follow(job.operator);
                if !is_followed {
                    self.share(job.operator, result);
                }
            }
            Outcome::Done(Emission::Nothing, _) => node.counters.held_back += 1,
            Outcome::TooLate => self.shed_behind(now_ns, job.operator, round, out),
            _ => {
                node.counters.failed += 1;
                self.lose(job.operator);
            }
        }
        self.store.release(result);
        if is_followed {
            // The worker has run that round as well: its first operator goes on when all of them are over, so that it finds them at rest.
            return;
        }
        self.part(job.operator);
        self.enqueue(job.operator);
        self.enqueue(first);
        self.schedule(now_ns, out);
    }

    /// What a worker needs for a round that runs.
    pub fn job(&self, job: JobId) -> Option<Job<'_>> {
        let node = &self.nodes[job.operator.index()];
        let running = node.running.as_ref().filter(|_| node.rounds == job.round)?;
        Some(Job { events: &running.events, counts: &running.counts, result: running.result })
    }

    /// Lets the operating system stop less urgent rounds from now on: each level has workers of its own that are real-time threads.
    pub fn preempt(&mut self) {
        self.policy.is_preemptive = true;
    }

    /// Longest payload of each slot's events.
    pub fn slot_bytes_max(&self) -> impl Iterator<Item = usize> {
        self.store.sources().map(|source| match source {
            Source::Supplier(supplier) => self.graph.suppliers()[supplier.index()].shape.bytes_max(),
            Source::Operator(operator) => self.graph.operator(operator).shape.bytes_max(),
        })
    }

    /// Lets less urgent levels begin nothing until [`Self::release`]: all but the most urgent one, or that where it is the only one.
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// Whether less urgent levels wait.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Lets all levels go on.
    pub fn release(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        self.is_held = false;
        self.schedule(now_ns, out);
    }

    /// Begins no more rounds and takes no more events; what runs may end.
    pub fn suspend(&mut self) {
        self.is_suspended = true;
    }

    /// Goes on.
    pub fn resume(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        self.is_suspended = false;
        self.schedule(now_ns, out);
    }

    /// Hands a result to the outputs of its operator.
    fn deliver(&mut self, now_ns: u64, operator: OperatorId, slot: EventSlot, out: &mut Vec<Action>) {
        let record = *self.store.record(slot);
        let is_shed = self.graph.operator(operator).on_invalid == OnInvalid::Shed && now_ns >= record.end_ns;
        let node = &mut self.nodes[operator.index()];
        if !node.outputs.is_empty() {
            let pace = &mut self.levels[node.level].pace;
            match self.store.begun_ns(slot) {
                0 => {}
                begun_ns if is_shed => pace.give_up(now_ns.saturating_sub(begun_ns)),
                begun_ns => pace.note(now_ns.saturating_sub(begun_ns)),
            }
        }
        if is_shed && !node.outputs.is_empty() {
            node.counters.shed_at_output += 1;
            self.levels[node.level].pace.lose(now_ns);
            out.push(Action::Shed { operator, lead: record.lead, why: Invalid::Expired });
        }
        for output in &node.outputs {
            let state = &mut self.outputs[*output];
            if is_shed {
                state.shed = state.shed.saturating_add(1);
                continue;
            }
            let follows = state.follows.advance(record.lead);
            out.push(Action::Deliver { output: *output, slot, record, follows, shed: std::mem::take(&mut state.shed) });
        }
    }

    /// Hands a result to the operators behind: those of its level at once, others by way of the queue for what is shared.
    fn share(&mut self, operator: OperatorId, slot: EventSlot) {
        let own = self.nodes[operator.index()].level;
        for at in 0..self.nodes[operator.index()].readers.len() {
            let (reader, input) = self.nodes[operator.index()].readers[at];
            self.store.hold(slot);
            self.hand(own, reader, input, slot);
        }
    }

    fn hand(&mut self, own: usize, reader: OperatorId, input: usize, slot: EventSlot) {
        if self.nodes[reader.index()].level == own {
            self.put(reader, input, slot);
            return;
        }
        let most = self.graph.operator(reader).inputs[input].usage.events();
        if let Some(replaced) = self.levels[own].share(Move { reader, input, slot }, most) {
            self.nodes[reader.index()].counters.replaced += 1;
            self.replaced_at_inputs += 1;
            self.store.release(replaced);
        }
    }

    fn put(&mut self, reader: OperatorId, input: usize, slot: EventSlot) {
        let node = &mut self.nodes[reader.index()];
        if let Some((replaced, was_unused)) = node.inputs.put(input, slot) {
            node.counters.replaced += u64::from(was_unused);
            self.replaced_at_inputs += u64::from(was_unused);
            self.store.release(replaced);
        }
        self.enqueue(reader);
    }

    /// A result less for all outputs behind.
    fn lose(&mut self, operator: OperatorId) {
        for output in &self.nodes[operator.index()].behind {
            let state = &mut self.outputs[*output];
            state.shed = state.shed.saturating_add(1);
        }
    }
}

/// How many events of a supplier may wait: one if it is replaced, otherwise as many as are valid at the same time, and never more than [`QUEUE_MAX`].
fn queue_len(graph: &Graph, policy: Policy, supplier: SupplierId) -> usize {
    let supplier = &graph.suppliers()[supplier.index()];
    match supplier.validity {
        _ if policy.replaces_queued => 1,
        Span::Finite(validity) => usize::try_from(validity.steps_of(supplier.period)).unwrap_or(QUEUE_MAX).clamp(1, QUEUE_MAX),
        Span::Infinite => QUEUE_MAX,
    }
}

#[cfg(test)]
mod tests;
