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
    /// For each measure, by state: what is not a number of the state alone.
    pub earned: Vec<Option<Vec<f64>>>,
}

/// Where a column's values are.
enum Asked<'a> {
    /// The state says them.
    Of(Column<'a>),
    /// They are known, by state.
    Known(&'a [f64]),
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
        match self.asked(index) {
            Asked::Of(column) => self.rules.values(&column, self.states, which),
            Asked::Known(values) => values[which].to_vec(),
        }
    }

    fn asked(&self, index: usize) -> Asked<'_> {
        let Some(measure) = index.checked_sub(self.question.net.places().len()) else { return Asked::Of(self.rules.tokens(index)) };
        if let Some(Some(values)) = self.earned.get(measure) {
            return Asked::Known(values);
        }
        Asked::Of(match &self.question.measures[measure] {
            Measure::Reward(expression) => Column::Value(expression),
            Measure::Throughput(impulse) | Measure::Firings(impulse) => Column::Firings(impulse.transition),
        })
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
        let asked: Vec<Asked<'_>> = (0..self.len()).map(|index| self.asked(index)).collect();
        let mut values = vec![Vec::with_capacity(BLOCK); asked.len()];
        for first in (0..self.states.len()).step_by(BLOCK) {
            values.iter_mut().for_each(Vec::clear);
            let block = first..self.states.len().min(first + BLOCK);
            for (values, asked) in values.iter_mut().zip(&asked) {
                if let Asked::Known(known) = asked {
                    values.extend_from_slice(&known[block.clone()]);
                }
            }
            self.rules.for_each_state(self.states, block, |state| {
                for (values, asked) in values.iter_mut().zip(&asked) {
                    if let Asked::Of(column) = asked {
                        values.push(self.rules.value(column, state));
                    }
                }
            });
            tell(first, &values);
        }
    }
}
