//! What a net does from one state to the next: markings with the clocks that have to be remembered.
//!
//! Enabling is judged behind every firing, immediate ones too. A clock goes on while its transition is enabled before and behind a
//! firing; of several the youngest stops first; the one that fires is over.

use super::{
    clock::{AGED, Clock, FRESH, Moment, Stages, Ticks},
    symmetry::Symmetry,
    tagging::{NUMBERS, Tagging},
};
use crate::{
    expression::Expression,
    net::{Delay, Firing, Memory, Net, Servers, Timed},
    states::{push_number, take_number},
};

/// A clock that has run out and has not fired yet.
pub(crate) const DUE: u32 = u32::MAX;

/// A marking and the clocks of each slot. Where a token is followed, two numbers behind the marking say where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State {
    pub marking: Vec<u32>,
    /// For each slot the stages or ages of its clocks, oldest first, or sorted where their order cannot matter.
    pub clocks: Vec<Vec<u32>>,
}

/// A transition whose clocks a state remembers.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub transition: usize,
    /// Clocks that stop are kept.
    pub keeps_stopped: bool,
    /// Which of the clocks are the youngest has to be remembered: one of them may be stopped by another transition.
    is_ordered: bool,
}

/// A net, ready to be explored.
pub(crate) struct Rules<'a> {
    pub net: &'a Net,
    /// For each transition.
    pub clocks: Vec<Clock<'a>>,
    pub slots: Vec<Slot>,
    pub slot_of: Vec<Option<usize>>,
    /// Immediate transitions by falling priority.
    pub immediates: Vec<usize>,
    /// For each transition the slots whose degree its firing may change.
    affected: Vec<Vec<usize>>,
    /// States where this holds are not left.
    pub until: Option<Expression>,
    pub symmetry: Symmetry,
    /// A token that is followed.
    pub tagging: Option<Tagging>,
}

/// A net that a method is not made for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transition {transition}: {reason}")]
pub struct Unsuited {
    /// The transition that is in the way.
    pub transition: String,
    /// Why.
    pub reason: String,
}

/// What becomes of general delays: those that are not made of exponential stages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum General {
    /// They are refused.
    Refused,
    /// They run on ticks that are `tick` apart; what is left of their probability when it is below `tail` fires at once.
    OnTicks { tick: f64, tail: f64 },
    /// One of them runs at a time.
    Alone,
}

impl<'a> Rules<'a> {
    /// The rules of a net.
    pub fn new(net: &'a Net, until: Option<Expression>, general: General) -> Result<Self, Unsuited> {
        let clocks = net.transitions().iter().map(|transition| {
            let refused = |reason: &str| Err(Unsuited { transition: transition.name.clone(), reason: reason.to_owned() });
            let Firing::Timed(Timed { delay, .. }) = &transition.firing else { return Ok(Clock::None) };
            let distribution = match delay {
                Delay::Rate(rate) => return Ok(Clock::Rate(rate)),
                Delay::Distribution(distribution) => distribution,
            };
            match (Stages::of(distribution), general) {
                (Some(stages), _) => Ok(Clock::of(stages)),
                (None, General::OnTicks { tick, tail }) => Ok(Clock::Ticks(Ticks::of(distribution, tick, tail))),
                (None, General::Alone) => Ok(Clock::General),
                (None, General::Refused) => refused("its delay is not made of exponential stages"),
            }
        });
        let clocks = clocks.collect::<Result<Vec<_>, _>>()?;
        let mut rules = Self::with_clocks(net, until, clocks);
        rules.add_slots()?;
        Ok(rules)
    }

    fn with_clocks(net: &'a Net, until: Option<Expression>, clocks: Vec<Clock<'a>>) -> Self {
        let priority = |index: &usize| match net.transitions()[*index].firing {
            Firing::Immediate { priority, .. } => Some(priority),
            Firing::Timed(_) => None,
        };
        let mut immediates: Vec<usize> = (0..net.transitions().len()).filter(|index| priority(index).is_some()).collect();
        immediates.sort_by_key(|index| std::cmp::Reverse(priority(index)));
        let (slot_of, symmetry) = (vec![None; net.transitions().len()], Symmetry::default());
        Self { net, clocks, slots: Vec::new(), slot_of, immediates, affected: Vec::new(), until, symmetry, tagging: None }
    }

