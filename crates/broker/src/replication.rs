//! The Primary's end of the replica channel: what waits to be replicated and until when it may, what is under way, and how the Backup stands.
//!
//! Replication is postponed, never left out. Pending replicas wait until the row of them, in order of their deadlines, has to begin; then
//! it begins, and takes along what is due within the batch window. Most are covered by their subscribers before that.

use std::collections::VecDeque;

use crate::{
    edf::{Edf, LEVELS},
    event::Sequence,
    stream::StreamId,
    time::Instant,
    timing::Nanos,
    topic::Platform,
    wire::Position,
};

/// Frames of the channel that may wait for an acknowledgement; replicas beyond wait in their queue.
pub const IN_FLIGHT_MAX: usize = 8192;

/// When replicas go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplicationPolicy {
    /// Processor time of a batch apart from what it carries.
    pub batch_cost_ns: u64,
    /// Longest section that nothing preempts, in front of a batch.
    pub blocking_ns: u64,
    /// What is due so long behind the first one goes with it.
    pub batch_window_ns: u64,
    /// Replicate at once, whatever may cover a message before it has to be: for measurements.
    pub is_eager: bool,
}

impl ReplicationPolicy {
    /// As late as this platform allows.
    pub fn of(platform: &Platform) -> Self {
        let nanos = |length: Nanos| u64::try_from(length.get()).unwrap_or(0);
        Self {
            batch_cost_ns: nanos(platform.batch_cost),
            blocking_ns: nanos(platform.blocking),
            batch_window_ns: nanos(platform.batch_window),
            is_eager: false,
        }
    }
}

/// How the Backup stands, and so whose word covers a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackupStanding {
    /// There is none in this configuration. What no required subscriber acknowledges counts as covered when it is accepted.
    #[default]
    Absent,
    /// The witness knows that it lacks something, so it will not lead. Covered is what is covered without one.
    Out,
    /// As before, and its link is there: it is being given what it lacks.
    Joining,
    /// It has been given everything, and the witness is told so: it may be voted for already, and may not. Neither accepted events nor those that it
    /// acknowledges count as covered.
    Settling,
    /// What it has acknowledged is covered.
    InSync,
    /// Its link has gone, but it may still be voted for, until the witness knows better ([`Self::Out`]): nothing counts as covered by being accepted.
    Lost,
}

impl BackupStanding {
    /// Whether it will not lead in our place, so that there is nothing to wait for.
    pub(crate) fn is_out(self) -> bool {
        matches!(self, Self::Absent | Self::Out | Self::Joining)
    }

    /// Whether there is a session of the replica link.
    pub(crate) fn has_link(self) -> bool {
        matches!(self, Self::Joining | Self::Settling | Self::InSync)
    }
}

/// What is acknowledged at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum InFlight {
    Replica {
        stream: StreamId,
        sequence: Sequence,
    },
    /// The caller's number of a control operation.
    Control(u64),
    SnapshotEnd,
}

/// An acknowledgement that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Backup acknowledges position {found}, but the last one sent is {sent}: close the link")]
pub struct AckAhead {
    /// The acknowledged position.
    pub found: u64,
    /// The last position.
    pub sent: u64,
}

/// The Primary's end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Replication {
    pub policy: ReplicationPolicy,
    pub standing: BackupStanding,
    /// Counts sessions of the link, from 1: what was known in an earlier one counts for nothing.
    pub session: u32,
    /// Marks that are neither sent nor covered, by their slots.
    pub pending: Edf,
    /// Of each level: marks that are due up to here go out without a further wait.
    batches: [Instant; LEVELS],
    /// When what has been sent in this turn will have left.
    busy_until: Instant,
    /// Streams below this index have been given to a joining Backup.
    pub given: u32,
    /// Whether the end of what was to be given has been sent.
    pub is_given: bool,
    /// Streams that have a number in this session.
    declared: u32,
    /// The last position that was sent.
    sent: u64,
    in_flight: VecDeque<InFlight>,
}

impl Default for Replication {
    fn default() -> Self {
        Self {
            policy: ReplicationPolicy { batch_cost_ns: 0, blocking_ns: 0, batch_window_ns: 0, is_eager: false },
            standing: BackupStanding::default(),
            session: 1,
            pending: Edf::default(),
            batches: [Instant::default(); LEVELS],
            busy_until: Instant::default(),
            given: 0,
            is_given: false,
            declared: 0,
            sent: 0,
            in_flight: VecDeque::new(),
        }
    }
}

