//! Several general clocks at once: time in ticks, and the rest of the error removed by dividing them.
//!
//! The grid of times contains every fixed delay and every corner of a law (`grid`). Fixed delays that begin on the grid end on it,
//! exactly. Laws with a density fire in the middle of a cell, with their mass kept cell by cell; a clock that starts within a cell
//! counts as started in its middle (`explore::clock::Ticks`). Exponential transitions run exactly in both halves of a cell. A cell is
//! symmetric in time, so that the error of a smooth expectation is a series in the square of the tick (Strang's splitting). It is
//! computed with ticks that are divided further and further, and extrapolated to 0 (Richardson; the divisions are those of Bulirsch
//! and Stoer, Numerische Mathematik 6, 1964). The changes by the finest and by the coarsest level are the estimate of the rest. Values
//! at times that are not on the grid are interpolated where no corner is between (`interpolation`). Without a density and without a
//! clock that starts within a cell, ticks add no error, at any time, and one length of them is enough.
//! Probabilities at times of the grid are never negative, and their sum is 1 but for what is cut off, which is counted.

mod extrapolation;
mod grid;
mod interpolation;
mod run;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    extrapolation::{LEVELS_MIN, Levels},
    grid::{Delays, Grid, general_law},
    interpolation::{CORNER_FACTOR, Node, Place},
    run::{Level, Reading, exact, level},
};
use super::{Answer, Certainty, Method, Question, SolveError, When};
use crate::{measure::Measure, net::Net};

/// Into how many ticks the first one is divided, level by level. All are whole numbers, so that what lies on the first grid lies on
/// every one; and they grow slower than powers of 2, for states grow as the power of the ticks that the number of clocks is.
const DIVISIONS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

pub(super) fn solve(question: &Question) -> Result<Answer, SolveError> {
    let When::At(times) = &question.when else {
        return Err(SolveError::Question("method lattice computes values at given times; there is no long run of it".to_owned()));
    };
    check_throughputs(question)?;
    let delays = Delays::of(question.net)?;
    if let Some(step) = delays.fixed_step()
        && let Some(Level { values, states, steps, cut, .. }) = exact(question, times, step)?
    {
        let reason = "every delay that is not exponential is fixed and begins at a multiple of the others".to_owned();
        return Ok(Answer { method: Method::Lattice, reason, values, errors: cut, certainty: Certainty::Bound, states, steps });
    }
    by_levels(question, &delays.grid(times)?)
}

/// A length such that functions of time have corners and jumps at its multiples only. None where general delays have no corner, or no
/// such length that is not too short.
pub(super) fn corner_step(net: &Net) -> Option<f64> {
    Delays::of(net).ok()?.corner_step()
}

/// Values by ticks that are divided further and further.
fn by_levels(question: &Question, grid: &Grid) -> Result<Answer, SolveError> {
    let nodes: BTreeSet<Node> = grid.places.iter().flat_map(Place::nodes).collect();
    let by_node: BTreeMap<Node, usize> = nodes.iter().enumerate().map(|(index, node)| (*node, index)).collect();
    let mut levels = Levels::default();
    let (mut states, mut steps) = (0, 0);
    let mut found = Interpolated::default();
    for (number, division) in DIVISIONS.into_iter().enumerate() {
        let readings: Vec<Reading> = nodes.iter().map(|node| Reading::of(*node, division)).collect();
        let level = match level(question, &readings, grid.tick / f64::from(division)) {
            Ok(level) => level,
            // The finest ticks that were possible may do.
            Err(SolveError::Explore(_)) if number >= LEVELS_MIN => break,
            Err(error) => return Err(error),
        };
        (states, steps) = (level.states, steps + level.steps);
        levels.add(division, level.values, level.cut);
        found = Interpolated::of(grid, &levels, &by_node);
        if found.is_within(question.error) || found.is_settled(question.error) {
            break;
        }
    }
    if found.is_settled(question.error) && !found.is_within(question.error) {
        let reached = found.errors().fold(0.0, f64::max);
        let remedy = format!("ask for times that are multiples of {}, or for a larger error", grid.tick);
        return Err(SolveError::Inexact { asked: question.error, reached, remedy });
    }
    let reason = format!(
        "general delays run at the same time: {} lengths of a tick, from {} down, extrapolated; the error is what the finest and the \
         coarsest of them change",
        levels.len(),
        grid.tick
    );
    let errors = found.errors().collect();
    Ok(Answer { method: Method::Lattice, reason, values: found.values, errors, certainty: Certainty::Estimate, states, steps })
}

/// Values at the query times.
#[derive(Default)]
struct Interpolated {
    values: Vec<Vec<f64>>,
    /// By column: what the values may be off by the ticks, and by the interpolation.
    by_ticks: Vec<f64>,
    by_place: Vec<f64>,
}

impl Interpolated {
    fn of(grid: &Grid, levels: &Levels, by_node: &BTreeMap<Node, usize>) -> Self {
        let factor = if grid.has_corners { 1.0 } else { CORNER_FACTOR };
        let enlargement = grid.places.iter().map(Place::enlargement).fold(0.0, f64::max);
        let by_ticks: Vec<f64> = levels.errors.iter().map(|error| enlargement * error).collect();
        let (mut values, mut by_place) = (Vec::new(), vec![0.0_f64; by_ticks.len()]);
        for place in &grid.places {
            let (row, changes) = place.values(&levels.best, by_node);
            values.push(row);
            by_place.iter_mut().zip(changes).for_each(|(most, change)| *most = most.max(factor * change));
        }
        Self { values, by_ticks, by_place }
    }

    fn errors(&self) -> impl Iterator<Item = f64> {
        self.by_ticks.iter().zip(&self.by_place).map(|(ticks, place)| ticks + place)
    }

    fn is_within(&self, error: f64) -> bool {
        self.errors().all(|found| found <= error)
    }

    /// Whether finer ticks change little: the error that is left is that of the interpolation.
    fn is_settled(&self, error: f64) -> bool {
        self.by_ticks.iter().zip(&self.by_place).all(|(ticks, place)| *ticks <= (0.1 * place).max(0.5 * error))
    }
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
