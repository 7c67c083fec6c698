//! States of a net in which general clocks run on ticks: what happens between two ticks, and what at one.

use super::{Clock, DUE, Exploration, ExploreError, Frontier, Moment, Rules, State, clock::Ticks};
use crate::chain::Chain;

/// What a tick does: for each state, the states behind it and their probabilities.
#[derive(Default)]
pub(crate) struct Tick {
    ends: Vec<usize>,
    columns: Vec<u32>,
    probabilities: Vec<f64>,
}

impl Tick {
    fn push_row(&mut self, row: &mut Vec<(u32, f64)>) {
        row.sort_unstable_by_key(|(column, _)| *column);
        let start = self.columns.len();
        for (column, probability) in row.drain(..) {
            if self.columns.len() > start && self.columns.last() == Some(&column) {
                *self.probabilities.last_mut().expect("a column has its probability") += probability;
            } else {
                self.columns.push(column);
                self.probabilities.push(probability);
            }
        }
        self.ends.push(self.columns.len());
    }

    /// `after = before T`. Probabilities up to `cutoff` are left out, and given back added up.
    pub fn apply(&self, before: &[f64], after: &mut [f64], cutoff: f64) -> f64 {
        after.fill(0.0);
        let (mut lost, mut start) = (0.0, 0);
        for (mass, end) in before.iter().zip(&self.ends) {
            let range = start..*end;
            start = *end;
            if *mass <= cutoff {
                lost += mass;
                continue;
            }
            for (column, probability) in self.columns[range.clone()].iter().zip(&self.probabilities[range]) {
                after[*column as usize] += mass * probability;
            }
        }
        lost
    }

    /// Whether chance has no part in it.
    pub fn is_certain(&self) -> bool {
        self.probabilities.iter().all(|probability| *probability == 1.0)
    }
}

impl<'a> Exploration<'a> {
    /// Explores by exponential transitions between ticks, and by what is due at them.
    pub fn with_ticks(rules: Rules<'a>, states_max: usize) -> Result<(Self, Tick), ExploreError> {
        let mut frontier = Frontier::new(rules, states_max)?;
        let (mut chain, mut tick) = (Chain::starting(frontier.initial.clone()), Tick::default());
        let mut row = Vec::new();
        let mut number = 0;
        while number < frontier.states.len() {
            frontier.rates(number, &mut row)?;
            chain.push_row(&mut row);
            frontier.tick(number, &mut row)?;
            tick.push_row(&mut row);
            number += 1;
        }
        Ok((Self { rules: frontier.rules, states: frontier.states, chain }, tick))
    }
}

impl Frontier<'_> {
    /// Puts what a state becomes at a tick into `row`.
    fn tick(&mut self, number: usize, row: &mut Vec<(u32, f64)>) -> Result<(), ExploreError> {
        let mut state = State::default();
        self.rules.unpack(self.states.get(number), &mut state);
        if self.rules.is_over(&state.marking) {
            row.push((number as u32, 1.0));
            return Ok(());
        }
        let mut outcomes = vec![(1.0, state)];
        for slot in 0..self.rules.slots.len() {
            if let Clock::Ticks(ticks) = &self.rules.clocks[self.rules.slots[slot].transition] {
                outcomes = aged(&self.rules, slot, ticks, outcomes);
            }
        }
        self.rules.settle(&mut outcomes, Moment::AtTick)?;
        for (probability, mut state) in outcomes {
            let next = self.number(&mut state)?;
            row.push((next, probability));
        }
        Ok(())
    }
}

/// Every clock of a slot that runs gets older, or is due.
fn aged(rules: &Rules, slot: usize, ticks: &Ticks, mut outcomes: Vec<(f64, State)>) -> Vec<(f64, State)> {
    let running = outcomes.first().map_or(0, |(_, state)| rules.running_clocks(slot, state).len());
    for clock in 0..running {
        let mut split = Vec::with_capacity(outcomes.len() * 2);
        for (probability, mut state) in outcomes {
            let age = state.clocks[slot][clock];
            let hazard = ticks.hazard(age);
            if hazard > 0.0 {
                let mut due = state.clone();
                due.clocks[slot][clock] = DUE;
                split.push((probability * hazard, due));
            }
            if hazard < 1.0 {
                state.clocks[slot][clock] = Ticks::older(age);
                split.push((probability * (1.0 - hazard), state));
            }
        }
        outcomes = split;
    }
    outcomes.iter_mut().for_each(|(_, state)| rules.sort_clocks(slot, state));
    outcomes
}
