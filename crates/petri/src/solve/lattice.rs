//! Several general clocks at once: time in ticks, and what is left of the error taken out by halving them.
//!
//! General delays are put on the ticks with their mass and mean kept (`explore::clock::Ticks`); ticks are in the middle between the
//! times of a grid, and from one of these to the tick and on to the next the exponential transitions run exactly. A step is
//! symmetric in time, so that the error of a smooth expectation is a series in the square of the tick (Strang's splitting). It is computed with ticks that are halved
//! again and again, and extrapolated to 0 (Richardson; Romberg's table). The last correction of the table is the estimate of what is
//! left. Probabilities are never negative and their sum stays 1 at every tick.

use super::{Answer, Certainty, Method, Question, SolveError, When, columns::Columns};
use crate::{
    chain::poisson::Window,
    distribution::Distribution,
    explore::{Exploration, Rules, Stages, Tick},
    measure::Measure,
    net::{Delay, Net, Transition},
};

/// Most times that the tick is halved.
const HALVINGS_MAX: usize = 6;

/// Most ticks up to the last time.
const TICKS_MAX: f64 = 2e6;

/// Ticks in the standard deviation of the shortest general delay, at first.
const TICKS_PER_DEVIATION: f64 = 1.0;

/// Times that are no whole number of ticks are interpolated between this many that are.
const NEIGHBOURS: usize = 8;

pub(super) fn solve(question: &Question) -> Result<Answer, SolveError> {
    let When::At(times) = &question.when else {
        return Err(SolveError::Question("method lattice computes values at given times; there is no long run of it".to_owned()));
    };
    check_throughputs(question)?;
    let first_tick = first_tick(question.net, times)?;
    let mut table = Table::default();
    let (mut states, mut steps) = (0, 0);
    for halving in 0..=HALVINGS_MAX {
        let tick = first_tick / f64::from(1_u32 << halving);
        let level = match level(question, times, tick) {
            Ok(level) => level,
            // The finest ticks that were possible may do.
            Err(SolveError::Explore(_)) if halving >= 3 => break,
            Err(error) => return Err(error),
        };
        (states, steps) = (level.states, steps + level.steps);
        if level.is_exact {
            let reason = "every delay is fixed and a whole number of ticks".to_owned();
            let errors = vec![level.lost; level.values[0].len()];
            return Ok(Answer {
                method: Method::Lattice,
                reason,
                values: level.values,
                errors,
                certainty: Certainty::Bound,
                states,
                steps,
            });
        }
        table.add(level);
        if table.errors().iter().all(|error| *error <= question.error) {
            break;
        }
    }
    let reason = format!("general delays run at the same time: {} ticks of {first_tick} and its halves, extrapolated", table.levels);
    let errors = table.errors();
    Ok(Answer { method: Method::Lattice, reason, values: table.best, errors, certainty: Certainty::Estimate, states, steps })
}

/// General clocks fire at ticks only: between them they have no rate that could be told.
fn check_throughputs(question: &Question) -> Result<(), SolveError> {
    let general = |measure: &Measure| match measure {
        Measure::Throughput(transition) => {
            Some(&question.net.transitions()[*transition]).filter(|transition| general_law(transition).is_some())
        }
        Measure::Reward(_) => None,
    };
    match question.measures.iter().find_map(general) {
        None => Ok(()),
        Some(transition) => Err(SolveError::Question(format!(
            "throughput({}) is not known to method lattice, for the transition's delay is general; simulate it",
            transition.name
        ))),
    }
}

/// The law of a transition's delay, if it is not made of exponential stages.
fn general_law(transition: &Transition) -> Option<&Distribution> {
    match transition.timed().map(|timed| &timed.delay) {
        Some(Delay::Distribution(law)) if Stages::of(law).is_none() => Some(law),
        _ => None,
    }
}

