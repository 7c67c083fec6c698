//! All states that a net can come to, and the chain that leads through them.
//!
//! A state is a tangible marking with the clocks that have to be remembered: the stages of those that pass exponential stages, the
//! ages of those that run on ticks. Vanishing states are taken out on the way ([`vanishing`]). States are numbered in the order in
//! which they are met, so that rows are appended to the chain and never sorted.

mod clock;
mod mass;
mod rules;
mod symmetry;
mod tagging;
mod ticking;
mod values;
mod vanishing;

pub(crate) use self::{
    clock::{AGED, Clock, FRESH, Moment, Stages, atoms, corners},
    mass::Mass,
    rules::{DUE, General, Rules, State},
    tagging::Tagging,
    ticking::{Half, Ticking},
    values::Column,
};
pub use self::{rules::Unsuited, vanishing::VanishingError};
use crate::{
    chain::Chain,
    states::{States, push_numbers},
};

/// A net whose states were not all found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExploreError {
    /// More states than were allowed.
    #[error("the net has more than {limit} states{growing}; allow more, or simulate it")]
    TooManyStates {
        /// What was allowed.
        limit: usize,
        /// Which place holds the most tokens in the last state, said where it is many.
        growing: String,
    },
    /// A rate that is not above 0 where its transition is enabled.
    #[error("transition {transition}: its rate is {rate} in the marking {marking}; expected a number above 0")]
    Rate {
        /// The transition.
        transition: String,
        /// What the expression gives.
        rate: String,
        /// The places that hold tokens there.
        marking: String,
    },
    /// States in which no time passes, without an end.
    #[error(transparent)]
    Vanishing(#[from] VanishingError),
    /// The method is not made for the net.
    #[error(transparent)]
    Unsuited(#[from] Unsuited),
}

/// Tokens in one place from which on an error names it as growing.
const GROWING: u32 = 1_000;

/// All states of a net and what happens between them.
pub(crate) struct Exploration<'a> {
    pub rules: Rules<'a>,
    pub states: States,
    /// What happens in continuous time.
    pub chain: Chain,
}

impl<'a> Exploration<'a> {
    /// Explores by exponential transitions only.
    pub fn new(rules: Rules<'a>, states_max: usize) -> Result<Self, ExploreError> {
        Self::of(Frontier::new(rules, states_max)?)
    }

    /// Explores from the states that were met first.
    pub fn of(mut frontier: Frontier<'a>) -> Result<Self, ExploreError> {
        let mut chain = Chain::starting(frontier.initial.clone());
        let mut row = Vec::new();
        let mut number = 0;
        while number < frontier.states.len() {
            frontier.rates(number, Moment::BeforeMiddle, &mut row)?;
            chain.push_row(&mut row);
            number += 1;
        }
        Ok(Self { rules: frontier.rules, states: frontier.states, chain })
    }
}

/// States that were met, and how to go on from them.
pub(crate) struct Frontier<'a> {
    pub rules: Rules<'a>,
    pub states: States,
    /// First probabilities by state.
    pub initial: Vec<(u32, f64)>,
    states_max: usize,
    /// Whether a state was met with a clock whose age is known to a cell of the ticks only.
    pub has_cells: bool,
    // Kept from state to state, so that a step allocates little.
    state: State,
    found: Vec<(f64, State)>,
    bytes: Vec<u8>,
    /// A marking, where each of several packed ones ends, and their numbers.
    after: Vec<u32>,
    ends: Vec<usize>,
    numbers: Vec<u32>,
}

impl<'a> Frontier<'a> {
    pub fn new(rules: Rules<'a>, states_max: usize) -> Result<Self, ExploreError> {
        let mut found = rules.first();
        rules.settle(&mut found, Moment::Grid)?;
        Self::starting(rules, found, states_max)
    }

    /// Begins with these states, in which time passes.
    pub fn starting(rules: Rules<'a>, first: Vec<(f64, State)>, states_max: usize) -> Result<Self, ExploreError> {
        let states_max = states_max.min(u32::MAX as usize - 1);
        let mut frontier = Self {
            rules,
            states: States::default(),
            initial: Vec::new(),
            states_max,
            has_cells: false,
            state: State::default(),
            found: Vec::new(),
            bytes: Vec::new(),
            after: Vec::new(),
            ends: Vec::new(),
            numbers: Vec::new(),
        };
        for (probability, mut state) in first {
            let number = frontier.number(&mut state)?;
            frontier.initial.push((number, probability));
        }
        Ok(frontier)
    }

    pub fn number(&mut self, state: &mut State) -> Result<u32, ExploreError> {
        self.has_cells = self.has_cells || self.rules.has_cells(state);
        self.rules.pack(state, &mut self.bytes);
        let number = self.states.number(&self.bytes);
        if self.states.len() > self.states_max { Err(self.too_many(&state.marking)) } else { Ok(number) }
    }

    fn too_many(&self, marking: &[u32]) -> ExploreError {
        let most = marking.iter().enumerate().max_by_key(|(_, tokens)| **tokens).filter(|(_, tokens)| **tokens >= GROWING);
        let growing = most
            .map_or_else(String::new, |(place, tokens)| format!(", place {} holding {tokens} tokens", self.rules.net.places()[place].name));
        ExploreError::TooManyStates { limit: self.states_max, growing }
    }

