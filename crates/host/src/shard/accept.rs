//! Taking connections in.

use std::{
    io::{self, Write},
    sync::atomic::Ordering::Relaxed,
};

use mio::{Interest, Token};

use super::{Shard, connection::Connection};
use crate::answer::{self, Answer, Recipient};

/// Connections accepted in one turn, so that thousands at once do not hold up events.
const TURN_ACCEPTS_MAX: usize = 64;
impl Shard {
    /// Takes connections in, a turn's share of those that wait.
    pub(super) fn accept(&mut self) {
        for _ in 0..TURN_ACCEPTS_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((socket, _)) => self.welcome(socket),
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

    fn welcome(&mut self, mut socket: mio::net::TcpStream) {
        let limits = &self.context.limits;
        if self.connections.len() >= limits.connections_max {
            if let Some(times) = self.refused.due() {
                tracing::warn!(times, connections_max = limits.connections_max, "a connection too many was refused");
            }
            let mut told = Vec::new();
            answer::push_answer(&mut told, &Answer::text(503, "Too many connections."), self.clock.date(), Recipient::CLOSED);
            // The client that does not get it sees the connection closed, which says the same.
            let _ = socket.write(&told);
            return;
        }
        let slot = self.connections.vacant_key();
        let both = Interest::READABLE | Interest::WRITABLE;
        let registered = socket.set_nodelay(true).and_then(|()| self.poll.registry().register(&mut socket, Token(slot), both));
        if let Err(error) = registered {
            tracing::debug!(%error, "a connection was gone before it was served");
            return;
        }
        self.connections.insert(Connection::new(socket, self.next_serial, limits.event_bytes_max, self.clock.now));
        self.next_serial += 1;
        self.context.counts.connections.store(self.connections.len() as u64, Relaxed);
    }
}
