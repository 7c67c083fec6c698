//! The connections between the nodes: who connects to whom, who is who, and which are dead.
//!
//! In the order first, second, witness each node connects to those behind it and listens for those in front, so there is one connection between any
//! two. It begins with a greeting of either side; both send a heartbeat now and then, and one on which nothing has come for [`silence`] is closed and made anew.
//! The replica channel of the two candidates is a second connection, which is made the same way and then handed over to who owns its end.

use std::{collections::BTreeMap, io, net::SocketAddr, time::Duration};

use bodkin_broker::{
    Epoch, Incarnation, Instant, Node, PairId,
    member::Peer,
    wire::{LinkFrame, RejectReason, Replication, Role, TEXT_BYTES_MAX},
};
use bodkin_trust::tls::Refusal;
use mio::{
    Interest, Registry, Token,
    event::Event as Readiness,
    net::{TcpListener, TcpStream},
};
use slab::Slab;

mod arrivals;

use self::arrivals::Arrivals;
use super::{
    identity::PairTerms,
    link::{Fault, Left, Link, OUT_BYTES_MAX, Purpose},
    trust::SharedTrust,
};
use crate::seldom::SeldomOf;

/// The newest protocol of the link, and the oldest that is spoken.
pub const PROTOCOL: u16 = 5;
/// Older nodes take every process that has a node's name for the node, so two of them may lead.
pub const PROTOCOL_MIN: u16 = 4;
/// The protocol that the Backup takes records of durable event types in.
pub const RECORDS_SINCE: u16 = 2;
/// The protocol in which the candidates ask each other what their clocks show, and that in which the Backup is told what is asked of topics.
pub const CLOCKS_SINCE: u16 = 2;
pub const ASKED_SINCE: u16 = 2;
/// The protocol in which the Backup says what it has of the control state, so that it may do without a copy.
pub const TAIL_SINCE: u16 = 2;
/// The protocol in which the Backup says what its event log has, so that it is given what is behind that.
pub const LOGGED_SINCE: u16 = 3;
/// The protocol in which the Backup takes checkpoints of graphs.
pub const GRAPHS_SINCE: u16 = 3;
/// The protocol in which the candidates report to each other whether their disks take new data.
pub const DISK_SINCE: u16 = 5;
/// The protocol in which a node says behind its greeting what the nodes of a pair have alike.
pub const IDENTITY_SINCE: u16 = 4;
/// The protocol in which a standby sends lines of its certificate ledger to the leader.
pub const LINES_SINCE: u16 = 5;
/// Pause between two attempts to connect.
pub const REDIAL: Duration = Duration::from_millis(50);
/// A connection is dead when nothing has come for so many leases, and for [`SILENCE_MIN`].
const SILENCE_LEASES: u32 = 4;
const SILENCE_MIN: Duration = Duration::from_secs(1);

/// A connection that the other host has not even accepted by then is made anew, at the latest after this part of a silence: where its first segment was lost, as it is while
/// a wire comes up, the system would repeat that a second later, and no ballot passes meanwhile.
const DIAL_PART: u32 = 5;

/// When a connection on which nothing comes is dead.
pub fn silence(lease: Duration) -> Duration {
    (lease * SILENCE_LEASES).max(SILENCE_MIN)
}

/// The host of an address: what is sent from it is reported as one, whatever its ports are.
pub fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// What this node says of itself.
#[derive(Clone, Debug)]
pub struct OwnName {
    pub node: Node,
    pub incarnation: Incarnation,
    /// The newest protocol that it speaks.
    pub protocol: u16,
    /// What it shows, and what it asks of the others; `None` in insecure mode.
    pub trust: Option<SharedTrust>,
    /// What the others have to have alike.
    pub terms: PairTerms,
}

/// What a node says at the beginning of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Introduction {
    pub role: Role,
    pub epoch: Epoch,
    /// The pair that it has met.
    pub pair: Option<PairId>,
}

/// All connections.
pub struct Links {
    own: OwnName,
    silence: Duration,
    registry: Registry,
    listener: Option<TcpListener>,
    links: Slab<Link>,
    by_node: BTreeMap<Node, usize>,
    /// Where those are that it connects to, and when to try again.
    dials: Vec<(Node, SocketAddr, Instant)>,
    /// Slots with something to write.
    dirty: Vec<usize>,
    /// Those that came in and have not said who they are.
    arrivals: Arrivals,
    refused: SeldomOf,
}

