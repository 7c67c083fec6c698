//! Several general clocks at once: time in ticks, and what is left of the error taken out by dividing them.
//!
//! General delays are put on the ticks with their mass and mean kept (`explore::clock::Ticks`); ticks are in the middle between the
//! times of a grid, and from one of these to the tick and on to the next the exponential transitions run exactly. A step is
//! symmetric in time, so that the error of a smooth expectation is a series in the square of the tick (Strang's splitting). It is
//! computed with ticks that are divided further and further, and extrapolated to 0 (Richardson; the divisions are those of Bulirsch
//! and Stoer, Numerische Mathematik 6, 1964). What the finest level and what the coarsest one changes is the estimate of what is left.
//! Probabilities are never negative, and their sum is 1 but for what is cut off, which is counted.

mod extrapolation;
mod grid;

use std::collections::BTreeMap;

use self::{
    extrapolation::{LEVELS_MIN, Levels},
    grid::{NEIGHBOURS, first_tick, general_law, is_multiple, neighbours},
};
use super::{Answer, Certainty, Method, Question, SolveError, When, columns::Columns};
use crate::{
    chain::poisson::Window,
    explore::{General, Mass, Rules, Ticking},
    measure::Measure,
};

/// Into how many ticks the first one is divided, level by level. All are whole numbers, so that what lies on the first grid lies on
/// every one; and they grow slower than powers of 2, for states grow as the power of the ticks that the number of clocks is.
const DIVISIONS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Most ticks up to the last time.
const TICKS_MAX: f64 = 2e6;

/// Share of the asked error that small probabilities may have which are cut off, and as much for the tails of Poisson's law.
const CUT_SHARE: f64 = 1e-2;

pub(super) fn solve(question: &Question) -> Result<Answer, SolveError> {
    let When::At(times) = &question.when else {
        return Err(SolveError::Question("method lattice computes values at given times; there is no long run of it".to_owned()));
    };
    check_throughputs(question)?;
    let first_tick = first_tick(question.net, times)?;
    let mut levels = Levels::default();
    let (mut states, mut steps) = (0, 0);
    for (number, division) in DIVISIONS.into_iter().enumerate() {
        let level = match level(question, times, first_tick / f64::from(division)) {
            Ok(level) => level,
            // The finest ticks that were possible may do.
            Err(SolveError::Explore(_)) if number >= LEVELS_MIN => break,
            Err(error) => return Err(error),
        };
        (states, steps) = (level.states, steps + level.steps);
        if level.is_exact {
            let reason = "every delay is fixed and a whole number of ticks".to_owned();
            let (method, certainty) = (Method::Lattice, Certainty::Bound);
            return Ok(Answer { method, reason, values: level.values, errors: level.cut, certainty, states, steps });
        }
        levels.add(division, level.values, level.cut);
        if levels.errors.iter().all(|error| *error <= question.error) {
            break;
        }
    }
    let reason = format!(
        "general delays run at the same time: {} lengths of a tick, from {first_tick} down, extrapolated; the error is what the finest and \
         the coarsest of them change",
        levels.len()
    );
    let Levels { best: values, errors, .. } = levels;
    Ok(Answer { method: Method::Lattice, reason, values, errors, certainty: Certainty::Estimate, states, steps })
}

/// General clocks fire at ticks only: between them they have no rate that could be told.
fn check_throughputs(question: &Question) -> Result<(), SolveError> {
    let general = |measure: &Measure| match measure {
        Measure::Throughput(impulse) => {
            Some(&question.net.transitions()[impulse.transition]).filter(|transition| general_law(transition).is_some())
        }
        Measure::Reward(_) | Measure::Firings(_) => None,
    };
    match question.measures.iter().find_map(general) {
        None => Ok(()),
        Some(transition) => Err(SolveError::Question(format!(
            "throughput({name}) is not known to method lattice, for the transition's delay is general; count firings({name}) by simulation",
            name = transition.name
        ))),
    }
}

/// The values with one length of the tick.
struct Level {
    values: Vec<Vec<f64>>,
    states: usize,
    steps: usize,
    /// By column: what the probability that was cut off could have added.
    cut: Vec<f64>,
    is_exact: bool,
}

fn level(question: &Question, times: &[f64], tick: f64) -> Result<Level, SolveError> {
    let last = times.last().copied().unwrap_or(0.0);
    let margin = if times.iter().all(|time| is_multiple(*time, tick)) { 0 } else { NEIGHBOURS };
    let ticks = (last / tick - 1e-9).ceil().max(0.0);
    if ticks > TICKS_MAX {
        return Err(SolveError::Question(format!("time {last} is {ticks:.1e} ticks; expected at most {TICKS_MAX:.0e}: simulate it")));
    }
    let count = ticks as usize + margin;
    let tail = (1e-3 * question.error).max(1e-14);
    let mut rules = Rules::new(question.net, question.until.clone(), General::OnTicks { tick, tail })?;
    rules.find_symmetry(&question.measures);
    let mut readings = Readings::new(question, times, tick, count);
    let mut run = Run::new(Ticking::new(rules, question.states_max)?, tick, count, question.error);
    for number in 0..=count {
        if number > 0 {
            run.tick()?;
        }
        // Half a step behind the tick is the grid's own time, half a step before the next one too; not asked for, both are one.
        match (readings.are_due(number), number) {
            (false, 0) => run.between(Span::Half)?,
            (false, _) => run.between(Span::Whole)?,
            (true, _) => {
                if number > 0 {
                    run.between(Span::Half)?;
                }
                readings.take(number, &run);
                run.between(Span::Half)?;
            }
        }
    }
    let cut = readings.ranges().map(|range| range * run.lost).collect();
    Ok(Level { values: readings.values, states: run.ticking.states().len(), steps: count, cut, is_exact: run.ticking.is_certain() })
}

