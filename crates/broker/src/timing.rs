//! When work on an event has to be done so that no deadline is missed and no run of losses is longer than tolerated, and whether it can be.
//!
//! From a topic's specification follow its [`Deadlines`]. All in whole nanoseconds, exactly; the theory with its proofs is in `docs/design/timing.md`.

mod batch;
mod deadlines;
mod nanos;

pub use self::{
    batch::{BatchCost, PendingReplica},
    deadlines::Deadlines,
    nanos::{Nanos, Span},
};