    /// The rules of a net's markings, without its times: every timed transition that is enabled fires with rate 1, whatever its delay.
    pub fn of_markings(net: &'a Net, until: Option<Expression>) -> Self {
        let mut rules = Self::with_clocks(net, until, Vec::new());
        rules.clocks =
            net.transitions().iter().map(|transition| transition.timed().map_or(Clock::None, |_| Clock::Exponential(1.0))).collect();
        rules.affected = vec![Vec::new(); net.transitions().len()];
        rules
    }

    fn add_slots(&mut self) -> Result<(), Unsuited> {
        for (index, transition) in self.net.transitions().iter().enumerate() {
            let Firing::Timed(timed) = &transition.firing else { continue };
            let can_stop = can_be_stopped(self.net, index);
            let is_fixed = matches!(&timed.delay, Delay::Distribution(crate::distribution::Distribution::Deterministic(_)));
            if timed.memory == Memory::RepeatIdentical && can_stop && !is_fixed {
                let reason = "it can be stopped, and repeats the same delay then: only simulation remembers one";
                return Err(Unsuited { transition: transition.name.clone(), reason: reason.to_owned() });
            }
            if matches!(self.clocks[index], Clock::Stages(_) | Clock::Ticks(_) | Clock::General) {
                let is_ordered = can_stop && timed.servers != Servers::SINGLE;
                self.slot_of[index] = Some(self.slots.len());
                self.slots.push(Slot { transition: index, keeps_stopped: timed.memory == Memory::Age, is_ordered });
            }
        }
        let touches = |by: usize, slot: &Slot| {
            let other = &self.net.transitions()[slot.transition];
            by == slot.transition || moved(self.net, by).any(|place| asks_for(other, place))
        };
        self.affected = (0..self.net.transitions().len())
            .map(|by| (0..self.slots.len()).filter(|slot| touches(by, &self.slots[*slot])).collect())
            .collect();
        Ok(())
    }

    /// Whether markings are all there is: no clock to remember, nothing immediate, no symmetry.
    pub fn is_plain(&self) -> bool {
        self.slots.is_empty() && self.immediates.is_empty() && self.symmetry.is_trivial() && self.tagging.is_none()
    }

