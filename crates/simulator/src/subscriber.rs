//! A subscriber: what a client does around the machine.

use std::{sync::Arc, time::Duration};

use bodkin_broker::{
    Incarnation, Numberer,
    subscriber::{Beginning, Input, Output, Received, Subscriber, SubscriberConfig, TopicKey},
    wire::{ClientFrame, EventHeader, Flags, Watermark, Watermarks},
};

use crate::{
    aside::Aside,
    clock::{Clock, MILLISECOND_NS, Time},
    effects::{Effects, Fact},
    network::ProcessId,
    node::{command_packet, number_of},
    packet::{Packet, payload, request_of},
    publisher::{node_of, session_of},
    roster,
    violation::StreamName,
    workload::Workload,
};

/// Acknowledgements are gathered for a while, as clients that care for the load do.
const CONFIG: SubscriberConfig =
    SubscriberConfig { acknowledge_every: 3, acknowledge_after: Duration::from_micros(200), window: 256, streams_max: 100 };
/// What it asks to be waited for: longer than any fault lasts.
const WAIT_NS: u64 = 2_000 * MILLISECOND_NS;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SubscriberProcess {
    subscriber: u16,
    clock: Clock,
    workload: Aside<Arc<Workload>>,
    machine: Subscriber,
    /// Index in the workload, whether it is required, and the machine's name.
    topics: Vec<(u16, bool, TopicKey)>,
    outputs: Aside<Vec<Output>>,
}

impl SubscriberProcess {
    /// A subscriber that has nothing.
    pub fn new(subscriber: u16, clock: Clock, workload: Arc<Workload>) -> Self {
        let mut machine = Subscriber::new(CONFIG);
        let mut topics = Vec::new();
        for (index, topic) in workload.topics.iter().enumerate() {
            let Some((_, is_required)) = topic.subscribers.iter().find(|(who, _)| *who == subscriber) else { continue };
            let beginning = if *is_required { Beginning::First } else { Beginning::Present };
            let tolerance = topic.tolerance().map(|losses| losses as u32);
            topics.push((index as u16, *is_required, machine.subscribe(tolerance, beginning)));
        }
        Self { subscriber, clock, workload: Aside(workload), machine, topics, outputs: Aside::default() }
    }

    /// Sets its host's UTC ahead by so much.
    pub fn set_utc(&mut self, step_ns: i64) {
        self.clock.set_utc(step_ns);
    }

    /// When to wake it if nothing happens before.
    pub fn next_wake(&self) -> Option<Time> {
        self.machine.next_timer().map(|at| self.clock.time_of(at))
    }

    /// A timer rings.
    pub fn wake(&mut self, now: Time, effects: &mut Effects) {
        self.step(now, Input::Tick, effects);
    }

    /// A connection is made.
    pub fn connected(&mut self, now: Time, peer: ProcessId, effects: &mut Effects) {
        let hello = ClientFrame::Hello { epoch: self.machine.epoch(), incarnation: Incarnation(1), name: "subscriber" };
        effects.sends.push((peer, command_packet(&hello)));
        self.step(now, Input::Connected(session_of(peer)), effects);
    }

    /// A connection has ended.
    pub fn closed(&mut self, now: Time, peer: ProcessId, effects: &mut Effects) {
        self.step(now, Input::Closed(session_of(peer)), effects);
    }

    /// A broker has said or sent something.
    pub fn receive(&mut self, now: Time, from: ProcessId, packet: &Packet, effects: &mut Effects) {
        match packet {
            Packet::Command(bytes) => match ClientFrame::decode(bytes).expect("brokers send valid commands") {
                ClientFrame::Leader { epoch, is_leader } => {
                    self.step(now, Input::Leader { session: session_of(from), epoch, is_leader }, effects);
                }
                ClientFrame::Last { epoch, publisher, incarnation, sequence, topic } => {
                    let named = |(index, _, _): &&(u16, bool, TopicKey)| self.workload.topics[usize::from(*index)].name == topic;
                    let (_, _, key) = *self.topics.iter().find(named).expect("brokers name what was subscribed to");
                    let flags = Flags { last: true, ..Flags::default() };
                    let header = EventHeader { flags, publisher, incarnation, sequence, created_utc_ns: 0, epoch };
                    self.machine.receive(self.clock.reading(now), session_of(from), key, &header, &mut self.outputs);
                    self.carry_out(effects);
                }
                _ => {}
            },
            Packet::Event { topic, header, payload } => self.event(now, from, *topic, header, *payload, effects),
            _ => {}
        }
    }

