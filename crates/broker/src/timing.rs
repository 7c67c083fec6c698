//! When work on an event has to be done so that no deadline is missed and no run of losses is longer than tolerated, and whether it can be.
//!
//! From a topic's specification follow its [`Deadlines`]. [`demand`] tests whether the jobs of a core fit; [`Admission`] admits topics and
//! wishes of subscriptions one by one while the broker runs, a [`Plan`] all topics of a file. All in whole nanoseconds, exactly; the
//! theory with its proofs is in `docs/design/timing.md`.

mod admission;
mod batch;
mod change;
mod cores;
mod deadlines;
pub mod demand;
mod load;
mod nanos;
mod plan;
mod refusal;
mod way;

pub use self::{
    admission::{Admission, AdmissionError, Admitted, Wish},
    batch::{BatchCost, PendingReplica},
    change::{Change, Key},
    cores::Rejection,
    deadlines::Deadlines,
    demand::Overrun,
    load::Load,
    nanos::{Nanos, Span},
    plan::{CoreView, Plan, Recovery, SEARCH_TASKS_MAX, Verdict},
    refusal::{Candidate, Reason, Refusal},
};
