//! What a member is told once.

use std::time::Duration;

use crate::{
    epoch::{Node, PairId},
    lease::{held_until, lengthened, promised_until},
    time::Instant,
};

/// Who decides who leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Two of the two candidates and the witness.
    Majority,
    /// Nobody: there is no witness. The winner leads whenever it runs, the other one only if it is forced. If the two cannot reach
    /// each other after that, both lead.
    Pair {
        /// The candidate that leads.
        winner: Node,
    },
}

/// What a member is told once. The three nodes have the same times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberConfig {
    pub(super) node: Node,
    pub(super) mode: Mode,
    pub(super) lease: Duration,
    pub(super) lease_max: Duration,
    pub(super) heartbeat: Duration,
    pub(super) drift_ppm: u32,
    pub(super) cold_wait: Duration,
    pub(super) new_pair: PairId,
}

/// Times that do not make a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberConfigError {
    /// A lease that is over before it can be renewed.
    #[error(
        "a lease of {lease:?} is {held:?} by the slowest clock and a heartbeat is {heartbeat:?}: a lease of two heartbeats at least is expected"
    )]
    Lease {
        /// The lease.
        lease: Duration,
        /// What drift leaves of it.
        held: Duration,
        /// The heartbeat.
        heartbeat: Duration,
    },
    /// A heartbeat of no time.
    #[error("a heartbeat of 0 is no pause between two renewals: 1 ns or more is expected")]
    Heartbeat,
    /// A largest lease below the lease.
    #[error("the longest lease that is granted is {lease_max:?}, and the own one {lease:?}: at least as long is expected")]
    LeaseMax {
        /// The longest lease that is granted.
        lease_max: Duration,
        /// The lease.
        lease: Duration,
    },
    /// The witness cannot win.
    #[error("the winner of a pair without witness is a candidate, and its members are the two candidates")]
    Winner,
}

impl MemberConfig {
    /// The times of `node`: its lease and heartbeat, and the drift that its clock may have, in millionths. It grants leases of twice its own
    /// length at the most, so that the nodes can be given another lease one after the other, and lets a candidate without the
    /// messages wait for four leases.
    pub fn new(node: Node, mode: Mode, lease: Duration, heartbeat: Duration, drift_ppm: u32) -> Result<Self, MemberConfigError> {
        if heartbeat.is_zero() {
            return Err(MemberConfigError::Heartbeat);
        }
        let held = held_until(Instant::default(), lease, drift_ppm).since(Instant::default());
        if held < heartbeat.saturating_mul(2) {
            return Err(MemberConfigError::Lease { lease, held, heartbeat });
        }
        if let Mode::Pair { winner } = mode
            && (winner == Node::Witness || node == Node::Witness)
        {
            return Err(MemberConfigError::Winner);
        }
        let (lease_max, cold_wait) = (lease.saturating_mul(2), lease.saturating_mul(4));
        Ok(Self { node, mode, lease, lease_max, heartbeat, drift_ppm, cold_wait, new_pair: PairId(1) })
    }

    /// Grants leases of up to `lease_max`; for so long it grants nothing after a restart.
    pub fn with_lease_max(self, lease_max: Duration) -> Result<Self, MemberConfigError> {
        if lease_max < self.lease {
            return Err(MemberConfigError::LeaseMax { lease_max, lease: self.lease });
        }
        Ok(Self { lease_max, ..self })
    }

    /// How long a voter waits for a candidate that has the messages before it votes for one that has restarted.
    pub fn with_cold_wait(self, cold_wait: Duration) -> Self {
        Self { cold_wait, ..self }
    }

    /// Names the pair if this node is its first leader. The caller draws the name at random, so that no two pairs have the same.
    pub fn with_new_pair(self, new_pair: PairId) -> Self {
        Self { new_pair, ..self }
    }

    /// For how long a process counts as alive after a frame of it: promises that it received before have expired then.
    pub fn alive(&self) -> Duration {
        lengthened(self.lease_max, self.drift_ppm)
    }

    pub(super) fn has(&self, node: Node) -> bool {
        self.mode == Mode::Majority || node != Node::Witness
    }

    pub(super) fn others(&self) -> impl Iterator<Item = Node> + use<> {
        let config = *self;
        Node::ALL.into_iter().filter(move |node| *node != config.node && config.has(*node))
    }

    /// Whether it leads without asking anybody.
    pub(super) fn wins(&self) -> bool {
        self.mode == Mode::Pair { winner: self.node }
    }

    pub(super) fn is_by_majority(&self) -> bool {
        self.mode == Mode::Majority
    }

    pub(super) fn lease_ns(&self) -> u64 {
        u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn held_until(&self, sent_at: Instant) -> Instant {
        held_until(sent_at, self.lease, self.drift_ppm)
    }

    pub(super) fn promised_until(&self, now: Instant, lease: Duration) -> Instant {
        promised_until(now, lease, self.drift_ppm)
    }
}
