//! A node that leads: what the host does around the shard.
//!
//! Here is what it says about its Backup and which commits it answers; `work` has the pieces of work and what becomes of the
//! shard's outputs, `client` what publishers and subscribers say.

mod client;
mod requests;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use bodkin_broker::{
    Attachment, Authority, Backup, BackupStanding, Epoch, Input, Instant, Output, Overflow, Promotion, PublisherId, ReplicationPolicy,
    Sequence, Shard, ShardLimits, StreamId, StreamIdentity, SubscriptionKey, TopicId,
    member::Protection,
    wire::{ClientFrame, LinkFrame, Replication, Watermarks},
};

use super::{command_packet, link_packet};
use crate::{
    aside::Aside,
    clock::{Clock, Time},
    effects::{Effects, Fact},
    network::ProcessId,
    packet::Packet,
    roster::Process,
    violation::StreamName,
    workload::{PUBLISHERS, Workload},
};

/// How long a required subscriber that is away is waited for: longer than any fault lasts.
const WAIT: Duration = Duration::from_secs(2);
/// Nobody's queue overflows here.
const LIMITS: ShardLimits = ShardLimits { subscriptions_max: 1_000, topics_max: 100, queue_bytes_max: 1 << 20 };

/// How far the session of the replica link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Session {
    /// There is none.
    None,
    /// A Backup has come, and is not recorded as out of sync yet.
    Wanted,
    /// It is being given everything.
    Joining,
    /// It has everything, and the witness does not know yet.
    Settling,
    /// It may lead.
    InSync,
}

/// A commit that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Commit {
    from: ProcessId,
    request: u64,
    position: u64,
    digest: u64,
}

/// What the leader says to its own member, in return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Statement {
    BackupOut,
    BackupInSync,
}

/// What every step of a leader needs to know.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    pub now: Time,
    pub reading: Instant,
    pub clock: &'a Clock,
    pub workload: &'a Workload,
    pub node: bodkin_broker::Node,
    /// The process that has this node's name here.
    pub process: ProcessId,
    /// The other candidate.
    pub partner: ProcessId,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leader {
    shard: Shard<ProcessId>,
    outputs: Aside<Vec<Output>>,
    pub epoch: Epoch,
    until: Instant,
    /// By slot.
    payloads: Vec<u64>,
    subscriptions: Vec<(u16, u16, SubscriptionKey)>,
    session: Session,
    protection: Protection,
    commits: VecDeque<Commit>,
    /// The Backup has the control state through here.
    control_replicated: u64,
    /// What the partner has when its snapshot is whole.
    control_given: u64,
    /// The last commit that was taken when it had what it was given: it may have been answered without it.
    answered_alone: Option<u64>,
    /// The last commit that was taken.
    committed: u64,
    /// The last piece of work was a replica: the next one belongs to its batch.
    is_in_batch: bool,
    /// It has what its Backup kept, or led before.
    is_warm: bool,
    /// Until the takeover is complete: the Backup that it takes over, if it has what the leader before had.
    takeover: Option<Option<(Backup, Vec<u64>)>>,
    /// By slot: the requester that waits until its event goes out.
    answering: Vec<Option<ProcessId>>,
    /// Requesters that wait until their event is covered.
    uncovered: BTreeMap<(StreamId, Sequence), ProcessId>,
    pub statements: Vec<Statement>,
}

impl Leader {
    /// Returns a leader that has not taken over yet. Subscribers with a session here keep it; other required subscribers are waited for.
    pub fn prepared(here: Here<'_>, subscribed: &BTreeSet<(ProcessId, u16)>, effects: &mut Effects) -> Self {
        let mut leader = Self::without_sessions(here);
        for (from, topic) in subscribed {
            leader.attach(here, *from, *topic, Watermarks::Own(&[]), effects);
        }
        leader
    }

    /// Begins to take over, with what the node's Backup has kept, if that is complete.
    pub fn takes_over(self, inherited: Option<(Backup, Vec<u64>)>) -> Self {
        Self { takeover: Some(inherited), ..self }
    }

    /// Returns true until the takeover is complete.
    pub fn is_taking_over(&self) -> bool {
        self.takeover.is_some()
    }

    /// Completes the takeover. The right to lead is another matter.
    pub fn take_over(&mut self, here: Here<'_>) {
        match self.takeover.take() {
            Some(Some((backup, payloads))) => {
                let redirect = Duration::from_nanos(here.workload.platform.lease.redirect.get().unsigned_abs());
                let authority = Authority { epoch: Epoch::NONE, until: Instant::default() };
                drop(backup.promote(here.reading, Promotion { authority, redirect }, &mut self.shard));
                (self.payloads, self.is_warm) = (payloads, true);
            }
            Some(None) => self.shard.take_over_nothing(),
            None => {}
        }
    }

