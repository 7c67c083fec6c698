//! The broker's machines on a virtual clock and a faulty network, with everything they promise checked at every step.
//!
//! A [`Campaign`] runs one [cloud](Cloud) after the other. Each has publishers, a reliable pair with its witness, subscribers and an operator; the
//! machines in them are those of the product, and what is around them is what the product's hosts do. A seed decides everything that
//! happens, so that a failure can be repeated. `docs/design/simulation.md` says what is modelled and what is not.

pub mod adversary;
mod agenda;
mod aside;
mod campaign;
mod clock;
mod cloud;
mod effects;
mod fault;
pub mod fleet;
pub mod graph;
mod ledger;
#[cfg(test)]
mod model;
mod network;
mod node;
mod packet;
mod publisher;
mod random;
mod requester;
mod roster;
mod subscriber;
mod trace;
mod violation;
mod workload;

pub use crate::{
    campaign::{Campaign, Failure, Report},
    clock::Time,
    cloud::Cloud,
    fault::{FAULT_KINDS, FaultKind},
    ledger::Tally,
    violation::{Broken, StreamName, Violation},
};
