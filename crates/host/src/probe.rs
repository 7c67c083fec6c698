//! Whether providers can be reached: each is connected to now and then, and what that shows is kept in memory.
//!
//! A provider is tried soon after it has registered, then once an interval, and oftener while it is not reached. Attempts are
//! spread at random, so that thousands of providers are no burst. By default nothing is removed; if the operator chose that,
//! a service goes when an attempt fails that begins after its time.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    core_service::CoreSystem,
    record::{EntryId, System, SystemId},
    service_registry::{Deregistration, Probe},
    snapshot::Snapshot,
    utc::UtcTime,
};
use bodkin_store::{Store, UnreachableEntry};
use tokio::task::JoinSet;

use crate::{
    control::{self, Endpoint},
    destination::Destinations,
};

/// Attempts at the same time; more wait for their turn.
const SIMULTANEOUS_MAX: usize = 128;
/// Between two looks at whose turn it is.
const LOOK: Duration = Duration::from_millis(250);
/// Between two looks at who offers what, which cost time for each provider.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// Between two attempts at a provider that was not reached, if the interval is not shorter.
const UNREACHABLE_INTERVAL: Duration = Duration::from_secs(60);
/// The least time between two attempts.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Providers a second that are tried for the first time; those that register together are spread accordingly.
const FIRST_ATTEMPTS_PER_SECOND: u32 = 200;
/// An interval is made longer or shorter at random by up to one part in so many.
const JITTER_PART: u32 = 10;

/// What attempts have shown.
#[derive(Debug, Default)]
pub struct Probes {
    seats: Mutex<BTreeMap<Endpoint, Seat>>,
}

#[derive(Debug)]
struct Seat {
    providers: Vec<SystemId>,
    probe: Option<Probe>,
    due: Instant,
}

impl Probes {
    /// What the last attempts at a provider have shown; `None` before the first.
    pub fn of(&self, provider: &System) -> Option<Probe> {
        self.lock().get(&Endpoint::of(provider))?.probe
    }

    /// Forgets who offers nothing any more, and plans first attempts at who is new.
    fn follow(&self, providers: BTreeMap<Endpoint, Vec<SystemId>>, now: Instant) {
        let mut seats = self.lock();
        seats.retain(|endpoint, _| providers.contains_key(endpoint));
        let new = u32::try_from(providers.len() - seats.len()).unwrap_or(u32::MAX);
        let span = (Duration::from_secs(1) * new / FIRST_ATTEMPTS_PER_SECOND).max(Duration::from_secs(1));
        for (endpoint, providers) in providers {
            let seat = seats.entry(endpoint).or_insert_with(|| Seat { providers: Vec::new(), probe: None, due: now + random_part(span) });
            seat.providers = providers;
        }
    }

    /// Whose turn it is: at most `count`. They have no further turn before [`Self::note`].
    fn take_due(&self, now: Instant, count: usize, interval: Duration) -> Vec<(Endpoint, Vec<SystemId>)> {
        let mut seats = self.lock();
        let due = seats.iter_mut().filter(|(_, seat)| seat.due <= now).take(count);
        due.map(|(endpoint, seat)| {
            seat.due = now + interval;
            (endpoint.clone(), seat.providers.clone())
        })
        .collect()
    }

