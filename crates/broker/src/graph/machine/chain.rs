//! Operators in a row that one worker runs without asking in between: a round of the first one has a worker go on with the round behind it on its result.
//!
//! A round costs two wake-ups, of its worker and of the shard. Where the result of an operator goes to one other, which takes nothing else, nothing can be decided between the two rounds that could not be decided before:
//! so the machine begins both at once, and a worker that has the first result goes on with it. Everything else is as with two rounds: each is counted, each has its slot and its outcome, and the second one is
//! not begun by the worker when its events are not valid for long enough by then.

use super::{
    super::{
        response,
        spec::{Graph, OnInvalid, OperatorId, OperatorSpec, Source, Trigger, Use},
    },
    Action, JobId, Machine,
    inputs::{Invalid, Round},
    node::Running,
    store::EventSlot,
};
use crate::{event::PublisherId, timing::Nanos};

/// Operators that one worker runs in a row at the most.
pub const CHAIN_MAX: usize = 4;
/// What a chain may cost at the most, as a part of the time between two events that start it: the first round of the next event waits for the last one of this event, and is to have been begun by then anyway.
const PART_OF_PERIOD: f64 = 0.5;

/// A round that a worker goes on with behind another one, on its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Which round.
    pub job: JobId,
    /// Its only event: the result of the round in front of it.
    pub event: EventSlot,
    /// When that event was made, in nanoseconds of UTC.
    pub created_ns: u64,
    /// Who published what that event is named after.
    pub publisher: PublisherId,
    /// Where the result's payload goes.
    pub result: EventSlot,
    /// From when on it is too late to begin it, in nanoseconds of UTC; `u64::MAX` is never.
    pub too_late_ns: u64,
}

/// A round that is to follow another one that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserved {
    pub round: Round,
    pub event: EventSlot,
    pub result: EventSlot,
    /// The first operator of the chain.
    pub first: OperatorId,
}

/// By operator: the one that a worker may go on with, where more urgent rounds may stop it.
pub fn followers(graph: &Graph) -> Vec<Option<OperatorId>> {
    let mut followers = vec![None; graph.operators().len()];
    // Of the chain that ends with an operator: its first one, how many there are, and what they cost.
    let costs = graph.operators().iter().enumerate().map(|(at, operator)| (OperatorId::of(at), 1, operator.cost));
    let mut chains: Vec<(OperatorId, usize, Nanos)> = costs.collect();
    for operator in graph.order() {
        let Some(next) = sole_reader(graph, *operator) else { continue };
        let (first, count, cost) = chains[operator.index()];
        let cost = cost + graph.operator(next).cost;
        if count < CHAIN_MAX && cost.get() as f64 / 1e9 * response::rate_per_s(graph, first) <= PART_OF_PERIOD {
            followers[operator.index()] = Some(next);
            chains[next.index()] = (first, count + 1, cost);
        }
    }
    followers
}

/// The operator that takes an operator's results and nothing else, if nobody else takes them.
fn sole_reader(graph: &Graph, id: OperatorId) -> Option<OperatorId> {
    let mut readers = graph.readers(Source::Operator(id));
    let ((reader, _), None) = (readers.next()?, readers.next()) else { return None };
    let (operator, spec) = (graph.operator(id), graph.operator(reader));
    let sheds = |operator: &OperatorSpec| operator.on_invalid == OnInvalid::Shed;
    let is_sole = graph.outputs().iter().all(|output| output.from != id)
        && matches!(&*spec.inputs, [edge] if edge.usage == Use::Consume)
        && spec.trigger == Trigger::All
        && graph.level(id) == graph.level(reader)
        && sheds(operator)
        && sheds(spec);
    is_sole.then_some(reader)
}

impl Machine {
    /// The round that the worker of an operator's round goes on with when it has a result of its shape; none if it is done then. It is known from [`Action::Run`] of the chain's first round until that one's end.
    pub fn next(&self, operator: OperatorId) -> Option<Next> {
        let next = self.nodes[operator.index()].follower?;
        let node = &self.nodes[next.index()];
        let Reserved { round, event, result, .. } = node.reserved?;
        let too_late_ns = if round.end_ns == u64::MAX { u64::MAX } else { round.end_ns.saturating_sub(node.remaining_ns) };
        let job = JobId { operator: next, round: node.rounds + 1 };
        Some(Next { job, event, created_ns: round.begin_ns, publisher: round.lead.publisher, result, too_late_ns })
    }

    /// Has the worker of a round that begins go on with the operators behind it, as far as they are at rest. Without threads that more urgent ones can stop, one step is the longest delay.
    pub(super) fn reserve(&mut self, first: OperatorId, round: Round, result: EventSlot) {
        if !self.policy.is_preemptive {
            return;
        }
        let (mut at, mut event) = (first, result);
        while let Some(next) = self.nodes[at.index()].follower
            && self.nodes[next.index()].is_at_rest()
        {
            let result = self.store.take(Source::Operator(next));
            self.nodes[next.index()].reserved = Some(Reserved { round, event, result, first });
            (at, event) = (next, result);
        }
    }

    /// Goes on with the round that the worker has run behind that of an operator, which has a result; false if there is none.
    pub(super) fn follow(&mut self, operator: OperatorId) -> bool {
        let Some(next) = self.nodes[operator.index()].follower else { return false };
        let node = &mut self.nodes[next.index()];
        let Some(Reserved { round, event, result, first }) = node.reserved.take() else { return false };
        let (mut events, mut counts) = std::mem::take(&mut node.spare);
        events.push(event);
        counts.push(1);
        node.rounds += 1;
        node.counters.rounds += 1;
        node.running = Some(Running { events, counts, result, round, first });
        self.store.hold(event);
        self.levels[self.nodes[next.index()].level].running += 1;
        true
    }

    /// Nothing follows the round of an operator: it has no result.
    pub(super) fn part(&mut self, operator: OperatorId) {
        let mut at = operator;
        while let Some(next) = self.nodes[at.index()].follower
            && let Some(Reserved { result, .. }) = self.nodes[next.index()].reserved.take()
        {
            self.store.release(result);
            at = next;
        }
    }

    /// Notes that a worker has not begun the round behind another one, because its events were not valid for long enough.
    pub(super) fn shed_behind(&mut self, now_ns: u64, operator: OperatorId, round: Round, out: &mut Vec<Action>) {
        let node = &mut self.nodes[operator.index()];
        let why = if now_ns >= round.end_ns { Invalid::Expired } else { Invalid::TooLate };
        node.counters.rounds -= 1;
        node.counters.shed(why);
        let pace = &mut self.levels[node.level].pace;
        pace.lose(now_ns);
        if round.begun_ns > 0 {
            pace.give_up(now_ns.saturating_sub(round.begun_ns));
        }
        out.push(Action::Shed { operator, lead: round.lead, why });
        self.lose(operator);
    }
}
