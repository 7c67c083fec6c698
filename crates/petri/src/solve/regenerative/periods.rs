//! What happens between two instants from which on the past does not count.
//!
//! Such an instant is where the general clock begins, or where none runs. Between two of them the marking follows an exponential
//! chain, as long as the clock runs (Choi, Kulkarni and Trivedi, "Markov regenerative stochastic Petri nets", Performance Evaluation
//! 20, 1994).

use super::steps::{STEPS_MAX, Steps};
use crate::{
    chain::{Chain, ROUNDOFF, transient::TooManySteps},
    distribution::Distribution,
    explore::{AGED, Clock, DUE, ExploreError, FRESH, Frontier, Moment, Rules, State, Unsuited},
    net::Delay,
    solve::SolveError,
    states::States,
};

/// What a state does.
struct Moves {
    /// Exponential transitions: states and rates.
    rates: Vec<(u32, f64)>,
    general: Option<General>,
}

/// A general clock that runs.
struct General {
    transition: usize,
    /// Whether it begins here.
    is_fresh: bool,
    /// Where its firing leads, with probabilities.
    outcomes: Vec<(u32, f64)>,
}

impl Moves {
    /// Whether a general clock goes on here that has begun elsewhere: no period begins here then.
    fn is_aged(&self) -> bool {
        self.general.as_ref().is_some_and(|general| !general.is_fresh)
    }

    fn exit(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| rate).sum()
    }
}

/// All states, and what they do.
pub struct Explored<'a> {
    pub rules: Rules<'a>,
    pub states: States,
    initial: Vec<(u32, f64)>,
    moves: Vec<Moves>,
}

impl<'a> Explored<'a> {
    pub fn of(rules: Rules<'a>, states_max: usize) -> Result<Self, ExploreError> {
        let mut frontier = Frontier::new(rules, states_max)?;
        let mut moves = Vec::new();
        while moves.len() < frontier.states.len() {
            moves.push(frontier.moves(moves.len())?);
        }
        Ok(Self { rules: frontier.rules, states: frontier.states, initial: frontier.initial, moves })
    }
}

impl Frontier<'_> {
    fn moves(&mut self, number: usize) -> Result<Moves, ExploreError> {
        let mut rates = Vec::new();
        self.rates(number, Moment::BeforeMiddle, &mut rates)?;
        rates.retain(|(state, _)| *state as usize != number);
        let mut state = State::default();
        self.rules.unpack(self.states.get(number), &mut state);
        let Some(slot) = self.rules.general_slot(&state)? else { return Ok(Moves { rates, general: None }) };
        let is_fresh = state.clocks[slot][0] == FRESH;
        state.clocks[slot][0] = DUE;
        let mut outcomes = vec![(1.0, state)];
        self.rules.settle(&mut outcomes, Moment::Middle)?;
        let fired = outcomes.into_iter().map(|(probability, mut next)| Ok((self.number(&mut next)?, probability)));
        let fired = fired.collect::<Result<Vec<_>, ExploreError>>()?;
        Ok(Moves { rates, general: Some(General { transition: self.rules.slots[slot].transition, is_fresh, outcomes: fired }) })
    }
}

impl Rules<'_> {
    /// The slot of the general clock that runs; none where none does.
    fn general_slot(&self, state: &State) -> Result<Option<usize>, Unsuited> {
        let mut found = None;
        for (index, slot) in self.slots.iter().enumerate() {
            if !matches!(self.clocks[slot.transition], Clock::General) || state.clocks[index].is_empty() {
                continue;
            }
            let refused = |reason: &str| {
                let transition = self.net.transitions()[slot.transition].name.clone();
                Err(Unsuited { transition, reason: format!("{reason}; simulate it for a late time") })
            };
            match (found, self.running_clocks(index, state)) {
                (None, [FRESH | AGED]) => found = Some(index),
                (None, []) => return refused("its general delay is stopped and goes on later: method regenerative keeps none"),
                _ => return refused("two general delays run at once: method regenerative is for one"),
            }
        }
        Ok(found)
    }
}

