//! What is asked, as a value of each state.

use std::ops::Range;

use super::Question;
use crate::{
    chain::{pairwise, transient::Reward},
    explore::{Column, Rules},
    measure::Measure,
    states::States,
};

/// States that are read once for all columns.
const BLOCK: usize = 1_024;

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
        self.rules.values(&self.asked(index), self.states, which)
    }

    fn asked(&self, index: usize) -> Column<'_> {
        let places = self.question.net.places().len();
        match index.checked_sub(places).map(|measure| &self.question.measures[measure]) {
            None => self.rules.tokens(index),
            Some(Measure::Reward(expression)) => Column::Value(expression),
            Some(Measure::Throughput(transition) | Measure::Firings(transition)) => Column::Firings(*transition),
        }
    }

    /// Those values of all of them that are not 0.
    pub fn rewards(&self) -> Vec<Reward> {
        let reward = |index| (0..).zip(self.column(index)).filter(|(_, value)| *value != 0.0).collect();
        (0..self.len()).map(reward).collect()
    }

    /// By column: the largest magnitude in a state.
    pub fn ranges(&self) -> Vec<f64> {
        let mut ranges = vec![0.0; self.len()];
        self.each_block(|_, values| {
            ranges
                .iter_mut()
                .zip(values)
                .for_each(|(range, values)| *range = values.iter().fold(*range, |range, value| f64::max(range, value.abs())));
        });
        ranges
    }

    /// By column: the expectation under the probabilities of all states. Its rounding is [`pairwise::rounding`]'s.
    pub fn expectations(&self, probabilities: &[f64]) -> Vec<f64> {
        let mut sums = vec![Vec::new(); self.len()];
        self.each_block(|first, values| {
            for (sums, values) in sums.iter_mut().zip(values) {
                sums.push(pairwise::sum(0..values.len(), &|index| values[index] * probabilities[first + index]));
            }
        });
        sums.iter().map(|sums| pairwise::sum(0..sums.len(), &|block| sums[block])).collect()
    }

    /// Tells the values of all columns in the states from a first one on, a block at a time: each state is unpacked once.
    fn each_block(&self, mut tell: impl FnMut(usize, &[Vec<f64>])) {
        let asked: Vec<Column<'_>> = (0..self.len()).map(|index| self.asked(index)).collect();
        let mut values = vec![Vec::with_capacity(BLOCK); asked.len()];
        for first in (0..self.states.len()).step_by(BLOCK) {
            values.iter_mut().for_each(Vec::clear);
            self.rules.for_each_state(self.states, first..self.states.len().min(first + BLOCK), |state| {
                values.iter_mut().zip(&asked).for_each(|(values, column)| values.push(self.rules.value(column, state)));
            });
            tell(first, &values);
        }
    }
}
