//! How long a fail-over took: from the last grant to the leader before until a publisher is back. It is what x states and every bound on losses counts with.

use std::time::Duration;

use bodkin_broker::Instant;

use super::Shard;

/// A promotion that no publisher has come to yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failover {
    /// When this node granted the leader before its lease for the last time: that had not stopped then.
    granted: Instant,
    /// When clients were told that this node leads; until then nobody can have turned to it.
    told: Option<Instant>,
}

impl Failover {
    /// Of a node that goes on with what it has kept.
    pub fn new(granted: Instant) -> Self {
        Self { granted, told: None }
    }

    /// How long it took, when a publisher is heard. Who had something that `waited` for a broker has waited until now; one that had not may have turned to
    /// this node as soon as it was told.
    fn took(self, now: Instant, waited: bool) -> Option<Duration> {
        let until = if waited { now } else { self.told? };
        Some(Duration::from_nanos(until.nanos().saturating_sub(self.granted.nanos())))
    }
}

impl Shard {
    /// Clients are told that this node leads.
    pub(super) fn failover_is_told(&mut self) {
        let now = self.clock.broker();
        self.failover.iter_mut().for_each(|failover| failover.told = Some(now));
    }

    /// A publisher that numbers its events is heard. Of an event `created` before this node led, or that it has sent before, it has waited for a broker.
    pub(super) fn publisher_is_heard(&mut self, created: Instant, is_resent: bool) {
        let Some(failover) = self.failover else { return };
        let waited = is_resent || failover.told.is_some_and(|told| created < told);
        let Some(took) = failover.took(self.clock.broker(), waited) else { return };
        self.failover = None;
        let stated = self.primary.as_ref().map_or(Duration::MAX, |primary| primary.terms.failover);
        self.context.stalls.failover_took(took, stated);
        let (took_us, stated_us) = (took.as_micros(), stated.as_micros());
        if took > stated {
            let told = "guarantee suspended: the fail-over took longer than x, of which losses were bounded";
            tracing::warn!(took_us, stated_us, "{told}: state more (platform.failover), or end what stalls the hosts");
        } else {
            tracing::info!(took_us, stated_us, "the fail-over took no longer than x states");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failover_lasts_until_who_waited_is_back_or_until_who_did_not_could_have_been() {
        let at = Instant::from_nanos;
        let failover = Failover::new(at(100));
        assert_eq!((failover.took(at(900), true), failover.took(at(900), false)), (Some(Duration::from_nanos(800)), None));
        let told = Failover { told: Some(at(350)), ..failover };
        assert_eq!([true, false].map(|waited| told.took(at(900), waited)), [800, 250].map(|ns| Some(Duration::from_nanos(ns))));
    }
}