impl Links {
    pub fn new(
        own: OwnName,
        silence: Duration,
        registry: Registry,
        mut listener: Option<TcpListener>,
        listener_token: Token,
        others: &[(Node, SocketAddr)],
        now: Instant,
    ) -> io::Result<Self> {
        if let Some(listener) = &mut listener {
            registry.register(listener, listener_token, Interest::READABLE)?;
        }
        let dials = others.iter().map(|(node, address)| (*node, *address, now)).collect();
        Ok(Self {
            own,
            silence,
            registry,
            listener,
            links: Slab::new(),
            by_node: BTreeMap::new(),
            dials,
            dirty: Vec::new(),
            arrivals: Arrivals::default(),
            refused: SeldomOf::default(),
        })
    }

    /// Where it listens.
    pub fn listens_at(&self) -> Option<SocketAddr> {
        self.listener.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    fn begin(&mut self, socket: TcpStream, dialled: Option<(Node, Purpose)>, now: Instant, introduction: Introduction) -> Option<usize> {
        let Some(trust) = self.own.trust.as_ref().map(SharedTrust::load) else {
            return self.add(Link::plain(socket, dialled, now), introduction);
        };
        let session = match dialled {
            _ if self.own.trust.as_ref().is_some_and(SharedTrust::is_excluded) => None,
            Some((node, _)) => trust.dial(self.address_of(node).ip()),
            None => trust.accept(),
        };
        match session? {
            Ok(session) => self.add(Link::tls(socket, session, dialled, now), introduction),
            Err(error) => {
                tracing::error!(%error, "a TLS session with another node of the pair could not be begun");
                None
            }
        }
    }

    fn address_of(&self, node: Node) -> SocketAddr {
        self.dials.iter().find(|(dialled, ..)| *dialled == node).expect("only these are connected to").1
    }

    /// Closes the connections of those whose certificates do not count any more; gives the nodes that were lost.
    pub fn refuse_again(&mut self, now: Instant) -> Vec<Node> {
        let Some(shared) = &self.own.trust else { return Vec::new() };
        let trust = shared.load();
        let refused = |(slot, link): (usize, &Link)| Some((slot, shared.check_again(&trust, link.proof.as_ref()?).err()?));
        let refused: Vec<_> = self.links.iter().filter_map(refused).collect();
        let close = |(slot, error)| {
            tracing::warn!(%error, peer = ?self.peer(slot), "an open connection of the pair was closed");
            self.close(slot, now)
        };
        refused.into_iter().filter_map(close).collect()
    }

    /// Connects to those that are not there, gives up those that are silent, says on all that it lives. Gives the nodes that were lost.
    pub fn beat(&mut self, now: Instant, progress: u64, introduction: Introduction) -> Vec<Node> {
        let epoch = introduction.epoch;
        let dial_max = self.silence / DIAL_PART;
        let is_dead = |link: &mut Link| {
            let silent = now.since(link.heard_at);
            silent > self.silence || silent > dial_max && link.is_being_dialled()
        };
        let dead: Vec<usize> = self.links.iter_mut().filter_map(|(slot, link)| is_dead(link).then_some(slot)).collect();
        let lost = dead.into_iter().filter_map(|slot| self.close(slot, now)).collect();
        let is_excluded = self.own.trust.as_ref().is_some_and(SharedTrust::is_excluded);
        for index in 0..self.dials.len() {
            let (node, address, at) = self.dials[index];
            if is_excluded || now < at || self.is_dialling(node, Purpose::Ballots) {
                continue;
            }
            self.dials[index].2 = now.plus(REDIAL);
            match TcpStream::connect(address) {
                Ok(socket) => _ = self.begin(socket, Some((node, Purpose::Ballots)), now, introduction),
                Err(error) => tracing::debug!(%address, %error, "another node of the pair cannot be reached"),
            }
        }
        let nodes: Vec<Node> = self.by_node.keys().copied().collect();
        nodes.into_iter().for_each(|node| self.send(node, LinkFrame::Replication(Replication::Heartbeat { epoch, progress })));
        lost
    }

    fn is_dialling(&self, node: Node, purpose: Purpose) -> bool {
        self.links.iter().any(|(_, link)| link.dialled == Some((node, purpose)))
    }

    /// Begins to connect the replica channel of an epoch to a node that this one connects to, unless it is about to.
    pub fn dial_channel(&mut self, now: Instant, node: Node, introduction: Introduction) {
        let Some(&(_, address, _)) = self.dials.iter().find(|(dialled, ..)| *dialled == node) else { return };
        if self.is_dialling(node, Purpose::Channel) {
            return;
        }
        match TcpStream::connect(address) {
            Ok(socket) => _ = self.begin(socket, Some((node, Purpose::Channel)), now, introduction),
            Err(error) => tracing::debug!(%address, %error, "the replica channel cannot be connected"),
        }
    }

    /// Agrees that a connection is the replica channel.
    pub fn agree_to_channel(&mut self, slot: usize, epoch: Epoch) {
        let frame = self.channel(epoch);
        self.links[slot].push(LinkFrame::Replication(frame));
        self.dirty.push(slot);
    }

    fn channel(&self, epoch: Epoch) -> Replication<'static> {
        let OwnName { node, incarnation, protocol, .. } = self.own;
        Replication::Channel { epoch, protocol, protocol_min: PROTOCOL_MIN.min(protocol), node, incarnation }
    }

