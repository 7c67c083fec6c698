//! The protocol through the crate's front door: golden bytes, cuts, faults of peers, CURVE under attack, memory.

mod curve;
mod hostile;
mod party;
mod splits;
mod vectors;
