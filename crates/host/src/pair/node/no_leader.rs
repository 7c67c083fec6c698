//! Reports that a broker finds no leader of its pair, and what the broker lacks to lead.

use std::time::Duration;

use bodkin_broker::{
    Instant, Node,
    member::Mode,
    wire::{Ballot, BallotRefusal, Claim},
};

use super::{
    super::troubles::{Trouble, name},
    PairThread, boot_time,
};

/// Without a leader for so many leases, and at least [`REPORT_AFTER_MIN`], a broker reports that: every failover is over before.
const REPORT_AFTER_LEASES: u32 = 10;
const REPORT_AFTER_MIN: Duration = Duration::from_secs(5);
/// A broker that stood still for so long starts to count again: it has still to read what was sent meanwhile.
const PAUSE_MIN: Duration = Duration::from_millis(2_500);

/// When a leader was last found.
pub(super) struct LeaderWatch {
    /// When this node last led, granted the other candidate its lease, or received that the other candidate leads; at first, when this node started.
    found_at: Instant,
    /// When [`PairThread::watch_leader`] last looked.
    looked_at: Instant,
}

impl LeaderWatch {
    pub(super) fn new(now: Instant) -> Self {
        Self { found_at: now, looked_at: now }
    }

    pub(super) fn found(&mut self, now: Instant) {
        self.found_at = now;
    }
}

impl PairThread {
    /// Notes a leader that a ballot shows, also one whose lease this node does not grant.
    pub(super) fn note_leader(&mut self, from: Node, ballot: &Ballot) {
        let partner = self.partner();
        let has_leader = match *ballot {
            Ballot::RenewRequest { epoch, .. } => Some(from) == partner && epoch >= self.member.epoch(),
            Ballot::Refused { reason, .. } => reason == BallotRefusal::Granted,
            // The witness reports in each heartbeat that it has granted the other candidate a lease.
            Ballot::Sighting { node, claim, .. } => Some(node) == partner && claim == Claim::Promised,
            Ballot::Grant { .. } | Ballot::VoteRequest { .. } | Ballot::Vote { .. } => false,
        };
        if has_leader {
            self.leader_watch.found(boot_time());
        }
    }

    /// Records and logs that this broker has found no leader for too long, or that it finds one again.
    pub(super) fn watch_leader(&mut self, now: Instant) {
        // A witness has no status, and the brokers report that they do not reach it.
        let is_broker = self.keeper.is_some();
        let paused_for = now.since(std::mem::replace(&mut self.leader_watch.looked_at, now));
        if paused_for > self.config.lease.max(PAUSE_MIN) {
            self.leader_watch.found(now);
        }
        let report_after = (self.config.lease * REPORT_AFTER_LEASES).max(REPORT_AFTER_MIN);
        let is_found = now.since(self.leader_watch.found_at) < report_after;
        // A process that the other nodes refuse, or whose certificate is revoked, is connected to none, and is reported as that.
        let is_refused = || self.leadership.troubles().count(|trouble| matches!(trouble, Trouble::Rejected(_) | Trouble::Revoked)) > 0;
        if !is_broker || is_found || is_refused() {
            if self.leadership.finds_no_leader(false) {
                self.leadership.troubles().clear(Trouble::NoLeader);
                if is_found {
                    tracing::warn!("this node finds a leader of the pair again");
                }
            }
            return;
        }
        let causes = self.causes_of_no_leader();
        if let Some(times) = self.seldom.due("no leader") {
            tracing::warn!(causes, times, "this node finds no leader of the pair, and cannot lead");
        }
        let text = format!("this node finds no leader of the pair, and cannot lead: {causes}");
        self.leadership.troubles().set(Trouble::NoLeader, text, None);
        self.leadership.finds_no_leader(true);
    }

    fn causes_of_no_leader(&self) -> String {
        let (own, mode) = (self.config.node, self.config.mode);
        let others = Node::ALL.into_iter().filter(|node| *node != own && (*node != Node::Witness || mode == Mode::Majority));
        let lacks = self.member.lacks_changes().then(|| "it lacks changes of the pair (start the node that led last)".to_owned());
        let causes: Vec<String> = lacks.into_iter().chain(others.filter_map(|node| self.cause(node))).collect();
        if causes.is_empty() { "it waits for votes".to_owned() } else { causes.join("; ") }
    }

    /// Returns what another node contributes to this broker's not leading, and what to do.
    fn cause(&self, node: Node) -> Option<String> {
        if !self.links.has(node) {
            return Some(format!("{} is not reached (start it, or check the network)", name(node)));
        }
        let reason = match self.member.last_refusal(node)? {
            BallotRefusal::OutOfSync => "this node lacks answered changes (start the node that led last)",
            BallotRefusal::Cold => "this node has restarted, and lacks messages that the other candidate may have",
            BallotRefusal::Restarted => "it has restarted, and waits until its earlier promises expire",
            BallotRefusal::NoVotes => "it runs without a witness (start both brokers with --witness)",
            BallotRefusal::LeaseTooLong => "the nodes run with different leases",
            BallotRefusal::Stale | BallotRefusal::Granted | BallotRefusal::Campaigning | BallotRefusal::Unconfirmed => return None,
        };
        Some(format!("{} gives no vote, because {reason}", name(node)))
    }
}
