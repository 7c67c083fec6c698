//! Stalls: by how much a thread that wants to go on at a time goes on later, and for how long a shard's turn keeps everything else waiting.
//!
//! Every deadline is admitted with the longest section that nothing preempts, as the platform states it (`blocking`). Whether that is so is measured after
//! the start, and watched from then on; while it is not, the deadlines' guarantee is suspended, and told. So it is where a clock differs by more than is stated, or events
//! take longer to the broker; and that of losses, where replicas take longer to the Backup, or a fail-over has taken longer than x.

mod cause;
mod memory;
mod watch;

use std::{
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed},
    },
    time::{Duration, Instant},
};

use bodkin_broker::wire;
use serde::Serialize;

use self::memory::Noted;
pub use self::{
    cause::{Cause, Causes},
    watch::StallWatch,
};
use crate::peer_clock::PeerClock;

/// Whether what is promised can be relied on: of deadlines as far as the machine is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    /// Stalls are being measured.
    Pending,
    /// Nobody has stated how long the machine may stall; of losses: there is no pair that could bound them.
    Unstated,
    /// No stall of the last minute was longer than what is stated; the Backup may lead.
    Held,
    /// One was; it may not, or is not there.
    Suspended,
}

impl From<Guarantee> for wire::Guarantee {
    fn from(guarantee: Guarantee) -> Self {
        match guarantee {
            Guarantee::Pending => Self::Pending,
            Guarantee::Unstated => Self::Unstated,
            Guarantee::Held => Self::Held,
            Guarantee::Suspended => Self::Suspended,
        }
    }
}

/// What deadlines were admitted with, in nanoseconds; 0: nobody has stated it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assumed {
    /// The longest section that nothing preempts: the machine's worst stall.
    pub blocking_ns: u64,
    /// The largest difference between the clocks of a publisher and this host.
    pub clock_error_ns: u64,
    /// The longest way to the Backup.
    pub broker_backup_ns: u64,
}

/// What is known of stalls, written by the watching thread, and of other hosts' clocks and the ways from and to them, written by the shard.
#[derive(Debug)]
pub struct Stalls {
    assumed: Assumed,
    /// By how much events came later than the longest way from their publishers.
    publisher_excess: Noted,
    /// How long replicas took to the Backup.
    backup_way: Noted,
    /// By how much a fail-over took longer than x.
    failover_excess: Noted,
    /// How long the last one took; 0: there was none.
    failover_ns: AtomicU64,
    /// Clients whose clocks are known, and by how much one differs from ours at the least.
    clocks: AtomicU64,
    clock_difference_ns: AtomicU64,
    is_measured: AtomicBool,
    machine_ns: AtomicU64,
    shard_ns: AtomicU64,
    turn: Turn,
}

/// A shard's sign of life, in nanoseconds since `start`.
#[derive(Debug)]
struct Turn {
    start: Instant,
    /// When the present turn began; 0 while the shard waits.
    begun_ns: AtomicU64,
    /// The longest turn since the watch looked last.
    longest_ns: AtomicU64,
}

/// What became of the guarantee, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// Whether it holds.
    pub guarantee: Guarantee,
    /// Why it is suspended.
    pub causes: Causes,
    /// The longest stall of the last minute, in microseconds.
    pub worst_us: u64,
    /// How long deadlines were admitted with.
    pub blocking_us: u64,
    /// By how much a client's clock differs from ours for certain, in microseconds.
    pub clock_difference_us: u64,
    /// How much deadlines were admitted with.
    pub clock_error_us: u64,
    /// By how much events of the last minute came later than the longest way from their publishers.
    pub publisher_excess_us: u64,
    /// How long replicas of the last minute took to the Backup at the most, as far as acknowledgements show it.
    pub broker_backup_us: u64,
    /// How long topics were admitted with.
    pub broker_backup_stated_us: u64,
}

