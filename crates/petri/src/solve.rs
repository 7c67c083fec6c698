//! One question about a net, and its answer by the method that fits: expected tokens of every place and measures, at given times or in
//! the long run, with what they may be off.
//!
//! | method | nets | error |
//! |---|---|---|
//! | `markov` | every delay is made of exponential stages | a bound |
//! | `sequential` | one clock at a time, no marking comes back; at given times | an estimate |
//! | `regenerative` | one general clock at a time, in the long run | a bound where its delay's integrals have a formula |
//! | `lattice` | any, at given times | an estimate |
//!
//! The first of the table that fits is taken, unless one is asked for.

mod columns;
mod impulses;
mod lattice;
mod markov;
pub mod passage;
mod regenerative;
pub mod response;
mod sequential;

use crate::{
    chain::{steady::SteadyError, transient::TooManySteps},
    explore::{ExploreError, Stages, Unsuited},
    expression::Expression,
    measure::Measure,
    net::{Delay, Net},
    states::STATES_MAX_DEFAULT,
};

/// Most times of one question.
pub const TIMES_MAX: usize = 100_000;

/// Error that is asked for unless the caller says otherwise.
pub const ERROR_DEFAULT: f64 = 1e-9;

/// When something is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    /// At these times, which rise from 0 or more, in the net's unit.
    At(Vec<f64>),
    /// In the long run: the share of time, which is the probability at a late time where that has a limit.
    Steady,
}

/// How something is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A Markov chain of markings and exponential stages: uniformization, and elimination or certified iteration in the long run.
    Markov,
    /// Delays that follow each other, added up by convolution.
    Sequential,
    /// Periods between the instants from which on the past does not count.
    Regenerative,
    /// General delays on ticks of time that are divided until the extrapolation settles.
    Lattice,
}

impl Method {
    /// All of them, the first that fits is taken.
    pub const ALL: [Self; 4] = [Self::Markov, Self::Sequential, Self::Regenerative, Self::Lattice];

    /// Its name in commands and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Markov => "markov",
            Self::Sequential => "sequential",
            Self::Regenerative => "regenerative",
            Self::Lattice => "lattice",
        }
    }
}

/// A question about a net.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The net.
    pub net: &'a Net,
    /// When.
    pub when: When,
    /// What, besides the tokens of every place.
    pub measures: Vec<Measure>,
    /// States where this holds are not left: its probability is the distribution function of the first passage into them.
    pub until: Option<Expression>,
    /// What the values may be off, absolute; above 0.
    pub error: f64,
    /// The method to use; none to have it chosen.
    pub method: Option<Method>,
    /// Most states that may be explored.
    pub states_max: usize,
}

impl<'a> Question<'a> {
    /// The tokens of every place, to 1e-9, by a method that is chosen.
    pub fn new(net: &'a Net, when: When) -> Self {
        Self { net, when, measures: Vec::new(), until: None, error: ERROR_DEFAULT, method: None, states_max: STATES_MAX_DEFAULT }
    }
}

/// What is known of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// No value is further off: truncations and rounding are bounded.
    Bound,
    /// Found by computing more than once with different steps: values are likely closer than this.
    Estimate,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// How it was computed.
    pub method: Method,
    /// Why that way.
    pub reason: String,
    /// For each time (one in the long run) the expected tokens of every place, and the expectation of every measure behind them.
    pub values: Vec<Vec<f64>>,
    /// For each place and each measure: what its values may be off.
    pub errors: Vec<f64>,
    /// What kind of statement `errors` are.
    pub certainty: Certainty,
    /// States that were explored, together with the clocks that have to be remembered.
    pub states: usize,
    /// Steps of the computation, or sweeps over the states.
    pub steps: usize,
}

impl Answer {
    /// The largest error of all values.
    pub fn error(&self) -> f64 {
        self.errors.iter().copied().fold(0.0, f64::max)
    }
}

