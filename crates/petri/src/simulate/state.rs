//! One run of a compiled net: which clocks run, which immediate transitions may fire, and what the next event is.

use super::{
    SimulationError,
    program::{Code, Draw, Kind, Program, Timed},
};
use crate::{
    net::Memory,
    random::{Draws, Place},
};

/// Most firings of immediate transitions at one instant.
pub(super) const IMMEDIATES_MAX: u32 = 1_000_000;

/// What is told of a run while it goes.
pub(super) trait Watch {
    /// The events from here on happen at this time.
    fn at(&mut self, time: f64);
    /// A place has another number of tokens now.
    fn changed(&mut self, place: u32, before: u32, after: u32);
    /// A transition has fired; its clock had started then (an immediate one's now), and so many older clocks of it go on.
    fn fired(&mut self, transition: u32, started: f64, older: usize);
}

/// The clock of a single server.
#[derive(Clone, Copy, Debug)]
struct Clock {
    started: f64,
    /// What was drawn; kept where the same delay may start again.
    delay: f64,
    /// What is left of a stopped clock, or is to start again; not a number where there is nothing.
    kept: f64,
    /// The rate that its end was reckoned with, where that depends on the marking.
    rate: f64,
    draws: u32,
    /// Sum of the delays that are counted.
    counted: f64,
}

/// One of several clocks of a transition.
#[derive(Clone, Copy, Debug)]
struct Running {
    ends: f64,
    started: f64,
    delay: f64,
}

/// The clocks of a transition with several servers, the oldest first, and what is left of stopped ones.
#[derive(Clone, Debug, Default)]
struct Pool {
    running: Vec<Running>,
    kept: Vec<f64>,
}

/// Where a run is.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub time: f64,
    pub marking: Vec<u32>,
    /// Events so far, immediate ones too.
    pub events: u64,
    /// Whose numbers are drawn.
    pub run: u64,
    seed: u64,
    /// A bit for each rank of an enabled immediate transition.
    enabled: Vec<u64>,
    /// When each slot's first clock ends; infinite where none runs.
    ends: Vec<f64>,
    clocks: Vec<Clock>,
    pools: Vec<Pool>,
    /// Choices between transitions so far.
    choices: u32,
    stack: Vec<f64>,
}

impl State {
    /// Delays that a slot's transition has drawn in this run.
    pub fn draws(&self, slot: usize) -> u32 {
        self.clocks[slot].draws
    }
}

impl Clock {
    const STOPPED: Self = Self { started: 0.0, delay: 0.0, kept: f64::NAN, rate: 0.0, draws: 0, counted: 0.0 };
}

impl Program {
    /// Room for runs under `seed`.
    pub fn state(&self, seed: u64) -> State {
        State {
            time: 0.0,
            marking: self.initial.clone(),
            events: 0,
            run: 0,
            seed,
            enabled: vec![0; self.ranks.len().div_ceil(64)],
            ends: vec![f64::INFINITY; self.timed.len()],
            clocks: vec![Clock::STOPPED; self.timed.len()],
            pools: vec![Pool::default(); self.pools],
            choices: 0,
            stack: Vec::new(),
        }
    }

    /// Begins run `run` at time 0, as far as the first marking where time passes.
    pub fn begin(&self, state: &mut State, run: u64, watch: &mut impl Watch) -> Result<(), SimulationError> {
        state.run = run;
        state.time = 0.0;
        state.choices = 0;
        state.marking.copy_from_slice(&self.initial);
        state.enabled.fill(0);
        state.ends.fill(f64::INFINITY);
        state.clocks.fill(Clock::STOPPED);
        for pool in &mut state.pools {
            pool.running.clear();
            pool.kept.clear();
        }
        watch.at(0.0);
        for transition in 0..self.codes.len() {
            self.look_at(state, transition)?;
        }
        self.settle(state, watch)
    }

    /// The next event up to `horizon`, and all immediate ones that follow; false where there is none.
    #[inline]
    pub fn step(&self, state: &mut State, horizon: f64, watch: &mut impl Watch) -> Result<bool, SimulationError> {
        let (mut slot, mut time) = (0, f64::INFINITY);
        for (index, ends) in state.ends.iter().enumerate() {
            if *ends < time {
                (slot, time) = (index, *ends);
            }
        }
        if time > horizon || time == f64::INFINITY {
            return Ok(false);
        }
        if self.has_ties {
            slot = self.first_of_ties(state, slot);
        }
        state.time = time;
        watch.at(time);
        self.run_out(state, slot, watch)?;
        self.settle(state, watch)?;
        Ok(true)
    }

