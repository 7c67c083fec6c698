//! How long a token takes from its coming into one place until it comes into another one: the distribution, computed with a bound.
//!
//! The token is followed through a chain of its own ([`crate::explore`]): a state says where it is and what is in front of it. It begins either in the first marking, as the last token of its place, or in the
//! long run, with the probabilities of the states that tokens find when they come: those of the net's states, weighed with the rates at which each of them lets a token come. So nothing is asked of how tokens come;
//! where they come at a fixed rate, they find the states of the long run (PASTA). The time ends in a state that is not left, so that its distribution function is a probability at a time.

use std::collections::BTreeMap;

use super::{
    SolveError, check_error, check_times,
    passage::{Distribution, Quantile},
};
use crate::{
    chain::{
        Chain, ROUNDOFF,
        absorption::absorption,
        steady,
        transient::{self, Reward},
    },
    explore::{Exploration, Frontier, General, Moment, Rules, State, Tagging},
    net::Net,
};

/// The share of the error that the states in which tokens come may have.
const BEGIN_SHARE: f64 = 0.5;
/// The part of itself that an expected time may be off.
const MEAN_PART: f64 = 1e-10;

/// In which state of the net the token begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// As any token does that comes in the long run.
    LongRun,
    /// As the last one of its place at time 0.
    First,
}

/// Which token is followed.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The net.
    pub net: &'a Net,
    /// The place, by its index, where the time begins.
    pub from: usize,
    /// The place where it ends.
    pub to: usize,
    /// How it begins.
    pub begin: Begin,
    /// What a probability may be off, absolute; above 0 and below 1.
    pub error: f64,
    /// Most states of the net, and of the net with the token.
    pub states_max: usize,
}

/// Values of the distribution function.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// For each time, the probability that the token has come by then.
    pub values: Vec<f64>,
    /// No value is further off.
    pub error: f64,
}

/// A token that is followed: its chain, and how well its beginning is known.
#[derive(Clone, Debug)]
pub struct ResponseTime {
    chain: Chain,
    arrived: Reward,
    error: f64,
    /// What probabilities may be off by their first ones, and by which part of itself an expectation may; none where that has no bound.
    begun_off: f64,
    begun_part: Option<f64>,
    /// Tokens that come in a unit of time in the long run; none where it begins in the first marking.
    pub rate: Option<f64>,
}

/// The states in which tokens begin, with their probabilities.
struct Begun {
    states: Vec<(f64, State)>,
    off: f64,
    part: Option<f64>,
    rate: Option<f64>,
}

impl ResponseTime {
    /// Explores the states through which the token goes.
    ///
    /// # Errors
    /// The question has a mistake, a delay is not made of exponential stages, it is not told which token is to be followed, none comes, or there are too many states.
    pub fn new(question: &Question) -> Result<Self, SolveError> {
        let Question { net, from, to, error, .. } = *question;
        check_error(error)?;
        if from == to {
            return Err(SolveError::Question("a time that begins and ends in one place is 0".to_owned()));
        }
        let tagging = Tagging::new(net, from, to)?;
        let begun = match question.begin {
            Begin::First => question.first(&tagging)?,
            Begin::LongRun => question.in_the_long_run(&tagging)?,
        };
        let mut rules = Rules::new(net, None, General::Refused)?;
        rules.follow(tagging);
        let exploration = Exploration::of(Frontier::starting(rules, begun.states, question.states_max)?)?;
        let (rules, states) = (&exploration.rules, &exploration.states);
        let mut state = State::default();
        let is_over = |number: &u32| {
            rules.unpack(states.get(*number as usize), &mut state);
            rules.is_over(&state.marking)
        };
        let arrived = (0..states.len() as u32).filter(is_over).map(|number| (number, 1.0)).collect();
        Ok(Self { chain: exploration.chain, arrived, error, begun_off: begun.off, begun_part: begun.part, rate: begun.rate })
    }

    /// States that were explored, in each of which the token is somewhere.
    pub fn states(&self) -> usize {
        self.chain.len()
    }

    /// Probabilities of having come by `times`, which rise from 0.
    ///
    /// # Errors
    /// Times that do not, too many steps, or an error that is not reached.
    pub fn shares(&self, times: &[f64]) -> Result<Shares, SolveError> {
        check_times(times)?;
        let left = (self.error - self.begun_off).max(0.1 * self.error);
        let curves = transient::curves(&self.chain, std::slice::from_ref(&self.arrived), times, left)?;
        let reached = curves.error + self.begun_off;
        if reached > self.error {
            let remedy = "allow a larger error, or simulate it".to_owned();
            return Err(SolveError::Inexact { asked: self.error, reached, remedy });
        }
        Ok(Shares { values: curves.values.iter().map(|values| values[0].clamp(0.0, 1.0)).collect(), error: reached })
    }

    /// The times by which the token has come with these probabilities.
    ///
    /// # Errors
    /// As of [`Self::shares`]; a share that is none, or that the probability does not come up to.
    pub fn quantiles(&self, shares: &[f64]) -> Result<Vec<Quantile>, SolveError> {
        self.clone().quantiles_of(shares)
    }

