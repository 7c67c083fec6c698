//! What goes wrong, one thing at a time: the guarantee is for one fault at once, and the next comes when the cloud is whole again.
//!
//! [`Plan`] draws the faults of a run. Some are beyond the guarantee on purpose (both hosts of the pair at once): then losses are
//! excused, and what has to hold is that no two lead, nothing comes twice or in the wrong order, and every loss is told.

use std::fmt;

use bodkin_broker::Node;

use crate::{
    clock::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS},
    network::Ending,
    random::Random,
};

/// The three that decide who leads. Which of the first two is Primary changes with every fail-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Whoever leads at that moment.
    Primary,
    /// Whoever follows.
    Backup,
    /// The third voter.
    Witness,
}

/// A kind of fault, as reports count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A process is killed; its kernel goes on.
    ProcessCrash,
    /// A host is gone with everything it had not sent.
    HostCrash,
    /// A node that returned dies while it rejoins.
    CrashAtRejoin,
    /// The Primary dies, and then the Backup within its promotion: what only their memories held is lost.
    CrashAtPromotion,
    /// The Backup dies, and then the Primary while the Backup rejoins: the same.
    PrimaryCrashAtRejoin,
    /// A node dies while links are cut: nothing that is covered is lost, but it may take until the node is back that somebody leads.
    CrashInPartition,
    /// A process stands still and then goes on as if nothing had happened.
    Stall,
    /// Links are cut, in one direction or both.
    Partition,
    /// Connections are reset.
    Reset,
    /// A publisher dies and comes back in a new incarnation.
    PublisherCrash,
    /// An operator has the Backup lead.
    Switchover,
    /// A second process with a node's name and a copy of its disk lives for a while. It must not disturb the cloud.
    Clone,
    /// The Primary's connections to the other nodes are reset while a clone of it tries to connect. It must not disturb who leads.
    CloneAndReset,
    /// A second process with a node's name lives for a while, and the node dies meanwhile.
    ClonedNodeCrash,
    /// The clock that shows UTC is set at a host, and set right again. It must not disturb who leads.
    ClockSet,
    /// The Primary dies while the clock of a host is set wrong.
    CrashWithWrongClock,
    /// The disk of the Backup or the witness is slow or full for a while. It must not disturb who leads.
    SlowDisk,
    /// The Primary dies while the disk of the Backup or the witness is slow or full.
    CrashWithSlowDisk,
    /// Nodes are restarted with another lease, one after the other, and again with the former one.
    LeaseChange,
    /// The same with a lease that is too different for that: it may take until the former one is back that somebody leads, and what only memories held is
    /// lost.
    LeaseJump,
    /// Frames to a node are delayed, and then its own frames are cut off: its grants and votes arrive late, and no renewal follows.
    SlowWays,
}

/// Every kind, in the order of reports.
pub const FAULT_KINDS: [FaultKind; 21] = [
    FaultKind::ProcessCrash,
    FaultKind::HostCrash,
    FaultKind::CrashAtRejoin,
    FaultKind::CrashAtPromotion,
    FaultKind::PrimaryCrashAtRejoin,
    FaultKind::CrashInPartition,
    FaultKind::Stall,
    FaultKind::Partition,
    FaultKind::Reset,
    FaultKind::PublisherCrash,
    FaultKind::Switchover,
    FaultKind::Clone,
    FaultKind::CloneAndReset,
    FaultKind::ClonedNodeCrash,
    FaultKind::ClockSet,
    FaultKind::CrashWithWrongClock,
    FaultKind::SlowDisk,
    FaultKind::CrashWithSlowDisk,
    FaultKind::LeaseChange,
    FaultKind::LeaseJump,
    FaultKind::SlowWays,
];

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ProcessCrash => "process crash",
            Self::HostCrash => "host crash",
            Self::CrashAtRejoin => "crash at rejoin",
            Self::CrashAtPromotion => "crash at promotion",
            Self::PrimaryCrashAtRejoin => "primary crash at rejoin",
            Self::CrashInPartition => "crash in partition",
            Self::Stall => "stall",
            Self::Partition => "partition",
            Self::Reset => "reset",
            Self::PublisherCrash => "publisher crash",
            Self::Switchover => "switchover",
            Self::Clone => "clone",
            Self::CloneAndReset => "clone and reset",
            Self::ClonedNodeCrash => "cloned node crash",
            Self::ClockSet => "clock set",
            Self::CrashWithWrongClock => "crash with wrong clock",
            Self::SlowDisk => "slow disk",
            Self::CrashWithSlowDisk => "crash with slow disk",
            Self::LeaseChange => "lease change",
            Self::LeaseJump => "lease jump",
            Self::SlowWays => "slow ways",
        })
    }
}

