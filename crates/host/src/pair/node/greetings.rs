//! Greetings: who is taken for a node of the pair, who is refused, what differs between the nodes, and which of them can vote.
//!
//! The member decides which process counts as a node. This module carries its decisions to the connections, the log, and
//! `status` of all nodes.

use std::time::Duration;

use bodkin_broker::{
    Instant, Node,
    member::{GreetingRefusal, Input, Peer, Tell},
    wire::{BallotRefusal, LinkFrame, RejectReason, Replication},
};

use super::{PairThread, Trouble, boot_time, name};
use crate::pair::{
    identity::PairTerms,
    link::{Fault, Purpose, Taken},
    links::{REDIAL, host},
};

/// For how long a refused process is reported after its last attempt.
const REPORTED: Duration = Duration::from_secs(10);
/// Pause between two reports of a refused process to the other nodes.
const NOTICE_PAUSE: Duration = Duration::from_secs(1);
/// Greetings that a refusal counts for: it is repeated at each attempt to connect.
const ATTEMPTS: u32 = 10;

/// When the other nodes were last told of a second process, by node.
#[derive(Debug, Default)]
pub(super) struct Notices {
    told_at: [Option<Instant>; 3],
    /// When each node last refused this process, which then connects again and again.
    rejected_at: [Option<Instant>; 3],
    /// What each node's last heartbeat has shown, on its present connection.
    progress: [Option<u64>; 3],
}

impl PairThread {
    /// The first frame of either side. What follows says whether the process counts.
    pub(super) fn greeted(&mut self, slot: usize, frame: &Replication<'_>) -> Taken {
        let Replication::Greeting { epoch, protocol, protocol_min, node, incarnation, .. } = *frame else { return Taken::Done };
        let greeted = self.links.greet(slot, Peer { node, incarnation }, protocol, protocol_min);
        let Err(why) = greeted else { return Taken::Done };
        self.step(Input::Stranger { epoch });
        self.closed_for(slot, &why);
        // An older node learns from this greeting which protocol is expected; a newer one is sent the reason.
        self.links.introduce(slot, self.introduction());
        self.reject(slot, RejectReason::Unexpected, &why.to_string());
        Taken::Last
    }

    /// The second frame of either side: the member decides whether the process is the node.
    pub(super) fn identified(&mut self, slot: usize, frame: &Replication<'_>) -> Result<Taken, Fault> {
        let (Some(peer), Some((terms, pair))) = (self.links.claims(slot), PairTerms::read(frame)) else {
            return Err("a greeting was expected first".into());
        };
        if matches!(self.links.dialled(slot), Some(Purpose::Channel)) {
            return Err("a replica channel was expected there".into());
        }
        let mut outputs = Vec::new();
        let greeted = self.member.greet(boot_time(), peer, pair, &mut outputs);
        if let Err(refusal) = greeted {
            outputs.into_iter().for_each(|output| self.carry_out(output));
            self.refuse(slot, peer.node, refusal);
            return Ok(Taken::Last);
        }
        if let Some(replaced) = self.links.establish(slot) {
            self.not_connected(peer.node);
            self.links.close(replaced, boot_time());
        }
        if self.links.dialled(slot).is_none() {
            self.links.introduce(slot, self.introduction());
        }
        outputs.into_iter().for_each(|output| self.carry_out(output));
        if self.is_told(peer.node) {
            tracing::info!(node = ?peer.node, "a node of the pair is connected");
        }
        self.compare(peer.node, &terms);
        self.tell_reached();
        Ok(Taken::Done)
    }

    /// Whether connections to a node and their ends go into the log: not while the node refuses this process.
    pub(super) fn is_told(&self, node: Node) -> bool {
        self.notices.rejected_at[node as usize].is_none_or(|at| boot_time() > at.plus(REPORTED))
    }

    /// Compares another node's settings with this one's: a difference is reported before a fail-over shows it.
    fn compare(&mut self, node: Node, terms: &PairTerms) {
        let troubles = self.leadership.troubles();
        match super::terms(&self.config).differences(terms, name(node)) {
            Some(text) => {
                if let Some(times) = self.seldom.due(&format!("settings {node:?}")) {
                    tracing::error!(?node, times, differences = text, "the settings of the pair's nodes differ");
                }
                troubles.set(Trouble::SettingsDiffer(node), text, None);
            }
            None => {
                if troubles.clear(Trouble::SettingsDiffer(node)) {
                    tracing::info!(?node, "the settings of the pair's nodes are the same again");
                }
                troubles.clear(Trouble::LeaseRefused(node));
            }
        }
    }

