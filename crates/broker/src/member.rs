//! One node of the reliable pair: does it lead, whom does it follow, and for whom does it vote?
//!
//! The right to lead is a majority of three: the two candidates and the witness. A leader asks the others for its lease every heartbeat; whoever grants it
//! votes for nobody else until the grant has run out. A candidate whose own grant has run out asks for votes, and leads when one
//! other node has voted for it. [`Member::step`] takes everything that can happen; what it wants done comes back in order. The
//! guarantee and why it holds: `docs/design/pair.md`.
//!
//! | file | decides |
//! |---|---|
//! | `voter` | whom to grant, whom to vote for |
//! | `candidate` | when to ask for votes, when they suffice |
//! | `leader` | when to renew, when to stop, what to do without a Backup |
//! | `peers` | which process counts as each of the other nodes |

mod candidate;
mod config;
mod leader;
mod peers;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod tests;
mod voter;

use self::{
    candidate::Campaign,
    leader::Lead,
    peers::Peers,
    voter::{Promise, Renewal, VoteAsk},
};
pub use self::{
    config::{MemberConfig, MemberConfigError, Mode},
    peers::{GreetingRefusal, Peer},
};
use crate::{
    epoch::{Epoch, Node},
    time::Instant,
    wire::{Ballot, BallotRefusal, Record},
};

/// What can happen to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The time of [`Member::next_timer`] has come.
    Tick,
    /// A frame from another node, whose name the connection has proved.
    Received {
        /// Who sent it.
        from: Node,
        /// What.
        ballot: Ballot,
    },
    /// A frame that is no ballot has arrived on a node's connection ([`Member::greet`]).
    Heard(Node),
    /// A node's connection has ended.
    Gone(Node),
    /// A heartbeat, at least every lease: the other nodes are sent what this one sees. A longer pause makes this node confirm again
    /// which processes the others are.
    Beat,
    /// Another node refuses this process's greeting: this process does not ask for votes until then, or until that node accepts it.
    Rejected {
        /// The node that refuses.
        by: Node,
        /// Until when the refusal counts, if it is not repeated.
        until: Instant,
    },
    /// The record of the last [`Output::Persist`] is on the disk.
    Persisted,
    /// Leader: the Backup cannot be waited for any longer. Until [`Protection::Alone`] comes, commits go on waiting for it.
    BackupOut,
    /// Leader: the Backup has the whole state, and from now on no commit is answered without its acknowledgement. Until
    /// [`Protection::Protected`] comes, its acknowledgements cover no message.
    BackupInSync,
    /// Follower: this process has the messages and the control state of the leader of this epoch; [`Epoch::NONE`] if it has none.
    Warm {
        /// The leader's epoch.
        epoch: Epoch,
    },
    /// An operator wants this node to lead although it is out of sync. Answered commits and covered messages may be lost.
    Force,
    /// Leader: an operator wants the Backup to lead. Where that one is in sync ([`Protection::Protected`]) and may be voted for ([`Mode::Majority`]), this
    /// node stops at once, and asks for no votes until another node has led, or for four leases. Otherwise nothing happens.
    HandOver,
    /// Somebody who is no member has shown an epoch.
    Stranger {
        /// Which one.
        epoch: Epoch,
    },
}

/// What a member wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a frame; one that cannot be sent is lost.
    Send {
        /// To whom.
        to: Node,
        /// What.
        ballot: Ballot,
    },
    /// Write the record so that a power failure does not undo it, then say [`Input::Persisted`]. There is one at a time.
    Persist(Record),
    /// Lead: accept, dispatch and acknowledge in this epoch, while the clock is in front of `until`. Comes again when the lease is longer, or
    /// the epoch another, which begins [`Protection::Unsettled`].
    Lead {
        /// The epoch.
        epoch: Epoch,
        /// The end of the lease as it stands.
        until: Instant,
    },
    /// Stop accepting, dispatching and acknowledging, now.
    Fenced {
        /// The epoch that is over.
        epoch: Epoch,
    },
    /// Another node leads.
    Follow {
        /// Who.
        leader: Node,
        /// In which epoch.
        epoch: Epoch,
    },
    /// Close a node's connection: another process counts as the node. The member takes the connection for closed.
    Disconnect {
        /// The node.
        node: Node,
        /// The reason, which is sent first.
        refusal: GreetingRefusal,
    },
    /// What the leader may count on has changed.
    Protection(Protection),
    /// For the log, and for who watches.
    Tell(Tell),
}

/// What a leader may count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protection {
    /// It is not recorded whether the Backup is in sync: commits wait for its acknowledgement, which covers no message.
    Unsettled,
    /// The Backup is recorded in sync: commits wait for its acknowledgement, and it covers messages.
    Protected,
    /// The Backup is recorded out of sync: commits are answered without it, and nothing but subscribers and publishers covers messages.
    Alone,
}

