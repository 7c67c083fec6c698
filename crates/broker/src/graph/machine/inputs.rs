//! The events that wait at an operator: which of them make a round, and whether they are valid together.

use std::collections::VecDeque;

use super::{
    super::spec::{OnInvalid, OperatorSpec, Trigger, Use},
    Lead,
    held::{HeldError, read_slot},
    store::{EventSlot, Store},
    waiting::Waiting,
};
use crate::wire::codec::{Field, Reader};

/// What waits at one input.
#[derive(Clone, Debug)]
struct Place {
    usage: Use,
    /// The oldest first.
    events: VecDeque<EventSlot>,
    /// How many of them no round has had yet.
    fresh: u16,
    /// When the newest one came, by a count of all that came to the operator.
    came: u64,
    /// The first stream of this input's among the operator's.
    branch: u8,
}

/// What waits at an operator.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    places: Vec<Place>,
    trigger: Trigger,
    is_all_latest: bool,
    came: u64,
}

/// Why events are shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invalid {
    /// They are no longer valid.
    Expired,
    /// They will no longer be when there could be a result.
    TooLate,
    /// They were made too long before others that they belong to.
    Apart,
}

/// What a round is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round {
    pub lead: Lead,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub is_marked: bool,
    /// When the last of those first operators began whose results have come together in it; 0: on another node.
    pub begun_ns: u64,
}

/// For how long the events of a round have to be valid when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needed {
    /// The processor time until the nearest output has a result.
    pub remaining_ns: u64,
    /// What the level takes at its pace, of a round that is the first one.
    pub first_ns: u64,
}

impl Needed {
    /// Of a round. Its events may have used up half of their validity in any case: otherwise a pace that is too slow once would never be seen to be quicker.
    fn of(self, round: &Round, is_first: bool) -> u64 {
        let first_ns = if is_first { self.first_ns.min(round.end_ns.saturating_sub(round.begin_ns) / 2) } else { 0 };
        self.remaining_ns.max(first_ns)
    }
}

impl Inputs {
    /// `branches` are the first streams of each input.
    pub fn new(spec: &OperatorSpec, branches: &[u8]) -> Self {
        let place = |(edge, branch): (&super::super::spec::Edge, &u8)| Place {
            usage: edge.usage,
            events: VecDeque::with_capacity(edge.usage.events() + 1),
            fresh: 0,
            came: 0,
            branch: *branch,
        };
        Self {
            places: spec.inputs.iter().zip(branches).map(place).collect(),
            trigger: spec.trigger,
            is_all_latest: spec.trigger == Trigger::All && spec.inputs.iter().all(|edge| edge.usage == Use::Latest),
            came: 0,
        }
    }

    /// Everything that waits.
    pub fn events(&self) -> impl Iterator<Item = EventSlot> {
        self.places.iter().flat_map(|place| &place.events).copied()
    }

    /// Appends what waits, and what is known of it.
    pub fn save(&self, out: &mut Vec<u8>) {
        self.came.write(out);
        for place in &self.places {
            place.fresh.write(out);
            place.came.write(out);
            (place.events.len() as u16).write(out);
            place.events.iter().for_each(|slot| slot.number().write(out));
        }
    }

    /// Goes on with what others of the same operator have saved. The events are in the store, and are held here from now on.
    pub fn restore(&mut self, spec: &OperatorSpec, reader: &mut Reader<'_>, store: &mut Store) -> Result<(), HeldError> {
        self.came = u64::read(reader, "arrivals at an operator")?;
        for (place, edge) in self.places.iter_mut().zip(&spec.inputs) {
            place.fresh = u16::read(reader, "new events")?;
            place.came = u64::read(reader, "the newest arrival")?;
            let count = u16::read(reader, "events of an input")?;
            if usize::from(count) > place.usage.events() || place.fresh > count {
                return Err(HeldError::Graph("an input holds more events than it may"));
            }
            for _ in 0..count {
                let slot = read_slot(reader, store, edge.from)?;
                store.hold(slot);
                place.events.push_back(slot);
            }
        }
        Ok(())
    }

    /// What waits at an input.
    pub fn waiting(&self, input: usize) -> Waiting<EventSlot> {
        let Place { events, fresh, came, .. } = &self.places[input];
        Waiting { events: events.iter().copied().collect(), fresh: *fresh, came: *came }
    }

    /// Lets events wait at an input where nothing does, which the caller holds for it.
    pub fn let_wait(&mut self, input: usize, events: &[EventSlot], fresh: u16, came: u64) {
        self.came = self.came.max(came);
        let place = &mut self.places[input];
        place.events.extend(events);
        (place.fresh, place.came) = (fresh, came);
    }

    /// Takes an event, which the caller holds for this place; gives the one that it replaces. Whether that was never used is the second.
    pub fn put(&mut self, input: usize, slot: EventSlot) -> Option<(EventSlot, bool)> {
        self.came += 1;
        let place = &mut self.places[input];
        place.came = self.came;
        let is_full = place.events.len() == place.usage.events();
        let was_fresh = is_full && usize::from(place.fresh) == place.events.len();
        let replaced = if is_full { place.events.pop_front() } else { None };
        place.events.push_back(slot);
        place.fresh = (place.fresh + 1).min(place.events.len() as u16);
        replaced.map(|slot| (slot, was_fresh))
    }