    /// Takes the progress of a heartbeat. A node whose progress stalls cannot write its record, and votes for no node.
    pub(super) fn progressed(&mut self, node: Node, progress: u64) {
        // The first heartbeat of a connection says nothing.
        let Some(before) = self.notices.progress[node as usize].replace(progress) else { return };
        let troubles = self.leadership.troubles();
        if before != progress {
            if troubles.clear(Trouble::RecordOf(node)) {
                tracing::info!(?node, "a node of the pair writes its record of votes again");
            }
        } else if !troubles.has(Trouble::RecordOf(node)) {
            let text = format!(
                "{} cannot write its record of votes, and votes for no node: make room on its disk; its log has the error",
                name(node)
            );
            troubles.set(Trouble::RecordOf(node), text, None);
            if let Some(times) = self.seldom.due(&format!("record {node:?}")) {
                tracing::error!(?node, times, "a node of the pair cannot write its record of votes: it votes for no node");
            }
        }
    }

    /// Forgets the progress of a node whose connection has ended. That it cannot write its record is reported until its heartbeats show otherwise.
    pub(super) fn forget_progress(&mut self, node: Node) {
        self.notices.progress[node as usize] = None;
    }

    /// Refuses a process that greets, and reports it.
    fn refuse(&mut self, slot: usize, node: Node, refusal: GreetingRefusal) {
        let address = self.links.address(slot);
        let text = format!("{} at {address} is refused: {refusal}", name(node));
        let reason = match refusal {
            GreetingRefusal::NotAMember => RejectReason::Unexpected,
            GreetingRefusal::Predecessor { .. } => RejectReason::Predecessor,
            GreetingRefusal::Duplicate { .. } => RejectReason::Duplicate,
            GreetingRefusal::OtherPair { .. } => RejectReason::OtherPair,
        };
        if let Some(times) = self.seldom.due(&format!("refused {node:?} {reason:?}")) {
            let reason = refusal.to_string();
            match refusal {
                GreetingRefusal::Predecessor { .. } => tracing::info!(?node, address, times, reason, "a greeting was refused"),
                _ => tracing::error!(?node, address, times, reason, "a process that claims to be a node of the pair was refused"),
            }
        }
        if matches!(reason, RejectReason::Duplicate | RejectReason::OtherPair) {
            self.leadership.troubles().set(Trouble::Duplicate(node), text, Some(REPORTED));
            self.report_duplicate(node, &address);
        }
        self.reject(slot, reason, &refusal.to_string());
    }

    /// Tells the other nodes, the one whose name is claimed among them.
    fn report_duplicate(&mut self, node: Node, address: &str) {
        let now = boot_time();
        let last = &mut self.notices.told_at[node as usize];
        if last.is_some_and(|last| now < last.plus(NOTICE_PAUSE)) {
            return;
        }
        *last = Some(now);
        let epoch = self.member.epoch();
        self.links.send_all(LinkFrame::Replication(Replication::Duplicate { epoch, node, address }));
    }

    /// Another node reports that it refuses a second process of a node.
    pub(super) fn duplicate_reported(&mut self, from: Node, node: Node, address: &str) {
        let address = address.escape_debug().to_string();
        if let Some(times) = self.seldom.due(&format!("reported {node:?}")) {
            tracing::error!(?node, ?from, address, times, "a second process of a node of the pair was refused at another node");
        }
        let text = format!(
            "a second process claims to be {} and is refused: it connects from {address} to {}; stop it, or stop the first one. Look for a \
             wrong --role, a copied machine, or a replaced host that has returned",
            name(node),
            name(from)
        );
        self.leadership.troubles().set(Trouble::Duplicate(node), text, Some(REPORTED));
    }

    /// Closes a connection that the member takes another process for.
    pub(super) fn disconnect(&mut self, node: Node, refusal: GreetingRefusal) {
        if let Some(slot) = self.links.slot_of(node) {
            self.refuse(slot, node, refusal);
        }
    }

