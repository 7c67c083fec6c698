//! What a schedule is made of: chance, a node with its clock and disk, what can happen.

use super::*;

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

pub(super) struct Process {
    /// The name that it greets with; a clone has the name of another process.
    pub(super) node: Node,
    pub(super) incarnation: Incarnation,
    /// Connections by the other process: the connection, and when something arrived on it last.
    pub(super) connections: BTreeMap<usize, Connection>,
    pub(super) member: Option<Member>,
    pub(super) run: u64,
    pub(super) disk: Record,
    /// The commits on the disk.
    pub(super) log: u64,
    pub(super) offset_ns: u64,
    pub(super) drift_ppm: i64,
    pub(super) stalled_until: u64,
    /// What it will find when it goes on, in order.
    pub(super) backlog: Vec<Event>,
    pub(super) timer_at: Option<u64>,
}

impl Process {
    pub(super) fn new(node: Node, disk: Record, random: &mut Random) -> Self {
        Self {
            node,
            incarnation: Incarnation(0),
            connections: BTreeMap::new(),
            member: None,
            run: 0,
            disk,
            log: 0,
            offset_ns: random.below(1 << 40),
            drift_ppm: random.below(2 * u64::from(DRIFT_PPM) + 1) as i64 - i64::from(DRIFT_PPM),
            stalled_until: 0,
            backlog: Vec::new(),
            timer_at: None,
        }
    }

    pub(super) fn local(&self, now: u64) -> Instant {
        let drifted = i128::from(now) + i128::from(now) * i128::from(self.drift_ppm) / 1_000_000;
        Instant::from_nanos(self.offset_ns + drifted as u64)
    }

    pub(super) fn true_time(&self, local: Instant) -> u64 {
        let elapsed = i128::from(local.nanos().saturating_sub(self.offset_ns));
        let mut time = (elapsed * 1_000_000 / (1_000_000 + i128::from(self.drift_ppm))) as u64;
        while self.local(time) < local {
            time += 1;
        }
        time
    }

    pub(super) fn accepting(&self, now: u64) -> Option<Epoch> {
        let (epoch, until) = self.member.as_ref()?.leading()?;
        (self.local(now) < until).then_some(epoch)
    }
}

/// One end of a connection between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) heard_at: u64,
    /// The other end has accepted the greeting: ballots go over it.
    pub(super) is_greeted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Message {
    /// The first frame of the side that connects, and the answer.
    Greeting(Incarnation),
    Accepted(Incarnation),
    /// The greeting is refused; true: another process of the node is known to run.
    Rejected(bool),
    /// The other end has closed the connection.
    End,
    Ballot(usize),
    /// The whole log of the leader of an epoch, or one more commit in it; a bit is a commit.
    Snapshot(Epoch, u64),
    Commit(Epoch, u64),
    Acked(Epoch, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// Of one run of a node.
    Timer {
        node: usize,
        run: u64,
    },
    Persisted {
        node: usize,
        run: u64,
    },
    /// Heartbeats, and connections to the nodes that are not connected.
    Beat {
        node: usize,
        run: u64,
    },
    /// Over one connection.
    Deliver {
        from: usize,
        to: usize,
        connection: Option<u64>,
        message: Message,
    },
    Restart {
        node: usize,
    },
    Wake {
        node: usize,
    },
    Heal {
        from: usize,
        to: usize,
    },
    /// The clients' commits and the leader's care for its Backup.
    Work,
    Fault,
}
