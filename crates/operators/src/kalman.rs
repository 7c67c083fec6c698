//! The Kalman filter: what is, from measurements with noise.

mod matrix;

use bodkin_broker::graph::{Count, Element, Emission, Fault, Inputs, Operator, Shape, StateError, Trigger};

use self::matrix::{Matrix, SIDE_MAX};
use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    parameters::{ParameterError, Parameters, error},
    points::{read, write},
};

/// `ekf`: the extended Kalman filter. The points of an event are measurements in their order, one behind the other by one step; events go on where the last one ended. With
/// the models below, which are linear, it is the Kalman filter.
///
/// | `model` | state | parameters |
/// |---|---|---|
/// | `"random_walk"` | the value | `process_noise`: variance that a step adds, `measurement_noise`: variance of a point |
/// | `"constant_velocity"` | value, and its change in a step | the same; `process_noise` is the variance of the change of velocity in a step |
/// | `"matrices"` | up to 6 numbers | `transition` (n x n), `measurement` (m x n, m up to 6), `process_noise` (n x n), `measurement_noise` (m x m), lists of rows; `start` (n), 0 where it is left out |
///
/// `start_variance` (1e6) is how little is known in the beginning. Input: one, of real points, of a model with m measurements m points a step: their number is a multiple of m. Result: `f64`, of each step
/// the measurements as they are estimated (`result = "measurement"`, the default) or the state (`"state"`). A step with a NaN or an infinity among its measurements is
/// predicted only. A filter restarts from its start values with the next finite measurement if its estimate or covariance is not finite, or cannot take that measurement. Each restart is
/// counted. State: estimate and covariance; the covariance is updated in Joseph's form. Source: Kalman 1960; Bucy and Joseph 1968.
pub const EKF: Kind = Kind { name: "ekf", inputs: 1..=1, trigger: Trigger::All, make };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    RandomWalk,
    ConstantVelocity,
    Matrices,
}

/// What is known of the signal beforehand. `SIDE`: no matrix has more rows or columns.
#[derive(Clone, Debug)]
struct Model<const SIDE: usize> {
    /// State to the next state: F, Q.
    transition: Matrix<SIDE>,
    process_noise: Matrix<SIDE>,
    /// State to measurement: H, R.
    measurement: Matrix<SIDE>,
    measurement_noise: Matrix<SIDE>,
}

/// One as it is read.
type ReadModel = Model<SIDE_MAX>;

impl<const SIDE: usize> Model<SIDE> {
    /// The same with matrices that have room for no more than they need.
    fn resized<const OTHER: usize>(&self) -> Model<OTHER> {
        Model {
            transition: self.transition.resized(),
            process_noise: self.process_noise.resized(),
            measurement: self.measurement.resized(),
            measurement_noise: self.measurement_noise.resized(),
        }
    }

    /// F and H at a state: of a linear model the same everywhere.
    fn predict(&self, estimate: &mut Estimate<SIDE>) {
        estimate.state = self.transition.times(&estimate.state);
        let moved = self.transition.times(&estimate.covariance).times(&self.transition.transposed());
        estimate.covariance = moved.plus(&self.process_noise);
    }

    /// Takes a measurement; gives whether there was an answer.
    fn correct(&self, estimate: &mut Estimate<SIDE>, measured: &Matrix<SIDE>) -> bool {
        let across = self.measurement.times(&estimate.covariance);
        let innovation = across.times(&self.measurement.transposed()).plus(&self.measurement_noise);
        // K^T = S^-1 (H P), for P and S are symmetric.
        let Some(root) = innovation.cholesky() else { return false };
        let gain = root.solve(&across).transposed();
        let corrected = estimate.state.plus(&gain.times(&measured.minus(&self.measurement.times(&estimate.state))));
        let rest = Matrix::diagonal(self.transition.rows(), 1.0).minus(&gain.times(&self.measurement));
        let noise = gain.times(&self.measurement_noise).times(&gain.transposed());
        let covariance = rest.times(&estimate.covariance).times(&rest.transposed()).plus(&noise);
        let corrected = Estimate { state: corrected, covariance };
        let is_finite = corrected.is_finite();
        if is_finite {
            *estimate = corrected;
        }
        is_finite
    }
}