/// What somebody should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// There is no witness: two leaders are possible if the nodes cannot reach each other. Told once when leading begins.
    NoMajority,
    /// It leads because an operator wanted it, out of sync or cold.
    Forced(Epoch),
    /// It leads without the messages of the leader before it: those that only memories held are lost.
    Cold(Epoch),
    /// Somebody who is no member has shown an epoch higher than any that is known; it changes nothing.
    StrangerEpoch(Epoch),
    /// A frame from a node that is no member of this pair, which is refused.
    NotAMember(Node),
    /// A ballot of a node whose greeting was not accepted, which is refused.
    NotConnected(Node),
    /// A frame with an epoch that is not its sender's to use, or absurdly far ahead, which is refused.
    ForeignEpoch {
        /// Who sent it.
        from: Node,
        /// With which epoch.
        epoch: Epoch,
    },
    /// Another node does not grant or vote.
    Refused {
        /// Who.
        by: Node,
        /// Why.
        reason: BallotRefusal,
    },
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    config: MemberConfig,
    /// The newest time that it was told: its clock counts pauses and never falls.
    now: Instant,
    /// On the disk.
    durable: Record,
    /// On its way there.
    writing: Option<Record>,
    /// What the disk should hold.
    wanted: Record,
    /// The highest epoch that another member has shown, or that this one may have led in before its restart.
    known_epoch: Epoch,
    /// The epoch that this node had reserved at its start, and may have led in without its record saying so: it votes in no lower one.
    maybe_led: Epoch,
    /// A restarted voter grants nothing until here: it may have promised something.
    silent_until: Instant,
    promise: Option<Promise>,
    /// The newest renewal that was granted, to be granted again when a standing is on the disk.
    renewal: Option<Renewal>,
    /// The votes that wait for the disk, by candidate.
    asks: [Option<VoteAsk>; 2],
    followed: Option<Epoch>,
    /// The last time that a leader, or a candidate with the messages, was heard of.
    warm_at: Instant,
    /// Of which epoch this process has the messages.
    warm: Epoch,
    forced: bool,
    /// It has handed the lead over, and leaves it to the other candidate until here.
    yields_until: Instant,
    /// It has handed the lead over, and its shards may not know yet: the last lease ends here.
    led_until: Instant,
    /// The reserved epoch that this run has not used yet.
    spare: Epoch,
    campaign: Option<Campaign>,
    lead: Option<Lead>,
    /// The processes behind the other nodes' names.
    peers: Peers,
    /// The last refusal of each node that was told, so that repeated ones are not.
    refusals_told: [Option<BallotRefusal>; 3],
}

impl Member {
    /// A member that has just started, with what it had on its disk. Any time may have passed since it was stopped.
    pub fn new(config: MemberConfig, record: Record, now: Instant) -> Self {
        let wanted = Record { lease_max: record.lease_max.max(config.lease_max), ..record };
        let silent_until = config.promised_until(now, wanted.lease_max);
        Self {
            config,
            now,
            durable: record,
            writing: None,
            wanted,
            // The reserved epoch may have been led in.
            known_epoch: record.epoch.max(record.reserved),
            maybe_led: record.reserved,
            silent_until,
            promise: None,
            renewal: None,
            asks: [None; 2],
            followed: None,
            warm_at: now,
            warm: Epoch::NONE,
            forced: false,
            yields_until: Instant::default(),
            led_until: Instant::default(),
            spare: record.reserved,
            campaign: None,
            lead: None,
            peers: Peers::new(now),
            refusals_told: [None; 3],
        }
    }

    /// Takes what happened. `outputs` is appended to.
    ///
    /// # Panics
    /// If time falls, if a record is persisted that was not written, or if a witness is told what only candidates are.
    pub fn step(&mut self, now: Instant, input: Input, outputs: &mut Vec<Output>) {
        self.turn(now, outputs);
        match input {
            Input::Tick => {}
            Input::Received { from, ballot } => self.receive(from, ballot, outputs),
            Input::Heard(node) => self.heard(node),
            Input::Gone(node) => self.gone(node, outputs),
            Input::Beat => self.beat(outputs),
            Input::Rejected { by, until } => self.rejected(by, until),
            Input::Persisted => self.persisted(outputs),
            Input::BackupOut => self.state_backup(false),
            Input::BackupInSync => self.state_backup(true),
            Input::Warm { epoch } => self.warm = epoch,
            Input::Force => self.forced = true,
            Input::HandOver => self.hand_over(outputs),
            Input::Stranger { epoch } if epoch > self.known() => outputs.push(Output::Tell(Tell::StrangerEpoch(epoch))),
            Input::Stranger { .. } => {}
        }
        self.reserve();
        self.campaign(outputs);
        self.renew(outputs);
        self.settle(outputs);
        self.write(outputs);
    }

    /// Begins a step: what has expired meanwhile counts before anything that has happened.
    fn turn(&mut self, now: Instant, outputs: &mut Vec<Output>) {
        assert!(now >= self.now, "time falls from {:?} to {now:?}", self.now);
        self.wake_up(now);
        self.now = now;
        if now >= self.silent_until {
            self.wanted.lease_max = self.config.lease_max;
        }
        self.expire(outputs);
    }

