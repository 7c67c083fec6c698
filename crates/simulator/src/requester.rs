//! A publisher whose events the node numbers, as by HTTP or REQ: it sends one event at a time to either node, and sends a refused event again a
//! millisecond later to the other node, as an eager client with two addresses does.

use bodkin_broker::Node;

use crate::{
    clock::{MILLISECOND_NS, Time},
    effects::{Effects, Fact},
    network::ProcessId,
    packet::{Answer, Packet, request_payload},
    roster,
};

/// Pause before a refused event is sent again.
const RETRY_NS: u64 = MILLISECOND_NS;
/// Refusals in a row that are usual in a cloud that is at rest: one by the node that does not lead.
const REFUSALS_MAX: u32 = 2;
/// Periods of the topic between an answer and the next event, so that no event is excess however long events travel.
const PERIODS_BETWEEN: u64 = 3;

/// What a requester does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It sends its next event then.
    Idle { until: Time },
    /// It waits for the answer to an event.
    Sent,
    /// It sends the same event again then.
    Refused { until: Time },
}

/// See the module.
#[derive(Clone, Debug)]
pub struct RequesterProcess {
    requester: u16,
    topic: u16,
    period_ns: u64,
    state: State,
    request: u64,
    /// Times in a row that the event was refused.
    refusals: u32,
    node: Node,
    connected: Vec<ProcessId>,
}

impl RequesterProcess {
    /// A requester that publishes on this topic with its period.
    pub fn new(requester: u16, topic: u16, period_ns: u64) -> Self {
        let state = State::Idle { until: Time::default() };
        Self { requester, topic, period_ns, state, request: 0, refusals: 0, node: Node::First, connected: Vec::new() }
    }

    /// When to wake it if nothing happens before.
    pub fn next_wake(&self) -> Option<Time> {
        match self.state {
            State::Idle { until } | State::Refused { until } => Some(until),
            State::Sent => None,
        }
    }

    /// A timer rings. `is_busy`: it publishes still.
    pub fn wake(&mut self, now: Time, is_busy: bool, effects: &mut Effects) {
        match self.state {
            State::Idle { until } if until <= now => {
                if !is_busy {
                    self.state = State::Idle { until: Time::NEVER };
                    return;
                }
                self.request += 1;
                self.send(now, effects);
            }
            State::Refused { until } if until <= now => self.send(now, effects),
            State::Idle { .. } | State::Refused { .. } | State::Sent => {}
        }
    }

    fn send(&mut self, now: Time, effects: &mut Effects) {
        let to = roster::node(self.node);
        if !self.connected.contains(&to) {
            return self.turn(now);
        }
        self.state = State::Sent;
        effects.sends.push((to, Packet::Publish { topic: self.topic, payload: request_payload(self.requester, self.request) }));
    }

    /// What is wrong with it; nothing, unless both nodes have refused its event.
    pub fn unsettled(&self) -> Option<String> {
        (self.refusals > REFUSALS_MAX).then(|| format!("requester {} is refused by both nodes: {} times", self.requester, self.refusals))
    }

    /// Turns to the other node.
    fn turn(&mut self, now: Time) {
        self.refusals += 1;
        self.node = self.node.partner().expect("it sends to a candidate");
        self.state = State::Refused { until: now.plus(RETRY_NS) };
    }

    /// A connection is made.
    pub fn connected(&mut self, peer: ProcessId) {
        self.connected.push(peer);
    }

    /// A connection has ended. Whether an event that was sent on it is accepted is not known: it is not sent again.
    pub fn closed(&mut self, now: Time, peer: ProcessId) {
        self.connected.retain(|connected| *connected != peer);
        if self.state == State::Sent && peer == roster::node(self.node) {
            self.go_on(now);
        }
    }

    /// An answer has come.
    pub fn receive(&mut self, now: Time, from: ProcessId, packet: &Packet, effects: &mut Effects) {
        let Packet::Answer(answer) = packet else { return };
        if self.state != State::Sent || from != roster::node(self.node) {
            return;
        }
        match answer {
            Answer::Accepted => {
                effects.facts.push(Fact::RequestAnswered { requester: self.requester, request: self.request });
                self.go_on(now);
            }
            Answer::Refused => self.turn(now),
            Answer::Unknown => self.go_on(now),
        }
    }

    fn go_on(&mut self, now: Time) {
        self.refusals = 0;
        self.state = State::Idle { until: now.plus(PERIODS_BETWEEN * self.period_ns) };
    }
}
