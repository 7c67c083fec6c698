//! The connections between the nodes: who connects to whom, who is who, and which are dead.
//!
//! In the order first, second, witness each node connects to those behind it and listens for those in front, so there is one connection between any
//! two. It begins with a greeting of either side; both send a heartbeat now and then, and one on which nothing has come for [`silence`] is closed and made anew.
//! The replica channel of the two candidates is a second connection, which is made the same way and then handed over to who owns its end.

use std::{collections::BTreeMap, io, net::SocketAddr, time::Duration};

use bodkin_broker::{
    Epoch, Incarnation, Instant, Node,
    wire::{LinkFrame, Replication, Role},
};
use mio::{
    Interest, Registry, Token,
    net::{TcpListener, TcpStream},
};
use slab::Slab;

use super::link::{Left, Link, OUT_BYTES_MAX, Purpose};

/// The newest protocol of the link that this node speaks, and the oldest.
pub const PROTOCOL: u16 = 1;
/// Connections at the most, those included that have not said who they are.
const LINKS_MAX: usize = 16;
/// Pause between two attempts to connect.
const REDIAL: Duration = Duration::from_millis(50);
/// A connection is dead when nothing has come for so many leases, and for [`SILENCE_MIN`].
const SILENCE_LEASES: u32 = 4;
const SILENCE_MIN: Duration = Duration::from_secs(1);

/// When a connection on which nothing comes is dead.
pub fn silence(lease: Duration) -> Duration {
    (lease * SILENCE_LEASES).max(SILENCE_MIN)
}

