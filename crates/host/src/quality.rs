//! How good providers and their services are: each is connected to, and each service that speaks HTTP is asked, some times, now and then; what that shows is kept in
//! memory. It is what another program, the QoS Monitor, measures elsewhere.

mod echo;
mod relays;
mod seats;
mod service;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    orchestrator::{Found, ServiceProbe},
    record::EntryView,
    snapshot::Snapshot,
};
use bodkin_store::Store;
use tokio::{task::JoinSet, time::MissedTickBehavior};

use self::service::Asking;
use crate::{
    control::{self, Endpoint},
    destination::Destinations,
    security::Security,
};

pub use self::relays::RelayTests;
pub use self::seats::{AttemptCounts, Measurement, Seats};

/// Measurements of each kind at the same time; more wait for their turn.
const SIMULTANEOUS_MAX: usize = 64;
/// Services that are asked; what is beyond them is not, which is told in the log, and keeps no limit.
const SERVICES_MAX: usize = 10_000;
/// Between two looks at whose turn it is.
const LOOK: Duration = Duration::from_millis(250);

/// The time in ms that a share of a provider's next answers are not above, from the times of its last ones; none where they say too little.
pub type Forecast = fn(&[f64], f64) -> Option<f64>;

/// What measurements have shown.
#[derive(Debug, Default)]
pub struct Qualities {
    /// Of connecting to providers.
    pub echoes: Seats<Endpoint>,
    /// Of services' own answers.
    pub services: Seats<ServiceProbe>,
    /// Of relays, together with other clouds.
    pub relays: RelayTests,
    /// Whether HTTPS can be spoken.
    has_certificates: bool,
    /// Services that are beyond [`SERVICES_MAX`].
    beyond: AtomicUsize,
}

impl Qualities {
    /// Nothing measured. Services that speak HTTPS only are asked where there are certificates.
    pub fn new(has_certificates: bool) -> Self {
        Self { has_certificates, ..Self::default() }
    }

    /// What is known of an entry's service and of its provider. The answer of a query may have left interfaces out, and is looked up in the snapshot.
    pub fn of(&self, snapshot: &Snapshot, view: &EntryView) -> Found {
        let probe = self.probe(&snapshot.view(&view.entry));
        Found {
            echo: self.echoes.of(&Endpoint::of(&view.provider)),
            service: probe.as_ref().and_then(|probe| self.services.of(probe)),
            is_probed: probe.is_some(),
        }
    }

    /// How a service is asked; none: it is not.
    pub fn probe(&self, view: &EntryView) -> Option<ServiceProbe> {
        ServiceProbe::of(view).filter(|probe| !probe.is_secure || self.has_certificates)
    }

    /// Services that are not asked since there are too many.
    pub fn beyond(&self) -> usize {
        self.beyond.load(Relaxed)
    }

    /// Forgets who offers nothing any more, and takes up who is new.
    fn follow(&self, snapshot: &Snapshot, now: Instant) {
        let offering = snapshot.systems().filter(|system| snapshot.entries_of_provider(system.id).next().is_some());
        self.echoes.follow(offering.map(|system| Endpoint::of(system)), now);
        let mut probes: Vec<ServiceProbe> = snapshot.entries().filter_map(|entry| self.probe(&snapshot.view(entry))).collect();
        let beyond = probes.len().saturating_sub(SERVICES_MAX);
        probes.truncate(SERVICES_MAX);
        self.services.follow(probes.into_iter(), now);
        if beyond > 0 && self.beyond.swap(beyond, Relaxed) == 0 {
            tracing::warn!(
                beyond,
                limit = SERVICES_MAX,
                "there are more services than are asked how long they take: those that registered last are not"
            );
        }
        self.beyond.store(beyond, Relaxed);
    }
}

/// The task that measures.
pub struct QualityMonitor {
    /// Who offers something.
    pub store: Store,
    /// What is found.
    pub qualities: Arc<Qualities>,
    /// Between two measurements of a provider, and of a service.
    pub interval: Duration,
    /// Longest time of an attempt; who takes longer has not answered.
    pub patience: Duration,
    /// What predictions are made by.
    pub forecast: Option<Forecast>,
    /// Whom no attempt is made at.
    pub destinations: Destinations,
    /// What HTTPS is spoken with; none in insecure mode.
    pub security: Option<Arc<Security>>,
}

impl QualityMonitor {
    /// Runs until it is aborted.
    pub async fn run(self) {
        let (mut echoes, mut services) = (JoinSet::new(), JoinSet::new());
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut followed: Option<Arc<Snapshot>> = None;
        let asking = Asking { patience: self.patience, destinations: self.destinations.clone(), security: self.security.clone() };
        loop {
            tokio::select! {
                Some(ended) = echoes.join_next() => {
                    let (endpoint, measurement) = ended.expect("a measurement does not panic");
                    self.qualities.echoes.note(&endpoint, &measurement, self.patience, control::now(), self.forecast);
                }
                Some(ended) = services.join_next() => {
                    let (probe, measurement) = ended.expect("a measurement does not panic");
                    self.qualities.services.note(&probe, &measurement, self.patience, control::now(), self.forecast);
                }
                _ = looks.tick() => {
                    let (snapshot, now) = (Arc::clone(&self.store.snapshot()), Instant::now());
                    if followed.as_ref().is_none_or(|followed| !Arc::ptr_eq(followed, &snapshot)) {
                        self.qualities.follow(&snapshot, now);
                        followed = Some(snapshot);
                    }
                    for endpoint in self.qualities.echoes.due(now, self.interval, SIMULTANEOUS_MAX - echoes.len()) {
                        echoes.spawn(echo::measure(endpoint, self.patience, self.destinations.clone()));
                    }
                    for probe in self.qualities.services.due(now, self.interval, SIMULTANEOUS_MAX - services.len()) {
                        services.spawn(service::measure(probe, asking.clone()));
                    }
                }
            }
        }
    }
}
