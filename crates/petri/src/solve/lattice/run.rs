//! One length of the tick: probabilities of all states from time 0, cell by cell.

use std::iter::Peekable;

use super::interpolation::Node;
use crate::{
    chain::poisson::Window,
    explore::{General, Half, Mass, Rules, Ticking},
    solve::{Question, SolveError, columns::Columns},
};

/// Most ticks up to the last time.
const TICKS_MAX: f64 = 2e6;

/// Share of the asked error that small probabilities may have which are cut off, and as much for the tails of Poisson's law. It counts
/// by the range of a measure and by the weights of the extrapolation, which may be a hundred together.
const CUT_SHARE: f64 = 1e-4;

/// When values are read off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    node: Node,
    /// Time since the node, below a tick; above 0 only where ticks add no error.
    rest: f64,
}

impl Reading {
    /// At a node, where each tick is divided by `division`.
    pub fn of(node: Node, division: u32) -> Self {
        Self { node: Node { number: node.number * division as usize, ..node }, rest: 0.0 }
    }

    /// At any time.
    fn at(time: f64, tick: f64) -> Self {
        let position = time / tick;
        let is_on_grid = super::grid::is_multiple(time, tick);
        let number = if is_on_grid { position.round() } else { position.floor() } as usize;
        let rest = if is_on_grid { 0.0 } else { time - number as f64 * tick };
        Self { node: Node { number, is_after: true }, rest }
    }
}

/// The values with one length of the tick.
pub struct Level {
    /// For each reading and column.
    pub values: Vec<Vec<f64>>,
    pub states: usize,
    pub steps: usize,
    /// By column: what the probability that was cut off could have added.
    pub cut: Vec<f64>,
}

/// The values at any times, with ticks that all fixed delays are multiples of. None if ticks add an error: some clock starts at a time
/// that is not one of the grid.
pub fn exact(question: &Question, times: &[f64], tick: f64) -> Result<Option<Level>, SolveError> {
    let readings: Vec<Reading> = times.iter().map(|time| Reading::at(*time, tick)).collect();
    let mut run = Run::new(question, &readings, tick)?;
    let mut values = Values::new(question, &readings);
    for number in 0.. {
        if number > 0 {
            run.between(Half::First, tick)?;
            run.tick_on_grid()?;
        }
        while let Some(reading) = values.next(number, true) {
            if reading.rest > 0.0 {
                let here = run.now.clone();
                run.between(Half::First, reading.rest)?;
                values.take(&run);
                run.now = here;
            } else {
                values.take(&run);
            }
        }
        if !run.ticking.is_exact() {
            return Ok(None);
        }
        if values.are_complete() {
            break;
        }
    }
    Ok(Some(values.level(&run)))
}

/// The values at times of the grid, which rise.
pub fn level(question: &Question, readings: &[Reading], tick: f64) -> Result<Level, SolveError> {
    let mut run = Run::new(question, readings, tick)?;
    let mut values = Values::new(question, readings);
    for number in 0.. {
        if number > 0 {
            run.between(Half::First, 0.5 * tick)?;
            run.tick_in_middle()?;
            run.between(Half::Second, 0.5 * tick)?;
        }
        while values.next(number, false).is_some() {
            values.take(&run);
        }
        if number > 0 && run.ticking.has_grid_ticks() {
            run.tick_on_grid()?;
        }
        while values.next(number, true).is_some() {
            values.take(&run);
        }
        if values.are_complete() {
            break;
        }
    }
    Ok(values.level(&run))
}

/// The values that are asked for, read off one after the other.
struct Values<'a> {
    question: &'a Question<'a>,
    readings: Peekable<std::slice::Iter<'a, Reading>>,
    /// The columns' values of the states that were met so far.
    columns: Vec<Vec<f64>>,
    found: Vec<Vec<f64>>,
}

impl<'a> Values<'a> {
    fn new(question: &'a Question<'a>, readings: &'a [Reading]) -> Self {
        let columns = vec![Vec::new(); question.net.places().len() + question.measures.len()];
        Self { question, readings: readings.iter().peekable(), columns, found: Vec::new() }
    }

    /// The next reading, if it is this one.
    fn next(&mut self, number: usize, is_after: bool) -> Option<Reading> {
        self.readings.next_if(|reading| reading.node == Node { number, is_after }).copied()
    }

    fn are_complete(&mut self) -> bool {
        self.readings.peek().is_none()
    }

    fn take(&mut self, run: &Run) {
        let columns = Columns { question: self.question, rules: run.ticking.rules(), states: run.ticking.states(), earned: Vec::new() };
        let Mass { values: probabilities, first } = &run.now;
        let value = |(index, column): (usize, &mut Vec<f64>)| -> f64 {
            column.extend(columns.part(index, column.len()..probabilities.len()));
            column[*first..].iter().zip(&probabilities[*first..]).map(|(value, probability)| value * probability).sum()
        };
        let row = self.columns.iter_mut().enumerate().map(value).collect();
        self.found.push(row);
    }