    /// Says who this node is: at once where it connects, and where it was connected to when it has accepted the other's greeting.
    pub fn introduce(&mut self, slot: usize, Introduction { role, epoch, pair }: Introduction) {
        let OwnName { node, incarnation, protocol, terms, .. } = &self.own;
        let protocol_min = PROTOCOL_MIN.min(*protocol);
        let greeting = Replication::Greeting { epoch, protocol: *protocol, protocol_min, node: *node, role, incarnation: *incarnation };
        let Some(link) = self.links.get_mut(slot) else { return };
        link.push(LinkFrame::Replication(greeting));
        if *protocol >= IDENTITY_SINCE {
            link.push(LinkFrame::Replication(terms.frame(epoch, pair)));
        }
        self.dirty.push(slot);
    }

    /// Sends the reason, and closes the connection. Gives the node that was lost.
    pub fn reject(&mut self, slot: usize, now: Instant, epoch: Epoch, reason: RejectReason, text: &str) -> Option<Node> {
        if let Some(link) = self.links.get_mut(slot) {
            let end = text.floor_char_boundary(TEXT_BYTES_MAX);
            link.push(LinkFrame::Replication(Replication::Rejected { epoch, reason, text: &text[..end] }));
            // A peer that does not take it learns less; the connection ends in any case.
            let _ = link.flush();
            let _ = link.socket().shutdown(std::net::Shutdown::Write);
        }
        self.close(slot, now)
    }

    /// The connection of a node.
    pub fn slot_of(&self, node: Node) -> Option<usize> {
        self.by_node.get(&node).copied()
    }

    /// The address at the other end, for people.
    pub fn address(&mut self, slot: usize) -> String {
        let address = self.links.get_mut(slot).and_then(|link| link.socket().peer_addr().ok());
        address.map_or_else(|| "an address that is not known".to_owned(), |address| address.to_string())
    }

    /// Sends a frame to every node that is connected.
    pub fn send_all(&mut self, frame: LinkFrame<'_>) {
        let nodes: Vec<Node> = self.by_node.keys().copied().collect();
        nodes.into_iter().for_each(|node| self.send(node, frame));
    }

    /// Whether this node has connected it, and for what.
    pub fn dialled(&self, slot: usize) -> Option<Purpose> {
        self.links.get(slot).and_then(|link| link.dialled).map(|(_, purpose)| purpose)
    }

    /// Gives a connection away that is not this thread's any more.
    pub fn take(&mut self, slot: usize) -> Option<Link> {
        let mut link = self.links.try_remove(slot)?;
        self.arrivals.ended(slot);
        // It fails only for a socket that is closed, which its new owner sees too.
        let _ = self.registry.deregister(link.socket());
        Some(link)
    }

    /// The bytes that were read of a connection that is there; what is not taken of them is given back.
    pub fn received(&mut self, slot: usize) -> &mut Vec<u8> {
        &mut self.links[slot].received
    }

    fn add(&mut self, mut link: Link, introduction: Introduction) -> Option<usize> {
        // Delays of Nagle's would be part of every fail-over.
        let begun = link.socket().set_nodelay(true);
        let slot = self.links.vacant_key();
        let begun = begun.and_then(|()| self.registry.register(link.socket(), Token(slot), Interest::READABLE | Interest::WRITABLE));
        if let Err(error) = begun {
            if let Some(times) = self.refused.due("register") {
                tracing::warn!(%error, times, "a connection of the pair could not be begun");
            }
            return None;
        }
        let dialled = link.dialled;
        self.links.insert(link);
        match dialled {
            Some((_, Purpose::Channel)) => self.agree_to_channel(slot, introduction.epoch),
            Some((_, Purpose::Ballots)) => self.introduce(slot, introduction),
            None => {}
        }
        Some(slot)
    }

