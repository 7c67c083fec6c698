//! Event-processing graphs: their files, and the functions that they run.
//!
//! [`file::parse`] reads a graph file and finds every mistake in it; the operators that it may name are in [`catalogue`]. An operator is a pure function of events and
//! its own state (`bodkin_broker::graph::Operator`): no clock, no file, no randomness, and no allocation once it has seen its largest input. `docs/formats/graphs.md`
//! has the file, `docs/design/operators.md` says how an operator is written.

mod average;
pub mod base64;
pub mod catalogue;
mod cipher;
mod concatenate;
mod correlate;
mod exact;
mod expression;
pub mod file;
mod fourier;
mod join;
mod kalman;
#[cfg(test)]
mod magnitudes;
mod map;
pub mod parameters;
mod points;
mod resample;
mod select;
mod statistics;
#[cfg(test)]
mod testing;
pub mod text;
mod threshold;

pub use self::cipher::{Keys, KeysError};
