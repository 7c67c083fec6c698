//! Taking connections in.

use std::{io, net::SocketAddr, sync::atomic::Ordering::Relaxed};

use mio::{Interest, Token, net::TcpStream};

use super::{Shard, connection::Connection};
use crate::{
    answer::{self, Answer, Recipient},
    channel::Channel,
    inbox::Arrival,
    security::{self, Peer},
};

/// Connections accepted from one socket in one turn, so that thousands at once do not hold up events.
const TURN_ACCEPTS_MAX: usize = 16;

impl Shard {
    /// Takes connections in, a turn's share of those that wait at each socket. The sockets of a shard that stops are closed when nobody waits.
    pub(super) fn accept(&mut self) {
        (0..self.listeners.len()).for_each(|listener| self.accept_from(listener));
        if self.drain.is_some() && !self.unaccepted {
            self.listeners.clear();
        }
    }

    fn accept_from(&mut self, listener: usize) {
        for _ in 0..TURN_ACCEPTS_MAX {
            match self.listeners[listener].accept() {
                Ok((socket, client)) => {
                    let slot = self.welcome(Channel::plain(socket), Peer::anonymous(), Some(client));
                    // There may be no turn behind the one that reads it.
                    if let Some(slot) = slot.filter(|_| self.drain.is_some()) {
                        self.read_next_turn(slot);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted || error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; is the limit on open files too low?");
                    return;
                }
            }
        }
        self.unaccepted = true;
    }

    /// Takes a connection over whose handshake was done elsewhere.
    pub(super) fn take_over(&mut self, Arrival { channel, peer }: Arrival) {
        // What has changed on its way here is not asked of it later: a change is looked for in the connections that are there.
        if let Some(Err(error)) = self.context.security.as_ref().map(|security| security.check(&peer)) {
            return security::tell_refused(&peer, &error);
        }
        let channel = channel.map_socket(|socket| Ok(TcpStream::from_std(socket)));
        let welcomed = channel.ok().and_then(|channel| {
            let client = channel.socket().peer_addr().ok();
            self.welcome(channel, peer, client)
        });
        if let Some(slot) = welcomed {
            // What came behind the handshake is in the session already, and raises no event.
            self.read_next_turn(slot);
        }
    }

    /// Gives the slot of a connection that is served.
    fn welcome(&mut self, mut channel: Channel<TcpStream>, peer: Peer, client: Option<SocketAddr>) -> Option<usize> {
        let limits = &self.context.limits;
        if self.connections.len() >= limits.connections_max {
            if let Some(times) = self.refused.due() {
                tracing::warn!(times, connections_max = limits.connections_max, "a connection too many was refused");
            }
            let mut told = Vec::new();
            let recipient = Recipient { is_secure: channel.is_tls(), ..Recipient::CLOSED };
            answer::push_answer(&mut told, &Answer::text(503, "Too many connections."), self.clock.date(), recipient);
            // The client that does not get it sees the connection closed, which says the same.
            let _ = channel.write(&told);
            channel.close();
            return None;
        }
        let slot = self.connections.vacant_key();
        let both = Interest::READABLE | Interest::WRITABLE;
        let socket = channel.socket_mut();
        let registered = socket.set_nodelay(true).and_then(|()| self.poll.registry().register(socket, Token(slot), both));
        if let Err(error) = registered {
            tracing::debug!(%error, "a connection was gone before it was served");
            return None;
        }
        self.connections.insert(Connection::new(channel, peer, client, self.next_serial, limits.event_bytes_max, self.clock.now));
        self.next_serial += 1;
        self.context.counts.connections.store(self.connections.len() as u64, Relaxed);
        Some(slot)
    }
}
