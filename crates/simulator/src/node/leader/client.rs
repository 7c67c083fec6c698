//! What publishers and subscribers say to a leader.

use bodkin_broker::{
    Accepted, Epoch, Input, Instant, Overflow, Publication, Refusal, Sequence, SlotId, StreamId, StreamIdentity, SubscriptionKey, TopicId,
    wire::{ClientFrame, EventHeader, RefusalReason, Watermarks},
};

use super::{Here, Leader, id_of, name_of, topic_of};
use crate::{
    effects::{Effects, Fact},
    network::ProcessId,
    node::command_packet,
    roster::Process,
};

impl Leader {
    /// An event of a publisher's.
    pub fn publish(&mut self, here: Here<'_>, from: ProcessId, topic: u16, header: &EventHeader, payload: u64, effects: &mut Effects) {
        let Process::Publisher(publisher) = Process::of(from) else { unreachable!("only publishers publish") };
        let EventHeader { incarnation, sequence, created_utc_ns, epoch, flags, .. } = *header;
        let identity = StreamIdentity { topic: TopicId(u64::from(topic)), publisher: id_of(publisher), incarnation };
        let name = &here.workload.topics[usize::from(topic)].name;
        let Ok(permit) = self.shard.permit() else {
            return self.refuse(from, sequence, RefusalReason::NotLeading, 0, name, effects);
        };
        let stream = match self.open(identity) {
            Some(stream) => stream,
            None => return self.refuse(from, sequence, RefusalReason::Limit, 0, name, effects),
        };
        let created = i128::from(created_utc_ns) - here.clock.utc_minus_local_ns(here.now);
        let created = Instant::from_nanos(u64::try_from(created).unwrap_or(0));
        let publication = Publication { epoch, sequence, created, is_resent: flags.resend, has_wrong_clock: false };
        let accepted = self.shard.accept(here.reading, permit, stream, publication);
        match accepted {
            Ok(Accepted::Kept { slot, is_excess }) => {
                effects.facts.push(Fact::Acts { process: here.process, action: "accepts" });
                self.keep_payload(slot, payload);
                if is_excess {
                    effects.facts.push(Fact::Excess { stream: name_of(identity), sequence: sequence.0 });
                }
            }
            Ok(Accepted::Known) => {}
            Err(refusal) => {
                let (reason, retry_after_ns) = match refusal {
                    Refusal::NotLeading => (RefusalReason::NotLeading, 0),
                    Refusal::Epoch { .. } => (RefusalReason::Epoch, 0),
                    Refusal::Full { retry_after_ns, .. } => (RefusalReason::Full, retry_after_ns),
                    Refusal::Stream | Refusal::Sequence { .. } => unreachable!("{refusal}"),
                };
                self.refuse(from, sequence, reason, retry_after_ns, name, effects);
            }
        }
        self.carry_out(here, effects);
    }

    fn open(&mut self, identity: StreamIdentity) -> Option<StreamId> {
        let permit = self.shard.permit().ok()?;
        self.shard.open_stream(&permit, identity).ok()
    }

    pub(super) fn keep_payload(&mut self, slot: SlotId, payload: u64) {
        if self.payloads.len() <= slot.index() {
            self.payloads.resize(slot.index() + 1, 0);
        }
        self.payloads[slot.index()] = payload;
    }

    fn refuse(&self, to: ProcessId, sequence: Sequence, reason: RefusalReason, retry_after_ns: u64, topic: &str, effects: &mut Effects) {
        let frame = ClientFrame::Refused { epoch: self.epoch, sequence, reason, retry_after_ns, topic, text: "" };
        effects.sends.push((to, command_packet(&frame)));
    }

    /// A command of a client's.
    pub fn command(&mut self, here: Here<'_>, from: ProcessId, frame: ClientFrame<'_>, effects: &mut Effects) {
        match frame {
            ClientFrame::Hello { .. } => {
                let leads = self.leads(here);
                effects.sends.push((from, command_packet(&ClientFrame::Leader { epoch: self.epoch, is_leader: leads })));
            }
            // What it has stays true, whoever led when it said so.
            ClientFrame::Subscribe { topic, watermarks, .. } => {
                self.subscribe(here, from, topic_of(here, topic).0 as u16, watermarks, effects);
            }
            // Said of an earlier leader: whoever has said it hears of this one, and says it anew.
            _ if frame.epoch() != Epoch::NONE && frame.epoch() < self.epoch => {}
            ClientFrame::Resume { incarnation, from: oldest, to, topic, .. } => {
                let Process::Publisher(publisher) = Process::of(from) else { return };
                let identity = StreamIdentity { topic: topic_of(here, topic), publisher: id_of(publisher), incarnation };
                if let Some(stream) = self.open(identity) {
                    self.step(here, Input::Resumed { stream, from: oldest, to }, effects);
                }
            }
            ClientFrame::Delivered { publisher, incarnation, through, topic, .. } => {
                let topic = topic_of(here, topic);
                let Some(subscription) = self.subscription(from, topic.0 as u16) else { return };
                if let Some(stream) = self.open(StreamIdentity { topic, publisher, incarnation }) {
                    self.step(here, Input::Delivered { subscription, stream, through }, effects);
                }
            }
            _ => {}
        }
    }

