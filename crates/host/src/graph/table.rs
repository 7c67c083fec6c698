//! The graphs that are deployed, as they are told.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bodkin_operators::file::GraphFile;

use super::{EdgeLink, GraphCounts, Inheritance};
use crate::topics::Declarer;

/// Operators that do not end before the process says that it is not ready: one may be a mistake in one graph, two use up the cores.
const ENDLESS_MAX: u64 = 1;

/// A graph that is deployed.
#[derive(Debug)]
pub struct DeployedGraph {
    /// Who has declared it.
    pub declarer: Declarer,
    /// What it is.
    pub file: GraphFile,
    /// What became of its events.
    pub counts: Arc<GraphCounts>,
    /// What it fetches from other edges.
    pub links: Vec<Arc<EdgeLink>>,
    /// Which operators have gone on with their states; none where it took nobody's place.
    pub states: Option<Inheritance>,
}

/// The deployed graphs by name.
#[derive(Debug, Default)]
pub struct GraphTable {
    graphs: Mutex<BTreeMap<String, Arc<DeployedGraph>>>,
    /// Operators that have not ended and were given up.
    endless: AtomicU64,
}

impl GraphTable {
    /// A graph is deployed, in place of the one of its name.
    pub fn insert(&self, graph: Arc<DeployedGraph>) {
        self.lock().insert(graph.file.graph.name.clone(), graph);
    }

    /// A graph is deployed no more.
    pub fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// The graph of a name.
    pub fn get(&self, name: &str) -> Option<Arc<DeployedGraph>> {
        self.lock().get(name).cloned()
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<String, Arc<DeployedGraph>> {
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<DeployedGraph>>> {
        // A change leaves the map whole wherever it is interrupted.
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
