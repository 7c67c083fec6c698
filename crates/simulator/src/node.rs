//! A node of the pair, or its witness: what the host does around the machines.
//!
//! The member is asked at once, whatever the shard is at: in the product it has a thread of its own. Everything that is for the shard waits
//! until the piece of work at hand is done, for the shard has one thread, and work takes its time.

mod follower;
mod leader;
mod links;

pub(crate) use self::leader::number_of;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use bodkin_broker::{
    Epoch, Incarnation, Instant, Node,
    member::{Input as MemberInput, Member, MemberConfig, Output as MemberOutput, Protection},
    wire::{Ballot, ClientFrame, EventHeader, LinkFrame, Record, Replication, Role},
};

use self::{
    follower::Follower,
    leader::{Here, Leader, Session, Statement, topic_of},
};
use crate::{
    aside::Aside,
    clock::{Clock, Time},
    effects::{Effects, Fact},
    network::ProcessId,
    packet::{Answer, Packet, chained},
    roster::{self, Process},
    workload::Workload,
};

/// What a node keeps when it dies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Disk {
    record: Record,
    /// The digest of the control state through each position from 1 on.
    control: Vec<u64>,
}

/// A node, dead or alive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeProcess {
    /// Which one.
    pub node: Node,
    /// The process: the node's own, or a clone of it.
    pub process: ProcessId,
    /// Its host's clocks.
    pub clock: Clock,
    config: MemberConfig,
    /// Pause between two heartbeats to the other nodes; `None`: it sends none.
    heartbeat: Option<Duration>,
    workload: Aside<Arc<Workload>>,
    disk: Disk,
    /// Counts its runs.
    run: u32,
    running: Option<Running>,
}

/// Something for the shard's thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Waiting {
    Packet(ProcessId, Packet),
    Connected(ProcessId),
    Closed(ProcessId),
    Lead(Epoch, Instant),
    TakenOver,
    Fenced,
    Follow(Node, Epoch),
    Protection(Protection),
    /// The Backup's control operations up to this position are on its disk.
    Synced(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Running {
    member: Member,
    outputs: Aside<Vec<MemberOutput>>,
    waiting: VecDeque<Waiting>,
    /// What the piece of work at hand sends when it is done.
    at_hand: Option<Vec<(ProcessId, Packet)>>,
    connected: Vec<ProcessId>,
    /// Names this run of the process to the other nodes: its start time, as the host draws it.
    incarnation: Incarnation,
    /// By node: the process whose greeting was accepted, while it is connected.
    established: [Option<ProcessId>; 3],
    /// The process that was last accepted as the other candidate.
    partner: ProcessId,
    /// When the next heartbeat is due.
    beat_at: Option<Instant>,
    early: Early,
    /// What subscribers have asked for on their present connections: topics, by number. A leader goes on with it.
    subscribed: BTreeSet<(ProcessId, u16)>,
    /// When the other candidate was last heard of.
    partner_heard: Time,
    duty: Duty,
}

/// What comes between the vote and the end of the takeover, for when the node leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Early {
    /// The right to lead.
    right: Option<(Epoch, Instant)>,
    /// What may be counted on.
    protection: Option<Protection>,
    /// The epoch in which the other candidate has asked to follow.
    greeted_in: Option<Epoch>,
}

/// What a node is to the data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Duty {
    /// It has nothing.
    None,
    /// It has a shard, and leads or has led.
    Leader(Box<Leader>),
    /// It keeps what a leader sends.
    Follower(Box<Follower>),
}

impl NodeProcess {
    /// A node that has never run.
    pub fn new(node: Node, clock: Clock, config: MemberConfig, workload: Arc<Workload>) -> Self {
        Self {
            node,
            process: roster::node(node),
            clock,
            config,
            heartbeat: None,
            workload: Aside(workload),
            disk: Disk { record: Record::NEW, control: Vec::new() },
            run: 0,
            running: None,
        }
    }

    /// Has it send heartbeats.
    pub fn with_heartbeat(self, heartbeat: Duration) -> Self {
        Self { heartbeat: Some(heartbeat), ..self }
    }

