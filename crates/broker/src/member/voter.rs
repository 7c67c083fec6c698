//! The voter: whom it grants a lease, whom it votes for.
//!
//! A grant promises to vote for nobody else for a while; it needs no disk, for who forgets it is silent after its restart for the longest lease that it may have granted. A vote is on
//! the disk before it is sent, for it must never be given twice in an epoch, nor for a lower one.

use std::time::Duration;

use super::{Member, Output, Peer};
use crate::{
    epoch::{Epoch, Node},
    time::Instant,
    wire::{Ballot, BallotRefusal, Standing},
};

/// To vote for no process but `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Promise {
    pub to: Peer,
    pub until: Instant,
}

/// A renewal that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Renewal {
    pub from: Node,
    epoch: Epoch,
    sent_at_ns: u64,
}

/// A vote that waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct VoteAsk {
    epoch: Epoch,
    sent_at_ns: u64,
}

/// No, and when to ask again, if time helps.
struct Refusal {
    reason: BallotRefusal,
    retry_at: Option<Instant>,
}

impl Refusal {
    fn for_good(reason: BallotRefusal) -> Self {
        Self { reason, retry_at: None }
    }

    fn until(reason: BallotRefusal, at: Instant) -> Self {
        Self { reason, retry_at: Some(at) }
    }
}

impl Member {
    pub(super) fn renewal_asked(&mut self, peer: Peer, ballot: Ballot, outputs: &mut Vec<Output>) {
        let from = peer.node;
        let Ballot::RenewRequest { epoch, sent_at_ns, lease_ns, standing } = ballot else { unreachable!("renewals only") };
        let lease = Duration::from_nanos(lease_ns);
        if epoch < self.wanted.epoch {
            return self.refuse(from, epoch, Refusal::for_good(BallotRefusal::Stale), outputs);
        }
        self.follow(from, epoch, standing, outputs);
        if let Some(refusal) = self.lease_objection(lease) {
            return self.refuse(from, epoch, refusal, outputs);
        }
        if let Some(promise) = self.promise_to_former(peer) {
            return self.refuse(from, epoch, Refusal::until(BallotRefusal::Granted, promise.until), outputs);
        }
        self.promise_to(peer, lease);
        self.renewal = Some(Renewal { from, epoch, sent_at_ns });
        self.send(from, Ballot::Grant { epoch, sent_at_ns, standing: self.durable.standing }, outputs);
    }

    /// Another node leads: a majority has voted for it, so whoever led before has stopped.
    fn follow(&mut self, leader: Node, epoch: Epoch, standing: Standing, outputs: &mut Vec<Output>) {
        self.wanted.epoch = epoch;
        self.wanted.standing = self.wanted.standing.max(standing);
        self.warm_at = self.now;
        self.campaign = None;
        if let Some(lead) = self.lead.take() {
            outputs.push(Output::Fenced { epoch: lead.epoch });
        }
        if self.followed != Some(epoch) {
            // Who follows another leader than before has the messages of the wrong one.
            if self.warm.owner() != Some(leader) {
                self.warm = Epoch::NONE;
            }
            self.followed = Some(epoch);
            self.yields_until = Instant::default();
            self.refusals_told = [None; 3];
            self.forced = false;
            outputs.push(Output::Follow { leader, epoch });
        }
    }

    /// The newest renewal is granted again, with the standing that is on the disk now.
    pub(super) fn grant_again(&mut self, outputs: &mut Vec<Output>) {
        let Some(Renewal { from, epoch, sent_at_ns }) = self.renewal.filter(|renewal| renewal.epoch == self.wanted.epoch) else { return };
        self.send(from, Ballot::Grant { epoch, sent_at_ns, standing: self.durable.standing }, outputs);
    }

    pub(super) fn vote_asked(&mut self, peer: Peer, ballot: Ballot, outputs: &mut Vec<Output>) {
        let from = peer.node;
        let Ballot::VoteRequest { epoch, sent_at_ns, lease_ns, standing, warm, forced } = ballot else { unreachable!("votes only") };
        let lease = Duration::from_nanos(lease_ns);
        let standing = self.wanted.standing.max(standing);
        let objection = self.objection(peer, epoch, lease).or_else(|| if forced { None } else { self.doubt(from, standing, warm) });
        if warm && standing.out != Some(from) {
            self.warm_at = self.now;
        }
        if let Some(refusal) = objection {
            return self.refuse(from, epoch, refusal, outputs);
        }
        // A candidate that has not met the pair yet must not give it another identity.
        if self.pair().is_some() {
            self.report(from, outputs);
        }
        self.wanted.epoch = epoch;
        self.wanted.standing = standing;
        self.campaign = None;
        self.promise_to(peer, lease);
        self.asks[from.index()] = Some(VoteAsk { epoch, sent_at_ns });
        self.vote_persisted(outputs);
    }

