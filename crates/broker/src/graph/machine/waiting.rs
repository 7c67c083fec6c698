//! What waits at an operator for further events, on its way from one machine to another: when a graph takes the place of another one, and when an operator goes to another host.
//!
//! It goes between two machines of which neither is at work: the one before [has nothing to do](Machine::is_idle), and the one behind has taken nothing yet.

use super::{
    HeldError, Lead, Machine,
    store::{EventSlot, Record},
};
use crate::graph::spec::OperatorId;

/// What waits at one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting<E> {
    /// The events, the oldest first.
    pub events: Vec<E>,
    /// How many of them, the newest ones, no round has had yet.
    pub fresh: u16,
    /// When the newest one came, by a count of all that came to the operator.
    pub came: u64,
}

/// What is known of an event that waits, besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingEvent {
    /// What it is named after.
    pub lead: Lead,
    /// From when on it is valid, in nanoseconds of UTC.
    pub begin_ns: u64,
    /// From when on it is no longer valid, in nanoseconds of UTC.
    pub end_ns: u64,
    /// Whether it is made of what was not valid.
    pub is_marked: bool,
    /// Length of the payload.
    pub bytes: u32,
}

impl From<&Record> for WaitingEvent {
    fn from(record: &Record) -> Self {
        let Record { lead, begin_ns, end_ns, is_marked, bytes, .. } = *record;
        Self { lead, begin_ns, end_ns, is_marked, bytes }
    }
}

impl Machine {
    /// Whether no round runs and none can begin before another event comes: what it has taken is processed, as far as that goes.
    pub fn is_idle(&self) -> bool {
        self.levels.iter().all(|level| level.running == 0 && !level.waits())
    }

    /// What waits at an input of an operator.
    pub fn waiting(&self, operator: OperatorId, input: usize) -> Waiting<EventSlot> {
        self.nodes[operator.index()].inputs.waiting(input)
    }

    /// Lets events wait at an input of an operator, where nothing waits yet; gives their slots, which the caller fills. A round that they make begins with the next arrival, or with
    /// [`Self::resume`]. What does not fit the input is refused, and changes nothing.
    pub fn let_wait(&mut self, operator: OperatorId, input: usize, waiting: &Waiting<WaitingEvent>) -> Result<Vec<EventSlot>, HeldError> {
        let edge = self.graph.operator(operator).inputs.get(input).copied().ok_or(HeldError::Graph("there is no such input"))?;
        let Waiting { events, fresh, came } = waiting;
        if events.len() > edge.usage.events() || usize::from(*fresh) > events.len() {
            return Err(HeldError::Graph("an input holds more events than it may"));
        }
        let shape = self.graph.shape(edge.from);
        if events.iter().any(|event| !shape.fits(event.bytes as usize)) {
            return Err(HeldError::Graph("an event has another shape"));
        }
        let mut slots = Vec::with_capacity(events.len());
        for WaitingEvent { lead, begin_ns, end_ns, is_marked, bytes } in events.iter().copied() {
            let slot = self.store.take(edge.from);
            self.store.write(slot, Record { source: edge.from, lead, begin_ns, end_ns, bytes, is_marked }, 0);
            slots.push(slot);
        }
        self.nodes[operator.index()].inputs.let_wait(input, &slots, *fresh, *came);
        self.enqueue(operator);
        Ok(slots)
    }

    /// How far the results of an output have come: the newest of each stream, and how many were shed since.
    pub fn progress(&self, output: usize) -> (impl Iterator<Item = Lead>, u32) {
        let state = &self.outputs[output];
        (state.follows.newest(), state.shed)
    }

    /// The results of an output follow those of another machine.
    pub fn go_on_behind(&mut self, output: usize, newest: impl Iterator<Item = Lead>, shed: u32) {
        let state = &mut self.outputs[output];
        for lead in newest {
            state.follows.advance(lead);
        }
        state.shed = shed;
    }
}