    /// Sends the reason, and closes the connection; the member knows that already.
    fn reject(&mut self, slot: usize, reason: RejectReason, text: &str) {
        let epoch = self.member.epoch();
        if let Some(node) = self.links.reject(slot, boot_time(), epoch, reason, text) {
            self.not_connected(node);
        }
    }

    /// Another node refuses this process.
    pub(super) fn rejected(&mut self, slot: usize, reason: RejectReason, text: &str) -> Result<Taken, Fault> {
        let expected = self.links.expected(slot);
        let text = text.escape_debug().to_string();
        let Some(by) = expected else { return Err(Fault::new("it refuses this node", format_args!("it refuses this node: {text}"))) };
        let now = boot_time();
        let repeated = REDIAL * ATTEMPTS;
        let until = match reason {
            RejectReason::Predecessor => Some(now.plus(repeated.max(self.config.lease * 4))),
            RejectReason::Duplicate | RejectReason::OtherPair => Some(Instant::from_nanos(u64::MAX)),
            RejectReason::Unexpected => None,
        };
        if let Some(times) = self.seldom.due(&format!("rejected {by:?} {reason:?}")) {
            let by = name(by);
            match reason {
                RejectReason::Predecessor => tracing::info!(by, times, reason = text, "this process waits for its predecessor"),
                _ => {
                    tracing::error!(by, times, reason = text, "this process is refused by a node of the pair, and neither leads nor votes")
                }
            }
        }
        if reason != RejectReason::Predecessor {
            let node = name(self.config.node);
            let text = format!("this process, started as {node}, is refused by {}, and neither leads nor votes: {text}", name(by));
            self.leadership.troubles().set(Trouble::Rejected(by), text, Some(REPORTED));
        }
        self.notices.rejected_at[by as usize] = Some(now);
        if let Some(until) = until {
            self.step(Input::Rejected { by, until });
        }
        self.close(slot);
        Ok(Taken::Last)
    }

    /// A connection was closed because of what came on it: from strangers as often as they like.
    pub(super) fn closed_for(&mut self, slot: usize, fault: &Fault) {
        let (address, peer) = (self.links.address(slot), self.links.peer(slot));
        if let Some(times) = self.seldom.due(&format!("closed {peer:?} {} {}", host(&address), fault.kind)) {
            let why = fault.to_string().escape_debug().to_string();
            tracing::warn!(why, ?peer, address, times, "a connection of the pair was closed");
        }
    }

    pub(super) fn tell(&mut self, tell: Tell) {
        // Epochs are the other side's to choose.
        let thing = match tell {
            Tell::StrangerEpoch(_) => "a stranger's epoch".to_owned(),
            Tell::ForeignEpoch { from, .. } => format!("foreign epoch {from:?}"),
            other => format!("{other:?}"),
        };
        let Some(times) = self.seldom.due(&thing) else { return };
        match tell {
            Tell::NoMajority => tracing::warn!("THERE IS NO WITNESS: if the two nodes cannot reach each other, both may lead"),
            Tell::Forced(epoch) => tracing::warn!(%epoch, "this node leads because an operator wanted it: what was answered may be lost"),
            Tell::Cold(epoch) => tracing::warn!(%epoch, "this node leads without the messages that only memories held"),
            Tell::StrangerEpoch(epoch) => {
                tracing::warn!(%epoch, times, "who is no member of the pair has shown a higher epoch; it changes nothing");
            }
            Tell::NotAMember(node) => tracing::warn!(?node, times, "a frame from a node that is no member of the pair was refused"),
            Tell::NotConnected(node) => tracing::warn!(?node, times, "a ballot of a node that has not greeted was refused"),
            Tell::ForeignEpoch { from, epoch } => {
                tracing::warn!(?from, %epoch, times, "a frame with an epoch that is not its sender's was refused");
            }
            Tell::Refused { by, reason: BallotRefusal::LeaseTooLong } => {
                let lease = self.config.lease;
                let text = format!(
                    "{} refuses this node's lease of {lease:?}, because it is more than twice its own: NOBODY TAKES OVER when the leader \
                     fails; give all nodes of the pair the same [platform]",
                    name(by)
                );
                tracing::error!(?by, ?lease, times, "the lease is refused: the nodes of the pair run with different leases");
                self.leadership.troubles().set(Trouble::LeaseRefused(by), text, None);
            }
            Tell::Refused { by, reason } => tracing::info!(?by, ?reason, times, "another node of the pair neither grants nor votes"),
        }
    }
}
