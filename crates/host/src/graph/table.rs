//! The graphs that are deployed, as they are told.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::GraphCounts;

/// Operators that do not end before the process says that it is not ready: one may be a mistake in one graph, two use up the cores.
const ENDLESS_MAX: u64 = 1;

/// The deployed graphs by name.
#[derive(Debug, Default)]
pub struct GraphTable {
    graphs: Mutex<BTreeMap<String, Arc<GraphCounts>>>,
    /// Operators that have not ended and were given up.
    endless: AtomicU64,
}

impl GraphTable {
    /// A graph is deployed, in place of the one of its name.
    pub fn insert(&self, name: &str, counts: Arc<GraphCounts>) {
        self.lock().insert(name.to_owned(), counts);
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<String, Arc<GraphCounts>> {
        self.lock().clone()
    }

    /// One more step of an operator was given up.
    pub fn one_is_endless(&self) {
        self.endless.fetch_add(1, Relaxed);
    }

    /// Whether too few threads are left for what the graphs promise.
    pub fn is_exhausted(&self) -> bool {
        self.endless.load(Relaxed) > ENDLESS_MAX
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<GraphCounts>>> {
        // An insertion leaves the map whole wherever it is interrupted.
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