/// Whose links a partition cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Between Primary and Backup only.
    Pair,
    /// Between the Primary and the witness only.
    PrimaryWitness,
    /// Between the Backup and the witness only.
    BackupWitness,
    /// Between one publisher and the Primary only.
    PublisherPrimary,
    /// Between the Primary and one subscriber only.
    PrimarySubscriber,
    /// Everything of the Primary's.
    AroundPrimary,
    /// Everything of the Backup's.
    AroundBackup,
    /// Everything of the witness's.
    AroundWitness,
}

/// A voter grants leases of at most twice its own.
const LEASE_FACTOR: u64 = 2;
/// What a careless operator may give them.
const LEASE_JUMP: u64 = 4;

const CUTS: [Cut; 8] = [
    Cut::Pair,
    Cut::PrimaryWitness,
    Cut::BackupWitness,
    Cut::PublisherPrimary,
    Cut::PrimarySubscriber,
    Cut::AroundPrimary,
    Cut::AroundBackup,
    Cut::AroundWitness,
];

/// Which directions of a link are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Both.
    Both,
    /// Only what the one named first sends.
    Out,
    /// Only what it gets.
    In,
}

/// What a disk does to writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Each write takes up to so long, in nanoseconds.
    Slow {
        /// The longest time.
        most_ns: u64,
    },
    /// No write succeeds until the disk has room again.
    Full,
}

/// Whose clock is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockHost {
    /// A node's.
    Node(Target),
    /// A publisher's.
    Publisher,
    /// A subscriber's.
    Subscriber,
}

/// One fault, with everything it needs to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node dies and comes back after `down_ns`.
    Crash {
        /// Which one.
        target: Target,
        /// What its connections do.
        ending: Ending,
        /// How long it is away, in nanoseconds.
        down_ns: u64,
        /// It dies once more, so long after its return.
        again_after_ns: Option<u64>,
        /// The other one of the pair dies so long after this one.
        other_after_ns: Option<u64>,
    },
    /// A process stands still.
    Stall {
        /// Which node; `None`: a subscriber.
        target: Option<Target>,
        /// How long, in nanoseconds.
        for_ns: u64,
        /// It stops between a decision and the sending of what was decided.
        in_mid_step: bool,
    },
    /// Links are cut for a time.
    Partition {
        /// Which ones.
        cut: Cut,
        /// How.
        direction: Direction,
        /// How long, in nanoseconds.
        for_ns: u64,
        /// Connections over them are reset besides.
        resets: bool,
        /// A host dies so long behind the cut, and is away for so long.
        crash: Option<(Target, u64, u64)>,
    },
    /// Connections between these are reset, and made anew.
    Reset {
        /// As a cut would take them.
        cut: Cut,
    },
    /// A publisher dies and comes back at once, in a new incarnation.
    PublisherCrash,
    /// An operator has the Backup lead.
    Switchover,
    /// A second process with a node's name starts on another host, with a copy of the node's disk, and dies for good.
    Clone {
        /// The node.
        target: Target,
        /// How long after the copy it starts, in nanoseconds.
        starts_after_ns: u64,
        /// How long it lives, in nanoseconds.
        lives_ns: u64,
        /// What its connections do.
        ending: Ending,
        /// How long after the copy the node's connections to the other nodes are reset.
        reset_after_ns: Option<u64>,
        /// How long after the copy the node itself dies, what its connections do, and how long it is away.
        crash: Option<(u64, Ending, u64)>,
    },
    /// The clock that shows UTC is set at a host, and set right after a while. Monotonic clocks go on as before.
    ClockSet {
        /// The host.
        host: ClockHost,
        /// By how much it is ahead then, in nanoseconds.
        step_ns: i64,
        /// How long, in nanoseconds.
        for_ns: u64,
        /// How long after that the Primary's host dies, and how long it is away.
        crash: Option<(u64, u64)>,
    },
    /// An operator restarts nodes with another lease, one after the other, and again with the former one.
    LeaseChange {
        /// The other lease, in nanoseconds.
        lease_ns: u64,
        /// It is longer than one after the other may be given.
        is_jump: bool,
        /// The nodes in the order of their restarts.
        there: [Node; 3],
        /// How many of them get the other lease.
        nodes: usize,
        /// The order in which they get the former lease again.
        back: [Node; 3],
        /// How long after one restart the next one comes, in nanoseconds.
        pause_ns: u64,
    },
    /// What the other nodes send to a candidate takes long, and after a while what it sends gets nowhere.
    SlowWays {
        /// The node. Where it is the Backup, the Primary is cut off at first, so that it asks for votes.
        target: Target,
        /// How much longer it takes, in nanoseconds.
        by_ns: u64,
        /// How long the Primary is cut off.
        primary_cut_ns: u64,
        /// After how long what the node sends gets nowhere.
        cut_after_ns: u64,
        /// For how long.
        cut_for_ns: u64,
    },
    /// The disk of a node takes long, or takes nothing.
    SlowDisk {
        /// The node.
        target: Target,
        /// How the disk fails.
        disk: Disk,
        /// How long, in nanoseconds.
        for_ns: u64,
        /// How long after that the Primary's host dies, and how long it is away.
        crash: Option<(u64, u64)>,
    },
}

