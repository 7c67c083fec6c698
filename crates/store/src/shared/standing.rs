//! How a node stands with the database that it shares.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use super::node::Nodes;

/// What is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The last commit of the database that the snapshot has.
    pub number: i64,
    /// For how long the database is not reached, and why; `None` while it is.
    pub away: Option<(Duration, String)>,
    /// Connections that were lost since the start.
    pub losses: u64,
    /// Between another node's last commit and its reading here, by the server's clock.
    pub staleness: Option<Duration>,
    /// Whether this node does what is to be done once in the cloud.
    pub is_keeper: bool,
    /// All nodes as they were read last; `None`: they were not read yet.
    pub nodes: Option<Arc<Nodes>>,
}

/// Where that is kept.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    inner: Mutex<Inner>,
    is_keeper: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    number: i64,
    away: Option<(Instant, String)>,
    losses: u64,
    staleness: Option<Duration>,
    nodes: Option<Arc<Nodes>>,
}

impl Standings {
    pub fn nodes(&self, nodes: Nodes) {
        self.lock().nodes = Some(Arc::new(nodes));
    }

    pub fn is_keeper(&self) -> bool {
        self.is_keeper.load(Relaxed)
    }

    pub fn keep(&self, is_keeper: bool) {
        self.is_keeper.store(is_keeper, Relaxed);
    }

    pub fn reached(&self, number: i64, age_us: Option<i64>) {
        let mut inner = self.lock();
        if let Some((since, _)) = inner.away.take() {
            tracing::info!(seconds = since.elapsed().as_secs(), "the shared database is reached again");
        }
        inner.number = inner.number.max(number);
        if let Some(age_us) = age_us {
            inner.staleness = Some(Duration::from_micros(u64::try_from(age_us).unwrap_or_default()));
        }
    }

    /// The database is not reached; told once each time.
    pub fn away(&self, why: &str) {
        let mut inner = self.lock();
        if inner.away.is_none() {
            inner.losses += 1;
            inner.away = Some((Instant::now(), why.to_owned()));
            tracing::error!(why, "the shared database is not reached: changes are refused, and what was last read is served");
        }
    }

    pub fn told(&self) -> Standing {
        let inner = self.lock();
        Standing {
            number: inner.number,
            away: inner.away.as_ref().map(|(since, why)| (since.elapsed(), why.clone())),
            losses: inner.losses,
            staleness: inner.staleness,
            is_keeper: self.is_keeper(),
            nodes: inner.nodes.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
