//! Nets in which one clock runs at a time and no marking comes back: sums of delays, by convolution.
//!
//! Let `A(t)` be the probability that a marking was entered by `t`, and `F` the distribution of its delay. It was left by `t` with
//! probability `D = A * F`, and is there with `A - D`; the markings behind it are entered with `D` times the branching probabilities.
//! Functions are kept as Chebyshev polynomials, piece by piece, and integrals are Gauss's between the corners of both factors.
//! Convolution with a distribution enlarges no error, so that the errors of the steps add up along the way; each is estimated by its
//! last coefficients and by integrals over halved pieces.

use super::{Answer, Certainty, Method, Question, SolveError, When, columns::Columns};
use crate::{
    chebyshev::Piecewise,
    distribution::Distribution,
    explore::{Exploration, Rules, Unsuited},
    measure::Measure,
    net::{Delay, Net},
    quadrature::gauss,
};

/// Most pieces of one function.
const PIECES_MAX: usize = 4_000;

/// Most markings.
const MARKINGS_MAX: usize = 5_000;

/// Share of the asked error that one step's polynomials may have.
const STEP_SHARE: f64 = 1e-2;

/// Smallest tolerance that rounding allows.
const TOLERANCE_MIN: f64 = 2e-14;

pub(super) fn solve(question: &Question) -> Result<Answer, SolveError> {
    let When::At(times) = &question.when else {
        return Err(SolveError::Question("method sequential computes values at given times; its long run is where it ends".to_owned()));
    };
    let graph = Graph::of(question)?;
    let last = times.last().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let tolerance = (STEP_SHARE * question.error / graph.order.len() as f64).max(TOLERANCE_MIN);
    let columns = Columns { question, rules: &graph.exploration.rules, states: &graph.exploration.states, earned: Vec::new() };
    let rewards: Vec<Vec<f64>> = (0..columns.len()).map(|index| columns.column(index)).collect();
    let mut entered: Vec<Entered> = (0..graph.order.len()).map(|_| Entered::default()).collect();
    for (marking, probability) in graph.exploration.chain.first().into_iter().enumerate() {
        entered[marking].at_first = probability;
    }
    let (mut values, mut error) = (vec![vec![0.0; rewards.len()]; times.len()], 0.0);
    for marking in &graph.order {
        let own = std::mem::take(&mut entered[*marking]);
        let left = match &graph.laws[*marking] {
            Some(law) => Some(own.behind(law, last, tolerance).ok_or(SolveError::Inexact {
                asked: question.error,
                reached: f64::INFINITY,
                remedy: "the distributions have too many corners for method sequential; use method lattice".to_owned(),
            })?),
            None => None,
        };
        error += left.as_ref().map_or(0.0, |left| left.error);
        for (values, time) in values.iter_mut().zip(times) {
            // A difference of two that are nearly the same may be below 0 by rounding.
            let probability = (own.value(*time) - left.as_ref().map_or(0.0, |left| left.function.value(*time))).max(0.0);
            values.iter_mut().zip(&rewards).for_each(|(value, reward)| *value += reward[*marking] * probability);
        }
        if let Some(left) = left {
            let left = std::rc::Rc::new(left.function);
            for (next, probability) in graph.exploration.chain.row(*marking) {
                entered[next].parts.push((probability, left.clone()));
            }
        }
    }
    let range = |reward: &Vec<f64>| reward.iter().fold(0.0, |range, value| f64::max(range, value.abs()));
    let errors = rewards.iter().map(|reward| range(reward) * error).collect();
    let reason =
        "one clock runs at a time, and no marking comes back: delays are added up by convolution; the error is what finer integrals change"
            .to_owned();
    let states = graph.order.len();
    Ok(Answer { method: Method::Sequential, reason, values, errors, certainty: Certainty::Estimate, states, steps: states })
}

/// The markings, in an order in which all ways lead on.
struct Graph<'a> {
    exploration: Exploration<'a>,
    order: Vec<usize>,
    /// The delay of each marking; none where it ends.
    laws: Vec<Option<&'a Distribution>>,
}