    /// Why there must be no vote: two could lead.
    fn objection(&self, peer: Peer, epoch: Epoch, lease: Duration) -> Option<Refusal> {
        if !self.config.is_by_majority() {
            return Some(Refusal::for_good(BallotRefusal::NoVotes));
        }
        if epoch < self.wanted.epoch.max(self.maybe_led) {
            return Some(Refusal::for_good(BallotRefusal::Stale));
        }
        if let Some(refusal) = self.lease_objection(lease) {
            return Some(refusal);
        }
        let led_until = self.lead.as_ref().map_or(self.led_until, |lead| lead.until);
        if self.lead.is_some() || self.now < led_until {
            return Some(Refusal::until(BallotRefusal::Granted, led_until));
        }
        if let Some(promise) = self.promise_to_other(peer) {
            return Some(Refusal::until(BallotRefusal::Granted, promise.until));
        }
        // Of two candidates the one with the higher epoch goes on, and the other votes for it.
        let campaigns = self.campaign.as_ref().is_some_and(|campaign| campaign.epoch > epoch);
        campaigns.then_some(Refusal::for_good(BallotRefusal::Campaigning))
    }

    /// Why this voter must not promise a lease of this length. The length has to be on the disk first, so that a restarted process is silent for as long.
    fn lease_objection(&self, lease: Duration) -> Option<Refusal> {
        if lease > self.config.lease_max {
            return Some(Refusal::for_good(BallotRefusal::LeaseTooLong));
        }
        let may_have_promised = self.now < self.silent_until || lease > self.durable.lease_max;
        may_have_promised.then_some(Refusal::until(BallotRefusal::Restarted, self.silent_until))
    }

    /// Why there should be no vote: the candidate lacks something.
    fn doubt(&self, from: Node, standing: Standing, warm: bool) -> Option<Refusal> {
        if standing.out == Some(from) {
            return Some(Refusal::for_good(BallotRefusal::OutOfSync));
        }
        if warm || standing.out.is_some() {
            return None;
        }
        let has_messages = self.is_warm() && self.config.node != Node::Witness;
        let waited_until = self.warm_at.plus(self.config.cold_wait);
        (has_messages || self.now < waited_until).then_some(Refusal::until(BallotRefusal::Cold, waited_until))
    }

    /// Sends the votes that are on the disk; one that a higher epoch has overtaken is not sent.
    pub(super) fn vote_persisted(&mut self, outputs: &mut Vec<Output>) {
        for candidate in [Node::First, Node::Second] {
            let Some(VoteAsk { epoch, sent_at_ns }) = self.asks[candidate.index()] else { continue };
            if epoch < self.wanted.epoch {
                self.asks[candidate.index()] = None;
            } else if epoch <= self.durable.epoch {
                self.asks[candidate.index()] = None;
                self.send(candidate, Ballot::Vote { epoch, sent_at_ns }, outputs);
            }
        }
    }

    /// A promise to any process but `peer` that has not expired.
    fn promise_to_other(&self, peer: Peer) -> Option<Promise> {
        self.promise.filter(|promise| promise.to != peer && self.now < promise.until)
    }

    /// A promise to another process of the same node that has not expired. A promise to another node is no objection to a
    /// renewal: a majority has elected the leader, so that the node has stopped.
    fn promise_to_former(&self, peer: Peer) -> Option<Promise> {
        self.promise_to_other(peer).filter(|promise| promise.to.node == peer.node)
    }

    /// The voter does not know yet whether the other voter takes the same process for the node.
    pub(super) fn refuse_unconfirmed(&mut self, to: Node, asked: Epoch, outputs: &mut Vec<Output>) {
        self.refuse(to, asked, Refusal::for_good(BallotRefusal::Unconfirmed), outputs);
    }

    fn promise_to(&mut self, to: Peer, lease: Duration) {
        let until = self.config.promised_until(self.now, lease);
        let kept = self.promise.filter(|promise| promise.to == to).map_or(until, |promise| promise.until.max(until));
        self.promise = Some(Promise { to, until: kept });
    }

    fn refuse(&mut self, to: Node, asked: Epoch, refusal: Refusal, outputs: &mut Vec<Output>) {
        let campaign = self.campaign.as_ref().map_or(Epoch::NONE, |campaign| campaign.epoch);
        let retry_after = refusal.retry_at.map_or(Duration::ZERO, |at| at.since(self.now));
        let refused = Ballot::Refused {
            epoch: self.wanted.epoch.max(self.maybe_led).max(campaign),
            asked,
            reason: refusal.reason,
            retry_after_ns: u64::try_from(retry_after.as_nanos()).unwrap_or(u64::MAX),
        };
        self.send(to, refused, outputs);
    }
}
