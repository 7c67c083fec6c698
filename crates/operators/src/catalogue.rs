//! The operators that a graph file may name.

use std::ops::RangeInclusive;

use bodkin_broker::graph::{Operator, Shape, Trigger};

use crate::{
    average, cipher, concatenate, correlate, fourier, join, kalman, map,
    parameters::{ParameterError, Parameters},
    resample, select, statistics, threshold,
};

/// An operator that can be made.
pub struct Kind {
    /// As a graph file names it.
    pub name: &'static str,
    /// How many inputs it takes.
    pub inputs: RangeInclusive<usize>,
    /// When it runs.
    pub trigger: Trigger,
    /// Makes one. The same parameters and inputs make the same operator.
    pub make: fn(&mut Parameters, &[Input]) -> Result<Made, Misfit>,
}

/// An input of an operator that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// What an event of it is.
    pub shape: Shape,
    /// How many events a round takes; more than one of a window.
    pub events: usize,
}

/// An operator, and what its results are.
pub struct Made {
    /// The operator.
    pub operator: Box<dyn Operator>,
    /// Its results.
    pub shape: Shape,
}

impl Made {
    /// An operator with results of a shape.
    pub fn new(operator: impl Operator + 'static, shape: Shape) -> Self {
        Self { operator: Box::new(operator), shape }
    }
}

/// Why an operator cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A parameter is wrong.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// An input, from 0 on, is not what the operator takes.
    #[error("input {input} is {shape}: {needed}")]
    Input {
        /// Which one.
        input: usize,
        /// What it is.
        shape: Shape,
        /// What is needed.
        needed: &'static str,
    },
    /// What would come out is too large.
    #[error("the result is no shape: it {0}")]
    Result(bodkin_broker::graph::ShapeError),
}

/// Every operator there is, by name.
pub const KINDS: &[Kind] = &[
    correlate::ALL,
    correlate::ANY,
    concatenate::KIND,
    cipher::DECRYPT,
    kalman::EKF,
    cipher::ENCRYPT,
    fourier::FFT,
    join::JOIN,
    statistics::KURTOSIS,
    map::MAP,
    statistics::MAX,
    average::MEDIAN,
    statistics::MIN,
    average::MOVING_AVERAGE,
    threshold::RATE_LIMIT,
    resample::RESAMPLE,
    statistics::RMS,
    select::SELECT,
    threshold::THRESHOLD,
];

/// Inputs of one kind of point, all of them.
pub(crate) fn demand(inputs: &[Input], fits: impl Fn(&Input) -> bool, needed: &'static str) -> Result<(), Misfit> {
    match inputs.iter().position(|input| !fits(input)) {
        None => Ok(()),
        Some(input) => Err(Misfit::Input { input, shape: inputs[input].shape, needed }),
    }
}