    /// Makes `clone` a process with this node's name and a copy of its disk, on a host of its own.
    pub fn copy_to(&self, clone: &mut Self, clock: Clock) {
        let Self { node, config, heartbeat, disk, workload, .. } = self.clone();
        let process = Process::Clone(node).id();
        *clone = Self { node, process, clock, config, heartbeat, workload, disk, run: clone.run, running: None };
    }

    /// Has it start with another configuration.
    pub fn set_config(&mut self, config: MemberConfig) {
        self.config = config;
    }

    /// Starts it with what its disk holds.
    pub fn start(&mut self, now: Time, effects: &mut Effects) {
        self.run += 1;
        let reading = self.clock.reading(now);
        let member = Member::new(self.config, self.disk.record, reading);
        self.running = Some(Running {
            member,
            outputs: Aside::default(),
            waiting: VecDeque::new(),
            at_hand: None,
            connected: Vec::new(),
            incarnation: Incarnation(self.clock.utc_ns(now)),
            established: [None; 3],
            partner: roster::node(self.node.partner().unwrap_or(self.node)),
            beat_at: self.heartbeat.map(|_| reading),
            early: Early::default(),
            subscribed: BTreeSet::new(),
            partner_heard: now,
            duty: Duty::None,
        });
        self.ask_member(now, MemberInput::Tick, effects);
    }

    /// Ends it; its disk stays.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// The control state that it has on its disk: the digest of each position.
    pub fn control(&self) -> &[u64] {
        &self.disk.control
    }

    /// Whether it leads by its own clock.
    pub fn leads(&self, now: Time) -> bool {
        let leading = self.running.as_ref().and_then(|running| running.member.leading());
        leading.is_some_and(|(_, until)| self.clock.reading(now) < until)
    }

    /// Whether it leads, its Backup is in sync, and nothing waits to be done.
    pub fn is_whole(&self, now: Time) -> bool {
        self.leads(now)
            && self.running.as_ref().is_some_and(|running| {
                let Duty::Leader(leader) = &running.duty else { return false };
                running.member.protection() == Protection::Protected && leader.is_calm()
            })
    }

    /// When to wake it if nothing happens before.
    pub fn next_wake(&self, now: Time) -> Option<Time> {
        let running = self.running.as_ref()?;
        let shard = match &running.duty {
            Duty::Leader(leader) if running.at_hand.is_none() => leader.next_timer(self.clock.reading(now)),
            Duty::Follower(_) | Duty::Leader(_) | Duty::None => None,
        };
        let at = [running.member.next_timer(), shard, running.beat_at].into_iter().flatten().min()?;
        Some(self.clock.time_of(at).max(now))
    }

