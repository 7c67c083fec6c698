//! Who is measured, when next, and what was found: one table for what is connected to, and one for what is asked.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    orchestrator::{Measured, times_ms},
    utc::UtcTime,
};

use super::Forecast;

/// Last attempts that a prediction is made from.
pub(super) const RECENT_MAX: usize = 100;
/// Share of a provider's next attempts that are to be answered within what is predicted.
pub(super) const FORECAST_SHARE: f64 = 0.99;

/// What one measurement has shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// The time of each attempt; none where nobody answered in time.
    pub attempts: Vec<Option<Duration>>,
    /// Why the last one that was lost was.
    pub trouble: Option<String>,
}

/// How many attempts there were, of all that were ever measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// Answered in time.
    pub answered: u64,
    /// Not answered in time.
    pub lost: u64,
}

/// Those who are measured, by what they are measured by.
#[derive(Debug)]
pub struct Seats<K> {
    seats: Mutex<BTreeMap<K, Seat>>,
    answered: AtomicU64,
    lost: AtomicU64,
}

impl<K> Default for Seats<K> {
    fn default() -> Self {
        Self { seats: Mutex::default(), answered: AtomicU64::new(0), lost: AtomicU64::new(0) }
    }
}

#[derive(Debug)]
struct Seat {
    due: Instant,
    is_under_way: bool,
    sent: u64,
    received: u64,
    /// The last attempts, the oldest first.
    recent: VecDeque<Option<Duration>>,
    last: Option<Measured>,
    last_answer: Option<UtcTime>,
    trouble: Option<String>,
}

impl Seat {
    fn new(due: Instant) -> Self {
        let recent = VecDeque::new();
        Self { due, is_under_way: false, sent: 0, received: 0, recent, last: None, last_answer: None, trouble: None }
    }
}

impl<K: Ord + Clone> Seats<K> {
    /// What is known of one; none before the first measurement has ended.
    pub fn of(&self, key: &K) -> Option<Measured> {
        self.lock().get(key)?.last
    }

    /// Why the last attempt of the last measurement that was lost was; none: all were answered.
    pub fn trouble(&self, key: &K) -> Option<String> {
        self.lock().get(key)?.trouble.clone()
    }

    /// Of those who have a seat, how many were measured.
    pub fn measured(&self) -> usize {
        self.lock().values().filter(|seat| seat.last.is_some()).count()
    }

    /// All attempts since the start.
    pub fn counts(&self) -> AttemptCounts {
        AttemptCounts { answered: self.answered.load(Relaxed), lost: self.lost.load(Relaxed) }
    }

    /// Forgets who is not there any more, and takes up who is new: it is due at once.
    pub fn follow(&self, keys: impl Iterator<Item = K>, now: Instant) {
        let mut seats = self.lock();
        let mut former = std::mem::take(&mut *seats);
        for key in keys {
            let seat = former.remove(&key).unwrap_or_else(|| Seat::new(now));
            // Several services may be measured by the same request.
            seats.entry(key).or_insert(seat);
        }
    }

    /// Whose turn it is, at most `count`. They have no further turn for `interval`, nor before this one is over.
    pub fn due(&self, now: Instant, interval: Duration, count: usize) -> Vec<K> {
        let mut seats = self.lock();
        let due = seats.iter_mut().filter(|(_, seat)| seat.due <= now && !seat.is_under_way).take(count);
        due.map(|(key, seat)| {
            (seat.due, seat.is_under_way) = (now + interval, true);
            key.clone()
        })
        .collect()
    }

    /// Takes a measurement into account, which has ended at `now`. An attempt may have taken `patience` at the most.
    pub fn note(&self, key: &K, measurement: &Measurement, patience: Duration, now: UtcTime, forecast: Option<Forecast>) {
        let attempts = &measurement.attempts;
        let received = attempts.iter().flatten().count() as u64;
        self.answered.fetch_add(received, Relaxed);
        self.lost.fetch_add(attempts.len() as u64 - received, Relaxed);
        let Some(recent) = self.counted(key, measurement, received, now) else { return };
        // Without the lock: laws are fitted for it.
        let predicted_ms = forecast.and_then(|forecast| predicted_ms(&recent, forecast));
        let measured = Measured { predicted_ms, ..Measured::of(attempts, &recent, patience) };
        if let Some(seat) = self.lock().get_mut(key) {
            seat.last = Some(Measured { last_answer: seat.last_answer, ..measured.counted(seat.sent, seat.received) });
        }
    }

