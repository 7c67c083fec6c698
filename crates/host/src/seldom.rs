//! Telling the log of what may happen often, without filling it.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// What is told again at most so often.
const PERIOD: Duration = Duration::from_secs(60);
/// Things that are told apart at the same time; further ones are told as one.
const THINGS_MAX: usize = 64;

/// Decides whether something is to be told, and counts what was not.
#[derive(Debug)]
pub struct Seldom {
    started: Instant,
    /// Milliseconds from the start to when it was last told, plus one; 0 is never.
    told_ms: AtomicU64,
    untold: AtomicU64,
}

impl Default for Seldom {
    fn default() -> Self {
        Self { started: Instant::now(), told_ms: AtomicU64::new(0), untold: AtomicU64::new(0) }
    }
}

impl Seldom {
    /// How often it has happened since it was last told, this time included; `None` if that is not to be told yet.
    pub fn due(&self) -> Option<u64> {
        self.due_at(self.started.elapsed())
    }

    fn due_at(&self, since_start: Duration) -> Option<u64> {
        let now_ms = u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let happened = self.untold.fetch_add(1, Relaxed) + 1;
        let told_ms = self.told_ms.load(Relaxed);
        let is_due = told_ms == 0 || u128::from(now_ms.saturating_sub(told_ms)) >= PERIOD.as_millis();
        let takes_turn = is_due && self.told_ms.compare_exchange(told_ms, now_ms, Relaxed, Relaxed).is_ok();
        takes_turn.then(|| {
            self.untold.store(0, Relaxed);
            happened
        })
    }
}

/// As [`Seldom`], for each of several things.
#[derive(Debug, Default)]
pub struct SeldomOf {
    things: Mutex<BTreeMap<Box<str>, Seldom>>,
    others: Seldom,
}

impl SeldomOf {
    /// How often this thing has happened since it was last told, this time included; `None` if that is not to be told yet. Nothing of its name is another
    /// side's to choose: one that chooses something else each time is told each time.
    pub fn due(&self, thing: &str) -> Option<u64> {
        // Every change leaves the map whole wherever it is interrupted.
        let mut things = self.things.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seldom) = things.get(thing) {
            return seldom.due();
        }
        if things.len() >= THINGS_MAX {
            things.retain(|_, seldom| seldom.started.elapsed() < PERIOD);
        }
        if things.len() >= THINGS_MAX {
            return self.others.due();
        }
        things.entry(thing.into()).or_default().due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_told_apart_as_far_as_there_is_room() {
        let seldom = SeldomOf::default();
        let first: Vec<_> = (0..THINGS_MAX).map(|thing| seldom.due(&thing.to_string())).collect();
        assert_eq!(first, vec![Some(1); THINGS_MAX]);
        assert_eq!([seldom.due("0"), seldom.due("one more"), seldom.due("and another")], [None, Some(1), None]);
    }

    #[test]
    fn it_is_told_at_once_and_then_counted_for_a_period() {
        let seldom = Seldom::default();
        let at = |ms| seldom.due_at(Duration::from_millis(ms));
        assert_eq!([at(5), at(6), at(59_000), at(60_004)], [Some(1), None, None, None]);
        assert_eq!([at(60_005), at(60_006), at(121_000)], [Some(4), None, Some(2)]);
    }
}