impl Replication {
    /// Begins a session of the link, with nothing under way.
    pub fn begin_session(&mut self) {
        self.end_session();
        self.session = self.session.wrapping_add(1).max(1);
        self.in_flight.reserve(IN_FLIGHT_MAX);
        (self.given, self.is_given, self.declared) = (0, false, 0);
    }

    /// Forgets what is under way.
    pub fn end_session(&mut self) {
        self.in_flight.clear();
        for level in 0..LEVELS as u8 {
            while let Some((_, slot)) = self.pending.first(level) {
                self.pending.remove(slot);
            }
        }
    }

    /// Whether a stream's marks go to the Backup as they come.
    pub fn takes(&self, stream: u32) -> bool {
        match self.standing {
            BackupStanding::Settling | BackupStanding::InSync => true,
            BackupStanding::Joining => stream < self.given,
            BackupStanding::Absent | BackupStanding::Out | BackupStanding::Lost => false,
        }
    }

    /// The mark of a level that has to go out now, with its deadline. `ahead_ns`: the work that would be done before it.
    pub fn due(&mut self, now: Instant, level: u8, ahead_ns: u64) -> Option<(Instant, u32)> {
        let (deadline, slot) = self.pending.first(level)?;
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            return None;
        }
        let free_at = now.max(self.busy_until);
        if deadline > self.batches[usize::from(level)] && free_at >= self.start_by(level)?.minus_nanos(ahead_ns) {
            self.batches[usize::from(level)] = deadline.plus_nanos(self.policy.batch_window_ns);
        }
        (deadline <= self.batches[usize::from(level)]).then_some((deadline, slot))
    }

    /// Takes a mark out, to be sent now. What else waits has to reckon with the time that takes.
    pub fn take(&mut self, now: Instant, slot: u32) {
        if self.busy_until < now {
            self.busy_until = now.plus_nanos(self.policy.batch_cost_ns);
        }
        self.busy_until = self.busy_until.plus_nanos(self.pending.cost_ns(slot));
        self.pending.remove(slot);
    }

    /// The latest instant at which a level's pending replicas have to be begun with; `None` where there are none.
    fn start_by(&self, level: u8) -> Option<Instant> {
        let start = self.pending.start_by(level)?;
        let is_due = self.policy.is_eager || self.standing == BackupStanding::Joining;
        Some(if is_due { Instant::default() } else { start.minus_nanos(self.policy.batch_cost_ns.saturating_add(self.policy.blocking_ns)) })
    }

    /// When replicas have to be begun with, unless the channel is full: then its acknowledgements are waited for.
    pub fn next_start(&self, ahead_ns: u64) -> Option<Instant> {
        let has_room = self.in_flight.len() < IN_FLIGHT_MAX;
        let starts = (0..LEVELS as u8).filter_map(|level| self.start_by(level));
        starts.min().filter(|_| has_room).map(|start| start.minus_nanos(ahead_ns))
    }

    /// Gives the next position to something that is sent now.
    pub fn send(&mut self, what: InFlight) -> Position {
        self.sent += 1;
        self.in_flight.push_back(what);
        Position(self.sent)
    }

    /// Whether the channel takes another frame.
    pub fn has_room(&self) -> bool {
        self.in_flight.len() < IN_FLIGHT_MAX
    }

    /// A number for a stream, not used before in this session.
    pub fn declare(&mut self) -> u32 {
        self.declared += 1;
        self.declared
    }

    /// The position that the next frame gets.
    pub fn next_position(&self) -> u64 {
        self.sent + 1
    }

    /// The first position that is not acknowledged, with what it stands for, if it is acknowledged by `through`.
    pub fn acknowledged(&mut self, through: Position) -> Option<(u64, InFlight)> {
        let first = self.sent + 1 - self.in_flight.len() as u64;
        (first <= through.0).then(|| self.in_flight.pop_front()).flatten().map(|what| (first, what))
    }

    /// Refuses to believe in an acknowledgement of what was never sent.
    pub fn check(&self, through: Position) -> Result<(), AckAhead> {
        if through.0 > self.sent { Err(AckAhead { found: through.0, sent: self.sent }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// The deadlines of `timing.md`'s batch in microseconds, each item of 100.
    fn replication(policy: ReplicationPolicy) -> Replication {
        let mut replication = Replication { policy, standing: BackupStanding::InSync, ..Replication::default() };
        replication.pending.reserve(5);
        for (slot, deadline) in [10_000, 10_100, 10_200, 10_250, 30_000].into_iter().enumerate() {
            replication.pending.insert(0, slot as u32, at(deadline), 100);
        }
        replication
    }

    const POLICY: ReplicationPolicy = ReplicationPolicy { batch_cost_ns: 200, blocking_ns: 0, batch_window_ns: 0, is_eager: false };

    /// What goes out in a turn at `now`, and when it has left.
    fn turn(replication: &mut Replication, now: u64, ahead_ns: u64) -> Vec<(u32, u64)> {
        std::iter::from_fn(|| {
            let (_, slot) = replication.due(at(now), 0, ahead_ns)?;
            replication.take(at(now), slot);
            Some((slot, replication.busy_until.nanos()))
        })
        .collect()
    }

    #[test]
    fn a_batch_begins_at_its_latest_safe_start_and_not_before() {
        assert_eq!(replication(POLICY).next_start(0), Some(at(9_650)));
        assert_eq!(turn(&mut replication(POLICY), 9_649, 0), []);
        let whole = [(0, 9_950), (1, 10_050), (2, 10_150), (3, 10_250)];
        assert_eq!(turn(&mut replication(POLICY), 9_650, 0), whole, "the last one just in time, and what is due later waits");
        let late = ReplicationPolicy { blocking_ns: 30, ..POLICY };
        assert_eq!(replication(late).next_start(0), Some(at(9_620)));
        assert_eq!(turn(&mut replication(POLICY), 9_600, 49), []);
        assert_eq!(turn(&mut replication(POLICY), 9_600, 50).len(), 4, "the work ahead begins it earlier");
        let window = ReplicationPolicy { batch_window_ns: 20_000, ..POLICY };
        assert_eq!(turn(&mut replication(window), 9_650, 0).len(), 5);
        let eager = ReplicationPolicy { is_eager: true, ..POLICY };
        assert_eq!(turn(&mut replication(eager), 0, 0).len(), 5);
    }

    proptest! {
        /// Replicas that could leave in time when they came do so, however late each batch begins.
        #[test]
        fn every_replica_leaves_in_time(deadlines in prop::collection::vec(0u64..50, 1..20), batch_cost_ns in 0u64..6, batch_window_ns in 0u64..9) {
            let policy = ReplicationPolicy { batch_cost_ns, batch_window_ns, ..POLICY };
            let mut replication = Replication { policy, standing: BackupStanding::InSync, ..Replication::default() };
            replication.pending.reserve(deadlines.len());
            for (slot, deadline) in deadlines.iter().enumerate() {
                replication.pending.insert(0, slot as u32, at(1_000 + deadline), 3);
            }
            let mut sent = Vec::new();
            while let Some(start) = replication.next_start(0) {
                let now = start.max(replication.busy_until).nanos();
                let batch = turn(&mut replication, now, 0);
                prop_assert!(!batch.is_empty(), "the start that was named begins something");
                sent.extend(batch);
            }
            prop_assert!(sent.iter().all(|&(slot, left)| left <= 1_000 + deadlines[slot as usize]), "{:?}", sent);
            prop_assert_eq!(sent.len(), deadlines.len());
        }
    }

    #[test]
    fn acknowledgements_are_cumulative_and_of_what_was_sent() {
        let mut replication = Replication::default();
        replication.begin_session();
        let positions: Vec<_> = (7..10).map(|operation| replication.send(InFlight::Control(operation)).0).collect();
        assert_eq!(positions, [1, 2, 3]);
        assert_eq!(replication.check(Position(4)), Err(AckAhead { found: 4, sent: 3 }));
        assert_eq!(replication.check(Position(2)), Ok(()));
        let acknowledged: Vec<_> = std::iter::from_fn(|| replication.acknowledged(Position(2))).collect();
        assert_eq!(acknowledged, [(1, InFlight::Control(7)), (2, InFlight::Control(8))]);
        assert_eq!(replication.next_position(), 4);
    }
}