    /// Counts the attempts of a measurement, and gives the last ones.
    fn counted(&self, key: &K, measurement: &Measurement, received: u64, now: UtcTime) -> Option<Vec<Option<Duration>>> {
        let mut seats = self.lock();
        let seat = seats.get_mut(key)?;
        seat.is_under_way = false;
        seat.sent += measurement.attempts.len() as u64;
        seat.received += received;
        if received > 0 {
            seat.last_answer = Some(now);
        }
        seat.trouble = measurement.trouble.clone();
        seat.recent.extend(&measurement.attempts);
        let older = seat.recent.len().saturating_sub(RECENT_MAX);
        seat.recent.drain(..older);
        Some(seat.recent.iter().copied().collect())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Seat>> {
        // Every change leaves the map whole wherever it is interrupted.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Within what [`FORECAST_SHARE`] of all attempts will be answered: none where more are lost.
fn predicted_ms(recent: &[Option<Duration>], forecast: Forecast) -> Option<f64> {
    let times_ms = times_ms(recent);
    let share = FORECAST_SHARE * recent.len() as f64 / times_ms.len().max(1) as f64;
    if share < 1.0 { forecast(&times_ms, share) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);
    const INTERVAL: Duration = Duration::from_secs(30);

    fn end() -> UtcTime {
        UtcTime::from_unix_seconds(1_000_000)
    }

    fn measurement(answered: usize, lost: usize) -> Measurement {
        let mut attempts = vec![Some(Duration::from_millis(1)); answered];
        attempts.resize(answered + lost, None);
        Measurement { attempts, trouble: (lost > 0).then(|| "it was away".to_owned()) }
    }

    #[test]
    fn losses_are_counted_from_the_first_measurement_on_and_forgotten_with_the_last_service() {
        let (seats, now) = (Seats::default(), Instant::now());
        seats.follow([1, 2].into_iter(), now);
        assert_eq!(seats.due(now, INTERVAL, 1), [1], "as many as there is room for");
        assert_eq!(seats.due(now, INTERVAL, 9), [2]);
        assert_eq!(seats.due(now, INTERVAL, 9), Vec::<i32>::new());
        seats.note(&1, &measurement(0, 2), PATIENCE, end(), None);
        assert_eq!((seats.of(&1).unwrap().last_answer, seats.trouble(&1).as_deref()), (None, Some("it was away")));
        seats.note(&1, &measurement(2, 0), PATIENCE, end(), None);
        let found = seats.of(&1).unwrap();
        assert_eq!((found.recent_loss_percent, found.loss_percent, found.last_answer), (0.0, 50.0, Some(end())));
        assert_eq!((found.sent, found.received, found.sent_all, found.received_all), (2, 2, 4, 2));
        assert_eq!((seats.trouble(&1), seats.measured()), (None, 1));
        seats.follow([2].into_iter(), now);
        seats.follow([1, 2].into_iter(), now);
        assert_eq!((seats.of(&1), seats.counts()), (None, AttemptCounts { answered: 2, lost: 2 }));
    }

    #[test]
    fn nobody_has_a_turn_before_the_last_one_is_over() {
        let (seats, now) = (Seats::default(), Instant::now());
        seats.follow([1].into_iter(), now);
        assert_eq!(seats.due(now, INTERVAL, 9), [1]);
        assert_eq!(seats.due(now + 2 * INTERVAL, INTERVAL, 9), Vec::<i32>::new(), "it is under way");
        seats.note(&1, &measurement(1, 0), PATIENCE, end(), None);
        assert_eq!(seats.due(now + 2 * INTERVAL, INTERVAL, 9), [1]);
        // Others that come change nothing of that, nor does one that is named twice.
        seats.follow([1, 2, 1].into_iter(), now);
        assert_eq!(seats.due(now + 2 * INTERVAL, INTERVAL, 9), [2]);
    }

    /// A stand-in that gives the number of times.
    fn count(times_ms: &[f64], share: f64) -> Option<f64> {
        assert!((FORECAST_SHARE..1.0).contains(&share), "{share}");
        Some(times_ms.len() as f64)
    }

    #[test]
    fn a_prediction_is_of_the_last_attempts_and_counts_those_that_are_lost() {
        let seats = Seats::default();
        seats.follow([1].into_iter(), Instant::now());
        let predicted = |answered: usize, lost: usize| {
            seats.note(&1, &measurement(answered, lost), PATIENCE, end(), Some(count));
            seats.of(&1).expect("it was measured").predicted_ms
        };
        assert_eq!(predicted(50, 0), Some(50.0));
        assert_eq!(predicted(40, 1), None, "of 91 one is more than a hundredth");
        assert_eq!(predicted(100, 0), Some(100.0), "what was before is forgotten");
        assert_eq!(predicted(RECENT_MAX + 1, 0), Some(100.0), "more are not kept");
    }
}