    /// Who is at the other end: nodes it connects to have to be who they should be, others to be in front of this one, and in secure mode each has to have
    /// shown its own certificate. The reason, if not.
    pub fn greet(&mut self, slot: usize, peer: Peer, protocol: u16, protocol_min: u16) -> Result<(), Fault> {
        let node = peer.node;
        let link = &mut self.links[slot];
        let is_welcome = link.dialled.map_or(node < self.own.node, |(dialled, _)| dialled == node);
        if !is_welcome {
            return Err(Fault::new(
                "another node is expected there",
                format_args!("it says that it is {node:?}, which is not expected there"),
            ));
        }
        let own = self.own.protocol;
        let spoken = protocol.min(own);
        if spoken < protocol_min.max(PROTOCOL_MIN) {
            let detail = format_args!(
                "it speaks protocols {protocol_min} to {protocol}, and this node {PROTOCOL_MIN} to {own}: install the same version of bodkin \
                 on all nodes of the pair"
            );
            return Err(Fault::new("another protocol is spoken there", detail));
        }
        if let (Some(trust), Some(session)) = (&self.own.trust, link.session()) {
            let proven = trust.prove(node, session);
            link.proof = Some(proven.map_err(|why| Fault::new("its certificate is not the node's", why))?);
        }
        (link.protocol, link.claims) = (spoken, Some(peer));
        Ok(())
    }

    /// Makes a greeted connection the one to its node. Gives the one that it replaces.
    pub fn establish(&mut self, slot: usize) -> Option<usize> {
        let link = self.links.get_mut(slot)?;
        let node = link.claims?.node;
        link.peer = Some(node);
        if link.dialled.is_none()
            && let Ok(address) = link.socket().peer_addr()
        {
            self.arrivals.is_known(slot, address.ip());
        }
        self.by_node.insert(node, slot).filter(|old| *old != slot)
    }

    /// The node that a connection is to, or that was accepted on it: a stranger's word is nobody's.
    pub fn expected(&self, slot: usize) -> Option<Node> {
        let link = self.links.get(slot)?;
        link.peer.or(link.dialled.map(|(node, _)| node))
    }

    /// Which process greeted on a connection whose greeting is not accepted yet.
    pub fn claims(&self, slot: usize) -> Option<Peer> {
        self.links.get(slot).filter(|link| link.peer.is_none()).and_then(|link| link.claims)
    }

    /// Who is at the other end.
    pub fn peer(&self, slot: usize) -> Option<Node> {
        self.links.get(slot).and_then(|link| link.peer)
    }

    /// Whether a node is connected and speaks this protocol, or a newer one.
    pub fn speaks(&self, node: Node, protocol: u16) -> bool {
        self.by_node.get(&node).is_some_and(|slot| self.links[*slot].protocol >= protocol)
    }

    /// Whether a node is connected.
    pub fn has(&self, node: Node) -> bool {
        self.by_node.contains_key(&node)
    }

    /// How many nodes are connected.
    pub fn connected(&self) -> usize {
        self.by_node.len()
    }

    /// Sends a frame, unless the node is not there or takes nothing.
    pub fn send(&mut self, to: Node, frame: LinkFrame<'_>) {
        let Some(&slot) = self.by_node.get(&to) else { return };
        if self.links[slot].queued() < OUT_BYTES_MAX {
            self.links[slot].push(frame);
            self.dirty.push(slot);
        }
    }

    /// Reads what is there; `None` if the connection is not there any more. An error is an end.
    pub fn read(&mut self, slot: usize, now: Instant) -> Option<Left> {
        if self.own.trust.is_some() && !self.arrivals.may_shake_hands(slot) {
            return Some(Left::Nothing);
        }
        let link = self.links.get_mut(slot)?;
        let read = link.read(now);
        if link.session().is_some() {
            // What a handshake lets go, and the session's own answers.
            self.dirty.push(slot);
        }
        Some(read.unwrap_or_else(|error| {
            self.tell_broken(slot, error);
            Left::End
        }))
    }

    fn tell_broken(&mut self, slot: usize, error: io::Error) {
        let address = self.address(slot);
        let link = &mut self.links[slot];
        match error.downcast::<Refusal>() {
            Ok(refusal) => {
                self.own.trust.iter().for_each(|trust| trust.report_refusal(&refusal, &address));
                let (certificate, reason) = (refusal.name().unwrap_or("none"), refusal.to_string());
                if let Some(times) = self.refused.due(&format!("{} {}", host(&address), refusal.kind())) {
                    tracing::warn!(address, certificate, reason, times, "a connection of the pair was refused in TLS");
                }
            }
            Err(error) => tracing::debug!(%error, address, peer = ?link.peer, "a connection of the pair broke"),
        }
    }

