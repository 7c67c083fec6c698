//! Events that the leader numbers, and the answers to their publishers.

use bodkin_broker::{Accepted, EventId, NextRefusal, SlotId, StreamId, TopicId};

use super::{Here, Leader, id_of_requester};
use crate::{
    effects::{Effects, Fact},
    network::ProcessId,
    packet::{Answer, Packet},
    roster::Process,
};

impl Leader {
    /// A requester's event. It is answered when it is safe.
    pub fn publish_unnumbered(&mut self, here: Here<'_>, from: ProcessId, topic: u16, payload: u64, effects: &mut Effects) {
        let Process::Requester(requester) = Process::of(from) else { unreachable!("only requesters send requests") };
        let refused = (from, Packet::Answer(Answer::Refused));
        let Ok(permit) = self.shard.permit() else { return effects.sends.push(refused) };
        let created = here.reading.minus_nanos(here.workload.created_before_ns(topic));
        let of = (TopicId(u64::from(topic)), id_of_requester(requester));
        match self.shard.accept_next(here.reading, permit, of, created) {
            Ok((_, Accepted::Kept { slot, .. })) => {
                effects.facts.push(Fact::Acts { process: here.process, action: "accepts" });
                self.keep_payload(slot, payload);
                if self.answering.len() <= slot.index() {
                    self.answering.resize(slot.index() + 1, None);
                }
                self.answering[slot.index()] = Some(from);
            }
            Ok((_, Accepted::Known)) => unreachable!("the node gives each event a number of its own"),
            Err(NextRefusal::Stream(_) | NextRefusal::Event(..)) => effects.sends.push(refused),
        }
        self.carry_out(here, effects);
    }

    /// An event has gone out: its requester is answered, or waits until it is covered.
    pub(super) fn answer_dispatched(&mut self, slot: SlotId, stream: StreamId, event: EventId, effects: &mut Effects) {
        let Some(requester) = self.answering.get_mut(slot.index()).and_then(Option::take) else { return };
        if self.shard.is_answerable(slot, stream, event.sequence) {
            effects.sends.push((requester, Packet::Answer(Answer::Accepted)));
        } else {
            self.uncovered.insert((stream, event.sequence), requester);
        }
    }

    /// Events up to here are covered.
    pub(super) fn answer_covered(&mut self, stream: StreamId, through: bodkin_broker::Sequence, effects: &mut Effects) {
        let from = (stream, bodkin_broker::Sequence(0));
        let covered = self.uncovered.extract_if(from..=(stream, through), |_, _| true);
        effects.sends.extend(covered.map(|(_, requester)| (requester, Packet::Answer(Answer::Accepted))));
    }

    /// An event was dropped before its dispatch.
    pub(super) fn refuse_dropped(&mut self, slot: SlotId, effects: &mut Effects) {
        if let Some(requester) = self.answering.get_mut(slot.index()).and_then(Option::take) {
            effects.sends.push((requester, Packet::Answer(Answer::Refused)));
        }
    }

    /// This node stops leading: whether an event that is not answered is safe is not known.
    pub(super) fn lose_requesters(&mut self, effects: &mut Effects) {
        let uncovered = std::mem::take(&mut self.uncovered).into_values();
        let waiting = self.answering.iter_mut().filter_map(Option::take).chain(uncovered);
        effects.sends.extend(waiting.map(|requester| (requester, Packet::Answer(Answer::Unknown))));
    }
}
