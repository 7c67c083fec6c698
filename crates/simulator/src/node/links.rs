//! Connections of a node: greetings, the process that counts as each other node, refusals, heartbeats.
//!
//! The member decides who counts ([`Member::greet`](bodkin_broker::member::Member::greet)); this module does what the host's thread does with its
//! decisions. Of two nodes, the one that connects greets first, and the other one answers when it has accepted the greeting. Until then no other
//! frame counts. A refused process is sent the reason, and its connection is closed.

use std::time::Duration;

use bodkin_broker::{
    Epoch, Node,
    member::{GreetingRefusal, Input as MemberInput, Peer},
    wire::{LinkFrame, RejectReason, Replication},
};

use super::{NodeProcess, Running, Waiting, link_packet};
use crate::{
    clock::Time,
    effects::{Effects, Fact},
    network::ProcessId,
    packet::Packet,
    roster::Process,
};

/// Leases for which a node counts as refused by the one that waits for its predecessor. The refusal is repeated at each attempt to connect.
const REFUSED_LEASES: u32 = 4;

impl NodeProcess {
    /// A connection is made.
    pub fn connected(&mut self, now: Time, peer: ProcessId, effects: &mut Effects) -> Option<u64> {
        let greeting = self.greeting_to(peer, true);
        self.running.as_mut()?.connected.push(peer);
        effects.sends.extend(greeting);
        self.work(now, effects)
    }

    /// The greeting to another node's process. `is_first`: it is sent if this side connects, and otherwise if it answers.
    fn greeting_to(&self, peer: ProcessId, is_first: bool) -> Option<(ProcessId, Packet)> {
        let incarnation = self.running.as_ref()?.incarnation;
        let connects = Process::of(self.process).calls(Process::of(peer));
        let is_due = Process::of(peer).node().is_some() && connects == is_first;
        // The greeting of the replica channel is another one, which the shard's side sends.
        let greeting = Replication::Channel { epoch: Epoch::NONE, protocol: 0, protocol_min: 0, node: self.node, incarnation };
        is_due.then(|| (peer, link_packet(&LinkFrame::Replication(greeting))))
    }

    /// A connection has ended.
    pub fn closed(&mut self, now: Time, peer: ProcessId, effects: &mut Effects) -> Option<u64> {
        let node = self.running.as_mut()?.forget(peer);
        if let Some(node) = node {
            self.ask_member(now, MemberInput::Gone(node), effects);
        }
        if node.is_some() || Process::of(peer).node().is_none() {
            let said = self.take(now, Waiting::Closed(peer), effects);
            debug_assert!(said.is_none(), "only frames say something to the member");
        }
        self.ask_for_leader(now, effects);
        self.work(now, effects)
    }

    /// Something has arrived. Gives how long the work is that it has begun, in nanoseconds.
    pub fn receive(&mut self, now: Time, from: ProcessId, packet: Packet, effects: &mut Effects) -> Option<u64> {
        let (Packet::Link(bytes), Some(node)) = (&packet, Process::of(from).node()) else {
            return self.enter(now, Waiting::Packet(from, packet), effects);
        };
        let frame = LinkFrame::decode(bytes).expect("nodes send valid frames");
        match frame {
            LinkFrame::Replication(Replication::Channel { incarnation, .. }) => {
                self.greeted(now, from, Peer { node, incarnation }, effects);
                return self.work(now, effects);
            }
            LinkFrame::Replication(Replication::Rejected { reason, .. }) => {
                self.rejected(now, from, node, reason, effects);
                return self.work(now, effects);
            }
            // A frame of a process that does not count as the node.
            _ if self.running.as_ref()?.established[node as usize] != Some(from) => return self.work(now, effects),
            _ => {}
        }
        if Some(node) == self.node.partner() {
            self.running.as_mut()?.partner_heard = now;
        }
        if let LinkFrame::Ballot(ballot) = frame {
            self.ask_member(now, MemberInput::Received { from: node, ballot }, effects);
            return self.work(now, effects);
        }
        self.ask_member(now, MemberInput::Heard(node), effects);
        self.enter(now, Waiting::Packet(from, packet), effects)
    }

    /// Whether the process of another node counts as it here.
    pub fn counts(&self, process: ProcessId) -> bool {
        let established = self.running.as_ref().map(|running| running.established);
        established.zip(Process::of(process).node()).is_some_and(|(established, node)| established[node as usize] == Some(process))
    }