    fn event(&mut self, now: Time, from: ProcessId, topic: u16, header: &[u8], found: u64, effects: &mut Effects) {
        let header = EventHeader::decode(header).expect("brokers send valid headers");
        let (_, _, key) = *self.topics.iter().find(|(made, _, _)| *made == topic).expect("brokers send what was subscribed to");
        let received = self.machine.receive(self.clock.reading(now), session_of(from), key, &header, &mut self.outputs);
        self.carry_out(effects);
        if let Received::New(_) | Received::Late(_) = received {
            if header.incarnation.numberer() == Numberer::Node {
                let (requester, request) = request_of(found);
                return effects.facts.push(Fact::RequestDelivered { subscriber: self.subscriber, topic, requester, request });
            }
            let publisher = number_of(header.publisher);
            let (incarnation, sequence) = (header.incarnation.0, header.sequence.0);
            let stream = StreamName { publisher, incarnation, topic };
            let is_whole = found == payload(publisher, incarnation, topic, sequence);
            effects.facts.push(Fact::Delivered { subscriber: self.subscriber, stream, sequence, is_whole });
        }
    }

    fn step(&mut self, now: Time, input: Input, effects: &mut Effects) {
        self.machine.step(self.clock.reading(now), input, &mut self.outputs);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: &mut Effects) {
        let mut outputs = std::mem::take(&mut self.outputs.0);
        for output in outputs.drain(..) {
            self.carry_out_one(output, effects);
        }
        self.outputs.0 = outputs;
    }

    fn carry_out_one(&mut self, output: Output, effects: &mut Effects) {
        let index = |key: TopicKey| self.topics.iter().find(|(_, _, made)| *made == key).expect("the topic is its own").0;
        match output {
            Output::Attach { session } => self.subscribe(roster::node(node_of(session)), effects),
            Output::Acknowledge { session, topic, publisher, incarnation, through } => {
                let topic = &self.workload.topics[usize::from(index(topic))].name;
                let frame = ClientFrame::Delivered { epoch: self.machine.epoch(), publisher, incarnation, through, topic };
                effects.sends.push((roster::node(node_of(session)), command_packet(&frame)));
            }
            // A requester does not know the numbers of its events: what it was answered is checked at the end.
            Output::Lost { incarnation, .. } if incarnation.numberer() == Numberer::Node => {}
            Output::Lost { topic, publisher, incarnation, from, run, .. } => {
                let stream = StreamName { publisher: number_of(publisher), incarnation: incarnation.0, topic: index(topic) };
                effects.facts.push(Fact::Told { subscriber: self.subscriber, stream, from: from.0, losses: run });
            }
            Output::TwoLeaders { .. } => {
                effects.facts.push(Fact::Contradiction { what: "a subscriber hears of two leaders in one epoch" });
            }
            Output::Leaderless | Output::StaleEpoch { .. } => {}
        }
    }

    fn subscribe(&self, broker: ProcessId, effects: &mut Effects) {
        for &(topic, required, key) in &self.topics {
            let watermarks: Vec<Watermark> = self.machine.watermarks(key).collect();
            let frame = ClientFrame::Subscribe {
                epoch: self.machine.epoch(),
                loss_tolerance: None,
                deadline_ns: None,
                required,
                wait_ns: WAIT_NS,
                topic: &self.workload.topics[usize::from(topic)].name,
                watermarks: Watermarks::Own(&watermarks),
            };
            effects.sends.push((broker, command_packet(&frame)));
        }
    }
}