/// What is asked, read off at the grid's times.
struct Readings<'a> {
    question: &'a Question<'a>,
    /// For each of the grid's times that are needed: of which asked times it is a part, and how much of it.
    due: BTreeMap<usize, Vec<(usize, f64)>>,
    /// The columns' values of the states that were met so far.
    columns: Vec<Vec<f64>>,
    values: Vec<Vec<f64>>,
}

impl<'a> Readings<'a> {
    fn new(question: &'a Question, times: &[f64], tick: f64, count: usize) -> Self {
        let mut due: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
        for (index, time) in times.iter().enumerate() {
            neighbours(*time / tick, count).into_iter().for_each(|(number, weight)| due.entry(number).or_default().push((index, weight)));
        }
        let columns = question.net.places().len() + question.measures.len();
        Self { question, due, columns: vec![Vec::new(); columns], values: vec![vec![0.0; columns]; times.len()] }
    }

    fn are_due(&self, number: usize) -> bool {
        self.due.contains_key(&number)
    }

    fn take(&mut self, number: usize, run: &Run) {
        let columns = Columns { question: self.question, rules: run.ticking.rules(), states: run.ticking.states(), earned: Vec::new() };
        let Mass { values: probabilities, first } = &run.now;
        for (index, column) in self.columns.iter_mut().enumerate() {
            column.extend(columns.part(index, column.len()..probabilities.len()));
            let value: f64 = column[*first..].iter().zip(&probabilities[*first..]).map(|(value, probability)| value * probability).sum();
            for (time, weight) in &self.due[&number] {
                self.values[*time][index] += weight * value;
            }
        }
    }

    /// By column: the largest magnitude in a state that was met.
    fn ranges(&self) -> impl Iterator<Item = f64> {
        self.columns.iter().map(|column| column.iter().fold(0.0, |range: f64, value| range.max(value.abs())))
    }
}

/// How long the exponential transitions run.
#[derive(Clone, Copy)]
enum Span {
    Half,
    Whole,
}

/// The probabilities of all states, tick by tick.
struct Run<'a> {
    ticking: Ticking<'a>,
    tick: f64,
    /// Exponential transitions between two ticks: the rate of the uniformized chain, and its numbers of steps.
    rate: f64,
    half: Window,
    whole: Window,
    tail: f64,
    cut: Cut,
    now: Mass,
    // Kept from step to step.
    before: Mass,
    after: Mass,
    sum: Mass,
    /// Probability that was cut off.
    lost: f64,
}

impl<'a> Run<'a> {
    fn new(ticking: Ticking<'a>, tick: f64, ticks: usize, error: f64) -> Self {
        let spans = 2.0 * (ticks.max(1) + 1) as f64;
        let tail = (CUT_SHARE * error / spans).max(1e-16);
        let now = ticking.first();
        let none = Window::new(0.0, tail);
        let cut = Cut { least: 0.0, allowed: CUT_SHARE * error / spans };
        let (before, after, sum) = (Mass::default(), Mass::default(), Mass::default());
        Self { ticking, tick, rate: 0.0, half: none.clone(), whole: none, tail, cut, now, before, after, sum, lost: 0.0 }
    }

    /// Exponential transitions over half a tick or a whole one.
    fn between(&mut self, span: Span) -> Result<(), SolveError> {
        self.ticking.meet(&self.now, self.cut.least)?;
        while !self.is_run(span)? {
            // A state was met that is left faster than any before.
            self.rate = self.ticking.exit_max();
            self.half = Window::new(0.5 * self.rate * self.tick, self.tail);
            self.whole = Window::new(self.rate * self.tick, self.tail);
        }
        Ok(())
    }

    /// The same with the rate that is known; false where it is too low.
    fn is_run(&mut self, span: Span) -> Result<bool, SolveError> {
        if self.ticking.exit_max() > self.rate {
            return Ok(false);
        }
        let window = match span {
            Span::Half => &self.half,
            Span::Whole => &self.whole,
        };
        let mut lost = 0.0;
        self.sum.clear(self.now.values.len());
        self.sum.add_scaled(window.weight(0), &self.now);
        for number in 1..=window.last() {
            let before = if number == 1 { &self.now } else { &self.before };
            // What is cut off here is missing from the steps that are left, and counts as much as these weigh: late ones need few states.
            let left = window.weight_from(number);
            lost += left * self.ticking.step(self.rate, before, &mut self.after, self.cut.least / left)?;
            if self.ticking.exit_max() > self.rate {
                return Ok(false);
            }
            self.sum.add_scaled(window.weight(number), &self.after);
            std::mem::swap(&mut self.before, &mut self.after);
        }
        self.lost += lost + window.outside;
        self.cut.adapt(lost);
        std::mem::swap(&mut self.now, &mut self.sum);
        Ok(true)
    }

    fn tick(&mut self) -> Result<(), SolveError> {
        let lost = self.ticking.tick(&self.now, &mut self.after, self.cut.least)?;
        self.lost += lost;
        self.cut.adapt(lost);
        std::mem::swap(&mut self.now, &mut self.after);
        Ok(())
    }
}

/// Which probabilities are cut off: as many as are allowed in a step.
struct Cut {
    /// Up to this.
    least: f64,
    /// What all of a step's may sum up to.
    allowed: f64,
}

impl Cut {
    fn adapt(&mut self, lost: f64) {
        if lost > self.allowed {
            self.least *= 0.25;
        } else if lost < 0.25 * self.allowed {
            self.least = (2.0 * self.least).clamp(1e-6 * self.allowed, self.allowed);
        }
    }
}
