//! What is asked, as a value of each state.

use super::Question;
use crate::{chain::transient::Reward, explore::Exploration, measure::Measure};

/// Tokens of every place, and the measures behind them.
pub(super) struct Columns<'a> {
    pub question: &'a Question<'a>,
    pub exploration: &'a Exploration<'a>,
}

impl Columns<'_> {
    pub fn len(&self) -> usize {
        self.question.net.places().len() + self.question.measures.len()
    }

    /// The value of one of them in each state.
    pub fn column(&self, index: usize) -> Vec<f64> {
        let places = self.question.net.places().len();
        match index.checked_sub(places).map(|measure| &self.question.measures[measure]) {
            None => self.exploration.tokens(index),
            Some(Measure::Reward(expression)) => self.exploration.values(expression),
            Some(Measure::Throughput(transition)) => self.exploration.firing_rates(*transition),
        }
    }

    /// Those values of all of them that are not 0.
    pub fn rewards(&self) -> Vec<Reward> {
        let reward = |index| (0..).zip(self.column(index)).filter(|(_, value)| *value != 0.0).collect();
        (0..self.len()).map(reward).collect()
    }
}