    /// Whether a round could begin.
    pub fn is_ready(&self) -> bool {
        let has = |place: &Place| match place.usage {
            Use::Consume | Use::Latest => !place.events.is_empty(),
            Use::Window { events, step } => place.events.len() == usize::from(events.get()) && place.fresh >= step.get(),
        };
        match self.trigger {
            Trigger::Any => self.places.iter().any(|place| place.fresh > 0),
            Trigger::All => self.places.iter().all(has) && (!self.is_all_latest || self.places.iter().any(|place| place.fresh > 0)),
        }
    }

    /// The inputs of the next round: all, or the one whose event came first.
    fn taken(&self) -> std::ops::Range<usize> {
        match self.trigger {
            Trigger::All => 0..self.places.len(),
            Trigger::Any => {
                let fresh = self.places.iter().enumerate().filter(|(_, place)| place.fresh > 0);
                let (first, _) = fresh.min_by_key(|(_, place)| place.came).expect("a round that begins has an event");
                first..first + 1
            }
        }
    }

    /// What the next round is made of, if its events are valid for as long as `needed` says, and fit each other; otherwise why not. Of what is shed the events that are not valid are
    /// taken out and handed to `drop`, with whether they were never used; the others wait on.
    pub fn judge(
        &mut self,
        spec: &OperatorSpec,
        store: &Store,
        now_ns: u64,
        needed: Needed,
        mut drop: impl FnMut(EventSlot),
    ) -> Result<Round, (Invalid, Round)> {
        let taken = self.taken();
        let mut round = self.round(&taken, store);
        let is_first = round.begun_ns == 0;
        if is_first {
            round.begun_ns = now_ns;
        }
        let apart_ns = if spec.trigger == Trigger::All { self.apart(spec, store) } else { None };
        let done_ns = now_ns.saturating_add(needed.of(&round, is_first && spec.on_invalid == OnInvalid::Shed));
        let invalid = match apart_ns {
            _ if now_ns >= round.end_ns => Some(Invalid::Expired),
            _ if done_ns > round.end_ns => Some(Invalid::TooLate),
            Some(_) => Some(Invalid::Apart),
            None => None,
        };
        let Some(invalid) = invalid else { return Ok(round) };
        if spec.on_invalid == OnInvalid::Mark {
            return Ok(Round { is_marked: true, ..round });
        }
        for (input, place) in self.places.iter_mut().enumerate() {
            let is_stale = |slot: &EventSlot| {
                let record = store.record(*slot);
                taken.contains(&input) && (now_ns >= record.end_ns || done_ns > record.end_ns)
                    || invalid == Invalid::Apart
                        && apart_ns
                            .is_some_and(|(set, from_ns)| spec.relative[set].inputs.contains(&(input as u8)) && record.begin_ns < from_ns)
            };
            // The oldest go first: what is left is in order.
            place.events.retain(|slot| {
                let is_stale = is_stale(slot);
                if is_stale {
                    drop(*slot);
                }
                !is_stale
            });
            place.fresh = place.fresh.min(place.events.len() as u16);
        }
        Err((invalid, round))
    }

    fn round(&self, taken: &std::ops::Range<usize>, store: &Store) -> Round {
        let events = || self.places[taken.clone()].iter().flat_map(|place| &place.events).map(|slot| store.record(*slot));
        let leading = match (self.trigger, self.is_all_latest) {
            (Trigger::Any, _) => taken.start,
            (Trigger::All, true) => {
                (0..self.places.len()).filter(|at| self.places[*at].fresh > 0).max_by_key(|at| self.places[*at].came).unwrap_or(0)
            }
            (Trigger::All, false) => self.places.iter().position(|place| place.usage != Use::Latest).unwrap_or(0),
        };
        let place = &self.places[leading];
        let lead = store.record(*place.events.back().expect("a round has an event of its leading input")).lead;
        Round {
            lead: Lead { branch: lead.branch + place.branch, ..lead },
            begin_ns: events().map(|record| record.begin_ns).max().unwrap_or(0),
            end_ns: events().map(|record| record.end_ns).min().unwrap_or(u64::MAX),
            is_marked: events().any(|record| record.is_marked),
            begun_ns: self.places[taken.clone()]
                .iter()
                .flat_map(|place| &place.events)
                .map(|slot| store.begun_ns(*slot))
                .max()
                .unwrap_or(0),
        }
    }

    /// The first set of inputs whose newest events do not fit each other, and from when on an event would fit the latest of them.
    fn apart(&self, spec: &OperatorSpec, store: &Store) -> Option<(usize, u64)> {
        spec.relative.iter().enumerate().find_map(|(set, relative)| {
            let begin = |input: &u8| self.places[usize::from(*input)].events.back().map(|slot| store.record(*slot).begin_ns);
            let (first, last) = (relative.inputs.iter().filter_map(begin).min()?, relative.inputs.iter().filter_map(begin).max()?);
            let within_ns = relative.within.get().unsigned_abs();
            (last - first > within_ns).then_some((set, last - within_ns))
        })
    }

    /// Takes the events of the next round: they are appended to `events`, their number for each input to `counts`, and the round holds them.
    pub fn begin(&mut self, store: &mut Store, events: &mut Vec<EventSlot>, counts: &mut Vec<u16>) {
        let taken = self.taken();
        for (input, place) in self.places.iter_mut().enumerate() {
            if !taken.contains(&input) {
                counts.push(0);
                continue;
            }
            counts.push(place.events.len() as u16);
            events.extend(&place.events);
            place.fresh = 0;
            if place.usage == Use::Consume || self.trigger == Trigger::Any {
                // The round has them in place of the operator.
                place.events.clear();
            } else {
                place.events.iter().for_each(|slot| store.hold(*slot));
            }
        }
    }
}
