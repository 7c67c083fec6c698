//! The Primary's end of the replica channel: what waits to be replicated and until when it may, what is under way, and how the Backup stands.
//!
//! Replication is postponed, never left out. Pending replicas wait until the row of them, in order of their deadlines, has to begin; then
//! it begins, and takes along what is due within the batch window. Most are covered by their subscribers before that.

use std::{collections::VecDeque, num::NonZeroU64};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReplicationPace {
    /// As late as their deadlines allow, so that most are covered before.
    #[default]
    Lazy,
    /// At once, whatever may cover a message before it has to be: for measurements.
    Eager,
    /// At every multiple of the period all that is not covered by then, whatever deadlines say: Wang 2019, section 4.7, compares with it, and no bound on
    /// losses holds.
    Periodic {
        /// At least 1.
        period_ns: NonZeroU64,
    },
}

/// How a Primary replicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReplicationPolicy {
    /// Processor time of a batch apart from what it carries.
    pub batch_cost_ns: u64,
    /// Longest section that nothing preempts, in front of a batch.
    pub blocking_ns: u64,
    /// What is due so long behind the first one goes with it.
    pub batch_window_ns: u64,
    /// When they go.
    pub pace: ReplicationPace,
    /// Replicas of each stream that the Backup keeps although they are covered, as far as the stream has room for them, and hands over again when it leads: for
    /// comparison with brokers that do not prune (FCFS- of Wang 2019, section 3.6; without quick recovery, section 4.6).
    pub backup_keeps: u32,
}

