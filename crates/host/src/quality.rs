//! How good providers are: each is connected to some times, now and then, and what that shows is kept in memory. It is what another program, the QoS
//! Monitor, measures elsewhere.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bodkin_arrowhead::{orchestrator::Measured, record::System};
use bodkin_store::Store;
use tokio::{task::JoinSet, time::MissedTickBehavior};

use crate::{
    control::Endpoint,
    destination::{DestinationError, Destinations},
};

/// Attempts of a measurement, one after the other.
const ATTEMPTS: u32 = 10;
/// Between two of them.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(10);
/// Measurements at the same time; more wait for their turn.
const SIMULTANEOUS_MAX: usize = 64;
/// Last attempts that a prediction is made from.
const RECENT_MAX: usize = 100;
/// Share of a provider's next attempts that are to be answered within what is predicted.
const FORECAST_SHARE: f64 = 0.99;
/// Between two looks at who offers something and is to be measured.
const LOOK: Duration = Duration::from_millis(250);

/// The time in ms that a share of a provider's next answers are not above, from the times of its last ones; none where they say too little.
pub type Forecast = fn(&[f64], f64) -> Option<f64>;

/// What measurements have shown.
#[derive(Debug, Default)]
pub struct Qualities {
    seats: Mutex<BTreeMap<Endpoint, Seat>>,
}

#[derive(Debug)]
struct Seat {
    due: Instant,
    attempts: u64,
    losses: u64,
    /// The last attempts, the oldest first.
    recent: VecDeque<Option<Duration>>,
    last: Option<Measured>,
}

impl Qualities {
    /// What is known of a provider; none before the first measurement has ended.
    pub fn of(&self, provider: &System) -> Option<Measured> {
        self.lock().get(&Endpoint::of(provider))?.last
    }

    /// Forgets who offers nothing any more, takes up who is new, and gives whose turn it is, at most `count`. They have no further turn for `interval`.
    fn due(&self, providers: impl Iterator<Item = Endpoint>, now: Instant, interval: Duration, count: usize) -> Vec<Endpoint> {
        let mut seats = self.lock();
        let mut former = std::mem::take(&mut *seats);
        for endpoint in providers {
            let seat = former.remove(&endpoint).unwrap_or(Seat { due: now, attempts: 0, losses: 0, recent: VecDeque::new(), last: None });
            seats.insert(endpoint, seat);
        }
        let due = seats.iter_mut().filter(|(_, seat)| seat.due <= now).take(count);
        due.map(|(endpoint, seat)| {
            seat.due = now + interval;
            endpoint.clone()
        })
        .collect()
    }

    /// Takes a measurement into account: the time of each attempt, none where nobody answered in time.
    fn note(&self, endpoint: &Endpoint, attempts: &[Option<Duration>], forecast: Option<Forecast>) {
        let Some(recent) = self.counted(endpoint, attempts) else { return };
        // Without the lock: laws are fitted for it.
        let predicted_ms = forecast.and_then(|forecast| predicted_ms(&recent, forecast));
        if let Some(seat) = self.lock().get_mut(endpoint) {
            seat.last = Some(Measured { loss_percent: percent(seat.losses, seat.attempts), predicted_ms, ..measured(attempts) });
        }
    }

    /// Counts the attempts of a measurement, and gives the last ones.
    fn counted(&self, endpoint: &Endpoint, attempts: &[Option<Duration>]) -> Option<Vec<Option<Duration>>> {
        let mut seats = self.lock();
        let seat = seats.get_mut(endpoint)?;
        seat.attempts += attempts.len() as u64;
        seat.losses += attempts.iter().filter(|attempt| attempt.is_none()).count() as u64;
        seat.recent.extend(attempts);
        let older = seat.recent.len().saturating_sub(RECENT_MAX);
        seat.recent.drain(..older);
        Some(seat.recent.iter().copied().collect())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Endpoint, Seat>> {
        // Every change leaves the map whole wherever it is interrupted.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn times_ms(attempts: &[Option<Duration>]) -> Vec<f64> {
    attempts.iter().flatten().map(|time| time.as_secs_f64() * 1e3).collect()
}

/// Within what [`FORECAST_SHARE`] of all attempts will be answered: none where more are lost.
fn predicted_ms(recent: &[Option<Duration>], forecast: Forecast) -> Option<f64> {
    let times_ms = times_ms(recent);
    let share = FORECAST_SHARE * recent.len() as f64 / times_ms.len().max(1) as f64;
    if share < 1.0 { forecast(&times_ms, share) } else { None }
}

fn measured(attempts: &[Option<Duration>]) -> Measured {
    let times_ms = times_ms(attempts);
    let count = times_ms.len().max(1) as f64;
    let mean = times_ms.iter().sum::<f64>() / count;
    let variance = times_ms.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count;
    Measured {
        response_max_ms: times_ms.iter().copied().fold(0.0, f64::max),
        response_mean_ms: mean,
        jitter_ms: variance.sqrt(),
        recent_loss_percent: percent((attempts.len() - times_ms.len()) as u64, attempts.len() as u64),
        loss_percent: 0.0,
        predicted_ms: None,
    }
}

/// The task that measures.
pub struct QualityMonitor {
    /// Who offers something.
    pub store: Store,
    /// What is found.
    pub qualities: Arc<Qualities>,
    /// Between two measurements of a provider.
    pub interval: Duration,
    /// Longest time of an attempt; who takes longer has not answered.
    pub patience: Duration,
    /// What predictions are made by.
    pub forecast: Option<Forecast>,
    /// Whom no attempt is made at.
    pub destinations: Destinations,
}

impl QualityMonitor {
    /// Runs until it is aborted.
    pub async fn run(self) {
        let mut measurements = JoinSet::new();
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(ended) = measurements.join_next() => {
                    let (endpoint, attempts): (Endpoint, Vec<Option<Duration>>) = ended.expect("a measurement does not panic");
                    self.qualities.note(&endpoint, &attempts, self.forecast);
                }
                _ = looks.tick() => {
                    let snapshot = self.store.snapshot().clone();
                    let offering = snapshot.systems().filter(|system| snapshot.entries_of_provider(system.id).next().is_some());
                    let free = SIMULTANEOUS_MAX - measurements.len();
                    for endpoint in self.qualities.due(offering.map(|system| Endpoint::of(system)), Instant::now(), self.interval, free) {
                        measurements.spawn(measure(endpoint, self.patience, self.destinations.clone()));
                    }
                }
            }
        }
    }
}

