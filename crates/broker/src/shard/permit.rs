//! Permission to accept events: only a shard that has completed its takeover issues a permit, and every accepted event consumes one.

use super::{Role, Shard, ShardError, words::Refusal};
use crate::{epoch::Epoch, event::Incarnation, time::Instant};

/// Proof that the shard has completed its takeover. Only [`Shard::permit`] makes one, so that no code path can accept an event on a follower.
#[derive(Debug)]
pub struct LeaderPermit {
    epoch: Epoch,
}

impl<R> Shard<R> {
    /// Returns the permit to accept one event.
    ///
    /// # Errors
    /// Returns [`Refusal::NotLeading`] until the takeover is complete. The lease is checked when the permit is used.
    pub fn permit(&self) -> Result<LeaderPermit, Refusal> {
        match self.role {
            Role::Leader => Ok(LeaderPermit { epoch: self.authority.epoch }),
            Role::Follower => Err(Refusal::NotLeading),
        }
    }

    /// Returns the incarnation in which this shard numbers events of publishers that do not number their own.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Returns an error unless this node still leads in the permit's epoch.
    pub(super) fn check_lease(&self, now: Instant, permit: LeaderPermit) -> Result<(), ShardError> {
        if self.leads(now) && permit.epoch == self.authority.epoch { Ok(()) } else { Err(ShardError::NotLeading) }
    }

    /// Begins to number events in the incarnation of an epoch. Every publisher's numbers begin with 1 in it.
    pub(super) fn number_in(&mut self, epoch: Epoch) {
        self.incarnation = Incarnation::of_epoch(epoch);
        // A node that has accepted nothing yet, as after a failover, need not go through its topics.
        if self.counters.accepted > 0 || self.topics.has_numbers() {
            self.topics.forget_numbers();
        }
    }
}
