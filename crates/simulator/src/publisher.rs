//! A publisher: what a client does around the machine.

use std::{sync::Arc, time::Duration};

use bodkin_broker::{
    Incarnation, Node, PublisherId,
    publisher::{Input, Output, Publisher, Retention, Send, Session, TopicKey, WhenFull},
    wire::{ClientFrame, EventHeader, Flags},
};

use crate::{
    aside::Aside,
    clock::{Clock, Time},
    effects::{Effects, Fact},
    network::ProcessId,
    node::command_packet,
    packet::{Packet, payload},
    roster::{self, Process},
    violation::StreamName,
    workload::Workload,
};

/// Events of a topic that are kept until they are covered; then the application has to wait.
const KEPT_MAX: u32 = 64;
/// Events that may be uncovered in a cloud that is at rest: those that are under way.
const UNDER_WAY_MAX: u64 = 2;
/// Silence after which the last sequence is told again.
const LAST_AFTER: Duration = Duration::from_millis(30);

/// One topic of a publisher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Topic {
    /// Its index in the workload.
    topic: u16,
    key: TopicKey,
    newest: u64,
    covered: u64,
    /// The last event that was not taken, and is to be sent again.
    refused: u64,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PublisherProcess {
    publisher: u16,
    clock: Clock,
    workload: Aside<Arc<Workload>>,
    incarnation: u64,
    machine: Publisher,
    topics: Vec<Topic>,
    outputs: Aside<Vec<Output>>,
}

impl PublisherProcess {
    /// A publisher that has never run.
    pub fn new(publisher: u16, clock: Clock, workload: Arc<Workload>) -> Self {
        let machine = Publisher::new(Incarnation(0), LAST_AFTER);
        Self { publisher, clock, workload: Aside(workload), incarnation: 0, machine, topics: Vec::new(), outputs: Aside::default() }
    }

    /// Starts a new run of it, with nothing kept.
    pub fn start(&mut self) {
        self.incarnation += 1;
        self.machine = Publisher::new(Incarnation(self.incarnation), LAST_AFTER);
        let machine = &mut self.machine;
        let published = self.workload.topics.iter().enumerate().filter(|(_, topic)| topic.publishers.contains(&self.publisher));
        let topics = published.map(|(index, topic)| {
            let newest = topic.spec.retention;
            let retention = match topic.keeps_newest_only {
                true => Retention::new(newest, newest, WhenFull::DropOldest),
                false => Retention::new(newest, KEPT_MAX, WhenFull::Block),
            };
            let key = machine.add_topic(retention);
            Topic { topic: index as u16, key, newest: 0, covered: 0, refused: 0 }
        });
        self.topics = topics.collect();
    }

    /// Ends it; gives the streams that end with it.
    pub fn kill(&mut self) -> Vec<StreamName> {
        self.topics.iter().map(|topic| self.name(topic.topic)).collect()
    }

    fn name(&self, topic: u16) -> StreamName {
        StreamName { publisher: self.publisher, incarnation: self.incarnation, topic }
    }

    /// Sets its host's UTC ahead by so much.
    pub fn set_utc(&mut self, step_ns: i64) {
        self.clock.set_utc(step_ns);
    }

    /// What of it is not covered although it is not just under way; nothing, if it has come to rest.
    pub fn unsettled(&self) -> Option<String> {
        if self.machine.leader().is_none() {
            return Some(format!("publisher {} knows of no leader", self.publisher));
        }
        let is_calm = |topic: &&Topic| topic.newest - topic.covered <= UNDER_WAY_MAX && topic.refused <= topic.covered;
        let Topic { topic, newest, covered, refused, .. } = self.topics.iter().find(|topic| !is_calm(topic))?;
        let stream = self.name(*topic);
        Some(format!("{stream} still sends again what it keeps: {newest} published, covered through {covered}, {refused} refused last"))
    }

    /// When to wake it if nothing happens before.
    pub fn next_wake(&self) -> Option<Time> {
        self.machine.next_timer().map(|at| self.clock.time_of(at))
    }

    /// A timer rings.
    pub fn wake(&mut self, now: Time, effects: &mut Effects) {
        self.step(now, Input::Tick, effects);
    }

    /// The application has an event. It waits, which here is to leave the event out, where too many are uncovered.
    pub fn publish(&mut self, now: Time, topic: u16, effects: &mut Effects) {
        let stream = self.name(topic);
        let place = self.topics.iter().position(|made| made.topic == topic).expect("it publishes on this topic");
        let key = self.topics[place].key;
        let Ok(published) = self.machine.publish(key, self.clock.utc_ns(now)) else { return };
        self.topics[place].newest = published.sequence.0;
        effects.facts.push(Fact::Created { stream, sequence: published.sequence.0 });
        if let Some(dropped) = published.dropped {
            effects.facts.push(Fact::Dropped { stream, sequence: dropped.0 });
        }
        self.send(now, effects);
    }

    fn step(&mut self, now: Time, input: Input, effects: &mut Effects) {
        self.machine.step(self.clock.reading(now), input, &mut self.outputs);
        for output in std::mem::take(&mut self.outputs.0) {
            self.carry_out(output, effects);
        }
        self.send(now, effects);
    }