    /// Fires enabled immediate transitions until there is none.
    #[inline]
    fn settle(&self, state: &mut State, watch: &mut impl Watch) -> Result<(), SimulationError> {
        let mut fired = 0;
        while let Some(word) = state.enabled.iter().position(|word| *word != 0) {
            let rank = word * 64 + state.enabled[word].trailing_zeros() as usize;
            let rank = self.chosen(state, rank);
            let transition = self.ranks[rank].transition;
            watch.fired(transition, state.time, 0);
            self.fire(state, transition as usize, watch)?;
            fired += 1;
            if fired > IMMEDIATES_MAX {
                return Err(SimulationError::Timeless { transition: self.transitions[transition as usize].clone(), time: state.time });
            }
        }
        Ok(())
    }

    /// One of the enabled immediate transitions that have the priority of the first one.
    fn chosen(&self, state: &mut State, first: usize) -> usize {
        let end = self.ranks[first].class_end as usize;
        let is_enabled = |rank: &usize| state.enabled[rank / 64] >> (rank % 64) & 1 == 1;
        if !(first + 1..end).any(|rank| is_enabled(&rank)) {
            return first;
        }
        let weights = || (first..end).filter(is_enabled).map(|rank| (rank, self.ranks[rank].weight));
        let share = choice(state.seed, state.run, self.codes.len(), &mut state.choices);
        drawn(weights, share)
    }

    /// Of the clocks that run out at the same instant as the slot's: one of the highest priority.
    fn first_of_ties(&self, state: &mut State, slot: usize) -> usize {
        let time = state.ends[slot];
        let tied = || (slot..state.ends.len()).filter(|other| state.ends[*other] == time).map(|other| (other, self.timing(other)));
        let highest = tied().map(|(_, timed)| timed.priority).max().unwrap_or_default();
        let candidates = || tied().filter(|(_, timed)| timed.priority == highest).map(|(other, timed)| (other, timed.weight));
        if candidates().nth(1).is_none() {
            return candidates().next().map_or(slot, |(only, _)| only);
        }
        let mut choices = state.choices;
        let share = choice(state.seed, state.run, self.codes.len(), &mut choices);
        let chosen = drawn(candidates, share);
        state.choices = choices;
        chosen
    }

    fn timing(&self, slot: usize) -> &Timed {
        match &self.codes[self.timed[slot] as usize].kind {
            Kind::Timed(timed) => timed,
            Kind::Immediate { .. } => unreachable!("slots are those of timed transitions"),
        }
    }

    /// The slot's first clock ends: its transition fires.
    #[inline]
    fn run_out(&self, state: &mut State, slot: usize, watch: &mut impl Watch) -> Result<(), SimulationError> {
        let transition = self.timed[slot];
        match self.timing(slot).pool {
            None => {
                state.ends[slot] = f64::INFINITY;
                watch.fired(transition, state.clocks[slot].started, 0);
            }
            Some(pool) => {
                let pool = &mut state.pools[pool as usize];
                let older = pool.running.iter().position(|clock| clock.ends == state.ends[slot]).expect("the first end is a clock's");
                let clock = pool.running.remove(older);
                state.ends[slot] = pool.first_end();
                watch.fired(transition, clock.started, older);
            }
        }
        self.fire(state, transition as usize, watch)
    }

    /// Moves the tokens and looks again at whoever asks for them.
    #[inline]
    fn fire(&self, state: &mut State, transition: usize, watch: &mut impl Watch) -> Result<(), SimulationError> {
        state.events += 1;
        let code = &self.codes[transition];
        for effect in &code.effects {
            let tokens = &mut state.marking[effect.place as usize];
            let before = *tokens;
            let overfull = || SimulationError::Overfull { place: self.places[effect.place as usize].clone(), time: state.time };
            *tokens = before.checked_add_signed(effect.change).ok_or_else(overfull)?;
            watch.changed(effect.place, before, *tokens);
        }
        for other in &code.affects {
            self.look_at(state, *other as usize)?;
        }
        Ok(())
    }