/// What is known of the signal now.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate<const SIDE: usize> {
    state: Matrix<SIDE>,
    covariance: Matrix<SIDE>,
}

impl<const SIDE: usize> Estimate<SIDE> {
    fn is_finite(&self) -> bool {
        self.state.is_finite() && self.covariance.is_finite()
    }
}

struct Filter<const SIDE: usize> {
    element: Element,
    model: Model<SIDE>,
    start: Estimate<SIDE>,
    estimate: Estimate<SIDE>,
    gives_state: bool,
    /// Restarts since they were last taken.
    restarts: u64,
    points: Vec<f64>,
}

/// A filter whose matrices are not of the size yet with which it runs.
struct Blueprint {
    element: Element,
    model: ReadModel,
    start: Vec<f64>,
    start_variance: f64,
    gives_state: bool,
    points_max: usize,
}

impl Blueprint {
    fn filter<const SIDE: usize>(&self) -> Filter<SIDE> {
        let start = self.first_estimate();
        Filter {
            element: self.element,
            model: self.model.resized(),
            start,
            estimate: start,
            gives_state: self.gives_state,
            restarts: 0,
            points: Vec::with_capacity(self.points_max),
        }
    }

    fn first_estimate<const SIDE: usize>(&self) -> Estimate<SIDE> {
        let states = self.model.transition.rows();
        Estimate { state: Matrix::column(&self.start), covariance: Matrix::diagonal(states, self.start_variance) }
    }

    /// Whether a filter that has just started takes a measurement that is what it expects.
    fn can_start(&self) -> bool {
        let mut first = self.first_estimate();
        self.model.predict(&mut first);
        let expected = self.model.measurement.times(&first.state);
        first.is_finite() && self.model.correct(&mut first, &expected)
    }
}

impl<const SIDE: usize> Filter<SIDE> {
    /// Goes one step on, with its measurements.
    fn step(&mut self, measured: &[f64]) {
        self.model.predict(&mut self.estimate);
        if !measured.iter().all(|point| point.is_finite()) {
            return;
        }
        let measured = Matrix::column(measured);
        if self.estimate.is_finite() && self.model.correct(&mut self.estimate, &measured) {
            return;
        }
        // Without a restart no later measurement could make the estimate finite again.
        let mut first = self.start;
        self.model.predict(&mut first);
        if self.model.correct(&mut first, &measured) {
            self.estimate = first;
            self.restarts += 1;
        }
    }
}

fn make(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let words = [("random_walk", Name::RandomWalk), ("constant_velocity", Name::ConstantVelocity), ("matrices", Name::Matrices)];
    let (model, start) = match parameters.word("model", &words, true)? {
        Name::RandomWalk => (random_walk(parameters)?, vec![0.0]),
        Name::ConstantVelocity => (constant_velocity(parameters)?, vec![0.0; 2]),
        Name::Matrices => matrices(parameters)?,
    };
    let start_variance = parameters.positive("start_variance", Some(1e6))?;
    let gives_state = parameters.word("result", &[("measurement", false), ("state", true)], false)?;
    let (states, measurements) = (model.transition.rows(), model.measurement.rows());
    let fits = |input: &Input| {
        let is_exact = matches!(input.shape.count(), Count::Exactly(_)) || measurements == 1;
        input.shape.element().is_real() && input.events == 1 && is_exact && input.shape.points_max().is_multiple_of(measurements)
    };
    demand(inputs, fits, "ekf takes events of real points one by one, each with all measurements of its steps")?;
    let steps = inputs[0].shape.points_max() / measurements;
    let points = u32::try_from(steps * if gives_state { states } else { measurements }).unwrap_or(u32::MAX);
    let count = if matches!(inputs[0].shape.count(), Count::Exactly(_)) { Count::Exactly(points) } else { Count::AtMost(points) };
    let shape = Shape::new(Element::F64, count).map_err(Misfit::Result)?;
    let (element, points_max) = (inputs[0].shape.element(), inputs[0].shape.points_max());
    let blueprint = Blueprint { element, model, start, start_variance, gives_state, points_max };
    if !blueprint.can_start() {
        return Err(error("start_variance", "with this model makes no finite first estimate: use numbers of another magnitude").into());
    }
    Ok(match states.max(measurements) {
        1 => Made::new(blueprint.filter::<1>(), shape),
        2 => Made::new(blueprint.filter::<2>(), shape),
        3 | 4 => Made::new(blueprint.filter::<4>(), shape),
        _ => Made::new(blueprint.filter::<SIDE_MAX>(), shape),
    })
}

