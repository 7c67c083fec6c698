//! When a condition holds first: quantiles of that time, and its mean.
//!
//! The distribution function at some times is a question like any other ([`super::solve`]); here are the times that are asked for.

use super::{Answer, Certainty, Method, Question, SolveError, When, lattice, regenerative, solve};
use crate::{expression::Expression, measure::Measure, quadrature::gauss_points};

/// Times of one question on the way to a quantile.
const POINTS: usize = 24;

/// Width of the interval in which a quantile is told to be, relative to its end, unless the error of the values is wider.
pub const PRECISION: f64 = 1e-7;

/// Most doublings of a time on the way to a quantile.
const DOUBLINGS_MAX: usize = 60;

/// Fewest pieces of the integral that a mean is; with half of them it is computed once more.
const PIECES: u32 = 48;

/// Most times at which the integral is cut because the function may have a corner or a jump there.
const CUTS_MAX: f64 = 1_000.0;

/// A quantile of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The probability that the condition has held by then.
    pub share: f64,
    /// The time is between these two.
    pub low: f64,
    /// In the net's unit.
    pub high: f64,
}

/// What is known of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// In the order of the shares that were asked for.
    pub quantiles: Vec<Quantile>,
    /// Expected time, and what it may be off. None where it was not asked for.
    pub mean: Option<(f64, f64)>,
    /// How the distribution function was computed.
    pub method: Method,
    /// Whether the quantiles' intervals are bounds. The mean is an estimate in any case.
    pub certainty: Certainty,
}

/// Quantiles of the time until `question.until` holds, and the mean where `with_mean` asks for it. The question's times and measures
/// are not looked at.
///
/// # Errors
/// [`SolveError`]: also where the probability of a share does not come up to it.
pub fn passage(question: &Question, shares: &[f64], with_mean: bool) -> Result<Passage, SolveError> {
    let refused = |reason: String| Err(SolveError::Question(reason));
    let Some(until) = &question.until else {
        return refused("a quantile is one of the time until a condition holds; none is given".to_owned());
    };
    let mut function = Function { question, until, method: Method::Markov, certainty: Certainty::Bound };
    let quantiles = function.quantiles_of(shares)?;
    if let Some(mean) = by_periods(question, with_mean) {
        let method = if quantiles.is_empty() { Method::Regenerative } else { function.method };
        return Ok(Passage { quantiles, mean: Some(mean), method, certainty: function.certainty });
    }
    let high = quantiles.iter().map(|quantile| quantile.high).fold(function.first_time(), f64::max);
    let mean = if with_mean { Some(function.mean(high)?) } else { None };
    Ok(Passage { quantiles, mean, method: function.method, certainty: function.certainty })
}

/// The mean by method regenerative, which does not need the distribution function, where it is wanted and no other method is.
fn by_periods(question: &Question, with_mean: bool) -> Option<(f64, f64)> {
    let is_open = matches!(question.method, None | Some(Method::Regenerative | Method::Markov));
    if with_mean && is_open { regenerative::mean_until(question) } else { None }
}

/// The distribution function of the time.
struct Function<'a> {
    question: &'a Question<'a>,
    until: &'a Expression,
    method: Method,
    certainty: Certainty,
}

/// The distribution function of a time, as far as it is known.
pub(super) trait Distribution {
    /// Its values at `times`, which rise, and what they may be off.
    fn values(&mut self, times: Vec<f64>) -> Result<(Vec<f64>, f64), SolveError>;

    /// Some time to begin with.
    fn first_time(&self) -> f64;

    /// What has happened by then.
    fn what() -> &'static str;

    /// The times by which it has happened with these probabilities.
    fn quantiles_of(&mut self, shares: &[f64]) -> Result<Vec<Quantile>, SolveError> {
        if let Some(share) = shares.iter().find(|share| !(**share > 0.0 && **share < 1.0)) {
            return Err(SolveError::Question(format!("{share} is no share; expected a number above 0 and below 1")));
        }
        let first_time = self.first_time();
        shares.iter().map(|share| self.quantile(*share, first_time)).collect()
    }