    /// A timer rings.
    pub fn wake(&mut self, now: Time, effects: &mut Effects) -> Option<u64> {
        let reading = self.clock.reading(now);
        let running = self.running.as_mut()?;
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= reading);
        let beats = is_due(running.beat_at);
        if beats || is_due(running.member.next_timer()) {
            self.ask_member(now, MemberInput::Tick, effects);
        }
        if beats {
            self.beat(now, effects);
        }
        self.work(now, effects)
    }

    /// What the member wanted on the disk is there.
    pub fn persisted(&mut self, now: Time, record: Record, effects: &mut Effects) -> Option<u64> {
        self.disk.record = record;
        self.ask_member(now, MemberInput::Persisted, effects);
        self.work(now, effects)
    }

    /// Control operations are on the disk.
    pub fn synced(&mut self, now: Time, position: u64, effects: &mut Effects) -> Option<u64> {
        self.enter(now, Waiting::Synced(position), effects)
    }

    /// The node has what it needs to lead: the takeover is completed in front of everything that waits.
    pub fn taken_over(&mut self, now: Time, effects: &mut Effects) -> Option<u64> {
        self.running.as_mut()?.waiting.push_front(Waiting::TakenOver);
        self.work(now, effects)
    }

    /// An operator wants the other candidate to lead.
    pub fn hand_over(&mut self, now: Time, effects: &mut Effects) -> Option<u64> {
        self.ask_member(now, MemberInput::HandOver, effects);
        self.work(now, effects)
    }

    /// The piece of work at hand is done.
    pub fn done(&mut self, now: Time, effects: &mut Effects) -> Option<u64> {
        let running = self.running.as_mut()?;
        effects.sends.extend(running.at_hand.take().expect("work was at hand"));
        self.work(now, effects)
    }

    fn enter(&mut self, now: Time, waiting: Waiting, effects: &mut Effects) -> Option<u64> {
        self.running.as_mut()?.waiting.push_back(waiting);
        self.work(now, effects)
    }

    /// Asks the member, and enters what it says for the shard.
    fn ask_member(&mut self, now: Time, input: MemberInput, effects: &mut Effects) {
        let reading = self.clock.reading(now);
        let Some(running) = &mut self.running else { return };
        running.member.step(reading, input, &mut running.outputs);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: &mut Effects) {
        let (process, run) = (self.process, self.run);
        let Some(running) = &mut self.running else { return };
        let mut outputs = std::mem::take(&mut running.outputs.0);
        for output in outputs.drain(..) {
            match output {
                MemberOutput::Send { to, ballot } => {
                    if matches!(ballot, Ballot::Vote { epoch, .. } if epoch > self.disk.record.epoch) {
                        effects.facts.push(Fact::Contradiction { what: "a node votes in an epoch that its disk does not have" });
                    }
                    let to = running.established[to as usize];
                    effects.sends.extend(to.map(|to| (to, link_packet(&LinkFrame::Ballot(ballot)))));
                }
                MemberOutput::Persist(record) => {
                    assert!(effects.persist.replace(record).is_none(), "one record is written at a time");
                }
                MemberOutput::Lead { epoch, until } => {
                    effects.facts.push(Fact::Leads { process, run, epoch, until });
                    running.waiting.push_back(Waiting::Lead(epoch, until));
                }
                MemberOutput::Fenced { .. } => {
                    effects.facts.push(Fact::Fenced { process });
                    running.waiting.push_back(Waiting::Fenced);
                }
                MemberOutput::Follow { leader, epoch } => running.waiting.push_back(Waiting::Follow(leader, epoch)),
                MemberOutput::Protection(protection) => running.waiting.push_back(Waiting::Protection(protection)),
                MemberOutput::Disconnect { node, refusal } => running.disconnect(node, refusal, effects),
                MemberOutput::Tell(_) => {}
            }
        }
        running.outputs.0 = outputs;
    }

    /// Lets the shard's thread go on until it is at a piece of work that takes time; gives how long it takes.
    fn work(&mut self, now: Time, effects: &mut Effects) -> Option<u64> {
        while self.running.as_ref()?.at_hand.is_none() {
            let Some(waiting) = self.running.as_mut()?.waiting.pop_front() else { return self.next_work(now, effects) };
            let said = self.take(now, waiting, effects);
            said.into_iter().for_each(|input| self.ask_member(now, input, effects));
            self.ask_for_leader(now, effects);
        }
        None
    }

    /// What the leader has said about its Backup goes to the member.
    fn ask_for_leader(&mut self, now: Time, effects: &mut Effects) {
        let Some(Running { duty: Duty::Leader(leader), .. }) = &mut self.running else { return };
        for statement in std::mem::take(&mut leader.statements) {
            let input = match statement {
                Statement::BackupOut => MemberInput::BackupOut,
                Statement::BackupInSync => MemberInput::BackupInSync,
            };
            self.ask_member(now, input, effects);
        }
    }

    fn next_work(&mut self, now: Time, effects: &mut Effects) -> Option<u64> {
        let work = self.with(now, |here, running, _| match &mut running.duty {
            Duty::Leader(leader) => leader.next_work(here, effects),
            Duty::Follower(follower) => {
                follower.acknowledge(running.established[follower.leader as usize], effects);
                None
            }
            Duty::None => None,
        });
        self.ask_for_leader(now, effects);
        let (sends, cost_ns) = work??;
        self.running.as_mut()?.at_hand = Some(sends);
        Some(cost_ns)
    }

    /// Calls `act` with where it is, if the process runs.
    fn with<T>(&mut self, now: Time, act: impl FnOnce(Here<'_>, &mut Running, &mut Vec<u64>) -> T) -> Option<T> {
        let Self { node, process, clock, workload, disk, running, .. } = self;
        let running = running.as_mut()?;
        let here = Here { now, reading: clock.reading(now), clock, workload, node: *node, process: *process, partner: running.partner };
        Some(act(here, running, &mut disk.control))
    }

    /// Takes something for the shard. What it gives is for the member.
    fn take(&mut self, now: Time, waiting: Waiting, effects: &mut Effects) -> Option<MemberInput> {
        let silence_ns = self.workload.platform.lease.lease.get().unsigned_abs();
        self.with(now, |here, running, control| match waiting {
            Waiting::Packet(from, packet) => running.packet(here, from, packet, control, effects),
            Waiting::Connected(peer) => {
                running.greet(here, Some(peer), effects);
                None
            }
            Waiting::Closed(peer) => {
                running.subscribed.retain(|(of, _)| *of != peer);
                if let Duty::Leader(leader) = &mut running.duty {
                    match Process::of(peer).node() {
                        Some(node) if Some(node) == here.node.partner() => leader.lose_session(here, effects),
                        Some(_) => {}
                        None => leader.client_gone(here, peer, effects),
                    }
                }
                None
            }
            Waiting::Lead(epoch, until) => {
                running.lead(here, epoch, until, effects);
                let Duty::Leader(leader) = &mut running.duty else { unreachable!("it leads") };
                if leader.session() != Session::None && now.since(running.partner_heard) > silence_ns {
                    leader.lose_session(here, effects);
                    effects.resets.push(here.partner);
                }
                None
            }
            Waiting::TakenOver => {
                running.take_over(here, control, effects);
                None
            }
            Waiting::Fenced => {
                running.early.right = None;
                if let Duty::Leader(leader) = &mut running.duty {
                    leader.fenced(here, &running.connected, effects);
                }
                None
            }
            Waiting::Follow(leader, epoch) => {
                match &mut running.duty {
                    Duty::Follower(follower) if follower.leader == leader => follower.epoch = epoch,
                    _ if here.node == Node::Witness => {}
                    duty => *duty = Duty::Follower(Box::new(Follower::new(here, leader, epoch))),
                }
                running.greet(here, None, effects);
                None
            }
            Waiting::Protection(protection) => {
                match &mut running.duty {
                    Duty::Leader(leader) if leader.is_taking_over() => running.early.protection = Some(protection),
                    Duty::Leader(leader) => leader.protection(here, protection, control, effects),
                    Duty::Follower(_) | Duty::None => {}
                }
                None
            }
            Waiting::Synced(position) => {
                if let Duty::Follower(follower) = &mut running.duty {
                    follower.synced(position);
                }
                None
            }
        })?
    }
}