    fn carry_out(&mut self, output: Output, effects: &mut Effects) {
        match output {
            Output::Covered { topic: key, through } => {
                let topic = self.topics.iter_mut().find(|topic| topic.key == key).expect("the topic is its own");
                topic.covered = through.0;
                let stream = StreamName { publisher: self.publisher, incarnation: self.incarnation, topic: topic.topic };
                effects.facts.push(Fact::Covered { stream, through: through.0 });
            }
            Output::NotTaken { topic: key, sequence, reason } => {
                let topic = self.topics.iter().find(|topic| topic.key == key).expect("the topic is its own").topic;
                effects.facts.push(Fact::NotTaken { stream: self.name(topic), sequence: sequence.0, reason });
            }
            Output::TwoLeaders { .. } => effects.facts.push(Fact::Contradiction { what: "a publisher hears of two leaders in one epoch" }),
            Output::CoveredUnpublished { .. } => {
                effects.facts.push(Fact::Contradiction { what: "a publisher hears that an event is covered which it has not published" });
            }
            Output::Redirected { .. } | Output::Leaderless | Output::StaleEpoch { .. } => {}
        }
    }

    /// Sends what there is to be sent.
    fn send(&mut self, now: Time, effects: &mut Effects) {
        let reading = self.clock.reading(now);
        while let Some(send) = self.machine.next_send(reading) {
            let to = roster::node(node_of(self.machine.leader().expect("it sends to a leader")));
            let epoch = self.machine.epoch();
            let incarnation = self.machine.incarnation();
            let key = match send {
                Send::Event { topic, .. } | Send::Resume { topic, .. } | Send::Last { topic, .. } => topic,
            };
            let topic = self.topics.iter().find(|topic| topic.key == key).expect("the topic is its own").topic;
            let name = &self.workload.topics[usize::from(topic)].name;
            let packet = match send {
                Send::Event { sequence, created_utc_ns, is_resent, .. } => {
                    let flags = Flags { resend: is_resent, ..Flags::default() };
                    let header = EventHeader { flags, publisher: PublisherId(0), incarnation, sequence, created_utc_ns, epoch };
                    let mut bytes = Vec::new();
                    header.encode(&mut bytes);
                    let header = bytes.try_into().expect("a header has its length");
                    Packet::Event { topic, header, payload: payload(self.publisher, self.incarnation, topic, sequence.0) }
                }
                Send::Resume { from, to, .. } => command_packet(&ClientFrame::Resume { epoch, incarnation, from, to, topic: name }),
                Send::Last { sequence, .. } => {
                    command_packet(&ClientFrame::Last { epoch, publisher: PublisherId(0), incarnation, sequence, topic: name })
                }
            };
            effects.sends.push((to, packet));
        }
    }

    /// A connection is made.
    pub fn connected(&mut self, peer: ProcessId, effects: &mut Effects) {
        let hello = ClientFrame::Hello { epoch: self.machine.epoch(), incarnation: self.machine.incarnation(), name: "publisher" };
        effects.sends.push((peer, command_packet(&hello)));
    }

    /// A connection has ended.
    pub fn closed(&mut self, now: Time, peer: ProcessId, effects: &mut Effects) {
        self.step(now, Input::Closed(session_of(peer)), effects);
    }

    /// A broker has said something.
    pub fn receive(&mut self, now: Time, from: ProcessId, packet: &Packet, effects: &mut Effects) {
        let Packet::Command(bytes) = packet else { return };
        let session = session_of(from);
        let key = |name: &str| {
            let made = |topic: &&Topic| self.workload.topics[usize::from(topic.topic)].name == name;
            self.topics.iter().find(made).expect("brokers name its topics").key
        };
        let input = match ClientFrame::decode(bytes).expect("brokers send valid commands") {
            ClientFrame::Leader { epoch, is_leader } => Input::Leader { session, epoch, is_leader },
            ClientFrame::Covered { epoch, incarnation, through, topic } => {
                Input::Covered { session, epoch, topic: key(topic), incarnation, through }
            }
            ClientFrame::Refused { sequence, reason, retry_after_ns, topic, .. } => {
                let key = key(topic);
                let refused = self.topics.iter_mut().find(|topic| topic.key == key).expect("the topic is its own");
                refused.refused = refused.refused.max(sequence.0);
                Input::Refused { session, topic: key, sequence, reason, retry_after: Duration::from_nanos(retry_after_ns) }
            }
            _ => return,
        };
        self.step(now, input, effects);
    }
}

/// Clients have a session with each candidate.
pub(crate) fn session_of(peer: ProcessId) -> Session {
    match Process::of(peer) {
        Process::Node(Node::First) => Session::One,
        Process::Node(Node::Second) => Session::Two,
        other => unreachable!("clients do not talk to {other:?}"),
    }
}

pub(crate) fn node_of(session: Session) -> Node {
    match session {
        Session::One => Node::First,
        Session::Two => Node::Second,
    }
}