    fn level(self, run: &Run) -> Level {
        // The largest magnitude in a state that was met.
        let range = |column: &Vec<f64>| column.iter().fold(0.0, |range: f64, value| range.max(value.abs()));
        let cut = self.columns.iter().map(|column| range(column) * run.lost).collect();
        Level { values: self.found, states: run.ticking.states().len(), steps: run.steps, cut }
    }
}

/// The probabilities of all states, tick by tick.
struct Run<'a> {
    ticking: Ticking<'a>,
    /// The rate of the uniformized chain, and its numbers of steps within a time.
    rate: f64,
    window: Window,
    length: f64,
    tail: f64,
    cut: Cut,
    now: Mass,
    steps: usize,
    // Kept from step to step.
    before: Mass,
    after: Mass,
    sum: Mass,
    /// Probability that was cut off.
    lost: f64,
}

impl<'a> Run<'a> {
    fn new(question: &Question<'a>, readings: &[Reading], tick: f64) -> Result<Self, SolveError> {
        let ticks = readings.last().map_or(0, |reading| reading.node.number);
        if ticks as f64 > TICKS_MAX {
            let (last, ticks) = (ticks as f64 * tick, ticks as f64);
            return Err(SolveError::Question(format!("time {last} is {ticks:.1e} ticks; expected at most {TICKS_MAX:.0e}: simulate it")));
        }
        let error = question.error;
        let tail = (1e-3 * error).max(1e-14);
        let mut rules = Rules::new(question.net, question.until.clone(), General::OnTicks { tick, tail })?;
        rules.find_symmetry(&question.measures);
        let ticking = Ticking::new(rules, question.states_max)?;
        let spans = 4.0 * (ticks.max(1) + 1 + readings.len()) as f64;
        let tail = (CUT_SHARE * error / spans).max(1e-16);
        let now = ticking.first();
        let cut = Cut { least: 0.0, allowed: CUT_SHARE * error / spans };
        let (window, before, after, sum) = (Window::new(0.0, tail), Mass::default(), Mass::default(), Mass::default());
        Ok(Self { ticking, rate: 0.0, window, length: 0.0, tail, cut, now, steps: ticks, before, after, sum, lost: 0.0 })
    }

    /// Exponential transitions within one half of a cell.
    fn between(&mut self, half: Half, length: f64) -> Result<(), SolveError> {
        self.ticking.meet(half, &self.now, self.cut.least)?;
        loop {
            if self.ticking.exit_max() > self.rate || self.length.to_bits() != length.to_bits() {
                // A state was met that is left faster than any before, or the time is another one.
                (self.rate, self.length) = (self.ticking.exit_max(), length);
                self.window = Window::new(self.rate * length, self.tail);
            }
            if self.is_run(half)? {
                return Ok(());
            }
        }
    }

    /// The same with the rate that is known; false where it is too low.
    fn is_run(&mut self, half: Half) -> Result<bool, SolveError> {
        let mut lost = 0.0;
        self.sum.clear(self.now.values.len());
        self.sum.add_scaled(self.window.weight(0), &self.now);
        for number in 1..=self.window.last() {
            let before = if number == 1 { &self.now } else { &self.before };
            // What is cut off here is missing from the steps that are left, and counts as much as these weigh: late ones need few states.
            let left = self.window.weight_from(number);
            lost += left * self.ticking.step(half, self.rate, before, &mut self.after, self.cut.least / left)?;
            if self.ticking.exit_max() > self.rate {
                return Ok(false);
            }
            self.sum.add_scaled(self.window.weight(number), &self.after);
            std::mem::swap(&mut self.before, &mut self.after);
        }
        self.lost += lost + self.window.outside;
        self.cut.adapt(lost);
        std::mem::swap(&mut self.now, &mut self.sum);
        Ok(true)
    }

    fn tick_on_grid(&mut self) -> Result<(), SolveError> {
        let lost = self.ticking.tick_on_grid(&self.now, &mut self.after, self.cut.least)?;
        self.ticked(lost);
        Ok(())
    }

    fn tick_in_middle(&mut self) -> Result<(), SolveError> {
        let lost = self.ticking.tick_in_middle(&self.now, &mut self.after, self.cut.least)?;
        self.ticked(lost);
        Ok(())
    }

    fn ticked(&mut self, lost: f64) {
        self.lost += lost;
        self.cut.adapt(lost);
        std::mem::swap(&mut self.now, &mut self.after);
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
