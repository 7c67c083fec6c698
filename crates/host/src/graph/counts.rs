//! What became of the events of a graph: written by the shard, read by who watches.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Counts since a graph was deployed.
#[derive(Debug, Default)]
pub struct GraphCounts {
    /// Suppliers' events that were taken.
    pub taken: AtomicU64,
    /// Suppliers' events that were not: of the wrong shape, too old, or of a graph that stands still.
    pub refused: AtomicU64,
    /// Rounds that operators have run.
    pub rounds: AtomicU64,
    /// Of these, rounds in which an operator refused its events, or its result was not what it had promised.
    pub failed: AtomicU64,
    /// Results that were not computed, or not published, because what they are made of was not valid.
    pub shed: AtomicU64,
    /// Results that were published.
    pub published: AtomicU64,
    /// Of these, results of what was not valid, which are marked.
    pub marked: AtomicU64,
    /// Of these, results later than their output's deadline.
    pub late: AtomicU64,
    /// Results that could not be published.
    pub lost: AtomicU64,
    /// Checkpoints that the Backup has got.
    pub checkpoints: AtomicU64,
    suspension: OnceLock<Suspension>,
}

/// Why a graph stands still, until it is deployed anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Suspension {
    /// An operator has panicked.
    #[error("operator {operator} has panicked: {told}")]
    Panic {
        /// Which one.
        operator: String,
        /// What it said.
        told: String,
    },
    /// A step of an operator does not end.
    #[error("a step of operator {operator} has not ended for {seconds} s, and costs {cost_us} us at the most by its graph")]
    Endless {
        /// Which one.
        operator: String,
        /// For how long.
        seconds: u64,
        /// What was declared.
        cost_us: i64,
    },
}

impl GraphCounts {
    /// One more.
    pub(crate) fn one(count: &AtomicU64) {
        count.fetch_add(1, Relaxed);
    }

    /// Notes why the graph stands still; the first reason counts.
    pub(crate) fn suspend(&self, why: Suspension) {
        // A second reason changes nothing.
        let _ = self.suspension.set(why);
    }

    /// Why it stands still, if it does.
    pub fn suspension(&self) -> Option<&Suspension> {
        self.suspension.get()
    }
}