/// The values with one length of the tick.
struct Level {
    values: Vec<Vec<f64>>,
    states: usize,
    steps: usize,
    /// Probability that was cut off or truncated.
    lost: f64,
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
    let mut rules = Rules::new(question.net, question.until.clone(), Some(tick), tail)?;
    rules.find_symmetry(&question.measures);
    let (exploration, ticking) = Exploration::with_ticks(rules, question.states_max)?;
    let columns = Columns { question, exploration: &exploration };
    let rewards = columns.rewards();
    let is_exact = exploration.chain.transitions() == 0 && ticking.is_certain();
    let needed: Vec<Vec<(usize, f64)>> = times.iter().map(|time| neighbours(*time / tick, count)).collect();
    let mut run = Run::new(&exploration, &ticking, tick, count, question.error);
    let mut values = vec![vec![0.0; rewards.len()]; times.len()];
    for number in 0..=count {
        let takers: Vec<(usize, f64)> = needed
            .iter()
            .enumerate()
            .flat_map(|(time, needed)| needed.iter().filter(|(other, _)| *other == number).map(move |(_, weight)| (time, *weight)))
            .collect();
        let mut take = |probabilities: &[f64]| {
            for (index, reward) in rewards.iter().enumerate().filter(|_| !takers.is_empty()) {
                let value: f64 = reward.iter().map(|(state, value)| value * probabilities[*state as usize]).sum();
                takers.iter().for_each(|(time, weight)| values[*time][index] += weight * value);
            }
        };
        if number > 0 {
            run.tick();
        }
        // Half a step behind the tick is the grid's own time, half a step before the next one too; not asked for, both are one.
        match (takers.is_empty(), number) {
            (true, 0) => run.between(Span::Half),
            (true, _) => run.between(Span::Whole),
            (false, 0) => {
                take(&run.now);
                run.between(Span::Half);
            }
            (false, _) => {
                run.between(Span::Half);
                take(&run.now);
                run.between(Span::Half);
            }
        }
    }
    Ok(Level { values, states: exploration.states.len(), steps: count, lost: run.lost, is_exact })
}

/// How long the exponential transitions run.
#[derive(Clone, Copy)]
enum Span {
    Half,
    Whole,
}

/// The probabilities of all states, tick by tick.
struct Run<'a> {
    exploration: &'a Exploration<'a>,
    ticking: &'a Tick,
    /// Exponential transitions between two ticks.
    rate: f64,
    half: Window,
    whole: Window,
    cutoff: f64,
    now: Vec<f64>,
    next: Vec<f64>,
    sum: Vec<f64>,
    lost: f64,
}

impl<'a> Run<'a> {
    fn new(exploration: &'a Exploration<'a>, ticking: &'a Tick, tick: f64, ticks: usize, error: f64) -> Self {
        let rate = exploration.chain.exit_max();
        let tail = (1e-2 * error / (2 * ticks.max(1)) as f64).max(1e-16);
        let (half, whole) = (Window::new(0.5 * rate * tick, tail), Window::new(rate * tick, tail));
        let now = exploration.chain.first();
        let zero = vec![0.0; now.len()];
        let operations = ticks.max(1) as f64 * (whole.last() + 2) as f64 * now.len() as f64;
        Self { exploration, ticking, rate, half, whole, cutoff: 1e-2 * error / operations, next: zero.clone(), sum: zero, now, lost: 0.0 }
    }

    /// Exponential transitions over half a tick or a whole one.
    fn between(&mut self, span: Span) {
        if self.rate == 0.0 {
            return;
        }
        let window = match span {
            Span::Half => &self.half,
            Span::Whole => &self.whole,
        };
        self.sum.fill(0.0);
        for number in 0..=window.last() {
            let weight = window.weight(number);
            self.sum.iter_mut().zip(&self.now).for_each(|(sum, probability)| *sum += weight * probability);
            if number < window.last() {
                self.lost += self.exploration.chain.step(self.rate, &self.now, &mut self.next, self.cutoff);
                std::mem::swap(&mut self.now, &mut self.next);
            }
        }
        self.lost += window.outside;
        std::mem::swap(&mut self.now, &mut self.sum);
    }

    fn tick(&mut self) {
        self.lost += self.ticking.apply(&self.now, &mut self.next, self.cutoff);
        std::mem::swap(&mut self.now, &mut self.next);
    }
}

/// Romberg's table: each level's values, extrapolated with those before it.
#[derive(Default)]
struct Table {
    /// The last row: with no extrapolation, one, two ...
    row: Vec<Vec<Vec<f64>>>,
    best: Vec<Vec<f64>>,
    corrections: Vec<f64>,
    lost: f64,
    levels: usize,
}

impl Table {
    fn add(&mut self, level: Level) {
        self.levels += 1;
        self.lost = self.lost.max(level.lost);
        let mut row = vec![level.values];
        for (order, before) in self.row.iter().enumerate() {
            let factor = 4.0_f64.powi(order as i32 + 1) - 1.0;
            let better = each(&row[order], before, |fine, coarse| fine + (fine - coarse) / factor);
            row.push(better);
        }
        let best = row.last().cloned().unwrap_or_default();
        self.corrections = match (row.len().checked_sub(2).map(|order| &row[order]), self.best.is_empty()) {
            // How far the last extrapolation went, or how far the last halving did, whichever is more: that is rather the error of
            // the level before.
            (Some(before), false) => {
                let (last, change) = (largest(&best, before), largest(&best, &self.best));
                last.iter().zip(change).map(|(last, change)| last.max(change)).collect()
            }
            _ => vec![f64::INFINITY; best.first().map_or(0, Vec::len)],
        };
        self.row = row;
        self.best = best;
    }