/// The periods of a net, by the state that they begin in.
pub struct Periods {
    /// From period to period, per unit of time: its long run is the share of time in each.
    pub chain: Chain,
    /// For each period, the states that it passes and the share of its time in each.
    pub shares: Vec<Vec<(u32, f64)>>,
    /// For each period the transition whose general clock runs, and how often it fires per unit of time.
    pub firings: Vec<Option<(usize, f64)>>,
    /// What shares of time and firings may be off in a period, relative.
    pub error: f64,
    /// Whether that is a bound.
    pub is_bound: bool,
    /// Steps that were made.
    pub steps: usize,
}

impl Periods {
    /// Leaves out about `tail` of each period.
    pub fn of(explored: &Explored, tail: f64) -> Result<Self, SolveError> {
        let starts: Vec<u32> = (0..).zip(&explored.moves).filter(|(_, moves)| !moves.is_aged()).map(|(state, _)| state).collect();
        let mut number = vec![u32::MAX; explored.moves.len()];
        starts.iter().zip(0..).for_each(|(state, period)| number[*state as usize] = period);
        let initial = explored.initial.iter().map(|(state, probability)| (number[*state as usize], *probability)).collect();
        let delays = delays(explored, starts.len(), tail)?;
        let mut periods = Self {
            chain: Chain::starting(initial),
            shares: Vec::new(),
            firings: Vec::new(),
            error: 0.0,
            is_bound: delays.iter().flatten().all(|delay| delay.steps.is_bound),
            steps: 0,
        };
        let mut walk = Walk::new(explored.moves.len());
        for start in &starts {
            let moves = &explored.moves[*start as usize];
            let Some(General { transition, .. }) = &moves.general else {
                periods.push(moves.rates.iter().map(|(state, rate)| (number[*state as usize], *rate)).collect(), vec![(*start, 1.0)], None);
                continue;
            };
            let delay = delays[*transition].as_ref().expect("delays of all general clocks that run were prepared");
            let left_out = walk.run(explored, *start, delay, tail);
            let length: f64 = walk.times.iter().map(|(_, time)| time).sum();
            let error = left_out.probability + left_out.time / length + left_out.rounding;
            periods.error = periods.error.max(error);
            periods.steps += left_out.steps;
            let mut row = Vec::new();
            for (state, time) in &walk.times {
                let left = explored.moves[*state as usize].rates.iter().filter(|(next, _)| !explored.moves[*next as usize].is_aged());
                row.extend(left.map(|(next, rate)| (number[*next as usize], time * rate / length)));
            }
            let mut fired = 0.0;
            for (state, end) in &walk.ends {
                let Some(General { outcomes, .. }) = &explored.moves[*state as usize].general else { continue };
                fired += end / length;
                row.extend(outcomes.iter().map(|(next, probability)| (number[*next as usize], end * probability / length)));
            }
            periods.push(row, walk.times.iter().map(|(state, time)| (*state, time / length)).collect(), Some((*transition, fired)));
            // The row's probabilities are off by that, and so is the length that they are divided by.
            periods.chain.doubt_last_row(2.0 * error / length);
        }
        Ok(periods)
    }

    fn push(&mut self, mut row: Vec<(u32, f64)>, shares: Vec<(u32, f64)>, firing: Option<(usize, f64)>) {
        self.chain.push_row(&mut row);
        self.shares.push(shares);
        self.firings.push(firing);
    }
}

/// A general delay, beside the chain that runs while it does.
struct Delaying {
    rate: f64,
    steps: Steps,
}