    /// A heartbeat is due: the member reports to the other nodes which processes it sees.
    pub(super) fn beat(&mut self, now: Time, effects: &mut Effects) {
        let (reading, Some(heartbeat)) = (self.clock.reading(now), self.heartbeat) else { return };
        let Some(running) = &mut self.running else { return };
        running.beat_at = Some(reading.plus(heartbeat));
        self.ask_member(now, MemberInput::Beat, effects);
    }

    /// Another node's process greets. The member decides whether it counts as the node.
    fn greeted(&mut self, now: Time, from: ProcessId, peer: Peer, effects: &mut Effects) {
        let reading = self.clock.reading(now);
        let answer = self.greeting_to(from, false);
        let is_partner = Some(peer.node) == self.node.partner();
        let Some(running) = &mut self.running else { return };
        let greeted = running.member.greet(reading, peer, None, &mut running.outputs);
        match greeted {
            Ok(()) => {
                if let Some(replaced) = running.established[peer.node as usize].filter(|replaced| *replaced != from) {
                    running.close(replaced, effects);
                }
                running.established[peer.node as usize] = Some(from);
                if is_partner {
                    (running.partner, running.partner_heard) = (from, now);
                }
                if let Process::Clone(_) = Process::of(from) {
                    effects.facts.push(Fact::TookClone { process: from });
                }
                effects.sends.extend(answer);
                running.waiting.push_back(Waiting::Connected(from));
            }
            Err(refusal) => running.refuse(from, refusal, effects),
        }
        self.carry_out(effects);
    }

    /// Another node refuses this process.
    fn rejected(&mut self, now: Time, from: ProcessId, by: Node, reason: RejectReason, effects: &mut Effects) {
        let lease = Duration::from_nanos(self.workload.platform.lease.lease.get().unsigned_abs());
        let until = match reason {
            RejectReason::Predecessor => Some(self.clock.reading(now).plus(lease * REFUSED_LEASES)),
            RejectReason::Duplicate | RejectReason::OtherPair => Some(bodkin_broker::Instant::NEVER),
            RejectReason::Unexpected => None,
        };
        if let Some(until) = until {
            self.ask_member(now, MemberInput::Rejected { by, until }, effects);
        }
        let Some(running) = &mut self.running else { return };
        if running.close(from, effects) {
            self.ask_member(now, MemberInput::Gone(by), effects);
        }
    }
}

impl Running {
    /// The member takes another process for the node: its connection is closed, which the member knows.
    pub(super) fn disconnect(&mut self, node: Node, refusal: GreetingRefusal, effects: &mut Effects) {
        if let Some(process) = self.established[node as usize] {
            self.refuse(process, refusal, effects);
        }
    }

    /// Sends a process the reason why it is refused, and closes its connection.
    fn refuse(&mut self, process: ProcessId, refusal: GreetingRefusal, effects: &mut Effects) {
        let reason = match refusal {
            GreetingRefusal::NotAMember => RejectReason::Unexpected,
            GreetingRefusal::Predecessor { .. } => RejectReason::Predecessor,
            GreetingRefusal::Duplicate { .. } => RejectReason::Duplicate,
            GreetingRefusal::OtherPair { .. } => RejectReason::OtherPair,
        };
        let frame = Replication::Rejected { epoch: self.member.epoch(), reason, text: "" };
        effects.sends.push((process, link_packet(&LinkFrame::Replication(frame))));
        self.close(process, effects);
    }

    /// Closes a connection; true if its process counted as a node until now.
    fn close(&mut self, process: ProcessId, effects: &mut Effects) -> bool {
        effects.closes.push(process);
        let was_established = self.forget(process).is_some();
        if was_established {
            // The shard learns it before anything that arrives on the next connection.
            self.waiting.push_front(Waiting::Closed(process));
        }
        was_established
    }

    /// Forgets a connection; gives the node that its process counted as.
    fn forget(&mut self, process: ProcessId) -> Option<Node> {
        self.connected.retain(|connected| *connected != process);
        // What was read from it, or was to be written to it, goes with it: nothing of it may get into the next one.
        self.waiting.retain(|waiting| !matches!(waiting, Waiting::Packet(from, _) | Waiting::Connected(from) if *from == process));
        if let Some(sends) = &mut self.at_hand {
            sends.retain(|(to, _)| *to != process);
        }
        let node = Process::of(process).node()?;
        self.established[node as usize].take_if(|established| *established == process).map(|_| node)
    }
}