    /// The expected time, and what it may be off at most.
    ///
    /// # Errors
    /// It has none: the token may never come.
    pub fn mean(&self) -> Result<(f64, f64), SolveError> {
        let refused = |reason: &str| Err(SolveError::Question(reason.to_owned()));
        let Some(found) = absorption(&self.chain, MEAN_PART) else {
            return refused("no mean was found: the token may never come, or takes far too long; ask for shares at times");
        };
        // An expectation is off by no more than a probability is, times the longest time, and by no larger a part of itself than each first probability is.
        let by_sum = self.begun_off * found.longest;
        let begun_off = self.begun_part.map_or(by_sum, |part| by_sum.min(found.mean * part * (1.0 + found.part)));
        Ok((found.mean, found.mean * found.part + begun_off))
    }
}

impl Distribution for ResponseTime {
    fn values(&mut self, times: Vec<f64>) -> Result<(Vec<f64>, f64), SolveError> {
        let Shares { values, error } = self.shares(&times)?;
        Ok((values, error))
    }

    fn first_time(&self) -> f64 {
        let slowest = (0..self.chain.len()).map(|state| self.chain.exit(state)).filter(|exit| *exit > 0.0).fold(f64::INFINITY, f64::min);
        if slowest.is_finite() { 1.0 / slowest } else { 1.0 }
    }

    fn what() -> &'static str {
        "the token has come"
    }
}

impl Question<'_> {
    fn refused<T>(&self, reason: &str) -> Result<T, SolveError> {
        Err(SolveError::Question(format!("place {}: {reason}", self.net.places()[self.from].name)))
    }

    /// The last token of the first marking.
    fn first(&self, tagging: &Tagging) -> Result<Begun, SolveError> {
        if self.net.places()[self.from].initial == 0 {
            return self.refused("it holds no token at time 0 that could be followed");
        }
        let mut rules = Rules::new(self.net, None, General::Refused)?;
        rules.follow(tagging.clone());
        let mut states = rules.first();
        for (_, state) in &mut states {
            let last = tagging.last(&state.marking);
            state.marking.truncate(self.net.places().len());
            state.marking.extend(last);
        }
        rules.settle(&mut states, Moment::Grid).map_err(crate::explore::ExploreError::from)?;
        Ok(Begun { states, off: 0.0, part: Some(0.0), rate: None })
    }

    /// Whatever tokens find that come in the long run.
    fn in_the_long_run(&self, tagging: &Tagging) -> Result<Begun, SolveError> {
        let mut rules = Rules::new(self.net, None, General::Refused)?;
        rules.keep_order();
        let exploration = Exploration::new(rules, self.states_max)?;
        let mut asked = BEGIN_SHARE * self.error;
        loop {
            let steady = steady::steady(&exploration.chain, asked)?;
            let (begun, rate, rate_max) = self.begun(tagging, &exploration, &steady.probabilities)?;
            // Each share is one of rates over the sum of all rates; what is off is so in both.
            let by_sum = 4.0 * steady.error * rate_max / rate;
            let part = steady.part.map(|part| 2.0 * part / (1.0 - part)).filter(|part| *part >= 0.0 && *part < 1.0);
            let rounding = (begun.len() + 8) as f64 * 2.0 * ROUNDOFF;
            let off = part.map_or(by_sum, |part| part.min(by_sum)) + rounding;
            if off <= BEGIN_SHARE * self.error || asked < 1e-15 {
                let states = begun.into_iter().map(|(state, weight)| (weight / rate, state)).collect();
                return Ok(Begun { states, off, part: part.map(|part| part + rounding), rate: Some(rate) });
            }
            asked *= 0.5 * BEGIN_SHARE * self.error / off;
        }
    }

    /// The states in which tokens come, each with its rate; the sum of all, and the highest rate at which a state of the net lets tokens come.
    fn begun(
        &self,
        tagging: &Tagging,
        exploration: &Exploration,
        probabilities: &[f64],
    ) -> Result<(BTreeMap<State, f64>, f64, f64), SolveError> {
        let mut rules = Rules::new(self.net, None, General::Refused)?;
        rules.follow(tagging.awaited());
        let mut frontier = Frontier::starting(rules, Vec::new(), self.states_max)?;
        let (mut begun, mut state, mut row) = (BTreeMap::new(), State::default(), Vec::new());
        let (mut sum, mut highest) = (0.0, 0.0_f64);
        for (number, probability) in probabilities.iter().enumerate().filter(|(_, probability)| **probability > 0.0) {
            exploration.rules.unpack(exploration.states.get(number), &mut state);
            state.marking.extend(Tagging::nowhere());
            let before = frontier.number(&mut state)?;
            frontier.rates(before as usize, Moment::BeforeMiddle, &mut row)?;
            let mut of_state = 0.0;
            for (after, rate) in row.drain(..) {
                frontier.rules.unpack(frontier.states.get(after as usize), &mut state);
                if tagging.are_two(&state) {
                    return self.refused("several tokens come in one instant, and which of them is followed is not told; simulate it");
                }
                if tagging.is_there(&state) {
                    *begun.entry(state.clone()).or_insert(0.0) += probability * rate;
                    of_state += rate;
                }
            }
            sum += probability * of_state;
            highest = highest.max(of_state);
        }
        if sum > 0.0 { Ok((begun, sum, highest)) } else { self.refused("no token comes in the long run") }
    }
}
