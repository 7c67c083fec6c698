//! The three nodes, their links and disks, and what is looked at in every step.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    process::{Event, Message, Process, Random},
    *,
};

/// The replica channel of the leader.
pub(super) struct Channel {
    pub(super) connection: u64,
    pub(super) epoch: Epoch,
    pub(super) acked: u64,
    pub(super) in_sync: bool,
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) random: Random,
    pub(super) now: u64,
    pub(super) events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pub(super) event_count: u64,
    pub(super) ballots: Vec<Ballot>,
    pub(super) nodes: [Process; 3],
    pub(super) cut: [[bool; 3]; 3],
    pub(super) lossy: bool,
    pub(super) faults: bool,
    /// Whether operators have leaders hand over now and then.
    pub(super) operators: bool,
    pub(super) channel: Option<Channel>,
    pub(super) connections: u64,
    pub(super) last_arrival: [[u64; 3]; 3],
    pub(super) led: BTreeMap<Epoch, (usize, u64)>,
    pub(super) commits: u32,
    pub(super) answered: u64,
    pub(super) handed_over: u32,
    pub(super) outputs: Vec<Output>,
    pub(super) leaderless_since: Option<u64>,
    pub(super) longest_gap: u64,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let nodes = std::array::from_fn(|_| Process {
            member: None,
            run: 0,
            disk: Record::NEW,
            log: 0,
            offset_ns: random.below(1 << 40),
            drift_ppm: random.below(2 * u64::from(DRIFT_PPM) + 1) as i64 - i64::from(DRIFT_PPM),
            stalled_until: 0,
            backlog: Vec::new(),
            timer_at: None,
        });
        let mut world = Self {
            seed,
            random,
            now: 0,
            events: BinaryHeap::new(),
            event_count: 0,
            ballots: Vec::new(),
            nodes,
            cut: [[false; 3]; 3],
            lossy: false,
            faults: false,
            operators: false,
            channel: None,
            connections: 0,
            last_arrival: [[0; 3]; 3],
            led: BTreeMap::new(),
            commits: 0,
            answered: 0,
            handed_over: 0,
            outputs: Vec::new(),
            leaderless_since: Some(0),
            longest_gap: 0,
        };
        (0..3).for_each(|node| world.start(node));
        world.at(0, Event::Work);
        world
    }

    pub(super) fn at(&mut self, time: u64, event: Event) {
        self.event_count += 1;
        self.events.push(Reverse((time, self.event_count, event)));
    }

    fn start(&mut self, node: usize) {
        let config = MemberConfig::new(
            Node::ALL[node],
            Mode::Majority,
            Duration::from_nanos(LEASE_NS),
            Duration::from_nanos(HEARTBEAT_NS),
            DRIFT_PPM,
        );
        let process = &mut self.nodes[node];
        process.run += 1;
        process.member = Some(Member::new(config.expect("good times"), process.disk, process.local(self.now)));
        self.step(node, Input::Tick);
    }

    pub(super) fn crash(&mut self, node: usize) {
        self.nodes[node].member = None;
        self.nodes[node].timer_at = None;
    }

    fn step(&mut self, node: usize, input: Input) {
        let mut outputs = std::mem::take(&mut self.outputs);
        let local = self.nodes[node].local(self.now);
        let Some(member) = &mut self.nodes[node].member else { return };
        member.step(local, input, &mut outputs);
        for output in outputs.drain(..) {
            self.carry_out(node, output);
        }
        self.outputs = outputs;
        let process = &mut self.nodes[node];
        let timer = process.member.as_ref().and_then(Member::next_timer).map(|at| process.true_time(at).max(self.now));
        if let Some(at) = timer.filter(|at| process.timer_at.is_none_or(|earlier| *at < earlier || earlier <= self.now)) {
            process.timer_at = Some(at);
            let (run, late) = (process.run, self.random.below(TIMER_LATE_NS));
            self.at(at + late, Event::Timer { node, run });
        }
        self.answer(node);
        self.check();
    }

    fn carry_out(&mut self, node: usize, output: Output) {
        match output {
            Output::Send { to, ballot } => {
                self.ballots.push(ballot);
                let message = Message::Ballot(self.ballots.len() - 1);
                let copies = if self.lossy { [0, 1, 1, 2][self.random.below(4) as usize] } else { 1 };
                for _ in 0..copies {
                    let longest = if self.lossy && self.random.one_in(8) { 3 * LEASE_NS } else { DELAY_NS };
                    let arrival = self.now + 1 + self.random.below(longest);
                    self.at(arrival, Event::Deliver { from: node, to: to as usize, connection: None, message });
                }
            }
            Output::Persist(_) => {
                let written = self.now + 1 + self.random.below(DISK_NS);
                self.at(written, Event::Persisted { node, run: self.nodes[node].run });
            }
            Output::Lead { epoch, .. } => {
                let leader = (node, self.nodes[node].run);
                let before = *self.led.entry(epoch).or_insert(leader);
                assert_eq!(before, leader, "seed {}: epoch {epoch} is led twice", self.seed);
                let log = self.nodes[node].log;
                assert_eq!(self.answered & !log, 0, "seed {}: node {node} leads epoch {epoch} without what was answered", self.seed);
            }
            Output::Fenced { .. } | Output::Follow { .. } | Output::Protection(_) | Output::Tell(_) => {}
        }
    }

    pub(super) fn check(&mut self) {
        let accepting: Vec<_> = (0..3).filter(|node| self.nodes[*node].accepting(self.now).is_some()).collect();
        assert!(accepting.len() <= 1, "seed {}: nodes {accepting:?} lead at {}", self.seed, self.now);
        match (accepting.is_empty(), self.leaderless_since) {
            (true, None) => self.leaderless_since = Some(self.now),
            (false, Some(since)) => {
                self.longest_gap = self.longest_gap.max(self.now - since);
                self.leaderless_since = None;
            }
            _ => {}
        }
    }

    /// A commit is answered by an accepting leader when the Backup has it, or the leader may do without.
    fn answer(&mut self, node: usize) {
        let process = &self.nodes[node];
        let Some(epoch) = process.accepting(self.now) else { return };
        let channel = self.channel.as_ref().filter(|channel| channel.epoch == epoch);
        let alone = process.member.as_ref().is_some_and(|member| member.protection() == Protection::Alone);
        self.answered |= if alone { process.log } else { process.log & channel.map_or(0, |channel| channel.acked) };
    }

    fn send_replica(&mut self, from: usize, to: usize, message: Message) {
        let connection = self.channel.as_ref().map(|channel| channel.connection);
        let arrival = (self.now + 1 + self.random.below(DELAY_NS)).max(self.last_arrival[from][to]);
        self.last_arrival[from][to] = arrival;
        self.at(arrival, Event::Deliver { from, to, connection, message });
    }

    /// The leader commits, opens a channel to its partner, or gives it up.
    fn work(&mut self) {
        let next = self.now + 1 + self.random.below(2_000);
        self.at(next, Event::Work);
        let Some(leader) = (0..2).find(|node| self.nodes[*node].accepting(self.now).is_some()) else { return };
        let partner = 1 - leader;
        let epoch = self.nodes[leader].accepting(self.now).expect("it leads");
        if self.commits < 60 && self.random.one_in(3) {
            self.nodes[leader].log |= 1 << self.commits;
            if self.channel.as_ref().is_some_and(|channel| channel.epoch == epoch) {
                self.send_replica(leader, partner, Message::Commit(epoch, 1 << self.commits));
            }
            self.commits += 1;
        }
        if self.operators && self.random.one_in(12) {
            return self.hand_over(leader);
        }
        let follows = self.nodes[partner].member.as_ref().is_some_and(|member| member.epoch() == epoch && member.leading().is_none());
        let connected = follows && !self.cut[leader][partner] && !self.cut[partner][leader];
        match &self.channel {
            Some(channel) if channel.epoch != epoch || !connected || self.lossy && self.random.one_in(20) => {
                self.channel = None;
                self.step(leader, Input::BackupOut);
            }
            None if connected => {
                self.connections += 1;
                self.channel = Some(Channel { connection: self.connections, epoch, acked: 0, in_sync: false });
                let log = self.nodes[leader].log;
                self.send_replica(leader, partner, Message::Snapshot(epoch, log));
            }
            None if self.random.one_in(4) => self.step(leader, Input::BackupOut),
            _ => {}
        }
    }

    /// An operator wants the other candidate to lead.
    pub(super) fn hand_over(&mut self, leader: usize) {
        let led = self.nodes[leader].accepting(self.now);
        self.step(leader, Input::HandOver);
        self.handed_over += u32::from(led.is_some() && self.nodes[leader].accepting(self.now).is_none());
    }

    fn deliver(&mut self, from: usize, to: usize, connection: Option<u64>, message: Message) {
        let is_open = self.channel.as_ref().map(|channel| channel.connection) == connection;
        if self.cut[from][to] || self.nodes[to].member.is_none() || connection.is_some() && !is_open {
            return;
        }
        let follows = |world: &Self, epoch| world.nodes[to].member.as_ref().is_some_and(|member| member.epoch() == epoch);
        match message {
            Message::Ballot(index) => {
                let input = Input::Received { from: Node::ALL[from], ballot: self.ballots[index] };
                self.step(to, input);
            }
            Message::Snapshot(epoch, log) if follows(self, epoch) => {
                self.nodes[to].log = log;
                self.step(to, Input::Warm { epoch });
                self.send_replica(to, from, Message::Acked(epoch, log));
            }
            Message::Commit(epoch, commit) if follows(self, epoch) => {
                self.nodes[to].log |= commit;
                self.send_replica(to, from, Message::Acked(epoch, self.nodes[to].log));
            }
            Message::Acked(epoch, log) if self.nodes[to].accepting(self.now) == Some(epoch) => {
                let all = self.nodes[to].log;
                let channel = self.channel.as_mut().expect("it is open");
                channel.acked |= log;
                if channel.acked == all && !channel.in_sync {
                    channel.in_sync = true;
                    self.step(to, Input::BackupInSync);
                }
                self.answer(to);
            }
            Message::Snapshot(..) | Message::Commit(..) | Message::Acked(..) => {}
        }
    }

    fn fault(&mut self) {
        if !self.faults {
            return;
        }
        let next = self.now + 1 + self.random.below(4 * LEASE_NS);
        self.at(next, Event::Fault);
        let (node, other) = (self.random.below(3) as usize, self.random.below(3) as usize);
        let lasts = 1 + self.random.below(6 * LEASE_NS);
        match self.random.below(6) {
            0 | 1 if self.nodes[node].member.is_some() => {
                // What was being written may have reached the disk.
                if let Some(writing) = self.nodes[node].member.as_ref().and_then(|member| member.writing)
                    && self.random.one_in(2)
                {
                    self.nodes[node].disk = writing;
                }
                self.crash(node);
                self.at(self.now + lasts, Event::Restart { node });
            }
            2 => {
                self.nodes[node].stalled_until = self.now + lasts;
                self.at(self.now + lasts, Event::Wake { node });
            }
            3 => {
                self.cut[node][other] = true;
                self.at(self.now + lasts, Event::Heal { from: node, to: other });
            }
            4 => {
                for (from, to) in [(node, other), (other, node)] {
                    self.cut[from][to] = true;
                    self.at(self.now + lasts, Event::Heal { from, to });
                }
            }
            _ => self.lossy = !self.lossy,
        }
    }

    /// Carries out what is due, or puts it off until its node is not stalled any more.
    fn happen(&mut self, event: Event) {
        let busy = match event {
            Event::Timer { node, .. } | Event::Persisted { node, .. } | Event::Deliver { to: node, .. } => Some(node),
            Event::Wake { .. } | Event::Restart { .. } | Event::Heal { .. } | Event::Work | Event::Fault => None,
        };
        if let Some(node) = busy.filter(|node| self.nodes[*node].stalled_until > self.now) {
            self.nodes[node].backlog.push(event);
            return;
        }
        match event {
            Event::Timer { node, run } => {
                if self.nodes[node].run == run {
                    self.nodes[node].timer_at = None;
                    self.step(node, Input::Tick);
                }
            }
            Event::Persisted { node, run } => {
                if self.nodes[node].run == run
                    && let Some(member) = &self.nodes[node].member
                {
                    self.nodes[node].disk = member.writing.expect("it was written");
                    self.step(node, Input::Persisted);
                }
            }
            Event::Deliver { from, to, connection, message } => self.deliver(from, to, connection, message),
            Event::Wake { node } => {
                for event in std::mem::take(&mut self.nodes[node].backlog) {
                    self.happen(event);
                }
            }
            Event::Restart { node } => {
                if self.nodes[node].member.is_none() {
                    self.start(node);
                }
            }
            Event::Heal { from, to } => self.cut[from][to] = false,
            Event::Work => self.work(),
            Event::Fault => self.fault(),
        }
    }

    pub(super) fn run_for(&mut self, nanos: u64) {
        let end = self.now + nanos;
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            if time > end {
                self.at(time, event);
                break;
            }
            self.now = time.max(self.now);
            self.check();
            self.happen(event);
        }
        self.now = end;
        self.check();
    }

    /// Everything works again, but what is broken for good.
    pub(super) fn heal(&mut self, dead: Option<usize>) {
        (self.faults, self.lossy) = (false, false);
        self.cut = [[false; 3]; 3];
        for node in 0..3 {
            self.nodes[node].stalled_until = 0;
            self.at(self.now, Event::Wake { node });
            if dead == Some(node) {
                self.crash(node);
            } else if self.nodes[node].member.is_none() {
                self.start(node);
            }
        }
    }

    pub(super) fn leader(&self) -> Option<usize> {
        (0..2).find(|node| self.nodes[*node].accepting(self.now).is_some())
    }

    /// Whether this candidate lacks something, as far as those who live know.
    pub(super) fn is_out(&self, candidate: usize, dead: usize) -> bool {
        let records = (0..3).filter(|node| *node != dead).map(|node| self.nodes[node].disk.standing);
        records.max().is_some_and(|standing| standing.out == Some(Node::ALL[candidate]))
    }
}