fn random_walk(parameters: &mut Parameters) -> Result<ReadModel, ParameterError> {
    let one = Matrix::diagonal(1, 1.0);
    Ok(Model {
        transition: one,
        process_noise: Matrix::diagonal(1, parameters.positive("process_noise", None)?),
        measurement: one,
        measurement_noise: Matrix::diagonal(1, parameters.positive("measurement_noise", None)?),
    })
}

/// A velocity that changes at random: each step adds white noise to it, half of which the value has moved by (Bar-Shalom et al. 2001, section 6.3.2).
fn constant_velocity(parameters: &mut Parameters) -> Result<ReadModel, ParameterError> {
    let noise = parameters.positive("process_noise", None)?;
    Ok(Model {
        transition: Matrix::new(2, 2, &[1.0, 1.0, 0.0, 1.0]),
        process_noise: Matrix::new(2, 2, &[noise / 4.0, noise / 2.0, noise / 2.0, noise]),
        measurement: Matrix::new(1, 2, &[1.0, 0.0]),
        measurement_noise: Matrix::diagonal(1, parameters.positive("measurement_noise", None)?),
    })
}

fn matrices(parameters: &mut Parameters) -> Result<(ReadModel, Vec<f64>), ParameterError> {
    let states = parameters.rows("transition", 1..=SIDE_MAX)?;
    let measurements = parameters.rows("measurement", 1..=SIDE_MAX)?;
    let mut matrix =
        |key, rows, columns| Ok::<Matrix<SIDE_MAX>, ParameterError>(Matrix::new(rows, columns, &parameters.matrix(key, rows, columns)?));
    let model = Model {
        transition: matrix("transition", states, states)?,
        process_noise: matrix("process_noise", states, states)?,
        measurement: matrix("measurement", measurements, states)?,
        measurement_noise: matrix("measurement_noise", measurements, measurements)?,
    };
    // What is not negative definite is positive definite with a little more on the diagonal.
    let scale = model.process_noise.cells().map(f64::abs).fold(f64::MIN_POSITIVE, f64::max);
    let is_noise = model.process_noise.plus(&Matrix::diagonal(states, scale * 1e-9)).cholesky().is_some();
    if !model.process_noise.is_symmetric() || !is_noise {
        return Err(error("process_noise", "must be a covariance: symmetric, with no negative variance in any direction"));
    }
    if !model.measurement_noise.is_symmetric() || model.measurement_noise.cholesky().is_none() {
        return Err(error("measurement_noise", "must be a covariance: symmetric, with a variance greater than 0 in every direction"));
    }
    let start = if parameters.has("start") { parameters.numbers("start", states..=states)? } else { vec![0.0; states] };
    Ok((model, start))
}

impl<const SIDE: usize> Operator for Filter<SIDE> {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        read(self.element, inputs.all(), &mut self.points);
        let points = std::mem::take(&mut self.points);
        for measured in points.chunks_exact(self.model.measurement.rows()) {
            self.step(measured);
            let result = if self.gives_state { self.estimate.state } else { self.model.measurement.times(&self.estimate.state) };
            result.cells().for_each(|point| write(out, &[point]));
        }
        self.points = points;
        Ok(Emission::Emit)
    }

    fn take_restarts(&mut self) -> u64 {
        std::mem::take(&mut self.restarts)
    }

    fn save(&self, state: &mut Vec<u8>) {
        self.estimate.state.cells().chain(self.estimate.covariance.cells()).for_each(|cell| write(state, &[cell]));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let states = self.model.transition.rows();
        let (cells, rest) = state.as_chunks();
        if !rest.is_empty() || cells.len() != states * (states + 1) {
            return Err(StateError);
        }
        let mut numbers = [0.0; SIDE_MAX * (SIDE_MAX + 1)];
        numbers.iter_mut().zip(cells).for_each(|(number, bytes)| *number = f64::from_le_bytes(*bytes));
        let (estimate, covariance) = numbers[..cells.len()].split_at(states);
        self.estimate = Estimate { state: Matrix::column(estimate), covariance: Matrix::new(states, states, covariance) };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