impl Stalls {
    /// For deadlines that were admitted with this.
    pub fn new(assumed: Assumed) -> Self {
        let turn = Turn { start: Instant::now(), begun_ns: AtomicU64::new(0), longest_ns: AtomicU64::new(0) };
        let [clocks, clock_difference_ns, machine_ns, shard_ns, failover_ns] = [0; 5].map(AtomicU64::new);
        let [publisher_excess, backup_way, failover_excess] = [(); 3].map(|()| Noted::default());
        let is_measured = AtomicBool::new(false);
        Self {
            assumed,
            publisher_excess,
            backup_way,
            failover_excess,
            failover_ns,
            clocks,
            clock_difference_ns,
            is_measured,
            machine_ns,
            shard_ns,
            turn,
        }
    }

    /// An event came so much later than its topic's longest way from a publisher, clocks included.
    pub fn publisher_is_far(&self, excess_ns: u64) {
        self.publisher_excess.note(excess_ns);
    }

    /// A replica was acknowledged after so long, there and back.
    pub fn backup_has_answered(&self, round_trip_ns: u64) {
        self.backup_way.note(round_trip_ns / 2);
    }

    /// A fail-over to this node took so long, of x.
    pub fn failover_took(&self, took: Duration, stated: Duration) {
        self.failover_ns.store(nanos(took), Relaxed);
        self.failover_excess.note(nanos(took.saturating_sub(stated)));
    }

    /// How long the last fail-over to this node took, in nanoseconds; 0: there was none since the start.
    pub fn failover_ns(&self) -> u64 {
        self.failover_ns.load(Relaxed)
    }

    /// Whether one of the last minute took longer than losses were bounded with.
    pub fn failover_was_long(&self) -> bool {
        self.failover_excess.worst_ns() > 0
    }

    /// By how much events came later than their longest way in the last minute, in nanoseconds.
    pub fn publisher_excess_ns(&self) -> u64 {
        self.publisher_excess.worst_ns()
    }

    /// How long replicas took in the last minute at the most, in nanoseconds.
    pub fn backup_way_ns(&self) -> u64 {
        self.backup_way.worst_ns()
    }

    /// Whether replicas take longer than losses were bounded with. Each end may have stalled as long as is stated.
    pub fn backup_is_far(&self) -> bool {
        let Assumed { broker_backup_ns, blocking_ns, .. } = self.assumed;
        broker_backup_ns > 0 && self.backup_way_ns() > broker_backup_ns.saturating_add(blocking_ns)
    }

    /// Whether it matters what other clocks show.
    pub fn asks_for_clocks(&self) -> bool {
        self.assumed.clock_error_ns > 0
    }

    /// Whether a clock is known to be wrong: to differ by more than is stated.
    pub fn is_wrong(&self, clock: &PeerClock) -> bool {
        self.asks_for_clocks() && clock.differs_by_more_than(self.assumed.clock_error_ns)
    }

    /// So many clients' clocks are known, and the farthest differs from ours by so much at the least.
    pub fn clocks_differ(&self, clocks: u64, difference_ns: u64) {
        self.clocks.store(clocks, Relaxed);
        self.clock_difference_ns.store(difference_ns, Relaxed);
    }

    /// How many clients' clocks are known.
    pub fn clocks(&self) -> u64 {
        self.clocks.load(Relaxed)
    }

    /// By how much the farthest of them differs from ours at the least, in nanoseconds.
    pub fn clock_difference_ns(&self) -> u64 {
        self.clock_difference_ns.load(Relaxed)
    }

    /// The longest stall of the machine in the last minute, in nanoseconds; `None` while it is being measured.
    pub fn machine_ns(&self) -> Option<u64> {
        self.is_measured.load(Acquire).then(|| self.machine_ns.load(Relaxed))
    }

    /// The longest turn of a shard in the last minute, likewise: nothing that comes meanwhile is looked at.
    pub fn shard_ns(&self) -> Option<u64> {
        self.is_measured.load(Acquire).then(|| self.shard_ns.load(Relaxed))
    }

