//! Connections that came in and have not said who they are: a flood of them must not keep the nodes of the pair out.
//!
//! All connections are accepted at once, because a full backlog makes the other nodes wait for seconds. When too many say
//! nothing, the one that has waited longest is closed for the newest: a node of the pair greets at once. TLS handshakes are
//! begun a few a heartbeat, those first that come from where a node has greeted before.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
};

use bodkin_broker::Instant;

use super::{Introduction, Links};

/// Connections that have not said who they are, at most.
const ARRIVALS_MAX: usize = 64;
/// Of them from one address, at most.
const ARRIVALS_PER_ADDRESS: usize = 16;
/// Connections that are accepted in one turn of the thread that votes.
const ACCEPTED_PER_TURN: usize = 64;
/// TLS handshakes begun between two heartbeats: each takes about a millisecond of the thread that votes.
const HANDSHAKES_PER_BEAT: usize = 2;
/// Addresses that nodes have greeted from; the oldest is forgotten.
const KNOWN_MAX: usize = 8;

/// Connections that came in and have not said who they are.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Slot and address, the oldest first.
    waiting: VecDeque<(usize, IpAddr)>,
    /// Slots with a first flight of TLS that is not read yet.
    flights: BTreeSet<usize>,
    /// Slots whose handshake may go on.
    begun: BTreeSet<usize>,
    /// Handshakes that may still begin before the next heartbeat.
    budget: usize,
    known: VecDeque<IpAddr>,
    /// Connections closed for newer ones since the start.
    evicted: u64,
}

impl Arrivals {
    /// Notes a connection; gives the slot that has to be closed for it.
    fn arrived(&mut self, slot: usize, address: IpAddr) -> Option<usize> {
        let from_here = self.waiting.iter().filter(|(_, other)| *other == address).count();
        let is_one = |other: IpAddr| if from_here >= ARRIVALS_PER_ADDRESS { other == address } else { !self.known.contains(&other) };
        let is_full = from_here >= ARRIVALS_PER_ADDRESS || self.waiting.len() >= ARRIVALS_MAX;
        let oldest = self.waiting.iter().find(|(_, other)| is_one(*other)).or(self.waiting.front()).map(|(slot, _)| *slot);
        self.waiting.push_back((slot, address));
        oldest.filter(|_| is_full)
    }

    /// The connection is a node's: its address is preferred from now on.
    pub(super) fn is_known(&mut self, slot: usize, address: IpAddr) {
        self.waiting.retain(|(waiting, _)| *waiting != slot);
        self.known.retain(|known| *known != address);
        self.known.push_back(address);
        if self.known.len() > KNOWN_MAX {
            self.known.pop_front();
        }
    }

    /// Whether a connection in TLS may be read now. One that may not is read after a later heartbeat.
    pub(super) fn may_shake_hands(&mut self, slot: usize) -> bool {
        let waits = self.waiting.iter().any(|(waiting, _)| *waiting == slot);
        if !waits || self.begun.contains(&slot) {
            return true;
        }
        if self.budget > 0 && self.flights.is_empty() {
            self.budget -= 1;
            self.begun.insert(slot);
            return true;
        }
        self.flights.insert(slot);
        false
    }

    pub(super) fn ended(&mut self, slot: usize) {
        self.waiting.retain(|(waiting, _)| *waiting != slot);
        self.flights.remove(&slot);
        self.begun.remove(&slot);
    }

    /// The connections whose handshakes are begun now: from known addresses first, then the newest.
    fn begin_handshakes(&mut self) -> Vec<usize> {
        let mut ready: Vec<(bool, usize)> = Vec::new();
        for (slot, address) in self.waiting.iter().rev().filter(|(slot, _)| self.flights.contains(slot)) {
            ready.push((!self.known.contains(address), *slot));
        }
        ready.sort_by_key(|(is_unknown, _)| *is_unknown);
        let begun: Vec<usize> = ready.into_iter().take(HANDSHAKES_PER_BEAT).map(|(_, slot)| slot).collect();
        self.budget = HANDSHAKES_PER_BEAT - begun.len();
        for slot in &begun {
            self.flights.remove(slot);
            self.begun.insert(*slot);
        }
        begun
    }
}

impl Links {
    /// Accepts connections, at most [`ACCEPTED_PER_TURN`]; gives those that were accepted, to be read, and whether more may wait.
    pub fn accept(&mut self, now: Instant, introduction: Introduction) -> (Vec<usize>, bool) {
        let mut accepted = Vec::new();
        for _ in 0..ACCEPTED_PER_TURN {
            let Some(listener) = &self.listener else { return (accepted, false) };
            match listener.accept() {
                Ok((socket, address)) => {
                    if let Some(slot) = self.begin(socket, None, now, introduction) {
                        self.arrived(slot, address, now);
                        accepted.push(slot);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (accepted, false),
                Err(error) => {
                    if let Some(times) = self.refused.due("accept") {
                        tracing::warn!(%error, times, "cannot accept a connection of the pair; is the limit on open files too low?");
                    }
                    return (accepted, false);
                }
            }
        }
        (accepted, true)
    }

    fn arrived(&mut self, slot: usize, address: SocketAddr, now: Instant) {
        let Some(oldest) = self.arrivals.arrived(slot, address.ip()) else { return };
        self.arrivals.evicted += 1;
        if let Some(times) = self.refused.due("arrivals") {
            let newest = address.ip();
            tracing::warn!(%newest, times, ARRIVALS_MAX, ARRIVALS_PER_ADDRESS, "connections to the pair's port closed: too many say nothing");
        }
        self.close(oldest, now);
    }

    /// Connections whose TLS handshakes are begun in this heartbeat, to be read.
    pub fn begin_handshakes(&mut self) -> Vec<usize> {
        self.arrivals.begin_handshakes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn newest_arrival_replaces_the_oldest() {
        let mut arrivals = Arrivals::default();
        let closed: Vec<_> = (0..ARRIVALS_PER_ADDRESS + 2).filter_map(|slot| arrivals.arrived(slot, address(1))).collect();
        assert_eq!(closed, [0, 0], "the caller closes it");
        arrivals.ended(0);
        arrivals.ended(1);
        assert_eq!(arrivals.arrived(90, address(2)), None, "another address has its own limit");
    }

    #[test]
    fn known_address_is_closed_last() {
        let mut arrivals = Arrivals::default();
        arrivals.is_known(500, address(1));
        assert_eq!(arrivals.arrived(0, address(1)), None);
        for slot in 1..ARRIVALS_MAX {
            assert_eq!(arrivals.arrived(slot, address(2 + (slot / ARRIVALS_PER_ADDRESS) as u8)), None);
        }
        assert_eq!(arrivals.arrived(99, address(9)), Some(1));
    }

    #[test]
    fn handshakes_of_known_addresses_begin_first() {
        let mut arrivals = Arrivals::default();
        arrivals.is_known(500, address(1));
        for (slot, last) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
            arrivals.arrived(slot, address(last));
        }
        assert!((0..3).all(|slot| !arrivals.may_shake_hands(slot)), "they wait for a heartbeat");
        assert_eq!(arrivals.begin_handshakes(), [0, 2], "the known one, then the newest that has said something");
        assert!(arrivals.may_shake_hands(0) && !arrivals.may_shake_hands(1) && arrivals.may_shake_hands(77));
        assert_eq!(arrivals.begin_handshakes(), [1]);
        assert!(arrivals.may_shake_hands(3), "one more fits before the next heartbeat");
    }
}