    fn without_sessions(here: Here<'_>) -> Self {
        let mut shard = Shard::follower(LIMITS);
        for (number, topic) in (0..).zip(&here.workload.topics) {
            shard.admit(&topic.name, here.workload.terms(number)).expect("there are fewer topics than the limit");
        }
        let mut outputs = Vec::new();
        shard.set_replication(ReplicationPolicy::of(&here.workload.platform));
        shard.step(here.reading, Input::Backup(BackupStanding::Lost), &mut outputs);
        let mut subscriptions = Vec::new();
        for (topic, made) in here.workload.topics.iter().enumerate() {
            for &(subscriber, is_required) in made.subscribers.iter().filter(|(_, is_required)| *is_required) {
                let receiver = Process::Subscriber(subscriber).id();
                let key = shard.subscribe(&made.name, receiver, Overflow::Loses).expect("there are few subscriptions");
                shard.require(here.reading, key, WAIT, Attachment::Awaited);
                subscriptions.push((subscriber, topic as u16, key));
                debug_assert!(is_required);
            }
        }
        Self {
            shard,
            outputs: Aside(outputs),
            epoch: Epoch::NONE,
            until: Instant::default(),
            payloads: Vec::new(),
            subscriptions,
            session: Session::None,
            protection: Protection::Unsettled,
            commits: VecDeque::new(),
            control_replicated: 0,
            control_given: 0,
            answered_alone: None,
            committed: 0,
            is_in_batch: false,
            is_warm: false,
            takeover: None,
            answering: Vec::new(),
            uncovered: BTreeMap::new(),
            statements: Vec::new(),
        }
    }

    fn leads(&self, here: Here<'_>) -> bool {
        here.reading < self.until
    }

    /// Whether everything that was taken is done with, and the Backup is in sync.
    pub fn is_calm(&self) -> bool {
        self.session == Session::InSync && self.commits.is_empty()
    }

    pub fn next_timer(&self, reading: Instant) -> Option<Instant> {
        (reading < self.until).then(|| self.shard.next_timer()).flatten()
    }

    /// The right to lead begins, or goes on.
    pub fn lead(&mut self, here: Here<'_>, epoch: Epoch, until: Instant, connected: &[ProcessId], effects: &mut Effects) {
        self.until = until;
        self.step(here, Input::Authority(Authority { epoch, until }), effects);
        if self.epoch != epoch {
            self.epoch = epoch;
            effects.facts.push(Fact::TookOver { process: here.process, is_warm: std::mem::replace(&mut self.is_warm, true) });
            self.protection = Protection::Unsettled;
            self.lose_session(here, effects);
            self.announce(true, connected, effects);
        }
    }

    /// The right to lead is over.
    pub fn fenced(&mut self, here: Here<'_>, connected: &[ProcessId], effects: &mut Effects) {
        self.until = here.reading;
        self.step(here, Input::Authority(Authority { epoch: self.epoch, until: here.reading }), effects);
        self.lose_requesters(effects);
        self.announce(false, connected, effects);
    }

    fn announce(&self, is_leader: bool, connected: &[ProcessId], effects: &mut Effects) {
        let frame = ClientFrame::Leader { epoch: self.epoch, is_leader };
        let clients = connected.iter().filter(|peer| Process::of(**peer).node().is_none());
        effects.sends.extend(clients.map(|client| (*client, command_packet(&frame))));
    }

    /// The member has settled what may be counted on.
    pub fn protection(&mut self, here: Here<'_>, protection: Protection, control: &[u64], effects: &mut Effects) {
        self.protection = protection;
        match (protection, self.session) {
            (Protection::Alone, Session::Wanted) => self.join(here, control, effects),
            (Protection::Alone, Session::None) => self.stand(here, BackupStanding::Out, effects),
            (Protection::Protected, Session::Settling) => {
                self.session = Session::InSync;
                self.stand(here, BackupStanding::InSync, effects);
            }
            _ => {}
        }
        self.answer(here, effects);
    }

    fn stand(&mut self, here: Here<'_>, standing: BackupStanding, effects: &mut Effects) {
        self.step(here, Input::Backup(standing), effects);
    }

    /// The Backup is there, with nothing that counts.
    pub fn greeted(&mut self, here: Here<'_>, control: &[u64], effects: &mut Effects) {
        if self.session != Session::None {
            self.lose_session(here, effects);
        }
        match self.protection {
            Protection::Alone => self.join(here, control, effects),
            Protection::Unsettled | Protection::Protected => self.session = Session::Wanted,
        }
    }