    /// Takes an attempt into account; `pause` says how long to wait before the next.
    fn note(&self, endpoint: &Endpoint, at: UtcTime, accepted: bool, pause: impl FnOnce(&Probe) -> Duration) -> Probe {
        let mut seats = self.lock();
        let seat = seats.get_mut(endpoint);
        let probe = Probe::after(seat.as_ref().and_then(|seat| seat.probe), at, accepted);
        if let Some(seat) = seat {
            seat.probe = Some(probe);
            seat.due = Instant::now() + pause(&probe);
        }
        probe
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Endpoint, Seat>> {
        // Every change leaves the map whole wherever it is interrupted.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that makes the attempts.
pub struct Prober {
    /// What is registered, and goes when it is out of reach for too long.
    pub store: Store,
    /// What is found.
    pub probes: Arc<Probes>,
    /// Every provider is tried about once in it.
    pub interval: Duration,
    /// When services go.
    pub deregistration: Deregistration,
    /// Longest time of an attempt.
    pub ping_timeout: Duration,
    /// Whom no attempt is made at.
    pub destinations: Destinations,
}

/// An attempt that has ended.
struct Attempt {
    endpoint: Endpoint,
    /// What was offered there when it began.
    entries: Vec<EntryId>,
    accepted: bool,
}

impl Prober {
    /// Runs until it is aborted.
    pub async fn run(self) {
        let mut attempts: JoinSet<Attempt> = JoinSet::new();
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut followed: Option<(Instant, Arc<Snapshot>)> = None;
        loop {
            tokio::select! {
                Some(ended) = attempts.join_next() => self.end(ended.expect("an attempt does not panic")).await,
                _ = looks.tick() => {
                    let (now, snapshot) = (Instant::now(), self.store.snapshot().clone());
                    let is_fresh = |(at, known): &(Instant, _)| now - *at < FOLLOW_INTERVAL || Arc::ptr_eq(known, &snapshot);
                    if !followed.as_ref().is_some_and(is_fresh) {
                        self.probes.follow(providers(&snapshot), now);
                        followed = Some((now, snapshot.clone()));
                    }
                    self.begin(&snapshot, &mut attempts);
                }
            }
        }
    }

    fn begin(&self, snapshot: &Snapshot, attempts: &mut JoinSet<Attempt>) {
        let free = SIMULTANEOUS_MAX - attempts.len();
        for (endpoint, providers) in self.probes.take_due(Instant::now(), free, self.interval) {
            let entries = providers.into_iter().flat_map(|id| snapshot.entries_of_provider(id)).map(|entry| entry.id).collect();
            let (limit, destinations) = (self.ping_timeout, self.destinations.clone());
            attempts.spawn(async move { Attempt { accepted: endpoint.accepts(limit, &destinations).await, endpoint, entries } });
        }
    }

    async fn end(&self, Attempt { endpoint, entries, accepted }: Attempt) {
        let now = control::now();
        let probe = self.probes.note(&endpoint, now, accepted, |probe| self.pause(probe, now));
        let gone = probe.unreachable_since.and_then(|since| self.deregistration.of_unreachable(since)).is_some_and(|at| at <= now);
        if gone && self.store.is_keeper() {
            self.remove(&endpoint, entries).await;
        }
    }

    /// How long to wait after an attempt.
    fn pause(&self, probe: &Probe, now: UtcTime) -> Duration {
        let Some(since) = probe.unreachable_since else { return around(self.interval) };
        let pause = around(self.interval.min(UNREACHABLE_INTERVAL));
        match self.deregistration.of_unreachable(since) {
            Some(at) if at > now => pause.min(at.since(now)).max(INTERVAL_MIN),
            _ => pause,
        }
    }

    async fn remove(&self, endpoint: &Endpoint, entries: Vec<EntryId>) {
        let foreign: Vec<UnreachableEntry> = {
            let snapshot = self.store.snapshot();
            let is_foreign = |id: &EntryId| snapshot.entry(*id).is_some_and(|entry| !is_own(&snapshot, entry.provider));
            let unreachable = |id| UnreachableEntry { id, address: endpoint.address.as_str().into(), port: endpoint.port };
            entries.into_iter().filter(is_foreign).map(unreachable).collect()
        };
        if foreign.is_empty() {
            return;
        }
        let removed = self.store.write(move |draft| draft.remove_unreachable_entries(&foreign), |_, ids| ids).await;
        let (system, address, port) = (CoreSystem::ServiceRegistry.name(), endpoint.address.as_str(), endpoint.port);
        match removed {
            Ok(ids) => tracing::info!(system, address, port, ?ids, "services of an unreachable provider were removed"),
            Err(error) => tracing::warn!(system, address, port, %error, "services of an unreachable provider could not be removed"),
        }
    }
}

/// Who offers something, by where.
fn providers(snapshot: &Snapshot) -> BTreeMap<Endpoint, Vec<SystemId>> {
    let mut providers: BTreeMap<Endpoint, Vec<SystemId>> = BTreeMap::new();
    for system in snapshot.systems().filter(|system| snapshot.entries_of_provider(system.id).next().is_some()) {
        providers.entry(Endpoint::of(system)).or_default().push(system.id);
    }
    providers
}

/// Whether a system is one of those this process serves: they are shown, and never removed.
fn is_own(snapshot: &Snapshot, id: SystemId) -> bool {
    let own: BTreeSet<&str> = CoreSystem::ALL.into_iter().map(CoreSystem::name).collect();
    snapshot.system(id).is_some_and(|system| own.contains(system.system_name.as_str()))
}

/// A duration up to [`JITTER_PART`] shorter or longer.
fn around(duration: Duration) -> Duration {
    let part = duration / JITTER_PART;
    duration - part + random_part(part * 2)
}

/// Any part of a duration, each as likely: the standard library's hashers begin with a random number.
pub(crate) fn random_part(duration: Duration) -> Duration {
    duration.mul_f64(RandomState::new().hash_one(0) as f64 / u64::MAX as f64)
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::address::Address;

    use super::*;

    fn endpoint(port: u16) -> Endpoint {
        Endpoint { address: Address::from_stored("127.0.0.1"), port }
    }

    fn offered(ports: std::ops::Range<u16>) -> BTreeMap<Endpoint, Vec<SystemId>> {
        ports.map(|port| (endpoint(port), vec![SystemId(port.into())])).collect()
    }

    #[test]
    fn first_attempts_are_spread_and_none_is_forgotten() {
        let (probes, begun) = (Probes::default(), Instant::now());
        probes.follow(offered(0..10_000), begun);
        let seconds = 10_000 / u64::from(FIRST_ATTEMPTS_PER_SECOND);
        let mut most = 0;
        let mut tried = BTreeSet::new();
        for second in 1..=seconds {
            let due = probes.take_due(begun + Duration::from_secs(second), usize::MAX, Duration::from_secs(3600));
            most = most.max(due.len());
            tried.extend(due.into_iter().map(|(endpoint, _)| endpoint));
        }
        assert_eq!(tried.len(), 10_000);
        assert!(most < 2 * FIRST_ATTEMPTS_PER_SECOND as usize, "{most} in a second");
    }

    #[test]
    fn what_is_known_of_a_provider_goes_with_its_last_service() {
        let (probes, begun) = (Probes::default(), Instant::now());
        probes.follow(offered(1..3), begun);
        probes.note(&endpoint(1), UtcTime::from_unix_seconds(1), false, |_| Duration::ZERO);
        probes.follow(offered(1..4), begun);
        assert!(probes.lock()[&endpoint(1)].probe.is_some(), "a newcomer changes nothing for the others");
        probes.follow(offered(2..4), begun);
        probes.follow(offered(1..4), begun);
        assert!(probes.lock()[&endpoint(1)].probe.is_none());
    }

    #[test]
    fn who_is_not_reached_is_tried_oftener_and_at_the_time_it_goes() {
        let store = tempfile::tempdir().unwrap();
        let opened = Store::open(store.path()).unwrap();
        let prober = |unreachable_for: Option<u64>| {
            let deregistration = Deregistration { unreachable_for: unreachable_for.map(Duration::from_secs), ..Deregistration::default() };
            Prober {
                store: opened.store.clone(),
                probes: Arc::default(),
                interval: Duration::from_secs(3600),
                deregistration,
                ping_timeout: Duration::from_secs(1),
                destinations: Destinations::new(&[]),
            }
        };
        let at = UtcTime::from_unix_seconds;
        let (reached, missed) = (Probe::after(None, at(100), true), Probe::after(None, at(100), false));
        let check = |prober: &Prober, probe: &Probe, now: u64, from_s: u64, to_s: u64| {
            let pause = prober.pause(probe, at(now));
            assert!((Duration::from_secs(from_s)..=Duration::from_secs(to_s)).contains(&pause), "{pause:?}");
        };
        check(&prober(None), &reached, 100, 3240, 3960);
        check(&prober(None), &missed, 100, 54, 66);
        check(&prober(Some(30)), &missed, 100, 30, 30);
        check(&prober(Some(30)), &missed, 120, 10, 10);
        check(&prober(Some(30)), &missed, 130, 54, 66);
    }
}
