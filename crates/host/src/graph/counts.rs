//! What became of the events of a graph: written by the shard, read by who watches.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bodkin_broker::graph::OperatorId;

/// Counts since a graph was deployed.
#[derive(Debug)]
pub struct GraphCounts {
    /// Suppliers' events that were taken.
    pub taken: AtomicU64,
    /// Suppliers' events that were not: of the wrong shape, too old, or of a graph that stands still.
    pub refused: AtomicU64,
    /// Of the taken events, those that arrived faster than their supplier's declared period.
    pub excess: AtomicU64,
    /// Events and results that newer ones replaced before an operator used them.
    pub replaced: AtomicU64,
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
    /// Of each operator, in the order of the file.
    pub operators: Box<[OperatorCounts]>,
    suspension: OnceLock<Suspension>,
}

/// Counts of an operator since its graph was deployed.
#[derive(Debug, Default)]
pub struct OperatorCounts {
    /// Rounds that it has run.
    pub rounds: AtomicU64,
    /// Of these, rounds in which it refused its events, or its result was not what it had promised.
    pub failed: AtomicU64,
    /// Results that were not computed, or not published, because what they are made of was not valid.
    pub shed: AtomicU64,
    /// Results of what was not valid, which are marked.
    pub marked: AtomicU64,
    /// Restarts of the operator from its start values, because its state was no longer finite.
    pub restarts: AtomicU64,
    /// Nanoseconds that its rounds have lasted, those in which its worker had to wait for a core included.
    pub busy_ns: AtomicU64,
    /// The longest of them.
    pub longest_ns: AtomicU64,
}

impl OperatorCounts {
    /// Counts what a round has lasted.
    pub(super) fn lasted(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.busy_ns.fetch_add(ns, Relaxed);
        self.longest_ns.fetch_max(ns, Relaxed);
    }
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
    /// Counts of a graph of so many operators.
    pub fn of(operators: usize) -> Self {
        Self {
            taken: AtomicU64::default(),
            refused: AtomicU64::default(),
            excess: AtomicU64::default(),
            replaced: AtomicU64::default(),
            rounds: AtomicU64::default(),
            failed: AtomicU64::default(),
            shed: AtomicU64::default(),
            published: AtomicU64::default(),
            marked: AtomicU64::default(),
            late: AtomicU64::default(),
            lost: AtomicU64::default(),
            checkpoints: AtomicU64::default(),
            operators: (0..operators).map(|_| OperatorCounts::default()).collect(),
            suspension: OnceLock::new(),
        }
    }

    /// Those of an operator.
    pub fn operator(&self, operator: OperatorId) -> &OperatorCounts {
        &self.operators[operator.index()]
    }

    /// Returns the restarts of all operators.
    pub fn restarts(&self) -> u64 {
        self.operators.iter().map(|operator| operator.restarts.load(Relaxed)).sum()
    }

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
