//! Taking connections in.

use std::{io, net::SocketAddr, sync::atomic::Ordering::Relaxed};

use mio::{Interest, Token, net::TcpStream};

use super::{
    Shard,
    connection::{Client, Connection},
};
use crate::{
    answer::{self, Answer, Recipient},
    channel::Channel,
    http::RequestReader,
    inbox::Arrival,
    quotas::ClientKey,
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
                    if let Some(times) = self.not_accepted.due() {
                        tracing::warn!(%error, times, "connection not accepted: raise the limit on open files if it is reached");
                    }
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
        let client_key = ClientKey::of(&peer, client.map(|client| client.ip()));
        let permit = match self.context.quotas.events.admit(client_key) {
            Ok(permit) => permit,
            Err(exceeded) => {
                let mut told = Vec::new();
                let recipient = Recipient { is_secure: channel.is_tls(), ..Recipient::CLOSED };
                answer::push_answer(&mut told, &Answer::quota(exceeded), self.clock.date(), recipient);
                // The client that does not get it sees the connection closed, which means the same.
                let _ = channel.write(&told);
                channel.close();
                return None;
            }
        };
        let slot = self.connections.vacant_key();
        let both = Interest::READABLE | Interest::WRITABLE;
        let socket = channel.socket_mut();
        let registered = socket.set_nodelay(true).and_then(|()| self.poll.registry().register(socket, Token(slot), both));
        if let Err(error) = registered {
            tracing::debug!(%error, "a connection was gone before it was served");
            return None;
        }
        let reader = RequestReader::new(self.context.limits.event_bytes_max).within(permit.buffer_quota());
        let client = Client::new(peer, client, permit);
        self.connections.insert(Connection::new(channel, client, reader, self.next_serial, self.clock.now));
        self.next_serial += 1;
        self.context.counts.connections.store(self.connections.len() as u64, Relaxed);
        Some(slot)
    }
}