    /// The interval between neighbours among the times is divided again and again.
    fn quantile(&mut self, share: f64, first_time: f64) -> Result<Quantile, SolveError> {
        let (mut low, mut high) = (0.0, self.past(share, first_time)?);
        while high - low > PRECISION * high {
            let step = (high - low) / (POINTS + 1) as f64;
            let times: Vec<f64> = (0..=POINTS + 1).map(|index| if index > POINTS { high } else { low + index as f64 * step }).collect();
            let (values, error) = self.values(times.clone())?;
            let below = values.iter().rposition(|value| value + error < share);
            let above = values.iter().position(|value| value - error >= share);
            let (before, width) = ((low, high), high - low);
            low = below.map_or(low, |index| times[index]).max(low);
            high = above.map_or(high, |index| times[index]).min(high);
            if (low, high) == before || high - low > 0.9 * width {
                // The values are not known well enough to part any further.
                break;
            }
        }
        Ok(Quantile { share, low, high })
    }

    /// A time at which the probability is certainly above `share`.
    fn past(&mut self, share: f64, first_time: f64) -> Result<f64, SolveError> {
        let mut time = first_time;
        let mut reached = 0.0;
        for _ in 0..DOUBLINGS_MAX {
            let (values, error) = self.values(vec![time])?;
            if values[0] - error >= share {
                return Ok(time);
            }
            // It no longer grows, and not because it has not begun to.
            if values[0] - reached <= error && reached > 100.0 * error {
                break;
            }
            reached = values[0];
            time *= 2.0;
        }
        Err(SolveError::Question(format!("by time {time:e} {} with probability {reached:.9}: it may never come to {share}", Self::what())))
    }
}

impl Distribution for Function<'_> {
    fn values(&mut self, times: Vec<f64>) -> Result<(Vec<f64>, f64), SolveError> {
        let measures = vec![Measure::Reward(self.until.clone())];
        let answer: Answer = solve(&Question { when: When::At(times), measures, ..self.question.clone() })?;
        self.method = answer.method;
        if answer.certainty == Certainty::Estimate {
            self.certainty = Certainty::Estimate;
        }
        let last = self.question.net.places().len();
        Ok((answer.values.iter().map(|values| values[last]).collect(), answer.errors[last]))
    }

    /// The longest mean delay.
    fn first_time(&self) -> f64 {
        let delays = self.question.net.transitions().iter().filter_map(|transition| transition.timed()).map(|timed| match &timed.delay {
            crate::net::Delay::Distribution(law) => law.mean(),
            crate::net::Delay::Rate(_) => 1.0,
        });
        delays.fold(f64::MIN_POSITIVE, f64::max)
    }

    fn what() -> &'static str {
        "the condition has held"
    }
}

impl Function<'_> {
    /// The area above the distribution function.
    fn mean(&mut self, time: f64) -> Result<(f64, f64), SolveError> {
        // What is left of the probability counts with the time again, as of a tail that falls at least as fast as it did so far.
        let left = (self.question.error).max(1e-12);
        let horizon = self.past(1.0 - 10.0 * left, time)?;
        let (horizon, pieces) = self.pieces(horizon);
        let (fine, coarse) = (self.area(horizon, pieces)?, self.area(horizon, pieces / 2)?);
        Ok((fine, (fine - coarse).abs() + 20.0 * left * horizon))
    }

    /// An even number of pieces of equal length, up to `horizon` or a little later, with corners and jumps at the ends of every second.
    fn pieces(&self, horizon: f64) -> (f64, u32) {
        match lattice::corner_step(self.question.net).filter(|step| horizon / step <= CUTS_MAX) {
            Some(step) => {
                let cuts = (horizon / step).ceil().max(1.0);
                (cuts * step, cuts as u32 * PIECES.div_ceil(cuts as u32).next_multiple_of(2))
            }
            None => (horizon, PIECES),
        }
    }

    fn area(&mut self, horizon: f64, pieces: u32) -> Result<f64, SolveError> {
        let step = horizon / f64::from(pieces);
        let mut points: Vec<(f64, f64)> =
            (0..pieces).flat_map(|piece| gauss_points(f64::from(piece) * step, f64::from(piece + 1) * step)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (values, _) = self.values(points.iter().map(|(time, _)| *time).collect())?;
        Ok(points.iter().zip(values).map(|((_, weight), value)| weight * (1.0 - value)).sum())
    }
}