    /// Whether a connection is there.
    pub fn is_open(&self, slot: usize) -> bool {
        self.links.contains(slot)
    }

    /// Takes note of what the system says of a connection.
    pub fn is_ready(&mut self, slot: usize, readiness: &Readiness) {
        let Some(link) = self.links.get_mut(slot) else { return };
        link.is_ready(readiness);
        if readiness.is_writable() {
            self.dirty.push(slot);
        }
    }

    /// Writes what there is to write. Gives the nodes that were lost.
    pub fn flush(&mut self, now: Instant) -> Vec<Node> {
        let mut dirty = std::mem::take(&mut self.dirty);
        let mut lost = Vec::new();
        for slot in dirty.drain(..) {
            if let Some(link) = self.links.get_mut(slot)
                && link.flush().is_err()
            {
                lost.extend(self.close(slot, now));
            }
        }
        self.dirty = dirty;
        lost
    }

    /// Closes a connection; gives the node that is not connected any more because of it.
    pub fn close(&mut self, slot: usize, now: Instant) -> Option<Node> {
        let mut link = self.links.try_remove(slot)?;
        self.arrivals.ended(slot);
        // It is closed anyway.
        let _ = self.registry.deregister(link.socket());
        if let Some(dial) = self.dials.iter_mut().find(|(node, ..)| link.dialled == Some((*node, Purpose::Ballots))) {
            dial.2 = now.plus(REDIAL);
        }
        let node = link.peer.filter(|node| self.by_node.get(node) == Some(&slot))?;
        self.by_node.remove(&node);
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use mio::Poll;
    use socket2::{Domain, Socket, Type};

    use super::*;

    const INTRODUCTION: Introduction = Introduction { role: Role::Follower, epoch: Epoch(1), pair: None };

    /// A listener whose queue is full: whoever connects now is not answered.
    fn deaf() -> (Socket, Vec<Socket>, SocketAddr) {
        let new = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = new();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let waiting = (0..8).map(|_| {
            let socket = new();
            socket.set_nonblocking(true).unwrap();
            // It is under way, or waits for ever.
            let _ = socket.connect(&address);
            socket
        });
        let waiting = waiting.collect();
        (listener, waiting, address.as_socket().unwrap())
    }

    fn dial(address: SocketAddr, now: Instant) -> (Poll, Links) {
        let poll = Poll::new().unwrap();
        let terms = PairTerms::default();
        let own = OwnName { node: Node::First, incarnation: Incarnation(1), protocol: PROTOCOL, trust: None, terms };
        let registry = poll.registry().try_clone().unwrap();
        let mut links = Links::new(own, SILENCE_MIN, registry, None, Token(99), &[(Node::Witness, address)], now).unwrap();
        links.beat(now, 0, INTRODUCTION);
        (poll, links)
    }

    fn dialled_from(links: &mut Links) -> Option<SocketAddr> {
        links.links.iter_mut().next().map(|(_, link)| link.socket().local_addr().unwrap())
    }

    #[test]
    fn who_is_not_answered_dials_anew_and_who_is_answered_waits_for_the_greeting() {
        let start = crate::pair::boot_time();
        let at = |milliseconds: u64| start.plus(Duration::from_millis(milliseconds));
        let beat = |links: &mut Links, milliseconds: u64| {
            links.beat(at(milliseconds), 0, INTRODUCTION);
            dialled_from(links)
        };
        let (_listener, _waiting, address) = deaf();
        let (_poll, mut links) = dial(address, start);
        let first = dialled_from(&mut links);
        assert!(first.is_some());
        assert_eq!(beat(&mut links, 200), first, "the other host has a fifth of the silence to answer");
        assert_eq!(beat(&mut links, 201), None);
        let second = beat(&mut links, 251);
        assert!(second.is_some() && second != first, "{second:?}, and {first:?} before");

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (_poll, mut links) = dial(listener.local_addr().unwrap(), start);
        let _accepted = listener.accept().unwrap();
        let first = dialled_from(&mut links);
        assert_eq!(beat(&mut links, 1000), first);
        assert_eq!(beat(&mut links, 1001), None, "it has said nothing for a whole silence");
    }
}