    /// Keeps the clocks of every slot in the order of their age, whether or not it matters to the marking.
    pub fn keep_order(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.is_ordered = true);
    }

    /// Follows a token: its place in a queue is that of its clock among those of its transition.
    pub fn follow(&mut self, tagging: Tagging) {
        self.keep_order();
        self.tagging = Some(tagging);
    }

    /// Whether the state is not left because the condition holds.
    pub fn is_over(&self, marking: &[u32]) -> bool {
        self.until.as_ref().is_some_and(|until| until.holds(marking))
            || self.tagging.as_ref().is_some_and(|tagging| tagging.is_over(marking))
    }

    /// The state at time 0 and its alternatives, vanishing ones among them.
    pub fn first(&self) -> Vec<(f64, State)> {
        let mut state = State { marking: self.net.initial(), clocks: vec![Vec::new(); self.slots.len()] };
        if self.tagging.is_some() {
            state.marking.extend(Tagging::nowhere());
        }
        let all: Vec<usize> = (0..self.slots.len()).collect();
        let mut found = Vec::new();
        self.start_clocks(state, 1.0, &all, Moment::Grid, &mut found);
        found
    }

    /// Fires a transition, of which `clock` of its slot has run out. None where a place would hold too many tokens.
    pub fn fire(
        &self,
        state: &State,
        transition: usize,
        clock: Option<usize>,
        probability: f64,
        moment: Moment,
        found: &mut Vec<(f64, State)>,
    ) -> Option<()> {
        let mut next = state.clone();
        if let (Some(slot), Some(clock)) = (self.slot_of[transition], clock) {
            next.clocks[slot].remove(clock);
        }
        if !self.net.fire(transition, &mut next.marking) {
            return None;
        }
        if moment != Moment::Grid {
            self.loosen(state, (transition, clock), &mut next, moment);
        }
        let Some(tagging) = &self.tagging else {
            self.start_clocks(next, probability, &self.affected[transition], moment, found);
            return Some(());
        };
        // Of an immediate transition there is one clock at most.
        let clocks = (clock, self.net.degree(transition, &state.marking));
        for (share, numbers) in tagging.follow(transition, clocks, &state.marking, &next.marking) {
            let mut alternative = next.clone();
            alternative.marking.truncate(self.net.places().len());
            alternative.marking.extend(numbers);
            self.start_clocks(alternative, probability * share, &self.affected[transition], moment, found);
        }
        Some(())
    }

    /// Clocks of fixed delays that stop or go on within a cell of the ticks: their ages are known to a cell only from then on.
    fn loosen(&self, before: &State, (fired, clock): (usize, Option<usize>), next: &mut State, moment: Moment) {
        for index in self.affected[fired].iter().copied().filter(|index| self.slots[*index].keeps_stopped) {
            let slot = &self.slots[index];
            let Clock::Ticks(ticks) = &self.clocks[slot.transition] else { continue };
            let is_own = slot.transition == fired && clock.is_some();
            let ran = self.running_clocks(index, before).len() - usize::from(is_own);
            let runs = self.running_clocks(index, next).len();
            next.clocks[index].iter_mut().take(ran).skip(runs).for_each(|clock| *clock = ticks.stopped(*clock));
            next.clocks[index].iter_mut().take(runs).skip(ran).for_each(|clock| *clock = ticks.resumed(*clock, moment));
        }
    }

    /// Brings the clocks of `slots` in line with the marking, once for each alternative of how new ones begin.
    fn start_clocks(&self, mut state: State, probability: f64, slots: &[usize], moment: Moment, found: &mut Vec<(f64, State)>) {
        for (done, slot) in slots.iter().enumerate() {
            let Slot { transition, keeps_stopped, is_ordered } = self.slots[*slot];
            let degree = self.net.degree(transition, &state.marking) as usize;
            let clocks = &mut state.clocks[*slot];
            if !keeps_stopped {
                clocks.truncate(degree);
            }
            if clocks.len() < degree {
                let starts = self.starts(transition, moment);
                for (start, share) in &starts[1..] {
                    let mut other = state.clone();
                    other.clocks[*slot].push(*start);
                    self.start_clocks(other, probability * share, &slots[done..], moment, found);
                }
                // One alternative goes on here; it may have more clocks to start.
                let (start, share) = starts[0];
                state.clocks[*slot].push(start);
                return self.start_clocks(state, probability * share, &slots[done..], moment, found);
            }
            if !is_ordered && !keeps_stopped {
                clocks.sort_unstable();
            }
        }
        found.push((probability, state));
    }

    fn starts(&self, transition: usize, moment: Moment) -> Vec<(u32, f64)> {
        match &self.clocks[transition] {
            Clock::Stages(stages) => stages.start.clone(),
            Clock::Ticks(ticks) => {
                let (age, at_once) = ticks.start(moment);
                [(age, 1.0 - at_once), (DUE, at_once)].into_iter().filter(|(_, share)| *share > 0.0).collect()
            }
            Clock::General => vec![(FRESH, 1.0)],
            Clock::None | Clock::Exponential(_) | Clock::Rate(_) => Vec::new(),
        }
    }

    /// A general clock that has begun goes on, whatever happens next.
    pub fn age_general(&self, state: &mut State) {
        for (slot, clocks) in self.slots.iter().zip(&mut state.clocks) {
            if matches!(self.clocks[slot.transition], Clock::General) {
                clocks.fill(AGED);
            }
        }
    }

    /// Whether some clock on ticks is known to a cell only.
    pub fn has_cells(&self, state: &State) -> bool {
        let is_on_ticks = |slot: &Slot| matches!(self.clocks[slot.transition], Clock::Ticks(_));
        let clocks = self.slots.iter().zip(&state.clocks).filter(|(slot, _)| is_on_ticks(slot)).flat_map(|(_, clocks)| clocks);
        clocks.into_iter().any(|clock| *clock != DUE && Ticks::is_in_cell(*clock))
    }

    /// Whether some delay on ticks has fixed values, and whether some has a density.
    pub fn kinds_on_ticks(&self) -> (bool, bool) {
        let is_fixed = |clock: &Clock| if let Clock::Ticks(ticks) = clock { Some(ticks.is_fixed()) } else { None };
        let has = |kind| self.clocks.iter().any(|clock| is_fixed(clock) == Some(kind));
        (has(true), has(false))
    }

    /// Clocks of a slot that run: the others are stopped, and kept for later.
    pub fn running_clocks<'s>(&self, slot: usize, state: &'s State) -> &'s [u32] {
        let clocks = &state.clocks[slot];
        if !self.slots[slot].keeps_stopped {
            return clocks;
        }
        let degree = self.net.degree(self.slots[slot].transition, &state.marking) as usize;
        &clocks[..clocks.len().min(degree)]
    }

    /// Sorts clocks whose order cannot matter, behind a change of one of them.
    pub fn sort_clocks(&self, slot: usize, state: &mut State) {
        if !self.slots[slot].is_ordered && !self.slots[slot].keeps_stopped {
            state.clocks[slot].sort_unstable();
        }
    }

    /// Packs a state whose clocks are not due, having brought it to the form that stands for all that are the same by symmetry.
    pub fn pack(&self, state: &mut State, bytes: &mut Vec<u8>) {
        if self.is_over(&state.marking) {
            state.clocks.iter_mut().for_each(Vec::clear);
        }
        self.symmetry.normalize(state);
        bytes.clear();
        state.marking.iter().for_each(|tokens| push_number(bytes, *tokens));
        for (slot, clocks) in self.slots.iter().zip(&state.clocks) {
            if slot.keeps_stopped {
                push_number(bytes, clocks.len() as u32);
            }
            clocks.iter().for_each(|clock| push_number(bytes, *clock));
        }
    }

    /// Unpacks what [`Rules::pack`] has packed.
    pub fn unpack(&self, mut bytes: &[u8], state: &mut State) {
        state.marking.clear();
        let numbers = self.net.places().len() + self.tagging.as_ref().map_or(0, |_| NUMBERS);
        state.marking.extend((0..numbers).map(|_| take_number(&mut bytes)));
        state.clocks.resize(self.slots.len(), Vec::new());
        let is_over = self.is_over(&state.marking);
        for (slot, clocks) in self.slots.iter().zip(&mut state.clocks) {
            clocks.clear();
            // A state that is not left has no clocks.
            let count = match slot.keeps_stopped {
                true => take_number(&mut bytes),
                false if is_over => 0,
                false => self.net.degree(slot.transition, &state.marking),
            };
            clocks.extend((0..count).map(|_| take_number(&mut bytes)));
        }
    }
}