impl Fault {
    /// Its kind.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Crash { target: Target::Backup, other_after_ns: Some(_), .. } => FaultKind::PrimaryCrashAtRejoin,
            Self::Crash { other_after_ns: Some(_), .. } => FaultKind::CrashAtPromotion,
            Self::Crash { again_after_ns: Some(_), .. } => FaultKind::CrashAtRejoin,
            Self::Crash { ending: Ending::Vanish, .. } => FaultKind::HostCrash,
            Self::Crash { .. } => FaultKind::ProcessCrash,
            Self::Stall { .. } => FaultKind::Stall,
            Self::Partition { crash: Some(_), .. } => FaultKind::CrashInPartition,
            Self::Partition { .. } => FaultKind::Partition,
            Self::Reset { .. } => FaultKind::Reset,
            Self::PublisherCrash => FaultKind::PublisherCrash,
            Self::Switchover => FaultKind::Switchover,
            Self::Clone { crash: Some(_), .. } => FaultKind::ClonedNodeCrash,
            Self::Clone { reset_after_ns: Some(_), .. } => FaultKind::CloneAndReset,
            Self::Clone { .. } => FaultKind::Clone,
            Self::ClockSet { crash: Some(_), .. } => FaultKind::CrashWithWrongClock,
            Self::ClockSet { .. } => FaultKind::ClockSet,
            Self::LeaseChange { is_jump: true, .. } => FaultKind::LeaseJump,
            Self::LeaseChange { .. } => FaultKind::LeaseChange,
            Self::SlowWays { .. } => FaultKind::SlowWays,
            Self::SlowDisk { crash: Some(_), .. } => FaultKind::CrashWithSlowDisk,
            Self::SlowDisk { .. } => FaultKind::SlowDisk,
        }
    }
}

/// Draws faults. Lengths are drawn so that they lie on both sides of the lease.
#[derive(Clone, Debug)]
pub struct Plan {
    random: Random,
    /// For the kinds that were added later, so that a seed's other faults stay as they are.
    later: Random,
    lease_ns: u64,
}

impl Plan {
    /// The faults that `random` gives, for leases of this length.
    pub fn new(random: Random, lease_ns: u64) -> Self {
        let later = random.clone().fork();
        Self { random, later, lease_ns }
    }

    /// Whether the node that has the messages is silent for about the four leases after which voters let a node without them lead.
    pub fn silences_memories(&self, fault: &Fault) -> bool {
        matches!(*fault, Fault::SlowWays { target: Target::Backup, cut_for_ns, .. } if cut_for_ns > 3 * self.lease_ns)
    }

    /// How long the whole cloud is left alone before the next fault, in nanoseconds.
    pub fn pause_ns(&mut self) -> u64 {
        self.random.between(0, 25 * MILLISECOND_NS)
    }

    /// The next fault.
    pub fn draw(&mut self) -> Fault {
        match self.later.below(100) {
            0..10 => return self.clone_of_a_node(),
            10..20 => return self.wrong_clock(),
            20..30 => return self.slow_disk(),
            30..33 => return self.lease_change(),
            33..37 => return self.slow_ways(),
            _ => {}
        }
        match self.random.below(100) {
            0..70 => self.crash(),
            70..82 => self.stall(),
            82..90 => self.partition(),
            90..94 => self.interregnum(),
            94..96 => Fault::Reset { cut: self.random.pick(&CUTS) },
            96..98 => Fault::Switchover,
            _ => Fault::PublisherCrash,
        }
    }

