//! What is asked, as a value of each state.

use std::ops::Range;

use super::Question;
use crate::{chain::transient::Reward, explore::Rules, measure::Measure, states::States};

/// Tokens of every place, and the measures behind them.
pub(super) struct Columns<'a> {
    pub question: &'a Question<'a>,
    pub rules: &'a Rules<'a>,
    pub states: &'a States,
}

impl Columns<'_> {
    pub fn len(&self) -> usize {
        self.question.net.places().len() + self.question.measures.len()
    }

    /// The value of one of them in each state.
    pub fn column(&self, index: usize) -> Vec<f64> {
        self.part(index, 0..self.states.len())
    }

    /// The value of one of them in some states.
    pub fn part(&self, index: usize, which: Range<usize>) -> Vec<f64> {
        let places = self.question.net.places().len();
        match index.checked_sub(places).map(|measure| &self.question.measures[measure]) {
            None => self.rules.tokens(index, self.states, which),
            Some(Measure::Reward(expression)) => self.rules.values(expression, self.states, which),
            Some(Measure::Throughput(transition)) => self.rules.firing_rates(*transition, self.states, which),
        }
    }

    /// Those values of all of them that are not 0.
    pub fn rewards(&self) -> Vec<Reward> {
        let reward = |index| (0..).zip(self.column(index)).filter(|(_, value)| *value != 0.0).collect();
        (0..self.len()).map(reward).collect()
    }
}
