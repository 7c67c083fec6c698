//! Stochastic Petri nets: how long something takes and how full something is, before it is built.
//!
//! A [`net::Net`] is places, timed and immediate transitions, and a first marking. It is read from a file ([`mod@format`]), analysed by a
//! numerical method, or simulated. Every answer comes with a bound or an estimate of its error, which says which of the two it is, or
//! with a confidence interval; what cannot have one is refused. `docs/design/petri.md` has the methods and their sources.
//!
//! The crate is pure: it reads no file, clock or global randomness. Threads are scoped, and no answer depends on their number.

pub mod chain;
mod chebyshev;
pub mod deployment;
pub mod distribution;
mod explore;
pub mod expression;
pub mod fit;
pub mod format;
pub mod measure;
pub mod net;
pub mod plot;
mod quadrature;
pub mod random;
pub mod simulate;
pub mod solve;
pub mod special;
pub mod states;
