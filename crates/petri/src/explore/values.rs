//! Numbers that states have: tokens, expressions, rates of firing.

use std::ops::Range;

use super::{Clock, Rules, State};
use crate::{expression::Expression, states::States};

/// A number that every state has.
pub(crate) enum Column<'a> {
    /// The mean of the tokens of these places.
    Tokens(Vec<usize>),
    /// What an expression gives.
    Value(&'a Expression),
    /// How often a timed transition fires per unit of time. Its clock runs through exponential stages, or is exponential.
    Firings(usize),
}

impl Rules<'_> {
    /// The tokens of a place; by symmetry the mean over the places that may be exchanged for it.
    pub fn tokens<'a>(&self, place: usize) -> Column<'a> {
        Column::Tokens(self.symmetry.images(place))
    }

    /// The numbers of these states.
    pub fn values(&self, column: &Column<'_>, states: &States, which: Range<usize>) -> Vec<f64> {
        let mut values = Vec::with_capacity(which.len());
        self.for_each_state(states, which, |state| values.push(self.value(column, state)));
        values
    }

    /// The number of a state.
    pub fn value(&self, column: &Column<'_>, state: &State) -> f64 {
        match column {
            Column::Tokens(places) => places.iter().map(|place| f64::from(state.marking[*place])).sum::<f64>() / places.len() as f64,
            Column::Value(expression) => expression.value(&state.marking),
            Column::Firings(transition) => self.firing_rate(*transition, state),
        }
    }

    /// What fires in a state in which time passes: transition, clock of its slot, and rate.
    pub fn events(&self, state: &State) -> Vec<(usize, Option<usize>, f64)> {
        let mut found = Vec::new();
        for transition in 0..self.clocks.len() {
            match (&self.clocks[transition], self.slot_of[transition]) {
                (Clock::Stages(stages), Some(slot)) => {
                    for (clock, stage) in self.running_clocks(slot, state).iter().enumerate() {
                        let ends = stages.moves[*stage as usize].iter().filter(|(next, _)| next.is_none());
                        found.extend(ends.map(|(_, rate)| (transition, Some(clock), *rate)));
                    }
                }
                _ => found.push((transition, None, self.firing_rate(transition, state))),
            }
        }
        found.retain(|(.., rate)| *rate > 0.0);
        found
    }

    fn firing_rate(&self, transition: usize, state: &State) -> f64 {
        if self.is_over(&state.marking) {
            return 0.0;
        }
        let degree = || f64::from(self.net.degree(transition, &state.marking));
        match (&self.clocks[transition], self.slot_of[transition]) {
            (Clock::Exponential(rate), _) => rate * degree(),
            (Clock::Rate(rate), _) => match degree() {
                0.0 => 0.0,
                degree => rate.value(&state.marking) * degree,
            },
            (Clock::Stages(stages), Some(slot)) => {
                let ends = |stage: &u32| {
                    stages.moves[*stage as usize].iter().filter(|(next, _)| next.is_none()).map(|(_, rate)| rate).sum::<f64>()
                };
                self.running_clocks(slot, state).iter().map(ends).sum()
            }
            (Clock::None | Clock::Stages(_) | Clock::Ticks(_) | Clock::General, _) => 0.0,
        }
    }

    /// Tells these states one behind the other.
    pub fn for_each_state(&self, states: &States, which: Range<usize>, mut tell: impl FnMut(&State)) {
        let mut state = State::default();
        for number in which {
            self.unpack(states.get(number), &mut state);
            tell(&state);
        }
    }
}
