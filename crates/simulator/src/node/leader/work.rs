//! The pieces of a leader's work, and what becomes of its shard's outputs.

use bodkin_broker::{
    BackupStanding, EventId, Input, Instant, Numberer, Output, StreamIdentity, SubscriptionKey, TopicId, Wanted, Work,
    wire::{ClientFrame, EventHeader, Flags, LinkFrame, Position, Replication},
};

use super::{Here, Leader, Session, name_of, number_of};
use crate::{
    effects::{Effects, Fact},
    network::ProcessId,
    node::{command_packet, link_packet},
    packet::Packet,
    roster::Process,
};

impl Leader {
    /// Ends a turn, and takes the next piece of work: what it sends when it is done, and how long it takes, in nanoseconds.
    pub fn next_work(&mut self, here: Here<'_>, effects: &mut Effects) -> Option<(Vec<(ProcessId, Packet)>, u64)> {
        self.shard.end_turn(here.reading, &mut self.outputs);
        self.carry_out(here, effects);
        let work = self.shard.next(here.reading, &mut |_, _| Wanted::Bytes(1), &mut self.outputs);
        let Some(work) = work else {
            self.is_in_batch = false;
            self.carry_out(here, effects);
            self.shard.end_turn(here.reading, &mut self.outputs);
            self.carry_out(here, effects);
            return None;
        };
        // What is done with it goes out behind what its outputs say.
        let before = effects.sends.len();
        let delivered = self.take_deliveries();
        self.carry_out(here, effects);
        let cost_ns = self.send_work(here, work, &delivered, effects);
        let sends = effects.sends.split_off(before);
        for key in delivered {
            self.step(here, Input::Sent { subscription: key, bytes: 1 }, effects);
        }
        Some((sends, cost_ns))
    }

    fn take_deliveries(&mut self) -> Vec<SubscriptionKey> {
        let mut delivered = Vec::new();
        self.outputs.retain(|output| {
            let Output::Deliver { subscription, .. } = output else { return true };
            delivered.push(*subscription);
            false
        });
        delivered
    }

    fn send_work(&mut self, here: Here<'_>, work: Work, delivered: &[SubscriptionKey], effects: &mut Effects) -> u64 {
        let spec = |topic: TopicId| &here.workload.topics[topic.0 as usize].spec;
        let epoch = self.epoch;
        let utc_ns = |created: Instant| u64::try_from(i128::from(created.nanos()) + here.clock.utc_minus_local_ns(here.now)).unwrap_or(0);
        match work {
            Work::Dispatch { slot, stream, event, created, .. } => {
                self.is_in_batch = false;
                effects.facts.push(Fact::Acts { process: here.process, action: "dispatches" });
                let header = EventHeader {
                    flags: Flags::default(),
                    publisher: event.publisher,
                    incarnation: event.incarnation,
                    sequence: event.sequence,
                    created_utc_ns: utc_ns(created),
                    epoch,
                };
                let mut bytes = Vec::new();
                header.encode(&mut bytes);
                let header = bytes.try_into().expect("a header has its length");
                let packet = Packet::Event { topic: event.topic.0 as u16, header, payload: self.payloads[slot.index()] };
                for key in delivered {
                    let receiver = *self.shard.receiver(*key).expect("who is delivered to is there");
                    effects.sends.push((receiver, packet.clone()));
                }
                self.answer_dispatched(slot, stream, event, effects);
                spec(event.topic).dispatch_cost.get().unsigned_abs()
            }
            Work::Replicate { slot, position, number, event, created } => {
                let payload = self.payloads[slot.index()].to_be_bytes();
                let frame = Replication::Replica {
                    epoch,
                    position,
                    stream: number,
                    sequence: event.sequence,
                    created_utc_ns: utc_ns(created),
                    payload: &payload,
                };
                effects.sends.push((here.partner, link_packet(&LinkFrame::Replication(frame))));
                let batch = if std::mem::replace(&mut self.is_in_batch, true) { 0 } else { here.workload.platform.batch_cost.get() };
                (spec(event.topic).replica_cost.get() + batch).unsigned_abs()
            }
            Work::EndSnapshot { position } => {
                let frame = Replication::SnapshotEnd { epoch, position };
                effects.sends.push((here.partner, link_packet(&LinkFrame::Replication(frame))));
                0
            }
        }
    }