impl ReplicationPolicy {
    /// As late as this platform allows.
    pub fn of(platform: &Platform) -> Self {
        let nanos = |length: Nanos| u64::try_from(length.get()).unwrap_or(0);
        Self {
            batch_cost_ns: nanos(platform.batch_cost),
            blocking_ns: nanos(platform.blocking),
            batch_window_ns: nanos(platform.batch_window),
            ..Self::default()
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
    /// As before, and its link is there: it is sent the control operations that it lacks. What is kept comes behind them.
    CatchingUp,
    /// As before, and it is given what is kept.
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
        matches!(self, Self::Absent | Self::Out | Self::CatchingUp | Self::Joining)
    }

    /// Whether there is a session of the replica link.
    pub(crate) fn has_link(self) -> bool {
        matches!(self, Self::CatchingUp | Self::Joining | Self::Settling | Self::InSync)
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
    /// The caller's number of a checkpoint of a graph.
    Checkpoint(u64),
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
    /// Of a periodic pace: when what waits goes out; `None` where nothing waits.
    round_at: Option<Instant>,
    /// Streams below this index have been given to a joining Backup.
    pub given: u32,
    /// Whether the end of what was to be given has been sent.
    pub is_given: bool,
    /// Whether the host has no room for replicas of a Backup that does not count yet.
    pub is_held: bool,
    /// Streams that have a number in this session.
    declared: u32,
    /// The last position that was sent.
    sent: u64,
    in_flight: VecDeque<InFlight>,
}

impl Default for Replication {
    fn default() -> Self {
        Self {
            policy: ReplicationPolicy::default(),
            standing: BackupStanding::default(),
            session: 1,
            pending: Edf::default(),
            batches: [Instant::default(); LEVELS],
            busy_until: Instant::default(),
            round_at: None,
            given: 0,
            is_given: false,
            is_held: false,
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
            self.pending.put_in_order(level);
            while let Some((_, slot)) = self.pending.first(level) {
                self.pending.remove(slot);
            }
        }
    }

    /// Whether a stream's marks go to the Backup as they come.
    pub fn takes(&self, stream: u32) -> bool {
        match self.standing {
            BackupStanding::Settling | BackupStanding::InSync => true,
            // A stream that is opened behind the end of what is given comes like any other.
            BackupStanding::Joining => stream < self.given || self.is_given,
            BackupStanding::Absent | BackupStanding::Out | BackupStanding::CatchingUp | BackupStanding::Lost => false,
        }
    }

    /// Has a mark wait. Only where it may wait for long it needs no place in the order yet.
    pub fn postpone(&mut self, level: u8, slot: u32, deadline: Instant, cost_ns: u32) {
        match self.policy.pace {
            ReplicationPace::Lazy => self.pending.enter(level, slot, deadline, cost_ns),
            ReplicationPace::Eager | ReplicationPace::Periodic { .. } => self.pending.insert(level, slot, deadline, cost_ns),
        }
    }

    /// The mark of a level that has to go out now, with its deadline. `ahead_ns`: the work that would be done before it.
    pub fn due(&mut self, now: Instant, level: u8, ahead_ns: u64) -> Option<(Instant, u32)> {
        if let ReplicationPace::Periodic { period_ns } = self.policy.pace {
            self.plan_round(now, period_ns);
        }
        if !self.takes_replicas() || !self.may_be_due(now, level, ahead_ns) {
            return None;
        }
        self.pending.put_in_order(level);
        let (deadline, slot) = self.pending.first(level)?;
        if let Some(round_at) = self.round_at.filter(|_| self.standing != BackupStanding::Joining) {
            return (now >= round_at).then_some((deadline, slot));
        }
        let free_at = now.max(self.busy_until);
        if deadline > self.batches[usize::from(level)] && free_at >= self.start_by(level)?.minus_nanos(ahead_ns) {
            self.batches[usize::from(level)] = deadline.plus_nanos(self.policy.batch_window_ns);
        }
        (deadline <= self.batches[usize::from(level)]).then_some((deadline, slot))
    }

    /// Whether a mark may have to go out: most come and are covered long before one has to, and need not be put in order for that.
    fn may_be_due(&self, now: Instant, level: u8, ahead_ns: u64) -> bool {
        let (Some(row), Some(start)) = (self.pending.start_by(level), self.start_by(level)) else { return false };
        row <= self.batches[usize::from(level)] || now.max(self.busy_until) >= start.minus_nanos(ahead_ns)
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
        Some(match self.policy.pace {
            _ if self.standing == BackupStanding::Joining => Instant::default(),
            ReplicationPace::Lazy => start.minus_nanos(self.policy.batch_cost_ns.saturating_add(self.policy.blocking_ns)),
            ReplicationPace::Eager => Instant::default(),
            ReplicationPace::Periodic { .. } => self.round_at.unwrap_or_default(),
        })
    }

    /// What waits goes out at the first multiple of the period behind the turn in which the first of it came.
    fn plan_round(&mut self, now: Instant, period_ns: NonZeroU64) {
        if self.pending.is_empty() {
            self.round_at = None;
        } else if self.round_at.is_none() {
            self.round_at = Some(Instant::from_nanos((now.nanos() / period_ns + 1).saturating_mul(period_ns.get())));
        }
    }

    /// When replicas have to be begun with, unless the channel or the host is full: then acknowledgements or the host are waited for.
    pub fn next_start(&self, ahead_ns: u64) -> Option<Instant> {
        let starts = (0..LEVELS as u8).filter_map(|level| self.start_by(level));
        starts.min().filter(|_| self.takes_replicas()).map(|start| start.minus_nanos(ahead_ns))
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

    /// Whether a replica or a checkpoint may be sent. Publishers wait for a Backup that is in sync, so nothing is held back from that.
    pub fn takes_replicas(&self) -> bool {
        self.has_room() && !(self.is_held && self.standing != BackupStanding::InSync)
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

    const POLICY: ReplicationPolicy =
        ReplicationPolicy { batch_cost_ns: 200, blocking_ns: 0, batch_window_ns: 0, pace: ReplicationPace::Lazy, backup_keeps: 0 };

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
        let eager = ReplicationPolicy { pace: ReplicationPace::Eager, ..POLICY };
        assert_eq!(turn(&mut replication(eager), 0, 0).len(), 5);
    }

    #[test]
    fn held_replicas_wait_unless_the_backup_is_in_sync() {
        let held = |standing| Replication { standing, is_held: true, ..replication(POLICY) };
        for standing in [BackupStanding::Joining, BackupStanding::Settling] {
            assert_eq!((turn(&mut held(standing), 30_000, 0), held(standing).next_start(0)), (vec![], None));
            assert_eq!(turn(&mut Replication { is_held: false, ..held(standing) }, 30_000, 0).len(), 5);
        }
        assert_eq!(turn(&mut held(BackupStanding::InSync), 30_000, 0).len(), 5);
    }

    #[test]
    fn a_periodic_pace_sends_what_waits_at_the_multiples_of_its_period_and_nothing_between() {
        let pace = ReplicationPace::Periodic { period_ns: NonZeroU64::new(1_000).unwrap() };
        let mut replication = replication(ReplicationPolicy { pace, ..POLICY });
        assert_eq!(replication.next_start(0), Some(at(0)), "the turn in which something came plans the round");
        assert_eq!((turn(&mut replication, 1_234, 0), replication.next_start(0)), (vec![], Some(at(2_000))));
        replication.pending.remove(1);
        assert_eq!(turn(&mut replication, 1_999, 500), [], "what is covered before is not sent, and no work ahead begins a round earlier");
        let slots = |sent: Vec<(u32, u64)>| sent.into_iter().map(|(slot, _)| slot).collect::<Vec<_>>();
        assert_eq!(slots(turn(&mut replication, 2_000, 0)), [0, 2, 3, 4], "deadlines do not matter");
        assert_eq!(replication.next_start(0), None);
        // Due before what the last round sent, and no reason to send it before the next one.
        replication.pending.insert(0, 1, at(2_100), 100);
        assert_eq!((turn(&mut replication, 2_050, 0), replication.next_start(0)), (vec![], Some(at(3_000))));
        assert_eq!(slots(turn(&mut replication, 3_700, 0)), [1], "a late turn sends at once");
        let joining = Replication { standing: BackupStanding::Joining, ..self::replication(ReplicationPolicy { pace, ..POLICY }) };
        assert_eq!(turn(&mut joining.clone(), 1, 0).len(), 5, "a joining Backup is given everything at once");
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