    /// Starts and stops clocks as the marking demands.
    #[inline]
    fn look_at(&self, state: &mut State, transition: usize) -> Result<(), SimulationError> {
        let code = &self.codes[transition];
        let degree = degree(code, state);
        match &code.kind {
            Kind::Immediate { rank } => {
                let (word, bit) = (*rank as usize / 64, 1_u64 << (rank % 64));
                if degree > 0 {
                    state.enabled[word] |= bit;
                } else {
                    state.enabled[word] &= !bit;
                }
                Ok(())
            }
            Kind::Timed(timed) if timed.pool.is_none() => self.look_at_clock(state, transition, timed, degree > 0),
            Kind::Timed(timed) => self.look_at_pool(state, transition, timed, degree as usize),
        }
    }

    #[inline]
    fn look_at_clock(&self, state: &mut State, transition: usize, timed: &Timed, enabled: bool) -> Result<(), SimulationError> {
        let slot = timed.slot as usize;
        let runs = state.ends[slot] != f64::INFINITY;
        if enabled && !runs {
            let (delay, left) = self.delay(state, transition, timed, state.clocks[slot].kept)?;
            let clock = &mut state.clocks[slot];
            (clock.started, clock.delay, clock.kept) = (state.time, delay, f64::NAN);
            state.ends[slot] = state.time + left;
        } else if !enabled && runs {
            let clock = &mut state.clocks[slot];
            clock.kept = kept(timed, clock.delay, state.ends[slot] - state.time);
            state.ends[slot] = f64::INFINITY;
        } else if runs && matches!(timed.delay, Draw::Rate(_)) {
            let before = state.clocks[slot].rate;
            let slower = before / self.rate(state, transition, timed)?;
            state.ends[slot] = state.time + (state.ends[slot] - state.time) * slower;
        }
        Ok(())
    }

    fn look_at_pool(&self, state: &mut State, transition: usize, timed: &Timed, degree: usize) -> Result<(), SimulationError> {
        let (slot, own) = (timed.slot as usize, timed.pool.expect("whoever calls has looked") as usize);
        let runs = state.pools[own].running.len();
        if runs > 0 && degree > 0 && matches!(timed.delay, Draw::Rate(_)) {
            let before = state.clocks[slot].rate;
            let slower = before / self.rate(state, transition, timed)?;
            for clock in &mut state.pools[own].running {
                clock.ends = state.time + (clock.ends - state.time) * slower;
            }
        }
        for _ in runs..degree {
            let kept = state.pools[own].kept.pop().unwrap_or(f64::NAN);
            let (delay, left) = self.delay(state, transition, timed, kept)?;
            state.pools[own].running.push(Running { ends: state.time + left, started: state.time, delay });
        }
        for _ in degree..runs {
            let pool = &mut state.pools[own];
            let youngest = pool.running.pop().expect("more run than may");
            let kept = kept(timed, youngest.delay, youngest.ends - state.time);
            if !kept.is_nan() {
                pool.kept.push(kept);
            }
        }
        state.ends[slot] = state.pools[own].first_end();
        Ok(())
    }

    /// Draws anew what is left of the clocks that forget how long they have run.
    pub fn redraw(&self, state: &mut State) -> Result<(), SimulationError> {
        for (slot, transition) in self.timed.iter().enumerate() {
            let timed = self.timing(slot);
            if state.ends[slot] == f64::INFINITY || !timed.forgets() {
                continue;
            }
            let Some(own) = timed.pool else {
                let (delay, left) = self.delay(state, *transition as usize, timed, f64::NAN)?;
                state.clocks[slot].delay = delay;
                state.ends[slot] = state.time + left;
                continue;
            };
            for clock in 0..state.pools[own as usize].running.len() {
                let (delay, left) = self.delay(state, *transition as usize, timed, f64::NAN)?;
                let running = &mut state.pools[own as usize].running[clock];
                (running.ends, running.delay) = (state.time + left, delay);
            }
            state.ends[slot] = state.pools[own as usize].first_end();
        }
        Ok(())
    }