    /// The Backup has everything up to a position.
    pub fn acknowledged(&mut self, here: Here<'_>, through: Position, effects: &mut Effects) {
        self.shard.acknowledged(through, &mut self.outputs).expect("a Backup acknowledges what it was sent");
        self.carry_out(here, effects);
        self.answer(here, effects);
    }

    pub(super) fn carry_out(&mut self, here: Here<'_>, effects: &mut Effects) {
        let mut outputs = std::mem::take(&mut self.outputs.0);
        for output in outputs.drain(..) {
            self.carry_out_one(here, output, effects);
        }
        self.outputs.0 = outputs;
    }

    fn carry_out_one(&mut self, here: Here<'_>, output: Output, effects: &mut Effects) {
        let epoch = self.epoch;
        let mut link = |frame: Replication<'_>| effects.sends.push((here.partner, link_packet(&LinkFrame::Replication(frame))));
        match output {
            Output::Declare { stream, number } => {
                let identity = self.shard.identity(stream).expect("a declared stream is open");
                let topic = &here.workload.topics[identity.topic.0 as usize].name;
                let StreamIdentity { publisher, incarnation, .. } = identity;
                link(Replication::StreamOpen { epoch, stream: number, publisher, incarnation, topic });
            }
            Output::Discard { number, through } => link(Replication::Discard { epoch, stream: number, through }),
            Output::Closed { number: Some(number), .. } => link(Replication::StreamClose { epoch, stream: number }),
            Output::Closed { number: None, .. } | Output::Freed { .. } => {}
            Output::Replicated { operation } => {
                self.control_replicated = self.control_replicated.max(operation);
                self.tell_in_sync();
            }
            Output::CaughtUp => {
                self.session = Session::Settling;
                self.control_replicated = self.control_replicated.max(self.control_given);
                self.answered_alone = Some(self.committed);
                self.tell_in_sync();
                self.stand(here, BackupStanding::Settling, effects);
            }
            Output::Covered { stream, through } => {
                let Some(StreamIdentity { publisher, incarnation, topic }) = self.shard.identity(stream) else { return };
                effects.facts.push(Fact::Acts { process: here.process, action: "covers" });
                if incarnation.numberer() == Numberer::Node {
                    return self.answer_covered(stream, through, effects);
                }
                let frame = ClientFrame::Covered { epoch, incarnation, through, topic: &here.workload.topics[topic.0 as usize].name };
                effects.sends.push((Process::Publisher(number_of(publisher)).id(), command_packet(&frame)));
            }
            Output::Shed { stream, sequence, slot, .. } => {
                let Some(identity) = self.shard.identity(stream) else { return };
                if identity.incarnation.numberer() == Numberer::Node {
                    return self.refuse_dropped(slot, effects);
                }
                effects.facts.push(Fact::Shed { stream: name_of(identity), sequence: sequence.0 });
            }
            Output::TellLast { subscription, event } => {
                let topic = &here.workload.topics[event.topic.0 as usize].name;
                let EventId { publisher, incarnation, sequence, .. } = event;
                let receiver = *self.shard.receiver(subscription).expect("who is told is there");
                let frame = ClientFrame::Last { epoch, publisher, incarnation, sequence, topic };
                effects.sends.push((receiver, command_packet(&frame)));
            }
            Output::Arrived { .. } => unreachable!("no checkpoint of a graph is sent"),
            Output::NotRequired { .. } => unreachable!("nobody is away for so long"),
            Output::TellLoss { .. } | Output::FellBehind { .. } => unreachable!("no queue is so short"),
            Output::Deliver { .. } => unreachable!("deliveries come with their work"),
        }
    }
}
