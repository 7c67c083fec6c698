//! Which lengths the ticks have, and where the query times are among them.

use super::interpolation::{CELLS, Place};
use crate::{
    distribution::Distribution,
    explore::{Stages, atoms, corners},
    net::{Delay, Net, Transition},
    solve::SolveError,
};

/// Ticks in the standard deviation of the shortest general delay, at first.
const TICKS_PER_DEVIATION: f64 = 0.5;

/// Smallest divisor of all corners and fixed delays that is looked for, as a share of the shortest general delay.
const DIVISOR_MIN: f64 = 1.0 / 64.0;

/// Smallest divisor of fixed delays alone: they have to be on the grid, whatever it costs.
const VALUES_DIVISOR_MIN: f64 = 1.0 / 512.0;

/// Smallest tick that contains all query times, as a share of the one that is needed to interpolate between times of the grid.
const QUERY_SHARE: f64 = 0.5;

/// Smallest divisor where all fixed delays are known to begin at fixed times: then one length of the tick is enough.
const FIXED_DIVISOR_MIN: f64 = 1e-6;

/// The law of a transition's delay, if it is not made of exponential stages.
pub fn general_law(transition: &Transition) -> Option<&Distribution> {
    match transition.timed().map(|timed| &timed.delay) {
        Some(Delay::Distribution(law)) if Stages::of(law).is_none() => Some(law),
        _ => None,
    }
}

/// Whether `time` is a multiple of `tick`, up to rounding.
pub fn is_multiple(time: f64, tick: f64) -> bool {
    let position = time / tick;
    (position - position.round()).abs() <= 1e-9 * position.max(1.0)
}

/// The general delays of a net, as far as the grid of times depends on them.
#[derive(Debug)]
pub struct Delays {
    /// Shortest delay that ticks have to resolve.
    shortest: f64,
    /// Where distribution functions of delays with a density have corners, above 0.
    corners: Vec<f64>,
    /// Values of delays without density, above 0.
    values: Vec<f64>,
    /// A transition whose delay has fixed values.
    fixed: Option<String>,
    /// Whether a delay has a density.
    has_density: bool,
}

/// Times that all corners are multiples of, and where query times are read.
#[derive(Debug, PartialEq)]
pub struct Grid {
    /// Length of the first tick.
    pub tick: f64,
    /// For each query time.
    pub places: Vec<Place>,
    /// Whether all corners are times of the grid.
    pub has_corners: bool,
}

impl Delays {
    /// # Errors
    /// [`SolveError::Question`] if no delay is general.
    pub fn of(net: &Net) -> Result<Self, SolveError> {
        let mut delays = Self { shortest: f64::INFINITY, corners: Vec::new(), values: Vec::new(), fixed: None, has_density: false };
        for transition in net.transitions() {
            let Some(law) = general_law(transition) else { continue };
            let above_0 = corners(law).into_iter().filter(|corner| *corner > 0.0);
            match atoms(law) {
                Some(_) => {
                    delays.values.extend(above_0);
                    delays.fixed = Some(transition.name.clone());
                }
                None => {
                    delays.corners.extend(above_0);
                    delays.has_density = true;
                }
            }
            let deviation = law.variance().sqrt();
            let length = if deviation > 0.0 { deviation / TICKS_PER_DEVIATION } else { law.mean() };
            if length > 0.0 {
                delays.shortest = delays.shortest.min(length);
            }
        }
        if delays.fixed.is_some() && delays.shortest.is_infinite() {
            // Every general delay is 0, and any tick resolves it.
            delays.shortest = 1.0;
        }
        if delays.shortest.is_finite() {
            return Ok(delays);
        }
        Err(SolveError::Question("no delay of the net is general: method markov is made for it".to_owned()))
    }

    /// The largest length that all delays are multiples of. None if a delay has a density or there is no such length.
    pub fn fixed_step(&self) -> Option<f64> {
        let step = || divisor(&[&self.values], FIXED_DIVISOR_MIN * self.shortest);
        if self.has_density { None } else { step().map(|step| if step > 0.0 { step } else { self.shortest }) }
    }

    /// A length that all corners and jumps are multiples of, if there is one that is not too short.
    pub fn corner_step(&self) -> Option<f64> {
        divisor(&[&self.corners, &self.values], DIVISOR_MIN * self.shortest).filter(|step| *step > 0.0)
    }