/// A question without an answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SolveError {
    /// The question itself has a mistake.
    #[error("{0}")]
    Question(String),
    /// The states cannot be explored.
    #[error(transparent)]
    Explore(#[from] ExploreError),
    /// Too much to compute.
    #[error(transparent)]
    TooManySteps(#[from] TooManySteps),
    /// The long run was not found.
    #[error(transparent)]
    Steady(#[from] SteadyError),
    /// The error would be larger than asked.
    #[error("the values would be up to {reached:e} off, {asked:e} was asked: {remedy}")]
    Inexact {
        /// What was asked.
        asked: f64,
        /// What can be had.
        reached: f64,
        /// What helps.
        remedy: String,
    },
}

impl From<Unsuited> for SolveError {
    fn from(unsuited: Unsuited) -> Self {
        Self::Explore(unsuited.into())
    }
}

/// Answers a question.
///
/// # Errors
/// [`SolveError`]: what cannot be answered within the error that is asked for is refused.
pub fn solve(question: &Question) -> Result<Answer, SolveError> {
    check(question)?;
    let method = question.method.unwrap_or_else(|| choose(question));
    check_firings(question, method)?;
    let answer = match method {
        Method::Markov => markov::solve(question)?,
        Method::Sequential => sequential::solve(question)?,
        Method::Regenerative => regenerative::solve(question)?,
        Method::Lattice => lattice::solve(question)?,
    };
    check_numbers(question, &answer)?;
    let reached = answer.error();
    if reached > question.error {
        let remedy = "ask for a larger error, or for earlier times".to_owned();
        return Err(SolveError::Inexact { asked: question.error, reached, remedy });
    }
    Ok(answer)
}

/// What is no number in some state is none in the sum over all, and its error says nothing.
fn check_numbers(question: &Question, answer: &Answer) -> Result<(), SolveError> {
    let places = question.net.places().len();
    let is_told = |column: usize| !answer.errors[column].is_nan() && answer.values.iter().all(|values| values[column].is_finite());
    match (places..answer.errors.len()).find(|column| !is_told(*column)) {
        Some(column) => {
            let number = column - places + 1;
            Err(SolveError::Question(format!("measure {number} is no finite number in a marking that is reached; expected one that is")))
        }
        None => Ok(()),
    }
}

fn choose(question: &Question) -> Method {
    let is_general = |delay: &Delay| matches!(delay, Delay::Distribution(law) if Stages::of(law).is_none());
    let mut delays = question.net.transitions().iter().filter_map(|transition| transition.timed()).map(|timed| &timed.delay);
    if !delays.any(is_general) {
        Method::Markov
    } else if question.when == When::Steady {
        Method::Regenerative
    } else if sequential::fits(question) {
        Method::Sequential
    } else {
        Method::Lattice
    }
}

/// What is added up over time is known of Markov chains, up to a time.
fn check_firings(question: &Question, method: Method) -> Result<(), SolveError> {
    let counted = question.measures.iter().find_map(|measure| match measure {
        Measure::Firings(impulse) => Some(&question.net.transitions()[impulse.transition].name),
        Measure::Reward(_) | Measure::Throughput(_) => None,
    });
    let other = question.measures.iter().filter_map(Measure::impulse).find(|impulse| !impulse.is_count_of_timed(question.net));
    if let (Some(impulse), true) = (other, method != Method::Markov) {
        let name = &question.net.transitions()[impulse.transition].name;
        let what = if impulse.each.is_some() { "what a firing earns is" } else { "it is immediate, and its firings are" };
        let reason =
            format!("transition {name}: {what} known to method markov only, and this is {}: simulate firings({name})", method.name());
        return Err(SolveError::Question(reason));
    }
    match counted {
        Some(name) if question.when == When::Steady => {
            Err(SolveError::Question(format!("firings({name}) grow without end in the long run: ask for throughput({name})")))
        }
        Some(name) if method != Method::Markov => Err(SolveError::Question(format!(
            "firings({name}) are added up by method markov only, and this is {}: count them by simulation",
            method.name()
        ))),
        _ => Ok(()),
    }
}

fn check(question: &Question) -> Result<(), SolveError> {
    check_error(question.error)?;
    if let When::At(times) = &question.when { check_times(times) } else { Ok(()) }
}

fn check_error(error: f64) -> Result<(), SolveError> {
    if error > 0.0 && error < 1.0 {
        Ok(())
    } else {
        Err(SolveError::Question(format!("the error is {error}; expected a number above 0 and below 1")))
    }
}

fn check_times(times: &[f64]) -> Result<(), SolveError> {
    let refused = |reason: String| Err(SolveError::Question(reason));
    if times.is_empty() || times.len() > TIMES_MAX {
        return refused(format!("there are {} times; expected 1 to {TIMES_MAX}", times.len()));
    }
    if let Some(time) = times.iter().find(|time| !(**time >= 0.0 && time.is_finite())) {
        return refused(format!("{time} is no time; expected a number from 0"));
    }
    if let Some(pair) = times.windows(2).find(|pair| pair[0] > pair[1]) {
        return refused(format!("{} stands behind {}; expected times that rise", pair[1], pair[0]));
    }
    Ok(())
}