/// Connects some times. Our own listeners accept, and are not asked.
async fn measure(endpoint: Endpoint, patience: Duration, destinations: Destinations) -> (Endpoint, Vec<Option<Duration>>) {
    let mut attempts = Vec::with_capacity(ATTEMPTS as usize);
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        }
        let begun = Instant::now();
        let connected = destinations.connect(endpoint.address.as_str(), endpoint.port, patience).await;
        attempts.push(match connected {
            Ok(_) => Some(begun.elapsed()),
            Err(DestinationError::Own(_)) => Some(Duration::ZERO),
            Err(_) => None,
        });
    }
    (endpoint, attempts)
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::address::Address;

    use super::*;

    fn endpoint(port: u16) -> Endpoint {
        Endpoint { address: Address::from_stored("127.0.0.1"), port }
    }

    #[test]
    fn a_measurement_has_its_mean_spread_and_losses() {
        let ms = |ms: u64| Some(Duration::from_millis(ms));
        let found = measured(&[ms(1), ms(3), None, ms(5), None]);
        assert_eq!((found.response_max_ms, found.response_mean_ms, found.recent_loss_percent), (5.0, 3.0, 40.0));
        assert!((found.jitter_ms - (8.0_f64 / 3.0).sqrt()).abs() < 1e-12, "{found:?}");
        assert_eq!(measured(&[None, None]), Measured { recent_loss_percent: 100.0, ..Measured::default() });
    }

    #[test]
    fn losses_are_counted_from_the_first_measurement_on_and_forgotten_with_the_last_service() {
        let (qualities, now, interval) = (Qualities::default(), Instant::now(), Duration::from_secs(30));
        let both = || [endpoint(1), endpoint(2)].into_iter();
        assert_eq!(qualities.due(both(), now, interval, 1), [endpoint(1)], "as many as there is room for");
        assert_eq!(qualities.due(both(), now, interval, 9), [endpoint(2)]);
        assert_eq!(qualities.due(both(), now, interval, 9), []);
        qualities.note(&endpoint(1), &[None, None], None);
        qualities.note(&endpoint(1), &[Some(Duration::from_millis(1)), Some(Duration::from_millis(1))], None);
        let last = |port| qualities.lock()[&endpoint(port)].last;
        assert_eq!(last(1).map(|found| (found.recent_loss_percent, found.loss_percent)), Some((0.0, 50.0)));
        assert_eq!(qualities.due(both(), now + interval, interval, 9), [endpoint(1), endpoint(2)]);
        qualities.due([endpoint(2)].into_iter(), now, interval, 9);
        qualities.due(both(), now, interval, 9);
        assert_eq!(last(1), None);
    }

    /// A stand-in that gives the number of times.
    fn count(times_ms: &[f64], share: f64) -> Option<f64> {
        assert!((FORECAST_SHARE..1.0).contains(&share), "{share}");
        Some(times_ms.len() as f64)
    }

    #[test]
    fn a_prediction_is_of_the_last_attempts_and_counts_those_that_are_lost() {
        let (qualities, now) = (Qualities::default(), Instant::now());
        qualities.due([endpoint(1)].into_iter(), now, Duration::from_secs(30), 9);
        let predicted = |answered: usize, lost: usize| {
            let mut attempts = vec![Some(Duration::from_millis(1)); answered];
            attempts.resize(answered + lost, None);
            qualities.note(&endpoint(1), &attempts, Some(count));
            qualities.lock()[&endpoint(1)].last.expect("it was measured").predicted_ms
        };
        assert_eq!(predicted(50, 0), Some(50.0));
        assert_eq!(predicted(40, 1), None, "of 91 one is more than a hundredth");
        assert_eq!(predicted(100, 0), Some(100.0), "what was before is forgotten");
        assert_eq!(predicted(RECENT_MAX + 1, 0), Some(100.0), "more are not kept");
    }
}
