//! What firings earn, where the state alone does not say it: firings without time between two states, and impulses other than 1.

use super::{Question, SolveError};
use crate::{
    chain::ROUNDOFF,
    explore::{Exploration, ExploreError, Moment, Rules, State},
    measure::Impulse,
};

/// What the firings of one transition earn.
pub(super) struct Earning {
    /// By state, per unit of time.
    pub values: Vec<f64>,
    /// At time 0, before time passes.
    pub at_first: f64,
    /// What rounding may have changed of each of them, as a part of it.
    pub part: f64,
}

/// For each measure what its impulses earn, where the state alone does not say it.
pub(super) fn earnings(question: &Question, exploration: &Exploration<'_>) -> Result<Vec<Option<Earning>>, SolveError> {
    let of = |impulse: &Impulse| earning(impulse, exploration);
    let asked = question.measures.iter().map(|measure| measure.impulse().filter(|impulse| !impulse.is_count_of_timed(question.net)));
    asked.map(|impulse| impulse.map(of).transpose()).collect()
}

fn earning(impulse: &Impulse, exploration: &Exploration<'_>) -> Result<Earning, SolveError> {
    let (rules, states) = (&exploration.rules, &exploration.states);
    let (mut values, mut passed) = (Vec::with_capacity(states.len()), 0);
    let mut failed = None;
    rules.for_each_state(states, 0..states.len(), |state| match per_time(rules, impulse, state) {
        Ok((value, states)) => {
            values.push(value);
            passed = passed.max(states);
        }
        Err(error) => failed = Some(error),
    });
    let (at_first, at_once) = match rules.net.transitions()[impulse.transition].timed() {
        Some(_) => (0.0, 0),
        None => rules.earned_without_time(rules.first(), impulse, Moment::Grid).map_err(ExploreError::from)?,
    };
    if let Some(error) = failed {
        return Err(error.into());
    }
    if values.iter().chain([&at_first]).any(|value| value.is_nan()) {
        let name = &rules.net.transitions()[impulse.transition].name;
        let reason = format!("transition {name}: what a firing earns is below 0 in some marking; expected at least 0: ask for its parts");
        return Err(SolveError::Question(reason));
    }
    // As many as an elimination of so many states makes, and those of the sums around it.
    let nodes = passed.max(at_once) as f64;
    let part = (3.0 * nodes * nodes * (nodes + 8.0) + 100.0) * ROUNDOFF;
    Ok(Earning { values, at_first, part })
}

/// What firings earn per unit of time in a state, and how many states without time were passed at the most.
fn per_time(rules: &Rules<'_>, impulse: &Impulse, state: &State) -> Result<(f64, usize), ExploreError> {
    if rules.is_over(&state.marking) {
        return Ok((0.0, 0));
    }
    let events = rules.events(state);
    if rules.net.transitions()[impulse.transition].timed().is_some() {
        let rate: f64 = events.iter().filter(|(transition, ..)| *transition == impulse.transition).map(|(.., rate)| rate).sum();
        return Ok((if rate > 0.0 { rate * impulse.earned(&state.marking) } else { 0.0 }, 0));
    }
    let (mut sum, mut most) = (0.0, 0);
    for (transition, clock, rate) in events {
        let mut outcomes = Vec::new();
        // The states behind were met already, so that their tokens were counted.
        let fired = rules.fire(state, transition, clock, 1.0, Moment::BeforeMiddle, &mut outcomes);
        debug_assert!(fired.is_some());
        let (earned, passed) = rules.earned_without_time(outcomes, impulse, Moment::BeforeMiddle)?;
        sum += rate * earned;
        most = most.max(passed);
    }
    Ok((sum, most))
}