impl Clock<'_> {
    /// One stage needs no memory.
    fn of(stages: Stages) -> Self {
        match (stages.start.as_slice(), stages.moves.as_slice()) {
            ([_], [only]) if only.len() == 1 => Clock::Exponential(only[0].1),
            _ => Clock::Stages(stages),
        }
    }
}

/// Places whose tokens a firing changes.
fn moved(net: &Net, transition: usize) -> impl Iterator<Item = usize> {
    let transition = &net.transitions()[transition];
    let places = transition.inputs.iter().chain(&transition.outputs).map(|arc| arc.place);
    places.filter(|place| transition.effect(*place) != 0)
}

/// Whether a transition's degree depends on a place.
fn asks_for(transition: &crate::net::Transition, place: usize) -> bool {
    let arcs = transition.inputs.iter().chain(&transition.inhibitors).chain(&transition.tests);
    arcs.into_iter().any(|arc| arc.place == place) || transition.guard.iter().any(|guard| guard.places().any(|other| other == place))
}

/// Whether another transition's firing, or its own beyond what it takes, may lower the degree. True where it cannot be told.
fn can_be_stopped(net: &Net, transition: usize) -> bool {
    let own = &net.transitions()[transition];
    let by_guard = own
        .guard
        .as_ref()
        .is_some_and(|guard| (0..net.transitions().len()).any(|by| moved(net, by).any(|place| guard.places().any(|other| other == place))));
    by_guard
        || net.transitions().iter().enumerate().any(|(index, other)| {
            let takes = |arcs: &[crate::net::Arc]| arcs.iter().any(|arc| other.effect(arc.place) < 0);
            let gives = own.inhibitors.iter().any(|arc| other.effect(arc.place) > 0);
            gives || takes(&own.tests) || (index != transition && takes(&own.inputs))
        })
}