    /// When to call [`Self::step`] with [`Input::Tick`] if nothing else happens before.
    pub fn next_timer(&self) -> Option<Instant> {
        let lead = self.lead.as_ref().map(Lead::next_timer);
        let campaign = self.campaign.as_ref().map(|campaign| campaign.next_ask);
        let begin = (self.lead.is_none() && self.campaign.is_none()).then(|| self.campaign_begin()).flatten();
        [lead, campaign, begin].into_iter().flatten().min()
    }

    /// The epoch in which this node leads at present, and the end of its lease.
    pub fn leading(&self) -> Option<(Epoch, Instant)> {
        self.lead.as_ref().map(|lead| (lead.epoch, lead.until))
    }

    /// What a leader may count on; nothing is counted on by who does not lead.
    pub fn protection(&self) -> Protection {
        self.lead.as_ref().map_or(Protection::Unsettled, |lead| lead.protection)
    }

    /// The highest epoch that this node has voted for, followed or led.
    pub fn epoch(&self) -> Epoch {
        self.wanted.epoch
    }

    /// Returns true if this node lacks changes that a leader has answered, by its own record: it asks for no votes.
    pub fn lacks_changes(&self) -> bool {
        self.wanted.standing.out == Some(self.config.node)
    }

    /// Returns why a node last refused a request of this one, since this one last led or followed a new epoch.
    pub fn last_refusal(&self, node: Node) -> Option<BallotRefusal> {
        self.refusals_told[node.index()]
    }

    fn receive(&mut self, from: Node, ballot: Ballot, outputs: &mut Vec<Output>) {
        if from == self.config.node || !self.config.has(from) {
            outputs.push(Output::Tell(Tell::NotAMember(from)));
            return;
        }
        if self.connected(from).is_none() {
            outputs.push(Output::Tell(Tell::NotConnected(from)));
            return;
        }
        let foreign = match ballot {
            Ballot::RenewRequest { epoch, .. } | Ballot::VoteRequest { epoch, .. } => epoch.owner() != Some(from),
            Ballot::Grant { epoch, .. } | Ballot::Vote { epoch, .. } => epoch.owner() != Some(self.config.node),
            Ballot::Refused { .. } | Ballot::Sighting { .. } => false,
        };
        let is_ahead = ballot.epoch().0 > self.known().0.saturating_add(Epoch::AHEAD_MAX) || ballot.epoch() > Epoch::MAX;
        // A statement of a leader is not newer than the epoch that its sender knows.
        let is_early = ballot.standing().is_some_and(|standing| standing.epoch > ballot.epoch());
        if foreign || is_ahead || is_early {
            outputs.push(Output::Tell(Tell::ForeignEpoch { from, epoch: ballot.epoch() }));
            return;
        }
        self.known_epoch = self.known_epoch.max(ballot.epoch());
        self.heard(from);
        // A process that another node refuses is none of the three: it neither asks nor votes.
        let peer = self.confirmed(from).filter(|_| !self.is_rejected());
        match (ballot, peer) {
            (Ballot::Sighting { .. }, _) => self.sighted(from, ballot, outputs),
            (Ballot::Refused { asked, reason, retry_after_ns, .. }, _) => self.refused(from, asked, reason, retry_after_ns, outputs),
            (Ballot::RenewRequest { epoch, .. } | Ballot::VoteRequest { epoch, .. }, None) => self.refuse_unconfirmed(from, epoch, outputs),
            (Ballot::Grant { .. } | Ballot::Vote { .. }, None) => {}
            (Ballot::RenewRequest { .. }, Some(peer)) => self.renewal_asked(peer, ballot, outputs),
            (Ballot::VoteRequest { .. }, Some(peer)) => self.vote_asked(peer, ballot, outputs),
            (Ballot::Grant { epoch, sent_at_ns, standing }, Some(_)) => self.granted(from, epoch, sent_at_ns, standing, outputs),
            (Ballot::Vote { epoch, sent_at_ns }, Some(_)) => self.voted(epoch, sent_at_ns),
        }
    }

    /// The highest epoch that any member has shown, this one included.
    fn known(&self) -> Epoch {
        self.known_epoch.max(self.wanted.epoch)
    }

    fn is_warm(&self) -> bool {
        self.warm != Epoch::NONE
    }

    fn persisted(&mut self, outputs: &mut Vec<Output>) {
        let before = self.durable;
        self.durable = self.writing.take().expect("a record is persisted only when one is written");
        if before.standing != self.durable.standing {
            self.grant_again(outputs);
        }
        self.vote_persisted(outputs);
    }

    fn write(&mut self, outputs: &mut Vec<Output>) {
        if self.writing.is_none() && self.wanted != self.durable {
            self.writing = Some(self.wanted);
            outputs.push(Output::Persist(self.wanted));
        }
    }

    fn send(&self, to: Node, ballot: Ballot, outputs: &mut Vec<Output>) {
        outputs.push(Output::Send { to, ballot });
    }

    fn broadcast(&self, ballot: Ballot, outputs: &mut Vec<Output>) {
        for to in self.config.others() {
            self.send(to, ballot, outputs);
        }
    }
}