    /// The longest of both, in nanoseconds; 0 while it is being measured.
    pub fn worst_ns(&self) -> u64 {
        self.machine_ns().max(self.shard_ns()).unwrap_or_default()
    }

    /// What deadlines were admitted with.
    pub fn assumed(&self) -> Assumed {
        self.assumed
    }

    /// What is not as deadlines were admitted with. Where nobody has stated how long the machine may stall, no stall is too long.
    pub fn causes(&self) -> Causes {
        let Assumed { blocking_ns, clock_error_ns, .. } = self.assumed;
        Causes::of(|cause| match cause {
            Cause::Clock => self.asks_for_clocks() && self.clock_difference_ns() > clock_error_ns,
            Cause::Publishers => self.publisher_excess_ns() > 0,
            Cause::Stall => blocking_ns > 0 && self.worst_ns() > blocking_ns,
        })
    }

    /// What all that means for deadlines.
    pub fn guarantee(&self) -> Guarantee {
        self.guarantee_with(self.causes())
    }

    fn guarantee_with(&self, causes: Causes) -> Guarantee {
        match self.machine_ns() {
            _ if !causes.is_empty() => Guarantee::Suspended,
            _ if self.assumed.blocking_ns == 0 => Guarantee::Unstated,
            None => Guarantee::Pending,
            Some(_) => Guarantee::Held,
        }
    }

    /// The same with the figures.
    pub fn notice(&self) -> Notice {
        let Assumed { blocking_ns, clock_error_ns, broker_backup_ns } = self.assumed;
        let causes = self.causes();
        Notice {
            guarantee: self.guarantee_with(causes),
            causes,
            worst_us: self.worst_ns() / 1_000,
            blocking_us: blocking_ns / 1_000,
            clock_difference_us: self.clock_difference_ns() / 1_000,
            clock_error_us: clock_error_ns / 1_000,
            // Whatever is too long is told as something.
            publisher_excess_us: self.publisher_excess_ns().div_ceil(1_000),
            broker_backup_us: self.backup_way_ns() / 1_000,
            broker_backup_stated_us: broker_backup_ns / 1_000,
        }
    }

    /// The shard begins a turn.
    pub fn turn_begins(&self, now: Instant) {
        self.turn.begun_ns.store(self.turn.at(now).max(1), Relaxed);
    }

    /// It has ended it, and waits.
    pub fn turn_ends(&self, now: Instant) {
        let begun_ns = self.turn.begun_ns.swap(0, Relaxed);
        self.turn.longest_ns.fetch_max(self.turn.at(now).saturating_sub(begun_ns), Relaxed);
    }
}