impl Running {
    /// Leads from now on, or longer. A node that has not led before takes over first.
    fn lead(&mut self, here: Here<'_>, epoch: Epoch, until: Instant, effects: &mut Effects) {
        if !matches!(self.duty, Duty::Leader(_)) {
            let leader = Leader::prepared(here, &self.subscribed, effects);
            let inherited = match std::mem::replace(&mut self.duty, Duty::None) {
                Duty::Follower(follower) if follower.backup.is_in_sync() => Some((follower.backup, follower.payloads)),
                _ => None,
            };
            self.duty = Duty::Leader(Box::new(leader.takes_over(inherited)));
            self.early = Early::default();
            effects.takes_over = true;
        }
        let Duty::Leader(leader) = &mut self.duty else { unreachable!("it has been made one") };
        if leader.is_taking_over() {
            self.early.right = Some((epoch, until));
        } else {
            leader.lead(here, epoch, until, &self.connected, effects);
        }
    }

    /// Completes the takeover, and leads if the node still may.
    fn take_over(&mut self, here: Here<'_>, control: &[u64], effects: &mut Effects) {
        let Duty::Leader(leader) = &mut self.duty else { return };
        leader.take_over(here);
        let Early { right, protection, greeted_in } = std::mem::take(&mut self.early);
        let Some((epoch, until)) = right else { return };
        leader.lead(here, epoch, until, &self.connected, effects);
        if let Some(protection) = protection {
            leader.protection(here, protection, control, effects);
        }
        if greeted_in == Some(epoch) {
            leader.greeted(here, control, effects);
        }
    }