    /// Puts the exponential transitions out of a state into `row`, firing at `moment`.
    pub fn rates(&mut self, number: usize, moment: Moment, row: &mut Vec<(u32, f64)>) -> Result<(), ExploreError> {
        let mut state = std::mem::take(&mut self.state);
        self.rules.unpack(self.states.get(number), &mut state);
        self.rules.age_general(&mut state);
        let done = if self.rules.is_over(&state.marking) {
            Ok(())
        } else if self.rules.is_plain() {
            self.plain_rates(&state.marking, row)
        } else {
            self.all_rates(&state, moment, row)
        };
        self.state = state;
        done
    }

    /// Of a net whose states are markings only: all that follow are packed, and then numbered together.
    fn plain_rates(&mut self, marking: &[u32], row: &mut Vec<(u32, f64)>) -> Result<(), ExploreError> {
        let (mut bytes, mut after) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.after));
        bytes.clear();
        self.ends.clear();
        for transition in 0..self.rules.clocks.len() {
            let Some(rate) = self.rate(transition, marking)? else { continue };
            after.clear();
            after.extend_from_slice(marking);
            self.fire_marking(transition, &mut after)?;
            push_numbers(&mut bytes, &after);
            self.ends.push(bytes.len());
            row.push((0, rate));
        }
        self.numbers.clear();
        self.states.number_all(&bytes, &self.ends, &mut self.numbers);
        row.iter_mut().zip(&self.numbers).for_each(|((number, _), found)| *number = *found);
        if self.states.len() > self.states_max {
            return Err(self.too_many(&after));
        }
        (self.bytes, self.after) = (bytes, after);
        Ok(())
    }

    fn fire_marking(&self, transition: usize, marking: &mut [u32]) -> Result<(), ExploreError> {
        let too_many = || VanishingError::TooManyTokens(self.rules.net.transitions()[transition].name.clone());
        if self.rules.net.fire(transition, marking) { Ok(()) } else { Err(too_many().into()) }
    }

    /// The rate of a transition without memory, if it has one and is enabled.
    fn rate(&self, transition: usize, marking: &[u32]) -> Result<Option<f64>, ExploreError> {
        let rate = match &self.rules.clocks[transition] {
            Clock::Exponential(rate) => *rate,
            Clock::Rate(rate) => {
                let degree = self.rules.net.degree(transition, marking);
                return if degree == 0 { Ok(None) } else { self.checked_rate(transition, rate.value(marking), degree, marking).map(Some) };
            }
            Clock::None | Clock::Stages(_) | Clock::Ticks(_) | Clock::General => return Ok(None),
        };
        let degree = self.rules.net.degree(transition, marking);
        Ok((degree > 0).then(|| rate * f64::from(degree)))
    }

    fn checked_rate(&self, transition: usize, rate: f64, degree: u32, marking: &[u32]) -> Result<f64, ExploreError> {
        if rate > 0.0 && rate.is_finite() {
            return Ok(rate * f64::from(degree));
        }
        let net = self.rules.net;
        let held = net.places().iter().zip(marking).filter(|(_, tokens)| **tokens > 0);
        let held: Vec<String> = held.map(|(place, tokens)| format!("{} {tokens}", place.name)).collect();
        Err(ExploreError::Rate { transition: net.transitions()[transition].name.clone(), rate: rate.to_string(), marking: held.join(", ") })
    }

    fn all_rates(&mut self, state: &State, moment: Moment, row: &mut Vec<(u32, f64)>) -> Result<(), ExploreError> {
        for transition in 0..self.rules.clocks.len() {
            if let Some(rate) = self.rate(transition, &state.marking)? {
                self.fire_at(state, (transition, None), moment, rate, row)?;
            } else if let (Clock::Stages(_), Some(slot)) = (&self.rules.clocks[transition], self.rules.slot_of[transition]) {
                self.stage_rates(state, (transition, slot), moment, row)?;
            }
        }
        Ok(())
    }

    fn stage_rates(
        &mut self,
        state: &State,
        (transition, slot): (usize, usize),
        moment: Moment,
        row: &mut Vec<(u32, f64)>,
    ) -> Result<(), ExploreError> {
        let running = self.rules.running_clocks(slot, state).to_vec();
        for (clock, stage) in running.iter().enumerate() {
            // Clocks of one stage stand side by side where their order does not matter.
            let Clock::Stages(stages) = &self.rules.clocks[transition] else { continue };
            for (next, rate) in stages.moves[*stage as usize].clone() {
                match next {
                    Some(next) => {
                        let mut moved = state.clone();
                        moved.clocks[slot][clock] = next;
                        self.rules.sort_clocks(slot, &mut moved);
                        let number = self.number(&mut moved)?;
                        row.push((number, rate));
                    }
                    None => self.fire_at(state, (transition, Some(clock)), moment, rate, row)?,
                }
            }
        }
        Ok(())
    }

    fn fire_at(
        &mut self,
        state: &State,
        (transition, clock): (usize, Option<usize>),
        moment: Moment,
        rate: f64,
        row: &mut Vec<(u32, f64)>,
    ) -> Result<(), ExploreError> {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let fired = self.rules.fire(state, transition, clock, 1.0, moment, &mut found);
        fired.ok_or_else(|| VanishingError::TooManyTokens(self.rules.net.transitions()[transition].name.clone()))?;
        self.rules.settle(&mut found, moment)?;
        for (probability, next) in &mut found {
            let number = self.number(next)?;
            row.push((number, rate * *probability));
        }
        self.found = found;
        Ok(())
    }
}
