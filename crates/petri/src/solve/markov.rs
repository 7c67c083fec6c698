//! Nets whose every delay is made of exponential stages: a Markov chain, exactly.

use super::{
    Answer, Certainty, Method, Question, SolveError, When,
    columns::Columns,
    impulses::{Earning, earnings},
};
use crate::{
    chain::{
        Chain,
        accumulated::{Earned, accumulated},
        pairwise, steady,
        transient::{self, Curves, Reward},
    },
    explore::{Exploration, General, Rules},
    measure::Measure,
};

/// Most values of all rewards in all states that are kept for curves; above it times are visited one by one.
const REWARD_VALUES_MAX: usize = 20_000_000;

/// Most times that are worth a vector of their own.
const VISITS_MAX: usize = 4;

pub(super) fn solve(question: &Question) -> Result<Answer, SolveError> {
    let mut rules = Rules::new(question.net, question.until.clone(), General::Refused)?;
    rules.find_symmetry(&question.measures);
    let exploration = Exploration::new(rules, question.states_max)?;
    let mut earnings = earnings(question, &exploration)?;
    let earned = earnings.iter_mut().map(|earning| earning.as_mut().map(|earning| std::mem::take(&mut earning.values))).collect();
    let columns = Columns { question, rules: &exploration.rules, states: &exploration.states, earned };
    let chain = &exploration.chain;
    let (mut values, mut errors, steps) = match &question.when {
        When::Steady => columns.steady(chain)?,
        When::At(times) => {
            let is_large = columns.len() * exploration.states.len() > REWARD_VALUES_MAX;
            let found =
                if is_large || times.len() <= VISITS_MAX { columns.visited(chain, times)? } else { columns.curves(chain, times)? };
            columns.added_up(chain, times, found)?
        }
    };
    columns.add_impulses(&earnings, &mut values, &mut errors);
    let reason = match exploration.rules.slots.len() {
        0 => "every delay is exponential".to_owned(),
        1 => "every delay is exponential, or made of exponential stages".to_owned(),
        slots => format!("every delay is exponential, or made of exponential stages ({slots} of them)"),
    };
    let states = exploration.states.len();
    Ok(Answer { method: Method::Markov, reason, values, errors, certainty: Certainty::Bound, states, steps })
}

type Found = (Vec<Vec<f64>>, Vec<f64>, usize);

impl Columns<'_> {
    fn curves(&self, chain: &Chain, times: &[f64]) -> Result<Found, SolveError> {
        let rewards = self.rewards();
        let range = |reward: &Reward| reward.iter().fold(0.0, |range, (_, value)| f64::max(range, value.abs()));
        let ranges: Vec<f64> = rewards.iter().map(range).collect();
        let error = self.question.error / ranges.iter().copied().fold(1.0, f64::max);
        let Curves { values, error, steps } = transient::curves(chain, &rewards, times, error)?;
        Ok((values, ranges.iter().map(|range| range * error).collect(), steps))
    }

    fn visited(&self, chain: &Chain, times: &[f64]) -> Result<Found, SolveError> {
        // Needed before the error can be shared out.
        let ranges = self.ranges();
        let error = self.question.error / ranges.iter().copied().fold(1.0, f64::max);
        let mut values = Vec::new();
        let (error, steps) = transient::visit(chain, times, error, |visit| {
            values.push(self.expectations(visit.probabilities));
        })?;
        Ok((values, ranges.iter().map(|range| range * error).collect(), steps))
    }

    /// With how often transitions have fired in the place of how often they do.
    fn added_up(&self, chain: &Chain, times: &[f64], found: Found) -> Result<Found, SolveError> {
        let (mut values, mut errors, mut steps) = found;
        let places = self.question.net.places().len();
        let measures = self.question.measures.iter().enumerate();
        let counted: Vec<usize> =
            measures.filter(|(_, measure)| matches!(measure, Measure::Firings(_))).map(|(index, _)| places + index).collect();
        if counted.is_empty() {
            return Ok((values, errors, steps));
        }
        let columns: Vec<Vec<f64>> = counted.iter().map(|index| self.column(*index)).collect();
        let reward = |column: &Vec<f64>| (0..).zip(column.iter().copied()).filter(|(_, value)| *value != 0.0).collect();
        let rewards: Vec<Reward> = columns.iter().map(reward).collect();
        let Earned { values: earned, error, steps: further } = accumulated(chain, &rewards, times)?;
        for (values, earned) in values.iter_mut().zip(&earned) {
            counted.iter().zip(earned).for_each(|(index, earned)| values[*index] = *earned);
        }
        counted.iter().zip(&columns).for_each(|(index, column)| errors[*index] = range(column) * error);
        steps += further;
        Ok((values, errors, steps))
    }

    /// What was earned at time 0, and what rounding has changed of what states earn.
    fn add_impulses(&self, earnings: &[Option<Earning>], values: &mut [Vec<f64>], errors: &mut [f64]) {
        let places = self.question.net.places().len();
        for (measure, earning) in earnings.iter().enumerate() {
            let Some(Earning { at_first, part, .. }) = earning else { continue };
            let is_count = matches!(self.question.measures[measure], Measure::Firings(_));
            let largest = values.iter().map(|row| row[places + measure].abs()).fold(0.0, f64::max);
            if is_count {
                values.iter_mut().for_each(|row| row[places + measure] += at_first);
            }
            // All terms are 0 or more, so that the sum is off by no larger part than they are.
            errors[places + measure] += 2.0 * part * (largest + errors[places + measure] + at_first);
        }
    }

    fn steady(&self, chain: &Chain) -> Result<Found, SolveError> {
        let columns = (0..self.len()).map(|index| self.column(index));
        let (mut values, mut errors) = (Vec::new(), Vec::new());
        let scale = (0..self.len()).map(|index| range(&self.column(index))).fold(1.0, f64::max);
        let steady = steady::steady(chain, self.question.error / scale)?;
        for column in columns {
            let magnitude: f64 = column.iter().zip(&steady.probabilities).map(|(value, probability)| value.abs() * probability).sum();
            let by_parts = steady.part.map_or(f64::INFINITY, |part| part * magnitude);
            values.push(expectation(&column, &steady.probabilities));
            errors.push(by_parts.min(range(&column) * steady.error));
        }
        Ok((vec![values], errors, 0))
    }
}

/// The largest magnitude: what is off by a probability is off by no more than this times it.
fn range(column: &[f64]) -> f64 {
    column.iter().fold(0.0, |range, value| f64::max(range, value.abs()))
}

fn expectation(column: &[f64], probabilities: &[f64]) -> f64 {
    pairwise::sum(0..column.len(), &|state| column[state] * probabilities[state])
}