    /// A grid that resolves the shortest delay. Its times contain all corners and, where that is not much finer, the query times;
    /// values at other query times are interpolated between times of the grid that have no corner between them.
    ///
    /// # Errors
    /// [`SolveError::Question`] if fixed delays have no common divisor.
    pub fn grid(&self, times: &[f64]) -> Result<Grid, SolveError> {
        let floor = VALUES_DIVISOR_MIN * self.shortest;
        let all = divisor(&[&self.corners, &self.values], DIVISOR_MIN * self.shortest);
        // Corners of densities may be beside the grid: the estimate of the error contains what that costs.
        let has_corners = all.is_some();
        let Some(step) = all.or_else(|| divisor(&[&self.values], floor)) else {
            return Err(SolveError::Question(format!(
                "transition {}: its fixed delay and those of the others have no common divisor of at least {floor:e}; round them to \
                 multiples of one, or simulate the net",
                self.fixed.as_deref().unwrap_or_default()
            )));
        };
        let coarsest = if step > 0.0 { step.min(self.shortest) } else { self.shortest };
        let finest = coarsest / CELLS as f64;
        let with_times = times.iter().filter(|time| **time > 0.0);
        let with_times = with_times.copied().try_fold(step, |step, time| common_divisor(step, time, QUERY_SHARE * finest));
        if let Some(step) = with_times.filter(|step| times.iter().all(|time| is_multiple(*time, *step))) {
            let tick = if step > 0.0 { step / (step / self.shortest).ceil() } else { self.shortest };
            return Ok(Grid { tick, places: times.iter().map(|time| Place::of(*time, tick, 0)).collect(), has_corners });
        }
        let cells = if step > 0.0 { (step / finest).ceil() as usize } else { 0 };
        let tick = if step > 0.0 { step / cells as f64 } else { finest };
        Ok(Grid { tick, places: times.iter().map(|time| Place::of(*time, tick, cells)).collect(), has_corners })
    }
}

/// The largest length of at least `floor` that all of these are multiples of; 0 if there are none.
fn divisor(lengths: &[&[f64]], floor: f64) -> Option<f64> {
    let mut all = lengths.iter().copied().flatten();
    let divisor = all.clone().try_fold(0.0, |step, length| common_divisor(step, *length, floor))?;
    all.all(|length| is_multiple(*length, divisor)).then_some(divisor)
}

/// Euclid's algorithm on lengths; none if it comes below `floor`.
fn common_divisor(a: f64, b: f64, floor: f64) -> Option<f64> {
    let (mut a, mut b) = (a.max(b), a.min(b));
    while b > 1e-9 * a {
        if b < floor {
            return None;
        }
        (a, b) = (b, a - b * (a / b).floor());
        // The rest may be just short of the divisor, by rounding.
        if a - b < 1e-9 * a {
            b = 0.0;
        }
    }
    Some(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_common_divisor_in_spite_of_rounding() {
        for (a, b, expected) in [(1.0, 0.3, 0.1), (0.0, 0.7, 0.7), (0.3, 0.1 + 0.2, 0.3), (2.5, 1.0, 0.5), (1.0, 1.0 / 3.0, 1.0 / 3.0)] {
            let found = common_divisor(a, b, 0.01).expect("there is one");
            assert!((found - expected).abs() < 1e-7, "{a} {b}: {found}");
        }
        assert_eq!(common_divisor(1.0, std::f64::consts::FRAC_1_SQRT_2, 0.01), None);
    }

    fn delays(corners: &[f64], is_fixed: bool) -> Delays {
        let (corners, values) = if is_fixed { (Vec::new(), corners.to_vec()) } else { (corners.to_vec(), Vec::new()) };
        Delays { shortest: 1.0, corners, values, fixed: is_fixed.then(|| "t".to_owned()), has_density: !is_fixed }
    }

    #[test]
    fn query_times_make_the_grid_finer_up_to_a_limit() {
        let times: Vec<f64> = (0..=50).map(|index| 0.1 * f64::from(index)).collect();
        let fine = delays(&[1.0], true).grid(&times).expect("a grid");
        assert!((fine.tick - 0.1).abs() < 1e-12, "{}", fine.tick);
        let between = delays(&[1.0], true).grid(&[0.01, 0.3]).expect("a grid");
        assert!((between.tick - 0.125).abs() < 1e-12, "the query times are interpolated: {}", between.tick);
        let direct = delays(&[1.0], true).grid(&[0.0, 0.25, 1.5]).expect("a grid");
        assert!((direct.tick - 0.25).abs() < 1e-12, "{}", direct.tick);
        assert_eq!(direct.places[2], Place::of(1.5, 0.25, 0));
    }

    #[test]
    fn fixed_delays_without_common_divisor_are_refused() {
        let error = delays(&[1.0, std::f64::consts::SQRT_2], true).grid(&[1.0]).expect_err("no grid").to_string();
        assert!(error.contains("transition t") && error.contains("no common divisor of at least 1.953125e-3"), "{error}");
        assert!(delays(&[1.0, std::f64::consts::SQRT_2], false).grid(&[1.0]).is_ok(), "corners of densities");
    }
}