    /// The link to the Backup is gone, or counts for nothing any more.
    pub fn lose_session(&mut self, here: Here<'_>, effects: &mut Effects) {
        (self.session, self.answered_alone) = (Session::None, None);
        self.statements.push(Statement::BackupOut);
        if self.protection == Protection::Protected {
            self.protection = Protection::Unsettled;
        }
        let standing = if self.protection == Protection::Alone { BackupStanding::Out } else { BackupStanding::Lost };
        self.stand(here, standing, effects);
    }

    /// Begins to give the Backup everything: first the control state, then what the shard keeps.
    fn join(&mut self, here: Here<'_>, control: &[u64], effects: &mut Effects) {
        self.session = Session::Joining;
        self.control_given = control.len() as u64;
        self.stand(here, BackupStanding::Joining, effects);
        let part: Vec<u8> = control.iter().flat_map(|digest| digest.to_be_bytes()).collect();
        let epoch = self.epoch;
        for frame in
            [Replication::SnapshotBegin { epoch, position: self.shard.position() }, Replication::SnapshotPart { epoch, part: &part }]
        {
            effects.sends.push((here.partner, link_packet(&LinkFrame::Replication(frame))));
        }
    }

    /// The operator wants something committed: it is on this disk, and has to get to the other one.
    pub fn commit(&mut self, here: Here<'_>, from: ProcessId, request: u64, position: u64, digest: u64, effects: &mut Effects) {
        if matches!(self.session, Session::Joining | Session::Settling | Session::InSync) {
            match self.shard.control(position) {
                Some(place) => {
                    let operation = digest.to_be_bytes();
                    let frame = Replication::Control { epoch: self.epoch, position: place, operation: &operation };
                    effects.sends.push((here.partner, link_packet(&LinkFrame::Replication(frame))));
                }
                // A Backup that lacks an operation has to be given everything anew.
                None => self.lose_session(here, effects),
            }
        }
        self.committed = position;
        self.commits.push_back(Commit { from, request, position, digest });
        self.answer(here, effects);
    }

    /// The member hears that the Backup has everything when it has what was answered while it was given the rest, too.
    fn tell_in_sync(&mut self) {
        if self.answered_alone.take_if(|answered| *answered <= self.control_replicated).is_some() {
            // It says so too, when it is asked. A Backup that is lost before it has heard of it leaves the leader as it was.
            self.protection = Protection::Unsettled;
            self.statements.push(Statement::BackupInSync);
        }
    }

    /// Whether this node takes commits.
    pub fn takes_commits(&self, here: Here<'_>) -> bool {
        self.leads(here)
    }

    /// Answers the commits that are safe.
    fn answer(&mut self, here: Here<'_>, effects: &mut Effects) {
        let alone = self.protection == Protection::Alone && matches!(self.session, Session::None | Session::Wanted | Session::Joining);
        let replicated = if self.session == Session::InSync { self.control_replicated } else { 0 };
        while let Some(&Commit { from, request, position, digest }) = self.commits.front() {
            if !self.leads(here) || !(alone || position <= replicated) {
                break;
            }
            self.commits.pop_front();
            effects.facts.push(Fact::Acts { process: here.process, action: "answers a commit" });
            effects.facts.push(Fact::Answered { position, digest });
            effects.sends.push((from, Packet::Committed { request, position, digest }));
        }
    }

    /// Something for the shard.
    fn step(&mut self, here: Here<'_>, input: Input, effects: &mut Effects) {
        self.shard.step(here.reading, input, &mut self.outputs);
        self.carry_out(here, effects);
    }

    /// The session that it has with its Backup.
    pub fn session(&self) -> Session {
        self.session
    }
}

pub(super) fn topic_of(here: Here<'_>, name: &str) -> TopicId {
    let index = here.workload.topics.iter().position(|topic| topic.name == name);
    TopicId(index.expect("clients name topics that there are") as u64)
}

/// Publishers are numbered from 1 on the wire, for 0 names the sender.
pub(super) fn id_of(publisher: u16) -> PublisherId {
    PublisherId(u64::from(publisher) + 1)
}

/// Requesters are numbered from behind the publishers.
pub(super) fn id_of_requester(requester: u16) -> PublisherId {
    id_of(PUBLISHERS + requester)
}

pub(crate) fn number_of(publisher: PublisherId) -> u16 {
    (publisher.0 - 1) as u16
}

pub(super) fn name_of(identity: StreamIdentity) -> StreamName {
    StreamName { publisher: number_of(identity.publisher), incarnation: identity.incarnation.0, topic: identity.topic.0 as u16 }
}
