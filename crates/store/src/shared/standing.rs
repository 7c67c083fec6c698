//! How a node stands with the database that it shares.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use super::{change::Reached, node::Nodes};

/// What goes from node to node by the database beside what the snapshot has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Lines of the account of certificates, both ways, until what they revoke counts here.
    Certificates,
    /// The copy of this node's audit log, as far as the log went.
    AuditCopy,
}

/// What is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The last commit of the database that the snapshot has.
    pub number: i64,
    /// For how long the database is not reached, and why; `None` while it is.
    pub away: Option<(Duration, String)>,
    /// Connections that were lost since the start.
    pub losses: u64,
    /// How often the database was found without commits that this node had shown: what was answered in them is lost.
    pub setbacks: u64,
    /// Between another node's last commit and its reading here, by the server's clock.
    pub staleness: Option<Duration>,
    /// Time of a message to the database and back, smoothed; `None` before it was measured.
    pub round_trip: Option<Duration>,
    /// Whether this node does what is to be done once in the cloud.
    pub is_keeper: bool,
    /// All nodes as they were read last; `None`: they were not read yet.
    pub nodes: Option<Arc<Nodes>>,
    /// Since lines of certificates last went both ways, or should have begun to; `None`: there are none.
    pub certificates_exchanged: Option<Duration>,
    /// Since the copy of the audit log last had all of it, or should have begun to; `None`: it is not copied yet.
    pub audit_copied: Option<Duration>,
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
    setbacks: u64,
    staleness: Option<Duration>,
    round_trip: RoundTrip,
    nodes: Option<Arc<Nodes>>,
    certificates_exchanged: Option<Instant>,
    audit_copied: Option<Instant>,
}

/// Round trip from which on a node is reported as slow; as in the alert BodkinDatabaseSlow.
pub const SLOW_ROUND_TRIP: Duration = Duration::from_millis(100);
/// What a new sample counts for in the smoothed round trip: one part of so many.
const SMOOTHING: u32 = 8;

/// The smoothed round trip to the database, and whether the log says that it is slow.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    smoothed: Option<Duration>,
    last: Duration,
    is_slow: bool,
}

impl RoundTrip {
    fn note(&mut self, sample: Duration) {
        let smoothed = self.smoothed.map_or(sample, |before| (before * (SMOOTHING - 1) + sample) / SMOOTHING);
        (self.smoothed, self.last) = (Some(smoothed), sample);
        // Slow until it is half of that, so that a link near the bound is not logged again and again.
        self.is_slow = smoothed > if self.is_slow { SLOW_ROUND_TRIP / 2 } else { SLOW_ROUND_TRIP };
    }
}

impl Standings {
    /// Something has got through, or is about to for the first time.
    pub fn exchanged(&self, what: Exchange) {
        let mut inner = self.lock();
        let since = match what {
            Exchange::Certificates => &mut inner.certificates_exchanged,
            Exchange::AuditCopy => &mut inner.audit_copied,
        };
        *since = Some(Instant::now());
    }

    pub fn nodes(&self, nodes: Nodes) {
        self.lock().nodes = Some(Arc::new(nodes));
    }

    /// Notes how long a message to the database and back took, and logs when this node becomes slow or is slow no more.
    pub fn round_trip(&self, sample: Duration) {
        let mut inner = self.lock();
        let was_slow = inner.round_trip.is_slow;
        inner.round_trip.note(sample);
        let RoundTrip { smoothed, is_slow, .. } = inner.round_trip;
        let round_trip_ms = smoothed.unwrap_or_default().as_millis();
        match (was_slow, is_slow) {
            (false, true) => {
                tracing::warn!(round_trip_ms, "link to the shared database is slow: changes at this node take several round trips")
            }
            (true, false) => tracing::info!(round_trip_ms, "link to the shared database is no longer slow"),
            _ => {}
        }
    }

    /// Returns the time of a message to the database and back, the last or the smoothed one, whichever is longer; 0 before it was measured.
    pub fn longer_round_trip(&self) -> Duration {
        let RoundTrip { smoothed, last, .. } = self.lock().round_trip;
        last.max(smoothed.unwrap_or_default())
    }

    pub fn is_keeper(&self) -> bool {
        self.is_keeper.load(Relaxed)
    }

    pub fn keep(&self, is_keeper: bool) {
        self.is_keeper.store(is_keeper, Relaxed);
    }

    pub fn reached(&self, Reached { shown, age_us }: Reached) {
        let mut inner = self.lock();
        if let Some((since, _)) = inner.away.take() {
            tracing::info!(seconds = since.elapsed().as_secs(), "the shared database is reached again");
        }
        (inner.number, inner.setbacks) = (shown.commit.number, shown.setbacks);
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
            setbacks: inner.setbacks,
            staleness: inner.staleness,
            round_trip: inner.round_trip.smoothed,
            is_keeper: self.is_keeper(),
            nodes: inner.nodes.clone(),
            certificates_exchanged: inner.certificates_exchanged.map(|since| since.elapsed()),
            audit_copied: inner.audit_copied.map(|since| since.elapsed()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_is_slow_until_it_is_halved() {
        let mut trip = RoundTrip::default();
        let mut after = |sample_ms, samples| {
            (0..samples).for_each(|_| trip.note(Duration::from_millis(sample_ms)));
            trip.is_slow
        };
        assert!(!after(1, 1));
        assert!(!after(600, 1), "one late answer is not a slow link");
        assert!(after(600, 8));
        assert!(after(80, 100));
        assert!(!after(1, 100));
    }
}
