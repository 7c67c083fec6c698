//! Of a leader that is about to hand over: who waits is answered, and the Backup is brought what it has not got, before the node stops.
//!
//! Requests are refused meanwhile ([`crate::gate`]). Publishers that keep their events until they are covered go on: they bring the next leader what this one has
//! not covered, as behind any fail-over.

use std::time::{Duration, Instant};

use bodkin_broker::{ReplicationPace, ReplicationPolicy};

use super::Shard;
use crate::pair::primary::Primary;

/// A request that was let in before, and has not come to the shard yet, comes within this time.
const QUIET: Duration = Duration::from_millis(20);
/// How often the shard looks, where nothing else wakes it.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What is known of those who wait.
#[derive(Debug)]
pub(super) struct Draining {
    /// Since when nobody waits.
    quiet_since: Option<Instant>,
    is_told: bool,
}

impl Draining {
    /// Nobody waits at this instant, or somebody does; true once, when nobody has waited for long enough.
    fn look(&mut self, now: Instant, somebody_waits: bool) -> bool {
        if somebody_waits {
            self.quiet_since = None;
            return false;
        }
        let since = *self.quiet_since.get_or_insert(now);
        !self.is_told && now >= since + QUIET && {
            self.is_told = true;
            true
        }
    }
}

impl Shard {
    /// From now on replicas go out at once: whoever waits for cover waits for those.
    pub(super) fn prepare_hand_over(&mut self) {
        let Some(primary) = &self.primary else { return };
        self.broker.set_replication(ReplicationPolicy { pace: ReplicationPace::Eager, ..primary.terms.replication });
        self.hand_over = Some(Draining { quiet_since: None, is_told: false });
    }

    /// It is over, or given up: replicas go out as they did before.
    pub(super) fn hand_over_ends(&mut self) {
        if self.hand_over.take().is_some()
            && let Some(primary) = &self.primary
        {
            self.broker.set_replication(primary.terms.replication);
        }
    }

    /// Tells the node when nobody has waited for a while.
    pub(super) fn look_whether_drained(&mut self) {
        if self.hand_over.is_none() {
            return;
        }
        let somebody_waits = self.primary.as_ref().is_some_and(Primary::owes_answers)
            || !self.uncovered.is_empty()
            || self.real_time.has_publishers()
            || self.has_durable_requests();
        if self.hand_over.as_mut().is_some_and(|draining| draining.look(self.clock.now, somebody_waits))
            && let Some(primary) = &self.primary
        {
            primary.pair().drained();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_once_and_when_nobody_has_waited_for_a_while() {
        let (begun, mut draining) = (Instant::now(), Draining { quiet_since: None, is_told: false });
        let at = |ms| begun + Duration::from_millis(ms);
        let looks = [(0, true), (10, false), (25, true), (30, false), (49, false), (50, false), (60, false), (90, false)];
        let told: Vec<u64> = looks.into_iter().filter(|(ms, waits)| draining.look(at(*ms), *waits)).map(|(ms, _)| ms).collect();
        assert_eq!(told, [50]);
    }
}
