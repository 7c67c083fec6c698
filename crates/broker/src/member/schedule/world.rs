//! The three nodes, their links and disks, and what is looked at in every step.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    process::{Connection, Event, Message, Process, Random},
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
    /// The first three are the configured nodes, in their order; clones follow.
    pub(super) nodes: Vec<Process>,
    pub(super) incarnations: u64,
    /// As before incarnations counted: a node's newest connection replaces the one before, and ballots count by name.
    pub(super) by_name: bool,
    /// Instants at which two processes led, which is an error unless `by_name`.
    pub(super) double_leads: u32,
    /// Greetings that were refused because another process of the node is known to run.
    pub(super) duplicates: u32,
    pub(super) cut: [[bool; PROCESSES_MAX]; PROCESSES_MAX],
    pub(super) lossy: bool,
    pub(super) faults: bool,
    /// Whether operators have leaders hand over now and then.
    pub(super) operators: bool,
    pub(super) channel: Option<Channel>,
    pub(super) connections: u64,
    pub(super) last_arrival: [[u64; PROCESSES_MAX]; PROCESSES_MAX],
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
        let nodes = Node::ALL.map(|node| Process::new(node, Record::NEW, &mut random)).into();
        let mut world = Self {
            seed,
            random,
            now: 0,
            events: BinaryHeap::new(),
            event_count: 0,
            ballots: Vec::new(),
            nodes,
            incarnations: 0,
            by_name: false,
            double_leads: 0,
            duplicates: 0,
            cut: [[false; PROCESSES_MAX]; PROCESSES_MAX],
            lossy: false,
            faults: false,
            operators: false,
            channel: None,
            connections: 0,
            last_arrival: [[0; PROCESSES_MAX]; PROCESSES_MAX],
            led: BTreeMap::new(),
            commits: 0,
            answered: 0,
            handed_over: 0,
            outputs: Vec::new(),
            leaderless_since: Some(0),
            longest_gap: 0,
        };
        world.at(0, Event::Work);
        world
    }

    /// A world whose three nodes start at once.
    pub(super) fn started(seed: u64) -> Self {
        let mut world = Self::new(seed);
        (0..3).for_each(|node| world.start(node));
        world
    }

    /// Adds a process that has another one's name, and starts it; with a copy of its disk, or with a new one.
    pub(super) fn clone_of(&mut self, node: usize, copies_disk: bool) -> usize {
        let record = if copies_disk { self.nodes[node].disk } else { Record::NEW };
        let mut process = Process::new(self.nodes[node].node, record, &mut self.random);
        process.log = if copies_disk { self.nodes[node].log } else { 0 };
        self.nodes.push(process);
        self.start(self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    pub(super) fn at(&mut self, time: u64, event: Event) {
        self.event_count += 1;
        self.events.push(Reverse((time, self.event_count, event)));
    }

    pub(super) fn start(&mut self, node: usize) {
        let config = MemberConfig::new(
            self.nodes[node].node,
            Mode::Majority,
            Duration::from_nanos(LEASE_NS),
            Duration::from_nanos(HEARTBEAT_NS),
            DRIFT_PPM,
        );
        let config = config.expect("good times").with_new_pair(PairId(1));
        self.incarnations += 1;
        let process = &mut self.nodes[node];
        process.run += 1;
        process.incarnation = Incarnation(if self.by_name { process.node as u64 } else { self.incarnations });
        process.member = Some(Member::new(config, process.disk, process.local(self.now)));
        let run = process.run;
        self.step(node, Input::Tick);
        self.at(self.now, Event::Beat { node, run });
    }

    /// Ends a process: the system closes its connections, which the others learn if no link is cut.
    pub(super) fn crash(&mut self, node: usize) {
        let connections = std::mem::take(&mut self.nodes[node].connections);
        for (peer, Connection { number, .. }) in connections {
            self.send_on(node, peer, number, Message::End);
        }
        self.nodes[node].member = None;
        self.nodes[node].timer_at = None;
    }

    pub(super) fn step(&mut self, node: usize, input: Input) {
        let mut outputs = std::mem::take(&mut self.outputs);
        let local = self.nodes[node].local(self.now);
        let Some(member) = &mut self.nodes[node].member else { return };
        member.step(local, input, &mut outputs);
        self.carry_all_out(node, outputs);
    }

    pub(super) fn carry_all_out(&mut self, node: usize, mut outputs: Vec<Output>) {
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
                let Some((to, connection)) = self.connection_to(node, to) else { return };
                self.ballots.push(ballot);
                let message = Message::Ballot(self.ballots.len() - 1);
                if matches!(ballot, Ballot::Sighting { .. }) {
                    return self.send_on(node, to, connection, message);
                }
                let connection = Some(connection);
                let copies = if self.lossy { [0, 1, 1, 2][self.random.below(4) as usize] } else { 1 };
                for _ in 0..copies {
                    let longest = if self.lossy && self.random.one_in(8) { 3 * LEASE_NS } else { DELAY_NS };
                    let arrival = self.now + 1 + self.random.below(longest);
                    self.at(arrival, Event::Deliver { from: node, to, connection, message });
                }
            }
            Output::Persist(_) => {
                // A disk may be slow, or full for a while.
                let most_ns = if self.faults && self.random.one_in(8) { SLOW_DISK_NS } else { DISK_NS };
                let written = self.now + 1 + self.random.below(most_ns);
                self.at(written, Event::Persisted { node, run: self.nodes[node].run });
            }
            Output::Lead { epoch, .. } => {
                let leader = (node, self.nodes[node].run);
                let before = *self.led.entry(epoch).or_insert(leader);
                assert!(before == leader || self.by_name, "seed {}: epoch {epoch} is led twice", self.seed);
                let highest = self.led.keys().next_back().copied();
                assert!(highest == Some(epoch) || self.by_name, "seed {}: epoch {epoch} is led after {highest:?}", self.seed);
                // A clone with a new disk is a node whose record is lost: what it lacks is outside the promise.
                let log = if self.nodes.len() > 3 { u64::MAX } else { self.nodes[node].log };
                assert_eq!(self.answered & !log, 0, "seed {}: node {node} leads epoch {epoch} without what was answered", self.seed);
            }
            Output::Disconnect { node: name, refusal } => self.reject_connected(node, name, refusal),
            Output::Fenced { .. } | Output::Follow { .. } | Output::Protection(_) | Output::Tell(_) => {}
        }
    }

    pub(super) fn check(&mut self) {
        let accepting: Vec<_> = (0..self.nodes.len()).filter(|node| self.nodes[*node].accepting(self.now).is_some()).collect();
        self.double_leads += u32::from(accepting.len() > 1);
        assert!(accepting.len() <= 1 || self.by_name, "seed {}: nodes {accepting:?} lead at {}", self.seed, self.now);
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
        let Some(leader) = self.leader() else { return };
        let name = self.nodes[leader].node.partner().expect("a candidate leads");
        let partner = self.connection_to(leader, name).map_or(name as usize, |(partner, _)| partner);
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
        let is_channel = matches!(message, Message::Snapshot(..) | Message::Commit(..) | Message::Acked(..));
        let is_open = self.channel.as_ref().map(|channel| channel.connection) == connection;
        if self.cut[from][to] || self.nodes[to].member.is_none() || is_channel && !is_open {
            return;
        }
        let follows = |world: &Self, epoch| world.nodes[to].member.as_ref().is_some_and(|member| member.epoch() == epoch);
        match message {
            Message::Greeting(_) | Message::Accepted(_) | Message::Rejected(_) | Message::End | Message::Ballot(_) => {
                self.deliver_on(from, to, connection.expect("it has one"), message);
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
        let (node, other) = (self.random.below(self.nodes.len() as u64) as usize, self.random.below(self.nodes.len() as u64) as usize);
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
            Event::Timer { node, .. } | Event::Persisted { node, .. } | Event::Beat { node, .. } | Event::Deliver { to: node, .. } => {
                Some(node)
            }
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
            Event::Beat { node, run } => {
                if self.nodes[node].run == run && self.nodes[node].member.is_some() {
                    self.beat(node);
                    self.at(self.now + HEARTBEAT_NS, Event::Beat { node, run });
                }
            }
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
        self.cut = [[false; PROCESSES_MAX]; PROCESSES_MAX];
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
        (0..self.nodes.len()).find(|node| self.nodes[*node].accepting(self.now).is_some())
    }

    /// Whether this candidate lacks something, as far as those who live know.
    pub(super) fn is_out(&self, candidate: usize, dead: usize) -> bool {
        let records = (0..3).filter(|node| *node != dead).map(|node| self.nodes[node].disk.standing);
        records.max().is_some_and(|standing| standing.out == Some(Node::ALL[candidate]))
    }
}