/// For each transition, if it has a general clock that runs anywhere.
fn delays(explored: &Explored, starts: usize, tail: f64) -> Result<Vec<Option<Delaying>>, SolveError> {
    let net = explored.rules.net;
    let mut rates = vec![None; net.transitions().len()];
    for moves in &explored.moves {
        if let Some(General { transition, .. }) = moves.general {
            rates[transition] = Some(moves.exit().max(rates[transition].unwrap_or(0.0)));
        }
    }
    let delay = |(transition, rate): (usize, Option<f64>)| -> Result<Option<Delaying>, SolveError> {
        let Some(rate) = rate else { return Ok(None) };
        let law: &Distribution = match net.transitions()[transition].timed().map(|timed| &timed.delay) {
            Some(Delay::Distribution(law)) => law,
            _ => unreachable!("only a distribution is a general delay"),
        };
        if law.mean() == 0.0 {
            let transition = net.transitions()[transition].name.clone();
            return Err(Unsuited { transition, reason: "its delay is 0: expected an immediate transition".to_owned() }.into());
        }
        let too_many = |steps: f64| SolveError::TooManySteps(TooManySteps { steps });
        let steps = Steps::of(law, rate, tail).ok_or_else(|| too_many(rate * law.mean().max(STEPS_MAX as f64 / rate)))?;
        let all = steps.ends.len() as f64 * starts as f64;
        if all > crate::chain::transient::STEPS_MAX as f64 { Err(too_many(all)) } else { Ok(Some(Delaying { rate, steps })) }
    };
    rates.into_iter().enumerate().map(delay).collect()
}

/// A period, step by step.
struct Walk {
    now: Vec<f64>,
    next: Vec<f64>,
    /// Probability that the clock runs out in a state, and the expected time there, for states that are reached.
    ends: Vec<(u32, f64)>,
    times: Vec<(u32, f64)>,
    ends_by_state: Vec<f64>,
    times_by_state: Vec<f64>,
}

impl Walk {
    fn new(states: usize) -> Self {
        let zero = || vec![0.0; states];
        Self { now: zero(), next: zero(), ends: Vec::new(), times: Vec::new(), ends_by_state: zero(), times_by_state: zero() }
    }

    /// Runs the period that begins in `start`.
    fn run(&mut self, explored: &Explored, start: u32, delay: &Delaying, tail: f64) -> LeftOut {
        let Delaying { rate, steps } = delay;
        let (mut active, mut met) = (vec![start], vec![start]);
        self.now[start as usize] = 1.0;
        let (mut made, mut longest) = (0, 0);
        for (end, time) in steps.ends.iter().zip(&steps.times) {
            let mut reached = Vec::new();
            for state in active.drain(..) {
                let index = state as usize;
                let probability = std::mem::take(&mut self.now[index]);
                self.ends_by_state[index] += end * probability;
                self.times_by_state[index] += time * probability;
                let moves = &explored.moves[index];
                longest = longest.max(moves.rates.len());
                let mut give = |to: u32, probability: f64| {
                    if probability > 0.0 && self.next[to as usize] == 0.0 {
                        reached.push(to);
                    }
                    self.next[to as usize] += probability;
                };
                let on = moves.rates.iter().filter(|(next, _)| explored.moves[*next as usize].is_aged());
                on.for_each(|(next, share)| give(*next, probability * share / rate));
                if *rate > 0.0 {
                    give(state, probability * (1.0 - moves.exit() / rate).max(0.0));
                }
            }
            std::mem::swap(&mut self.now, &mut self.next);
            made += 1;
            met.extend(&reached);
            active = reached;
            if active.iter().map(|state| self.now[*state as usize]).sum::<f64>() <= 0.1 * tail {
                break;
            }
        }
        let rest: f64 = active.iter().map(|state| std::mem::take(&mut self.now[*state as usize])).sum();
        met.sort_unstable();
        met.dedup();
        let taken = |values: &mut Vec<f64>| met.iter().map(|state| (*state, std::mem::take(&mut values[*state as usize]))).collect();
        self.ends = taken(&mut self.ends_by_state);
        self.times = taken(&mut self.times_by_state);
        // Behind the last number of steps that has a probability, what is left is missing in that already.
        let is_cut = made < steps.ends.len();
        let cut = if is_cut { rest } else { 0.0 };
        let later: f64 = if is_cut { cut * steps.times[made..].iter().sum::<f64>() } else { steps.missing_time };
        let misplaced = if *rate > 0.0 { steps.wrong * made as f64 / rate } else { 0.0 };
        LeftOut {
            probability: steps.wrong + cut,
            time: later + misplaced,
            rounding: steps.rounding + (made * (longest + 6)) as f64 * ROUNDOFF,
            steps: made,
        }
    }
}

/// What a period's numbers may be off.
struct LeftOut {
    probability: f64,
    time: f64,
    /// Relative.
    rounding: f64,
    /// Steps that were made.
    steps: usize,
}