    /// Asks the leader that is followed to be given everything, once a connection and epoch. `made`: the connection that is new.
    fn greet(&self, here: Here<'_>, made: Option<ProcessId>, effects: &mut Effects) {
        let Duty::Follower(follower) = &self.duty else { return };
        let Some(leader) = self.established[follower.leader as usize].filter(|leader| made.is_none_or(|made| made == *leader)) else {
            return;
        };
        let greeting = Replication::Greeting {
            epoch: follower.epoch,
            protocol: 1,
            protocol_min: 1,
            node: here.node,
            role: Role::Follower,
            incarnation: self.incarnation,
        };
        effects.sends.push((leader, link_packet(&LinkFrame::Replication(greeting))));
    }

    fn packet(
        &mut self,
        here: Here<'_>,
        from: ProcessId,
        packet: Packet,
        control: &mut Vec<u64>,
        effects: &mut Effects,
    ) -> Option<MemberInput> {
        match (&mut self.duty, packet) {
            (Duty::Leader(leader), Packet::Event { topic, header, payload }) => {
                let header = EventHeader::decode(&header).expect("publishers send valid headers");
                leader.publish(here, from, topic, &header, payload, effects);
            }
            (Duty::Leader(leader), Packet::Publish { topic, payload }) => leader.publish_unnumbered(here, from, topic, payload, effects),
            (_, Packet::Publish { .. }) => effects.sends.push((from, Packet::Answer(Answer::Refused))),
            (Duty::Leader(leader), Packet::Commit { request }) if leader.takes_commits(here) => {
                let digest = chained(control.last().copied().unwrap_or(0), request, leader.epoch.0);
                control.push(digest);
                leader.commit(here, from, request, control.len() as u64, digest, effects);
            }
            (Duty::Leader(leader), Packet::Link(bytes)) => {
                let LinkFrame::Replication(frame) = LinkFrame::decode(&bytes).expect("nodes send valid frames") else { return None };
                match frame {
                    Replication::Greeting { epoch, role: Role::Follower, .. } if leader.is_taking_over() => {
                        self.early.greeted_in = Some(epoch)
                    }
                    _ if frame.epoch() != leader.epoch => {}
                    Replication::Greeting { role: Role::Follower, .. } => leader.greeted(here, control, effects),
                    Replication::Ack { position, .. } if leader.session() != Session::None => {
                        leader.acknowledged(here, position, effects);
                    }
                    _ => {}
                }
            }
            (Duty::Follower(follower), Packet::Link(bytes)) => {
                let LinkFrame::Replication(frame) = LinkFrame::decode(&bytes).expect("nodes send valid frames") else { return None };
                if Process::of(from).node() == Some(follower.leader) {
                    return follower
                        .replicated(here, frame, control, effects)
                        .map(|has_all| MemberInput::Warm { epoch: if has_all { follower.epoch } else { Epoch::NONE } });
                }
            }
            (duty, Packet::Command(bytes)) => {
                let frame = ClientFrame::decode(&bytes).expect("clients send valid commands");
                if let ClientFrame::Subscribe { topic, .. } = frame {
                    self.subscribed.insert((from, topic_of(here, topic).0 as u16));
                }
                match (duty, frame) {
                    (Duty::Leader(leader), frame) => leader.command(here, from, frame, effects),
                    (duty, ClientFrame::Hello { .. }) => {
                        let epoch = if let Duty::Follower(follower) = duty { follower.epoch } else { Epoch::NONE };
                        effects.sends.push((from, command_packet(&ClientFrame::Leader { epoch, is_leader: false })));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        None
    }
}

fn link_packet(frame: &LinkFrame<'_>) -> Packet {
    let mut bytes = Vec::with_capacity(96);
    match frame {
        LinkFrame::Ballot(frame) => frame.encode(&mut bytes),
        LinkFrame::Replication(frame) => frame.encode(&mut bytes),
    }
    Packet::Link(bytes.into_boxed_slice())
}

pub(crate) fn command_packet(frame: &ClientFrame<'_>) -> Packet {
    let mut bytes = Vec::with_capacity(96);
    frame.encode(&mut bytes);
    Packet::Command(bytes.into_boxed_slice())
}
