//! What the shard and the workers of a graph share: payloads, and operators with the rounds that they run.
//!
//! Each of them has a lock, and nobody waits for one. The machine gives a slot to one round, as its result, and to readers only when that round is over; an operator has one round at
//! a time, and the shard fills it in before a worker hears of it. A lock that is held by another is a broken invariant of ours, so that no thread ever waits for a less urgent one.

use std::{
    sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard},
    time::{Duration, Instant},
};

use bodkin_broker::graph::{
    EVENTS_MAX, Emission, Event, Fault, Graph, Inputs, Operator, OperatorId, Shape, StateError,
    machine::{CHAIN_MAX, EventSlot, JobId, Machine, Next},
};
use bodkin_operators::text::{Form, Forms};

use super::contain::contain;

/// What became of a round.
#[derive(Debug)]
pub enum Ended {
    /// The operator is done, with a result of so many bytes if there is one.
    Done(Emission, usize),
    /// It has refused its events.
    Refused(Fault),
    /// It has panicked, and said this.
    Panicked(String),
    /// It follows another one, and was not begun: its events are not valid for long enough any more.
    TooLate,
}

/// Rounds that one worker runs in a row: the first ones are there.
pub type Row = [Option<JobId>; CHAIN_MAX];

/// What is to be run behind a round that has a result, on that.
#[derive(Clone, Copy, Debug)]
pub struct Following {
    /// Whose round it is.
    pub operator: OperatorId,
    /// From when on it is too late to begin it; none is never.
    pub too_late: Option<Instant>,
}

/// The end of a round that a worker has run.
#[derive(Debug)]
pub struct Ran {
    /// What became of it.
    pub ended: Ended,
    /// What the worker runs next.
    pub following: Option<Following>,
    /// Restarts of the operator from its start values in this round.
    pub restarts: u64,
}

/// An operator, and its round.
struct Station {
    operator: Box<dyn Operator>,
    shape: Shape,
    /// What its last result is in the topics that it goes to, once for each form. It is written where it is made, so that a long one keeps nobody waiting but its own level.
    texts: Vec<(Form, String)>,
    events: Vec<RoundEvent>,
    /// How many of them each input has.
    counts: Vec<u16>,
    result: Option<EventSlot>,
    following: Option<Following>,
}

/// An event of a round.
#[derive(Clone, Copy)]
struct RoundEvent {
    slot: EventSlot,
    created_ns: u64,
    publisher: u64,
}

/// Payloads and operators of a graph.
pub struct Plant {
    /// By slot.
    payloads: Box<[RwLock<Vec<u8>>]>,
    /// By operator.
    stations: Box<[Mutex<Station>]>,
}

const NOBODY_ELSE: &str = "the machine hands a slot or an operator to one at a time";

impl Plant {
    /// With room for the largest event of every slot, and all operators at rest.
    pub fn new(machine: &Machine, forms: &Forms, operators: impl Iterator<Item = Box<dyn Operator>>) -> Self {
        let station = |(at, operator)| {
            let (events, counts) = (Vec::with_capacity(EVENTS_MAX), Vec::with_capacity(EVENTS_MAX));
            let (id, graph) = (OperatorId::of(at), machine.graph());
            let (shape, texts) = (graph.operator(id).shape, texts(graph, forms, id));
            Mutex::new(Station { operator, shape, texts, events, counts, result: None, following: None })
        };
        Self {
            payloads: machine.slot_bytes_max().map(|bytes| RwLock::new(Vec::with_capacity(bytes))).collect(),
            stations: operators.enumerate().map(station).collect(),
        }
    }

    /// Puts a supplier's event into its slot.
    pub fn fill(&self, slot: EventSlot, payload: &[u8]) {
        let mut place = self.payloads[slot.index()].try_write().expect(NOBODY_ELSE);
        place.clear();
        place.extend_from_slice(payload);
    }

