//! The leader: when it renews its lease, when it stops, and what it may do without its Backup.

use super::{Member, Output, Protection};
use crate::{
    epoch::{Epoch, Node},
    time::Instant,
    wire::{Ballot, Standing},
};

/// Leading in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lead {
    pub epoch: Epoch,
    /// The end of the lease, by the own clock.
    pub until: Instant,
    renew_at: Instant,
    /// When the newest renewal was asked for: a grant of a later one is nobody's.
    asked_at: Instant,
    /// The newest standing that each other node has on its disk.
    recorded: [Standing; 3],
    /// Whether a voter knows a higher epoch.
    pub overtaken: bool,
    /// Whether the Backup has been brought in sync in this epoch.
    joined: bool,
    pub protection: Protection,
}

impl Lead {
    pub fn new(epoch: Epoch, until: Instant, now: Instant) -> Self {
        let recorded = [Standing::default(); 3];
        Self { epoch, until, renew_at: now, asked_at: now, recorded, overtaken: false, joined: false, protection: Protection::Unsettled }
    }

    /// A leader's first statement: what was known of its partner. It is newer than any that the leader before it may have made and not
    /// relied on. Who was forced to lead is the measure of what is in sync.
    pub fn first_standing(epoch: Epoch, leader: Node, known: Standing, forced: bool) -> Standing {
        let out = if forced { leader.partner() } else { known.out };
        Standing { epoch, number: 0, out }
    }

    pub fn next_timer(&self) -> Instant {
        self.until.min(self.renew_at)
    }
}

impl Member {
    /// Stops when the lease is over, whatever else happens.
    pub(super) fn expire(&mut self, outputs: &mut Vec<Output>) {
        if let Some(lead) = self.lead.filter(|lead| lead.until <= self.now) {
            self.lead = None;
            outputs.push(Output::Fenced { epoch: lead.epoch });
        }
    }

    pub(super) fn granted(&mut self, from: Node, epoch: Epoch, sent_at_ns: u64, standing: Standing, outputs: &mut Vec<Output>) {
        let sent_at = Instant::from_nanos(sent_at_ns);
        let until = self.config.held_until(sent_at);
        let Some(lead) = self.lead.as_mut().filter(|lead| lead.epoch == epoch && sent_at <= lead.asked_at) else { return };
        if standing.epoch == epoch {
            let recorded = &mut lead.recorded[from.index()];
            *recorded = standing.max(*recorded);
        }
        if until > lead.until {
            lead.until = until;
            outputs.push(Output::Lead { epoch, until });
        }
        // A voter has the identity, and tells it each later candidate before it votes.
        self.name_pair();
    }

    /// Asks for the lease to go on, every heartbeat.
    pub(super) fn renew(&mut self, outputs: &mut Vec<Output>) {
        let (standing, is_rejected) = (self.wanted.standing, self.is_rejected());
        let Some(lead) = self.lead.as_mut().filter(|lead| self.now >= lead.renew_at) else { return };
        lead.renew_at = self.now.plus(self.config.heartbeat);
        lead.asked_at = self.now;
        let epoch = lead.epoch;
        // Without a witness, nothing else stops a process that is not the node's.
        if !self.config.is_by_majority() && !is_rejected {
            lead.until = self.now.plus(self.config.lease);
            outputs.push(Output::Lead { epoch, until: lead.until });
        }
        let request = Ballot::RenewRequest { epoch, sent_at_ns: self.now.nanos(), lease_ns: self.config.lease_ns(), standing };
        self.broadcast(request, outputs);
    }

    /// States whether the Backup is in sync. "Out of sync" counts when it is on this disk and on one other disk, so that every majority knows it. "In sync"
    /// counts when it is on this disk and on the Backup's, because a Backup that takes itself to be out asks for no votes.
    pub(super) fn state_backup(&mut self, in_sync: bool) {
        let partner = self.config.node.partner();
        assert!(partner.is_some(), "a witness has no Backup");
        let Some(lead) = &mut self.lead else { return };
        lead.joined = in_sync;
        let out = if in_sync { None } else { partner };
        let standing = &mut self.wanted.standing;
        if standing.out != out {
            *standing = Standing { epoch: lead.epoch, number: standing.number + 1, out };
            lead.renew_at = self.now;
        }
    }

    /// Stops so that the other candidate may lead, which has everything. Voters keep their promises until these expire. This node does not vote before its
    /// own lease has expired, because its shards may receive the news late and act until then.
    pub(super) fn hand_over(&mut self, outputs: &mut Vec<Output>) {
        let may_be_led = self.config.is_by_majority();
        let Some(lead) = self.lead.take_if(|lead| may_be_led && lead.protection == Protection::Protected) else { return };
        // Less than voters let a cold candidate wait: a Backup that restarts meanwhile has lost what this node still has.
        (self.yields_until, self.led_until) = (self.now.plus(self.config.cold_wait / 2), lead.until);
        outputs.push(Output::Fenced { epoch: lead.epoch });
    }

    /// Tells when what may be counted on has changed.
    pub(super) fn settle(&mut self, outputs: &mut Vec<Output>) {
        let stated = self.wanted.standing;
        let by_majority = self.config.is_by_majority();
        let Some(lead) = &mut self.lead else { return };
        let knows = |node: Node| lead.recorded[node.index()] >= stated;
        let is_known = match stated.out {
            None => self.config.node.partner().is_some_and(knows),
            Some(_) => self.config.others().any(knows),
        };
        let is_recorded = self.durable.standing == stated && (!by_majority || is_known);
        let protection = match stated.out {
            _ if !is_recorded => Protection::Unsettled,
            Some(_) => Protection::Alone,
            None if lead.joined => Protection::Protected,
            None => Protection::Unsettled,
        };
        if protection != lead.protection {
            lead.protection = protection;
            outputs.push(Output::Protection(protection));
        }
    }
}