    fn subscription(&self, of: ProcessId, topic: u16) -> Option<SubscriptionKey> {
        let Process::Subscriber(subscriber) = Process::of(of) else { return None };
        let mut made = self.subscriptions.iter().filter(|(who, what, _)| (*who, *what) == (subscriber, topic));
        made.next().map(|(_, _, key)| *key)
    }

    /// A subscriber has a session from now on, and is told so.
    fn subscribe(&mut self, here: Here<'_>, from: ProcessId, number: u16, watermarks: Watermarks<'_>, effects: &mut Effects) {
        self.attach(here, from, number, watermarks, effects);
        let topic = &here.workload.topics[usize::from(number)].name;
        effects.sends.push((from, command_packet(&ClientFrame::Subscribed { epoch: self.epoch, topic })));
    }

    /// A subscriber has a session from now on.
    pub fn attach(&mut self, here: Here<'_>, from: ProcessId, number: u16, watermarks: Watermarks<'_>, effects: &mut Effects) {
        let topic = &here.workload.topics[usize::from(number)].name;
        let key = self.subscription(from, number);
        match key {
            Some(key) => self.shard.attach(here.reading, key, from, watermarks.iter(), &mut self.outputs),
            None => {
                let key = self.shard.subscribe(topic, from, Overflow::Loses).expect("there are few subscriptions");
                let Process::Subscriber(subscriber) = Process::of(from) else { unreachable!("only subscribers subscribe") };
                self.subscriptions.push((subscriber, number, key));
            }
        }
        self.carry_out(here, effects);
    }

    /// A client's connection is gone.
    pub fn client_gone(&mut self, here: Here<'_>, client: ProcessId, effects: &mut Effects) {
        let Process::Subscriber(subscriber) = Process::of(client) else { return };
        let gone: Vec<_> = self.subscriptions.iter().copied().filter(|(who, _, _)| *who == subscriber).collect();
        for (_, topic, key) in gone {
            let made = &here.workload.topics[usize::from(topic)];
            if made.subscribers.contains(&(subscriber, true)) {
                self.step(here, Input::Detached { subscription: key }, effects);
            } else {
                self.subscriptions.retain(|(_, _, made)| *made != key);
                self.step(here, Input::Unsubscribe { subscription: key }, effects);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bodkin_broker::{Incarnation, Node};

    use super::*;
    use crate::{
        clock::{Clock, Time},
        random::Random,
        roster,
        workload::Workload,
    };

    #[test]
    fn what_a_client_has_said_to_an_earlier_leader_is_not_believed() {
        let workload = Workload::draw(&mut Random::new(1));
        let (clock, now) = (Clock::TRUE, Time(1_000));
        let partner = roster::node(Node::Second);
        let (node, process) = (Node::First, roster::node(Node::First));
        let here = Here { now, reading: clock.reading(now), clock: &clock, workload: &workload, node, process, partner };
        let mut effects = Effects::default();
        let mut leader = Leader::prepared(here, &BTreeSet::new(), &mut effects).takes_over(None);
        leader.take_over(here);
        leader.lead(here, Epoch(3), Instant::NEVER, &[], &mut effects);
        let (topic, publisher) = (&workload.topics[0], workload.topics[0].publishers[0]);
        // 0: who says it knows of no leader yet.
        for (run, (epoch, is_believed)) in (1..).zip([(1, false), (2, false), (3, true), (0, true)]) {
            let (from, to, incarnation) = (Sequence(1), Sequence(1), Incarnation(run));
            let resume = ClientFrame::Resume { epoch: Epoch(epoch), incarnation, from, to, topic: &topic.name };
            leader.command(here, Process::Publisher(publisher).id(), resume, &mut effects);
            let identity = StreamIdentity { topic: TopicId(0), publisher: id_of(publisher), incarnation };
            assert_eq!(leader.shard.stream(&identity).is_some(), is_believed, "{epoch}");
        }
    }
}
