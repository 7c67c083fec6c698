//! The candidate: when it asks for votes, and when they suffice.
//!
//! It votes for itself last: a node that reaches nobody raises no epoch, and disturbs nobody when it is back. Its epoch is reserved on the disk
//! while all is well, so that a promotion waits for one disk only, the voter's.

use std::time::Duration;

use super::{Member, Output, Tell, leader::Lead};
use crate::{
    epoch::{Epoch, Node},
    time::Instant,
    wire::{Ballot, BallotRefusal},
};

/// An attempt to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Campaign {
    /// The epoch that votes are asked for.
    pub epoch: Epoch,
    pub next_ask: Instant,
    /// When the last request left: a vote's lease begins no later.
    asked_at: Instant,
    /// The end of the lease that the votes give.
    until: Option<Instant>,
}

impl Member {
    /// Keeps an own epoch in reserve that is higher than any that is known.
    pub(super) fn reserve(&mut self) {
        let known = self.known();
        if self.config.node != Node::Witness && self.spare <= known {
            self.spare = known.max(self.wanted.reserved).next_of(self.config.node);
            self.wanted.reserved = self.spare;
        }
    }

    /// When this node may become a candidate, if only time is missing.
    pub(super) fn campaign_begin(&self) -> Option<Instant> {
        let node = self.config.node;
        let may_ever = node != Node::Witness && (self.config.is_by_majority() || self.config.wins() || self.forced);
        let lacks_something = self.wanted.standing.out == Some(node) && !self.forced;
        // Another process leads as this node, or may: a second leader is worse than none.
        if !may_ever || lacks_something || self.is_rejected() {
            return None;
        }
        let promised = self.promise.filter(|promise| promise.to.node != node).map_or(self.silent_until, |promise| promise.until);
        Some(promised.max(self.silent_until).max(self.yields_until))
    }

    /// Becomes a candidate if nobody leads any more, asks for votes, and leads if they suffice.
    pub(super) fn campaign(&mut self, outputs: &mut Vec<Output>) {
        let may_begin = self.campaign_begin().is_some_and(|begin| self.now >= begin);
        if !may_begin {
            self.campaign = None;
            return;
        }
        let is_overtaken = self.lead.as_ref().is_some_and(|lead| lead.overtaken);
        if self.campaign.is_none() && (self.lead.is_none() || is_overtaken) {
            self.campaign = Some(Campaign { epoch: self.spare, next_ask: self.now, asked_at: self.now, until: None });
        }
        if self.config.is_by_majority() {
            self.ask(outputs);
        } else if let Some(campaign) = &mut self.campaign {
            campaign.until = Some(self.now.plus(self.config.lease));
            campaign.next_ask = self.now.plus(self.config.heartbeat);
        }
        self.win(outputs);
    }

    fn ask(&mut self, outputs: &mut Vec<Output>) {
        let Some(campaign) = self.campaign.as_mut().filter(|campaign| self.now >= campaign.next_ask) else { return };
        if campaign.epoch != self.spare {
            (campaign.epoch, campaign.until) = (self.spare, None);
        }
        campaign.asked_at = self.now;
        campaign.next_ask = self.now.plus(self.config.heartbeat);
        let request = Ballot::VoteRequest {
            epoch: campaign.epoch,
            sent_at_ns: self.now.nanos(),
            lease_ns: self.config.lease_ns(),
            standing: self.wanted.standing,
            warm: self.is_warm(),
            forced: self.forced,
        };
        self.broadcast(request, outputs);
    }

    pub(super) fn voted(&mut self, epoch: Epoch, sent_at_ns: u64) {
        let sent_at = Instant::from_nanos(sent_at_ns);
        let Some(campaign) = self.campaign.as_mut().filter(|campaign| campaign.epoch == epoch && sent_at <= campaign.asked_at) else {
            return;
        };
        campaign.until = campaign.until.max(Some(self.config.held_until(sent_at)));
    }

    /// The own vote is the last one. Nothing was promised to another node meanwhile: that ends the campaign.
    fn win(&mut self, outputs: &mut Vec<Output>) {
        let Some(Campaign { epoch, until: Some(until), .. }) = self.campaign else { return };
        let is_reserved = self.durable.reserved >= epoch;
        if !is_reserved || until <= self.now || epoch < self.wanted.epoch {
            return;
        }
        if !self.config.is_by_majority() {
            outputs.push(Output::Tell(Tell::NoMajority));
        }
        if self.forced {
            outputs.push(Output::Tell(Tell::Forced(epoch)));
        }
        // Before the first leader there were no messages.
        if !self.is_warm() && self.wanted.epoch != Epoch::NONE {
            outputs.push(Output::Tell(Tell::Cold(epoch)));
        }
        self.wanted.epoch = epoch;
        if !self.config.is_by_majority() {
            self.name_pair();
        }
        self.wanted.standing = Lead::first_standing(epoch, self.config.node, self.wanted.standing, self.forced);
        self.promise = None;
        self.followed = None;
        self.yields_until = Instant::default();
        self.campaign = None;
        (self.warm, self.forced) = (epoch, false);
        self.refusals_told = [None; 3];
        self.lead = Some(Lead::new(epoch, until, self.now));
        outputs.push(Output::Lead { epoch, until });
        self.reserve();
        // The voters learn the pair's identity before their first grant.
        self.report_all(outputs);
    }

    pub(super) fn refused(&mut self, by: Node, asked: Epoch, reason: BallotRefusal, retry_after_ns: u64, outputs: &mut Vec<Output>) {
        let retry_after = Duration::from_nanos(retry_after_ns);
        if let Some(campaign) = self.campaign.as_mut().filter(|campaign| campaign.epoch == asked && !retry_after.is_zero()) {
            campaign.next_ask = campaign.next_ask.min(self.now.plus(retry_after));
        }
        // A voter knows a higher epoch, so it cannot grant this one any more: a still higher one is led without a pause.
        if let Some(lead) = self.lead.as_mut().filter(|lead| lead.epoch == asked && reason == BallotRefusal::Stale) {
            lead.overtaken = true;
        }
        if self.refusals_told[by.index()].replace(reason) != Some(reason) {
            outputs.push(Output::Tell(Tell::Refused { by, reason }));
        }
    }
}