impl Turn {
    fn at(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.start))
    }

    /// The longest turn since the last look, or the one that goes on.
    fn look(&self, now: Instant) -> Duration {
        let going_on_ns = match self.begun_ns.load(Relaxed) {
            0 => 0,
            begun_ns => self.at(now).saturating_sub(begun_ns),
        };
        Duration::from_nanos(self.longest_ns.swap(0, Relaxed).max(going_on_ns))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Release;

    use super::{memory::Memory, *};

    fn stalls(blocking_ns: u64, clock_error_ns: u64) -> Stalls {
        Stalls::new(Assumed { blocking_ns, clock_error_ns, broker_backup_ns: 20 })
    }

    #[test]
    fn a_failover_that_takes_longer_than_x_is_remembered_for_a_minute() {
        let (stalls, mut memory) = (stalls(10, 50), Memory::default());
        let x = Duration::from_millis(20);
        stalls.failover_took(x, x);
        stalls.failover_excess.look(&mut memory, Duration::ZERO);
        assert_eq!((stalls.failover_ns(), stalls.failover_was_long()), (20_000_000, false));
        stalls.failover_took(x + Duration::from_nanos(1), x);
        for (at_s, expected) in [(1, true), (59, true), (70, false)] {
            stalls.failover_excess.look(&mut memory, Duration::from_secs(at_s));
            assert_eq!(stalls.failover_was_long(), expected, "{at_s} s");
        }
        assert_eq!(stalls.failover_ns(), 20_000_001, "how long the last one took is told on");
    }

    #[test]
    fn ways_that_are_longer_than_stated_suspend_what_rests_on_them() {
        let (stalls, mut memory) = (stalls(10, 50), Memory::default());
        stalls.is_measured.store(true, Release);
        stalls.backup_has_answered(2 * (20 + 10));
        stalls.backup_way.look(&mut memory, Duration::ZERO);
        assert_eq!((stalls.backup_is_far(), stalls.notice().broker_backup_stated_us), (false, 0), "each end may have stalled");
        stalls.backup_has_answered(2 * (20 + 10) + 2);
        stalls.backup_way.look(&mut memory, Duration::ZERO);
        assert_eq!((stalls.backup_is_far(), stalls.guarantee()), (true, Guarantee::Held), "losses rest on it, and deadlines do not");
        stalls.publisher_is_far(1);
        stalls.publisher_excess.look(&mut Memory::default(), Duration::ZERO);
        assert_eq!((stalls.guarantee(), stalls.notice().publisher_excess_us), (Guarantee::Suspended, 1));
        let unstated = Stalls::new(Assumed::default());
        unstated.backup_has_answered(1_000_000);
        unstated.backup_way.look(&mut Memory::default(), Duration::ZERO);
        assert!(!unstated.backup_is_far(), "nobody has stated anything");
    }

    #[test]
    fn a_guarantee_is_pending_until_stalls_are_measured_and_suspended_by_a_longer_one() {
        assert_eq!([0, 10].map(|blocking_ns| stalls(blocking_ns, 0).guarantee()), [Guarantee::Unstated, Guarantee::Pending]);
        for (machine_ns, shard_ns) in [(10, 3), (3, 10)] {
            let guarantees = [0, 9, 10].map(|blocking_ns| {
                let stalls = stalls(blocking_ns, 0);
                stalls.is_measured.store(true, Release);
                stalls.machine_ns.store(machine_ns, Relaxed);
                stalls.shard_ns.store(shard_ns, Relaxed);
                stalls.guarantee()
            });
            assert_eq!(guarantees, [Guarantee::Unstated, Guarantee::Suspended, Guarantee::Held]);
        }
    }

    #[test]
    fn a_clock_that_differs_by_more_than_stated_suspends_it_as_well() {
        for (blocking_ns, clock_error_ns, expected) in [
            (10, 0, [Guarantee::Held; 2]),
            (10, 50, [Guarantee::Held, Guarantee::Suspended]),
            (0, 50, [Guarantee::Unstated, Guarantee::Suspended]),
        ] {
            let stalls = stalls(blocking_ns, clock_error_ns);
            stalls.is_measured.store(true, Release);
            let guarantees = [50, 51].map(|difference_ns| {
                stalls.clocks_differ(1, difference_ns);
                stalls.guarantee()
            });
            assert_eq!(guarantees, expected, "{blocking_ns} {clock_error_ns}");
        }
    }

    #[test]
    fn the_longest_turn_counts_once_and_one_that_does_not_end_counts_while_it_lasts() {
        let stalls = stalls(0, 0);
        let at = |ms| stalls.turn.start + Duration::from_millis(ms);
        for (begun, ended) in [(1, 2), (3, 8), (9, 10)] {
            stalls.turn_begins(at(begun));
            stalls.turn_ends(at(ended));
        }
        let looked = [11, 12].map(|now| stalls.turn.look(at(now)));
        assert_eq!(looked, [Duration::from_millis(5), Duration::ZERO]);
        stalls.turn_begins(at(20));
        assert_eq!([21, 520].map(|now| stalls.turn.look(at(now))), [Duration::from_millis(1), Duration::from_millis(500)]);
        stalls.turn_ends(at(521));
        assert_eq!(stalls.turn.look(at(600)), Duration::from_millis(501));
    }
}
