//! Systems that decide whether a real-time topic accepts events: its publishers, and the required subscriber that it waits for.
//!
//! The shard updates the [`Parties`] of each topic when something changes. The monitor reads them for `status`, the API and `/metrics`.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use bodkin_arrowhead::utc::UtcTime;
use serde::Serialize;

/// Publishers of one topic that are listed. The number of held slots counts all.
pub const LISTED_PUBLISHERS_MAX: usize = 32;
/// For how long after a rejection `status` reports it.
const REJECTION_RECENT: Duration = Duration::from_secs(600);

/// A system that holds a publisher slot of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlotHolder {
    /// Name of the system.
    pub system: Arc<str>,
    /// When it published first.
    pub since: UtcTime,
}

/// The last publisher that a topic rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// Name of the system.
    pub system: Box<str>,
    /// When its last event was rejected.
    pub at: UtcTime,
    /// The key of the topic's declaration that it does not meet: `publisher` or `publishers`.
    pub key: &'static str,
    /// The same in words.
    pub reason: String,
}

/// The required subscriber that a topic waits for, while it rejects events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Awaited {
    /// Name of the subscriber; of a graph, `graph` and its name.
    pub subscriber: Arc<str>,
    /// When the first event was rejected.
    pub since: UtcTime,
    /// Events that were rejected since.
    pub rejected: u64,
    /// For how long the subscriber may be silent, in seconds.
    pub required_for_s: u64,
}

/// What an operator has to know of a topic's systems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartiesView {
    /// Holders of publisher slots by name, at most [`LISTED_PUBLISHERS_MAX`].
    pub holders: Arc<[SlotHolder]>,
    /// Names that hold slots.
    pub held: usize,
    /// The last rejection of a publisher since the topic was declared.
    pub rejection: Option<Rejection>,
    /// The required subscriber that the topic waits for; `None`: it accepts events.
    pub awaited: Option<Awaited>,
}

impl PartiesView {
    /// Returns the rejection, if it is recent.
    pub fn recent_rejection(&self, now: UtcTime) -> Option<&Rejection> {
        self.rejection.as_ref().filter(|rejection| rejection.at > now.minus(REJECTION_RECENT))
    }
}

/// A [`PartiesView`] that the shard updates.
#[derive(Debug, Default)]
pub struct Parties {
    view: Mutex<PartiesView>,
    /// There is more to report than who holds slots.
    is_notable: AtomicBool,
}

impl Parties {
    /// Returns a copy.
    pub fn view(&self) -> PartiesView {
        self.lock().clone()
    }

    /// Returns a copy, if there is more to report than who holds slots.
    pub fn notable(&self) -> Option<PartiesView> {
        self.is_notable.load(Relaxed).then(|| self.view())
    }

    /// Replaces the holders of publisher slots.
    pub fn set_holders(&self, holders: Arc<[SlotHolder]>, held: usize) {
        let mut view = self.lock();
        (view.holders, view.held) = (holders, held);
    }

    /// Records the last rejection of a publisher.
    pub fn set_rejection(&self, rejection: Rejection) {
        self.lock().rejection = Some(rejection);
        self.is_notable.store(true, Relaxed);
    }

    /// Replaces the required subscriber that the topic waits for; returns the former one.
    pub fn set_awaited(&self, awaited: Option<Awaited>) -> Option<Awaited> {
        let is_awaited = awaited.is_some();
        let former = std::mem::replace(&mut self.lock().awaited, awaited);
        self.is_notable.fetch_or(is_awaited, Relaxed);
        former
    }

    /// Counts an event that is rejected because of the required subscriber.
    pub fn count_awaiting(&self) {
        self.lock().awaited.iter_mut().for_each(|awaited| awaited.rejected += 1);
    }

    fn lock(&self) -> MutexGuard<'_, PartiesView> {
        // Each member is replaced as a whole, so a panic leaves nothing half changed.
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejection_is_recent_for_ten_minutes() {
        let (parties, at) = (Parties::default(), UtcTime::from_unix_seconds(10_000));
        assert_eq!(parties.notable(), None);
        parties.set_rejection(Rejection { system: "alice".into(), at, key: "publisher", reason: String::new() });
        let view = parties.notable().expect("it was rejected");
        let is_recent = |second| view.recent_rejection(UtcTime::from_unix_seconds(second)).is_some();
        assert_eq!([10_000, 10_599, 10_600].map(is_recent), [true, true, false]);
    }
}
