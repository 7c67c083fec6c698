//! The long run of nets in which at most one general clock runs at a time, beside any number of exponential ones.
//!
//! Time falls into periods whose past does not count ([`periods`]). From period to period leads a chain; with every period's length
//! in it as a rate, the share of time in a period is the long run of a Markov chain, and is certified as any is (`chain/steady.rs`):
//! what is not known exactly of its rates is part of that bound. Within a period uniformization gives the share of its time in each
//! state, by the number of steps while the delay runs ([`steps`]).

mod periods;
mod steps;

use self::periods::{Explored, Periods};
use super::{Answer, Certainty, Method, Question, SolveError, When, columns::Columns};
use crate::{
    chain::{absorption::absorption, steady::steady},
    explore::{General, Rules, State},
    measure::Measure,
};

/// What may be left out of a period: as little as rounding has in it anyway, for it grows with the mixing of the chain and costs few steps.
const TAIL: f64 = 1e-15;

pub(super) fn solve(question: &Question) -> Result<Answer, SolveError> {
    if question.when != When::Steady {
        return Err(SolveError::Question("method regenerative computes the long run; use lattice for values at given times".to_owned()));
    }
    let mut rules = Rules::new(question.net, question.until.clone(), General::Alone)?;
    rules.find_symmetry(&question.measures);
    let explored = Explored::of(rules, question.states_max)?;
    let periods = Periods::of(&explored, TAIL)?;
    let columns = Columns { question, rules: &explored.rules, states: &explored.states, earned: Vec::new() };
    let values: Vec<Vec<f64>> = (0..columns.len()).map(|index| of_periods(&columns, index, &periods)).collect();
    let range = |column: &Vec<f64>| column.iter().fold(0.0, |range: f64, value| range.max(value.abs()));
    let scale = values.iter().map(range).fold(1.0, f64::max);
    let steady = steady(&periods.chain, question.error / scale)?;
    let expectation = |column: &Vec<f64>| column.iter().zip(&steady.probabilities).map(|(value, share)| value * share).sum();
    let errors = values.iter().map(|column| range(column) * (steady.error + 2.0 * periods.error)).collect();
    let (certainty, by) = match periods.is_bound {
        true => (Certainty::Bound, ""),
        false => (Certainty::Estimate, "; its integrals are not bounded but compared with finer ones"),
    };
    Ok(Answer {
        method: Method::Regenerative,
        reason: format!("one general delay runs at a time{by}"),
        values: vec![values.iter().map(expectation).collect()],
        errors,
        certainty,
        states: explored.states.len(),
        steps: periods.steps,
    })
}

/// Share of the asked error, relative to the mean, at which its sweeps end.
const MEAN_SHARE: f64 = 0.1;

/// Expected time until the question's condition holds, and what it may be off. None where several general clocks run at a time, where
/// the net may end without the condition, or where the sweeps do not settle.
pub(super) fn mean_until(question: &Question) -> Option<(f64, f64)> {
    let mut rules = Rules::new(question.net, question.until.clone(), General::Alone).ok()?;
    rules.find_symmetry(&[]);
    let explored = Explored::of(rules, question.states_max).ok()?;
    let periods = Periods::of(&explored, TAIL).ok()?;
    let mut state = State::default();
    let mut holds = |period: usize| {
        explored.rules.unpack(explored.states.get(periods.shares[period][0].0 as usize), &mut state);
        explored.rules.is_over(&state.marking)
    };
    // A period that is never left is a state in which nothing runs.
    if (0..periods.chain.len()).any(|period| periods.chain.exit(period) == 0.0 && !holds(period)) {
        return None;
    }
    let found = absorption(&periods.chain, MEAN_SHARE * question.error)?;
    Some((found.mean, found.mean * found.part))
}

/// The mean of a column over each period.
fn of_periods(columns: &Columns, index: usize, periods: &Periods) -> Vec<f64> {
    let by_state = columns.column(index);
    let measure = index.checked_sub(columns.question.net.places().len()).map(|measure| &columns.question.measures[measure]);
    let firing = |firing: &Option<(usize, f64)>| match (measure, firing) {
        (Some(Measure::Throughput(asked)), Some((transition, often))) if asked.transition == *transition => *often,
        _ => 0.0,
    };
    let mean = |shares: &Vec<(u32, f64)>| shares.iter().map(|(state, share)| by_state[*state as usize] * share).sum::<f64>();
    periods.shares.iter().zip(&periods.firings).map(|(shares, fired)| mean(shares) + firing(fired)).collect()
}