impl<'a> Graph<'a> {
    fn of(question: &Question<'a>) -> Result<Self, SolveError> {
        if question.measures.iter().any(|measure| matches!(measure, Measure::Throughput(_))) {
            return Err(SolveError::Question("method sequential knows probabilities of markings, not throughputs".to_owned()));
        }
        let mut rules = Rules::of_markings(question.net, question.until.clone());
        rules.find_symmetry(&question.measures);
        let exploration = Exploration::new(rules, question.states_max.min(MARKINGS_MAX))?;
        let refused = |reason: &str| {
            let transition = question.net.transitions()[0].name.clone();
            SolveError::from(Unsuited { transition, reason: reason.to_owned() })
        };
        let order =
            order(&exploration).ok_or_else(|| refused("some marking comes back: method sequential adds up delays without a loop"))?;
        let mut laws = Vec::new();
        let mut is_single = true;
        exploration.rules.for_each_state(&exploration.states, 0..exploration.states.len(), |state| {
            let law = if exploration.rules.is_over(&state.marking) { Ok(None) } else { delay(question.net, &state.marking) };
            is_single &= law.is_ok();
            laws.push(law.ok().flatten());
        });
        if is_single {
            Ok(Self { exploration, order, laws })
        } else {
            Err(refused("several clocks run at once: method sequential is for one"))
        }
    }
}

/// Whether the method is made for a net, as far as can be told without computing.
pub(super) fn fits(question: &Question) -> bool {
    matches!(question.when, When::At(_)) && Graph::of(question).is_ok()
}

/// The only delay that runs in a marking; none where nothing does.
fn delay<'a>(net: &'a Net, marking: &[u32]) -> Result<Option<&'a Distribution>, ()> {
    let mut found = None;
    for (index, transition) in net.transitions().iter().enumerate() {
        let Some(timed) = transition.timed() else { continue };
        match (net.degree(index, marking), &timed.delay, found) {
            (0, ..) => {}
            (1, Delay::Distribution(law), None) => found = Some(law),
            _ => return Err(()),
        }
    }
    Ok(found)
}

/// Kahn's order; none where there is a loop.
fn order(exploration: &Exploration) -> Option<Vec<usize>> {
    let chain = &exploration.chain;
    let mut ways_in = vec![0_usize; chain.len()];
    (0..chain.len()).flat_map(|state| chain.row(state)).for_each(|(next, _)| ways_in[next] += 1);
    let mut order: Vec<usize> = (0..chain.len()).filter(|state| ways_in[*state] == 0).collect();
    let mut index = 0;
    while index < order.len() {
        for (next, _) in chain.row(order[index]) {
            ways_in[next] -= 1;
            if ways_in[next] == 0 {
                order.push(next);
            }
        }
        index += 1;
    }
    // A firing that leads back to its own marking is left out of a chain's row; then less than all probability leads on.
    let loses = (0..chain.len()).any(|state| chain.exit(state) > 0.0 && (chain.exit(state) - 1.0).abs() > 1e-9);
    (order.len() == chain.len() && !loses).then_some(order)
}

/// The probability that a marking was entered by a time.
#[derive(Default)]
struct Entered {
    /// At time 0.
    at_first: f64,
    parts: Vec<(f64, std::rc::Rc<Piecewise>)>,
}

/// The probability that a marking was left by a time.
struct Left {
    function: Piecewise,
    error: f64,
}

impl Entered {
    fn value(&self, time: f64) -> f64 {
        self.at_first + self.later(time)
    }

    fn later(&self, time: f64) -> f64 {
        if time <= 0.0 { 0.0 } else { self.parts.iter().map(|(share, part)| share * part.value(time)).sum() }
    }

    /// Behind a delay, up to time `last`.
    fn behind(&self, law: &Distribution, last: f64, tolerance: f64) -> Option<Left> {
        let law = Law::of(law, last, tolerance)?;
        let mut own_ends: Vec<f64> = self.parts.iter().flat_map(|(_, part)| part.ends().iter().copied()).collect();
        sort(&mut own_ends, last);
        let mut ends = law.corners.clone();
        ends.extend([0.0, last]);
        // Where both factors have corners the result has them at the sums; those of higher order the pieces find themselves.
        let corners = law.corners.iter().flat_map(|corner| own_ends.iter().take(4).map(move |end| corner + end));
        ends.extend(corners.take(64));
        sort(&mut ends, last);
        let mut value = |time: f64| self.at_first * law.distribution.cdf(time) + self.convolved(&law, &own_ends, time, 1);
        let function = Piecewise::of(&ends, tolerance, PIECES_MAX, &mut value)?;
        // Between the points of the interpolation, with twice as many pieces of the integrals.
        let checks = function.ends().windows(2).map(|pair| pair[0] + 0.371 * (pair[1] - pair[0]));
        let exact = |time: f64| self.at_first * law.distribution.cdf(time) + self.convolved(&law, &own_ends, time, 2);
        let difference = checks.map(|time| (function.value(time) - exact(time)).abs()).fold(0.0, f64::max);
        let error = function.error + 2.0 * difference + law.error;
        Some(Left { function, error })
    }

