//! Connections between processes: greetings, their refusals, and ends that a cut link hides.

use super::{
    process::{Connection, Event, Message},
    world::World,
    *,
};

/// A connection on which nothing arrives is closed after this time.
const SILENCE_NS: u64 = 4 * LEASE_NS;
/// An attempt to connect that is not answered is given up after this time.
const DIAL_NS: u64 = 2 * HEARTBEAT_NS;

impl World {
    /// The process that is connected as a node, and its connection.
    pub(super) fn connection_to(&self, from: usize, name: Node) -> Option<(usize, u64)> {
        let mut connections = self.nodes[from].connections.iter();
        let (to, connection) = connections.find(|(to, connection)| connection.is_greeted && self.nodes[**to].node == name)?;
        Some((*to, connection.number))
    }

    /// Sends in the order of a connection; a cut link loses it.
    pub(super) fn send_on(&mut self, from: usize, to: usize, connection: u64, message: Message) {
        let arrival = (self.now + 1 + self.random.below(DELAY_NS)).max(self.last_arrival[from][to]);
        self.last_arrival[from][to] = arrival;
        self.at(arrival, Event::Deliver { from, to, connection: Some(connection), message });
    }

    /// Says on all connections that the process lives, closes silent ones, and connects to nodes that are not connected.
    pub(super) fn beat(&mut self, node: usize) {
        let silent = |connection: &Connection| self.now > connection.heard_at + if connection.is_greeted { SILENCE_NS } else { DIAL_NS };
        let dead: Vec<usize> =
            self.nodes[node].connections.iter().filter(|(_, connection)| silent(connection)).map(|(peer, _)| *peer).collect();
        dead.into_iter().for_each(|peer| self.close(node, peer, Message::End));
        self.step(node, Input::Beat);
        for peer in 0..self.nodes.len() {
            let connects = self.nodes[node].node < self.nodes[peer].node;
            if connects && !self.nodes[node].connections.contains_key(&peer) {
                self.connections += 1;
                let number = self.connections;
                self.nodes[node].connections.insert(peer, Connection { number, heard_at: self.now, is_greeted: false });
                self.send_on(node, peer, number, Message::Greeting(self.nodes[node].incarnation));
            }
        }
    }

    /// Closes an end; the other end is sent the reason if nothing is cut.
    fn close(&mut self, node: usize, peer: usize, reason: Message) {
        let Some(connection) = self.nodes[node].connections.remove(&peer) else { return };
        self.send_on(node, peer, connection.number, reason);
        if connection.is_greeted {
            self.step(node, Input::Gone(self.nodes[peer].node));
        }
    }

    /// The member takes another process for the node.
    pub(super) fn reject_connected(&mut self, node: usize, name: Node, refusal: GreetingRefusal) {
        let Some((peer, _)) = self.connection_to(node, name) else { return };
        if let Some(connection) = self.nodes[node].connections.remove(&peer) {
            self.send_on(node, peer, connection.number, Message::Rejected(is_duplicate(refusal)));
        }
    }

    pub(super) fn deliver_on(&mut self, from: usize, to: usize, number: u64, message: Message) {
        if let Message::Greeting(incarnation) = message {
            return self.greeted(from, to, number, incarnation);
        }
        let now = self.now;
        let open = self.nodes[to].connections.get_mut(&from).filter(|connection| connection.number == number);
        let Some(connection) = open else {
            // The system resets a connection that it does not have.
            if !matches!(message, Message::End | Message::Rejected(_)) {
                self.send_on(to, from, number, Message::End);
            }
            return;
        };
        connection.heard_at = now;
        let is_greeted = connection.is_greeted;
        match message {
            Message::Accepted(incarnation) if !is_greeted => match self.greet(from, to, number, incarnation) {
                Ok(outputs) => self.carry_all_out(to, outputs),
                Err(refusal) => {
                    self.nodes[to].connections.remove(&from);
                    self.send_on(to, from, number, Message::Rejected(is_duplicate(refusal)));
                }
            },
            Message::Ballot(index) if is_greeted => {
                let input = Input::Received { from: self.nodes[from].node, ballot: self.ballots[index] };
                self.step(to, input);
            }
            Message::Rejected(is_duplicate) => {
                let lasts = if is_duplicate { u64::MAX / 2 } else { 4 * LEASE_NS };
                let until = Instant::from_nanos(self.nodes[to].local(now).nanos() + lasts);
                self.step(to, Input::Rejected { by: self.nodes[from].node, until });
                self.close(to, from, Message::End);
            }
            Message::End => self.close(to, from, Message::End),
            _ => {}
        }
    }

    fn greeted(&mut self, from: usize, to: usize, number: u64, incarnation: Incarnation) {
        match self.greet(from, to, number, incarnation) {
            Ok(outputs) => {
                self.send_on(to, from, number, Message::Accepted(self.nodes[to].incarnation));
                self.carry_all_out(to, outputs);
            }
            Err(refusal) => self.send_on(to, from, number, Message::Rejected(is_duplicate(refusal))),
        }
    }

    /// Asks the member of `to` whether it takes `from` for its node; gives what the member wants done behind the answer.
    fn greet(&mut self, from: usize, to: usize, number: u64, incarnation: Incarnation) -> Result<Vec<Output>, GreetingRefusal> {
        let node = self.nodes[from].node;
        if self.by_name {
            self.step(to, Input::Gone(node));
            let Self { nodes, .. } = self;
            let names: Vec<Node> = nodes.iter().map(|process| process.node).collect();
            nodes[to].connections.retain(|peer, _| names[*peer] != node || *peer == from);
        }
        let local = self.nodes[to].local(self.now);
        let mut outputs = Vec::new();
        let member = self.nodes[to].member.as_mut().expect("it runs");
        let greeted = member.greet(local, Peer { node, incarnation }, None, &mut outputs);
        self.duplicates += u32::from(greeted.is_err_and(is_duplicate));
        if let Err(refusal) = greeted {
            self.carry_all_out(to, outputs);
            return Err(refusal);
        }
        let names: Vec<Node> = self.nodes.iter().map(|process| process.node).collect();
        let is_other = |peer: usize, connection: &Connection| names[peer] != node || !connection.is_greeted || peer == from;
        self.nodes[to].connections.retain(|peer, connection| is_other(*peer, connection));
        self.nodes[to].connections.insert(from, Connection { number, heard_at: self.now, is_greeted: true });
        Ok(outputs)
    }
}

fn is_duplicate(refusal: GreetingRefusal) -> bool {
    matches!(refusal, GreetingRefusal::Duplicate { .. })
}