    fn crash(&mut self) -> Fault {
        let target = match self.random.below(10) {
            0..7 => Target::Primary,
            7..9 => Target::Backup,
            _ => Target::Witness,
        };
        let ending = match self.random.below(10) {
            0..2 => Ending::Flush,
            2..4 => Ending::Reset,
            _ => Ending::Vanish,
        };
        let twice = self.random.chance(1, 8) && target != Target::Witness;
        let both = !twice && target != Target::Witness && self.random.chance(1, 25);
        let down_ns = self.around_lease();
        let other_after_ns = match target {
            Target::Primary => self.random.between(0, 2 * self.lease_ns),
            Target::Backup | Target::Witness => down_ns + self.random.between(0, 4 * MILLISECOND_NS),
        };
        Fault::Crash {
            target,
            ending,
            down_ns,
            again_after_ns: twice.then(|| self.random.between(0, 4 * MILLISECOND_NS)),
            other_after_ns: both.then_some(other_after_ns),
        }
    }

    fn stall(&mut self) -> Fault {
        let target = match self.random.below(10) {
            0..5 => Some(Target::Primary),
            5..7 => Some(Target::Backup),
            7 => Some(Target::Witness),
            _ => None,
        };
        Fault::Stall { target, for_ns: self.around_lease(), in_mid_step: self.random.chance(1, 2) }
    }

    fn partition(&mut self) -> Fault {
        let for_ns = self.around_lease();
        let target = self.random.pick(&[Target::Primary, Target::Backup, Target::Witness]);
        // Some are back before anybody misses them: what they have promised before still holds.
        let crash = (target, self.random.between(0, for_ns), self.random.between(50 * MICROSECOND_NS, self.lease_ns));
        Fault::Partition {
            cut: self.random.pick(&CUTS),
            direction: self.random.pick(&[Direction::Both, Direction::Both, Direction::Out, Direction::In]),
            for_ns,
            resets: self.random.chance(1, 4),
            crash: self.random.chance(1, 3).then_some(crash),
        }
    }

    /// The Primary, or a part of its links, is cut off until the Backup leads, about, and then that dies: the first one leads again, with what it had and with sessions that
    /// have heard of another leader.
    fn interregnum(&mut self) -> Fault {
        let after_ns = self.random.between(self.lease_ns / 2, self.lease_ns * 2);
        let cuts = [Cut::AroundPrimary, Cut::AroundPrimary, Cut::AroundPrimary, Cut::Pair, Cut::PrimaryWitness, Cut::PrimarySubscriber];
        Fault::Partition {
            cut: self.random.pick(&cuts),
            direction: self.random.pick(&[Direction::Both, Direction::Both, Direction::Out, Direction::In]),
            for_ns: self.random.between(self.lease_ns / 2, self.lease_ns * 4),
            resets: self.random.chance(1, 8),
            crash: Some((Target::Backup, after_ns, self.random.between(50 * MICROSECOND_NS, self.lease_ns))),
        }
    }

    /// A clone of a node lives from below to ten times the lease: it is refused at first, and may become the node when that is dead for two leases.
    fn clone_of_a_node(&mut self) -> Fault {
        let random = &mut self.later;
        let target = random.pick(&[Target::Primary, Target::Primary, Target::Backup, Target::Backup, Target::Witness]);
        let most_ns = random.pick(&[self.lease_ns / 2, self.lease_ns * 3 / 2, self.lease_ns * 5, self.lease_ns * 10]);
        let endings = [Ending::Flush, Ending::Reset, Ending::Vanish];
        let starts_after_ns = random.between(0, self.lease_ns * 2);
        let lives_ns = random.between(50 * MICROSECOND_NS, most_ns);
        let dies_after_ns = random.between(0, starts_after_ns + lives_ns);
        let down_ns = random.between(50 * MICROSECOND_NS, self.lease_ns * 5);
        let crash = (dies_after_ns, random.pick(&endings), down_ns);
        let (ending, crash) = (random.pick(&endings), random.chance(1, 2).then_some(crash));
        // Promises keep the Primary's name while it is not connected; another node's name is free then.
        let resets = target == Target::Primary && crash.is_none() && random.chance(1, 2);
        let reset_after_ns = resets.then(|| random.between(starts_after_ns, starts_after_ns + lives_ns));
        Fault::Clone { target, starts_after_ns, lives_ns, ending, reset_after_ns, crash }
    }