    fn errors(&self) -> Vec<f64> {
        let corrections = self.corrections.iter();
        // Two levels agree by chance more easily than three.
        corrections.map(|correction| if self.levels < 3 { f64::INFINITY } else { correction + self.lost }).collect()
    }
}

fn each(a: &[Vec<f64>], b: &[Vec<f64>], join: impl Fn(f64, f64) -> f64) -> Vec<Vec<f64>> {
    a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| join(*a, *b)).collect()).collect()
}

/// For each column the largest difference at any time.
fn largest(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<f64> {
    let mut found = vec![0.0_f64; a.first().map_or(0, Vec::len)];
    for (a, b) in a.iter().zip(b) {
        found.iter_mut().zip(a.iter().zip(b)).for_each(|(found, (a, b))| *found = found.max((a - b).abs()));
    }
    found
}

/// Ticks around a time, with the weights of Lagrange's interpolation.
fn neighbours(position: f64, count: usize) -> Vec<(usize, f64)> {
    if is_multiple(position, 1.0) || count < NEIGHBOURS {
        return vec![(position.round() as usize, 1.0)];
    }
    let first = (position.floor() as usize).saturating_sub(NEIGHBOURS / 2 - 1).min(count + 1 - NEIGHBOURS);
    let nodes = first..first + NEIGHBOURS;
    let weight = |node: usize| {
        let others = nodes.clone().filter(|other| *other != node);
        others.map(|other| (position - other as f64) / (node as f64 - other as f64)).product()
    };
    nodes.clone().map(|node| (node, weight(node))).collect()
}

fn is_multiple(time: f64, tick: f64) -> bool {
    let position = time / tick;
    (position - position.round()).abs() <= 1e-9 * position.max(1.0)
}

/// A length that all corners of the general delays are multiples of, and the times too where that is not much finer, and that resolves
/// the shortest delay.
fn first_tick(net: &Net, times: &[f64]) -> Result<f64, SolveError> {
    let (mut corners, mut shortest) = (Vec::new(), f64::INFINITY);
    for law in net.transitions().iter().filter_map(general_law) {
        let (low, high) = law.support();
        corners.extend([low, high].into_iter().filter(|corner| *corner > 0.0 && corner.is_finite()));
        if let Distribution::Empirical(law) = law {
            corners.extend(law.values().iter().filter(|value| **value > 0.0));
        }
        let deviation = law.variance().sqrt();
        shortest = shortest.min(if deviation > 0.0 { deviation / TICKS_PER_DEVIATION } else { law.mean() });
    }
    if !(shortest > 0.0 && shortest.is_finite()) {
        return Err(SolveError::Question("no delay of the net is general: method markov is made for it".to_owned()));
    }
    let floor = shortest / 64.0;
    let step = corners.iter().copied().fold(0.0, |step, corner| common_divisor(step, corner, floor));
    let with_times = times.iter().copied().fold(step, |step, time| common_divisor(step, time, floor));
    let step = if with_times >= 0.5 * shortest.min(if step > 0.0 { step } else { f64::INFINITY }) { with_times } else { step };
    if step <= floor {
        // Corners have nothing in common: the estimate of the error says what that costs.
        return Ok(shortest);
    }
    Ok(step / (step / shortest).ceil())
}

/// Euclid's algorithm on lengths; below `floor` it gives up with 0.
fn common_divisor(a: f64, b: f64, floor: f64) -> f64 {
    let (mut a, mut b) = (a.max(b), a.min(b));
    while b > 1e-9 * a {
        if b < floor {
            return 0.0;
        }
        (a, b) = (b, a - b * (a / b).floor());
        // What is left may be just short of the divisor, by rounding.
        if a - b < 1e-9 * a {
            b = 0.0;
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_common_divisor_in_spite_of_rounding() {
        for (a, b, expected) in [(1.0, 0.3, 0.1), (0.0, 0.7, 0.7), (0.3, 0.1 + 0.2, 0.3), (2.5, 1.0, 0.5), (1.0, 1.0 / 3.0, 1.0 / 3.0)] {
            assert!((common_divisor(a, b, 0.01) - expected).abs() < 1e-7, "{a} {b}: {}", common_divisor(a, b, 0.01));
        }
        assert_eq!(common_divisor(1.0, std::f64::consts::FRAC_1_SQRT_2, 0.01), 0.0);
    }

    #[test]
    fn interpolation_is_exact_for_polynomials() {
        let cubic = |x: f64| 1.0 + x - 0.5 * x * x + 0.1 * x * x * x;
        for position in [0.3, 5.5, 19.9] {
            let value: f64 = neighbours(position, 20).iter().map(|(node, weight)| weight * cubic(*node as f64)).sum();
            assert!((value - cubic(position)).abs() < 1e-9, "{position}");
        }
        assert_eq!(neighbours(4.0, 20), [(4, 1.0)]);
    }
}