/// What this node says of itself.
#[derive(Clone, Copy, Debug)]
pub struct OwnName {
    pub node: Node,
    pub incarnation: Incarnation,
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
        Ok(Self { own, silence, registry, listener, links: Slab::new(), by_node: BTreeMap::new(), dials, dirty: Vec::new() })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Takes the connections that wait; more than [`LINKS_MAX`] are closed.
    pub fn accept(&mut self, now: Instant, role: Role, epoch: Epoch) {
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok((socket, _)) if self.links.len() < LINKS_MAX => self.add(Link::new(socket, None, now), role, epoch),
                Ok((socket, address)) => {
                    tracing::warn!(%address, LINKS_MAX, "a connection too many to the pair's node was refused");
                    drop(socket);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection of the pair; is the limit on open files too low?");
                    break;
                }
            }
        }
    }

    /// Connects to those that are not there, gives up those that are silent, says on all that it lives. Gives the nodes that were lost.
    pub fn beat(&mut self, now: Instant, progress: u64, role: Role, epoch: Epoch) -> Vec<Node> {
        let silent = |link: &Link| now.since(link.heard_at) > self.silence;
        let dead: Vec<usize> = self.links.iter().filter(|(_, link)| silent(link)).map(|(slot, _)| slot).collect();
        let lost = dead.into_iter().filter_map(|slot| self.close(slot, now)).collect();
        for index in 0..self.dials.len() {
            let (node, address, at) = self.dials[index];
            if now < at || self.is_dialling(node, Purpose::Ballots) {
                continue;
            }
            self.dials[index].2 = now.plus(REDIAL);
            match TcpStream::connect(address) {
                Ok(socket) => self.add(Link::new(socket, Some((node, Purpose::Ballots)), now), role, epoch),
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
    pub fn dial_channel(&mut self, now: Instant, node: Node, role: Role, epoch: Epoch) {
        let Some(&(_, address, _)) = self.dials.iter().find(|(dialled, ..)| *dialled == node) else { return };
        if self.is_dialling(node, Purpose::Channel) {
            return;
        }
        match TcpStream::connect(address) {
            Ok(socket) => self.add(Link::new(socket, Some((node, Purpose::Channel)), now), role, epoch),
            Err(error) => tracing::debug!(%address, %error, "the replica channel cannot be connected"),
        }
    }

    /// Agrees that a connection is the replica channel.
    pub fn agree_to_channel(&mut self, slot: usize, epoch: Epoch) {
        let frame = Replication::Channel { epoch, protocol: PROTOCOL, protocol_min: PROTOCOL, node: self.own.node };
        self.links[slot].push(LinkFrame::Replication(frame));
        self.dirty.push(slot);
    }

    /// Whether this node has connected it, and for what.
    pub fn dialled(&self, slot: usize) -> Option<Purpose> {
        self.links.get(slot).and_then(|link| link.dialled).map(|(_, purpose)| purpose)
    }

    /// Gives a connection away that is not this thread's any more.
    pub fn take(&mut self, slot: usize) -> Option<Link> {
        let mut link = self.links.try_remove(slot)?;
        // It fails only for a socket that is closed, which its new owner sees too.
        let _ = self.registry.deregister(&mut link.socket);
        Some(link)
    }

    /// The bytes that were read of a connection that is there; what is not taken of them is given back.
    pub fn received(&mut self, slot: usize) -> &mut Vec<u8> {
        &mut self.links[slot].received
    }

    fn add(&mut self, mut link: Link, role: Role, epoch: Epoch) {
        // Delays of Nagle's would be part of every fail-over.
        let begun = link.socket.set_nodelay(true);
        let OwnName { node, incarnation } = self.own;
        let (protocol, protocol_min) = (PROTOCOL, PROTOCOL);
        link.push(LinkFrame::Replication(match link.dialled {
            Some((_, Purpose::Channel)) => Replication::Channel { epoch, protocol, protocol_min, node },
            _ => Replication::Greeting { epoch, protocol, protocol_min, node, role, incarnation },
        }));
        let slot = self.links.vacant_key();
        let begun = begun.and_then(|()| self.registry.register(&mut link.socket, Token(slot), Interest::READABLE | Interest::WRITABLE));
        match begun {
            Ok(()) => {
                self.links.insert(link);
                self.dirty.push(slot);
            }
            Err(error) => tracing::warn!(%error, "a connection of the pair could not be begun"),
        }
    }

    /// Who is at the other end: nodes it connects to have to be who they should be, others to be in front of this one. The reason, if not.
    pub fn greet(&mut self, slot: usize, node: Node, protocol: u16, protocol_min: u16) -> Result<(), String> {
        let link = &mut self.links[slot];
        let is_welcome = link.dialled.map_or(node < self.own.node, |(dialled, _)| dialled == node);
        if !is_welcome {
            return Err(format!("it says that it is {node:?}, which is not expected there"));
        }
        if protocol < PROTOCOL || protocol_min > PROTOCOL {
            return Err(format!("it speaks versions {protocol_min} to {protocol} of the protocol, and this node {PROTOCOL}"));
        }
        link.peer = Some(node);
        Ok(())
    }

    /// Makes a greeted connection the one to its node. Gives the one that it replaces.
    pub fn establish(&mut self, slot: usize) -> Option<usize> {
        let node = self.links[slot].peer.expect("it was greeted");
        self.by_node.insert(node, slot).filter(|old| *old != slot)
    }

    /// Who is at the other end.
    pub fn peer(&self, slot: usize) -> Option<Node> {
        self.links.get(slot).and_then(|link| link.peer)
    }

    /// Whether a node is connected.
    pub fn has(&self, node: Node) -> bool {
        self.by_node.contains_key(&node)
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
        let link = self.links.get_mut(slot)?;
        Some(link.read(now).unwrap_or_else(|error| {
            tracing::debug!(%error, peer = ?link.peer, "a connection of the pair broke");
            Left::End
        }))
    }

    /// Whether a connection is there.
    pub fn is_open(&self, slot: usize) -> bool {
        self.links.contains(slot)
    }

    /// The socket takes more.
    pub fn writable(&mut self, slot: usize) {
        self.dirty.push(slot);
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
        // It is closed anyway.
        let _ = self.registry.deregister(&mut link.socket);
        if let Some(dial) = self.dials.iter_mut().find(|(node, ..)| link.dialled == Some((*node, Purpose::Ballots))) {
            dial.2 = now.plus(REDIAL);
        }
        let node = link.peer.filter(|node| self.by_node.get(node) == Some(&slot))?;
        self.by_node.remove(&node);
        Some(node)
    }
}