    /// The payload in a slot.
    pub fn payload(&self, slot: EventSlot) -> RwLockReadGuard<'_, Vec<u8>> {
        self.payloads[slot.index()].try_read().expect(NOBODY_ELSE)
    }

    fn station(&self, operator: OperatorId) -> MutexGuard<'_, Station> {
        self.stations[operator.index()].try_lock().expect(NOBODY_ELSE)
    }

    /// Appends the text of an operator's last result, which one of its outputs has in this form. The operator is at rest since then.
    pub fn push_text(&self, operator: OperatorId, form: Form, text: &mut String) {
        let station = self.station(operator);
        let (_, written) = station.texts.iter().find(|(other, _)| *other == form).expect("every form of its outputs is written");
        text.push_str(written);
    }

    /// Says which events a round has, and those that its worker goes on with behind it, before the worker runs them. `now_ns` is now in nanoseconds of UTC.
    pub fn prepare(&self, machine: &Machine, job: JobId, now_ns: u64) -> Row {
        let round = machine.job(job).expect("a round that begins runs");
        let mut station = self.station(job.operator);
        let event = |slot: &EventSlot| {
            let record = machine.record(*slot);
            RoundEvent { slot: *slot, created_ns: record.begin_ns, publisher: record.lead.publisher.0 }
        };
        station.begin(round.events.iter().map(event), round.counts, round.result);
        let (mut row, mut at) = ([None; CHAIN_MAX], job.operator);
        row[0] = Some(job);
        for place in &mut row[1..] {
            let Some(next) = machine.next(at) else { break };
            let Next { job, event, created_ns, publisher, result, too_late_ns } = next;
            *place = Some(job);
            let too_late = (too_late_ns != u64::MAX).then(|| Duration::from_nanos(too_late_ns.saturating_sub(now_ns)));
            station.following = Some(Following { operator: job.operator, too_late: too_late.map(|left| Instant::now() + left) });
            (station, at) = (self.station(job.operator), job.operator);
            station.begin([RoundEvent { slot: event, created_ns, publisher: publisher.0 }], &[1], result);
        }
        row
    }

    /// Appends the state of an operator at rest.
    pub fn save(&self, operator: OperatorId, state: &mut Vec<u8>) {
        self.station(operator).operator.save(state);
    }

    /// Gives an operator at rest a state.
    pub fn restore(&self, operator: OperatorId, state: &[u8]) -> Result<(), StateError> {
        self.station(operator).operator.restore(state)
    }

    /// Runs the round of an operator, on a worker; gives what that is to go on with.
    pub fn run(&self, operator: OperatorId) -> Ran {
        let mut station = self.station(operator);
        let Station { operator, shape, texts, events, counts, result, following } = &mut *station;
        let payloads: [_; EVENTS_MAX] = std::array::from_fn(|at| events.get(at).map(|event| self.payload(event.slot)));
        let mut seen = [Event { payload: &[], created_ns: 0, publisher: 0 }; EVENTS_MAX];
        for (place, (event, payload)) in seen.iter_mut().zip(events.iter().zip(payloads.iter().flatten())) {
            *place = Event { payload, created_ns: event.created_ns, publisher: event.publisher };
        }
        let inputs = Inputs::new(&seen[..events.len()], counts);
        let result = result.expect("a round has a place for its result");
        let mut result = self.payloads[result.index()].try_write().expect(NOBODY_ELSE);
        result.clear();
        let done = contain(|| operator.run(&inputs, &mut result));
        // An operator that has panicked is not called again.
        let restarts = if done.is_ok() { operator.take_restarts() } else { 0 };
        let (ended, following) = match done {
            Ok(Ok(emission)) => {
                // One of another length goes nowhere.
                let is_result = emission == Emission::Emit && shape.fits(result.len());
                if is_result {
                    for (form, text) in texts {
                        text.clear();
                        form.write(*shape, &result, text);
                    }
                }
                (Ended::Done(emission, result.len()), if is_result { *following } else { None })
            }
            Ok(Err(fault)) => (Ended::Refused(fault), None),
            Err(told) => (Ended::Panicked(told), None),
        };
        Ran { ended, following, restarts }
    }
}

impl Station {
    /// A round is to be run, and nothing behind it.
    fn begin(&mut self, events: impl IntoIterator<Item = RoundEvent>, counts: &[u16], result: EventSlot) {
        self.events.clear();
        self.events.extend(events);
        self.counts.clear();
        self.counts.extend_from_slice(counts);
        (self.result, self.following) = (Some(result), None);
    }
}

/// A place for each form in which an operator's outputs write its results.
fn texts(graph: &Graph, forms: &Forms, operator: OperatorId) -> Vec<(Form, String)> {
    let mut texts: Vec<(Form, String)> = Vec::new();
    for (output, form) in graph.outputs().iter().zip(&forms.outputs) {
        if output.from == operator && texts.iter().all(|(other, _)| other != form) {
            let bytes_max = form.bytes_max(graph.operator(operator).shape);
            texts.push((*form, String::with_capacity(bytes_max)));
        }
    }
    texts
}