    /// A clock that is set by a millisecond to half a day, ahead or back.
    fn wrong_clock(&mut self) -> Fault {
        let random = &mut self.later;
        let node = ClockHost::Node(random.pick(&[Target::Primary, Target::Primary, Target::Backup, Target::Witness]));
        let host = random.pick(&[node, node, ClockHost::Publisher, ClockHost::Publisher, ClockHost::Subscriber]);
        let most_ns = random.pick(&[10 * MILLISECOND_NS, SECOND_NS, 3_600 * SECOND_NS, 43_200 * SECOND_NS]);
        let by_ns = random.between(MILLISECOND_NS, most_ns).cast_signed();
        let for_ns = random.between(MILLISECOND_NS, self.lease_ns * 10);
        let crash = (random.between(0, for_ns), random.between(50 * MICROSECOND_NS, self.lease_ns * 5));
        Fault::ClockSet { host, step_ns: random.pick(&[by_ns, -by_ns]), for_ns, crash: random.chance(1, 2).then_some(crash) }
    }

    /// A disk that is slow or full for up to ten leases. The Backup's is tried more often than the witness's.
    fn slow_disk(&mut self) -> Fault {
        let random = &mut self.later;
        let target = random.pick(&[Target::Backup, Target::Backup, Target::Backup, Target::Witness]);
        let slow = Disk::Slow { most_ns: random.between(self.lease_ns / 2, self.lease_ns * 4) };
        let disk = random.pick(&[slow, Disk::Full]);
        let for_ns = random.between(MILLISECOND_NS, self.lease_ns * 10);
        let crash = (random.between(0, for_ns), random.between(50 * MICROSECOND_NS, self.lease_ns * 5));
        Fault::SlowDisk { target, disk, for_ns, crash: random.chance(1, 2).then_some(crash) }
    }

    /// Another lease for some of the nodes or all: at most twice as long, as one after the other may be given it, or up to four times as long.
    fn lease_change(&mut self) -> Fault {
        let is_jump = self.later.chance(1, 2);
        let (least_ns, most_ns) = if is_jump {
            (self.lease_ns * LEASE_FACTOR, self.lease_ns * LEASE_JUMP)
        } else {
            (self.lease_ns * 7 / 10, self.lease_ns * LEASE_FACTOR)
        };
        let lease_ns = self.later.between(least_ns, most_ns);
        let nodes = self.later.between(1, 3) as usize;
        // Behind the silence of a restarted node, which is twice the longest of its leases.
        let pause_ns = self.lease_ns * 10;
        Fault::LeaseChange { lease_ns, is_jump, there: self.order(), nodes, back: self.order(), pause_ns }
    }

    /// Ways that take nearly a lease, and a cut about when the Primary's grants, or the Backup's first votes, are under way.
    fn slow_ways(&mut self) -> Fault {
        let (random, lease_ns) = (&mut self.later, self.lease_ns);
        let target = random.pick(&[Target::Primary, Target::Backup]);
        let cut_from_ns = if target == Target::Primary { 0 } else { lease_ns * 9 / 10 };
        Fault::SlowWays {
            target,
            by_ns: random.between(lease_ns / 4, lease_ns * 9 / 10),
            primary_cut_ns: random.between(lease_ns, lease_ns * 2),
            cut_after_ns: random.between(cut_from_ns, lease_ns * 2),
            cut_for_ns: random.between(lease_ns, lease_ns * 4),
        }
    }

    /// The three nodes in any order.
    fn order(&mut self) -> [Node; 3] {
        let mut order = Node::ALL;
        order.swap(0, self.later.below(3) as usize);
        order.swap(1, 1 + self.later.below(2) as usize);
        order
    }

    /// From well below the lease to several times it.
    fn around_lease(&mut self) -> u64 {
        let most = self.random.pick(&[self.lease_ns / 2, self.lease_ns * 3 / 2, self.lease_ns * 5]);
        self.random.between(50 * MICROSECOND_NS, most)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_of_fault_is_drawn() {
        let mut plan = Plan::new(Random::new(5), 10 * MILLISECOND_NS);
        let kinds: BTreeSet<FaultKind> = (0..3_000).map(|_| plan.draw().kind()).collect();
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), FAULT_KINDS);
    }

    #[test]
    fn faults_last_less_and_more_than_a_lease() {
        let lease_ns = 10 * MILLISECOND_NS;
        let mut plan = Plan::new(Random::new(5), lease_ns);
        let lengths: Vec<u64> = (0..200).map(|_| plan.around_lease()).collect();
        assert!(lengths.iter().any(|length| *length < lease_ns / 2));
        assert!(lengths.iter().any(|length| *length > 2 * lease_ns));
    }
}
