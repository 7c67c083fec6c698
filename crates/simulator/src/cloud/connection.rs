//! Who connects to whom, and when again.

use bodkin_broker::Node;

use super::{Cloud, Event, node_index};
use crate::{
    clock::{MICROSECOND_NS, Time},
    network::{Arrivals, Ending, ProcessId},
    roster::{self, PROCESSES, Process},
    violation::Violation,
};

/// Between two attempts to connect, in nanoseconds.
const RETRY_NS: (u64, u64) = (200 * MICROSECOND_NS, 1_500 * MICROSECOND_NS);

impl Cloud {
    /// Connects a process that has started with everybody that it talks to.
    pub(super) fn connect_all(&mut self, process: ProcessId) {
        let clones: Vec<ProcessId> = roster::clones().filter(|clone| self.hosts[clone.index()].is_running).collect();
        for peer in roster::all().chain(clones).filter(|peer| *peer != process) {
            self.reconnect(process, peer);
        }
    }

    /// Has whichever of the two calls the other one try to connect, soon.
    pub(super) fn reconnect(&mut self, one: ProcessId, other: ProcessId) {
        let pair = match (Process::of(one), Process::of(other)) {
            (caller, called) if caller.calls(called) => (one, other),
            (called, caller) if caller.calls(called) => (other, one),
            _ => return,
        };
        if !self.connecting.contains(&pair) {
            self.connecting.push(pair);
            let at = self.now.plus(self.random.between(RETRY_NS.0, RETRY_NS.1));
            self.agenda.push(at, Event::Connect { one: pair.0, other: pair.1 });
        }
    }

    /// Tries to connect, and tries again until it works or neither side wants it any more.
    pub(super) fn connect(&mut self, one: ProcessId, other: ProcessId) -> Result<(), Violation> {
        self.connecting.retain(|pair| *pair != (one, other));
        let is_running = |process: ProcessId| self.hosts[process.index()].is_running;
        if !is_running(one) || !is_running(other) {
            // Whoever starts connects to all.
            return Ok(());
        }
        if self.network.is_open(one, other) && self.network.is_open(other, one) {
            return Ok(());
        }
        let moves = |process: ProcessId| self.hosts[process.index()].stalled_until <= self.now;
        if !self.network.is_whole(one, other) || !moves(one) || !moves(other) {
            self.reconnect(one, other);
            return Ok(());
        }
        let stale = self.network.connect(one, other);
        for (process, peer, had_one) in [(one, other, stale[0]), (other, one, stale[1])] {
            if had_one {
                self.act(process, |cloud| cloud.receive(peer, process, crate::network::Content::Close))?;
            }
        }
        for (process, peer) in [(one, other), (other, one)] {
            self.act(process, |cloud| cloud.tell_connected(process, peer))?;
        }
        Ok(())
    }

    fn tell_connected(&mut self, process: ProcessId, peer: ProcessId) -> Option<u64> {
        let Self { now, nodes, publishers, subscribers, requesters, effects, .. } = self;
        match Process::of(process) {
            Process::Node(_) | Process::Clone(_) => return nodes[node_index(process)].connected(*now, peer, effects),
            Process::Publisher(publisher) => publishers[usize::from(publisher)].connected(peer, effects),
            Process::Subscriber(subscriber) => subscribers[usize::from(subscriber)].connected(*now, peer, effects),
            Process::Requester(requester) => requesters[usize::from(requester)].connected(peer),
            Process::Operator => {}
        }
        None
    }

    /// Resets a connection; both sides hear of it when they can.
    pub(super) fn reset(&mut self, one: ProcessId, other: ProcessId) {
        let mut coming = std::mem::take(&mut self.coming);
        self.network.reset(self.now, one, other, &mut coming);
        self.post(coming);
    }

    /// Closes a connection behind what was sent on it: the other side learns it, and this side knows.
    pub(super) fn close(&mut self, at: Time, process: ProcessId, peer: ProcessId) {
        let mut coming = std::mem::take(&mut self.coming);
        self.network.close(at, process, peer, Ending::Flush, &mut coming);
        self.post(coming);
        self.reconnect(process, peer);
    }

    /// Enters what is under way.
    pub(super) fn post(&mut self, mut coming: Arrivals) {
        for (at, arrival) in coming.drain(..) {
            self.agenda.push(at, Event::Arrival(arrival));
        }
        self.coming = coming;
    }

    /// Whether every connection that there should be is there, on both sides, and no link is cut.
    pub(super) fn is_connected(&self) -> bool {
        let wanted = roster::all().flat_map(|one| roster::all().map(move |other| (one, other)));
        let mut wanted = wanted.filter(|(one, other)| Process::of(*one).calls(Process::of(*other)));
        wanted.all(|(one, other)| self.network.is_sound(one, other))
    }

    /// Whether each node's process counts as the node at the two others.
    pub(super) fn is_established(&self) -> bool {
        let names = || Node::ALL.map(roster::node).into_iter();
        names().all(|one| names().filter(|other| *other != one).all(|other| self.nodes[node_index(one)].counts(other)))
    }

    /// Whether every configured process runs and no other, and none stands still.
    pub(super) fn is_moving(&self) -> bool {
        let (configured, clones) = self.hosts.split_at(PROCESSES);
        clones.iter().all(|host| !host.is_running)
            && configured.iter().all(|host| host.is_running && host.stalled_until <= self.now && host.stalls_in_step_ns.is_none())
    }

    /// When the last process that stands still moves again.
    pub(super) fn moves_at(&self) -> Time {
        self.hosts.iter().map(|host| host.stalled_until).max().unwrap_or_default()
    }
}
