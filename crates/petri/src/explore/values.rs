//! Numbers that states have: tokens, expressions, rates of firing.

use std::ops::Range;

use super::{Clock, Rules, State};
use crate::{expression::Expression, states::States};

impl Rules<'_> {
    /// The value of an expression in each of these states.
    pub fn values(&self, expression: &Expression, states: &States, which: Range<usize>) -> Vec<f64> {
        self.for_each_state(states, which, |state| expression.value(&state.marking))
    }

    /// The tokens of a place in each state; by symmetry the mean over the places that may be exchanged for it.
    pub fn tokens(&self, place: usize, states: &States, which: Range<usize>) -> Vec<f64> {
        let images = self.symmetry.images(place);
        let count = images.len() as f64;
        self.for_each_state(states, which, |state| images.iter().map(|place| f64::from(state.marking[*place])).sum::<f64>() / count)
    }

    /// How often a timed transition fires in each state, per unit of time. Its clock runs through exponential stages, or is exponential.
    pub fn firing_rates(&self, transition: usize, states: &States, which: Range<usize>) -> Vec<f64> {
        self.for_each_state(states, which, |state| {
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
        })
    }

    pub fn for_each_state(&self, states: &States, which: Range<usize>, mut value: impl FnMut(&State) -> f64) -> Vec<f64> {
        let mut state = State::default();
        which
            .map(|number| {
                self.unpack(states.get(number), &mut state);
                value(&state)
            })
            .collect()
    }
}