    /// The delay of a clock that starts, and how much of it is to run: what was kept of it, or a new one.
    #[inline]
    fn delay(&self, state: &mut State, transition: usize, timed: &Timed, kept: f64) -> Result<(f64, f64), SimulationError> {
        if !kept.is_nan() {
            // Of an age what is left is all that counts; of a delay that repeats all of it.
            return Ok((kept, kept));
        }
        let slot = timed.slot as usize;
        let draw = state.clocks[slot].draws;
        state.clocks[slot].draws = draw.checked_add(1).ok_or_else(|| self.endless(transition, state.time))?;
        let mut draws = Draws::at(state.seed, Place { run: state.run, stream: transition as u32, draw });
        let delay = match &timed.delay {
            Draw::Law(sampler) => sampler.sample(&mut draws),
            Draw::Rate(_) => -draws.uniform().ln() / self.rate(state, transition, timed)?,
        };
        if draw < timed.counted {
            state.clocks[slot].counted += delay;
        }
        Ok((delay, delay))
    }

    /// The sum of the delays of a slot that are counted, with those that the run has not drawn; less of it where it is above `most` anyway.
    pub fn counted_sum(&self, state: &State, slot: usize, most: f64) -> f64 {
        let clock = &state.clocks[slot];
        self.sum_of_delays(slot, (state.seed, state.run), clock.draws..self.timing(slot).counted, clock.counted, most)
    }

    /// `sum` and these delays of a slot, by their numbers, in a run under a seed; no more are added once it is above `most`. The slot's
    /// delays have a law of their own, whatever the marking.
    pub fn sum_of_delays(&self, slot: usize, (seed, run): (u64, u64), numbers: std::ops::Range<u32>, sum: f64, most: f64) -> f64 {
        let Draw::Law(sampler) = &self.timing(slot).delay else { unreachable!("delays of a rate depend on the marking") };
        let mut sum = sum;
        for draw in numbers {
            if sum > most {
                break;
            }
            sum += sampler.sample(&mut Draws::at(seed, Place { run, stream: self.timed[slot], draw }));
        }
        sum
    }

    /// The rate in the present marking, which the transition's clocks go with from now on.
    fn rate(&self, state: &mut State, transition: usize, timed: &Timed) -> Result<f64, SimulationError> {
        let Draw::Rate(program) = &timed.delay else { unreachable!("only a rate has one") };
        let rate = program.value(&state.marking, &mut state.stack);
        if !(rate > 0.0 && rate.is_finite()) {
            return Err(SimulationError::Rate { transition: self.transitions[transition].clone(), rate, time: state.time });
        }
        state.clocks[timed.slot as usize].rate = rate;
        Ok(rate)
    }

    fn endless(&self, transition: usize, time: f64) -> SimulationError {
        SimulationError::Endless { transition: self.transitions[transition].clone(), time }
    }
}

impl Pool {
    fn first_end(&self) -> f64 {
        self.running.iter().map(|clock| clock.ends).fold(f64::INFINITY, f64::min)
    }
}

/// What a stopped clock leaves; not a number where it leaves nothing. Exponential delays of a rate have no memory to keep.
fn kept(timed: &Timed, delay: f64, left: f64) -> f64 {
    match (&timed.delay, timed.memory) {
        (Draw::Rate(_), _) | (_, Memory::Enabling) => f64::NAN,
        (_, Memory::Age) => left,
        (_, Memory::RepeatIdentical) => delay,
    }
}

/// How many clocks run in the present marking.
#[inline]
fn degree(code: &Code, state: &mut State) -> u32 {
    let tokens = |place: u32| state.marking[place as usize];
    if code.conditions.iter().any(|condition| tokens(condition.place).wrapping_sub(condition.least) > condition.span) {
        return 0;
    }
    let degree = code.inputs.iter().map(|(place, weight)| tokens(*place) / weight).fold(code.servers, u32::min);
    match &code.guard {
        Some(guard) if guard.value(&state.marking, &mut state.stack) == 0.0 => 0,
        _ => degree,
    }
}

/// A number for a choice between transitions: the stream behind those of the transitions.
fn choice(seed: u64, run: u64, stream: usize, choices: &mut u32) -> f64 {
    let place = Place { run, stream: stream as u32, draw: *choices };
    *choices = choices.wrapping_add(1);
    Draws::at(seed, place).uniform()
}

/// One of the candidates in proportion to their weights.
fn drawn<I: Iterator<Item = (usize, f64)>>(candidates: impl Fn() -> I, share: f64) -> usize {
    let mut left = share * candidates().map(|(_, weight)| weight).sum::<f64>();
    let mut last = 0;
    for (candidate, weight) in candidates() {
        left -= weight;
        last = candidate;
        if left < 0.0 {
            break;
        }
    }
    last
}