    /// The integral of `A(time - u) dF(u)` for what was not there at first.
    fn convolved(&self, law: &Law, own_ends: &[f64], time: f64, halves: usize) -> f64 {
        if self.parts.is_empty() {
            return 0.0;
        }
        let Some(density) = &law.density else {
            return law.points.iter().map(|(point, share)| share * self.later(time - point)).sum();
        };
        let mut ends: Vec<f64> = density.ends().iter().copied().chain(own_ends.iter().map(|end| time - end)).collect();
        ends.extend([0.0, time]);
        ends.retain(|end| *end >= law.low);
        sort(&mut ends, time.min(law.high));
        let piece = |from: f64, to: f64| gauss(from, to, |u| density.value(u) * self.later(time - u));
        let pieces = |pair: &[f64]| -> f64 {
            let step = (pair[1] - pair[0]) / halves as f64;
            (0..halves).map(|half| piece(pair[0] + half as f64 * step, pair[0] + (half + 1) as f64 * step)).sum()
        };
        ends.windows(2).map(pieces).sum()
    }
}

/// A delay, ready to be convolved.
struct Law<'a> {
    distribution: &'a Distribution,
    /// Where its distribution function may have corners.
    corners: Vec<f64>,
    low: f64,
    high: f64,
    /// None where all mass is at `points`.
    density: Option<Piecewise>,
    points: Vec<(f64, f64)>,
    error: f64,
}

impl<'a> Law<'a> {
    fn of(distribution: &'a Distribution, last: f64, tolerance: f64) -> Option<Self> {
        let (low, high) = distribution.support();
        let mut corners = vec![low];
        corners.extend(high.is_finite().then_some(high));
        let points: Vec<(f64, f64)> = match distribution {
            Distribution::Deterministic(law) => vec![(law.value(), 1.0)],
            Distribution::Empirical(law) => law.values().iter().map(|value| (*value, 1.0 / law.values().len() as f64)).collect(),
            _ => Vec::new(),
        };
        if !points.is_empty() {
            corners.extend(points.iter().map(|(point, _)| *point));
            return Some(Self { distribution, corners, low, high, density: None, points, error: 0.0 });
        }
        // What is left out of a density costs its length times as much.
        let end = high.min(last).max(low + f64::MIN_POSITIVE);
        let spread = (end - low).min(20.0 * distribution.variance().sqrt()).max(f64::MIN_POSITIVE);
        let mut ends = vec![low];
        // A density that grows without bound at its beginning is cut into ever smaller pieces there.
        let is_steep = distribution.pdf(low).is_none_or(|density| !density.is_finite());
        ends.extend((1..50).rev().filter(|_| is_steep).map(|power| low + (end - low) * 0.3_f64.powi(power)));
        ends.push(end);
        let mut density = |x: f64| distribution.pdf(x).filter(|density| density.is_finite()).unwrap_or(0.0);
        let density = Piecewise::of(&ends, tolerance / spread, PIECES_MAX, &mut density)?;
        // What all of it is off in the integral, against the distribution function.
        let total: f64 = density.ends().windows(2).map(|pair| gauss(pair[0], pair[1], |x| density.value(x))).sum();
        let error = (total - (distribution.cdf(end) - distribution.cdf(low))).abs();
        Some(Self { distribution, corners, low, high, density: Some(density), points, error })
    }
}

/// Sorts, keeps what is up to `last`, and takes neighbours that rounding has parted for one.
fn sort(ends: &mut Vec<f64>, last: f64) {
    ends.retain(|end| *end >= 0.0 && *end <= last);
    ends.sort_by(f64::total_cmp);
    ends.dedup_by(|b, a| *b - *a <= 1e-13 * last);
}
